"""BLEU and ROUGE against manual responses: by hand, against the packages' own functions, and what is left out."""

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.evaluate import wording
from judge.extra.evaluate.intake import RunTexts
from judge.records import Problem
from judge.runs.records import Topic, Turn
from tests.calibration_world import contents
from tests.conftest import PROJECT, put, put_run, refused

pytest.importorskip("sacrebleu", reason="the extra bleu is not installed")
pytest.importorskip("rouge_score", reason="the extra rouge is not installed")

EXAMPLES = PROJECT / "examples"
MANUAL = EXAMPLES / "runs/orchard-manual.json.gz"
INTERACTIVE = EXAMPLES / "interactive/stilt-plain.json"

NEAR, REFERENCE = "a b c d e", "a b c d f"
"""4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 quadruples are shared."""
BLEU = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)


def test_bleu_by_hand() -> None:
    assert wording.corpus_bleu([NEAR], [[REFERENCE]]).value == pytest.approx(BLEU)
    # Together 5 words stand beside 10, so the brevity penalty is exp(1 - 10 / 5).
    assert wording.corpus_bleu([NEAR, ""], [[REFERENCE], ["v w x y z"]]).value == pytest.approx(BLEU * math.exp(1 - 2))
    assert wording.corpus_bleu([NEAR], [[REFERENCE]]).signature.startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|"
    )


def test_a_text_may_have_more_references_than_another() -> None:
    found = wording.corpus_bleu([NEAR, NEAR], [[REFERENCE, NEAR], [NEAR]])
    assert found.value == pytest.approx(100)
    assert found.signature.startswith("nrefs:var|")


@pytest.mark.parametrize(("text", "references", "values"), [
    ("The ferry leaves at noon.", ["the ferry leaves at dawn"], (4 / 5, 3 / 4, 4 / 5)),
    # The subsequence of both is "a c"; one is 3 words long, the other 2: F = 2 * 2 / (3 + 2).
    ("a b c", ["a c"], (4 / 5, 0, 4 / 5)),
    ("b a", ["a b"], (1, 0, 1 / 2)),
    ("leaves", ["leaving"], (1, 0, 1)),
    # The better reference counts, for each measure by itself.
    ("a b c d", ["d c b a", "a b"], (1, 2 * 1 / (3 + 1), 2 * 2 / (4 + 2))),
    ("¿?", ["a"], (0, 0, 0)),
    # Words of any script; a character of Chinese is a word.
    ("Паром уходит", ["паром пришёл"], (1 / 2, 0, 1 / 2)),
    ("渡船离开", ["渡船离港"], (3 / 4, 2 / 3, 3 / 4)),
    ("café", ["caf"], (0, 0, 0)),
    ("हिंदी", ["हिंदी"], (1, 0, 1)),
])  # fmt: skip
def test_rouge_by_hand(text: str, references: list[str], values: tuple[float, ...]) -> None:
    found = wording.rouge_scores({"t": text}, {"t": references})
    assert [found[name]["t"] for name in wording.ROUGES] == pytest.approx(values)


WORDS = st.lists(st.sampled_from(["the", "ferry", "leaves", "leaving", "noon", "Noon.", "a_b", "<x>"]), max_size=9).map(
    " ".join
)


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_the_packages_own_functions_say_the_same(pairs: list[tuple[str, list[str]]]) -> None:
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    texts, references = [text for text, _ in pairs], [given for _, given in pairs]
    # An empty text in place of a missing reference would change the lengths.
    streams: list[Sequence[Any]] = [[given[n] if n < len(given) else None for given in references] for n in range(3)]
    streams = [stream for stream in streams if any(each is not None for each in stream)]
    assert wording.corpus_bleu(texts, references).value == sacrebleu.corpus_bleu(texts, streams, force=True).score
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    found = wording.rouge_scores(dict(enumerate(texts)), dict(enumerate(references)))  # type: ignore[arg-type]
    for place, (text, given_) in enumerate(pairs):
        for name in wording.ROUGES:
            best = max(scorer.score(one, text)[name].fmeasure for one in given_)
            # Without a word in any reference the package says 0.
            assert found[name].get(place, None if any(given_) else 0.0) == best  # type: ignore[call-overload]


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_the_words_of_ascii_are_the_packages_own(text: str) -> None:
    from rouge_score.tokenizers import DefaultTokenizer

    assert wording.rouge_words(text) == DefaultTokenizer(use_stemmer=False).tokenize(text)


def test_a_turn_whose_references_have_no_word_has_no_rouge(tmp_path: Path) -> None:
    run = RunTexts("a", "a.json", {"1-1_1": "a b", "1-1_2": "a"})
    references = {"1-1_1": ("a b",), "1-1_2": ("¿?", "…")}
    found = wording.worded_run(run, references, "references").rouge["rouge1"]
    assert (found.turns, found.estimate.value) == ({"1-1_1": 1.0}, 1.0)
    manual = put_run(tmp_path / "r.json", "r", {"1-1_1": ["a b"], "1-1_2": ["¿?"]})
    outcome = measured(put_run(tmp_path / "a.json", "a", {"1-1_1": ["a b"], "1-1_2": ["a"]}), references=[manual])
    assert "1 turn without ROUGE, because no manual response there has a word: 1-1_2." in outcome.grid.notes


def test_an_unanswered_turn_counts_as_an_empty_text_or_not_at_all() -> None:
    run = RunTexts("a", "a.json", {"1-1_1": NEAR, "9-9_9": "x"})
    references = {"1-1_1": (REFERENCE,), "2-1_1": ("v w x y z",)}
    every = wording.worded_run(run, references, "references")
    assert (every.answered, every.rouge["rouge1"].turns) == (1, {"1-1_1": pytest.approx(4 / 5), "2-1_1": 0.0})
    assert every.bleu is not None and every.bleu.value == pytest.approx(BLEU / math.e)
    answered = wording.worded_run(run, references, "answered")
    assert answered.rouge["rouge1"].estimate.value == pytest.approx(4 / 5)
    assert answered.bleu is not None and answered.bleu.value == pytest.approx(BLEU)


def test_the_first_response_by_rank_stands_for_a_run(tmp_path: Path) -> None:
    path = put_run(tmp_path / "a.json", "a", {"1-1_1": ["first", "second"], "1-1_2": [" "]})
    problems: list[Problem] = []
    (run,) = wording.run_texts(path, problems)
    assert isinstance(run, RunTexts)
    assert run.texts == {"1-1_1": "first"}


def test_references_come_from_manual_runs_and_from_topics(tmp_path: Path) -> None:
    first = put_run(tmp_path / "a.json", "a", {"1-1_1": ["A."], "1-1_10": ["B."]})
    second = put_run(tmp_path / "b.json", "b", {"1-1_1": ["C."]})
    turn = Turn("1-1_2", "1-1", "Why?", None, (), (), response="D.")
    silent = Turn("1-1_3", "1-1", "Why?", None, (), (), response=" ")
    topics = (Topic("1-1", None, (), (turn, silent)),)
    found, _ = wording.read_references([first, second], topics, "topics.json")
    assert list(found.items()) == [("1-1_1", ("A.", "C.")), ("1-1_2", ("D.",)), ("1-1_10", ("B.",))]
    with pytest.raises(InputError, match="no turn has a manual response"):
        wording.read_references([], (Topic("1-1", None, (), (silent,)),), "topics.json")


def measured(*runs: Path, **more: Any) -> wording.WordingOutcome:
    return wording.evaluate_wording(wording.WordingPlan(runs=runs, **more))


def test_a_copy_of_the_manual_run_has_every_word_of_it(tmp_path: Path) -> None:
    text = gzip.decompress(MANUAL.read_bytes()).decode().replace("orchard-manual", "copy")
    (run,) = measured(put(tmp_path / "copy.json", text), references=[MANUAL]).runs
    assert run.bleu is not None and run.bleu.value == pytest.approx(100)
    assert all(run.rouge[name].estimate.value == 1 for name in wording.ROUGES)


def test_the_example_gives_the_same_bytes_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "wording", "--runs", str(EXAMPLES / "runs"), str(INTERACTIVE), "--reference", str(MANUAL)]
    for name in ("a", "b"):
        assert main([*command, "--format", "json", "--out", str(tmp_path / name)]) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert {*contents(tmp_path / "a")} == {*"runs.tsv runs.json runs.md runs.tex turns.tsv wording.sha256".split()}
    out, err = capsys.readouterr()
    assert f"{MANUAL}: is a reference, so it is not measured" in err
    assert f"{INTERACTIVE}: an interactive run, whose turns are its own" in err
    rows = json.loads(out.partition("\n]\n")[0] + "]")[0]["rows"]
    assert [row["run"] for row in rows][-1] == "mill-fluent-invented"
    assert "orchard-manual" not in {row["run"] for row in rows}


def test_runs_and_references_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    reference = put_run(tmp_path / "r.json", "r", {"1-1_1": ["A."]})
    other = put_run(tmp_path / "other.json", "other", {"2-1_1": ["B."]})
    assert [problem.code for problem in refused(measured, other, references=[reference])] == ["no_common_turn"]
    long = put_run(tmp_path / "long.json", "long", {"1-1_1": ["—,a" * (wording.LONGEST + 1)]})
    again = put_run(tmp_path / "again.json", "other", {"1-1_1": ["B."]})
    problems = refused(measured, long, other, again, references=[reference])
    assert [problem.code for problem in problems] == ["text_too_long", "duplicate_run_id"]
    assert (
        refused(measured, other, references=[long])[0].message
        == f"{wording.LONGEST + 1} words: expected at most {wording.LONGEST}"
    )
    assert "no references for other runs" in refused(measured, other, references=[INTERACTIVE])[0].message
    with pytest.raises(InputError, match="no run is left to measure"):
        measured(INTERACTIVE, references=[reference])
    with pytest.raises(UsageError, match="no manual response: expected --reference"):
        measured(other)
    with pytest.raises(UsageError, match="choose from references, answered"):
        measured(other, references=[reference], over="all")
    with pytest.raises(UsageError, match="give a folder of its own"):
        measured(other, references=[reference], out=tmp_path)
