"""The years of the tracks, by the turns of their topics. Pure.

Turn ids come again: 16 of them stand in the topics of iKAT 2023 and of iKAT 2025 for different turns. So a year is told
by most of a run's turns, never by one of them.
"""

from collections.abc import Collection

from judge.text.ids import topic_of


def possible_years(turn_ids: Collection[str], format_year: int | None = None) -> frozenset[int]:
    """The known years that have at least half of the turns.

    Where the year of the run's format has all of them, years that lack two or more are out: one may be a slip.
    """
    held = {year: sum(_has(year, turn_id) for turn_id in turn_ids) for year in TURNS}
    total = len(turn_ids)
    fewest = total - 1 if format_year is not None and held.get(format_year) == total else total / 2
    return frozenset(year for year, n in held.items() if n and n >= fewest)


def year_of(turn_ids: Collection[str]) -> int | None:
    """The year whose turns these are, and of whose topics half or more are among theirs; None for any other turns.

    >>> year_of([f"{topic}_1" for topic in range(17)]), year_of(["0_1", "1_1"])
    (2024, None)
    """
    topics = set(map(topic_of, turn_ids))
    years = {year for year in possible_years(turn_ids) if 2 * len(topics & TURNS[year].keys()) >= len(TURNS[year])}
    return years.pop() if len(years) == 1 else None


def _has(year: int, turn_id: str) -> bool:
    """Whether the topics of a year have a turn; any turn of a tree, whose size is not known here."""
    topic_id, _, number = turn_id.rpartition("_")
    last = TURNS[year].get(topic_id, 0)
    return last is None or (number.isdecimal() and len(number) < 4 and 1 <= int(number) <= last)


TURNS: dict[int, dict[str, int | None]] = {
    2022: {str(topic): None for topic in range(132, 150)},
    2023: {
        "9-1": 6, "9-2": 12, "10-1": 21, "10-2": 15, "10-3": 10, "11-1": 9, "11-2": 11, "12-1": 12, "12-2": 12,
        "13-1": 8, "14-1": 19, "14-2": 12, "15-1": 15, "15-2": 11, "16-1": 14, "16-2": 13, "17-1": 12, "17-2": 16,
        "17-3": 18, "18-1": 16, "18-2": 13, "19-1": 18, "20-1": 13, "20-2": 16, "21-1": 10,
    },
    2024: {
        "0": 12, "1": 11, "2": 14, "3": 9, "4": 17, "5": 16, "6": 17, "7": 16, "8": 13, "9": 13, "10": 13, "11": 13,
        "12": 10, "13": 11, "14": 11, "15": 11, "16": 11,
    },
    2025: {
        "1-1": 12, "1-2": 11, "2-1": 14, "2-2": 11, "3-1": 11, "3-2": 10, "4-1": 12, "4-2": 11, "5-1": 10, "5-2": 10,
        "6-1": 14, "6-2": 9, "7-1": 13, "8-1": 10, "8-2": 9, "9-1": 11, "9-2": 10,
    },
}  # fmt: skip
"""Year to its topics, each with the number of the last turn; None for a tree of conversations."""
