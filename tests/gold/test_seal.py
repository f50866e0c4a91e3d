"""Splits that never cut a topic, seals that give nothing away, and a ledger that cannot be rewritten unseen."""

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold import seal as sealing
from judge.gold.rows import GoldRow, gold_jsonl, read_gold
from judge.io.files import sha256
from tests.conftest import read_ledger

NOW = "2026-01-01T00:00:00Z"


def row(topic: str = "1-1", turn: int = 1, item: str = "R00000", grade: int = 0, **fields: object) -> GoldRow:
    base = {"turn_id": f"{topic}_{turn}", "topic_id": topic, "criterion": "c", "assessor": "ann", "response_id": item}
    return GoldRow(**{**base, "grade": grade, **fields})  # type: ignore[arg-type]


def gold(topics: int, items: int = 4) -> list[GoldRow]:
    return [row(f"{topic}", 1, f"R{item:05d}", item % 4) for topic in range(topics) for item in range(items)]


def test_the_split_has_half_the_items_and_like_grades() -> None:
    # Topics come in pairs of opposite grades; only a balanced choice has as many 0 as 3 on both sides.
    rows = [row(f"{topic}", 1, f"R{item}", 3 * (topic % 2)) for topic in range(8) for item in range(5)]
    test = sealing.split_topics(rows, 0.5, 1)
    assert Counter(one.grade for one in rows if one.topic_id in test) == {0: 10, 3: 10}


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 3)), min_size=2, max_size=30),
    st.integers(0, 3),
)
def test_a_split_by_theme_parts_no_theme_and_is_that_of_topics_renamed_to_themes(graded, seed) -> None:
    assume(len({theme for theme, _, _ in graded}) > 1)
    rows = [row(f"{theme}-{n}", 1, f"R{place}", grade) for place, (theme, n, grade) in enumerate(graded)]
    renamed = [row(f"{theme}", 1, f"R{place}", grade) for place, (theme, _, grade) in enumerate(graded)]
    test = sealing.split_topics(rows, 0.5, seed, "theme")
    dev = {one.topic_id for one in rows} - test
    assert {topic.partition("-")[0] for topic in test}.isdisjoint(topic.partition("-")[0] for topic in dev)
    assert {topic.partition("-")[0] for topic in test} == sealing.split_topics(renamed, 0.5, seed)


def test_conversations_of_one_theme_cannot_be_split_by_theme(tmp_path: Path) -> None:
    rows = [row("9-1"), row("9-2")]
    assert len(sealing.split_topics(rows, 0.5, 1)) == 1
    with pytest.raises(InputError, match=r"expected two themes or more, since a split never cuts a theme; found 9$"):
        sealing.write_split(rows, 0.5, 1, tmp_path, "theme")
    assert list(tmp_path.iterdir()) == []


def test_the_seal_says_that_it_parts_no_theme_and_nothing_where_it_parts_no_topic(tmp_path: Path) -> None:
    rows = [row(f"{theme}-{n}", 1, f"R{theme}{n}", n) for theme in range(4) for n in (1, 2)]
    seal = sealing.write_split(rows, 0.5, 7, tmp_path / "themes", "theme")
    assert sealing.read_seal(tmp_path / "themes" / "seal.json") == seal
    assert json.loads((tmp_path / "themes" / "seal.json").read_bytes())["cluster"] == "theme"
    sealing.write_split(rows, 0.5, 7, tmp_path / "topics")
    assert "cluster" not in json.loads((tmp_path / "topics" / "seal.json").read_bytes())
    with pytest.raises(InputError, match=r"another split.*share, seed and cluster"):
        sealing.write_split(rows, 0.5, 7, tmp_path / "topics", "theme")


@pytest.mark.slow
def test_items_count_once_however_many_rows_they_have() -> None:
    # Topic 9 has 6 rows of one item; the others one row of one item each: half of 6 items is three topics.
    rows = [row("9", assessor=f"a{number}") for number in range(6)] + [row(f"{topic}") for topic in range(5)]
    assert all(len(sealing.split_topics(rows, 0.5, seed)) == 3 for seed in range(10))


@pytest.mark.long
@given(st.permutations(gold(7)), st.integers(0, 3))
def test_neither_order_nor_anything_but_the_seed_decides(rows: list[GoldRow], seed: int) -> None:
    assert sealing.split_topics(rows, 0.3, seed) == sealing.split_topics(gold(7), 0.3, seed)


@pytest.mark.slow
def test_seeds_make_different_splits() -> None:
    assert len({sealing.split_topics(gold(20), 0.5, seed) for seed in range(10)}) == 10


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.floats(0.01, 0.99))
def test_both_parts_have_a_topic(sizes: list[int], share: float) -> None:
    rows = [row(f"{topic}", 1, f"R{item}") for topic, size in enumerate(sizes) for item in range(size)]
    assert 1 <= len(sealing.split_topics(rows, share, 0)) < len(sizes)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan"), float("inf")])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        sealing.split_topics(gold(4), share, 1)


def test_one_topic_cannot_be_split() -> None:
    with pytest.raises(InputError, match="never cuts a topic"):
        sealing.split_topics(gold(1), 0.5, 1)


def test_the_split_is_written_in_full_and_the_seal_has_no_grade(tmp_path: Path) -> None:
    rows = gold(4)
    seal = sealing.write_split(rows, 0.5, 7, tmp_path)
    dev, test = read_gold(tmp_path / "dev.jsonl"), read_gold(tmp_path / "test.jsonl")
    assert {one.split for one in dev} == {"dev"}
    assert {one.split for one in test} == {"test"}
    assert {replace(one, split=None) for one in (*dev, *test)} == set(rows)
    assert {one.topic_id for one in dev}.isdisjoint(one.topic_id for one in test)
    assert sealing.read_seal(tmp_path / "seal.json") == seal
    assert (seal.test.rows, len(seal.test.items), len(seal.test.topics)) == (8, 8, 2)
    assert "grade" not in (tmp_path / "seal.json").read_text(encoding="utf-8")
    salt = (tmp_path / "test.salt").read_bytes().strip()
    assert seal.commitment == sha256(salt + b"\n" + (tmp_path / "test.jsonl").read_bytes())
    assert salt.decode() not in (tmp_path / "seal.json").read_text(encoding="utf-8")


def test_the_same_again_writes_the_same_bytes_and_shuffled_rows_too(tmp_path: Path) -> None:
    sealing.write_split(gold(4), 0.5, 7, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    sealing.write_split(gold(4)[::-1], 0.5, 7, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert set(before) == {"dev.jsonl", "test.jsonl", "test.salt", "seal.json"}


@pytest.mark.parametrize("comments", [False, True])
def test_comments_are_left_out_of_what_is_published_unless_they_are_wanted(tmp_path, capsys, comments: bool) -> None:
    rows = [replace(one, comment="ask bob") for one in gold(4)]
    path = tmp_path / "gold.jsonl"
    path.write_bytes(gold_jsonl(rows))
    call = ["gold", "split", str(path), "--test", "0.5", "--seed", "7", "--out", str(tmp_path / "out")]
    assert main([*call, *(["--comments"] if comments else [])]) == 0
    kept = read_gold(tmp_path / "out/dev.jsonl") + read_gold(tmp_path / "out/test.jsonl")
    assert {one.comment for one in kept} == {"ask bob" if comments else None}
    left_out = "16 comments left out, because comments may name people; --comments keeps them"
    assert (left_out in capsys.readouterr().err) is not comments


def test_two_seals_of_the_same_grades_differ(tmp_path: Path) -> None:
    one, other = (sealing.write_split(gold(4), 0.5, 7, tmp_path / name) for name in "ab")
    assert one.test == other.test
    assert one.commitment != other.commitment
    assert one.source != other.source


@pytest.mark.parametrize("change", [{"seed": 8}, {"share": 0.25}, {"rows": gold(5)}])
def test_another_split_is_not_written_over(tmp_path: Path, change: dict[str, object]) -> None:
    arguments = {"rows": gold(4), "share": 0.5, "seed": 7, "out": tmp_path}
    sealing.write_split(**arguments)  # type: ignore[arg-type]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="another split"):
        sealing.write_split(**{**arguments, **change})  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_lost_salt_does_not_replace_the_seal(tmp_path: Path) -> None:
    sealing.write_split(gold(4), 0.5, 7, tmp_path)
    (tmp_path / "test.salt").unlink()
    with pytest.raises(InputError, match="another split"):
        sealing.write_split(gold(4), 0.5, 7, tmp_path)
    assert not (tmp_path / "test.salt").exists()


def test_rows_that_are_split_already_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`split` already"):
        sealing.write_split([*gold(4), row("9", split="dev")], 0.5, 7, tmp_path)


def opened(
    folder: Path, question: str, now: str = NOW, compared: int = 10
) -> tuple[tuple[GoldRow, ...], sealing.Opening]:
    """Open the grades of a split for a question about so many responses."""
    look = (question, {"c": compared}, {"c": ("ab", question)})
    return sealing.open_sealed(folder / "test.jsonl", folder / "seal.json", now, lambda rows: look)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """The folder of a split."""
    sealing.write_split(gold(4), 0.5, 7, tmp_path)
    return tmp_path


def ledger(folder: Path) -> Path:
    return folder / "openings.jsonl"


def entries(folder: Path) -> tuple[sealing.Entry, ...]:
    return read_ledger(folder / "seal.json")


@pytest.mark.parametrize("compared", [1, 9])
def test_a_look_at_so_few_responses_that_it_shows_their_grades_is_refused(sealed, compared) -> None:
    with pytest.raises(InputError, match=f"this look compares {compared} of the sealed grades.*expected 10 or more"):
        opened(sealed, "q", compared=compared)
    assert not ledger(sealed).exists()
    # A criterion whose grades no number rests on shows none.
    look = ("q", {"c": 10, "d": 0}, {})
    sealing.open_sealed(sealed / "test.jsonl", sealed / "seal.json", NOW, lambda rows: look)


def test_a_line_holds_what_was_compared_and_the_opening_counts_different_candidates(sealed: Path) -> None:
    for question in ("q1", "q2", "q3"):
        opening = opened(sealed, question, compared=12)[1]
    # "ab" each time, and the question itself.
    assert (opening.number, opening.candidates("c"), opening.candidates("d")) == (3, 4, 0)
    assert opening.head == sha256(ledger(sealed).read_bytes().splitlines()[-1])
    assert opened(sealed, "q1")[1].head == opening.head
    assert entries(sealed)[0].compared == {"c": 12}


def test_splits_of_one_gold_by_two_seeds_name_the_same_responses(tmp_path: Path) -> None:
    seals = [sealing.write_split(gold(20), 0.5, seed, tmp_path / str(seed)) for seed in (1, 2)]
    assert seals[0].test != seals[1].test
    assert sealing.responses_digest(seals[0]) == sealing.responses_digest(seals[1])
    assert sealing.responses_digest(
        sealing.write_split(gold(11), 0.5, 1, tmp_path / "less")
    ) != sealing.responses_digest(seals[0])


def test_openings_are_numbered_and_a_repeated_question_has_the_number_of_all_by_now(sealed: Path) -> None:
    rows, first = opened(sealed, "q1")
    assert rows == read_gold(sealed / "test.jsonl")
    assert (first.number, first.repeated) == (1, False)
    assert opened(sealed, "q2")[1].number == 2
    before = ledger(sealed).read_bytes()
    again = opened(sealed, "q1", "2027-01-01T00:00:00Z")[1]
    # The answer to q2 is known by now, however early q1 was asked.
    assert (again.number, again.repeated) == (2, True)
    assert ledger(sealed).read_bytes() == before


def test_rows_that_cannot_be_used_stay_closed_and_cost_no_look(sealed: Path) -> None:
    seen: list[tuple[GoldRow, ...]] = []

    def refuse(rows: tuple[GoldRow, ...]) -> sealing.Look:
        seen.append(rows)
        raise InputError("cannot be used")

    with pytest.raises(InputError, match="cannot be used"):
        sealing.open_sealed(sealed / "test.jsonl", sealed / "seal.json", NOW, refuse)
    assert seen == [read_gold(sealed / "test.jsonl")]
    assert not ledger(sealed).exists()


def test_rows_of_the_sealed_side_are_known_beside_their_seal_only(sealed: Path, tmp_path: Path) -> None:
    dev, held_out = read_gold(sealed / "dev.jsonl"), read_gold(sealed / "test.jsonl")
    anywhere = tmp_path / "whatever.jsonl"
    assert not sealing.sealed_beside(anywhere, dev)
    assert sealing.sealed_beside(anywhere, held_out)
    # One row among many is enough, and so is another assessor's grade of the same response.
    assert sealing.sealed_beside(anywhere, [*dev, replace(held_out[0], assessor="bob", split=None)])
    (tmp_path / "elsewhere").mkdir()
    assert not sealing.sealed_beside(tmp_path / "elsewhere" / "test.jsonl", held_out)


def test_the_ledger_is_a_hash_chain_from_the_seal(sealed: Path) -> None:
    for question in ("q1", "q2", "q3"):
        opened(sealed, question)
    lines = ledger(sealed).read_bytes().splitlines()
    written = [json.loads(line) for line in lines]
    assert [entry["number"] for entry in written] == [1, 2, 3]
    assert [entry["previous"] for entry in written] == [
        sealing.read_seal(sealed / "seal.json").commitment,
        *map(sha256, lines[:2]),
    ]
    assert [entry.question for entry in entries(sealed)] == ["q1", "q2", "q3"]


def test_a_read_only_ledger_still_answers_a_question_on_record(sealed: Path, monkeypatch) -> None:
    opened(sealed, "q1")
    real = Path.open

    def refuse(self: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if "a" in mode or "w" in mode:
            raise PermissionError(13, "Permission denied")
        return real(self, mode, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    assert opened(sealed, "q1")[1].repeated


@pytest.mark.skipif(sys.platform == "win32", reason="the ledger is locked where there is fcntl")
def test_commands_at_the_same_time_make_one_chain(sealed: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        openings = list(pool.map(lambda number: opened(sealed, f"q{number % 12}")[1], range(24)))
    assert {opening.number for opening in openings} == set(range(1, 13))
    assert sum(not opening.repeated for opening in openings) == len(entries(sealed)) == 12


@pytest.mark.parametrize("name", ["test.jsonl", "test.salt"])
def test_a_changed_test_file_or_salt_stays_closed(sealed: Path, name: str) -> None:
    path = sealed / name
    old = path.read_bytes()
    path.write_bytes(old.replace(b'"grade":0', b'"grade":1') if name == "test.jsonl" else b"0" * 64)
    assert path.read_bytes() != old
    with pytest.raises(InputError, match="has been changed or belongs to another split"):
        opened(sealed, "q")
    assert not ledger(sealed).exists()


def test_a_seal_whose_lists_were_edited_is_refused(sealed: Path) -> None:
    seal = sealed / "seal.json"
    values = json.loads(seal.read_bytes())
    values["test"]["items"].pop()
    seal.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(InputError, match="changed by hand"):
        opened(sealed, "q")


@pytest.mark.parametrize("content", [b"{}", b'{"schema": "judge-seal/2"}'])
def test_what_is_no_seal_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "seal.json").write_bytes(content)
    with pytest.raises(InputError, match="not a seal"):
        sealing.read_seal(tmp_path / "seal.json")


@pytest.mark.parametrize("content", [b"A" * 64, b"0" * 63])
def test_what_is_no_salt_is_an_input_error(sealed: Path, content: bytes) -> None:
    (sealed / "test.salt").write_bytes(content)
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        opened(sealed, "q")


@pytest.mark.slow
def test_every_torn_last_line_is_recognized_and_its_number_given_again(sealed: Path) -> None:
    opened(sealed, "q1")
    one = ledger(sealed).read_bytes()
    opened(sealed, "q2")
    two = ledger(sealed).read_bytes()
    for length in range(len(one), len(two)):
        ledger(sealed).write_bytes(two[:length])
        opening = opened(sealed, "q3")[1]
        # Only where all but the line break is there was the line written.
        assert opening.number == (3 if length == len(two) - 1 else 2), two[:length]
        assert len(entries(sealed)) == opening.number


def middle(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"q2"', b'"q9"'), lines[2]]


@pytest.mark.parametrize(
    "damage",
    [
        middle,
        lambda lines: lines[1:],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: [*lines, lines[2]],
        lambda lines: [*lines, b"\n"],
        lambda lines: [*lines, b'{"number":4,"time":'],
        lambda lines: [*lines[:2], lines[2][:9] + b"\n"],
        lambda lines: [*lines, b"\x00\x00\n"],
        lambda lines: [*lines, b"nonsense"],
    ],
    ids=["edited", "first gone", "middle gone", "swapped", "twice", "blank", "torn", "short", "nul", "junk"],
)
def test_a_ledger_that_is_no_chain_is_refused(sealed: Path, damage, request) -> None:
    for question in ("q1", "q2", "q3"):
        opened(sealed, question)
    ledger(sealed).write_bytes(b"".join(damage(ledger(sealed).read_bytes().splitlines(keepends=True))))
    if request.node.callspec.id == "torn":
        assert opened(sealed, "q4")[1].number == 4
        return
    with pytest.raises(InputError, match="record of looks is damaged"):
        opened(sealed, "q4")


def test_a_ledger_of_another_seal_is_refused(sealed: Path, tmp_path: Path) -> None:
    sealing.write_split(gold(4), 0.5, 7, tmp_path / "other")
    opened(tmp_path / "other", "q")
    ledger(sealed).write_bytes((tmp_path / "other/openings.jsonl").read_bytes())
    with pytest.raises(InputError, match="damaged"):
        opened(sealed, "q")


@pytest.fixture(scope="module")
def split_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seal")
    sealing.write_split(gold(2), 0.5, 7, folder)
    return folder


@given(st.binary(max_size=60))
def test_no_bytes_of_a_ledger_raise_anything_but_an_input_error(split_once: Path, content: bytes) -> None:
    (split_once / "openings.jsonl").write_bytes(content)
    try:
        opened(split_once, "q")
    except InputError as error:
        assert error.exit_code == 2


def test_the_salted_digest() -> None:
    assert sealing.salted(b"00", b"x") == sha256(b"00\nx")


@pytest.mark.parametrize("content", [b"", None])
def test_looks_are_not_recorded_through_a_link(tmp_path: Path, content: bytes | None) -> None:
    target, link = tmp_path / "elsewhere", tmp_path / "openings.jsonl"
    if content is not None:
        target.write_bytes(content)
    link.symlink_to(target)
    with pytest.raises(InputError, match=r"openings\.jsonl: a link where the record of looks has to be"):
        sealing.record_look(link, "5" * 64, ("q", {}, {}), "2026-01-01T00:00:00Z")
    assert (target.read_bytes() if target.exists() else None) == content
