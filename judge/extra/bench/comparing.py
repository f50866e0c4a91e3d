"""Judge cards set side by side: what `judge bench compare` does, for use from Python."""

from pathlib import Path
from typing import Annotated

from judge.errors import UsageError
from judge.extra.bench.cards.card import CARD, ITEMS, parse_card, parse_items
from judge.extra.bench.cards.comparison import ComparedCards, ReadCard, compare_cards
from judge.io.paths import file_in
from judge.io.plan import Option, Options
from judge.io.stored import read_stored


class CardsPlan(Options):
    """Everything `judge bench compare` can be told."""

    cards: Annotated[tuple[Path, ...], Option(metavar="CARD", place="only")]
    """Cards, or folders that `judge bench` wrote; a folder of folders stands for the cards in these."""


def compare_bench(plan: CardsPlan) -> ComparedCards:
    """Read cards and set them side by side.

    Raises:
        UsageError: There are fewer than two.
        InputError: A card cannot be read, or the items beside it are not its own.
    """
    paths = list(dict.fromkeys(path for given in plan.cards for path in _cards(given)))
    if len(paths) < 2:
        raise UsageError(f"{len(paths)} card: expected two or more to compare")
    return compare_cards([_read(path) for path in paths])


def _cards(given: Path) -> list[Path]:
    """The cards that a path stands for."""
    if given.is_dir() and not (given / CARD).is_file() and (several := sorted(given.glob(f"*/{CARD}"))):
        return several
    return [file_in(given, CARD)]


def _read(path: Path) -> ReadCard:
    card = parse_card(read_stored(path), str(path))
    beside = path.with_name(ITEMS)
    if not beside.is_file():
        return ReadCard(card, None)
    return ReadCard(card, parse_items(read_stored(beside), card, str(beside)))
