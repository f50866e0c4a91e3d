"""`judge` as a judge of TREC AutoJudge, which `workflow.yml` names to `auto-judge run` (autojudge-base 1.0.0).

OPENAI_BASE_URL, OPENAI_MODEL and OPENAI_API_KEY alone say who is asked; the address EMPTY is an endpoint that is off.
Replies and results are kept below CACHE_DIR; without it they go with the process.
"""

import os
import shutil
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from msgspec.structs import replace

from judge.ask.records import Judgment
from judge.errors import InputError, JudgeError, MissingKeyError, OperationalError, UsageError
from judge.io.files import jsonl_bytes
from judge.io.ids import natural_key, safe_names, topic_of
from judge.io.plan import Options
from judge.jobs.folder import Outcome, write_pool
from judge.jobs.pooling import Pooling, pool_runs
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan
from judge.plugins import need
from judge.results.leaderboard import reading
from judge.results.turns import turns_by_criterion, worst_grade
from judge.units import UNITS

# autojudge_base is imported where it is used: it reads NLTK's list of stop words as it starts, and may fetch it.

_Reports = Iterable[Any]
_Topics = Sequence[Any]
_OFF = {"base_url": "http://localhost:9", "attempts": 1}
"""How an endpoint that is off is asked: at port 9 (discard), where nobody listens."""
_RUNNERS = {"filebase", "outdir", "description", "qrels", "corpus"}
"""Settings that are no options of ours."""
_CALLS = {"runs", "topics", "passages", "model", "base_url", "out", "replace", "extend"}
"""Options that no setting gives, because the call says them."""
_NUGGETS = {"sources", "most", "creation", "merging", "importance", "prompt"}
"""Options about nuggets alone."""
_Call = tuple[Path, Path, Callable[..., Any]]
"""The folder of all that is kept, one that is gone after the call, and what makes a plan of the call's options."""


class AutoJudge:
    """The three steps of a workflow: a leaderboard, qrels and nuggets of the responses of runs.

    Arguments are AutoJudge's; settings are options of `judge run`, `nuggets create` and `nuggets match` by their names
    in Python. No step asks again what one before it asked. What stops a step is a `click.ClickException`, which their
    runner shows as a message with our exit code, and names the first problems of the responses.
    """

    def __init__(self) -> None:
        self._temporary = mkdtemp(prefix="judge-")
        weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)

    @property
    def nugget_banks_type(self) -> Any:
        """Banks in nuggetizer's form."""
        from autojudge_base.nugget_data import NuggetizerNuggetBanks

        return NuggetizerNuggetBanks

    def judge(
        self, rag_responses: _Reports, rag_topics: _Topics, llm_config: Any, nugget_banks: Any = None, **settings: Any
    ) -> Any:
        """A leaderboard of the criteria and, with nuggets, of their recall.

        A criterion has the grade of each topic that has one, and their mean. With `_bound` after its name it is over
        all topics that the run had to answer: where the lack of a grade counts against the run, it is the worst one.
        """
        from autojudge_base import Leaderboard, LeaderboardEntry, LeaderboardSpec, MeasureSpec

        with self._call(rag_responses, rag_topics, llm_config, settings) as call:
            about, values = _board(_judged(call))
            if nugget_banks is not None:
                about |= _recall(call, nugget_banks, values)
        order = {topic.request_id: place for place, topic in enumerate(rag_topics)}
        rows = sorted(values, key=lambda key: (natural_key(key[0]), order.get(key[1], len(order))))
        spec = LeaderboardSpec(tuple(MeasureSpec(name, description=words) for name, words in about.items()))
        return Leaderboard(spec.names, spec, tuple(LeaderboardEntry(*key, values[key]) for key in rows))

    def create_qrels(
        self, rag_responses: _Reports, rag_topics: _Topics, llm_config: Any, nugget_banks: Any = None, **settings: Any
    ) -> Any:
        """Grades under one criterion by topic and MD5 of the response's text; a failure has no row."""
        from autojudge_base import QrelRow, Qrels, doc_id_md5

        reports = [*rag_responses]
        texts = {(each.metadata.run_id, each.metadata.topic_id): each.get_report_text() for each in reports}
        with self._call(reports, rag_topics, llm_config, settings) as call:
            outcome = _judged(call)
            if len(outcome.criteria) > 1 or not UNITS[outcome.pool.unit].whole_response:
                names = ", ".join(criterion.prompt_id for criterion in outcome.criteria)
                raise UsageError(f"qrels: expected one criterion about responses (qrels_settings), found {names}")
        judgments = (each for each in outcome.results if isinstance(each, Judgment) and not each.unable)
        grades = {each.response_id: each.grade for each in judgments}
        rows: dict[Any, None] = {}
        for response in outcome.pool.responses:
            if response.response_id in grades:
                for entry in response.runs:
                    text = texts[entry.run_id, response.topic_id]
                    rows[QrelRow(response.topic_id, doc_id_md5(text), grades[response.response_id])] = None
        return Qrels([*rows])

    def create_nuggets(
        self, rag_responses: Any, rag_topics: _Topics, llm_config: Any, nugget_banks: Any = None, **settings: Any
    ) -> Any:
        """Banks of what passages and responses say; banks that are there stay, and without responses there are none."""
        from autojudge_base.nugget_data import load_nugget_banks_generic

        if nugget_banks is not None or rag_responses is None:
            return nugget_banks
        with self._call(rag_responses, rag_topics, llm_config, settings) as (home, inputs, plan):
            create = need("nuggets.create", "a bank of nuggets")
            pool = home / "pool"
            out = home / "nuggets"
            file = inputs / "bank.jsonl"
            write_pool(pool, pool_runs(plan(Pooling)), replace=True)
            # A bank of other inputs gives way; replies stay in the journal beside it.
            (out / create.CREATED).unlink(missing_ok=True)
            made = create.create_nuggets(plan(create.NuggetCreatePlan, pool=pool, out=out), progress=True)
            nuggets = [replace(nugget, turn_id=None) for nugget in made.nuggets]
            file.write_bytes(create.bank_bytes(nuggets, "nuggetizer"))
            return load_nugget_banks_generic(file, self.nugget_banks_type)

    @contextmanager
    def _call(
        self, reports: _Reports, topics: _Topics, llm_config: Any, settings: Mapping[str, Any]
    ) -> Iterator[_Call]:
        """Responses and topics as files of ours, and who is asked."""
        # Their configuration may have the address from a variable that no client of ours reads.
        address = getattr(llm_config, "base_url", None) or os.environ.get("OPENAI_BASE_URL")
        known = (Plan.model_fields.keys() | _NUGGETS) - _CALLS
        runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for report in reports:
            runs[report.metadata.run_id].append(_line(report))
        with _shown(off=address == "EMPTY"), TemporaryDirectory(prefix="judge-") as folder:
            if unknown := settings.keys() - _RUNNERS - known:
                raise UsageError(f"settings: no option that a setting may give: {', '.join(sorted(unknown))}")
            inputs = Path(folder)
            files = {inputs / f"{name}.jsonl": runs[run_id] for run_id, name in safe_names(runs).items()}
            topics_file = inputs / "topics"
            options = {
                "profile": "ragtime",
                **{name: value for name, value in settings.items() if name in known},
                "runs": [*files],
                "topics": topics_file,
                "passages": settings.get("corpus") or (),
                "model": f"openai/{llm_config.model}",
                **(_OFF if address == "EMPTY" else {"base_url": address} if address else {}),
            }
            for file, lines in (files | {topics_file: [*map(_request, topics)]}).items():
                file.write_bytes(jsonl_bytes(lines))
            yield Path(llm_config.cache_dir or self._temporary, "judge"), inputs, partial(_plan, options)


@contextmanager
def _shown(*, off: bool) -> Iterator[None]:
    """Turn errors into those that click shows; `off`: whether the endpoint is."""
    from click import ClickException

    try:
        yield
    except JudgeError as error:
        lines = [str(error).replace("--base-url", "OPENAI_BASE_URL")]
        if off and isinstance(error, MissingKeyError | OperationalError):
            lines.append("OPENAI_BASE_URL is EMPTY, so the endpoint is off: CACHE_DIR lacks replies")
        for problem in error.problems[:5] if isinstance(error, InputError) else ():
            lines.append(f"{Path(problem.file).name}: {problem.path}: {problem.message}")
        shown: Any = ClickException("\n".join(lines))
        shown.exit_code = error.exit_code
        raise shown from error


def _plan(options: Mapping[str, Any], plan: type[Options], **more: Any) -> Any:
    """A plan with those of the options that it has."""
    return plan(**{name: value for name, value in {**options, **more}.items() if name in plan.model_fields})


def _judged(call: _Call) -> Outcome:
    home, _, plan = call
    return run(plan(Plan, out=home / "run", replace=True), progress=True)


def _line(report: Any) -> dict[str, Any]:
    """A report as a line of the format `ragtime`."""
    about = report.metadata
    return {
        "metadata": {"team_id": about.team_id, "run_id": about.run_id, "topic_id": about.topic_id},
        "responses": [
            {"text": each.text, "citations": each.citations or []} for each in report.get_sentences_with_citations()
        ],
        "documents": {name: {"text": each.get_text()} for name, each in (report.documents or {}).items()},
    }


def _request(topic: Any) -> dict[str, Any]:
    texts = {name: getattr(topic, name) for name in ("title", "background", "problem_statement")}
    if not texts["problem_statement"]:
        texts["problem_statement"] = texts.pop("title")
    return {"request_id": topic.request_id} | {name: text for name, text in texts.items() if text}


_Values = defaultdict[tuple[str, str], dict[str, float]]
"""Run and topic, or `all`, to measure and value."""


def _board(outcome: Outcome) -> tuple[dict[str, str], _Values]:
    """The measures, each with what it is, and their values."""
    about: dict[str, str] = {}
    values: _Values = defaultdict(dict)
    for criterion, runs in turns_by_criterion(outcome.pool, outcome.results, outcome.criteria):
        name = criterion.name
        about |= {name: reading(criterion), f"{name}_bound": f"{name}, the worst where it is missing"}
        for each in runs:
            for turn_id, grade in each.grades(worst_grade(criterion.scale)).items():
                values[each.run_id, topic_of(turn_id)][f"{name}_bound"] = float(grade)
            for response, given in each.graded:
                values[each.run_id, response.topic_id][name] = float(given.grade)
    for row in outcome.leaderboard:
        means = {row.criterion: row.mean.value, f"{row.criterion}_bound": row.bound}
        values[row.run_id, "all"] |= {name: value for name, value in means.items() if value is not None}
    return about, values


def _recall(call: _Call, banks: Any, values: _Values) -> dict[str, str]:
    """The recall of nuggets and what it is; its values are added."""
    from autojudge_base.nugget_data import write_nugget_banks_generic

    questions, scoring = (need(f"nuggets.{name}", "the recall of nuggets") for name in ("questions", "scoring"))
    home, inputs, plan = call
    bank = inputs / "bank.jsonl"
    pool = home / "run"
    out = home / "matches"
    write_nugget_banks_generic(banks, bank)
    (out / questions.MATCHED).unlink(missing_ok=True)
    questions.match_nuggets(plan(questions.NuggetMatchPlan, pool=pool, bank=bank, out=out), progress=True)
    scores = scoring.score_nuggets(scoring.NuggetScorePlan(pool=pool, bank=bank, matches=(out,)))
    name = f"nuggets_{scoring.MAIN}"
    measure = scoring.MEASURES[scoring.MAIN]
    for unit in scores.units:
        if unit.status == "matched" and (value := scoring.value_of(unit, measure)) is not None:
            values[unit.run_id, unit.topic_id][name] = value
    for row in scores.scores:
        if row.criterion == scoring.MAIN and row.mean.value is not None:
            values[row.run_id, "all"][name] = row.mean.value
    return {name: measure.about}
