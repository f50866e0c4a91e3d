"""The loop where several processes share a journal: the others are played by claims that follow a script."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from judge.ask.records import Failure, Judgment
from judge.ask.tasks import tasks
from judge.errors import OperationalError, RejectedError
from judge.models.journal import HeldElsewhere, Journal, RecordedAnswer
from judge.models.records import Completion, Request
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import QUICK, Scripted, criterion, pool, reason

ELSEWHERE = Completion(text="Grade: 3", finish_reason="stop", model="m-1")
ONE = msgspec.structs.replace(QUICK, concurrency=1)


class PlayedClaims:
    """The n-th claim ends as the n-th word says; later claims are granted."""

    def __init__(self, *script: tuple[int, Completion] | Exception | None) -> None:
        self.script = list(script)
        self.claimed: list[tuple[str, ...]] = []
        self.released: list[str] = []

    def claim(self, *digests: str, request: Request) -> "asyncio.Future[RecordedAnswer | None]":
        self.claimed.append(digests)
        answer: asyncio.Future[RecordedAnswer | None] = asyncio.get_running_loop().create_future()
        outcome = self.script.pop(0) if self.script else None
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(None if outcome is None else RecordedAnswer(digests[outcome[0]], outcome[1]))
        return answer

    def release(self, digest: str) -> None:
        self.released.append(digest)

    def give_up(self, error: BaseException) -> None:
        pass


def asked(
    model: Scripted, claims: PlayedClaims, texts: Sequence[str], form: str | None = None
) -> list[Judgment | Failure]:
    """`form`: what the journal remembers of the forms that the judge takes."""
    one = pool(texts)
    with Journal(None) as journal:
        journal.claims = claims
        if form is not None:
            journal.set_meta(f"form:{model.name}", form)
        return list(assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=ONE))


def test_what_another_process_asks_is_left_for_later_and_taken_from_it() -> None:
    model = Scripted()
    claims = PlayedClaims(HeldElsewhere(), None, None, HeldElsewhere(), (0, ELSEWHERE))
    results = asked(model, claims, ["a", "b", "c"])
    assert [result.grade for result in results if isinstance(result, Judgment)] == [3, 2, 2]
    assert [request.response for request in model.asked] == ["b", "c"]
    assert claims.claimed[0] == claims.claimed[3] == claims.claimed[4]
    assert claims.released == []


def test_what_another_process_left_is_asked_here() -> None:
    model = Scripted()
    asked(model, PlayedClaims(HeldElsewhere(), HeldElsewhere()), ["a", "b"])
    assert sorted(request.response for request in model.asked) == ["a", "b"]


def test_a_question_that_brought_no_completion_is_free_again() -> None:
    claims = PlayedClaims()
    results = asked(Scripted({"a": [RejectedError("no")]}), claims, ["a", "b"])
    assert reason(results[0]) == "provider_error"
    assert claims.released == list(claims.claimed[0])


def test_a_journal_that_cannot_be_reached_stops_the_loop() -> None:
    model = Scripted()
    with pytest.raises(OperationalError, match="away"):
        asked(model, PlayedClaims(OperationalError("the server is away")), ["a", "b"])
    assert model.asked == []


# ---------------------------------------------------------------- one question in two answer forms

JSON = Completion(text='{"rationale": "", "grade": "3"}', finish_reason="stop", model="m-1")
BLANK = Completion(text='{"rationale":' + " " * 50, finish_reason="length", model="m-1")


def test_the_claim_names_every_form_and_is_on_the_first_whichever_is_asked() -> None:
    claims = {form: PlayedClaims() for form in ("json", "text")}
    models = {form: Scripted(forms=("json", "text")) for form in claims}
    for form, played in claims.items():
        asked(models[form], played, ["a"], form)
    assert [request.form for model in models.values() for request in model.asked] == ["json", "text"]
    (schema,), (text,) = (played.claimed for played in claims.values())
    assert schema == text
    assert len(set(text)) == 2
    # Nobody else may begin until the answer in the other form is written.
    assert claims["text"].released == [text[0]]


@pytest.mark.parametrize(("form", "place"), [("json", 1), ("text", 0)])
def test_an_answer_that_another_process_has_in_the_other_form_is_taken(form: str, place: int) -> None:
    model = Scripted(forms=("json", "text"))
    answer = (place, (JSON, ELSEWHERE)[place])
    claims = PlayedClaims(answer, answer)
    (result,) = asked(model, claims, ["a"], form)
    assert isinstance(result, Judgment)
    assert (result.grade, result.form, model.asked) == (3, ("json", "text")[place], [])
    assert claims.released == []


def test_after_white_space_from_another_process_the_text_form_is_claimed_alone() -> None:
    model = Scripted(forms=("json", "text"))
    claims = PlayedClaims((0, BLANK))
    (result,) = asked(model, claims, ["a"])
    assert isinstance(result, Judgment)
    assert [request.form for request in model.asked] == ["text"]
    assert claims.claimed[1] == claims.claimed[0][1:]
