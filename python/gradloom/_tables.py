"""Tables with names, text and missing values, as pandas and polars have them: the engine reads them as CSV."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import AnyArray
from .errors import InvalidInputError


def is_table(values: Any) -> bool:
    """Whether the columns have names: a DataFrame of pandas or polars."""
    return hasattr(values, "columns") and hasattr(values, "shape") and hasattr(values, "__getitem__")


def column_names(table: Any) -> list[str]:
    """The names of the columns; raises TypeError when they are not all texts."""
    names = list(table.columns)
    if any(not isinstance(name, str) for name in names):
        kinds = sorted({type(name).__name__ for name in names})
        if "str" in kinds:
            raise TypeError(
                f"Feature names are only supported if all input features have string names, but X has {kinds} as "
                "feature name types. Convert them to text first: X.columns = X.columns.astype(str)"
            )
        return [f"x{i + 1}" for i in range(len(names))]
    if len(set(names)) != len(names):
        raise InvalidInputError(f"X has two columns named {next(n for n in names if names.count(n) > 1)!r}")
    return names


def columns_of(table: Any) -> list[AnyArray]:
    """Each column as an array of numpy."""
    place = getattr(table, "iloc", None)
    if place is not None:
        return [np.asarray(place[:, i]) for i in range(len(table.columns))]
    return [np.asarray(table[name]) for name in table.columns]


@dataclass
class Table:
    """The columns of a table, by name; `categorical` are those whose values are categories, texts among them."""

    names: list[str]
    columns: list[AnyArray]
    categorical: list[str]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers without gaps: then the table is an array with names."""
        return not self.categorical and is_plain(self.columns)

    def followed_by(self, other: Table) -> Table:
        """The rows of both. Raises InvalidInputError when their columns differ."""
        if self.names != other.names:
            raise InvalidInputError(f"eval_set has the columns {other.names}, but X has {self.names}")
        joined = [
            np.concatenate([a, b]) if a.dtype.kind == b.dtype.kind else np.array([*a.tolist(), *b.tolist()], object)
            for a, b in zip(self.columns, other.columns)
        ]
        return Table(self.names, joined, self.categorical)


def table_of(values: Any) -> Table:
    """The table of a DataFrame."""
    names, columns = column_names(values), columns_of(values)
    kinds = [str(getattr(values[key], "dtype", "")) for key in values.columns]
    categorical = [n for n, c, kind in zip(names, columns, kinds) if _is_text(c) or (kind == "category" and c.dtype.kind != "b")]
    return Table(names, columns, categorical)


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return False
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in ("<NA>", "NaT")


def _is_text(column: AnyArray) -> bool:
    """Whether every value is a text, also one of digits such as "01234"."""
    if column.dtype.kind not in "OT":
        return column.dtype.kind in "US"
    there = [value for value in column.tolist() if not _is_missing(value)]
    return bool(there) and all(isinstance(value, str) for value in there)


def is_plain(columns: list[AnyArray]) -> bool:
    """Whether all columns hold numbers without gaps."""
    return all(c.dtype.kind in "iub" or (c.dtype.kind == "f" and not np.isnan(c).any()) for c in columns)


def _cell(value: Any) -> str:
    if _is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def cells(column: AnyArray) -> list[str]:
    """The values of a column as the engine reads them; empty for what is missing."""
    return [_cell(value) for value in column.tolist()]


def csv_text(names: list[str], columns: list[AnyArray]) -> bytes:
    """The table as text; numbers read back to the same bits, what is missing is an empty cell."""
    if "" in names:
        raise InvalidInputError("X has a column whose name is empty; give it one")
    lists = [column.tolist() for column in columns]
    out = io.StringIO()
    # Quoted: blanks at the ends of text and a text that looks like another separator stay what they are.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    for row in zip(*lists):
        writer.writerow([_cell(value) for value in row])
    return out.getvalue().encode()
