"""Graphs in many forms, and classifiers of graphs and nodes."""

import types
import warnings

import numpy as np
import pytest

from gradloom import GraphClassifier, GraphRegressor, NodeClassifier, load
from gradloom.errors import InvalidInputError, NotFittedError, UnsupportedError
from gradloom.graph import GraphSet, as_graph, from_pyg, from_scipy

nx = pytest.importorskip("networkx", reason="networkx is not installed")


def cycles_and_stars():
    graphs = [nx.cycle_graph(n) for n in range(4, 14)] + [nx.star_graph(n) for n in range(4, 14)]
    return graphs, ["cycle"] * 10 + ["star"] * 10


def test_a_mask_of_no_node_and_one_graph_instead_of_a_list_are_refused():
    graph = nx.path_graph(6)
    with pytest.raises(InvalidInputError, match="train_mask selects no node"):
        NodeClassifier(epochs=2).fit(graph, list("ababab"), train_mask=np.zeros(6, bool))
    graphs, classes = cycles_and_stars()
    model = GraphClassifier(epochs=2, random_state=0).fit(graphs, classes)
    with pytest.raises(TypeError, match="pass a list of graphs"):
        model.predict(graphs[0])


def test_labels_and_features_of_nodes_are_both_used():
    graphs, classes = [], []
    random = np.random.default_rng(8000)
    for i in range(40):
        graph = nx.path_graph(4)
        for v in graph:
            graph.nodes[v]["atom"] = "N" if v == 0 and i % 2 else "C"
            graph.nodes[v]["charge"] = float(random.normal())
        graphs.append(graph)
        classes.append(i % 2)
    model = GraphClassifier(node_label="atom", features="charge", epochs=100, lr=0.01, random_state=0)
    assert model.fit(graphs, classes).score(graphs, classes) == 1
    assert model.model_.features == ["x1", "label=C", "label=N"]
    graphs[0].nodes[0]["atom"] = "Fe"
    with pytest.raises(InvalidInputError, match="'Fe'"):
        model.predict(graphs)


def test_every_form_of_a_graph_is_the_same_graph():
    from gradloom import ged

    graph = nx.cycle_graph(5)
    matrix = nx.to_numpy_array(graph)
    pairs = np.array(graph.edges).T
    pyg = types.SimpleNamespace(edge_index=np.concatenate([pairs, pairs[::-1]], axis=1), num_nodes=5, x=None, y=None)
    forms = [graph, matrix, pyg, (5, list(graph.edges))]
    scipy_sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")
    forms.append(scipy_sparse.csr_matrix(matrix))
    for form in forms:
        assert ged.distance(graph, form).upper == 0.0
    assert from_scipy(scipy_sparse.csr_matrix(matrix), weighted=True).edge_weights.shape == (10,)


def test_graphs_are_classified_and_new_ones_too():
    graphs, kinds = cycles_and_stars()
    net = GraphClassifier(layer="gin", hidden=[16, 16], epochs=60, random_state=0).fit(graphs, kinds)
    assert net.score(graphs, kinds) == 1.0
    assert net.predict([nx.cycle_graph(20), nx.star_graph(20)]).tolist() == ["cycle", "star"]
    assert np.allclose(net.predict_proba(graphs).sum(axis=1), 1)
    net.model_.save("net.safetensors")
    again = load("net.safetensors")
    assert again.predict(graphs).tolist() == net.predict(graphs).tolist()


def test_threads_change_no_bit():
    graphs, kinds = cycles_and_stars()
    models = [GraphClassifier(epochs=3, n_jobs=n).fit(graphs, kinds).model_ for n in (1, 3)]
    assert models[0].to_bytes() == models[1].to_bytes()


def test_labels_and_features_of_nodes_are_read():
    graphs, kinds = cycles_and_stars()
    for graph, kind in zip(graphs, kinds):
        for node in graph:
            graph.nodes[node]["el"] = "C" if kind == "star" else "N"
            graph.nodes[node]["size"] = [1.0, float(kind == "star")]
    for keys in ({"node_label": "el"}, {"features": "size"}):
        net = GraphClassifier(hidden=[8], epochs=30, random_state=0, **keys).fit(graphs, kinds)
        assert net.score(graphs, kinds) == 1.0
    with pytest.raises(InvalidInputError, match="'el'"):
        GraphClassifier(node_label="el").fit([nx.path_graph(3), *graphs], ["cycle", *kinds])


def test_numbers_of_graphs_are_learned():
    graphs, _ = cycles_and_stars()
    y = np.array([g.number_of_nodes() for g in graphs], dtype=float)
    net = GraphRegressor(layer="gin", hidden=[16], epochs=100, lr=0.01, random_state=0).fit(graphs, y)
    assert np.corrcoef(net.predict(graphs), y)[0, 1] > 0.9


def test_nodes_of_the_karate_club():
    club = nx.karate_club_graph()
    sides = np.array([club.nodes[n]["club"] for n in club])
    known = np.isin(np.arange(34), (0, 33))
    net = NodeClassifier(hidden=[16], random_state=0, options={"data.features": "identity"}).fit(club, sides, known)
    assert (net.predict(club) == sides).mean() > 0.85
    partly = [side if is_known else None for side, is_known in zip(sides.tolist(), known)]
    same = NodeClassifier(hidden=[16], random_state=0, options={"data.features": "identity"}).fit(club, partly)
    assert (same.predict(club) == sides).mean() > 0.85


def test_data_of_pyg_has_features_classes_and_masks():
    club = nx.karate_club_graph()
    pairs = np.array(club.edges).T
    sides = np.array([int(club.nodes[n]["club"] == "Officer") for n in club])
    mask = np.isin(np.arange(34), (0, 1, 32, 33))
    data = types.SimpleNamespace(
        x=np.eye(34, dtype=np.float32), edge_index=np.concatenate([pairs, pairs[::-1]], 1), y=sides, train_mask=mask
    )
    graph = from_pyg(data)
    assert graph.node_parts.sum() == 4 and graph.node_features.shape == (34, 34)
    net = NodeClassifier(hidden=[16], random_state=0).fit(data)
    assert (net.predict(data).astype(int) == sides).mean() > 0.85


def _wheel(spoke):
    """A ring, and a middle whose edges have this weight, in both directions."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    pairs = np.array(ring + [(i, 5) for i in range(5)])
    weight = np.where(pairs[:, 1] == 5, float(spoke), 1.0)
    return np.concatenate([pairs, pairs[:, ::-1]]).T, np.concatenate([weight, weight])


def _pyg(spoke, **more):
    edge_index, weight = _wheel(spoke)
    return types.SimpleNamespace(x=None, num_nodes=6, edge_index=edge_index, y=np.array([spoke > 1]), **more), weight


def test_weights_of_edges_are_read_from_every_form():
    sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")

    def array(edge_index, weight):
        return np.asarray(sparse.coo_matrix((weight, edge_index), shape=(6, 6)).todense())

    def networkx(edge_index, weight):
        graph = nx.Graph()
        graph.add_nodes_from(range(6))
        graph.add_weighted_edges_from((*pair, w) for pair, w in zip(edge_index.T.tolist(), weight.tolist()))
        return graph

    forms = {
        "edge_weight": lambda spoke: _pyg(spoke, edge_weight=_wheel(spoke)[1])[0],
        "edge_attr": lambda spoke: _pyg(spoke, edge_attr=_wheel(spoke)[1][:, None])[0],
        "scipy": lambda spoke: sparse.csr_matrix(array(*_wheel(spoke))),
        "array": lambda spoke: array(*_wheel(spoke)),
        "networkx": lambda spoke: networkx(*_wheel(spoke)),
    }
    probabilities = {}
    for name, form in forms.items():
        graphs = [form(spoke) for spoke in (1, 1, 4, 4, 1, 4)]
        keys = {"edge_weight": "weight"} if name == "networkx" else {}
        net = GraphClassifier(hidden=[8], epochs=20, lr=0.05, random_state=0, **keys).fit(graphs, [0, 0, 1, 1, 0, 1])
        assert net.score(graphs, [0, 0, 1, 1, 0, 1]) == 1.0
        probabilities[name] = net.predict_proba([form(1)])  # all weights are 1
    for name, found in probabilities.items():
        assert np.allclose(found, probabilities["networkx"], atol=1e-5), name
    with pytest.warns(UserWarning, match="edge_attr has 3 columns"):
        assert from_pyg(_pyg(1, edge_attr=np.zeros((20, 3)))[0]).edge_weights is None
    with pytest.raises(InvalidInputError, match="edge_weight has 3 rows for 20 edges"):
        from_pyg(_pyg(1, edge_weight=np.ones(3))[0])


def test_names_of_attributes_are_of_networkx_alone():
    graphs = [_pyg(spoke)[0] for spoke in (1, 4)]
    for keys in ({"edge_weight": "edge_weight"}, {"node_label": "atom"}, {"features": "x"}, {"edge_label": "bond"}):
        with pytest.raises(InvalidInputError, match=f"{next(iter(keys))}: only graphs of networkx"):
            GraphClassifier(epochs=1, **keys).fit(graphs, [0, 1])
    with pytest.raises(InvalidInputError, match="node_label"):
        NodeClassifier(epochs=1, node_label="atom").fit((3, [(0, 1)]), [0, 1, 0])


def test_graphs_of_pyg_have_their_own_targets():
    graphs = [_pyg(spoke, edge_weight=_wheel(spoke)[1])[0] for spoke in (1, 4, 1, 4)]
    assert GraphClassifier(epochs=2).fit(graphs).classes_.tolist() == [False, True]
    assert GraphRegressor(epochs=2).fit(graphs).predict(graphs).shape == (4,)
    with pytest.raises(TypeError, match="y is missing: graph 0"):
        GraphClassifier(epochs=2).fit([nx.path_graph(3), nx.path_graph(4)])
    graphs[1].y = np.zeros((1, 2))
    with pytest.raises(InvalidInputError, match="y of graph 1 has 2 values"):
        GraphRegressor(epochs=2).fit(graphs)


def test_embeddings_are_what_the_head_sees():
    graphs, kinds = cycles_and_stars()
    net = GraphClassifier(layer="gin", hidden=[16, 12], epochs=20, random_state=0).fit(graphs, kinds)
    rows = net.embed(graphs)
    assert rows.shape == (20, 12)
    net.model_.save("net.safetensors")
    # The head is a dense layer: logits of two classes are linear in the embedding.
    odds = np.log(net.predict_proba(graphs))
    odds = odds[:, 1] - odds[:, 0]
    design = np.column_stack([rows, np.ones(20)])
    fitted = design @ np.linalg.lstsq(design, odds, rcond=None)[0]
    assert np.abs(fitted - odds).max() < 1e-3 * np.abs(odds).max()
    assert np.array_equal(load("net.safetensors").embed(graphs), rows)
    concat = GraphClassifier(hidden=[8, 4], epochs=2, options={"model.jumping": "concat"}).fit(graphs, kinds)
    assert concat.embed(graphs[:3]).shape == (3, 12)


def test_embeddings_of_nodes_stand_in_the_order_of_nodes():
    club = nx.karate_club_graph()
    sides = [club.nodes[n]["club"] for n in club]
    net = NodeClassifier(hidden=[16], random_state=0, epochs=50, options={"data.features": "degrees"}).fit(club, sides)
    rows = net.embed(club)
    assert rows.shape == (34, 16)
    moved = list(reversed(list(club)))  # the same graph, nodes in another order
    other = nx.Graph()
    other.add_nodes_from(moved)
    other.add_edges_from(club.edges)
    assert np.allclose(net.embed(other), rows[moved], atol=1e-5)
    with pytest.raises(UnsupportedError, match="no hidden layer"):
        NodeClassifier(hidden=[], epochs=2).fit(club, sides).embed(club)


def test_several_edges_between_two_nodes_are_refused_by_name():
    graph = nx.MultiGraph([(0, 1), (1, 2)])
    assert as_graph(graph).edges.tolist() == [[0, 1], [1, 2]]
    graph.add_edge("a", "b")
    graph.add_edge("a", "b")
    with pytest.raises(InvalidInputError, match="2 edges join the nodes 'a' and 'b'"):
        as_graph(graph)
    with pytest.raises(InvalidInputError, match="0 - 1 occurs twice"):
        GraphSet([(2, [(0, 1), (0, 1)])])


def test_fitting_changes_no_parameter():
    graphs, _ = cycles_and_stars()
    net = GraphRegressor(epochs=1)
    before = net.get_params()
    net.fit(graphs, [float(len(g)) for g in graphs])
    assert net.get_params() == before


def test_wrong_calls_are_refused():
    graphs, kinds = cycles_and_stars()
    with pytest.raises(NotFittedError):
        GraphClassifier().predict(graphs)
    with pytest.raises(InvalidInputError, match="20 graphs"):
        GraphClassifier().fit(graphs, kinds[:3])
    with pytest.raises(InvalidInputError, match="nothing to learn"):
        GraphClassifier().fit(graphs, ["one"] * 20)
    with pytest.raises(TypeError):
        GraphSet([3])
    with pytest.raises(InvalidInputError, match="graph 0"):
        GraphSet([(2, [(0, 7)])])
    with pytest.raises(ValueError, match="layer"):
        GraphClassifier(layer="no-such").fit(graphs, kinds)
    with pytest.raises(InvalidInputError):
        as_graph(types.SimpleNamespace(edge_index=np.zeros((3, 2))))


def test_numbers_with_an_offset_are_predicted_with_it():
    graphs = [nx.path_graph(n) for n in range(3, 13)] * 4
    y = np.array([1e9 + graph.number_of_nodes() / 8 for graph in graphs])
    model = GraphRegressor(hidden=[8], epochs=80, random_state=0).fit(graphs, y)
    assert np.abs(model.predict(graphs) - y).max() < 1  # float32 has steps of 64 there


def _people(seed, nodes=200):
    """Nodes with quantities of different sizes; the class follows from the smaller one."""
    random = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(nodes, nodes // 4, seed=seed)
    for v in graph:
        graph.nodes[v]["income"] = float(random.normal(30000, 9000))
        graph.nodes[v]["meetings"] = float(random.normal(0, 1))
    return graph, np.array(["often" if graph.nodes[v]["meetings"] > 0 else "rarely" for v in graph])


def test_features_that_are_quantities_are_standardised_unless_the_caller_says_otherwise():
    graph, kinds = _people(1)
    keys = {"features": ["income", "meetings"], "layer": "sage-mean", "hidden": [16], "epochs": 100, "random_state": 0}
    net = NodeClassifier(**keys).fit(graph, kinds)
    assert net.model_.options["data"]["standardise"] is True
    assert (net.predict(graph) == kinds).mean() > 0.9
    new, new_kinds = _people(2)
    assert (net.predict(new) == new_kinds).mean() > 0.8
    net.model_.save("net.safetensors")
    keys_of_new = {"features": ["income", "meetings"]}
    assert np.array_equal(load("net.safetensors").embed(new, **keys_of_new), net.embed(new))
    for options in ({"data.standardise": False}, {"data": {"standardise": False}}):
        raw = NodeClassifier(**keys, options=options).fit(graph, kinds)
        assert raw.model_.options["data"]["standardise"] is False
        assert (raw.predict(graph) == kinds).mean() < 0.8


@pytest.mark.parametrize("kind", [GraphClassifier, GraphRegressor])
def test_features_of_many_graphs_are_standardised(kind):
    graphs = [_people(seed, nodes=6)[0] for seed in range(12)]
    net = kind(features=["income", "meetings"], epochs=1, random_state=0).fit(graphs, [i % 2 for i in range(12)])
    assert net.model_.options["data"]["standardise"] is True


@pytest.mark.filterwarnings("error")
def test_features_that_are_no_quantities_stay_as_they_are():
    def standardised(x, **keys):
        pairs = np.array(nx.cycle_graph(12).edges).T
        y = np.arange(12) % 2
        data = types.SimpleNamespace(x=x, num_nodes=12, edge_index=np.concatenate([pairs, pairs[::-1]], 1), y=y)
        net = NodeClassifier(epochs=2, random_state=0, **keys).fit(data)
        assert net.predict_proba(data).shape == (12, 2) and net.embed(data).shape[0] == 12
        return net.model_.options["data"]["standardise"], net.model_.description["warnings"]

    words = (np.random.default_rng(0).random((12, 8)) < 0.3).astype(np.float32)
    words[:, 0] = 1
    quantities = np.random.default_rng(0).normal(size=(12, 2))
    assert standardised(None) == (False, [])
    assert standardised(np.eye(12)) == (False, [])
    assert standardised(words) == (False, [])
    assert standardised(words / words.sum(axis=1, keepdims=True)) == (False, [])
    assert standardised(0.5 + words / 9) == (True, [])
    assert standardised(np.column_stack([words, quantities])) == (True, [])
    assert standardised(quantities, options={"data.normalise_rows": True})[0] is False
    for features in ("identity", "degrees", "constant"):
        assert standardised(quantities, options={"data.features": features}) == (False, [])
    graphs, kinds = cycles_and_stars()
    for graph in graphs:
        nx.set_node_attributes(graph, "C", "el")
    net = GraphClassifier(node_label="el", epochs=1, random_state=0).fit(graphs, kinds)
    assert net.model_.options["data"]["standardise"] is False


def test_a_node_classifier_warns_once_of_numeric_attributes_that_it_does_not_use():
    def warned(y, train_mask=None, **keys):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            net = NodeClassifier(epochs=1, random_state=0, **keys).fit(graph, y, train_mask)
            net.predict(graph)
        assert all(w.category is UserWarning and w.filename == __file__ for w in caught)
        return [str(w.message) for w in caught]

    graph = nx.path_graph(8)
    ages = [40.0, 20, 40, 31, 22, 40, 20, 7]
    for v in graph:
        more = {"name": str(v), "known": v < 6, "split": v % 3, "class": v % 2, "group": v % 2, "train": int(v < 6)}
        graph.nodes[v].update(age=ages[v], meetings=v % 4, place=[0.5, v], **more)
    graph.nodes[3]["gaps"] = 1.0
    groups = ["ab"[v % 2] for v in graph]
    text = "the nodes have attributes (age, meetings, place) that are not used: features=['age', 'meetings', 'place'] uses"
    assert warned(groups, np.arange(8) < 6) == [text + " them"]
    partly = [None, *groups[1:]]
    assert warned(partly, np.arange(8) < 6) == [text + " them"]
    assert "(age, meetings, place" in warned(["a", *[None] * 6, "b"])[0]  # ages of these two nodes differ as classes do
    (of_labels,) = warned(groups, np.arange(8) < 6, node_label="meetings")
    assert "(age, place)" in of_labels
    for keys in (
        {"features": ["age", "meetings", "place"]},
        {"features": "age"},
        {"features": []},
        {"options": {"data.features": "identity"}},
    ):
        assert warned(groups, **keys) == []
    graph = nx.path_graph(8)
    nx.set_node_attributes(graph, {v: str(v) for v in graph}, "name")
    assert warned(groups) == []
