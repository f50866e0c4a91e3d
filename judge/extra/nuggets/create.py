"""A judge asked for a bank of nuggets: what `judge nuggets create` does, for use from Python.

As nuggetizer does, a judge lists the nuggets of texts, a list without repeats grows, and another prompt says which are
vital. There, one call reads ten passages and rewrites the whole list. Here, one call reads one source, so that calls do
not wait for each other, a hostile text reaches no other source's nuggets, and each nugget knows where it comes from.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace
from judge.ask.criteria import find_criterion
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.opening import check_turns, judging_options, open_judge, recalls
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import NUGGET_CREATION, NUGGET_IMPORTANCE, NUGGET_MERGING, RENDERER_VERSION, check_unit
from judge.ask.records import Failure, Judgment, Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import UsageError
from judge.extra.nuggets import CreationStep, Importance, Nugget, NuggetFailure
from judge.extra.nuggets.forms import BANK, CREATED, bank_bytes
from judge.extra.nuggets.labels import LABEL_FAILURES
from judge.extra.nuggets.questions import NuggetJobPlan, check_same, nugget_turns, spread_evenly
from judge.io.files import json_bytes, jsonl_bytes, sha256
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import groups_of, is_own_turn, natural_key, topic_of
from judge.io.plan import Option, Positive
from judge.io.steps import ProgressLine
from judge.io.table import Table
from judge.io.text import count
from judge.jobs.manifest import job_manifest
from judge.pool.bank import pool_file, pool_jsonl, read_pool_folder
from judge.pool.lists import read_relevance
from judge.pool.records import Pool, PooledResponse, whole_responses
from judge.records import Criterion, Record
from judge.runs.records import TokenCount

BLOCK = 25
"""Candidates that one call compares with the nuggets that are known."""
NEW = "new"
REPEAT = "repeat"
VITAL = "vital"
OKAY = "okay"
SourceKind = Literal["passages", "responses", "both"]
PassageGrades = Mapping[str, Mapping[str, int]]
"""Turn id to passage id to grade."""
_NO_COUNT = TokenCount(bare=0, english=0, whitespace=0, cut=None)


class NuggetSource(NamedTuple):
    """A passage or a response of a turn."""

    turn_id: str
    text: str
    passage: str | None = None
    """The id of the passage."""
    response_id: str | None = None
    relevance: int | None = None
    """The grade of the passage, where qrels give one."""

    def task(self, criterion: Criterion) -> Task:
        """The question for its nuggets, where it stands in the place of the response that a prompt is about."""
        return Task(_standing(self.turn_id, self.passage or self.response_id or "", self.text), criterion)


class TurnSources(NamedTuple):
    """The sources of the turns of a pool, and what is none."""

    by_turn: dict[str, tuple[NuggetSource, ...]]
    """Turn to its sources, in natural order of turns: passages before responses."""
    lacking: int
    """Used passages without a text."""
    irrelevant: int
    """Used passages that the qrels do not grade as relevant."""
    own_turns: int
    """Responses of interactive runs, whose turns are the runs' own."""


def _standing(turn_id: str, name: str, text: str) -> PooledResponse:
    """A text of a turn as what a question is about, where no pooled response is."""
    return PooledResponse(
        response_id=name,
        turn_id=turn_id,
        topic_id=topic_of(turn_id),
        text=text,
        passages=(),
        tokens=_NO_COUNT,
        truncated=False,
        runs=(),
    )


def turn_sources(pool: Pool, kind: SourceKind, grades: PassageGrades | None = None, minimum: int = 1) -> TurnSources:
    """The sources of every turn; with qrels, only passages that they grade `minimum` or better.

    Passages are ordered by grade, and then by how many pooled responses used them; responses as in the pool.
    """
    of_turns = groups_of((each.turn_id, each) for each in pool.responses if not is_own_turn(each.turn_id))
    by_turn: dict[str, tuple[NuggetSource, ...]] = {}
    lacking: set[str] = set()
    irrelevant = 0
    for turn_id in sorted(of_turns, key=natural_key):
        uses = Counter[str]()
        if kind != "responses":
            for response in of_turns[turn_id]:
                uses.update(response.passages)
        lacking |= uses.keys() - pool.passages.keys()
        passages: list[tuple[int, NuggetSource]] = []
        for key in sorted(uses.keys() & pool.passages.keys(), key=natural_key):
            passage = pool.passages[key]
            grade = None if grades is None else grades.get(turn_id, {}).get(passage.passage_id)
            if grades is not None and (grade is None or grade < minimum):
                irrelevant += 1
            else:
                passages.append((uses[key], NuggetSource(turn_id, passage.text, passage.passage_id, relevance=grade)))
        passages.sort(key=lambda pair: (-(pair[1].relevance or 0), -pair[0]))
        responses = of_turns[turn_id] if kind != "passages" else ()
        sources = (
            *(source for _, source in passages),
            *(NuggetSource(turn_id, response.text, response_id=response.response_id) for response in responses),
        )
        if sources:
            by_turn[turn_id] = sources
    own_turns = len(pool.responses) - sum(map(len, of_turns.values()))
    return TurnSources(by_turn, len(lacking), irrelevant, own_turns)


def candidates_of(listed: Sequence[tuple[NuggetSource, tuple[str, ...]]]) -> tuple[Nugget, ...]:
    """The different texts of the sources of one turn, as nuggets without an id.

    The first text of each source comes first, then the second of each, and so on: a source lists its most important
    nuggets first. Texts that differ only in case, white space and final periods are one.
    """
    found: dict[str, Nugget] = {}
    pairs: list[tuple[NuggetSource, str]] = []
    for rank in range(max((len(texts) for _, texts in listed), default=0)):
        pairs.extend((source, texts[rank]) for source, texts in listed if rank < len(texts))
    for source, text in pairs:
        key = " ".join(text.split()).rstrip(". ").casefold()
        known = found.get(key, Nugget("", topic_of(source.turn_id), text, source.turn_id))
        grades = [grade for grade in (known.relevance, source.relevance) if grade is not None]
        found[key] = msgspec.structs.replace(
            known,
            relevance=max(grades, default=None),
            passages=_joined(known.passages, source.passage),
            responses=_joined(known.responses, source.response_id),
        )
    return tuple(found.values())


def _joined(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return names if name is None or name in names else (*names, name)


class TurnMerging:
    """The candidates of one turn, block by block compared with those that are new, up to `most`; the rest is left."""

    def __init__(self, turn_id: str, candidates: Sequence[Nugget], most: int) -> None:
        self.turn_id = turn_id
        # A single candidate has nothing to compare it with.
        alone = len(candidates) == 1
        self.kept = list(candidates) if alone else []
        self.waiting = [] if alone else list(candidates)
        """Candidates that were not looked at yet; at the end, because there are enough nuggets."""
        self.failure: Failure | None = None
        self._most = most

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.failure is not None or not self.waiting or len(self.kept) >= self._most

    def task(self, criterion: Criterion) -> Task:
        """The question which candidates of the next block are new."""
        return list_task(self.turn_id, criterion, self.waiting[:BLOCK], self.kept)

    def take(self, result: Judgment | Failure) -> None:
        """Keep what is new by the answer to `task`."""
        if isinstance(result, Failure):
            self.failure = result
            return
        labels = list(zip(self.waiting[:BLOCK], result.sentences, strict=True))
        # Before the very first candidate stands nothing that it could repeat, whatever its label.
        first = not self.kept
        new = [candidate for place, (candidate, label) in enumerate(labels) if label == NEW or (first and not place)]
        self.kept += new[: self._most - len(self.kept)]
        del self.waiting[: len(labels)]


def list_task(turn_id: str, criterion: Criterion, listed: Sequence[Nugget], known: Sequence[Nugget] = ()) -> Task:
    """The question which listed nuggets of a turn repeat known ones; or, without any, how important each is."""
    texts = tuple(nugget.text for nugget in listed)
    standing = _standing(turn_id, turn_id, "\n".join(texts))
    return Task(standing, criterion, known=tuple(nugget.text for nugget in known), candidates=texts)


def weighed(turn_id: str, kept: Sequence[Nugget], result: Judgment, judge: str) -> list[Nugget]:
    """The nuggets of a turn with ids, and with the importance that the judge gave them."""
    labels: dict[str, Importance] = {VITAL: "vital", OKAY: "okay"}
    return [
        msgspec.structs.replace(nugget, nugget_id=f"{turn_id}/{number}", importance=labels[label], made_by=judge)
        for number, (nugget, label) in enumerate(zip(kept, result.sentences, strict=True), 1)
    ]


def creation_failure(step: CreationStep, result: Failure, source: NuggetSource | None = None) -> NuggetFailure:
    """The record of a step that failed."""
    same = {name: getattr(result, name) for name in ("turn_id", "reason", "detail", "judge", "raw", "request_digest")}
    shown: dict[str, Any] = {} if source is None else {"passage": source.passage, "response_id": source.response_id}
    return NuggetFailure(step=step, **same, **shown)


MOST = 30
"""Most nuggets of a turn, as in nuggetizer."""
_LABELS = {NUGGET_MERGING: (NEW, REPEAT), NUGGET_IMPORTANCE: (VITAL, OKAY)}


class NuggetCreatePlan(
    NuggetJobPlan,
    main="pool topics model base-url from qrels most limit out dry-run max-cost",
):
    """Everything `judge nuggets create` can be told."""

    sources: Annotated[SourceKind, Option("from")] = "both"
    """What nuggets are taken from."""
    qrels: Annotated[Path | None, Option(metavar="FILE")] = None
    """Passage qrels: take only passages that they grade as relevant."""
    relevant_from: Annotated[int, Option(metavar="GRADE")] = 1
    """With --qrels: least grade of a relevant passage."""
    most: Annotated[Positive, Option(metavar="N")] = MOST
    """Most nuggets of a turn."""
    creation: Annotated[str | Path, Option("creation-prompt", metavar="NAME|PATH")] = NUGGET_CREATION
    """Prompt for the nuggets of one source (default nugget_creation/graded)."""
    merging: Annotated[str | Path, Option("merging-prompt", metavar="NAME|PATH")] = NUGGET_MERGING
    """Prompt that tells new nuggets from repeats (default nugget_merging/graded)."""
    importance: Annotated[str | Path, Option("importance-prompt", metavar="NAME|PATH")] = NUGGET_IMPORTANCE
    """Prompt that says which nuggets are vital (default nugget_importance/graded)."""

    def _check(self) -> None:
        if self.qrels is not None and self.sources == "responses":
            raise UsageError("--qrels says which passages are relevant, and --from responses takes none")


class Creation:
    """A plan with its inputs read and its judge opened, and what came of its steps; reading writes and sends nothing.

    A dry run needs no `keys`.
    """

    def __init__(self, plan: NuggetCreatePlan, *, keys: bool = True) -> None:
        self.plan = plan
        self.prompts = (
            _prompt(plan.creation, NUGGET_CREATION),
            _prompt(plan.merging, NUGGET_MERGING),
            _prompt(plan.importance, NUGGET_IMPORTANCE),
        )
        self.judge = open_judge(
            (plan.model,), plan.options, self.prompts, plan.settings, keys=keys and not recalls(plan.out)
        )
        pool = read_pool_folder(plan.pool, *(() if plan.sources == "responses" else ("passages.jsonl",)))
        self.pool = whole_responses(pool)
        check_unit(self.prompts, self.pool.unit)
        self.turns = nugget_turns(plan, self.pool)
        self.found = self._sources()
        by_turn = self.found.by_turn
        self.configured = {
            "judge": self.judge.name,
            "options": judging_options(plan.options, self.judge.models),
            "prompts": {prompt.prompt_id: prompt.digest for prompt in self.prompts},
            "sources": {
                "from": plan.sources,
                "pool": sha256(pool_jsonl(self.pool)),
                "texts": sha256(json_bytes(list(chain.from_iterable(by_turn.values())))),
                "relevant_from": plan.relevant_from if plan.qrels is not None else None,
            },
            "most": plan.most,
            "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION, "block": BLOCK},
        }
        """What decides the nuggets, as the folder remembers it."""
        check_apart(plan.out, [pool_file(plan.pool), *(path for path in (plan.topics, plan.qrels) if path)])
        check_same(plan.out / CREATED, self.configured, "a bank made with other", "judge nuggets create")
        kept = spread_evenly(tuple(by_turn), plan.limit)
        self.listed = tuple(chain.from_iterable(by_turn[turn_id] for turn_id in kept))
        """The sources of the turns of this job."""
        self.tasks = [source.task(self.prompts[0]) for source in self.listed]
        """The questions for the nuggets of every source."""
        self.asked_turns = tuple(dict.fromkeys(source.turn_id for source in self.listed))
        self.results: list[Judgment | Failure] = []
        self.failures: list[NuggetFailure] = []
        self.merged: list[TurnMerging] = []
        """The candidates of every turn without repeats; turns without a candidate are left out."""
        self.nuggets: list[Nugget] = []
        """With their importance; a turn whose nuggets were not weighed, or not merged, has none."""

    def _sources(self) -> TurnSources:
        plan = self.plan
        relevance = None
        if plan.qrels is not None:
            relevance = read_relevance(plan.qrels, minimum=plan.relevant_from, known=list(self.turns) or None)
        found = turn_sources(self.pool, plan.sources, relevance.grades if relevance else None, plan.relevant_from)
        if not found.by_turn:
            passages = "relevant passage" if plan.qrels is not None else "passage"
            named = {"passages": passages, "responses": "response", "both": f"{passages} or response"}[plan.sources]
            why = ", ".join(told for told, _ in _passed_over(found))
            raise UsageError(f"{plan.pool}: no {named} to take nuggets from{f' ({why})' if why else ''}")
        check_turns(self.prompts, found.by_turn, self.turns, plan.topics)
        return found

    def manifest(self, status: str, **facts: object) -> bytes:
        """What the folder says of its bank."""
        return job_manifest(status, self.configured, **facts)

    def _ask(self, asking: Asking, tasks: Sequence[Task]) -> list[Judgment | Failure]:
        answers = list(asking.ask(self.judge, tasks)) if tasks else []
        self.results += answers
        return answers

    def merge(self, asking: Asking) -> None:
        """Ask for the nuggets of every source, and which of them are repeats."""
        of_turns: dict[str, list[tuple[NuggetSource, tuple[str, ...]]]] = {}
        for source, answer in zip(self.listed, self._ask(asking, self.tasks), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("creation", answer, source))
            elif answer.nuggets:
                of_turns.setdefault(source.turn_id, []).append((source, answer.nuggets))
        self.merged = [TurnMerging(turn, candidates_of(pairs), self.plan.most) for turn, pairs in of_turns.items()]
        # A block is compared with what the blocks before it left, so the blocks of a turn are asked one after another.
        while open_ones := [merging for merging in self.merged if not merging.done]:
            answers = self._ask(asking, [merging.task(self.prompts[1]) for merging in open_ones])
            for merging, answer in zip(open_ones, answers, strict=True):
                merging.take(answer)

    def weigh(self, asking: Asking) -> None:
        """Ask how important the nuggets are."""
        self.failures += [creation_failure("merging", each.failure) for each in self.merged if each.failure]
        whole = [merging for merging in self.merged if merging.failure is None]
        tasks = [list_task(merging.turn_id, self.prompts[2], merging.kept) for merging in whole]
        for merging, answer in zip(whole, self._ask(asking, tasks), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("importance", answer))
            else:
                self.nuggets += weighed(merging.turn_id, merging.kept, answer, self.judge.name)


def _passed_over(found: TurnSources) -> list[tuple[str, str]]:
    """What is no source of nuggets, in short and as a note."""
    rows = (
        (found.lacking, "passage", "used passage", "without a text", ": no nugget is taken from them"),
        (found.irrelevant, "passage", "used passage", "not graded as relevant", ": left out"),
        (found.own_turns, "response", "response", "of interactive runs", ", whose turns are the runs' own: left out"),
    )
    return [(f"{count(n, name)} {why}", f"{count(n, full)} {why}{more}") for n, name, full, why, more in rows if n]


def _prompt(name: str | Path, criterion: str) -> Criterion:
    prompt = find_criterion(name)
    if prompt.name != criterion:
        raise UsageError(f'{prompt.prompt_id}: not a prompt of this step: expected `criterion = "{criterion}"` in it')
    labels = _LABELS.get(criterion)
    if labels is not None and {level.label for level in prompt.sentence_levels} != {*labels}:
        raise UsageError(f"{prompt.prompt_id}: expected the sentence levels {' and '.join(labels)}, and no other")
    return prompt


RECORD = "bank.sha256"


class NuggetCreation(Record, frozen=True):
    """The bank that a judge made, and what it took."""

    nuggets: Table[Nugget]
    failures: Table[NuggetFailure]
    turns: int
    """Turns with nuggets."""
    without: tuple[str, ...]
    """Turns with sources and without a nugget."""
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def create_nuggets(
    plan: NuggetCreatePlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetCreation:
    """Ask a judge for the nuggets of every turn of a pool, and write them as a bank.

    `report` is called after each answer, with the progress of the step. `progress` shows a bar in a notebook or on a
    terminal, elsewhere lines now and then; or it is the line to show it on. An OperationalError if asking stopped
    early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        job = Creation(plan)
        with Asking(JournalPlace(plan.out), job.pool, job.turns, shown) as asking:
            asking.prepare(job.judge.models[0])
            # Left by a job that is stopped too, so that nothing else is asked into its folder.
            replace_folder(plan.out, {CREATED: job.manifest("unfinished")}, RECORD, more=True)
            job.merge(asking)
            job.weigh(asking)
            notes = (*asking.notes(job.judge.models, job.results), *(note for _, note in _passed_over(job.found)))
        return _written(job, notes, asking.accounts[0])


def forecast_creation(plan: NuggetCreatePlan) -> JobForecast:
    """Count what the first step of `create_nuggets` would send beyond what the journal holds."""
    job = Creation(plan, keys=False)
    with AskingForecast(JournalPlace(plan.out), job.pool, job.turns) as forecasts:
        forecast = forecasts.forecast(job.judge, job.tasks)
    passages = sum(source.passage is not None for source in job.listed)
    counts = {"turns": len(job.asked_turns), "passages": passages, "responses": len(job.listed) - passages}
    return JobForecast(counts, forecast)


def _written(job: Creation, notes: tuple[str, ...], account: JudgeAccount) -> NuggetCreation:
    nuggets = job.nuggets
    failures = job.failures
    with_nuggets = {nugget.turn_id for nugget in nuggets}
    without = tuple(turn_id for turn_id in job.asked_turns if turn_id not in with_nuggets)
    status = "trial" if job.plan.limit is not None else "incomplete" if failures else "complete"
    counts = {
        "turns": len(job.asked_turns),
        "turns_without_nuggets": list(without),
        "sources": len(job.listed),
        "passages_without_text": job.found.lacking,
        "passages_not_relevant": job.found.irrelevant,
        "candidates_left_over": sum(len(merging.waiting) for merging in job.merged),
        "nuggets": len(nuggets),
        "importance": dict(sorted(Counter(nugget.importance or "" for nugget in nuggets).items())),
        "failures": dict(sorted(Counter(f"{row.step}: {row.reason}" for row in failures).items())),
        "models": sorted({row.model for row in job.results if isinstance(row, Judgment) and row.model}),
    }
    files = {
        BANK: bank_bytes(nuggets, "judge"),
        LABEL_FAILURES: jsonl_bytes(failures),
        CREATED: job.manifest(status, **counts),
    }
    replace_folder(job.plan.out, files, RECORD)
    return NuggetCreation(
        nuggets=Table(nuggets),
        failures=Table(failures),
        turns=len(with_nuggets),
        without=without,
        account=account,
        notes=notes,
    )
