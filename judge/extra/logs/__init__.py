"""Logs of other tools as labels of judges: inspect's (`.eval`, `.json`) and promptfoo's (`.json`); for calibrations.

An item is a sample or a test with what answered it. Its metadata or variables may name `turn_id` and `response_id`;
else these are the id of the sample and the model, or the number of the test and `PROVIDER#PROMPT`.
https://inspect.aisi.org.uk/eval-logs.html, https://promptfoo.dev/docs/configuration/outputs
"""

import io
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judge.ask.results import OFF_SCALE, Label, Labels
from judge.errors import InputError, refuse
from judge.io.files import largest_file, read_stored, sha256, too_large
from judge.io.ids import natural_key
from judge.io.text import count, printable, shown
from judge.passages.streams import zstd
from judge.records import Problem, file_problem

# inspect packs with Zstandard.
if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

_BLOCK = 1 << 20
"""Bytes of an entry that are unpacked at once."""
_ENTRY = re.compile(r"header\.json|samples/[^/]+(/sample)?\.json")
_GRADES = {"C": 1, "I": 0, "True": 1, "False": 0}
"""Grade of inspect's correct and incorrect, and of a truth value."""
_Verdict = tuple[str, str, Any, Label]
"""Place, judge, value, and the label that it is without a grade, whose reason counts where the value is None."""


def read_log(path: Path, grades: Collection[int] | None = None, *, lenient: bool = False) -> tuple[Labels, ...] | None:
    """The labels of a log, by judge (`inspect/SCORER`, `promptfoo/METRIC`); None for any other file.

    inspect's C is 1 and I is 0; what passes in promptfoo is 1, all else 0. Grades are some of `grades`, if they are
    given. An InputError lists every value that is no grade; if `lenient`, it is a missing one.
    """
    stored = read_stored(path)
    name = str(path)
    labels: dict[str, list[Label]] = defaultdict(list)
    problems: list[Problem] = []
    try:
        if (verdicts := _verdicts(stored, name)) is None:
            return None
        for place, judge, value, label in verdicts:
            message = ""
            grade = None if value is None else _grade(value)
            if grade is not None:
                label = replace(label, grade=grade, reason=None)
            elif lenient and value is not None:
                value = None
                label = replace(label, reason=OFF_SCALE)
            if not re.fullmatch(r"\S+", label.turn_id) or not re.fullmatch(r"\S+", label.response_id):
                message = f"ids {shown(label.turn_id)}, {shown(label.response_id)}: expected no white space"
            elif value is not None and (grade is None or (grades is not None and grade not in grades)):
                among = "an integer, C or I" if grades is None else f"one of {', '.join(map(str, sorted(grades)))}"
                message = f"{printable(judge)}: found {shown(value)}, expected {among}"
            if message:
                problems.append(file_problem("bad_label", name, message, place))
            labels[judge].append(label)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{name}: no log of inspect or promptfoo: {type(error).__name__}: {error}") from error
    refuse(problems, f"{name}: not usable as labels: {count(len(problems), 'problem')}")
    if not labels:
        raise InputError(f"{name}: nothing is scored in this log")
    by_judge = sorted(labels.items(), key=lambda row: natural_key(row[0]))
    return tuple(
        Labels(
            judge=printable(judge),
            prompt=None,
            prompt_digest=None,
            source=name,
            digest=sha256(stored),
            labels=tuple(labels_of_judge),
        )
        for judge, labels_of_judge in by_judge
    )


def _grade(value: object) -> int | None:
    """The grade that a scorer gave; None for what is none, such as P for partly correct, 0.5 or a list."""
    text = str(value)
    if text in _GRADES:
        return _GRADES[text]
    return int(float(text)) if re.fullmatch(r"-?[0-9]{1,9}(\.0*)?", text) else None


def _verdicts(stored: bytes, name: str) -> Iterator[_Verdict] | None:
    """What a log says; None where the file is none."""
    if stored.startswith(b"PK"):
        return _samples(_unzipped(stored, name))
    try:
        document = json.loads(stored)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("samples"), list):
        return _samples(
            {"header": document} | {f"samples[{k}]": sample for k, sample in enumerate(document["samples"])}
        )
    results = document.get("results")
    results = results.get("results") if isinstance(results, dict) else results
    return _tests(results) if isinstance(results, list) else None


def _unzipped(stored: bytes, name: str) -> dict[str, Any]:
    """The header and the samples of a zipped log, by the names of their entries."""
    entries: dict[str, Any] = {}
    try:
        archive = zipfile.ZipFile(io.BytesIO(stored))
        size = 0
        for info in archive.infolist():
            if not _ENTRY.fullmatch(info.filename):
                continue
            entry = info.filename.removesuffix(".json")
            if entry in entries:
                raise InputError(f"{name}: has two entries {info.filename}")
            content = io.BytesIO()
            with archive.open(info) as packed:
                # Counted, because the size that is declared may be another.
                while chunk := packed.read(_BLOCK):
                    size += content.write(chunk)
                    if size > largest_file():
                        raise too_large(name, "unpacks to")
            entries[entry] = json.loads(content.getvalue())
    except (zipfile.BadZipFile, zstd.ZstdError, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise InputError(f"{name}: damaged log: {error}") from error
    if "header" not in entries:
        raise InputError(f"{name}: no finished log of inspect: expected header.json in it")
    return entries


def _samples(log: dict[str, Any]) -> Iterator[_Verdict]:
    """What the scorers of inspect say, each of their values where they give several."""
    model = log.pop("header")["eval"]["model"]
    for place, sample in log.items():
        turn_id, response_id = _ids(sample.get("metadata"), sample["id"], model)
        for name, score in (sample.get("scores") or {}).items():
            values = score["value"] if isinstance(score["value"], dict) else {"": score["value"]}
            for key, value in values.items():
                judge = f"inspect/{name}/{key}" if key else f"inspect/{name}"
                # A scorer that cannot score says N, for no answer, or not-a-number, which alone is not itself.
                scored = None if value == "N" or value != value else value
                yield place, judge, scored, Label(turn_id, response_id, None, "unable", sample=sample["epoch"] - 1)


def _tests(rows: list[Any]) -> Iterator[_Verdict]:
    """What the assertions of promptfoo say; where a call failed, all of them are missing."""
    judges: dict[str, None] = {}
    read: list[tuple[tuple[str, str], dict[str, Any]]] = []
    for row in rows:
        provider = row["provider"]["id"] if isinstance(row["provider"], dict) else row["provider"]
        values: dict[str, Any] = {}
        for result in (row.get("gradingResult") or {}).get("componentResults") or ():
            name = f"promptfoo/{result['assertion'].get('metric') or result['assertion']['type']}"
            same = sum(earlier.partition("#")[0] == name for earlier in values)
            values[f"{name}#{same + 1}" if same else name] = _passed(result["pass"])
        judges |= dict.fromkeys(values)
        read.append((_ids(row.get("vars"), row["testIdx"], f"{provider}#{row['promptIdx']}"), values))
    repeated = Counter[tuple[str, str]]()
    for place, (ids, values) in enumerate(read):
        turn_id, response_id = ids
        for judge in values or judges:
            label = Label(turn_id, response_id, None, "provider_error", sample=repeated[ids])
            yield f"results[{place}]", judge, values.get(judge), label
        repeated[ids] += 1


def _passed(value: Any) -> Any:
    """Whether an assertion passed; a word of it is read, and any other value stays, which is no grade."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _ids(named: Any, turn_id: object, response_id: object) -> tuple[str, str]:
    """The ids that metadata or variables name, and else these."""
    named = named if isinstance(named, Mapping) else {}
    return str(named.get("turn_id", turn_id)), str(named.get("response_id", response_id))
