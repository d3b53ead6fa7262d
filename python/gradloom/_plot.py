"""Pictures with matplotlib, which is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import UnsupportedError


def network(
    width: Sequence[int],
    edges: Sequence[dict[str, Any]],
    names: Mapping[tuple[int, int, int], str] | None = None,
    multiply: Sequence[int] = (),
) -> Any:
    """A figure: nodes in layers, inputs at the bottom, and the function of every edge in a box, maybe with a name.
    Products are crosses, between their factors."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise UnsupportedError("plot(backend='matplotlib') needs matplotlib; plot() draws without it") from missing
    products = [0, *multiply, *[0] * (len(width) - 1 - len(multiply))]  # of each layer of nodes
    most = max(width[i] * (width[i + 1] + products[i + 1]) for i in range(len(width) - 1))
    if most > 200:
        raise UnsupportedError(f"a layer of {most} edges is too large for a figure")
    figure = Figure(figsize=(max(4.0, 0.9 * most), 2.6 * (len(width) - 1) + 0.8))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    levels = [0.06 + 0.88 * level / (len(width) - 1) for level in range(len(width))]

    def position(layer: int, total: int) -> int:
        """The place of a sum among those of its layer: factors of a product stand side by side."""
        nodes, plain = width[layer], width[layer] - products[layer]
        if total < plain:
            return total
        return 2 * total - plain if total < nodes else 2 * (total - products[layer]) - plain + 1

    def place(layer: int, node: int) -> float:
        middle = 0.5 if node >= width[layer] - products[layer] else 0.0
        return (position(layer, node) + middle + 0.5) / (width[layer] + products[layer])

    for edge in edges:
        layer, source, target = edge["layer"], edge["from"], edge["to"]
        count = width[layer] * (width[layer + 1] + products[layer + 1])
        x = (position(layer + 1, target) * width[layer] + source + 0.5) / count
        node = target if target < width[layer + 1] else target - products[layer + 1]
        y = (levels[layer] + levels[layer + 1]) / 2
        strength = 0.1 + 0.9 * float(edge["importance"])
        for end, level in ((place(layer, source), levels[layer]), (place(layer + 1, node), levels[layer + 1])):
            axes.plot([end, x], [level, y], color="#475467", alpha=strength, linewidth=1.0, zorder=0)
        size = min(0.8 / count, 0.16)
        box = figure.add_axes((x - size / 2, y - 0.08 / (len(width) - 1), size, 0.16 / (len(width) - 1)))
        box.plot(edge["x"], edge["y"], color="#0b62b0", alpha=strength)
        box.set_xticks([])
        box.set_yticks([])
        if names and (layer, source, target) in names:
            box.set_title(names[layer, source, target], fontsize=8, pad=2)
    for layer, nodes in enumerate(width):
        plain = nodes - products[layer]
        for marker, drawn in (("o", range(plain)), ("x", range(plain, nodes))):
            places = [place(layer, n) for n in drawn]
            axes.scatter(places, [levels[layer]] * len(places), color="#1b1f27", marker=marker, zorder=2)
    return figure
