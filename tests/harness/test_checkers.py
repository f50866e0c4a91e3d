"""A checker in a whole run: its requests are retried, its replies are recorded, and no key gets out."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from tests.conftest import PROJECT
from tests.scoring import ScoreServer

pytestmark = pytest.mark.slow

EXAMPLES = PROJECT / "examples"
KEY = "zq-secret-of-the-server-71"


def judged(server: ScoreServer, out: Path, *more: str) -> int:
    return main([
        "run", "--runs", str(EXAMPLES / "runs"), "--topics", str(EXAMPLES / "topics.json"),
        "--passages", str(EXAMPLES / "passages.jsonl"), "--criteria", "groundedness",
        "--prompt", "groundedness/sentences", "--base-url", server.url, "--out", str(out), *more,
    ])  # fmt: skip


def test_a_chat_model_that_fails_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seventh request fails; a second run asks nothing, and its results are the same bytes."""
    monkeypatch.setenv("JUDGE_API_KEY", KEY)
    count = 0

    def answer(body: Any) -> tuple[int, Any]:
        nonlocal count
        count += 1
        if count % 7 == 0:
            return 500, {"error": {"message": f"boom for {KEY}"}}
        document, _, claim = body["messages"][-1]["content"].partition("\nClaim: ")
        text = "Yes" if claim.split()[-1] in document else "No"
        choice = {"index": 0, "message": {"role": "assistant", "content": text, "note": KEY}, "finish_reason": "stop"}
        return 200, {"model": KEY, "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}

    server = ScoreServer(answer)
    try:
        assert judged(server, tmp_path / "out", "--model", "checker/chat/m", "--limit", "12") == 0
        asked = len(server.asked)
        results = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.suffix == ".jsonl"}
        assert judged(server, tmp_path / "out", "--model", "checker/chat/m", "--limit", "12") == 0
        assert len(server.asked) == asked
    finally:
        server.close()
    assert {name: (tmp_path / "out" / name).read_bytes() for name in results} == results
    judgments = [json.loads(line) for line in results["judgments.jsonl"].splitlines()]
    assert len(judgments) == 12
    assert all(row["support"] for row in judgments)
    with closing(sqlite3.connect(tmp_path / "out/journal.sqlite")) as journal:
        rows = [json.loads(text) for (text,) in journal.execute("SELECT completion FROM completion")]
    # Of each pair the tokens are counted once, and all pairs were answered by a word alone.
    pairs = [sum(map(len, json.loads(row["raw"])["supports, contradicts"].values())) for row in rows]
    assert [row["prompt_tokens"] for row in rows] == [9 * number or None for number in pairs]
    assert sum(row["attempts"] for row in rows) > len(rows)
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
