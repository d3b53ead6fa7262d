"""Graph edit distance: exact, or bounds when a limit is reached; of a pair, of all pairs, within a threshold."""

from __future__ import annotations

import ctypes
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import AnyArray, borrowed
from ._library import LongCall, lib, settings_text
from ._options import threads_of
from ._progress import WatchedCall
from .errors import InvalidInputError
from .graph_data import GraphSet, as_graph


@dataclass
class Costs:
    """The costs of edits; None: 1. labels: whether labels are compared. Pairs are (label, label, cost)."""

    node_sub: float | None = None
    node_indel: float | None = None
    edge_sub: float | None = None
    edge_indel: float | None = None
    labels: bool = True
    node_pairs: Sequence[tuple[str, str, float]] = ()
    edge_pairs: Sequence[tuple[str, str, float]] = ()

    def settings(self) -> dict[str, Any]:
        """As the engine takes them."""
        costs: dict[str, Any] = {
            key: value
            for key in ("node_sub", "node_indel", "edge_sub", "edge_indel")
            if (value := getattr(self, key)) is not None
        }
        if not self.labels:
            costs["labels"] = "ignore"
        for key in ("node_pairs", "edge_pairs"):
            if pairs := getattr(self, key):
                costs[key] = [[str(a), str(b), cost] for a, b, cost in pairs]
        return costs


@dataclass
class Distance:
    """lower <= distance <= upper; exact when they are equal and proved.

    mapping: the node of the second graph that each node of the first becomes, None: deleted. path: the edits.
    within: with a threshold, whether the distance is at most that; None: a limit was reached before it was known.
    """

    lower: float
    upper: float
    exact: bool
    mapping: dict[Any, Any]
    path: list[dict[str, Any]] = field(repr=False)
    within: bool | None
    expanded: int
    seconds: float

    def __float__(self) -> float:
        if not self.exact:
            raise InvalidInputError(f"the distance is between {self.lower} and {self.upper}: a limit was reached")
        return self.upper


class Distances(np.ndarray[Any, np.dtype[np.float64]]):
    """A matrix of distances (upper bounds), with the lower bounds and a mask of the exact ones. Parts of it, its
    transpose, copies and pickles have theirs; what is computed from it is a plain array."""

    _lower: NDArray[np.float64] | None = None

    @classmethod
    def _of(cls, upper: AnyArray, lower: AnyArray | None) -> Distances:
        made: Distances = upper.view(cls)
        made._lower = lower
        return made

    @property
    def lower(self) -> NDArray[np.float64]:
        """The lower bounds."""
        if self._lower is None:
            raise AttributeError("this array was reshaped or converted; its matrix of distances has the lower bounds")
        return self._lower

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Where the distance is proved."""
        return np.asarray(self.lower == np.asarray(self))

    def _both(self, act: Callable[[AnyArray], Any]) -> Any:
        """What `act` makes of the upper bounds, with what it makes of the lower ones."""
        upper = act(np.asarray(self))
        if not isinstance(upper, np.ndarray):
            return upper
        return Distances._of(upper, None if self._lower is None else act(self._lower))

    def __getitem__(self, key: Any) -> Any:
        return self._both(lambda bounds: bounds[key])

    @property
    def T(self) -> Any:
        """The transpose."""
        return self._both(lambda bounds: bounds.T)

    def transpose(self, *axes: Any) -> Any:
        """The transpose."""
        return self._both(lambda bounds: bounds.transpose(*axes))

    def copy(self, order: Any = "C") -> Any:
        """A copy."""
        return self._both(lambda bounds: bounds.copy(order))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        return Distances._of, (np.asarray(self), self._lower)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        def plain(value: Any) -> Any:
            return np.asarray(value) if isinstance(value, Distances) else value

        if "out" in keywords:
            keywords["out"] = tuple(plain(value) for value in keywords["out"])
        return getattr(ufunc, method)(*(plain(value) for value in inputs), **keywords)


def _settings(
    costs: Costs | None, time: float | None, expand: int | None, n_jobs: int | None, **more: Any
) -> dict[str, Any]:
    if costs is not None and not isinstance(costs, Costs):
        raise TypeError(f"costs is {costs!r}, but must be a gradloom.ged.Costs")
    for name, value in (("time", time), ("expand", expand)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not value > 0):
            raise InvalidInputError(f"{name} is {value!r}, but must be above 0")
    chosen = None if costs is None else costs.settings() or None
    return {"costs": chosen, "seconds": time, "expansions": expand, "threads": threads_of(n_jobs), **more}


def distance(
    G: Any,
    H: Any,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    costs: Costs | None = None,
    time: float | None = None,
    expand: int | None = None,
    threshold: float | None = None,
    solver: str | None = None,
    n_jobs: int | None = None,
) -> Distance:
    """The edit distance of two graphs (networkx, PyG, scipy, arrays).

    node_label, edge_label: attributes of networkx that are compared. time, expand: limits, in seconds and in search
    nodes. threshold: decide only whether the distance is at most this.

    >>> triangle, path = (3, [(0, 1), (1, 2), (2, 0)]), (3, [(0, 1), (1, 2)])
    >>> distance(triangle, path).upper
    1.0
    """
    graphs = GraphSet([G, H], **_keys(node_label, edge_label, (G, H), costs))
    settings = _settings(costs, time, expand, n_jobs, threshold=threshold, solver=solver)
    found = LongCall().json_of(lib.gradloom_ged_pair, graphs._handle, 0, 1, settings_text(settings))
    return _distance(found, graphs)


def _keys(
    node_label: str | None, edge_label: str | None, graphs: Sequence[Any], costs: Costs | None
) -> dict[str, Any]:
    keys = {"node_label": node_label, "edge_label": edge_label}
    chosen = {key: value for key, value in keys.items() if value is not None}
    if chosen and not all(hasattr(g, "is_multigraph") for g in graphs):
        raise InvalidInputError("node_label and edge_label are names of attributes; only graphs of networkx have them")
    if isinstance(costs, Costs) and costs.labels and node_label is None:
        _warn_of_labels(graphs)
    return chosen


def _warn_of_labels(graphs: Sequence[Any]) -> None:
    """Says that attributes which could be meant as labels are not compared."""
    data = (values for g in graphs if hasattr(g, "is_multigraph") for _, values in g.nodes(data=True))
    names = sorted({str(name) for values in data for name in values})
    if names:
        warnings.warn(
            f"the nodes have attributes ({', '.join(names)}), which are not compared: node_label={names[0]!r} compares "
            "one, Costs(labels=False) says that none is",
            stacklevel=4,
        )


def _distance(found: dict[str, Any], graphs: GraphSet) -> Distance:
    first, second = graphs.data
    sources = first.names if first.names is not None else list(range(first.nodes))
    images = second.names if second.names is not None else list(range(second.nodes))
    mapping = {source: None if image is None else images[image] for source, image in zip(sources, found["mapping"])}
    path = [
        {**edit, "from": [sources[v] for v in edit["from"]], "to": [images[v] for v in edit["to"]]}
        for edit in found.get("path", [])
    ]
    return Distance(
        found["lower"],
        found["upper"],
        found["exact"],
        mapping,
        path,
        found["within"],
        found["expanded"],
        found["seconds"],
    )


def matrix(
    graphs: Sequence[Any],
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    costs: Costs | None = None,
    time: float | None = None,
    expand: int | None = None,
    n_jobs: int | None = None,
    verbose: bool | int | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
) -> Distances:
    """The distances between all graphs: (n, n); `.exact` is the mask of those that are proved, `.lower` the bounds.

    >>> cycles = [(n, [(i, (i + 1) % n) for i in range(n)]) for n in (4, 5, 6)]
    >>> distances = matrix(cycles)
    >>> distances.tolist()
    [[0.0, 4.0, 6.0], [4.0, 0.0, 4.0], [6.0, 4.0, 0.0]]
    >>> bool(distances.exact.all())
    True
    """
    graphs = list(graphs)
    held = GraphSet(graphs, **_keys(node_label, edge_label, graphs, costs))
    lower, upper = np.empty((len(held), len(held))), np.empty((len(held), len(held)))
    text = settings_text(_settings(costs, time, expand, n_jobs))
    call = WatchedCall(verbose, callback)
    call.run(lib.gradloom_ged_matrix, held._handle, text, ctypes.byref(call.hooks), borrowed(lower), borrowed(upper))
    if call.interrupted:
        raise KeyboardInterrupt
    return Distances._of(upper, lower)


@dataclass
class Found:
    """A graph within a threshold: its number, and bounds of its distance. within False: a limit was reached."""

    graph: int
    lower: float
    upper: float
    within: bool


def search(
    query: Any,
    graphs: Sequence[Any],
    threshold: float,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    costs: Costs | None = None,
    time: float | None = None,
    expand: int | None = None,
    n_jobs: int | None = None,
) -> list[Found]:
    """The graphs within a threshold of the query, the nearest first.

    >>> cycles = [(n, [(i, (i + 1) % n) for i in range(n)]) for n in (4, 5, 6, 9)]
    >>> [(found.graph, found.upper) for found in search(cycles[1], cycles, threshold=4)]
    [(1, 0.0), (0, 4.0), (2, 4.0)]
    """
    everything = [query, *graphs]
    held = GraphSet([as_graph(g, **_keys(node_label, edge_label, everything, costs)) for g in everything])
    settings = _settings(costs, time, expand, n_jobs, threshold=threshold)
    found = LongCall().json_of(lib.gradloom_ged_search, held._handle, 0, settings_text(settings))
    return [Found(f["graph"] - 1, f["lower"], f["upper"], f["within"]) for f in found]
