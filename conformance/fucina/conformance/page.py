"""The HTML report: one self-contained page made from the JSON report, failures first."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import Any

__all__ = ["page"]

_CLASSES = {
    "ok": "ok",
    "FAIL": "bad",
    "NO TEST": "bad",
    "skipped": "bad",
    "not run": "bad",
    "expected": "expected",
    "not claimed": "quiet",
}


def page(report: dict[str, Any]) -> str:
    """Render the page.

    Parameters
    ----------
    report : dict
        What :func:`fucina.conformance.report.as_json` returned, or the same read back from ``report.json``.
    """
    template = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
    machine = report["machine"]
    return template.substitute(
        verdict=escape(report["verdict"]),
        verdict_class="ok" if report["agrees"] else "bad",
        summary=escape(report["summary"]),
        stopped=f"<p class='bad'>Stopped early: {escape(report['stopped'])}</p>" if report["stopped"] else "",
        failures=_failures(report),
        problems=_problems(report),
        not_claimed=_not_claimed(report),
        matrix=_matrix(report),
        notes=_notes(report),
        facts=escape(
            f"{report['created']} · {machine['system']} {machine['arch']} · {machine['python']} · "
            f"numpy {machine['numpy']} · fucina {report['versions']['fucina']}"
        ),
    )


def _row(name: str, value: str) -> str:
    return f"<dt>{name}</dt><dd><code>{escape(value)}</code></dd>" if value else ""


def _failures(report: dict[str, Any]) -> str:
    if not report["failures"]:
        return ""
    grouped: dict[tuple[str, str], list[str]] = {}
    for failure in report["failures"]:
        key = (failure["test"].partition("[")[0], failure["target"])
        grouped.setdefault(key, []).append(_failure(failure))
    parts = [f"<h2>{len(report['failures'])} failed</h2>"]
    for first, *others in grouped.values():
        parts.append(first)
        if others:
            summary = f"{len(others)} more of this test, with other parameters"
            parts.append(f"<details><summary>{summary}</summary>{''.join(others)}</details>")
    return "".join(parts)


def _failure(failure: dict[str, Any]) -> str:
    clauses = " ".join(f"<a href='#{escape(i)}'>{escape(i)}</a>" for i in failure["clauses"])
    rows = "".join(_row(key, failure[key]) for key in ("test", "index", "got", "expected", "worst"))
    return (
        f"<article><h3>{clauses} on {escape(failure['target'])}</h3><dl>{rows}</dl>"
        f"<pre>{escape(failure['message'])}</pre></article>"
    )


def _problems(report: dict[str, Any]) -> str:
    if not report["problems"]:
        return ""
    items = "".join(
        f"<li><b>{escape(p['kind'])}</b>: {escape(p['where'])}<pre>{escape(p['message'])}</pre></li>"
        for p in report["problems"]
    )
    return f"<h2>Problems of the run itself</h2><ul>{items}</ul>"


def _not_claimed(report: dict[str, Any]) -> str:
    known = dict.fromkeys(c["chapter"] for c in report["clauses"])
    items = []
    for target in report["targets"]:
        missing = [chapter for chapter in known if chapter not in target["capabilities"]]
        if missing:
            items.append(f"<li>{escape(target['label'])} does not claim {escape(', '.join(missing))}</li>")
    return f"<h2>Not claimed</h2><ul>{''.join(items)}</ul>" if items else ""


def _notes(report: dict[str, Any]) -> str:
    items = "".join(f"<li>{escape(n['target'])}: {escape(n['note'])}</li>" for n in report["notes"])
    return f"<h2>Notes of the tests</h2><ul>{items}</ul>" if items else ""


def _text(cell: dict[str, Any]) -> str:
    count = cell["counts"].get({"ok": "passed", "FAIL": "failed"}.get(cell["state"], ""), "")
    note = f": {cell['note']}" if cell["note"] else ""
    return escape(f"{cell['state']} {count}".strip() + note)


def _matrix(report: dict[str, Any]) -> str:
    cells = {(c["clause"], c["target"]): c for c in report["cells"]}
    labels = [t["label"] for t in report["targets"]]
    head = "".join(f"<th scope='col'>{escape(label)}</th>" for label in labels)
    rows, chapter = [], None
    for clause in report["clauses"]:
        if clause["chapter"] != chapter:
            chapter = clause["chapter"]
            rows.append(f"<tr class='chapter'><th colspan='{len(labels) + 1}'>{escape(chapter)}</th></tr>")
        shown = [cells[clause["id"], label] for label in labels]
        tds = "".join(f"<td class='{_CLASSES[c['state']]}'>{_text(c)}</td>" for c in shown)
        name = escape(clause["id"])
        rows.append(f"<tr id='{name}'><th scope='row'>{name}<small>{escape(clause['title'])}</small></th>{tds}</tr>")
    return f"<thead><tr><th scope='col'>clause</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
