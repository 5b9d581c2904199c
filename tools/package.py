"""Look at what would be published: ``python -m tools.package DIST``, a folder with an sdist and its wheel.

Says what it saw, and ends with 1 if something is missing: the name of the wheel (one for every Python from 3.11 on),
its size, the marks of typed packages, the licenses, the text of the specification and the vectors; in the sdist
whatever git knows; and the oldest systems that the wheel runs on.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_BYTES = 3_000_000
"""What the wheel may have without the frozen vectors of the suite, which are compressed already."""

VECTORS = "fucina/conformance/vectors/"
PORTIONS = ("conformance", "fast", "reference", "spec")
NEEDED = (
    *(f"fucina/{portion}/py.typed" for portion in PORTIONS),
    "fucina/spec/text/rng.rst",
    "fucina/spec/block_tables.json",
    "fucina/conformance/_index.json",
    "fucina/conformance/vectors/v1/MANIFEST.json",
    "fucina/fast/_native.abi3.so",
)
LICENSES = ("LICENSE", "THIRD-PARTY-NOTICES.md")


def _version() -> str:
    found = re.search(r"^ *version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, "meson.build says the version"
    return found[1]


def wheel(path: Path) -> Iterator[str]:
    """Yield what is wrong with the wheel."""
    if not re.fullmatch(rf"fucina-{re.escape(_version())}-cp311-abi3-\w+\.whl", path.name):
        yield f"{path.name} is no wheel of this version for the stable interface of Python 3.11"
    if (rest := path.stat().st_size - vectors(path)) >= MOST_BYTES:
        yield f"{path.name} has {rest:,} bytes beside the vectors, and {MOST_BYTES:,} are too many"
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        facts = message_from_string(archive.read(metadata).decode("utf-8"))
    missing = [*(n for n in NEEDED if n not in names)]
    missing += [n for n in LICENSES if not any(found.endswith(f"/licenses/{n}") for found in names)]
    yield from (f"{path.name} has no {name}" for name in missing)
    yield from (f"{path.name} has {name}" for name in names if "__pycache__" in name or name == "fucina/__init__.py")
    if facts["Description-Content-Type"] != "text/markdown" or not str(facts.get_payload()).strip():
        yield f"{path.name} has no readme in Markdown"
    if "Typing :: Typed" not in (facts.get_all("Classifier") or []) or facts["License-Expression"] != "MIT":
        yield f"{path.name} has not the classifiers or the license that it should have"


def vectors(path: Path) -> int:
    """Return the bytes that the vectors take in the wheel."""
    with zipfile.ZipFile(path) as archive:
        return sum(entry.compress_size for entry in archive.infolist() if entry.filename.startswith(VECTORS))


def sdist(path: Path) -> Iterator[str]:
    """Yield what is wrong with the sdist."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    known = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    yield from (f"{path.name} has no {name}" for name in known if name not in names)


def main() -> int:
    """Look at both files of the folder."""
    folder = Path(sys.argv[1])
    (built,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    wrong = [*wheel(built), *sdist(source)]
    print(f"{built.name}: {built.stat().st_size:,} bytes, {vectors(built):,} of them vectors")
    print(f"{source.name}: {source.stat().st_size:,} bytes")
    shown = subprocess.run(["auditwheel", "show", str(built)], capture_output=True, text=True)
    tags = re.findall(r'"?((?:many|musl)?linux_\w+)"?', shown.stdout.partition("consistent with")[2])
    print(f"runs on: {tags[0] if tags else 'unknown: ' + shown.stdout + shown.stderr}")
    if not tags or not tags[0].startswith("manylinux"):
        wrong.append("the wheel asks for more than a manylinux system has")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
