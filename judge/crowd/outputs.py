"""The output files of a crowd's grades; the same labels and options give the same bytes."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judge.crowd.aggregators import Aggregated
from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.study import SEED, Study
from judge.crowd.summary import audit_files, summary_markdown
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, text_digest
from judge.io.cells import count
from judge.io.folder import replace_folder
from judge.io.ids import natural_key, topic_of
from judge.io.installed import __version__
from judge.io.line_stream import json_bytes
from judge.io.safe import shown
from judge.io.stored import file_sha256
from judge.io.trec import QrelRow, column, qrels_lines, safe_names
from judge.records import Problem

Unit = Literal["response", "question"]

SCHEMA = 2
"""Version of the folder's layout and of crowd.json."""
MANIFEST = "crowd.json"
RECORD = "crowd.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
ASSESSOR = "crowd"
"""The name of the crowd as an assessor in gold."""
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

    Args:
        study: The grades.
        unit: What was labeled.
        texts: The items' texts, for bank, JSON and gold.
        turns: The turns of the subset qrels.
        filter_min: Grade that a turn must have at least once to be in the filtered qrels.

    Raises:
        InputError: Turns of the subset have no grade.
        UsageError: Names of criteria would give the same field of the JSON.
    """
    fields = json_fields(study.labels, unit)
    grades = {name: dict(_grades(study.labels[name], aggregated)) for name, aggregated in study.aggregated.items()}
    _check_turns(turns or (), {item.turn_id for graded in grades.values() for item in graded})
    names = safe_names(grades)
    files = {"pool.txt": _pool(grades)}
    if texts is not None:
        files["bank.json"] = _bank(grades, texts)
    for criterion, of_item in grades.items():
        name = f"{unit}_{names[criterion]}.qrel"
        best: dict[str, int] = {}
        for item, grade in of_item.items():
            best[item.turn_id] = max(grade, best.get(item.turn_id, grade))
        kept = {turn_id for turn_id, grade in best.items() if grade >= filter_min}
        files[f"qrels/{name}"] = _qrels(of_item)
        files[f"qrels/filtered/{name}"] = _qrels({item: of_item[item] for item in of_item if item.turn_id in kept})
        if turns is not None:
            files[f"qrels/subset/{name}"] = _qrels({item: of_item[item] for item in of_item if item.turn_id in turns})
    files[f"{unit}_judgments.json"] = judgments_json(grades, texts or {}, unit, fields)
    files["gold.jsonl"] = gold_jsonl(gold_rows(grades, texts or {}, study))
    files |= audit_files(study, f"{unit}_id")
    files["summary.md"] = summary_markdown(study, unit, _incomplete(grades, texts or {}, unit)).encode()
    return files


def write_crowd(
    out: Path,
    files: Mapping[str, bytes],
    inputs: Sequence[Path],
    options: Mapping[str, Any],
    tables: Mapping[str, str] | None = None,
) -> None:
    """Write the files, and the manifest last; a folder without it is incomplete.

    Args:
        out: The folder.
        files: Name to content.
        inputs: The files that were read.
        options: What determined the output, beside them.
        tables: Name to digest of tables that were no files.

    Raises:
        UsageError: An output would replace an input.
        InputError: A folder or file is in the way, or a file to be removed was changed.
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


def _grades(labels: CrowdLabels, aggregated: Aggregated) -> Iterator[tuple[Item, int]]:
    """The items that have a grade, in natural order."""
    for item, code in zip(labels.items, aggregated.code.tolist(), strict=True):
        if code >= 0:
            yield item, labels.grades[code]


def _check_turns(turns: Collection[str], graded: set[str]) -> None:
    if unknown := [turn_id for turn_id in turns if turn_id not in graded]:
        message = "no item of this turn has a grade"
        problems = [Problem("unknown_turn", "error", "turns", turn_id, "", message) for turn_id in unknown]
        raise InputError(f"{len(unknown)} turns of the subset are not turns of the labels", problems)


def _all_items(grades: Mapping[str, Mapping[Item, int]]) -> list[Item]:
    """The items with any grade, in natural order."""
    if len(grades) == 1:
        return list(next(iter(grades.values())))
    items = {item for graded in grades.values() for item in graded}
    return sorted(items, key=lambda item: (natural_key(item.turn_id), natural_key(item.item_id)))


def _pool(grades: Mapping[str, Mapping[Item, int]]) -> bytes:
    """A TREC pool as CAsT-ReGIn has, but with single spaces and the tag `crowd`."""
    lines = (f"{column(turn_id)} Q0 {column(item_id)} 1 0.0 {ASSESSOR}\n" for turn_id, item_id in _all_items(grades))
    return "".join(lines).encode()


def _bank(grades: Mapping[str, Mapping[Item, int]], texts: Mapping[Item, str]) -> bytes:
    """Id to text, in the form of the CAsT-ReGIn response bank."""
    bank = {item.item_id: texts[item] for item in _all_items(grades) if item in texts}
    ordered = {item_id: bank[item_id] for item_id in sorted(bank, key=natural_key)}
    return json.dumps(ordered, indent=4, ensure_ascii=False).encode() + b"\n"


def _qrels(of_item: Mapping[Item, int]) -> bytes:
    rows = (QrelRow(column(item.turn_id), column(item.item_id), grade) for item, grade in of_item.items())
    return qrels_lines(rows).encode()


def json_fields(criteria: Iterable[str], unit: Unit) -> dict[str, str]:
    """The field of each criterion in the JSON: its name with a capital, as in CAsT-ReGIn.

    Raises:
        UsageError: Two criteria would have the same field, or one that of an id or a text.
    """
    named: dict[str, list[str]] = {
        f"{unit.capitalize()} {field}": [f"the {unit}'s {field.lower()}"] for field in ("ID", "Text")
    }
    for name in criteria:
        named.setdefault(name[:1].upper() + name[1:], []).append(f"criterion {shown(name)}")
    if shared := [f"{' and '.join(names)} (field {shown(field)})" for field, names in named.items() if len(names) > 1]:
        raise UsageError(f"{unit}_judgments.json has one field for {'; '.join(shared)}: rename one or leave it out")
    return {name: name[:1].upper() + name[1:] for name in criteria}


def _incomplete(grades: Mapping[str, Mapping[Item, int]], texts: Mapping[Item, str], unit: Unit) -> str:
    """What the JSON lacks in comparison with CAsT-ReGIn's, in words; empty if it is complete."""
    items = _all_items(grades)
    untold = sum(item not in texts for item in items)
    ungraded = sum(any(item not in of_item for of_item in grades.values()) for item in items)
    lacking = [f"{untold} have no text"] if untold else []
    lacking += [f"{ungraded} have no grade under one criterion or more"] if ungraded else []
    if not lacking:
        return ""
    sentence = f"{unit}_judgments.json is incomplete: of {count(len(items), 'item')}, {' and '.join(lacking)}"
    return f"{sentence}. Those fields are left out there."


def judgments_json(
    grades: Mapping[str, Mapping[Item, int]], texts: Mapping[Item, str], unit: Unit, fields: Mapping[str, str]
) -> bytes:
    """The grades in the shape of CAsT-ReGIn's judgments; a criterion under which an item has no grade is left out."""
    word = unit.capitalize()
    turns: dict[str, dict[str, list[dict[str, object]]]] = {}
    for item in _all_items(grades):
        entry: dict[str, object] = {f"{word} ID": item.item_id}
        if item in texts:
            entry[f"{word} Text"] = texts[item]
        entry |= {fields[name]: graded[item] for name, graded in grades.items() if item in graded}
        turns.setdefault(item.turn_id, {f"{word}s": []})[f"{word}s"].append(entry)
    return json.dumps(turns, indent=4, ensure_ascii=False).encode()


def gold_rows(
    grades: Mapping[str, Mapping[Item, int]],
    texts: Mapping[Item, str],
    study: Study,
) -> Iterator[GoldRow]:
    """The grades as gold with their soft labels.

    If a turn has one text under two ids, the second grade is given to a second assessor.
    """
    seen: dict[tuple[str, str, str], int] = {}
    for criterion, of_item in grades.items():
        shares = _distributions(study.labels[criterion], study.aggregated[criterion])
        for item, grade in of_item.items():
            digest = text_digest(texts[item]) if item in texts else None
            key = item.turn_id, digest or item.item_id, criterion
            seen[key] = seen.get(key, 0) + 1
            yield GoldRow(
                turn_id=item.turn_id,
                topic_id=topic_of(item.turn_id),
                criterion=criterion,
                grade=grade,
                assessor=ASSESSOR if seen[key] == 1 else f"{ASSESSOR}#{seen[key]}",
                response_id=item.item_id,
                text_sha256=digest,
                inclusion_probability=1.0,
                distribution=next(shares),
            )


def _distributions(labels: CrowdLabels, aggregated: Aggregated) -> Iterator[dict[str, float]]:
    """The probability of each grade, for each item that has a grade: the model's, else the labels' own shares."""
    grades = [str(grade) for grade in labels.grades]
    shares = (
        aggregated.counts / np.maximum(aggregated.n, 1)[:, None]
        if aggregated.posterior is None
        else aggregated.posterior
    )
    for i in np.flatnonzero(aggregated.code >= 0):
        yield {grade: round(p, 6) for grade, p in zip(grades, shares[i].tolist(), strict=True)}
