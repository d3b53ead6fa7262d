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
    with pytest.raises(InvalidInputError, match="not uniform"):
        KAN.from_efficient_kan(uneven)
    with pytest.raises(InvalidInputError, match="no layers"):
        KAN.from_efficient_kan({})
    with pytest.raises(InvalidInputError, match="no layers"):
        KAN.from_pykan(state)
    with pytest.raises(TypeError):
        KAN.from_pykan(3)
    with pytest.raises(FileNotFoundError):
        KAN.from_pykan("none.safetensors")


def torch_module():
    """The layers of efficient-kan and of pykan as modules of torch, with the names of their parameters."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    nn = torch.nn

    def splines(x, grid):
        x = x.unsqueeze(-1)
        values = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for d in range(1, DEGREE + 1):
            left = (x - grid[:, : -(d + 1)]) / (grid[:, d:-1] - grid[:, : -(d + 1)])
            right = (grid[:, d + 1 :] - x) / (grid[:, d + 1 :] - grid[:, 1:-d])
            values = left * values[:, :, :-1] + right * values[:, :, 1:]
        return values

    class EfficientLayer(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.register_buffer("grid", torch.tensor(even_grid(inputs, GRID, DEGREE), dtype=torch.float32))
            self.base_weight = nn.Parameter(0.3 * torch.randn(outputs, inputs))
            self.spline_weight = nn.Parameter(0.3 * torch.randn(outputs, inputs, GRID + DEGREE))
            self.spline_scaler = nn.Parameter(torch.randn(outputs, inputs))

        def forward(self, x):
            scaled = (self.spline_weight * self.spline_scaler.unsqueeze(-1)).flatten(1)
            return nn.functional.linear(nn.functional.silu(x), self.base_weight) + nn.functional.linear(
                splines(x, self.grid).flatten(1), scaled
            )

    class Efficient(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(EfficientLayer(i, o) for i, o in zip(WIDTH, WIDTH[1:]))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    class Activations(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.grid = nn.Parameter(torch.tensor(even_grid(inputs, GRID, DEGREE), dtype=torch.float32), False)
            self.coef = nn.Parameter(0.3 * torch.randn(inputs, outputs, GRID + DEGREE))
            self.mask = nn.Parameter((torch.rand(inputs, outputs) > 0.2).float(), False)
            self.scale_base = nn.Parameter(0.3 * torch.randn(inputs, outputs))
            self.scale_sp = nn.Parameter(torch.randn(inputs, outputs))

        def forward(self, x):
            spline = torch.einsum("nik,iok->nio", splines(x, self.grid), self.coef)
            base = nn.functional.silu(x).unsqueeze(-1)
            return (self.mask * (self.scale_base * base + self.scale_sp * spline)).sum(1)

    class PyKan(nn.Module):
        def __init__(self):
            super().__init__()
            self.act_fun = nn.ModuleList(Activations(i, o) for i, o in zip(WIDTH, WIDTH[1:]))
            for n, outputs in enumerate(WIDTH[1:]):
                for kind in ("subnode", "node"):
                    setattr(self, f"{kind}_scale_{n}", nn.Parameter(torch.randn(outputs)))
                    setattr(self, f"{kind}_bias_{n}", nn.Parameter(0.1 * torch.randn(outputs)))

        def forward(self, x):
            for n, layer in enumerate(self.act_fun):
                x = layer(x)
                for kind in ("subnode", "node"):
                    x = x * getattr(self, f"{kind}_scale_{n}") + getattr(self, f"{kind}_bias_{n}")
            return x

    return torch, Efficient, PyKan


@pytest.mark.parametrize("read, reach", [("from_efficient_kan", 1.5), ("from_pykan", 0.99)])
def test_a_checkpoint_of_torch_has_equal_outputs(read, reach):
    """Through a file that torch wrote, in float32; both are computed in float64."""
    torch, *modules = torch_module()
    torch.manual_seed(0)
    module = modules[read == "from_pykan"]()
    torch.save(module.state_dict(), "checkpoint.pt")
    network = getattr(KAN, read)(torch.load("checkpoint.pt"))
    x = torch.rand(1000, WIDTH[0], dtype=torch.float64) * 2 * reach - reach
    with torch.no_grad():
        y = module.double()(x).numpy()
    assert np.abs(network(x) - y).max() < 1e-6 * max(1.0, np.abs(y).max())


def test_pykan_itself_has_equal_outputs():
    """The network of the package pykan, where that is installed."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    kan = pytest.importorskip("kan", reason="pykan is not installed")
    torch.set_default_dtype(torch.float64)
    try:
        theirs = kan.KAN(width=list(WIDTH), grid=GRID, k=DEGREE, seed=0, auto_save=False)
        x = torch.rand(500, WIDTH[0]) * 1.98 - 0.99
        with torch.no_grad():
            y = theirs(x).numpy()
    finally:
        torch.set_default_dtype(torch.float32)
    assert np.abs(KAN.from_pykan(theirs.state_dict())(x) - y).max() < 1e-6
