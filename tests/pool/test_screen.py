import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.io.words import split_sentences, words_of
from judge.jobs.pooling import Pooling
from judge.pool import screen
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage
from tests.build import pooled

PASSAGE = "The ferry to the island leaves the old pier at noon and returns before dark every day in summer."
GERMAN = (
    "Um nach Ägypten einzureisen, muss Ihr Reisepass noch mindestens sechs Monate nach der Ankunft gültig sein, und "
    "das Visum ist für die meisten nicht zu teuer."
)
LINE_UP = (
    "Barcelona's predicted line-up (4-3-3): Marc-Andre ter Stegen; Sergino Dest, Ronald Araujo, Gerard Pique, Jordi "
    "Alba; Nico Gonzalez, Sergio Busquets, Frenkie de Jong; Ousmane Dembele, Memphis Depay, Philippe Coutinho."
)


def codes(text: str, passages: Sequence[str] = (), **options: object) -> list[str]:
    return [flag.code for flag in screen.screen(text, passages, **options)]


@pytest.mark.parametrize(
    ("unit", "text", "share"),
    [
        ("sentences", "", 0),
        ("sentences", "One thing. Another thing.", 0),
        ("sentences", "Bye now. Bye now.", 1 / 2),
        ("sentences", "Have fun! HAVE  FUN. Go home.", 1 / 3),
        ("sentences", "Bye. Bye. Bye. Bye.", 3 / 4),
        ("sentences", "Item one\nItem two\nItem one", 1 / 3),
        ("sentences", "! ! !", 0),
        ("ngrams", "a b c", 0),
        ("ngrams", "a b c d", 0),
        ("ngrams", "a b c d a b c d", 1 / 5),  # abcd bcda cdab dabc abcd
        ("ngrams", "go go go go go go", 2 / 3),  # three runs, all the same
    ],
)
def test_the_share_of_sentences_and_of_four_grams_that_repeat(unit: str, text: str, share: float) -> None:
    words = words_of(text) if unit == "ngrams" else map(words_of, split_sentences(text))
    assert getattr(screen, f"repeated_{unit}")(words) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "passage", "share"),
    [
        ("a b c d e f g h", "x a b c d e f g h y", 1),
        ("a b c d e f g h z z", "a b c d e f g h", 8 / 10),
        ("a b c d e f g h i j", "a b c d e f g h i j", 1),
        ("a b c d e f g", "a b c d e f g", 0),  # seven words may be chance
        ("a b c d e f g h q a b c d e f g h", "a b c d e f g h", 16 / 17),
        ("A, b! C d-e f g h?", "a b c d e f g h", 1),  # signs and case do not count
        ("", "a", 0),
    ],
)
def test_the_share_of_words_in_copied_runs(text: str, passage: str, share: float) -> None:
    assert screen.copied(words_of(text), words_of(passage)) == pytest.approx(share)


@given(st.lists(st.sampled_from("abc"), max_size=40), st.lists(st.sampled_from("abc"), max_size=40))
def test_copied_is_the_count_of_words_in_shared_runs(words: list[str], passage: list[str]) -> None:
    inside = set()
    for start in range(len(words) - 7):
        if any(words[start : start + 8] == passage[at : at + 8] for at in range(len(passage) - 7)):
            inside |= set(range(start, start + 8))
    assert screen.copied(words, passage) == pytest.approx(len(inside) / max(len(words), 1))


@given(
    st.lists(st.sampled_from("ab"), max_size=40),
    st.lists(st.sampled_from("ab"), max_size=40),
    st.sampled_from([0, 0.25, 0.5, 0.95]),
)
def test_a_share_above_the_one_that_is_asked_for_is_exact(words: list[str], passage: list[str], above: float) -> None:
    share = screen.copied(words, passage)
    assert screen.copied(words, passage, above) in ((share,) if share > above else (share, 0))


@given(st.text(st.sampled_from("aZé жλ1.\u024f\u0250\u1e00\u1eff\u1f00Ⅷﬁ"), max_size=20) | st.text(max_size=20))
def test_a_letter_is_latin_or_not(text: str) -> None:
    letters = [character for character in unicodedata.normalize("NFKC", text) if character.isalpha()]
    foreign = [letter for letter in letters if not (letter < "\u0250" or "\u1e00" <= letter <= "\u1eff")]
    assert screen.not_latin(text) == len(foreign) / max(len(letters), 1)


def test_english_words_less_those_of_other_languages() -> None:
    assert screen.english(words_of("The cat and der Hund")) == pytest.approx((2 - 1) / 5)
    assert screen.english([]) == 0


@pytest.mark.parametrize(
    ("text", "passages", "expected"),
    [
        ("A ferry runs to the island until the evening, but only in summer.", [PASSAGE], []),
        ("No.", [PASSAGE], ["near_empty"]),
        ("😀 …", [], ["near_empty"]),
        ("Yes, it does.", [], ["near_empty"]),
        ("It leaves at noon. " * 3, [PASSAGE], ["repeated_sentences", "repeated_ngrams"]),
        (PASSAGE, [PASSAGE], ["verbatim_passage"]),
        (PASSAGE, ["Something else.", PASSAGE + " More follows."], ["verbatim_passage"]),
        ("Quantum computers factor large integers by means of period finding.", [PASSAGE], ["off_passage"]),
        ("Quantum computers factor large integers by means of period finding.", [], []),
        ("Ask someone there.", [PASSAGE], ["near_empty"]),
        (GERMAN, [], ["not_english"]),
        ("Паром отправляется на остров в полдень и возвращается.", [], ["not_english"]),
        ("渡し船は正午に出ます。島へ行きます。夏だけです。毎日あります。はい。", [], ["not_english"]),
        (LINE_UP, [], []),  # names are no language
    ],
)
def test_flags(text: str, passages: list[str], expected: list[str]) -> None:
    assert codes(text, passages) == expected


def test_a_passage_of_any_length_is_compared_whole() -> None:
    filler = "Nothing of it is said here at all. " * (screen._REMEMBERED // 35)
    assert len(PASSAGE) < screen._REMEMBERED < len(filler + PASSAGE)
    assert codes(PASSAGE, [filler, filler + PASSAGE]) == ["verbatim_passage"]
    assert codes(PASSAGE, [filler]) == ["off_passage"]


def test_a_missing_passage_leaves_the_rest_of_the_evidence_unmeasured() -> None:
    text = "Quantum computers factor large integers by means of period finding."
    assert codes(text, [PASSAGE], complete=False) == []
    assert codes(PASSAGE, [PASSAGE], complete=False) == ["verbatim_passage"]


@pytest.mark.parametrize(
    ("name", "kept", "flagged", "text"),
    [
        ("near_empty", 2, 3, "Yes, indeed."),
        ("repeated_sentences", 0.5, 0.49, "Please go home now dear. Please go home now dear."),
        ("repeated_ngrams", 0.2, 0.19, "one two three four one two three four"),
        ("not_latin", 0.5, 0.49, "abcde words here жжжжж жжжжж ееее"),
    ],
)
def test_a_value_at_the_threshold_is_no_flag(name: str, kept: float, flagged: float, text: str) -> None:
    off = {"near_empty": 0, "repeated_sentences": 1, "repeated_ngrams": 1, "not_latin": 1}
    assert screen.screen(text, (), screen.Thresholds(**{**off, name: kept})) == ()
    assert len(screen.screen(text, (), screen.Thresholds(**{**off, name: flagged}))) == 1


@given(st.text(max_size=200), st.lists(st.text(max_size=100), max_size=3))
def test_any_text_can_be_screened(text: str, passages: list[str]) -> None:
    for flag in screen.screen(text, passages):
        assert -1 <= flag.value <= max(1, flag.threshold)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["Bye. ", "x", "a b c d e f g h i ", "語", "́"])
def test_long_hostile_texts_can_be_screened(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert screen.screen(text, [text])


def response(number: int, text: str, passages: tuple[str, ...] = ()) -> PooledResponse:
    return pooled(f"R{number:05d}", f"1_{number}", text=text, passages=passages)


POOL = Pool(
    (
        response(1, "Quantum computers factor large integers by means of period finding.", ("p",)),
        response(2, "Quantum computers factor large integers by means of period finding.", ("p", "gone")),
        response(3, "No.", ("p",)),
    ),
    {"p": Passage("p", PASSAGE, "collection")},
    (),
)


def test_the_rows_of_a_pool() -> None:
    content = "".join(screen.screen_lines(screen.screen_pool(POOL)))
    assert content.splitlines() == [
        "\t".join(screen.COLUMNS),
        "R00001\t1_1\toff_passage\t0.0000\t0.25\tshare of the content words that occur in the used passages",
        "R00003\t1_3\tnear_empty\t1.0000\t5\twords",
    ]
    assert [row.code for row in screen.screen_pool(POOL, screen.Thresholds(near_empty=0, off_passage=0))] == []


def test_thresholds_are_options() -> None:
    found = Pooling(runs="runs", thresholds=["near_empty=3", "english=-0.1"])
    assert found.thresholds == {"near_empty": 3, "english": -0.1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"screen": "off", "thresholds": "near_empty=3"}, "needs the screen"),
        ({"thresholds": ["near_empty=3", "near_empty=4"]}, "screen-threshold: near_empty is given twice"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Pooling(runs="runs", **options)


@pytest.mark.parametrize("value", ["near_empty", "near_empty=", "near_empty=x", "near_empty=nan", "nothing=1", ""])
def test_a_threshold_is_a_known_name_and_a_number(value: str) -> None:
    with pytest.raises(UsageError, match="screen-threshold: "):
        Pooling(runs="runs", thresholds=value)


def test_the_real_responses_of_2024(shared: Path) -> None:
    """Ten runs: nearly all that is flagged is one run whose model did not stop talking."""
    turns = json.loads((shared / "cone-rag/automatic_responses_2024.json").read_text("utf-8"))
    flags = Counter(
        (run, flag.code) for texts in turns.values() for run, text in texts.items() for flag in screen.screen(text, ())
    )
    assert flags == {
        ("Llama3.1-QR-splade-rr-baseline", "repeated_sentences"): 16,
        ("Llama3.1-QR-splade-rr-baseline", "repeated_ngrams"): 19,
        ("uot-yahoo_run", "repeated_ngrams"): 4,
        ("infosense_llama_pssgqrs_wghtdrerank_1_run", "repeated_ngrams"): 1,
        ("ksu", "repeated_ngrams"): 1,
    }


def test_the_sample_run_of_cast_copies_its_passages(shared: Path) -> None:
    run = json.loads((shared / "cast2022/sample_run.json").read_text("utf-8"))
    responses = [response for turn in run["turns"] for response in turn["responses"]]
    flags = Counter(
        code for one in responses for code in codes(one["text"], [passage["text"] for passage in one["provenance"]])
    )
    assert len(responses) == 207
    assert flags == {"verbatim_passage": 192, "repeated_ngrams": 26, "near_empty": 7, "repeated_sentences": 1}


def test_no_response_that_people_found_attributable_is_off_its_passage(shared: Path) -> None:
    off: Counter[str] = Counter()
    for name in ("wow", "cmu"):
        with (shared / f"begin/begin_dev_{name}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                off[row["begin_label"]] += "off_passage" in codes(row["response"], [row["knowledge"]])
    assert off == {"Fully attributable": 0, "Generic": 0, "Not fully attributable": 51 + 78}


@pytest.mark.long
def test_a_pool_screened_in_several_processes_is_the_one_screened_here(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["No.", PASSAGE, GERMAN, "Quantum computers factor large integers by means of period finding."]
    pool = Pool(tuple(response(k, texts[k % 4], ("p",)) for k in range(40)), POOL.passages, ())
    expected = screen.screen_pool(pool)
    monkeypatch.setattr("judge.pool.screen._PART", 7)
    monkeypatch.setattr("judge.pool.screen.processes_of", lambda size, worth: 2)
    assert screen.screen_pool(pool) == expected
    assert len(expected) == 50  # German text has two flags, each of the others one
