"""Networks of efficient-kan and pykan, as their definitions compute them."""

import numpy as np
import pytest

from gradloom import KAN
from gradloom.errors import InvalidInputError


def basis(x, grid, degree):
    """B-splines on extended knots, by Cox and de Boor: x (N, in), grid (in, K) -> (N, in, K - 1 - degree)."""
    x = x[:, :, np.newaxis]
    values = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).astype(float)
    for d in range(1, degree + 1):
        left = (x - grid[:, : -(d + 1)]) / (grid[:, d:-1] - grid[:, : -(d + 1)])
        right = (grid[:, d + 1 :] - x) / (grid[:, d + 1 :] - grid[:, 1:-d])
        values = left * values[:, :, :-1] + right * values[:, :, 1:]
    return values


def silu(x):
    return x / (1 + np.exp(-x))


def even_grid(inputs, intervals, degree):
    step = 2 / intervals
    return np.tile(np.arange(-degree, intervals + degree + 1) * step - 1, (inputs, 1))


WIDTH, GRID, DEGREE = [3, 4, 2], 5, 3


def efficient_state(random):
    state = {}
    for n, (i, o) in enumerate(zip(WIDTH, WIDTH[1:])):
        state[f"layers.{n}.grid"] = even_grid(i, GRID, DEGREE)
        state[f"layers.{n}.base_weight"] = random.normal(size=(o, i)) * 0.3
        state[f"layers.{n}.spline_weight"] = random.normal(size=(o, i, GRID + DEGREE)) * 0.3
        state[f"layers.{n}.spline_scaler"] = random.normal(size=(o, i))
    return state


def efficient_forward(state, x):
    for n in range(len(WIDTH) - 1):
        spline = state[f"layers.{n}.spline_weight"] * state[f"layers.{n}.spline_scaler"][:, :, np.newaxis]
        b = basis(x, state[f"layers.{n}.grid"], DEGREE)
        x = silu(x) @ state[f"layers.{n}.base_weight"].T + np.einsum("nik,oik->no", b, spline)
    return x


def test_efficient_kan_has_equal_outputs_inside_and_outside_of_its_grid():
    random = np.random.default_rng(0)
    state = efficient_state(random)
    x = random.uniform(-1.5, 1.5, (500, 3))
    assert np.abs(KAN.from_efficient_kan(state)(x) - efficient_forward(state, x)).max() < 1e-6


def test_pykan_has_equal_outputs():
    random = np.random.default_rng(1)
    state, y = {}, random.uniform(-0.99, 0.99, (300, 3))
    x = y
    for n, (i, o) in enumerate(zip(WIDTH, WIDTH[1:])):
        grid = even_grid(i, GRID, DEGREE)
        state[f"act_fun.{n}.grid"] = grid
        state[f"act_fun.{n}.coef"] = random.normal(size=(i, o, GRID + DEGREE)) * 0.3
        state[f"act_fun.{n}.mask"] = (random.uniform(size=(i, o)) > 0.2).astype(float)
        state[f"act_fun.{n}.scale_base"] = random.normal(size=(i, o)) * 0.3
        state[f"act_fun.{n}.scale_sp"] = random.normal(size=(i, o))
        for kind in ("subnode", "node"):
            state[f"{kind}_scale.{n}"] = random.normal(size=o)
            state[f"{kind}_bias.{n}"] = random.normal(size=o) * 0.1
        spline = np.einsum("nik,iok->nio", basis(y, grid, DEGREE), state[f"act_fun.{n}.coef"])
        edges = state[f"act_fun.{n}.scale_base"] * silu(y)[:, :, None] + state[f"act_fun.{n}.scale_sp"] * spline
        y = (state[f"act_fun.{n}.mask"] * edges).sum(axis=1)
        for kind in ("subnode", "node"):
            y = y * state[f"{kind}_scale.{n}"] + state[f"{kind}_bias.{n}"]
    assert np.abs(KAN.from_pykan(state)(x) - y).max() < 1e-6


def test_what_cannot_be_read_exactly_is_refused():
    state = efficient_state(np.random.default_rng(0))
    uneven = {**state, "layers.0.grid": np.sort(np.random.default_rng(0).uniform(-1, 1, state["layers.0.grid"].shape))}
    with pytest.raises(InvalidInputError, match="not even"):
        KAN.from_efficient_kan(uneven)
    with pytest.raises(InvalidInputError, match="no layers"):
        KAN.from_efficient_kan({})
    with pytest.raises(InvalidInputError, match="no layers"):
        KAN.from_pykan(state)
    with pytest.raises(TypeError):
        KAN.from_pykan(3)
    with pytest.raises(FileNotFoundError):
        KAN.from_pykan("none.safetensors")


def test_tensors_of_torch_are_read():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = efficient_state(np.random.default_rng(0))
    tensors = {k: torch.tensor(v) for k, v in state.items()}
    x = torch.rand(50, 3, dtype=torch.float64) * 2 - 1
    assert np.abs(KAN.from_efficient_kan(tensors)(x) - efficient_forward(state, x.numpy())).max() < 1e-6
