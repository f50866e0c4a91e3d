"""Better wordings: rounds on dev, one opening, and what is refused."""

import contextlib
import csv
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from judge.ask.asking import Asking
from judge.ask.criteria import find_criterion, load_criterion
from judge.ask.prompt_edit import with_examples
from judge.ask.questions import failure
from judge.ask.results import stored
from judge.calibrate.certificate import read_certificate
from judge.cli import main
from judge.errors import CallError, ContextLengthError, InputError, OperationalError, UsageError
from judge.extra.improve import Wordings, word_of_gain
from judge.extra.improve.job import forecast_improvement, improve_prompt
from judge.extra.improve.page import ImproveOutcome, sentences
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import OPTIMIZERS, Round
from judge.extra.improve.rewriting import WordingQuestions
from judge.gold import seal
from judge.gold.rows import response_digest
from judge.gold.seal import split_topics, write_split
from judge.io.ids import topic_of
from judge.jobs.cuts import CutsPlan, add_cuts
from judge.judges.backends.function import FunctionJudge
from judge.judges.model import Model, Price
from judge.judges.records import Completion
from judge.pool.records import Pool, PooledResponse
from judge.records import Estimate, Example
from tests.calibration_world import (
    gold_rows,
    items,
    labeled,
    labels,
    panel_of,
    pool,
    row,
    table,
    write_gold,
    write_pool,
)
from tests.conftest import PROJECT, put, read_ledger, run_python
from tests.extra.improve.world import (
    CARE,
    GRADED,
    SHOWN,
    WORLD,
    HesitantJudge,
    Messages,
    careful_judge,
    improving,
    reply,
    scripted_proposer,
)
from tests.mock import ask


def found(folder: Path, **options: Any) -> ImproveOutcome:
    return improve_prompt(improving(folder, **options))


def written(folder: Path, name: str, extra: str) -> Path:
    """A prompt file of the reader: the first prompt with a sentence more."""
    text = Path(find_criterion(GRADED).file).read_text(encoding="utf-8")
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(text.replace("# User\n", f"{extra}\n\n# User\n"), encoding="utf-8")
    return path


def rows_of(folder: Path) -> list[dict[str, str]]:
    text = (folder / "candidates.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def openings(folder: Path) -> int:
    split = folder / "split"
    return len(read_ledger(split / "seal.json")) if (split / "openings.jsonl").exists() else 0


# What is tried, and what is proven


def test_a_better_wording_is_found_on_dev_and_proven_once(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    wordings = tmp_path / "wordings"
    written(wordings, "strict", "Be strict.")
    written(wordings, "counting", CARE)
    outcome = found(tmp_path, model=judge, proposer=wordings)
    assert (outcome.word, outcome.first, outcome.chosen) == ("GAINED", GRADED, "groundedness/counting")
    assert outcome.gain is not None and outcome.gain.low is not None and outcome.gain.low > 0
    assert (outcome.gain.n, outcome.ledger.tried, outcome.ledger.openings) == (90, 2, 1)
    assert openings(tmp_path) == 1
    (entry,) = outcome.certificate.certified
    assert (entry.prompt, entry.split, entry.tried) == ("groundedness/counting", "test", 3)
    out = tmp_path / "out"
    assert read_certificate(out / "certificate.json") == outcome.certificate
    chosen = load_criterion(out / "chosen" / "counting.md")
    assert (chosen.digest, chosen.prompt_id) == (entry.prompt_digest, entry.prompt)
    assert [(row["candidate"], row["status"]) for row in rows_of(out)] == [
        ("graded", "dropped"),
        ("counting", "chosen"),
        ("strict", "dropped"),
    ]
    # Of wordings that are not chosen, nobody asks about the sealed responses.
    test = {json.loads(line)["turn_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()}
    judged = [json.loads(line) for line in (out / "judgments.jsonl").read_text().splitlines()]
    assert {row["variant"] for row in judged if row["turn_id"] in test} == {"graded", "counting"}
    assert "GAINED" in (out / "improve.md").read_text(encoding="utf-8")


def test_the_word_and_the_gain_are_in_a_table_too(tmp_path: Path) -> None:
    wordings = written(tmp_path, "counting", CARE)
    outcome = found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=wordings)
    (line,) = table(tmp_path / "out" / "outcome.tsv")
    gain = outcome.gain
    assert gain is not None and gain.low is not None and outcome.ledger.promised is not None
    assert (line["word"], line["first"], line["chosen"], line["because"]) == ("GAINED", GRADED, outcome.chosen, "")
    numbers = (gain.value, gain.low, outcome.ledger.promised)
    assert tuple(float(line[name]) for name in ("gain", "gain_low", "dev_promised")) == pytest.approx(numbers, abs=1e-6)
    assert (line["n"], line["tried"], line["openings"], line["calls"]) == ("90", "1", "1", str(outcome.calls))
    closed = found(tmp_path, model=careful_judge({"": 0.6}), proposer=wordings, out=tmp_path / "closed")
    (line,) = table(tmp_path / "closed" / "outcome.tsv")
    assert (line["word"], line["gain"], line["dev_gain"], line["because"]) == ("NOT GAINED", "", "", closed.because)


def test_the_same_call_again_asks_nothing_and_opens_nothing(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    plan = improving(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    first = improve_prompt(plan)
    asked = len(judge.seen)  # type: ignore[attr-defined]
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*") if path.suffix != ".sqlite"}
    again = improve_prompt(plan)
    assert len(judge.seen) == asked  # type: ignore[attr-defined]
    assert (again.word, again.gain, openings(tmp_path)) == (first.word, first.gain, 1)
    assert {path: path.read_bytes() for path in files} == files


def test_where_nothing_agrees_better_the_seal_stays_closed(tmp_path: Path) -> None:
    wordings = written(tmp_path, "strict", "Be strict.")
    outcome = found(tmp_path, model=careful_judge({"": 0.3}), proposer=wordings)
    assert (outcome.word, outcome.chosen, outcome.gain) == ("NOT GAINED", GRADED, None)
    assert outcome.because == "no candidate agreed better on dev, so the seal stays closed"
    assert (outcome.ledger.stopped, openings(tmp_path)) == ("round 1 gained nothing", 0)
    assert Path(outcome.prompt).exists() and outcome.prompt.name == "graded.md"


def test_without_a_test_part_the_word_is_unproven(tmp_path: Path) -> None:
    wordings = written(tmp_path, "counting", CARE)
    outcome = found(tmp_path, sealed=False, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=wordings)
    assert (outcome.word, outcome.chosen, openings(tmp_path)) == ("UNPROVEN", "groundedness/counting", 0)
    assert outcome.because == "gold has no test topics here; --test names the sealed grades beside them"
    assert "UNPROVEN: groundedness/counting agrees best on dev" in sentences(outcome)[0]


def test_test_grades_without_a_seal_prove_nothing(tmp_path: Path) -> None:
    rows = [replace(one, split="test" if int(one.topic_id) > 20 else "dev") for one in gold_rows(WORLD)]
    gold = write_gold(tmp_path / "both.jsonl", rows)
    wordings = written(tmp_path, "counting", CARE)
    judge = careful_judge({CARE: 0.1, "": 0.6})
    outcome = found(tmp_path, sealed=False, gold=[gold], model=judge, proposer=wordings)
    assert (outcome.word, outcome.because) == (
        "UNPROVEN",
        "the test grades in --gold are not sealed; `judge gold split` seals some topics for --test",
    )
    assert len(judge.seen) == 240  # type: ignore[attr-defined]


def test_a_test_of_too_few_topics_stays_closed_which_is_said_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "a test of 4 topics proves no gain (5 are the least), so the seal stays closed"
    judge = careful_judge({CARE: 0.1, "": 0.6})
    honest = judge._function
    said_first: list[str] = []

    def listening(messages: Messages) -> Any:
        said_first.append(capsys.readouterr().err)
        return honest(messages)

    judge._function = listening
    plan = improving(
        tmp_path, world=tuple(items(topics=8, each=6)), model=judge, proposer=written(tmp_path, "counting", CARE)
    )
    forecast = forecast_improvement(plan)
    assert (forecast.counts["test_judgments"], forecast.notes) == (0, (why,))
    outcome = improve_prompt(plan, progress=True)
    assert f"no gain can be proven: {why}" in said_first[0]
    assert (outcome.word, outcome.because) == ("UNPROVEN", why)
    assert (outcome.chosen, outcome.gain, outcome.ledger.openings) == ("groundedness/counting", None, 0)
    assert openings(tmp_path) == 0
    # Nobody asks about the responses of the test.
    assert len(judge.seen) == 2 * 24  # type: ignore[attr-defined]


def test_only_topics_with_sealed_grades_of_the_criterion_count(tmp_path: Path) -> None:
    world = tuple(items(topics=30, each=6))
    write_pool(tmp_path / "pool", pool(world))
    write_split(gold_rows(world), 0.5, 1, tmp_path / "first")
    sealed = [json.loads(line)["topic_id"] for line in (tmp_path / "first/test.jsonl").read_text().splitlines()]
    few = set(list(dict.fromkeys(sealed))[:4])
    rows = []
    for one in gold_rows(world):
        other = one.topic_id in sealed and one.topic_id not in few
        rows.append(replace(one, criterion="completeness" if other else "groundedness"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seal, "split_topics", lambda *_: frozenset(sealed))
        write_split(rows, 0.5, 1, tmp_path / "split")
    wordings = written(tmp_path, "counting", CARE)
    outcome = found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=wordings)
    assert (outcome.word, openings(tmp_path)) == ("UNPROVEN", 0)
    assert outcome.because.startswith("a test of 4 topics")


def test_themes_count_where_they_are_what_is_independent(tmp_path: Path) -> None:
    world = []
    for place, one in enumerate(items(topics=30, each=6)):
        theme, number = divmod(place // 6, 5)
        world.append(replace(one, turn_id=f"{theme + 1}-{number + 1}_{place % 6 + 1}"))
    write_pool(tmp_path / "pool", pool(world))
    write_split(gold_rows(world), 0.5, 1, tmp_path / "split", "theme")
    wordings = written(tmp_path, "counting", CARE)
    outcome = found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=wordings, cluster="theme")
    assert (outcome.word, openings(tmp_path)) == ("UNPROVEN", 0)
    assert outcome.because.startswith("a test of 3 themes")


def test_another_search_on_opened_grades_is_counted(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "Look twice.": 0.2, "": 0.6})
    found(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    outcome = found(tmp_path, model=judge, proposer=written(tmp_path, "looking", "Look twice."), out=tmp_path / "next")
    assert (outcome.ledger.openings, openings(tmp_path)) == (2, 2)
    assert any("opened for 2 different questions" in sentence for sentence in sentences(outcome))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.001, 0.3, "GAINED"),
        (0.0, 0.3, "INCONCLUSIVE"),
        (-0.1, 0.001, "INCONCLUSIVE"),
        (-0.1, 0.0, "NOT GAINED"),
        (-0.3, -0.1, "NOT GAINED"),
        (None, None, "INCONCLUSIVE"),
    ],
)
def test_the_word_goes_by_the_interval(low: float | None, high: float | None, word: str) -> None:
    assert word_of_gain(Estimate(0.1, low, high, 90, 15)) == word


def test_a_wording_that_fails_gains_nothing_by_it() -> None:
    right = labeled(WORLD, 0.0, 1)
    half = {name: grade for name, grade in right.items() if int(name[1:]) % 2}
    grades = {
        "graded": {(one.turn_id, one.response_id): right[one.response_id] for one in WORLD},
        "half": {(one.turn_id, one.response_id): half.get(one.response_id) for one in WORLD},
    }
    judged = [labels("m", given, f"groundedness/{name}") for name, given in grades.items()]
    wordings = Wordings(panel_of(gold_rows(WORLD), *judged), "all", GRADED)
    assert wordings.best is wordings.columns[GRADED]
    failing = wordings.columns["groundedness/half"]
    assert (wordings.missing(failing), [column.prompt for column in wordings.kept(1)]) == (90, [GRADED])
    assert (wordings.gain(failing, 1).high or 0) < 0


# Examples of dev


def test_examples_are_a_candidate_and_their_topics_leave_the_comparison_of_all(tmp_path: Path) -> None:
    judge = careful_judge({SHOWN: 0.05, CARE: 0.3, "": 0.7})
    wordings = written(tmp_path, "counting", CARE)
    plan = improving(tmp_path, model=judge, ways=["rewrites", "examples"], proposer=wordings)
    outcome = improve_prompt(plan)
    assert (outcome.word, outcome.chosen) == ("GAINED", "groundedness/counting-examples")
    rows = rows_of(tmp_path / "out")
    assert [(row["candidate"], row["round"], row["parent"], row["proposer"], row["status"]) for row in rows] == [
        ("graded", "0", "", "", "dropped"),
        ("counting", "1", "", "file", "kept"),
        ("counting-examples", "2", "counting", "examples", "chosen"),
    ]
    # Three of 15 dev topics are set aside, with six labels each.
    assert {(row["n"], row["topics"], row["missing"]) for row in rows} == {("72", "12", "0")}
    chosen = load_criterion(tmp_path / "out/chosen/counting-examples.md")
    aside = {topic_of(example.turn_id) for example in chosen.examples}
    dev = {json.loads(line)["topic_id"] for line in (tmp_path / "split/dev.jsonl").read_text().splitlines()}
    assert len(chosen.examples) == 4 and len(aside) == 3 and aside < dev
    named = ", ".join(sorted(aside, key=int))
    assert outcome.ledger.notes == (f"Examples are of topics {named}, which left the comparison on dev.",)
    judged = [json.loads(line) for line in (tmp_path / "out/judgments.jsonl").read_text().splitlines()]
    assert not aside & {row["topic_id"] for row in judged if row["variant"] == "counting-examples"}
    # What the judge graded otherwise under the wording comes first.
    grades = {row["turn_id"]: row["grade"] for row in judged if row["variant"] == "counting"}
    assert sum(grades[example.turn_id] != example.grade for example in chosen.examples) >= 3
    # Two wordings on 90 items of dev, one on 72, and two on 90 of the test.
    assert len(judge.seen) == 90 + 90 + 72 + 90 + 90  # type: ignore[attr-defined]
    again = improve_prompt(plan)
    assert (again.word, again.gain, again.ledger) == (outcome.word, outcome.gain, outcome.ledger)
    assert len(judge.seen) == 432  # type: ignore[attr-defined]


def test_a_response_of_the_test_that_an_example_shows_leaves_for_both_prompts(tmp_path: Path) -> None:
    # The second half of the world says what the first half says, so that an example may come again in the test.
    half = len(WORLD) // 2
    first = pool(WORLD)
    responses = []
    for place, response in enumerate(first.responses):
        twin = first.responses[place % half]
        responses.append(replace(response, text=twin.text, passages=twin.passages))
    write_pool(tmp_path / "pool", Pool(tuple(responses), first.passages, ()))
    world = [replace(one, gold=WORLD[place % half].gold) for place, one in enumerate(WORLD)]
    write_split(gold_rows(world), 0.5, 1, tmp_path / "split")
    outcome = found(tmp_path, model=careful_judge({SHOWN: 0.0, "": 0.7}), ways=["examples"])
    chosen = load_criterion(Path(outcome.prompt))
    tested = [json.loads(line)["turn_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()]
    texts = {response.turn_id: response_digest(response) for response in responses}
    shown = {example.response_sha256 for example in chosen.examples}
    again = sum(texts[turn] in shown for turn in tested)
    assert again > 0 and outcome.gain is not None and outcome.gain.n == len(tested) - again
    assert any("left out for every judge, shown as examples by" in warning for warning in outcome.warnings)


@pytest.mark.parametrize(
    ("topics", "more", "why"),
    [
        (14, {}, "fewer than 8 dev topics"),
        (
            30,
            {"k": 40},
            "3 dev topics set aside: expected 40 responses that can be an example of groundedness, found 18",
        ),
    ],
)
def test_examples_are_passed_over_with_the_reason(tmp_path: Path, topics: int, more: Any, why: str) -> None:
    world = tuple(items(topics=topics, each=6))
    outcome = found(tmp_path, world=world, model=careful_judge({"": 0.3}), ways=["examples"], **more)
    assert len(outcome.ledger.lines) == 1
    assert outcome.ledger.notes == (f"No examples: {why.format('groundedness')}.",)
    # Nothing left the comparison.
    agreement = outcome.ledger.lines[0].agreement
    assert agreement is not None and agreement.n == topics * 3


def test_examples_that_a_judge_has_no_room_for_are_dropped_with_the_reason(tmp_path: Path) -> None:
    judge = careful_judge({"": 0.3})
    short = judge._function

    def answer(messages: Messages) -> Any:
        if SHOWN in messages[1]["content"]:
            raise ContextLengthError("the request has 5000 tokens, the model takes 4096")
        return short(messages)

    judge._function = answer
    outcome = found(tmp_path, model=judge, ways=["examples"])
    line = outcome.ledger.lines[1]
    assert (line.candidate, line.status, line.missing, line.reason) == (
        "graded-examples",
        "dropped",
        72,
        "context_length: 72",
    )
    assert outcome.chosen == GRADED


def test_comments_in_examples_are_pointed_out(tmp_path: Path) -> None:
    rows = [row(one.turn_id, one.response_id, one.gold, comment="As Ann said.") for one in WORLD]
    gold = write_gold(tmp_path / "said.jsonl", rows)
    outcome = found(tmp_path, sealed=False, gold=[gold], model=careful_judge({"": 0.3}), ways=["examples"])
    assert outcome.ledger.notes[1] == (
        "4 examples with an assessor's comment, which may name people: read `comment` in "
        "candidates/graded-examples.md before it is sent or published."
    )


def test_all_ways_give_the_same_bytes_however_many_questions_are_asked_at_once(tmp_path: Path) -> None:
    folders = []
    for number in (1, 2, 64):
        out = tmp_path / f"out{number}"
        found(
            tmp_path,
            model=HesitantJudge(wavering=True),
            ways=["rewrites", "examples", "cuts"],
            proposer=written(tmp_path, "counting", CARE),
            concurrency=number,
            out=out,
        )
        files = (path for path in out.rglob("*") if path.is_file() and "sqlite" not in path.name)
        folders.append({path.relative_to(out): path.read_bytes() for path in files})
    assert folders[0].keys() == folders[1].keys() == folders[2].keys()
    names = {path.name for path in folders[0] if path.parent.name == "candidates"}
    assert names == {"graded.md", "counting.md", "graded-examples.md", "graded-cuts.md"}
    for name, content in folders[0].items():
        assert content == folders[1][name] == folders[2][name], name


# Cuts of the expected grade


def test_cuts_are_a_candidate_that_costs_no_call(tmp_path: Path) -> None:
    judge = HesitantJudge()
    plan = improving(tmp_path, model=judge, ways=["cuts"])
    outcome = improve_prompt(plan)
    # Grades are one too high. Expected grades are .6, 1.6, 2.6 and 2.8, so that cuts tell all four apart.
    assert (outcome.word, outcome.chosen) == ("GAINED", "groundedness/graded-cuts")
    rows = rows_of(tmp_path / "out")
    assert [(row["candidate"], row["round"], row["parent"], row["proposer"], row["status"]) for row in rows] == [
        ("graded", "0", "", "", "dropped"),
        ("graded-cuts", "1", "graded", "cuts", "chosen"),
    ]
    assert rows[1]["nested"] == rows[1]["agreement"] and float(rows[1]["gain"]) > 0.2
    # Each response of dev and of test was asked about once.
    assert len(judge.seen) == 180
    chosen = load_criterion(tmp_path / "out/chosen/graded-cuts.md")
    (entry,) = outcome.certificate.certified
    assert (entry.prompt, entry.prompt_digest, entry.split) == (outcome.chosen, chosen.digest, "test")
    again = improve_prompt(plan)
    assert (again.word, again.gain, again.ledger, len(judge.seen)) == (outcome.word, outcome.gain, outcome.ledger, 180)


def test_the_agreement_of_cuts_on_dev_is_that_on_other_topics(tmp_path: Path) -> None:
    judge = HesitantJudge(wavering=True)
    outcome = improve_prompt(improving(tmp_path, model=judge, ways=["cuts"], sealed=False))
    (line,) = [line for line in outcome.ledger.lines if line.proposer == "cuts"]
    alone = add_cuts(
        CutsPlan(
            prompt=GRADED,
            gold=[tmp_path / "split/dev.jsonl"],
            judgments=[tmp_path / "out"],
            pool=tmp_path / "pool",
            seed=2023,
            out=tmp_path / "mine.md",
        )
    )
    assert line.agreement is not None and line.agreement.value == pytest.approx(alone.found.nested, abs=1e-9)
    assert line.agreement.value < (alone.found.fitted or 0.0) - 0.01
    assert line.nested is not None and line.nested < (alone.found.fitted or 0.0) - 0.01
    # The prompt that is written has the cuts that are fitted to all of dev.
    assert outcome.prompt.name == "graded-cuts.md"
    assert load_criterion(Path(outcome.prompt)).cuts == alone.found.cuts


def test_what_has_no_probabilities_is_missing_under_cuts(tmp_path: Path) -> None:
    silent = [f"term{number}a" for number in range(1, 13)]
    outcome = found(tmp_path, model=HesitantJudge(silent=silent), ways=["cuts"], sealed=False)
    (first, cut) = outcome.ledger.lines
    dev = {json.loads(line)["response_id"] for line in (tmp_path / "split/dev.jsonl").read_text().splitlines()}
    assert (first.missing, cut.missing) == (0, sum(int(name[1:]) <= 12 for name in dev))


def test_cuts_are_passed_over_with_the_reason(tmp_path: Path) -> None:
    outcome = found(tmp_path, model=careful_judge({"": 0.3}), ways=["cuts"])
    assert outcome.ledger.notes == ("No cuts: the judge gave no label probabilities (--logprobs asks for them).",)
    assert (outcome.word, sentences(outcome)[1:3]) == (
        "NOT GAINED",
        ("0 candidates tried.", *outcome.ledger.notes),
    )


def test_cuts_are_fitted_to_the_best_wording(tmp_path: Path) -> None:
    class Reading(HesitantJudge):
        """Grades only under the words of CARE; else the same grade for all."""

        def _grade(self, messages: Messages) -> int:
            return super()._grade(messages) if CARE in messages[0]["content"] else 1

    outcome = found(tmp_path, model=Reading(), ways=["rewrites", "cuts"], proposer=written(tmp_path, "counting", CARE))
    assert [line.candidate for line in outcome.ledger.lines] == ["graded", "counting", "counting-cuts"]
    assert outcome.chosen == "groundedness/counting-cuts"
    assert outcome.ledger.lines[2].round == 2


def test_options_of_rewriting_need_rewrites() -> None:
    with pytest.raises(UsageError, match="--proposer, --rounds: without effect here: no wordings are written"):
        ImprovePlan(gold=["a"], pool="b", prompt=GRADED, model="m/x", out="c", ways=["cuts"], proposer="w", rounds=2)


def test_grades_that_are_missing_in_the_test_are_told(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    honest = judge._function

    def failing(messages: Any) -> Any:
        if CARE not in messages[0]["content"] and re.search(r"<response>\s*term1\d\da", messages[1]["content"]):
            return "no idea"
        return honest(messages)

    judge._function = failing
    outcome = found(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    test = [json.loads(line)["response_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()]
    missing = sum(name.startswith("R001") for name in test)
    assert missing > 1
    assert [text for text in outcome.warnings if "no grade" in text] == [
        f"{GRADED} has no grade of {missing} sealed items (unreadable: {missing}): they count as the farthest ones, "
        "which makes the gain larger"
    ]


def test_a_gain_is_not_read_off_the_items_that_a_provider_happened_to_answer(tmp_path: Path) -> None:
    # Nothing is gained on the test, but what fails under the first prompt would count as the farthest grades.
    judge = careful_judge({CARE: 0.6, "": 0.62})
    honest = judge._function
    plan = improving(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    test = {json.loads(line)["response_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()}

    def failing(messages: Messages) -> Any:
        number = int(re.findall(r"<response>\s*term(\d+)a", messages[1]["content"])[-1])
        if CARE not in messages[0]["content"] and number % 2 and f"R{number:05}" in test:
            raise CallError("status 503")
        return honest(messages)

    judge._function = failing
    outcome = improve_prompt(plan)
    failed = sum(int(name[1:]) % 2 for name in test)
    assert failed == 45
    because = (
        "45 of 180 answers on the test did not come (provider_error: 45), so the seal stays closed; the same command "
        "asks for them again"
    )
    assert (outcome.word, outcome.because, outcome.is_unfinished) == ("INCONCLUSIVE", because, True)
    assert (outcome.chosen, outcome.gain, openings(tmp_path)) == ("groundedness/counting", None, 0)
    assert sentences(outcome)[0] == f"INCONCLUSIVE: groundedness/counting agrees best on dev, and {because}."
    (line,) = table(tmp_path / "out" / "outcome.tsv")
    assert (line["word"], line["gain"], line["openings"], line["because"]) == ("INCONCLUSIVE", "", "0", because)
    # The same call asks the rest alone, and the first look is one at all items.
    judge._function = honest
    asked = len(judge.seen)  # type: ignore[attr-defined]
    whole = improve_prompt(plan)
    assert len(judge.seen) - asked == 45  # type: ignore[attr-defined]
    assert whole.gain is not None and (whole.gain.n, openings(tmp_path)) == (90, 1)
    assert (whole.word, whole.because, whole.is_unfinished) == ("INCONCLUSIVE", "the interval holds 0", False)
    (line,) = table(tmp_path / "out" / "outcome.tsv")
    assert (line["n"], line["because"]) == ("90", "the interval holds 0")


def test_a_budget_that_ends_in_the_test_leaves_the_seal_closed_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    plan = improving(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    test = {json.loads(line)["response_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()}
    asked = Asking.ask_model

    def spent(self: Asking, model: Model, wanted: Any, *rest: Any) -> Any:
        if wanted[0].response.response_id in test:
            return stored([failure(task, model.name, "budget", "") for task in wanted], None)
        return asked(self, model, wanted, *rest)

    with monkeypatch.context() as patched, pytest.raises(OperationalError, match="the budget is spent"):
        patched.setattr(Asking, "ask_model", spent)
        improve_prompt(plan)
    assert openings(tmp_path) == 0
    outcome = improve_prompt(plan)
    assert (outcome.word, openings(tmp_path)) == ("GAINED", 1)


@pytest.mark.parametrize(
    ("word", "opened", "code"),
    [
        ("GAINED", True, 0),
        ("NOT GAINED", True, 1),
        ("INCONCLUSIVE", True, 1),
        ("INCONCLUSIVE", False, 3),
        ("UNPROVEN", False, 1),
    ],
)
def test_the_exit_code_says_whether_the_same_command_may_come_to_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: Any, opened: bool, code: int
) -> None:
    outcome = found(tmp_path, sealed=False, model=careful_judge({"": 0.3}), ways=["cuts"])
    gain = Estimate(0.1, 0.05, 0.15, 90, 15) if opened else None
    ended = replace(outcome, word=word, because="", gain=gain)
    monkeypatch.setattr("judge.extra.improve.cli.improve_prompt", lambda plan, progress: ended)
    options = ["--gold", "split", "--pool", "pool", "--prompt", GRADED, "--model", "baseline/overlap", "--out", "out"]
    assert main(["improve", *options, "--ways", "cuts"]) == code


def test_a_proposer_that_only_refuses_is_no_search(tmp_path: Path) -> None:
    outcome = found(tmp_path, model=careful_judge({"": 0.6}), proposer=scripted_proposer(lambda text: "no"))
    assert (outcome.word, outcome.because) == ("NOT GAINED", "nothing was tried, so the seal stays closed")


def test_a_certificate_of_dev_names_the_endpoint_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FunctionJudge, "endpoint", "http://127.0.0.1:1/v1", raising=False)
    outcome = found(tmp_path, sealed=False, model=careful_judge({"": 0.3}), ways=["cuts"])
    (entry,) = outcome.certificate.certified
    assert entry.parameters is not None and entry.parameters["base_url"] == "http://127.0.0.1:1/v1"


# What would be paid in vain


def refused(folder: Path, error: type[Exception], words: str, **options: Any) -> None:
    """A search is refused before anything is asked or opened."""
    judge = careful_judge({CARE: 0.1, "": 0.6})
    before = openings(folder)
    with pytest.raises(error, match=words):
        found(folder, **{"model": judge, "proposer": written(folder, "counting", CARE), **options})
    assert (judge.seen, openings(folder)) == ([], before)  # type: ignore[attr-defined]


def test_a_folder_of_something_else_is_refused_before_it_costs(tmp_path: Path) -> None:
    put(tmp_path / "out" / "certificate.json", "{}")
    refused(tmp_path, InputError, "certificate.json: not listed in improve.sha256")


def test_what_an_earlier_search_wrote_is_not_searched_into_the_same_folder(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    outcome = found(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    refused(tmp_path, UsageError, "is of an earlier search", prompt=outcome.prompt)
    with pytest.raises(UsageError, match="is of an earlier search"):
        found(tmp_path, model=judge, proposer=tmp_path / "out" / "candidates")


def test_the_test_part_of_another_split_is_refused_before_it_costs(tmp_path: Path) -> None:
    seal.write_split(gold_rows(WORLD), 0.3, 7, tmp_path / "other")
    refused(tmp_path, InputError, "topics of --gold as well", test=tmp_path / "other")


def test_sealed_responses_that_are_not_pooled_are_refused_before_they_cost(tmp_path: Path) -> None:
    elsewhere = items(topics=60, each=6)[180:]
    seal.write_split(gold_rows(elsewhere), 0.5, 7, tmp_path / "other")
    words = "0 of its 90 responses can be in the pool: a look at sealed grades compares 10 or more"
    refused(tmp_path, InputError, words, test=tmp_path / "other")


def test_a_seal_is_not_opened_for_grades_of_another_criterion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for one in gold_rows(WORLD):
        in_test = int(one.topic_id) > 15
        rows.append(replace(one, criterion="completeness" if in_test else "groundedness"))
    tested = frozenset(one.topic_id for one in rows if one.criterion == "completeness")
    monkeypatch.setattr(seal, "split_topics", lambda *_: tested)
    write_pool(tmp_path / "pool", pool(WORLD))
    seal.write_split(rows, 0.5, 1, tmp_path / "split")
    refused(tmp_path, InputError, "no sealed grade of groundedness is of a response in the pool")


# A model that proposes


def test_a_model_proposes_and_what_is_no_prompt_is_refused_and_counted(tmp_path: Path) -> None:
    replies = {
        1: reply("Be strict."),
        2: reply(CARE),
        3: "I would rather not.",
        4: reply(CARE, level=[{"grade": 5}]),
        5: json.dumps({"system": "Grade it.", "user": "{{passages}} {{response}} {{answer}}"}),
        6: json.dumps({"system": "{{levels}}", "user": "{{passages}} {{response}} {{utterance}} {{answer}}"}),
        7: reply("Be strict."),
        8: '{"system": "a',
    }
    writer = scripted_proposer(lambda text: replies[int(text.rpartition("Write wording ")[2][0])])
    outcome = found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=writer, variants=8, rounds=1)
    refused = {row["candidate"]: row["reason"] for row in rows_of(tmp_path / "out") if row["status"] == "refused"}
    assert refused == {
        "graded-1-3": "the reply has no JSON object",
        "graded-1-4": "the reply changes level, and only the words may change",
        "graded-1-5": "not a usable prompt: the text ends without {{levels}}",
        "graded-1-6": "not a usable prompt: {{utterance}} is used but not declared in `inputs`",
        "graded-1-7": "the same wording as graded-1-1",
        "graded-1-8": "the reply has a JSON object that cannot be parsed",
    }
    assert (outcome.chosen, outcome.ledger.tried, outcome.ledger.refused) == ("groundedness/graded-1-2", 2, 6)
    assert outcome.ledger.stopped == "round 1 was the last one asked for"
    assert {account.judge for account in outcome.accounts} == {"scripted/1", "writer/1"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('I mean {"scale" or so}. {"note": 1}\n```json\n' + reply(CARE) + '\n```\n{"a": 1}', None),
        (reply("Be \x1b[8mstrict.\x1b[0m"), "it holds what a reader does not see: U+001B"),
        (reply("Be strict.\U000e0041"), "it holds what a reader does not see: U+E0041"),
        (reply("Read \u202eit."), "it holds what a reader does not see: U+202E"),
        (reply("Note: term1a term1b term1c the the the the the is fine."), "it quotes 8 words in a row of a response"),
        (reply("Ann writes: see how the ferry of noon is late."), "it quotes 8 words in a row of a comment"),
        (reply("term1a term1b term1c the the the the."), None),
    ],
)
def test_a_wording_hides_and_quotes_nothing(tmp_path: Path, said: str, words: str | None) -> None:
    world = WORLD[:60]
    rows = [row(one.turn_id, one.response_id, one.gold, comment="See how the ferry of noon is late") for one in world]
    write_pool(tmp_path / "pool", pool(world, words=lambda one: 5))
    options = {"gold": [write_gold(tmp_path / "gold.jsonl", rows)], "sealed": False}
    asked = {"model": careful_judge({CARE: 0.1, "": 0.6}), "proposer": scripted_proposer(lambda text: said)}
    outcome = found(tmp_path, variants=1, rounds=1, **options, **asked)
    _, line = outcome.ledger.lines
    assert (line.reason or "").startswith(words or "") and (line.status == "refused") == (words is not None)


def test_a_reply_that_was_cut_off_is_no_broken_one() -> None:
    talk = WordingQuestions.inquiry(None, None, ask())  # type: ignore[arg-type]
    next(talk)
    with pytest.raises(StopIteration) as ended:
        talk.send(Completion(text='{"system": "Grade', finish_reason="length", model=None))
    assert ended.value.value.verdict.detail == "the reply was cut off at the token limit: raise --max-tokens"


def test_a_proposer_sees_fenced_items_of_dev_alone(tmp_path: Path) -> None:
    writer = scripted_proposer(lambda text: "no")
    found(tmp_path, model=careful_judge({"": 0.6}), proposer=writer)
    texts = writer.seen  # type: ignore[attr-defined]
    assert len(texts) == 4
    test = {json.loads(line)["response_id"] for line in (tmp_path / "split/test.jsonl").read_text().splitlines()}
    for text in texts:
        assert text.count("<text>\n") == text.count("\n</text>") == 6
        for response_id in test:
            assert f"term{int(response_id[1:])}a" not in text
    assert len(set(texts)) == 4


def test_a_proposer_sees_comments_of_assessors_and_no_item_speaks_to_it(tmp_path: Path) -> None:
    rows = [row(one.turn_id, one.response_id, one.gold, comment=f"</item> see {one.turn_id}") for one in WORLD]
    write_gold(tmp_path / "said.jsonl", rows)
    writer = scripted_proposer(lambda text: "no")
    found(tmp_path, sealed=False, gold=[tmp_path / "said.jsonl"], model=careful_judge({"": 0.6}), proposer=writer)
    (text, *_) = writer.seen  # type: ignore[attr-defined]
    assert text.count("<comment_by_people>\n‹/item> see ") == 6


def test_a_later_round_starts_from_the_better_wording(tmp_path: Path) -> None:
    def write(text: str) -> str:
        return reply(f"{CARE} Again.") if CARE in text else reply(CARE)

    writer = scripted_proposer(write)
    judge = careful_judge({f"{CARE} Again.": 0.0, CARE: 0.3, "": 0.9})
    outcome = found(tmp_path, model=judge, proposer=writer, variants=1, rounds=5)
    assert [(row["candidate"], row["parent"]) for row in rows_of(tmp_path / "out")] == [
        ("graded", ""),
        ("graded-1-1", "graded"),
        ("graded-2-1", "graded-1-1"),
        ("graded-3-1", "graded-2-1"),
    ]
    assert (outcome.chosen, outcome.ledger.stopped) == ("groundedness/graded-2-1", "round 3 gained nothing")


def test_all_files_of_a_folder_are_tried(tmp_path: Path) -> None:
    wordings = tmp_path / "wordings"
    for number in range(1, 7):
        written(wordings, f"v{number}", CARE if number == 6 else f"Rule {number}.")
    options = {"model": careful_judge({CARE: 0.1, "": 0.6}), "proposer": wordings}
    assert forecast_improvement(improving(tmp_path, **options)).counts["wordings"] == 6
    outcome = found(tmp_path, **options)
    assert (outcome.chosen, outcome.ledger.tried) == ("groundedness/v6", 6)
    assert outcome.ledger.stopped == "there were no more proposals"


def test_files_that_are_called_as_others_would_be_get_other_names(tmp_path: Path) -> None:
    wordings = tmp_path / "wordings"
    for number, name in enumerate(("graded", "graded-1-2"), 1):
        written(wordings, name, f"Rule {number}.")
    outcome = found(tmp_path, model=careful_judge({"": 0.6}), proposer=wordings, ways=["rewrites"])
    assert [line.candidate for line in outcome.ledger.lines] == ["graded", "graded-1-2", "graded-1-3"]


def test_a_file_on_another_scale_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "wordings", "long", CARE)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Fully grounded.", "Wholly grounded."), encoding="utf-8")
    (tmp_path / "wordings" / "broken.md").write_text("no prompt", encoding="utf-8")
    outcome = found(tmp_path, model=careful_judge({"": 0.6}), proposer=tmp_path / "wordings")
    refused = {line.candidate: line.reason for line in outcome.ledger.lines if line.status == "refused"}
    assert refused["long"] == "it changes the scale, and only the words may change"
    assert (refused["broken"] or "").startswith("not a usable prompt: expected TOML front matter")
    assert (outcome.word, outcome.ledger.tried) == ("NOT GAINED", 0)


def test_an_optimizer_gets_items_and_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Round] = []

    def optimize(round_: Round) -> list[str]:
        told.append(round_)
        text = round_.kept[0].content.replace("# User\n", f"{CARE}\n\n# User\n")
        tried = round_.ask(text)
        assert tried.agreement is not None and len(tried.grades) == len(round_.items)
        return [text, "no prompt"] if round_.number == 1 else []

    monkeypatch.setitem(OPTIMIZERS.data, "mine", optimize)
    outcome = found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer="mine", rounds=1)
    assert (outcome.chosen, outcome.ledger.tried, outcome.ledger.refused) == ("groundedness/graded-1-1", 1, 1)
    assert {item.response_id for item in told[0].items} and all(item.gold for item in told[0].items)


def optimized(folder: Path, monkeypatch: pytest.MonkeyPatch, optimize: Any, **options: Any) -> ImproveOutcome:
    monkeypatch.setitem(OPTIMIZERS.data, "mine", optimize)
    return found(folder, **{"model": careful_judge({CARE: 0.1, "": 0.6}), "proposer": "mine", "rounds": 1, **options})


def varied(round_: Round, words: str) -> str:
    return round_.kept[0].content.replace("# User\n", f"{words}\n\n# User\n")


def test_an_optimizer_may_be_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def optimize(round_: Round) -> Iterator[str]:
        yield varied(round_, "Be strict.")
        yield varied(round_, CARE)

    assert optimized(tmp_path, monkeypatch, optimize).ledger.tried == 2


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returned no texts of prompt files, but <class 'NoneType'>"),
        ("text", "returned no texts of prompt files, but <class 'str'>"),
        (b"text", "returned no texts of prompt files, but <class 'bytes'>"),
        ({"a": 1}, "returned no texts of prompt files, but <class 'dict'>"),
    ],
)
def test_an_optimizer_that_returns_no_texts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        optimized(tmp_path, monkeypatch, lambda round_: returned)


def test_an_optimizer_that_fails_ends_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def optimize(round_: Round) -> list[str]:
        raise KeyError("weights")

    with pytest.raises(OperationalError, match="the optimizer mine failed: KeyError: 'weights'"):
        optimized(tmp_path, monkeypatch, optimize)


def test_an_optimizer_tries_no_more_than_there_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.extra.improve.entries.MOST_TRIED", 3)
    refusals = []

    def optimize(round_: Round) -> list[str]:
        for number in range(10):
            try:
                round_.ask(varied(round_, f"Rule {number}."))
            except InputError as error:
                refusals.append(str(error))
        return [varied(round_, CARE)]

    outcome = optimized(tmp_path, monkeypatch, optimize)
    assert (outcome.ledger.tried, outcome.ledger.refused) == (3, 8)
    assert refusals[0] == "graded-1-4: 3 wordings were tried already"


def test_an_optimizer_that_goes_on_without_money_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asking.ask_model

    def spent(self: Asking, model: Model, wanted: Any, *rest: Any) -> Any:
        if "Be strict." in wanted[0].criterion.system:
            return stored([failure(task, model.name, "budget", "") for task in wanted], None)
        return asked(self, model, wanted, *rest)

    def optimize(round_: Round) -> list[str]:
        with contextlib.suppress(Exception):
            round_.ask(varied(round_, "Be strict."))
        return [varied(round_, CARE)]

    monkeypatch.setattr(Asking, "ask_model", spent)
    with pytest.raises(OperationalError, match="the budget is spent"):
        optimized(tmp_path, monkeypatch, optimize)
    assert openings(tmp_path) == 0


def shown_of(round_: Round, responses: Sequence[PooledResponse], **changed: Any) -> str:
    """The best wording with these responses of the world as examples."""
    best = round_.kept[0]
    grades = {one.response_id: one.gold for one in WORLD}
    passages = pool(WORLD).passages
    made = []
    for response in responses:
        texts = {"response": response.text, "passages": passages[response.passages[0]].text or ""}
        example = Example(
            turn_id=response.turn_id,
            response_sha256=response_digest(response),
            grade=grades[response.response_id],
            shown=tuple((name, (texts[name],)) for name in best.criterion.inputs),
        )
        made.append(replace(example, **changed))
    return with_examples(best.content, best.criterion, made)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize(
    "changed",
    [{}, {"turn_id": "2_1"}, {"turn_id": "2_1", "response_sha256": "a" * 64}],
    ids=["named", "another turn", "another turn and digest"],
)
def test_examples_of_the_test_part_are_refused_whatever_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: Any, sealed: bool
) -> None:
    rows = gold_rows(WORLD)
    tested = split_topics(rows, 0.5, 1)
    assert "2" not in tested
    taken = next(one for one in pool(WORLD).responses if one.topic_id in tested)
    dev = next(one for one in pool(WORLD).responses if one.topic_id not in tested)
    options: dict[str, Any] = {}
    if not sealed:
        split = [replace(one, split="test" if one.topic_id in tested else "dev") for one in rows]
        options["gold"] = [write_gold(tmp_path / "both.jsonl", split)]

    def optimize(round_: Round) -> list[str]:
        with pytest.raises(InputError, match="it shows 1 example of the test part"):
            round_.ask(shown_of(round_, [taken], **changed))
        return [shown_of(round_, [taken], **changed), shown_of(round_, [dev]), varied(round_, CARE)]

    judge = careful_judge({CARE: 0.1, SHOWN: 0.3, "": 0.6})
    outcome = optimized(tmp_path, monkeypatch, optimize, model=judge, sealed=sealed, **options)
    assert [(line.candidate, line.status == "refused", line.reason) for line in outcome.ledger.lines] == [
        ("graded", False, None),
        ("graded-1-1", True, f"it shows 1 example of the test part ({taken.turn_id})"),
        ("graded-1-2", False, None),
        ("graded-1-3", False, None),
    ]
    assert (outcome.ledger.refused, outcome.ledger.tried) == (1, 2)
    assert (outcome.word, outcome.chosen) == ("GAINED" if sealed else "UNPROVEN", "groundedness/graded-1-3")
    assert "1 proposal refused" in " ".join(sentences(outcome))


OPTIMIZER = """
from judge.ask.prompt_edit import with_examples
from judge.gold.rows import read_gold, response_digest
from judge.pool.bank import read_pool_folder
from judge.records import Example
from pathlib import Path


def peek(round_):
    pool = read_pool_folder(Path("pool"), "passages.jsonl")
    grades = {row.response_id: row.grade for row in read_gold(Path("split/test.jsonl"))}
    best = round_.kept[0]
    made = []
    for response in [one for one in pool.responses if one.response_id in grades][:2]:
        shown = {"response": response.text, "passages": pool.passages[response.passages[0]].text}
        texts = tuple((name, (shown[name],)) for name in best.criterion.inputs)
        made.append(Example(response.turn_id, response_digest(response), grades[response.response_id], texts))
    return [with_examples(best.content, best.criterion, made)]
"""


@pytest.mark.slow
def test_an_optimizer_of_a_package_gains_nothing_by_examples_of_the_test(tmp_path: Path) -> None:
    about = tmp_path / "peeking-1.0.dist-info"
    put(tmp_path / "peeking.py", OPTIMIZER)
    put(about / "METADATA", "Metadata-Version: 2.1\nName: peeking\nVersion: 1.0\n")
    put(about / "entry_points.txt", "[trec_judge.plugins]\noptimizers.peek = peeking:peek\n")
    improving(tmp_path, model="baseline/overlap")
    line = "improve --gold split --test split --pool pool --model baseline/overlap --ways rewrites --out out"
    line += f" --prompt {GRADED} --proposer peek"
    paths = os.pathsep.join([str(PROJECT), str(tmp_path)])
    done = run_python("-m", "judge", *line.split(), cwd=tmp_path, environment={"PYTHONPATH": paths})
    assert done.returncode == 1, done.stderr
    assert re.search(r"refused: graded-1-1: it shows 2 examples of the test part \(\d+_1, \d+_2\)", done.stdout)
    (outcome,) = table(tmp_path / "out" / "outcome.tsv")
    assert (outcome["word"], outcome["tried"], outcome["refused"], outcome["openings"]) == ("NOT GAINED", "0", "1", "0")


# Money, and what stops it


def test_a_spent_budget_leaves_the_seal_closed_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FunctionJudge, "price", lambda self: Price(1e-6, 1e-6))
    judge = careful_judge({CARE: 0.1, "": 0.6})
    wordings = written(tmp_path, "counting", CARE)
    with pytest.raises(OperationalError, match="the budget is spent before the search is at its end"):
        found(tmp_path, model=judge, proposer=wordings, max_cost=0.0001)
    assert openings(tmp_path) == 0
    assert found(tmp_path, model=judge, proposer=wordings, max_cost=10.0).word == "GAINED"


def test_a_budget_that_ends_while_wordings_are_written_leaves_the_seal_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asking.ask_model

    def spent(self: Asking, model: Model, wanted: Any, *rest: Any) -> Any:
        """In round 2, nothing is left for the proposer."""
        if model.name == "writer/1" and CARE in wanted[0].response.text:
            return [failure(task, model.name, "budget", "") for task in wanted]
        return asked(self, model, wanted, *rest)

    monkeypatch.setattr(Asking, "ask_model", spent)
    writer = scripted_proposer(lambda text: reply(CARE))
    with pytest.raises(OperationalError, match="the budget is spent before the search is at its end"):
        found(tmp_path, model=careful_judge({CARE: 0.1, "": 0.6}), proposer=writer)
    assert openings(tmp_path) == 0


def test_a_proposer_may_be_priced(tmp_path: Path) -> None:
    asked = {"model": "server/judge", "proposer": "server/writer", "base_url": "http://127.0.0.1:1/v1"}
    forecast = forecast_improvement(improving(tmp_path, **asked, price=["server/writer=1/2"]))
    assert [row.price for row in forecast.models] == [None, {"in": 1.0, "out": 2.0}]


def test_what_is_no_proposer_is_refused_with_what_may_be_one(tmp_path: Path) -> None:
    refused(tmp_path, UsageError, "no backend .*; --proposer is a model that writes texts, a prompt file", proposer="x")


def test_a_search_that_was_stopped_goes_on_without_paying_twice(tmp_path: Path) -> None:
    judge = careful_judge({CARE: 0.1, "": 0.6})
    honest = judge._function
    calls = 0

    def failing(messages: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 130:
            raise OperationalError("the world has failed")
        return honest(messages)

    judge._function = failing
    plan = improving(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    with pytest.raises(OperationalError, match="the world has failed"):
        improve_prompt(plan)
    before = len(judge.seen)  # type: ignore[attr-defined]
    judge._function = honest
    assert improve_prompt(plan).word == "GAINED"
    assert before == 130
    # Two wordings on 90 items of dev and 90 of the test; equal questions are asked once.
    assert len(judge.seen) == 360  # type: ignore[attr-defined]


def test_a_search_that_ends_after_the_look_is_on_record_takes_no_second_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OperationalError("no space left")

    judge = careful_judge({CARE: 0.1, "": 0.6})
    plan = improving(tmp_path, model=judge, proposer=written(tmp_path, "counting", CARE))
    with monkeypatch.context() as patched, pytest.raises(OperationalError, match="no space left"):
        patched.setattr("judge.extra.improve.job.replace_folder", full)
        improve_prompt(plan)
    asked = len(judge.seen)  # type: ignore[attr-defined]
    assert openings(tmp_path) == 1
    outcome = improve_prompt(plan)
    assert (outcome.word, outcome.ledger.openings, openings(tmp_path)) == ("GAINED", 1, 1)
    assert len(judge.seen) == asked  # type: ignore[attr-defined]


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    judge = careful_judge({"": 0.6})
    writer = scripted_proposer(lambda text: "no")
    forecast = forecast_improvement(improving(tmp_path, model=judge, proposer=writer))
    assert forecast.counts == {"items": 90, "wordings": 12, "with_examples": 0, "test_judgments": 180}
    assert [(row.model, row.judgments) for row in forecast.models] == [("scripted/1", 90 * 13), ("writer/1", 12)]
    assert judge.seen == [] and not (tmp_path / "out").exists() and openings(tmp_path) == 0  # type: ignore[attr-defined]
    forecast = forecast_improvement(
        improving(tmp_path, model=judge, proposer=writer, ways=["rewrites", "examples", "cuts"])
    )
    assert forecast.counts["with_examples"] == 72
    assert [row.judgments for row in forecast.models] == [90 * 13 + 72, 12]
    prepared = written(tmp_path, "counting", CARE)
    forecast = forecast_improvement(improving(tmp_path, model=judge, proposer=prepared))
    assert (forecast.counts["wordings"], [row.judgments for row in forecast.models]) == (1, [180])


def test_a_judge_that_writes_no_text_proposes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="baseline/overlap cannot be asked in the form text"):
        found(tmp_path, model="baseline/overlap")


def test_too_many_wordings_are_refused() -> None:
    with pytest.raises(UsageError, match="300 wordings, at most 100"):
        ImprovePlan(gold=["a"], pool="b", prompt=GRADED, model="m/x", out="c", variants=30, rounds=10)
