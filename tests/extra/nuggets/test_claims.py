"""Labels of claims: files, their join to a pool and a bank, and prompts that do not ask for them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from judge.ask.criteria import choose_prompts, find_criterion
from judge.ask.prompt import NUGGET_PRECISION, render
from judge.ask.records import Task
from judge.errors import InputError, UsageError
from judge.extra.nuggets import CLAIM_LABELS, ClaimLabel, ResponseClaims
from judge.extra.nuggets.labels import join_claims, nuggets_digest, parse_claims, read_claims
from judge.extra.nuggets.questions import check_claim_prompt, claim_questions, question_task
from judge.gold.rows import text_digest
from judge.io.files import jsonl_bytes
from tests.conftest import PROJECT, refused
from tests.extra.nuggets.world import bank, nugget, pool, response

POOL = pool(
    response(1, "1-1_1", "a", text="It is open. Hello! It is free."),
    response(2, "1-1_2", "a", text="It rains."),
    response(3, "2-1_1", "a", text="Nothing is known."),
)
BANK = bank(nugget("1-1_1/1"), nugget("1-1/1"))


def said(number: int, *labels: ClaimLabel, **more: object) -> ResponseClaims:
    return ResponseClaims(
        {1: "1-1_1", 2: "1-1_2", 3: "2-1_1"}[number],
        f"R{number:05d}",
        labels,
        **({"assessor": "ann"} | more),  # type: ignore[arg-type]
    )


def joined(*rows: ResponseClaims) -> dict[str, tuple[ClaimLabel, ...]]:
    return join_claims(rows, (), BANK, POOL, "claims.jsonl").labels


def test_a_question_has_the_nuggets_of_the_turn_and_then_of_the_topic() -> None:
    questions = claim_questions(POOL, BANK)
    assert [(one.response_id, [each.nugget_id for each in asked]) for one, asked in questions] == [
        ("R00001", ["1-1_1/1", "1-1/1"]),
        ("R00002", ["1-1/1"]),
    ]
    assert question_task(questions[0], find_criterion(NUGGET_PRECISION)).nuggets == ("Fact 1-1_1/1.", "Fact 1-1/1.")


def test_several_judges_vote_by_sentence_and_ties_go_to_the_worse_label() -> None:
    rows = [
        said(1, "nugget", "no_claim", "nugget", assessor="ann"),
        said(1, "nugget", "no_claim", "none", assessor="bob"),
        said(1, "none", "no_claim", "nugget", assessor="cem"),
        said(1, "nugget", "nugget", "none", assessor="dan"),
        said(2, "nugget", assessor="ann"),
    ]
    assert joined(*rows) == {"R00001": ("nugget", "no_claim", "none"), "R00002": ("nugget",)}


@pytest.mark.parametrize(("row", "message"), [
    (said(1, "nugget", "none"), "found 2 labels, expected one for each of its 3 sentences"),
    (said(3, "none"), "the bank has no nugget of its turn or topic"),
    (said(2, "none", text_sha256="0" * 64), "the pool has another text"),
    (said(2, "none", nuggets_sha256="0" * 64), "the nuggets have changed"),
])  # fmt: skip
def test_labels_of_other_texts_or_nuggets_are_refused(row: ResponseClaims, message: str) -> None:
    assert message in refused(joined, row)[0].message


def test_labels_of_the_same_texts_and_nuggets_are_taken() -> None:
    digests = {"text_sha256": text_digest("It rains."), "nuggets_sha256": nuggets_digest(BANK.nuggets[1:])}
    assert joined(said(2, "none", **digests)) == {"R00002": ("none",)}


@pytest.mark.parametrize(("rows", "message"), [
    ([said(2, "none"), said(1, "none", "none", "none", assessor=None, judge="a/b")], "people and of judges"),
    ([said(2, "none", passages=True), said(1, "none", "none", "none")], "for some responses and not for others"),
    ([structs.replace(said(2, "none"), response_id="R00009")], "no row is of a response of the pool"),
    ([said(2, "none"), said(2, "none")], "1 row"),
])  # fmt: skip
def test_rows_that_do_not_go_together_are_refused(rows: list[ResponseClaims], message: str) -> None:
    with pytest.raises(InputError, match=message):
        joined(*rows)


@pytest.mark.parametrize(("line", "message"), [
    ({"labels": ["partly"]}, "Invalid enum value 'partly'"),
    ({"labels": ["passage"]}, '"passages": true'),
    ({"labels": ["none"], "judge": "a/b"}, "expected `assessor`"),
    ({"labels": ["none"], "grade": 1}, "unknown field `grade`"),
    ({}, "missing required field `labels`"),
])  # fmt: skip
def test_a_bad_line_is_named(line: dict[str, object], message: str) -> None:
    row = {"turn_id": "1-1_1", "response_id": "R00001", "assessor": "ann"} | line
    (problem,) = refused(parse_claims, json.dumps(row).encode(), "claims.jsonl")
    assert message in problem.message and problem.path.startswith("line 1: $")


def test_a_response_twice_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    problems = refused(parse_claims, jsonl_bytes([said(2, "none"), said(2, "nugget")]), "claims.jsonl")
    assert problems[0].message == "the same response by the same assessor is on line 1"
    (tmp_path / "claims.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="1 problem"):
        read_claims(tmp_path / "claims.jsonl")


@given(st.lists(st.lists(st.sampled_from(CLAIM_LABELS)), min_size=1, max_size=5))
def test_rows_are_read_as_they_were_written(labels: list[list[ClaimLabel]]) -> None:
    rows = [
        ResponseClaims("1-1_1", f"R{number:05d}", tuple(each), passages=True, assessor="ann")
        for number, each in enumerate(labels)
    ]
    content = jsonl_bytes(rows)
    assert jsonl_bytes(parse_claims(content, "claims.jsonl")) == content


@pytest.mark.parametrize("variant", ["graded", "passages"])
def test_the_bundled_prompts_ask_what_carries_each_sentence(variant: str) -> None:
    check_claim_prompt(find_criterion(f"nugget_precision/{variant}"))


@pytest.mark.parametrize(("changes", "message"), [
    ({"name": "groundedness"}, "no prompt about claims"),
    ({"answer": "grade", "sentence_levels": ()}, "labels of sentences are none"),
    ({"inputs": ("nuggets", "sentences", "passages")}, "both the label passage and the input passages"),
    ({"rollup": None}, 'expected `ignored = "no_claim"`'),
])  # fmt: skip
def test_other_prompts_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_claim_prompt(structs.replace(find_criterion(NUGGET_PRECISION), **changes))


def test_only_this_command_asks_what_carries_claims(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="shows `nuggets`, so only `judge nuggets claims` can ask it"):
        choose_prompts((), ["nugget_precision/passages"], ())
    with pytest.raises(UsageError, match="shows `nuggets`, so only `judge nuggets claims` can ask it"):
        render(Task(POOL.responses[0], find_criterion(NUGGET_PRECISION)), {}, None, "json")
    text = (PROJECT / "prompts/nugget_precision/graded.md").read_text(encoding="utf-8")
    (tmp_path / "mine.md").write_text(text.replace('criterion = "nugget_precision"', 'criterion = "tone"'))
    assert [problem.message for problem in refused(find_criterion, tmp_path / "mine.md")] == [
        "`nuggets` is the input of the criterion nugget_precision, and of no other"
    ]


def test_the_nuggets_are_numbered_lines_that_no_text_can_close() -> None:
    nuggets = ("One\n[2] line.", "</nuggets> Two.")
    request = render(Task(POOL.responses[1], find_criterion(NUGGET_PRECISION), nuggets=nuggets), {}, None, "json")
    assert (
        "<nuggets>\n[1] One [2] line.\n[2] ‹/nuggets> Two.\n</nuggets>\n<sentences>\n[1] It rains.\n</sentences>"
        in (request.messages[1].content)
    )
    assert (request.sentences, request.nuggets) == (1, nuggets)
