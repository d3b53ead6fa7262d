"""Training on rows in memory, for the classes that users see."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _tables
from ._arrays import AnyArray, borrowed, integers, numbers
from ._library import Handle, lib, settings_text
from ._options import put
from ._progress import WatchedCall
from .errors import InvalidInputError, NumericError


_HUGE = 1e6  # values above it are a likely cause where training diverges


@dataclass
class Fit:
    """The arguments of fit() except its data. `verbose` None: progress is shown on a terminal or in a notebook."""

    recipe: dict[str, Any] = field(default_factory=dict)
    base: str | None = None
    threads: int = 0
    device: str | None = None
    start: int = 0  # the handle of a model to start from
    verbose: bool | int | None = None
    callback: Callable[[dict[str, Any]], object] | None = None
    validation_from: int | None = None  # rows from this one on are validation data
    arithmetic: str | None = None

    def run(self, function: Callable[..., int], settings: dict[str, Any], *data: Any) -> tuple[int, bool]:
        """The handle of the trained model, and whether Ctrl-C ended it."""
        common = {
            "recipe": self.recipe,
            "base": self.base,
            "threads": self.threads,
            "device": self.device,
            "arithmetic": self.arithmetic,
            "from": self.start or None,
            "validation_from": self.validation_from,
        }
        call = WatchedCall(self.verbose, self.callback)
        handle = Handle()
        hooks = ctypes.byref(call.hooks)
        call.run(function, settings_text({**common, **settings}), *data, hooks, ctypes.byref(handle))
        return int(handle.value), call.interrupted


@dataclass
class Classes:
    """Labels of rows as numbers, with their names."""

    codes: AnyArray
    names: list[str]

    def __len__(self) -> int:
        return len(self.codes)


def _weights(sample_weight: Any, rows: int) -> AnyArray | None:
    if sample_weight is None:
        return None
    weights = numbers(sample_weight, "sample_weight", (1,)).astype(np.float64, copy=False)
    if weights.shape[0] != rows:
        raise InvalidInputError(f"sample_weight has {weights.shape[0]} rows, X has {rows}")
    if weights.size and not weights.any():
        raise InvalidInputError("sample_weight is zero for every row; there is nothing to learn from")
    return np.ascontiguousarray(weights)


def fit_rows(
    fit: Fit,
    X: Any,
    y: AnyArray | Classes,
    sample_weight: Any = None,
    features: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
) -> tuple[int, bool]:
    """Trains on an array X, and y: numbers or classes."""
    x = numbers(X, "X", (2,))
    weights = _weights(sample_weight, x.shape[0])
    settings: dict[str, Any] = {"features": features, "targets": targets}
    if isinstance(y, Classes):
        settings["classes"] = y.names
        settings["targets"] = None
        target = integers(y.codes, "y")
    else:
        target = numbers(y, "y", (1, 2))
    weights_argument = None if weights is None else borrowed(weights)
    try:
        return fit.run(lib.gradloom_fit_rows, settings, borrowed(x), borrowed(target), weights_argument)
    except NumericError as error:
        largest = {name: float(np.abs(array).max()) for name, array in (("X", x), ("y", target)) if array.size}
        huge = [f"{name} has values up to {value:.3g}" for name, value in largest.items() if value > _HUGE]
        raise NumericError("; ".join([str(error), *huge, *(["scale them"] if huge else [])])) from error


def fit_table(
    fit: Fit,
    table: _tables.Table,
    y: AnyArray | Classes,
    sample_weight: Any = None,
    targets: Sequence[str] | None = None,
) -> tuple[int, bool]:
    """Trains on a table with text or gaps; names of the added columns do not collide with its own."""
    names, columns, rows = table.names, table.columns, table.rows
    weights = _weights(sample_weight, rows)

    def free(wish: str) -> str:
        while wish in names:
            wish += "_"
        return wish

    recipe = fit.recipe
    if isinstance(y, Classes):
        added = {free((targets or ["class"])[0]): np.array(y.names, dtype=object)[y.codes]}
        put(recipe, "task", "classification")
    else:
        matrix = numbers(y, "y", (1, 2)).reshape(len(y), -1)
        wishes = targets or [f"y{j + 1}" for j in range(matrix.shape[1])]
        added = {free(wish): matrix[:, j] for j, wish in enumerate(wishes)}
    if any(len(column) != rows for column in added.values()):
        raise InvalidInputError(f"y has {len(next(iter(added.values())))} rows, X has {rows}")
    put(recipe, "data.target", list(added))
    if weights is not None:
        name = free("weight")
        put(recipe, "data.weight", name)
        added[name] = weights
    if table.categorical:
        put(recipe, "data.categorical", table.categorical)
    text = _tables.csv_text(names + list(added), columns + list(added.values()))
    return fit.run(lib.gradloom_fit_table, {}, text, len(text))

