"""Runs in folders: as the command line makes them."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import gradloom
from gradloom.errors import InvalidInputError, NotFoundError


def test_a_recipe_trains_and_its_folder_opens():
    run = gradloom.train("kan-hello", {"epochs": 2, "stage": []}, "first", verbose=False)
    assert run.finished and run.metrics["test"]["rmse"] > 0 and len(run.history["loss"]) == 2
    again = gradloom.load("first")
    assert again.metrics == run.metrics and "first" in repr(again)
    assert np.array_equal(again.predict([[0.1, 0.2]]), run.model.predict([[0.1, 0.2]]))
    assert "<iframe" in again._repr_html_()
    with pytest.raises(ValueError, match="first"):
        gradloom.train("kan-hello", folder="first")


def test_a_folder_is_made_under_runs():
    for expected in ("runs/kan-hello-7", "runs/kan-hello-7-2"):
        run = gradloom.train("kan-hello", ["epochs=1", "stage=[]", "seed=7"])
        assert run.folder == Path(expected)


def test_it_has_the_bits_of_the_command_line():
    program = Path(os.environ.get("GRADLOOM_LIBRARY", "")).with_name("gradloom")
    if not program.exists():
        pytest.skip("the command gradloom is not built")
    run = gradloom.train("kan-hello", {"epochs": 2}, "by-python", n_jobs=2)
    command = [program, "train", "kan-hello", "--set", "epochs=2", "--out", "by-command", "--quiet", "--threads", "1"]
    subprocess.run(command, check=True)
    assert (run.folder / "model.safetensors").read_bytes() == Path("by-command/model.safetensors").read_bytes()


def test_the_arithmetic_is_chosen():
    for arithmetic in ("split", None):
        summary = gradloom.train("kan-hello", {"epochs": 1, "stage": []}, str(arithmetic), arithmetic=arithmetic).summary
        assert summary["arithmetic"] == arithmetic if arithmetic else summary["arithmetic"] in ("fused", "split")
    x = np.linspace([0.0, 0.0], [1.0, 1.0], 64)
    of_file, split = (gradloom.load("split/model.safetensors", arithmetic=a).predict(x) for a in (None, "split"))
    assert np.array_equal(of_file, split)
    fitted = [gradloom.KAN([2, 3, 1], seed=0, arithmetic=a).fit(x, x[:, 0], steps=2)["loss"] for a in ("split", "auto")]
    if summary["arithmetic"] == "fused":
        assert not np.array_equal(gradloom.load("split/model.safetensors", arithmetic="fused").predict(x), split)
        assert not np.array_equal(*fitted)
    with pytest.raises(InvalidInputError, match="'fast'; there are fused, split"):
        gradloom.train("kan-hello", folder="other", arithmetic="fast")


def test_ctrl_c_keeps_the_state_and_resume_goes_on():
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="resume"):
        gradloom.train("kan-hello", {"epochs": 100_000_000, "stage": []}, "stopped")
    stopped = gradloom.load("stopped")
    assert not stopped.finished and len(stopped.history["loss"]) > 0
    done = len(stopped.history["loss"])

    def enough(line):
        return line["epoch"] >= done + 2

    resumed = gradloom.resume("stopped", callback=enough)
    assert len(resumed.history["loss"]) >= done + 2


def test_a_folder_that_is_written_or_damaged_still_opens():
    run = gradloom.train("kan-hello", {"epochs": 3, "stage": []}, "first", verbose=False)
    log, model = Path("first/log.jsonl"), Path("first/model.safetensors")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # the line that a running job writes at the moment
    assert run.log == [json.loads(line) for line in lines[:-1]]
    log.write_bytes(lines[0][:20] + b"\n" + b"".join(lines[1:]))
    with pytest.raises(InvalidInputError, match="log.jsonl: line 1 "):
        assert run.log
    content = model.read_bytes()
    for damaged in (content[:50], content[:4], b"", b"\xff" * 8 + content[8:]):
        model.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match="model.safetensors is not a model file"):
            assert run.finished
        assert "cannot be read" in repr(run) and "cannot be read" in run._repr_html_()


def test_predictions_for_a_file(tmp_path):
    run = gradloom.train("kan-hello", {"epochs": 1, "stage": []}, "first")
    (tmp_path / "new.csv").write_text("x1,x2\n0.5,0.5\n0.1,0.2\n")
    summary = run.predict_file("new.csv", "out.csv")
    assert summary["rows"] == 2 and len(Path("out.csv").read_text().splitlines()) == 3
    with pytest.raises(InvalidInputError, match="table of nodes is for models of graphs"):
        run.predict_file("new.csv", nodes="new.csv")


def test_wrong_calls_are_refused():
    with pytest.raises(NotFoundError, match="no-such-recipe"):
        gradloom.train("no-such-recipe")
    with pytest.raises(InvalidInputError, match="epochs"):
        gradloom.train("kan-hello", {"epochs": -1}, "a")
    with pytest.raises(InvalidInputError, match="modle"):
        gradloom.train("kan-hello", {"modle.grid": 1}, "a")
    with pytest.raises(TypeError):
        gradloom.train(3)
    with pytest.raises(TypeError):
        gradloom.train("kan-hello", "epochs=1")
    with pytest.raises(OSError):
        gradloom.resume("nowhere")
    assert not Path("a").exists()


def test_recipes_are_told():
    assert "checkerboard" in gradloom.recipes()
    assert any(key["key"] == "optimizer.lr" for key in gradloom.recipe_keys("gates"))
