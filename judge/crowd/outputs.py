"""The output files of a crowd's grades; the same labels and options give the same bytes."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from judge.crowd.labels import Item
from judge.crowd.study import SEED, Study
from judge.crowd.summary import audit_files, summary_markdown
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, text_digest
from judge.io.files import file_sha256, json_bytes
from judge.io.folder import replace_folder
from judge.io.ids import natural_key, natural_order, topic_of
from judge.io.installed import __version__
from judge.io.text import count, shown
from judge.io.trec import QrelRow, column, qrels_lines, safe_names
from judge.records import Problem

Unit = Literal["response", "question"]
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
    unit: Unit = "response",
    texts: Mapping[Item, str] | None = None,
    turns: Collection[str] | None = None,
    filter_min: int = FILTER_MIN,
) -> dict[str, bytes]:
    """File name to content, without the manifest.

    `turns`: those of the subset qrels; `filter_min`: the grade that a turn must have at least once to be in the
    filtered qrels. An InputError if turns of the subset have no grade. A UsageError if names of criteria would give the
    same field of the JSON.
    """
    fields = _json_fields(study.labels, unit)
    grades = {
        name: {
            item: labels.grades[code]
            for item, code in zip(labels.items, study.grades[name].code.tolist(), strict=True)
            if code >= 0
        }
        for name, labels in study.labels.items()
    }
    graded_items = {item for of_item in grades.values() for item in of_item}
    items = sorted(graded_items, key=natural_order)
    graded = {item.turn_id for item in items}
    if unknown := [turn_id for turn_id in turns or () if turn_id not in graded]:
        message = "no item of this turn has a grade"
        problems = [Problem("unknown_turn", "error", "turns", turn_id, "", message) for turn_id in unknown]
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
        of_item, name = grades[criterion], f"{unit}_{name}.qrel"
        relevant = {item.turn_id for item, grade in of_item.items() if grade >= filter_min}
        files[f"qrels/{name}"] = _qrels(of_item, graded)
        files[f"qrels/filtered/{name}"] = _qrels(of_item, relevant)
        if turns is not None:
            files[f"qrels/subset/{name}"] = _qrels(of_item, turns)
    files[f"{unit}_judgments.json"] = _judgments(items, grades, texts, unit, fields)
    files["gold.jsonl"] = gold_jsonl(_gold_rows(grades, texts, study))
    files |= audit_files(study, f"{unit}_id")
    files["summary.md"] = summary_markdown(study, unit, _incomplete(items, grades, texts, unit)).encode()
    return files


def write_crowd(
    out: Path,
    files: Mapping[str, bytes],
    inputs: Sequence[Path],
    options: Mapping[str, Any],
    tables: Mapping[str, str] | None = None,
) -> None:
    """Write the files, and the manifest last; a folder without it is incomplete.

    `tables`: name to digest of tables that were no files. A UsageError if an output would replace an input. An
    InputError if a folder or file is in the way, or a file to be removed was changed.
    """
    manifest = {
        "schema": SCHEMA,
        "judge_version": __version__,
        "inputs": [
            *({"file": name, "sha256": digest} for name, digest in (tables or {}).items()),
            *({"file": path.name, "sha256": file_sha256(path)} for path in inputs),
        ],
        "options": dict(options),
        "seed": SEED,
    }
    replace_folder(out, {**files, MANIFEST: json_bytes(manifest)}, RECORD, inputs=inputs, last=MANIFEST)


def _qrels(of_item: Mapping[Item, int], turns: Collection[str]) -> bytes:
    kept = ((item, grade) for item, grade in of_item.items() if item.turn_id in turns)
    return qrels_lines(QrelRow(column(item.turn_id), column(item.item_id), grade) for item, grade in kept).encode()


def _json_fields(criteria: Iterable[str], unit: Unit) -> dict[str, str]:
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


def _incomplete(items: Sequence[Item], grades: GradedItems, texts: Mapping[Item, str], unit: Unit) -> str:
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
    items: Sequence[Item], grades: GradedItems, texts: Mapping[Item, str], unit: Unit, fields: Mapping[str, str]
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


def _gold_rows(grades: GradedItems, texts: Mapping[Item, str], study: Study) -> Iterator[GoldRow]:
    """The grades as gold with their soft labels.

    If a turn has one text under two ids, the second grade is given to a second assessor.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for criterion, of_item in grades.items():
        graded = study.grades[criterion]
        shares = iter(graded.shares[graded.code >= 0].tolist())
        for item, grade in of_item.items():
            digest = text_digest(texts[item]) if item in texts else None
            key = item.turn_id, digest or item.item_id, criterion
            seen[key] += 1
            assessor = ASSESSOR if seen[key] == 1 else f"{ASSESSOR}#{seen[key]}"
            named = item.turn_id, topic_of(item.turn_id), criterion, grade, assessor, item.item_id, digest
            soft = zip(map(str, study.labels[criterion].grades), next(shares), strict=True)
            yield GoldRow(*named, inclusion_probability=1.0, distribution={of: round(p, 6) for of, p in soft})
