"""Paths as people give them: several, folders of ours, with the option or without it."""

import json
import shutil
from pathlib import Path

import pytest

import judge
from judge.cli import main
from judge.errors import InputError
from judge.io.files import file_in
from judge.runs.formats import find_runs
from tests.conftest import PROJECT, complaint, printed


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("mill-fluent-invented.json", "quarry-copied.json"):
        Path("late").mkdir(exist_ok=True)
        (Path("runs") / name).rename(Path("late") / name)
    return tmp_path


def pooled(out: str, *runs: str) -> dict[str, bytes]:
    assert main(["pool", *runs, "--topics", "topics.json", "--passages", "passages.jsonl", "-o", out]) == 0
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in Path(out).rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "run.sha256", "problems.json")
    }


def test_several_folders_and_files_are_pooled_in_whatever_order_they_are_given(here: Path) -> None:
    first = pooled("a", "--runs", "runs", "late/quarry-copied.json", "--runs", "late")
    again = pooled("b", "--runs", "late/", "--runs", "runs/harbor-grounded.json", "runs")
    assert first == again
    assert len(first["runs.jsonl"].splitlines()) == 7


def test_the_order_and_the_spelling_of_what_is_given_do_not_matter(here: Path) -> None:
    Path("link").symlink_to("late")
    files, problems = find_runs(["runs", "late"])
    assert [path.name for path in files[:2]] == ["mill-fluent-invented.json", "quarry-copied.json"]
    assert find_runs(["late", Path("runs")]) == (files, problems)
    again, _ = find_runs(["late", "runs", "runs/../late/quarry-copied.json", "link"])
    assert again == files


def test_every_missing_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert complaint(capsys, main(["validate", "runs", "none", "empty"])) == (
        "judge: none: cannot be read as a folder of runs: No such file or directory; empty: no run files here\n"
    )
    with pytest.raises(InputError, match="none: cannot be read"):
        judge.read_runs(["runs", "none"])


def test_a_bank_given_beside_its_pool_belongs_to_the_pool(tmp_path: Path) -> None:
    pool, bank = tmp_path / "pool.txt", tmp_path / "bank.json"
    pool.write_text("1-1_1 Q0 R1 1 0.0 judge\n")
    bank.write_text('{"R1": "Tea."}')
    assert find_runs([pool, bank]) == find_runs(tmp_path) == ((pool,), ())


@pytest.mark.parametrize("command", ["validate", "tokens"])
def test_runs_are_named_with_the_option_or_without_it(here: Path, command: str, capsys) -> None:
    told = []
    for runs in (["runs", "late"], ["--runs", "runs", "late"], ["runs", "--runs", "late"]):
        main([command, *runs, "--topics", "topics.json", "--json"])
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2]
    with pytest.raises(SystemExit):
        main([command, "--topics", "topics.json"])
    assert capsys.readouterr().err == (
        f"judge {command}: argument --runs: a value is required\n`judge {command} --help` lists the options\n"
    )


def test_two_run_files_of_one_name_get_no_copies_under_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("runs/harbor-grounded.json", "late/harbor-grounded.json")
    assert "judge: harbor-grounded.json: several run files have this name, and so would their copies\n" in complaint(
        capsys, main(["validate", "runs", "late", "--fix", "-o", "fixed"])
    )
    assert not Path("fixed").exists()


def test_a_folder_of_ours_stands_for_its_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = PROJECT / "gold" / "example.gold.jsonl"
    lines = gold.read_text(encoding="utf-8").splitlines(keepends=True)
    Path("gold.jsonl").write_text("".join(line for line in lines if '"groundedness"' in line), encoding="utf-8")
    inputs = ["--runs", "runs", "late", "--topics", "topics.json", "--passages", "passages.jsonl"]
    overlap = ["--model", "baseline/overlap", "--criteria", "groundedness"]
    assert main(["run", *inputs, *overlap, "--out", "out"]) == 0
    assert main(["gold", "split", "gold.jsonl", "--test", "0.34", "--seed", "1", "--out", "split"]) == 0
    quick = ["--replicates", "200", "--permutations", "200", "--json"]
    told = []
    for gold_, test, judgments in (
        ("split/dev.jsonl", "split/test.jsonl", "out/judgments.jsonl"),
        ("split", "split", "out"),
    ):
        capsys.readouterr()
        assert main(["calibrate", "--gold", gold_, "--test", test, "--judgments", judgments, *quick]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["criteria"] == told[1]["criteria"] if "criteria" in told[0] else told[0].keys() == told[1].keys()
    assert main(["gold", "check", "split", "--pool", "out"]) == 0
    draw = ["--pool", "out", "--n", "40", "--per-run", "5", "--seed", "1"]
    assert main(["gold", "plan", *draw, "--judgments", "out", "--out", "a.jsonl"]) == 0
    assert main(["gold", "plan", *draw, "--judgments", "out/judgments.jsonl", "--out", "b.jsonl"]) == 0
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    capsys.readouterr()
    of_files = printed(capsys, main(["drift", "out/judgments.jsonl", "out/judgments.jsonl"]))
    assert printed(capsys, main(["drift", "out", "out"])) == of_files
    extracted = []
    for pool, passages in (("out", "passages.jsonl"), ("out/pool.jsonl", "out")):
        assert main(["passages", "extract", "--pool", pool, "--passages", passages, "-o", f"{pool[:3]}.x"]) in (0, 1)
        extracted.append(Path("out.x").read_bytes())
    assert extracted[0] == extracted[1]


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r": a folder without dev\.jsonl or gold\.jsonl; name the file$"):
        file_in(tmp_path, "dev.jsonl", "gold.jsonl")
    assert file_in(tmp_path / "absent", "dev.jsonl") == tmp_path / "absent"
