"""Whatever is passed: an exception that says something, never a crash."""

import math
import random
import subprocess
import sys
import tempfile
import types

import numpy as np
import pytest

import gradloom
from gradloom import KAN, Automaton, Circuit, ged
from gradloom.backend import graph_edit_distance
from gradloom.graph import GraphSet, as_graph, from_networkx, from_pyg, from_scipy
from gradloom.logic import Film

_WRONG = [
    None, True, -1, 0, 3, 1 << 70, 1.5, math.nan, math.inf, "", "text", b"bytes", "\0", [], [[]], [1, 2, 3], [[1.0, 2.0]],
    [[1.0], [2.0, 3.0]], {}, {"a": 1}, {"train_input": 3}, set(), object(), lambda: 0, (2, [(0, 1)]), (1, [(5, 6)]),
    np.zeros(0), np.zeros((0, 2)), np.zeros((3, 2)), np.zeros((3, 2), dtype=object), np.array([["a", "b"]]),
    np.full((3, 2), np.nan), np.full((3, 2), np.inf), np.zeros((2, 2, 2)), np.zeros((1, 1, 1, 1, 1)), np.zeros((3, 2), "f2"),
    np.zeros((3, 2), complex), np.zeros((4, 4), dtype="u8") + np.uint64(2**63), np.zeros(6)[::-2], np.eye(3) == 1,
    np.ma.masked_array(np.zeros((3, 2)), mask=np.ones((3, 2))), np.datetime64("2020"), np.zeros((3, 2), dtype="i8,f8"),
]  # fmt: skip


def _functions():
    """Every public function, and the methods of a fitted object of each class."""
    x = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    kan = KAN(width=[2, 1])
    kan.fit(x, x[:, 0], steps=1)
    life = Circuit.load("game-of-life")
    ca = Automaton(channels=1, kernels=1, perception=[8, 4, 2], update=[3, 2, 1], steps=1).fit(np.eye(4), epochs=1)
    paths = [(n, [(i, i + 1) for i in range(n - 1)]) for n in (3, 4, 5, 6)]
    graphs = gradloom.GraphClassifier(hidden=[4], epochs=1).fit(paths, [0, 0, 1, 1])
    nodes = gradloom.NodeClassifier(hidden=[4], epochs=1).fit(paths[3], [0, 0, 0, 1, 1, 1])
    path = types.SimpleNamespace(
        nodes={0: {}, 1: {}}, is_multigraph=lambda: False, is_directed=lambda: False, __iter__=None
    )
    try:
        import networkx

        path = networkx.path_graph(3)
    except ImportError:
        pass
    run = gradloom.train("kan-hello", {"epochs": 1, "stage": []}, tempfile.mkdtemp(dir=".") + "/run", verbose=False)
    formula = kan.formula(effort=1)
    functions = [
        graphs.predict, graphs.predict_proba, graphs.embed, graphs.score, nodes.predict, nodes.embed,
        lambda *a: gradloom.GraphClassifier(epochs=1).fit(*a), lambda *a: gradloom.GraphRegressor(epochs=1).fit(*a),
        lambda *a: gradloom.NodeClassifier(epochs=1).fit(*a), lambda *a: gradloom.GraphRegressor(epochs=1).fit(paths, *a),
        KAN, KAN.load, KAN.from_pykan, KAN.from_efficient_kan, kan.predict, kan.predict_proba, kan.measure, kan.refine,
        kan.save, kan.plot, kan.__call__, lambda *a: KAN(width=[2, 1]).fit(*a, steps=1),
        Circuit.load, Circuit.from_json, life.run, life.evaluate, life.export, life.animate,
        Automaton.load, lambda *a: Automaton(channels=1, perception=[8, 4, 2], update=[3, 2, 1], steps=1).fit(*a[:1], epochs=1),
        ca.predict, gradloom.load, gradloom.resume, gradloom.train, gradloom.recipe_keys, gradloom.create_dataset,
        kan.prune, kan.formula, kan.auto_symbolic, kan.export, kan.plot().save, life.export().save,
        lambda *a: kan.prune(**dict(zip(("threshold", "inputs", "worse"), a))), lambda *a: kan.fit(x, x[:, 0], steps=1, lr=a[0]),
        lambda *a: kan.fit(x, x[:, 0], steps=1, options=dict(zip(("model.grid", "epochs", "loss.kind"), a))), formula,
        lambda *a: graph_edit_distance(path, path, *a), lambda *a: graph_edit_distance(path, path, upper_bound=a[0]),
        lambda *a: graph_edit_distance(path, path, timeout=a[0]), lambda *a: graph_edit_distance(*(a + (path,))[:2]),
        from_networkx, from_pyg, from_scipy, lambda *a: from_networkx(path, *a), run.predict, run.predict_file, gradloom.Run,
        lambda *a: ged.distance(paths[0], paths[1], time=a[0]), lambda *a: ged.distance(paths[0], paths[1], threshold=a[0]),
        lambda *a: ged.distance(paths[0], paths[1], costs=ged.Costs(*a)), Film, lambda *a: Film(np.eye(3)[None], *a),
        Film(np.eye(3)[None]).save, ged.distance, ged.matrix, lambda *a: ged.search(*(a + (1, 1, 1))[:3]), GraphSet, as_graph,
    ]  # fmt: skip
    try:
        import sklearn  # noqa: F401

        reg = gradloom.KANRegressor(epochs=1, size="given").fit(x, x[:, 0])
        clf = gradloom.LogicClassifier(epochs=1, gates=[4]).fit(x, x[:, 0] > 0)
        functions += [
            reg.predict, reg.score, clf.predict, clf.predict_proba, clf.circuit_.evaluate,
            lambda *a: gradloom.KANRegressor(epochs=1, refine=a[0]).fit(x, x[:, 0]),
            lambda *a: gradloom.KANRegressor(epochs=1, options={"optimizer.lr": a[0]}).fit(x, x[:, 0]),
            lambda *a: gradloom.KANRegressor(epochs=1).fit(*a),
            lambda *a: gradloom.KANClassifier(epochs=1).fit(*a),
            lambda *a: gradloom.LogicClassifier(epochs=1, gates=[4]).fit(*a),
            lambda *a: gradloom.KANRegressor(*a).fit(x, x[:, 0]),
            lambda *a: gradloom.KANRegressor(epochs=1, size="given").fit(x, x[:, 0], eval_set=a),
        ]
    except ImportError:
        pass
    return functions


def throw_random_calls(seed, count):
    draw, functions, refused = random.Random(seed), _functions(), 0
    for _ in range(count):
        function = draw.choice(functions)
        arguments = [draw.choice(_WRONG) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
        try:
            function(*arguments)
        except Exception as error:
            assert str(error) or isinstance(error, (AssertionError, StopIteration)), (function, arguments)
            # What Python says of an attribute or an item that is missing names no argument.
            assert type(error) not in (AttributeError, KeyError, IndexError, RecursionError), (function, arguments, error)
            refused += 1
    return refused


@pytest.mark.parametrize("seed", range(3))
def test_random_wrong_calls_never_crash(seed, tmp_path):
    """In a process of its own: a crash is then a failure with a name."""
    code = f"import sys; sys.path.insert(0, {str(__file__).rsplit('/', 1)[0]!r}); import test_bad_input as t; print(t.throw_random_calls({seed}, 1500))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 1000


def test_messages_name_the_argument_and_its_value():
    x = np.zeros((4, 2))
    kan = KAN(width=[2, 1])
    for wrong, words in [
        ((x, np.zeros(3)), "y has 3 rows"),
        ((np.zeros((4, 3)), np.zeros(4)), "3 columns"),
        ((np.full((4, 2), np.nan), np.zeros(4)), "row 0, column 0"),
        ((x, np.array([0, 1, np.inf, 2])), "row 2"),
        ((np.zeros((0, 2)), np.zeros(0)), "0 rows"),
        ((np.array([["a", "b"]] * 4), np.zeros(4)), "<U1"),
        ((np.array([[None, 1]] * 4), np.zeros(4)), "row 0, column 0"),
        ((np.zeros(4), np.zeros(4)), "1 dimensions"),
    ]:
        with pytest.raises(ValueError, match=words):
            kan.fit(*wrong, steps=1)
    with pytest.raises(TypeError, match="width"):
        KAN(width=3)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        KAN(width=[0, 1])
    with pytest.raises(ValueError, match="grid"):
        KAN(width=[2, 1], grid=0).fit(x, np.zeros(4))
    with pytest.raises(ValueError, match="n_jobs"):
        KAN(width=[2, 1], n_jobs=-5).fit(x, np.zeros(4))
    with pytest.raises(ValueError, match="sgdd"):
        kan.fit(x, np.zeros(4), opt="sgdd")
    with pytest.raises(TypeError, match="options"):
        KAN(width=[2, 1], options=3)
    itself = {}
    itself["model"] = itself
    with pytest.raises(ValueError, match="options contains itself"):
        KAN(width=[2, 1], options=itself)
    for wrong, kind, words in [
        (math.nan, ValueError, "optimizer.lr is nan"),
        (set(), TypeError, r"optimizer.lr is set\(\)"),
        ([1, {2}], TypeError, r"optimizer.lr is \{2\}"),
    ]:
        with pytest.raises(kind, match=words):
            KAN(width=[2, 1], options={"optimizer.lr": wrong}).fit(x, np.zeros(4))
    with pytest.raises(ValueError, match=r"epochs.*1\.5"):
        kan.fit(x, np.zeros(4), steps=1.5)
    with pytest.raises(ArithmeticError, match=r"X has values up to 1\.18e\+21; scale"):
        KAN(width=[2, 1]).fit([[2**70, 1]] * 4, np.zeros(4), steps=3)
    for wrong in ([1], "1", True, math.nan, 0):
        with pytest.raises(ValueError, match="time is"):
            ged.distance((1, []), (1, []), time=wrong)


@pytest.mark.parametrize("convert", [from_networkx, from_pyg, from_scipy])
def test_what_is_no_graph_is_named(convert):
    with pytest.raises(TypeError, match="is 3, but must be a"):
        convert(3)


def test_a_number_is_no_path(capfd):
    kan = KAN(width=[2, 1])
    kan.fit(np.zeros((4, 2)), np.zeros(4), steps=1)
    life = Circuit.load("game-of-life")
    for save in (kan.plot().save, life.export().save, kan.export, kan.save, life.animate(np.eye(3), steps=1).save):
        with pytest.raises(TypeError, match="path is 1, but must be a path"):
            save(1)
    print("still open")
    assert "still open" in capfd.readouterr().out
