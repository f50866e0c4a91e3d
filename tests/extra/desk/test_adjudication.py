"""What assessors differ on goes to a third person, once, and their grade becomes the gold of it."""

import re
import signal
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from judge.cli import main
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.desk.adjudication import AdjudicationStore
from judge.extra.desk.app import Seat
from judge.extra.desk.assess import AssessPlan, open_assess_desk
from judge.extra.desk.store import LabelStore
from judge.gold.rows import read_gold
from tests.conftest import start_python
from tests.crowd.world import warned
from tests.extra.desk.visiting import Visitor
from tests.extra.desk.world import HOSTILE, plan_of, write_pool
from tests.time_limit import PATIENCE

Grade = int | None
"""None for "unable to judge"."""
GIVEN: dict[int, tuple[Grade, Grade]] = {1: (0, 0), 2: (0, 1), 3: (1, 3), 4: (2, None), 5: (None, None), 6: (3, 3)}
"""What ann and bob gave each response."""


def first_round(folder: Path, given: Mapping[int, Sequence[Grade]] = GIVEN, **changes: Any) -> None:
    """A store in which two assessors labeled the same responses, with a comment on each."""
    write_pool(folder, max(given))
    plan = plan_of(folder, **{"assessors": ["ann", "bob"], "double": 1.0} | changes)
    with open_assess_desk(plan) as (desk, store):
        for place, seat in enumerate(store.seats):
            for task in store.tasks(seat.path):
                number = int(desk._work.items[task.item].response_id[1:])
                if place < len(given.get(number, ())):
                    store.save(seat.path, task, given[number][place], f"why {seat.name}?", "blind")


def adjudication(folder: Path, *names: str, **changes: Any) -> AssessPlan:
    return plan_of(folder, **{"assessors": list(names) or ["dee"], "adjudicate": True} | changes)


def dealt(folder: Path, *names: str, **changes: Any) -> dict[str, list[int]]:
    """The numbers of the responses that each adjudicator is shown, sorted."""
    with open_assess_desk(adjudication(folder, *names, **changes)) as (desk, store):
        assert isinstance(store, AdjudicationStore)
        return {seat.name: sorted(numbers(desk, store, seat)) for seat in store.seats}


def numbers(desk: Any, store: LabelStore, seat: Seat) -> list[int]:
    """The numbers of the responses in the order of a seat."""
    return [int(desk._work.items[task.item].response_id[1:]) for task in store.tasks(seat.path)]


def contents(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM label ORDER BY number").fetchall()


def damage(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(("levels", "expected"), [(1, [2, 3, 4]), (2, [3, 4]), (3, [4])])
def test_what_differs_by_so_many_levels_is_dealt_and_a_grade_differs_from_none(
    tmp_path: Path, levels: int, expected: list[int]
) -> None:
    first_round(tmp_path)
    assert dealt(tmp_path, differ=levels) == {"dee": expected}


def test_labels_are_shown_under_letters_and_without_markup(tmp_path: Path) -> None:
    first_round(tmp_path)
    path = tmp_path / "labels.sqlite"
    damage(path, f"UPDATE label SET comment = '{HOSTILE.replace(chr(39), chr(39) * 2)}' WHERE grade = 3")
    with open_assess_desk(adjudication(tmp_path)) as (desk, store), Visitor(desk.app(port=8765)) as visitor:
        (seat,) = store.seats
        home = f"/{seat.path}/"
        visitor.enter(home, seat.token)
        order = numbers(desk, store, seat)
        pages = {number: visitor.get(f"{home}{place}").text for place, number in enumerate(order, 1)}
        orders = {number: [label.assessor for label in store.earlier(task)] for number, task in
                  zip(order, store.tasks(seat.path), strict=True)}  # fmt: skip
    for number, page in pages.items():
        shown = page[page.index('<div class="earlier"') : page.index("</dl>", page.index('<div class="earlier"'))]
        assert re.findall("<dt>(.*?)</dt>", shown) == ["A", "B"]
        grades = re.findall(r'class="chip[^"]*"[^>]*>(\w+)<', shown)
        assert sorted(grades) == sorted("Unable" if grade is None else str(grade) for grade in GIVEN[number])
        assert "ann</" not in page and "bob</" not in page and "checked" not in page
    assert "<script>document" not in pages[3] and "&lt;/p&gt;&lt;script&gt;document.title" in pages[3]
    assert set(map(tuple, orders.values())) <= {("ann", "bob"), ("bob", "ann")}


def test_the_letters_of_an_item_go_by_the_seed(tmp_path: Path) -> None:
    orders = set()
    for seed in range(1, 7):
        folder = tmp_path / str(seed)
        first_round(folder, {1: (0, 1)}, seed=seed)
        for _ in range(2):
            with open_assess_desk(adjudication(folder, seed=seed)) as (_, store):
                (task,) = store.tasks("1")
                orders.add((seed, tuple(label.assessor for label in store.earlier(task))))
    assert len(orders) == 6
    assert {order for _, order in orders} == {("ann", "bob"), ("bob", "ann")}


def test_a_blind_adjudicator_sees_no_label_then_or_later(tmp_path: Path) -> None:
    first_round(tmp_path)
    with open_assess_desk(adjudication(tmp_path, blind=True)) as (desk, store), Visitor(desk.app(port=8765)) as visitor:
        home = f"/{store.seats[0].path}/"
        page = visitor.enter(home, store.seats[0].token)
        page = visitor.get(page.headers["location"]).text
    assert "Assessors differ on this response." in page and "earlier" not in page and "why" not in page
    with (
        pytest.raises(InputError, match=r"adjudicators see no label there, and see the labels here \(--blind\)"),
        open_assess_desk(adjudication(tmp_path)),
    ):
        pass


def test_the_adjudicated_grade_is_gold_and_the_two_labels_stay(tmp_path: Path, capsys) -> None:
    first_round(tmp_path)
    before = contents(tmp_path / "labels.sqlite")
    with open_assess_desk(adjudication(tmp_path)) as (desk, store), Visitor(desk.app(port=8765)) as visitor:
        home = f"/{store.seats[0].path}/"
        visitor.enter(home, store.seats[0].token)
        # One for ann, one for neither, and one that cannot be judged; a first answer is taken back.
        answers = {2: "0", 3: "2", 4: "unable"}
        for place, number in enumerate(numbers(desk, store, store.seats[0]), 1):
            page = visitor.get(f"{home}{place}")
            if place == 1:
                visitor.submit(page, f"{home}{place}", grade="3", comment="")
                visitor.submit(visitor.get(f"{home}list"), f"{home}undo")
            assert visitor.submit(page, f"{home}{place}", grade=answers[number], comment="seen").status_code == 303
        assert "All 3 are labeled" in visitor.get(home).text
    assert contents(tmp_path / "labels.sqlite") == before
    gold = tmp_path / "gold.jsonl"
    assert main(["gold", "import", "desk", str(tmp_path / "labels.sqlite"), "--out", str(gold)]) == 0
    said = capsys.readouterr().err
    assert "of 3 labels on which assessors differ and that were dealt anew, 2 adjudicated" in said
    rows = read_gold(gold)
    ruled = [(row.response_id, row.assessor, row.grade, row.comment) for row in rows if row.made == "adjudicated"]
    assert sorted(ruled) == [("R00002", "dee", 0, "seen"), ("R00003", "dee", 2, "seen")]
    given = {(row.response_id, row.assessor, row.grade) for row in rows if row.made == "blind"}
    assert given == {
        (f"R{number:05}", name, grade)
        for number, grades in GIVEN.items()
        for name, grade in zip(("ann", "bob"), grades, strict=True)
        if grade is not None
    }
    assert {row.inclusion_probability for row in rows} == {1.0}
    assert main(["gold", "check", str(gold), "--pool", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "ann: 5 labels, 4 of what others labeled too, of which 2 differ, adjudicated 1 for and 1 against" in said
    assert "bob: 4 labels, 4 of what others labeled too, of which 2 differ, adjudicated 0 for and 2 against" in said
    assert "dee: 2 adjudications given" in said
    # For a crowd, whose labels are taken as independent, an adjudication is no vote.
    labels, _ = warned(tmp_path / "labels.sqlite", scales=(0, 1, 2, 3))
    assert set(labels["groundedness"].workers) == {"ann", "bob"}


def test_nobody_is_dealt_what_they_labeled_or_are_to_label(tmp_path: Path) -> None:
    write_pool(tmp_path, 12)
    plan = plan_of(tmp_path, assessors=["ann", "bob", "cy"], double=0.0)
    with open_assess_desk(plan) as (desk, store):
        shares = {seat.name: set(numbers(desk, store, seat)) for seat in store.seats}
        path = store.path
    # Bob labeled all that is ann's as well, as a store may hold in which somebody stood in.
    with closing(sqlite3.connect(path)) as connection, connection:
        ((last,),) = connection.execute("SELECT max(place) FROM task WHERE assessor = 2")
        hers = [item for (item,) in connection.execute("SELECT item FROM task WHERE assessor = 1")]
        for place, item in enumerate(hers, last + 1):
            connection.execute("INSERT INTO task VALUES (2, ?, ?, 'groundedness')", (place, item))
        for item in hers:
            for assessor, grade in ((1, 0), (2, 3)):
                connection.execute(
                    "INSERT INTO label (assessor, item, criterion, grade, unable, comment, made, at) "
                    "VALUES (?, ?, 'groundedness', ?, 0, '', 'blind', '')", (assessor, item, grade),
                )  # fmt: skip
    for name in ("ann", "ANN", "bob"):
        with (
            pytest.raises(InputError, match=f"nothing for '{name}' to adjudicate: assessors differ on 4 labels, each"),
            open_assess_desk(adjudication(tmp_path, name)),
        ):
            pass
    assert dealt(tmp_path, "ann", "cy") == {"ann": [], "cy": sorted(shares["ann"])}


def test_two_adjudicators_share_what_differs_and_one_who_comes_later_gets_the_rest(tmp_path: Path) -> None:
    first_round(tmp_path, {number: (0, 1 + number % 3) for number in range(1, 10)})
    one = dealt(tmp_path, "dee", "eve", differ=2)
    # 1 + number % 3 is 2 or 3 for six of nine.
    assert [len(one["dee"]), len(one["eve"])] == [3, 3]
    assert sorted(one["dee"] + one["eve"]) == [1, 2, 4, 5, 7, 8]
    # The same again deals nothing anew, and what now counts as differing goes to whoever is there.
    assert dealt(tmp_path, "eve", "dee", differ=2) == one
    assert dealt(tmp_path, "fay", differ=1) == {"fay": [3, 6, 9]}
    assert dealt(tmp_path, "Dee", differ=1) == {"dee": one["dee"]}
    with (
        pytest.raises(InputError, match=r"nothing for 'gus' to adjudicate: .* 9 labels, 9 of them dealt to others"),
        open_assess_desk(adjudication(tmp_path, "gus")),
    ):
        pass
    with (
        open_assess_desk(adjudication(tmp_path, "dee")),
        pytest.raises(OperationalError, match="another desk serves it"),
        open_assess_desk(adjudication(tmp_path, "eve")),
    ):
        pass


def test_two_adjudicators_at_one_desk_see_nothing_of_each_other(tmp_path: Path) -> None:
    first_round(tmp_path, dict.fromkeys(range(1, 5), (0, 3)))
    plan = adjudication(tmp_path, "dee", "eve")
    with open_assess_desk(plan) as (desk, store), Visitor(desk.app(port=8765)) as visitor:
        homes = [f"/{seat.path}/" for seat in store.seats]
        for seat, home in zip(store.seats, homes, strict=True):
            visitor.enter(home, seat.token)
        page = visitor.get(f"{homes[0]}1")
        with visitor.meanwhile(page, f"{homes[0]}1", grade="1", comment="dee's") as sending:
            other = visitor.get(f"{homes[1]}1")
            assert visitor.submit(other, f"{homes[1]}1", grade="2", comment="eve's").status_code == 303
        assert sending.result().status_code == 303
        assert visitor.submit(page, f"{homes[1]}2", grade="0", comment="").status_code == 403
        assert "dee's" not in visitor.get(f"{homes[1]}list").text
    with open_assess_desk(plan) as (_, store):
        grades = [{place: label.grade for place, label in store.labeled(seat.path).items()} for seat in store.seats]
    assert grades == [{1: 1}, {1: 2}]


def test_where_nothing_differs_the_store_stays_as_it_is(tmp_path: Path, capsys) -> None:
    first_round(tmp_path, {1: (0, 0), 2: (None, None), 3: (2, 3)})
    path = tmp_path / "labels.sqlite"
    before = path.read_bytes()
    out = ["--pool", str(tmp_path / "out"), "--prompt", "groundedness", "--seed", "1", "--store", str(path)]
    assert main(["serve", "assess", *out, "--assessor", "dee", "--adjudicate", "--differ", "2"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        f"judge: {path}: nothing to adjudicate: of 3 labels given twice, none differs by 2 levels or more\n"
    )
    assert (said.out, path.read_bytes()) == ("", before)


def test_a_store_without_adjudications_takes_them_and_both_rounds_go_on(tmp_path: Path) -> None:
    first_round(tmp_path)
    path = tmp_path / "labels.sqlite"

    def schema() -> str:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()[0]

    assert schema() == "judge-labels/1"
    assert dealt(tmp_path) == {"dee": [2, 3, 4]}
    assert schema() == "judge-labels/2"
    # Bob now agrees with ann on one, and differs on another.
    with open_assess_desk(plan_of(tmp_path, assessors=["ann", "bob"], double=1.0)) as (desk, store):
        assert [seat.name for seat in store.seats] == ["ann", "bob"]
        by_number = dict(zip(numbers(desk, store, store.seats[1]), store.tasks("2"), strict=True))
        store.save("2", by_number[2], 0, "", "blind")
        store.save("2", by_number[1], 3, "", "blind")
    # What was dealt stays in its place; the new one comes last.
    with open_assess_desk(adjudication(tmp_path)) as (desk, store):
        order = numbers(desk, store, store.seats[0])
        assert (sorted(order[:3]), order[3:]) == ([2, 3, 4], [1])


def test_an_item_whose_labels_were_all_taken_back_can_still_be_adjudicated_and_is_no_gold(tmp_path, capsys) -> None:
    first_round(tmp_path)
    assert dealt(tmp_path) == {"dee": [2, 3, 4]}
    with open_assess_desk(plan_of(tmp_path, assessors=["ann", "bob"], double=1.0)) as (_, store):
        for seat in store.seats:
            while store.undo(seat.path):
                pass
    with open_assess_desk(adjudication(tmp_path)) as (desk, store), Visitor(desk.app(port=8765)) as visitor:
        home = f"/{store.seats[0].path}/"
        visitor.enter(home, store.seats[0].token)
        page = visitor.get(f"{home}1")
        assert (page.status_code, 'class="earlier"' in page.text) == (200, False)
        for place in (1, 2, 3):
            assert visitor.submit(page, f"{home}{place}", grade="1", comment="").status_code == 303
        first = numbers(desk, store, store.seats[0])[0]
    # Ann labels one of the three again.
    with open_assess_desk(plan_of(tmp_path, assessors=["ann", "bob"], double=1.0)) as (desk, store):
        by_number = dict(zip(numbers(desk, store, store.seats[0]), store.tasks("1"), strict=True))
        store.save("1", by_number[first], 2, "", "blind")
    gold = tmp_path / "gold.jsonl"
    assert main(["gold", "import", "desk", str(tmp_path / "labels.sqlite"), "--out", str(gold)]) == 0
    assert "2 adjudications left out: all labels of the response taken back" in capsys.readouterr().err
    assert [(row.response_id, row.assessor, row.grade) for row in read_gold(gold)] == [
        (f"R{first:05}", "ann", 2), (f"R{first:05}", "dee", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("statement", "message"), [
    ("DELETE FROM meta", "no store of labels that this version of judge knows"),
    ("UPDATE meta SET value = 'judge-labels/9' WHERE key = 'schema'", "no store of labels that this version"),
    ("UPDATE label SET grade = 9", "groundedness 9: expected one of 0, 1, 2, 3"),
    ("UPDATE label SET grade = 'x'", "groundedness 'x': expected one of 0, 1, 2, 3"),
    ("UPDATE label SET comment = CAST(x'ff' AS TEXT)", "cannot be used as a store of labels"),
    ("DROP VIEW labels", "no such table: labels"),
    ("DROP TABLE item", "no such table: item"),
    ("UPDATE item SET shared = 0", "items: 6 responses"),
    ("UPDATE meta SET value = 'postedit of m' WHERE key = 'made'", "its assessors saw a judge's grade"),
])  # fmt: skip
def test_rubbish_in_the_store_is_one_message_and_is_left_alone(tmp_path: Path, statement: str, message: str) -> None:
    first_round(tmp_path)
    path = tmp_path / "labels.sqlite"
    damage(path, statement)
    before = path.read_bytes()
    with pytest.raises(InputError, match=message), open_assess_desk(adjudication(tmp_path)):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(("statement", "message"), [
    ("DROP TABLE adjudication", "no such table"),
    ("UPDATE dispute SET item = 'x'", "cannot be used as a store of labels"),
    ("UPDATE adjudicator SET token = 'x'", "the secret of a link is damaged"),
])  # fmt: skip
def test_rubbish_among_adjudications_is_one_message(tmp_path: Path, statement: str, message: str) -> None:
    first_round(tmp_path)
    assert dealt(tmp_path) == {"dee": [2, 3, 4]}
    damage(tmp_path / "labels.sqlite", statement)
    with pytest.raises(InputError, match=message), open_assess_desk(adjudication(tmp_path)):
        pass


def test_without_a_store_there_is_nothing_to_adjudicate(tmp_path: Path) -> None:
    write_pool(tmp_path, 3)
    with pytest.raises(InputError, match="no such store of labels"), open_assess_desk(adjudication(tmp_path)):
        pass
    assert not (tmp_path / "labels.sqlite").exists()
    (tmp_path / "labels.sqlite").write_text("notes " * 99, encoding="utf-8")
    with pytest.raises(InputError, match="file is not a database"), open_assess_desk(adjudication(tmp_path)):
        pass


@pytest.mark.parametrize(("changes", "message"), [
    ({"double": 0.5}, "--double: without effect here"),
    ({"made": "postedit", "judgments": "x"}, "without effect here"),
    ({"made": "postedit"}, "who adjudicates sees no judge's grade"),
    ({"adjudicate": False, "differ": 2}, "--differ: without effect here: they are about --adjudicate"),
    ({"adjudicate": False, "blind": True}, "--blind: without effect here"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        adjudication(tmp_path, **changes)


@pytest.mark.slow
def test_a_desk_that_is_killed_keeps_every_adjudication(tmp_path: Path, heeded: None) -> None:
    first_round(tmp_path, dict.fromkeys(range(1, 7), (0, 3)))
    told = [
        *("--pool", tmp_path / "out", "--prompt", "groundedness", "--seed", "1", "--adjudicate"),
        *("--assessor", "dee", "--store", tmp_path / "labels.sqlite", "--port", "0"),
    ]
    links = []
    for ending in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        process = start_python("-m", "judge", "serve", "assess", *told, stdout=subprocess.PIPE)
        link = process.stdout.readline().strip()
        address, _, token = link.partition("?token=")
        links.append(token)
        with httpx.Client(follow_redirects=True) as client:
            for grade in ("1", "2"):
                page = client.get(f"{address}?token={token}" if grade == "1" else address)
                secret = re.findall(r'name="form_token" value="(\w+)"', page.text)[0]
                fields = {"form_token": secret, "grade": grade, "comment": ""}
                assert client.post(page.url, data=fields).status_code == 200
        process.send_signal(ending)
        _, said = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in said
    assert (process.returncode, "dee: 6 of 6 labeled" in said, len(set(links))) == (0, True, 1)
    gold = tmp_path / "gold.jsonl"
    assert main(["gold", "import", "desk", str(tmp_path / "labels.sqlite"), "--out", str(gold)]) == 0
    assert sorted(row.grade for row in read_gold(gold) if row.made == "adjudicated") == [1, 1, 1, 2, 2, 2]
