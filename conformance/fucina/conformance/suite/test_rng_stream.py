"""The stream: splitmix64 stepped, and the same words by counter."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause, vectors
from fucina.conformance.compare import Mismatch, assert_bits, assert_same
from fucina.conformance.strategies import GAMMA, M64, seed_for, seeds, unmix, words


def _words(values: list[int]) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.uint64)


@clause("RNG-STREAM-1", "RNG-CONTRACT-1")
def test_sequential_words_and_states(impl: Any) -> None:
    table = vectors.load("rng_splitmix64")
    for row, seed in enumerate(table["seed"].tolist()):
        state, got = seed, []
        for _ in range(table["sequence"].shape[1]):
            state, word = impl.rng.splitmix64(state)
            got.append(word)
        assert_bits(_words(got), table["sequence"][row], what=f"seed {seed:#x}", clause="RNG-STREAM-1")
        assert_same(state, int(table["state_after"][row]), what=f"state after seed {seed:#x}", clause="RNG-STREAM-1")


@clause("RNG-AT-1", "RNG-CONTRACT-1")
def test_words_by_counter(impl: Any) -> None:
    table = vectors.load("rng_splitmix64")
    indices = table["at_index"].tolist()
    for row, seed in enumerate(table["seed"].tolist()):
        got = _words([impl.rng.at(seed, i) for i in indices])
        assert_bits(got, table["at_value"][row], what=f"at({seed:#x}, at_index[i])", clause="RNG-AT-1")


@clause("RNG-AT-1")
def test_seeds_built_backwards(impl: Any) -> None:
    table = vectors.load("rng_splitmix64")
    pairs = zip(table["inv_seed"].tolist(), table["inv_index"].tolist(), strict=True)
    got = _words([impl.rng.at(seed, index) for seed, index in pairs])
    assert_bits(got, table["inv_value"], what="at(inv_seed[i], inv_index[i])", clause="RNG-AT-1")


@clause("RNG-AT-1")
@given(word=words(), index=st.integers(0, M64))
def test_every_word_can_be_reached(impl: Any, word: int, index: int) -> None:
    assert_same(impl.rng.at(seed_for(word, index), index), word, clause="RNG-AT-1")


@clause("RNG-STREAM-1", "RNG-AT-1")
@given(seed=seeds(), index=st.integers(0, M64))
def test_counter_equals_stepping(impl: Any, seed: int, index: int) -> None:
    before = (seed + index * GAMMA) & M64
    state, word = impl.rng.splitmix64(before)
    assert_same(state, (before + GAMMA) & M64, what="state", clause="RNG-STREAM-1")
    assert_same(word, impl.rng.at(seed, index), what="word", clause="RNG-AT-1")
    assert_same(unmix(word), state, what="the mixer inverted", clause="RNG-STREAM-1")


@clause("RNG-STREAM-1", "RNG-AT-1")
def test_words_are_python_ints(impl: Any) -> None:
    state, word = impl.rng.splitmix64(42)
    assert (type(state), type(word), type(impl.rng.at(42, 0))) == (int, int, int)
    assert_same(word, impl.rng.at(42, 0))


@clause("RNG-SEED-1", "RNG-AT-1")
def test_every_bit_of_seed_and_index_counts(impl: Any) -> None:
    for base in (0, 42, 1 << 63):
        plain = impl.rng.at(base, 5)
        for bit in range(64):
            if impl.rng.at(base ^ 1 << bit, 5) == plain or impl.rng.at(base, 5 ^ 1 << bit) == plain:
                raise Mismatch(f"RNG-SEED-1: bit {bit} of the seed or the index {base:#x} makes no difference")


@clause("RNG-SEED-1")
def test_numpy_integers_are_integers(impl: Any) -> None:
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        assert_same(impl.rng.at(kind(77), kind(3)), impl.rng.at(77, 3), what=kind.__name__, clause="RNG-SEED-1")
    assert_same(impl.rng.at(np.uint64(M64), np.uint64(M64)), impl.rng.at(M64, M64), clause="RNG-SEED-1")
    assert_same(impl.rng.splitmix64(np.uint64(M64))[1], impl.rng.splitmix64(M64)[1], clause="RNG-SEED-1")


class _Index:
    """An object that is no int but has ``__index__``."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@clause("RNG-SEED-1")
def test_objects_with_index_are_integers(impl: Any) -> None:
    assert_same(impl.rng.at(_Index(M64), _Index(3)), impl.rng.at(M64, 3), clause="RNG-SEED-1")
    assert_same(impl.rng.splitmix64(_Index(7)), impl.rng.splitmix64(7), clause="RNG-SEED-1")
