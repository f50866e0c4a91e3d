"""Two files of one judge's labels compared: what `judge drift` does, for use from Python."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from judge.ask.results import JUDGMENTS, Labels
from judge.calibrate.intake import parse_scale, read_sources
from judge.calibrate.recheck import AnchorKeys, Drift, drift
from judge.errors import InputError, UsageError
from judge.gold.rows import response_digest
from judge.io.plan import AboveZero, Option, Options, in_folders
from judge.io.text import count, shown
from judge.records import Scale
from judge.units import UNITS


class DriftPlan(Options):
    """Everything `judge drift` can be told."""

    before: Annotated[Path, Option(metavar="BEFORE", place="only")]
    """Labels of the first date: folder, JSONL or columns."""
    after: Annotated[Path, Option(metavar="AFTER", place="only")]
    """Labels of the second date, of the same responses."""
    margin: Annotated[AboveZero, Option(metavar="M")] = 0.1
    """The change of the mean grade that does not matter."""
    scale: Annotated[str | None, Option(metavar="LOW-HIGH")] = None
    """Grades of labels in columns, such as 0-3."""


class DriftOutcome(msgspec.Struct, frozen=True):
    """How far each judge moved."""

    rows: tuple[Drift, ...]
    """A row for each judge and prompt of both files."""
    warnings: tuple[str, ...]
    """What else differs between the two dates."""

    @property
    def steady(self) -> bool:
        """Whether every judge is STEADY."""
        return all(row.word == "STEADY" for row in self.rows)


def compare_dates(plan: DriftPlan) -> DriftOutcome:
    """Compare labels of equal turns, texts and passages where pools lie beside both files, else of equal ids."""
    plan = in_folders(plan, before=(JUDGMENTS,), after=(JUDGMENTS,))
    scale = parse_scale(plan.scale) if plan.scale else None
    before, keys_before = _read(plan.before, scale)
    after, keys_after = _read(plan.after, scale)
    if keys_before is None or keys_after is None:
        keys_before = keys_after = {}
    pairs = _pairs(before, after)
    if not pairs:
        raise InputError(f"{plan.before} and {plan.after}: no judge and prompt in common")
    rows = tuple(drift(first, second, keys_before, keys_after, plan.margin) for first, second in pairs)
    without = [row.after for row in rows if not row.n]
    if without:
        raise InputError(f"{plan.before} and {plan.after}: no response that {', '.join(without)} graded at both dates")
    paired = {id(labels) for pair in pairs for labels in pair}
    warnings = []
    for labels in (*before, *after):
        if id(labels) not in paired:
            warnings.append(f"{labels.source}: {_name(labels)} is in this file only")
    for first, second in pairs:
        warnings += _differences(first, second)
    for row in rows:
        alone = row.only_before + row.only_after
        if alone:
            warnings.append(f"{row.after}: {count(alone, 'response')} in one of the files only")
    return DriftOutcome(rows, tuple(warnings))


def _read(path: Path, scale: Scale | None) -> tuple[tuple[Labels, ...], AnchorKeys | None]:
    """The labels of a file and, where a pool lies beside it, what its responses are; the pool itself is let go."""
    columns = read_sources([path], None, scale, grades_only=True)
    pool = columns[0].pool if columns else None
    if pool is None:
        return columns, None
    if UNITS[pool.unit].orders > 1:
        raise UsageError(f"{path}: judgments of pairs: both orders have one mean at every date; compare their ratings")
    return tuple(msgspec.structs.replace(labels, pool=None) for labels in columns), {
        (response.turn_id, response.response_id): (response.turn_id, response_digest(response), *response.passages)
        for response in pool.responses
    }


def _pairs(before: Sequence[Labels], after: Sequence[Labels]) -> list[tuple[Labels, Labels]]:
    """The labels that belong together: by judge and prompt, or by prompt where each file has one judge under it."""
    first = _by_judge(before)
    second = _by_judge(after)
    pairs = [(first[key], second[key]) for key in first if key in second]
    for prompt in dict.fromkeys(prompt for _, prompt in first):
        earlier = [labels for labels in first.values() if labels.prompt == prompt]
        later = [labels for labels in second.values() if labels.prompt == prompt]
        if len(earlier) == len(later) == 1 and earlier[0].judge != later[0].judge:
            pairs.append((earlier[0], later[0]))
    return pairs


def _by_judge(columns: Sequence[Labels]) -> Mapping[tuple[str, str | None], Labels]:
    """The labels of a file, by judge and prompt."""
    judges: dict[tuple[str, str | None], Labels] = {}
    for labels in columns:
        if judges.setdefault((labels.judge, labels.prompt), labels) is not labels:
            raise InputError(f"{labels.source}: {_name(labels)} under two versions of the prompt: expected one")
        counts = Counter((label.turn_id, label.response_id, label.sample) for label in labels.labels)
        if twice := next((response_id for (_, response_id, _), number in counts.items() if number > 1), None):
            raise InputError(f"{labels.source}: two judgments of {shown(twice)} by {_name(labels)}: expected one")
    return judges


def _differences(before: Labels, after: Labels) -> list[str]:
    """What else changed, so that the judge alone is not to blame."""
    differences = []
    if before.judge != after.judge and before.prompt is not None:
        differences.append(f"{before.judge} and {after.judge} are compared: two names, so perhaps two judges")
    if before.prompt_digest != after.prompt_digest:
        differences.append(f"{_name(after)}: the prompt has changed between the dates")
    if before.models_returned != after.models_returned:
        models = " and ".join(", ".join(labels.models_returned) or "none" for labels in (before, after))
        differences.append(f"{_name(after)}: the provider named other models: {models}")
    return differences


def _name(labels: Labels) -> str:
    return labels.judge if labels.prompt is None else f"{labels.judge} under {labels.prompt}"
