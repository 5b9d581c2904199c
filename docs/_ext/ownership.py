"""``.. ownership-picture::`` and ``.. chain-picture::`` - who owns a tensor, and what a scope costs.

The drawings are SVG inside the page, so they take their colours from the theme; they are narrow, so that their letters
can be read on a telephone.  The chart shows what the library does
while the page is made: which buffers a chain of operations has been in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docutils import nodes
from records import figure
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import fucina.fast as fucina

STEPS = 32
WIDTH = 430


# -- who owns it


@dataclass(frozen=True)
class Origin:
    """A row of the picture: where a tensor came from, and whose it is."""

    origin: str
    detail: str
    owner: str


ORIGINS = (
    Origin("a constructor", "from_slice, zeros, variable, …", "you"),
    Origin("grad, grad_view", "a fetched gradient", "you"),
    Origin("a raw helper of ctx", "ctx.zeros, ctx.add, …", "you"),
    Origin("an operation, no scope open", "add, sum, narrow, …", "you"),
    Origin("an operation, a scope open", "f32, or it tracks gradients", "scope"),
    Origin("an operation, a scope open", "another dtype, no gradients", "you"),
)
OWNERS = {
    "you": ("You", "give it back once:", "deinit, with, or drop it"),
    "scope": ("The innermost scope", "releases it at its close;", "deinit does nothing"),
}


def ownership() -> str:
    """Return the picture of the rules: origins on the left, owners on the right."""
    row, left, right = 56, 204, 262
    height = row * len(ORIGINS) + 20
    middles = [10 + row * i + row / 2 for i in range(len(ORIGINS))]
    parts = []
    own = [y for y, o in zip(middles, ORIGINS, strict=True) if o.owner == "you"]
    places = {"you": sum(own[:-1]) / len(own[:-1]), "scope": middles[4] + row / 2}
    for owner, (name, first, second) in OWNERS.items():
        y = places[owner]
        parts.append(f'<rect class="owner {owner}" x="{right + 6}" y="{y - 40:.0f}" width="160" height="80" rx="10"/>')
        for line, (text, kind) in enumerate(((name, "name"), (first, "detail"), (second, "detail"))):
            parts.append(
                f'<text class="{kind}" x="{right + 86}" y="{y - 15 + 21 * line:.0f}" text-anchor="middle">{text}</text>'
            )
    for origin, y in zip(ORIGINS, middles, strict=True):
        parts.append(f'<rect class="origin" x="2" y="{y - 23:.0f}" width="{left - 2}" height="46" rx="8"/>')
        parts.append(f'<text class="name" x="12" y="{y - 4:.0f}">{origin.origin}</text>')
        parts.append(f'<text class="detail" x="12" y="{y + 14:.0f}">{origin.detail}</text>')
        end = places[origin.owner] + (middles.index(y) - 2.5) * 9
        if origin.owner == "scope":
            end = places["scope"] - 8
        parts.append(
            f'<path class="arrow {origin.owner}" d="M{left} {y:.0f} '
            f'C{left + 32} {y:.0f} {left + 26} {end:.0f} {right} {end:.0f}" '
            f'marker-end="url(#ownership-{origin.owner})"/>'
        )
    markers = "".join(
        f'<marker id="ownership-{owner}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" '
        f'orient="auto"><path class="head {owner}" d="M0 0L8 4L0 8z"/></marker>'
        for owner in OWNERS
    )
    label = "Who owns a tensor: results of operations under an open scope belong to the scope, everything else to you"
    head = f'<svg class="ownership-picture" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
    return "\n".join([head, f"<defs>{markers}</defs>", *parts, "</svg>"])


# -- what a scope costs


def buffers(scoped: bool) -> list[int]:
    """Return how many distinct buffers a chain of operations has used after each of them."""
    seen: set[int] = set()
    counts = []
    with fucina.ExecContext() as ctx, fucina.Tensor("d").ones(ctx, (1024,)) as start:
        mark = ctx.open_exec_scope() if scoped else None
        value = start
        for _ in range(STEPS):
            result = value.scale(ctx, 1.5)
            value = result if value is start else ctx.replace(value, result)
            seen.add(value.as_raw_tensor().buffer.address)
            counts.append(len(seen))
        value.deinit()
        if mark is not None:
            ctx.close_exec_scope(mark)
    return counts


def _line(kind: str, counts: Sequence[int], x: Sequence[float], y: Sequence[float]) -> Iterator[str]:
    points = " ".join(f"{x[i]:.1f},{y[count]:.1f}" for i, count in enumerate(counts))
    yield f'<polyline class="line {kind}" points="{points}"/>'
    yield f'<circle class="end {kind}" cx="{x[-1]:.1f}" cy="{y[counts[-1]]:.1f}" r="4.5"/>'


def chain() -> str:
    """Return the chart of distinct buffers against operations, given back as they go and under a scope."""
    height, left, right, top, bottom = 280, 50, 138, 16, 46
    x = [left + (WIDTH - left - right) * i / (STEPS - 1) for i in range(STEPS)]
    y = [height - bottom - (height - top - bottom) * n / STEPS for n in range(STEPS + 1)]
    parts = []
    for tick in (0, 8, 16, 24, 32):
        parts.append(f'<path class="grid" d="M{left} {y[tick]:.1f}H{WIDTH - right}"/>')
        parts.append(f'<text class="tick" x="{left - 10}" y="{y[tick] + 4:.1f}" text-anchor="end">{tick}</text>')
    for tick in (1, 8, 16, 24, 32):
        parts.append(
            f'<text class="tick" x="{x[tick - 1]:.1f}" y="{height - bottom + 20}" text-anchor="middle">{tick}</text>'
        )
    middle = (left + WIDTH - right) / 2
    parts.append(f'<text class="axis" x="{middle:.0f}" y="{height - 6}" text-anchor="middle">operations so far</text>')
    parts.append(
        f'<text class="axis" transform="translate(14 {(top + height - bottom) / 2:.0f}) rotate(-90)" '
        'text-anchor="middle">distinct buffers</text>'
    )
    free, kept = buffers(scoped=False), buffers(scoped=True)
    for kind, counts, text in (("scope", kept, "under a scope"), ("you", free, "given back as it goes")):
        parts += _line(kind, counts, x, y)
        parts.append(
            f'<text class="name {kind}" x="{x[-1] + 12:.0f}" y="{y[counts[-1]] - 2:.0f}">{counts[-1]} buffers</text>'
        )
        parts.append(f'<text class="detail" x="{x[-1] + 12:.0f}" y="{y[counts[-1]] + 14:.0f}">{text}</text>')
    label = f"A chain of {STEPS} operations uses {free[-1]} buffers when each is given back, {kept[-1]} under a scope"
    head = f'<svg class="ownership-picture" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
    return "\n".join([head, *parts, "</svg>"])


class OwnershipPicture(SphinxDirective):
    """The rules."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing and its caption."""
        self.env.note_dependency(__file__)
        caption = "Where a tensor came from says who owns it. Views are operations too."
        return [figure("ownership", ownership(), caption)]


class ChainPicture(SphinxDirective):
    """The chart."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing and its caption."""
        self.env.note_dependency(__file__)
        caption = f"Distinct buffers that {STEPS} operations of one size have used, each on the result of the last."
        return [figure("ownership", chain(), caption)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("ownership-picture", OwnershipPicture)
    app.add_directive("chain-picture", ChainPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
