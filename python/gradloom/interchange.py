"""Networks of other programs as model files of gradloom (docs/format.md): efficient-kan and pykan."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._arrays import AnyArray, as_array
from .errors import InvalidInputError

_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """The tensors of a .safetensors file."""
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 8 or struct.unpack("<Q", content[:8])[0] > len(content) - 8:
        raise InvalidInputError(f"{os.fspath(path)} is not a safetensors file")
    length = struct.unpack("<Q", content[:8])[0]
    try:
        head = json.loads(content[8 : 8 + length])
        data = content[8 + length :]
        tensors = {}
        for name, entry in head.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{os.fspath(path)} is not a safetensors file: {error}") from error
    return tensors


def _write_model(tensors: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> bytes:
    head: dict[str, Any] = {"__metadata__": {key: json.dumps(value) for key, value in metadata.items()}}
    parts: list[bytes] = []
    at = 0
    for name, values in tensors.items():
        content = np.ascontiguousarray(values, dtype="<f8").tobytes()
        head[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [at, at + len(content)]}
        parts.append(content)
        at += len(content)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


class _Layer:
    """One layer: grids with outer knots (in, G + 2k + 1), coefficients (in, G + k, out), base weights (in, out)."""

    def __init__(
        self, grid: AnyArray, coefficients: AnyArray, base: AnyArray, bias: AnyArray | None, name: str
    ) -> None:
        self.inputs, rows, self.outputs = coefficients.shape
        self.degree = grid.shape[1] - 1 - rows
        self.intervals = rows - self.degree
        if self.degree < 1 or self.intervals < 1 or grid.shape[0] != self.inputs:
            raise InvalidInputError(f"{name}: a grid of {grid.shape} does not fit coefficients of {coefficients.shape}")
        self.weight = np.concatenate([coefficients, base[:, np.newaxis, :]], axis=1)
        self.bias = np.zeros(self.outputs) if bias is None else bias
        self.knots = grid[:, self.degree : -self.degree]
        self._check_even(grid, name)

    def _check_even(self, grid: AnyArray, name: str) -> None:
        steps = np.diff(grid, axis=1)
        width = np.abs(self.knots[:, -1] - self.knots[:, 0])[:, np.newaxis]
        if (steps <= 0).any() or (np.abs(steps - steps.mean(axis=1, keepdims=True)) > 1e-5 * width).any():
            raise InvalidInputError(
                f"{name}: its grid is not uniform; a grid that was moved to quantiles of data cannot be read exactly"
            )


def _model_file(layers: list[_Layer]) -> bytes:
    for i, layer in enumerate(layers):
        if layer.degree != layers[0].degree or layer.intervals != layers[0].intervals:
            raise InvalidInputError(
                f"layer {i} has another grid or degree than layer 0; all layers of a gradloom network have the same"
            )
        if i > 0 and layer.inputs != layers[i - 1].outputs:
            raise InvalidInputError(
                f"layer {i} has {layer.inputs} inputs, but layer {i - 1} has {layers[i - 1].outputs} outputs"
            )
    first, last = layers[0], layers[-1]
    tensors: dict[str, AnyArray] = {}
    for i, layer in enumerate(layers):
        tensors[f"parameters/layer{i}.weight"] = layer.weight
        tensors[f"parameters/layer{i}.bias"] = layer.bias
    tensors["buffers/input.mean"] = np.zeros(first.inputs)
    tensors["buffers/input.std"] = np.ones(first.inputs)
    tensors["buffers/output.mean"] = np.zeros(last.outputs)
    tensors["buffers/output.std"] = np.ones(last.outputs)
    for i, layer in enumerate(layers):
        tensors[f"buffers/layer{i}.lo"] = layer.knots[:, 0]
        tensors[f"buffers/layer{i}.hi"] = layer.knots[:, -1]
    features = [f"x{i + 1}" for i in range(first.inputs)]
    options = {
        "family": "kan",
        "precision": "float64",
        "task": "regression",
        "model": {
            "hidden": [layer.outputs for layer in layers[:-1]],
            "grid": first.intervals,
            "degree": first.degree,
            "base": True,
            "bias": True,
            "outside": "extend",
            "knots": "uniform",
        },
    }
    metadata = {
        "format": "gradloom-model",
        "version": 2,
        "family": "kan",
        "precision": "float64",
        "options": options,
        "features": features,
        "targets": [f"y{j + 1}" for j in range(last.outputs)],
        "classes": [],
        "normalisation": {"inputs": "none"},
        "input": {
            "header": False,
            "columns": [],
            "features": [{"name": name, "categories": [], "means": []} for name in features],
        },
        "ranges": [],
        "training": {"epochs": 0, "finished": True},
    }
    return _write_model(tensors, metadata)


def _state(state: Any) -> dict[str, AnyArray]:
    if isinstance(state, (str, os.PathLike)):
        return {k: np.asarray(v, dtype=np.float64) for k, v in read_safetensors(state).items()}
    if not isinstance(state, Mapping):
        raise TypeError(f"state is {type(state).__name__}, but must be a state_dict or a .safetensors file")
    return {str(k): np.asarray(as_array(v, str(k)), dtype=np.float64) for k, v in state.items()}


def _numbers(state: Mapping[str, AnyArray], pattern: str) -> list[int]:
    found = sorted({int(m.group(1)) for key in state if (m := re.fullmatch(pattern, key))})
    if not found or found != list(range(len(found))):
        raise InvalidInputError(f"the state has no layers 0, 1, ...: its keys are {', '.join(sorted(state)[:8])}")
    return found


def from_efficient_kan(state: Any) -> bytes:
    """layers.N.grid, base_weight, spline_weight and, where it is used, spline_scaler."""
    tensors = _state(state)
    layers = []
    for n in _numbers(tensors, r"layers\.(\d+)\.spline_weight"):
        spline = tensors[f"layers.{n}.spline_weight"]  # (out, in, G + k)
        scaler = tensors.get(f"layers.{n}.spline_scaler")
        if scaler is not None:
            spline = spline * scaler[:, :, np.newaxis]
        layers.append(
            _Layer(
                tensors[f"layers.{n}.grid"],
                spline.transpose(1, 2, 0),
                tensors[f"layers.{n}.base_weight"].T,
                None,
                f"layers.{n}",
            )
        )
    return _model_file(layers)


def from_pykan(state: Any) -> bytes:
    """act_fun.N.grid, coef, mask, scale_base, scale_sp, and the affine node_ and subnode_ scales and biases.

    Symbolic edges must be off (symbolic_fun.N.mask zero). The base function is taken to be silu, pykan's default.
    """
    tensors = _state(state)
    layers = []
    for n in _numbers(tensors, r"act_fun\.(\d+)\.coef"):
        name = f"act_fun.{n}"
        symbolic = tensors.get(f"symbolic_fun.{n}.mask")
        if symbolic is not None and np.any(symbolic != 0):
            raise InvalidInputError(
                f"symbolic_fun.{n} has edges with formulas, which splines cannot express exactly"
            )
        mask = tensors.get(f"{name}.mask", np.ones(tensors[f"{name}.coef"].shape[:2]))
        coefficients = (
            tensors[f"{name}.coef"] * (mask * tensors[f"{name}.scale_sp"])[:, :, np.newaxis]
        )  # (in, out, G + k)
        base = mask * tensors[f"{name}.scale_base"]
        outputs = base.shape[1]
        scale, bias = np.ones(outputs), np.zeros(outputs)
        for kind in ("subnode", "node"):
            factor = tensors.get(f"{kind}_scale_{n}", tensors.get(f"{kind}_scale.{n}", np.ones(outputs)))
            offset = tensors.get(f"{kind}_bias_{n}", tensors.get(f"{kind}_bias.{n}", np.zeros(outputs)))
            if factor.shape != (outputs,):
                raise InvalidInputError(
                    f"{kind}_scale.{n} is {factor.shape}, of {outputs} sums: a state with "
                    "multiplication nodes does not tell how many factors they have, and cannot be read"
                )
            scale, bias = scale * factor, bias * factor + offset
        layers.append(
            _Layer(
                tensors[f"{name}.grid"],
                coefficients.transpose(0, 2, 1) * scale,
                base * scale,
                bias,
                name,
            )
        )
    return _model_file(layers)
