"""Judge: assess the responses of conversational-search runs.

The flow, one function a stage, each usable on its own:

    topics  = read_topics("topics.json")                    the conversations
    runs    = read_runs("runs/", topics)                    submissions, checked; problems listed
    pool    = make_pool(runs, passages=["passages.jsonl"])  distinct responses with their used passages
    results = assess(tasks(pool, criteria), model, ...)     a Judgment or a Failure for each
    rows    = leaderboard(pool, results, criteria)          one row per run and criterion

`run(Plan(...))` does the whole line and writes the output folder, as `judge run` does; `pool_runs(Pooling(...))` pools
with all that a track may ask of it: selection, hashes of passages, screening.
"""

# Not imported from typing, which costs as much as the rest of starting up; type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from judge.ask.criteria import find_criterion
    from judge.ask.loop import Settings, assess, tasks
    from judge.errors import InputError, JudgeError, OperationalError, UsageError
    from judge.files.bundle import __version__
    from judge.harness.pooling import Pooling, pool_runs
    from judge.harness.run import Outcome, Plan, run
    from judge.models.backends import open_model
    from judge.models.journal import Journal
    from judge.models.model import ModelOptions
    from judge.pool.intake import make_pool, read_runs
    from judge.results.leaderboard import leaderboard
    from judge.runs.topics import read_topics

_PUBLIC = {
    "InputError": "judge.errors",
    "Journal": "judge.models.journal",
    "JudgeError": "judge.errors",
    "ModelOptions": "judge.models.model",
    "OperationalError": "judge.errors",
    "Outcome": "judge.harness.run",
    "Plan": "judge.harness.run",
    "Pooling": "judge.harness.pooling",
    "Settings": "judge.ask.loop",
    "UsageError": "judge.errors",
    "__version__": "judge.files.bundle",
    "assess": "judge.ask.loop",
    "find_criterion": "judge.ask.criteria",
    "leaderboard": "judge.results.leaderboard",
    "make_pool": "judge.pool.intake",
    "open_model": "judge.models.backends",
    "pool_runs": "judge.harness.pooling",
    "read_runs": "judge.pool.intake",
    "read_topics": "judge.runs.topics",
    "run": "judge.harness.run",
    "tasks": "judge.ask.loop",
}
"""Public name to the module it lives in; loaded at first use, so that `import judge` costs nothing."""

__all__ = [
    "InputError",
    "Journal",
    "JudgeError",
    "ModelOptions",
    "OperationalError",
    "Outcome",
    "Plan",
    "Pooling",
    "Settings",
    "UsageError",
    "__version__",
    "assess",
    "find_criterion",
    "leaderboard",
    "make_pool",
    "open_model",
    "pool_runs",
    "read_runs",
    "read_topics",
    "run",
    "tasks",
]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
