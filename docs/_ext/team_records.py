"""Directives that show what was recorded about the worker team."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docutils import nodes
from records import Cell, Speed, Table, missed
from sphinx.application import Sphinx

BLOCK_KINDS = ("encode", "decode")


def _held(ratio: float, goal: float | None, form: str = ".2f") -> nodes.Node | str:
    """Return a ratio, set apart where it misses its goal."""
    text = f"{ratio:{form}}"
    return missed(text) if goal is not None and ratio > goal else text


def _figure(time: float) -> str:
    """Return a time in three figures."""
    return f"{time:#.3g}".rstrip(".")


class Dispatch(Speed):
    """``.. dispatch-table::`` - what a dispatch of empty work costs beside other runtimes."""

    file = "bench_team.json"
    required_arguments = 0

    def _tables(self, data: Any) -> Iterable[Table]:
        rows: list[list[Cell]] = []
        for case in data["dispatch"]:
            rows.append([case["case"], *(_figure(time) for time in case["microseconds"].values())])
        names = list(data["dispatch"][0]["microseconds"])
        yield "Empty work on two participants, microseconds", ["case", *names], rows
        ratios: list[list[Cell]] = []
        for case in data["dispatch"]:
            for found in case["against"]:
                held = _held(found["ratio"], found["goal"], ".2g")
                ratios.append([case["case"], found["rival"], held, f"{found['goal']:g}"])
        yield "Ours over another", ["case", "against", "ratio", "goal"], ratios


class Gain(Speed):
    """``.. gain-table:: PART`` - two threads over one; PART is ``values``, ``blocks`` or ``busy``."""

    file = "bench_team.json"

    def run(self) -> list[nodes.Node]:
        """Return the table; the facts about the run stand at the table of dispatches."""
        return super().run()[1:]

    def _tables(self, data: Any) -> Iterable[Table]:
        part = self.arguments[0]
        rows = data["gain"]
        if part == "busy":
            header = ["values", "two threads over one, medians", "means", "goal of the medians"]
            yield (
                "gaussian_fill beside a busy core",
                header,
                [
                    [f"{r['n']:,}", _held(r["ratio"], r["goal"]), f"{r['of means']:.2f}", f"{r['goal']:g}"]
                    for r in rows
                    if r["kind"] == "busy"
                ],
            )
        elif part == "blocks":
            found = {(r["kind"], r["name"]): r for r in rows if r["kind"] in BLOCK_KINDS}
            names = dict.fromkeys(name for _, name in found)
            n = {kind: next(r["n"] for (k, _), r in found.items() if k == kind) for kind in BLOCK_KINDS}
            header = ["format", *(f"{kind}, {n[kind]:,} values" for kind in BLOCK_KINDS)]
            lines: list[list[Cell]] = []
            for name in names:
                both = (found[kind, name] for kind in BLOCK_KINDS)
                lines.append([name, *(_held(r["ratio"], r["goal"]) for r in both)])
            yield "Block formats, two threads over one", header, lines
        else:
            few = [r for r in rows if r["kind"] in ("copy", "fill", "cast")]
            header = ["work", "values", "two threads over one", "goal"]
            yield (
                "Streams and casts",
                header,
                [
                    [
                        r["name"],
                        f"{r['n']:,}",
                        _held(r["ratio"], r["goal"]),
                        "" if r["goal"] is None else f"{r['goal']:g}",
                    ]
                    for r in few
                ],
            )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("dispatch-table", Dispatch)
    app.add_directive("gain-table", Gain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
