"""The plan of `judge probe`, and the plan with its inputs read, its items drawn and their twins made.

An item's twins are the same whichever other items are drawn.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from judge.ask.asking import JOURNAL, Judge
from judge.ask.criteria import choose_prompts
from judge.ask.opening import check_turns, default_models, judging_options, open_judge, recalls
from judge.ask.options import AskingOptions, JournalOption
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Task
from judge.ask.subjects import check_unit, unit_of
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import Certificate, Match, match_run, read_certificate
from judge.errors import InputError, UsageError
from judge.extra.probe.alterations import Inapplicable, ProbeItem, Twin, WantedLabels
from judge.extra.probe.card import MARGIN
from judge.extra.probe.probes import KINDS, Probe, ProbeKind, probes_of
from judge.io.files import file_in, read_stored, sha256
from judge.io.folder import check_apart, check_outside
from judge.io.ids import natural_key
from judge.io.plan import AboveZero, Option, Options, Positive, Seed
from judge.io.steps import Step, Steps, quiet
from judge.io.text import digest
from judge.jobs.manifest import read_earlier_pool
from judge.jobs.options import DEFAULT_CRITERIA, JudgedPrompts
from judge.jobs.pooling import Pooling, pool_runs
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, JudgedUnit, Passage, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics, turns_by_id


def draw_items(pool: Pool, n: int, seed: int, *, with_passages: bool) -> tuple[ProbeItem, ...]:
    """Draw items evenly over the topics: one of each topic in turn, topics and responses in random order.

    A larger draw with the same seed begins with the items of a smaller one. `with_passages`: of responses all of whose
    used passages have a text.
    """
    by_topic: dict[str, list[PooledResponse]] = defaultdict(list)
    for response in pool.responses:
        if not with_passages or is_complete(response, pool):
            by_topic[response.topic_id].append(response)
    topics = sorted(by_topic, key=natural_key)
    order = _rng(seed, "topics").permutation(len(topics))
    queues = []
    for topic_id in (topics[place] for place in order):
        responses = by_topic[topic_id]
        queues.append([responses[place] for place in _rng(seed, "topic", topic_id).permutation(len(responses))])
    deepest = max(map(len, queues), default=0)
    drawn = [queue[depth] for depth in range(deepest) for queue in queues if depth < len(queue)][:n]
    elsewhere, items = _elsewhere(pool), []
    for place, response in enumerate(drawn):
        others = tuple(texts for turn, texts in elsewhere[response.topic_id] if turn != response.turn_id)
        items.append(ProbeItem(response, _texts(response, pool), others, place))
    return tuple(items)


def is_complete(response: PooledResponse, pool: Pool) -> bool:
    """Whether a response names passages and all of them have a text."""
    return bool(response.passages) and all(key in pool.passages for key in response.passages)


def make_twin(probe: Probe, item: ProbeItem, criterion: Criterion, seed: int) -> Twin | Inapplicable:
    """The twin of an item under a probe; random choices depend on seed, probe and item alone."""
    rng = _rng(seed, probe.name, item.response.response_id)
    return probe.make(item, wanted_labels(criterion), rng)


def wanted_labels(criterion: Criterion) -> WantedLabels:
    """The labels of the best and the worst grade or, where sentences are labeled, of what leads to them."""
    levels = sorted(criterion.scale.levels, key=lambda level: level.grade, reverse=criterion.scale.polarity == "lower")
    if criterion.rollup is None:
        return WantedLabels(levels[-1].label, levels[0].label)
    counted, best = criterion.rollup.label, criterion.rollup.cuts[0][1] == levels[-1].grade
    labels = (level.label for level in criterion.sentence_levels)
    other = next((label for label in labels if label not in (counted, criterion.rollup.ignored)), counted)
    return WantedLabels(counted, other) if best else WantedLabels(other, counted)


def twin_response(item: ProbeItem, twin: Twin, name: str) -> PooledResponse:
    """The twin as a pooled response, its passages under keys of `passages_of`."""
    return msgspec.structs.replace(
        item.response,
        response_id=f"{item.response.response_id}.{name}",
        text=twin.text,
        passages=tuple(map(_key, twin.passages)),
    )


def passages_of(twins: Iterable[Twin]) -> dict[str, Passage]:
    """The passages of twins, by key."""
    texts = {text: None for twin in twins for text in twin.passages}
    return {_key(text): Passage(_key(text), text, "collection") for text in texts}


def _key(text: str) -> str:
    return f"probe#{digest(text)}"


def _texts(response: PooledResponse, pool: Pool) -> tuple[str, ...]:
    return tuple(pool.passages[key].text for key in response.passages if key in pool.passages)


def _elsewhere(pool: Pool) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Topic to the turns of its responses with the texts of their passages, each pair once."""
    sets: dict[str, dict[tuple[str, tuple[str, ...]], None]] = defaultdict(dict)
    for response in pool.responses:
        if is_complete(response, pool):
            sets[response.topic_id][response.turn_id, _texts(response, pool)] = None
    return defaultdict(list, {topic_id: list(pairs) for topic_id, pairs in sets.items()})


def _rng(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, int(digest("\n".join(names))[:16], 16)])


class ProbedResponses(Options, section="reading"):
    """What responses are drawn from."""

    folder: Annotated[Path | None, Option(metavar="FOLDER", place="only")] = None
    """Output folder of `judge run` or `judge pool`: its pool is drawn from, and its journal used."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Folders of run files, of any formats, .gz too, and run files."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for prompts with the conversation."""
    passages: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """With --runs: the collection's passages."""


class ProbedJudges(JudgedPrompts, section="asking"):
    """Who is asked, and what."""

    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """The judge (default: JUDGE_MODEL, else local/qwen2.5-1.5b); may be repeated."""


class ProbePlan(ProbedResponses, ProbedJudges, AskingOptions, JournalOption, section="probing"):
    """Everything `judge probe` can be told."""

    items: Annotated[Positive, Option(metavar="N")] = 30
    """Responses that are drawn."""
    kinds: Annotated[tuple[ProbeKind, ...], Option(metavar="KIND")] = KINDS
    """Kinds of alterations (default all)."""
    margin: Annotated[AboveZero, Option(metavar="M")] = MARGIN
    """The shift, in levels of the scale, that does not matter."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of the draw and of the alterations."""
    out: Annotated[Path, Option(short="o", metavar="DIR", section="output")]
    """Folder for tables, picture, twins and journal."""
    certificate: Annotated[Path | None, Option(metavar="FILE")] = None
    """The certificate (`certificate.json`) of this very judge; a copy that tells of the probe is written into --out."""
    replace: bool = False
    """Write over results of another configuration in --out."""

    def _check(self) -> None:
        if bool(self.runs) == (self.folder is not None):
            raise UsageError("expected either an output folder of `judge run` or `judge pool`, or runs (--runs)")
        if self.folder is not None and self.passages:
            raise UsageError("--passages is about runs (--runs): the folder has the passages of its pool")


class Posed(NamedTuple):
    """One item under one prompt, with its twins."""

    criterion: Criterion
    item: ProbeItem
    twins: tuple[tuple[Probe, Twin | Inapplicable], ...]
    """Each probe of the prompt, and what it makes of the item."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The judgments to make: of the item, then of the twins that there are."""
        responses = (
            twin_response(self.item, twin, probe.name.replace(" ", "-"))
            for probe, twin in self.twins
            if isinstance(twin, Twin)
        )
        return tuple(Task(response, self.criterion) for response in (self.item.response, *responses))


class ProbeInputs(Record, frozen=True):
    """A plan with its inputs read; nothing has been written or sent."""

    plan: ProbePlan
    judge: Judge
    criteria: tuple[Criterion, ...]
    kinds: tuple[ProbeKind, ...]
    """The kinds of probes, in the order of the tables."""
    items: tuple[ProbeItem, ...]
    drawn_from: Pool
    incomplete: int
    """Responses that could not be drawn, because a used passage has no text."""
    posed: tuple[Posed, ...]
    pool: Pool
    """The passages of items and twins."""
    turns: dict[str, Turn] | None
    certificate: Certificate | None
    configured: dict[str, Any]
    """Everything that determines the results, for the manifest."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What each model is asked, in the order of `posed`."""
        return tuple(task for each in self.posed for task in each.tasks)

    @property
    def known(self) -> tuple[Path, ...]:
        """The journal of the judged folder, whose answers need not be paid for again."""
        return () if self.plan.folder is None else (self.plan.folder / JOURNAL,)


def read_probe(plan: ProbePlan, *, keys: bool = True, steps: Steps = quiet) -> ProbeInputs:
    """Read what a plan names, draw the items and make their twins; a dry run needs no `keys`."""
    if plan.folder is not None:
        check_apart(plan.out, [plan.folder])
    check_outside(plan.out, plan.runs)
    kinds = tuple(kind for kind in KINDS if kind in plan.kinds)
    chosen = choose_prompts(plan.criteria, plan.prompts, DEFAULT_CRITERIA)
    criteria = tuple({prompt.digest: prompt for several in chosen.values() for prompt in several}.values())
    _check_criteria(criteria, kinds)
    names = tuple(dict.fromkeys(plan.models)) or default_models()[-1:]
    judge = open_judge(names, plan.options, criteria, plan.settings, keys=keys and not recalls(plan))
    certificate = _certificate(plan, judge, criteria)
    pool, turns = _read(plan, unit_of(criteria), steps)
    check_unit(criteria, pool.unit)
    steps(Step("drawing items and altering them"))
    with_passages = any("passages" in criterion.inputs for criterion in criteria)
    items = draw_items(pool, plan.items, plan.resampling_seed, with_passages=with_passages)
    if not items:
        raise InputError(
            f"{plan.folder or ', '.join(map(str, plan.runs))}: no response can be drawn"
            + ("; --passages FILE gives the texts of the passages" if with_passages and pool.responses else "")
        )
    check_turns(criteria, {item.response.turn_id for item in items}, turns or {}, plan.topics)
    posed = tuple(
        Posed(criterion, item, tuple((each, make_twin(each, item, criterion, plan.resampling_seed)) for each in probes))
        for criterion in criteria
        for probes in (probes_of(criterion, kinds),)
        for item in items
    )
    twins = [twin for each in posed for _, twin in each.twins if isinstance(twin, Twin)]
    configured = {
        **({} if plan.topics is None else {"topics": sha256(read_stored(plan.topics))}),
        "pool": sha256(pool_jsonl(pool)),
        "passages": sha256(passages_jsonl(pool)),
        "criteria": {prompt.prompt_id: prompt.digest for prompt in criteria},
        "judge": [model.name for model in judge.models],
        "options": judging_options(plan.options, judge.models),
        "parser": PARSER_VERSION,
        "renderer": RENDERER_VERSION,
        "kinds": list(kinds),
        "items": plan.items,
        "margin": plan.margin,
        "seed": plan.resampling_seed,
        "certificate": certificate.digest if certificate is not None else None,
    }
    incomplete = sum(not is_complete(response, pool) for response in pool.responses) if with_passages else 0
    asked_of = posed, Pool((), {**pool.passages, **passages_of(twins)}, ()), turns, certificate, configured
    return ProbeInputs(plan, judge, criteria, kinds, items, pool, incomplete, *asked_of)


def _check_criteria(criteria: Sequence[Criterion], kinds: tuple[ProbeKind, ...]) -> None:
    """Refuse two prompts of one name, which no table could tell apart, and a prompt that no probe is for."""
    first: dict[str, Criterion] = {}
    for criterion in criteria:
        if not probes_of(criterion, kinds):
            raise UsageError(f"{criterion.prompt_id}: no probe of the kind {' or '.join(kinds)} is for it")
        other = first.setdefault(criterion.prompt_id, criterion)
        if other is not criterion:
            raise UsageError(f"{other.file} and {criterion.file} are both called {criterion.prompt_id}: rename one")


def _certificate(plan: ProbePlan, judge: Judge, criteria: Sequence[Criterion]) -> Certificate | None:
    """The certificate of a plan; one of another judge is refused before anything is asked."""
    if plan.certificate is None:
        return None
    certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
    differing: list[str] = []
    for model in judge.models:
        options = judging_options(plan.options, (model,))
        for criterion in criteria:
            different = different_items(match_run(certificate, [criterion], model.name, options))
            if not different:
                return certificate
            differing.append(f"{criterion.prompt_id} by {model.name}: {different}")
    raise UsageError(f"the certificate is of another judge ({'. '.join(differing)})")


def different_items(matches: Sequence[Match]) -> str:
    """What a certificate says otherwise than what is found here, in words; empty if nothing."""
    return "; ".join(f"{m.item}: {m.certified} certified, {m.found} here" for m in matches if not m.same)


def _read(plan: ProbePlan, unit: JudgedUnit, steps: Steps) -> tuple[Pool, dict[str, Turn] | None]:
    if plan.folder is None:
        pooled = pool_runs(
            Pooling(runs=plan.runs, topics=plan.topics, unit=unit, passages=plan.passages or None, screen="off"), steps
        )
        if not pooled.pool.responses:
            raise InputError("no response can be judged: every one was excluded", pooled.submitted.problems)
        return pooled.pool, pooled.turns
    turns = turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None
    pool = read_earlier_pool(plan.folder)
    return pool, turns_shown(pool, turns)
