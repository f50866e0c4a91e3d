"""What people read of a crowd's grades: a page, and lines for the terminal. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from judge.crowd.known import Audit
from judge.crowd.study import FEWEST_COMMON, Study, cautions
from judge.crowd.workers import CONSTANT, FEWEST_COMPARED, FEWEST_LABELS
from judge.io.ids import groups_of
from judge.io.layout import table_lines
from judge.io.table import Cell, Column, Table, fields
from judge.io.text import count, escape, fold, interval, name_of, number, prose
from judge.records import Estimate

CAREFUL = 0.05
"""Share of known items that a careful worker fails, by which the summary says whom the filter may leave out wrongly."""
TOO_SURE = (
    "p_<grade> of items.tsv and the distributions of gold.jsonl are the model's own probabilities. They are too near "
    "to 0 and 1, because the model takes the errors of workers as independent and its parameters as known: use them as "
    "soft labels, not as the chance that a grade is right."
)
"""What goes with every output of a model's probabilities."""


def summary_markdown(study: Study, unit: str, incomplete: str = "") -> str:
    """The text of `summary.md`; `incomplete` says what the JSON lacks in comparison with CAsT-ReGIn's."""
    parts = [f"# Grades of {unit}s by a crowd", "## Rule", _rules(study), "## Grades", *_grades(study)]
    parts += ["## Reliability", *_reliability(study)]
    if study.audit is not None:
        parts += ["## Known items", *_filter(study, study.audit)]
    parts += ["## Workers", *_workers(study)]
    parts += ["## JSON", prose(incomplete)] if incomplete else []
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _markdown(lines: Iterable[tuple[Cell, ...]], columns: Iterable[Column | str]) -> str:
    """A table whose first column names its lines."""
    return Table(lines, columns, places=2).body(words=(0,))


def _rules(study: Study) -> str:
    rules = groups_of((grades.rule, name) for name, grades in study.grades.items())
    if len(rules) == 1:
        return prose(f"{study.settings.aggregator}: {next(iter(rules))}.")
    return "\n".join(f"- {', '.join(map(name_of, names))}: {prose(rule)}." for rule, names in rules.items())


def _grades(study: Study) -> Iterator[str]:
    """Counts, how the grades are spread, and what the flags mean."""
    scale = _all_grades(study)
    spread: list[tuple[Cell, ...]] = []
    for name, grades in study.grades.items():
        own_scale = study.labels[name].grades
        times = Counter(own_scale[code] for code in grades.code.tolist() if code >= 0)
        spread.append((name, *(times[grade] if grade in own_scale else None for grade in scale)))
    yield _counts(study).body(words=(0,))
    yield (
        f"tied: several grades got the most labels. unvoted: the grade is one that nobody gave. few: items with fewer "
        f"than {count(study.settings.min_labels, 'label')}, those with none among them. none: items without any label "
        "left, which have no grade and are in no qrels. alpha: Krippendorff's, ordinal, 95 % interval over topics."
    )
    yield _markdown(spread, (Column("grades"), *(Column(str(grade), empty="") for grade in scale)))
    if any(grades.fit is not None for grades in study.grades.values()):
        yield prose(TOO_SURE)
    if study.unlike:
        unlike = (f"{name_of(name)} {n} of {len(study.labels[name].items)}" for name, n in study.unlike.items())
        yield f"Grades that are none of those that most labels name: {', '.join(unlike)}."
    for problem in cautions(study):
        yield f"Warning: {prose(problem.file)}: {prose(problem.message)}."


def _all_grades(study: Study) -> list[int]:
    """The grades of all criteria, ascending."""
    return sorted(set[int]().union(*(labels.grades for labels in study.labels.values())))


def _counts(study: Study) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for name, grades in study.grades.items():
        labels = study.labels[name]
        lines.append(
            (
                name,
                len(labels.items),
                len(labels.item),
                len(np.unique(labels.worker)),
                int(grades.tied.sum()),
                int(grades.unvoted.sum()),
                len(study.few[name]),
                int((grades.n == 0).sum()),
                _alpha(study, name),
            )
        )
    columns = ("criterion", "items", "labels", "workers", "tied", "unvoted", "few", "none", "alpha")
    return Table(lines, columns, places=2)


def _alpha(study: Study, criterion: str, of: str = "kept") -> Estimate | None:
    rows = (row for row in study.reliability if (row.criterion, row.topic, row.of) == (criterion, None, of))
    return next((row.alpha for row in rows), None)


def _reliability(study: Study) -> Iterator[str]:
    before = ["without the filter"] if study.audit else []
    yield "Krippendorff's alpha, ordinal; known items are left out. lowest and highest: of the topics."
    alphas = [_alphas(study, name) for name in study.labels]
    yield _markdown(alphas, ("criterion", "alpha", *before, "topics", "lowest", "highest"))
    yield f"Cohen's κ of every two workers with {FEWEST_COMMON} common items or more (`pairwise.tsv`):"
    lines: list[tuple[Cell, ...]] = []
    for name, (pairs, sampled) in study.pairs.items():
        kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
        median = float(np.median(kappas)) if kappas else None
        # A sample without such pairs says nothing about the other workers.
        n = len(pairs) if pairs or sampled == 1 else "not computed: none among those sampled"
        lines.append((name, n, median, f"{sampled:.1%}"))
    yield _markdown(lines, ("criterion", "pairs", "median κ", "workers sampled"))


def _alphas(study: Study, criterion: str) -> tuple[Cell, ...]:
    """A criterion's alpha, and the topics with the lowest and the highest."""
    alpha = _alpha(study, criterion)
    value: Cell = f"{interval(alpha, 2)} ({alpha.reason})" if alpha and alpha.reason else alpha
    before = (_alpha(study, criterion, "all"),) if study.audit else ()
    topics = [
        (row.alpha.value, row.topic)
        for row in study.reliability
        if row.criterion == criterion and row.topic is not None and row.alpha.value is not None
    ]
    ends: list[str | None] = [None, None]
    if topics:
        ends = [f"{number(alpha_of_topic, 2)} ({topic})" for alpha_of_topic, topic in (min(topics), max(topics))]
    return (criterion, value, *before, alpha.topics if alpha else 0, *ends)


_NAMED = 20
"""Flagged workers that the summary names."""
_FLAGS = f"""
constant: of {FEWEST_LABELS} labels or more, {CONSTANT:.0%} are the same. alike: of {FEWEST_LABELS} items or more
labeled under several criteria, {CONSTANT:.0%} got one label under all. no agreement: κ with the majority of the
others, tied grades in equal parts, is 0 or less on {FEWEST_COMPARED} items or more. fast: more than half of the timed
labels were too fast. removed: from one topic or more by known items. These are signs to look into: but for known
items, nobody's labels are left out.
"""


def _workers(study: Study) -> list[str]:
    """How many workers have a flag, who has most, and what the flags mean."""
    flags: dict[str, Counter[str]] = defaultdict(Counter)
    for row in study.workers:
        if row.flags:
            flags[row.worker].update(row.flags)
    everyone = len({row.worker for row in study.workers})
    lines = [f"{len(flags)} of {count(everyone, 'worker')} have a flag (`workers.tsv`)."]
    if flags:
        most = sorted(flags, key=lambda worker: -flags[worker].total())[:_NAMED]
        times = "{} ({})" if len(study.labels) > 1 else "{}"
        rows: list[tuple[str, str]] = []
        for worker in most:
            rows.append((worker, ", ".join(times.format(flag, n) for flag, n in flags[worker].items())))
        lines += [Table(rows, ("worker", "flags (criteria)"), places=2).body(words=(0,)), _FLAGS]
    return lines


def _filter(study: Study, audit: Audit) -> list[str]:
    lines = [f"{prose(_filter_rule(study))} {prose(_filter_counts(audit))}"]
    lines += [prose(honest)] if (honest := _honest(study, audit)) else []
    if audit.removals:
        rows: list[tuple[Cell, ...]] = []
        for topic, n in Counter(topic for topic, _ in audit.removed).items():
            rows.append((topic, n, *(audit.labels_removed[name].get(topic, 0) for name in study.labels)))
        lines.append(_markdown(rows, ("topic", "workers removed", *(f"labels of {name}" for name in study.labels))))
    changed = [f"{name_of(name)} {n} of {len(study.labels[name].items)}" for name, n in study.changed.items()]
    lines.append(f"Grades changed against no filter: {', '.join(changed)}.")
    return lines


def _filter_rule(study: Study) -> str:
    s = study.settings
    away = f" by more than {s.max_deviation}" if s.max_deviation else ""
    times = f"more than {count(s.max_fails, 'time')} in a topic" if s.max_fails else "once in a topic"
    return f"A worker whose label is outside a known item's acceptable ones{away} {times} is left out of that topic."


def _honest(study: Study, audit: Audit) -> str:
    """How many careful workers the rule is expected to leave out, given the known items that each met; else nothing."""
    if not audit.checked:
        return ""
    fails = study.settings.max_fails
    careful, pooled = (audit.expected(error, fails) for error in (CAREFUL, audit.error))
    more = audit.expected(CAREFUL, fails + 1)
    text = (
        f"Honest workers err too: if every worker failed {CAREFUL:.0%} of the known items, this rule would leave out "
        f"{careful:.1f} of {count(audit.checked, 'pair')} of worker and topic by chance (with --max-fails {fails + 1}, "
        f"{more:.1f}); at the error rate found here, {audit.error:.1%}, {pooled:.1f}. It left out {len(audit.removed)}."
    )
    return f"Warning: {text}" if careful >= 1 else text


def _filter_counts(audit: Audit) -> str:
    people = len({worker for _, worker in audit.removed})
    lost = sum(sum(topics.values()) for topics in audit.labels_removed.values())
    text = (
        f"{count(audit.known, 'known item')} taken out; {count(len(audit.removed), 'removal')} of "
        f"{count(people, 'worker')} (removed.tsv), {count(lost, 'label')} gone with them"
    )
    text += f"; {count(audit.tolerated, 'contradiction')} tolerated" if audit.tolerated else ""
    if audit.unchecked:
        text += f"; {audit.unchecked} of {audit.checked + audit.unchecked} pairs of worker and topic met no known item"
    return f"{text}."


def terminal(study: Study, columns: int = 80) -> str:
    """The rule, a line for each criterion, and what the filter did, in lines of so many columns that end in LF."""
    lines: list[str] = []
    rules = {name: grades.rule for name, grades in study.grades.items()}
    for name, rule in rules.items() if len(set(rules.values())) > 1 else [*rules.items()][:1]:
        heading = "rule" if len(set(rules.values())) == 1 else f"rule of {escape(name)}"
        lines += fold(f"{heading}: {study.settings.aggregator}: {rule}", columns)
    # The workers are in the Markdown; 80 columns have no room for them.
    counts = _counts(study)
    counts = counts.pick(column for column in counts.names if column != "workers")
    lines += ["", *table_lines(counts.names, [*counts.cells()], columns, whole="summary.md")]
    lines += fold("alpha: Krippendorff's, ordinal, 95 % interval over topics", columns)
    if study.audit is not None:
        lines += ["", *fold(_filter_rule(study), columns), *fold(_filter_counts(study.audit), columns)]
        lines += fold(_honest(study, study.audit), columns)
        changed = ", ".join(f"{escape(name)} {n}" for name, n in study.changed.items())
        lines += fold(f"grades changed by the filter: {changed}", columns)
    flagged = len({row.worker for row in study.workers if row.flags})
    if flagged:
        lines += ["", f"{count(flagged, 'worker')} with a flag, see workers.tsv"]
    return "".join(f"{line}\n" for line in lines)


_RELIABILITY = {
    **fields("criterion topic_id=topic labels_of=of alpha=alpha.value alpha_lo=alpha.low alpha_hi=alpha.high"),
    **fields("items=alpha.n topics=alpha.topics workers labels note=alpha.reason"),
}
