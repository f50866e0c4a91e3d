"""A review: the disagreements that a filter keeps, the prompts, one to edit, and a rerun with its outcome, as pages.

`serve_review` is what `judge serve review` does, for use from Python.
"""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.types import ASGIApp

from judge.calibrate.disagreements import DISAGREEMENTS, Disagreement, parse_disagreements
from judge.calibrate.report.lookup import heading
from judge.errors import InputError, JudgeError, UsageError
from judge.extra.desk import app, rerun
from judge.gold.rows import GoldRow
from judge.io.files import read_content
from judge.io.ids import natural_key
from judge.io.text import interval, number, p_value, shown
from judge.judges.backends import backend_facts

Direction = Literal["", "higher", "lower", "missing"]
"""In which direction a judge errs; "" for any."""

_FILTERS = 50
"""Filters whose disagreements are kept in memory."""
PromptedJudge = tuple[str, str | None]
"""A judge and its prompt, as `criterion/variant`."""


class Filter(NamedTuple):
    """What a visitor wants to see."""

    criterion: str = ""
    judge: int | None = None
    """The place of a judge among those of the cases; None for any."""
    direction: Direction = ""

    @property
    def query(self) -> dict[str, str]:
        """The filter as the fields of an address; what is not set is left out."""
        judge = "" if self.judge is None else str(self.judge)
        fields = {"criterion": self.criterion, "judge": judge, "direction": self.direction}
        return {name: value for name, value in fields.items() if value}


def filter_of(query: Mapping[str, str], judges: int) -> Filter:
    """The filter in an address; what it cannot mean counts as not set."""
    judge, direction = app.whole_number(query.get("judge")), query.get("direction", "")
    chosen = judge if judge is not None and judge < judges else None
    wanted: Direction = next((known for known in get_args(Direction) if known == direction), "")
    return Filter(query.get("criterion", ""), chosen, wanted)


class Cases:
    """The disagreements, worst first, and which of them a filter keeps."""

    def __init__(self, items: Sequence[Disagreement]) -> None:
        self.items = items
        raters = {(judge.judge, judge.prompt) for item in items for judge in item.judges}
        self.raters: tuple[PromptedJudge, ...] = tuple(
            sorted(raters, key=lambda rater: (natural_key(rater[0]), natural_key(rater[1] or "")))
        )
        """Every judge and prompt, in natural order."""
        self.criteria = tuple(sorted({item.criterion for item in items}))
        place = {rater: number for number, rater in enumerate(self.raters)}
        # Told apart once, so that a page of many thousands is there at once.
        self._errors = [
            [
                (place[judge.judge, judge.prompt], judge.difference)
                for judge in item.judges
                if judge.difference is None or judge.difference
            ]
            for item in items
        ]
        self.kept = functools.lru_cache(_FILTERS)(self._select)
        """The places of the disagreements that a filter keeps, worst first: for one judge, by its own distance."""

    def _select(self, by: Filter) -> tuple[int, ...]:
        wanted = _DIRECTIONS[by.direction]
        found: list[tuple[int, int]] = []
        for place, errors in enumerate(self._errors):
            if by.criterion and self.items[place].criterion != by.criterion:
                continue
            distances = [
                abs(difference or 0) for judge, difference in errors if by.judge in (None, judge) and wanted(difference)
            ]
            if distances:
                found.append((-max(distances), place))
        return tuple(place for _, place in (sorted(found) if by.judge is not None else found))


_DIRECTIONS: Mapping[Direction, Callable[[int | None], bool]] = {
    "": lambda difference: True,
    "higher": lambda difference: difference is not None and difference > 0,
    "lower": lambda difference: difference is not None and difference < 0,
    "missing": lambda difference: difference is None,
}
"""Which of the differences that are not 0 are of a direction."""


_PAGE = 50
"""Disagreements on one page."""
_CHANGES = 25
"""Items of one kind of change that a rerun shows."""
_SHOWN = ("percent", "bias")
"""What is shown of a wording beside the primary statistic."""


class Review:
    """A review with all that it was given."""

    def __init__(self, plan: rerun.ReviewPlan, seat: app.Seat, hosts: Sequence[str] = (), port: int = 0) -> None:
        if len({bool(plan.gold), plan.pool is not None, bool(plan.models)}) > 1:
            raise UsageError(
                "asking again needs --gold (dev grades), --pool (the responses that they are of) and --model"
            )
        self.plan = plan
        self.cases = Cases(_read(plan.folder))
        names = [prompt for _, prompt in self.cases.raters if prompt is not None]
        self.shelf = rerun.Shelf(plan.home / "prompts", names, plan.prompts)
        if plan.models:
            _check_part(rerun.dev_rows(plan), self.cases.items)
        self.job = rerun.Job(plan)
        self.app: ASGIApp = app.desk_app(
            [seat],
            {
                "/": self._list,
                "/item/{place:int}": self._item,
                "/prompts": self._prompts,
                "/prompt": self._prompt,
                "/rerun": self._rerun,
            },
            {"/save": self._save, "/ask": self._ask, "/stop": self._stop},
            hosts,
            port,
        )

    async def _list(self, visit: app.Visit) -> Response:
        cases = self.cases
        by = filter_of(visit.query, len(cases.raters))
        found = cases.kept(by)
        part = app.list_page(found, visit.query.get("page"), _PAGE)
        return self._show(
            visit,
            "review_list.html",
            shown=[(place, cases.items[place]) for place in part.shown],
            total=len(cases.items),
            found=len(found),
            by=by,
            query=_query(by.query),
            criteria=cases.criteria,
            raters=[judge if prompt is None else f"{judge} · {prompt}" for judge, prompt in cases.raters],
            part=part,
        )

    async def _item(self, visit: app.Visit) -> Response:
        place = visit.given["place"]
        if place >= len(self.cases.items):
            app.missing_page()
        by = filter_of(visit.query, len(self.cases.raters))
        places = self.cases.kept(by)
        at = places.index(place) if place in places else None
        item = self.cases.items[place]
        shelved, _ = self.shelf.prompts()
        return self._show(
            visit,
            "review_item.html",
            item=item,
            number=None if at is None else at + 1,
            found=len(places),
            before=places[at - 1] if at else None,
            after=places[at + 1] if at is not None and at + 1 < len(places) else None,
            query=_query(by.query),
            editable=sorted({judge.prompt for judge in item.judges if judge.prompt in shelved}),
        )

    async def _prompts(self, visit: app.Visit) -> Response:
        shelved, problems = self.shelf.prompts()
        lacking = sorted({prompt for _, prompt in self.cases.raters if prompt is not None and prompt not in shelved})
        of = {"prompts": shelved.values(), "problems": problems, "lacking": lacking}
        return self._show(visit, "review_prompts.html", home_folder=str(self.shelf.home), **of)

    async def _prompt(self, visit: app.Visit) -> Response:
        prompt = self._shelved(visit.query.get("name"))
        return self._edit(visit, prompt, self.shelf.free_name(prompt), prompt.text)

    async def _save(self, visit: app.Visit) -> Response:
        base, form = self._shelved(visit.form.get("base")), visit.form
        variant, text = form.get("variant", "").strip(), form.get("text", "")
        try:
            saved = self.shelf.save(base, variant, text, replace="replace" in form)
        except (InputError, UsageError) as error:
            return self._edit(visit, base, variant, text, error)
        if base.name == saved.name:
            return visit.go("/prompts")
        return visit.go("/rerun" + _query({"old": base.name, "new": saved.name}))

    async def _rerun(self, visit: app.Visit) -> Response:
        if not (visit.query.get("old") and visit.query.get("new")):
            return self._outcome(visit)
        question = self._question(visit.query)
        expected, problem, running = None, None, self.job.running
        try:
            # The journal is the rerun's own until its end.
            asks = self.plan.models and not running
            expected = await asyncio.to_thread(rerun.cost, self.plan, question) if asks else None
        except JudgeError as error:
            problem = str(error)
        row = expected.models[0] if expected else None
        return self._show(
            visit,
            "review_ask.html",
            question=question,
            expected=expected,
            problem=problem,
            lines=rerun.diff_lines(question.old.text, question.new.text),
            models=self.plan.models,
            reads=not backend_facts(question.model).baseline,
            running=running,
            row=row,
            dollars=None if row is None or row.cost is None else f"{row.cost:.4f}",
            most=None if row is None or row.most is None else f"{row.most:.4f}",
            budget=self.plan.max_cost,
        )

    async def _ask(self, visit: app.Visit) -> Response:
        if not self.plan.models:
            raise UsageError("this desk was started without what asking again needs")
        self.job.start(self._question(visit.form))
        return visit.go("/rerun")

    async def _stop(self, visit: app.Visit) -> Response:
        self.job.stop()
        return visit.go("/rerun")

    def _outcome(self, visit: app.Visit) -> Response:
        job, question = self.job, self.job.question
        if question is None:
            return self._show(visit, "review_none.html", asks=self.plan.models)
        found = job.outcome
        return self._show(
            visit,
            "review_rerun.html",
            question=question,
            running=job.running,
            progress=job.progress,
            error=job.error,
            lines=rerun.diff_lines(question.old.text, question.new.text),
            again=_query(_asked(question)),
            found=found,
            rows=_rows(found) if found else (),
            gain=interval(found.gain, 2, signed=True) if found else "",
            p=p_value(found.difference.p) if found and found.difference else "-",
            changes={} if found is None else found.changes,
            most=_CHANGES,
            reads=not backend_facts(question.model).baseline,
            rerun_folder=str(self.plan.home / rerun.RERUN),
        )

    def _edit(
        self, visit: app.Visit, prompt: rerun.ShelvedPrompt, variant: str, text: str, error: JudgeError | None = None
    ) -> Response:
        return self._show(
            visit,
            "review_prompt.html",
            prompt=prompt,
            variant=variant,
            text=text,
            error=error,
            problems=[f"{problem.path}: {problem.message}" for problem in getattr(error, "problems", ())],
            home_folder=str(self.shelf.home / prompt.criterion.name),
        )

    def _show(self, visit: app.Visit, template: str, **values: Any) -> Response:
        return visit.page(template, folder_name=self.plan.folder.resolve().name, **{"running": False, **values})

    def _shelved(self, name: str | None) -> rerun.ShelvedPrompt:
        shelved, _ = self.shelf.prompts()
        if name not in shelved:
            app.missing_page()
        return shelved[name]

    def _question(self, fields: Mapping[str, str]) -> rerun.Rewording:
        old, new = self._shelved(fields.get("old")), self._shelved(fields.get("new"))
        if old.criterion.name != new.criterion.name or old.name == new.name:
            raise UsageError("Two wordings of one criterion are compared.")
        models = self.plan.models
        model = fields.get("model", "")
        items = app.whole_number(fields.get("items")) or None
        if items is None and fields.get("items", "").strip():
            # Never all of them, which cost the most.
            raise UsageError(f"Items: {shown(fields['items'])}: expected a whole number above zero, or none for all.")
        return rerun.Rewording(old, new, model if model in models else next(iter(models), ""), items)


def _read(folder: Path) -> tuple[Disagreement, ...]:
    path = folder / DISAGREEMENTS if folder.is_dir() else folder
    if folder.is_dir() and not path.exists():
        raise InputError(f"{folder}: has no {DISAGREEMENTS}: `judge calibrate --out` writes it")
    return parse_disagreements(read_content(path), str(path))


def _check_part(rows: Sequence[GoldRow], items: Sequence[Disagreement]) -> None:
    """Refuse gold that is not split where the calibration was on a dev part: it may hold the test part's grades too."""
    if any(item.split == "dev" for item in items) and any(row.split is None for row in rows):
        raise UsageError(
            "the calibration was on a dev part, and this gold is not split, so it may hold test grades: --gold takes "
            "the dev.jsonl of `judge gold split`"
        )


def _query(fields: Mapping[str, str]) -> str:
    return f"?{urlencode(fields)}" if fields else ""


def _asked(question: rerun.Rewording) -> dict[str, str]:
    fields = {"old": question.old.name, "new": question.new.name, "model": question.model}
    return fields if question.items is None else {**fields, "items": str(question.items)}


def _rows(found: rerun.BeforeAfter) -> list[tuple[str, ...]]:
    """What is shown of both wordings: its name, before, after, and what it means."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys((found.old.primary, *_SHOWN)):
        values = (interval(row.statistics.get(name), 2) for row in (found.old, found.new))
        rows.append((heading(name), *values, _MEANING.get(name, "")))
    cover = (number(row.coverage, 2) for row in (found.old, found.new))
    return [*rows, ("items with a grade", *cover, "share of the items that the judge graded at all")]


_MEANING = {
    "wkappa": "agreement beyond chance; two grades off count four times one off",
    "kappa": "agreement beyond chance",
    "percent": "share of items with the assessors' grade",
    "bias": "mean of judge minus assessors; plus is higher",
}


def serve_review(
    plan: rerun.ReviewPlan, ready: Callable[[app.Listener, Sequence[app.Seat]], None] = lambda listener, seats: None
) -> None:
    """Serve a review desk until Ctrl-C; a rerun under way sends no further call then, and keeps what is paid.

    `ready` is called with the address and the seat when the desk can be visited. An OperationalError if another process
    answers at the address.
    """
    seat = app.Seat("review", "Review", app.new_token())
    listener = app.listen(plan.host, plan.port)
    with listener.socket:
        review = Review(plan, seat, listener.hosts, listener.port)
        try:
            app.serve_desk(review.app, listener, lambda: ready(listener, [seat]))
        finally:
            review.job.stop()
            review.job.wait()
