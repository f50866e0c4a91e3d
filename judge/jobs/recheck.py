"""The recheck of `judge run`: a part of the judgments is asked again, and nothing else hears of the second answers."""

from collections.abc import Iterable, Sequence
from typing import Any

from judge.ask.asking import Asking
from judge.ask.opening import MOST_SAMPLES
from judge.ask.records import Failure, Judgment, Task, evidence_gap
from judge.calibrate import recheck
from judge.io.files import jsonl_bytes
from judge.io.steps import Step
from judge.jobs.run_inputs import RunInputs
from judge.judges.journal import Journal
from judge.judges.model import Model
from judge.judges.records import provider_name
from judge.records import Record

RECHECK = "recheck.jsonl"
FIRST_SAMPLE = MOST_SAMPLES
"""Number of the repetition that the second answer to a first question is; samples of a jury have lower numbers."""


class Rechecked(Record, frozen=True):
    """The second answers, and what they say of the first."""

    part: str
    """How much was asked again, as the user said it."""
    items: tuple[recheck.RecheckedItem, ...]
    rows: tuple[recheck.RecheckRow, ...]
    served: tuple[recheck.ServedChange, ...]
    """Models and fingerprints that changed between the two answers."""
    changes: tuple[str, ...]
    """The same in words, with times."""

    @property
    def missing(self) -> int:
        """Questions without a second answer."""
        return sum(row.missing for row in self.rows)

    def recorded(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {"part": self.part, "seed": recheck.RECHECK_SEED, "rows": self.rows, "served": self.served}

    def files(self) -> dict[str, bytes]:
        """The file of the second answers, by its name."""
        return {RECHECK: jsonl_bytes(self.items)}


def ask_again(inputs: RunInputs, asking: Asking, replies: Sequence[Judgment | Failure]) -> Rechecked | None:
    """Ask a part of the judgments again, each as a call of its own; None where the plan wants no recheck."""
    plan = inputs.plan
    journal = asking.journal
    end = 0
    if plan.recheck is None:
        return None
    asking.progress.steps(Step("asking a part again"))
    report = asking.progress.of(inputs.judge.name)
    items: list[recheck.RecheckedItem] = []
    for model in inputs.judge.models:
        asked = inputs.judge.of(model, inputs.asked)
        own = range(end, end + len(asked))
        end += len(asked)
        answered: list[tuple[Task, Judgment]] = []
        for task, place in zip(asked, own, strict=True):
            reply = replies[place]
            if isinstance(reply, Judgment):
                answered.append((task, reply))
        taken = [answered[place] for place in _chosen(model, (task for task, _ in answered), plan.recheck)]
        firsts = [reply for _, reply in taken]
        wanted = _fresh([task for task, _ in taken])
        seconds = asking.ask_model(model, wanted, inputs.judge.settings, report)
        items += [_item(first, second, journal) for first, second in zip(firsts, seconds, strict=True)]
    digests: list[str] = []
    for item in items:
        digests.extend(digest for digest in (item.request_digest, item.again_request_digest) if digest)
    return Rechecked(
        part=str(plan.recheck),
        items=tuple(items),
        rows=recheck.recheck_rows(items),
        served=recheck.served_changes(items),
        changes=recheck.change_lines(items, journal.times(digests)),
    )


def expected_again(inputs: RunInputs, model: Model, asked: Sequence[Task]) -> tuple[Task, ...]:
    """What one of the models will be asked again if every question that can be put to it is answered."""
    part = inputs.plan.recheck
    put = [task for task in asked if evidence_gap(task, inputs.pooled.pool) is None]
    return () if part is None else _fresh([put[number] for number in _chosen(model, put, part)])


def _chosen(model: Model, tasks: Iterable[Task], part: str | int) -> list[int]:
    questions = [(model.name, task.criterion.digest, task.sample, task.response.response_id) for task in tasks]
    return recheck.chosen(questions, recheck.parse_part(str(part)))


def _fresh(tasks: Sequence[Task]) -> tuple[Task, ...]:
    return tuple(task._replace(sample=FIRST_SAMPLE + task.sample) for task in tasks)


def _item(first: Judgment, second: Judgment | Failure, journal: Journal) -> recheck.RecheckedItem:
    before = journal.get(first.request_digest)
    after = journal.get(second.request_digest) if second.request_digest else None
    answered = isinstance(second, Judgment)
    return recheck.RecheckedItem(
        response_id=first.response_id,
        turn_id=first.turn_id,
        topic_id=first.topic_id,
        criterion=first.criterion,
        variant=first.variant,
        judge=first.judge,
        sample=first.sample,
        grade=None if first.unable else first.grade,
        again_grade=second.grade if isinstance(second, Judgment) and not second.unable else None,
        again_missing=second.reason if isinstance(second, Failure) else None,
        model=provider_name(before.model) if before else None,
        again_model=provider_name(after.model) if after and answered else None,
        system_fingerprint=provider_name(before.system_fingerprint) if before else None,
        again_system_fingerprint=provider_name(after.system_fingerprint) if after and answered else None,
        request_digest=first.request_digest,
        again_request_digest=second.request_digest,
    )
