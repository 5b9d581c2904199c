"""The curves of errors by size: what is recorded is what comes out."""

import json

from tools import curves


def test_the_record_is_what_comes_out() -> None:
    recorded = json.loads(curves.RECORD.read_text(encoding="utf-8"))
    assert recorded["formats"] == curves.curves()
    assert recorded["weights"] == {"seed": curves.SEED, "count": curves.COUNT, "deviation": curves.DEVIATION}
