"""The baselines' labels of the responses that a calibration compares."""

from collections.abc import Collection, Sequence

from judge.ask.criteria import default_prompts, find_criterion
from judge.ask.labels import labels_of
from judge.ask.loop import assess
from judge.calibrate.baselines import ASKED
from judge.calibrate.intake import LabelSource
from judge.errors import UsageError
from judge.files.stored import sha256
from judge.gold.rows import GoldRow
from judge.harness.calibration.comparison import GoldComparison
from judge.models.backends import open_model
from judge.models.journal import Journal
from judge.models.model import Model
from judge.pool.records import Pool
from judge.records import Criterion


def baseline_labels(
    comparison: GoldComparison, rows: Sequence[GoldRow], sources: Sequence[LabelSource]
) -> tuple[LabelSource, ...]:
    """The baselines' labels of the same responses, if there is a pool and the sources lack these labels."""
    pool = next((source.pool for source in sources if source.pool is not None), None)
    judges = {labels.judge for source in sources for labels in source.labels}
    added: list[LabelSource] = []
    for name in ASKED if pool is not None else ():
        model = open_model(name)
        criteria = {row.criterion for row in rows}
        prompts = _gradable(comparison, model, criteria, pool) if pool and name not in judges else []
        if pool is None or not prompts:
            continue
        with Journal(None) as journal:
            results = assess(comparison.tasks(rows, pool, prompts, 1), model, journal, pool)
        added.append(LabelSource(labels_of(results, name, sha256(b"")), pool))
    return tuple(added)


def _gradable(comparison: GoldComparison, model: Model, criteria: Collection[str], pool: Pool) -> list[Criterion]:
    """For each judged criterion, the first of its prompts, the default prompt last, that the model can grade."""
    gradable: list[Criterion] = []
    for criterion in sorted(criteria):
        judged = [prompt for prompt in comparison.prompts.values() if prompt.name == criterion]
        default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
        asked = (prompt for prompt in (*judged, *default) if prompt.unit == pool.unit and _accepts(model, prompt))
        if prompt := next(asked, None):
            comparison.prompts.setdefault(prompt.prompt_id, prompt)
            gradable.append(prompt)
    return gradable


def _accepts(model: Model, prompt: Criterion) -> bool:
    try:
        model.check([prompt])
    except UsageError:
        return False
    return True
