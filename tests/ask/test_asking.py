from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from judge.ask.account import Settings
from judge.ask.asking import JOURNAL, Asking, JournalPlace, Judge
from judge.ask.criteria import find_criterion
from judge.ask.forecast import AskingForecast
from judge.ask.opening import open_one
from judge.ask.progress import JobProgress, Progress
from judge.ask.records import Failure, Judgment, tasks
from judge.ask.returned import judge_notes
from judge.errors import Interrupted, OperationalError, UsageError
from judge.judges.model import Model, ModelOptions, Price
from tests.ask.test_loop import Scripted, criterion, pool

pytestmark = pytest.mark.fast

POOL = pool([f"t{number}" for number in range(6)])
WANTED = tasks(POOL, [criterion()])


class Named(Scripted):
    """A scripted model with a name and a price, which counts how often it is prepared."""

    def __init__(self, name: str = "fake/a") -> None:
        super().__init__()
        self.name = name
        self.prepared = 0

    def price(self) -> Price:
        return Price(0.0, 0.0)

    def prepare(self, report: object) -> None:
        self.prepared += 1


@pytest.mark.parametrize(("budget", "made"), [(None, [3, 3]), (0.10, [3, 3]), (0.045, [3, 2]), (0.03, [3, 0])])
def test_one_budget_is_for_all_that_a_job_asks(tmp_path: Path, budget: float | None, made: list[int]) -> None:
    judge = Judge([Named()], settings=Settings(concurrency=1, max_cost=budget))
    with Asking(JournalPlace(tmp_path), POOL, None) as asking:
        answers = [asking.ask(judge, part) for part in (WANTED[:3], WANTED[3:])]
    assert [sum(isinstance(answer, Judgment) for answer in part) for part in answers] == made
    assert {answer.reason for part in answers for answer in part if isinstance(answer, Failure)} <= {"budget"}
    assert asking.spent == pytest.approx(0.01 * sum(made))
    assert asking.accounts[0].asked.calls == sum(made)


def test_models_are_asked_in_turn_and_their_progress_is_one(tmp_path: Path) -> None:
    models, seen = [Named("fake/a"), Named("fake/b")], list[Progress]()
    with Asking(JournalPlace(tmp_path), POOL, None, JobProgress(report=seen.append)) as asking:
        replies = asking.ask(Judge(models), WANTED)
    assert [reply.judge for reply in replies] == ["fake/a"] * 6 + ["fake/b"] * 6
    assert ([progress.done for progress in seen], {progress.total for progress in seen}) == ([*range(1, 13)], {12})
    assert seen[-1].cost == pytest.approx(0.12)
    assert [model.prepared for model in models] == [1, 1]


def test_each_judges_its_part_and_a_model_that_cannot_be_fetched_judges_nothing(tmp_path: Path) -> None:
    prompts, away = (criterion("groundedness"), criterion("naturalness")), Named("local/y")
    judge = Judge([Named("checker/x"), away], parts={"groundedness": "checker/x", "naturalness": "local/y"})
    wanted = tasks(POOL, prompts[::-1])
    assert [task.criterion.name for task in judge.of(away, wanted)] == ["naturalness"] * 6
    away.prepare = Mock(side_effect=OperationalError("no network"))  # type: ignore[method-assign]
    with Asking(JournalPlace(tmp_path), POOL, None) as asking:
        replies = asking.ask(judge, wanted)
    assert [isinstance(reply, Judgment) for reply in replies] == [True] * 6 + [False] * 6
    assert {(reply.reason, reply.detail) for reply in replies[6:]} == {("provider_error", "no network")}
    why = "naturalness: 6 of 6 judgments cannot be made, because local/y cannot be fetched: no network"
    assert asking.not_judged == (why,) and judge_notes(replies) == ()
    for trouble in (None, OperationalError("no network")):
        away.prepare.side_effect = trouble
        with Asking(JournalPlace(tmp_path), POOL, None) as asking:
            replies = asking.ask(judge, wanted)
        assert all(isinstance(reply, Judgment) for reply in replies) and asking.not_judged == ()
        assert judge_notes(replies) == ("Judged: groundedness by checker/x, naturalness by local/y.",)
    away.prepare.side_effect = Interrupted("stopped")
    with Asking(JournalPlace(tmp_path), POOL, None) as asking, pytest.raises(Interrupted):
        asking.ask(judge, wanted)


def test_an_engine_makes_the_calls_and_says_what_they_wait_for(tmp_path: Path) -> None:
    seen, elsewhere = list[Progress](), Named()

    def engine(model: Model, calls: int, waiting: Callable[[str], None]) -> Model:
        assert (model.name, calls) == (elsewhere.name, 4)
        waiting("waiting for CPUs")
        return elsewhere

    model = Named()
    with Asking(JournalPlace(tmp_path), POOL, None, JobProgress(report=seen.append), engine) as asking:
        asking.ask(Judge([model], settings=Settings(concurrency=4)), WANTED)
    assert (len(model.asked), len(elsewhere.asked)) == (0, 6)
    assert (seen[0].done, seen[0].total, seen[0].limited) == (0, 6, "waiting for CPUs")


def test_a_model_is_prepared_once_however_often_it_is_asked(tmp_path: Path) -> None:
    model = Named()
    with Asking(JournalPlace(tmp_path), POOL, None) as asking:
        asking.prepare(model)
        for part in (WANTED[:2], WANTED[2:]):
            asking.ask(Judge([model]), part)
    assert (model.prepared, len(model.asked)) == (1, 6)


def test_a_dry_asking_counts_and_neither_sends_nor_writes(tmp_path: Path) -> None:
    model, out = Named(), tmp_path / "out"
    with AskingForecast(JournalPlace(out), POOL, None) as forecasts:
        (row,) = forecasts.forecast(Judge([model]), WANTED)
    assert (row.judgments, row.recalled, row.expected.calls, model.asked, out.exists()) == (6, 0, 6, [], False)


def test_what_an_earlier_journal_answers_is_not_asked_again(tmp_path: Path) -> None:
    with Asking(JournalPlace(tmp_path / "first"), POOL, None) as asking:
        asking.ask(Judge([Named()]), WANTED[:4])
    place = JournalPlace(tmp_path / "second", known=(tmp_path / "first" / JOURNAL, tmp_path / "none" / JOURNAL))
    with AskingForecast(place, POOL, None) as forecasts:
        (row,) = forecasts.forecast(Judge([Named()]), WANTED)
    model = Named()
    with Asking(place, POOL, None) as asking:
        asking.ask(Judge([model]), WANTED)
    assert (row.recalled, row.expected.calls, len(model.asked)) == (4, 2, 2)


def test_a_judge_of_one_label_cannot_be_asked_for_labels_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: Scripted(forms=("label",)))
    with pytest.raises(UsageError, match=r"fake/scripted answers with one label only, .* groundedness/sentences"):
        open_one("fake/scripted", ModelOptions(), [find_criterion("groundedness/sentences")], Settings())
