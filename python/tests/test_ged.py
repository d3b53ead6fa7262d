"""Edit distances: against networkx where that is installed, and as a backend of it."""

import copy
import inspect
import math
import os
import pickle
import random
import re
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from gradloom import ged
from gradloom.backend import backend, graph_edit_distance
from gradloom.errors import InvalidInputError

nx = pytest.importorskip("networkx", reason="networkx is not installed")


def random_graph(n, seed, labels="CNO"):
    draw = random.Random(seed)
    graph = nx.gnp_random_graph(n, 0.35, seed=seed)
    for node in graph:
        graph.nodes[node]["el"] = draw.choice(labels)
    for edge in graph.edges:
        graph.edges[edge]["bond"] = draw.choice("12")
    return graph


def same(key):
    return lambda a, b: a[key] == b[key]


@pytest.mark.parametrize("seed", range(6))
def test_distances_are_those_of_networkx(seed):
    G, H = random_graph(5, seed), random_graph(5, seed + 100)
    expected = nx.graph_edit_distance(G, H, node_match=same("el"), edge_match=same("bond"))
    found = ged.distance(G, H, node_label="el", edge_label="bond")
    assert found.exact and found.upper == expected == float(found)
    assert sum(edit["cost"] for edit in found.path) == expected
    assert ged.distance(G, H, costs=ged.Costs(labels=False)).upper == nx.graph_edit_distance(G, H)


@pytest.mark.parametrize("seed", range(6))
def test_a_threshold_is_judged_as_the_distance_is(seed):
    G, H = random_graph(7, seed), random_graph(6, seed + 100)
    exact = ged.distance(G, H, node_label="el").upper
    for threshold in (0, exact - 1, exact - 0.5, exact, exact + 0.5, exact + 3):
        if threshold >= 0:
            found = ged.distance(G, H, node_label="el", threshold=threshold)
            assert found.within is (exact <= threshold)
            assert found.lower <= exact <= found.upper


def test_a_matrix_is_symmetric_and_knows_what_is_exact():
    graphs = [random_graph(4 + i % 3, i) for i in range(8)]
    matrix = ged.matrix(graphs, node_label="el", n_jobs=2)
    assert matrix.shape == (8, 8) and matrix.exact.all() and np.array_equal(matrix, matrix.T)
    assert matrix[3, 5] == ged.distance(graphs[3], graphs[5], node_label="el").upper
    limited = ged.matrix([random_graph(14, i) for i in range(3)], expand=1)
    assert (limited.lower <= limited).all() and not limited.exact.all()


def test_parts_copies_and_pickles_of_a_matrix_know_what_is_exact():
    # Distances among small graphs are proved, those to large ones are not.
    graphs = [random_graph(n, n) for n in (4, 5, 14, 15)]
    matrix = ged.matrix(graphs, expand=1)
    lower, upper, exact = np.array(matrix.lower), np.array(matrix), np.array(matrix.exact)
    assert exact.any() and not exact.all()
    for key in (0, slice(1, 3), (slice(None), 2), [0, 2], np.s_[1:, ::-1], upper > 2, np.s_[..., None]):
        part = matrix[key]
        assert np.array_equal(part, upper[key]) and np.array_equal(part.lower, lower[key])
        assert np.array_equal(part.exact, exact[key])
    assert isinstance(matrix[0, 1], float)
    for same in (pickle.loads(pickle.dumps(matrix)), copy.copy(matrix), copy.deepcopy(matrix), matrix.copy(), matrix.T.T):
        assert np.array_equal(same, upper) and np.array_equal(same.exact, exact)
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    joblib.dump(matrix, "matrix.joblib")
    assert np.array_equal(joblib.load("matrix.joblib").exact, exact)
    for made in (matrix + 1, -matrix, matrix == matrix, np.exp(-matrix), matrix.sum(axis=0)):
        assert type(made) is np.ndarray
    assert matrix.mean() == upper.mean()
    with pytest.raises(AttributeError, match="reshaped"):
        assert matrix.reshape(-1).exact.any()


def test_a_search_finds_what_the_matrix_says():
    graphs = [random_graph(4 + i % 3, i) for i in range(12)]
    matrix = ged.matrix(graphs, node_label="el")
    for threshold in (2, 4, 6):
        found = {f.graph: f.upper for f in ged.search(graphs[0], graphs, threshold, node_label="el")}
        assert found == {i: matrix[0, i] for i in range(12) if matrix[0, i] <= threshold}


def test_names_of_nodes_come_back():
    G, H = nx.Graph([("a", "b"), ("b", "c")]), nx.Graph([("x", "y")])
    found = ged.distance(G, H)
    assert set(found.mapping) == {"a", "b", "c"} and set(found.mapping.values()) <= {"x", "y", None}


def test_limits_give_a_bracket():
    G, H = random_graph(30, 1), random_graph(30, 2)
    found = ged.distance(G, H, expand=5)
    assert not found.exact and found.lower < found.upper
    with pytest.raises(InvalidInputError, match="limit"):
        float(found)


def test_wrong_calls_are_refused():
    G = nx.path_graph(3)
    with pytest.raises(InvalidInputError, match="'el'"):
        ged.distance(G, G, node_label="el")
    with pytest.raises(InvalidInputError, match="directed"):
        ged.distance(G, nx.DiGraph(G))
    assert ged.distance(nx.MultiGraph(G), G).upper == 0.0
    with pytest.raises(InvalidInputError, match="2 edges join the nodes 0 and 1"):
        ged.distance(nx.MultiGraph([(0, 1), (1, 0)]), G)
    with pytest.raises(TypeError, match="not a graph"):
        ged.distance(G, "graph")
    with pytest.raises(InvalidInputError, match="time"):
        ged.distance(G, G, time=-1)
    with pytest.raises(InvalidInputError, match="threshold"):
        ged.distance(G, G, threshold=-1)
    with pytest.raises(ValueError):
        ged.distance(G, G, costs=ged.Costs(node_sub=-1))
    with pytest.raises(ValueError):
        ged.distance(G, G, threshold=math.nan)


new = pytest.mark.skipif(
    tuple(int(n) for n in nx.__version__.split(".")[:2]) < (3, 2), reason="networkx has backends from 3.2 on"
)


@new
@pytest.mark.parametrize("seed", range(4))
def test_the_backend_is_networkx_with_another_engine(seed):
    G, H = random_graph(5, seed), random_graph(4, seed + 9)
    calls = [
        {},
        {"node_match": same("el")},
        {"node_match": same("el"), "edge_match": same("bond")},
        {"node_subst_cost": lambda a, b: 0.3 * abs(ord(a["el"]) - ord(b["el"])), "node_del_cost": lambda a: 0.7},
        {"edge_subst_cost": lambda a, b: a["bond"] != b["bond"], "edge_ins_cost": lambda b: 0.4 * int(b["bond"])},
        {"node_subst_cost": lambda a, b: 0 if a == b else math.inf},
        {"upper_bound": 2.0},
    ]
    for keywords in calls:
        expected = nx.graph_edit_distance(G, H, **keywords)
        found = nx.graph_edit_distance(G, H, **keywords, backend="gradloom")
        assert found == expected or found == pytest.approx(expected, abs=1e-6), keywords


@new
def test_callables_are_called_once_for_each_distinct_pair():
    G, H, asked = nx.complete_graph(6), nx.complete_graph(7), []
    for graph in (G, H):
        for node in graph:
            graph.nodes[node]["kind"] = node % 2

    def match(a, b):
        asked.append((a["kind"], b["kind"]))
        return a == b

    nx.graph_edit_distance(G, H, node_match=match, backend="gradloom")
    assert len(asked) == len(set(asked)) == 4


@new
def test_graphs_are_read_at_every_call():
    # networkx keeps what a backend made of a graph, does not see a change of attributes, and warns of that.
    G, H = random_graph(5, 1), random_graph(5, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for distance in range(4):
            assert nx.graph_edit_distance(G, H, node_match=same("el"), backend="gradloom") == distance
            G.nodes[distance]["el"] = "another"


def test_attributes_may_be_arrays_and_lists():
    G, H = nx.path_graph(4), nx.cycle_graph(4)
    for graph in (G, H):
        for node in graph:
            graph.nodes[node]["at"] = np.array([node / 2, 1.0])
        for edge in graph.edges:
            graph.edges[edge]["ends"] = list(edge)
    costs = {
        "node_subst_cost": lambda a, b: float(np.abs(a["at"] - b["at"]).sum()),
        "edge_match": lambda a, b: a["ends"] == b["ends"],
    }
    assert graph_edit_distance(G, H, **costs) == nx.graph_edit_distance(G, H, **costs) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        ged.matrix,
        lambda graphs: ged.distance(*graphs[:2]),
        lambda graphs: ged.distance(*graphs[:2], solver="best-first"),
        lambda graphs: ged.search(graphs[0], graphs, threshold=40),
        lambda graphs: graph_edit_distance(*graphs[:2]),
        lambda graphs: graph_edit_distance(*graphs[:2], node_match=lambda a, b: True, timeout=1000, upper_bound=100),
        lambda _: ged.distance(nx.gnp_random_graph(1500, 0.01, seed=1), nx.gnp_random_graph(1500, 0.01, seed=2)),
    ],
)
def test_ctrl_c_ends_a_search(call):
    # Regular graphs without labels: proving one such distance takes minutes.
    graphs = [nx.random_regular_graph(4, 30, seed=seed) for seed in range(12)]
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call(graphs)
    assert time.monotonic() - begin < 60


def test_ctrl_c_inside_a_finalizer_is_not_lost(monkeypatch):
    # Python swallows what is raised in a finalizer, so a handler that raises is not heard there.
    class Finalized:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    class Event(threading.Event):
        waits = 0

        def wait(self, timeout=None):
            if timeout == 0.1:
                Event.waits += 1
                if Event.waits == 2:
                    Finalized()
            return super().wait(timeout)

    graphs = [nx.random_regular_graph(4, 30, seed=seed) for seed in range(2)]
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(threading, "Event", Event)
    with pytest.raises(KeyboardInterrupt):
        ged.distance(*graphs, time=20)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_upper_bound_is_judged_before_the_distance_is_known():
    # Their distance takes hours; that it is above 3 is seen at once.
    G, H = (nx.random_regular_graph(4, 30, seed=seed) for seed in (1, 2))
    begin = time.monotonic()
    assert graph_edit_distance(G, H, upper_bound=3) is None
    assert graph_edit_distance(G, G, upper_bound=0) == 0
    assert graph_edit_distance(G, G, upper_bound=-1) is None
    assert time.monotonic() - begin < 30
    for seed in range(4):
        G, H = random_graph(7, seed), random_graph(7, seed + 50)
        exact = ged.distance(G, H, costs=ged.Costs(labels=False)).upper
        for bound, expected in ((exact, exact), (exact - 1, None), (math.inf, exact)):
            assert graph_edit_distance(G, H, upper_bound=bound) == expected


def test_a_callback_ends_a_matrix_which_has_bounds_then():
    graphs = [random_graph(7, seed) for seed in range(30)]
    exact = ged.matrix(graphs)
    lines = []
    bounds = ged.matrix(graphs, callback=lambda line: lines.append(line) or True)
    assert exact.exact.all() and len(lines) == 1
    assert not bounds.exact.all()
    assert (bounds.lower <= exact).all() and (bounds >= exact).all()


def test_what_the_backend_does_not_do_it_refuses():
    G = nx.path_graph(3)
    assert backend.can_run("graph_edit_distance", (G, G), {}) is True
    assert backend.can_run("graph_edit_distance", (G, G), {"roots": (0, 0)}) is not True
    assert backend.can_run("graph_edit_distance", (nx.MultiGraph(G), G), {}) is not True
    loop = nx.Graph([(0, 1), (1, 2), (2, 2)])
    assert "self loops" in backend.can_run("graph_edit_distance", (G,), {"G2": loop})
    with pytest.raises(NotImplementedError, match="self loops"):
        graph_edit_distance(G, loop)
    # An edge less, the loop, is one edit, whatever networkx says.
    assert ged.distance(G, loop).upper == 1
    assert backend.can_run("shortest_path", (G,), {}) is False
    with pytest.raises(nx.NetworkXError, match="imeout"):
        graph_edit_distance(G, G, timeout=-1)


@new
def test_the_tests_of_networkx_pass_through_the_backend():
    """Those of graph_edit_distance in networkx's own file; others of that file are of other functions."""
    from networkx.algorithms.tests import test_similarity

    case = test_similarity.TestSimilarity()
    ran, before = 0, test_similarity.graph_edit_distance
    test_similarity.TestSimilarity.setup_class()

    def through(*arguments, roots=None, **keywords):
        if backend.can_run("graph_edit_distance", arguments, {"roots": roots}) is not True:
            return before(*arguments, roots=roots, **keywords)
        return graph_edit_distance(*arguments, **keywords)

    test_similarity.graph_edit_distance = through
    try:
        for name in dir(case):
            method = getattr(case, name)
            if name.startswith("test") and re.search(r"[^_]graph_edit_distance\(", inspect.getsource(method)):
                method()
                ran += 1
    finally:
        test_similarity.graph_edit_distance = before
    assert ran >= 10


def test_attributes_that_costs_of_labels_do_not_see_are_named():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, "C", "atom")
    with pytest.warns(UserWarning, match="node_label='atom'"):
        ged.distance(graph, graph, costs=ged.Costs(labels=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ged.distance(graph, graph, costs=ged.Costs(labels=True), node_label="atom")
        ged.distance(graph, graph, costs=ged.Costs(labels=False))
        ged.distance(graph, graph)
