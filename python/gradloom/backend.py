"""A backend of networkx (3.2 or newer): nx.graph_edit_distance(G, H, backend="gradloom").

Callables (node_match, ...) are called once for each distinct pair of attributes; the engine gets tables.
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ._library import LongCall, close, handle_of, json_of, lib, settings_text
from .errors import InvalidInputError
from .graph_data import Rows, add_rows


def _same(first: dict[Any, Any], second: dict[Any, Any]) -> bool:
    try:
        return first == second
    except ValueError:  # arrays have no truth value; two that are equal may count as different
        return first is second


class _Attributes:
    """The distinct dictionaries of attributes of a graph, numbered."""

    def __init__(self) -> None:
        self.known: list[dict[Any, Any]] = []
        self._numbers: dict[Any, int] = {}

    def number(self, attributes: dict[Any, Any]) -> int:
        try:
            key: Any = frozenset(attributes.items())
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self._append(attributes)
        except TypeError:  # a value that has no hash
            number = next((i for i, other in enumerate(self.known) if _same(other, attributes)), None)
            if number is None:
                number = self._append(attributes)
        return number

    def _append(self, attributes: dict[Any, Any]) -> int:
        self.known.append(attributes)
        return len(self.known) - 1


class _Names:
    """Labels of nodes or edges, by graph: costs of networkx are from the first graph to the second alone. All of the
    first graph come before those of the second."""

    def __init__(self) -> None:
        self.first, self.second = _Attributes(), _Attributes()

    def code(self, attributes: dict[Any, Any], second: bool) -> int:
        return len(self.first.known) + self.second.number(attributes) if second else self.first.number(attributes)

    def names(self) -> list[str]:
        """By code."""
        return [f"a{i}" for i in range(len(self.first.known))] + [f"b{j}" for j in range(len(self.second.known))]


def _rows(graph: Any, nodes: _Names | None, edges: _Names | None, second: bool) -> Rows:
    """A graph with each undirected edge in both directions. Without names, attributes are ignored."""
    neighbours = dict(graph.adjacency())
    number = {node: i for i, node in enumerate(neighbours)}
    row_ptr = [0, *accumulate(map(len, neighbours.values()))]
    column = [number[other] for around in neighbours.values() for other in around]
    node_labels = edge_labels = None
    if nodes is not None:
        node_labels = [nodes.code(graph.nodes[node], second) for node in number]
    if edges is not None:
        edge_labels = [edges.code(data, second) for around in neighbours.values() for data in around.values()]
    return Rows(row_ptr, column, node_labels, edge_labels)


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


def _without_infinity(costs: dict[str, Any], graphs: Sequence[Any]) -> dict[str, Any]:
    """Infinite costs become finite ones that exceed the cost of all other edits together."""
    singles = [
        c for table in costs.values() for c in (table.values() if isinstance(table, dict) else (p[2] for p in table))
    ]
    finite = [c for c in singles if math.isfinite(c)]
    if len(finite) == len(singles):
        return costs
    parts = sum(len(g) + g.number_of_edges() for g in graphs)
    most = (max(finite, default=1.0) + 1.0) * (parts + 1)
    return {
        key: {k: min(c, most) for k, c in table.items()}
        if isinstance(table, dict)
        else [[a, b, min(c, most)] for a, b, c in table]
        for key, table in costs.items()
    }


_PAIR: dict[str, Any] = {"threads": 1, "ties": "any", "path": False}
# Most pairs are solved within these limits, on this thread. What Ctrl-C has to stop runs on another one, which takes as
# long to start as a small pair takes to solve.
_AT_ONCE: dict[str, Any] = {"expansions": 200, "seconds": 0.05}
# Calls without costs are the shortest: making these texts each time would be a tenth of one.
_PLAIN_PAIR = settings_text({**_PAIR, **_AT_ONCE})
_PLAIN_SET = {directed: settings_text({"directed": directed}) for directed in (False, True)}


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
    for name, graph in (("G1", G1), ("G2", G2)):
        if not hasattr(graph, "is_multigraph"):
            raise TypeError(f"{name} is {graph!r}, but must be a graph of networkx")
        _forget_conversion(graph)
    for name, number in (("upper_bound", upper_bound), ("timeout", timeout)):
        if number is not None and (not isinstance(number, numbers.Real) or math.isnan(number)):
            raise TypeError(f"{name} is {number!r}, but must be a number")
    if reason := _reason((G1, G2)):
        raise NotImplementedError(reason)
    if timeout is not None and timeout <= 0:
        from networkx import NetworkXError

        raise NetworkXError("Timeout value must be greater than 0")  # as networkx itself says
    of_nodes = (node_match, node_subst_cost, node_del_cost, node_ins_cost)
    of_edges = (edge_match, edge_subst_cost, edge_del_cost, edge_ins_cost)
    nodes = None if of_nodes.count(None) == len(of_nodes) else _Names()
    edges = None if of_edges.count(None) == len(of_edges) else _Names()
    rows = [_rows(G1, nodes, edges, False), _rows(G2, nodes, edges, True)]
    directed = bool(G1.is_directed())
    if directed != bool(G2.is_directed()):
        raise InvalidInputError("some graphs are directed and others are not")
    tables = {
        **_tables(nodes, "node", *of_nodes),
        **_tables(edges, "edge", *of_edges),
    }
    costs = _without_infinity(tables, (G1, G2)) if tables else None
    if tables:
        names = {"node_labels": nodes and nodes.names(), "edge_labels": edges and edges.names()}
        handle = handle_of(lib.gradloom_graphs_new, settings_text({"directed": directed, **names}))
    else:
        handle = handle_of(lib.gradloom_graphs_new, _PLAIN_SET[directed])
    try:
        for graph in rows:
            add_rows(handle, graph)
        return _solved(handle, costs, upper_bound, timeout)
    finally:
        close(handle)


def _solved(
    handle: int, costs: dict[str, Any] | None, upper_bound: float | None, timeout: float | None
) -> float | None:
    """The distance of the two graphs of a set; None when it is above `upper_bound`."""
    end = None if timeout is None else time.monotonic() + timeout
    short = timeout is not None and timeout < _AT_ONCE["seconds"]
    text = _PLAIN_PAIR
    if costs is not None or short:
        limits = {**_AT_ONCE, "seconds": timeout} if short else _AT_ONCE
        text = settings_text({**_PAIR, "costs": costs, **limits})
    found = json_of(lib.gradloom_ged_pair, handle, 0, 1, text, None)
    if not found["exact"] and not short:
        found = _searched(found, handle, costs, upper_bound, end)
    if upper_bound is not None and found["upper"] > upper_bound:
        return None
    return float(found["upper"])


def _searched(
    found: dict[str, Any], handle: int, costs: dict[str, Any] | None, upper_bound: float | None, end: float | None
) -> dict[str, Any]:
    """The result of a search until `end`, or until the distance is known to be above `upper_bound`. `found` is what is
    known before."""

    def asked(**more: Any) -> dict[str, Any]:
        left = None if end is None else max(end - time.monotonic(), 1e-6)
        text = settings_text({**_PAIR, "costs": costs, "seconds": left, **more})
        result: dict[str, Any] = LongCall().json_of(lib.gradloom_ged_pair, handle, 0, 1, text)
        return result

    # That a distance is above a bound is often known long before the distance is.
    if upper_bound is not None and math.isfinite(upper_bound):
        if found["lower"] > upper_bound:
            return found
        decided = asked(threshold=max(upper_bound, 0.0))
        if decided["within"] is False:
            return decided
    return asked()


def _forget_conversion(graph: Any) -> None:
    """networkx keeps what convert_from_nx() returned, and warns at the next call that it may be outdated. It is the
    graph itself."""
    if cache := getattr(graph, "__networkx_cache__", None):
        cache.get("backends", {}).pop("gradloom", None)


_SEVERAL_EDGES = "graphs with several edges between two nodes are not supported"
_LOOPS = "networkx counts the edits of self loops in another way; gradloom.ged.distance takes graphs that have some"


def _reason(graphs: Sequence[Any]) -> str | None:
    """Why the distance of these graphs is left to networkx."""
    if any(g.is_multigraph() for g in graphs):
        return _SEVERAL_EDGES
    if any(node in neighbours for g in graphs for node, neighbours in g.adjacency()):
        return _LOOPS
    return None


def _can_run_distance(*arguments: Any, **keywords: Any) -> bool | str:
    """True when the engine supports the call; otherwise the reason."""
    roots = arguments[10] if len(arguments) > 10 else keywords.get("roots")
    if roots is not None:
        return "roots are not supported"
    graphs = (*arguments[:2], keywords.get("G1"), keywords.get("G2"))
    return _reason([g for g in graphs if g is not None]) or True


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
        "functions": {"graph_edit_distance": {"additional_docs": "Exact branch and bound; no roots, no multigraphs, no self loops."}},
    }
