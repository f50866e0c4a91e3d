"""One of a thing is said in the singular."""

import json
import re
from pathlib import Path

import pytest

from judge.cli import main
from tests.cli.test_validate import PASSAGE, TOPICS, run
from tests.conftest import PROJECT, put

PLURAL = re.compile(
    r"(?<![\d.,/:-])1 (?:[a-z]+ )?(runs|files|responses|turns|topics|problems|errors|warnings|rows|grades|passages|"
    r"judgments|changes|labels|items|workers|options|lines)\b"
)
USED = [PASSAGE | {"text": "Tea is hot."}, PASSAGE | {"id": "clueweb22-en0000-00-00001:0", "score": 0.8}]
RUN = run("9-1_1", text="Tea is hot in the morning.", passage_provenance=USED)
GOLD = {"turn_id": "9-1_1", "topic_id": "9-1", "criterion": "groundedness", "grade": 1, "assessor": "a"}


def test_counts_of_one_are_singular(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text(json.dumps(RUN), encoding="utf-8")
    Path("bad.json").write_text("{", encoding="utf-8")
    Path("topics.json").write_text(json.dumps(TOPICS), encoding="utf-8")
    Path("gold.jsonl").write_text(json.dumps(GOLD | {"response_id": "R00001"}) + "\n", encoding="utf-8")
    Path("bad.jsonl").write_text("{}\n", encoding="utf-8")
    Path("passages.jsonl").write_text('{"id": "clueweb22-en0000-00-00000:0", "contents": "Tea."}\n', encoding="utf-8")
    put(Path("labels.csv"), "worker,turn_id,response_id,criterion,label\nw,9-1_1,R1,relevance,2\n")
    judge = ["--model", "baseline/overlap", "--criteria", "groundedness"]
    told = 0
    for command in (
        ["validate", "r.json", "--topics", "topics.json"],
        ["validate", "bad.json"],
        ["tokens", "r.json"],
        ["convert", "r.json", "--to", "trec-run", "-o", "trec"],
        ["pool", "--runs", "r.json", "--topics", "topics.json", "-o", "pool"],
        ["run", "--runs", "r.json", "--missing-passages", "judge-without", *judge, "-o", "out"],
        ["run", "--runs", "r.json", *judge, "-o", "missing"],
        ["run", "--runs", "r.json", "--missing-passages", "fail", *judge, "-o", "failed"],
        ["run", "--runs", "r.json", *judge, "--dry-run", "-o", "dry"],
        ["leaderboard", "out"],
        ["gold", "check", "gold.jsonl"],
        ["gold", "check", "bad.jsonl"],
        ["gold", "check", "gold.jsonl", "--pool", "out"],
        ["gold", "split", "bad.jsonl", "--test", "0.5", "--seed", "1", "-o", "split"],
        ["gold", "plan", "--pool", "out", "--n", "1", "--per-run", "1", "--seed", "1", "-o", "plan.jsonl"],
        ["passages", "index", "--collection", "passages.jsonl", "-o", "c.idx"],
        ["passages", "extract", "--runs", "r.json", "--passages", "passages.jsonl", "-o", "p.jsonl"],
        ["crowd", "labels.csv", "--scale", "0-3", "--out", "crowd"],
        ["crowd", "bad.json", "--scale", "0-3", "--out", "none"],
        ["crowd", "labels.csv", "--scale", "0-3", "--known", "bad.json", "--out", "none"],
        ["prompts", "check", "bad.json"],
    ):
        assert main(command) in (0, 1, 2), command
        captured = capsys.readouterr()
        said = captured.out + captured.err
        told += len(re.findall(r"\b1 [a-z]", said))
        assert not PLURAL.search(said), (command, said)
    assert told > 20


def test_no_message_leaves_the_plural_to_its_reader() -> None:
    for path in sorted((PROJECT / "judge").rglob("*.py")):
        assert not re.search(r"[a-z]\(s\)[^\n]*[\"']", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("others", [1, 2])
def test_turns_that_one_run_alone_answers_are_told_without_topics(tmp_path, capsys, others: int) -> None:
    (tmp_path / "runs").mkdir()
    invented = [{**RUN["turns"][0], "turn_id": f"50-1_{n}"} for n in (1, 2)]
    padded = {**RUN, "run_name": "padded", "turns": [*RUN["turns"], *invented]}
    for one in [padded, *({**RUN, "run_name": f"r{n}"} for n in range(others))]:
        (tmp_path / "runs" / f"{one['run_name']}.json").write_text(json.dumps(one))
    main(["pool", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    assert [line for line in capsys.readouterr().err.splitlines() if "alone in" in line] == [
        "warning: 'padded' is alone in answering 2 turns, which count against every other run; --topics FILE tells "
        "whether they exist"
    ]


@pytest.mark.parametrize("others", [0, 1])
def test_turns_that_one_run_alone_answers_count_against_no_interactive_run(tmp_path, capsys, others: int) -> None:
    invented = {**RUN, "turns": [*RUN["turns"], {**RUN["turns"][0], "turn_id": "50-1_1"}]}
    talk = {"rank": 1, "user_utterance": "Hi.", "text": "Tea is hot.", "citations": {}, "ptkb_provenance": []}
    interactive = [{"metadata": {"run_id": "i", "team_id": "t", "topic_id": "9-1_0"}, "responses": [talk]}]
    (tmp_path / "runs").mkdir()
    for name, one in {"i": interactive, "r": invented, **({"s": {**RUN, "run_name": "s"}} if others else {})}.items():
        (tmp_path / "runs" / f"{name}.json").write_text(json.dumps(one))
    assert main(["pool", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "alone in" in line]
    assert (
        told
        == [
            "warning: 'r' is alone in answering 1 turn, which counts against every other run that is not interactive; "
            "--topics FILE tells whether it exists"
        ]
        * others
    )
