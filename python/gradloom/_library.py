"""The C ABI by ctypes: the library, its functions, and calls that Ctrl-C stops."""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import InternalError, error_of

_ABI_VERSION = 2

Handle = ctypes.c_uint64
MOST_DIMENSIONS = 4


class Array(ctypes.Structure):
    """gradloom_array."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MOST_DIMENSIONS),
        ("strides", ctypes.c_int64 * MOST_DIMENSIONS),
    ]


class Graph(ctypes.Structure):
    """gradloom_graph."""

    _fields_ = [
        ("nodes", ctypes.c_int64),
        ("row_ptr", Array),
        ("column", Array),
        ("node_labels", Array),
        ("node_classes", Array),
        ("node_parts", Array),
        ("node_features", Array),
        ("edge_labels", Array),
        ("edge_weights", Array),
        ("graph_class", ctypes.c_int64),
        ("graph_target", ctypes.c_double),
    ]


ProgressFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class Hooks(ctypes.Structure):
    """gradloom_hooks."""

    _fields_ = [("progress", ProgressFunction), ("log", LogFunction), ("user", ctypes.c_void_p), ("stop", Handle)]


_TEXT = ctypes.c_char_p
_TEXT_OUT = ctypes.POINTER(ctypes.c_void_p)
_HANDLE_OUT = ctypes.POINTER(Handle)
_ARRAY = ctypes.c_char_p  # the bytes of a gradloom_array (_arrays.borrowed)
_GRAPH = ctypes.c_char_p  # the bytes of a gradloom_graph
_HOOKS = ctypes.POINTER(Hooks)

_FUNCTIONS: dict[str, Sequence[Any]] = {
    "close": [Handle],
    "options": [_TEXT, _TEXT_OUT],
    "recipes": [_TEXT_OUT],
    "fit_rows": [_TEXT, _ARRAY, _ARRAY, _ARRAY, _HOOKS, _HANDLE_OUT],
    "fit_table": [_TEXT, _TEXT, ctypes.c_size_t, _HOOKS, _HANDLE_OUT],
    "fit_grid": [_TEXT, _ARRAY, _HOOKS, _HANDLE_OUT],
    "fit_graphs": [_TEXT, Handle, _HOOKS, _HANDLE_OUT],
    "stop_new": [_HANDLE_OUT],
    "stop": [Handle],
    "train": [_TEXT, _HOOKS, _TEXT_OUT],
    "resume": [_TEXT, _HOOKS, _TEXT_OUT],
    "predict_file": [_TEXT, _TEXT_OUT],
    "load": [_TEXT, _TEXT, _HANDLE_OUT],
    "load_bytes": [_TEXT, ctypes.c_size_t, _TEXT, _HANDLE_OUT],
    "save": [Handle, _TEXT],
    "save_bytes": [Handle, _TEXT_OUT, ctypes.POINTER(ctypes.c_size_t)],
    "describe": [Handle, _TEXT_OUT],
    "history": [Handle, _TEXT_OUT],
    "metrics": [Handle, _TEXT_OUT],
    "predict": [Handle, _ARRAY, _ARRAY],
    "predict_table": [Handle, _TEXT, ctypes.c_size_t, _ARRAY],
    "predict_graphs": [Handle, Handle, _ARRAY],
    "embed_graphs": [Handle, Handle, _ARRAY],
    "measure": [Handle, _TEXT, _ARRAY, _ARRAY, _TEXT_OUT],
    "refine": [Handle, ctypes.c_int64, _HANDLE_OUT],
    "draw": [Handle, _TEXT, _TEXT_OUT],
    "scores": [Handle, _ARRAY, _ARRAY, _TEXT_OUT],
    "formula": [Handle, _TEXT, _ARRAY, _ARRAY, _HOOKS, _TEXT_OUT],
    "formula_fit": [_TEXT, _ARRAY, _ARRAY, _TEXT_OUT],
    "prune": [Handle, _TEXT, _ARRAY, _ARRAY, _TEXT_OUT],
    "export": [Handle, _TEXT, _TEXT_OUT],
    "graphs_new": [_TEXT, _HANDLE_OUT],
    "graphs_add": [Handle, _GRAPH],
    "graphs_load": [_TEXT, _HANDLE_OUT],
    "graphs_count": [Handle, ctypes.POINTER(ctypes.c_int64)],
    "ged_pair": [Handle, ctypes.c_int64, ctypes.c_int64, _TEXT, _HOOKS, _TEXT_OUT],
    "ged_matrix": [Handle, _TEXT, _HOOKS, _ARRAY, _ARRAY],
    "ged_search": [Handle, ctypes.c_int64, _TEXT, _HOOKS, _TEXT_OUT],
    "circuit_load": [_TEXT, _HANDLE_OUT],
    "circuit_parse": [_TEXT, _HANDLE_OUT],
    "circuit_of": [Handle, _HANDLE_OUT],
    "circuits": [_TEXT_OUT],
    "circuit_describe": [Handle, _TEXT_OUT],
    "circuit_run": [Handle, _TEXT, _HOOKS, _ARRAY, _ARRAY],
    "circuit_evaluate": [Handle, _ARRAY, _ARRAY],
    "circuit_export": [Handle, _TEXT, _HOOKS, _TEXT_OUT, _TEXT_OUT],
}


def _library_path() -> Path:
    """The library beside this file, as wheels have it; or that of GRADLOOM_LIBRARY."""
    chosen = os.environ.get("GRADLOOM_LIBRARY")
    return Path(chosen) if chosen else Path(__file__).with_name("libgradloom.so")


def _load() -> ctypes.CDLL:
    path = _library_path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(
            f"gradloom's library cannot be loaded: {error}. It is part of the installed package; in a source tree, "
            "set GRADLOOM_LIBRARY to a built libgradloom.so"
        ) from error
    library.gradloom_abi_version.restype = ctypes.c_int
    if library.gradloom_abi_version() != _ABI_VERSION:
        found = library.gradloom_abi_version()
        raise ImportError(f"{path} has version {found} of the ABI; this package needs version {_ABI_VERSION}")
    library.gradloom_version.restype = ctypes.c_char_p
    library.gradloom_last_error.restype = ctypes.c_char_p
    library.gradloom_free.argtypes = [ctypes.c_void_p]
    library.gradloom_free.restype = None
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, "gradloom_" + name)
        function.argtypes = arguments
        function.restype = ctypes.c_int
    return library


lib = _load()


def version() -> str:
    """The version of the engine."""
    return str(lib.gradloom_version().decode())


def last_error() -> str:
    """The message of this thread's last call that failed."""
    return str(lib.gradloom_last_error().decode("utf-8", "replace"))


def check(status: int) -> None:
    """Raises the exception of a status."""
    if status != 0:
        raise error_of(status, last_error())


def settings_text(settings: Mapping[str, Any]) -> bytes:
    """Settings as the ABI takes them; what is None is left out."""
    try:
        text = json.dumps({k: v for k, v in settings.items() if v is not None}, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(settings, "") or error_of(1, f"an option cannot be written: {error}") from error
    return text.encode()


def _plain(value: Any) -> Any:
    """Numbers of numpy, paths and arrays in settings."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


_DEEPEST = 32


def _refused(value: Any, key: str, depth: int = 0) -> Exception | None:
    """What is wrong with a value of settings, by the name of its option."""
    name = key.removeprefix("recipe.")
    if depth > _DEEPEST:
        return error_of(1, f"the option {name[:80]} refers to itself, or is too deep")
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        parts = [(v, f"{key}.{k}" if key else str(k)) for k, v in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(v, key) for v in value]
    elif isinstance(value, float) and not math.isfinite(value):
        return error_of(1, f"the option {name} is {value}, but must be finite")
    elif value is None or isinstance(value, (str, bool, int, float, os.PathLike)):
        return None
    else:
        return TypeError(f"the option {name} is {value!r}; it must be a number, text, boolean or a list of them")
    return next((wrong for v, k in parts if (wrong := _refused(v, k, depth + 1))), None)


def path_name(path: str | os.PathLike[str], name: str) -> str:
    """A path as text; an integer is none, though open() takes it for a file that is open."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name} is {path!r}, but must be a path")
    text = os.fsdecode(path)
    if "\0" in text:
        raise error_of(1, f"{name} has a zero byte: {path!r}")
    return text


def path_text(path: str | os.PathLike[str], name: str) -> bytes:
    """A path as the ABI takes it."""
    return os.fsencode(path_name(path, name))


def take_text(pointer: ctypes.c_void_p) -> str:
    """A text that the library returned; frees it."""
    text = ctypes.string_at(pointer.value or 0) if pointer.value else b""
    lib.gradloom_free(pointer)
    return text.decode("utf-8", "replace")


def text_of(function: Callable[..., int], *arguments: Any) -> str:
    """The text that a function returns by its last argument."""
    pointer = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(pointer)))
    return take_text(pointer)


def json_of(function: Callable[..., int], *arguments: Any) -> Any:
    """The JSON value that a function returns by its last argument."""
    return json.loads(text_of(function, *arguments))


def handle_of(function: Callable[..., int], *arguments: Any) -> int:
    """The handle that a function returns by its last argument."""
    handle = Handle()
    check(function(*arguments, ctypes.byref(handle)))
    return int(handle.value)


def close(handle: int) -> None:
    """Closes a handle; never raises, because finalizers call it."""
    lib.gradloom_close(handle)


class LongCall:
    """One call that may take long. Python goes on meanwhile: Ctrl-C stops the engine after its current step.

    `interrupted` is then true; whoever called keeps the result and raises KeyboardInterrupt.
    """

    def __init__(self, progress: Callable[[dict[str, Any]], object] | None = None) -> None:
        self.interrupted = False
        self._progress = progress
        self._failure: BaseException | None = None
        self._stop = handle_of(lib.gradloom_stop_new)
        self._heard = ProgressFunction(self._tell) if progress else ProgressFunction()
        self.hooks = Hooks(self._heard, LogFunction(), None, self._stop)

    def _tell(self, _user: object, text: bytes) -> int:
        if self._failure is not None or self._progress is None:
            return 1
        try:
            return 1 if self._progress(json.loads(text)) is True else 0
        except BaseException as error:  # must not cross the library
            self._failure = error
            return 1

    def run(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls function(*arguments), whose hooks are self.hooks; raises the exception of its status."""
        try:
            status, message = self._call(function, arguments)
        finally:
            close(self._stop)
        if self._failure is not None:
            raise self._failure
        if status != 0:
            raise error_of(status, message)

    def json_of(self, function: Callable[..., int], *arguments: Any) -> Any:
        """The JSON value that a function returns by its last argument, behind the hooks. Ctrl-C raises
        KeyboardInterrupt."""
        pointer = ctypes.c_void_p()
        self.run(function, *arguments, ctypes.byref(self.hooks), ctypes.byref(pointer))
        text = take_text(pointer)
        if self.interrupted:
            raise KeyboardInterrupt
        return json.loads(text)

    def _interrupt(self) -> None:
        self.interrupted = True
        lib.gradloom_stop(self._stop)

    def _call(self, function: Callable[..., int], arguments: tuple[Any, ...]) -> tuple[int, str]:
        if threading.current_thread() is not threading.main_thread():  # signals go to the main thread alone
            status = function(*arguments)
            return status, last_error() if status else ""
        result: list[tuple[int, str]] = []
        done = threading.Event()

        def work() -> None:
            try:
                status = function(*arguments)
                result.append((status, last_error() if status else ""))
            finally:
                done.set()

        worker = threading.Thread(target=work, name="gradloom")
        # A handler that raises may be called inside a finalizer, which swallows the exception; this one does not raise.
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if default:
            signal.signal(signal.SIGINT, lambda _number, _frame: self._interrupt())
        try:
            worker.start()
            while not done.is_set():
                try:
                    done.wait(0.1)  # a signal that another thread got does not end a wait
                except KeyboardInterrupt:  # of a handler of the caller's
                    self._interrupt()
            worker.join()
        finally:
            if default:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if not result:
            raise InternalError("the call ended without a result")
        return result[0]
