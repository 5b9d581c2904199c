"""Follow every link within a built documentation: ``python -m tools.links FOLDER``, offline.

A link within leads to a file that is there, and its fragment to an element of that page.  What does not is named, a
line each, and ends it with 1.  Links to other sites are counted, and not followed: ``--list`` names them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "broken", "main", "pages"]

LINKING = ("href", "src", "data", "poster", "xlink:href")


class Page(NamedTuple):
    """What a page links to, each with its line, and what can be linked to on it."""

    links: tuple[tuple[int, str], ...]
    targets: frozenset[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[int, str]] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, _ = self.getpos()
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.targets.append(value)
            elif name in LINKING:
                self.links.append((line, value))
            elif name == "srcset":
                self.links += [(line, candidate.split()[0]) for candidate in value.split(",") if candidate.strip()]


def read(path: Path) -> Page:
    """Read a page."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    return Page(tuple(reader.links), frozenset(reader.targets))


def pages(folder: Path) -> dict[Path, Page]:
    """Read all pages below a folder."""
    return {path: read(path) for path in sorted(folder.resolve().rglob("*.html"))}


def is_elsewhere(link: str) -> bool:
    """Whether a link leaves the documentation: it names a scheme or a host."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def why_broken(page: Path, link: str, folder: Path, known: dict[Path, Page]) -> str | None:
    """Return what is wrong with a link within, or None."""
    parts = urlsplit(link)
    place = unquote(parts.path)
    if place.startswith("/"):
        return "begins at the root of a site, and not at this page"
    target = (page.parent / place).resolve() if place else page
    if target.is_dir():
        target = target / "index.html"
    if not target.is_relative_to(folder):
        return "leads out of the documentation"
    if not target.is_file():
        return "there is no such file"
    if parts.fragment and target in known and unquote(parts.fragment) not in known[target].targets:
        return f"{target.name} has no #{parts.fragment}"
    return None


def broken(folder: Path, known: dict[Path, Page]) -> Iterator[str]:
    """Yield the links within that lead nowhere."""
    folder = folder.resolve()
    for path, page in known.items():
        for line, link in page.links:
            if not is_elsewhere(link) and (why := why_broken(path, link, folder, known)):
                yield f"{path.relative_to(folder)}:{line}: {link!r}: {why}"


def main(arguments: list[str] | None = None) -> int:
    """Follow the links, and say what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.links", description="Follow every link within a built documentation."
    )
    parser.add_argument("folder", type=Path, help="where the pages are, such as docs/_build/html")
    parser.add_argument(
        "--list", action="store_true", help="name the links to other sites, and how often each is there"
    )
    options = parser.parse_args(arguments)
    known = pages(options.folder)
    if not known:
        print(f"{options.folder} has no pages", file=sys.stderr)
        return 2
    wrong = list(broken(options.folder, known))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    out = Counter(link for page in known.values() for _, link in page.links if is_elsewhere(link))
    if options.list:
        print(*(f"{count:6} {link}" for link, count in sorted(out.items())), sep="\n")
    within = sum(len(page.links) for page in known.values()) - out.total()
    said = f"{len(known)} pages, {within:,} links within, {len(wrong)} broken"
    print(f"{said}; {out.total():,} to other sites, not followed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
