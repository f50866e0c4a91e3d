"""The loop where several processes share a journal: the others are played by leases that follow a script."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from judge.ask.records import Failure, Judgment, tasks
from judge.errors import OperationalError, RejectedError
from judge.judges.journal import HeldElsewhere, Journal
from judge.judges.records import Completion
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import QUICK, Scripted, criterion, pool, reason

ELSEWHERE = Completion(text="Grade: 3", finish_reason="stop", model="m-1")
ONE = msgspec.structs.replace(QUICK, concurrency=1)


class PlayedJournal(Journal):
    """The n-th lease ends as the n-th word says; later leases are granted."""

    shared = True  # type: ignore[assignment]

    def __init__(self, *script: tuple[int, Completion] | Exception | None) -> None:
        super().__init__(None)
        self.script = list(script)
        self.leased: list[tuple[str, ...]] = []
        self.released: list[str] = []

    def lease(self, *digests: str) -> "asyncio.Future[tuple[str, Completion] | None]":
        self.leased.append(digests)
        answer: asyncio.Future[tuple[str, Completion] | None] = asyncio.get_running_loop().create_future()
        outcome = self.script.pop(0) if self.script else None
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(None if outcome is None else (digests[outcome[0]], outcome[1]))
        return answer

    def release(self, digest: str) -> None:
        self.released.append(digest)


def asked(
    model: Scripted, journal: PlayedJournal, texts: Sequence[str], form: str | None = None
) -> list[Judgment | Failure]:
    """`form`: what the journal remembers of the forms that the judge takes."""
    one = pool(texts)
    with journal:
        if form is not None:
            journal.set_meta(f"form:{model.name}", form)
        return list(assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=ONE))


def test_what_another_process_asks_is_left_for_later_and_taken_from_it() -> None:
    model = Scripted()
    journal = PlayedJournal(HeldElsewhere(), None, None, HeldElsewhere(), (0, ELSEWHERE))
    results = asked(model, journal, ["a", "b", "c"])
    assert [result.grade for result in results if isinstance(result, Judgment)] == [3, 2, 2]
    assert [request.response for request in model.asked] == ["b", "c"]
    assert journal.leased[0] == journal.leased[3] == journal.leased[4]
    assert journal.released == []


def test_what_another_process_left_is_asked_here() -> None:
    model = Scripted()
    asked(model, PlayedJournal(HeldElsewhere(), HeldElsewhere()), ["a", "b"])
    assert sorted(request.response for request in model.asked) == ["a", "b"]


def test_a_question_that_brought_no_completion_is_free_again() -> None:
    journal = PlayedJournal()
    results = asked(Scripted({"a": [RejectedError("no")]}), journal, ["a", "b"])
    assert reason(results[0]) == "provider_error"
    assert journal.released == list(journal.leased[0])


def test_a_journal_that_cannot_be_reached_stops_the_loop() -> None:
    model = Scripted()
    with pytest.raises(OperationalError, match="away"):
        asked(model, PlayedJournal(OperationalError("the server is away")), ["a", "b"])
    assert model.asked == []


# ---------------------------------------------------------------- one question in two answer forms

JSON = Completion(text='{"rationale": "", "grade": "3"}', finish_reason="stop", model="m-1")
BLANK = Completion(text='{"rationale":' + " " * 50, finish_reason="length", model="m-1")


def test_the_lease_names_every_form_and_is_on_the_first_whichever_is_asked() -> None:
    journals = {form: PlayedJournal() for form in ("json", "text")}
    models = {form: Scripted(forms=("json", "text")) for form in journals}
    for form, played in journals.items():
        asked(models[form], played, ["a"], form)
    assert [request.form for model in models.values() for request in model.asked] == ["json", "text"]
    (schema,), (text,) = (played.leased for played in journals.values())
    assert schema == text
    assert len(set(text)) == 2
    # Nobody else may begin until the answer in the other form is written.
    assert journals["text"].released == [text[0]]


@pytest.mark.parametrize(("form", "place"), [("json", 1), ("text", 0)])
def test_an_answer_that_another_process_has_in_the_other_form_is_taken(form: str, place: int) -> None:
    model = Scripted(forms=("json", "text"))
    answer = (place, (JSON, ELSEWHERE)[place])
    journal = PlayedJournal(answer, answer)
    (result,) = asked(model, journal, ["a"], form)
    assert isinstance(result, Judgment)
    assert (result.grade, result.form, model.asked) == (3, ("json", "text")[place], [])
    assert journal.released == []


def test_after_white_space_from_another_process_the_text_form_is_leased_alone() -> None:
    model = Scripted(forms=("json", "text"))
    journal = PlayedJournal((0, BLANK))
    (result,) = asked(model, journal, ["a"])
    assert isinstance(result, Judgment)
    assert [request.form for request in model.asked] == ["text"]
    assert journal.leased[1] == journal.leased[0][1:]
