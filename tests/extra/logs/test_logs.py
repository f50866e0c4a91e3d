"""Logs of inspect and promptfoo, written as these tools write them, as labels of judges beside gold."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from judge.ask.results import Label, read_labels
from judge.cli import main
from judge.errors import InputError
from tests.calibration_world import FAST
from tests.conftest import put, refused

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile


def sample(name: int | str, value: Any, epoch: int = 1, **metadata: str) -> dict[str, Any]:
    return {"id": name, "epoch": epoch, "metadata": metadata, "scores": {"graded": {"value": value}}}


def row(test: int, provider: Any, *passed: tuple[str, Any], **variables: str) -> dict[str, Any]:
    said = [{"pass": each, "score": 0.5, "assertion": {"type": "llm-rubric", "metric": name}} for name, each in passed]
    result = {"gradingResult": {"componentResults": said} if said else None, "vars": variables}
    return {"testIdx": test, "promptIdx": 0, "provider": provider} | result


HEADER = {"eval": {"model": "mock/a"}}
SAMPLES = [
    *(sample(7, "C"), sample(7, "I", 2), sample("x", "N")), sample(9, float("nan"), turn_id="9_1", response_id="R1")
]  # fmt: skip
INSPECT = (
    Label("7", "mock/a", 1), Label("7", "mock/a", 0, sample=1), Label("x", "mock/a", None, "unable"),
    Label("9_1", "R1", None, "unable"),
)  # fmt: skip


def zipped(path: Path, entries: dict[str, Any], method: int = zipfile.ZIP_ZSTANDARD) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, value in entries.items():
            archive.writestr(name, json.dumps(value))
    return path


def test_each_form_of_inspects_logs_gives_the_same_labels(tmp_path: Path) -> None:
    entries = {"header.json": HEADER, "reductions.json": [], "samples/7_epoch_1/events/0.json": []}
    names = ("7_epoch_1/sample", "7_epoch_2", "x_epoch_1", "9_epoch_1")
    entries |= {f"samples/{name}.json": of for name, of in zip(names, SAMPLES, strict=True)}
    whole = put(tmp_path / "log.json", json.dumps({**HEADER, "samples": SAMPLES, "results": {"scores": []}}))
    packed = [
        zipped(tmp_path / f"{method}.eval", entries, method) for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD)
    ]
    for path in (whole, *packed):
        (found,) = read_labels(path)
        assert (found.judge, found.prompt, found.labels) == ("inspect/graded", None, INSPECT)
    values = {**HEADER, "samples": [sample(1, {"b": 2.0, "a": True})]}
    assert [(of.judge, of.labels[0].grade) for of in read_labels(put(tmp_path / "two.json", values))] == [
        ("inspect/graded/a", 1), ("inspect/graded/b", 2)
    ]  # fmt: skip


def test_what_an_assertion_of_promptfoo_passes_is_1_and_a_failed_call_is_missing(tmp_path: Path) -> None:
    rows = [
        row(0, {"id": "openai:m"}, ("clear", True), ("clear", False)), row(0, {"id": "openai:m"}, ("clear", False)),
        row(1, "openai:m", turn_id="1_1", response_id="R2"),
    ]  # fmt: skip
    for results in (rows, {"version": 3, "results": rows}):
        first, second = read_labels(put(tmp_path / "log.json", {"evalId": "e", "results": results}))
        assert (first.judge, second.judge) == ("promptfoo/clear", "promptfoo/clear#2")
        missing = Label("1_1", "R2", None, "provider_error")
        assert first.labels == (Label("0", "openai:m#0", 1), Label("0", "openai:m#0", 0, sample=1), missing)
        assert second.labels == (Label("0", "openai:m#0", 0), missing)


@pytest.mark.parametrize(("word", "grade"), [("true", 1), ("False", 0), (" false ", 0)])
def test_a_word_of_an_assertion_is_read(tmp_path: Path, word: str, grade: int) -> None:
    rows = [row(0, "openai:m", ("clear", word))]
    (labels,) = read_labels(put(tmp_path / "log.json", {"evalId": "e", "results": rows}))
    assert labels.labels[0].grade == grade


def test_an_entry_that_understates_its_size_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"header.json": HEADER, "samples/1.json": " " * 200_000}
    path = zipped(tmp_path / "a.eval", entries, zipfile.ZIP_DEFLATED)
    size = (200_002).to_bytes(4, "little")
    assert path.read_bytes().count(size) == 2
    path.write_bytes(path.read_bytes().replace(size, (100).to_bytes(4, "little")))
    monkeypatch.setattr("judge.extra.logs.largest_file", lambda: 5000)
    with pytest.raises(InputError, match=r"unpacks to more than|damaged log"):
        read_labels(path)


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in (HEADER, sample(1, 1), sample(1, 0)):
            archive.writestr("header.json" if content is HEADER else "samples/1.json", json.dumps(content))
    with pytest.raises(InputError, match=r"has two entries samples/1\.json"):
        read_labels(path)


def test_what_is_no_grade_and_no_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = put(tmp_path / "bad.json", {**HEADER, "samples": [sample(1, "P"), sample("a b", 1), sample(2, 3)]})
    assert [(each.path, each.message) for each in refused(read_labels, bad, {0, 1})] == [
        ("samples[0]", "inspect/graded: found 'P', expected one of 0, 1"),
        ("samples[1]", "ids 'a b', 'mock/a': expected no white space"),
        ("samples[2]", "inspect/graded: found 3, expected one of 0, 1"),
    ]
    bomb = {"header.json": HEADER, **{f"samples/{k}.json": " " * 900 for k in range(9)}}
    monkeypatch.setattr("judge.extra.logs.largest_file", lambda: 5000)
    for path, said in (
        (put(tmp_path / "a.json", {"samples": [{}]}), "no log of inspect or promptfoo: KeyError: 'eval'"),
        (put(tmp_path / "b.json", {"results": []}), "nothing is scored in this log"),
        (put(tmp_path / "c.json", b"PK\x03\x04"), "damaged log"),
        (put(tmp_path / "d.json", {"other": 1}), "1 line with problems"),
        (zipped(tmp_path / "e.eval", {"_journal/start.json": HEADER}), r"expected header\.json"),
        (zipped(tmp_path / "f.eval", bomb), "unpacks to more than"),
    ):
        with pytest.raises(InputError, match=said):
            read_labels(path)


NO_GRADES = ["P", 0.5, "0.5", "yes", [1, 0], {"x": {"y": 1}}, "", "2/3", "1e3", "٣", 10**12]


@pytest.mark.parametrize("value", NO_GRADES)
def test_one_value_that_is_no_grade_costs_its_sample_where_the_user_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: object
) -> None:
    samples = [sample(f"q{k}_1", "CI"[k % 2]) for k in range(12)]
    samples[3] = sample("q3_1", value)
    # A scorer of several values is several judges, of which the odd one is left out.
    judge = "inspect/graded/x" if isinstance(value, dict) else "inspect/graded"
    log = put(tmp_path / "log.json", {**HEADER, "samples": samples})
    gold = put(tmp_path / "gold.qrel", "".join(f"q{k}_1 0 mock/a {int(k % 3 == 0)}\n" for k in range(12)))
    call = ["calibrate", "--gold", gold, "--judgments", log, "--criterion", "correct", "--scale", "0-1", *FAST]
    assert main([*map(str, call), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "bad_label at samples[3]: " in told
    assert "--off-scale missing counts what is no grade of the scale as missing" in told
    assert main([*map(str, call), "--off-scale", "missing", "--out", str(tmp_path / "out")]) == 0
    assert f"1 of {'1 label' if isinstance(value, dict) else '12 labels'} by {judge} are off the scale" in (
        " ".join("".join(capsys.readouterr()).split())
    )
    labels = {labels.judge: labels.labels for labels in read_labels(log, lenient=True)}[judge]
    assert Label("q3_1", "mock/a", None, "off_scale") in labels
    # What has no ids is no sample, whatever its value.
    put(log, {**HEADER, "samples": [*samples, sample("a b", value)]})
    assert [each.path for each in refused(read_labels, log, lenient=True)] == ["samples[12]"]


def test_a_comparison_takes_a_log_whose_odd_values_count_as_missing(tmp_path: Path, capsys) -> None:
    log = put(tmp_path / "log.json", {**HEADER, "samples": [sample(f"q{k}_1", "CIP"[k % 3]) for k in range(12)]})
    other = put(tmp_path / "other.qrel", "".join(f"q{k}_1 0 mock/a {int(k % 3 == 0)}\n" for k in range(12)))
    call = ["evaluate", "qrels", str(log), str(other)]
    assert main([*call, "--scale", "0-1"]) == 2
    capsys.readouterr()
    for scale in (["--scale", "0-1"], []):
        assert main([*call, *scale, "--off-scale", "missing"]) == 0
        assert "4 of 12 grades off the scale, which count as missing" in " ".join("".join(capsys.readouterr()).split())


def test_a_log_is_calibrated_against_gold_in_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = put(tmp_path / "log.json", {**HEADER, "samples": [sample(f"q{k}_1", "CI"[k % 2]) for k in range(12)]})
    gold = put(tmp_path / "gold.qrel", "".join(f"q{k}_1 0 mock/a {int(k % 3 == 0)}\n" for k in range(12)))
    call = ["calibrate", "--gold", gold, "--judgments", log, "--criterion", "correct", "--scale", "0-1", *FAST]
    assert main([*map(str, call), "--out", str(tmp_path / "out")]) == 0
    assert "inspect/graded" in capsys.readouterr().out
