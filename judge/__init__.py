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
"""

# Not imported from typing, which costs as much as the rest of starting up; type checkers know the name.
TYPE_CHECKING = False

# The one list of public names. Nothing is imported before a name is asked for, so that `import judge` costs nothing.
if TYPE_CHECKING:
    from judge.ask.criteria import find_criterion as find_criterion
    from judge.ask.loop import assess as assess
    from judge.ask.settings import Settings as Settings
    from judge.ask.tasks import tasks as tasks
    from judge.desk.assess.plan import AssessPlan as AssessPlan
    from judge.desk.assess.serve import serve_assess as serve_assess
    from judge.desk.review.desk import serve_review as serve_review
    from judge.desk.review.plan import ReviewPlan as ReviewPlan
    from judge.errors import InputError as InputError
    from judge.errors import JudgeError as JudgeError
    from judge.errors import OperationalError as OperationalError
    from judge.errors import UsageError as UsageError
    from judge.files.bundle import __version__ as __version__
    from judge.harness.batches import collect_batches as collect_batches
    from judge.harness.batches import poll_batches as poll_batches
    from judge.harness.batches import submit_batches as submit_batches
    from judge.harness.calibration import CalibrationPlan as CalibrationPlan
    from judge.harness.calibration import calibrate_judges as calibrate_judges
    from judge.harness.cast_regin import ReginPlan as ReginPlan
    from judge.harness.cast_regin import remake_cast_regin as remake_cast_regin
    from judge.harness.completions import CompletionsPlan as CompletionsPlan
    from judge.harness.completions import import_completions as import_completions
    from judge.harness.correction import CorrectionPlan as CorrectionPlan
    from judge.harness.correction import correct_leaderboard as correct_leaderboard
    from judge.harness.crowd import CrowdPlan as CrowdPlan
    from judge.harness.crowd import grade_crowd as grade_crowd
    from judge.harness.doctor import DoctorPlan as DoctorPlan
    from judge.harness.doctor import examine as examine
    from judge.harness.evaluation.bench import BenchPlan as BenchPlan
    from judge.harness.evaluation.bench import bench_judges as bench_judges
    from judge.harness.evaluation.bench_cards import CardsPlan as CardsPlan
    from judge.harness.evaluation.bench_cards import compare_bench as compare_bench
    from judge.harness.evaluation.bench_data import DatasetsPlan as DatasetsPlan
    from judge.harness.evaluation.bench_data import list_datasets as list_datasets
    from judge.harness.evaluation.measured import PassagesPlan as PassagesPlan
    from judge.harness.evaluation.measured import StatementsPlan as StatementsPlan
    from judge.harness.evaluation.measured import evaluate_passages as evaluate_passages
    from judge.harness.evaluation.measured import evaluate_statements as evaluate_statements
    from judge.harness.evaluation.qrels import QrelsPlan as QrelsPlan
    from judge.harness.evaluation.qrels import compare_qrels as compare_qrels
    from judge.harness.evaluation.reproduction import ReproductionPlan as ReproductionPlan
    from judge.harness.evaluation.reproduction import reproduce_published as reproduce_published
    from judge.harness.evaluation.responses import ResponsesPlan as ResponsesPlan
    from judge.harness.evaluation.responses import evaluate_responses as evaluate_responses
    from judge.harness.evaluation.spans import SpansPlan as SpansPlan
    from judge.harness.evaluation.spans import evaluate_spans as evaluate_spans
    from judge.harness.evaluation.wording import WordingPlan as WordingPlan
    from judge.harness.evaluation.wording import evaluate_wording as evaluate_wording
    from judge.harness.folder import write_pool as write_pool
    from judge.harness.gold import GoldCheckPlan as GoldCheckPlan
    from judge.harness.gold import GoldDrawPlan as GoldDrawPlan
    from judge.harness.gold import GoldImportPlan as GoldImportPlan
    from judge.harness.gold import GoldSplitPlan as GoldSplitPlan
    from judge.harness.gold import check_gold_files as check_gold_files
    from judge.harness.gold import draw_gold_plan as draw_gold_plan
    from judge.harness.gold import import_gold_files as import_gold_files
    from judge.harness.gold import split_gold_file as split_gold_file
    from judge.harness.gold_sheet import GoldSheetPlan as GoldSheetPlan
    from judge.harness.gold_sheet import write_gold_sheet as write_gold_sheet
    from judge.harness.judged import read_judged as read_judged
    from judge.harness.nuggets.banks import NuggetConvertPlan as NuggetConvertPlan
    from judge.harness.nuggets.banks import NuggetImportPlan as NuggetImportPlan
    from judge.harness.nuggets.banks import NuggetSheetPlan as NuggetSheetPlan
    from judge.harness.nuggets.banks import convert_bank as convert_bank
    from judge.harness.nuggets.banks import import_nugget_edits as import_nugget_edits
    from judge.harness.nuggets.banks import write_nugget_sheet as write_nugget_sheet
    from judge.harness.nuggets.creation import NuggetCreatePlan as NuggetCreatePlan
    from judge.harness.nuggets.creation import create_nuggets as create_nuggets
    from judge.harness.nuggets.questions import NuggetClaimsPlan as NuggetClaimsPlan
    from judge.harness.nuggets.questions import NuggetMatchPlan as NuggetMatchPlan
    from judge.harness.nuggets.questions import label_claims as label_claims
    from judge.harness.nuggets.questions import match_nuggets as match_nuggets
    from judge.harness.nuggets.scoring import NuggetAgreePlan as NuggetAgreePlan
    from judge.harness.nuggets.scoring import NuggetScorePlan as NuggetScorePlan
    from judge.harness.nuggets.scoring import compare_matches as compare_matches
    from judge.harness.nuggets.scoring import score_nuggets as score_nuggets
    from judge.harness.passages import ExtractPlan as ExtractPlan
    from judge.harness.passages import IndexPlan as IndexPlan
    from judge.harness.passages import extract_passages as extract_passages
    from judge.harness.passages import index_passages as index_passages
    from judge.harness.planning import TopicsPlan as TopicsPlan
    from judge.harness.planning import plan_topics as plan_topics
    from judge.harness.pooling import Pooling as Pooling
    from judge.harness.pooling import pool_runs as pool_runs
    from judge.harness.probe import probe_judges as probe_judges
    from judge.harness.probe_inputs import ProbePlan as ProbePlan
    from judge.harness.release.job import ReleasePlan as ReleasePlan
    from judge.harness.release.job import release_folder as release_folder
    from judge.harness.reparsing import ReparsePlan as ReparsePlan
    from judge.harness.reparsing import reparse as reparse
    from judge.harness.requests import write_requests as write_requests
    from judge.harness.results_parquet import ResultsConvertPlan as ResultsConvertPlan
    from judge.harness.results_parquet import convert_results as convert_results
    from judge.harness.run import Outcome as Outcome
    from judge.harness.run import run as run
    from judge.harness.run_inputs import Plan as Plan
    from judge.harness.tokens import LengthsPlan as LengthsPlan
    from judge.harness.tokens import count_lengths as count_lengths
    from judge.harness.validation import ValidationPlan as ValidationPlan
    from judge.harness.validation import validate_runs as validate_runs
    from judge.models.backends import open_model as open_model
    from judge.models.backends.function import FunctionJudge as FunctionJudge
    from judge.models.journal import Journal as Journal
    from judge.models.model import ModelOptions as ModelOptions
    from judge.models.model import Price as Price
    from judge.pool.intake import make_pool as make_pool
    from judge.pool.intake import read_runs as read_runs
    from judge.report.job import ReportPlan as ReportPlan
    from judge.report.job import write_report as write_report
    from judge.results.leaderboard import leaderboard as leaderboard
    from judge.runs.topics import read_topics as read_topics
    from judge.text.steps import Step as Step
    from judge.text.table import Table as Table


_homes: dict[str, str] = {}


def _public() -> dict[str, str]:
    """Public name to the module that it lives in, read from the list above."""
    if not _homes:
        import pkgutil

        lines = (pkgutil.get_data(__name__, "__init__.py") or b"").decode().splitlines()
        parts = (line.split() for line in lines if line.startswith("    from judge."))
        _homes.update((name, module) for _, module, _, name, *_ in parts)
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
