"""The assess desk in the browser: the page of a task, the list of one's labels, and what their forms do."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from judge.extra.desk.app import Visit, desk_app, missing_page
from judge.extra.desk.assess.inputs import Work
from judge.extra.desk.assess.store import DeskLabel, DeskTask, LabelStore
from judge.extra.desk.assess.task import label_words, task_view
from judge.extra.desk.guard import Guard
from judge.extra.desk.pages import list_page, whole_number
from judge.gold.grades import CANNOT, UNABLE
from judge.io.safe import storable
from judge.io.table import tsv

LISTED = 100
"""Tasks on one page of the list."""
_LONGEST_COMMENT = 10_000
_BEGINNING = 140
"""Characters of a response in the list."""
_COLUMNS = ("place", "turn_id", "criterion", "grade", "unable", "comment")
FILTERS = {"all": "All", "comment": "With a comment", "unable": CANNOT, "open": "Without a label"}


class ListedTask(NamedTuple):
    """A line of the list."""

    task: DeskTask
    beginning: str
    words: str
    """The label in words; empty if there is none."""
    comment: str


class AssessDesk:
    """Answers the assessors of one store.

    Args:
        work: What is labeled.
        store: Where the labels go.
    """

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
        self._store.save(visit.seat.path, task, DeskLabel(grades.get(given), comment), "postedit" if shown else "blind")
        return visit.go(f"/?after={task.place}")

    async def _undo(self, visit: Visit) -> Response:
        task = self._store.undo(visit.seat.path)
        return visit.go(f"/{task.place}" if task else "/")

    async def _list(self, visit: Visit) -> Response:
        """The assessor's own tasks with their labels, a page at a time."""
        kept = visit.query.get("show", "all")
        labeled = self._store.labeled(visit.seat.path)
        found = self._store.tasks(visit.seat.path)
        if kept in _KEPT:
            found = [task for task in found if _KEPT[kept](_last(labeled.get(task.place)))]
        part = list_page(found, visit.query.get("page"), LISTED)
        return visit.page(
            "assess_list.html",
            tasks=[self._line(task, _last(labeled.get(task.place))) for task in part.shown],
            kept=kept,
            filters=FILTERS,
            page=part.page,
            pages=part.pages,
            **self._shown(visit),
        )

    async def _download(self, visit: Visit) -> Response:
        """The assessor's own labels as a table."""
        labeled = self._store.labeled(visit.seat.path)
        rows = [
            (
                *(task.place, self._work.items[task.item].turn_id, task.criterion),
                *("" if choice.grade is None else choice.grade, int(choice.grade is None), choice.comment),
            )
            for task in self._store.tasks(visit.seat.path)
            if (choice := _last(labeled.get(task.place)))
        ]
        headers = {"content-disposition": 'attachment; filename="labels.tsv"'}
        return Response(tsv(_COLUMNS, rows), media_type="text/tab-separated-values", headers=headers)

    def _task_page(self, visit: Visit, task: DeskTask, problem: str = "", comment: str | None = None) -> Response:
        labeled = self._store.labeled(visit.seat.path)
        choice = _last(labeled.get(task.place))
        view = task_view(self._work, task, choice)
        status = 422 if problem else 200
        told = view.comment if comment is None else comment
        tasks = self._store.tasks(visit.seat.path)
        first = not any(tasks[place - 1].criterion == task.criterion for place in labeled)
        return visit.page(
            "assess_task.html", status, view=view, choice=choice, problem=problem, comment=told, first=first,
            **self._shown(visit),
        )  # fmt: skip

    def _named(self, visit: Visit) -> DeskTask:
        """The task in the address."""
        tasks, place = self._store.tasks(visit.seat.path), int(visit.given["place"])
        if not 1 <= place <= len(tasks):
            missing_page()
        return tasks[place - 1]

    def _shown(self, visit: Visit) -> dict[str, object]:
        """What every page of the desk shows: how far the assessor is, and what was saved last."""
        tasks = self._store.tasks(visit.seat.path)
        last = self._store.last(visit.seat.path)
        words = label_words(self._work.criteria[last[0].criterion], last[1]) if last else ""
        return {
            "done": len(self._store.labeled(visit.seat.path)),
            "total": len(tasks),
            "shared": self._store.shared[visit.seat.path],
            "last": last,
            "last_words": words,
            "several": len(self._work.criteria) > 1,
        }

    def _line(self, task: DeskTask, choice: DeskLabel | None) -> ListedTask:
        text = self._work.responses[task.item].text
        words = label_words(self._work.criteria[task.criterion], choice) if choice else ""
        beginning = text[:_BEGINNING] + "…" * (len(text) > _BEGINNING)
        return ListedTask(task, beginning, words, choice.comment if choice else "")


def _last(choices: Sequence[DeskLabel] | None) -> DeskLabel | None:
    return choices[-1] if choices else None


_KEPT: Mapping[str, Callable[[DeskLabel | None], bool]] = {
    "comment": lambda label: label is not None and bool(label.comment),
    "unable": lambda label: label is not None and label.grade is None,
    "open": lambda label: label is None,
}
"""Whether a task with this label, or without one, is in the list under a key of FILTERS; under another key all are."""
