"""The disagreements that a calibration writes: never an item of the test part, whatever the options, and all texts."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.gold.rows import read_gold
from judge.gold.seal import write_split
from judge.io.ids import topic_of
from tests import calibration_world as world
from tests.conftest import json_lines
from tests.jobs.test_calibration import GRADED, YES_NO, tried

pytestmark = pytest.mark.slow

WORLD = world.items()
FILES = ("disagreements.jsonl", "disagreements.md")


@pytest.fixture
def split(tmp_path: Path) -> Path:
    write_split([*world.gold_rows(WORLD), *world.gold_rows(WORLD, "ben")], 0.5, 1, tmp_path / "split")
    return tmp_path / "split"


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    good, bad = world.labeled(WORLD, 0.3, 2), world.labeled(WORLD, 0.9, 3)
    # One judge lacks some grades of every topic, so that missing ones are listed too.
    few = {name: grade for name, grade in bad.items() if int(name[1:]) % 3}
    return world.write_output(tmp_path / "run", WORLD, {"server/good": good, "server/few": few, "server/bad": bad})


@pytest.mark.long
def test_no_item_of_the_test_part_is_in_either_file(tmp_path: Path, split: Path, judgments: Path) -> None:
    copy = tmp_path / "elsewhere.jsonl"
    shutil.copy(split / "test.jsonl", copy)
    held_out = {row.topic_id for row in read_gold(split / "test.jsonl")}
    names = {row.response_id for row in read_gold(split / "test.jsonl")}
    stored = {"judgments": [judgments]}
    world.write_pool(tmp_path / "pool", world.pool(WORLD))
    asked = {"models": ["baseline/overlap"], "prompts": [GRADED], "pool": tmp_path / "pool"}
    calls: list[dict[str, Any]] = [
        {"gold": [split], "test": split, **stored},
        {"gold": [split], "test": split, **stored, "gold_scale": GRADED, "margin": 0.1, "cluster": "theme"},
        {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl", **asked, "samples": 2},
        {"gold": [split / "dev.jsonl"], "test": split, **asked, "prompts": [GRADED, YES_NO], "gold_scale": GRADED},
        {"gold": [split], **stored},
        # Copied away from its seal, and so not known to be sealed.
        {"gold": [split / "dev.jsonl", copy], **stored},
    ]
    for number, options in enumerate(calls):
        out = tmp_path / f"out{number}"
        outcome = tried(**options, out=out)
        assert outcome.disagreements, options
        assert {item.topic_id for item in outcome.disagreements}.isdisjoint(held_out)
        text = "".join((out / name).read_text(encoding="utf-8") for name in FILES)
        assert not [name for name in names if name and name in text], options
        assert {topic_of(line["turn_id"]) for line in json_lines(out / FILES[0])}.isdisjoint(held_out)


def test_a_test_part_alone_gives_no_item(tmp_path: Path, split: Path, judgments: Path) -> None:
    copy = tmp_path / "elsewhere.jsonl"
    shutil.copy(split / "test.jsonl", copy)
    outcome = tried(gold=[copy], judgments=[judgments], out=tmp_path / "out")
    assert outcome.disagreements == () and (tmp_path / "out" / "disagreements.jsonl").read_bytes() == b""
    assert "On 0 of 0 items" in (tmp_path / "out" / "disagreements.md").read_text(encoding="utf-8")


def test_every_disagreement_is_listed_and_a_rerun_writes_the_same(tmp_path: Path, judgments: Path) -> None:
    gold = world.write_gold(tmp_path / "gold.jsonl", world.gold_rows(WORLD))
    said = {}
    for line in judgments.read_bytes().splitlines():
        one = json.loads(line)
        said[one["judge"], one["response_id"]] = one["grade"]
    judges = ("server/bad", "server/few", "server/good")
    expected = {item.response_id for item in WORLD
                if any(said.get((judge, item.response_id)) != item.gold for judge in judges)}  # fmt: skip
    tried(gold=[gold], judgments=[judgments], out=tmp_path / "out")
    of = json_lines(tmp_path / "out" / FILES[0])
    assert {line["response_id"] for line in of} == expected and len(of) == len(expected)
    assert [-line["distance"] for line in of] == sorted(-line["distance"] for line in of)
    before = [(tmp_path / "out" / name).read_bytes() for name in FILES]
    shuffled = judgments.read_bytes().splitlines(keepends=True)[::-1]
    judgments.write_bytes(b"".join(shuffled))
    tried(gold=[gold], judgments=[judgments], out=tmp_path / "again")
    assert [(tmp_path / "again" / name).read_bytes() for name in FILES] == before


def test_rationales_passages_and_the_conversation_come_from_the_files(tmp_path: Path) -> None:
    gold = world.write_gold(tmp_path / "gold.jsonl", world.gold_rows(WORLD))
    world.write_pool(tmp_path / "run", world.pool(WORLD))
    said = [
        msgspec.structs.replace(
            world.judgment(one.turn_id, one.response_id, (one.gold + 1) % 4), rationale=f"As {number}."
        )
        for number, one in enumerate(WORLD)
    ]
    (tmp_path / "run" / "judgments.jsonl").write_bytes(world.jsonl(said))
    turns = [{"turn_id": n, "utterance": f"Question {n}?", "resolved_utterance": "", "response": f"Answer {n}."}
             for n in range(1, 6)]  # fmt: skip
    topics = [{"number": str(n), "title": "t", "ptkb": {"1": "I ski."}, "turns": turns} for n in range(1, 25)]
    (tmp_path / "topics.json").write_text(json.dumps(topics), encoding="utf-8")
    tried(gold=[gold], judgments=[tmp_path / "run"], topics=tmp_path / "topics.json", out=tmp_path / "out")
    of = {line["response_id"]: line for line in json_lines(tmp_path / "out" / FILES[0])}
    assert len(of) == len(WORLD)
    for number, one in enumerate(WORLD):
        line = of[one.response_id]
        assert line["judges"][0]["rationale"] == f"As {number}."
        assert line["passages"][0]["id"] == f"passage{number + 1}" and line["text"].startswith(f"term{number + 1}a")
        assert line["utterance"] == f"Question {one.turn_id.partition('_')[2]}?"
        assert len(line["context"]) == int(one.turn_id.partition("_")[2]) - 1
