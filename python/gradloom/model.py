"""Model: a trained network of any family, which predicts, describes itself and can be saved."""

from __future__ import annotations

import ctypes
import os
import warnings
import weakref
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _tables
from ._arrays import AnyArray, borrowed, borrowed_matrix, integers, numbers
from ._encoding import columns_of_model, encoded
from ._library import check, close, handle_of, json_of, lib, path_text, settings_text, text_of
from .errors import InvalidInputError, NotFittedError

Floats = NDArray[np.float64]

_FLOAT64 = np.dtype(np.float64)
_predict = lib.gradloom_predict
_addressof = ctypes.addressof
_byte_of: Any = ctypes.c_char.from_buffer


def _told(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics as they were returned, without the warnings, which are raised."""
    for text in metrics.pop("warnings", []):
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return metrics


def page_html(page: str, height: int = 560) -> str:
    """A page of its own inside a notebook: its style stays there."""
    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" width="100%" height="{height}" '
        'style="border:1px solid #ddd;border-radius:6px" sandbox></iframe>'
    )


class Model:
    """A trained network. One call at a time uses it; calls from other threads wait.

    Models are pickled and copied with all that prediction needs.
    """

    _handle: int = 0
    _threads: int = 0
    _closed: bool = False
    _single: bool = False  # whether rows become one number each, once that is known

    def __init__(self, handle: int, threads: int = 0) -> None:
        self._adopt(handle, threads)

    def _adopt(self, handle: int, threads: int) -> None:
        """Takes ownership of a handle, and closes the one before."""
        before = getattr(self, "_finalizer", None)
        if before is not None:
            before()
        self._handle = handle
        self._closed = False
        self._threads = threads
        self._finalizer = weakref.finalize(self, close, handle)
        self._about: dict[str, Any] | None = None
        self._single = False

    @property
    def is_fitted(self) -> bool:
        """Whether there is a trained network."""
        return self._handle != 0

    def _open(self) -> int:
        if self._handle == 0 and self._closed:
            raise NotFittedError(f"this {type(self).__name__} was closed")
        if self._handle == 0:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit() or load() first")
        return self._handle

    def close(self) -> None:
        """Frees the network now instead of with its last reference; later calls raise NotFittedError."""
        if self._handle != 0:
            self._finalizer()
            self._handle = 0
            self._closed = True
            self._about = None
            self._single = False

    @property
    def description(self) -> dict[str, Any]:
        """family, precision, options, features, targets, classes, parameters, epochs, finished, warnings."""
        if self._about is None:
            self._about = json_of(lib.gradloom_describe, self._open())
        return self._about

    @property
    def options(self) -> dict[str, Any]:
        """Every option of the network's last stage, by the keys of recipes."""
        return dict(self.description["options"])

    @property
    def features(self) -> list[str]:
        """The names of the features, in order."""
        return list(self.description["features"])

    @property
    def targets(self) -> list[str]:
        """The names of the targets; empty for classification."""
        return list(self.description["targets"])

    @property
    def classes(self) -> list[str]:
        """The names of the classes; empty for regression."""
        return list(self.description["classes"])

    @property
    def metrics(self) -> dict[str, Any]:
        """Loss and metrics on the training, validation and test part of the data that it was fitted on. What is not finite
        is None, with a RuntimeWarning."""
        return _told(dict(json_of(lib.gradloom_metrics, self._open())))

    @property
    def history(self) -> dict[str, AnyArray]:
        """The figures of training after each epoch, an array for each."""
        table = json_of(lib.gradloom_history, self._open())
        columns: dict[str, AnyArray] = {}
        for i, name in enumerate(table["columns"]):
            values = [row[i] for row in table["rows"]]
            whole = name in ("stage", "epoch", "run_epoch")
            columns[name] = np.array(
                values if whole else [np.nan if v is None else v for v in values],
                dtype=np.int64 if whole else np.float64,
            )
        return columns

    def _outputs(self, X: Any) -> Floats:
        """(rows, outputs): targets, or probabilities."""
        handle = self._open()
        if _tables.is_table(X):
            names, columns = _tables.column_names(X), _tables.columns_of(X)
            if self._needs_text(columns):
                return self._table_outputs(names, columns)
            X = self._in_order(names, columns)
        x = numbers(X, "X", (2,))
        out = np.empty((x.shape[0], self.description["outputs"]))
        check(lib.gradloom_predict(handle, borrowed(x), borrowed(out)))
        return out

    def _needs_text(self, columns: list[AnyArray]) -> bool:
        return bool(self.description["options"].get("data", {}).get("path")) or not _tables.is_plain(columns)

    def _table_outputs(self, names: list[str], columns: list[AnyArray]) -> Floats:
        text = _tables.csv_text(names, columns)
        out = np.empty((len(columns[0]) if columns else 0, self.description["outputs"]))
        check(lib.gradloom_predict_table(self._open(), text, len(text), borrowed(out)))
        return out

    def _inputs(self, X: Any) -> AnyArray:
        """Rows X (N, inputs), or those of a table, whose columns are encoded as predict() does."""
        if not _tables.is_table(X):
            return numbers(X, "X", (2,))
        features, one_hot = columns_of_model(self.to_bytes())
        if features:
            return encoded(X, features, one_hot)
        names, columns = _tables.column_names(X), _tables.columns_of(X)
        return self._in_order(names, columns) if _tables.is_plain(columns) else numbers(X, "X", (2,))

    def _in_order(self, names: list[str], columns: list[AnyArray]) -> AnyArray:
        """The columns in the order of the features."""
        by_name = dict(zip(names, columns))
        known = self.features
        missing = [name for name in known if name not in by_name]
        if missing:
            raise InvalidInputError(f"X has no column {missing[0]!r}, which the model was trained on")
        return np.column_stack([np.asarray(by_name[name], dtype=np.float64) for name in known])

    def predict(self, X: Any) -> AnyArray:
        """Targets (rows) or (rows, targets), or the names of classes (rows)."""
        if self._single and type(X) is np.ndarray and X.ndim == 2 and X.dtype is _FLOAT64 and X.flags.c_contiguous:
            # One row at a time is a use of its own: nothing is looked up.
            rows, columns = X.shape
            one = np.empty(rows)
            try:  # the quickest way to an address; not of read-only and empty arrays
                x = borrowed_matrix(_addressof(_byte_of(X)), rows, columns)
                if _predict(self._handle, x, borrowed_matrix(_addressof(_byte_of(one)), rows, 1)) == 0:
                    return one
            except (TypeError, ValueError, BufferError):
                pass
        y: AnyArray = self._outputs(X)
        if not self.classes and y.shape[1] == 1:
            self._single = True
        if self.classes:
            y = np.array(self.classes)[y.argmax(axis=1)]
        elif y.shape[1] == 1:
            y = y[:, 0]
        return y

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (rows, classes), in the order of `classes`."""
        if not self.classes:
            raise InvalidInputError("this model predicts numbers, not classes; it has no probabilities")
        return self._outputs(X)

    def measure(self, X: Any, y: Any) -> dict[str, float]:
        """Loss, and rmse, mae and r2, or accuracy, of rows whose targets are known. What is not finite is NaN, with a
        RuntimeWarning."""
        x = self._inputs(X)
        if not self.classes:
            target, settings = numbers(y, "y", (1, 2)), {}
        else:
            names = self.classes
            places = {name: i for i, name in enumerate(names)}
            unknown = [str(v) for v in np.asarray(y).ravel().tolist() if str(v) not in places]
            if unknown:
                raise InvalidInputError(f"y contains the class {unknown[0]!r}; the model has {', '.join(names)}")
            target = integers([places[str(v)] for v in np.asarray(y).ravel().tolist()], "y")
            settings = {"classes": names}
        found = json_of(lib.gradloom_measure, self._open(), settings_text(settings), borrowed(x), borrowed(target))
        return {name: float("nan") if value is None else value for name, value in _told(dict(found)).items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model file with all that load() needs, atomically."""
        check(lib.gradloom_save(self._open(), path_text(path, "path")))

    def to_bytes(self) -> bytes:
        """The bytes of the file that save() would write."""
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.gradloom_save_bytes(self._open(), ctypes.byref(pointer), ctypes.byref(size)))
        content = ctypes.string_at(pointer.value or 0, size.value)
        lib.gradloom_free(pointer)
        return content

    def __getstate__(self) -> dict[str, Any]:
        state = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("_handle", "_finalizer", "_about", "_threads", "_single", "_rows")
        }
        state["_bytes"] = self.to_bytes() if self.is_fitted else None
        state["_thread_count"] = self._threads
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        rest = dict(state)
        content, threads = rest.pop("_bytes"), rest.pop("_thread_count")
        self.__dict__.update(rest)
        self._about = None
        if content is not None:
            self._adopt(load_bytes(content, threads, rest.get("_arithmetic")), threads)

    def report(self) -> str:
        """An HTML page with the report of the model."""
        return text_of(lib.gradloom_draw, self._open(), b"html")

    def _repr_html_(self) -> str:
        return page_html(self.report()) if self.is_fitted else escape(repr(self))

    def __repr__(self) -> str:
        if not self.is_fitted:
            return f"<{type(self).__name__}, not fitted>"
        about = self.description
        return f"<{type(self).__name__} of family {about['family']}, {about['parameters']} parameters>"


def load_bytes(content: bytes, threads: int = 0, arithmetic: str | None = None) -> int:
    """The handle of a model that to_bytes() wrote."""
    if not isinstance(content, (bytes, bytearray)):
        raise TypeError(f"content is {type(content).__name__}, but must be bytes")
    settings = {"threads": threads, "arithmetic": arithmetic}
    return handle_of(lib.gradloom_load_bytes, bytes(content), len(content), settings_text(settings))


def load_file(path: str | os.PathLike[str], threads: int = 0, arithmetic: str | None = None) -> int:
    """The handle of a model file."""
    settings = {"threads": threads, "arithmetic": arithmetic}
    return handle_of(lib.gradloom_load, path_text(path, "path"), settings_text(settings))
