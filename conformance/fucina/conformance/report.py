"""The report files: JSON for programs, JUnit for CI, HTML for people."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fucina.conformance.page import page
from fucina.conformance.results import Check, Outcome, Run, State
from fucina.conformance.targets import version_of

__all__ = ["SCHEMA_VERSION", "as_json", "as_junit", "prepare", "write"]

SCHEMA_VERSION = 1


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def as_json(run: Run) -> dict[str, Any]:
    """Return the report as plain data.

    The keys are stable within one ``schema_version``: ``targets``, ``versions``, ``machine``, ``options``, ``totals``,
    ``clauses``, ``cells``, ``notes``, ``failures``, ``problems``, ``left_out``.
    """
    return {
        "schema": "fucina.conformance.report",
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        "agrees": run.agrees,
        "verdict": run.verdict,
        "summary": run.last_line,
        "stopped": run.stopped,
        "options": {"filter": list(run.globs), "slow": run.slow, "seed": run.seed},
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("fucina", "numpy", "pytest", "hypothesis")},
        },
        "machine": {
            "arch": platform.machine(),
            "system": platform.system(),
            "byteorder": sys.byteorder,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "numpy": _version("numpy"),
            "isa": sorted({t.isa for t in run.targets if t.isa}),
        },
        "targets": [
            {
                "label": t.label,
                "module": t.module_name,
                "isa": t.isa,
                "version": version_of(t.module),
                "capabilities": sorted(run.capabilities[t.label]),
            }
            for t in run.targets
        ],
        "totals": {o.value: run.totals[o] for o in Outcome} | {"errors": run.errors},
        "clauses": [{"id": c.id, "chapter": c.chapter, "title": c.title} for c in run.clauses.values()],
        "cells": [
            {
                "clause": clause_id,
                "target": label,
                "state": cell.state.value,
                "counts": {o.value: cell.counts[o] for o in Outcome if cell.counts[o]},
                "note": cell.note,
            }
            for (clause_id, label), cell in run.cells.items()
        ],
        "notes": [{"target": label, "note": note} for label, note in run.notes],
        "failures": [_failure(check) for check in run.failures],
        "problems": [{"kind": p.kind, "where": p.where, "message": p.message} for p in run.problems],
        "left_out": [
            {"test": e.test, "target": e.target, "reason": e.reason}
            for e in dict.fromkeys(run.left_out)
            if e.reason != "outside the filter"
        ],
    }


def _failure(check: Check) -> dict[str, Any]:
    failure = check.failure
    return {
        "clauses": list(check.blamed),
        "test": check.case,
        "target": check.target,
        "index": failure.index if failure else "",
        "got": failure.got if failure else "",
        "expected": failure.expected if failure else "",
        "worst": failure.worst if failure else "",
        "message": failure.message if failure else "",
    }


def as_junit(run: Run) -> ElementTree.ElementTree[ElementTree.Element]:
    """Return the report as JUnit XML: a suite per target, a case per check, and one for each clause without a test."""
    root = ElementTree.Element("testsuites", name="fucina.conformance", time=f"{run.seconds:.3f}")
    for target in run.targets:
        suite = ElementTree.SubElement(root, "testsuite", name=target.label)
        for check in run.checks:
            if check.target == target.label:
                _case(suite, check)
        for clause_id, label in run.in_state(State.NO_TEST):
            if label == target.label:
                _broken(suite, "clauses", clause_id, "NO TEST: no test of the suite checks this claimed clause")
        for clause_id, label in run.in_state(State.NOT_CLAIMED):
            if label == target.label:
                case = ElementTree.SubElement(suite, "testcase", classname="clauses", name=clause_id)
                ElementTree.SubElement(case, "skipped", message="not claimed")
        _count(suite)
    if run.problems:
        suite = ElementTree.SubElement(root, "testsuite", name="the suite itself")
        for problem in run.problems:
            _broken(suite, problem.kind, problem.where, problem.message)
        _count(suite)
    ElementTree.indent(root)
    return ElementTree.ElementTree(root)


def _case(suite: ElementTree.Element, check: Check) -> None:
    file, _, name = check.case.partition("::")
    case = ElementTree.SubElement(
        suite, "testcase", classname=file.removesuffix(".py"), name=_xml(name), time=f"{check.seconds:.4f}"
    )
    properties = ElementTree.SubElement(case, "properties")
    for clause_id in check.clauses:
        ElementTree.SubElement(properties, "property", name="clause", value=clause_id)
    if check.outcome is Outcome.FAILED:
        text = check.failure.message if check.failure else "failed"
        ElementTree.SubElement(case, "failure", message=_xml(text.partition("\n")[0])).text = _xml(text)
    elif check.outcome is not Outcome.PASSED:
        reason = f"{check.outcome.value}: {check.reason}"
        ElementTree.SubElement(case, "skipped", message=_xml(reason))


def _broken(suite: ElementTree.Element, classname: str, name: str, message: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=classname, name=_xml(name))
    ElementTree.SubElement(case, "failure", message=_xml(message.partition("\n")[0])).text = _xml(message)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _xml(text: str) -> str:
    """Escape what XML 1.0 cannot hold at all, such as control characters."""
    return "".join(c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else f"\\x{ord(c):02x}" for c in text)


def prepare(folder: Path) -> None:
    """Make the folder of the report if it is not there; OSError where no report could be written to it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("nothing can be written into this folder")


def write(run: Run, folder: Path) -> None:
    """Write ``report.json``, ``junit.xml`` and ``index.html`` into a folder, which is made if it is not there."""
    prepare(folder)
    data = as_json(run)
    (folder / "report.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    as_junit(run).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)
    (folder / "index.html").write_text(page(data), encoding="utf-8")
