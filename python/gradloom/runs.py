"""Runs in folders: train a recipe, resume it, read its results."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import AnyArray
from ._library import json_of, lib, settings_text, take_text
from ._options import nested, threads_of
from ._progress import WatchedCall
from .errors import InvalidInputError, NotFoundError
from .kan import KAN
from .model import Model, load_file, page_html


def recipes() -> dict[str, str]:
    """The recipes that ship with the program, with a sentence about each.

    >>> "kan-hello" in recipes()
    True
    """
    return {r["name"]: r["summary"] for r in json_of(lib.gradloom_recipes)}


def _override(key: str, value: Any) -> str:
    """key=value as TOML has it."""
    if isinstance(value, (str, os.PathLike)):
        return f"{key}={json.dumps(os.fspath(value))}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    try:
        return f"{key}={json.dumps(list(value) if isinstance(value, (tuple, range)) else value)}"
    except TypeError as error:
        raise TypeError(
            f"the option {key} is {value!r}; it must be a number, text, boolean or a list of them"
        ) from error


def _overrides(options: Mapping[str, Any] | Sequence[str]) -> list[str]:
    if isinstance(options, (str, bytes)):
        raise TypeError(f"overrides is {options!r}, but must be a dictionary of recipe keys, or a list of 'key=value'")
    if not isinstance(options, Mapping):
        return [str(option) for option in options]

    def flat(table: Mapping[str, Any], prefix: str) -> list[str]:
        lines: list[str] = []
        for key, value in table.items():
            lines += flat(value, prefix + key + ".") if isinstance(value, Mapping) else [_override(prefix + key, value)]
        return lines

    return flat(nested(options), "")


def _free_folder(recipe: str, options: list[str]) -> Path:
    """runs/NAME-SEED, or runs/NAME-SEED-2 and so on. SEED is that of the overrides, else 0: a seed that the recipe sets
    is not known here."""
    name = Path(recipe).stem if recipe.endswith(".toml") else Path(recipe).name
    seed = next((o.split("=", 1)[1] for o in reversed(options) if o.startswith("seed=")), "0")
    base, number = Path("runs") / f"{name}-{seed}", 1
    path = base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def train(
    recipe: str | os.PathLike[str],
    overrides: Mapping[str, Any] | Sequence[str] = (),
    folder: str | os.PathLike[str] | None = None,
    *,
    n_jobs: int | None = None,
    device: str | None = None,
    arithmetic: str | None = None,
    data_root: str | os.PathLike[str] | None = None,
    verbose: bool | int | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Trains a shipped recipe by name, or a .toml file, as `gradloom train` does: equal bits, equal files.

    folder None: a new one under runs/. Ctrl-C stops after the current step; resume() continues with equal bits.
    """
    if not isinstance(recipe, (str, os.PathLike)):
        raise TypeError(f"recipe is {recipe!r}, but must be a name or a path")
    name, options = os.fspath(recipe), _overrides(overrides)
    place = Path(folder) if folder is not None else _free_folder(name, options)
    settings = {"recipe": name, "overrides": options, "folder": str(place)}
    return _run(lib.gradloom_train, settings, place, n_jobs, device, arithmetic, data_root, verbose, callback)


def resume(
    folder: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    device: str | None = None,
    arithmetic: str | None = None,
    data_root: str | os.PathLike[str] | None = None,
    verbose: bool | int | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Continues a run from its last checkpoint, with the bits of a run that was never interrupted."""
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder is {folder!r}, but must be a path")
    settings = {"folder": os.fspath(folder)}
    return _run(lib.gradloom_resume, settings, Path(folder), n_jobs, device, arithmetic, data_root, verbose, callback)


def _run(
    function: Callable[..., int],
    settings: dict[str, Any],
    folder: Path,
    n_jobs: int | None,
    device: str | None,
    arithmetic: str | None,
    data_root: str | os.PathLike[str] | None,
    verbose: bool | int | None,
    callback: Callable[[dict[str, Any]], object] | None,
) -> Run:
    root = os.fspath(data_root) if data_root is not None else os.environ.get("GRADLOOM_DATA") or "."
    settings |= {"threads": threads_of(n_jobs), "device": device, "arithmetic": arithmetic, "data_root": root}
    call = WatchedCall(verbose, callback)
    text = ctypes.c_void_p()
    call.run(function, settings_text(settings), ctypes.byref(call.hooks), ctypes.byref(text))
    summary = json.loads(take_text(text))
    if call.interrupted:
        raise KeyboardInterrupt(f"stopped; gradloom.resume({str(folder)!r}) continues the run")
    return Run(folder, summary)


class Run:
    """A run folder: its log, its metrics and its model."""

    def __init__(self, folder: str | os.PathLike[str], summary: dict[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        if not (self.folder / "recipe.toml").exists():
            raise NotFoundError(f"{self.folder} is not a run folder: it has no recipe.toml")
        self._summary = summary
        self._model: Model | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the run; empty for a run that was opened from its folder."""
        return dict(self._summary or {})

    @property
    def finished(self) -> bool:
        """Whether training is finished."""
        path = self.folder / "model.safetensors"
        if not path.exists():
            return False
        try:
            with path.open("rb") as file:
                header = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), path.stat().st_size)))
            return bool(json.loads(header["__metadata__"]["training"])["finished"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{path} is not a model file, or only a part of one: {error}") from error

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl that are complete; a run that goes on may be writing the next one."""
        path = self.folder / "log.jsonl"
        if not path.exists():
            return []
        lines: list[dict[str, Any]] = []
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            try:
                lines += [json.loads(line)] if line.strip() else []
            except ValueError as error:
                raise InvalidInputError(f"{path}: line {number} is not JSON: {error}") from error
        return lines

    @property
    def history(self) -> dict[str, AnyArray]:
        """The figures logged after each epoch, an array for each."""
        lines = [line for line in self.log if line.get("event") == "epoch"]
        names = [n for n in (lines[0] if lines else {}) if n != "event"]
        whole = ("stage", "epoch", "run_epoch")
        columns: dict[str, AnyArray] = {}
        for name in names:
            values = [line.get(name) for line in lines]
            if all(v is None or isinstance(v, (int, float)) for v in values):
                numbers = values if name in whole else [np.nan if v is None else v for v in values]
                columns[name] = np.array(numbers, dtype=np.int64 if name in whole else np.float64)
        return columns

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the last stage that ended: train, and validation and test where there are such data."""
        stages = [line for line in self.log if line.get("event") == "stage"]
        return dict(stages[-1]["metrics"]) if stages else {}

    @property
    def model(self) -> Model:
        """The trained model, from model.safetensors."""
        if self._model is None:
            path = self.folder / "model.safetensors"
            if not path.exists():
                raise NotFoundError(f"{self.folder} has no model yet; gradloom.resume({str(self.folder)!r}) continues")
            self._model = _model_of(path)
        return self._model

    def predict(self, X: Any) -> AnyArray:
        """The model's predictions: of rows, or of graphs."""
        return self.model.predict(X)

    def predict_file(
        self,
        data: str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        *,
        nodes: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        distances: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """Predictions for the rows, graphs or patterns of a file, written to a .csv or .npy file; returns a summary.

        Of graphs: `nodes` is the table of the nodes where `data` is that of the edges, `folder` has the files that a
        collection lists, `distances` are the exact ones of pairs.
        """
        files = {"out": out, "nodes": nodes, "folder": folder, "distances": distances}
        settings = {"model": str(self.folder), "data": os.fspath(data)}
        settings |= {key: os.fspath(file) for key, file in files.items() if file is not None}
        return dict(json_of(lib.gradloom_predict_file, settings_text(settings)))

    def report(self) -> str:
        """The page report.html."""
        path = self.folder / "report.html"
        if not path.exists():
            raise NotFoundError(f"{self.folder} has no report yet: the run is not finished")
        return path.read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        return page_html(self.report()) if self._state() == "finished" else escape(repr(self))

    def _state(self) -> str:
        try:
            return "finished" if self.finished else "not finished"
        except (InvalidInputError, OSError):
            return "with a model file that cannot be read"

    def __repr__(self) -> str:
        return f"<Run in {self.folder}, {self._state()}>"


def _model_of(path: str | os.PathLike[str], threads: int = 0, arithmetic: str | None = None) -> Model:
    """A model file as the class of its family."""
    handle = load_file(path, threads, arithmetic)
    model = Model(handle, threads)
    family = model.description["family"]
    if family == "kan":
        model._finalizer.detach()
        return KAN._of(handle, threads, arithmetic)
    if family == "automaton":
        from .logic import Automaton

        model._finalizer.detach()
        return Automaton._of(handle, threads)
    if family == "graph":
        from .graph import GraphModel

        model._finalizer.detach()
        return GraphModel(handle, threads)
    return model


def load(
    path: str | os.PathLike[str], *, n_jobs: int | None = None, arithmetic: str | None = None
) -> Model | Run:
    """A model file as a Model (KAN, Automaton, GraphModel by its family), or a run folder as a Run. `arithmetic` None:
    a model has that of its training."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is {path!r}, but must be a path")
    if os.path.isdir(path):
        return Run(path)
    if not os.fspath(path):
        raise InvalidInputError("path is empty")
    return _model_of(path, threads_of(n_jobs), arithmetic)
