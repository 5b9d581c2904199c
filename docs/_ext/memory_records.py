"""Directives that show what was recorded about the memory chapters and the tensors on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from records import Cell, Record, Speed, Table, missed, versions
from sphinx.application import Sphinx

MEBIBYTE = 1 << 20


def _microseconds(ns: float) -> str:
    return f"{ns / 1000:,.0f}" if ns >= 1e6 else f"{ns / 1000:.4g}"


class FacadeSpeed(Speed):
    """``.. facade-speed-table::`` - tensors with tags beside numpy, its BLAS and torch."""

    file = "bench_facade.json"
    caption = "Tensors with tags"
    required_arguments = 0

    def _tables(self, data: Any) -> Iterable[Table]:
        header = ["work", "ours, µs", "against", "its, µs", "ratio", "±", "goal", "of memcpy"]
        yield self.caption, header, [line for row in data["rows"] for line in self._lines(row)]

    def _lines(self, row: Any) -> Iterable[Sequence[Cell]]:
        times = {c["label"]: _microseconds(c["ns_per_item"] * row["n"]) for c in row["contestants"]}
        ours, share = times["fucina.fast"], f"{row['of_memcpy']:.2f}" if "of_memcpy" in row else ""
        for goal in row["goals"]:
            if "ns_per_item" in goal:
                most = f"{goal['goal'] / 1000:g} µs"
                yield [row["name"], ours if goal["met"] else missed(ours), goal["against"], "", "", "", most, share]
            elif goal["rival"] is not None:
                ratio = f"{goal['ratio']:.3f}"
                yield [
                    *(row["name"], ours, goal["rival"], times[goal["rival"]]),
                    *(ratio if goal["met"] else missed(ratio), f"{goal['spread']:.3f}", f"{goal['goal']:.3g}", share),
                ]


class MemorySpeed(FacadeSpeed):
    """``.. memory-speed-table::`` - storage, views and raw operations beside numpy and torch."""

    file = "bench_memory.json"
    caption = "Memory and raw operations"

    def _tables(self, data: Any) -> Iterable[Table]:
        yield from super()._tables(data)
        chain = data["chain"]
        found = f"{chain['buffers']:.3f}"
        peak, one = (f"{chain[name] / MEBIBYTE:.1f} MiB" for name in ("peak", "tensor"))
        line: list[Cell] = [f"{chain['operations']} operations on tensors of {one}, each released as it was used", peak]
        line += [found if chain["met"] else missed(found), f"{chain['goal']:g}"]
        yield "The memory of a chain", ["work", "most that was held", "in buffers", "goal"], [line]


class Endurance(Record):
    """``.. memory-record:: JOB`` - what a job of ``tools.memory`` found; JOB is ``steps``, ``soak`` or ``cycles``."""

    file = "memory.json"
    required_arguments = 1

    def _facts(self, data: Any) -> str:
        job = data[self.arguments[0]]
        start = f"Recorded {job['date']} on {job['machine']}, {versions(job)}: "
        if self.arguments[0] == "steps":
            return f"{start}{job['steps']:,} steps in lockstep with {job['against']}, no difference."
        if self.arguments[0] == "soak":
            under = " and ".join(job["sanitizers"]) or "no sanitizer"
            done = ", ".join(f"{number:,} {what}" for what, number in job["done"].items())
            return f"{start}{job['minutes']:g} minutes under {under}, no finding: {done}."
        return start + "bytes that the process holds after each tenth of the cycles."

    def _tables(self, data: Any) -> Iterable[Table]:
        if self.arguments[0] != "cycles":
            return
        found = {name: data["cycles"][name] for name in ("fucina.fast", "fucina.reference")}
        for name, run in found.items():
            tenth = run["cycles"] // 10
            rows = [[f"{(k + 1) * tenth:,}", f"{held / MEBIBYTE:.2f}"] for k, held in enumerate(run["resident"])]
            yield name, ["cycles", "MiB held"], rows


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("facade-speed-table", FacadeSpeed)
    app.add_directive("memory-speed-table", MemorySpeed)
    app.add_directive("memory-record", Endurance)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
