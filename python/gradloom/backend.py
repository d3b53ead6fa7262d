"""A backend of networkx (3.2 or newer): nx.graph_edit_distance(G, H, backend="gradloom").

Callables (node_match, ...) are called once for each distinct pair of attributes; the engine gets tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._library import json_of, lib, settings_text
from .errors import InvalidInputError
from .graph_data import GraphData, GraphSet


class _Attributes:
    """The distinct dictionaries of attributes of two graphs, each with a name."""

    def __init__(self) -> None:
        self.known: list[dict[Any, Any]] = []
        self._numbers: dict[Any, int] = {}

    def name(self, attributes: dict[Any, Any]) -> str:
        try:
            key: Any = frozenset(attributes.items())
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self._append(attributes)
        except TypeError:  # a value that has no hash
            number = next((i for i, other in enumerate(self.known) if other == attributes), None)
            if number is None:
                number = self._append(attributes)
        return str(number)

    def _append(self, attributes: dict[Any, Any]) -> int:
        self.known.append(attributes)
        return len(self.known) - 1


class _Names:
    """Labels of one side, by graph: costs of networkx are from the first graph to the second alone."""

    def __init__(self) -> None:
        self.first, self.second = _Attributes(), _Attributes()

    def of(self, attributes: dict[Any, Any], second: bool) -> str:
        return ("b" if second else "a") + (self.second if second else self.first).name(attributes)


def _graph_data(graph: Any, nodes: _Names | None, edges: _Names | None, second: bool) -> GraphData:
    """Without names, attributes are ignored."""
    names = list(graph)
    number = {node: i for i, node in enumerate(names)}
    pairs = [(number[u], number[v]) for u, v in graph.edges()]
    return GraphData(
        nodes=len(names),
        edges=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        node_labels=None if nodes is None else [nodes.of(graph.nodes[n], second) for n in names],
        edge_labels=None if edges is None else [edges.of(data, second) for _, _, data in graph.edges(data=True)],
        names=names,
        directed=bool(graph.is_directed()),
    )


Cost = Callable[..., Any]


def _checked(cost: Any, name: str) -> float:
    value = float(cost)
    if not value >= 0:
        raise InvalidInputError(f"{name} returned {cost!r}; costs must be 0 or more")
    return value


def _tables(
    names: _Names | None, side: str, match: Cost | None, substitute: Cost | None, delete: Cost | None, insert: Cost | None
) -> dict[str, Any]:
    """The costs of one side as tables of labels; each callable is called once for each distinct attribute or pair."""
    if names is None:
        return {}
    first, second = names.first.known, names.second.known

    def sub(a: dict[Any, Any], b: dict[Any, Any]) -> float:
        if substitute is not None:
            return _checked(substitute(a, b), f"{side}_subst_cost")
        return 0.0 if match is None or match(a, b) else 1.0

    tables: dict[str, Any] = {
        f"{side}_pairs": [[f"a{i}", f"b{j}", sub(a, b)] for i, a in enumerate(first) for j, b in enumerate(second)]
    }
    if delete is not None:
        tables[f"{side}_deletes"] = {f"a{i}": _checked(delete(a), f"{side}_del_cost") for i, a in enumerate(first)}
    if insert is not None:
        tables[f"{side}_inserts"] = {f"b{j}": _checked(insert(b), f"{side}_ins_cost") for j, b in enumerate(second)}
    return tables


def _without_infinity(costs: dict[str, Any], parts: int) -> dict[str, Any]:
    """Infinite costs become finite ones that exceed the cost of all other edits together."""
    singles = [
        c for table in costs.values() for c in (table.values() if isinstance(table, dict) else (p[2] for p in table))
    ]
    finite = [c for c in singles if math.isfinite(c)]
    if len(finite) == len(singles):
        return costs
    most = (max(finite, default=1.0) + 1.0) * (parts + 1)
    return {
        key: {k: min(c, most) for k, c in table.items()}
        if isinstance(table, dict)
        else [[a, b, min(c, most)] for a, b, c in table]
        for key, table in costs.items()
    }


def graph_edit_distance(
    G1: Any,
    G2: Any,
    node_match: Cost | None = None,
    edge_match: Cost | None = None,
    node_subst_cost: Cost | None = None,
    node_del_cost: Cost | None = None,
    node_ins_cost: Cost | None = None,
    edge_subst_cost: Cost | None = None,
    edge_del_cost: Cost | None = None,
    edge_ins_cost: Cost | None = None,
    roots: tuple[Any, Any] | None = None,
    upper_bound: float | None = None,
    timeout: float | None = None,
) -> float | None:
    """networkx.graph_edit_distance: the exact distance, or after `timeout` seconds the best one found; None when it is
    above `upper_bound`."""
    if roots is not None:
        raise NotImplementedError("gradloom does not support roots")
    if G1.is_multigraph() or G2.is_multigraph():
        raise NotImplementedError("graphs with several edges between two nodes are not supported")
    if timeout is not None and timeout <= 0:
        from networkx import NetworkXError

        raise NetworkXError("Timeout value must be greater than 0")  # as networkx itself says
    of_nodes = (node_match, node_subst_cost, node_del_cost, node_ins_cost)
    of_edges = (edge_match, edge_subst_cost, edge_del_cost, edge_ins_cost)
    nodes = None if all(f is None for f in of_nodes) else _Names()
    edges = None if all(f is None for f in of_edges) else _Names()
    data = [_graph_data(G1, nodes, edges, False), _graph_data(G2, nodes, edges, True)]
    costs = {
        **_tables(nodes, "node", *of_nodes),
        **_tables(edges, "edge", *of_edges),
    }
    parts = sum(d.nodes + len(d.edges) for d in data)
    settings = {"costs": _without_infinity(costs, parts), "seconds": timeout, "threads": 1, "ties": "any"}
    graphs = GraphSet(data)
    found = json_of(lib.gradloom_ged_pair, graphs._handle, 0, 1, settings_text(settings))
    if upper_bound is not None and found["upper"] > upper_bound:
        return None
    return float(found["upper"])


def _can_run_distance(*arguments: Any, **keywords: Any) -> bool | str:
    """True when the engine supports the call; otherwise the reason."""
    roots = arguments[10] if len(arguments) > 10 else keywords.get("roots")
    if roots is not None:
        return "roots are not supported"
    graphs: Sequence[Any] = arguments[:2] or (keywords.get("G1"), keywords.get("G2"))
    if any(g is not None and g.is_multigraph() for g in graphs):
        return "graphs with several edges between two nodes are not supported"
    return True


class _Backend:
    """The interface that networkx expects: functions by name, and conversions, which do nothing."""

    graph_edit_distance = staticmethod(graph_edit_distance)

    @staticmethod
    def can_run(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool | str:
        """Whether this backend takes the call."""
        return name == "graph_edit_distance" and _can_run_distance(*args, **kwargs)

    @staticmethod
    def should_run(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Always true: the engine is faster than the search in Python."""
        return True

    @staticmethod
    def convert_from_nx(graph: Any, *_args: Any, **_kwargs: Any) -> Any:
        """Graphs are read as they are."""
        return graph

    @staticmethod
    def convert_to_nx(result: Any, *_args: Any, **_kwargs: Any) -> Any:
        """Results are numbers."""
        return result


backend = _Backend()


def get_info() -> dict[str, Any]:
    """The description of the backend that networkx shows."""
    return {
        "backend_name": "gradloom",
        "project": "gradloom",
        "package": "gradloom",
        "short_summary": "Exact graph edit distances, in C++.",
        "functions": {"graph_edit_distance": {"additional_docs": "Exact branch and bound; no roots, no multigraphs."}},
    }
