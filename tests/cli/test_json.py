"""`--json`: one JSON value on stdout and nothing else, wherever a command lists or counts."""

import json
import shutil
from pathlib import Path

import pytest

from judge.cli import main
from judge.cli.printing import print_json
from judge.extra.evaluate.scores import TurnOrder, measured_run
from tests.cli.test_help import PLACES
from tests.conftest import PROJECT

INPUTS = "--runs runs --topics topics.json --passages passages.jsonl"
OVERLAP = "--model baseline/overlap --criteria groundedness"
SERVER = "--model server/a --base-url http://127.0.0.1:9/v1"
COMMANDS = {
    "pool": f"{INPUTS} -o pool",
    "run --dry-run": f"{INPUTS} {OVERLAP} -o new",
    "run": f"{INPUTS} {OVERLAP} -o new",
    "requests": f"{INPUTS} --criteria groundedness {SERVER} -o asked --requests round",
    "requests --dry-run": f"{INPUTS} --criteria groundedness {SERVER} -o asked --requests round",
    "doctor": "",
    "validate": "runs --topics topics.json",
    "tokens": "runs",
    "convert": "runs/harbor-grounded.json --to trec-run -o trec",
    "passages extract": "--pool out --passages passages.jsonl -o some.jsonl",
    "models list": "",
    "prompts list": "",
    "prompts check": "good.md",
    "journal verify": "out",
    "journal stats": "out",
    "journal reparse": "out",
    "journal salvage": "out -o saved.sqlite",
    "journal merge": "out again -o merged.sqlite",
    "gold check": "gold.jsonl",
    "gold plan": "--pool out --n 40 --per-run 5 --seed 1 -o drawn.jsonl",
    "leaderboard": "out",
    "leaderboard --token-sensitivity": "out",
    "leaderboard --gold gold.jsonl": "out",
    "plan": "out",
    "crowd": "labels.csv --scale 0-3 -o crowd",
    "nuggets convert": "nuggets.jsonl --to nuggetizer -o bank.jsonl",
    "calibrate": "--gold gold.jsonl --judgments out --replicates 200 --permutations 200",
    "calibrate --dry-run": f"--gold gold.jsonl --pool out --prompt groundedness {SERVER} -o trusted",
    "drift": "out out",
    "evaluate spans": "--gold gold.tsv --run spans.tsv",
    "evaluate spans --qrels passages.qrels": "--run passages.res",
    "evaluate qrels": "out/judgments.jsonl out/judgments.jsonl --criterion groundedness --runs out",
    "evaluate qrels --measure P@1": "passages.qrels passages.qrels --runs ranked",
}
"""Command, with the options that change what it prints, to the rest of its line."""
ELSEWHERE = {
    "batch submit": "extra/scale/test_batches.py",
    "batch status": "extra/scale/test_batches.py",
    "batch collect": "extra/scale/test_batches.py",
    "completions import": "extra/scale/test_batches.py",
    "crowd cast-regin": "extra/reproduce/test_regin.py",
    "reproduce": "extra/reproduce/test_reproduction.py",
}
"""Command to the test that reads its JSON, where it needs a world of its own."""
FILES = {
    "labels.csv": "worker,turn_id,response_id,criterion,label\na,1_1,r,relevance,3\nb,1_1,r,relevance,2\n",
    "gold.tsv": "1\tthe Fifth Amendment\n2\tswitch knives\n",
    "spans.tsv": "1\tfifth amendment\n2\tknives\n",
    "passages.qrels": "1_1 0 a 1\n1_2 0 b 0\n2_1 0 c 1\n3_1 0 a 0\n",
    "passages.res": "1_1 Q0 a 1 2.5 r\n1_2 Q0 b 1 1.5 r\n2_1 Q0 a 1 1 r\n",
    "ranked/a.res": "1_1 Q0 a 1 2 a\n1_2 Q0 b 1 2 a\n2_1 Q0 a 1 1 a\n",
    "ranked/b.res": "1_1 Q0 b 1 2 b\n1_2 Q0 b 1 2 b\n2_1 Q0 c 1 1 b\n",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled example, judged by word overlap, and what else the commands read."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(PROJECT / "examples", folder, dirs_exist_ok=True)
    (folder / "ranked").mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    gold = (PROJECT / "gold/example.gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "gold.jsonl").write_text("".join(row for row in gold if '"groundedness"' in row), encoding="utf-8")
    shutil.copy(PROJECT / "prompts/groundedness/graded.md", folder / "good.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", *INPUTS.split(), *OVERLAP.split(), "-o", "out"]) == 0
    shutil.copytree(folder / "out", folder / "again")
    return folder


def test_each_prompt_that_is_checked_has_its_problems(world: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(world)
    Path("bad.md").write_text("no prompt", encoding="utf-8")
    assert main(["prompts", "check", "good.md", "bad.md", "none.md", "--json"]) == 1
    checked = json.loads(capsys.readouterr().out)
    assert [(row["file"], row["prompt"], len(row["problems"])) for row in checked] == [
        ("good.md", "groundedness/good", 0), ("bad.md", None, 1), ("none.md", None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_json(world: Path, monkeypatch, capsys, command: str) -> None:
    monkeypatch.chdir(world)
    name, _, options = command.partition(" --")
    line = [*name.split(), *COMMANDS[command].split(), *(f"--{options}".split() if options else ()), "--json"]
    assert main(line) in (0, 1)
    assert json.loads(capsys.readouterr().out)


def test_no_command_with_json_is_left_out() -> None:
    offered = {place for place, parser in PLACES.items() if "--json" in parser._option_string_actions}
    printed = {command.partition(" --")[0] for command in COMMANDS}
    assert offered == printed | ELSEWHERE.keys()
    for command, file in ELSEWHERE.items():
        text = (PROJECT / "tests" / file).read_text(encoding="utf-8")
        assert '"--json"' in text and f'"{command.split()[-1]}"' in text, command


def test_any_mapping_of_a_record_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(measured_run("a", "m", {"1_1": 0.5}, TurnOrder(["2_1", "1_1"]), "qrels"))
    assert json.loads(capsys.readouterr().out)["turns"] == {"1_1": 0.5, "2_1": 0.0}
