"""Judge: assess the responses of conversational-search runs.

The flow, one function a stage, each usable on its own:

    topics = read_topics("topics.json")                   # the conversations
    runs = read_runs("runs/", topics)                     # submissions, checked; problems listed
    pool = make_pool(runs, passages="passages.jsonl")     # distinct responses with their used passages
    criteria = [find_criterion("groundedness")]           # what is asked, on which scale
    with Journal("journal.sqlite") as journal:            # keeps every answer: none is paid for twice
        results = assess(tasks(pool, criteria), open_model("baseline/overlap"), journal, pool)
    rows = leaderboard(pool, results, criteria)           # one row per run and criterion

`run(Plan(...))` does the whole line and writes the output folder, as `judge run` does; `pool_runs(Pooling(...))` pools
with all that a track may ask of it: selection, hashes of passages, screening. The other jobs are callable as well:
`calibrate_judges(CalibrationPlan(...))`, `correct_leaderboard(CorrectionPlan(...))`, `grade_crowd(CrowdPlan(...))`.

A job raises a `UsageError` if its plan asks for what cannot be done, an `InputError` if an input is bad (every problem
is listed) or another's files stand where its own have to be, and an `OperationalError` if it cannot ask or write on.
"""

# Not imported from typing, which costs as much as the rest of starting up; type checkers know the name.
TYPE_CHECKING = False

# The one list of public names. Nothing is imported before a name is asked for, so that `import judge` costs nothing.
if TYPE_CHECKING:
    from judge.ask.account import Settings as Settings
    from judge.ask.criteria import find_criterion as find_criterion
    from judge.ask.loop import assess as assess
    from judge.ask.records import tasks as tasks
    from judge.errors import InputError as InputError
    from judge.errors import JudgeError as JudgeError
    from judge.errors import OperationalError as OperationalError
    from judge.errors import UsageError as UsageError
    from judge.extra.bench import DatasetsPlan as DatasetsPlan
    from judge.extra.bench import list_datasets as list_datasets
    from judge.extra.bench.job import BenchPlan as BenchPlan
    from judge.extra.bench.job import bench_judges as bench_judges
    from judge.extra.bench.page import CardsPlan as CardsPlan
    from judge.extra.bench.page import compare_bench as compare_bench
    from judge.extra.desk.assess import AssessPlan as AssessPlan
    from judge.extra.desk.assess import serve_assess as serve_assess
    from judge.extra.evaluate.qrels import QrelsPlan as QrelsPlan
    from judge.extra.evaluate.qrels import compare_qrels as compare_qrels
    from judge.extra.evaluate.rankings import PassagesPlan as PassagesPlan
    from judge.extra.evaluate.rankings import StatementsPlan as StatementsPlan
    from judge.extra.evaluate.rankings import evaluate_passages as evaluate_passages
    from judge.extra.evaluate.rankings import evaluate_statements as evaluate_statements
    from judge.extra.evaluate.responses import ResponsesPlan as ResponsesPlan
    from judge.extra.evaluate.responses import evaluate_responses as evaluate_responses
    from judge.extra.evaluate.spans import SpansPlan as SpansPlan
    from judge.extra.evaluate.spans import evaluate_spans as evaluate_spans
    from judge.extra.nuggets.banks import NuggetConvertPlan as NuggetConvertPlan
    from judge.extra.nuggets.banks import convert_bank as convert_bank
    from judge.extra.nuggets.create import NuggetCreatePlan as NuggetCreatePlan
    from judge.extra.nuggets.create import create_nuggets as create_nuggets
    from judge.extra.nuggets.questions import NuggetMatchPlan as NuggetMatchPlan
    from judge.extra.nuggets.questions import match_nuggets as match_nuggets
    from judge.extra.nuggets.scoring import NuggetAgreePlan as NuggetAgreePlan
    from judge.extra.nuggets.scoring import NuggetScorePlan as NuggetScorePlan
    from judge.extra.nuggets.scoring import compare_matches as compare_matches
    from judge.extra.nuggets.scoring import score_nuggets as score_nuggets
    from judge.extra.probe.job import ProbePlan as ProbePlan
    from judge.extra.probe.job import probe_judges as probe_judges
    from judge.extra.pyterrier import pyterrier as pyterrier
    from judge.extra.scale import write_requests as write_requests
    from judge.extra.scale.batches import CompletionsPlan as CompletionsPlan
    from judge.extra.scale.batches import collect_batches as collect_batches
    from judge.extra.scale.batches import import_completions as import_completions
    from judge.extra.scale.batches import poll_batches as poll_batches
    from judge.extra.scale.batches import submit_batches as submit_batches
    from judge.io.installed import __version__ as __version__
    from judge.io.steps import Step as Step
    from judge.io.table import Table as Table
    from judge.jobs.calibration import CalibrationPlan as CalibrationPlan
    from judge.jobs.calibration import calibrate_judges as calibrate_judges
    from judge.jobs.crowd import CrowdPlan as CrowdPlan
    from judge.jobs.crowd import grade_crowd as grade_crowd
    from judge.jobs.doctor import DoctorPlan as DoctorPlan
    from judge.jobs.doctor import examine as examine
    from judge.jobs.folder import write_pool as write_pool
    from judge.jobs.gold import GoldCheckPlan as GoldCheckPlan
    from judge.jobs.gold import GoldDrawPlan as GoldDrawPlan
    from judge.jobs.gold import GoldImportPlan as GoldImportPlan
    from judge.jobs.gold import GoldSheetPlan as GoldSheetPlan
    from judge.jobs.gold import GoldSplitPlan as GoldSplitPlan
    from judge.jobs.gold import check_gold_files as check_gold_files
    from judge.jobs.gold import draw_gold_plan as draw_gold_plan
    from judge.jobs.gold import import_gold_files as import_gold_files
    from judge.jobs.gold import split_gold_file as split_gold_file
    from judge.jobs.gold import write_gold_sheet as write_gold_sheet
    from judge.jobs.judged import read_judged as read_judged
    from judge.jobs.leaderboard import CorrectionPlan as CorrectionPlan
    from judge.jobs.leaderboard import TopicsPlan as TopicsPlan
    from judge.jobs.leaderboard import correct_leaderboard as correct_leaderboard
    from judge.jobs.leaderboard import plan_topics as plan_topics
    from judge.jobs.passages import ExtractPlan as ExtractPlan
    from judge.jobs.passages import IndexPlan as IndexPlan
    from judge.jobs.passages import extract_passages as extract_passages
    from judge.jobs.passages import index_passages as index_passages
    from judge.jobs.pooling import Pooling as Pooling
    from judge.jobs.pooling import pool_runs as pool_runs
    from judge.jobs.release import ReleasePlan as ReleasePlan
    from judge.jobs.release import release_folder as release_folder
    from judge.jobs.reparsing import ReparsePlan as ReparsePlan
    from judge.jobs.reparsing import reparse as reparse
    from judge.jobs.results_parquet import ResultsConvertPlan as ResultsConvertPlan
    from judge.jobs.results_parquet import convert_results as convert_results
    from judge.jobs.run import Outcome as Outcome
    from judge.jobs.run import run as run
    from judge.jobs.run_inputs import Plan as Plan
    from judge.jobs.tokens import LengthsPlan as LengthsPlan
    from judge.jobs.tokens import count_lengths as count_lengths
    from judge.jobs.validation import ValidationPlan as ValidationPlan
    from judge.jobs.validation import validate_runs as validate_runs
    from judge.judges.backends import open_model as open_model
    from judge.judges.backends.function import FunctionJudge as FunctionJudge
    from judge.judges.journal import Journal as Journal
    from judge.judges.model import ModelOptions as ModelOptions
    from judge.judges.model import Price as Price
    from judge.pool.intake import make_pool as make_pool
    from judge.pool.intake import read_runs as read_runs
    from judge.report.job import ReportPlan as ReportPlan
    from judge.report.job import write_report as write_report
    from judge.results.leaderboard import leaderboard as leaderboard
    from judge.runs.profiles import limits_of as limits_of
    from judge.runs.topics import read_topics as read_topics


_homes: dict[str, str] = {}


def _public() -> dict[str, str]:
    """Public name to the module that it lives in, read from the list above."""
    if not _homes:
        import pkgutil

        from judge.plugins import is_there

        lines = (pkgutil.get_data(__name__, "__init__.py") or b"").decode().splitlines()
        parts = (line.split() for line in lines if line.startswith("    from judge."))
        for _, module, _, name, *_ in parts:
            if ".extra." not in module or is_there(module.split(".")[2]):
                _homes[name] = module
    return _homes


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_public())
    if name not in _public():
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_public()[name]), name)


def __dir__() -> list[str]:
    return sorted({*_public(), *(name for name in globals() if name.startswith("__"))})
