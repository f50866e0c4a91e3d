"""The rules of citation tracks as `judge validate` has them, beside those of another checker of the same tracks.

    pip install autojudge-base==1.0.0        which reads NLTK's list of stop words as it starts
    python -m bench.citation_rules

A good line of each year is changed in one place at a time. Both checkers call the result fine, dubious (warnings) or
wrong (errors). Each difference is printed with its reason; one without a reason ends the script with exit code 1.
"""

import json
import sys
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from autojudge_base.report import load_report  # type: ignore[import-not-found]
from autojudge_base.report_verification import ReportVerification  # type: ignore[import-not-found]
from autojudge_base.request import Request  # type: ignore[import-not-found]

from judge.errors import UsageError
from judge.runs.check.validate import validate_run
from judge.runs.formats import read_run
from judge.runs.profiles import limits_of
from judge.runs.records import Turn
from judge.runs.tokens import TokenCounter

MSMARCO = [f"msmarco_v2.1_doc_00_1#{k}_9" for k in range(5)]
SHARDS = [f"shard_00459_{k}" for k in range(5)]
UUIDS = [f"0a1b2c3d-0000-1111-2222-33334444555{k}_0" for k in range(5)]
NEED = "Why do leaves turn red?"
YEARS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "rag25": ("rag2025", MSMARCO, {"type": "automatic", "narrative_id": "7", "narrative": NEED}),
    "rag26": ("rag2026", SHARDS, {"run_desc": "d", "narrative_id": "7", "narrative": NEED}),
    "ragtime25": ("ragtime2025", UUIDS, {"task": "english", "topic_id": "7"}),
    "ragtime26": ("ragtime2026", UUIDS, {"run_desc": "d", "topic_id": "7"}),
    "dragun25": ("dragun2025", MSMARCO, {"type": "automatic", "use_starter_kit": True, "topic_id": "7"}),
}
"""Their name of a year to ours, ids of its collection, and its metadata beside team and run."""
REASONS = {
    "no sentences": "a response without a text cannot be judged",
    "all sentences blank": "a response without a text cannot be judged",
    "an empty team": "the run can be judged",
    "another member of the line": "a misspelt member is said",
    "a run id with a space": "the guidelines allow letters, digits, '-', '_' and '.'",
    "a longer id that begins well": "an id is compared whole",
    "citations as a map": "one response may cite in both ways",
    "a citation twice": "a passage counts once in a sentence",
    "no citations member": "a response that cites nothing cannot be judged by what it cites",
    "another topic": "a response to no topic cannot be judged",
}
"""Why the two differ, by change."""
GONE = object()
LIMIT = 5_000
"""Characters that the topic allows."""


def good_line(year: str) -> dict[str, Any]:
    _, ids, metadata = YEARS[year]
    rag = year.startswith("rag2")
    cited: list[Any] = [0, 1] if rag else ids[:2]
    sentences = [{"text": "Leaves turn red.", "citations": cited}, {"text": "The tree is well.", "citations": []}]
    line = {"metadata": {"team_id": "t", "run_id": "r"} | metadata, "answer" if rag else "responses": sentences}
    return line if year == "dragun25" else line | {"references": ids[:2]}


def changes(year: str) -> dict[str, tuple[str, Any]]:
    """Name to the path and the new value of each change; `S` is the member with the sentences."""
    _, ids, metadata = YEARS[year]
    words = {"rag25": 400, "rag26": 1024, "dragun25": 250}.get(year)
    most = ("leaves turn " * LIMIT)[: LIMIT - len(". The tree is well.")] + "."
    of_year = {f"without {name}": (f"metadata.{name}", GONE) for name in ("team_id", "run_id", *metadata)}
    made = {
        "no sentences": ("S", []),
        "all sentences blank": ("S", [{"text": " ", "citations": []}]),
        "a blank sentence": ("S.1.text", ""),
        "an index of no reference": ("S.0.citations", [7]),
        "a cited id of another form": ("S.0.citations", ["x1"]),
        "a longer id that begins well": ("S.0.citations", [f"{ids[0]}tail"]),
        "a cited id outside the references": ("S.0.citations", [ids[3]]),
        "citations as a map": ("S.0.citations", {ids[0]: 0.5}),
        "a score that is a word": ("S.0.citations", {ids[0]: "high"}),
        "four citations": ("S.0.citations", ids[:4]),
        "a citation twice": ("S.0.citations", [ids[0], ids[0]]),
        "no citations member": ("S.0.citations", GONE),
        "no references": ("references", GONE),
        "empty references": ("references", []),
        "a reference twice": ("references", [*ids[:2], ids[0]]),
        "an uncited reference": ("references", ids[:3]),
        "101 references": ("references", [f"{ids[0][:-1]}{k}" for k in range(101)]),
        "a reference of another form": ("references", [*ids[:2], "x1"]),
        "a long run id": ("metadata.run_id", "r" * 30),
        "a run id with a space": ("metadata.run_id", "a b"),
        "an empty team": ("metadata.team_id", ""),
        "another topic": ("metadata.narrative_id" if year.startswith("rag2") else "metadata.topic_id", "9"),
        "another member of metadata": ("metadata.own", 1),
        "another member of the line": ("own", 1),
        "5,001 characters": ("S.0.text", f"{most}."),
        "the topic's limit": ("S.0.text", most),
        "a text that is a number": ("S.0.text", 5),
    }
    if "narrative" in metadata:
        made["another narrative"] = ("metadata.narrative", "Why?")
    if words is not None:
        made["the most words"] = ("S.0.text", "a " * (words - 4))
        made["a word too many"] = ("S.0.text", "a " * (words - 3))
    return of_year | made


def changed(line: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    line = deepcopy(line)
    *above, last = path.replace("S", "answer" if "answer" in line else "responses", 1).split(".")
    place: Any = line
    for name in above:
        place = place[int(name) if isinstance(place, list) else name]
    if value is GONE:
        place.pop(last, None)
    else:
        place[last] = value
    return line


def theirs(path: Path, year: str) -> str:
    try:
        reports = load_report(path)
        topics = {"7": Request(request_id="7", title=NEED, problem_statement=NEED, limit=LIMIT)}
        found = ReportVerification(reports, year, requests=topics).all()
    except Exception:  # noqa: BLE001 - whatever it raises, the run is refused
        return "wrong"
    return verdict(bool(found.errors), bool(found.warnings))


def ours(path: Path, year: str) -> str:
    limits = limits_of(YEARS[year][0])
    turns = {"7_1": Turn("7_1", "7", NEED, None, (), (), limit=LIMIT)}
    tokens = TokenCounter(limits.token_rule, limits.token_limit)
    try:
        found = validate_run(read_run(path), turns, tokens, limits=limits)
    except UsageError:
        # A line without any sentence may be of another format.
        return "wrong"
    severities = {problem.severity for problem in found.problems}
    return verdict("error" in severities, "warning" in severities)


def verdict(errors: bool, warnings: bool) -> str:
    return "wrong" if errors else "dubious" if warnings else "fine"


def main() -> int:
    differences: list[str] = []
    agreed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        for year in YEARS:
            line = good_line(year)
            for name, (place, value) in {"as it should be": ("metadata.run_id", "r"), **changes(year)}.items():
                path.write_text(json.dumps(changed(line, place, value)), encoding="utf-8")
                their, our = theirs(path, year), ours(path, year)
                agreed += their == our
                if their != our:
                    differences.append(name)
                    print(f"{year}\t{name}\ttheirs {their}, ours {our}\t{REASONS.get(name, 'NO REASON')}")
    print(f"alike: {agreed}, different: {len(differences)}")
    return int(not REASONS.keys() >= set(differences))


if __name__ == "__main__":
    sys.exit(main())
