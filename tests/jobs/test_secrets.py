"""Keys planted in every place, by every backend: none comes out in a file, on a stream, or in an error."""

import base64
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from judge.io.installed import bundled
from tests.conftest import run_here
from tests.mock import Mock

pytestmark = pytest.mark.long

KEY = "tops3cret/key+0123456789"
PASSWORD = "p@ss w/o#rd?x"
PAIR = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
BY_KEY = (KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode())
"""What a judge with a key may see again; `server/m` is sent the password of its address instead."""
BY_PASSWORD = (PASSWORD, quote(PASSWORD, safe=""), PAIR)
ECHO = f"key {KEY}, {quote(KEY, safe='')}, {base64.b64encode(KEY.encode()).decode()}, {PASSWORD}, Basic {PAIR}"
JUDGES = ["server/m", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini", "litellm/hosted_vllm/m"]


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
    with contextlib.closing(sqlite3.connect(home / "out" / "journal.sqlite")) as journal:
        out["journal"] = repr(journal.execute("SELECT * FROM completion").fetchall())
    return out


def echo(text: str, **more: object) -> dict[str, object]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": f"m-{KEY}", "choices": [choice]}
    return {"status": 200, "body": {**body, "system_fingerprint": KEY, **more}}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_key_in_replies_and_refusals_comes_out_nowhere(server: Mock, judge: str, tmp_path: Path) -> None:
    server.reset()
    verdict = json.dumps({"rationale": f"It says {ECHO}.", "grade": "3"}, ensure_ascii=False)
    lines = f"It says {ECHO}.\nGrade: 3"
    structured = judge != "litellm/hosted_vllm/m"
    server.script(
        echo(verdict if structured else lines),
        {"status": 400, "body": {"error": {"message": f"bad {ECHO}", "code": KEY}}},
    )
    done = judged(server, judge, tmp_path)
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
    # What was masked is among the last lines, and in the leaderboard.
    masked = "results with ***: a key or password stood there, or the judge wrote the stars."
    last = "\n".join(done.stderr.splitlines()[-6:])
    assert masked in last
    assert masked in found["leaderboard.md"].replace("\\", "")
    assert "the values of these variables are written nowhere: " in last


@pytest.mark.parametrize("judge", JUDGES)
def test_a_key_in_what_stops_a_run_comes_out_nowhere(server: Mock, judge: str, tmp_path: Path) -> None:
    server.reset()
    server.script({"status": 401, "body": {"error": {"message": f"bad {ECHO}"}}})
    done = judged(server, judge, tmp_path)
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
def test_a_password_in_a_bad_command_line_is_not_repeated(server: Mock, options: list[str], tmp_path: Path) -> None:
    done = judged(server, "server/m", tmp_path, *options)
    assert done.returncode == 2
    assert "judge" in done.stderr
    assert not any(part in done.stdout + done.stderr for part in (PASSWORD, "p@ss", "o#rd", "rd?x", "p[zz", "zzword"))


PLANTED = {
    "JUDGE_API_KEY": "judge-canary-0a1B2c3D4e5F",
    "OPENAI_API_KEY": "openai-canary-0a1B2c3D4e5F",
    "ANTHROPIC_API_KEY": "anthropic-canary-0a1B2c3D4e5F",
    "AZURE_API_KEY": "azure-canary-0a1B2c3D4e5F",
    "AWS_SECRET_ACCESS_KEY": "aws-canary-0a1B2c3D4e5F",
    "HF_TOKEN": "hf-canary-0a1B2c3D4e5F",
}
NETRC, PROXY = "netrc-canary-0a1B2c3D4e5F", "proxy-canary-0a1B2c3D4e5F"


def ways(secret: str) -> tuple[str, ...]:
    return (secret, base64.b64encode(secret.encode()).decode().rstrip("="), secret.encode().hex())


def test_a_season_of_commands_leaves_no_planted_key_anywhere(
    server: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reset()
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(f"machine 127.0.0.1 login ann password {NETRC}\n", encoding="utf-8")
    (home / ".netrc").chmod(0o600)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    proxies = {"HTTPS_PROXY": f"http://ann:{PROXY}@127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    for name, value in {**PLANTED, **proxies, "HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    key, told = PLANTED["JUDGE_API_KEY"], f"Bearer {PLANTED['JUDGE_API_KEY']}"
    verdict = json.dumps({"rationale": f"You sent {told}, so {ways(key)[1]}.", "grade": "3"})
    headers = {"Location": f"http://other/{key}?key={key}", "x-request-id": key, "retry-after": "0"}
    steps = (
        echo(verdict),
        {"status": 429, "headers": headers, "body": {"error": {"message": told, "code": key}}},
        {"status": 500, "headers": headers, "body": {"error": {"message": told, "type": key}}},
        {"status": 200, "body": {"error": {"message": told}}},
        echo(f"no verdict, but {told}"),
    )
    example, work = bundled("examples"), tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    given = [
        f"--runs {example / 'runs'} --topics {example / 'topics.json'} --passages {example / 'passages.jsonl'}",
        f"--model server/m --base-url {server.base_url}",
    ]
    streams = {}

    def call(number: int, line: str, *script: dict[str, object]) -> int:
        server.script(*script)
        # The words of a command line are searched for passwords.
        monkeypatch.setattr(sys, "argv", ["judge", *line.split()])
        done = run_here(*line.split())
        streams[f"{number} {line}"] = done.stdout + done.stderr
        return done.returncode

    run = f"run {' '.join(given)} --criteria groundedness --attempts 3 -o out"
    (work / "gold.jsonl").write_bytes((bundled("gold") / "example.gold.jsonl").read_bytes())
    asked = f"calibrate --gold gold.jsonl --pool out --prompt groundedness/sentences {given[1]} -o cal"
    assert call(0, f"{run} --limit 4 --json", *steps) in (0, 3)
    assert call(1, run, {"status": 302, "headers": headers, "body": {}}) == 3
    assert call(2, run, {"status": 401, "headers": headers, "body": {"error": {"message": told}}}) == 3
    assert call(3, run, *steps) in (0, 3)
    assert server.last()[0]["authorization"] == told
    assert call(4, f"{asked} --replicates 200 --permutations 200", *steps) in (0, 1)
    assert call(5, "report out --gold gold.jsonl") == 0
    assert call(6, "report cal -o report-cal") == 0
    assert call(7, "journal verify out --json") == 0
    assert call(8, "release out -o bundle --rationales --passage-text") == 0
    assert call(9, f"{run} --model openai/{told.split()[1]}") == 2
    out = {**streams, **{str(path): path.read_bytes().decode("latin-1") for path in work.rglob("*") if path.is_file()}}
    assert len(out) > 60
    planted = [way for secret in (*PLANTED.values(), NETRC, PROXY) for way in ways(secret)]
    assert [(name, way) for name, text in out.items() for way in planted if way in text] == []
    assert "***" in (work / "out/judgments.jsonl").read_text(encoding="utf-8")
    assert not any("Traceback" in text for text in streams.values())
