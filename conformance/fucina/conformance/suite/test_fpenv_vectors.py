"""The vectors of the chapter ``fpenv``: single operations in eight environments, traces of flags, records compared."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import Mismatch
from fucina.conformance.suite.test_fpenv_flags import NAMES, made
from fucina.conformance.suite.test_fpenv_modes import caught, reached
from fucina.spec import Operations
from fucina.spec.errors import FloatEnvironmentChanged

ENVIRONMENTS = [
    f"{rounding}/{underflow}"
    for rounding in ("nearest_even", "toward_zero", "upward", "downward")
    for underflow in ("gradual", "flush_to_zero")
]
_NAN = {"f32": (0x7FFFFFFF, 0x7F800000), "f64": ((1 << 63) - 1, 0x7FF << 52)}


def _named(impl: Any, rounding: str, underflow: str) -> Any:
    part = impl.fpenv
    return part.Environment(part.RoundingMode[rounding], part.UnderflowMode[underflow])


def _is_nan(kind: str, bits: int) -> bool:
    magnitude, infinity = _NAN[kind]
    return bits & magnitude > infinity


@clause("FPENV-SET-2", "FPENV-SET-1", "FPENV-GET-1", "FPENV-FLAGS-1", "FPENV-PROBE-1", "FPENV-ASSERT-1")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_single_operations(impl: Any, operations: Operations, name: str) -> None:
    reached(impl)
    part = impl.fpenv
    (record,) = (e for e in vectors.load_json("fpenv")["environments"] if f"{e['rounding']}/{e['underflow']}" == name)
    environment = _named(impl, record["rounding"], record["underflow"])
    assert environment.is_default() is record["isDefault"]
    # other processors round the same, but look for tininess, and flush, at another moment
    same_unit = platform.machine() in ("x86_64", "AMD64")
    wrong = []
    for kind, operation, a, b, expected, flags in record["rows"]:
        source, does, target = ("f64", "to_f32", "f32") if operation == "convert" else (kind, operation, kind)
        with part.guard():
            part.set(environment)
            with part.probe() as probe:
                got = operations.operate(source, does, a, b or 0)
            in_force, asserted = part.get(), caught(part.assert_default)
        assert in_force == environment
        assert (asserted is None) is record["assertDefault_ok"]
        if got != expected and not (_is_nan(target, got) and _is_nan(target, expected)):
            wrong.append(f"{kind} {operation} {a:#x} {b or 0:#x}: {got:#x}, not {expected:#x}")
        elif same_unit and probe.end() != made(impl, flags):
            wrong.append(f"{kind} {operation} {a:#x} {b or 0:#x}: {probe.end()}, not {flags}")
    assert len(record["rows"]) == 170
    if wrong:
        raise Mismatch(f"FPENV-SET-2: {name}: {len(wrong)} operations: {'; '.join(wrong[:4])}", count=len(wrong))


@clause("FPENV-PROBE-1", "FPENV-FLAGS-1", "FPENV-FLAGS-2", "FPENV-FLAGS-3", "FPENV-EXC-2")
def test_traces_of_flags(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    scripts = vectors.load_json("fpenv")["flag_scripts"]
    assert len(scripts) == 40
    for number, script in enumerate(scripts):
        wrong: list[str] = []
        part.clear_exceptions()
        probes: list[Any] = []
        for at, step in enumerate(script):
            result = None
            if step["op"] == "raiseExceptions":
                part.raise_exceptions(made(impl, step["flags"]))
            elif step["op"] == "clearExceptions":
                part.clear_exceptions()
            elif step["op"] == "probe_begin":
                assert len(probes) == step["depth"]
                probes.append(part.Probe.begin())
            else:
                assert len(probes) == step["depth"] + 1
                result = probes[-1].sample() if step["op"] == "probe_sample" else probes.pop().end()
            flags = part.test_exceptions()
            if flags != made(impl, step["flags_after"]):
                wrong.append(f"step {at}, {step['op']}: {flags} accrued, not {step['flags_after']}")
            if result is not None and result != made(impl, step["result"]):
                wrong.append(f"step {at}, {step['op']}: {result}, not {step['result']}")
            if "any" in step:
                assert result is not None
                assert (result.any(), result.any_significant()) == (step["any"], step["anySignificant"])
        if wrong:
            raise Mismatch(f"FPENV-PROBE-1: script {number}: {'; '.join(wrong[:3])}", count=len(wrong))
    part.clear_exceptions()
    assert {name for script in scripts for step in script for name in step["flags_after"]} == set(NAMES)


@clause("FPENV-RECORD-1", "FPENV-RECORD-2", "FPENV-ASSERT-1", "FPENV-SET-1")
def test_records_and_assertions(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    checks = vectors.load_json("fpenv")["context_checks"]
    assert len(checks) == 64
    for check in checks:
        at_init, now = _named(impl, *check["at_init"]), _named(impl, *check["now"])
        with part.guard():
            part.set(at_init)
            record = part.Record.begin()
            part.set(now)
            error, asserted = caught(record.check), caught(part.assert_default)
        assert record.environment == at_init
        expected = {"ok": type(None), "FloatEnvironmentChanged": FloatEnvironmentChanged}
        assert type(error) is expected[check["checkFloatEnvironment"]], check
        assert (asserted is None) is check["assertDefault_ok"], check
