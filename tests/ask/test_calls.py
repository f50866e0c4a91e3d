"""A question is paid for once in one process, whichever tasks ask it and in whichever forms."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import Settings
from judge.ask.loop import assess
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import ContextLengthError, StructureUnsupported
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Request
from tests.ask.test_loop import Answer, Scripted, criterion, pool
from tests.mock import start_mock
from tests.time_limit import time_limit

JSON = Completion(text='{"rationale": "", "grade": "3"}', finish_reason="stop", model="m-1")
BLANK = Completion(text='{"rationale":' + " " * 50, finish_reason="length", model="m-1")
BLANKS = [f"blank {number}" for number in range(1, 6)]
TEXTS = ["first", "same", *BLANKS, "same", "last"]
"""Once the first has its answer, four calls are in flight, one of them for the second text: when its twin's turn comes,
at most two of the five in between have not had their replies."""


class WhiteSpace(Scripted):
    """Answers white space to the JSON schema about some texts."""

    def __init__(self, same: Answer = JSON) -> None:
        super().__init__({"same": [same, "Grade: 1"]}, forms=("json", "text"))

    async def complete(self, request: Request) -> Completion:
        if request.response in BLANKS:
            self.script[request.response] = [BLANK if request.form == "json" else "Grade: 2"]
        return await super().complete(request)

    def counts(self) -> Counter[str]:
        """How often each text was asked about."""
        return Counter(request.response for request in self.asked)


class SlowOnce(WhiteSpace):
    """Answers the first request about one text last of all."""

    async def complete(self, request: Request) -> Completion:
        if request.response == "same" and not self.counts()["same"]:
            self.asked.append(request)
            while sum(each.form == "text" for each in self.asked) < 3:
                await asyncio.sleep(0.001)
            # Time for its twin to be asked.
            await asyncio.sleep(0.05)
            self.asked.remove(request)
        return await super().complete(request)


def asked(model: Scripted, journal: Journal, concurrency: int = 4) -> list[Judgment | Failure]:
    one = pool(TEXTS)
    settings = Settings(concurrency=concurrency, attempts=3)
    return list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings))


def forms_of_twins(results: list[Judgment | Failure]) -> list[str]:
    """The forms of the judgments of the two texts that are the same."""
    twins = (result for result, text in zip(results, TEXTS, strict=True) if text == "same")
    return [result.form for result in twins if isinstance(result, Judgment)]


def test_one_question_in_two_forms_at_once_is_paid_once(tmp_path: Path) -> None:
    model = SlowOnce()
    with Journal(tmp_path / "journal") as journal:
        results = asked(model, journal)
    assert model.counts()["same"] == 1
    assert forms_of_twins(results) == ["json", "json"]
    # A later run reads the same from the journal.
    with Journal(tmp_path / "journal") as journal:
        assert asked(Scripted(forms=("json", "text")), journal) == results


def test_a_question_that_failed_in_one_form_is_not_asked_in_the_other() -> None:
    """Its twin waited for it, and shares the failure."""
    model = SlowOnce(ContextLengthError("too long"))
    with Journal(None) as journal:
        results = asked(model, journal)
    assert [result.reason for result in results if isinstance(result, Failure)] == ["context_length"] * 2
    assert [request.form for request in model.asked if request.response == "same"] == ["json"]


def test_a_question_that_was_answered_in_one_form_is_not_asked_in_the_other() -> None:
    model = WhiteSpace()
    with Journal(None) as journal:
        results = asked(model, journal, concurrency=1)
    assert [request.form for request in model.asked if request.response == "same"] == ["json"]
    assert forms_of_twins(results) == ["json", "json"]


def test_after_a_repair_that_is_refused_the_other_form_is_asked_once() -> None:
    class NoRepair(WhiteSpace):
        async def complete(self, request: Request) -> Completion:
            if request.form == "json" and len(request.messages) > 2:
                raise StructureUnsupported("no longer")
            return await super().complete(request)

    model = NoRepair(Completion("nonsense", "stop", "m"))
    with time_limit(60.0), Journal(None) as journal:
        results = asked(model, journal)
    # The answer under the schema is of no use, and so both of the twins rest on the one in the text form.
    assert forms_of_twins(results) == ["text", "text"]
    assert [request.form for request in model.asked if request.response == "same"] == ["json", "text"]


@pytest.mark.parametrize("useless", [BLANK, Completion("nonsense", "stop", "m")])
def test_of_three_forms_each_is_asked_once_while_earlier_replies_are_being_written(tmp_path, useless) -> None:
    """The label is refused; under the schema come white space, or nonsense whose repair is refused."""

    class NoLabels(Scripted):
        async def complete(self, request: Request) -> Completion:
            if request.form == "label" or len(request.messages) > 2:
                raise StructureUnsupported("not here")
            self.script[request.response] = [useless if request.form == "json" else "Grade: 2"]
            return await super().complete(request)

    model = NoLabels(forms=("label", "json", "text"))
    with time_limit(60.0), Journal(tmp_path / "journal") as journal:
        results = asked(model, journal)
    assert [result.form for result in results if isinstance(result, Judgment)] == ["text"] * len(TEXTS)
    counts = Counter((request.response, request.form) for request in model.asked)
    assert set(counts.values()) == {1}
    assert counts["same", "json"] == 1
    assert {text for text, form in counts if form == "text"} == set(TEXTS)


def step(text: str, finish_reason: str, delay: float = 0.0) -> dict[str, Any]:
    """A step of the mock server's script."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return {"status": 200, "delay": delay, "body": {"model": "m", "choices": [choice]}}


@pytest.mark.long
def test_a_server_is_asked_once_for_a_question_in_two_forms(tmp_path) -> None:
    """The first request to come is answered late, the next three with white space; each text stands twice."""
    texts = [f"Text number {number}." for number in range(12)]
    one = pool([*texts, *texts])
    with start_mock("--latency", "0.02") as mock, Journal(tmp_path / "journal.sqlite") as journal:
        blank = step(BLANK.text, "length")
        mock.script(step(JSON.text, "stop", delay=2.0), blank, blank, blank)
        model = open_model("server/mock", ModelOptions(base_url=mock.base_url))
        results = assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=4))
        # Three texts needed another form, and no other text took two requests.
        assert mock.stats()["requests"] == 12 + 3
    judged = [result for result in results if isinstance(result, Judgment)]
    assert len(judged) == 24
    assert [result.request_digest for result in judged[:12]] == [result.request_digest for result in judged[12:]]
