"""KAN: a spline network (Kolmogorov-Arnold network) with the words of pykan."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _tables, interchange
from ._arrays import AnyArray, numbers
from ._fit import Fit, fit_rows
from ._library import handle_of, json_of, lib, text_of
from ._options import merged, nested, put, threads_of
from .errors import InvalidInputError, UnsupportedError
from .model import Model, load_bytes, load_file

_LATER = ("prune", "suggest_symbolic", "fix_symbolic", "auto_symbolic", "symbolic_formula", "attribute", "speed")


class Drawing:
    """A picture that a notebook shows, and save() writes."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str:
        # As a file of its own: its style stays inside.
        data = base64.b64encode(self.svg.encode()).decode()
        size = re.search(r'viewBox="0 0 (\d+)', self.svg)
        width = f"width:100%;max-width:{size.group(1)}px" if size else "max-width:100%"
        return f'<img alt="network" style="{width}" src="data:image/svg+xml;base64,{data}">'

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.svg)} bytes of SVG>"


def create_dataset(
    f: Callable[[AnyArray], Any],
    n_var: int = 2,
    ranges: Sequence[float] = (-1.0, 1.0),
    train_num: int = 1000,
    test_num: int = 1000,
    seed: int = 0,
) -> dict[str, AnyArray]:
    """Random inputs and f of them: train_input, train_label, test_input, test_label.

    >>> create_dataset(lambda x: x[:, 0] * x[:, 1], n_var=2, train_num=3)["train_input"].shape
    (3, 2)
    """
    bounds = np.asarray(ranges, dtype=np.float64)
    if bounds.ndim == 1:
        bounds = np.tile(bounds, (n_var, 1))
    if bounds.shape != (n_var, 2):
        raise InvalidInputError(f"ranges is {ranges!r}, but must be (low, high), or one such pair for each variable")
    random = np.random.default_rng(seed)
    parts: dict[str, AnyArray] = {}
    for name, rows in (("train", train_num), ("test", test_num)):
        x = random.uniform(bounds[:, 0], bounds[:, 1], size=(rows, n_var))
        parts[name + "_input"] = x
        parts[name + "_label"] = np.asarray(f(x), dtype=np.float64).reshape(rows, -1)
    return parts


class KAN(Model):
    """A spline network. Options that are None, or not named, are the engine's: `gradloom.recipe_keys("kan")`.

    width: nodes of all layers, inputs first; grid: intervals of each spline; k: their degree; `options` are recipe
    keys such as {"optimizer.lr": 0.01}.

    >>> import numpy as np
    >>> data = create_dataset(lambda x: np.sin(3 * x[:, 0]) + x[:, 1] ** 2, train_num=300, test_num=100)
    >>> model = KAN(width=[2, 3, 1], grid=5, seed=0)
    >>> log = model.fit(data, opt="LBFGS", steps=30)
    >>> bool(log["test_rmse"] < 0.05)
    True
    """

    def __init__(
        self,
        width: Sequence[int],
        grid: int | None = None,
        k: int | None = None,
        seed: int | None = None,
        *,
        precision: str | None = None,
        n_jobs: int | None = None,
        device: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            self.width = [int(w) for w in width]
        except (TypeError, ValueError) as error:
            raise TypeError(f"width is {width!r}, but must be a list of integers such as [2, 5, 1]") from error
        if len(self.width) < 2 or min(self.width) < 1:
            raise InvalidInputError(
                f"width is {width!r}, but must name the nodes of two layers or more, 1 or more each"
            )
        recipe: dict[str, Any] = {"family": "kan", "task": "regression"}
        put(recipe, "model.hidden", self.width[1:-1])
        for key, value in (("model.grid", grid), ("model.degree", k), ("seed", seed), ("precision", precision)):
            put(recipe, key, value)
        self._recipe = merged(recipe, nested(options))
        self._n_jobs, self._device = n_jobs, device
        self._log: dict[str, AnyArray] | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        opt: str | None = None,
        steps: int | None = None,
        lr: float | None = None,
        batch: int | None = None,
        loss: str | None = None,
        sample_weight: Any = None,
        validation: float = 0.0,
        options: Mapping[str, Any] | None = None,
        verbose: bool | int | None = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Trains on rows X (N, inputs) and targets y, or on a dataset of create_dataset(); goes on where a call before
        ended. opt: an optimizer ("LBFGS", "Adam", ...); steps: epochs. `callback` is called after each epoch and
        stops when it returns True; Ctrl-C stops, and the network keeps what it has learned.

        Returns arrays by epoch (loss, validation, lr) and, for a dataset, test_rmse.
        """
        test: tuple[AnyArray, AnyArray] | None = None
        if isinstance(X, Mapping):
            X, y, test = self._dataset(X, y)
        if y is None:
            raise TypeError("y is missing: fit(X, y), or fit(dataset)")
        recipe = merged(self._recipe, self._training(opt, steps, lr, batch, loss))
        put(recipe, "data.validation", validation)
        put(recipe, "data.test", 0.0)
        if self.is_fitted:  # refine() may have changed it
            put(recipe, "model.grid", self.options["model"]["grid"])
        recipe = merged(recipe, nested(options))
        fit = Fit(recipe, None, threads_of(self._n_jobs), self._device, self._handle, verbose, callback)
        names = _tables.column_names(X) if _tables.is_table(X) else None
        x, target = numbers(X, "X", (2,)), numbers(y, "y", (1, 2))
        self._check_width(x, target)
        handle, interrupted = fit_rows(fit, x, target, sample_weight, names)
        self._adopt(handle, fit.threads)
        if interrupted:
            raise KeyboardInterrupt
        log: dict[str, Any] = dict(self.history)
        if test is not None:
            log["test_rmse"] = self.measure(*test)["rmse"]
        return log

    @staticmethod
    def _dataset(data: Mapping[str, Any], y: Any) -> tuple[Any, Any, tuple[AnyArray, AnyArray] | None]:
        if y is not None:
            raise TypeError("fit(dataset) takes its labels from the dataset; y is given as well")
        missing = [key for key in ("train_input", "train_label") if key not in data]
        if missing:
            raise InvalidInputError(f"the dataset has no {missing[0]!r}; it has {', '.join(map(str, data))}")
        test = None
        if "test_input" in data and "test_label" in data:
            test = (numbers(data["test_input"], "test_input", (2,)), numbers(data["test_label"], "test_label", (1, 2)))
        return data["train_input"], data["train_label"], test

    @staticmethod
    def _training(
        opt: str | None, steps: int | None, lr: float | None, batch: int | None, loss: str | None
    ) -> dict[str, Any]:
        recipe: dict[str, Any] = {}
        put(recipe, "optimizer.kind", None if opt is None else str(opt).lower().replace("-", ""))
        put(recipe, "epochs", steps)
        put(recipe, "optimizer.lr", lr)
        put(recipe, "train.batch", batch)
        put(recipe, "loss.kind", loss)
        return recipe

    def _check_width(self, x: AnyArray, y: AnyArray) -> None:
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if x.shape[1] != self.width[0]:
            raise InvalidInputError(f"X has {x.shape[1]} columns, but width is {self.width}")
        if outputs != self.width[-1]:
            raise InvalidInputError(f"y has {outputs} columns, but width is {self.width}")

    def __call__(self, X: Any) -> AnyArray:
        """The outputs (rows, outputs)."""
        return self._outputs(X)

    def refine(self, grid: int) -> KAN:
        """A network with so many grid intervals and the same functions; this one stays what it is."""
        if isinstance(grid, bool) or not hasattr(grid, "__index__"):
            raise TypeError(f"grid is {grid!r}, but must be an integer")
        return self._like(handle_of(lib.gradloom_refine, self._open(), max(-1, min(int(grid), 1 << 40))))

    def _like(self, handle: int) -> KAN:
        other = object.__new__(type(self))
        for name in ("width", "_recipe", "_n_jobs", "_device", "_log"):
            setattr(other, name, getattr(self, name))
        other._adopt(handle, self._threads)
        return other

    def edges(self) -> list[dict[str, Any]]:
        """Every edge: layer, from, to, the function as x and y, and importance: the share of the next node's standard
        deviation that comes over it."""
        edges: list[dict[str, Any]] = json_of(lib.gradloom_draw, self._open(), b"json")
        for edge in edges:
            edge["x"], edge["y"] = np.array(edge["x"]), np.array(edge["y"])
        return edges

    def plot(self, backend: str = "svg") -> Any:
        """The network with the function of every edge: a Drawing that a notebook shows, or a figure of matplotlib."""
        if backend == "svg":
            return Drawing(text_of(lib.gradloom_draw, self._open(), b"svg"))
        if backend != "matplotlib":
            raise InvalidInputError(f"backend is {backend!r}; there are 'svg' and 'matplotlib'")
        from . import _plot

        return _plot.network(self.width, self.edges())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> KAN:
        """A spline network that save() or `gradloom train` wrote."""
        threads = threads_of(n_jobs)
        return cls._of(load_file(path, threads), threads)

    @classmethod
    def _of(cls, handle: int, threads: int) -> KAN:
        model = Model(handle, threads)
        about = model.description
        if about["family"] != "kan":
            raise InvalidInputError(f"this is a model of family {about['family']!r}, not a spline network")
        options = about["options"]
        width = [len(about["features"]), *options["model"]["hidden"], about["outputs"]]
        recipe = {k: v for k, v in options.items() if k != "data"}
        network = cls(width, options=recipe)
        model._finalizer.detach()  # the handle goes on
        network._adopt(handle, threads)
        return network

    @classmethod
    def from_efficient_kan(cls, state: Any) -> KAN:
        """The network of a state_dict of efficient-kan (arrays, tensors, or a .safetensors file): equal outputs."""
        return cls._of(load_bytes(interchange.from_efficient_kan(state)), 0)

    @classmethod
    def from_pykan(cls, state: Any) -> KAN:
        """The network of a state_dict of pykan's MultKAN without symbolic edges and multiplications: equal outputs."""
        return cls._of(load_bytes(interchange.from_pykan(state)), 0)

    def __getattr__(self, name: str) -> Any:
        if name in _LATER:
            raise UnsupportedError(f"KAN.{name} of pykan does not exist in gradloom yet")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
