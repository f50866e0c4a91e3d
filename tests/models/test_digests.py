"""Sets of many digests: they know what a set of strings knows, whatever came in which order."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.models import digests
from judge.models.digests import DigestSet, NumberSet
from judge.models.journal_sum import KnownDigests

NUMBERS = st.integers(0, 2**64 - 1)
ENDS = st.sampled_from((0, 1, 2**63, 2**64 - 1))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge often, so that a few numbers go every way."""
    monkeypatch.setattr(digests, "_APART", 3)


@given(added=st.lists(NUMBERS | ENDS | st.integers(0, 20)), asked=st.lists(NUMBERS | ENDS | st.integers(0, 20)))
def test_numbers_are_those_of_a_set(added: list[int], asked: list[int]) -> None:
    numbers = NumberSet()
    known: set[int] = set()
    for number in added:
        numbers.add(number)
        known.add(number)
        assert number in numbers
    assert [number in numbers for number in asked] == [number in known for number in asked]
    assert len(numbers) == len(known)


@given(words=st.lists(st.text(max_size=3) | st.text("0123456789abcdef ", min_size=64, max_size=64)))
def test_a_digest_is_new_once(words: list[str]) -> None:
    held = DigestSet()
    known: set[str] = set()
    for word in words:
        assert held.add(word) == (word not in known)
        known.add(word)
        assert word in held
    assert len(held) == len(known) == len(DigestSet(words))


def test_digests_that_differ_in_the_first_64_bits_are_apart() -> None:
    held = DigestSet(["0" * 15 + "1" + "0" * 48])
    assert "0" * 15 + "1" + "0" * 48 in held
    assert "0" * 15 + "2" + "0" * 48 not in held
    assert "0" * 64 not in held


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_a_journal_knows_the_digests_of_its_index_and_those_that_came_later(there: set[int], later: set[int]) -> None:
    known = KnownDigests()
    indexed = sorted(map(_digest, there))
    assert list(known.noting(indexed)) == indexed
    known.add(map(_digest, later))
    for number in range(41):
        assert known.may_hold(_digest(number)) == (number in there | later)


def _digest(number: int) -> str:
    return sha256(str(number).encode()).hexdigest()
