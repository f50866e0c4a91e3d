"""Keys planted in every place, by every backend: none comes out in a file, on a stream, or in an error."""

import base64
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from judge.files.bundle import bundled
from tests.mock import Mock, start_mock

pytestmark = pytest.mark.slow

KEY = "tops3cret/key+0123456789"
PASSWORD = "p@ss w/o#rd?x"
PAIR = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
BY_KEY = (KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode())
"""What a judge with a key may see again; `server/m` is sent the password of its address instead."""
BY_PASSWORD = (PASSWORD, quote(PASSWORD, safe=""), PAIR)
ECHO = f"key {KEY}, {quote(KEY, safe='')}, {base64.b64encode(KEY.encode()).decode()}, {PASSWORD}, Basic {PAIR}"
JUDGES = ["server/m", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini", "litellm/hosted_vllm/m"]


@pytest.fixture(scope="module")
def process() -> Iterator[Mock]:
    with start_mock() as mock:
        yield mock


def judged(mock: Mock, judge: str, home: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a judge in a home of its own, on two responses; the key is in every variable that a backend reads."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= dict.fromkeys(("JUDGE_API_KEY", "OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"), KEY)
    environment |= {"HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2])}
    user = f"ann:{quote(PASSWORD, safe='')}@" if judge.startswith("server") else ""
    if user:
        del environment["JUDGE_API_KEY"]
    example = bundled("examples")
    command = [
        sys.executable, "-m", "judge", "run", "--runs", str(home / "runs"), "--criteria", "naturalness",
        "--model", judge, "--base-url", f"http://{user}127.0.0.1:{mock.port}/v1", "--limit", "2", "--attempts", "1",
        "--concurrency", "1", "--out", str(home / "out"), *options,
    ]  # fmt: skip
    if not (home / "runs").exists():
        (home / "runs").mkdir()
        for run in sorted((example / "runs").iterdir())[:2]:
            (home / "runs" / run.name).write_bytes(run.read_bytes())
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=home.parent, check=False)


def shown(home: Path, done: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    """Everything that came out: both streams, every file of the output folder, every cell of the journal."""
    out = {"stdout": done.stdout, "stderr": done.stderr}
    for path in sorted(path for path in (home / "out").rglob("*") if path.is_file()):
        out[path.name] = path.read_bytes().decode("utf-8", "replace")
    with sqlite3.connect(home / "out" / "journal.sqlite") as journal:
        out["journal"] = repr(journal.execute("SELECT * FROM completion").fetchall())
    return out


def echo(text: str, **more: object) -> dict[str, object]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": f"m-{KEY}", "choices": [choice]}
    return {"status": 200, "body": {**body, "system_fingerprint": KEY, **more}}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_key_in_replies_and_refusals_comes_out_nowhere(process: Mock, judge: str, tmp_path: Path) -> None:
    process.reset()
    verdict = json.dumps({"rationale": f"It says {ECHO}.", "grade": "3"}, ensure_ascii=False)
    lines = f"It says {ECHO}.\nGrade: 3"
    structured = judge != "litellm/hosted_vllm/m"
    process.script(
        echo(verdict if structured else lines),
        {"status": 400, "body": {"error": {"message": f"bad {ECHO}", "code": KEY}}},
    )
    done = judged(process, judge, tmp_path)
    found = shown(tmp_path, done)
    assert done.returncode == 3, done.stderr
    by_password = judge.startswith("server")
    assert (", ***, Basic ***." if by_password else "It says key ***, ***, ***, ") in found["judgments.jsonl"]
    assert (", ***, Basic ***" if by_password else "bad key ***") in found["failures.jsonl"]
    leaks = {
        (name, way) for name, text in found.items() for way in (BY_PASSWORD if by_password else BY_KEY) if way in text
    }
    assert not leaks
    homes = {name for name, text in found.items() if str(tmp_path) in text} - {"stdout", "stderr"}
    assert not homes, found["manifest.json"]
    assert json.loads(found["manifest.json"])["argv"][2] == f"{tmp_path.name}/runs"


@pytest.mark.parametrize("judge", JUDGES)
def test_a_key_in_what_stops_a_run_comes_out_nowhere(process: Mock, judge: str, tmp_path: Path) -> None:
    process.reset()
    process.script({"status": 401, "body": {"error": {"message": f"bad {ECHO}"}}})
    done = judged(process, judge, tmp_path)
    assert done.returncode == 3
    assert "bad key " in done.stderr
    assert "***" in done.stderr
    secrets = BY_PASSWORD if judge.startswith("server") else BY_KEY
    assert not {(name, way) for name, text in shown(tmp_path, done).items() for way in secrets if way in text}


@pytest.mark.parametrize(
    "options",
    [
        ["--base-ulr", f"http://ann:{PASSWORD}@host/v1"],
        ["--base-url", f"http://ann:{PASSWORD}@host/v1"],
        ["--base-url", "http://ann:p[zzword@host/v1"],
    ],
)
def test_a_password_in_a_bad_command_line_is_not_repeated(process: Mock, options: list[str], tmp_path: Path) -> None:
    done = judged(process, "server/m", tmp_path, *options)
    assert done.returncode == 2
    assert "judge" in done.stderr
    assert not any(part in done.stdout + done.stderr for part in (PASSWORD, "p@ss", "o#rd", "rd?x", "p[zz", "zzword"))
