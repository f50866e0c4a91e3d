"""The assess desk in the browser: the page of a task, the list of one's labels, and what their forms do.

`serve_assess` is what `judge serve assess` does, for use from Python.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import Field
from starlette.responses import Response

import judge.extra.desk.app as desk
from judge.ask.criteria import choose_prompts, criterion_names
from judge.ask.prompt import ALONE, NO_ANSWER, PLACEHOLDER, guidance, needs_turn
from judge.ask.records import Failure, Judgment
from judge.ask.results import JUDGMENTS, Label, is_jury, stored_judgments
from judge.errors import InputError, UsageError, refuse
from judge.extra.desk.adjudication import Adjudication, AdjudicationStore, EarlierLabel, shared_places
from judge.extra.desk.app import listen, serve_desk
from judge.extra.desk.store import DeskTask, LabelStore
from judge.gold import CANNOT, UNABLE
from judge.gold.dealing import DOUBLE, deal, shared_items
from judge.gold.plan import PlanRow, can_be_labeled, no_texts, plan_row, read_plan
from judge.gold.rows import ADJUDICATED, parse_gold, response_digest
from judge.gold.seal import SEAL, read_seal
from judge.gold.sheets import readable
from judge.io.files import file_in, jsonl_bytes, read_content, sha256
from judge.io.ids import natural_key
from judge.io.plan import Amount, Option, Options, Positive
from judge.io.table import Cell, tsv
from judge.io.text import count, shown, storable
from judge.jobs.options import criteria_of_pool
from judge.jobs.parts import check_part
from judge.pool.bank import pool_file, read_pool_folder
from judge.pool.conversation import turns_shown
from judge.pool.pairs import one_each
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Level, file_problem
from judge.runs.records import Turn
from judge.runs.topics import topic_turns
from judge.units import UNITS

_LONGEST_NAME = 80


class AssessPlan(Options, section="address"):
    """Everything `judge serve assess` can be told."""

    host: Annotated[str, Option(metavar="NAME")] = "127.0.0.1"
    """Network interface to answer at (default 127.0.0.1: this machine alone)."""
    port: Annotated[int, Field(ge=0, le=65535), Option(metavar="N")] = desk.PORT
    """Port to answer at; 0 takes a free one."""
    pool: Annotated[Path, Option(metavar="OUT|FILE", section="what is labeled")]
    """Output folder or its pool.jsonl."""
    plan: Annotated[Path | None, Option(metavar="FILE")] = None
    """Plan of `judge gold plan` (default: the whole pool)."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt whose scale is used (default: those of the plan's criteria, else those that such a pool is judged by)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for the conversation."""
    assessors: Annotated[tuple[str, ...], Option("assessor", metavar="NAME", repeat=True, section="who labels")]
    """Who labels, or adjudicates; once for each person."""
    double: Annotated[Amount | None, Option(metavar="SHARE")] = None
    """Share of the responses that every assessor labels (default 0.2 with several assessors)."""
    seed: Annotated[int, Option(metavar="S")] = 0
    """Seed of the orders."""
    store: Annotated[Path, Option(metavar="FILE", section="labels")]
    """SQLite file that keeps the labels."""
    adjudicate: Annotated[bool, Option(section="adjudication")] = False
    """Deal what the assessors of --store differ on to a third person, whose grade counts."""
    differ: Positive = 1
    """Levels of the scale by which labels differ at least; "unable to judge" differs from any grade."""
    blind: bool = False
    """Hide the assessors' grades and comments from who adjudicates (default: show them, without names)."""
    made: Annotated[Literal["blind", "postedit"], Option(section="a judge's grades")] = "blind"
    """Whether a judge's grade is shown."""
    judgments: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """The judge's grades for postedit: judgments.jsonl or its folder."""

    @property
    def shared(self) -> float:
        """The share of the items that every assessor labels."""
        if self.double is not None:
            return self.double
        return DOUBLE if len(self.assessors) > 1 else 0.0

    def _check(self) -> None:
        for name in self.assessors:
            if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
                raise UsageError(
                    f"--assessor {shown(name)}: expected a name of 1 to {_LONGEST_NAME} printable characters"
                )
        if twice := [name for name, times in Counter(map(str.casefold, self.assessors)).items() if times > 1]:
            raise UsageError(f"--assessor {', '.join(map(shown, twice))}: given twice; two people need two names")
        if self.adjudicate:
            self.refuse_unused(("double", "judgments"), "an item is adjudicated once, without a judge's grade")
            if self.made == "postedit":
                raise UsageError("--adjudicate and --made postedit: who adjudicates sees no judge's grade")
        else:
            self.refuse_unused(("differ", "blind"), "they are about --adjudicate")
        if self.shared > 1:
            raise UsageError(f"--double {self.double}: expected a share from 0 to 1")
        if self.double and len(self.assessors) < 2:
            raise UsageError("--double: what every assessor labels needs two assessors or more")
        if self.judgments is not None and self.made == "blind":
            raise UsageError(
                "--judgments: blind assessors see no judge's grade; --made postedit shows it, and marks the rows"
            )
        if self.made == "postedit" and self.judgments is None:
            raise UsageError("--made postedit: expected --judgments, whose grades are to be edited")


class Work:
    """What a desk shows of a plan: what is to be labeled."""

    def __init__(self, plan: AssessPlan, shared: frozenset[int] | None = None) -> None:
        """Read what the plan names; `shared` are the places of the items that all label, where a store knows them."""
        drawn = _drawn(file_in(plan.plan, "plan.jsonl")) if plan.plan is not None else None
        there = pool_file(plan.pool).with_name("passages.jsonl").exists()
        pool = read_pool_folder(plan.pool, *(("passages.jsonl",) if there else ()))
        self.criteria = criteria = _criteria(plan, drawn, pool)
        if not there and any({"passages", "sentences"} & set(criterion.inputs) for criterion in criteria.values()):
            pool = read_pool_folder(plan.pool, "passages.jsonl")
        self.passages = {key: readable(passage.text) for key, passage in pool.passages.items()}
        check_part(tuple(criteria.values()), pool, plan.pool)
        rows = _responses(one_each(pool, plan.seed) if drawn is None else pool, drawn, str(plan.plan))
        self.not_dealt = len(rows)
        rows = {response: row for response, row in rows.items() if can_be_labeled(response, pool)}
        self.not_dealt -= len(rows)
        """Citations and passages without a text of the passage, which nobody can grade."""
        self.unit = UNITS[pool.unit]
        if not rows:
            raise no_texts(pool, plan.pool)
        self.responses = tuple(rows)
        self._answers = {
            (entry.run_id, answer.turn_id): answer.text for answer in pool.answers for entry in answer.runs
        }
        if shared is None:
            shared = shared_items([response.response_id for response in rows], plan.shared, plan.seed)
        self.shared = shared
        """The places of the items that every assessor labels."""
        self.items = tuple(_item(response, row, criteria) for response, row in rows.items())
        self.suggestions = _suggestions(plan, {item.response_id: item.turn_id for item in self.items}, criteria)
        """By response id and criterion; empty unless in post-edit mode."""
        # What the assessors see, and what the labels will say about it.
        shown = [
            (item, index in self.shared, response.passages)
            for index, (item, response) in enumerate(zip(self.items, self.responses, strict=True))
        ]
        digest = sha256(jsonl_bytes(shown))
        if not any(item.criteria for item in self.items):
            raise UsageError(f"{plan.plan}: plans no label of {', '.join(criteria)}")
        self.turns = _turns(plan, pool, self.items, criteria)
        made = f"{plan.made} of {next(iter(self.suggestions.values())).judge}" if plan.judgments else plan.made
        self.settings = {
            "assessors": ", ".join(plan.assessors),
            "prompts": ", ".join(f"{prompt.prompt_id} ({prompt.digest[:12]})" for prompt in criteria.values()),
            "items": f"{count(len(self.items), self.unit.nouns.response)} ({digest[:12]})",
            "double": f"{plan.shared:g}",
            "seed": str(plan.seed),
            "made": made,
        }
        """What the labels belong to, in words."""

    def text_of(self, response: PooledResponse) -> str:
        """What is labeled, as a text: a passage, or what the run said."""
        return self.passages[response.passages[0]] if self.unit.listed else readable(response.shown)

    def around(self, item: PlanRow, sentence: str) -> tuple[str, str] | None:
        """What a run's answer says before and after one of its sentences; None where the answer is not known."""
        answer = self._answers.get((item.runs[0], item.turn_id)) if item.runs else None
        if answer is None or sentence not in answer:
            return None
        before, _, after = answer.partition(sentence)
        return readable(before), readable(after)


def _drawn(path: Path) -> tuple[PlanRow, ...]:
    content = read_content(path)
    try:
        rows: Sequence[PlanRow] = read_plan(content, str(path))
        named = {(row.turn_id, row.response_id) for row in rows} | {(row.turn_id, row.text_sha256) for row in rows}
    except InputError:
        try:
            gold = parse_gold(content, str(path))
        except InputError:
            gold = ()
        if not gold:
            raise
        rows = ()
        named = {(row.turn_id, row.text_sha256 or row.response_id or "") for row in gold}
    seal = path.with_name(SEAL)
    if seal.exists() and any((item.turn_id, item.response) in named for item in read_seal(seal).test.items):
        raise UsageError(
            f"{path}: holds sealed test items, says {seal}: whoever labels or tunes prompts with them in sight spoils "
            "the test; label before `judge gold split`, or plan others (`judge gold plan --gold`)"
        )
    if not rows:
        raise UsageError(f"{path}: grades, not a plan: expected what `judge gold plan` writes")
    return tuple(rows)


def _criteria(plan: AssessPlan, drawn: Sequence[PlanRow] | None, pool: Pool) -> dict[str, Criterion]:
    planned = sorted(set(chain.from_iterable(row.criteria for row in drawn or ())))
    default = [name for name in planned if name in criterion_names()]
    if drawn is None:
        default = [*criteria_of_pool(pool.unit)]
    chosen = choose_prompts((), plan.prompts, default)
    for name, (first, *others) in chosen.items():
        if others:
            raise UsageError(f"--prompt: {first.prompt_id} and {others[0].prompt_id} are two scales of {name}")
        if drawn is not None and name not in planned:
            raise UsageError(f"{plan.plan}: plans no label of {name}, only of {', '.join(planned)}")
    if not chosen:
        raise UsageError(f"{plan.plan}: plans labels of {', '.join(planned)}: expected a --prompt for each")
    return {name: prompts[0] for name, prompts in chosen.items()}


def _responses(pool: Pool, drawn: Sequence[PlanRow] | None, name: str) -> dict[PooledResponse, PlanRow | None]:
    """The responses to label with their rows of the plan, in natural order."""
    planned: list[tuple[PooledResponse, PlanRow | None]] = []
    if drawn is None:
        planned = [(response, None) for response in pool.responses]
    else:
        by_id = {response.response_id: response for response in pool.responses}
        problems = []
        for line, row in enumerate(drawn, 1):
            response = by_id.get(row.response_id)
            if response is None or (response.turn_id, response_digest(response)) != (row.turn_id, row.text_sha256):
                message = f"the pool has no response {row.response_id} of this turn and text: drawn from another pool?"
                problems.append(file_problem("not_in_pool", name, message, f"line {line}", turn_id=row.turn_id))
            else:
                planned.append((response, row))
        refuse(problems, f"{name}: not a plan of this pool: {count(len(problems), 'problem')}")
    if not planned:
        raise InputError("nothing to label: the pool is empty")
    return dict(sorted(planned, key=lambda pair: (natural_key(pair[0].turn_id), natural_key(pair[0].response_id))))


def _item(response: PooledResponse, row: PlanRow | None, criteria: Collection[str]) -> PlanRow:
    """A row for what is labeled of a response, as planned, or all of it."""
    item = plan_row(
        response,
        criteria=tuple(name for name in criteria if row is None or name in row.criteria),
        probability=row.inclusion_probability if row else 1.0,
        stratum=row.stratum if row else "certain",
    )
    # One text may rest on different passages in different runs, so a label names a run.
    return replace(item, runs=tuple(sorted(item.runs, key=natural_key)[:1]))


def _turns(
    plan: AssessPlan, pool: Pool, items: Sequence[PlanRow], criteria: Mapping[str, Criterion]
) -> Mapping[str, Turn]:
    shown = ", ".join(prompt.prompt_id for prompt in criteria.values() if needs_turn(prompt))
    turns = turns_shown(pool, topic_turns(plan.topics)) or {}
    lacking = sorted({item.turn_id for item in items} - turns.keys(), key=natural_key)
    if lacking and plan.topics is not None:
        raise UsageError(f"{plan.topics}: lacks {count(len(lacking), 'turn')} to label: {', '.join(lacking[:5])}")
    if lacking and shown:
        raise UsageError(f"{shown}: shown with the conversation, so a topics file is needed (--topics)")
    labeled = {item.turn_id for item in items}
    return {turn_id: _readable_turn(turn) for turn_id, turn in turns.items() if turn_id in labeled}


def _readable_turn(turn: Turn) -> Turn:
    """The turn with its texts as people read them, on sheets too."""
    return replace(
        turn,
        utterance=readable(turn.utterance),
        resolved_utterance=turn.resolved_utterance and readable(turn.resolved_utterance),
        context=tuple(
            replace(exchange, utterance=readable(exchange.utterance), response=readable(exchange.response))
            for exchange in turn.context
        ),
        ptkb=tuple(replace(statement, text=readable(statement.text)) for statement in turn.ptkb),
        references=tuple(map(readable, turn.references)),
    )


def _suggestions(
    plan: AssessPlan, turns: Mapping[str, str], criteria: Mapping[str, Criterion]
) -> dict[tuple[str, str], Judgment]:
    """The judge's grades of the responses with these turns; of several samples the first."""
    if plan.judgments is None:
        return {}
    path = file_in(plan.judgments, JUDGMENTS)
    suggestions: dict[tuple[str, str], Judgment] = {}
    judges: set[str] = set()
    for judgment in stored_judgments(path):
        response_id = judgment.response_id
        prompt = criteria.get(judgment.criterion)
        if isinstance(judgment, Failure) or prompt is None or judgment.sample > 0 or response_id not in turns:
            continue
        if judgment.turn_id != turns[response_id]:
            raise UsageError(f"{path}: {response_id} is of turn {judgment.turn_id}: grades of another pool")
        # The digest of a jury covers its members too.
        if judgment.criterion_digest != prompt.digest and not is_jury(judgment.judge):
            other = f"{judgment.criterion}/{judgment.variant} ({judgment.criterion_digest[:12]})"
            own = f"{prompt.prompt_id} ({prompt.digest[:12]})"
            raise UsageError(f"{path}: grades under {other}; the desk asks under {own}")
        judges.add(judgment.judge)
        suggestions[response_id, judgment.criterion] = judgment
    if len(judges) != 1:
        raise UsageError(f"{path}: expected the grades of one judge, found {', '.join(sorted(judges)) or 'none'}")
    return suggestions


LISTED = 100
"""Tasks on one page of the list."""
_LONGEST_COMMENT = 10_000
_BEGINNING = 140
"""Characters of a response in the list."""
_COLUMNS = ("place", "turn_id", "criterion", "grade", "unable", "comment")
_UNABLE_KEY = "u"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HEADLINE = re.compile(r"([^.:;]{1,40}\.)\s+(.+)")
"""A short first sentence, such as "Mostly grounded."."""
_UNDECIDED = "It cannot be decided from what is shown."
FILTERS: Mapping[str, tuple[str, Callable[[Label | None], bool]]] = {
    "all": ("All", lambda label: True),
    "comment": ("With a comment", lambda label: label is not None and bool(label.rationale)),
    "unable": (CANNOT, lambda label: label is not None and label.grade is None),
    "open": ("Without a label", lambda label: label is None),
}
"""What the list may show: its name, and whether a task with this label, or without one, is shown."""


class AssessDesk:
    """Answers the assessors of one store."""

    def __init__(self, work: Work, store: LabelStore) -> None:
        self._work = work
        self._store = store
        self.not_dealt = work.not_dealt
        self.noun = work.unit.nouns.response
        """What one is called that is labeled."""

    def app(self, hosts: Sequence[str] = (), port: int = 0) -> desk.Guard:
        """The application; see `desk_app`."""
        return desk.desk_app(
            self._store.seats,
            {"/": self._next, "/{place:int}": self._task, "/list": self._list, "/labels.tsv": self._download},
            {"/{place:int}": self._save, "/undo": self._undo},
            hosts,
            port,
        )

    async def _next(self, visit: desk.Visit) -> Response:
        """Lead to the next task without a label; `after` is the place of one that is left for later."""
        following = self._store.following(visit.seat.path, desk.whole_number(visit.query.get("after")) or 0)
        return visit.go(f"/{following.place}") if following else visit.page("assess_done.html", **self._shown(visit))

    async def _task(self, visit: desk.Visit) -> Response:
        return self._task_page(visit, self._named(visit))

    async def _save(self, visit: desk.Visit) -> Response:
        task = self._named(visit)
        grades = {str(level.grade): level.grade for level in self._work.criteria[task.criterion].scale.levels}
        chosen = visit.form.get("grade", "")
        comment = visit.form.get("comment", "").replace("\r\n", "\n").strip()
        if chosen not in grades and chosen != UNABLE:
            return self._task_page(visit, task, problem="Choose a level first.", comment=comment)
        if len(comment) > _LONGEST_COMMENT or not storable(comment):
            problem = f"The comment must be text of at most {_LONGEST_COMMENT:,} characters."
            return self._task_page(visit, task, problem=problem, comment=comment[:_LONGEST_COMMENT])
        item = self._work.items[task.item]
        shown = (item.response_id, task.criterion) in self._work.suggestions
        made = "postedit" if shown else "blind"
        if self._store.adjudicates:
            made = ADJUDICATED
        await asyncio.to_thread(self._store.save, visit.seat.path, task, grades.get(chosen), comment, made)
        return visit.go(f"/?after={task.place}")

    async def _undo(self, visit: desk.Visit) -> Response:
        task = await asyncio.to_thread(self._store.undo, visit.seat.path)
        return visit.go(f"/{task.place}" if task else "/")

    async def _list(self, visit: desk.Visit) -> Response:
        """The assessor's own tasks with their labels, a page at a time."""
        kept = visit.query.get("show", "all")
        labeled = self._store.labeled(visit.seat.path)
        _, keeps = FILTERS.get(kept, FILTERS["all"])
        listed = [task for task in self._store.tasks(visit.seat.path) if keeps(labeled.get(task.place))]
        pages = max(1, -(-len(listed) // LISTED))
        page = min(max(1, desk.whole_number(visit.query.get("page")) or 1), pages)
        first = (page - 1) * LISTED
        return visit.page(
            "assess_list.html",
            tasks=[self._line(task, labeled.get(task.place)) for task in listed[first : first + LISTED]],
            kept=kept,
            filters={name: words for name, (words, _) in FILTERS.items()},
            noun="passage" if self._work.unit.listed else "response",
            page=page,
            pages=pages,
            **self._shown(visit),
        )

    async def _download(self, visit: desk.Visit) -> Response:
        labeled = self._store.labeled(visit.seat.path)
        rows: list[tuple[Cell, ...]] = []
        for task in self._store.tasks(visit.seat.path):
            if choice := labeled.get(task.place):
                turn_id = self._work.items[task.item].turn_id
                unable = int(choice.grade is None)
                rows.append((task.place, turn_id, task.criterion, choice.grade, unable, choice.rationale or ""))
        headers = {"content-disposition": 'attachment; filename="labels.tsv"'}
        return Response(tsv(_COLUMNS, rows), media_type="text/tab-separated-values", headers=headers)

    def _task_page(self, visit: desk.Visit, task: DeskTask, problem: str = "", comment: str | None = None) -> Response:
        labeled = self._store.labeled(visit.seat.path)
        tasks = self._store.tasks(visit.seat.path)
        choice = labeled.get(task.place)
        view = task_view(self._work, task, choice)
        earlier = earlier_view(self._work.criteria[task.criterion], self._store.earlier(task))
        shown = {"adjudicates": self._store.adjudicates, "earlier": earlier}
        shown |= {"choice": choice, "problem": problem, "comment": view["comment"] if comment is None else comment}
        first = not any(tasks[place - 1].criterion == task.criterion for place in labeled)
        status = 422 if problem else 200
        return visit.page("assess_task.html", status, view=view, first=first, **shown, **self._shown(visit))

    def _named(self, visit: desk.Visit) -> DeskTask:
        tasks = self._store.tasks(visit.seat.path)
        place = int(visit.given["place"])
        if not 1 <= place <= len(tasks):
            desk.missing_page()
        return tasks[place - 1]

    def _shown(self, visit: desk.Visit) -> dict[str, object]:
        """What every page of the desk shows: how far the assessor is, and what was saved last."""
        tasks = self._store.tasks(visit.seat.path)
        last = self._store.last(visit.seat.path)
        return {
            "done": len(self._store.labeled(visit.seat.path)),
            "total": len(tasks),
            "shared": self._store.shared[visit.seat.path],
            "last": last,
            "last_words": label_words(self._work.criteria[last[0].criterion], last[1].grade) if last else "",
            "several": len(self._work.criteria) > 1,
        }

    def _line(self, task: DeskTask, choice: Label | None) -> dict[str, object]:
        """A line of the list; without a label it has no words."""
        text = self._work.text_of(self._work.responses[task.item])
        return {
            "task": task,
            "beginning": f"{text[:_BEGINNING]}…" if len(text) > _BEGINNING else text,
            "words": label_words(self._work.criteria[task.criterion], choice.grade) if choice else "",
            "choice": choice,
        }


def task_view(work: Work, task: DeskTask, choice: Label | None) -> dict[str, object]:
    """What the page of a task shows, after what the assessor chose earlier."""
    item = work.items[task.item]
    response = work.responses[task.item]
    criterion = work.criteria[task.criterion]
    suggestion = work.suggestions.get((item.response_id, task.criterion))
    return {
        "task": task,
        "criterion": criterion.name,
        "question": question(criterion),
        "guidance": guidance(criterion),
        "sentence_levels": [(level.label, level.description) for level in criterion.sentence_levels],
        "response": readable(response.text) or NO_ANSWER,
        "passage": work.text_of(response) if work.unit.listed else None,
        "second": readable(response.second),
        # Of a citation, what the answer says before and after it.
        "around": work.around(item, response.text) if UNITS[response.unit].part_of_response else None,
        # None for a passage without a text.
        "passages": [work.passages.get(key) for key in response.passages],
        # What a judge sees under this prompt: these inputs, such as passages, and the conversation.
        "inputs": criterion.inputs,
        "passages_count": "passages" in criterion.inputs,
        "turn": work.turns.get(item.turn_id),
        "turn_counts": needs_turn(criterion),
        # Whoever labels something else is not told the right answer.
        "reference_counts": "reference" in criterion.inputs,
        "unit": response.unit,
        "levels": _levels(criterion, choice, suggestion),
        "comment": (choice.rationale or "") if choice else "",
        "judge": suggestion.judge if suggestion else None,
    }


def earlier_view(criterion: Criterion, labels: Sequence[EarlierLabel]) -> list[dict[str, object]]:
    """What the page of an adjudicator shows of each label, under a letter in place of a name."""
    return [
        {
            "letter": _LETTERS[place] if place < len(_LETTERS) else str(place + 1),
            "grade": label.grade,
            "words": label_words(criterion, label.grade),
            "comment": readable(label.comment),
        }
        for place, label in enumerate(labels)
    ]


def question(criterion: Criterion) -> str:
    """What a prompt asks after all it has shown; empty if it only shows."""
    return " ".join(PLACEHOLDER.sub("", ALONE.sub("", criterion.user)).split())


def label_words(criterion: Criterion, grade: int | None) -> str:
    """A grade in one or two words; None if the assessor was unable to judge."""
    if grade is None:
        return CANNOT.lower()
    label = next((level.label for level in criterion.scale.levels if level.grade == grade), "")
    return str(grade) if label in ("", str(grade)) else f"{grade} {label}"


def _levels(criterion: Criterion, choice: Label | None, suggestion: Judgment | None) -> list[dict[str, object]]:
    """The levels to choose from, with the key that chooses each; whether it is chosen, and the judge's."""
    scale = criterion.scale
    keys = level_keys(scale.levels)
    suggested = _value(None if suggestion.unable else suggestion.grade) if suggestion else None
    chosen = _value(choice.grade) if choice else suggested
    rows: list[dict[str, object]] = []
    for level in scale.levels:
        label, description = _headed(level)
        rows.append({"value": str(level.grade), "key": keys[level.grade], "label": label, "description": description})
    description = scale.unable.description if scale.unable else _UNDECIDED
    rows.append({"value": UNABLE, "key": _UNABLE_KEY, "label": f"{CANNOT}.", "description": description})
    for row in rows:
        row["chosen"] = row["value"] == chosen
        row["suggested"] = row["value"] == suggested
    return rows


def level_keys(levels: Sequence[Level]) -> Mapping[int, str]:
    """The key of each grade: the grade itself where every grade is a digit, else its place on the scale."""
    grades = [level.grade for level in levels]
    if all(0 <= grade <= 9 for grade in grades):
        return {grade: str(grade) for grade in grades}
    return {grade: str(place) if place <= 9 else "" for place, grade in enumerate(grades, 1)}


def _headed(level: Level) -> tuple[str, str]:
    """The label and the description of a level; a number is replaced by the words that the description begins with."""
    if level.label != str(level.grade):
        return level.label, level.description
    begins = _HEADLINE.fullmatch(level.description)
    return (begins[1], begins[2]) if begins else ("", level.description)


def _value(grade: int | None) -> str:
    return UNABLE if grade is None else str(grade)


@contextmanager
def open_assess_desk(plan: AssessPlan) -> Iterator[tuple[AssessDesk, LabelStore]]:
    """Open a desk and its store, which are closed at the end; `.app()` of the desk is an ASGI application."""
    if plan.adjudicate:
        with _adjudication_store(plan, work := Work(plan, shared_places(plan.store))) as adjudications:
            yield AssessDesk(work, adjudications), adjudications
        return
    work = Work(plan)
    dealt = deal([item.response_id for item in work.items], plan.assessors, plan.shared, plan.seed)
    with LabelStore(
        path=plan.store,
        settings=work.settings,
        items=work.items,
        shared=work.shared,
        assessors=plan.assessors,
        dealt=dealt,
    ) as store:
        yield AssessDesk(work, store), store


def _adjudication_store(plan: AssessPlan, work: Work) -> AdjudicationStore:
    """The store of a plan, for those who adjudicate."""
    levels: dict[str, Sequence[int]] = {}
    for name, criterion in work.criteria.items():
        levels[name] = sorted(level.grade for level in criterion.scale.levels)
    adjudication = Adjudication(
        adjudicators=plan.assessors,
        differ=plan.differ,
        blind=plan.blind,
        seed=plan.seed,
        levels=levels,
    )
    # Who assesses, and how much of it twice, is the store's.
    settings = {name: value for name, value in work.settings.items() if name not in ("assessors", "double")}
    return AdjudicationStore(plan.store, settings, adjudication)


def serve_assess(
    plan: AssessPlan,
    ready: Callable[[desk.Listener, Sequence[desk.Seat]], None] = lambda listener, seats: None,
    note: Callable[[str], None] = lambda words: None,
) -> tuple[tuple[str, int, int], ...]:
    """Let assessors label until Ctrl-C; a label is on the disk before its page says so.

    Each assessor comes back with the number of their labels and of their tasks.

    `ready` is called with the address and the seats when the desk can be visited, and `note` with what is not dealt. An
    OperationalError if another process has the store open, or answers at the address.
    """
    with open_assess_desk(plan) as (assess, store):
        if assess.not_dealt:
            note(f"{count(assess.not_dealt, assess.noun)} not dealt: no text of the passage")
        for words in store.notes:
            note(words)
        listener = listen(plan.host, plan.port)
        serve_desk(assess.app(listener.hosts, listener.port), listener, lambda: ready(listener, store.seats))
        return tuple((seat.name, len(store.labeled(seat.path)), len(store.tasks(seat.path))) for seat in store.seats)
