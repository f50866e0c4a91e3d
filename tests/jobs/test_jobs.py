"""Correction, crowds and CAsT-ReGIn as jobs: the same files and figures as the commands give, from Python."""

import json
from pathlib import Path

import pytest

import judge
from judge.cli import main
from tests.conftest import PROJECT

EXAMPLES, GOLD = PROJECT / "examples", PROJECT / "gold" / "example.gold.jsonl"
LABELS = "worker,turn_id,response_id,criterion,label\n" + "".join(
    f"{worker},1_{turn},R{turn},relevance,{label}\n"
    for turn, labels in enumerate(("330", "011", "122"), 1)
    for worker, label in zip("abc", labels, strict=True)
)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of the example, judged by word overlap."""
    folder = tmp_path_factory.mktemp("job") / "out"
    judge.run(
        judge.Plan(
            runs=EXAMPLES / "runs",
            topics=EXAMPLES / "topics.json",
            passages=EXAMPLES / "passages.jsonl",
            criteria="groundedness",
            model="baseline/overlap",
            out=folder,
        )
    )
    return folder


def test_a_correction_is_that_of_the_command(out: Path, tmp_path, capsys, monkeypatch) -> None:
    # Drawing takes most of the time and is tested elsewhere.
    monkeypatch.setattr("judge.jobs.correction.raw_vs_corrected", lambda rows: (b"svg", b"png"))
    options = ["--gold", str(GOLD), "--target", "topics"]
    assert main(["leaderboard", str(out), *options, "--out", str(tmp_path / "command"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    outcome = judge.correct_leaderboard(
        judge.CorrectionPlan(folder=str(out), gold=str(GOLD), target="topics", out=str(tmp_path / "job"))
    )
    assert files(tmp_path / "job") == files(tmp_path / "command")
    assert [row.run_id for row in outcome.rows] == [row["run_id"] for row in printed["rows"]]
    assert (list(outcome.cautions), outcome.gold) == (printed["cautions"], printed["gold"])
    assert outcome.seal is None
    assert {criterion.name for criterion in outcome.criteria} == set(outcome.changes) == {"groundedness"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gold": ()}, "a correction needs gold grades"),
        ({"seal": "seal.json"}, "--seal names the seal of the grades in --test"),
        ({"fallback": "family"}, "--fallback family needs --families"),
        ({"criterion": "naturalness"}, "no judgment under naturalness/graded"),
    ],
)
def test_a_correction_that_cannot_be_made_is_refused(out: Path, changed: dict[str, object], message: str) -> None:
    told: dict[str, object] = {"folder": out, "gold": GOLD} | changed
    with pytest.raises(judge.UsageError, match=message):
        judge.correct_leaderboard(judge.CorrectionPlan(**told))  # type: ignore[arg-type]


def test_a_judged_folder_read_back_has_its_leaderboard(out: Path) -> None:
    judged = judge.read_judged(str(out))
    text = (out / "leaderboard.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[0] for line in text.splitlines()[1:]] == [row.run_id for row in judged.leaderboard]
    assert judged.banner.startswith("UNCALIBRATED")
    assert judged.judges(judged.criteria[0]) == {"baseline/overlap"}


def test_a_crowd_is_that_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.csv").write_text(LABELS, encoding="utf-8")
    (tmp_path / "bank.json").write_text('{"R1": "One."}', encoding="utf-8")
    options = ["--scale", "relevance=0-3", "--aggregator", "weighted-majority", "--tie", "lowest", "--smoothing", "2"]
    told = [str(tmp_path / "labels.csv"), *options, "--bank", str(tmp_path / "bank.json"), "--min-labels", "4"]
    assert main(["crowd", *told, "--out", str(tmp_path / "command"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    outcome = judge.grade_crowd(
        judge.CrowdPlan(
            labels=str(tmp_path / "labels.csv"),
            scales="relevance=0-3",
            aggregator="weighted-majority",
            tie="lowest",
            smoothing=2.0,
            bank=str(tmp_path / "bank.json"),
            min_labels=4,
            out=str(tmp_path / "job"),
        )
    )
    assert files(tmp_path / "job") == files(tmp_path / "command")
    assert [problem.code for problem in outcome.warnings] == [problem["code"] for problem in printed["warnings"]]
    assert not outcome.empty
    with pytest.raises(judge.UsageError, match="expected a scale such as"):
        judge.grade_crowd(judge.CrowdPlan(labels="x.csv", scales=["3-0"], out=tmp_path / "no"))
    assert not (tmp_path / "no").exists()


def test_a_resource_is_made_again_as_the_command_does(shared, tmp_path, capsys) -> None:
    source = shared / "cast-regin" / "response_evaluation"
    assert main(["crowd", "cast-regin", str(source), "--out", str(tmp_path / "command"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    outcome = judge.remake_cast_regin(judge.ReginPlan(folder=str(source), out=str(tmp_path / "job")))
    assert files(tmp_path / "job") == files(tmp_path / "command")
    assert [file.path for file in outcome.files] == [file["path"] for file in printed["files"]]
    assert len(outcome.problems) == len(printed["problems"])
    with pytest.raises(judge.UsageError, match="--evaluate needs --runs"):
        judge.remake_cast_regin(judge.ReginPlan(folder=source, out=tmp_path / "no", evaluate=True))
