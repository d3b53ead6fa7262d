"""KAN: the words of pykan, files, pickles, equal bits."""

import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from gradloom import KAN, GradloomError, Model, NotFittedError, create_dataset, load
from gradloom.errors import InvalidInputError, UnsupportedError


def fitted(rows, **options):
    model = KAN(width=[2, 3, 1], seed=0, **options)
    model.fit(*rows, opt="LBFGS", steps=15)
    return model


def test_it_learns_and_reports_history_as_arrays(rows):
    model = KAN(width=[2, 3, 1], grid=5, k=3, seed=0)
    log = model.fit(*rows, opt="LBFGS", steps=20)
    assert log["loss"].shape == log["epoch"].shape and log["loss"].dtype == np.float64
    assert log["loss"][-1] < 0.1 * log["loss"][0]
    assert model.measure(*rows)["r2"] > 0.95
    assert model.predict(rows[0]).shape == (300,) and model(rows[0]).shape == (300, 1)


def test_the_number_of_threads_changes_no_bit(rows):
    one, two = fitted(rows, n_jobs=1), fitted(rows, n_jobs=3)
    assert one.to_bytes() == two.to_bytes()


def test_files_pickles_and_copies_predict_with_equal_bits(rows, tmp_path):
    model = fitted(rows)
    y = model.predict(rows[0])
    model.save(tmp_path / "a.safetensors")
    others = [KAN.load(tmp_path / "a.safetensors"), load(tmp_path / "a.safetensors")]
    others += [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in others:
        assert isinstance(other, KAN) and np.array_equal(other.predict(rows[0]), y)


def test_refining_keeps_the_function_and_training_goes_on(rows):
    model = fitted(rows)
    fine = model.refine(10)
    assert fine.options["model"]["grid"] == 10 and model.options["model"]["grid"] == 5
    assert np.abs(fine.predict(rows[0]) - model.predict(rows[0])).max() < 1e-4
    before = fine.measure(*rows)["rmse"]
    fine.fit(*rows, opt="LBFGS", steps=15)
    assert fine.measure(*rows)["rmse"] < before


def test_metrics_that_are_not_finite_are_nan_with_a_warning(rows):
    model = fitted(rows)
    with pytest.warns(RuntimeWarning, match="not finite on the rows: loss; .* too large for float32"):
        found = model.measure(rows[0][:1], [3e25])
    assert np.isnan(found["loss"]) and found["rmse"] == pytest.approx(3e25) and "warnings" not in found


def test_a_dataset_of_pykan_is_taken(rows):
    data = create_dataset(lambda x: x[:, 0] * x[:, 1], n_var=2, train_num=200, test_num=50)
    log = KAN(width=[2, 3, 1]).fit(data, opt="LBFGS", steps=10)
    assert 0 < log["test_rmse"] < 1
    with pytest.raises(InvalidInputError, match="train_label"):
        KAN(width=[2, 1]).fit({"train_input": rows[0]})


def test_float32_strided_and_read_only_arrays_are_read_as_they_are(rows):
    model = fitted(rows)
    wide = np.zeros((300, 4), dtype=np.float32)
    wide[:, ::2] = rows[0]
    view = wide[:, ::2]
    view.flags.writeable = False
    expected = model.predict(np.ascontiguousarray(view, dtype=np.float64))
    assert np.array_equal(model.predict(view), expected)
    assert np.array_equal(model.predict(np.asfortranarray(view)), expected)
    assert np.array_equal(model.predict(view[::-1])[::-1], expected)
    assert np.array_equal(model.predict(view.astype(">f8")), expected)


def test_multiplication_nodes_learn_a_product():
    data = create_dataset(lambda x: x[:, 0] * x[:, 1], train_num=300, test_num=100)
    options = {"precision": "float64", "seed": 0}
    model = KAN(width=[2, [0, 1], 1], grid=3, **options)
    assert model.width == [2, 1, 1] and model.multiply == [1]
    product = model.fit(data, opt="LBFGS", steps=60)["test_rmse"]
    total = KAN(width=[2, 1, 1], grid=3, **options).fit(data, opt="LBFGS", steps=60)["test_rmse"]
    assert product < 0.05 * total
    same = KAN(width=[2, 1, 1], multiply=[1], grid=3, **options)
    assert same.fit(data, opt="LBFGS", steps=60)["test_rmse"] == product
    edges = model.edges()
    assert len(edges) == 2 * 2 + 1 and {e["to"] for e in edges if e["layer"] == 0} == {0, 1}
    assert "a product" in model.plot().svg
    again = KAN.load(_saved(model))
    assert again.multiply == [1] and np.array_equal(again.predict(data["test_input"]), model.predict(data["test_input"]))
    assert again.refine(6).multiply == [1]
    inputs = [i["score"] for i in model.scores["inputs"]]
    assert abs(sum(inputs) - 1) < 1e-9 and min(inputs) > 0.3
    with pytest.raises(UnsupportedError, match="model.multiply"):
        model.export("no.safetensors", "efficient-kan")


def test_multiplication_nodes_are_refused_where_they_cannot_be():
    with pytest.raises(InvalidInputError, match="only one"):
        KAN(width=[2, [1, 1], 1], multiply=[1])
    with pytest.raises(InvalidInputError, match="not products"):
        KAN(width=[2, 3, [0, 1]])
    with pytest.raises(TypeError, match="pairs"):
        KAN(width=[2, [1, 1, 1], 1])
    with pytest.raises(InvalidInputError, match="model.multiply"):
        KAN(width=[2, 3, 1], multiply=[4]).fit(np.zeros((4, 2)), np.zeros(4))


def test_verbs_that_do_not_exist_say_so():
    model = KAN(width=[2, 1])
    verbs = {"prune_edge": "prune", "suggest_symbolic": "formula", "update_grid": "refine", "get_act": "edges", "tree": ""}
    for name, words in verbs.items():
        assert not hasattr(model, name)
        for kind in (NotImplementedError, AttributeError):
            with pytest.raises(kind, match=f"KAN.{name} of pykan does not exist.*{words}"):
                getattr(model, name)
    with pytest.raises(AttributeError):
        assert model.no_such_thing


def test_what_is_not_fitted_or_closed_says_so(rows):
    model = KAN(width=[2, 1])
    for call in (lambda: model.predict(rows[0]), model.plot, lambda: model.refine(3), lambda: model.save("a")):
        with pytest.raises(NotFittedError, match="not fitted"):
            call()
    model = fitted(rows)
    model.close()
    with pytest.raises(NotFittedError):
        model.predict(rows[0])


def test_a_classifier_is_a_network_too(rows, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from gradloom import KANClassifier

    clf = KANClassifier(hidden=[3], epochs=5).fit(rows[0], rows[1] > 0.5)
    clf.model_.save(tmp_path / "a.safetensors")
    again = load(tmp_path / "a.safetensors")
    assert isinstance(again, KAN) and again.width == [2, 3, 2] and "<svg" in again.plot().svg
    assert np.array_equal(again.predict_proba(rows[0])[:, clf._order], clf.predict_proba(rows[0]))
    with pytest.raises(UnsupportedError, match="KANClassifier"):
        again.fit(*rows)


def test_drawings_and_pages_are_well_formed(rows):
    import xml.etree.ElementTree as ElementTree

    model = fitted(rows)
    drawing = model.plot()
    assert ElementTree.fromstring(drawing.svg).tag.endswith("svg")
    assert "data:image/svg+xml" in drawing._repr_html_()
    assert "<iframe" in model._repr_html_()
    edges = model.edges()
    assert len(edges) == 2 * 3 + 3 and edges[0]["x"].shape == edges[0]["y"].shape
    assert len(KAN.load(_saved(model)).edges()) == len(edges)


def _saved(model):
    model.save("saved.safetensors")
    return "saved.safetensors"


def test_a_callback_hears_of_epochs_and_stops(rows):
    heard = []

    def callback(line):
        heard.append(line["epoch"])
        return len(heard) == 3

    model = KAN(width=[2, 2, 1])
    model.fit(*rows, steps=50, callback=callback)
    assert heard == [1, 2, 3] and model.description["stopped"]
    with pytest.raises(ZeroDivisionError):
        model.fit(*rows, steps=50, callback=lambda line: 1 / 0)


def test_ctrl_c_stops_and_keeps_what_was_learned(rows):
    model = KAN(width=[2, 5, 1])
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*rows, steps=100_000_000)
    assert time.monotonic() - begin < 60
    assert model.is_fitted and model.description["stopped"] and 0 < len(model.history["loss"]) < 100_000_000


def test_threads_share_a_model(rows):
    model, wrong = fitted(rows), []
    y = model.predict(rows[0])

    def use():
        for _ in range(20):
            if not np.array_equal(model.predict(rows[0]), y):
                wrong.append(1)
        if fitted(rows).to_bytes() != model.to_bytes():
            wrong.append(2)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_process_uses_models_of_one_thread_and_is_told_about_others(rows):
    one, several = fitted(rows, n_jobs=1), fitted(rows, n_jobs=2)
    child = os.fork()
    if child == 0:
        good = False
        try:
            one.predict(rows[0])
            several.predict(rows[0])
        except GradloomError as error:
            good = "fork" in str(error)
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"nonsense, and more of it")
    with pytest.raises(ValueError):
        load(tmp_path / "a.safetensors")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.safetensors")
    with pytest.raises(FileNotFoundError, match="recipe.toml"):
        load(tmp_path)


def test_a_million_rows_need_no_copy_of_them(rows):
    """Memory of the process, not of Python: rows are read in blocks."""
    import resource

    model = fitted(rows, n_jobs=1)
    x = np.zeros((1_000_000, 2))
    model.predict(x[:100_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y = model.predict(x)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < y.nbytes + 0.5 * x.nbytes


def test_a_model_of_another_family_is_no_kan(tmp_path):
    from gradloom import Automaton

    ca = Automaton(channels=1, kernels=1, perception=[8, 4, 2], update=[3, 2, 1], steps=1).fit(np.eye(4), epochs=1)
    ca.save(tmp_path / "ca.safetensors")
    with pytest.raises(InvalidInputError, match="automaton"):
        KAN.load(tmp_path / "ca.safetensors")
    assert isinstance(load(tmp_path / "ca.safetensors"), Model)


def test_a_closed_network_says_so_and_properties_say_what_is_wrong(rows):
    model = KAN(width=[2, 2, 1], seed=0)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.scores
    model.fit(*rows, steps=2)
    model.close()
    for ask in (lambda: model.scores, lambda: model.metrics, lambda: model.predict(rows[0])):
        with pytest.raises(NotFittedError, match="this KAN was closed"):
            ask()
    assert not hasattr(model, "no_such_thing")
    with pytest.raises(TypeError, match="KAN: multiply is -1"):
        KAN(width=[2, 2, 1], multiply=-1)
