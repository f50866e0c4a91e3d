"""Responses that were seen, of the pool and of none."""

from hypothesis import given
from hypothesis import strategies as st

from judge.pool.records import SeenResponses, pool_places
from tests.pool.test_folder import POOL


@given(st.lists(st.sampled_from(["R00000", "R00001", "R00002", "of no pool", "another"])))
def test_it_is_a_set(response_ids: list[str]) -> None:
    seen, expected = SeenResponses({"R00000": 0, "R00001": 1, "R00002": 2}), set[str]()
    for response_id in response_ids:
        assert seen.add(response_id) == (response_id not in expected)
        expected.add(response_id)
        assert len(seen) == len(expected)


def test_places_are_those_of_the_pool() -> None:
    assert pool_places(POOL) == {"R00000": 0}
