"""The output files of a crowd's grades, and what they say; the same labels and options give the same bytes."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from judge.crowd.known import Audit
from judge.crowd.labels import Item
from judge.crowd.study import FEWEST_COMMON, SEED, Study, cautions
from judge.crowd.workers import CONSTANT, FEWEST_COMPARED, FEWEST_LABELS, WorkerRow
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, text_digest
from judge.io.files import file_sha256, json_bytes
from judge.io.folder import replace_folder
from judge.io.ids import QrelRow, column, groups_of, natural_key, natural_order, qrels_lines, safe_names, topic_of
from judge.io.installed import __version__
from judge.io.layout import table_lines
from judge.io.table import Cell, Column, Table, fields, records_tsv, tsv
from judge.io.text import count, escape, fold, interval, name_of, number, prose, shown
from judge.records import Estimate, Record, file_problem

CrowdUnit = Literal["response", "question"]
GradedItems = Mapping[str, Mapping[Item, int]]
"""Criterion to the grades of its items, in natural order."""

SCHEMA = 2
"""Version of the folder's layout and of crowd.json."""
MANIFEST = "crowd.json"
RECORD = "crowd.sha256"
ASSESSOR = "crowd"
FILTER_MIN = 2
"""Default grade that a turn must have at least once to be in the filtered qrels, as in CAsT-ReGIn."""


def crowd_files(
    study: Study,
    *,
    unit: CrowdUnit = "response",
    texts: Mapping[Item, str] | None = None,
    digests: Mapping[Item, str] = {},
    turns: Collection[str] | None = None,
    filter_min: int = FILTER_MIN,
    whole: Collection[str] = (),
) -> dict[str, bytes]:
    """File name to content, without the manifest.

    `whole`: the criteria under which every response of the pool has a grade, so that none was left to chance.
    `digests`: the names in gold of items whose text does not name them; `turns`: those of the subset qrels;
    `filter_min`: the grade that a turn must have at least once to be in the filtered qrels. An InputError if turns of
    the subset have no grade. A UsageError if names of criteria would give the same field of the JSON.
    """
    fields = _json_fields(study.labels, unit)
    grades: dict[str, dict[Item, int]] = {}
    for name, labels in study.labels.items():
        codes = study.grades[name].code.tolist()
        grades[name] = {item: labels.grades[code] for item, code in zip(labels.items, codes, strict=True) if code >= 0}
    items = sorted(set[Item]().union(*grades.values()), key=natural_order)
    graded = {item.turn_id for item in items}
    if unknown := sorted(set(turns or ()) - graded, key=natural_key):
        message = "no item of this turn has a grade"
        problems = [file_problem("unknown_turn", "turns", message, turn_id=turn_id) for turn_id in unknown]
        raise InputError(f"{len(unknown)} turns of the subset are not turns of the labels", problems)
    # A TREC pool as CAsT-ReGIn has, but with single spaces and the tag `crowd`.
    pool = (f"{column(turn_id)} Q0 {column(item_id)} 1 0.0 {ASSESSOR}\n" for turn_id, item_id in items)
    files = {"pool.txt": "".join(pool).encode()}
    if texts is not None:
        bank = {item.item_id: texts[item] for item in items if item in texts}
        ordered = {item_id: bank[item_id] for item_id in sorted(bank, key=natural_key)}
        files["bank.json"] = json.dumps(ordered, indent=4, ensure_ascii=False).encode() + b"\n"
    texts = texts or {}
    for criterion, name in safe_names(grades).items():
        of_item = grades[criterion]
        name = f"{unit}_{name}.qrel"
        relevant = {item.turn_id for item, grade in of_item.items() if grade >= filter_min}
        files[f"qrels/{name}"] = _qrels(of_item, graded)
        files[f"qrels/filtered/{name}"] = _qrels(of_item, relevant)
        if turns is not None:
            files[f"qrels/subset/{name}"] = _qrels(of_item, turns)
    files[f"{unit}_judgments.json"] = _judgments(items, grades, texts, unit, fields)
    names = {**{item: text_digest(text) for item, text in texts.items()}, **digests}
    files["gold.jsonl"] = gold_jsonl(_gold_rows(grades, names, study, whole))
    files |= audit_files(study, f"{unit}_id")
    files["summary.md"] = summary_markdown(study, unit, _incomplete(items, grades, texts, unit)).encode()
    return files


def write_crowd(
    out: Path,
    files: Mapping[str, bytes],
    inputs: Sequence[Path],
    options: Mapping[str, Any],
    tables: Mapping[str, str] = {},
) -> None:
    """Write the files, and the manifest last; a folder without it is incomplete.

    `tables`: name to digest of tables that were no files. A UsageError if an output would replace an input. An
    InputError if a folder or file is in the way, or a file to be removed was changed.
    """
    manifest = {
        "schema": SCHEMA,
        "judge_version": __version__,
        "inputs": [
            *({"file": name, "sha256": digest} for name, digest in tables.items()),
            *({"file": path.name, "sha256": file_sha256(path)} for path in inputs),
        ],
        "options": dict(options),
        "seed": SEED,
    }
    replace_folder(out, {**files, MANIFEST: json_bytes(manifest)}, RECORD, inputs=inputs, last=MANIFEST)


def _qrels(of_item: Mapping[Item, int], turns: Collection[str]) -> bytes:
    kept = ((item, grade) for item, grade in of_item.items() if item.turn_id in turns)
    return qrels_lines(QrelRow(column(item.turn_id), column(item.item_id), grade) for item, grade in kept).encode()


def _json_fields(criteria: Iterable[str], unit: CrowdUnit) -> dict[str, str]:
    """The field of each criterion in the JSON: its name with a capital, as in CAsT-ReGIn.

    A UsageError if two criteria would have the same field, or one that of an id or a text.
    """
    named: dict[str, list[str]] = {
        f"{unit.capitalize()} {field}": [f"the {unit}'s {field.lower()}"] for field in ("ID", "Text")
    }
    for name in criteria:
        named.setdefault(name[:1].upper() + name[1:], []).append(f"criterion {shown(name)}")
    if shared := [f"{' and '.join(names)} (field {shown(field)})" for field, names in named.items() if len(names) > 1]:
        raise UsageError(f"{unit}_judgments.json has one field for {'; '.join(shared)}: rename one or leave it out")
    return {name: name[:1].upper() + name[1:] for name in criteria}


def _incomplete(items: Sequence[Item], grades: GradedItems, texts: Mapping[Item, str], unit: CrowdUnit) -> str:
    """What the JSON lacks in comparison with CAsT-ReGIn's, in words; empty if it is complete."""
    untold = sum(item not in texts for item in items)
    ungraded = sum(any(item not in of_item for of_item in grades.values()) for item in items)
    lacking = [f"{untold} have no text"] if untold else []
    lacking += [f"{ungraded} have no grade under one criterion or more"] if ungraded else []
    if not lacking:
        return ""
    sentence = f"{unit}_judgments.json is incomplete: of {count(len(items), 'item')}, {' and '.join(lacking)}"
    return f"{sentence}. Those fields are left out there."


def _judgments(
    items: Sequence[Item], grades: GradedItems, texts: Mapping[Item, str], unit: CrowdUnit, fields: Mapping[str, str]
) -> bytes:
    """The grades in the shape of CAsT-ReGIn's judgments; a criterion under which an item has no grade is left out."""
    word = unit.capitalize()
    turns: dict[str, dict[str, list[dict[str, object]]]] = {}
    for item in items:
        entry: dict[str, object] = {f"{word} ID": item.item_id}
        if item in texts:
            entry[f"{word} Text"] = texts[item]
        entry |= {fields[name]: of_item[item] for name, of_item in grades.items() if item in of_item}
        turns.setdefault(item.turn_id, {f"{word}s": []})[f"{word}s"].append(entry)
    return json.dumps(turns, indent=4, ensure_ascii=False).encode()


def _gold_rows(
    grades: GradedItems, digests: Mapping[Item, str], study: Study, whole: Collection[str]
) -> Iterator[GoldRow]:
    """The grades as gold with their soft labels; of a part of a pool, nobody knows with which probability it was drawn.

    If a turn has one text under two ids, the second grade is given to a second assessor.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for criterion, of_item in grades.items():
        graded = study.grades[criterion]
        shares = iter(graded.shares[graded.code >= 0].tolist())
        for item, grade in of_item.items():
            digest = digests.get(item)
            key = item.turn_id, digest or item.item_id, criterion
            seen[key] += 1
            assessor = ASSESSOR if seen[key] == 1 else f"{ASSESSOR}#{seen[key]}"
            soft = zip(study.labels[criterion].grades, next(shares), strict=True)
            yield GoldRow(
                turn_id=item.turn_id,
                topic_id=topic_of(item.turn_id),
                criterion=criterion,
                grade=grade,
                assessor=assessor,
                response_id=item.item_id,
                text_sha256=digest,
                inclusion_probability=1.0 if criterion in whole else None,
                distribution={str(label): round(p, 6) for label, p in soft},
            )


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
    lines += ["", *table_lines(counts.names, [*counts.cells()], columns)]
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


class ItemGrade(Record, frozen=True):
    """An item's grade under a criterion, and what it was made from; undefined numbers are None."""

    turn_id: str
    response_id: str
    criterion: str
    grade: int | None
    """None where no label is left; so are the fields below `n`."""
    n: int
    """Labels."""
    tied: bool | None
    mean: float | None
    entropy: float | None
    """Of the labels, in bits."""
    unvoted: bool | None
    count: dict[str, int]
    """How many labels name each grade."""
    p: dict[str, float] | None
    """The probability of each grade, where a model gave the grades."""


def audit_files(study: Study, item: str = "response_id") -> dict[str, bytes]:
    """File name to content; `removed.tsv` only if known items were given; `item` names the column of ids."""
    pairs: list[tuple[Cell, ...]] = []
    for several, share in study.pairs.values():
        pairs += ((*msgspec.structs.astuple(pair), share) for pair in several)
    few = chain.from_iterable(study.few.values())
    paired = "criterion worker_a worker_b n same kappa wkappa share_of_workers".split()
    files = {
        "items.tsv": _items(study, item),
        "few_labels.tsv": tsv(("turn_id", item, "criterion", "n", "n_before_filter"), few),
        "pairwise.tsv": tsv(paired, pairs),
        "reliability.tsv": records_tsv(_RELIABILITY, study.reliability),
        "workers.tsv": _workers_tsv(study),
    }
    if study.audit is not None:
        columns = ("topic_id", "worker", "turn_id", item, "criterion", "label", "acceptable")
        removals: list[tuple[Cell, ...]] = []
        for removal in study.audit.removals:
            turn_id, item_id, criterion, acceptable = removal.known
            told = ",".join(map(str, acceptable))
            removals.append((removal.topic, removal.worker, turn_id, item_id, criterion, removal.label, told))
        files["removed.tsv"] = tsv(columns, removals)
    return {name: text.encode() for name, text in files.items()}


def _workers_tsv(study: Study) -> str:
    """A row for each worker and criterion, with the aggregator's own parameters last."""
    parameters = {}
    for name, grades in study.grades.items():
        parameters[name] = {key: values for key, values in grades.worker.items() if values.ndim == 1}
    keys = sorted(set[str]().union(*parameters.values()))
    places: dict[str, dict[str, int]] = {}
    for name, labels in study.labels.items():
        places[name] = {worker: i for i, worker in enumerate(labels.workers)}

    def own(worker: str, criterion: str) -> Iterator[float | None]:
        for key in keys:
            values = parameters[criterion].get(key)
            place = places[criterion].get(worker)
            value = np.nan if values is None or place is None else float(values[place])
            yield value if np.isfinite(value) else None

    return tsv(
        [*WorkerRow.__struct_fields__, *(f"{study.settings.aggregator}_{key}" for key in keys)],
        ([*msgspec.structs.astuple(r)[:-1], ",".join(r.flags), *own(r.worker, r.criterion)] for r in study.workers),
    )


def _items(study: Study, item: str) -> str:
    """A row for each item and criterion; no grade where no label is left."""
    scale = list(map(str, _all_grades(study)))
    modeled = any(grades.fit is not None for grades in study.grades.values())
    *names, _, _ = ItemGrade.__struct_fields__
    columns = ["turn_id", item, *names[2:], *(f"count_{grade}" for grade in scale)]
    columns += [f"p_{grade}" for grade in scale] if modeled else []
    lines = []
    for row in item_grades(study):
        shares = map((row.p or {}).get, scale) if modeled else ()
        lines.append([*(getattr(row, name) for name in names), *map(row.count.get, scale), *shares])
    return tsv(columns, lines)


def item_grades(study: Study) -> Iterator[ItemGrade]:
    """The grade of each item under each criterion, in natural order of turn and item."""
    for name, grades in study.grades.items():
        labels = study.labels[name]
        scale = [str(grade) for grade in labels.grades]
        codes = grades.code.tolist()
        labeled = grades.n.tolist()
        for i, (item, code, n) in enumerate(zip(labels.items, codes, labeled, strict=True)):
            yield ItemGrade(
                turn_id=item.turn_id,
                response_id=item.item_id,
                criterion=name,
                grade=labels.grades[code] if n else None,
                n=n,
                tied=grades.tied[i].item() if n else None,
                mean=grades.mean[i].item() if n else None,
                entropy=grades.entropy[i].item() if n else None,
                unvoted=grades.unvoted[i].item() if n else None,
                count=dict(zip(scale, grades.counts[i].tolist(), strict=True)),
                p=dict(zip(scale, grades.shares[i].tolist(), strict=True)) if grades.fit is not None and n else None,
            )
