"""Directives that show what was recorded about the block formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from records import Cell, Record, Speed, Table, missed, versions
from sphinx.application import Sphinx

RIVALS = {"ggml": "ggml C", "gguf": "gguf", "memcpy": "memcpy"}
"""How the labels of the record begin, and what a table calls them."""


class BlockSpeed(Speed):
    """``.. block-speed-table:: PART`` - the block formats; PART is ``decode``, ``encode``, ``rows`` or ``calls``."""

    file = "bench_blocks.json"

    def run(self) -> list[nodes.Node]:
        """Return the table, and before the first part the facts about all."""
        found = super().run()
        return found if self.arguments[0] == "decode" else found[1:]

    def _tables(self, data: Any) -> Iterable[Table]:
        part = self.arguments[0]
        rows = [r for r in data["rows"] if ("," in r["name"]) == (part == "calls")]
        unit = "µs a call" if part == "calls" else "GB/s"
        header = ["call" if part == "calls" else "format", f"ours, {unit}", *(RIVALS[r] for r in RIVALS)]
        header += [f"over {RIVALS[r]} (goal)" for r in RIVALS]
        chosen = [r for r in rows if part in ("calls", r["name"].split()[0])]
        title = f"{part}, {chosen[0]['n']:,} values and fewer" if part == "encode" else part
        yield title, header, [self._line(r) for r in chosen]

    def _line(self, row: Any) -> Sequence[Cell]:
        few = "," in row["name"]

        def find(start: str) -> Any:
            return next((c["ns_per_item"] for c in row["contestants"] if c["label"].startswith(start)), None)

        def figure(ns: float | None) -> str:
            return "" if ns is None else f"{ns * row['n'] / 1000:.3g}" if few else f"{4 / ns:.3g}"

        ours = find("fucina")
        cells: list[Cell] = [row["name"] if few else row["name"].split()[1], figure(ours)]
        cells += [figure(find(start)) for start in RIVALS]
        for start in RIVALS:
            goal = next((g for g in row["goals"] if g["rival"] and g["rival"].startswith(start)), None)
            theirs = find(start)
            if goal is not None:
                text = f"{goal['ratio']:.2f} (≤ {goal['goal']:g})"
                cells.append(text if goal["met"] else missed(text))
            else:
                cells.append("" if theirs is None else f"{ours / theirs:.2f}")
        return cells


class Weights(Record):
    """``.. weights-table::`` - what each block format costs on real weights."""

    file = "weights.json"

    def _facts(self, data: Any) -> str:
        total = sum(t["shape"][0] * t["shape"][1] for t in data["tensors"])
        return (
            f"Recorded {data['date']} with {versions(data)}: {len(data['tensors'])} matrices of {data['source']}, "
            f"{total:,} weights, file SHA-256 {data['sha256'][:16]}…."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        header = ["format", "bits per weight", "matrices that fit", "relative RMSE", "RMSE", "largest error"]
        rows: list[list[Cell]] = []
        for f in sorted(data["formats"], key=lambda f: (f["bits_per_weight"], f["fitting"]["relative_rmse"])):
            common = f["common"]
            row: list[Cell] = [f["format"], f"{f['bits_per_weight']:.4g}"]
            row += [str(f["fitting"]["tensors"]), f"{f['fitting']['relative_rmse']:.3%}"]
            row += [f"{f['fitting']['rmse']:.3g}", f"{f['fitting']['max_error']:.3g}"]
            rows.append([*row, f"{common['relative_rmse']:.3%}" if common else ""])
        yield "All formats", [*header, "relative RMSE where all fit"], rows


class Peers(Record):
    """``.. peers-table:: PART`` - agreement with other software; PART is ``agreement`` or ``fma``."""

    file = "peers.json"
    required_arguments = 1

    def _facts(self, data: Any) -> str:
        ggml = data["ggml"]
        if self.arguments[0] == "agreement":
            there = f"without ggml's C ({ggml['missing']})" if ggml["missing"] else f"ggml's C from {ggml['of']}"
            return (
                f"Recorded {data['date']} on {data['machine']}: {versions(data)}, {there}, built with {ggml['strict']}."
            )
        rows = sum(sum(f["encode"]["contracted"].values()) for f in data["formats"])
        matrices = sum(f["model"]["contracted"] for f in data["formats"])
        total = sum(f["model"]["matrices"] for f in data["formats"])
        affected = sum(f["model"]["contracted"] > 0 for f in data["formats"])
        return (
            f"Built once with {ggml['strict']} and once with {ggml['contracted']}, ggml's C gives other bytes for "
            f"{matrices} of the {total} encodings of a matrix of {data['model']['source']}, in {affected} of "
            f"{len(data['formats'])} formats, and for {rows:,} of the sample rows."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        if self.arguments[0] == "agreement":
            header = ["format", "decode: blocks", "gguf differs", "ggml differs"]
            header += ["encode: blocks", "gguf differs", "ggml differs"]
            yield "Blocks that differ from ours", header, [self._agreement(f) for f in data["formats"]]
        else:
            header = ["format", "sample rows", "differ with FMA", "blocks of the model", "differ with FMA"]
            header += ["matrices", "differ with FMA", "ours, every level"]
            yield "One source, two compilations; and ours", header, [self._contracted(f) for f in data["formats"]]

    def _agreement(self, entry: Any) -> Sequence[Cell]:
        cells: list[Cell] = [entry["format"]]
        for part in ("decode", "encode"):
            cells.append(f"{sum(entry[part]['blocks'].values()):,}")
            for peer in ("gguf", "ggml"):
                kinds = entry[part][peer]
                count = None if kinds is None else sum(kinds.values())
                cells.append("lacks it" if count is None else missed(f"{count:,}") if count else "0")
        return cells

    def _contracted(self, entry: Any) -> Sequence[Cell]:
        rows, model = entry["encode"]["rows"], entry["model"]
        counts = (sum(entry["encode"]["contracted"].values()), model["contracted_blocks"], model["contracted"])
        first, second, third = (missed(f"{n:,}") if n else "0" for n in counts)
        digests = set(model["sha256"].values())
        same = nodes.literal("", min(digests)[:12] + "…") if len(digests) == 1 else missed("differ")
        head: list[Cell] = [entry["format"], f"{sum(rows.values()):,}", first, f"{model['blocks']:,}", second]
        return [*head, str(model["matrices"]), third, same]


class Fuzz(Record):
    """``.. fuzz-record::`` - what the fuzz driver did."""

    file = "fuzz.json"

    def _facts(self, data: Any) -> str:
        decoded, encoded, refused = (
            sum(f.get(kind, 0) for f in data["formats"])
            for kind in ("decoded blocks", "encoded blocks", "refused arrays")
        )
        return (
            f"Recorded {data['date']} on {data['machine']}: {data['minutes']} minutes under "
            f"{' and '.join(data['sanitizers'])}, levels {', '.join(data['levels'])}; {data['cases']:,} cases, "
            f"{decoded:,} blocks decoded, {encoded:,} encoded, {refused:,} arrays refused as they must be, no finding."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        header = ["format", "decoded blocks", "encoded blocks", "refused arrays"]
        yield "By format", header, [[f["format"], *(f"{f.get(k, 0):,}" for k in header[1:])] for f in data["formats"]]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("block-speed-table", BlockSpeed)
    app.add_directive("weights-table", Weights)
    app.add_directive("peers-table", Peers)
    app.add_directive("fuzz-record", Fuzz)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
