"""The output files of a crowd's grades, and what they say; the same labels and options give the same bytes."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from judge.crowd.labels import Item
from judge.crowd.study import SEED, Study
from judge.crowd.summary import _RELIABILITY, _all_grades, summary_markdown
from judge.crowd.workers import WorkerRow
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, text_digest
from judge.io.files import file_sha256, json_bytes
from judge.io.folder import replace_folder
from judge.io.ids import QrelRow, column, natural_key, natural_order, qrels_lines, safe_names, topic_of
from judge.io.installed import __version__
from judge.io.table import Cell, records_tsv, tsv
from judge.io.text import count, shown
from judge.records import Record, file_problem

CrowdUnit = Literal["response", "question", "passage"]
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
    listed: Mapping[Item, str] = {},
    turns: Collection[str] | None = None,
    filter_min: int = FILTER_MIN,
    whole: Collection[str] = (),
) -> dict[str, bytes]:
    """File name to content, without the manifest.

    `whole`: the criteria under which every response of the pool has a grade, so that none was left to chance.
    `digests`: the names in gold of items whose text does not name them; `listed`: the ids by which qrels, pool, bank
    and judgments name items, where they are not their own; `turns`: those of the subset qrels;
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
    ids = {item: listed.get(item, item.item_id) for item in items}
    pool = (f"{column(item.turn_id)} Q0 {column(ids[item])} 1 0.0 {ASSESSOR}\n" for item in items)
    files = {"pool.txt": "".join(pool).encode()}
    if texts is not None:
        bank = {ids[item]: texts[item] for item in items if item in texts}
        ordered = {item_id: bank[item_id] for item_id in sorted(bank, key=natural_key)}
        files["bank.json"] = json.dumps(ordered, indent=4, ensure_ascii=False).encode() + b"\n"
    texts = texts or {}
    for criterion, name in safe_names(grades).items():
        of_item = grades[criterion]
        name = f"{name}.qrel" if unit == "passage" else f"{unit}_{name}.qrel"
        relevant = {item.turn_id for item, grade in of_item.items() if grade >= filter_min}
        files[f"qrels/{name}"] = _qrels(of_item, ids, graded)
        files[f"qrels/filtered/{name}"] = _qrels(of_item, ids, relevant)
        if turns is not None:
            files[f"qrels/subset/{name}"] = _qrels(of_item, ids, turns)
    files[f"{unit}_judgments.json"] = _judgments(ids, grades, texts, unit, fields)
    names = {**{item: text_digest(text) for item, text in texts.items()}, **digests}
    files["gold.jsonl"] = gold_jsonl(_gold_rows(grades, names, study, whole))
    files |= audit_files(study, "response_id" if listed else f"{unit}_id")
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


def _qrels(of_item: Mapping[Item, int], ids: Mapping[Item, str], turns: Collection[str]) -> bytes:
    kept = ((item, grade) for item, grade in of_item.items() if item.turn_id in turns)
    return qrels_lines(QrelRow(column(item.turn_id), column(ids[item]), grade) for item, grade in kept).encode()


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
    ids: Mapping[Item, str], grades: GradedItems, texts: Mapping[Item, str], unit: CrowdUnit, fields: Mapping[str, str]
) -> bytes:
    """The grades in the shape of CAsT-ReGIn's judgments; a criterion under which an item has no grade is left out.

    `ids` has the items in their order, with the id that each is given there.
    """
    word = unit.capitalize()
    turns: dict[str, dict[str, list[dict[str, object]]]] = {}
    for item, item_id in ids.items():
        entry: dict[str, object] = {f"{word} ID": item_id}
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
