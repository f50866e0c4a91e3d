"""The judges asked about items and twins, word overlap beside them, and the pairs of their grades."""

from collections.abc import Iterable, Mapping, Sequence

from judge.ask.asking import Asking
from judge.ask.opening import ask_free, judging_options, takes
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.probe.card import ProbedJudge
from judge.calibrate.probe.measured import canary_rows, probe_row
from judge.calibrate.probe.pairs import ProbePair, standing, steps_of, why_missing
from judge.calibrate.probe.probes import probes_of
from judge.calibrate.probe.records import Inapplicable, ProbeKind
from judge.evaluate.cards.card import OVERLAP
from judge.harness.probe.plan import Posed, ProbeInputs, task_of
from judge.models.backends import backend_facts, open_model
from judge.models.model import Model
from judge.records import Criterion

Given = Judgment | Failure
Answered = Mapping[int, Given]
"""Place in `posed` to the answer; places without a twin have none."""


def ask_probe(inputs: ProbeInputs, asking: Asking) -> list[tuple[Model, Answered]]:
    """Ask every judge for what the journal does not answer.

    Raises:
        OperationalError: The loop stopped early; every paid completion is in the journal.
    """
    tasks = inputs.tasks
    results = asking.ask(inputs.judge, tasks)
    return [
        (model, _placed(inputs.posed, results[number * len(tasks) : (number + 1) * len(tasks)]))
        for number, model in enumerate(inputs.judge.models)
    ]


def overlap_answers(inputs: ProbeInputs) -> Answered:
    """The same of word overlap, for the prompts that it can grade under; it costs nothing."""
    model = open_model(OVERLAP)
    graded = {criterion.digest for criterion in inputs.criteria if takes(model, criterion)}
    posed = {place: each for place, each in enumerate(inputs.posed) if each.criterion.digest in graded}
    wanted = {place: task for place, each in posed.items() if (task := task_of(each)) is not None}
    return dict(zip(wanted, ask_free(model, tuple(wanted.values()), inputs.pool, inputs.turns), strict=True))


def pairs_of(inputs: ProbeInputs, judge: str, answers: Answered, overlap: Answered) -> list[ProbePair]:
    """The pairs of one judge, in the order of the prompts, the items and the probes."""
    pairs: list[ProbePair] = []
    clean = 0
    beside = {} if backend_facts(judge).baseline else overlap
    for place, posed in enumerate(inputs.posed):
        if posed.probe is None:
            clean = place
            continue
        pairs.append(_pair(posed, judge, answers[clean], answers.get(place), (beside.get(clean), beside.get(place))))
    return pairs


def _pair(
    posed: Posed, judge: str, clean: Given, altered: Given | None, overlap: tuple[Given | None, Given | None]
) -> ProbePair:
    scale, response, twin = posed.criterion.scale, posed.item.response, posed.twin
    steps = [_steps(result, posed.criterion) for result in overlap]
    absent = isinstance(twin, Inapplicable)
    return ProbePair(
        prompt=posed.criterion.prompt_id,
        judge=judge,
        probe=posed.probe.name if posed.probe is not None else "",
        response_id=response.response_id,
        turn_id=response.turn_id,
        topic_id=response.topic_id,
        canary=None if twin is None or isinstance(twin, Inapplicable) else twin.canary,
        wants=None if twin is None or isinstance(twin, Inapplicable) else twin.wants,
        change=None if twin is None or isinstance(twin, Inapplicable) else twin.change,
        inapplicable=twin.reason if isinstance(twin, Inapplicable) else None,
        clean=standing(clean, scale),
        altered=standing(altered, scale) if altered is not None else None,
        missing=None if absent else why_missing(clean, altered),
        overlap_clean=steps[0],
        overlap_altered=steps[1],
    )


def probed_judges(
    inputs: ProbeInputs, model: Model, answers: Answered, pairs: Sequence[ProbePair], kinds: Iterable[ProbeKind]
) -> list[ProbedJudge]:
    """What the pairs of one judge say under each prompt."""
    judges = []
    for criterion in inputs.criteria:
        mine = [pair for pair in pairs if pair.prompt == criterion.prompt_id]
        steps = steps_of(criterion.scale)
        by_probe: dict[str, list[ProbePair]] = {}
        for pair in mine:
            by_probe.setdefault(pair.probe, []).append(pair)
        judges.append(
            ProbedJudge(
                criterion=criterion.name,
                prompt=criterion.prompt_id,
                prompt_digest=criterion.digest,
                judge=model.name,
                options=judging_options(inputs.plan.options, (model,)),
                models_returned=_returned(answers.values(), criterion),
                parser=PARSER_VERSION,
                renderer=RENDERER_VERSION,
                levels=steps + 1,
                rows=tuple(
                    probe_row(probe, by_probe[probe.name], steps, inputs.plan.margin)
                    for probe in probes_of(criterion, tuple(kinds))
                ),
                canaries=canary_rows(mine, steps),
            )
        )
    return judges


def _placed(posed: Sequence[Posed], results: Sequence[Given]) -> Answered:
    asked = [place for place, one in enumerate(posed) if task_of(one) is not None]
    return dict(zip(asked, results, strict=True))


def _returned(results: Iterable[Given], criterion: Criterion) -> tuple[str, ...]:
    """The models as the provider names them."""
    return tuple(
        sorted(
            {
                result.model
                for result in results
                if isinstance(result, Judgment) and result.model and result.criterion_digest == criterion.digest
            }
        )
    )


def _steps(result: Given | None, criterion: Criterion) -> float | None:
    found = standing(result, criterion.scale) if result is not None else None
    return None if found is None else float(found.step) if found.expected is None else found.expected
