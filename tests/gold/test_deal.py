"""Each item is labeled by one assessor, or by all; each assessor has an order of their own."""

from itertools import combinations

import pytest

from judge.gold.plan import deal, shared_items

NAMES = [f"R{number:05}" for number in range(1, 41)]


@pytest.mark.parametrize(
    ("share", "assessors", "together", "each"),
    [
        # 40 items: 8 are everybody's, 32 go round.
        (0.2, ["ann", "bob"], 8, [8 + 16, 8 + 16]),
        (0.2, ["ann", "bob", "cem"], 8, [8 + 11, 8 + 11, 8 + 10]),
        (0.0, ["ann"], 0, [40]),
        (0.0, ["ann", "bob"], 0, [20, 20]),
        (1.0, ["ann", "bob"], 40, [40, 40]),
        # .0125 of 40 is half an item.
        (0.0125, ["ann", "bob"], 1, [1 + 20, 1 + 19]),
    ],
)
def test_every_item_is_dealt_to_one_or_to_all(share, assessors, together, each) -> None:
    shared = shared_items(NAMES, share, 7)
    dealt = deal(NAMES, assessors, share, 7)
    assert len(shared) == together
    assert [len(own) for own in dealt] == each
    assert all(len(set(own)) == len(own) for own in dealt)
    assert set().union(*dealt) == set(range(40))
    for first, second in combinations(dealt, 2):
        assert set(first) & set(second) == shared


def test_orders_are_random_and_differ_by_assessor_and_seed() -> None:
    ann, bob = deal(NAMES, ["ann", "bob"], 1.0, 7)
    (other,) = deal(NAMES, ["ann"], 0.0, 8)
    assert len({ann, bob, other, tuple(range(40))}) == 4
    assert deal(NAMES, ["ann", "bob"], 1.0, 7) == (ann, bob)


def test_what_everybody_labels_is_spread_over_an_order() -> None:
    shared = shared_items(NAMES, 0.2, 7)
    places = [place for place, item in enumerate(deal(NAMES, ["ann", "bob"], 0.2, 7)[0]) if item in shared]
    assert places[0] < 8 and places[-1] >= 16
