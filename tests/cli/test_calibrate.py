"""`judge calibrate` as a user types it: what is printed and written, and the exit codes."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

import tests.calibration_world as worlds
from judge.calibrate.findings import Calibration
from judge.cli import main
from tests.conftest import PROJECT, complaint, printed, put

WORLD = worlds.items()
EVIL = ["a\tb", "a\nb", "\x1b[2J\x1b[31mred", "$(touch x)", "a|b", "<script>alert(1)</script>", "`x` *y* _z_",
        "\u202egnihtemos", "../../up", "constant", "=1+1", "x" * 190]  # fmt: skip


def calibrate(gold: Iterable[Path] | Path, *more: str | Path) -> int:
    files = [gold] if isinstance(gold, Path) else gold
    # An option of one value may be given only once.
    fast = [
        word for pair in zip(worlds.FAST[::2], worlds.FAST[1::2], strict=True) if pair[0] not in more for word in pair
    ]
    return main(["calibrate", "--gold", *map(str, files), *fast, *map(str, more)])


def stored(tmp_path: Path, noise: float = 0.1, world: list[worlds.Item] = WORLD, **gold: object) -> tuple[Path, Path]:
    """Gold and judgments."""
    return (
        worlds.write_gold(tmp_path / "gold.jsonl", worlds.gold_rows(world, **gold)),
        worlds.write_output(tmp_path / "run", world, {"server/m": worlds.labeled(world, noise, 2)}),
    )


@pytest.mark.parametrize(
    ("noise", "rule", "word", "code"),
    [
        (0.1, "wkappa.lo>=0.4", "TRUSTED", 0),
        (0.1, "wkappa.lo>=0.85", "INCONCLUSIVE", 1),
        (1.0, "wkappa.lo>=0.4", "NOT TRUSTED", 1),
    ],
)
def test_three_words_and_their_exit_codes(tmp_path, capsys, noise: float, rule: str, word: str, code: int) -> None:
    gold, judgments = stored(tmp_path, noise)
    assert calibrate(gold, "--judgments", judgments, "--require", rule) == code
    out = " ".join(capsys.readouterr().out.split())
    assert f"groundedness: {word}: server/m graded on all grades" in out
    assert f"Required: {rule}." in out
    # Without a requirement the word stands, and is no reason to fail.
    assert calibrate(gold, "--judgments", judgments) == 0


def test_json_is_everything_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, judgments = stored(tmp_path)
    found = msgspec.json.decode(printed(capsys, calibrate(gold, "--judgments", judgments, "--json")), type=Calibration)
    assert [one.judge for one in found.agreement] == ["server/m", "constant", "baseline/overlap"]
    assert found.verdicts[0].word == "TRUSTED"


@pytest.mark.long
@pytest.mark.usefixtures("pictures")
def test_every_promised_file_is_there_and_the_same_again(tmp_path: Path) -> None:
    gold, judgments = stored(tmp_path)
    out = tmp_path / "out"
    assert calibrate(gold, "--judgments", judgments, "--out", out) == 0
    first = worlds.contents(out)
    assert set(first) >= {
        "agreement.tsv", "agreement.svg", "agreement.png", "confusion.tsv", "confusion.svg", "confusion.png",
        "comparisons.tsv", "calibration_map.tsv", "systems.tsv", "diagnostics.tsv", "calibration.md",
        "calibration.json", "selection.json", "certificate.json",
    }  # fmt: skip
    assert calibrate(gold, "--judgments", judgments, "--out", out) == 0
    assert worlds.contents(out) == first
    # Another process, another hash seed, another order of reading: the same bytes.
    again = tmp_path / "again"
    assert calibrate(gold, "--judgments", judgments, "--out", again) == 0
    assert worlds.contents(again) == first


def test_a_certificate_of_calibrate_is_one_that_run_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worlds.write_pool(tmp_path / "pool", worlds.pool(WORLD))
    gold = worlds.write_gold(tmp_path / "gold.jsonl", worlds.gold_rows(WORLD))
    out = tmp_path / "cal"
    asking = ("--model", "baseline/overlap", "--prompt", "groundedness/graded", "--require", "wkappa.lo>=0.4")
    assert calibrate(gold, *asking, "--pool", tmp_path / "pool", "--out", out) == 0
    capsys.readouterr()
    run = ["run", "--runs", str(PROJECT / "examples" / "runs" / "harbor-grounded.json"), "--criteria", "groundedness",
           "--passages", str(PROJECT / "examples" / "passages.jsonl"), "--model", "baseline/overlap"]  # fmt: skip
    certificate = ["--certificate", str(out / "certificate.json")]
    shown = printed(capsys, main([*run, *certificate, "--out", str(tmp_path / "a")]))
    assert "CALIBRATED" in shown.replace("UNCALIBRATED", "")
    # The table of what is certified is no JSON.
    for option in ([], ["--dry-run"]):
        assert json.loads(printed(capsys, main([*run, *certificate, "--out", str(tmp_path / "a"), "--json", *option])))
    shown = printed(capsys, main([*run, *certificate, "--out", str(tmp_path / "b"), "--temperature", "1"]))
    assert "CALIBRATED" not in shown.replace("UNCALIBRATED", "")


def test_the_table_of_a_dry_run_is_the_last_that_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worlds.write_pool(tmp_path / "pool", worlds.pool(WORLD))
    gold = worlds.write_gold(tmp_path / "gold.jsonl", worlds.gold_rows(WORLD))
    assert main(["gold", "split", str(gold), "--test", "0.5", "--seed", "1", "--out", str(tmp_path / "split")]) == 0
    capsys.readouterr()
    asking = ["--model", "server/a", "--model", "server/b", "--base-url", "http://127.0.0.1:9/v1"]
    files = ["--pool", tmp_path / "pool", "--test", tmp_path / "split", "--out", tmp_path / "out"]
    dev = tmp_path / "split" / "dev.jsonl"
    assert calibrate(dev, *asking, "--prompt", "groundedness/graded", *files, "--dry-run") == 0
    facts, gap, table = capsys.readouterr().out.rpartition("\n\n")
    assert gap and "\ntest grades         at most 60 judgments on top, by the chosen judges\n" in facts
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["server/a", "server/b"]


def test_gold_of_columns_is_taken_as_blind_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {(one.turn_id, one.response_id): one.gold for one in WORLD}
    gold = worlds.write_columns(tmp_path / "nist.qrel", keys)
    judge = worlds.write_columns(tmp_path / "umbrela.txt", keys)
    assert "--criterion NAME is needed" in complaint(capsys, calibrate(gold, "--judgments", judge))
    assert calibrate(gold, "--judgments", judge, "--criterion", "relevance", "--scale", "0-3") == 0
    assert "taken as given blind" in " ".join(capsys.readouterr().out.split())
    assert calibrate(gold, "--judgments", judge, "--criterion", "my own") == 2
    assert "--scale LOW-HIGH is needed" in capsys.readouterr().err


# Strangers' names


def test_names_of_strangers_break_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = worlds.items(5, 4)
    worlds.write_pool(tmp_path / "run", worlds.pool(world))
    path = tmp_path / "run" / "judgments.jsonl"
    said = [worlds.judgment(one.turn_id, one.response_id, one.deserved, name) for one in world for name in EVIL]
    put(path, worlds.jsonl(said))
    gold = worlds.write_gold(
        tmp_path / "gold.jsonl",
        (
            worlds.row(one.turn_id, one.response_id, one.gold, assessor=name, run_id=EVIL[place % len(EVIL)])
            for place, one in enumerate(world)
            for name in EVIL
        ),
    )
    assert calibrate(gold, "--judgments", path, "--out", tmp_path / "out") == 0
    out, err = capsys.readouterr()
    assert not {"\x1b", "\u202e", "\t"} & set(out + err)
    for line in worlds.table(tmp_path / "out" / "agreement.tsv"):
        assert line["criterion"] == "groundedness"
    markdown = (tmp_path / "out" / "calibration.md").read_text(encoding="utf-8")
    assert "\x1b" not in markdown
    assert "<script>" not in markdown
    assert sorted(one.name for one in tmp_path.iterdir()) == ["gold.jsonl", "out", "run"]
    found = json.loads((tmp_path / "out" / "calibration.json").read_text(encoding="utf-8"))["agreement"]
    assert {one["judge"] for one in found if one["prompt"]} == {*EVIL, "baseline/overlap"}


@pytest.mark.parametrize(
    "prompt",
    [
        "groundedness/\u0000.md", "../../../etc/passwd", "x" * 5000 + "/y", "groundedness/" + "y" * 5000 + ".md", "/",
        "\n/\t",
    ],
)  # fmt: skip
def test_a_prompt_named_in_a_file_is_no_path(tmp_path: Path, capsys: pytest.CaptureFixture[str], prompt: str) -> None:
    gold, path = stored(tmp_path, world=WORLD[:5])
    said = [worlds.judgment(one.turn_id, one.response_id, one.gold, "m", prompt, digest="0" * 64) for one in WORLD[:5]]
    path.write_bytes(worlds.jsonl(said))
    assert "no prompt called" in complaint(capsys, calibrate(gold, "--judgments", path))


# Rubbish

RUBBISH = {
    "nothing": b"",
    "blank": b"\n\n \n",
    "nul": b"\x00" * 40,
    "nul inside": b"1_1 0 R00001 1\x00\n",
    "utf-16": "1_1 0 R00001 1\n".encode("utf-16"),
    "latin-1": "1_1 0 R00001é 1\n".encode("latin-1"),
    "half a gzip": gzip.compress(b"1_1 0 R00001 1\n" * 100, mtime=0)[:-9],
    "deep": b'{"turn_id":' + b"[" * 100_000,
    "a list": b"[]",
    "a number": b"17",
    "half an object": b'{"turn_id": "1_1", ',
    "a lone surrogate": b'{"turn_id": "\\ud800"}\n',
    "an enormous integer": b'{"turn_id": "1_1", "topic_id": "1", "criterion": "groundedness", "grade": 1' + b"0" * 5000
    + b', "assessor": "a", "response_id": "R00001"}\n',
    "a png": b"\x89PNG\r\n\x1a\n\x00\x00",
    "five columns": b"1_1 0 R00001 1 extra\n",
    "a fraction": b"1_1 0 R00001 1.5\n",
}  # fmt: skip


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH)
def test_rubbish_is_refused_in_every_place_a_file_may_be_given(tmp_path, capsys, content: bytes) -> None:
    gold, judgments = stored(tmp_path, world=WORLD[:5])
    bad = put(tmp_path / "bad.txt", content)
    (tmp_path / "judgments.jsonl").write_bytes(content)
    more = ["--criterion", "groundedness", "--out", tmp_path / "out"]
    assert calibrate([gold, bad], "--judgments", judgments, *more) == 2
    assert calibrate(gold, "--judgments", judgments, bad, *more) == 2
    assert calibrate(gold, "--judgments", judgments, "--pool", bad, *more) == 2
    assert calibrate(gold, "--judgments", judgments, "--test", bad, *more) == 2
    if content.strip():
        assert calibrate(gold, "--judgments", tmp_path / "judgments.jsonl", *more) == 2
        if content.strip() != b"\x00" * 40:
            assert calibrate(gold, "--judgments", judgments, "--families", bad, *more) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--judgments", "--pool", "--test", "--families", "--gold"])
@pytest.mark.parametrize("what", ["folder", "absent", "unnamed"])
def test_a_folder_or_nothing_in_place_of_a_file(tmp_path, capsys, option: str, what: str) -> None:
    gold, judgments = stored(tmp_path, world=WORLD[:5])
    (tmp_path / "folder").mkdir()
    given = {"folder": tmp_path / "folder", "absent": tmp_path / "absent", "unnamed": Path("x" * 5000)}[what]
    files = ["--judgments", judgments] if option != "--judgments" else []
    assert calibrate(gold, *files, option, given) in ((2, 3) if what == "unnamed" else (2,))
    assert "judge: " in capsys.readouterr().err


def test_one_item_one_topic_or_one_grade_is_little_and_no_crash(tmp_path: Path) -> None:
    for world in (
        WORLD[:1],
        WORLD[:2],
        [msgspec.structs.replace(one, gold=2, deserved=2) for one in WORLD[:12]],
        [msgspec.structs.replace(one, turn_id="7_1") for one in WORLD[:12]],
    ):
        gold, judgments = stored(tmp_path, world=world)
        assert calibrate(gold, "--judgments", judgments, "--require", "wkappa.lo>=0.4", "--out", tmp_path / "out") == 1
