"""The bundled example and its gold, as committed: read here with little but the standard library and the records."""

import gzip
import hashlib
import json
import random
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.gold.rows import GoldRow
from judge.io.ids import natural_key

PROJECT = Path(__file__).parent.parent.parent
EXAMPLES = PROJECT / "examples"
RUNS = EXAMPLES / "runs"
FAULTY = "thistle-faulty"
NO_SUCH_PASSAGE = "clueweb22-en9999-02-00093"
"""The id that a faulty response cites: the passage number is missing."""
TOP = {"groundedness": 3, "naturalness": 4}


class Given(NamedTuple):
    """One response of one run, with the ids of the passages it rests on."""

    run: str
    turn: str
    text: str
    used: frozenset[str]


class Unit(NamedTuple):
    """What is judged once: a text with its passages."""

    turn: str
    digest: str
    used: frozenset[str]


def read(path: Path) -> str:
    stored = path.read_bytes()
    return (gzip.decompress(stored) if path.suffix == ".gz" else stored).decode("utf-8")


def load(path: Path) -> Any:
    return json.loads(read(path))


def digest(text: str) -> str:
    return hashlib.sha256(unicodedata.normalize("NFC", text).strip().encode()).hexdigest()


def given_in(path: Path) -> list[Given]:
    """Every response of a run, by the rule for used passages that goes with its format."""
    found = []
    if ".jsonl" in path.suffixes:
        for line in map(json.loads, read(path).splitlines()):
            for response in line["responses"]:
                used = frozenset(response["citations"])
                found.append(Given(line["metadata"]["run_id"], line["turn_id"], response["text"], used))
        return found
    run = load(path)
    for turn in run["turns"]:
        for response in turn["responses"]:
            passages = response.get("passage_provenance") or response["provenance"]
            flagged = [p["id"] for p in passages if p.get("used")] or [p["id"] for p in passages][:5]
            found.append(Given(run["run_name"], turn["turn_id"], response["text"], frozenset(flagged)))
    return found


@pytest.fixture(scope="module")
def topics() -> list[dict[str, Any]]:
    return load(EXAMPLES / "topics.json")


@pytest.fixture(scope="module")
def turns(topics: list[dict[str, Any]]) -> list[str]:
    return [f"{topic['number']}_{turn['turn_id']}" for topic in topics for turn in topic["turns"]]


@pytest.fixture(scope="module")
def passages() -> dict[str, str]:
    lines = [json.loads(line) for line in read(EXAMPLES / "passages.jsonl").splitlines()]
    return {line["id"]: line["contents"] for line in lines}


@pytest.fixture(scope="module")
def given() -> list[Given]:
    return [one for path in sorted(RUNS.iterdir()) for one in given_in(path)]


@pytest.fixture(scope="module")
def judged(given: list[Given], turns: list[str]) -> list[Given]:
    """What can be judged: text of a turn that exists."""
    return [one for one in given if one.text.strip() and one.turn in turns]


def gold(name: str) -> list[GoldRow]:
    return [msgspec.json.decode(line, type=GoldRow) for line in (PROJECT / "gold" / name).read_bytes().splitlines()]


def units_of(rows: list[GoldRow], judged: list[Given]) -> list[Unit]:
    """The unit behind each row, found by turn, text and run, as a row says it."""
    by_key: dict[tuple[str, str, str], set[Unit]] = {}
    for one in judged:
        unit = Unit(one.turn, digest(one.text), one.used)
        by_key.setdefault((one.turn, unit.digest, one.run), set()).add(unit)
    found = [by_key[row.turn_id, row.text_sha256 or "", row.run_id or ""] for row in rows]
    assert all(len(units) == 1 for units in found)
    return [next(iter(units)) for units in found]


def test_every_passage_is_known_but_the_one_that_is_wrong_on_purpose(given, topics, passages) -> None:
    cited = [p for topic in topics for turn in topic["turns"] for p in turn["response_provenance"]]
    assert set(cited) <= set(passages)
    unknown = [(one.run, p) for one in given for p in one.used if p not in passages]
    assert unknown == [(FAULTY, NO_SUCH_PASSAGE)]


def test_every_run_but_the_faulty_one_answers_every_turn_once(given: list[Given], turns: list[str]) -> None:
    for run in {one.run for one in given} - {FAULTY}:
        assert [one.turn for one in given if one.run == run] == turns


def test_the_faulty_run_has_the_problems_that_the_readme_lists(turns: list[str]) -> None:
    run = load(RUNS / "thistle-faulty.json")
    ids = [turn["turn_id"] for turn in run["turns"]]
    assert [turn for turn in ids if turn not in turns] == ["1-1_9"]
    assert [turn for turn, n in Counter(ids).items() if n > 1] == ["2-1_3"]
    assert [turn for turn in turns if turn not in ids] == ["3-1_4", "3-1_5"]
    responses = {turn["turn_id"]: turn["responses"] for turn in run["turns"]}
    scores = {turn: [p["score"] for p in found[0]["passage_provenance"]] for turn, found in responses.items()}
    assert responses["1-1_1"][0]["ptkb_provenance"] == [1, 99]
    assert [response["rank"] for response in responses["1-1_2"]] == [2, 1]
    assert [responses[turn][0]["text"] for turn in ("1-1_4", "2-1_4")] == ["", " \n "]
    assert [turn for turn in scores if len(set(scores[turn])) == 1] == ["1-1_5"]
    assert [turn for turn in scores if any(a < b for a, b in pairwise(scores[turn]))] == ["2-1_2"]
    assert [turn for turn in ids if responses[turn][0]["rank"] == 0] == ["1-1_6"]
    flags = {turn: ["used" in p for p in found[0]["passage_provenance"]] for turn, found in responses.items()}
    assert [turn for turn in flags if not any(flags[turn])] == ["2-1_1"]
    assert len(flags["2-1_1"]) == 6
    listed = {turn: [p["id"] for p in found[0]["passage_provenance"]] for turn, found in responses.items()}
    assert [turn for turn in listed if len(set(listed[turn])) < len(listed[turn])] == ["3-1_1"]
    assert [turn for turn in listed if NO_SUCH_PASSAGE in listed[turn]] == ["2-1_5"]


def test_some_responses_are_shared_by_runs(judged: list[Given]) -> None:
    here = {one.run: one for one in judged if one.turn == "1-1_3"}
    harbor, orchard, faulty = here["harbor-grounded"], here["orchard-manual"], here[FAULTY]
    # The same but for outer white space: one unit. The same with other passages: another.
    assert harbor.text != orchard.text
    assert harbor.text == orchard.text.strip() == faulty.text
    assert harbor.used == orchard.used != faulty.used
    assert len(judged) == 6 * 16 + 14
    assert len({Unit(one.turn, digest(one.text), one.used) for one in judged}) == 77


def test_gold_covers_each_unit_once_under_each_criterion(judged: list[Given], turns: list[str]) -> None:
    rows = gold("example.gold.jsonl")
    found = Counter(zip(units_of(rows, judged), (row.criterion for row in rows), strict=True))
    units = {Unit(one.turn, digest(one.text), one.used) for one in judged}
    # Nobody can say how grounded a response is whose passage does not exist.
    expected = [(u, c) for u in units for c in TOP if c != "groundedness" or NO_SUCH_PASSAGE not in u.used]
    assert found == Counter(expected)
    assert len(rows) == 2 * 77 - 1
    assert [row.turn_id for row in rows] == sorted((row.turn_id for row in rows), key=natural_key)
    for row in rows:
        assert row.topic_id == row.turn_id.rpartition("_")[0]
        assert 0 <= row.grade <= TOP[row.criterion]
        assert (row.assessor, row.made, row.inclusion_probability) == ("construction", "construction", 1.0)
        assert row.response_id is row.stratum is row.split is None


def test_the_readme_gives_the_true_counts() -> None:
    text = read(PROJECT / "gold" / "README.md")
    grades = Counter((row.criterion, row.grade) for row in gold("example.gold.jsonl"))
    for criterion in TOP:
        levels = find_criterion(f"{criterion}/graded").scale.levels
        counts = " | ".join(str(grades[criterion, level.grade]) for level in levels)
        assert f"| {criterion} | {counts} |" in text


@pytest.mark.parametrize("assessor", ["synthetic-a", "synthetic-b"])
def test_the_synthetic_assessors_follow_from_the_rule_in_the_readme(assessor: str) -> None:
    draw = random.Random(assessor)
    expected = []
    for row in gold("example.gold.jsonl"):
        size, direction = draw.random(), draw.random()
        step = (2 if size < 0.03 else 1 if size < 0.30 else 0) * (1 if direction < 0.5 else -1)
        grade = row.grade + step
        if not 0 <= grade <= TOP[row.criterion]:
            grade = row.grade - step
        expected.append(msgspec.structs.replace(row, grade=grade, assessor=assessor, made="synthetic"))
    assert [row for row in gold("example.synthetic.jsonl") if row.assessor == assessor] == expected
