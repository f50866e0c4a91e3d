"""Adjudication: what assessors differ on goes to a third person, whose labels the same store keeps beside theirs.

No label of an assessor changes. Who labeled an item, or is to label it, is never dealt it again.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from judge.errors import InputError
from judge.extra.desk.app import new_token
from judge.extra.desk.store import STORE, DeskTask, LabelStore, StoreTables, check_settings
from judge.gold.dealing import deal_apart, differ
from judge.gold.sources import ADJUDICATED_SCHEMA, STORE_SCHEMA, STORE_SCHEMAS
from judge.io.ids import groups_of
from judge.io.text import count, digest, shown

ADJUDICATING = StoreTables(people="adjudicator", tasks="dispute", labels="adjudication", view="adjudications")
_SHOWS = "adjudicators"
"""The setting that says what adjudicators see."""

Disputed = tuple[int, str]
"""The place of an item in the list of all, from 0, and a criterion."""


class EarlierLabel(NamedTuple):
    """What an assessor gave an item that is adjudicated."""

    assessor: str
    grade: int | None
    """None where the assessor was unable to judge."""
    comment: str


class Adjudication(NamedTuple):
    """What is dealt to adjudicators, and how."""

    adjudicators: Sequence[str]
    differ: int
    """How many levels apart labels differ at least."""
    blind: bool
    """Whether the labels are hidden."""
    seed: int
    levels: Mapping[str, Sequence[int]]
    """Criterion to the grades of its scale, ascending."""


def shared_places(path: Path) -> frozenset[int]:
    """The places of the items that every assessor of a store labels; an InputError if it is no store of labels."""
    file = path / STORE if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"{file}: no such store of labels: --adjudicate needs one in which two assessors have labeled the same"
        )
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as store:
            schema = store.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
            if schema is None or schema[0] not in STORE_SCHEMAS:
                raise InputError(f"{file}: no store of labels that this version of judge knows")
            return frozenset(item - 1 for (item,) in store.execute("SELECT item FROM item WHERE shared"))
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise InputError(f"{file}: cannot be used as a store of labels: {error}") from error


class AdjudicationStore(LabelStore):
    """A store of labels, opened for those who adjudicate what its assessors differ on.

    What differs is looked for each time it is opened. What was dealt once stays so, and the rest is dealt anew, each
    label to one of the adjudicators. An InputError if nothing is there for any of them.
    """

    _names = ADJUDICATING
    adjudicates = True

    def __init__(self, path: Path, settings: Mapping[str, str], adjudication: Adjudication) -> None:
        self._adjudication = adjudication
        self.notes: tuple[str, ...] = ()
        """What is to be known of the deal, a sentence each."""
        self._open_file(path, lambda connection: self._prepare(connection, settings))
        wanted = {name.casefold() for name in adjudication.adjudicators}
        self.seats = tuple(seat for seat in self.seats if seat.name.casefold() in wanted)

    def earlier(self, task: DeskTask) -> Sequence[EarlierLabel]:
        """What the assessors gave the item of a task, in an order that does not tell who they are."""
        if self._adjudication.blind:
            return ()
        # Those who gave labels may have taken all of them back since the item was dealt.
        return self._labels.get((task.item, task.criterion), ())

    def _prepare(
        self, connection: sqlite3.Connection, settings: Mapping[str, str]
    ) -> Callable[[sqlite3.Connection], None] | None:
        """Look for what differs and is not dealt yet, and return what writes it."""
        stored = dict(connection.execute("SELECT key, value FROM meta"))
        if str(stored.get("made", "")).startswith("postedit"):
            raise InputError(
                f"{self.path}: its assessors saw a judge's grade, and an adjudication of their labels would pass as "
                "independent of it"
            )
        check_settings(connection, self.path, settings)
        shows = "see no label" if self._adjudication.blind else "see the labels"
        if stored.get(_SHOWS, shows) != shows:
            raise InputError(f"{self.path}: {_SHOWS} {stored[_SHOWS]} there, and {shows} here (--blind)")
        fresh = stored["schema"] == STORE_SCHEMA
        self._labels = _labels(connection, self._adjudication)
        levels = self._adjudication.levels
        differing = [
            disputed
            for disputed, labels in self._labels.items()
            if disputed[1] in levels
            and differ([label.grade for label in labels], levels[disputed[1]], self._adjudication.differ)
        ]
        before: dict[Disputed, str] = {}
        if not fresh:
            before = {(item - 1, criterion): name.casefold() for item, criterion, name in connection.execute(_DEALT)}
        anew = [disputed for disputed in differing if disputed not in before]
        orders = self._deal(connection, anew)
        if left := len(anew) - sum(map(len, orders.values())):
            self.notes = (
                f"{count(left, 'label')} on which assessors differ dealt to nobody: each adjudicator is one of them",
            )
        people = {name.casefold() for name in orders}
        if not any(orders.values()) and people.isdisjoint(before.values()):
            raise InputError(self._nothing(len(differing), len(differing) - len(anew)))

        def write(connection: sqlite3.Connection) -> None:
            if fresh:
                ADJUDICATING.create(connection)
                connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (ADJUDICATED_SCHEMA,))
                connection.execute("INSERT INTO meta VALUES (?, ?)", (_SHOWS, shows))
            _add(connection, orders)

        return write

    def _nothing(self, differing: int, dealt: int) -> str:
        """Why there is nothing for any of the adjudicators, in words."""
        if not differing:
            twice = sum(len(labels) > 1 for labels in self._labels.values())
            by = count(self._adjudication.differ, "level")
            labels = count(twice, "label")
            return f"{self.path}: nothing to adjudicate: of {labels} given twice, none differs by {by} or more"
        names = ", ".join(map(shown, self._adjudication.adjudicators))
        others = f"{dealt} of them dealt to others, and " if dealt else ""
        return (
            f"{self.path}: nothing for {names} to adjudicate: assessors differ on {count(differing, 'label')}, {others}"
            "each of the rest theirs to label too; name another --assessor"
        )

    def _deal(self, connection: sqlite3.Connection, disputed: Sequence[Disputed]) -> dict[str, list[Disputed]]:
        """The new labels of each adjudicator, in order."""
        busy = groups_of(
            ((item - 1, criterion), name.casefold()) for item, criterion, name in connection.execute(_DEALT_BEFORE)
        )
        people = [name.casefold() for name in self._adjudication.adjudicators]
        dealt = deal_apart(
            [f"{item}\n{criterion}" for item, criterion in disputed],
            [busy.get(one, ()) for one in disputed],
            people,
            self._adjudication.seed,
        )
        named = zip(self._adjudication.adjudicators, dealt, strict=True)
        return {name: [disputed[place] for place in places] for name, places in named}


_DEALT = "SELECT item, criterion, name FROM dispute JOIN adjudicator USING (assessor)"
_DEALT_BEFORE = "SELECT item, criterion, name FROM task JOIN assessor USING (assessor)"
_LABELS = "SELECT item, criterion, assessor, grade, comment FROM labels"


def _labels(connection: sqlite3.Connection, adjudication: Adjudication) -> dict[Disputed, list[EarlierLabel]]:
    """The labels of each item under a criterion, each in an order of its own; a ValueError for what is no label."""
    labels: dict[Disputed, list[EarlierLabel]] = {}
    for item, criterion, assessor, grade, comment in connection.execute(_LABELS):
        levels = adjudication.levels.get(criterion, ())
        if grade is not None and levels and grade not in levels:
            raise ValueError(f"item {item}: {criterion} {shown(grade)}: expected one of {', '.join(map(str, levels))}")
        labels.setdefault((item - 1, criterion), []).append(EarlierLabel(assessor, grade, comment or ""))
    for (item, criterion), given in labels.items():
        seeded = f"{adjudication.seed}\n{item}\n{criterion}"
        given.sort(key=lambda label, seeded=seeded: digest(f"{seeded}\n{label.assessor}"))  # type: ignore[misc]
    return labels


def _add(write: sqlite3.Connection, orders: Mapping[str, Sequence[Disputed]]) -> None:
    """Write who adjudicates what, after what they were dealt before."""
    people = {name.casefold(): number for number, name in write.execute("SELECT assessor, name FROM adjudicator")}
    for name, disputed in orders.items():
        number = people.get(name.casefold())
        if number is None:
            number = len(people) + 1
            people[name.casefold()] = number
            write.execute("INSERT INTO adjudicator VALUES (?, ?, ?)", (number, name, new_token()))
        (last,) = write.execute("SELECT coalesce(max(place), 0) FROM dispute WHERE assessor = ?", (number,)).fetchone()
        write.executemany(
            "INSERT INTO dispute VALUES (?, ?, ?, ?)",
            [(number, place, item + 1, criterion) for place, (item, criterion) in enumerate(disputed, last + 1)],
        )
