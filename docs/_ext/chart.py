"""Drawings of recorded figures, made at build time: errors by the size of a weight, and speed beside the fastest peer.

They are SVG inside the page and take their colours from the theme, so they read on a light and on a dark page; they are
narrow, so that their letters can be read on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from records import figure, named_goals, recorded
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH = 410
SIZES = {1000: "few", 1_000_000: "many", 1 << 24: "most"}


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "tick") -> str:
    """Return a line of text."""
    return f'<text class="{style}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{words}</text>'


def svg(height: float, title: str, parts: Sequence[str]) -> str:
    """Return the drawing."""
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{title}">'
    return "\n".join([head, *parts, "</svg>"])


class ErrorsPicture(SphinxDirective):
    """``.. errors-picture::`` - the error of a format by the size of the weight."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing and its caption."""
        self.env.note_dependency(__file__)
        data = recorded(self, "curves.json", "python -m tools.curves")
        w = data["weights"]
        caption = (
            f"{w['count']:,} weights of deviation {w['deviation']} (seed {w['seed']}), classes of size, six in a "
            "decade. Both axes are logarithmic."
        )
        return [figure("chart", self._curves(data), caption)]

    def _curves(self, data: Any) -> str:
        """Return the curves, each with its name at its left end."""
        points = {f["format"]: f["points"] for f in data["formats"]}
        sizes = [x for line in points.values() for x, _ in line]
        bottom, top, left, right = 350.0, 16.0, 66.0, 12.0
        x, y = Scale(min(sizes), max(sizes), left, WIDTH - right), Scale(1e-5, 0.5, bottom, top)
        parts = [*_grid(x, y, (0.01, 0.1, 1.0), (1e-5, 1e-4, 1e-3, 1e-2, 1e-1))]
        middle = (top + bottom) / 2
        parts.append(
            text((left + WIDTH - right) / 2, bottom + 42, "size of the weight, in deviations", "middle", "axis")
        )
        turned = f'<g transform="rotate(-90 14 {middle})">'
        parts.append(turned + text(14, middle, "RMS error, in deviations", "middle", "axis") + "</g>")
        for name, line in points.items():
            path = "M" + "L".join(f"{x(a):.1f} {max(y(b), top):.1f}" for a, b in line if b >= y.low)
            parts.append(f'<path class="line {name}" d="{path}"/>')
        for name, (at, aside, below, anchor) in LABELS.items():
            a, b = min(points[name], key=lambda p: abs(math.log(p[0] / at)))
            parts.append(text(x(a) + aside, y(b) + below, name, anchor, f"name {name}"))
        return svg(bottom + 52, "Error by size of the weight, one line a format", parts)


LABELS = {
    "bf16": (0.05, 8.0, 10.0, "start"),
    "f8_e4m3": (0.02, -10.0, 0.0, "end"),
    "f8_e5m2": (0.02, 8.0, 12.0, "start"),
    "q8_0": (1.4, 0.0, 18.0, "middle"),
    "q4_k": (0.01, 0.0, -8.0, "middle"),
}
"""Beside which point of its line a format's name stands, how far to the right and below, and what of it is there."""


def _grid(x: Scale, y: Scale, across: Sequence[float], up: Sequence[float]) -> Iterator[str]:
    for value in across:
        yield f'<path class="grid" d="M{x(value):.1f} {y.end}V{y.start}"/>'
        yield text(x(value), y.start + 18, f"{value:g}", "middle")
    for value in up:
        yield f'<path class="grid" d="M{x.start} {y(value):.1f}H{x.end}"/>'
        yield text(x.start - 6, y(value) + 4, f"{value:.0e}".replace("e-0", "e-"), "end")


class SpeedPicture(SphinxDirective):
    """``.. speed-picture:: KIND`` - our time over the fastest peer's; KIND is ``streams``, ``casts`` or ``blocks``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the drawing and its caption."""
        self.env.note_dependency(__file__)
        kind = self.arguments[0]
        part = "blocks" if kind == "blocks" else "values"
        data = recorded(self, f"bench_{part}.json", "nox -s bench")
        peer = "ggml's C where it was built" if kind == "blocks" else "the fastest peer"
        caption = f"Our time over that of {peer}, one thread: to the left of 1 ours is faster. The axis is logarithmic."
        return [figure("chart", self._marks(kind, data), caption)]

    def _marks(self, kind: str, data: Any) -> str:
        """Return a line for each kind of work and a mark for each size."""
        ratios: dict[str, list[tuple[str, float]]] = {}
        chosen = named_goals(data)
        for row in data["rows"]:
            name = row["name"]
            arrow = " -> " in name
            if kind == "blocks":
                # the encoding of different formats is measured on different numbers of values; calls stand in a table
                if "," in name or not name.startswith(("decode", "encode")):
                    continue
                mark = "many" if name.startswith("decode") else "few"
                label = name.split()[1]
            elif name in chosen and arrow == (kind == "casts"):
                mark, label = SIZES[row["n"]], name.replace("->", "→")
            else:
                continue
            found = beside(row)
            if found is not None:
                ratios.setdefault(label, []).append((mark, found))
        return _tracks(ratios, LEGENDS["blocks" if kind == "blocks" else "sizes"])


LEGENDS = {
    "sizes": {"few": "1000 values", "many": "10⁶", "most": "2²⁴"},
    "blocks": {"many": "decode", "few": "encode"},
}


def beside(row: Any) -> float | None:
    """Return our time over that of the fastest peer; None without one."""
    times = {kind: [c["ns_per_item"] for c in row["contestants"] if c["kind"] == kind] for kind in ("ours", "peer")}
    return times["ours"][0] / min(times["peer"]) if times["peer"] else None


def _dot(x: float, y: float, mark: str, behind: bool) -> str:
    place = f'class="mark {mark}{" behind" * behind}" transform="translate({x:.1f} {y:.1f})"'
    shapes = {
        "few": f'<path {place} d="M0-5.8L5.8 0 0 5.8-5.8 0z"/>',
        "many": f'<circle {place} r="5"/>',
        "most": f'<path {place} d="M-4.4-4.4h8.8v8.8h-8.8z"/>',
    }
    return shapes[mark]


def _tracks(ratios: dict[str, list[tuple[str, float]]], legend: dict[str, str]) -> str:
    values = [r for found in ratios.values() for _, r in found]
    left, top, step = 172.0, 46.0, 22.0
    high = max(1.15, max(values) * 1.1)
    x = Scale(min(values) / 1.15, high, left, WIDTH - 14.0)
    bottom = top + step * len(ratios)
    parts = []
    for value in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
        if x.low <= value <= x.high:
            style = "par" if value == 1.0 else "grid"
            parts.append(f'<path class="{style}" d="M{x(value):.1f} {top - 6}V{bottom}"/>')
            parts.append(text(x(value), bottom + 18, f"{value:g}", "middle"))
    for number, (label, found) in enumerate(ratios.items()):
        y = top + step * (number + 0.5)
        parts.append(text(left - 10, y + 4.5, label, "end", "name"))
        parts.append(f'<path class="grid" d="M{left} {y}H{WIDTH - 14}"/>')
        parts += [_dot(x(ratio), y, mark, ratio > 1) for mark, ratio in found]
    place = left + 8
    for mark, words in legend.items():
        parts += [_dot(place, 18, mark, False), text(place + 11, 22.5, words)]
        place += 30 + 8.0 * len(words)
    return svg(bottom + 28, "Our time over that of the fastest peer", parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("errors-picture", ErrorsPicture)
    app.add_directive("speed-picture", SpeedPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
