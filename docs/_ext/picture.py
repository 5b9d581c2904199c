"""``.. weights-picture::`` - bits per weight against error, drawn at build time from docs/records/weights.json.

The drawing is SVG inside the page, so it takes its colours from the theme: it reads on a light and on a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from docutils import nodes
from records import figure, recorded
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH, HEIGHT = 760, 640
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 52
LETTER, LINE = 6.3, 13.0
"""Room that a letter of a label takes, and a label's height, in the units of the drawing."""

FAR = 25.0
"""What it costs a label to stand off its mark."""

FAMILIES = {
    "one scale a block": ("circle", "q"),
    "K": ("square", "_k"),
    "IQ": ("diamond", "iq"),
    "ternary": ("triangle", "tq"),
    "FP4": ("cross", "fp4"),
}


@dataclass(frozen=True)
class Point:
    """A format in the drawing."""

    name: str
    bits: float
    error: float

    @property
    def family(self) -> str:
        """The family that gives its mark and colour."""
        for family in ("IQ", "ternary"):
            if self.name.startswith(FAMILIES[family][1]):
                return family
        for family in ("K", "FP4"):
            if self.name.endswith(FAMILIES[family][1]):
                return family
        return "one scale a block"


@dataclass(frozen=True)
class Box:
    """A rectangle that labels must not share."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Return the shared area."""
        wide = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        high = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(wide, 0.0) * max(high, 0.0)


@dataclass(frozen=True)
class Axes:
    """Bits run linearly, errors by their logarithm."""

    bits: tuple[float, float]
    error: tuple[float, float]

    def x(self, bits: float) -> float:
        """Return the place of a number of bits."""
        low, high = self.bits
        return LEFT + (bits - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, error: float) -> float:
        """Return the place of an error."""
        low, high = (math.log10(e) for e in self.error)
        return HEIGHT - BOTTOM - (math.log10(error) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def frontier(points: list[Point]) -> list[Point]:
    """Return the formats that no other beats in both, by bits."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.bits, p.error)):
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def _mark(family: str, x: float, y: float) -> str:
    kind = FAMILIES[family][0]
    place = f'class="mark {kind}" transform="translate({x:.1f} {y:.1f})"'
    shapes = {
        "circle": f'<circle {place} r="4.5"/>',
        "square": f'<path {place} d="M-4.2-4.2h8.4v8.4h-8.4z"/>',
        "diamond": f'<path {place} d="M0-5.8L5.8 0 0 5.8-5.8 0z"/>',
        "triangle": f'<path {place} d="M0-5.6L5.4 4.4H-5.4z"/>',
        "cross": f'<path {place} d="M-1.7-5.2h3.4v3.5h3.5v3.4h-3.5v3.5h-3.4v-3.5h-3.5v-3.4h3.5z"/>',
    }
    return shapes[kind]


def _places(x: float, y: float, width: float) -> Iterator[tuple[float, Box]]:
    """Yield where the label of a mark may stand, each with what the distance costs."""
    beside, under = LINE / 2, width / 2
    for cost, gap in ((0.0, 8.0), (FAR, 24.0), (2 * FAR, 40.0)):
        slant = gap * 0.7
        yield cost, Box(x + gap, y - beside, width, LINE)
        yield cost, Box(x - gap - width, y - beside, width, LINE)
        yield cost + 4, Box(x + slant, y - slant - LINE, width, LINE)
        yield cost + 4, Box(x + slant, y + slant, width, LINE)
        yield cost + 4, Box(x - slant - width, y - slant - LINE, width, LINE)
        yield cost + 4, Box(x - slant - width, y + slant, width, LINE)
        yield cost + 6, Box(x - under, y - gap - LINE, width, LINE)
        yield cost + 6, Box(x - under, y + gap, width, LINE)


def _labels(points: list[Point], axes: Axes, line: list[tuple[float, float]]) -> Iterator[str]:
    """Yield the labels, each where it covers least of the others; those that stand off have a line to their mark."""
    marks = [Box(axes.x(p.bits) - 7, axes.y(p.error) - 7, 14, 14) for p in points]
    path: list[Box] = []
    for (x0, y0), (x1, y1) in pairwise(line):
        path += [Box(x0 + (x1 - x0) * t / 24, y0 + (y1 - y0) * t / 24, 2, 2) for t in range(25)]
    taken: list[Box] = []
    crowded = sorted(points, key=lambda p: -sum(_near(axes, p, q) for q in points))
    for point in crowded:
        x, y = axes.x(point.bits), axes.y(point.error)

        def price(place: tuple[float, Box]) -> float:
            cost, box = place
            covered = sum(box.overlap(t) for t in taken) + sum(box.overlap(m) for m in marks)
            return cost + 4 * covered + 0.5 * sum(box.overlap(p) for p in path)

        room = [p for p in _places(x, y, LETTER * len(point.name)) if LEFT + 2 <= p[1].x <= WIDTH - 2 - p[1].width]
        cost, best = min(room, key=price)
        taken.append(best)
        if cost >= FAR:
            yield f'<path class="leader" d="M{x:.1f} {y:.1f}L{_end(x, best):.1f} {best.y + LINE / 2:.1f}"/>'
        yield f'<text class="name" x="{best.x:.1f}" y="{best.y + LINE - 3:.1f}">{point.name}</text>'


def _end(x: float, box: Box) -> float:
    """Return where the line from a mark at ``x`` meets the label."""
    return min(max(x, box.x - 2), box.x + box.width + 2)


def _near(axes: Axes, a: Point, b: Point) -> bool:
    return abs(axes.x(a.bits) - axes.x(b.bits)) < 40 and abs(axes.y(a.error) - axes.y(b.error)) < 30


def _grid(axes: Axes) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for bits in range(math.ceil(axes.bits[0]), math.floor(axes.bits[1]) + 1):
        x = axes.x(bits)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
        yield f'<text class="tick" text-anchor="middle" x="{x:.1f}" y="{bottom + 18}">{bits}</text>'
    for error in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        if axes.error[0] <= error <= axes.error[1]:
            y = axes.y(error)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text class="tick" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{error * 100:g} %</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="axis" text-anchor="middle" x="{middle}" y="{HEIGHT - 8}">bits per weight</text>'
    turned = f"rotate(-90 14 {(TOP + bottom) / 2})"
    words = "RMSE, relative to the RMS of the weights"
    yield f'<text class="axis" text-anchor="middle" x="14" y="{(TOP + bottom) / 2}" transform="{turned}">{words}</text>'


def _legend() -> Iterator[str]:
    x = float(LEFT)
    for family in FAMILIES:
        yield _mark(family, x + 8, 20)
        yield f'<text class="tick" x="{x + 18:.1f}" y="24">{family}</text>'
        x += 44 + 6.0 * len(family)
    yield f'<path class="best" d="M{x:.1f} 20h24"/>'
    yield f'<text class="tick" x="{x + 30:.1f}" y="24">none better in both</text>'


def draw(points: list[Point]) -> str:
    """Return the drawing as SVG."""
    bits, errors = [p.bits for p in points], [p.error for p in points]
    axes = Axes((min(bits) - 0.35, max(bits) + 0.55), (min(errors) / 1.25, max(errors) * 1.3))
    line = [(axes.x(p.bits), axes.y(p.error)) for p in frontier(points)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line)
    parts = [*_grid(axes), f'<path class="best" d="{path}"/>']
    parts += _labels(points, axes, line)
    parts += [_mark(p.family, axes.x(p.bits), axes.y(p.error)) for p in points]
    parts += _legend()
    title = "Bits per weight against relative error, one mark a format"
    head = f'<svg class="weights-picture" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
    return "\n".join([head, *parts, "</svg>"])


class WeightsPicture(SphinxDirective):
    """The directive."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing and its caption."""
        data = recorded(self, "weights.json", "nox -s weights")
        chosen = [f for f in data["formats"] if f["common"]]
        points = [Point(f["format"], f["bits_per_weight"], f["common"]["relative_rmse"]) for f in chosen]
        caption = (
            f"{chosen[0]['common']['weights']:,} weights of {data['source']}: the matrices that every format fits."
        )
        return [figure("weights", draw(points), caption)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("weights-picture", WeightsPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
