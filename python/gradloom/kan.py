"""KAN: a spline network (Kolmogorov-Arnold network) with the names of pykan."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _tables, interchange
from ._arrays import AnyArray, borrowed, numbers
from ._fit import Fit, fit_rows
from ._library import LongCall, handle_of, json_of, lib, path_name, settings_text, text_of
from ._options import merged, nested, put, threads_of
from .errors import InvalidInputError, UnsupportedError, UnsupportedNameError
from .formulas import Formula, formulas_of
from .model import Model, load_bytes, load_file

# Methods of pykan's MultKAN that are missing here, by what serves instead.
_OF_PYKAN = {
    "prune() returns a smaller network": "prune_edge prune_node prune_input remove_edge remove_node",
    "refine() returns a network with another grid": "update_grid update_grid_from_samples "
    "initialize_grid_from_another_model initialize_from_another_model",
    "edges() has the function of every edge": "get_act get_fun get_range n_edge get_params",
    "save() and load() keep a network": "saveckpt loadckpt checkout rewind",
    "copy.deepcopy() copies it": "copy",
    "formula() finds the formula; its `fix` and `forbid` choose the functions of edges": "suggest_symbolic "
    "fix_symbolic unfix_symbolic unfix_symbolic_all symbolic_formula set_mode disable_symbolic_in_fit",
    "scores has the shares of inputs, nodes and edges": "attribute node_attribute feature_score feature_interaction "
    "score_node2subnode",
    "fit(lamb=...) has the penalty on edges": "reg get_reg score2alpha connection_cost",
    "measure() has the error": "evaluate",
    "a network is called as model(X)": "forward",
    "": "expand_depth expand_width perturb module tree speed swap swap_ auto_swap auto_swap_l get_coordinate ex_round "
    "log_history to width_in width_out n_sum n_mult",
}
_INSTEAD = {name: instead for instead, names in _OF_PYKAN.items() for name in names.split()}

_formula = lib.gradloom_formula


def _layers(width: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The nodes of each layer, and how many of them are products: an entry may be pykan's [sums, products]."""
    nodes, products = [], []
    for layer in width:
        sums, multiplied = layer if isinstance(layer, (list, tuple)) else (layer, 0)
        nodes.append(int(sums) + int(multiplied))
        products.append(int(multiplied))
    return nodes, products


def _borrowed(rows: tuple[AnyArray, AnyArray] | None) -> tuple[bytes | None, bytes | None]:
    return (None, None) if rows is None else (borrowed(rows[0]), borrowed(rows[1]))


class Drawing:
    """A picture that a notebook shows, and save() writes."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG file."""
        with open(path_name(path, "path"), "w", encoding="utf-8") as file:
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
    """A spline network. Options that are None or not set have the engine's defaults: `gradloom.recipe_keys("kan")`.

    width: nodes of all layers, inputs first; multiply: of each hidden layer, how many of its nodes are products of two
    sums (or, as in pykan, [sums, products] in width); grid: intervals of each spline; k: their degree; `options` are
    recipe keys such as {"optimizer.lr": 0.01}.

    >>> import numpy as np
    >>> data = create_dataset(lambda x: np.sin(3 * x[:, 0]) + x[:, 1] ** 2, train_num=300, test_num=100)
    >>> model = KAN(width=[2, 3, 1], grid=5, seed=0)
    >>> log = model.fit(data, opt="LBFGS", steps=30)
    >>> bool(log["test_rmse"] < 0.05)
    True
    """

    _rows: tuple[AnyArray, AnyArray] | None = None  # of the last fit; not part of a saved or pickled network
    prune_report_: dict[str, Any] | None = None  # how prune() made this network

    def __init__(
        self,
        width: Sequence[int | Sequence[int]],
        grid: int | None = None,
        k: int | None = None,
        seed: int | None = None,
        *,
        multiply: Sequence[int] | None = None,
        precision: str | None = None,
        n_jobs: int | None = None,
        device: str | None = None,
        arithmetic: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            self.width, products = _layers(width)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"width is {width!r}, but must be a list of integers such as [2, 5, 1], or of pairs [sums, products]"
            ) from error
        if len(self.width) < 2 or min(self.width) < 1:
            raise InvalidInputError(
                f"width is {width!r}, but must name the nodes of two layers or more, 1 or more each"
            )
        if any(products):
            if multiply is not None:
                raise InvalidInputError(f"width is {width!r} and multiply {multiply!r}: only one may name products")
            if products[0] or products[-1]:
                raise InvalidInputError(f"width is {width!r}: inputs and outputs are not products")
            multiply = products[1:-1]
        if multiply is not None and (np.ndim(multiply) != 1 or min(map(int, multiply), default=0) < 0):
            raise TypeError(
                f"KAN: multiply is {multiply!r}, but must be a list with the number of products of each hidden layer"
            )
        recipe: dict[str, Any] = {"family": "kan", "task": "regression"}
        put(recipe, "model.hidden", self.width[1:-1])
        put(recipe, "model.multiply", None if multiply is None else [int(m) for m in multiply])
        for key, value in (("model.grid", grid), ("model.degree", k), ("seed", seed), ("precision", precision)):
            put(recipe, key, value)
        self._recipe = merged(recipe, nested(options))
        self.multiply: list[int] = list(self._recipe["model"].get("multiply", []))
        self._n_jobs, self._device, self._arithmetic = n_jobs, device, arithmetic
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
        lamb: float | None = None,
        sample_weight: Any = None,
        validation: float = 0.0,
        options: Mapping[str, Any] | None = None,
        verbose: bool | int | None = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Trains on rows X (N, inputs) and targets y, or on a dataset of create_dataset(); continues where the last
        call ended. opt: an optimizer ("LBFGS", "Adam", ...); steps: epochs; lamb: weight of the penalty on edges
        (`model.sparsity`). `callback` is called after each epoch and
        stops when it returns True; Ctrl-C stops, and the network keeps what it has learned.

        Returns arrays by epoch (loss, validation, lr) and, for a dataset, test_rmse.
        """
        if self.is_fitted and self.classes:
            raise UnsupportedError("this network predicts classes, which KAN.fit does not learn; KANClassifier does")
        test: tuple[AnyArray, AnyArray] | None = None
        if isinstance(X, Mapping):
            X, y, test = self._dataset(X, y)
        if y is None:
            raise TypeError("y is missing: fit(X, y), or fit(dataset)")
        recipe = merged(self._recipe, self._training(opt, steps, lr, batch, loss))
        put(recipe, "model.sparsity", lamb)
        put(recipe, "data.validation", validation)
        put(recipe, "data.test", 0.0)
        if self.is_fitted:  # refine() may have changed it
            put(recipe, "model.grid", self.options["model"]["grid"])
        recipe = merged(recipe, nested(options))
        fit = Fit(recipe, None, threads_of(self._n_jobs), self._device, self._handle, verbose, callback)
        fit.arithmetic = self._arithmetic
        names = _tables.column_names(X) if _tables.is_table(X) else None
        x, target = numbers(X, "X", (2,)), numbers(y, "y", (1, 2))
        self._check_width(x, target)
        handle, interrupted = fit_rows(fit, x, target, sample_weight, names)
        self._adopt(handle, fit.threads)
        self._rows = (x, target)
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
        """A network with `grid` grid intervals and the same functions; this one is not changed."""
        if isinstance(grid, bool) or not hasattr(grid, "__index__"):
            raise TypeError(f"grid is {grid!r}, but must be an integer")
        return self._like(handle_of(lib.gradloom_refine, self._open(), max(-1, min(int(grid), 1 << 40))))

    def _like(self, handle: int) -> KAN:
        other = object.__new__(type(self))
        for name in ("width", "multiply", "_recipe", "_n_jobs", "_device", "_arithmetic", "_log", "_rows"):
            setattr(other, name, getattr(self, name))
        other._adopt(handle, self._threads)
        return other

    def _data(self, X: Any, y: Any) -> tuple[AnyArray, AnyArray] | None:
        """The rows X and y, or those of the last fit; None where there are none. The caller keeps them while they are
        borrowed: they may be copies."""
        if X is None:
            return self._rows
        if y is None:
            raise TypeError("y is missing: a formula is measured on rows with targets")
        x, target = self._inputs(X), numbers(y, "y", (1, 2))
        self._check_width(x, target)
        return x, target

    @property
    def scores(self) -> dict[str, Any]:
        """The shares of the output's variance that inputs, hidden nodes and edges contribute, each with a standard
        error: {"inputs": [{name, score, error}], "columns", "nodes", "node_errors", "edges": [{layer, from, to, score,
        error}]}. "columns" are those of the table: a column of categories has the sum of its inputs."""
        report: dict[str, Any] = json_of(lib.gradloom_scores, self._open(), *_borrowed(self._rows))
        for edge in report["edges"]:
            del edge["kept"], edge["candidates"]
        return report

    def prune(
        self, threshold: float | None = None, *, inputs: int | None = None, worse: float | None = None
    ) -> KAN:
        """A smaller network. Removed are inputs, nodes and edges with a share of the variance below `threshold` (by
        default that of `gradloom prune`), or all but `inputs` inputs, or as much as possible while the error grows by at most `worse`.
        This network is not changed. fit() of the new one continues on the remaining columns (`prune_report_`)."""
        if self._rows is None:
            raise InvalidInputError("pruning needs the rows of fit(); a network that was loaded has none")
        x, target = self._rows
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.safetensors")
            settings = {"out": file, "threshold": threshold, "inputs": inputs, "worse": worse}
            before = self.description["features"]
            report = json_of(lib.gradloom_prune, self._open(), settings_text(settings), borrowed(x), borrowed(target))
            small = type(self).load(file, n_jobs=self._n_jobs)
        small._rows = (np.ascontiguousarray(x[:, [name in report["kept"] for name in before]]), target)
        small.prune_report_ = report
        return small

    def formula(
        self,
        X: Any = None,
        y: Any = None,
        *,
        effort: float | None = None,
        threshold: float | None = None,
        functions: Sequence[str] | None = None,
        define: Sequence[str] | None = None,
        forbid: Sequence[str] | None = None,
        fix: Sequence[str] | None = None,
    ) -> Formula | list[Formula]:
        """The formula of the rows (by default those of fit()): exact where one is found, else the best
        approximation edge by edge. A network that was loaded has no rows; its formula approximates it. A list for
        several targets.

        `functions` are the functions of the library to use, `define` adds some ("hill = x^3/(1 + x^3)"),
        `forbid` excludes some ("tan", or on one edge "0.1.2 tan": layer, from, to), `fix` sets the function of an edge
        ("0.1.2 sin"); with choices for single edges the formula is made edge by edge."""
        settings = {"effort": effort, "threshold": threshold, "functions": functions}
        settings |= {"define": define, "forbid": forbid, "fix": fix}
        rows = self._data(X, y)
        report = LongCall().json_of(lib.gradloom_formula, self._open(), settings_text(settings), *_borrowed(rows))
        return formulas_of(report, self.description["features"])

    def auto_symbolic(self, lib: Sequence[str] | None = None, threshold: float | None = None) -> list[dict[str, Any]]:
        """Every edge with the functions that fit it, best first: layer, from, to, score, kept, candidates. `lib` names
        the functions to compare with. The network is not changed."""
        settings = {"threshold": threshold, "functions": lib, "effort": 1}
        report = LongCall().json_of(_formula, self._open(), settings_text(settings), None, None)
        edges: list[dict[str, Any]] = report["edges"]
        return edges

    def export(self, path: str | os.PathLike[str], format: str = "c", name: str | None = None) -> dict[str, Any]:
        """Writes the network for other programs: "c" (a header), "onnx" or "efficient-kan". The returned report says in
        `differences` what the format cannot express."""
        settings = {"out": path_name(path, "path"), "format": format, "name": name}
        report: dict[str, Any] = json_of(lib.gradloom_export, self._open(), settings_text(settings))
        return report

    def edges(self) -> list[dict[str, Any]]:
        """Every edge: layer, from, to, the function as x and y, and importance: the share of the next node's standard
        deviation that the edge contributes. Of n nodes that a layer leads to, the last m = multiply[layer] are
        products: node j is sum j times sum j + m, and `to` counts sums."""
        edges: list[dict[str, Any]] = json_of(lib.gradloom_draw, self._open(), b"json")
        for edge in edges:
            edge["x"], edge["y"] = np.array(edge["x"]), np.array(edge["y"])
        return edges

    def plot(self, backend: str = "svg", *, candidates: bool = False) -> Any:
        """The network with the function of every edge: a Drawing that a notebook shows, or a figure of matplotlib.
        `candidates` writes the function that fits best to each edge of the figure."""
        if candidates and backend != "matplotlib":
            raise InvalidInputError("candidates need backend='matplotlib'")
        if backend == "svg":
            return Drawing(text_of(lib.gradloom_draw, self._open(), b"svg"))
        if backend != "matplotlib":
            raise InvalidInputError(f"backend is {backend!r}, but must be 'svg' or 'matplotlib'")
        from . import _plot

        names = {}
        if candidates:
            for edge in self.auto_symbolic():
                if edge["candidates"]:
                    names[edge["layer"], edge["from"], edge["to"]] = edge["candidates"][0]["function"]
        return _plot.network(self.width, self.edges(), names, self.multiply)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, n_jobs: int | None = None, arithmetic: str | None = None
    ) -> KAN:
        """A spline network that save() or `gradloom train` wrote; `arithmetic` None: that of its training."""
        threads = threads_of(n_jobs)
        return cls._of(load_file(path, threads, arithmetic), threads, arithmetic)

    @classmethod
    def _of(cls, handle: int, threads: int, arithmetic: str | None = None) -> KAN:
        model = Model(handle, threads)
        about = model.description
        if about["family"] != "kan":
            raise InvalidInputError(f"this is a model of family {about['family']!r}, not a spline network")
        options = about["options"]
        width = [len(about["features"]), *options["model"]["hidden"], about["outputs"]]
        recipe = {k: v for k, v in options.items() if k != "data"}
        network = cls(width, options=recipe, arithmetic=arithmetic)
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
        if name in _INSTEAD:
            hint = f"; {_INSTEAD[name]}" if _INSTEAD[name] else ""
            raise UnsupportedNameError(f"KAN.{name} of pykan does not exist in gradloom{hint}")
        if isinstance(getattr(type(self), name, None), property):
            self._open()  # a property that raised NotFittedError, which is an AttributeError, arrives here
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
