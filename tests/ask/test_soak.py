"""A small part of `bench/soak.py`: many faults at once, and every count of the server is a count of ours."""

from pathlib import Path

import pytest

from bench.soak import soak

pytestmark = pytest.mark.long


def test_every_judgment_ends_and_the_counts_add_up(tmp_path: Path) -> None:
    rows = soak(500, 0.02, 16, 3, tmp_path)
    assert [row for row in rows if row[1] != row[2]] == []
    assert {name: theirs for name, theirs, _ in rows}["calls"] > 500
