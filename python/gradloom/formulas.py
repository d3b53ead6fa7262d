"""Formula: the formula of a spline network or of its data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._arrays import AnyArray, numbers
from .errors import InvalidInputError, UnsupportedError

_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name) for name in "exp log sqrt sin cos tan sinh cosh tanh fabs pi e".split()
}
_FUNCTIONS |= {"a" + name: getattr(np, "arc" + name) for name in "sin cos tan sinh cosh tanh".split()}
_FUNCTIONS |= {"erf": np.vectorize(math.erf, otypes=[float]), "pow": np.power, "abs": np.abs, "__builtins__": {}}


class Formula:
    """A formula of the inputs. `status` is "exact" (it holds on all rows, also on those that the search did not see),
    "consistent" (down to the noise of the data) or "approximate" (made edge by edge).

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
        self.rmse_network: float = report["rmse_network"]
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

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"

    def __repr__(self) -> str:
        return f"<Formula {self.target} = {self.text}: {self.status}, rmse {self.rmse:.3g}>"


def formulas_of(report: dict[str, Any], names: list[str]) -> Formula | list[Formula]:
    """The formula of a report, or those of several targets."""
    several = report.get("targets")
    return [Formula(one, names) for one in several] if several else Formula(report, names)
