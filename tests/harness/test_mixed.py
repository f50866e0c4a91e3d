"""Adding runs to judgments that another judge, prompt or parser made."""

import json
import shutil
from pathlib import Path

import pytest

from judge.cli import main
from tests.conftest import PROJECT
from tests.harness.test_pooling import RUNS, lines, records, run

pytestmark = pytest.mark.slow

PROMPT = PROJECT / "prompts" / "groundedness" / "graded.md"
LATER = "mill-fluent-invented.json"


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """An output folder of six runs; the seventh is in `later/`."""
    example = Path(shutil.copytree(RUNS, tmp_path / "runs"))
    (tmp_path / "later").mkdir()
    (example / LATER).rename(tmp_path / "later" / LATER)
    assert run(tmp_path / "out", runs=example) == 0
    return tmp_path / "out"


def another_prompt(folder: Path) -> Path:
    path = folder / "mine.md"
    path.write_text(PROMPT.read_text(encoding="utf-8") + "\nOne line more.\n", encoding="utf-8")
    return path


def test_other_judgments_are_not_mixed_in_unless_told(before, tmp_path, capsys):
    held = {path.name: path.read_bytes() for path in before.iterdir() if path.is_file()}
    prompt = ["--prompt", another_prompt(tmp_path)]
    capsys.readouterr()
    assert run(before, "--extend", before, *prompt, runs=tmp_path / "later") == 2
    said = capsys.readouterr().err
    assert "another prompt" in said and "--allow-mixed" in said
    assert {name: (before / name).read_bytes() for name in held if "journal" not in name} == {
        name: content for name, content in held.items() if "journal" not in name
    }


def test_elsewhere_everything_is_judged_in_one_way(before, tmp_path):
    out = tmp_path / "new"
    assert run(out, "--extend", before, "--prompt", another_prompt(tmp_path), runs=tmp_path / "later") == 0
    made = records(out / "judgments.jsonl")
    assert {one["variant"] for one in made} == {"mine"}
    assert len(made) + len(records(out / "failures.jsonl")) == len(records(out / "pool.jsonl"))
    assert not (out / "carried.jsonl").exists()


@pytest.mark.parametrize("in_place", [True, False])
def test_mixed_judgments_are_kept_and_marked_in_every_output(before, tmp_path, capsys, in_place):
    earlier = {one["response_id"]: one for one in records(before / "judgments.jsonl")}
    out = before if in_place else tmp_path / "new"
    more = ["--extend", before, "--allow-mixed", "--prompt", another_prompt(tmp_path)]
    capsys.readouterr()
    assert run(out, *more, runs=tmp_path / "later") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("MIXED:")
    made = {one["response_id"]: one for one in records(out / "judgments.jsonl")}
    pooled = {one["response_id"] for one in records(out / "pool.jsonl")}
    assert made.keys() == pooled - {one["response_id"] for one in records(out / "failures.jsonl")}
    assert earlier.items() < made.items()
    assert {made[one]["variant"] for one in made.keys() - earlier.keys()} == {"mine"}
    qrels = sorted(path.name for path in (out / "qrels").iterdir())
    assert qrels == ["response_groundedness.mixed.llm.qrel", "response_groundedness.mixed.llm.qrel.json"]
    assert len((out / "qrels" / qrels[0]).read_text(encoding="utf-8").splitlines()) == len(made)
    about = json.loads((out / "qrels" / qrels[1]).read_text(encoding="utf-8"))
    assert [(one["prompt"], one["judgments"]) for one in about["mixed"]] == [("groundedness/graded", len(earlier))]
    assert about["calibration"].startswith("MIXED:")
    assert "MIXED:" in (out / "leaderboard.md").read_text(encoding="utf-8")
    table = lines(out / "leaderboard.tsv")
    assert len(table) == 1 + 7
    assert all(row[-1].startswith("mixed judgments") for row in table[1:])
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["configuration"]["mixed"] == about["mixed"]
    # The same command again asks nothing and changes nothing.
    first = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and "journal" not in path.name}
    assert run(out, "--extend", out if in_place else before, *more[2:], runs=tmp_path / "later") == 0
    assert {path: path.read_bytes() for path in first} == first
    capsys.readouterr()
    assert main(["leaderboard", str(out), "--criterion", str(another_prompt(tmp_path))]) == 0
    assert capsys.readouterr().out == shown.out


def test_a_mixed_folder_stays_marked_when_it_is_extended_again(before, tmp_path, capsys):
    later = tmp_path / "later"
    prompt = ["--prompt", another_prompt(tmp_path)]
    assert run(before, "--extend", before, "--allow-mixed", *prompt, runs=later) == 0
    capsys.readouterr()
    assert run(before, "--extend", before, *prompt, runs=later) == 2
    assert "carried over from before" in capsys.readouterr().err
    assert run(before, "--extend", before, "--allow-mixed", runs=later) == 0
    origins = json.loads((before / "manifest.json").read_text(encoding="utf-8"))["configuration"]["mixed"]
    # What the first prompt made is the journal's again, and no longer foreign.
    assert [one["prompt"] for one in origins] == ["groundedness/mine"]
    assert {one["variant"] for one in records(before / "judgments.jsonl")} == {"graded", "mine"}


def test_the_banner_says_what_differs(before, tmp_path, capsys):
    capsys.readouterr()
    more = ["--extend", before, "--allow-mixed", "--max-tokens", "99"]
    assert run(before, *more, runs=tmp_path / "later") == 0
    banner = capsys.readouterr().out.splitlines()[0]
    assert banner.startswith("MIXED:")
    assert "by baseline/overlap under groundedness/graded (another max_tokens)." in banner


def test_grades_of_another_scale_are_never_mixed(before, tmp_path, capsys):
    capsys.readouterr()
    more = ["--extend", before, "--allow-mixed", "--prompt", "groundedness/yes_no"]
    assert run(before, *more, runs=tmp_path / "later") == 2
    assert "another scale" in capsys.readouterr().err


def test_a_folder_in_which_everything_is_carried_over_has_a_leaderboard(before, tmp_path, capsys):
    more = ["--extend", before, "--allow-mixed", "--prompt", another_prompt(tmp_path)]
    assert run(tmp_path / "new", *more, runs=tmp_path / "runs") == 0
    shown = capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "new"), "--criterion", str(another_prompt(tmp_path))]) == 0
    assert capsys.readouterr().out == shown.out


def test_mixed_judgments_are_no_judge_to_calibrate_or_to_correct(before, tmp_path, capsys):
    out = tmp_path / "new"
    more = ["--extend", before, "--allow-mixed", "--prompt", another_prompt(tmp_path)]
    assert run(out, *more, runs=tmp_path / "later") == 0
    gold = PROJECT / "gold" / "example.gold.jsonl"
    capsys.readouterr()
    arguments = ["calibrate", "--gold", gold, "--judgments", out / "judgments.jsonl", "--out", tmp_path / "cal"]
    assert main([str(one) for one in arguments]) == 2
    assert "several ways" in capsys.readouterr().err
    mine = ["--criterion", str(another_prompt(tmp_path))]
    assert main(["leaderboard", str(out), "--gold", str(gold), *mine]) == 2
    assert "MIXED" in capsys.readouterr().err


def test_no_criterion_is_lost_by_mixing(before, tmp_path, capsys):
    manifest = json.loads((before / "manifest.json").read_text(encoding="utf-8"))
    criteria = manifest["configuration"]["criteria"]
    criteria["naturalness"] = criteria["groundedness"]
    (before / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    capsys.readouterr()
    assert run(before, "--extend", before, "--allow-mixed", runs=tmp_path / "later") == 2
    assert "naturalness would be lost" in capsys.readouterr().err


def test_mixing_needs_a_folder_to_mix_with_and_no_certificate(before, tmp_path, capsys):
    assert run(tmp_path / "x", "--allow-mixed") == 2
    assert "--extend" in capsys.readouterr().err
