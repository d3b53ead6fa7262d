"""gradloom trains spline networks (KANs), logic automata and graph networks, and computes graph edit distances.

>>> import numpy as np
>>> from gradloom import KAN
>>> x = np.random.default_rng(0).uniform(-1, 1, (300, 2))
>>> model = KAN(width=[2, 3, 1])
>>> log = model.fit(x, np.sin(3 * x[:, 0]) * x[:, 1], opt="LBFGS", steps=20)
>>> model.predict(x[:5]).shape
(5,)

Results have equal bits on any number of threads, and are equal to those of the command line.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from ._library import version as _version
from ._options import recipe_keys
from .errors import GradloomError, NotFittedError
from .kan import KAN, create_dataset
from .model import Model
from .runs import Run, load, recipes, resume, train

if TYPE_CHECKING:
    from . import ged, graph, logic
    from .estimators import KANClassifier, KANRegressor, LogicClassifier
    from .graph import GraphClassifier, GraphRegressor, NodeClassifier
    from .logic import Automaton, Circuit

__version__ = _version()

# Loaded when they are used: estimators need scikit-learn, and `import gradloom` shall be quick.
_LAZY = {
    "KANRegressor": "estimators",
    "KANClassifier": "estimators",
    "LogicClassifier": "estimators",
    "Circuit": "logic",
    "Automaton": "logic",
    "GraphClassifier": "graph",
    "GraphRegressor": "graph",
    "NodeClassifier": "graph",
}
_MODULES = ("ged", "graph", "logic", "estimators")

__all__ = [
    "KAN",
    "GradloomError",
    "Model",
    "NotFittedError",
    "Run",
    "create_dataset",
    "errors",
    "load",
    "recipe_keys",
    "recipes",
    "resume",
    "train",
    *_LAZY,
    "ged",
    "graph",
    "logic",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
