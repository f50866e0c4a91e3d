"""`--cluster theme` from files to files: what it changes, where it is recorded, and what it leaves as it is."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import judge
from judge.calibrate.certificate import _result, read_certificate
from judge.cli import main
from judge.errors import UsageError
from judge.jobs.calibration import CalibrationOutcome, CalibrationPlan, calibrate_judges
from judge.jobs.gold import GoldSplitPlan, split_gold_file
from tests.calibration_world import Item, gold_rows, items, labeled, table, write_gold, write_output
from tests.conftest import PROJECT, on_stderr, printed, read_ledger, run_example

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OVER = "intervals and tests are over themes, and count these as topics"


def themed(world: list[Item]) -> list[Item]:
    """Topics in pairs: two conversations of one theme each."""
    renamed = []
    for one in world:
        topic, _, turn = one.turn_id.partition("_")
        theme, conversation = divmod(int(topic) - 1, 2)
        renamed.append(msgspec.structs.replace(one, turn_id=f"{theme + 1}-{conversation + 1}_{turn}"))
    return renamed


WORLD = themed(items())
"""24 topics of 12 themes."""


def calibrated(folder: Path, world: list[Item], **options: Any) -> CalibrationOutcome:
    """Two judges of different noise against gold."""
    folder.mkdir()
    noises = {"server/good": 0.2, "server/poor": 0.6}
    judges = {name: labeled(world, noise, 3) for name, noise in noises.items()}
    plan = CalibrationPlan(
        gold=[write_gold(folder / "gold.jsonl", gold_rows(world))],
        judgments=[write_output(folder / "out", world, judges)],
        replicates=200,
        permutations=200,
        **options,
    )
    return calibrate_judges(plan, NOW)


def joined(world: list[Item]) -> list[Item]:
    """Every topic renamed to its theme, with the conversation in the number of the turn, so that the order stays."""
    renamed = []
    for one in world:
        topic, _, turn = one.turn_id.partition("_")
        theme, _, conversation = topic.partition("-")
        renamed.append(msgspec.structs.replace(one, turn_id=f"{theme}_{conversation}{turn}"))
    return renamed


def test_a_calibration_over_themes_is_that_of_topics_renamed_to_themes(tmp_path: Path) -> None:
    themes = calibrated(tmp_path / "themes", WORLD, cluster="theme").calibration
    renamed = calibrated(tmp_path / "renamed", joined(WORLD)).calibration
    topics = calibrated(tmp_path / "topics", WORLD).calibration
    assert themes.agreement == renamed.agreement != topics.agreement
    assert (themes.comparisons, themes.selections) == (renamed.comparisons, renamed.selections)
    (by_theme,), (by_topic,) = themes.verdicts, renamed.verdicts
    few = "120 judged gold items on 12 themes cannot make a judge trusted: that takes 100 on 20"
    assert (by_theme.reasons, by_topic.reasons) == ((few,), (few.replace("themes", "topics"),))
    assert by_theme == msgspec.structs.replace(by_topic, reasons=by_theme.reasons)
    assert [row.topics for row in themes.agreement] == [12] * len(themes.agreement)
    assert f"groundedness: clustered by theme: 12 themes of 24 topics; {OVER}" in themes.warnings
    assert [warning for warning in themes.warnings if "judged gold items" in warning] == [f"groundedness: {few}"]
    assert not any("theme" in warning for warning in topics.warnings)


def test_a_calibration_records_its_themes_and_no_topics(tmp_path: Path) -> None:
    out = tmp_path / "cal"
    calibrated(tmp_path / "themes", WORLD, cluster="theme", out=out)
    (entry,) = read_certificate(out / "certificate.json").certified
    assert entry.resampling == {"seed": 2023, "replicates": 200, "permutations": 200, "cluster": "theme"}
    assert "n=120, 12 themes" in _result(entry)
    assert json.loads((out / "calibration.json").read_bytes())["cluster"] == "theme"
    for name in ("agreement.tsv", "comparisons.tsv", "systems.tsv", "diagnostics.tsv"):
        text = (out / name).read_text("utf-8")
        assert text.count("\n") == 1 + sum(line.endswith("clustered by theme") for line in text.splitlines()), name
    assert {row["notes"] for row in table(out / "agreement.tsv")} >= {"clustered by theme"}
    assert f"**Warning**: groundedness: clustered by theme: 12 themes of 24 topics; {OVER}" in (
        out / "calibration.md"
    ).read_text("utf-8")
    again = tmp_path / "again"
    calibrated(tmp_path / "topics", WORLD, out=again)
    (entry,) = read_certificate(again / "certificate.json").certified
    assert "cluster" not in entry.resampling
    assert "12 themes" not in _result(entry)
    files = [path for path in again.iterdir() if b"cluster" in path.read_bytes().lower()]
    assert files == []


def test_another_unit_is_another_question_to_sealed_grades(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold.jsonl", gold_rows(WORLD))
    split = tmp_path / "split"
    split_gold_file(GoldSplitPlan(file=gold, share=0.5, seed=1, out=split))
    judgments = write_output(tmp_path / "out", WORLD, {"server/good": labeled(WORLD, 0.2, 3)})
    numbers = []
    for cluster in ("topic", "theme", "topic"):
        plan = CalibrationPlan(
            gold=split, test=split, judgments=judgments, replicates=200, permutations=200, cluster=cluster
        )
        numbers.append(calibrate_judges(plan, NOW).calibration.looks[0].number)
    assert numbers == [1, 2, 2]


def test_themes_on_both_sides_of_a_split_by_topic_are_named(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold.jsonl", gold_rows(WORLD))
    judgments = write_output(tmp_path / "out", WORLD, {"server/good": labeled(WORLD, 0.2, 3)})
    said = {}
    for cluster in ("topic", "theme"):
        split = tmp_path / cluster
        seal = split_gold_file(GoldSplitPlan(file=gold, share=0.5, seed=1, out=split, cluster=cluster))
        sides = [{topic.partition("-")[0] for topic in side.topics} for side in (seal.dev, seal.test)]
        assert bool(sides[0] & sides[1]) == (cluster == "topic")
        plan = CalibrationPlan(
            gold=split, test=split, judgments=judgments, replicates=200, permutations=200, cluster="theme"
        )
        said[cluster] = [text for text in calibrate_judges(plan, NOW).calibration.warnings if "in dev and" in text]
        assert len(read_ledger(split / "seal.json")) == 1
    assert said["theme"] == []
    (warning,) = said["topic"]
    assert warning.startswith("groundedness: of theme ")
    assert warning.endswith(
        "some topics are in dev and others in test, so the test grades are not of other themes; "
        "`judge gold split --cluster theme` parts no theme"
    )


def run(out: Path, *more: str) -> int:
    return run_example(out, "--criteria", "groundedness", "--model", "baseline/overlap", *more)


def written(out: Path) -> dict[str, bytes]:
    """The files but the journal, in which SQLite counts its transactions."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file() and path.suffix != ".sqlite"}


def test_a_folder_takes_either_unit_and_its_leaderboard_keeps_the_recorded_one(tmp_path, capsys) -> None:
    out = tmp_path / "out"
    note = f"clustered by theme: 3 themes of 3 topics; {OVER}"
    assert run(out) == 0
    plain = written(out)
    assert "cluster" not in json.loads(plain["manifest.json"])
    capsys.readouterr()
    # The unit changes no grade, so the folder is not one of another configuration, and nothing is asked again.
    assert note in " ".join(printed(capsys, run(out, "--cluster", "theme")).split())
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert (manifest["cluster"], manifest["options"]["cluster"]) == ("theme", "theme")
    assert manifest["configuration"] == json.loads(plain["manifest.json"])["configuration"]
    assert (out / "judgments.jsonl").read_bytes() == plain["judgments.jsonl"]
    assert f"\n{note}.\n" in (out / "leaderboard.md").read_text("utf-8")
    assert note in " ".join(printed(capsys, main(["leaderboard", str(out)])).split())
    assert "clustered" not in printed(capsys, main(["leaderboard", str(out), "--cluster", "topic"]))
    assert main(["leaderboard", str(out), "--json"]) == 0
    assert {row["cluster"] for row in json.loads(capsys.readouterr().out)} == {"theme"}
    assert run(out) == 0
    assert written(out) == plain


def test_a_correction_over_themes_says_so_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(out) == 0
    capsys.readouterr()
    gold = str(PROJECT / "gold" / "example.gold.jsonl")
    told = ["leaderboard", str(out), "--gold", gold, "--out", str(tmp_path / "corrected.md")]
    assert "clustered by theme: 3 themes of 3 topics" in printed(capsys, main([*told, "--cluster", "theme"]))
    assert f"\nclustered by theme: 3 themes of 3 topics; {OVER}.\n" in (tmp_path / "corrected.md").read_text("utf-8")
    found = json.loads(printed(capsys, main([*told, "--cluster", "theme", "--json"])))
    assert found["clustered"] == [f"clustered by theme: 3 themes of 3 topics; {OVER}"]
    assert {row["cluster"] for row in found["rows"]} == {"theme"}
    assert "cluster" not in printed(capsys, main([*told, "--json"]))


@pytest.mark.parametrize(
    "job",
    [
        lambda out: judge.run(judge.Plan(runs="r", cluster="themes", out=out)),
        lambda out: judge.calibrate_judges(CalibrationPlan(gold="g", judgments="j", cluster="themes")),
        lambda out: judge.correct_leaderboard(judge.CorrectionPlan(folder="f", gold="g", cluster="themes")),
        lambda out: split_gold_file(GoldSplitPlan(file="g", share=0.5, seed=1, out=out, cluster="themes")),
    ],
)
def test_a_plan_with_another_unit_is_refused_before_anything_is_read(tmp_path: Path, job: Any) -> None:
    with pytest.raises(UsageError, match=r"cluster.*'themes'.*topic.*theme"):
        job(tmp_path)


def test_the_command_splits_by_theme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = write_gold(tmp_path / "gold.jsonl", gold_rows(WORLD))
    told = ["gold", "split", str(gold), "--test", "0.5", "--seed", "1", "--cluster", "theme"]
    dev, test, *_ = on_stderr(capsys, main([*told, "--out", str(tmp_path / "split")])).splitlines()
    assert (dev, test) == (
        "dev: 60 responses, 60 grades, 12 topics, 6 themes",
        "test: 60 responses, 60 grades, 12 topics, 6 themes",
    )
