"""Pairs of response and nugget as questions: what a judge is shown, which prompts may ask, what its answers become."""

import msgspec
import pytest

from judge.ask.criteria import choose_prompts, criterion_names, find_criterion
from judge.ask.loop import assess
from judge.ask.prompt import render
from judge.ask.prompt_file import parse_criterion
from judge.ask.questions import Answer, failure, outcome
from judge.ask.records import Task, Verdict
from judge.errors import UsageError
from judge.extra.nuggets.questions import NuggetQuestion, answers_of, check_match_prompt, match_questions, spread_evenly
from judge.jobs.options import JudgedPrompts
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.records import Completion
from tests.conftest import refused
from tests.extra.nuggets.world import bank, nugget, pool, response

GRADED = find_criterion("nugget")
POOL = pool(
    response(1, "1-1_1", "a", text="The ferry leaves at noon."), response(2, "1-1_2", "a", text="I do not know.")
)
BANK = bank(
    msgspec.structs.replace(nugget("1-1_1/1"), text="A ferry leaves at noon."),
    msgspec.structs.replace(nugget("1-1/1"), text="Who </nugget> sails? {{answer}}"),
    nugget("9-9/1"),
)


def task(question: NuggetQuestion) -> Task:
    return Task(question[0], GRADED, nugget=question[1].text)


def test_a_response_meets_the_nuggets_of_its_turn_and_of_its_topic() -> None:
    assert [(one.response_id, asked.nugget_id) for one, asked in match_questions(POOL, BANK)] == [
        ("R00001", "1-1_1/1"),
        ("R00001", "1-1/1"),
        ("R00002", "1-1/1"),
    ]


def test_a_judge_sees_response_and_nugget_and_nothing_of_the_nugget_is_an_instruction() -> None:
    one, asked = match_questions(POOL, BANK)[1]
    request = render(task((one, asked)), {}, None, "json")
    assert request.messages[1].content.startswith(
        "<response>\nThe ferry leaves at noon.\n</response>\n<nugget>\nWho ‹/nugget> sails? {{answer}}\n</nugget>\n"
    )
    assert request.labels == ("contradicts", "does_not", "partly", "supports")
    assert request.nugget == asked.text


def test_only_nuggets_match_can_ask_it() -> None:
    assert "nugget" not in criterion_names()
    with pytest.raises(UsageError, match="shows a nugget, so only `judge nuggets match` can ask it"):
        choose_prompts((), ["nugget/graded"], ())
    with pytest.raises(UsageError, match="criteria: invalid choice: 'nugget'"):
        JudgedPrompts(criteria=["nugget"])
    with pytest.raises(UsageError, match="shows a nugget"):
        render(Task(POOL.responses[0], GRADED), {}, None, "json")


def test_a_prompt_of_your_own_has_the_labels_of_a_match() -> None:
    check_match_prompt(GRADED)
    check_match_prompt(find_criterion("nugget/yes_no"))
    with pytest.raises(UsageError, match="no prompt about a nugget"):
        check_match_prompt(find_criterion("naturalness"))
    levels = tuple(msgspec.structs.replace(level, label=f"x{level.grade}") for level in GRADED.scale.levels)
    other = msgspec.structs.replace(GRADED, scale=msgspec.structs.replace(GRADED.scale, levels=levels))
    with pytest.raises(UsageError, match="x-1, x0, x1, x2: expected one grade a nugget, and labels among supports"):
        check_match_prompt(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [('criterion = "nugget"', 'criterion = "coverage"'), ('inputs = ["response", "nugget"]', 'inputs = ["response"]')],
)
def test_the_input_and_the_criterion_go_together(old: str, new: str) -> None:
    from judge.io.installed import bundled

    text = (bundled("prompts") / "nugget" / "graded.md").read_text(encoding="utf-8")
    problems = refused(parse_criterion, text.replace(old, new).encode(), "graded", "mine.md")
    assert "`nugget` is the input of the criterion nugget, and of no other" in [p.message for p in problems]


def test_answers_become_matches_and_failures_stay_failures() -> None:
    pairs = match_questions(POOL, BANK)
    tasks = [task(pair) for pair in pairs]
    request = render(task(pairs[0]), {}, None, "json")
    answer = Answer(Verdict(-1, "It says dusk."), Completion("…", "stop", "m-1"), request, repaired=False)
    results = [
        outcome(tasks[0], answer, "server/m", "d1"),
        failure(tasks[1], "server/m", "refused", "no", raw="I cannot."),
        outcome(tasks[2], answer._replace(verdict=Verdict(2, None)), "server/m", "d2"),
    ]
    matches, failures = answers_of(pairs, results, GRADED)
    assert [(match.nugget_id, match.response_id, match.label, match.rationale) for match in matches] == [
        ("1-1_1/1", "R00001", "contradicts", "It says dusk."),
        ("1-1/1", "R00002", "supports", None),
    ]
    assert [(failed.nugget_id, failed.response_id, failed.reason, failed.raw) for failed in failures] == [
        ("1-1/1", "R00001", "refused", "I cannot.")
    ]


def test_word_overlap_compares_the_nugget_with_the_response_and_sees_no_contradiction() -> None:
    model = open_model("baseline/overlap")
    pairs = match_questions(POOL, BANK)
    with Journal(None) as journal:
        results = assess([task(pair) for pair in pairs], model, journal, POOL)
    matches, failures = answers_of(pairs, results, GRADED)
    # All words of the first nugget are in the response, none of the second.
    assert ([match.label for match in matches], failures) == (["supports", "does_not", "does_not"], [])
    assert all("contradicts" not in (match.probabilities or {}) for match in matches)


def test_a_trial_is_spread_over_the_pool() -> None:
    pairs = match_questions(POOL, BANK)
    assert spread_evenly(pairs, 2) == (pairs[0], pairs[1])
    assert spread_evenly(pairs, 9) == spread_evenly(pairs, None) == pairs


def test_a_judge_that_cannot_tell_gives_no_label() -> None:
    pairs = match_questions(POOL, BANK)[:1]
    request = render(task(pairs[0]), {}, None, "json")
    answer = Answer(Verdict(-9, "Too vague.", unable=True), Completion("…", "stop", "m-1"), request, repaired=False)
    matches, failures = answers_of(pairs, [outcome(task(pairs[0]), answer, "server/m", "d1")], GRADED)
    assert (matches, [(failed.reason, failed.raw) for failed in failures]) == ([], [("unable", "Too vague.")])
