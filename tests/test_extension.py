"""What is added in one place shows up everywhere: a prompt is a file, a statistic, an aggregator, a baseline a row."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.long

JUDGED = ["--runs", "examples/runs", "--topics", "examples/topics.json", "--passages", "examples/passages.jsonl"]
GOLD = "gold/example.gold.jsonl"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the project to add things to."""
    for folder in ("judge", "prompts", "gold", "examples"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    return tmp_path


def judge(tree: Path, *arguments: str | Path, code: int = 0) -> str:
    """What a command of the copy prints."""
    done = subprocess.run(
        [sys.executable, "-m", "judge", *map(str, arguments)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def add_row(tree: Path, module: str, table: str, row: str) -> None:
    """Put a row at the end of the literal table of a module."""
    path = tree / "judge" / module
    text = path.read_text(encoding="utf-8")
    changed, tables = re.subn(
        rf"(^{table}: .*?)(^\}})", rf"\g<1>    {row}\n\g<2>", text, flags=re.MULTILINE | re.DOTALL
    )
    assert tables == 1
    path.write_text(changed, encoding="utf-8")


def table_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))


def judged(tree: Path, *arguments: str) -> Path:
    judge(tree, "run", *JUDGED, *arguments, "--out", "out")
    return tree / "out" / "judgments.jsonl"


def test_a_criterion_is_a_folder_with_a_file(tree: Path) -> None:
    text = (tree / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    (tree / "prompts" / "support").mkdir()
    (tree / "prompts" / "support" / "strict.md").write_text(
        text.replace('criterion = "groundedness"', 'criterion = "support"'), encoding="utf-8"
    )
    rows = {row["prompt"]: row for row in json.loads(judge(tree, "prompts", "list", "--json"))}
    assert rows["support/strict"]["default"] is True
    assert "support" in judge(tree, "run", "--help")
    # The one prompt it has is the default; the baseline refuses it, so the criterion has come as far as a judge.
    assert judge(tree, "prompts", "show", "support").startswith("+++")
    judge(tree, "run", *JUDGED, "--criteria", "support", "--model", "baseline/overlap", "--out", "out", code=2)


def test_a_prompt_variant_is_a_file(tree: Path) -> None:
    shutil.copy(tree / "prompts" / "groundedness" / "graded.md", tree / "prompts" / "groundedness" / "short.md")
    rows = {row["prompt"]: row for row in json.loads(judge(tree, "prompts", "list", "--json"))}
    assert (rows["groundedness/short"]["default"], rows["groundedness/graded"]["default"]) == (False, True)
    judgments = judged(tree, "--prompt", "groundedness/short", "--model", "baseline/overlap")
    assert {json.loads(line)["variant"] for line in judgments.read_text(encoding="utf-8").splitlines()} == {"short"}
    judge(tree, "calibrate", "--gold", GOLD, "--judgments", judgments, "--out", "calibrated")
    assert "groundedness/short" in {row["prompt"] for row in table_of(tree / "calibrated" / "agreement.tsv")}


def test_a_statistic_is_a_row(tree: Path) -> None:
    add_row(
        tree,
        "stats/agreement.py",
        "STATISTICS",
        '"at_least": Statistic(formula=PairMean(lambda d: d >= 0), about="the share of grades no lower", '
        'family="mean", interval="t", scale="interval", label="up", shown="summary", bracketed=True, '
        "worst_case=True),",
    )
    judgments = judged(tree, "--criteria", "groundedness", "--model", "baseline/overlap")
    arguments = ["calibrate", "--gold", GOLD, "--judgments", judgments, "--out", "calibrated"]
    assert re.search(r"same +AC2 +up +wkappa \[95 %\] +bias", judge(tree, *arguments))
    row = next(row for row in table_of(tree / "calibrated" / "agreement.tsv") if row["judge"] == "baseline/overlap")
    confusion = [
        line for line in table_of(tree / "calibrated" / "confusion.tsv") if line["judge"] == "baseline/overlap"
    ]
    up = sum(int(line["count"]) for line in confusion if int(line["judge_grade"]) >= int(line["human"]))
    assert float(row["at_least"]) == pytest.approx(up / int(row["n"]), abs=1e-6)
    assert float(row["at_least_lo"]) < float(row["at_least"]) < float(row["at_least_hi"])
    assert row["worst_at_least"] == row["at_least"]
    columns = list(row)
    assert columns.index("bias_hi") < columns.index("at_least") < columns.index("rank_correlation")
    report = (tree / "calibrated" / "calibration.md").read_text(encoding="utf-8")
    assert "| up [95 %] |" in report
    assert "up: the share of grades no lower." in " ".join(report.split())
    judge(tree, *arguments, "--require", "at_least.lo>=0", code=1)


def test_an_aggregator_is_a_row(tree: Path) -> None:
    add_row(
        tree,
        "crowd/aggregators.py",
        "AGGREGATORS",
        '"panel": Aggregator(aggregate=_weighted_majority, votes=True, smoothed=True, jury=True),',
    )
    (tree / "labels.csv").write_text(
        "worker,turn_id,response_id,criterion,label\n"
        + "".join(
            f"{worker},1_{turn},R{turn},relevance,{label}\n"
            for turn, labels in enumerate(("330", "012", "122", "331", "002"), 1)
            for worker, label in zip("abc", labels, strict=True)
        ),
        encoding="utf-8",
    )
    crowd, run = ("".join(judge(tree, command, "--help").split()) for command in ("crowd", "run"))
    assert re.search(r"--aggregator\{[^}]*,panel\}", crowd)
    assert re.search(r"--jury\{[^}]*,panel\}", run)
    options = ["--tie", "lowest", "--majority", "absolute", "--smoothing", "2"]
    outputs = []
    for name in ("panel", "weighted-majority"):
        out = tree / name
        judge(tree, "crowd", "labels.csv", "--scale", "0-3", "--aggregator", name, *options, "--out", out)
        about = json.loads((out / "crowd.json").read_bytes())["options"]
        files = {path.relative_to(out): path.read_text(encoding="utf-8") for path in out.rglob("*.*") if path.is_file()}
        # The one names the aggregator, the other has digests of files that do.
        del files[Path("crowd.json")], files[Path("crowd.sha256")]
        outputs.append((about | {"aggregator": "-"}, {path: text.replace(name, "-") for path, text in files.items()}))
    assert outputs[0] == outputs[1]


def test_a_baseline_is_a_row(tree: Path) -> None:
    path = tree / "judge" / "judges" / "backends" / "baseline.py"
    text = path.read_text(encoding="utf-8")
    twin = 'class Twin(Overlap):\n    """The same."""\n\n    name = "baseline/twin"\n\n\nBASELINES: '
    path.write_text(text.replace("\nBASELINES: ", f"\n{twin}"), encoding="utf-8")
    add_row(tree, "judges/backends/baseline.py", "BASELINES", '"twin": Twin,')
    judgments = judged(tree, "--criteria", "groundedness", "--model", "baseline/overlap")
    other = judgments.with_name("other.jsonl")
    other.write_text(judgments.read_text(encoding="utf-8").replace("baseline/overlap", "paid/model"), encoding="utf-8")
    judge(tree, "calibrate", "--gold", GOLD, "--judgments", other, "--pool", "out", "--out", "calibrated")
    rows = {row["judge"]: row for row in table_of(tree / "calibrated" / "agreement.tsv")}
    assert {name: row["baseline"] for name, row in rows.items()} == {
        "paid/model": "false", "constant": "true", "baseline/overlap": "true", "baseline/twin": "true"
    }  # fmt: skip
    assert rows["baseline/twin"]["wkappa"] == rows["baseline/overlap"]["wkappa"] == rows["paid/model"]["wkappa"]
