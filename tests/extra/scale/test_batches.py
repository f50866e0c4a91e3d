"""Requests as files, and batch APIs, from the command line: nothing is asked twice, nothing is lost, strangers' lines
are refused."""

import contextlib
import fcntl
import gzip
import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.extra.scale import batches, write_requests
from judge.extra.scale.service import AGAIN, OpenAIBatches
from judge.jobs.run_inputs import Plan, RunInputs
from judge.judges.chat import longest_reply
from tests.batch_server import BatchServer, answered, good_text, start_batch_server
from tests.conftest import PROJECT, complaint, json_lines, on_stderr, put

Capture = pytest.CaptureFixture[str]

EXAMPLE = [
    *("--runs", str(PROJECT / "examples/runs/harbor-grounded.json"), "--topics", str(PROJECT / "examples/topics.json")),
    *("--passages", str(PROJECT / "examples/passages.jsonl")),
]
NOWHERE, KEY = "http://127.0.0.1:9/v1", "sk-test-0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    for name, value in (("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY), ("NO_PROXY", "127.0.0.1")):
        monkeypatch.setenv(name, value)
    with start_batch_server() as running:
        yield running


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    return put(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def counts(capsys: Capture) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def requests(tmp_path: Path, number: int, *more: str, model: str = "server/m", url: str = NOWHERE) -> int:
    out = ["--out", str(tmp_path / "out"), "--requests", str(tmp_path / f"round-{number}")]
    return main(["requests", *EXAMPLE, "--model", model, "--base-url", url, *out, *more])


def asked_of(tmp_path: Path, *more: str, number: int = 1, **judge: str) -> list[dict[str, Any]]:
    """What a round of requests asks, in one file."""
    assert requests(tmp_path, number, *more, **judge) == 0
    return json_lines(tmp_path / f"round-{number}/requests-00001.jsonl")


def take(tmp_path: Path, number: int, *files: Path | str) -> int:
    folders = ["--requests", str(tmp_path / f"round-{number}"), "--out", str(tmp_path / "out")]
    return main(["completions", "import", *map(str, files), *folders, "--json"])


def taken_of(capsys: Capture, tmp_path: Path, number: int, back: Path | list[dict[str, Any]], code: int = 0) -> Any:
    """What the import of an answered round says."""
    capsys.readouterr()
    assert take(tmp_path, number, back if isinstance(back, Path) else write(tmp_path / "back.jsonl", back)) == code
    return counts(capsys)


def test_rounds_of_requests_end_in_the_results_of_a_run(tmp_path: Path, capsys: Capture) -> None:
    assert requests(tmp_path, 1, "--shards", "3") == 0
    shards = sorted((tmp_path / "round-1").glob("requests-*.jsonl"))
    asked = [line for shard in shards for line in json_lines(shard)]
    assert len(shards) == 3 and len({line["custom_id"] for line in asked}) == len(asked) > 9
    # Out of order, one twice; one is unreadable, one has expired, one is of another model, and one is missing.
    back = [answered(line) for line in asked]
    back[0]["response"]["body"]["choices"][0]["message"]["content"] = "no idea"
    expired = {"code": "batch_expired", "message": "too late"}
    back[1] = {"id": "b", "custom_id": asked[1]["custom_id"], "response": None, "error": expired}
    back[2]["response"]["body"]["model"] = "other"
    back = [*back[:3], *back[4:], back[5], answered({**asked[0], "custom_id": "nobody"})]
    random.Random(7).shuffle(back)
    taken = taken_of(capsys, tmp_path, 1, back, 1)
    assert (taken["taken"], taken["repeated"], taken["open"]) == (len(asked) - 3, 1, 3)
    assert taken["failed"] == {"batch_expired: too late": 1}
    nobody = "'nobody' is the id of no question of these requests"
    assert sorted(entry[1] for entry in taken["refused"]) == [nobody, "answered by 'other', asked was m"]
    # Taken again, nothing changes.
    again = taken_of(capsys, tmp_path, 1, tmp_path / "back.jsonl", 1)
    assert (again["taken"], again["repeated"], again["open"]) == (0, len(asked) - 2, 3)
    # The next round has what is missing, and the repair of what was unreadable.
    rest = asked_of(tmp_path, number=2)
    ids = {line["custom_id"] for line in rest}
    assert ids >= {asked[number]["custom_id"] for number in (1, 2, 3)} and len(rest) == 4
    (repair,) = [line for line in rest if line["custom_id"] not in {line["custom_id"] for line in asked}]
    assert [message["role"] for message in repair["body"]["messages"]][-2:] == ["assistant", "user"]
    assert taken_of(capsys, tmp_path, 2, [answered(line) for line in rest])["open"] == 0
    # Nothing is left to write, and a run asks nobody: the address has no server.
    assert requests(tmp_path, 3) == 0 and not (tmp_path / "round-3").exists()
    server = ["--model", "server/m", "--base-url", NOWHERE]
    assert main(["run", *EXAMPLE, *server, "--out", str(tmp_path / "out")]) == 0
    judged = json_lines(tmp_path / "out/judgments.jsonl")
    assert {judgment["criterion"] for judgment in judged} == {"groundedness", "naturalness"}
    assert sum(judgment.get("repaired", False) for judgment in judged) == 1


def test_an_engine_that_repeats_another_request_is_refused(tmp_path: Path, capsys: Capture) -> None:
    asked = asked_of(tmp_path)
    back = [{**answered(line), "body": line["body"], "request": "of the engine's own form"} for line in asked]
    back[0]["body"] = {**asked[0]["body"], "temperature": 1.0}
    taken = taken_of(capsys, tmp_path, 1, back, 1)
    assert (taken["taken"], len(taken["refused"])) == (len(asked) - 1, 1)
    assert taken["refused"][0][1] == "the request that it repeats is not the one that was written"


def test_a_round_under_way_is_not_written_again(tmp_path: Path, capsys: Capture) -> None:
    assert requests(tmp_path, 1) == 0
    assert "nothing came back from there yet" in complaint(capsys, requests(tmp_path, 2))
    asked = json_lines(tmp_path / "round-1/requests-00001.jsonl")
    take(tmp_path, 1, write(tmp_path / "back.jsonl", [answered(line) for line in asked[:3]]))
    assert requests(tmp_path, 2) == 0
    assert len(json_lines(tmp_path / "round-2/requests-00001.jsonl")) == len(asked) - 3
    # A folder that was never handed over is removed, and no longer stands in the way.
    shutil.rmtree(tmp_path / "round-2")
    assert requests(tmp_path, 3) == 0


def test_requests_that_no_text_allows_are_not_called_answered(tmp_path: Path, capsys: Capture) -> None:
    run = json.loads(Path(EXAMPLE[1]).read_bytes())
    for entry in (
        each for turn in run["turns"] for response in turn["responses"] for each in response["passage_provenance"]
    ):
        entry.pop("text", None)
    command = ["requests", "--runs", str(put(tmp_path / "run.json", json.dumps(run))), *EXAMPLE[2:4]]
    judge = ["--criteria", "groundedness", "--model", "server/m", "--base-url", NOWHERE]
    assert main([*command, *judge, "--out", str(tmp_path / "out"), "--requests", str(tmp_path / "round-1")]) == 1
    assert "nothing can be judged: no judgment has all texts of its passages" in capsys.readouterr().err


def test_empty_lines_of_what_comes_back_have_a_bound(tmp_path: Path, capsys: Capture, monkeypatch) -> None:
    asked_of(tmp_path)
    monkeypatch.setattr(batches, "_MOST_EMPTY", 3)
    path = put(tmp_path / "back.jsonl.gz", gzip.compress(b"\n" * 4))
    assert f"{path}: more than 3 empty lines, expected a line a request" in complaint(capsys, take(tmp_path, 1, path))


def test_a_model_under_another_name_is_taken_where_it_is_named(tmp_path: Path, capsys: Capture) -> None:
    back = [answered(line) for line in asked_of(tmp_path)]
    for line in back:
        line["response"]["body"]["model"] = "behind-the-alias"
    folders = ["--requests", str(tmp_path / "round-1"), "--out", str(tmp_path / "out")]
    command = ["completions", "import", str(write(tmp_path / "back.jsonl", back)), *folders]
    assert main(command) == 1 and main([*command, "--answered-by", "behind-the-alias"]) == 0


def test_a_line_that_comes_three_times_is_paid_for_once(tmp_path: Path, capsys: Capture) -> None:
    back = answered(asked_of(tmp_path, "--price", "1/2", model="openai/gpt-4.1-mini")[0])
    taken = taken_of(capsys, tmp_path, 1, [back, back, back])
    # 1,000 tokens in and 100 out, at half of $1 and $2 per million.
    assert (taken["taken"], taken["repeated"]) == (1, 2)
    assert taken["cost"] == pytest.approx((1000 * 0.5 + 100 * 1.0) / 1e6)


def test_an_import_that_is_cut_short_goes_on(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_of(tmp_path)
    back = write(tmp_path / "back.jsonl", [answered(line) for line in asked])
    monkeypatch.setattr(batches, "_TOGETHER", 4)
    with monkeypatch.context() as cut:
        made, real = list[str](), batches.new_row

        def cut_short(digest: str, *row: Any) -> Any:
            made.append(digest)
            assert len(made) < 7, "cut short"
            return real(digest, *row)

        cut.setattr(batches, "new_row", cut_short)
        with pytest.raises(AssertionError, match="cut short"):
            take(tmp_path, 1, back)
    taken = taken_of(capsys, tmp_path, 1, back)
    assert (taken["taken"], taken["repeated"], taken["open"]) == (len(asked) - 4, 4, 0)


def test_what_another_version_handed_over_is_refused(tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "round-1/questions.sqlite")) as file:
        file.execute("PRAGMA user_version = 0")
    assert "of another version of judge" in complaint(capsys, take(tmp_path, 1, write(tmp_path / "back.jsonl", [])))


def test_what_cannot_be_handed_over_is_refused(tmp_path: Path, capsys: Capture) -> None:
    folders = ["--out", str(tmp_path / "out"), "--requests", str(tmp_path / "round-1")]
    assert main(["requests", *EXAMPLE, "--model", "baseline/overlap", "--criteria", "groundedness", *folders]) == 2
    assert "has no batch format" in capsys.readouterr().err
    assert requests(tmp_path, 1, "--max-cost", "1", "--price", "1/2") == 2
    assert not list(tmp_path.iterdir())
    assert requests(tmp_path, 1) == 0
    assert "each round of requests has a folder of its own" in complaint(capsys, requests(tmp_path, 1))
    assert main(["completions", "import", "none.jsonl", "--requests", str(tmp_path), "--out", str(tmp_path / "o")]) == 2


@pytest.mark.parametrize("option", ["recheck", "engine", "address", "workers"])
def test_options_for_calls_are_those_of_a_run_alone(tmp_path: Path, capsys: Capture, option: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        requests(tmp_path, 1, f"--{option}", "2")
    assert f"unrecognized arguments: --{option}" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_plan_whose_calls_another_makes_or_that_asks_twice_is_refused(tmp_path: Path) -> None:
    plan = Plan(runs=PROJECT / "examples/runs", model="server/m", base_url=NOWHERE, out=tmp_path / "out")
    prepared = RunInputs(plan, keys=False)
    for field, value in (("engine", "ray"), ("recheck", "2%")):
        prepared.plan = plan.with_values(**{field: value})
        with pytest.raises(UsageError, match=f"--{field}"):
            write_requests(prepared, tmp_path / "round-1")
    assert not list(tmp_path.iterdir())


def test_requests_are_told_as_json(tmp_path: Path, capsys: Capture) -> None:
    number, told = len(asked_of(tmp_path, "--json")), counts(capsys)
    (shard,) = told["shards"]
    assert (told["folder"], told["requests"]) == (str(tmp_path / "round-1"), number)
    assert (shard["name"], shard["lines"]) == ("requests-00001.jsonl", number)


def test_what_a_kill_left_of_a_round_is_made_anew(tmp_path: Path) -> None:
    left = tmp_path / ".round-1.tmp"
    put(left / "questions.sqlite", b"half")
    assert requests(tmp_path, 1) == 0
    assert not left.exists() and (tmp_path / "round-1/questions.sqlite").stat().st_size > 1000


def test_rubbish_is_refused_line_by_line(tmp_path: Path, capsys: Capture) -> None:
    first = asked_of(tmp_path)[0]["custom_id"]
    rubbish = [b"\xff\x00", b"{", b"[]", b"null", b"{}", b'{"custom_id": 3}', b"\x1b]0;x\x07"]
    strange = ["3", '{"status_code":200,"body":[]}', '{"status_code":200,"body":{"choices":[]}}', '{"status_code":"x"}']
    rubbish += [f'{{"custom_id":"{first}","response":{each}}}'.encode() for each in strange]
    (tmp_path / "back.jsonl").write_bytes(b"\n".join(rubbish))
    taken = taken_of(capsys, tmp_path, 1, tmp_path / "back.jsonl", 1)
    assert (taken["taken"], taken["lines"]) == (0, len(rubbish))
    assert len(taken["refused"]) + sum(taken["failed"].values()) == len(rubbish)
    for damaged in (b"\x1f\x8b\x08", gzip.compress(b"{}" * 900)[:-12] + b"rubbish"):
        (tmp_path / "half.gz").write_bytes(damaged)
        assert "half.gz: cannot be read" in complaint(capsys, take(tmp_path, 1, tmp_path / "half.gz"))


def test_files_hold_no_more_lines_than_asked(tmp_path: Path) -> None:
    assert requests(tmp_path, 1, "--shard-lines", "4") == 0
    sizes = [len(json_lines(path)) for path in sorted((tmp_path / "round-1").glob("requests-*.jsonl"))]
    assert set(sizes[:-1]) == {4} and 0 < sizes[-1] <= 4
    shutil.rmtree(tmp_path / "round-1")
    # As many files as asked, none larger than another by more than one.
    assert requests(tmp_path, 1, "--shards", "7") == 0
    even = [len(json_lines(path)) for path in sorted((tmp_path / "round-1").glob("requests-*.jsonl"))]
    assert len(even) == 7 and sum(even) == sum(sizes) and max(even) - min(even) <= 1


def batch(action: str, tmp_path: Path, *more: str) -> int:
    out = ["--out", str(tmp_path / "out")] if action == "collect" else []
    return main(["batch", action, str(tmp_path / "round-1"), *out, *more])


def end(server: BatchServer, name: str, **more: object) -> None:
    """End a batch of OpenAI's interface: every second line fails, and the errors have a file of their own."""
    asked = server.requests(name)
    sorry = {"status_code": 500, "body": {"error": {"message": "sorry"}}}
    failed = [{"id": "b", "custom_id": line["custom_id"], "response": sorry} for line in asked[1::2]]
    output, errors = server.put([answered(line) for line in asked[::2]]), server.put(failed)
    server.batches[name] |= {"status": "completed", "output_file_id": output, "error_file_id": errors, **more}


def test_batches_are_submitted_once_and_collected(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, "--shards", "2", model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    # The first batch begins, but its answer is lost; the second submission finds it.
    server.lose_reply = True
    assert batch("submit", tmp_path) == 3
    assert batch("submit", tmp_path) == 0 and batch("submit", tmp_path) == 0
    assert server.created == 2
    capsys.readouterr()
    for action, code in (("submit", 0), ("status", 3)):
        assert batch(action, tmp_path, "--json") == code
        assert len(json.loads(capsys.readouterr().out)) == 2
    end(server, "batch_1")
    asked = {name: server.requests(name) for name in ("batch_1", "batch_2")}
    capsys.readouterr()
    assert batch("collect", tmp_path, "--json") == 3
    taken = counts(capsys)["taken"]
    assert taken["taken"] == len(asked["batch_1"][::2])
    assert taken["failed"] == {"status 500: sorry": len(asked["batch_1"][1::2])}
    # At another address than OpenAI's no list price holds, so nothing is half of it.
    assert taken["cost"] is None
    # Completed, but the provider does not name a file yet.
    none = {"output_file_id": None, "error_file_id": None, "request_counts": {"total": 9, "completed": 9, "failed": 0}}
    end(server, "batch_2", **none)
    assert batch("collect", tmp_path) == 3
    assert "does not say yet what came of it" in capsys.readouterr().err
    # The errors are named before the output: nothing is fetched until both are there.
    end(server, "batch_2", output_file_id=None, request_counts={"total": 9, "completed": 5, "failed": 4})
    assert batch("collect", tmp_path) == 3
    # Every request of the second failed: it is completed without an output.
    end(server, "batch_2", output_file_id=None, request_counts={"total": 9, "completed": 0, "failed": 9})
    capsys.readouterr()
    assert batch("collect", tmp_path, "--json") == 0
    assert counts(capsys)["taken"]["taken"] == 0
    rest = asked_of(tmp_path, number=2, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    assert len(rest) == len(asked["batch_1"][1::2]) + len(asked["batch_2"])


@pytest.mark.parametrize("spoilt", ["cut", "empty", "page"])
def test_a_spoilt_download_is_fetched_again(server: BatchServer, tmp_path, capsys, monkeypatch, spoilt: str) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    batch("submit", tmp_path)
    asked = server.requests("batch_1")
    output = server.put([answered(line) for line in asked])
    counted = {"total": len(asked), "completed": len(asked), "failed": 0}
    server.batches["batch_1"] |= {"status": "completed", "output_file_id": output, "request_counts": counted}
    fetch = OpenAIBatches.fetch

    def spoil(self: OpenAIBatches, of: Any, output: str, into: Path) -> None:
        fetch(self, of, output, into)
        whole = into.read_bytes()
        into.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "page": b"<html>busy</html>\n"}[spoilt])

    with monkeypatch.context() as patched:
        patched.setattr(OpenAIBatches, "fetch", spoil)
        assert batch("collect", tmp_path) == 3
    assert f"of {len(asked)} answers came; the same command fetches them again" in capsys.readouterr().err
    assert batch("collect", tmp_path, "--json") == 0
    assert counts(capsys)["taken"]["taken"] == len(asked)


def test_two_processes_do_not_submit_the_same_files(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    with (tmp_path / "round-1/.batches.lock").open("wb") as held:
        fcntl.flock(held.fileno(), fcntl.LOCK_EX)
        assert batch("submit", tmp_path) == batch("status", tmp_path) == 3
    assert "another `judge batch` works on it" in capsys.readouterr().err
    assert server.created == 0 and batch("submit", tmp_path) == 0


def test_a_file_that_the_provider_refuses_is_told(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    batch("submit", tmp_path)
    errors = {"object": "list", "data": [{"code": "invalid_json", "line": 3, "message": "not JSON", "param": None}]}
    server.batches["batch_1"] |= {"status": "failed", "errors": errors}
    assert "refused by the provider: line 3: invalid_json: not JSON" in on_stderr(capsys, batch("status", tmp_path), 1)


def test_a_refusal_names_no_key(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    server.refuse = {"status": 401, "message": f"Incorrect API key provided: {KEY}"}
    err = on_stderr(capsys, batch("submit", tmp_path), 3)
    assert "Incorrect API key" in err and KEY not in err and "Traceback" not in err


@pytest.mark.parametrize("model", ["openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-5"])
def test_no_redirect_is_followed(server: BatchServer, tmp_path: Path, capsys: Capture, model: str) -> None:
    requests(tmp_path, 1, model=model, url=f"{server.url}/v1")
    with start_batch_server() as other:
        server.refuse = {"status": 307, "location": f"{other.url}/v1/files"}
        assert batch("submit", tmp_path) == 3
        # The address is named before anything is sent there.
        submitting, refused = capsys.readouterr().err.splitlines()[-2:]
        assert submitting == f"submitting to {server.url}/v1"
        assert f"redirects to {other.url}, and judge follows no redirect" in refused
        assert not other.files and not other.created
    assert not server.files and batch("submit", tmp_path) == 0


def test_only_files_of_the_folder_are_handed_over(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    folder, secret = tmp_path / "round-1", tmp_path / "secret"
    secret.write_text("secret")
    (folder / ".batches.lock").symlink_to(tmp_path / "made")
    assert ".batches.lock: cannot be used as a lock" in complaint(capsys, batch("submit", tmp_path))
    assert not (tmp_path / "made").exists()
    (folder / ".batches.lock").unlink()
    written = json.loads((folder / "requests.json").read_bytes())
    fields = {"judge": "openai/gpt-4.1-mini", "requests": written["requests"]}
    for strange in (
        {**fields, "file": str(secret)},
        {**fields, "file": "../secret"},
        {**fields, "file": "requests-00001.jsonl", "fetched": ["../secret"]},
        {**fields, "file": "requests-00001.jsonl", "judge": "openai/other"},
        {**fields, "file": "requests-00001.jsonl", "requests": 10**9},
    ):
        (folder / "batches.json").write_text(json.dumps([strange]))
        for action in ("submit", "status"):
            assert "names other files or requests than those" in complaint(capsys, batch(action, tmp_path))
    # Whoever sends a folder may write all of its files.
    (folder / "requests.json").write_text(json.dumps({"files": [{**written["files"][0], "name": "../secret"}]}))
    (folder / "batches.json").unlink()
    assert batch("submit", tmp_path) == 2
    (folder / "requests.json").write_text(json.dumps(written))
    (folder / "requests-00001.jsonl").unlink()
    assert batch("submit", tmp_path) == batch("submit", tmp_path / "none") == 2
    assert "requests-00001.jsonl: no such file; expected what" in capsys.readouterr().err
    (folder / "requests-00001.jsonl").symlink_to(secret)
    assert "requests-00001.jsonl: no such file; " in complaint(capsys, batch("submit", tmp_path)) and not server.files
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("model", ["openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-5"])
def test_no_more_is_fetched_than_was_asked_for(server: BatchServer, tmp_path, capsys, model: str) -> None:
    number = len(asked_of(tmp_path, "--max-tokens", "16", "--limit", "1", model=model, url=f"{server.url}/v1"))
    batch("submit", tmp_path)
    most = number * longest_reply(16)
    server.files["file-9"] = server.results["batch_1"] = b"{}\n" * (most // 3 + 1)
    ended = {"status": "completed", "output_file_id": "file-9", "processing_status": "ended", "results_url": "there"}
    server.batches["batch_1"] |= ended
    assert batch("collect", tmp_path) == 3
    assert f"longer than {most:,} bytes" in capsys.readouterr().err
    assert not [path for path in (tmp_path / "round-1").iterdir() if "output" in path.name]


@pytest.mark.parametrize(
    ("model", "missing"), [("openai/gpt-4.1-mini", "status"), ("anthropic/claude-x", "processing_status")]
)
def test_an_answer_of_no_batch_service_is_told(server: BatchServer, tmp_path, capsys, model: str, missing: str) -> None:
    requests(tmp_path, 1, model=model, url=f"{server.url}/v1")
    assert batch("submit", tmp_path) == 0
    del server.batches["batch_1"][missing]
    assert batch("status", tmp_path) == 3
    assert f"{server.url}/v1: no reply of a batch service: it has no `{missing}`" in capsys.readouterr().err
    server.batches["batch_1"] = b"[" * 100_000
    assert "/batch_1: no reply of a batch service: " in on_stderr(capsys, batch("status", tmp_path), 3)


def test_a_batch_that_was_begun_is_found_among_many(server: BatchServer, tmp_path: Path) -> None:
    server.batches |= {f"other-{number}": {"id": f"other-{number}", "input_file_id": "file-x"} for number in range(150)}
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    server.lose_reply = True
    assert batch("submit", tmp_path) == 3 and batch("submit", tmp_path) == 0
    assert server.created == 1


def test_a_reply_with_half_an_emoji_or_nan_is_taken(tmp_path: Path, capsys: Capture) -> None:
    back = answered(asked_of(tmp_path)[0])
    back["response"]["body"]["choices"][0]["message"]["content"] += "\ud83d"
    back["response"]["body"]["choices"][0]["logprobs"] = {"content": float("nan")}
    assert taken_of(capsys, tmp_path, 1, [back])["taken"] == 1


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "server/m"])
def test_every_line_of_a_batch_says_how_much_to_think(server: BatchServer, tmp_path: Path, model: str) -> None:
    asked = asked_of(tmp_path, "--reasoning-effort", "low", model=model, url=server.url)
    assert {(line["body"]["reasoning_effort"], line["body"]["max_tokens"]) for line in asked} == {("low", 8192)}
    (plain, *_) = asked_of(tmp_path / "plain", model=model, url=server.url)
    assert "reasoning_effort" not in plain["body"] and plain["body"]["max_tokens"] == 1024


def test_batches_that_cannot_say_how_much_to_think_are_refused(server: BatchServer, tmp_path, capsys) -> None:
    code = requests(tmp_path, 1, "--reasoning-effort", "low", model="anthropic/claude-sonnet-4-5", url=server.url)
    refusal = "--reasoning-effort: the anthropic batches of litellm/anthropic/claude-sonnet-4-5 have no such parameter"
    assert refusal in complaint(capsys, code)
    assert not (tmp_path / "round-1").exists()


def messages(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Anthropic's results for the requests of a batch: the worst grade each."""
    rows = []
    for line in asked:
        text = {"type": "text", "text": good_text(line["params"])}
        usage = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 50}
        about = {"type": "message", "model": "claude-sonnet-4-5-20250929", "stop_reason": "end_turn"}
        message = {**about, "content": [text], "usage": usage}
        rows.append({"custom_id": line["custom_id"], "result": {"type": "succeeded", "message": message}})
    return rows


def finish(server: BatchServer, name: str, rows: list[dict[str, Any]]) -> None:
    """End a batch of Anthropic's interface with these results."""
    server.results[name] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    counted = {"succeeded": len(rows)}
    server.batches[name] |= {"processing_status": "ended", "results_url": "there", "request_counts": counted}


def test_an_account_of_many_batches_is_searched_as_far_as_the_file_is_old(server, tmp_path, capsys) -> None:
    """Among 6,000 batches that are older than the file; then nothing was taken of a second one."""
    server.batches |= {f"old-{n}": {"id": f"old-{n}", "input_file_id": "file-x", "created_at": 0} for n in range(6000)}
    for name, fault in (("first", "lose_reply"), ("second", "drop_batch")):
        requests(tmp_path / name, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
        begun = server.created
        setattr(server, fault, True)
        assert batch("submit", tmp_path / name) == 3
        assert batch("submit", tmp_path / name) == 0
        assert server.created == begun + 1


def test_what_an_older_version_left_half_submitted_is_refused(server: BatchServer, tmp_path, capsys) -> None:
    requests(tmp_path, 1, model="openai/gpt-4.1-mini", url=f"{server.url}/v1")
    left = {
        "file": "requests-00001.jsonl",
        "judge": "openai/gpt-4.1-mini",
        "requests": 32,
        "began": "2026-11-28T16:00Z",
    }
    put(tmp_path / "round-1/batches.json", json.dumps([left]))
    assert "not a folder that `judge requests` wrote" in complaint(capsys, batch("submit", tmp_path))
    assert server.created == 0


OTHERS = ("--criteria", "completeness", "conciseness")
"""As many questions about the example as by default, and none of them the same."""


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_no_clock_says_whether_a_submission_was_taken(server: BatchServer, tmp_path, hours: int) -> None:
    """The provider's clock is an hour behind ours, right, or an hour ahead; an older batch has as many requests."""
    server.clock = timedelta(hours=hours)
    for name, more in (("theirs", OTHERS), ("ours", ())):
        requests(tmp_path / name, 1, *more, model="anthropic/claude-sonnet-4-5", url=server.url)
    assert batch("submit", tmp_path / "theirs") == 0
    server.lose_reply = True
    assert batch("submit", tmp_path / "ours") == 3
    assert batch("submit", tmp_path / "ours") == 0
    assert server.created == 2
    [submitted] = json.loads((tmp_path / "ours/round-1/batches.json").read_bytes())
    assert submitted["batch_id"] == "batch_2"


def test_a_batch_of_another_folder_is_given_back(server: BatchServer, tmp_path, capsys, monkeypatch) -> None:
    """The first submission was not taken, and another folder submitted as many requests before the second."""
    for name, more in (("theirs", OTHERS), ("ours", ())):
        requests(tmp_path / name, 1, *more, model="anthropic/claude-sonnet-4-5", url=server.url)
    # The provider lists its batches, and takes none.
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    server.drop_batch = True
    assert batch("submit", ours) == 3 and server.created == 0
    assert batch("submit", theirs) == 0
    # As far as anybody can say, it is ours.
    assert batch("submit", ours) == 0 and server.created == 1
    finish(server, "batch_1", messages(server.requests("batch_1")))
    assert batch("collect", ours) == 3
    assert f"batch_1 is not its batch; `judge batch submit {ours}/round-1` goes on" in capsys.readouterr().err
    assert batch("submit", ours) == 0 and server.created == 2
    finish(server, "batch_2", messages(server.requests("batch_2")))
    for folder in (ours, theirs):
        capsys.readouterr()
        assert batch("collect", folder, "--json") == 0
        assert counts(capsys)["taken"]["taken"] == 32


def test_a_refused_submission_is_not_searched_for(server: BatchServer, tmp_path: Path, capsys: Capture) -> None:
    requests(tmp_path, 1, model="anthropic/claude-sonnet-4-5", url=server.url)
    server.refuse_post = {"status": 400, "message": "credit balance is too low"}
    assert batch("submit", tmp_path) == 3
    [left] = json.loads((tmp_path / "round-1/batches.json").read_bytes())
    assert left["listed"] is None and left["batch_id"] is None


def test_anthropic_takes_batches_of_its_own_format(server: BatchServer, tmp_path, capsys, monkeypatch) -> None:
    first = asked_of(tmp_path, "--price", "3/15", model="anthropic/claude-sonnet-4-5", url=server.url)[0]
    assert set(first) == {"custom_id", "params"} and first["params"]["model"] == "claude-sonnet-4-5"
    assert [message["role"] for message in first["params"]["messages"]] == ["user"] and first["params"]["system"]
    server.lose_reply = True
    assert batch("submit", tmp_path) == 3
    # The search for what was begun is refused for a moment, and made again.
    server.refuse, waited = {"status": 529, "message": "overloaded"}, list[float]()
    monkeypatch.setattr(AGAIN, "sleep", waited.append)
    assert batch("submit", tmp_path) == 0
    assert server.created == len(waited) == 1
    asked = server.requests("batch_1")
    rows = messages(asked)
    rows[0]["result"] = {"type": "expired"}
    server.results["batch_1"] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    server.batches["batch_1"] |= {"processing_status": "ended", "results_url": "there"}
    capsys.readouterr()
    assert batch("collect", tmp_path, "--json") == 0
    taken = counts(capsys)["taken"]
    assert (taken["taken"], taken["failed"], taken["open"]) == (len(asked) - 1, {"expired": 1}, 1)
    # 1,000 tokens in and 50 out, at half of $3 and $15 per million.
    assert taken["cost"] == pytest.approx((len(asked) - 1) * (1000 * 1.5 + 50 * 7.5) / 1e6)
