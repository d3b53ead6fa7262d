"""Classifiers and regressors of nodes and of graphs; graph_data.py has what they take."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._arrays import AnyArray, as_array, borrowed, numbers
from ._fit import Fit
from ._library import check, lib
from ._options import merged, nested, put, threads_of
from .errors import InvalidInputError, NotFittedError
from .graph_data import (
    GraphData,
    GraphSet,
    as_graph,
    from_networkx,
    from_pyg,
    from_scipy,
    has_quantities,
    numeric_attributes,
)
from .model import Floats, Model

__all__ = [
    "GraphClassifier",
    "GraphData",
    "GraphModel",
    "GraphRegressor",
    "GraphSet",
    "NodeClassifier",
    "as_graph",
    "from_networkx",
    "from_pyg",
    "from_scipy",
]


class GraphModel(Model):
    """A trained network of graphs, for new graphs."""

    def _graph_outputs(self, graphs: GraphSet, rows: int) -> Floats:
        out = np.empty((rows, self.description["outputs"]))
        check(lib.gradloom_predict_graphs(self._open(), graphs._handle, borrowed(out)))
        return out

    def _is_of_nodes(self) -> bool:
        return bool(self.options["task"] == "nodes")

    def _asked(self, graphs: Any, keys: Mapping[str, Any]) -> tuple[GraphSet, int]:
        several = isinstance(graphs, (list, tuple)) and not (len(graphs) == 2 and hasattr(graphs[0], "__index__"))
        asked = GraphSet(graphs if several else [graphs], **keys)
        rows = sum(g.nodes for g in asked.data) if self._is_of_nodes() else len(asked)
        return asked, rows

    def predict(self, X: Any, **keys: Any) -> AnyArray:
        """A class or number for each graph, or for each node of the graphs in turn."""
        y = self._graph_outputs(*self._asked(X, keys))
        return np.array(self.classes)[y.argmax(axis=1)] if self.classes else y[:, 0]

    def predict_proba(self, X: Any, **keys: Any) -> Floats:
        """Probabilities (rows, classes)."""
        return self._graph_outputs(*self._asked(X, keys))

    def embed(self, X: Any, **keys: Any) -> Floats:
        """The embedding of each graph, or of each node of the graphs in turn: what the network's head reads."""
        graphs, rows = self._asked(X, keys)
        out = np.empty((rows, self.description["embedding"]))
        check(lib.gradloom_embed_graphs(self._open(), graphs._handle, borrowed(out)))
        return out


class _GraphEstimator:
    """The base of the estimators of graphs; it follows scikit-learn's conventions without needing it."""

    _task = "graphs"
    _recipe: Mapping[str, Any] = {}

    def __init__(
        self,
        layer: str | None = None,
        hidden: Sequence[int] | None = None,
        *,
        node_label: str | None = None,
        edge_label: str | None = None,
        features: str | Sequence[str] | None = None,
        edge_weight: str | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        validation: float | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | int | None = 0,
    ) -> None:
        self.layer = layer
        self.hidden = hidden
        self.node_label = node_label
        self.edge_label = edge_label
        self.features = features
        self.edge_weight = edge_weight
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.dropout = dropout
        self.validation = validation
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _PARAMETERS = (
        "layer",
        "hidden",
        "node_label",
        "edge_label",
        "features",
        "edge_weight",
        "epochs",
        "lr",
        "batch",
        "dropout",
        "validation",
        "options",
        "random_state",
        "n_jobs",
        "verbose",
    )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._PARAMETERS}

    def set_params(self, **parameters: Any) -> Any:
        """Sets parameters by name."""
        for name, value in parameters.items():
            if name not in self._PARAMETERS:
                raise InvalidInputError(f"there is no parameter {name!r}; there are {', '.join(self._PARAMETERS)}")
            setattr(self, name, value)
        return self

    def _keys(self) -> dict[str, Any]:
        keys = {
            "node_label": self.node_label,
            "edge_label": self.edge_label,
            "features": self.features,
            "edge_weight": self.edge_weight,
        }
        return {key: value for key, value in keys.items() if value is not None}

    def _new_keys(self) -> dict[str, Any]:
        """Of graphs to predict: they have weights where those of fit() had."""
        return {**self._keys(), "weighted": getattr(self, "_weighted", False)}

    def _data_options(self) -> Mapping[str, Any]:
        data = nested(self.options).get("data")
        return data if isinstance(data, Mapping) else {}

    def _standardises(self, graphs: GraphSet) -> bool:
        """Whether features are scaled where the caller says nothing: not where none are read, and not before rows are
        divided by their sums, which would then be about 0."""
        asked = self._data_options()
        return (
            "standardise" not in asked
            and asked.get("features", "auto") in ("auto", "given", "all")
            and not asked.get("normalise_rows")
            and has_quantities([g.node_features for g in graphs.data])
        )

    def _run(self, graphs: GraphSet) -> None:
        self._weighted = graphs.weighted
        recipe: dict[str, Any] = {"family": "graph", "task": self._task, **self._recipe}
        keys = {
            "model.layer": self.layer,
            "model.hidden": None if self.hidden is None else list(self.hidden),
            "model.dropout": self.dropout,
            "epochs": self.epochs,
            "optimizer.lr": self.lr,
            "train.batch": self.batch,
            "seed": self.random_state,
            "data.validation": 0.0 if self.validation is None else self.validation,
            "data.test": 0.0,
            "data.edge_labels": True if self.edge_label is not None else None,
            # Labels that were asked for are features, however many there are.
            "data.features": "all" if self.node_label is not None and self.features is not None else None,
        }
        if self._standardises(graphs):
            keys["data.standardise"] = True
        for key, value in keys.items():
            put(recipe, key, value)
        fit = Fit(merged(recipe, nested(self.options)), None, threads_of(self.n_jobs), None, 0, self.verbose)
        handle, interrupted = fit.run(lib.gradloom_fit_graphs, {}, graphs._handle)
        self.model_ = GraphModel(handle, fit.threads)
        if interrupted:
            raise KeyboardInterrupt

    def _fitted(self) -> GraphModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit() first")
        return self.model_

    def embed(self, graphs: Any) -> Floats:
        """The embedding of each graph, or of each node: what the network's head reads, (rows, width)."""
        return self._fitted().embed(graphs, **self._new_keys())


def _listed(graphs: Any) -> list[Any]:
    """Graphs as a list; iterating over one graph would give its nodes."""
    if isinstance(graphs, GraphData) or any(hasattr(graphs, name) for name in ("is_multigraph", "edge_index", "tocoo")):
        raise TypeError(f"one {type(graphs).__name__} is not a list of graphs: pass a list of graphs, such as [graph]")
    return list(graphs)


def _targets(graphs: Any, y: Any) -> tuple[list[Any], Any]:
    """The graphs as a list, and y, or what the graphs of PyG have as their own."""
    listed = _listed(graphs)
    if y is not None:
        return listed, y
    found: list[AnyArray] = []
    for i, graph in enumerate(listed):
        if getattr(graph, "y", None) is None:
            raise TypeError(f"y is missing: graph {i} has none of its own, as Data of PyG may have")
        found.append(as_array(graph.y, "y").ravel())
        if len(found[i]) != 1:
            raise InvalidInputError(f"y of graph {i} has {len(found[i])} values, but must have one")
    return listed, np.concatenate(found) if found else np.zeros(0)


class GraphClassifier(_GraphEstimator):
    """A class for each graph. layer: "gcn", "gin", "gat", ...; options as `gradloom.recipe_keys("graph")`.

    >>> rings = [(n, [(i, (i + 1) % n) for i in range(n)]) for n in range(4, 12)]
    >>> stars = [(n, [(0, i) for i in range(1, n)]) for n in range(4, 12)]
    >>> net = GraphClassifier(layer="gin", hidden=[8], epochs=40, random_state=0)
    >>> net = net.fit(rings + stars, ["ring"] * 8 + ["star"] * 8)
    >>> net.predict([(15, [(i, (i + 1) % 15) for i in range(15)])]).tolist()
    ['ring']
    """

    def fit(self, graphs: Sequence[Any], y: Sequence[Any] | None = None) -> GraphClassifier:
        """Trains on graphs (networkx, PyG, scipy, arrays) and their classes; y None: those that graphs of PyG have."""
        graphs, y = _targets(graphs, y)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(graphs):
            raise InvalidInputError(f"y has the shape {labels.shape}, but there are {len(graphs)} graphs")
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise InvalidInputError(f"every graph has the class {self.classes_.tolist()}; there is nothing to learn")
        self._run(GraphSet(graphs, graph_classes=[str(v) for v in labels.tolist()], **self._keys()))
        known = {name: i for i, name in enumerate(self.model_.classes)}
        self._order = np.array([known[str(c)] for c in self.classes_.tolist()])
        return self

    def predict_proba(self, graphs: Any) -> Floats:
        """Probabilities (graphs, classes), in the order of classes_."""
        return self._fitted().predict_proba(_listed(graphs), **self._new_keys())[:, self._order]

    def predict(self, graphs: Any) -> AnyArray:
        """The most probable class of each graph."""
        probabilities = self.predict_proba(graphs)
        predicted: AnyArray = self.classes_[probabilities.argmax(axis=1)]
        return predicted

    def score(self, graphs: Any, y: Any) -> float:
        """The accuracy: the share of graphs whose class is predicted correctly."""
        return float(np.mean(self.predict(graphs) == np.asarray(y)))


class GraphRegressor(_GraphEstimator):
    """A number for each graph; parameters as those of GraphClassifier.

    >>> paths = [(n, [(i, i + 1) for i in range(n - 1)]) for n in range(3, 9)]
    >>> net = GraphRegressor(hidden=[8], epochs=5, random_state=0).fit(paths, [float(n) for n in range(3, 9)])
    >>> net.predict(paths[:2]).shape
    (2,)
    """

    _recipe: Mapping[str, Any] = {"loss": {"kind": "mse"}}

    def fit(self, graphs: Sequence[Any], y: Any = None) -> GraphRegressor:
        """Trains on graphs and their numbers; y None: those that graphs of PyG have."""
        graphs, y = _targets(graphs, y)
        targets = numbers(y, "y", (1,))
        if len(targets) != len(graphs):
            raise InvalidInputError(f"y has {len(targets)} rows, but there are {len(graphs)} graphs")
        self._run(GraphSet(graphs, graph_targets=targets, **self._keys()))
        return self

    def predict(self, graphs: Any) -> AnyArray:
        """A number for each graph."""
        return self._fitted().predict(_listed(graphs), **self._new_keys())


def _one_to_one(values: Sequence[Any], roles: Sequence[Any]) -> bool:
    """Whether an attribute says what classes or parts say, perhaps by other names, where these are known. Elsewhere it
    has at most one value more: that of nodes without a class."""
    pairs = {(str(value), str(role)) for value, role in zip(values, roles) if role is not None}
    if len({str(value) for value in values}) > len(pairs) + 1:
        return False
    return len(pairs) == len({value for value, _ in pairs}) == len({role for _, role in pairs})


class NodeClassifier(_GraphEstimator):
    """A class for each node of one graph, some of whose nodes are labelled; parameters as those of GraphClassifier.

    >>> pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]  # two triangles, joined
    >>> net = NodeClassifier(hidden=[8], epochs=60, random_state=0, options={"data.features": "identity"})
    >>> net.fit((6, pairs), ["a", None, None, None, None, "b"]).predict((6, pairs)).tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """

    _task = "nodes"

    def fit(self, graph: Any, y: Any = None, train_mask: Any = None) -> NodeClassifier:
        """Trains on the nodes of train_mask, or on all with a class. y: a class for each node, None where it is not
        known; y None: the graph has them (PyG)."""
        data = as_graph(graph, **self._keys())
        if y is not None:
            labels = list(np.asarray(y, dtype=object).ravel().tolist())
            if len(labels) != data.nodes:
                raise InvalidInputError(f"y has {len(labels)} classes, but there are {data.nodes} nodes")
            data.node_classes = [
                None if v is None or (isinstance(v, float) and math.isnan(v)) else str(v) for v in labels
            ]
            known = [v for v in labels if v is not None and not (isinstance(v, float) and math.isnan(v))]
        elif data.node_classes is None:
            raise TypeError("y is missing: the graph has no classes of nodes")
        else:
            known = [v for v in data.node_classes if v is not None]
        if train_mask is not None:
            mask = as_array(train_mask, "train_mask").astype(bool)
            if mask.shape != (data.nodes,):
                raise InvalidInputError(f"train_mask is {mask.shape}, but there are {data.nodes} nodes")
            if not mask.any():
                raise InvalidInputError("train_mask selects no node")
            data.node_parts = mask.astype(np.int64)
        self.classes_ = np.unique(np.asarray(known))
        if unused := self._unused(graph, data):
            warnings.warn(
                f"the nodes have attributes ({', '.join(unused)}) that are not used: features={unused!r} uses them",
                stacklevel=2,
            )
        self._run(GraphSet([data]))
        place = {name: i for i, name in enumerate(self.model_.classes)}
        self._order = np.array([place[str(c)] for c in self.classes_.tolist()])
        return self

    def _unused(self, graph: Any, data: GraphData) -> list[str]:
        """The numeric attributes that training would not read, without those that hold its classes or its parts."""
        if self.features is not None or self._data_options().get("features", "auto") != "auto":
            return []
        roles = [list(values) for values in (data.node_classes, data.node_parts) if values is not None]
        named = {"class", "split", self.node_label}
        found = numeric_attributes(graph).items()
        return [name for name, values in found if name not in named and not any(_one_to_one(values, r) for r in roles)]

    def _asked(self, graph: Any) -> list[GraphData]:
        """The graph without the classes of its nodes."""
        data = as_graph(graph, **self._keys())
        return [GraphData(**{**data.__dict__, "node_classes": None, "node_parts": None})]

    def predict_proba(self, graph: Any) -> Floats:
        """Probabilities (nodes, classes), in the order of classes_."""
        model = self._fitted()
        return model.predict_proba(self._asked(graph), weighted=self._weighted)[:, self._order]

    def embed(self, graphs: Any) -> Floats:
        """The embedding of each node of a graph: what the last layer reads, (nodes, width)."""
        return self._fitted().embed(self._asked(graphs), weighted=getattr(self, "_weighted", False))

    def predict(self, graph: Any) -> AnyArray:
        """The most probable class of each node."""
        probabilities = self.predict_proba(graph)
        predicted: AnyArray = self.classes_[probabilities.argmax(axis=1)]
        return predicted
