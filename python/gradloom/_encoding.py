"""Rows of a table as the inputs of a network, by what it learned of the columns in training."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import numpy as np

from . import _tables
from ._arrays import AnyArray
from .errors import InvalidInputError

_MOST = 20  # categories that a message lists
# What the engine reads as a label that is a number. With leading zeros, or far exponents, it stays a text.
_DECIMAL = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def columns_of_model(content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Of a model file: {name, categories, means} of each column, and whether a category has an input of its own. The
    list is empty for a model of arrays."""
    size = int.from_bytes(content[:8], "little")
    stored = json.loads(content[8 : 8 + size])["__metadata__"]
    code = json.loads(stored.get("input", "{}"))
    options = json.loads(stored.get("options", "{}"))
    features: list[dict[str, Any]] = code.get("features", [])
    return features, options.get("data", {}).get("categories", "one-hot") == "one-hot"


def encoded(table: Any, features: list[dict[str, Any]], one_hot: bool) -> AnyArray:
    """The inputs (rows, inputs) of a table that has these columns, in any order. What is missing becomes the mean.
    Raises InvalidInputError where predict() does: for other columns, gaps without a mean, unknown categories."""
    names, columns = _tables.column_names(table), _tables.columns_of(table)
    by_name = dict(zip(names, columns))
    inputs: list[AnyArray] = []
    for feature in features:
        name, categories = feature["name"], feature.get("categories", [])
        if name not in by_name:
            raise InvalidInputError(f"X has no column {name!r}, which the model was trained on")
        column = by_name[name]
        if not categories:
            found = [_numbers(name, column)]
        elif one_hot:
            place = _places(name, column, categories)
            found = [np.where(np.isnan(place), np.nan, place == k) for k in range(len(categories))]
        else:
            found = [_places(name, column, categories)]
        means = feature.get("means", [])
        for k, values in enumerate(found):
            gaps = np.isnan(values)
            if gaps.any():
                if not means:
                    raise InvalidInputError(
                        f"row {int(gaps.argmax()) + 1}, column {name!r} is missing; the model was trained without "
                        "missing values, or without such rows"
                    )
                values = np.where(gaps, means[k], values)
            inputs.append(values)
    return np.ascontiguousarray(np.column_stack(inputs), dtype=np.float64)


def _numbers(name: str, column: AnyArray) -> AnyArray:
    if column.dtype.kind in "iub":
        return column.astype(np.float64)
    if column.dtype.kind == "f":
        values = column.astype(np.float64)
    else:
        values = np.array([_number(name, i, cell) for i, cell in enumerate(_tables.cells(column))], dtype=np.float64)
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise InvalidInputError(f"row {row + 1}, column {name!r}: {values[row]} is not finite")
    return values


def _number(name: str, row: int, cell: str) -> float:
    if cell == "":
        return math.nan
    if not _NUMBER.fullmatch(cell) and cell not in ("inf", "-inf"):
        raise InvalidInputError(f"row {row + 1}, column {name!r}: {cell[:40]!r} is not a number")
    return float(cell)


def _places(name: str, column: AnyArray, categories: list[str]) -> AnyArray:
    """The number of each category, NaN for a gap."""
    numeric = all(_DECIMAL.fullmatch(category) for category in categories)
    known: dict[Any, int] = {(Decimal(category) if numeric else category): i for i, category in enumerate(categories)}
    place: dict[str, float] = {"": math.nan}
    found = np.empty(len(column))
    for row, cell in enumerate(_tables.cells(column)):
        if cell not in place:
            key: Any = Decimal(cell) if numeric and _DECIMAL.fullmatch(cell) else cell
            if key not in known:
                listed = ", ".join(repr(category) for category in categories[:_MOST])
                more = f" and {len(categories) - _MOST} more" if len(categories) > _MOST else ""
                raise InvalidInputError(
                    f"row {row + 1}, column {name!r}: {cell[:40]!r} is a value that the model was not trained on; it "
                    f"knows {listed}{more}"
                )
            place[cell] = known[key]
        found[row] = place[cell]
    return found
