"""Ids and lines of TREC's files; topics and themes: which topics count as one."""

import re
import string
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.io import ids as identifiers
from judge.runs.topics import read_topics


@pytest.mark.parametrize(
    ("topic_id", "theme"),
    [("9-1", "9"), ("10-3", "10"), ("132", "132"), ("9-1-2", "9"), ("-5", "-5"), ("", ""), ("tea-time", "tea")],
)
def test_the_theme_is_what_stands_before_the_first_hyphen(topic_id: str, theme: str) -> None:
    assert (identifiers.cluster_of(topic_id, "theme"), identifiers.cluster_of(topic_id, "topic")) == (theme, topic_id)


def test_the_note_counts_each_topic_once_and_says_nothing_of_topics() -> None:
    over = "intervals and tests are over themes, and count these as topics"
    assert identifiers.clustering(["9-1", "9-2", "9-2", "132"], "theme") == (
        f"clustered by theme: 2 themes of 3 topics; {over}",
    )
    assert identifiers.clustering(["9-1"], "theme") == (f"clustered by theme: 1 theme of 1 topic; {over}",)
    assert identifiers.clustering(["9-1", "9-2"], "topic") == ()


def test_another_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="cluster 'themes': expected topic or theme"):
        identifiers.check_cluster("themes")


def parts(text: str) -> tuple[list[str | int], str]:
    """What an id is sorted by: its texts, and of each integer the number of digits and these; then the id itself."""
    first, *rest = re.split(r"(\d+)", text)
    key: list[str | int] = [first]
    for number, after in zip(rest[::2], rest[1::2], strict=True):
        digits = number.lstrip("0")
        key += [len(digits), digits, after]
    return key, text


@given(*[st.text("0129a_-#\u0663\x01", max_size=6)] * 2)
@example("1", "01")
@example("1a", "1")
@example("a1", "a-")
@example("0", "")
@example("9" * 300, "1" + "0" * 300)
def test_natural_order_is_by_texts_and_integers(one: str, other: str) -> None:
    assert (identifiers.natural_key(one) < identifiers.natural_key(other)) == (parts(one) < parts(other))


def test_an_id_may_have_more_digits_than_there_are_characters() -> None:
    long = "1" * 1_200_000
    assert sorted([long + "2", "2", long + "1"], key=identifiers.natural_key) == ["2", long + "1", long + "2"]


@pytest.mark.parametrize(
    ("year", "counts"),
    [(2023, "13 themes of 25 topics"), (2024, "17 themes of 17 topics"), (2025, "9 themes of 17 topics")],
)
def test_the_topics_of_ikat_have_these_themes(shared: Path, year: int, counts: str) -> None:
    topics = read_topics(shared / "ikat" / str(year) / f"{year}_test_topics.json")
    (note,) = identifiers.clustering((topic.topic_id for topic in topics), "theme")
    assert note.startswith(f"clustered by theme: {counts};")


IDS = st.text(min_size=1, max_size=30)
PLAIN_IDS = st.text(alphabet=string.ascii_letters + string.digits + "_-.:%", min_size=1, max_size=20)


@pytest.mark.parametrize("run_id", ["run-4-GPT-4", "uot_llmnoptkb", "R.2+b", "x" * 100, "2023"])
def test_an_ordinary_run_id_is_its_own_file_name(run_id: str) -> None:
    assert identifiers.safe_name(run_id) == run_id


@pytest.mark.parametrize(
    ("run_id", "stem"),
    [
        ("a/b", "a_b"),
        ("../../etc/passwd", "etc_passwd"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("ends.", "ends"),
        ("CON", "_CON"),
        ("nul.run", "_nul.run"),
        ("a\x00b\nc", "a_b_c"),
        ("mein Lauf", "mein_Lauf"),
        ("日本", "run"),
        ("", "run"),
        ("\ud800", "run"),
        ("x" * 101, "x" * 100),
        ("a_b-c14cddc033f6", "a_b-c14cddc033f6"),
    ],
)
def test_any_other_run_id_is_mended_and_gets_a_digest(run_id: str, stem: str) -> None:
    assert re.fullmatch(re.escape(stem) + "-[0-9a-f]{12}", identifiers.safe_name(run_id))


def test_an_id_that_looks_like_a_mended_one_cannot_take_its_name() -> None:
    forged = identifiers.safe_name("a/b")
    assert identifiers.safe_name(forged) != forged


def test_ids_differing_in_case_only_get_names_that_differ_otherwise() -> None:
    names = identifiers.safe_names(["run-4-GPT-4", "run-4-gpt-4", "other"])
    assert names["other"] == "other"
    assert len({name.lower() for name in names.values()}) == 3
    assert all(
        re.fullmatch("run-4-(GPT|gpt)-4-[0-9a-f]{12}", name) for run_id, name in names.items() if run_id != "other"
    )


@given(st.sets(IDS, max_size=12))
@example({"a", "A", "a/", "A/", "", ".", "..", "con", "CON"})
def test_file_names_are_safe_and_distinct_on_any_file_system(run_ids: set[str]) -> None:
    names = identifiers.safe_names(run_ids)
    assert set(names) == run_ids
    assert len({name.lower() for name in names.values()}) == len(run_ids)
    for name in names.values():
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,113}", name)
        assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


def test_whitespace_in_an_id_keeps_out_of_the_columns() -> None:
    assert identifiers.column("my run") == "my%20run"
    assert identifiers.column("a\tb\r\nc\x00") == "a%09b%0D%0Ac%00"
    assert identifiers.column("a\u00a0b\u2028c") == "a%C2%A0b%E2%80%A8c"
    assert identifiers.column("clueweb22-en0000-00-00251:12") == "clueweb22-en0000-00-00251:12"
    assert identifiers.column("100%") == "100%"
    assert identifiers.column("a%20b") == "a%2520b"
    assert identifiers.column("%") == "%25"
    assert identifiers.column("") == "%"


@given(IDS | st.text(alphabet="%25aE \n\ud800é", min_size=1, max_size=12))
@example("a%20b")
@example("%")
def test_distinct_ids_are_distinct_columns(text: str) -> None:
    assert unquote(identifiers.column(text), errors="surrogatepass") == text
    assert identifiers.column(text) != identifiers.column("")
    assert len(identifiers.column(text).split()) == 1


def test_rewriting_a_qrels_file_keeps_its_bytes() -> None:
    text = "9-1_3 0 a%20b 2\n9-1_3 0 a%2 1\n9-1_3 0 a\u00a0b 0\n9-1_3 0 % 0\n"
    assert identifiers.qrels_lines(identifiers.parse_qrels(text, "x.qrel")) == text


def test_response_run_has_scores_strictly_falling_by_rank_and_natural_order() -> None:
    entries = [("9-1_10", "R00003", 1), ("9-1_2", "R00002", 3), ("9-1_2", "R00010", 1), ("9-1_2", "R00009", 2)]
    assert identifiers.response_run("my run", entries) == (
        "9-1_2 Q0 R00010 1 3 my%20run\n"
        "9-1_2 Q0 R00009 2 2 my%20run\n"
        "9-1_2 Q0 R00002 3 1 my%20run\n"
        "9-1_10 Q0 R00003 1 1 my%20run\n"
    )


def test_a_response_given_at_two_ranks_stands_once_at_the_better() -> None:
    entries = [("1_1", "R00000", 3), ("1_1", "R00000", 1), ("1_1", "R00001", 2)]
    assert identifiers.response_run("r", entries) == "1_1 Q0 R00000 1 2 r\n1_1 Q0 R00001 2 1 r\n"


@given(st.lists(st.tuples(PLAIN_IDS, PLAIN_IDS, st.integers(1, 9)), max_size=20), st.randoms(use_true_random=False))
def test_response_run_does_not_depend_on_the_order_of_entries(entries, shuffle) -> None:
    again = list(entries)
    shuffle.shuffle(again)
    assert identifiers.response_run("r", again) == identifiers.response_run("r", entries)


def test_qrels_are_read_with_spaces_tabs_crlf_bom_and_blank_lines() -> None:
    text = "\ufeff9-1_3 0 R00000 2\r\n\n9-1_3\t0\tR00001\t-1\n  9-1_4   0  R00000 +3  "
    assert identifiers.parse_qrels(text, "x.qrel") == (
        identifiers.QrelRow("9-1_3", "R00000", 2),
        identifiers.QrelRow("9-1_3", "R00001", -1),
        identifiers.QrelRow("9-1_4", "R00000", 3),
    )


def test_every_faulty_line_is_named_with_its_number() -> None:
    text = "9-1_3 0 R00000 2\n9-1_3 0 R00001\n\n9-1_3 0 R00002 2.0\n9-1_3 0 R00000 1\n9-1_3 0 R00003 7\nx\n"
    with pytest.raises(InputError, match=r"x\.qrel: not usable as qrels: 5 lines with problems") as caught:
        identifiers.parse_qrels(text, "x.qrel", grades=(0, 1, 2, 3))
    assert [(problem.path, problem.code, problem.message) for problem in caught.value.problems] == [
        ("line 2", "wrong_columns", "3 columns: expected 4 (turn_id 0 item_id grade)"),
        ("line 4", "wrong_grade", "grade '2.0': expected an integer"),
        ("line 5", "duplicate_row", "9-1_3 R00000 is already on line 1"),
        ("line 6", "off_scale", "grade 7: expected one of 0, 1, 2, 3"),
        ("line 7", "wrong_columns", "1 columns: expected 4 (turn_id 0 item_id grade)"),
    ]
    assert all(problem.file == "x.qrel" and problem.severity == "error" for problem in caught.value.problems)


@pytest.mark.parametrize("grade", ["1_000", "٣", "nan", "1e0", "0x1", "9" * 5000])
def test_only_plain_integers_are_grades(grade: str) -> None:
    with pytest.raises(InputError):
        identifiers.parse_qrels(f"9-1_3 0 R00000 {grade}\n", "x.qrel")


@given(st.dictionaries(st.tuples(PLAIN_IDS, PLAIN_IDS), st.integers(-1, 4), max_size=20))
def test_qrels_round_trip(grades: dict[tuple[str, str], int]) -> None:
    rows = tuple(identifiers.QrelRow(*key, grade) for key, grade in grades.items())
    assert identifiers.parse_qrels(identifiers.qrels_lines(rows), "x.qrel") == rows


@given(st.text())
def test_any_text_is_read_or_refused_with_problems(text: str) -> None:
    try:
        identifiers.parse_qrels(text, "x.qrel")
    except InputError as error:
        assert error.problems


def test_released_qrels_are_rewritten_byte_for_byte(shared: Path) -> None:
    files = sorted((shared / "cast-regin").rglob("*.qrel"))
    assert len(files) == 7
    for file in files:
        assert (
            identifiers.qrels_lines(identifiers.parse_qrels(file.read_bytes().decode(), file.name)).encode()
            == file.read_bytes()
        )


def test_run_ids_that_share_the_beginning_of_their_digest_have_two_names() -> None:
    """Both ids are `r` and unsafe characters, and their SHA-256 begin with the same 48 bits."""
    ids = ("r   // /////// ///      / /   // // / /  /  / ///", "r /  /  ////  // //   /  / ////  /   /  / ///// /")
    assert identifiers.safe_name(ids[0]) == identifiers.safe_name(ids[1])
    assert len(set(identifiers.safe_names([*ids, "other"]).values())) == 3


def test_a_run_is_read_as_it_was_written() -> None:
    text = identifiers.response_run("my run", [("9-1_2", "R00002", 2), ("9-1_2", "R00001", 1), ("9-1_1", "R00009", 1)])
    run = identifiers.parse_run(text, "x.run")
    assert run.run_id == "my%20run"
    assert run.scores == {"9-1_1": {"R00009": 1.0}, "9-1_2": {"R00001": 2.0, "R00002": 1.0}}


def test_a_run_may_have_tabs_blank_lines_a_mark_and_any_number_as_score() -> None:
    text = "\ufeff9-1_1\tQ0\ta\t1\t-1.5e2\tt\r\n\n 9-1_1 Q0 b 2 .5 t\n9-1_1 Q0 c x +3. t"
    assert identifiers.parse_run(text, "x.run").scores == {"9-1_1": {"a": -150.0, "b": 0.5, "c": 3.0}}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("9-1_1 Q0 b 2 1", "wrong_columns"),
        ("9-1_1 Q0 b 2 1 t more", "wrong_columns"),
        ("9-1_1 Q0 b 2 inf t", "wrong_score"),
        ("9-1_1 Q0 b 2 1e400 t", "wrong_score"),
        ("9-1_1 Q0 b 2 1_0 t", "wrong_score"),
        ("9-1_1 Q0 b 2 \u0661 t", "wrong_score"),
        ("9-1_1 Q0 b 2 . t", "wrong_score"),
        (f"9-1_1 Q0 b 2 {'9' * 400_000}x t", "wrong_score"),
        ("9-1_1 Q0 b 2 1 T", "second_run_id"),
        ("9-1_1 Q0 a 2 1 t", "duplicate_row"),
    ],
)
def test_a_bad_line_of_a_run_is_named_with_its_number(line: str, code: str) -> None:
    with pytest.raises(InputError, match=r"x\.run: not usable as a TREC run: 1 line with problems") as raised:
        identifiers.parse_run(f"9-1_1 Q0 a 1 2 t\n{line}\n", "x.run")
    (problem,) = raised.value.problems
    assert (problem.code, problem.path, problem.turn_id) == (code, "line 2", "9-1_1")


def test_a_run_without_lines_is_refused() -> None:
    with pytest.raises(InputError, match=r"x\.run: an empty file: expected lines"):
        identifiers.parse_run(" \n", "x.run")


def test_an_item_that_is_named_again_may_count_at_its_best() -> None:
    text = "1_1 Q0 a 1 1 t\n1_1 Q0 b 1 2 t\n1_1 Q0 a 1 3 t\n1_1 Q0 b 1 0 t\n"
    run = identifiers.parse_run(text, "x.run", again="best")
    assert (run.scores, run.repeated) == ({"1_1": {"a": 3.0, "b": 2.0}}, 2)


@pytest.mark.parametrize("inside", ["\v", "\f", "\x1c", "\x1f", "\r", "\x85", "\u00a0", "\u2028"])
def test_only_spaces_and_tabs_separate_columns(inside: str) -> None:
    assert identifiers.parse_run(f"1_1 Q0 a{inside}b 1 0.5 t\r\n", "x.run").scores == {"1_1": {f"a{inside}b": 0.5}}
    assert identifiers.parse_qrels(f"1_1 0 a{inside}b 2\r\n", "x.qrel") == (
        identifiers.QrelRow("1_1", f"a{inside}b", 2),
    )


def test_trec_eval_goes_by_single_precision_and_then_by_falling_id() -> None:
    scores = {"a": 0.123456789, "z": 0.123456788, "b": 2.0, "c": 2.0, "huge": 1e300, "more": 1e301}
    assert identifiers.trec_order(scores) == ["more", "huge", "c", "b", "z", "a"]
