"""Estimators with scikit-learn's contract: KANRegressor, KANClassifier, LogicClassifier."""

from __future__ import annotations

import numbers as number_types
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
except ImportError as missing:
    raise ImportError(
        "KANRegressor, KANClassifier and LogicClassifier need scikit-learn: pip install scikit-learn"
    ) from missing

from . import _rows, _tables
from ._arrays import AnyArray
from ._fit import Classes, Fit, fit_rows, fit_table
from ._options import merged, nested, put, threads_of
from .kan import KAN
from .logic import Circuit, circuit_of
from .model import Model


class _RowEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of the three. `__init__` stores; `fit` validates; fitted attributes end in an underscore."""

    _family = ""

    def _more_tags(self) -> dict[str, Any]:
        return {"non_deterministic": False, "allow_nan": self.missing in ("mean", "drop")}

    def __sklearn_tags__(self) -> Any:
        return super().__sklearn_tags__()

    def _recipe(self) -> dict[str, Any]:
        recipe: dict[str, Any] = {"family": self._family}
        for parameter, key in self._keys().items():
            value = getattr(self, parameter)
            put(recipe, key, list(value) if isinstance(value, (tuple, np.ndarray)) else value)
        put(recipe, "data.validation", self._validation())
        put(recipe, "data.test", 0.0)  # whoever calls fit() holds test rows back himself
        put(recipe, "seed", self._seed())
        return merged(recipe, nested(self.options))

    def _base_recipe(self) -> str | None:
        """The shipped recipe whose keys come first."""
        return None

    def _validation(self) -> float | None:
        return 0.0 if self.validation is None else self.validation

    def _keys(self) -> dict[str, str]:
        return {
            "epochs": "epochs",
            "batch": "train.batch",
            "optimizer": "optimizer.kind",
            "lr": "optimizer.lr",
            "patience": "train.patience",
            "precision": "precision",
            "missing": "data.missing",
        }

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, number_types.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit(
        self,
        X: Any,
        y: AnyArray | Classes,
        sample_weight: Any,
        targets: Sequence[str] | None,
        watched: tuple[Any, AnyArray | Classes] | None,
    ) -> None:
        """watched: the rows, and the targets or classes, of eval_set."""
        names: list[str] | None = None
        fit = Fit(self._recipe(), self._base_recipe(), threads_of(self.n_jobs), self.device, 0, self.verbose)
        is_table = _tables.is_table(X)
        gaps = self.missing in ("mean", "drop")
        data, rows = _rows.rows_of(X, gaps)
        if rows != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, len(y)]}")
        if watched is not None:
            fit.validation_from = rows
            data, y, sample_weight = _rows.followed_by(data, y, sample_weight, *watched, gaps)
        if is_table and isinstance(data, _tables.Table):
            names = data.names
        # An array that may have gaps is a table too: only tables have means to fill in.
        if isinstance(data, _tables.Table) and not (is_table and data.is_plain):
            handle, interrupted = fit_table(fit, data, y, sample_weight, targets)
            self.n_features_in_ = len(data.names)
        else:
            x = _rows.checked(np.column_stack(data.columns) if isinstance(data, _tables.Table) else data)
            handle, interrupted = fit_rows(fit, x, y, sample_weight, names, targets)
            self.n_features_in_ = x.shape[1]
        if names is not None and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.model_ = self._model(handle, fit.threads)
        self.n_iter_ = max(1, int(self.model_.description["epochs"]))
        if interrupted:
            raise KeyboardInterrupt

    def _model(self, handle: int, threads: int) -> Model:
        return Model(handle, threads)

    def _predict_outputs(self, X: Any) -> AnyArray:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )
        if _tables.is_table(X):
            if hasattr(self, "feature_names_in_"):
                self._check_names(_tables.column_names(X))
                return self.model_._outputs(X)
            X = np.asarray(X)
        x = _rows.checked(X, self.missing == "mean")
        if x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        if self.missing == "mean" and np.isnan(x).any():
            return self.model_._table_outputs(self.model_.features, list(x.T))
        return self.model_._outputs(x)

    def _check_names(self, names: list[str]) -> None:
        known = list(self.feature_names_in_)
        if names == known:
            return
        unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
        lines = ["The feature names should match those that were passed during fit."]
        if unseen:
            lines += ["Feature names unseen at fit time:", *[f"- {name}" for name in unseen]]
        if missing:
            lines += ["Feature names seen at fit time, yet now missing:", *[f"- {name}" for name in missing]]
        if not unseen and not missing:
            lines.append("Feature names must be in the same order as they were in fit.")
        raise ValueError("\n".join(lines) + "\n")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


class _KanParameters(_RowEstimator):
    """The parameters of both estimators of spline networks."""

    _family = "kan"

    def __init_subclass__(cls, **keys: Any) -> None:
        """Gives each class an __init__ of its own name, which messages about arguments show."""
        super().__init_subclass__(**keys)
        shared: Any = getattr(cls, "__init__")  # mypy: of a class, that may be another one
        own: Any = types.FunctionType(shared.__code__, shared.__globals__, "__init__", shared.__defaults__)
        own.__kwdefaults__, own.__annotations__ = shared.__kwdefaults__, shared.__annotations__
        own.__qualname__ = f"{cls.__name__}.__init__"
        setattr(cls, "__init__", own)

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        grid: int | None = None,
        degree: int | None = None,
        *,
        multiply: Sequence[int] | None = None,
        refine: Sequence[int] | None = None,
        size: str | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        optimizer: str | None = None,
        lr: float | None = None,
        patience: int | None = None,
        validation: float | None = None,
        precision: str | None = None,
        missing: str | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.hidden = hidden
        self.grid = grid
        self.degree = degree
        self.multiply = multiply
        self.refine = refine
        self.size = size
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.lr = lr
        self.patience = patience
        self.validation = validation
        self.precision = precision
        self.missing = missing
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _keys(self) -> dict[str, str]:
        keys = {name: f"model.{name}" for name in ("hidden", "grid", "degree", "multiply")}
        return {**keys, **super()._keys()}

    def _settles(self) -> bool:
        """Whether the engine chooses the size for these rows."""
        if self.size is None:
            return all(given is None for given in (self.hidden, self.grid, self.multiply, self.refine))
        if self.size not in ("auto", "given"):
            raise ValueError(f"size is {self.size!r}, but must be 'auto' or 'given'")
        return self.size == "auto"

    def _base_recipe(self) -> str | None:
        return "kan-tabular" if self._settles() else "kan-rows"

    def _validation(self) -> float | None:
        return self.validation if self._settles() else super()._validation()

    def _recipe(self) -> dict[str, Any]:
        recipe = super()._recipe()
        if self.refine is not None:
            if np.ndim(self.refine) != 1 or any(not hasattr(grid, "__index__") for grid in self.refine):
                raise TypeError(f"refine is {self.refine!r}, but must be a list with the grid intervals of the stages")
            recipe["stage"] = [{"grid": int(grid)} for grid in self.refine]
        return recipe

    @property
    def kan_(self) -> KAN:
        """The network itself: kan_.plot(), kan_.edges(), kan_.refine()."""
        assert isinstance(self.model_, KAN)
        return self.model_

    def _model(self, handle: int, threads: int) -> Model:
        return KAN._of(handle, threads)


class KANRegressor(RegressorMixin, _KanParameters):  # type: ignore[misc]
    """A spline network that predicts numbers.

    Parameters that are None have the engine's defaults (`gradloom.recipe_keys("kan")`), over a shipped recipe:
    `kan-tabular`, or `kan-rows` when hidden, grid or refine is set. `options` has further recipe keys, such as
    {"model.normalise": "range"}. refine: grid intervals of the stages. validation: the fraction of the rows held out
    for validation. Results have equal bits for every n_jobs.

    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> reg = KANRegressor(hidden=[3], grid=5, optimizer="lbfgs", epochs=20, random_state=0).fit(X, y)
    >>> bool(reg.score(X, y) > 0.99), reg.kan_.width
    (True, [2, 3, 1])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> KANRegressor:
        """Trains on rows X and targets y (rows) or (rows, targets). eval_set: (X, y) of validation rows."""
        if y is None:
            raise ValueError("This KANRegressor estimator requires y to be passed, but the target y is None.")
        targets = _rows.target_names(y)
        target = _rows.finite_targets(y, "y")
        if target.ndim == 2 and target.shape[1] == 1:
            _rows.warn_column()
        self.n_outputs_ = 1 if target.ndim == 1 else target.shape[1]
        self._is_column = target.ndim == 2
        pair = _rows.one_eval_set(eval_set)
        watched = None if pair is None else (pair[0], _rows.finite_targets(pair[1], "y of eval_set"))
        self._fit(X, target, sample_weight, targets, watched)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Targets (rows), or (rows, targets) where there were several."""
        y = self._predict_outputs(X)
        return y if self.n_outputs_ > 1 else y[:, 0]

    def _more_tags(self) -> dict[str, Any]:
        return {**super()._more_tags(), "multioutput": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


class _ClassifierOfRows(ClassifierMixin):  # type: ignore[misc]
    """fit and predict of classes."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Any:
        """Trains on rows X and classes y (rows). eval_set: (X, y) of validation rows."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            _rows.warn_column()
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class: there is nothing to learn"
            )
        names = _rows.class_names(classes)
        self.classes_ = classes
        pair = _rows.one_eval_set(eval_set)
        watched = None if pair is None else (pair[0], _rows.known_classes(pair[1], classes, names))
        self._fit(X, Classes(codes.astype(np.int64), names), sample_weight, _rows.target_names(y), watched)
        # The engine sorts numbers by value, not as text, and writes 2.0 as 2.
        known = {_rows.canonical(name): i for i, name in enumerate(self.model_.classes)}
        self._order = np.array([known[_rows.canonical(name)] for name in names])
        return self

    def predict_proba(self, X: Any) -> AnyArray:
        """Probabilities (rows, classes), in the order of classes_."""
        y: AnyArray = self._predict_outputs(X)
        return y[:, self._order]

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        predicted: AnyArray = self.classes_[probabilities.argmax(axis=1)]
        return predicted


class KANClassifier(_ClassifierOfRows, _KanParameters):
    """A spline network that predicts classes; parameters as those of KANRegressor.

    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> side = np.where(X[:, 0] > X[:, 1], "below", "above")
    >>> clf = KANClassifier(hidden=[3], grid=5, epochs=60, random_state=0).fit(X, side)
    >>> clf.predict([[0.9, -0.9], [-0.9, 0.9]]).tolist()
    ['below', 'above']
    """


class LogicClassifier(_ClassifierOfRows, _RowEstimator):
    """Logic gates that vote for classes. `circuit_` is the hard circuit: it runs on bits, and is exported with a proof.

    gates: gates of each layer; thresholds: bits of a numeric column; temperature: that of the softmax over votes.
    Parameters that are None have the engine's defaults (`gradloom.recipe_keys("gates")`).

    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> clf = LogicClassifier(gates=[32, 16], epochs=40, random_state=0).fit(X, X[:, 0] > 0)
    >>> clf.predict([[0.9, 0.0], [-0.9, 0.0]]).tolist()
    [True, False]
    >>> clf.circuit_.gates
    48
    """

    _family = "gates"

    def __init__(
        self,
        gates: Sequence[int] | None = None,
        thresholds: int | None = None,
        temperature: float | None = None,
        *,
        wires: str | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        optimizer: str | None = None,
        lr: float | None = None,
        patience: int | None = None,
        validation: float | None = None,
        precision: str | None = None,
        missing: str | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.gates = gates
        self.thresholds = thresholds
        self.temperature = temperature
        self.wires = wires
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.lr = lr
        self.patience = patience
        self.validation = validation
        self.precision = precision
        self.missing = missing
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _keys(self) -> dict[str, str]:
        own = {
            "gates": "model.gates",
            "thresholds": "data.thresholds",
            "temperature": "model.temperature",
            "wires": "model.wires",
        }
        return {**own, **super()._keys()}

    @property
    def circuit_(self) -> Circuit:
        """The hard circuit."""
        return circuit_of(self.model_)

