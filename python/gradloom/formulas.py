"""Formula: the formula of a spline network or of its data."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from ._arrays import AnyArray, borrowed, numbers
from ._library import json_of, lib
from .errors import InvalidInputError, UnsupportedError

_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name) for name in "exp log sqrt sin cos tan sinh cosh tanh fabs pi e".split()
}
_FUNCTIONS |= {"a" + name: getattr(np, "arc" + name) for name in "sin cos tan sinh cosh tanh".split()}
_FUNCTIONS |= {"erf": np.vectorize(math.erf, otypes=[float]), "pow": np.power, "abs": np.abs, "__builtins__": {}}


class Formula:
    """A formula of the inputs. `status` is "exact" (it holds on all rows, also on those that the search did not see),
    "consistent" (down to the noise of the data), "approximate" (made edge by edge) or "fitted" (its numbers are those of
    other rows).

    `text`, `latex`, `python`, `c` are notations; rmse is its error on the rows it was measured on, rmse_network that
    of the network there; `edges` has candidates for every edge; `variables` are the names of the inputs in `python` and
    `c`, where they must be identifiers.
    """

    def __init__(self, report: dict[str, Any], names: list[str]) -> None:
        self.report, self.names = report, names
        self.target: str = report["target"]
        self.status: str = report["status"]
        self.text: str = report["text"]
        self.latex: str = report["latex"]
        self.python: str = report["python"]
        self.c: str = report["c"]
        self.note: str = report["note"]
        self.rmse: float = report["rmse_formula"]
        self.rmse_network: float | None = report["rmse_network"]
        self.complexity: int = report["complexity"]
        self.edges: list[dict[str, Any]] = report["edges"]
        self.variables: list[str] = report["variables"]

    @property
    def sympy(self) -> Any:
        """The expression as an object of sympy, which must be installed."""
        try:
            import sympy
        except ImportError as missing:
            raise UnsupportedError("Formula.sympy needs sympy; Formula.text has the formula as text") from missing
        symbols = {name: sympy.Symbol(name) for name in self.variables}
        return sympy.sympify(self.report["sympy"], locals=symbols)

    def __call__(self, X: Any) -> AnyArray:
        """Its values for rows X (N, inputs)."""
        x = numbers(X, "X", (2,))
        if x.shape[1] != len(self.names):
            raise InvalidInputError(f"X has {x.shape[1]} columns, but the formula has {len(self.names)} inputs")
        columns = {name: x[:, i].astype(np.float64) for i, name in enumerate(self.variables)}
        # The text is the library's own: numbers, the names of columns and functions of _FUNCTIONS.
        value = eval(compile(self.python, "formula", "eval"), dict(_FUNCTIONS), columns)
        result: AnyArray = np.broadcast_to(np.asarray(value, dtype=np.float64), (x.shape[0],)).copy()
        return result

    def fit(self, X: Any, y: Any) -> Formula:
        """The same formula with its numbers fitted to rows X (N, inputs) and their targets y; exponents stay. This one is
        not changed."""
        x, target = numbers(X, "X", (2,)), numbers(y, "y", (1, 2))
        report = {key: value for key, value in self.report.items() if key != "targets"}
        fitted = json_of(lib.gradloom_formula_fit, json.dumps(report).encode(), borrowed(x), borrowed(target))
        return Formula(fitted, self.names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a JSON file, which load() and `gradloom predict` read."""
        report = {key: value for key, value in self.report.items() if key != "targets"}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Formula | list[Formula]:
        """The formula of a file of save() or `gradloom formula --out`; a list for several targets."""
        with open(path, encoding="utf-8") as file:
            try:
                report = json.load(file)
            except ValueError as error:
                raise InvalidInputError(f"{os.fspath(path)} contains no JSON: {error}") from error
        if not isinstance(report, dict) or not isinstance(report.get("text"), str) or "inputs" not in report:
            raise InvalidInputError(f"{os.fspath(path)} contains no formula")
        return formulas_of(report, [column["name"] for column in report["inputs"]])

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"

    def __repr__(self) -> str:
        return f"<Formula {self.target} = {self.text}: {self.status}, rmse {self.rmse:.3g}>"


def formulas_of(report: dict[str, Any], names: list[str]) -> Formula | list[Formula]:
    """The formula of a report, or those of several targets."""
    several = report.get("targets")
    return [Formula(one, names) for one in several] if several else Formula(report, names)
