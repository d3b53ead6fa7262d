"""Circuits and automata on arrays."""

import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from gradloom import Automaton, Circuit
from gradloom.errors import InvalidInputError, NotFoundError
from gradloom.logic import shipped_circuits


def life_step(grid):
    """The game of life on a torus, by its definition."""
    around = sum(np.roll(np.roll(grid, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((around == 3) | ((around == 2) & (grid == 1))).astype(np.uint8)


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (64, 64), (65, 130)])
def test_the_shipped_game_of_life_follows_its_definition(shape):
    life = Circuit.load("game-of-life")
    grid = np.random.default_rng(0).integers(0, 2, shape, dtype=np.uint8)
    assert np.array_equal(life.run(grid, steps=3, boundary="periodic"), life_step(life_step(life_step(grid))))


def test_ctrl_c_ends_a_run():
    life = Circuit.load("game-of-life")
    grid = np.random.default_rng(0).integers(0, 2, (300, 300), dtype=np.uint8)
    for call in (lambda: life.run(grid, steps=10**9, fire=0.5), lambda: life.run(grid, 10**9, fire=0.5, every=10**8)):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.monotonic() - begin < 30


def test_frames_are_the_states_in_between():
    life = Circuit.load("game-of-life")
    grid = np.random.default_rng(0).integers(0, 2, (20, 20))
    frames = life.run(grid, steps=6, every=2)
    assert frames.shape == (4, 20, 20) and np.array_equal(frames[0], grid)
    assert np.array_equal(frames[2], life.run(grid, steps=4))
    some = life.run(grid, steps=4, every=2, fire=0.5, seed=1)
    assert np.array_equal(some[-1], life.run(grid, steps=4, fire=0.5, seed=1))


def test_threads_change_no_cell():
    life = Circuit.load("game-of-life")
    grid = np.random.default_rng(0).integers(0, 2, (300, 300))
    assert np.array_equal(life.run(grid, 5, n_jobs=1), life.run(grid, 5, n_jobs=4))


@pytest.mark.parametrize("format", ["c", "dot"])
def test_exports_are_proved(format, tmp_path):
    life = Circuit.load("game-of-life")
    made = life.export(format, tmp_path / "out.txt", verify=True)
    assert made.proved and (tmp_path / "out.txt").read_text() == made.text


def test_circuits_travel_as_json_pickles_and_copies():
    life = Circuit.load("game-of-life")
    grid = np.random.default_rng(0).integers(0, 2, (16, 16))
    for other in (Circuit.from_json(life.to_json()), pickle.loads(pickle.dumps(life)), copy.deepcopy(life)):
        assert other.gates == life.gates and np.array_equal(other.run(grid, 3), life.run(grid, 3))


def test_evaluate_agrees_with_run():
    life = Circuit.load("game-of-life")
    patch = np.random.default_rng(0).integers(0, 2, (200, life.description["inputs"]))
    out = life.evaluate(patch)
    assert out.shape == (200, 1) and set(np.unique(out)) <= {0, 1}
    assert np.array_equal(life(patch[:1]), out[:1])


def test_a_film_is_an_animated_png():
    film = Circuit.load("game-of-life").animate(np.eye(8), steps=5)
    png = film.png()
    assert png.startswith(b"\x89PNG") and b"acTL" in png and png.count(b"fcTL") == 6
    assert "data:image/png" in film._repr_html_()


def test_an_automaton_learns_a_picture_of_bits():
    picture = np.indices((6, 6)).sum(axis=0) % 2
    ca = Automaton(channels=4, kernels=4, perception=[8, 4, 2], update=[32, 16, 8, 4], steps=4, seed=0)
    ca.fit(picture, epochs=60, options={"data.start": "zeros"})
    history = ca.history
    assert history["loss"][-1] < history["loss"][0]
    circuit = ca.circuit()
    assert circuit.channels == 4
    assert ca.predict(np.zeros((4, 6, 6))).shape == (4, 6, 6)
    assert ca.animate(steps=3).frames.shape == (4, 6, 6)
    ca.save("ca.safetensors")
    again = Automaton.load("ca.safetensors")
    assert again.circuit().to_json() == circuit.to_json()
    assert pickle.loads(pickle.dumps(ca)).circuit().to_json() == circuit.to_json()


def test_an_automaton_takes_a_shipped_recipe():
    ca = Automaton(recipe="checkerboard-small").fit(epochs=2)
    assert ca.description["epochs"] == 2 and ca.options["data"]["task"] == "checkerboard"


def test_shipped_circuits_load():
    for name in shipped_circuits():
        assert Circuit.load(name).gates > 0


def test_wrong_calls_are_refused():
    life = Circuit.load("game-of-life")
    with pytest.raises(InvalidInputError, match="bits are 0 or 1"):
        life.run(np.full((4, 4), 2))
    with pytest.raises(InvalidInputError, match="channels"):
        life.run(np.zeros((3, 4, 4)))
    with pytest.raises(InvalidInputError, match="steps"):
        life.run(np.zeros((4, 4)), steps=-1)
    with pytest.raises(ValueError, match="fire"):
        life.run(np.zeros((4, 4)), fire=2)
    with pytest.raises(ValueError, match="format"):
        life.export("vhdl")
    with pytest.raises(ValueError):
        life.run(np.zeros((0, 4)))
    with pytest.raises(FileNotFoundError):
        Circuit.load("no-such-circuit")
    with pytest.raises(ValueError):
        Circuit.from_json("{}")
    with pytest.raises(NotFoundError):
        Automaton().fit("no.png")
    with pytest.raises(InvalidInputError, match="channels"):
        Automaton(channels=1).fit(np.zeros((2, 4, 4)))


def test_a_film_is_saved_as_what_it_is(tmp_path):
    film = Circuit.load("game-of-life").animate(np.eye(8, dtype=np.uint8), steps=2)
    film.save(tmp_path / "a.PNG")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="ends in .png or .apng"):
        film.save(tmp_path / "f.mp4")
    assert not (tmp_path / "f.mp4").exists()
