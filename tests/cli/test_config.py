"""Options from a file, and options from the folder that is extended."""

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cli import main
from judge.io.plan import toml_text
from tests.conftest import PROJECT, complaint, on_stderr

EXAMPLE = PROJECT / "examples"
OVERLAP = ["--model", "baseline/overlap", "--criteria", "groundedness"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("value", ["[]", '"a\\u0000b"', '["a", {b = 1}]', "1979-05-27", '[["a"]]'])
def test_a_value_that_no_command_line_could_have_is_refused(here: Path, value: str, capsys) -> None:
    Path("j.toml").write_text(f"\n\nruns = {value}\n", encoding="utf-8")
    assert "  j.toml: bad_value at line 3: runs: expected a" in complaint(capsys, main(["pool", "--config", "j.toml"]))


def test_a_name_that_is_no_text_is_recorded_readably(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"r\xff")
    Path("runs").rename(name)
    assert main(["pool", "--runs", name, "--out", "out"]) == 0
    assert manifest("out")["options"]["runs"] == ["r\\udcff"]
    capsys.readouterr()
    assert main(["pool", "--runs", name, "--save-config", "j.toml"]) == 2
    assert "--save-config: an option has no text in UTF-8" in capsys.readouterr().err
    assert not Path("j.toml").exists()


def test_what_is_saved_is_read_back_and_holds_no_secret(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--topics", "topics.json", "--depth", "2", "--base-url", "http://me:secret@host/v1", "--temperature", "0"]
    assert main(["run", *given, "--save-config", "j.toml"]) == 0
    saved = Path("j.toml").read_bytes()
    # The temperature is the default, and --runs, which is required, may be missing here.
    assert saved == b'topics = "topics.json"\ndepth = 2\nbase-url = "http://host/v1"\n'
    assert main(["run", "--config", "j.toml", "--save-config", "k.toml"]) == 0
    assert Path("k.toml").read_bytes() == saved
    assert main(["run", *given, "--save-config", "j.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "--depth", "3", "--save-config", "j.toml"]) == 2
    assert "judge: j.toml: there already, with another content; name another file\n" in capsys.readouterr().err
    assert Path("j.toml").read_bytes() == saved


VALUES = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.lists(st.text()))


@given(st.dictionaries(st.from_regex("[a-z]+(-[a-z]+)?", fullmatch=True), VALUES))
def test_what_is_written_as_toml_is_the_same_when_read(options: dict[str, Any]) -> None:
    try:
        text = toml_text(options)
    except ValueError:
        # A lone surrogate has no UTF-8.
        return
    assert tomllib.loads(text) == options


def manifest(folder: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((Path(folder) / "manifest.json").read_bytes())
    return value


def judged(*more: str) -> int:
    return main(["run", "--topics", "topics.json", "--passages", "passages.jsonl", *OVERLAP, *more])


def test_a_folder_is_extended_with_the_options_that_it_was_made_with(here: Path, capsys) -> None:
    Path("late").mkdir()
    late = Path("runs/mill-fluent-invented.json").rename("late/mill.json")
    assert judged("--depth", "2", "--runs", "runs", "--out", "out", "--max-cost", "3") == 0
    bank = json.loads(Path("out/bank.json").read_bytes())
    assert "another configuration" in complaint(
        capsys, judged("--depth", "2", "--runs", "runs", "late", "--out", "out")
    )
    assert main(["run", "--runs", str(late), "--extend", "out"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("as out was made: --criteria --depth --model --passages --topics\n")
    assert "mill-fluent-invented" in said.out
    # Responses that were there keep their ids.
    assert bank.items() < json.loads(Path("out/bank.json").read_bytes()).items()
    options = manifest("out")["options"]
    assert options == {
        "runs": ["late/mill.json"], "topics": "topics.json", "passages": ["passages.jsonl"], "depth": 2,
        "extend": "out", "criteria": ["groundedness"], "model": ["baseline/overlap"],
    }  # fmt: skip
    # All runs judged at once give the same leaderboard rows.
    assert judged("--depth", "2", "--runs", "runs", "late", "--out", "at-once") == 0
    assert sorted(Path("out/leaderboard.tsv").read_text(encoding="utf-8").splitlines()) == sorted(
        Path("at-once/leaderboard.tsv").read_text(encoding="utf-8").splitlines()
    )


def test_a_contradiction_to_the_extended_folder_names_options_and_files(here: Path, capsys) -> None:
    assert main(["pool", "--runs", "runs/harbor-grounded.json", "--topics", "topics.json", "--out", "out"]) == 0
    other = ["pool", "--runs", "runs/mill-fluent-invented.json", "--extend", "out"]
    Path("new.json").write_bytes(Path("topics.json").read_bytes() + b"\n")
    capsys.readouterr()
    assert (
        "judge: out: pooled in another way (--topics: topics.json there, new.json now; --depth: 1 there, 2 now; "
        "--token-limit: 250 there, 20 now). Leave these options out to pool as before, or pool all runs anew into "
        "another folder\n"
    ) in complaint(capsys, main([*other, "--topics", "new.json", "--depth", "2", "--token-limit", "20"]))
    Path("topics.json").write_bytes(Path("new.json").read_bytes())
    assert "judge: out: pooled in another way (topics.json has changed since). " in complaint(capsys, main(other))


def test_a_configuration_file_may_name_the_folder_to_extend(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", "--runs", "runs/harbor-grounded.json", "--topics", "topics.json", "--out", "out"]) == 0
    Path("j.toml").write_text('extend = "out"\nruns = ["runs/mill-fluent-invented.json"]\n', encoding="utf-8")
    capsys.readouterr()
    assert "as out was made: --topics\n" in on_stderr(capsys, main(["pool", "--config", "j.toml"]))
    assert set(manifest("out")["configuration"]["runs"]) == {"harbor-grounded", "mill-fluent-invented"}
    # The file is given, so it wins over what is recorded, and contradicts it.
    Path("j.toml").write_text('extend = "out"\nruns = "runs"\ntopics = "runs/thistle-faulty.json"\n', encoding="utf-8")
    assert "runs/thistle-faulty.json" in complaint(capsys, main(["pool", "--config", "j.toml"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"depth = ", "not TOML: "),
        (b"\xff\xfe", "not TOML: "),
        (b"depth = 1\ndepth = 2\n", "not TOML: "),
        (b"depth = " + b"[" * 10_000, "not TOML: maximum recursion depth exceeded"),
        (b"a" + b".a" * 40_000 + b" = 1\n", "80,006 bytes: a file of options has at most 65,536"),
    ],
)
def test_what_is_no_toml_is_refused(here: Path, content: bytes, message: str, capsys) -> None:
    Path("j.toml").write_bytes(content)
    assert main(["pool", "--runs", "runs", "--config", "j.toml"]) == 2
    assert capsys.readouterr().err.startswith(f"judge: j.toml: {message}")


def test_an_address_is_recorded_without_credentials(here: Path) -> None:
    assert main(["run", "--base-url", "http://me:secret@a/v1", "--save-config", "one.toml"]) == 0
    assert Path("one.toml").read_bytes() == b'base-url = "http://a/v1"\n'
    assert main(["run", "--config", "one.toml", "--save-config", "again.toml"]) == 0
    assert Path("again.toml").read_bytes() == Path("one.toml").read_bytes()
    # What the command line says replaces what the file says.
    assert main(["run", "--config", "one.toml", "--base-url", "http://c/v1", "--save-config", "two.toml"]) == 0
    assert Path("two.toml").read_bytes() == b'base-url = "http://c/v1"\n'
