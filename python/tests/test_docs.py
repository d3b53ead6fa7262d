"""The examples of README.md, docs/python.md and docstrings, and what importing costs."""

import doctest
import importlib
import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradloom

_DOCS = Path(__file__).resolve().parents[2] / "docs"
_MODULES = ["", "._options", ".kan", ".runs", ".logic", ".ged", ".graph", ".graph_data", ".model", ".estimators"]


def test_the_examples_of_the_page_run():
    for needed in ("sklearn", "pandas", "networkx"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    text = (_DOCS / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 7
    names = {}
    for block in blocks:  # one after another, as a reader would type them
        exec(compile(block, "docs/python.md", "exec"), names)


def test_the_example_of_the_readme_runs():
    pytest.importorskip("sklearn", reason="sklearn is not installed")
    pytest.importorskip("sympy", reason="sympy is not installed")
    text = (_DOCS.parent / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    exec(compile(block, "README.md", "exec"), {"X": X, "y": X[:, 0] * X[:, 1]})


@pytest.mark.parametrize("module", _MODULES)
def test_the_examples_of_docstrings_run(module):
    if module == ".estimators":
        pytest.importorskip("sklearn", reason="sklearn is not installed")
    result = doctest.testmod(importlib.import_module("gradloom" + module))
    assert result.failed == 0


@pytest.mark.parametrize("name", ["KAN", *gradloom._LAZY, "ged.distance", "ged.matrix", "ged.search"])
def test_what_users_call_first_has_an_example(name):
    if gradloom._LAZY.get(name) == "estimators":
        pytest.importorskip("sklearn", reason="sklearn is not installed")
    found = operator.attrgetter(name)(gradloom)
    assert ">>> " in (found.__doc__ or "")


def test_importing_needs_numpy_alone_and_little_time():
    code = (
        "import sys, numpy, json, ctypes, importlib, threading\n"
        "import time; begin = time.process_time(); import gradloom; taken = time.process_time() - begin\n"
        "heavy = {'sklearn', 'pandas', 'networkx', 'scipy', 'matplotlib', 'torch', 'IPython', 'tqdm'} & set(sys.modules)\n"
        "print(taken, sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    taken, heavy = done.stdout.split(" ", 1)
    assert heavy.strip() == "[]"
    assert float(taken) < 0.1
