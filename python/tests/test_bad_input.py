"""Whatever is passed: an exception that says something, never a crash."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest

import gradloom
from gradloom import KAN, Automaton, Circuit, ged
from gradloom.graph import GraphSet, as_graph

_WRONG = [
    None, True, -1, 0, 3, 1 << 70, 1.5, math.nan, math.inf, "", "text", b"bytes", "\0", [], [[]], [1, 2, 3], [[1.0, 2.0]],
    [[1.0], [2.0, 3.0]], {}, {"a": 1}, {"train_input": 3}, set(), object(), lambda: 0, (2, [(0, 1)]), (1, [(5, 6)]),
    np.zeros(0), np.zeros((0, 2)), np.zeros((3, 2)), np.zeros((3, 2), dtype=object), np.array([["a", "b"]]),
    np.full((3, 2), np.nan), np.full((3, 2), np.inf), np.zeros((2, 2, 2)), np.zeros((1, 1, 1, 1, 1)), np.zeros((3, 2), "f2"),
    np.zeros((3, 2), complex), np.zeros((4, 4), dtype="u8") + np.uint64(2**63), np.zeros(6)[::-2], np.eye(3) == 1,
    np.ma.masked_array(np.zeros((3, 2)), mask=np.ones((3, 2))), np.datetime64("2020"), np.zeros((3, 2), dtype="i8,f8"),
]  # fmt: skip


def _functions():
    """Every public function, and the methods of a fitted object of each class."""
    x = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    kan = KAN(width=[2, 1])
    kan.fit(x, x[:, 0], steps=1)
    life = Circuit.load("game-of-life")
    ca = Automaton(channels=1, kernels=1, perception=[8, 4, 2], update=[3, 2, 1], steps=1).fit(np.eye(4), epochs=1)
    paths = [(n, [(i, i + 1) for i in range(n - 1)]) for n in (3, 4, 5, 6)]
    graphs = gradloom.GraphClassifier(hidden=[4], epochs=1).fit(paths, [0, 0, 1, 1])
    nodes = gradloom.NodeClassifier(hidden=[4], epochs=1).fit(paths[3], [0, 0, 0, 1, 1, 1])
    functions = [
        graphs.predict, graphs.predict_proba, graphs.embed, graphs.score, nodes.predict, nodes.embed,
        lambda *a: gradloom.GraphClassifier(epochs=1).fit(*a), lambda *a: gradloom.GraphRegressor(epochs=1).fit(*a),
        lambda *a: gradloom.NodeClassifier(epochs=1).fit(*a), lambda *a: gradloom.GraphRegressor(epochs=1).fit(paths, *a),
        KAN, KAN.load, KAN.from_pykan, KAN.from_efficient_kan, kan.predict, kan.predict_proba, kan.measure, kan.refine,
        kan.save, kan.plot, kan.__call__, lambda *a: KAN(width=[2, 1]).fit(*a, steps=1),
        Circuit.load, Circuit.from_json, life.run, life.evaluate, life.export, life.animate,
        Automaton.load, lambda *a: Automaton(channels=1, perception=[8, 4, 2], update=[3, 2, 1], steps=1).fit(*a[:1], epochs=1),
        ca.predict, gradloom.load, gradloom.resume, gradloom.train, gradloom.recipe_keys, gradloom.create_dataset,
        ged.distance, ged.matrix, lambda *a: ged.search(*(a + (1, 1, 1))[:3]), GraphSet, as_graph,
    ]  # fmt: skip
    try:
        import sklearn  # noqa: F401

        functions += [
            lambda *a: gradloom.KANRegressor(epochs=1).fit(*a),
            lambda *a: gradloom.KANClassifier(epochs=1).fit(*a),
            lambda *a: gradloom.LogicClassifier(epochs=1, gates=[4]).fit(*a),
            lambda *a: gradloom.KANRegressor(*a).fit(x, x[:, 0]),
            lambda *a: gradloom.KANRegressor(epochs=1, size="given").fit(x, x[:, 0], eval_set=a),
        ]
    except ImportError:
        pass
    return functions


def throw_random_calls(seed, count):
    draw, functions, refused = random.Random(seed), _functions(), 0
    for _ in range(count):
        function = draw.choice(functions)
        arguments = [draw.choice(_WRONG) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
        try:
            function(*arguments)
        except Exception as error:
            assert str(error) or isinstance(error, (AssertionError, StopIteration)), (function, arguments)
            refused += 1
    return refused


@pytest.mark.parametrize("seed", range(3))
def test_random_wrong_calls_never_crash(seed, tmp_path):
    """In a process of its own: a crash is then a failure with a name."""
    code = f"import sys; sys.path.insert(0, {str(__file__).rsplit('/', 1)[0]!r}); import test_bad_input as t; print(t.throw_random_calls({seed}, 1500))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 1000


def test_messages_name_the_argument_and_its_value():
    x = np.zeros((4, 2))
    kan = KAN(width=[2, 1])
    for wrong, words in [
        ((x, np.zeros(3)), "y has 3 rows"),
        ((np.zeros((4, 3)), np.zeros(4)), "3 columns"),
        ((np.full((4, 2), np.nan), np.zeros(4)), "row 0, column 0"),
        ((x, np.array([0, 1, np.inf, 2])), "row 2"),
        ((np.zeros((0, 2)), np.zeros(0)), "0 rows"),
        ((np.array([["a", "b"]] * 4), np.zeros(4)), "<U1"),
        ((np.array([[None, 1]] * 4), np.zeros(4)), "row 0, column 0"),
        ((np.zeros(4), np.zeros(4)), "1 dimensions"),
    ]:
        with pytest.raises(ValueError, match=words):
            kan.fit(*wrong, steps=1)
    with pytest.raises(TypeError, match="width"):
        KAN(width=3)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        KAN(width=[0, 1])
    with pytest.raises(ValueError, match="grid"):
        KAN(width=[2, 1], grid=0).fit(x, np.zeros(4))
    with pytest.raises(ValueError, match="n_jobs"):
        KAN(width=[2, 1], n_jobs=-5).fit(x, np.zeros(4))
    with pytest.raises(ValueError, match="sgdd"):
        kan.fit(x, np.zeros(4), opt="sgdd")
    with pytest.raises(TypeError, match="options"):
        KAN(width=[2, 1], options=3)
