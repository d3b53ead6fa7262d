"""Estimators: scikit-learn's own checks, tables, equal bits."""

import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from gradloom import KANClassifier, KANRegressor, LogicClassifier  # noqa: E402
from gradloom.errors import InvalidInputError  # noqa: E402

# Rows with weight 2 are not rows that stand twice: batches are drawn by row.
_WEIGHTED = {
    "check_sample_weights_invariance": "rows are drawn into batches; a weight of 0 still takes a place in one",
    "check_sample_weight_equivalence_on_dense_data": "as above",
}
_SMALL = [
    KANRegressor(hidden=[8], grid=6, epochs=60, n_jobs=1),
    KANClassifier(hidden=[4], grid=4, epochs=40, n_jobs=1),
    LogicClassifier(gates=[128, 126], epochs=120, n_jobs=1),
    KANRegressor(epochs=8, n_jobs=1),  # sizes that the rows settle
    KANClassifier(epochs=8, n_jobs=1),
]


def _expected(estimator):
    return _WEIGHTED


if tuple(int(n) for n in sklearn.__version__.split(".")[:2]) >= (1, 6):

    @parametrize_with_checks(_SMALL, expected_failed_checks=_expected)
    def test_scikit_learn_accepts_it(estimator, check):
        check(estimator)

else:

    @parametrize_with_checks(_SMALL)
    def test_scikit_learn_accepts_it(estimator, check):
        name = check.func.__name__ if hasattr(check, "func") else check.__name__
        if name in _WEIGHTED:
            pytest.xfail(_WEIGHTED[name])
        check(estimator)


def _wave(rows, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return x, np.exp(np.sin(np.pi * x[:, 0]) + x[:, 1] ** 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_regressor_reaches_99_percent_on_500_rows(seed):
    reg = KANRegressor().fit(*_wave(500, seed))
    assert reg.score(*_wave(2000, seed + 100)) > 0.99


def test_the_size_follows_from_the_rows_unless_it_is_given():
    x, y = _wave(150, 0)
    reg = KANRegressor(epochs=3).fit(x, y)
    settled = reg.kan_.description["settled"]
    assert settled["folds"] == 5 and len(settled["candidates"]) > 2
    assert reg.kan_.options["model"]["hidden"] == settled["candidates"][settled["chosen"]]["hidden"]
    assert KANRegressor(epochs=3, size="given").fit(x, y).kan_.description["settled"] is None
    assert KANRegressor(epochs=3, hidden=[4]).fit(x, y).kan_.width == [2, 4, 1]
    with pytest.raises(ValueError, match="'large'"):
        KANRegressor(size="large").fit(x, y)


def test_a_validation_set_watches_training():
    x, y = _wave(200, 0)
    more_x, more_y = _wave(50, 1)
    for keys in ({"hidden": [5], "grid": 5}, {}):
        reg = KANRegressor(epochs=12, random_state=0, **keys).fit(x, y, eval_set=(more_x, more_y))
        watched = reg.model_.history["validation"]
        assert len(watched) == 12 and np.isfinite(watched).all()
        # The parameters are those of the best epoch.
        assert np.isclose(reg.model_.metrics["validation"]["loss"], watched.min(), rtol=1e-5)
        assert np.isclose(reg.model_.measure(more_x, more_y)["rmse"], reg.model_.metrics["validation"]["rmse"])
        same = KANRegressor(epochs=12, random_state=0, **keys).fit(x, y, eval_set=[(more_x, more_y)])
        assert same.model_.to_bytes() == reg.model_.to_bytes()
    weighted = KANRegressor(epochs=2, size="given").fit(x, y, np.ones(200), eval_set=(more_x, more_y))
    assert np.isfinite(weighted.model_.history["validation"]).all()
    for wrong, words in [
        (3, "eval_set must be"),
        ([(x, y), (x, y)], "one validation set"),
        ((x, y[:3]), "200 rows of X and 3 of y"),
        ((x[:, :1], y), "1 features"),
        ((x, np.full(200, np.nan)), "y of eval_set"),
    ]:
        with pytest.raises(ValueError, match=words):
            KANRegressor(epochs=1).fit(x, y, eval_set=wrong)
    with pytest.raises(ValueError, match="data.validation"):
        KANRegressor(epochs=1, validation=0.2).fit(x, y, eval_set=(more_x, more_y))


def test_a_validation_set_of_classes_and_of_tables():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = _wave(200, 0)
    kind = np.where(y > y.mean(), "high", "low")
    clf = KANClassifier(epochs=5, size="given").fit(x[:150], kind[:150], eval_set=(x[150:], kind[150:]))
    assert clf.model_.metrics["validation"]["accuracy"] == clf.score(x[150:], kind[150:])
    with pytest.raises(ValueError, match="'middle'"):
        KANClassifier(epochs=1).fit(x, kind, eval_set=(x, np.full(200, "middle")))
    frame = pd.DataFrame({"sign": np.where(x[:, 0] > 0, "plus", "minus"), "x2": x[:, 1]})
    frame.loc[[3, 160], "x2"] = np.nan
    for missing, rows in (("mean", 150), ("drop", 149)):
        clf = KANClassifier(epochs=5, missing=missing, size="given")
        clf.fit(frame[:150], kind[:150], eval_set=(frame[150:], kind[150:]))
        assert clf.model_.description["samples"] == rows
        assert len(clf.model_.history["validation"]) == 5
    with pytest.raises(ValueError, match="columns"):
        clf.fit(frame, kind, eval_set=(frame.rename(columns={"x2": "x3"}), kind))
    with pytest.raises(ValueError, match="eval_set has the columns"):
        clf.fit(frame, kind, eval_set=(x, kind))
    whole = frame.dropna()
    with pytest.raises(ValueError, match="both tables"):
        KANClassifier(epochs=1).fit(whole, kind[whole.index], eval_set=(x, kind))


def test_jobs_change_no_bit():
    x, y = _wave(200, 0)
    one = KANRegressor(epochs=5, random_state=3, n_jobs=1).fit(x, y)
    two = KANRegressor(epochs=5, random_state=3, n_jobs=4).fit(x, y)
    assert one.model_.to_bytes() == two.model_.to_bytes()
    other = KANRegressor(epochs=5, random_state=4).fit(x, y)
    assert not np.array_equal(one.predict(x), other.predict(x))


def test_several_targets_have_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = _wave(100, 0)
    frame = pd.DataFrame(x, columns=["a", "b"])
    reg = KANRegressor(epochs=3).fit(frame, pd.DataFrame({"wave": y, "sum": x.sum(axis=1)}))
    assert reg.predict(frame).shape == (100, 2)
    assert reg.kan_.targets == ["wave", "sum"] and list(reg.feature_names_in_) == ["a", "b"]


def test_tables_with_text_and_gaps():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": random.choice(["red", "blue"], 200), "size": random.uniform(0, 1, 200)})
    frame.loc[3, "size"] = np.nan
    frame.loc[5, "colour"] = None
    kind = np.where(frame["colour"] == "red", "warm", "cold")
    with pytest.raises(ValueError, match="colour"):
        KANClassifier(epochs=5, missing="error").fit(frame, kind)
    clf = KANClassifier(epochs=30, missing="mean").fit(frame, kind)
    assert clf.score(frame.drop(index=5), np.delete(kind, 5)) == 1.0
    assert clf.predict_proba(frame).shape == (200, 2)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    with pytest.raises(InvalidInputError, match="green"):
        clf.predict(pd.DataFrame({"colour": ["green"], "size": [1.0]}))
    with pytest.raises(ValueError, match="Feature names"):
        clf.predict(pd.DataFrame({"colour": ["red"]}))


def test_a_gap_in_new_rows_is_named_where_training_dropped_such_rows():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"colour": ["red", "blue"] * 20, "size": np.arange(40.0)})
    reg = KANRegressor(epochs=1, size="given", missing="drop").fit(frame, np.arange(40.0))
    frame.loc[1, "size"] = np.nan
    with pytest.raises(ValueError, match=r"row 2\), column 'size': '' is missing"):
        reg.predict(frame)
    with pytest.raises(TypeError, match="refine is 3"):
        KANRegressor(refine=3).fit(frame[["size"]][2:], np.arange(38.0))


def test_weights_matter():
    x = np.array([[-1.0], [1.0]] * 50)
    y = np.array([0.0, 1.0] * 50)
    up = np.where(x[:, 0] > 0, 1.0, 0.0)
    only = KANRegressor(epochs=30, options={"model.normalise": "none"}).fit(x, y, sample_weight=up)
    assert abs(only.predict([[1.0]])[0] - 1.0) < 0.2
    with pytest.raises(ValueError, match="weight"):
        KANRegressor(epochs=1).fit(x, y, sample_weight=np.zeros(100))


def test_searches_pipelines_and_clones():
    x, y = _wave(120, 0)
    search = GridSearchCV(KANRegressor(epochs=3), {"grid": [3, 5]}, cv=2).fit(x, y)
    assert search.best_params_["grid"] in (3, 5)
    pipe = make_pipeline(StandardScaler(), KANRegressor(epochs=3, refine=[3, 6])).fit(x, y)
    assert pipe[-1].kan_.options["model"]["grid"] == 6
    assert clone(pipe).get_params()["kanregressor__refine"] == [3, 6]


def test_the_circuit_of_a_classifier_counts_the_same_votes():
    x, y = _wave(300, 0)
    clf = LogicClassifier(gates=[128, 64], epochs=30, random_state=0).fit(x, y > y.mean())
    assert clf.score(x, y > y.mean()) > 0.75
    circuit = clf.circuit_
    assert circuit.gates == 192 and circuit.export("c", verify=True).proved
    assert circuit.evaluate(np.zeros((3, circuit.description["inputs"]))).shape == (3, circuit.description["outputs"])


def test_classes_of_any_type():
    x, y = _wave(60, 0)
    for classes in (np.array([7, 10]), np.array(["10", "9"]), np.array([True, False]), np.array([2.0, 3.0])):
        labels = classes[(y > y.mean()).astype(int)]
        clf = KANClassifier(epochs=30).fit(x, labels)
        assert clf.classes_.tolist() == np.unique(classes).tolist()
        assert clf.score(x, labels) > 0.9


@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_arrays_may_have_gaps_when_missing_says_what_to_do(rows, missing):
    x, y = rows[0].copy(), rows[1]
    x[3, 1] = np.nan
    model = KANRegressor(hidden=[3], epochs=20, missing=missing, random_state=0).fit(x, y, eval_set=(x[:9], y[:9]))
    assert model.n_features_in_ == 2 and not hasattr(model, "feature_names_in_")
    assert np.isfinite(model.predict(rows[0])).all()
    if missing == "mean":
        filled = x.copy()
        filled[3, 1] = np.nanmean(np.concatenate([x[:, 1], x[:9, 1]]))
        assert model.predict(x)[3] == pytest.approx(model.predict(filled)[3], rel=1e-5)
    else:
        with pytest.raises(ValueError, match="NaN"):
            model.predict(x)
    x[4, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.fit(x, y)


def test_a_wrong_parameter_is_named_with_the_class():
    with pytest.raises(TypeError, match=r"KANRegressor.*hiden"):
        KANRegressor(hiden=[3])
    with pytest.raises(TypeError, match=r"KANClassifier.*hiden"):
        KANClassifier(hiden=[3])


_WORDS = ["NA", "null", "?", "None", "nan", " a", "a", "x\r", "1,5", "1.5", 'a"b', "two\nlines"]


def test_text_of_tables_stays_what_it_is():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    words = np.array(_WORDS * 20, dtype=object)
    size = np.linspace(0.001, 1.234, len(words))
    frame = pd.DataFrame({"word": words, "size": size})
    for missing in ("error", "drop", "mean"):
        reg = KANRegressor(epochs=1, size="given", missing=missing).fit(frame, size)
        assert reg.model_.description["samples"] == len(words)
        assert reg.model_.features == [*(f"word={w}" for w in sorted(_WORDS)), "size"]
        assert len(set(reg.predict(frame.assign(size=1.0))[: len(_WORDS)])) == len(_WORDS)
    codes = pd.DataFrame(
        {
            "zip": ["01234", "11234"] * 50,
            "kind": pd.Categorical([1, 2, 3, 4] * 25),
            "grade": pd.Categorical(["5", "6"] * 50),
        }
    )
    reg = KANRegressor(epochs=1, size="given").fit(codes, np.arange(100.0))
    expected = ["zip=01234", "zip=11234", "kind=1", "kind=2", "kind=3", "kind=4", "grade=5", "grade=6"]
    assert reg.model_.features == expected
    assert KANRegressor(epochs=1, size="given").fit(codes[["kind"]], np.arange(100.0)).n_features_in_ == 1
    with pytest.raises(InvalidInputError, match="name is empty"):
        KANRegressor(epochs=1).fit(frame.rename(columns={"word": ""}), size)


@pytest.mark.parametrize("more", [[], [""], ["1.50"]])
def test_classes_of_any_text(more):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    classes = [*_WORDS, *more]
    labels = np.array(classes * 12)
    place = np.arange(len(labels)) % len(classes)
    bits = (place[:, None] >> np.arange(4) & 1).astype(float)
    for X in (bits, pd.DataFrame({"a": np.where(bits[:, 0] > 0, "NA", "b"), **{f"x{i}": bits[:, i] for i in (1, 2, 3)}})):
        kan = KANClassifier(epochs=60, size="given", random_state=0).fit(X, labels)
        assert kan.classes_.tolist() == sorted(classes) and kan.score(X, labels) > 0.9
        logic = LogicClassifier(gates=[len(classes) * 2], epochs=1).fit(X, labels)
        assert logic.classes_.tolist() == sorted(classes) and set(logic.predict(X)) <= set(classes)
