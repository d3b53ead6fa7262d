"""Hard circuits and logic automata: learn one, run it on arrays, export it with a proof."""

from __future__ import annotations

import base64
import ctypes
import io
import json
import os
import struct
import weakref
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import AnyArray, bits, borrowed
from ._fit import Fit
from ._library import LongCall, check, close, handle_of, json_of, lib, path_name, path_text, settings_text, take_text
from ._options import merged, nested, put, threads_of
from .errors import InvalidInputError, NotFoundError
from .model import Model

Bits = NDArray[np.uint8]

_SHORT_RUN = 1 << 28  # gates of all cells and steps that take a few milliseconds: nobody has to stop them


def shipped_circuits() -> list[str]:
    """The names of the circuits that ship with the program: Circuit.load("game-of-life").

    >>> "game-of-life" in shipped_circuits()
    True
    """
    return list(json_of(lib.gradloom_circuits))


class Export:
    """A circuit as text in one of the formats, and the result of its proof."""

    def __init__(self, text: str, report: dict[str, Any]) -> None:
        self.text = text
        self.report = report

    @property
    def proved(self) -> bool:
        """Whether every output was proved equal to the circuit's; false without verify=True."""
        return bool(self.report.get("proved", False))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the text."""
        with open(path_name(path, "path"), "w", encoding="utf-8") as file:
            file.write(self.text)

    def __repr__(self) -> str:
        return f"<Export as {self.report.get('format')}, {self.report.get('gates')} gates, proved: {self.proved}>"


class Circuit:
    """A hard circuit of two-input gates. A rule for cells runs on grids; any circuit evaluates rows of bits.

    >>> life = Circuit.load("game-of-life")
    >>> life.rule
    'B3/S23'
    >>> grid = np.zeros((5, 5), dtype=np.uint8)
    >>> grid[2, 1:4] = 1
    >>> life.run(grid, steps=1)[:, 2].tolist()
    [0, 1, 1, 1, 0]
    """

    def __init__(self, handle: int) -> None:
        self._adopt(handle)

    def _adopt(self, handle: int) -> None:
        self._handle = handle
        self._finalizer = weakref.finalize(self, close, handle)
        self._about: dict[str, Any] | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Circuit:
        """A circuit.json, model file or run folder, or a shipped circuit by name."""
        return cls(handle_of(lib.gradloom_circuit_load, path_text(path, "path")))

    @classmethod
    def from_json(cls, text: str) -> Circuit:
        """The circuit of a text that to_json() gave."""
        if not isinstance(text, str):
            raise TypeError(f"text is {type(text).__name__}, but must be a text of JSON")
        return cls(handle_of(lib.gradloom_circuit_parse, text.encode()))

    def to_json(self) -> str:
        """The circuit as circuit.json has it."""
        return self.export("json", minimiser="off").text

    @property
    def description(self) -> dict[str, Any]:
        """inputs, outputs, gates, active, depth; of a rule for cells also channels, boundary, rule."""
        if self._about is None:
            self._about = json_of(lib.gradloom_circuit_describe, self._handle)
        return self._about

    @property
    def gates(self) -> int:
        """The number of gates."""
        return int(self.description["gates"])

    @property
    def depth(self) -> int:
        """Gates on the longest path from an input to an output."""
        return int(self.description["depth"])

    @property
    def channels(self) -> int | None:
        """Bits per cell; None for a plain circuit."""
        return self.description.get("channels")

    @property
    def rule(self) -> str:
        """ "B3/S23" for the game of life; "" for a circuit that does not count neighbours."""
        return str(self.description.get("rule", ""))

    def run(
        self,
        grid: Any,
        steps: int = 1,
        *,
        every: int | None = None,
        fire: float | None = None,
        seed: int | None = None,
        boundary: str | None = None,
        n_jobs: int | None = None,
    ) -> Bits:
        """The cells after `steps` steps: (H, W) for one channel, else (C, H, W).

        every: returns the states after every `every` steps instead, the start first: (frames, ...).
        """
        if self.channels is None:
            raise InvalidInputError("a plain circuit is not a cell rule and cannot run on a grid; use evaluate()")
        for name, value in (("steps", steps), ("every", every)):
            if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 0):
                raise InvalidInputError(f"{name} is {value!r}, but must be an integer, 0 or more")
        flat = np.ndim(grid) == 2
        now = bits(np.asarray(grid)[np.newaxis] if flat else grid, "grid", 3)
        if every is None:
            result = self._step(now, int(steps), fire, seed, boundary, n_jobs)
            return result[0] if flat else result
        if int(every) < 1:
            raise InvalidInputError("every is 0, but must be 1 or more")
        if fire is not None and fire < 1:
            # Which cells fire depends on the number of the step: frames are runs of their own length.
            frames = [self._step(now, n, fire, seed, boundary, n_jobs) for n in range(0, int(steps) + 1, int(every))]
        else:
            frames = [now]
            for _ in range(int(steps) // int(every)):
                frames.append(self._step(frames[-1], int(every), fire, seed, boundary, n_jobs))
        film = np.stack(frames)
        return film[:, 0] if flat else film

    def _step(
        self, start: Bits, steps: int, fire: float | None, seed: int | None, boundary: str | None, n_jobs: int | None
    ) -> Bits:
        settings = {"steps": steps, "fire": fire, "seed": seed, "boundary": boundary, "threads": threads_of(n_jobs)}
        end = np.empty_like(start)
        arrays = borrowed(start), borrowed(end)
        if steps * start.size * self.gates < _SHORT_RUN:
            check(lib.gradloom_circuit_run(self._handle, settings_text(settings), None, *arrays))
            return end
        call = LongCall()
        call.run(lib.gradloom_circuit_run, self._handle, settings_text(settings), ctypes.byref(call.hooks), *arrays)
        if call.interrupted:
            raise KeyboardInterrupt
        return end

    def evaluate(self, inputs: Any) -> Bits:
        """The outputs (rows, outputs) for rows of bits (rows, inputs)."""
        rows = bits(inputs, "inputs", 2)
        out = np.empty((rows.shape[0], self.description["outputs"]), dtype=np.uint8)
        check(lib.gradloom_circuit_evaluate(self._handle, borrowed(rows), borrowed(out)))
        return out

    def __call__(self, inputs: Any) -> Bits:
        """evaluate()."""
        return self.evaluate(inputs)

    def export(
        self,
        format: str = "c",
        path: str | os.PathLike[str] | None = None,
        *,
        verify: bool = False,
        name: str | None = None,
        minimiser: str | None = None,
    ) -> Export:
        """As "c", "verilog", "json", "dot" or "svg". verify: proves that the exported text computes the same function.

        >>> Circuit.load("game-of-life").export("verilog", verify=True).proved
        True
        """
        settings = {"format": format, "verify": bool(verify), "name": name, "minimiser": minimiser}
        text, report = ctypes.c_void_p(), ctypes.c_void_p()
        call, out = LongCall(), (ctypes.byref(text), ctypes.byref(report))
        call.run(lib.gradloom_circuit_export, self._handle, settings_text(settings), ctypes.byref(call.hooks), *out)
        made = Export(take_text(text), json.loads(take_text(report)))
        if call.interrupted:
            raise KeyboardInterrupt
        if path is not None:
            made.save(path)
        return made

    def animate(self, grid: Any, steps: int = 60, *, every: int = 1, scale: int | None = None, **options: Any) -> Film:
        """A film of the cells that a notebook shows and save() writes as an animated PNG."""
        frames = self.run(grid, steps, every=every, **options)
        return Film(frames if frames.ndim == 3 else frames[:, 0], scale)

    def _repr_html_(self) -> str:
        svg = self.export("svg", minimiser="off").text if self.gates <= 200 else ""
        if not svg:
            return repr(self).replace("<", "&lt;")
        data = base64.b64encode(svg.encode()).decode()
        return f'<img alt="circuit" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'

    def __getstate__(self) -> dict[str, Any]:
        return {"json": self.to_json()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._adopt(handle_of(lib.gradloom_circuit_parse, state["json"].encode()))

    def __repr__(self) -> str:
        about = self.description
        what = f"rule of {about['channels']} channels" if "channels" in about else f"{about['inputs']} inputs"
        return f"<Circuit: {what}, {about['gates']} gates, depth {about['depth']}>"


class Film:
    """Frames (N, H, W) of bits, as an animated PNG."""

    def __init__(self, frames: AnyArray, scale: int | None = None, seconds: float = 0.1) -> None:
        self.frames = bits(frames, "frames", 3)
        self.scale = scale or max(1, 320 // max(1, *self.frames.shape[1:]))
        self.seconds = seconds

    def png(self) -> bytes:
        """The file: one bit for each pixel, black cells on white."""
        count, height, width = self.frames.shape
        large = np.repeat(np.repeat(1 - self.frames, self.scale, axis=1), self.scale, axis=2)
        rows = np.packbits(large, axis=2)

        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        def packed(frame: AnyArray) -> bytes:
            lines = np.concatenate([np.zeros((frame.shape[0], 1), np.uint8), frame], axis=1)
            return zlib.compress(lines.tobytes(), 9)

        out = io.BytesIO()
        size = (width * self.scale, height * self.scale)
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 1, 0, 0, 0, 0)))
        out.write(chunk(b"acTL", struct.pack(">II", count, 0)))
        number = 0
        for i in range(count):
            delay = (max(1, round(self.seconds * 1000)), 1000)
            out.write(chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, *size, 0, 0, *delay, 0, 0)))
            number += 1
            if i == 0:
                out.write(chunk(b"IDAT", packed(rows[i])))
            else:
                out.write(chunk(b"fdAT", struct.pack(">I", number) + packed(rows[i])))
                number += 1
        out.write(chunk(b"IEND", b""))
        return out.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the animated PNG, to a name that ends in .png or .apng."""
        name = path_name(path, "path")
        if not name.lower().endswith((".png", ".apng")):
            raise ValueError(f"{name!r}: a film is an animated PNG; its name ends in .png or .apng")
        with open(name, "wb") as file:
            file.write(self.png())

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png()).decode()
        return f'<img alt="cells" style="image-rendering:pixelated" src="data:image/png;base64,{data}">'

    def __repr__(self) -> str:
        return f"<Film of {self.frames.shape[0]} frames of {self.frames.shape[1]} x {self.frames.shape[2]} cells>"


def circuit_of(model: Model) -> Circuit:
    """The hard circuit of a model of gates or of an automaton."""
    return Circuit(handle_of(lib.gradloom_circuit_of, model._open()))


class Automaton(Model):
    """A logic automaton: cells whose update is a learned circuit. Options: `gradloom.recipe_keys("automaton")`.

    recipe: a shipped recipe to start from ("checkerboard-small"); `options` take precedence over its keys.

    >>> ca = Automaton(channels=4, kernels=4, perception=[8, 4, 2], update=[32, 16, 8, 4], steps=2, seed=0)
    >>> circuit = ca.fit(np.eye(6), epochs=2).circuit()
    >>> circuit.run(np.zeros((4, 6, 6)), steps=2).shape
    (4, 6, 6)
    """

    def __init__(
        self,
        channels: int | None = None,
        kernels: int | None = None,
        perception: Sequence[int] | None = None,
        update: Sequence[int] | None = None,
        steps: int | None = None,
        boundary: str | None = None,
        seed: int | None = None,
        *,
        recipe: str | None = None,
        n_jobs: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        keys = {
            "model.channels": channels,
            "model.kernels": kernels,
            "model.perception": None if perception is None else list(perception),
            "model.update": None if update is None else list(update),
            "model.steps": steps,
            "model.boundary": boundary,
            "seed": seed,
        }
        own: dict[str, Any] = {"family": "automaton"}
        for key, value in keys.items():
            put(own, key, value)
        self._recipe = merged(own, nested(options))
        self._base = recipe
        self._n_jobs = n_jobs

    def fit(
        self,
        target: Any = None,
        *,
        epochs: int | None = None,
        fire: float | None = None,
        damage: float | None = None,
        options: Mapping[str, Any] | None = None,
        verbose: bool | int | None = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> Automaton:
        """Learns to reach a picture of bits: an array (H, W) or (channels, H, W), or a PNG file; None: the task that
        data.task of the options names, such as "life" or "checkerboard"."""
        recipe = dict(self._recipe)
        for key, value in (("epochs", epochs), ("model.fire", fire), ("data.damage", damage)):
            extra: dict[str, Any] = {}
            put(extra, key, value)
            recipe = merged(recipe, extra)
        recipe = merged(recipe, nested(options))
        array = None
        if isinstance(target, (str, os.PathLike)):
            if not os.path.exists(target):
                raise NotFoundError(f"there is no file {os.fspath(target)}")
            recipe = merged(recipe, {"data": {"task": "picture", "image": os.path.abspath(target)}})
        elif target is not None:
            array = bits(np.asarray(target)[np.newaxis] if np.ndim(target) == 2 else target, "target", 3)
        fit = Fit(recipe, self._base, threads_of(self._n_jobs), None, 0, verbose, callback)
        handle, interrupted = fit.run(lib.gradloom_fit_grid, {}, None if array is None else borrowed(array))
        self._adopt(handle, fit.threads)
        if interrupted:
            raise KeyboardInterrupt
        return self

    def circuit(self) -> Circuit:
        """The hard circuit: each gate is the function with its largest weight."""
        return circuit_of(self)

    def predict(self, X: Any) -> AnyArray:
        """The cells (H, W) or (C, H, W) after the steps that the automaton was trained for, by the hard circuit."""
        model = self.options["model"]
        return self.circuit().run(X, int(model["steps"]), fire=model.get("fire"))

    def animate(self, grid: Any = None, steps: int | None = None, **options: Any) -> Film:
        """A film of the hard circuit from `grid`, or from random cells."""
        about = self.description["options"]
        circuit = self.circuit()
        if grid is None:
            data = about["data"]
            shape = (circuit.channels or 1, int(data["height"]), int(data["width"]))
            grid = np.random.default_rng(0).integers(0, 2, shape, dtype=np.uint8)
        return circuit.animate(grid, steps or 2 * int(about["model"]["steps"]), **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Automaton:
        """An automaton that save() or `gradloom train` wrote."""
        from .model import load_file

        threads = threads_of(n_jobs)
        return cls._of(load_file(path, threads), threads)

    @classmethod
    def _of(cls, handle: int, threads: int) -> Automaton:
        automaton = cls()
        automaton._adopt(handle, threads)
        family = automaton.description["family"]
        if family != "automaton":
            raise InvalidInputError(f"this is a model of family {family!r}, not an automaton")
        return automaton
