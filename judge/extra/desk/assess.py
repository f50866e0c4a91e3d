"""The assess desk in the browser: the page of a task, the list of one's labels, and what their forms do.

`serve_assess` is what `judge serve assess` does, for use from Python.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from starlette.responses import Response

from judge.ask.prompt import NO_ANSWER, PLACEHOLDER, guidance, needs_turn
from judge.extra.desk.app import Guard, Seat, Visit, desk_app, list_page, missing_page, whole_number
from judge.extra.desk.assess_inputs import AssessPlan, Suggestion, Work, read_work
from judge.extra.desk.server import Listener, listen, serve_desk
from judge.extra.desk.store import DeskLabel, DeskTask, LabelStore
from judge.gold.grades import CANNOT, UNABLE
from judge.gold.plan import deal
from judge.io.table import tsv
from judge.io.text import storable
from judge.records import Criterion, Level, Record

LISTED = 100
"""Tasks on one page of the list."""
_LONGEST_COMMENT = 10_000
_BEGINNING = 140
"""Characters of a response in the list."""
_COLUMNS = ("place", "turn_id", "criterion", "grade", "unable", "comment")
_UNABLE_KEY = "u"
_HEADLINE = re.compile(r"([^.:;]{1,40}\.)\s+(.+)")
"""A short first sentence, such as "Mostly grounded."."""
_UNDECIDED = "It cannot be decided from what is shown."
FILTERS: Mapping[str, tuple[str, Callable[[DeskLabel | None], bool]]] = {
    "all": ("All", lambda label: True),
    "comment": ("With a comment", lambda label: label is not None and bool(label.comment)),
    "unable": (CANNOT, lambda label: label is not None and label.grade is None),
    "open": ("Without a label", lambda label: label is None),
}
"""What the list may show: its name, and whether a task with this label, or without one, is shown."""


class AssessDesk:
    """Answers the assessors of one store."""

    def __init__(self, work: Work, store: LabelStore) -> None:
        self._work = work
        self._store = store

    def app(self, hosts: Sequence[str] = (), port: int = 0) -> Guard:
        """The application; see `desk_app`."""
        return desk_app(
            self._store.seats,
            {"/": self._next, "/{place:int}": self._task, "/list": self._list, "/labels.tsv": self._download},
            {"/{place:int}": self._save, "/undo": self._undo},
            hosts,
            port,
        )

    async def _next(self, visit: Visit) -> Response:
        """Lead to the next task without a label; `after` is the place of one that is left for later."""
        following = self._store.following(visit.seat.path, whole_number(visit.query.get("after")) or 0)
        return visit.go(f"/{following.place}") if following else visit.page("assess_done.html", **self._shown(visit))

    async def _task(self, visit: Visit) -> Response:
        return self._task_page(visit, self._named(visit))

    async def _save(self, visit: Visit) -> Response:
        task = self._named(visit)
        grades = {str(level.grade): level.grade for level in self._work.criteria[task.criterion].scale.levels}
        given = visit.form.get("grade", "")
        comment = visit.form.get("comment", "").replace("\r\n", "\n").strip()
        if given not in grades and given != UNABLE:
            return self._task_page(visit, task, problem="Choose a level first.", comment=comment)
        if len(comment) > _LONGEST_COMMENT or not storable(comment):
            problem = f"The comment must be text of at most {_LONGEST_COMMENT:,} characters."
            return self._task_page(visit, task, problem=problem, comment=comment[:_LONGEST_COMMENT])
        item = self._work.items[task.item]
        shown = (item.response_id, task.criterion) in self._work.suggestions
        label, made = DeskLabel(grades.get(given), comment), "postedit" if shown else "blind"
        await asyncio.to_thread(self._store.save, visit.seat.path, task, label, made)
        return visit.go(f"/?after={task.place}")

    async def _undo(self, visit: Visit) -> Response:
        task = await asyncio.to_thread(self._store.undo, visit.seat.path)
        return visit.go(f"/{task.place}" if task else "/")

    async def _list(self, visit: Visit) -> Response:
        """The assessor's own tasks with their labels, a page at a time."""
        kept = visit.query.get("show", "all")
        labeled = self._store.labeled(visit.seat.path)
        _, keeps = FILTERS.get(kept, FILTERS["all"])
        found = [task for task in self._store.tasks(visit.seat.path) if keeps(labeled.get(task.place))]
        part = list_page(found, visit.query.get("page"), LISTED)
        return visit.page(
            "assess_list.html",
            tasks=[self._line(task, labeled.get(task.place)) for task in part.shown],
            kept=kept,
            filters={name: words for name, (words, _) in FILTERS.items()},
            page=part.page,
            pages=part.pages,
            **self._shown(visit),
        )

    async def _download(self, visit: Visit) -> Response:
        labeled = self._store.labeled(visit.seat.path)
        rows = (
            (
                *(task.place, self._work.items[task.item].turn_id, task.criterion),
                *(choice.grade, int(choice.grade is None), choice.comment),
            )
            for task in self._store.tasks(visit.seat.path)
            if (choice := labeled.get(task.place))
        )
        headers = {"content-disposition": 'attachment; filename="labels.tsv"'}
        return Response(tsv(_COLUMNS, rows), media_type="text/tab-separated-values", headers=headers)

    def _task_page(self, visit: Visit, task: DeskTask, problem: str = "", comment: str | None = None) -> Response:
        labeled, tasks = self._store.labeled(visit.seat.path), self._store.tasks(visit.seat.path)
        choice = labeled.get(task.place)
        view = task_view(self._work, task, choice)
        shown = {"choice": choice, "problem": problem, "comment": view["comment"] if comment is None else comment}
        first = not any(tasks[place - 1].criterion == task.criterion for place in labeled)
        status = 422 if problem else 200
        return visit.page("assess_task.html", status, view=view, first=first, **shown, **self._shown(visit))

    def _named(self, visit: Visit) -> DeskTask:
        tasks, place = self._store.tasks(visit.seat.path), int(visit.given["place"])
        if not 1 <= place <= len(tasks):
            missing_page()
        return tasks[place - 1]

    def _shown(self, visit: Visit) -> dict[str, object]:
        """What every page of the desk shows: how far the assessor is, and what was saved last."""
        tasks = self._store.tasks(visit.seat.path)
        last = self._store.last(visit.seat.path)
        return {
            "done": len(self._store.labeled(visit.seat.path)),
            "total": len(tasks),
            "shared": self._store.shared[visit.seat.path],
            "last": last,
            "last_words": label_words(self._work.criteria[last[0].criterion], last[1]) if last else "",
            "several": len(self._work.criteria) > 1,
        }

    def _line(self, task: DeskTask, choice: DeskLabel | None) -> dict[str, object]:
        """A line of the list; without a label it has no words."""
        text = self._work.responses[task.item].text
        return {
            "task": task,
            "beginning": text[:_BEGINNING] + "…" * (len(text) > _BEGINNING),
            "words": label_words(self._work.criteria[task.criterion], choice) if choice else "",
            "choice": choice,
        }


def task_view(work: Work, task: DeskTask, choice: DeskLabel | None) -> dict[str, object]:
    """What the page of a task shows, after what the assessor chose earlier."""
    item, response = work.items[task.item], work.responses[task.item]
    criterion = work.criteria[task.criterion]
    suggestion = work.suggestions.get((item.response_id, task.criterion))
    return {
        "task": task,
        "criterion": criterion.name,
        "question": question(criterion),
        "guidance": guidance(criterion),
        "sentence_levels": [(level.label, level.description) for level in criterion.sentence_levels],
        "response": response.text or NO_ANSWER,
        # None for a passage without a text.
        "passages": [work.passages.get(key) for key in response.passages],
        # Whether a judge sees them under this prompt, and the conversation.
        "passages_count": "passages" in criterion.inputs,
        "turn": work.turns.get(item.turn_id),
        "turn_counts": needs_turn(criterion),
        "unit": response.unit,
        "levels": _levels(criterion, choice, suggestion),
        "comment": choice.comment if choice else "",
        "judge": suggestion.judge if suggestion else None,
    }


def question(criterion: Criterion) -> str:
    """What a prompt asks after all it has shown; empty if it only shows."""
    return " ".join(PLACEHOLDER.sub("", criterion.user).split())


def label_words(criterion: Criterion, choice: DeskLabel) -> str:
    """A choice in one or two words."""
    if choice.grade is None:
        return CANNOT.lower()
    label = next((level.label for level in criterion.scale.levels if level.grade == choice.grade), "")
    return str(choice.grade) if label in ("", str(choice.grade)) else f"{choice.grade} {label}"


def _levels(criterion: Criterion, choice: DeskLabel | None, suggestion: Suggestion | None) -> list[dict[str, object]]:
    """The levels to choose from, with the key that chooses each; whether it is chosen, and the judge's."""
    scale = criterion.scale
    keys = level_keys(scale.levels)
    given = _value(choice.grade) if choice else _value(suggestion.grade) if suggestion else None
    suggested = _value(suggestion.grade) if suggestion else None
    rows = [(str(level.grade), keys[level.grade], *_headed(level)) for level in scale.levels]
    rows.append((UNABLE, _UNABLE_KEY, f"{CANNOT}.", scale.unable.description if scale.unable else _UNDECIDED))
    columns = ("value", "key", "label", "description")
    return [dict(zip(columns, row, strict=True), chosen=row[0] == given, suggested=row[0] == suggested) for row in rows]


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


class Labeled(Record, frozen=True):
    """How far an assessor is."""

    assessor: str
    labels: int
    tasks: int


@contextmanager
def open_assess_desk(plan: AssessPlan) -> Iterator[tuple[AssessDesk, LabelStore]]:
    """Open a desk and its store, which are closed at the end; `.app()` of the desk is an ASGI application."""
    work = read_work(plan)
    dealt = deal([item.response_id for item in work.items], plan.assessors, plan.shared, plan.seed)
    with LabelStore(plan.store, work.settings, work.items, plan.assessors, dealt) as store:
        yield AssessDesk(work, store), store


def serve_assess(
    plan: AssessPlan, ready: Callable[[Listener, Sequence[Seat]], None] = lambda listener, seats: None
) -> tuple[Labeled, ...]:
    """Let assessors label until Ctrl-C, and say how far each is; a label is on the disk before its page says so.

    `ready` is called with the address and the seats when the desk can be visited. An OperationalError if another
    process has the store open, or answers at the address.
    """
    with open_assess_desk(plan) as (desk, store):
        listener = listen(plan.host, plan.port)
        serve_desk(desk.app(listener.hosts, listener.port), listener, lambda: ready(listener, store.seats))
        return tuple(
            Labeled(seat.name, len(store.labeled(seat.path)), len(store.tasks(seat.path))) for seat in store.seats
        )
