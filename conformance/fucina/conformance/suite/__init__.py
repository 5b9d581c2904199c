"""The conformance suite: one subject per file, every test marked with the clauses that it holds an implementation to.

The tests take an implementation through the fixture ``impl`` and know nothing of it but the interface; the expected
bits come from frozen vectors, from exact arithmetic written out here, or from another implementation (``judge``).
"""
