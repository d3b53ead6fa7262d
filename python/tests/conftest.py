"""Tests run in a folder of their own, and say why something is skipped."""

import signal

import numpy as np
import pytest

# A shell starts programs in the background with SIGINT ignored; the tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rows():
    """300 rows of a smooth function of two variables."""
    x = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    return x, np.sin(3 * x[:, 0]) + x[:, 1] ** 2
