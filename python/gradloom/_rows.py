"""Rows, targets and classes of an estimator: checked, named, in the form that the engine reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _tables
from ._arrays import AnyArray, numbers
from ._fit import Classes


def one_eval_set(eval_set: Any) -> tuple[Any, Any] | None:
    """(X, y), or a list of one such pair; None when there is none."""
    if eval_set is None:
        return None
    pairs = [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(pairs, list) or len(pairs) != 1 or not isinstance(pairs[0], (tuple, list)) or len(pairs[0]) != 2:
        raise ValueError("eval_set must be one validation set: (X, y), or a list of one such pair")
    return pairs[0][0], pairs[0][1]


def rows_of(X: Any, gaps: bool = False) -> tuple[AnyArray | _tables.Table, int]:
    """What X holds, and how many rows. gaps: NaN is a missing value, and an array becomes a table."""
    if not _tables.is_table(X):
        x = checked(X, gaps)
        if gaps:
            return _tables.Table([f"x{i + 1}" for i in range(x.shape[1])], list(x.T), []), x.shape[0]
        return x, x.shape[0]
    table = _tables.table_of(X)
    if table.rows == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return table, table.rows


def followed_by(
    data: AnyArray | _tables.Table,
    y: AnyArray | Classes,
    sample_weight: Any,
    X: Any,
    more_y: AnyArray | Classes,
    gaps: bool = False,
) -> tuple[AnyArray | _tables.Table, AnyArray | Classes, Any]:
    """Rows followed by those of a validation set, whose weights are 1."""
    more, rows = rows_of(X, gaps)
    if rows != len(more_y):
        raise ValueError(f"eval_set has {rows} rows of X and {len(more_y)} of y")
    if sample_weight is not None:
        weights = numbers(sample_weight, "sample_weight", (1,))
        if len(weights) != len(y):
            raise ValueError(f"sample_weight has {len(weights)} rows, X has {len(y)}")
        sample_weight = np.concatenate([weights, np.ones(rows)])
    if isinstance(y, Classes) and isinstance(more_y, Classes):
        y = Classes(np.concatenate([y.codes, more_y.codes]), y.names)
    elif not isinstance(y, Classes) and not isinstance(more_y, Classes):
        if y.shape[1:] != more_y.shape[1:]:
            raise ValueError(f"y of eval_set is {more_y.shape}, but y is {y.shape}")
        y = np.concatenate([y, more_y])
    if isinstance(data, _tables.Table) and isinstance(more, _tables.Table):
        return data.followed_by(more), y, sample_weight
    if isinstance(data, _tables.Table) or isinstance(more, _tables.Table):
        raise ValueError("X and the X of eval_set must be both tables, or both arrays")
    if data.shape[1] != more.shape[1]:
        raise ValueError(f"X of eval_set has {more.shape[1]} features, but X has {data.shape[1]}")
    return np.concatenate([data, more]), y, sample_weight


def checked(X: Any, gaps: bool = False) -> AnyArray:
    """A matrix of numbers that are finite (with gaps: or NaN), with the messages that scikit-learn's own estimators have."""
    x = numbers(X, "X", (0, 1, 2, 3, 4))
    if x.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {x.ndim}D array instead. Reshape your data either using array.reshape(-1, 1) if "
            "your data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if x.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={x.shape}) while a minimum of 1 is required.")
    if x.shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={x.shape}) while a minimum of 1 is required.")
    wrong = np.isinf(x) if gaps else ~np.isfinite(x)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        kind = "infinity" if gaps else "NaN or infinity"
        raise ValueError(f"X contains {kind}: the value in row {row}, column {column} is {x[row, column]}")
    return x


def finite_targets(y: Any, name: str) -> AnyArray:
    target = numbers(y, name, (1, 2))
    if not np.isfinite(target).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return target


def known_classes(y: Any, classes: AnyArray, names: list[str]) -> Classes:
    """The classes of a validation set, which are those of y."""
    labels = np.asarray(y).ravel()
    unknown = [label for label in labels.tolist() if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(f"y of eval_set contains the class {unknown[0]!r}, which y does not contain")
    return Classes(np.searchsorted(classes, labels).astype(np.int64), names)


def canonical(name: str) -> str | float:
    """A class that is a number, by its value."""
    try:
        value = float(name)
    except ValueError:
        return name
    return value if math.isfinite(value) else name


def class_names(classes: AnyArray) -> list[str]:
    """What the engine calls the classes: as they are, or by their numbers where it could not tell them apart."""
    names = [str(c) for c in classes.tolist()]
    # "1.5" and "1.50" are one class to the engine, and an empty text is none.
    if "" in names or len({canonical(name) for name in names}) != len(names):
        return [f"class {i}" for i in range(len(names))]
    return names


def target_names(y: Any) -> list[str] | None:
    """The names of targets that are columns of a table."""
    name = getattr(y, "name", None)
    if isinstance(name, str):
        return [name]
    if _tables.is_table(y) and all(isinstance(column, str) for column in y.columns):
        return list(y.columns)
    return None


def warn_column() -> None:
    import warnings

    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
        "example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )
