"""Spline networks are scored, pruned, turned into formulas and exported."""

import math
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from gradloom import KAN, KANRegressor
from gradloom.errors import InvalidInputError


def rows(n=400, columns=3):
    x = np.random.default_rng(1).uniform(1, 3, (n, columns))
    return x, x[:, 0] * x[:, 1] / 2


@pytest.fixture
def fitted():
    model = KAN(width=[3, 3, 1], grid=4, seed=0, precision="float64", options={"model.normalise": "range"})
    model.fit(*rows(), opt="LBFGS", steps=25)
    return model


def test_a_formula_is_fitted_saved_and_loaded(fitted, tmp_path):
    from gradloom.formulas import Formula

    f = fitted.formula()
    x, y = rows()
    other = f.fit(x, 3.7 * y)
    assert other.status == "fitted" and f.status == "exact"
    assert np.allclose(other(x), 3.7 * y, atol=1e-9)
    assert f.fit(x, y).text == f.text
    other.save(tmp_path / "f.json")
    again = Formula.load(tmp_path / "f.json")
    assert again.text == other.text and np.array_equal(again(x), other(x))
    with pytest.raises(InvalidInputError, match="2 inputs|3 inputs"):
        f.fit(x[:, :2], y)
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(InvalidInputError, match="contains no formula"):
        Formula.load(tmp_path / "no.json")


def test_a_network_that_predicts_classes_has_scores():
    pytest.importorskip("sklearn")
    from gradloom import KANClassifier

    x, _ = rows(200)
    model = KANClassifier().fit(x, np.where(x[:, 0] > 2, "a", "b"))
    scores = {column["name"]: column["score"] for column in model.kan_.scores["columns"]}
    assert max(scores, key=scores.get) == "x1"


def test_the_formula_behind_the_rows_is_found(fitted):
    f = fitted.formula()
    assert f.status == "exact"
    assert f.rmse < 1e-12
    x, y = rows()
    assert np.allclose(f(x), y, atol=1e-12)
    sympy = pytest.importorskip("sympy")
    x1, x2 = sympy.symbols("x1 x2")
    assert sympy.simplify(f.sympy - x1 * x2 / 2) == 0
    assert "x1" in f.text and f._repr_latex_().startswith("$")


def test_ctrl_c_ends_a_search():
    x = np.random.default_rng(2).uniform(0.5, 1.5, (400, 4))
    y = np.array([math.gamma(v) for v in x[:, 0] * x[:, 1]]) * np.sin(9 * x[:, 2] * x[:, 3])  # out of its reach
    model = KAN(width=[4, 3, 1], seed=0)
    model.fit(x, y, steps=2)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.formula(effort=1e9)
    assert time.monotonic() - begin < 60


def test_a_network_without_rows_is_approximated_and_its_copies_keep_no_rows(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy._rows is None
    f = copy.formula()
    assert f.status == "approximate"
    assert f.edges and "no data" in f.note
    with pytest.raises(InvalidInputError, match="rows"):
        copy.prune()


def test_scores_add_up_and_name_their_inputs(fitted):
    scores = fitted.scores
    assert [i["name"] for i in scores["inputs"]] == ["x1", "x2", "x3"]
    assert sum(i["score"] for i in scores["inputs"]) == pytest.approx(1)
    assert scores["inputs"][2]["score"] < 0.01
    assert len(scores["edges"]) == 12 and len(scores["nodes"][0]) == 3


def test_a_column_of_categories_has_one_score():
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(2).uniform(1, 3, 200)
    color = np.array(["red", "green", "blue"])[np.arange(200) % 3]
    frame = pandas.DataFrame({"x": x, "color": color})
    model = KANRegressor(hidden=(2,), epochs=3, random_state=0).fit(frame, x + 2 * (np.arange(200) % 3))
    scores = model.kan_.scores
    assert len(scores["inputs"]) == 4
    assert [c["name"] for c in scores["columns"]] == ["x", "color"]
    assert scores["columns"][1]["score"] == pytest.approx(sum(i["score"] for i in scores["inputs"][1:]))
    assert scores["columns"][1]["error"] == pytest.approx(scores["columns"][0]["error"])


def test_a_pruned_network_has_fewer_columns_and_trains_on(fitted):
    small = fitted.prune(inputs=2)
    assert small.prune_report_["removed"] == ["x3"]
    assert small.width[0] == 2 and fitted.width[0] == 3
    x, y = rows()
    before = small.measure(x[:, :2], y)["rmse"]
    small.fit(x[:, :2], y, opt="LBFGS", steps=20)
    assert small.measure(x[:, :2], y)["rmse"] < before
    assert small.formula().status == "exact"


def test_a_penalty_makes_edges_vanish():
    x, y = rows()
    weak = []
    for lamb in (0.0, 1e-2):
        model = KAN(width=[3, 4, 1], grid=4, seed=0, precision="float64", options={"model.normalise": "range"})
        model.fit(x, y, opt="LBFGS", steps=40, lamb=lamb)
        weak.append(sum(e["score"] < 1e-3 for e in model.scores["edges"]))
    assert weak[1] > weak[0]


def test_edges_have_candidates(fitted):
    edges = fitted.auto_symbolic(lib=["x", "x^2", "exp"])
    assert len(edges) == 12
    for edge in edges:
        assert {c["function"] for c in edge["candidates"]} <= {"x", "x^2", "exp"}
    with pytest.raises(InvalidInputError, match="sine"):
        fitted.auto_symbolic(lib=["sine"])
    pytest.importorskip("matplotlib")
    assert fitted.plot("matplotlib", candidates=True) is not None


def test_efficient_kan_comes_back_with_the_same_function(tmp_path):
    model = KAN(width=[2, 3, 1], grid=5, seed=0, precision="float64", options={"model.outside": "extend"})
    x = np.random.default_rng(2).uniform(-0.9, 0.9, (200, 2))
    model.fit(x, x[:, 0] * x[:, 1], opt="LBFGS", steps=5)
    report = model.export(tmp_path / "e.safetensors", "efficient-kan")
    assert any("biases" in d for d in report["differences"])
    back = KAN.from_efficient_kan(tmp_path / "e.safetensors")
    inside = np.abs(model(x) - back(x)) < 1e-9
    assert inside.mean() > 0.9  # hidden nodes may leave their grids, where a bias ends


@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("outside", ["linear", "clamp", "extend", "zero"])
@pytest.mark.parametrize("knots, multiply", [("uniform", [2]), ("free", None), ("uniform", [4])])
def test_onnxruntime_computes_the_same(tmp_path, precision, tolerance, outside, knots, multiply):
    runtime = pytest.importorskip("onnxruntime")
    options = {"model.outside": outside, "model.knots": knots, "model.normalise": "standard", "model.refit": [0, 3]}
    x, y = rows()
    model = KAN(width=[3, 4, 1], multiply=multiply, grid=6, seed=0, precision=precision, options=options)
    model.fit(x, y, opt="LBFGS", steps=5)
    model.export(tmp_path / "m.onnx", "onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    wide = np.random.default_rng(3).uniform(0.5, 3.5, (300, 3))  # outside of the grids, too
    given = wide.astype(np.float32 if session.get_inputs()[0].type == "tensor(float)" else np.float64)
    found = session.run(["y"], {"x": given})[0]
    assert np.abs(found - model(given)).max() <= tolerance * max(1.0, np.abs(y).max())


def test_bad_calls_are_named(fitted):
    with pytest.raises(InvalidInputError, match="exactly one"):
        fitted.prune(0.1, inputs=2)
    with pytest.raises(InvalidInputError, match="effort"):
        fitted.formula(effort=-1)
    with pytest.raises(InvalidInputError, match="columns"):
        fitted.formula(np.ones((30, 2)), np.ones(30))
    with pytest.raises(InvalidInputError, match="format"):
        fitted.export("x", "pdf")


def test_edges_take_functions_of_ones_own_and_leave_out_others(fitted):
    x, y = rows()
    own = fitted.formula(x, y, define=["bend = x^3/(1 + x^2)"], fix=["1.0.0 bend"])
    assert own.status == "approximate" and "edge by edge" in own.note
    edge = next(e for e in own.edges if (e["layer"], e["from"], e["to"]) == (1, 0, 0))
    assert [c["function"] for c in edge["candidates"]] == ["bend"]
    without = fitted.formula(x, np.sin(3 * y), forbid=["sin", "cos"], effort=500)
    assert "sin(" not in without.text and "cos(" not in without.text
    with pytest.raises(InvalidInputError, match="at the end"):
        fitted.formula(define=["bend = x +"])


def test_columns_that_are_no_identifiers_are_evaluated():
    pandas = pytest.importorskip("pandas")
    x, y = rows(columns=2)
    frame = pandas.DataFrame(x, columns=["wind speed", "lambda"])
    model = KAN(width=[2, 2, 1], grid=3, seed=0, precision="float64", options={"model.normalise": "range"})
    model.fit(frame, y, opt="LBFGS", steps=5)
    f = model.formula()
    assert f.variables == ["wind_speed", "lambda_"]
    assert np.allclose(f(x), y, atol=1e-12)


def test_rows_that_are_converted_are_kept_while_the_search_reads_them(fitted):
    x, y = rows(20000)
    formula = fitted.formula(x, y, effort=500)
    again = fitted.formula(x.tolist(), y.tolist(), effort=500)
    assert (again.text, again.rmse, again.rmse_network) == (formula.text, formula.rmse, formula.rmse_network)


def _table(pandas):
    random = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {
            "region": random.choice(["north", "south", "NA", "01"], 120),
            "size": random.uniform(1, 3, 120),
            "level": pandas.Series(random.choice([1.0, 2.0, 10.0], 120)).astype("category"),
            "open": random.integers(0, 2, 120).astype(bool),
        }
    )
    y = frame["size"].to_numpy() ** 2 + np.where(frame["region"] == "north", 2.0, 0.0)
    return frame, y


@pytest.mark.parametrize("categories", ["one-hot", "ordinal"])
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_tables_are_encoded_for_formulas_and_errors_as_for_predictions(categories, missing):
    pandas = pytest.importorskip("pandas")
    frame, y = _table(pandas)
    if missing == "mean":
        frame = frame.astype({"region": object, "size": object})
        frame.loc[3, "region"] = None
        frame.loc[4, "size"] = pandas.NA
        frame.loc[5, "level"] = np.nan
    keys = {"hidden": (2,), "grid": 3, "epochs": 20, "random_state": 0, "missing": missing}
    model = KANRegressor(**keys, options={"data.categories": categories}).fit(frame, y)
    net = model.kan_
    moved = frame[["open", "level", "size", "region"]]
    for table in (frame, moved):
        inputs = net._inputs(table)
        assert inputs.shape == (120, len(net.features))
        assert np.array_equal(net.predict(inputs), net.predict(table))
    rmse = np.sqrt(np.mean((net.predict(frame) - y) ** 2))
    assert net.measure(moved, y)["rmse"] == pytest.approx(rmse)
    found = net.formula(moved, y, effort=500)
    assert found.rmse_network == net.formula(net._inputs(frame), y, effort=500).rmse_network
    assert KAN.load(_saved(net)).formula(frame, y, effort=500).text == found.text


def _saved(net):
    net.save("net.safetensors")
    return "net.safetensors"


def test_tables_that_do_not_fit_a_network_are_refused_as_in_predictions():
    pandas = pytest.importorskip("pandas")
    frame, y = _table(pandas)
    net = KANRegressor(hidden=(2,), grid=3, epochs=2, missing="error", random_state=0).fit(frame, y).kan_
    text = frame.astype({"region": object, "size": object, "level": object})
    for column, value, reason in (
        ("region", "west", "'west' is a value that the model was not trained on"),
        ("region", None, "missing"),
        ("region", "1", "'1' is a value that the model was not trained on"),
        ("level", 3.0, "'3.0' is a value that the model was not trained on"),
        ("size", "large", "'large' is not a number"),
        ("size", float("inf"), "not finite"),
        ("size", None, "missing"),
    ):
        wrong = text.copy()
        wrong.loc[7, column] = value
        for call in (net.predict, lambda table: net.formula(table, y), lambda table: net.measure(table, y)):
            with pytest.raises(InvalidInputError, match=reason):
                call(wrong)
    with pytest.raises(InvalidInputError, match="no column 'region'"):
        net.formula(frame.drop(columns="region"), y)
    x, target = rows()
    plain = KAN(width=[3, 1], grid=3, seed=0)
    named = pandas.DataFrame(x, columns=["a", "b", "c"])
    plain.fit(named, target, steps=3)
    moved = named[["c", "a", "b"]]
    assert plain.measure(moved, target) == plain.measure(x, target)
    assert plain.formula(moved, target, effort=500).text == plain.formula(x, target, effort=500).text
