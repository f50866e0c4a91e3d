"""All questions about one response in one call, with a judge that takes several."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.account import GUESS, Account, Budget, Settings
from judge.ask.forecast import forecast
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment, Task, in_order, tasks
from judge.ask.together import Together, split
from judge.errors import (
    AuthenticationError,
    CallError,
    Interrupted,
    OperationalError,
    RateLimitError,
    RejectedError,
    TransientError,
)
from judge.judges.journal import Journal
from judge.judges.model import Model, Price, SentRequests
from judge.judges.records import Completion, Request
from judge.pool.records import Pool
from judge.records import Criterion
from tests.ask.clock import VirtualTime, assess_at_once
from tests.ask.test_loop import criterion, pool, reason
from tests.mock import ask

CRITERIA = tuple(
    msgspec.structs.replace(criterion(name), system=f"Grade {name}.\n{{{{levels}}}}")
    for name in ("groundedness", "naturalness", "completeness")
)
TEXTS = tuple(f"t{index}" for index in range(10))


class Deciding(Model):
    """A judge that decides; each of its errors fails a call, and it refuses some criteria about some texts."""

    name = "fake/deciding"
    forms = ("decision",)

    def __init__(
        self,
        errors: Sequence[Exception] = (),
        *,
        refused: Mapping[str, CallError] | None = None,
        tokens: int | None = 30,
        delay: float = 0.0,
        most: int = 64,
        hook: Callable[[int], None] | None = None,
    ) -> None:
        self.errors = list(errors)
        self.refused = refused or {}
        self.tokens = tokens
        self.delay = delay
        self.asks_together = most
        self.hook = hook or (lambda calls: None)
        self.asked: list[list[Request]] = []
        self.running = self.most_running = 0

    def parameters(self, request: Request) -> Mapping[str, Any]:
        return {"form": request.form}

    def sent(self, request: Request) -> SentRequests | None:
        return SentRequests(1, sum(len(message.content) for message in request.messages), 0)

    async def complete(self, request: Request) -> Completion:
        (reply,) = await self.complete_together([request])
        if isinstance(reply, CallError):
            raise reply
        return reply

    async def complete_together(self, requests: Sequence[Request]) -> list[Completion | CallError]:
        assert len({request.messages[1:] for request in requests}) == 1, "of one material"
        assert len(requests) <= self.asks_together
        self.asked.append(list(requests))
        self.hook(len(self.asked))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(self.delay)
        self.running -= 1
        if self.errors:
            raise self.errors.pop(0)
        return [self.reply(request, len(requests)) for request in requests]

    def reply(self, request: Request, questions: int) -> Completion | CallError:
        if request.criterion in self.refused:
            return self.refused[request.criterion]
        return Completion(
            text=str(len(request.criterion) % 4),
            finish_reason="stop",
            model="m-1",
            prompt_tokens=self.tokens and self.tokens // questions,
            completion_tokens=None if self.tokens is None else 0,
            latency=0.3 / questions,
        )

    @property
    def questions(self) -> list[tuple[str, str]]:
        """What was asked, by text and criterion."""
        return [(request.response, request.criterion) for call in self.asked for request in call]


def judged(
    folder: Path | None,
    model: Deciding,
    *,
    criteria: Sequence[Criterion] = CRITERIA,
    texts: Sequence[str] = TEXTS,
    wanted: Sequence[Task] | None = None,
    at_once: int = 4,
    account: Account | None = None,
    time: VirtualTime | None = None,
    report: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> list[Judgment | Failure]:
    one = pool(texts)
    with Journal(None if folder is None else folder / "journal") as journal:
        results = assess_at_once(
            tasks(one, criteria) if wanted is None else wanted,
            model,
            journal,
            one,
            settings=Settings(**{"concurrency": at_once, "attempts": 3} | settings),
            account=account,
            time=time,
            report=report,
        )
        return list(results)


@pytest.mark.parametrize("at_once", [1, 2, 64])
def test_a_response_is_one_call_however_many_calls_are_in_flight(tmp_path: Path, at_once: int) -> None:
    model, account, seen = Deciding(delay=0.001), Account(), list[Progress]()
    results = judged(tmp_path, model, at_once=at_once, account=account, report=seen.append)
    assert [(result.response_id, result.criterion) for result in results] == [
        (f"R{index:05}", criterion.name) for criterion in CRITERIA for index in range(10)
    ]
    assert all(isinstance(result, Judgment) and result.form == "decision" for result in results)
    assert len(model.asked) == 10
    assert [len(call) for call in model.asked] == [3] * 10
    assert model.most_running == min(at_once, 9)
    assert [progress.done for progress in seen] == [*range(1, 31)]
    (row,) = account.rows()
    assert (row.asked.calls, row.asked.attempts, row.asked.counted, row.asked.timed) == (10, 10, 10, 10)
    assert (row.asked.prompt_tokens, row.asked.seconds) == (300, pytest.approx(3.0))
    assert row.asked == row.results
    with Journal(tmp_path / "journal") as journal:
        assert len(journal) == 30
    again = Deciding(errors=[RejectedError("must not be asked")])
    assert judged(tmp_path, again, at_once=at_once) == results
    assert again.asked == []


def test_results_are_the_same_at_any_concurrency_and_alone(tmp_path: Path) -> None:
    first, *others = (judged(None, Deciding(most=most), at_once=at_once) for most, at_once in (
        (64, 1), (64, 64), (2, 4), (1, 4),
    ))  # fmt: skip
    assert [other == first for other in others] == [True, True, True]


@pytest.mark.parametrize(("most", "sizes"), [(1, {1: 30}), (2, {2: 10, 1: 10}), (3, {3: 10}), (4, {3: 10})])
def test_a_call_holds_no_more_questions_than_the_judge_takes(most: int, sizes: dict[int, int]) -> None:
    model = Deciding(most=most)
    judged(None, model)
    assert Counter(map(len, model.asked)) == sizes


def test_requests_are_divided_by_what_they_show_and_by_their_questions() -> None:
    class Sentences(Deciding):
        def questions_in(self, request: Request) -> int:
            return max(1, request.sentences)

    one, other = (ask("decision", text) for text in ("material", "other"))
    long = msgspec.structs.replace(one, sentences=3)
    longest = msgspec.structs.replace(one, sentences=9)
    assert split(Sentences(most=4), [one, other, long, one, longest, other]) == [[0, 2], [1, 5], [3], [4]]


def test_a_later_criterion_asks_what_is_new_alone(tmp_path: Path) -> None:
    judged(tmp_path, Deciding(), criteria=CRITERIA[:1])
    later = Deciding()
    judged(tmp_path, later, criteria=CRITERIA[:2])
    assert later.questions == [(text, "naturalness") for text in TEXTS]
    last = Deciding()
    judged(tmp_path, last, criteria=CRITERIA, texts=(*TEXTS, "new"))
    assert sorted(map(len, last.asked)) == [1] * 10 + [3]


def test_who_waits_for_something_else_holds_nobody_up_and_may_come_back() -> None:
    model = Deciding()

    async def paid_call(requests: Sequence[Request]) -> list[Completion | CallError]:
        return await model.complete_together(requests)

    async def whole() -> None:
        together = Together(model, paid_call, 3)
        one, other, third = (ask("decision", criterion=name) for name in ("a", "b", "c"))
        with together.aside():
            waiting = asyncio.ensure_future(together.completion(one))
            await asyncio.sleep(0.01)
            assert model.asked == []
            second = asyncio.ensure_future(together.completion(other))
            await asyncio.wait([waiting, second])
        # Whoever comes back waits for those that have not left.
        last = asyncio.ensure_future(together.completion(third))
        await asyncio.sleep(0.01)
        together.leave()
        await asyncio.sleep(0.01)
        assert len(model.asked) == 1
        assert not together.over.is_set()
        together.leave()
        await last
        assert [len(call) for call in model.asked] == [2, 1]
        together.leave()
        assert together.over.is_set()

    asyncio.run(whole())


def test_equal_questions_are_asked_once() -> None:
    """Of one response in one group, and of two responses with the same text in groups that wait for each other."""
    one = pool(["same", "other"])
    response = one.responses[0]
    twins = [Task(response, each) for each in (CRITERIA[0], CRITERIA[0], CRITERIA[1])]
    model = Deciding(delay=0.001)
    results = judged(None, model, texts=["same", "other"], wanted=twins)
    assert (len(results), len(model.asked), len(model.questions)) == (3, 1, 2)
    texts = ["same"] * 5
    crossed = [Task(other, each) for other in pool(texts).responses for each in CRITERIA]
    for at_once in (1, 2, 64):
        model = Deciding(delay=0.001)
        results = judged(None, model, texts=texts, wanted=crossed, at_once=at_once)
        assert all(isinstance(result, Judgment) for result in results)
        assert (len(model.asked), len(model.questions)) == (1, 3)


def test_groups_that_wait_for_each_other_come_to_an_end() -> None:
    """The first group asks a and waits for b, the second asks b and waits for a."""
    texts = ["x", "same", "same"]
    first, second = pool(texts).responses[1:]
    wanted = [
        Task(pool(texts).responses[0], CRITERIA[2]),
        *(Task(first, each) for each in CRITERIA[:2]),
        *(Task(second, each) for each in CRITERIA[1::-1]),
    ]
    model = Deciding(delay=0.001)
    results = judged(None, model, texts=texts, wanted=wanted, at_once=2)
    assert all(isinstance(result, Judgment) for result in results)
    assert len(model.questions) == 3


@pytest.mark.parametrize("error", [RejectedError("not this one"), TransientError("lost")])
def test_a_question_that_fails_is_a_failure_of_its_own(tmp_path: Path, error: CallError) -> None:
    model, account = Deciding(refused={"naturalness": error}), Account()
    results = judged(tmp_path, model, account=account)
    failed = [result for result in results if isinstance(result, Failure)]
    assert {(result.criterion, result.reason) for result in failed} == {("naturalness", "provider_error")}
    assert (len(failed), len(model.asked)) == (10, 10)
    (row,) = account.rows()
    assert (row.asked.calls, row.asked.prompt_tokens) == (10, 200)
    with Journal(tmp_path / "journal") as journal:
        assert len(journal) == 20


def test_an_answer_that_cannot_be_read_is_a_failure_of_its_own() -> None:
    class Odd(Deciding):
        def reply(self, request: Request, questions: int) -> Completion | CallError:
            reply = super().reply(request, questions)
            assert isinstance(reply, Completion)
            text = "" if request.criterion == "completeness" else reply.text
            return msgspec.structs.replace(reply, text=text)

    model = Odd()
    results = judged(None, model)
    assert Counter((result.criterion, type(result)) for result in results) == {
        ("groundedness", Judgment): 10, ("naturalness", Judgment): 10, ("completeness", Failure): 10,
    }  # fmt: skip
    assert len(model.asked) == 10


@pytest.mark.parametrize(("error", "attempts"), [(TransientError("500"), 2), (RateLimitError("429", 5.0), 2)])
def test_a_call_that_fails_is_made_again_as_one(tmp_path: Path, error: Exception, attempts: int) -> None:
    model, account, time = Deciding([error]), Account(), VirtualTime()
    results = judged(tmp_path, model, texts=TEXTS[:2], account=account, time=time)
    assert all(isinstance(result, Judgment) for result in results)
    assert [len(call) for call in model.asked] == [3, 3, 3]
    (row,) = account.rows()
    assert (row.asked.calls, row.asked.attempts, row.expected.calls) == (2, 3, 2)
    with Journal(tmp_path / "journal") as journal:
        told = [journal.get(result.request_digest) for result in results if isinstance(result, Judgment)]
    # By criterion and then by response: the first question of a call says what all of them took.
    assert [completion.attempts for completion in told] == [attempts, 1, 0, 0, 0, 0]
    assert [completion.latency is None for completion in told] == [False, False, True, True, True, True]


def test_a_call_that_is_given_up_counts_once() -> None:
    """Three calls in a row are believed, and one with three questions is no three calls."""
    model = Deciding([TransientError("503")] * 2)
    results = judged(None, model, at_once=1, attempts=1)
    assert [reason(result) for result in results if isinstance(result, Failure)] == ["provider_error"] * 6
    dead = Deciding([TransientError("503")] * 1000)
    with pytest.raises(OperationalError, match="does not answer: 3 calls in a row"):
        judged(None, dead, at_once=1, attempts=1)
    assert len(dead.asked) == 3


def test_a_refused_call_fails_for_all_its_questions() -> None:
    model = Deciding([RejectedError("400: no")])
    results = judged(None, model, at_once=1)
    failed = [result for result in results if isinstance(result, Failure)]
    assert {(result.response_id, result.reason) for result in failed} == {("R00000", "provider_error")}
    assert len(failed) == 3


def test_a_refused_key_ends_the_run_with_one_call() -> None:
    model = Deciding([AuthenticationError("401: no such key")] * 9)
    with pytest.raises(AuthenticationError, match="401: no such key"):
        judged(None, model)
    assert len(model.asked) == 1


def test_a_judge_that_refuses_each_question_has_answered() -> None:
    """A call that was given up before is no sign of a judge that is not there."""
    refused = {criterion.name: RejectedError("no") for criterion in CRITERIA}
    model = Deciding([TransientError("503")], refused=refused)
    results = judged(None, model, texts=TEXTS[:2], attempts=1)
    assert (len(results), len(model.asked)) == (6, 2)


def test_a_pool_of_one_response_is_one_call_whatever_comes_of_it() -> None:
    model = Deciding(refused={criterion.name: RejectedError("no") for criterion in CRITERIA})
    results = judged(None, model, texts=["alone"])
    assert [reason(result) for result in results] == ["provider_error"] * 3
    assert len(model.asked) == 1


def test_a_judge_that_is_never_read_is_paid_for_three_calls() -> None:
    model = Deciding(refused={criterion.name: RejectedError("no") for criterion in CRITERIA})
    with pytest.raises(OperationalError, match="the first 3 questions failed alike"):
        judged(None, model)
    assert [call[0].response for call in model.asked] == ["t0", "t9", "t5"]


def test_each_kind_of_answer_has_first_questions_of_its_own() -> None:
    """A group has all kinds, so that one kind that cannot be answered is found by the same calls."""
    labels = msgspec.structs.replace(
        CRITERIA[2], answer="sentences", sentence_levels=CRITERIA[2].scale.levels, inputs=("response", "sentences"),
        user="{{sentences}}",
    )  # fmt: skip
    model = Deciding(refused={"completeness": RejectedError("no sentences")})
    with pytest.raises(OperationalError, match=r"the first 3 questions failed alike.*: no sentences"):
        judged(None, model, criteria=(*CRITERIA[:2], labels))
    assert len(model.asked) in (3, 4)


@pytest.mark.parametrize(("tokens", "counted"), [(30, True), (None, False)])
def test_a_budget_is_spent_by_calls(tokens: int | None, counted: bool) -> None:
    """A call costs 30 × $0.01, by our own estimate a little more; a budget of $1 ends after the fourth."""
    model, account, seen = Deciding(tokens=tokens), Account(), list[Progress]()
    prices = {"*": Price(0.01 if counted else 0.003, 0.0)}
    results = judged(None, model, at_once=1, max_cost=1.0, prices=prices, account=account, report=seen.append)
    assert [reason(result) for result in results if isinstance(result, Failure)] == ["budget"] * 3 * (
        10 - len(model.asked)
    )
    (row,) = account.rows()
    if counted:
        assert (len(model.asked), seen[-1].cost, seen[-1].estimated) == (4, pytest.approx(1.2), 0)
        assert (row.asked.cost, row.asked.priced) == (pytest.approx(1.2), 4)
    else:
        one = _tokens(model.asked[0]) * 0.003
        assert (seen[-1].cost, seen[-1].estimated) == (pytest.approx(one * len(model.asked)), len(model.asked))
        assert one * (len(model.asked) - 1) < 1.0 <= one * len(model.asked)


def test_a_call_with_some_tokens_uncounted_is_estimated_as_a_whole() -> None:
    budget = Budget(Deciding(), None, {"*": Price(1.0, 0.0)})
    requests = [ask("decision"), ask("decision")]
    counted = Completion("2", "stop", None, prompt_tokens=5, completion_tokens=0)
    charged = budget.charge(requests, [counted, msgspec.structs.replace(counted, prompt_tokens=None)])
    sizes = [len(message.content) for message in requests[0].messages]
    assert (budget.spent, budget.estimated) == (-(-(2 * sizes[0] + sizes[1]) // 4), 1)
    assert [completion.cost for completion in charged] == [None, None]


def test_a_limit_of_requests_counts_calls() -> None:
    time = VirtualTime()
    judged(None, Deciding(), time=time, rpm=60)
    # Ten calls, of which the first goes at once.
    assert time.now == pytest.approx(9.0, abs=0.2)


def test_a_limit_of_tokens_counts_what_is_shown_once() -> None:
    model, time = Deciding(), VirtualTime()
    judged(None, model, time=time, tpm=600)
    sent = [_tokens(call) for call in model.asked]
    # Ten tokens a second; the last call goes out when those before it have passed.
    assert time.now == pytest.approx(sum(sent[:-1]) / 10, abs=0.3)


def _tokens(call: Sequence[Request]) -> int:
    """Those of a call of `Deciding`, at 4 bytes a token: what all questions show is in it once."""
    shown = len(call[0].messages[1].content)
    return -(-(shown + sum(len(request.messages[0].content) for request in call)) // 4)


def test_ctrl_c_finishes_the_calls_in_flight_and_keeps_all_their_answers(tmp_path: Path) -> None:
    model = Deciding(delay=0.02, hook=lambda calls: os.kill(os.getpid(), signal.SIGINT) if calls == 4 else None)
    with pytest.raises(Interrupted, match="of 30 judgments made"):
        judged(tmp_path, model)
    assert 4 <= len(model.asked) < 10
    later = Deciding()
    assert all(isinstance(result, Judgment) for result in judged(tmp_path, later))
    assert sorted(model.questions + later.questions) == sorted(
        (text, criterion.name) for text in TEXTS for criterion in CRITERIA
    )


def test_a_second_ctrl_c_breaks_the_calls_off(tmp_path: Path) -> None:
    def hook(calls: int) -> None:
        if calls == 4:
            model.delay = 300.0
            loop = asyncio.get_running_loop()
            for later in (0.05, 0.1):
                loop.call_later(later, os.kill, os.getpid(), signal.SIGINT)

    model = Deciding(hook=hook)
    with pytest.raises(KeyboardInterrupt):
        judged(tmp_path, model)
    later = Deciding()
    assert all(isinstance(result, Judgment) for result in judged(tmp_path, later))
    assert len(later.asked) <= 10


def test_an_error_nobody_foresaw_is_raised_and_nothing_hangs(tmp_path: Path) -> None:
    for error in (KeyError("a bug"), ValueError("another")):
        with pytest.raises(type(error)):
            judged(tmp_path, Deciding([error]))


class Plain(Deciding):
    """One that sends its requests as they are."""

    def sent(self, request: Request) -> SentRequests | None:
        return None


@pytest.mark.parametrize("kind", [Deciding, Plain])
@pytest.mark.parametrize("most", [1, 2, 64])
def test_a_forecast_counts_the_calls_that_are_made(tmp_path: Path, most: int, kind: type[Deciding]) -> None:
    judged(tmp_path, kind(most=most), criteria=CRITERIA[:1], texts=TEXTS[:4])
    one: Pool = pool((*TEXTS, "t3"))
    with Journal(tmp_path / "journal") as journal:
        told = forecast(Questions(kind(most=most), journal, one, None), tasks(one, CRITERIA), Settings(), 1000)
    model, account = kind(most=most), Account()
    judged(tmp_path, model, texts=(*TEXTS, "t3"), account=account)
    (row,) = account.rows()
    assert (told.judgments, told.recalled, told.shared) == (33, 5, 2)
    assert (told.expected.calls, told.expected.attempts) == (len(model.asked), len(model.asked))
    assert row.expected == told.expected
    assert (told.counted_calls, told.bytes_per_token) == (0, 4.0)


def test_shares_of_calls_teach_no_rates(tmp_path: Path) -> None:
    class Counting(Deciding):
        """A server that counts a token of each answer."""

        def reply(self, request: Request, questions: int) -> Completion | CallError:
            reply = super().reply(request, questions)
            assert isinstance(reply, Completion)
            return msgspec.structs.replace(reply, completion_tokens=1)

    judged(tmp_path, Counting(tokens=120))
    one = pool(TEXTS)
    with Journal(tmp_path / "journal") as journal:
        assert Questions(Counting(), journal, one, None).sample.rates() == GUESS


def test_tasks_go_by_response_where_they_are_asked_together() -> None:
    wanted = tasks(pool(["a", "b", "c"]), CRITERIA)
    assert in_order(wanted, range(9), together=True) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert in_order(wanted, range(9)) == [6, 7, 8, 0, 1, 2, 3, 4, 5]
