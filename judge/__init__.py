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

__version__ = "0.1.0"

# Not imported from typing, which costs as much as the rest of starting up; type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from judge.assess import Settings, assess, tasks
    from judge.criteria import find_criterion
    from judge.errors import InputError, JudgeError, OperationalError, UsageError
    from judge.harness import Outcome, Plan, run
    from judge.intake import make_pool, read_runs
    from judge.journal import Journal
    from judge.leaderboard import leaderboard
    from judge.models import ModelOptions, open_model
    from judge.pooling import Pooling, pool_runs
    from judge.topics import read_topics

_PUBLIC = {
    "InputError": "judge.errors",
    "Journal": "judge.journal",
    "JudgeError": "judge.errors",
    "ModelOptions": "judge.models",
    "OperationalError": "judge.errors",
    "Outcome": "judge.harness",
    "Plan": "judge.harness",
    "Pooling": "judge.pooling",
    "Settings": "judge.assess",
    "UsageError": "judge.errors",
    "assess": "judge.assess",
    "find_criterion": "judge.criteria",
    "leaderboard": "judge.leaderboard",
    "make_pool": "judge.intake",
    "open_model": "judge.models",
    "pool_runs": "judge.pooling",
    "read_runs": "judge.intake",
    "read_topics": "judge.topics",
    "run": "judge.harness",
    "tasks": "judge.assess",
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
