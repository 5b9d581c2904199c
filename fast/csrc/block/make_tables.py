"""Write block_tables.h, the constant tables of the block formats, from the specification's data file.

    python make_tables.py block_tables.json block_tables.h

A codebook's row is one word, element 0 in its lowest byte; signed bytes keep their eight bits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TYPES = {
    "ksigns_iq2xs": "uint8_t",
    "kvalues_iq4nl": "int8_t",
    "kvalues_e2m1_doubled": "int8_t",
    "e8m0_half_f32_bits": "uint32_t",
    "ue4m3_half_f32_bits": "uint32_t",
    "iq2xxs_grid": "uint64_t",
    "iq2xs_grid": "uint64_t",
    "iq2s_grid": "uint64_t",
    "iq1s_grid": "uint64_t",
    "iq3xxs_grid": "uint32_t",
    "iq3s_grid": "uint32_t",
}


def word(row: int | list[int]) -> int:
    """Return a table's entry as one integer."""
    return row if isinstance(row, int) else sum((byte & 255) << 8 * i for i, byte in enumerate(row))


def main() -> None:
    """Translate the file."""
    source, target = map(Path, sys.argv[1:])
    tables: dict[str, list[int] | list[list[int]]] = json.loads(source.read_text("ascii"))
    if tables.keys() != TYPES.keys():
        raise SystemExit(f"the tables are {sorted(TYPES)}, the file has {sorted(tables)}")
    lines = ["/* Made by block/make_tables.py from the specification's block_tables.json (clause BLOCK-TABLE-1). */"]
    lines += ["#ifndef FC_BLOCK_TABLES_H", "#define FC_BLOCK_TABLES_H", "#include <stdint.h>"]
    for name, ctype in TYPES.items():
        suffix = "ull" if ctype == "uint64_t" else "u" if ctype == "uint32_t" else ""
        shown = hex if ctype.startswith("uint") else str
        entries = [shown(word(row)) + suffix for row in tables[name]]
        lines.append(f"static const {ctype} fc_{name}[{len(entries)}] = {{")
        lines += [", ".join(entries[i : i + 8]) + "," for i in range(0, len(entries), 8)]
        lines.append("};")
    target.write_text("\n".join([*lines, "#endif", ""]), "ascii")


if __name__ == "__main__":
    main()
