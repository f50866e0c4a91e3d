import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge import errors
from judge.ask.account import Account, Settings
from judge.ask.forecast import forecast
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment, Task, in_order, tasks
from judge.judges.journal import Journal
from judge.judges.model import FREE, Model, Price
from judge.judges.records import AnswerForm, Completion, Request
from judge.pool.records import Pool
from judge.records import Criterion, Level, Passage, Scale
from tests.ask.clock import assess_at_once
from tests.build import pooled

LEVELS = tuple(Level(grade, str(grade), f"level {grade}") for grade in range(4))
SCALE = Scale(LEVELS, "higher", (2, 3), None)


def criterion(name: str = "naturalness", inputs: tuple[str, ...] = ("response",)) -> Criterion:
    return Criterion(
        name=name, variant="test", version=1, inputs=inputs, answer="grade", scale=SCALE, sentence_levels=(),
        rollup=None, system="Grade.\n{{levels}}", user="".join(f"{{{{{one}}}}}\n" for one in inputs) + "{{answer}}",
        file="test.md", digest=f"digest of {name}",
    )  # fmt: skip


def pool(texts: Sequence[str], passages: tuple[str, ...] = ("p1",), known: bool = True) -> Pool:
    return Pool(
        responses=tuple(
            pooled(f"R{index:05}", f"1-1_{index}", "run", text=text, passages=passages)
            for index, text in enumerate(texts)
        ),
        passages={key: Passage(key, f"text of {key}", "collection") for key in passages} if known else {},
        exclusions=(),
    )  # fmt: skip


Answer = str | Exception | Completion


class Scripted(Model):
    """A model that answers by script: per response text a list of answers, the last one repeated."""

    name = "fake/scripted"

    def __init__(
        self,
        script: Mapping[str, Sequence[Answer]] | None = None,
        default: Answer = "Grade: 2",
        forms: tuple[AnswerForm, ...] = ("text",),
        delay: float = 0.0,
        hook: Callable[[int], None] | None = None,
    ) -> None:
        self.script = {text: list(answers) for text, answers in (script or {}).items()}
        self.default = default
        self.forms = forms
        self.delay = delay
        self.hook = hook or (lambda calls: None)
        self.asked: list[Request] = []
        self.closed = False

    def parameters(self, request: Request) -> Mapping[str, Any]:
        return {"form": request.form}

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        self.hook(len(self.asked))
        await asyncio.sleep(self.delay)
        answers = self.script.get(request.response, [self.default])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Completion):
            return answer
        return Completion(text=answer, finish_reason="stop", model="m-1", cost=0.01)

    async def aclose(self) -> None:
        self.closed = True


QUICK = Settings(concurrency=4, attempts=3)


def judged(
    tmp_path: Path | None, model: Scripted, texts: Sequence[str], settings: Settings = QUICK, **options: Any
) -> list[Judgment | Failure]:
    """What the loop makes of the texts, with a journal in a folder; None for one in memory."""
    one = pool(texts)
    with Journal(tmp_path and tmp_path / "journal") as journal:
        return assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=settings, **options)


def reason(result: Judgment | Failure) -> str:
    assert isinstance(result, Failure)
    return result.reason


def test_each_task_gets_its_grade_in_order() -> None:
    model = Scripted({"a": ["Grade: 1"], "b": ["Fluent.\nGrade: 3"]})
    first, second = judged(None, model, ["a", "b"])
    assert isinstance(first, Judgment)
    assert isinstance(second, Judgment)
    assert (first.response_id, first.grade) == ("R00000", 1)
    assert (second.response_id, second.grade) == ("R00001", 3)
    assert (second.judge, second.model, second.form, second.repaired) == ("fake/scripted", "m-1", "text", False)
    assert model.closed


def test_a_second_run_asks_for_nothing_and_says_the_same(tmp_path: Path) -> None:
    texts = ["a", "b", "c"]
    once = judged(tmp_path, Scripted(), texts)
    silent = Scripted(default=errors.RejectedError("must not be asked"))
    assert judged(tmp_path, silent, texts) == once
    assert silent.asked == []


def test_identical_requests_in_flight_are_paid_once() -> None:
    """Naturalness sees only the response: the same text in two turns is the same question."""
    model = Scripted(delay=0.02)
    results = judged(None, model, ["same", "same", "same", "other"])
    assert len(results) == 4
    assert all(isinstance(result, Judgment) for result in results)
    assert len(model.asked) == 2


def test_passing_failures_are_retried_and_counted(tmp_path: Path) -> None:
    model = Scripted({"a": [errors.TransientError("429"), errors.TransientError("503"), "Grade: 0"]})
    (result,) = judged(tmp_path, model, ["a"])
    assert isinstance(result, Judgment)
    assert result.grade == 0
    with Journal(tmp_path / "journal") as journal:
        recorded = journal.get(result.request_digest)
    assert recorded.attempts == 3


def test_retries_end_in_a_failure_and_the_next_run_asks_again(tmp_path: Path) -> None:
    model = Scripted({"a": [errors.TransientError("503 busy")]})
    first, second = judged(tmp_path, model, ["a", "b"])
    assert reason(first) == "provider_error"
    assert isinstance(second, Judgment)
    assert len(model.asked) == 3 + 1
    again = Scripted()
    assert isinstance(judged(tmp_path, again, ["a", "b"])[0], Judgment)
    assert len(again.asked) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.ContextLengthError("too long"), "context_length"),
        (errors.ContentFilterError("blocked"), "content_filter"),
        (errors.RejectedError("422"), "provider_error"),
    ],
)
def test_what_cannot_succeed_is_not_retried(error: errors.CallError, expected: str) -> None:
    model = Scripted({"a": [error]})
    assert reason(judged(None, model, ["a", "b"])[0]) == expected
    assert len(model.asked) == 2


@pytest.mark.parametrize("error", [errors.AuthenticationError("401: bad key"), errors.QuotaError("insufficient_quota")])
def test_a_refused_key_stops_the_run_at_once(error: errors.OperationalError) -> None:
    model = Scripted({f"t{index}": [error] for index in range(20)})
    with pytest.raises(type(error), match=str(error)):
        judged(None, model, [f"t{index}" for index in range(20)])
    assert len(model.asked) <= QUICK.concurrency
    assert model.closed


def test_an_unreadable_reply_is_repaired_once() -> None:
    model = Scripted({"a": ["I like it.", "Grade: 3"], "b": ["no", "still no"]})
    first, second = judged(None, model, ["a", "b"])
    assert isinstance(first, Judgment)
    assert (first.grade, first.repaired) == (3, True)
    assert isinstance(second, Failure)
    assert (second.reason, second.raw) == ("unreadable", "still no")
    assert Counter(request.response for request in model.asked) == {"a": 2, "b": 2}


def test_unreadable_replies_are_paid_for_and_not_asked_again(tmp_path: Path) -> None:
    judged(tmp_path, Scripted({"a": ["no", "still no"]}), ["a"])
    silent = Scripted(default=errors.RejectedError("must not be asked"))
    assert reason(judged(tmp_path, silent, ["a"])[0]) == "unreadable"
    assert silent.asked == []


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (Completion(text="Reasons that never", finish_reason="length", model="m"), "truncated"),
        (Completion(text="", finish_reason="content_filter", model="m"), "content_filter"),
        (Completion(text="I'm sorry, but I can't help with that.", finish_reason="stop", model="m"), "refused"),
    ],
)
def test_a_failure_is_never_a_grade(completion: Completion, expected: str) -> None:
    assert reason(judged(None, Scripted({"a": [completion]}), ["a"])[0]) == expected


@pytest.mark.parametrize(("passages", "known"), [((), True), (("p1", "p2"), False)])
def test_no_judge_is_asked_to_imagine_passages(tmp_path: Path, passages: tuple[str, ...], known: bool) -> None:
    model = Scripted()
    one = pool(["a"], passages, known)
    with Journal(tmp_path / "journal") as journal:
        asked = tasks(one, [criterion("groundedness", ("response", "passages"))])
        (result,) = assess(asked, model, journal, one, settings=QUICK)
    assert reason(result) == "no_passages"
    assert model.asked == []


def test_an_endpoint_without_structured_output_is_asked_in_text_and_remembered(tmp_path: Path) -> None:
    class NoSchema(Scripted):
        async def complete(self, request: Request) -> Completion:
            if request.form == "json":
                self.asked.append(request)
                raise errors.StructureUnsupported("response_format is not supported")
            return await super().complete(request)

    model = NoSchema(forms=("json", "text"))
    results = judged(tmp_path, model, [f"t{index}" for index in range(12)])
    assert all(isinstance(result, Judgment) and result.form == "text" for result in results)
    assert sum(request.form == "json" for request in model.asked) <= QUICK.concurrency
    later = NoSchema(forms=("json", "text"))
    judged(tmp_path, later, ["new"])
    assert [request.form for request in later.asked] == ["text"]


def test_the_budget_is_kept() -> None:
    """At $0.01 a call, $0.05 buys five; up to concurrency - 1 more may already be in flight."""
    model = Scripted()
    settings = Settings(concurrency=1, max_cost=0.05)
    results = judged(None, model, [f"t{index}" for index in range(20)], settings)
    assert len(model.asked) == 5
    assert [isinstance(result, Judgment) for result in results] == [True] * 5 + [False] * 15
    assert {reason(result) for result in results[5:]} == {"budget"}


def reply(prompt: int | None, completion: int | None, cost: float | None = None) -> Completion:
    return Completion("Grade: 2", "stop", "m", prompt_tokens=prompt, completion_tokens=completion, cost=cost)


TEN_CENTS = {"*": Price(0.001, 0.01)}
"""A prompt of 20 tokens and a reply of 8 cost $0.10."""


DEAR = {"fake/scripted": Price(1.0, 1.0), "another/model": Price(9.0, 9.0)}
"""Buys one call where nothing wins over it."""


@pytest.mark.parametrize(
    ("completion", "options", "cost"),
    [
        # What the provider bills is another price than the user's.
        (reply(20, 8), {"prices": TEN_CENTS}, 0.10),
        (reply(20, 8, 55.0), {"prices": TEN_CENTS}, 0.10),
        # 12 of 20 tokens from a cache: 8 × $0.001 + 12 × $0.0001 + 8 × $0.01.
        (msgspec.structs.replace(reply(20, 8), cached_tokens=12), {"prices": {"*": Price(0.001, 0.01, 0.0001)}},
            0.0892),
        # A price of the command line wins over the table.
        (reply(20, 8), {"prices": {"fake/scripted": Price(0.001, 0.01)}, "price_table": DEAR}, 0.10),
    ],
)  # fmt: skip
def test_a_price_of_the_user_is_what_a_call_costs(completion, options, cost) -> None:
    """$0.25 buys three calls."""
    model, seen = Scripted(default=completion), list[Progress]()
    settings = Settings(concurrency=1, max_cost=0.25, **options)
    judged(None, model, [f"t{index}" for index in range(6)], settings, report=seen.append)
    assert (len(model.asked), seen[-1].cost, seen[-1].estimated) == (3, pytest.approx(3 * cost), 0)


@pytest.mark.parametrize(
    "counts", [(None, None), (-20, -8), (-20, 5000), (0, 0), (20, 0), (None, 8), (20, None), (None, None, 0.0)]
)
def test_counts_that_cannot_be_true_make_no_budget_endless(tmp_path: Path, counts: tuple[Any, ...]) -> None:
    model = Scripted(default=reply(*counts))
    settings = Settings(concurrency=1, max_cost=0.5, prices={"fake/scripted": Price(0.001, 0.01)})
    seen: list[Progress] = []
    results = judged(tmp_path, model, [f"t{index}" for index in range(40)], settings, report=seen.append)
    prompt = math.ceil(sum(len(message.content) for message in model.asked[0].messages) / 4)
    each = prompt * 0.001 + math.ceil(len("Grade: 2") / 4) * 0.01
    assert len(model.asked) == math.ceil(0.5 / each) < 40
    assert seen[-1].estimated == len(model.asked)
    missing = results[-1]
    assert isinstance(missing, Failure)
    assert missing.reason == "budget"
    assert f"our own estimate of the tokens of {len(model.asked)} replies" in missing.detail
    with Journal(tmp_path / "journal") as journal:
        recorded = journal.get(next(result for result in results if isinstance(result, Judgment)).request_digest)
    # An estimate is no fact about the call.
    assert recorded.cost is None


@pytest.mark.parametrize("counts", [(20, 8), (None, None)])
def test_calls_in_flight_count_against_the_budget(counts: tuple[Any, ...]) -> None:
    """Sixteen calls at once would cost three times the budget before the first has come back."""
    settings = Settings(concurrency=16, max_cost=0.5, prices=TEN_CENTS)
    model = Scripted(default=reply(*counts), delay=0.01)
    seen: list[Progress] = []
    results = judged(None, model, [f"t{index}" for index in range(40)], settings, report=seen.append)
    assert 0.5 <= seen[-1].cost <= 0.6
    assert len(model.asked) == sum(isinstance(result, Judgment) for result in results)
    assert {reason(result) for result in results if isinstance(result, Failure)} == {"budget"}


def test_calls_wait_for_the_budget_and_are_all_made_if_it_lasts() -> None:
    """Each call is thought to cost $1.5 and costs $0.1: 40 calls are paid with $4.05, though not 16 at a time."""
    settings = Settings(concurrency=16, max_cost=4.05, prices=TEN_CENTS)
    model = Scripted(default=reply(20, 8), delay=0.001)
    results = judged(None, model, [f"t{index}" for index in range(40)], settings)
    assert all(isinstance(result, Judgment) for result in results)


def test_a_call_that_fails_gives_its_share_of_the_budget_back() -> None:
    settings = Settings(concurrency=4, attempts=1, max_cost=0.11, prices=TEN_CENTS)
    model = Scripted({f"t{index}": [errors.RejectedError("no")] for index in range(6)}, reply(20, 8), delay=0.001)
    results = judged(None, model, ["first", *(f"t{index}" for index in range(6))], settings)
    assert [reason(result) for result in results[1:]] == ["provider_error"] * 6


def test_a_judge_that_nobody_bills_needs_no_estimate() -> None:
    class Free(Scripted):
        def price(self) -> Price:
            return Price(0.0, 0.0)

    seen: list[Progress] = []
    judged(None, Free(default=reply(None, None)), ["a", "b"], report=seen.append)
    assert (seen[-1].cost, seen[-1].estimated) == (0.0, 0)


def test_concurrency_is_bounded() -> None:
    running = most = 0

    class Counting(Scripted):
        async def complete(self, request: Request) -> Completion:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await super().complete(request)
            finally:
                running -= 1

    judged(None, Counting(delay=0.005), [f"t{index}" for index in range(30)], Settings(concurrency=7))
    assert most == 7


def test_progress_counts_every_task_once(tmp_path: Path) -> None:
    seen: list[Progress] = []
    judged(tmp_path, Scripted(), ["a", "b"])
    judged(tmp_path, Scripted({"c": ["no"]}), ["a", "b", "c"], report=seen.append)
    assert [progress.done for progress in seen] == [1, 2, 3]
    assert seen[-1].recalled == 2
    assert seen[-1].failures == 1
    assert seen[-1].cost == pytest.approx(0.02)


def test_a_forecast_explains_every_judgment_without_asking(tmp_path: Path) -> None:
    judged(tmp_path, Scripted(), ["a", "b"])
    one = pool(["a", "b", "c", "c", "d", "c"])
    grounded = criterion("groundedness", ("response", "passages"))
    model = Scripted()
    with Journal(tmp_path / "journal") as journal:
        counts = forecast(Questions(model, journal, one, None), tasks(one, [criterion()]), QUICK, 1000)
        # a and b are in the journal; c stands for three responses, d for one.
        assert (counts.judgments, counts.without_evidence, counts.recalled, counts.shared) == (6, 0, 2, 2)
        expected = counts.expected
        assert (expected.calls, expected.attempts, expected.completion_tokens, counts.counted_calls) == (2, 2, 300, 0)
        unknown = pool(["a", "b", "c"], ("p1", "p2"), known=False)
        questions = Questions(model, journal, unknown, None)
        counts = forecast(questions, tasks(unknown, [criterion(), grounded]), QUICK, 1000)
        assert (counts.judgments, counts.without_evidence, counts.recalled, counts.expected.calls) == (6, 3, 2, 1)
    assert counts.expected.prompt_tokens > 0
    assert model.asked == []


def test_tasks_go_by_criterion_and_then_by_turn() -> None:
    one = pool(["a", "b"])
    first, second = criterion("groundedness"), criterion("naturalness")
    assert tuple(tasks(one, [first, second])) == (
        Task(one.responses[0], first),
        Task(one.responses[1], first),
        Task(one.responses[0], second),
        Task(one.responses[1], second),
    )


def test_neighbors_follow_each_other() -> None:
    """By prompt and turn, whatever the order of the numbers."""
    wanted = tasks(pool(["a", "b", "c", "d", "e"]), [criterion("naturalness"), criterion("groundedness")])
    assert in_order(wanted, [4, 0, 9, 2, 5]) == [5, 9, 0, 2, 4]


def test_an_error_nobody_foresaw_lets_calls_in_flight_land(tmp_path: Path) -> None:
    model = Scripted({"t3": [KeyError("a bug")]}, delay=0.02)
    with pytest.raises(KeyError, match="a bug"):
        judged(tmp_path, model, [f"t{index}" for index in range(20)])
    with Journal(tmp_path / "journal") as journal:
        assert len(journal) == len(model.asked) - 1


def test_a_reporter_that_fails_loses_nothing(tmp_path: Path) -> None:
    def report(progress: Progress) -> None:
        raise OSError("the terminal is gone")

    model = Scripted(delay=0.02)
    with pytest.raises(OSError, match="the terminal is gone"):
        judged(tmp_path, model, [f"t{index}" for index in range(20)], report=report)
    with Journal(tmp_path / "journal") as journal:
        assert len(journal) == len(model.asked)


def test_completions_paid_before_a_fall_back_to_text_are_found_again(tmp_path: Path) -> None:
    """Some JSON replies came before the endpoint began to refuse the schema: they stay good."""

    class Moody(Scripted):
        async def complete(self, request: Request) -> Completion:
            if request.form == "json" and len(self.asked) >= 6:
                self.asked.append(request)
                raise errors.StructureUnsupported("no longer")
            self.asked.append(request)
            return Completion('{"rationale": "r", "grade": "3"}' if request.form == "json" else "Grade: 1", "stop", "m")

    texts = [f"t{index}" for index in range(20)]
    first = judged(tmp_path, Moody(forms=("json", "text")), texts)
    assert {result.form for result in first if isinstance(result, Judgment)} == {"json", "text"}
    silent = Scripted(default=errors.RejectedError("must not be asked"), forms=("json", "text"))
    assert judged(tmp_path, silent, texts) == first
    assert silent.asked == []


@pytest.mark.parametrize(
    "completion",
    [
        Completion("Grade: 1", "stop", "m", probabilities={"0": float("nan")}),
        Completion("Grade: 1", "stop", "m", probabilities={"0": float("inf"), "1": 0.5}),
        Completion("Grade: 1", "stop", "m", prompt_tokens=1.5),  # type: ignore[arg-type]
        Completion("Grade: 1", "stop", "m", completion_tokens=-3, cost=float("nan")),
        Completion("Grade: 1", "stop", 5),  # type: ignore[arg-type]
        Completion("I cut \ud83d\nGrade: 1", "stop", "m"),
    ],
)
def test_a_paid_reply_counts_whatever_it_says_of_itself(tmp_path: Path, completion: Completion) -> None:
    (result,) = judged(tmp_path, Scripted({"a": [completion]}), ["a"])
    assert isinstance(result, Judgment)
    assert (result.grade, result.probabilities) == (1, None)
    silent = Scripted(default=errors.RejectedError("must not be asked"))
    assert list(judged(tmp_path, silent, ["a"])) == [result]
    assert silent.asked == []


def test_after_a_stop_no_repair_begins() -> None:
    model = Scripted(
        {"t0": [errors.AuthenticationError("401")], **{f"t{index}": ["unreadable"] for index in range(1, 4)}},
        delay=0.02,
    )
    with pytest.raises(errors.AuthenticationError) as ended:
        judged(None, model, ["first", "t0", "t1", "t2", "t3"])
    assert len(model.asked) == 1 + 4
    # Its traceback is that of one call.
    assert [entry.name for entry in ended.traceback].count("_judge") == 1


def test_an_endpoint_that_dies_on_the_way_stops_the_run() -> None:
    model = Scripted({f"t{index}": [errors.TransientError("503")] for index in range(10, 60)})
    with pytest.raises(errors.OperationalError, match="does not answer"):
        judged(None, model, [f"t{index}" for index in range(60)])
    # After the last of the ten answers, twenty in a row fail three times, and those that are in flight then.
    order = [request.response for request in model.asked]
    answered = [f"t{index}" for index in range(10)]
    failing = order[max(map(order.index, answered)) + 1 :]
    assert sorted(set(order) & set(answered)) == sorted(answered), order
    assert len(failing) <= 3 * (20 + QUICK.concurrency), order


@pytest.mark.parametrize("first", [0, 20])
@pytest.mark.parametrize("concurrency", [1, 4, 16])
def test_neighbors_that_no_judge_can_read_stop_no_run(first: int, concurrency: int) -> None:
    """Sixteen in a row, at the beginning and in the middle of the pool."""
    texts = [f"t{index}" for index in range(60)]
    poisoned = texts[first : first + 16]
    model = Scripted({text: [errors.TransientError("500")] for text in poisoned}, delay=0.001)
    results = judged(None, model, texts, Settings(concurrency=concurrency, attempts=2))
    assert [isinstance(one, Failure) for one in results] == [text in poisoned for text in texts]
    assert len(model.asked) == 60 + 16


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("concurrency", [1, 4, 16])
def test_a_judge_that_is_silent_is_asked_no_more_than_needed(concurrency: int, attempts: int) -> None:
    model, settings = Scripted(default=errors.TransientError("refused"), delay=0.001), Settings(concurrency, attempts)
    enough = max(3, concurrency)
    with pytest.raises(
        errors.OperationalError, match=f"does not answer: {enough} calls in a row were given up.*refused"
    ):
        judged(None, model, [f"t{index}" for index in range(200)], settings)
    assert len(model.asked) < attempts * (enough + concurrency)


def test_calls_given_up_now_and_then_do_not_stop_the_run() -> None:
    texts = [f"t{index}" for index in range(60)]
    model = Scripted({text: [errors.TransientError("503")] for text in texts[::2]})
    results = judged(None, model, texts, Settings(concurrency=1, attempts=1))
    assert [isinstance(one, Judgment) for one in results] == [False, True] * 30


def test_an_error_that_stops_the_run_names_the_response_where_others_were_answered(tmp_path: Path) -> None:
    texts = ["a", "b", "blocked"]
    model = Scripted({"blocked": [errors.AuthenticationError("403: blocked")]})
    about = r"403: blocked; others had an answer, and this call was about R00002 of turn "
    for _ in ("asked", "asked again"):
        with pytest.raises(errors.AuthenticationError, match=about):
            judged(tmp_path, model, texts, Settings(concurrency=1, attempts=1))
    with pytest.raises(errors.AuthenticationError, match=r"blocked$"):
        judged(tmp_path, model, ["blocked"])


class SlowDisk(Journal):
    """A journal that begins to write only when `landing` says so, but for the first reply, which is waited for."""

    def __init__(self, path: Path, landing: Callable[["SlowDisk"], bool]) -> None:
        super().__init__(path)
        self.begun = self.written = self.most = 0
        self.landing = landing
        self.waiting: list[asyncio.Task[None]] = []

    def write(self, *what: Any) -> "asyncio.Future[None]":
        self.begun += 1
        self.most = max(self.most, self.begun - self.written)
        self.waiting.append(asyncio.ensure_future(self._later(what, is_first=self.begun == 1)))
        return self.waiting[-1]

    async def _later(self, what: Sequence[Any], *, is_first: bool) -> None:
        while not (is_first or self.landing(self)):
            await asyncio.sleep(0.001)
        await Journal.write(self, *what)
        self.written += 1


def test_the_next_call_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    """Four calls in flight: the disk takes nothing before eight replies are there, and no more are ever unwritten."""
    one = pool([f"t{index}" for index in range(30)])
    with SlowDisk(tmp_path / "j", lambda disk: disk.begun > 2 * QUICK.concurrency) as journal:
        results = assess(tasks(one, [criterion()]), Scripted(), journal, one, settings=QUICK)
        assert journal.most == 2 * QUICK.concurrency
    assert all(isinstance(result, Judgment) for result in results)
    with Journal(tmp_path / "j") as journal:
        assert len(journal) == 30


def test_replies_that_nobody_bills_wait_for_the_disk_together(tmp_path: Path) -> None:
    """One call in flight: the disk takes nothing before twenty replies are there."""
    one = pool([f"t{index}" for index in range(100)])

    class Free(Scripted):
        def price(self) -> Price:
            return FREE

    with SlowDisk(tmp_path / "j", lambda disk: disk.begun >= 20) as journal:
        results = assess(tasks(one, [criterion()]), Free(), journal, one, settings=Settings(concurrency=1))
        assert 20 <= journal.most <= 65
    assert all(isinstance(result, Judgment) for result in results)
    with Journal(tmp_path / "j") as journal:
        assert len(journal) == 100


def test_a_judgment_counts_only_once_its_completion_is_on_the_disk(tmp_path: Path) -> None:
    """Two tasks share a call: of four judgments, each waits for one of three completions."""
    one = pool(["a", "b", "same", "same"])
    seen: list[tuple[int, int]] = []
    with SlowDisk(tmp_path / "j", lambda disk: disk.begun == 3) as journal:
        model = Scripted(delay=0.01)

        def report(progress: Progress) -> None:
            seen.append((progress.done, journal.written))

        assess(tasks(one, [criterion()]), model, journal, one, settings=QUICK, report=report)
    assert len(model.asked) == 3
    assert [done for done, _ in seen] == [1, 2, 3, 4]
    assert all(written >= min(done, 3) - 1 and written > 0 for done, written in seen)


def test_a_reply_that_is_being_written_answers_the_same_request(tmp_path: Path) -> None:
    one = pool(["same", "same", "b"])
    with SlowDisk(tmp_path / "j", lambda disk: disk.begun >= 2) as journal:
        model = Scripted()
        results = assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=2))
    assert [isinstance(result, Judgment) for result in results] == [True] * 3
    assert len(model.asked) == 2


def test_a_disk_that_fails_ends_the_run_and_settles_nothing_that_it_lost(tmp_path: Path) -> None:
    seen: list[Progress] = []
    one = pool([f"t{index}" for index in range(30)])
    with Journal(tmp_path / "j") as journal:
        journal.store.file.connection.execute("PRAGMA max_page_count = 24")
        model = Scripted(default=Completion("Grade: 2" + " " * 4000, "stop", "m"))
        with pytest.raises(errors.OperationalError, match="full"):
            assess(tasks(one, [criterion()]), model, journal, one, settings=QUICK, report=seen.append)
        assert 0 < len(seen) == len(journal) < len(model.asked) < 30


def test_a_missing_passage_hides_no_judge_that_is_silent() -> None:
    whole = pool(["a", "b", "c", "d"])
    bare = msgspec.structs.replace(whole.responses[0], passages=())
    one = msgspec.structs.replace(whole, responses=(bare, *whole.responses[1:]))
    asked = tasks(one, [criterion("groundedness", ("response", "passages"))])
    model = Scripted(default=errors.TransientError("connection refused"))
    with Journal(None) as journal, pytest.raises(errors.OperationalError, match="does not answer"):
        assess_at_once(asked, model, journal, one, settings=QUICK)


def test_equal_responses_hide_no_judge_that_is_silent() -> None:
    with pytest.raises(errors.OperationalError, match="does not answer"):
        judged(None, Scripted(default=errors.TransientError("connection refused")), ["a", "a", "b", "c"])


def test_a_dialogue_that_was_cut_short_is_no_part_of_what_results_rest_on() -> None:
    class NoRepair(Scripted):
        async def complete(self, request: Request) -> Completion:
            if request.form == "json" and len(request.messages) > 2:
                raise errors.StructureUnsupported("no longer")
            return Completion("nonsense" if request.form == "json" else "Grade: 1", "stop", "m")

    first, later = Account(), Account()
    for account in (first, later):
        judged(None, NoRepair(forms=("json", "text")), ["a", "b"], account=account)
    assert [row.results for row in first.rows()] == [row.results for row in later.rows()]
