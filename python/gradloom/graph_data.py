"""Graphs of networkx, PyG, scipy or arrays as the engine takes them."""

from __future__ import annotations

import ctypes
import math
import struct
import warnings
import weakref
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._arrays import AnyArray, as_array, borrowed_integers, numbers, structure
from ._library import Array, Graph, check, close, handle_of, lib, settings_text
from .errors import InvalidInputError

_PARTS = {"train": 1, "validation": 2, "val": 2, "test": 3}


@dataclass
class GraphData:
    """One graph as arrays: `edges` (M, 2), and the data of nodes and edges. Missing arrays are None."""

    nodes: int
    edges: AnyArray
    node_labels: list[str] | None = None
    node_features: AnyArray | None = None
    node_classes: list[str | None] | None = None
    node_parts: AnyArray | None = None
    edge_labels: list[str] | None = None
    edge_weights: AnyArray | None = None
    names: list[Any] | None = None  # of the nodes, where they have some
    directed: bool = False
    # The weights are the values of a matrix: where all of a set are 1, they say only that there are edges.
    of_matrix: bool = False


def from_networkx(
    graph: Any,
    node_label: str | None = None,
    edge_label: str | None = None,
    *,
    features: str | Sequence[str] | None = None,
    node_class: str | None = None,
    edge_weight: str | None = None,
) -> GraphData:
    """A graph of networkx. Labels, features and classes are names of attributes; a feature may be a list of numbers."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_multigraph")):
        raise TypeError(f"graph is {graph!r}, but must be a graph of networkx")
    if graph.is_multigraph():
        doubled = next(((u, v) for u, v in graph.edges() if graph.number_of_edges(u, v) > 1), None)
        if doubled is not None:
            raise InvalidInputError(
                f"{graph.number_of_edges(*doubled)} edges join the nodes {doubled[0]!r} and {doubled[1]!r}, but a graph "
                "has at most one edge between two nodes; nx.Graph(graph) keeps one of them"
            )
    names = list(graph.nodes)
    number = {node: i for i, node in enumerate(names)}
    pairs = list(graph.edges(data=True))
    edges = np.array([(number[u], number[v]) for u, v, _ in pairs], dtype=np.int64).reshape(-1, 2)

    def node_values(key: str) -> list[Any]:
        missing = next((n for n in names if key not in graph.nodes[n]), None)
        if missing is not None or (names and key is None):
            raise InvalidInputError(f"node {missing!r} has no attribute {key!r}")
        return [graph.nodes[n][key] for n in names]

    def edge_values(key: str) -> list[Any]:
        missing = next(((u, v) for u, v, data in pairs if key not in data), None)
        if missing is not None:
            raise InvalidInputError(f"the edge {missing!r} has no attribute {key!r}")
        return [data[key] for _, _, data in pairs]

    matrix = None
    if features is not None:
        keys = [features] if isinstance(features, str) else list(features)
        columns = [np.asarray(node_values(key), dtype=np.float64).reshape(len(names), -1) for key in keys]
        matrix = np.concatenate(columns, axis=1) if columns else None
    classes = None
    if node_class is not None:
        classes = [None if (c := graph.nodes[n].get(node_class)) is None else str(c) for n in names]
    return GraphData(
        nodes=len(names),
        edges=edges,
        node_labels=None if node_label is None else [str(v) for v in node_values(node_label)],
        node_features=matrix,
        node_classes=classes,
        edge_labels=None if edge_label is None else [str(v) for v in edge_values(edge_label)],
        edge_weights=None if edge_weight is None else np.asarray(edge_values(edge_weight), dtype=np.float64),
        names=names,
        directed=bool(graph.is_directed()),
    )


def _pyg_weights(data: Any, edges: int) -> AnyArray | None:
    """edge_weight, or an edge_attr of one column."""
    for name in ("edge_weight", "edge_attr"):
        values = getattr(data, name, None)
        if values is None:
            continue
        array = numbers(values, name, (1, 2)).astype(np.float64, copy=False)
        if array.shape[0] != edges:
            raise InvalidInputError(f"{name} has {array.shape[0]} rows for {edges} edges")
        if array.ndim == 1 or array.shape[1] == 1:
            return array.reshape(-1)
        if name == "edge_weight":
            raise InvalidInputError(f"edge_weight is {array.shape}, but must be ({edges},)")
        warnings.warn(
            f"edge_attr has {array.shape[1]} columns, which are not read; an edge has one weight (edge_weight, or an "
            "edge_attr of one column), and edge_attr = None leaves it out",
            stacklevel=3,
        )
    return None


def from_pyg(data: Any, directed: bool = False) -> GraphData:
    """A Data of PyG, by its attributes x, edge_index, edge_weight (or an edge_attr of one column), y (of nodes),
    train_mask, val_mask, test_mask."""
    if not hasattr(data, "edge_index"):
        raise TypeError(f"data is {data!r}, but must be a Data of PyG: it has no edge_index")
    edge_index = as_array(data.edge_index, "edge_index")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InvalidInputError(f"edge_index is {edge_index.shape}, but must be (2, edges)")
    x = getattr(data, "x", None)
    features = None if x is None else numbers(x, "x", (2,))
    nodes = int(data.num_nodes) if getattr(data, "num_nodes", None) is not None else 0
    if features is not None:
        nodes = features.shape[0]
    y = getattr(data, "y", None)
    classes: list[str | None] | None = None
    if y is not None and as_array(y, "y").shape[:1] == (nodes,) and as_array(y, "y").size == nodes and nodes > 1:
        classes = [str(v) for v in as_array(y, "y").ravel().tolist()]
    parts = None
    for name in ("train", "val", "test"):
        mask = getattr(data, name + "_mask", None)
        if mask is not None:
            parts = np.zeros(nodes, dtype=np.int64) if parts is None else parts
            parts[as_array(mask, name + "_mask").astype(bool)] = _PARTS[name]
    return GraphData(
        nodes,
        edge_index.T.astype(np.int64),
        node_features=features,
        node_classes=classes,
        node_parts=parts,
        edge_weights=_pyg_weights(data, edge_index.shape[1]),
        directed=directed,
    )


def from_scipy(
    matrix: Any, directed: bool = False, *, weighted: bool | None = None, features: Any = None
) -> GraphData:
    """The graph of an adjacency matrix of scipy; weighted: its values are weights of edges, by default where one of
    them is not 1."""
    if not (hasattr(matrix, "tocoo") and hasattr(matrix, "shape")):
        raise TypeError(f"matrix is {matrix!r}, but must be a sparse matrix of scipy")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(f"the adjacency matrix is {matrix.shape}, but must be square")
    coo = matrix.tocoo()
    keep = coo.data != 0
    edges = np.stack([coo.row[keep], coo.col[keep]], axis=1).astype(np.int64)
    return GraphData(
        int(matrix.shape[0]),
        edges,
        node_features=None if features is None else numbers(features, "features", (2,)),
        edge_weights=None if weighted is False else np.asarray(coo.data[keep], dtype=np.float64),
        directed=directed,
        of_matrix=weighted is None,
    )


def as_graph(graph: Any, **keys: Any) -> GraphData:
    """Converts a graph: GraphData, networkx, PyG, scipy, a square array, or (nodes, edges). Keys are names of
    attributes of networkx."""
    if hasattr(graph, "nodes") and hasattr(graph, "is_multigraph"):
        return from_networkx(graph, **keys)
    if keys:
        raise InvalidInputError(
            f"{' and '.join(keys)}: only graphs of networkx have attributes by name, but this is a "
            f"{type(graph).__name__}; GraphData has fields for labels, features and weights"
        )
    if isinstance(graph, GraphData):
        return graph
    if hasattr(graph, "edge_index"):
        return from_pyg(graph)
    if hasattr(graph, "tocoo"):
        return from_scipy(graph)
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[0] == graph.shape[1]:
        if graph.dtype.kind not in "fiub":
            raise TypeError(f"the adjacency matrix is of {graph.dtype}, but must hold numbers")
        edges = np.argwhere(graph != 0).astype(np.int64)
        values = graph[edges[:, 0], edges[:, 1]].astype(np.float64)
        symmetric = bool((graph == graph.T).all())
        return GraphData(graph.shape[0], edges, edge_weights=values, directed=not symmetric, of_matrix=True)
    if isinstance(graph, tuple) and len(graph) == 2 and hasattr(graph[0], "__index__"):
        edges = np.asarray(graph[1], dtype=np.int64).reshape(-1, 2)
        return GraphData(int(graph[0]), edges)
    raise TypeError(
        f"{type(graph).__name__} is not a graph: pass one of networkx or PyG, a matrix of scipy, a square array, or "
        "(nodes, edges)"
    )


def numeric_attributes(graph: Any) -> dict[str, list[Any]]:
    """The attributes of a graph of networkx that `features` can name: finite numbers, or equally long lists of them, at
    every node. Empty for other graphs."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_multigraph")):
        return {}
    nodes = [data for _, data in graph.nodes(data=True)]
    found: dict[str, list[Any]] = {}
    for name in nodes[0] if nodes else ():
        if not isinstance(name, str) or not all(name in data for data in nodes):
            continue
        values = [data[name] for data in nodes]
        try:
            array = np.asarray(values)
        except ValueError:  # lists of unequal length
            continue
        if array.dtype.kind in "iuf" and array.size and np.isfinite(array).all():
            found[name] = values
    return found


def has_quantities(features: Iterable[Any]) -> bool:
    """Whether the features of graphs, for each an array (nodes, features) or None, are quantities. They are not where all
    lie between 0 and 1 and most are 0 or 1: categories, and words of texts, also if each row is divided by its sum."""
    values = whole = 0
    for given in features:
        x = np.asarray([] if given is None else given, dtype=np.float64)
        if x.size and (x.min() < 0 or x.max() > 1):
            return True
        values += x.size
        whole += int(np.count_nonzero((x == 0) | (x == 1)))
    return 2 * whole < values


@dataclass
class Rows:
    """One graph as compressed rows, with numbers of labels: lists of integers."""

    row_ptr: list[int]
    column: list[int]
    node_labels: list[int] | None = None
    edge_labels: list[int] | None = None


_INTEGER, _LAST = struct.Struct("=q"), struct.Struct("=qd")
_ABSENT = bytes(ctypes.sizeof(Array))
_NO_GROUP = _LAST.pack(-1, math.nan)


def add_rows(handle: int, g: Rows) -> None:
    """Adds a graph of a few nodes to a set of the engine, without numpy, whose calls would take longer than the rest."""
    kept: list[array[int]] = []  # alive during the call

    def described(values: list[int] | None) -> bytes:
        if not values:
            return _ABSENT
        kept.append(array("q", values))
        return borrowed_integers(*kept[-1].buffer_info())

    graph = (
        _INTEGER.pack(len(g.row_ptr) - 1),
        described(g.row_ptr),
        described(g.column),
        described(g.node_labels),
        _ABSENT * 3,
        described(g.edge_labels),
        _ABSENT,
        _NO_GROUP,
    )
    check(lib.gradloom_graphs_add(handle, b"".join(graph)))


def _is_unweighted_matrix(g: GraphData) -> bool:
    return g.of_matrix and g.edge_weights is not None and bool((g.edge_weights == 1).all())


class GraphSet:
    """Graphs in the engine, with common names of labels and classes."""

    def __init__(
        self,
        graphs: Iterable[Any],
        graph_classes: Sequence[str] | None = None,
        graph_targets: Any = None,
        node_class_names: Sequence[str] | None = None,
        weighted: bool = False,
        **keys: Any,
    ) -> None:
        """weighted: the values of matrices are weights, also where all of them are 1."""
        data = [as_graph(g, **keys) for g in graphs]
        if not weighted and not any(d.edge_weights is not None and not _is_unweighted_matrix(d) for d in data):
            data = [replace(d, edge_weights=None) if d.of_matrix else d for d in data]
        for name, given in (("graph_classes", graph_classes), ("graph_targets", graph_targets)):
            if given is not None and (isinstance(given, str) or np.shape(given) != (len(data),)):
                raise InvalidInputError(f"{name} is {given!r}, but must have one element for each of {len(data)} graphs")
        self.weighted = any(d.edge_weights is not None for d in data)
        directed = {d.directed for d in data}
        if len(directed) > 1:
            raise InvalidInputError("some graphs are directed and others are not")
        tables = {
            "node_labels": _names(d.node_labels for d in data),
            "edge_labels": _names(d.edge_labels for d in data),
            "node_classes": list(node_class_names or _names(d.node_classes for d in data)),
            "graph_classes": sorted(set(graph_classes or ())),
        }
        self.data = data
        self._handle = handle_of(
            lib.gradloom_graphs_new, settings_text({"directed": directed.pop() if directed else False, **tables})
        )
        self._finalizer = weakref.finalize(self, close, self._handle)
        codes = {key: {name: i for i, name in enumerate(names)} for key, names in tables.items()}
        for i, graph in enumerate(data):
            group = codes["graph_classes"][graph_classes[i]] if graph_classes is not None else -1
            target = float(graph_targets[i]) if graph_targets is not None else math.nan
            try:
                _add(self._handle, graph, codes, group, target)
            except (InvalidInputError, TypeError) as error:
                raise type(error)(f"graph {i}: {error}") from error

    def __len__(self) -> int:
        return len(self.data)


def _names(lists: Iterable[Sequence[Any] | None]) -> list[str]:
    """All names of some lists, in the order in which they come."""
    found: dict[str, None] = {}
    for names in lists:
        for name in names or ():
            if name is not None:
                found.setdefault(name)
    return list(found)


def _add(handle: int, g: GraphData, codes: dict[str, dict[str, int]], group: int, target: float) -> None:
    edges = np.asarray(g.edges, dtype=np.int64).reshape(-1, 2)
    if edges.size and (edges.min() < 0 or edges.max() >= g.nodes):
        raise InvalidInputError(
            f"an edge names node {int(edges.min() if edges.min() < 0 else edges.max())}; there are {g.nodes}"
        )
    order = np.argsort(edges[:, 0], kind="stable")
    row_ptr = np.zeros(g.nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(edges[:, 0], minlength=g.nodes), out=row_ptr[1:])
    kept: list[AnyArray] = []  # alive during the call

    def described(values: Any, dtype: Any, count: int, name: str, by_edge: bool = False) -> Array:
        if values is None:
            return Array()
        made = np.ascontiguousarray(values, dtype=dtype)
        if made.shape[0] != count:
            raise InvalidInputError(f"{name} has {made.shape[0]} elements for {count}")
        if by_edge:
            made = np.ascontiguousarray(made[order])
        kept.append(made)
        return structure(made) if made.size else Array()

    def coded(names: Sequence[Any] | None, key: str) -> list[int] | None:
        return None if names is None else [-1 if n is None else codes[key][n] for n in names]

    graph = Graph()
    graph.nodes = g.nodes
    graph.row_ptr = described(row_ptr, np.int64, g.nodes + 1, "row_ptr")
    graph.column = described(edges[:, 1], np.int64, len(edges), "edges", by_edge=True)
    graph.node_labels = described(coded(g.node_labels, "node_labels"), np.int64, g.nodes, "node_labels")
    graph.node_classes = described(coded(g.node_classes, "node_classes"), np.int64, g.nodes, "node_classes")
    graph.node_parts = described(g.node_parts, np.int64, g.nodes, "node_parts")
    graph.node_features = described(g.node_features, np.float64, g.nodes, "node_features")
    graph.edge_labels = described(coded(g.edge_labels, "edge_labels"), np.int64, len(edges), "edge_labels", by_edge=True)
    graph.edge_weights = described(g.edge_weights, np.float64, len(edges), "edge_weights", by_edge=True)
    graph.graph_class = group
    graph.graph_target = target
    check(lib.gradloom_graphs_add(handle, bytes(graph)))
