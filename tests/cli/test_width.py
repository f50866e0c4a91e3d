"""What every command prints keeps to the width of the terminal, for long names of runs too, or is one JSON value."""

import gzip
import io
import json
import random
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.ask.criteria import find_criterion
from judge.cli import main, printing
from judge.cli.tables import print_leaderboard
from judge.extra.nuggets import MATCH_LABELS
from judge.io.text import columns_of
from judge.records import Estimate
from judge.results.leaderboard import COUNTS
from judge.results.rows import Score
from tests.cli.test_help import PLACES
from tests.conftest import PROJECT, Terminal, complaint, put

NAME = "georgetown_infosense_trec_ikat_2025_run_{}"
"""With a number of one digit, 41 characters."""
CRITERIA = ("groundedness", "naturalness")
TABLES = {
    "run": "--runs runs --topics topics.json --passages passages.jsonl --model baseline/overlap "
    "--criteria groundedness --out out --replace",
    "run --recheck 20%": "--runs runs --topics topics.json --passages passages.jsonl --model baseline/overlap "
    "--criteria groundedness --out again",
    "run --dry-run": "--runs runs --topics topics.json --model server/a --base-url http://127.0.0.1:9/v1 "
    "--criteria groundedness naturalness relevance --out dry",
    "requests --dry-run": "--runs runs --topics topics.json --model server/a --base-url http://127.0.0.1:9/v1 "
    "--out dry --requests round",
    "validate": "runs --topics topics.json",
    "validate --all": "runs --topics topics.json",
    "demo": "demo",
    "doctor": "--model baseline/overlap",
    "tokens": "runs",
    "prompts list": "",
    "leaderboard": "out",
    "leaderboard --cluster theme": "out",
    "leaderboard --gold gold.jsonl": "out",
    "plan": "out",
    "evaluate responses": "out --topics topics.json",
    "evaluate responses --by topic": "out",
    "evaluate responses --by depth": "out",
    "evaluate responses --by pair": "out",
    "evaluate responses --by ptkb": "out --topics topics.json",
    "evaluate responses --by group": "out",
    "evaluate passages": "--runs runs --qrels passages.qrels",
    "evaluate passages --by topic": "--runs runs --qrels passages.qrels --measure Bpref RR(rel=3)",
    "evaluate passages --by depth": "--runs runs --qrels passages.qrels",
    "evaluate statements": "--runs runs/mill-fluent-invented.json runs/harbor-grounded.json "
    "--qrels georgetown_infosense_trec_ptkb_assessments_1 ptkb_2",
    "evaluate qrels": f"out {NAME.format(0)}.qrel --scale 0-3",
    "nuggets create --dry-run": "--pool out --topics topics.json --model server/a "
    "--base-url http://127.0.0.1:9/v1 --out b",
    "nuggets match --dry-run": "--pool out --bank nuggets.jsonl --model server/a "
    "--base-url http://127.0.0.1:9/v1 --out m",
    "nuggets agree": "--pool out --bank nuggets.jsonl --gold people.jsonl --matches judged.jsonl",
    "nuggets score": "--pool out --bank nuggets.jsonl --matches people.jsonl",
    "calibrate": "--gold gold.jsonl --judgments out/judgments.jsonl",
    "calibrate --dry-run": "--gold gold.jsonl --pool out --topics topics.json --model server/a --model server/b "
    "--base-url http://127.0.0.1:9/v1 --prompt groundedness --prompt naturalness --out cal",
    "drift": "out out",
    "probe": "out --criteria groundedness --model baseline/overlap --items 12 --out probe",
    "crowd": "labels.csv --scale 0-3 --out crowd",
    "gold check": "gold.jsonl --pool out",
    "journal verify": "out",
    "journal stats": "out",
    "journal reparse": "out",
    "models list": "",
    "bench datasets": "--data .",
}
"""Command, with the options that change its tables, to the rest of its line."""
JSON = {
    "pool": "--runs runs --topics topics.json -o pool",
    "requests": "--runs runs --model server/a --base-url http://127.0.0.1:9/v1 -o asked --requests round",
    "convert": "runs/harbor-grounded.json --to trec-run -o trec",
    "passages extract": "--pool out --passages passages.jsonl -o some.jsonl",
    "prompts check": "good.md",
    "prompts examples": "groundedness/graded --gold gold.jsonl --pool out --k 2 --seed 1 -o shown.md",
    "journal salvage": "out -o saved.sqlite",
    "journal merge": "out again -o merged.sqlite",
    "gold plan": "--pool out --n 40 --per-run 5 --seed 1 -o drawn.jsonl",
    "nuggets convert": "nuggets.jsonl --to nuggetizer -o bank.jsonl",
    "evaluate spans": "--gold gold.tsv --run spans.tsv",
    "evaluate spans --qrels ranked.qrels": "--run ranked.res",
    "evaluate qrels --measure P@1": "ranked.qrels ranked.qrels --runs ranked",
}
"""The same of commands whose table is narrow, or that print none."""
NO_JSON = {
    *("bench", "bench compare", "bench datasets", "completion", "demo", "evaluate passages", "evaluate responses"),
    *("evaluate statements", "gold import", "gold sheet", "gold split", "improve", "journal export"),
    *("models pull", "nuggets agree", "nuggets create", "nuggets match"),
    *(
        "nuggets score",
        "passages index",
        "probe",
        "prompts show",
        "release",
        "report",
        "serve assess",
    ),
}
ELSEWHERE = {
    "batch submit": "extra/scale/test_batches.py",
    "batch status": "extra/scale/test_batches.py",
    "batch collect": "extra/scale/test_batches.py",
    "completions import": "extra/scale/test_batches.py",
    "prompts cuts": "jobs/test_prompt_cuts.py",
}
"""Command to the test that reads its JSON, where it needs a world of its own."""
FILES = {
    "gold.tsv": "1\tthe Fifth Amendment\n2\tswitch knives\n",
    "spans.tsv": "1\tfifth amendment\n2\tknives\n",
    "ranked.qrels": "1_1 0 a 1\n1_2 0 b 0\n2_1 0 c 1\n3_1 0 a 0\n",
    "ranked.res": "1_1 Q0 a 1 2.5 r\n1_2 Q0 b 1 1.5 r\n2_1 Q0 a 1 1 r\n",
    "ranked/a.res": "1_1 Q0 a 1 2 a\n1_2 Q0 b 1 2 a\n2_1 Q0 a 1 1 a\n",
    "ranked/b.res": "1_1 Q0 b 1 2 b\n1_2 Q0 b 1 2 b\n2_1 Q0 c 1 1 b\n",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled example with long names, judged by word overlap, and grades of every kind about it."""
    folder = tmp_path_factory.mktemp("world")
    names: dict[str, str] = {}
    (folder / "runs").mkdir()
    for place, path in enumerate(sorted((PROJECT / "examples/runs").iterdir())):
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
        old = re.search(r'"run_(?:name|id)"\s*:\s*"([^"]+)"', text)
        names[old[1]] = NAME.format(place)
        (folder / "runs" / path.name.removesuffix(".gz")).write_text(text.replace(f'"{old[1]}"', f'"{names[old[1]]}"'))
    gold = (PROJECT / "gold/example.gold.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in gold]
    put(folder / "gold.jsonl", "".join(f"{json.dumps(row | {'run_id': names[row['run_id']]})}\n" for row in rows))
    for name in ("topics.json", "passages.jsonl"):
        (folder / name).write_bytes((PROJECT / "examples" / name).read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", *TABLES["run"].split()]) in (0, 1)
    shutil.copytree(folder / "out", folder / "again")
    shutil.copy(PROJECT / "prompts/groundedness/graded.md", folder / "good.md")
    (folder / "ranked").mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    pool = [json.loads(line) for line in (folder / "out/pool.jsonl").read_text(encoding="utf-8").splitlines()]
    rng = random.Random(5)
    graded = [(row["turn_id"], row["response_id"], rng.randrange(4)) for row in pool]
    write(folder / f"{NAME.format(0)}.qrel", (f"{turn} 0 {item} {grade}" for turn, item, grade in graded))
    used = sorted({(row["turn_id"], passage) for row in pool for passage in row["passages"]})
    write(folder / "passages.qrels", (f"{turn} 0 {passage} {rng.randrange(4)}" for turn, passage in used))
    for name in ("georgetown_infosense_trec_ptkb_assessments_1", "ptkb_2"):
        turns = sorted({turn for turn, _, _ in graded})
        write(folder / name, (f"{turn} 0 {number} {rng.randrange(2)}" for turn in turns for number in (1, 2, 3)))
    header = "worker,turn_id,response_id,criterion,label"
    labels = (
        f"w{worker},{turn},{item},{criterion}_of_responses_by_georgetown_infosense,{min(3, max(0, grade + step))}"
        for turn, item, grade in graded
        for worker, step in enumerate((0, -1, rng.randrange(2)))
        for criterion in CRITERIA
    )
    write(folder / "labels.csv", (header, *labels))
    (folder / "nuggets.jsonl").write_bytes((PROJECT / "examples/nuggets.jsonl").read_bytes())
    nuggets = [json.loads(line) for line in (folder / "nuggets.jsonl").read_text(encoding="utf-8").splitlines()]
    for name, by in (("people", {"assessor": "ann"}), ("judged", {"judge": "server/m"})):
        matches = (
            {"turn_id": turn, "response_id": item, "nugget_id": nugget["nugget_id"],
             "label": MATCH_LABELS[(grade + rng.randrange(2)) % 4], **by}
            for turn, item, grade in graded
            for nugget in nuggets
            if nugget["turn_id"] == turn
        )  # fmt: skip
        write(folder / f"{name}.jsonl", (json.dumps(match) for match in matches))
    return folder


def write(path: Path, lines: Iterator[str] | tuple[str, ...]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize(("command", "width"), [*((command, 60) for command in TABLES), ("leaderboard", 120)])
def test_no_line_of_a_command_is_wider_than_the_terminal(world, monkeypatch, capsys, command, width) -> None:
    monkeypatch.chdir(world)
    monkeypatch.setenv("COLUMNS", str(width))
    head, *options = re.split(r" (?=--)", command)
    code = main([*head.split(), *TABLES[command].split(), *(word for option in options for word in option.split())])
    out, err = capsys.readouterr()
    assert code in (0, 1), err
    assert out
    assert [line for line in out.splitlines() if columns_of(line) > width] == []


@pytest.mark.parametrize("form", ["tsv", "json", "markdown", "latex"])
def test_forms_for_tools_know_no_width(world: Path, monkeypatch, capsys, form: str) -> None:
    monkeypatch.chdir(world)
    made = []
    for width in ("60", "200"):
        monkeypatch.setenv("COLUMNS", width)
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert main(["evaluate", "responses", "out", "--format", form]) == 0
        made.append(capsys.readouterr().out)
    assert made[0] == made[1]
    assert "\x1b" not in made[0]
    assert NAME.format(3) in made[0].replace("\\", "")


def test_each_prompt_that_is_checked_has_its_problems(world: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(world)
    Path("bad.md").write_text("no prompt", encoding="utf-8")
    assert main(["prompts", "check", "good.md", "bad.md", "none.md", "--json"]) == 1
    assert [(row["file"], row["prompt"], len(row["problems"])) for row in json.loads(capsys.readouterr().out)] == [
        ("good.md", "groundedness/good", 0), ("bad.md", None, 1), ("none.md", None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("command", [row for row in TABLES | JSON if row.partition(" -")[0] not in NO_JSON])
def test_every_command_prints_json(world: Path, monkeypatch, capsys, command: str) -> None:
    monkeypatch.chdir(world)
    head, *options = re.split(r" (?=--)", command)
    line = [*head.split(), *(TABLES | JSON)[command].split(), *" ".join(options).split(), "--json"]
    assert main(line) in (0, 1)
    assert json.loads(capsys.readouterr().out)


def test_no_command_is_left_out() -> None:
    """A command has a row here or a test elsewhere, and prints JSON unless it stands in NO_JSON."""
    places = {place for place, parser in PLACES.items() if parser._subparsers is None}
    assert places == {row.partition(" -")[0] for row in TABLES | JSON} | NO_JSON | ELSEWHERE.keys()
    assert {place for place in places if "--json" not in PLACES[place]._option_string_actions} == NO_JSON
    for command, file in ELSEWHERE.items():
        text = (PROJECT / "tests" / file).read_text(encoding="utf-8")
        assert '"--json"' in text and f'"{command.split()[-1]}"' in text, command


def test_a_width_of_any_length_is_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "9" * 5000)
    assert printing.columns() == 240


# ---------------------------------------------------------------- width and color


def test_the_width_is_that_of_the_terminal_or_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    for given, found, known in (
        (None, 80, None), ("", 80, None), ("wide", 80, None), ("0", 80, None),
        ("100", 100, 100), ("12", 40, 40), ("9000", 240, 240),
    ):  # fmt: skip
        monkeypatch.delenv("COLUMNS", raising=False)
        if given is not None:
            monkeypatch.setenv("COLUMNS", given)
        assert (printing.columns(), printing.known_columns()) == (found, known)


@pytest.mark.parametrize(
    ("stream", "environment", "color"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_color_is_for_terminals(monkeypatch, stream: io.StringIO, environment: dict[str, str], color: bool) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    assert printing.shows_color(stream) is color
    assert printing.styled("x", "error", stream) == ("\x1b[1;31mx\x1b[0m" if color else "x")


def test_entries_of_lists_stay_whole_for_tools(monkeypatch, capsys) -> None:
    text = "  run.json: " + "word " * 30
    monkeypatch.delenv("COLUMNS", raising=False)
    printing.print_listed(text)
    printing.print_text("one two " * 12)
    printing.print_fact("cost", "unknown " * 12)
    whole, *folded = capsys.readouterr().out.splitlines()
    assert whole == text
    assert max(map(len, folded)) <= 80
    assert folded[-1].startswith(" " * 20 + "unknown")
    monkeypatch.setenv("COLUMNS", "60")
    printing.print_listed(text)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_headings_and_the_banner_stand_out_on_a_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    mean = Estimate(value=1.0, low=None, high=None, n=1, topics=1)
    counts = {**dict.fromkeys(COUNTS, 0), "turns": 1, "n": 1, "positive": 1}
    row = Score(run_id="a", criterion="groundedness", mean=mean, bound=1.0, counts=counts, more={"share_of_turns": 1.0})
    print_leaderboard([row], [find_criterion("groundedness")], "UNCALIBRATED: nobody has compared them.")
    out = capsys.readouterr().out
    assert out.startswith("\x1b[1;33mUNCALIBRATED: nobody has compared them.\x1b[0m\n")
    assert "\n\x1b[1mrank" in out
    printing.print_table(("run", "n"), [("字字", "1"), ("a", "12")])
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.startswith("\x1b[1mrun")
    assert lines == ["字字   1", "a     12"]


def test_errors_stand_out_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert complaint(capsys, main(["leaderboard", "absent"])).startswith("\x1b[1;31mjudge:\x1b[0m absent")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "line",
    [
        "judge validate --runs demo/examples/runs --topics demo/examples/topics.json",
        "judge validate --runs 'a long name of a folder/examples/runs' --topics 'a long name of a folder/topics.json'",
        f"judge validate --runs {'long/' * 30}runs",
    ],
)
def test_a_command_to_copy_is_one_command_in_a_shell(monkeypatch, capsys, line: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    printing.print_command(line)
    said = capsys.readouterr().out
    # A shell joins lines at a backslash.
    assert shlex.split(said.replace("\\\n", "")) == shlex.split(line)
    assert "'" in line or "long/" in line or max(map(len, said.splitlines())) <= columns


def test_messages_are_folded_for_a_terminal_and_whole_for_a_log(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    text = "  answers.csv: a table of 30 rows, question from 'question', answer from 'answer'"
    log, terminal = io.StringIO(), Terminal()
    for stream in (log, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        printing.say(text)
    assert log.getvalue() == f"{text}\n"
    lines = terminal.getvalue().splitlines()
    assert " ".join(terminal.getvalue().split()) == text.strip()
    assert max(map(len, lines)) <= 40
    assert all(line.startswith("  ") for line in lines)
