"""A checker in a whole run: its requests are retried, its replies are recorded, and no key gets out."""

import json
import re
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from tests.conftest import PROJECT, printed, start_python
from tests.mock import Mock
from tests.scoring import ScoreServer, Serve
from tests.time_limit import wait_until

EXAMPLES = PROJECT / "examples"
COMMAND = (
    "--runs", str(EXAMPLES / "runs"), "--topics", str(EXAMPLES / "topics.json"),
    "--passages", str(EXAMPLES / "passages.jsonl"), "--criteria", "groundedness", "--prompt", "groundedness/sentences",
)  # fmt: skip
KEY = "zq-secret-of-the-server-71"


def judged(server: ScoreServer, out: Path, *more: str) -> int:
    return main(["run", *COMMAND, "--base-url", server.url, "--out", str(out), *more])


@pytest.mark.long
def test_a_chat_model_that_fails_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
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

    server = serve(answer)
    assert judged(server, tmp_path / "out", "--model", "checker/chat/m", "--limit", "12") == 0
    asked = len(server.asked)
    results = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.suffix == ".jsonl"}
    assert judged(server, tmp_path / "out", "--model", "checker/chat/m", "--limit", "12") == 0
    assert len(server.asked) == asked
    assert {name: (tmp_path / "out" / name).read_bytes() for name in results} == results
    # A word alone is no probability, and readers of the grades should know.
    assert re.search(
        r"checker/chat/m: (\d+) of \1 scores are a yes or a no alone", (tmp_path / "out/leaderboard.md").read_text()
    )
    judgments = [json.loads(line) for line in results["judgments.jsonl"].splitlines()]
    assert len(judgments) == 12
    assert all(row["support"] for row in judgments)
    with closing(sqlite3.connect(tmp_path / "out/journal.sqlite")) as journal:
        rows = [json.loads(text) for (text,) in journal.execute("SELECT completion FROM completion")]
    # Each pair has a row with its tokens, and so has each response, which counts none.
    wholes, pairs = ([row for row in rows if (row["attempts"] == 0) == whole] for whole in (True, False))
    scores = [scores for row in wholes for scores in json.loads(row["raw"])["supports, contradicts"].values()]
    assert (len(wholes), sum(map(len, scores))) == (12, len(pairs))
    assert {row["prompt_tokens"] for row in pairs} == {9}
    assert sum(row["attempts"] for row in pairs) == asked > len(pairs)
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def chat(text: str, tokens: int) -> tuple[int, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return 200, {"model": "m", "choices": [choice], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}


def test_replies_that_are_no_answer_are_paid_and_end_the_budget(tmp_path, capsys, serve: Serve) -> None:
    """A reply costs a dollar: one pair of a response is answered, the next is not, so two responses take 4 of 3.5."""
    count = 0

    def answer(body: Any) -> tuple[int, Any]:
        nonlocal count
        count += 1
        return chat("Yes" if count % 2 else "Perhaps", 1_000_000)

    server = serve(answer)
    options = "--model", "checker/chat/m", "--limit", "12", "--price", "1/0", "--concurrency", "1"
    assert judged(server, tmp_path / "out", *options, "--max-cost", "3.5") == 3
    assert len(server.asked) == 4
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "out/failures.jsonl").read_text().splitlines()]
    assert (reasons.count("unreadable"), set(reasons)) == (2, {"unreadable", "budget"})
    (took,) = [line for line in capsys.readouterr().err.splitlines() if "asked now" in line]
    assert "4,000,000" in took
    assert "$4.00" in took


def test_a_reply_that_is_no_answer_is_kept_and_never_asked_again(tmp_path, capsys, serve: Serve) -> None:
    """Every ninth reply is no answer, or empty: its response is a failure, which the journal keeps for later runs."""
    count, out = 0, tmp_path / "out"

    def answer(body: Any) -> tuple[int, Any]:
        nonlocal count
        count += 1
        return said(body) if count % 9 else chat("Perhaps it does." if count % 18 else "", 9)

    server = serve(answer)
    assert judged_by_chat(server, out) == 0
    asked = len(server.asked)
    results = {name: (out / name).read_bytes() for name in ("judgments.jsonl", "failures.jsonl")}
    assert judged_by_chat(server, out) == 0
    assert judged_by_chat(server, out, "--dry-run", "--json") == 0
    assert len(server.asked) == asked
    assert {name: (out / name).read_bytes() for name in results} == results
    failures = [json.loads(line) for line in results["failures.jsonl"].splitlines()]
    told = "the checker's model replied {!r}, expected Yes or No"
    assert {(row["reason"], row["raw"], row["detail"]) for row in failures} == {
        ("unreadable", reply or None, told.format(reply)) for reply in ("Perhaps it does.", "")
    }
    assert 0 < len(failures) == asked // 9 < 12
    # All replies are paid for, those of failures too.
    with closing(sqlite3.connect(out / "journal.sqlite")) as journal:
        rows = [json.loads(text) for (text,) in journal.execute("SELECT completion FROM completion")]
    assert sum(row["prompt_tokens"] or 0 for row in rows) == 9 * asked
    capsys.readouterr()
    assert json.loads(printed(capsys, main(["journal", "reparse", str(out), "--json"])))["changes"] == []


def test_a_model_that_never_says_yes_or_no_is_asked_once_for_each_response(tmp_path: Path, mock: Mock) -> None:
    options = (*COMMAND, "--model", "checker/chat/mock", "--base-url", mock.base_url, "--limit", "12")
    # A judge that answers nothing is given up after three responses, until the same command is given again.
    assert main(["run", *options, "--out", str(tmp_path / "out")]) == 3
    assert mock.stats()["paid"] == 3
    assert main(["run", *options, "--out", str(tmp_path / "out")]) == 1
    paid = mock.stats()["paid"]
    assert main(["run", *options, "--out", str(tmp_path / "out")]) == 1
    assert mock.stats()["paid"] == paid == 12
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "out/failures.jsonl").read_text().splitlines()]
    assert reasons == ["unreadable"] * 12


@pytest.mark.parametrize("tokens", [0, -1_000_000])
def test_counts_that_cannot_be_true_do_not_stretch_the_budget(tmp_path: Path, tokens: int, serve: Serve) -> None:
    """By our own estimate a reply takes some 50 tokens; a dollar a token leaves nothing after the first."""
    server = serve(lambda body: chat("Perhaps", tokens))
    options = "--model", "checker/chat/m", "--limit", "12", "--price", "1000000/0", "--concurrency", "1"
    assert judged(server, tmp_path / "out", *options, "--max-cost", "1") == 3
    assert len(server.asked) == 1


def test_a_dry_run_counts_the_requests_of_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], serve: Serve
) -> None:
    server = serve(lambda body: chat("Yes", 9))
    options = "--model", "checker/chat/m", "--limit", "5", "--price", "1/1"
    (row,) = json.loads(printed(capsys, judged(server, tmp_path / "out", *options, "--dry-run", "--json")))["by_model"]
    expected = row["expected"]
    assert judged(server, tmp_path / "out", *options, "--dry-run") == 0
    assert f"requests            {expected['attempts']} in all" in capsys.readouterr().out
    assert not server.asked
    assert judged(server, tmp_path / "out", *options) == 0
    assert expected["attempts"] == len(server.asked) > expected["calls"] == 5
    texts = [message["content"] for _, body in server.asked for message in body["messages"]]
    size = sum(len(text.encode()) for text in texts)
    # Each call is rounded up to a whole token.
    assert size / 4 <= expected["prompt_tokens"] < size / 4 + 5
    assert expected["completion_tokens"] == len(server.asked) * server.asked[0][1]["max_tokens"]


# ---------------------------------------------------------------- replies to pairs outlive their response


def said(body: Any) -> tuple[int, Any]:
    document, _, claim = body["messages"][-1]["content"].partition("\nClaim: ")
    return chat("Yes" if claim.split()[-1] in document else "No", 9)


def judgments_in(out: Path) -> bytes:
    """The judgments without their digests, which the address of the server is part of."""
    return re.sub(rb"[0-9a-f]{64}", b"", (out / "judgments.jsonl").read_bytes())


def judged_by_chat(server: ScoreServer, out: Path, *more: str) -> int:
    return judged(server, out, "--model", "checker/chat/m", "--limit", "12", "--concurrency", "2", *more)


@pytest.fixture
def whole(tmp_path: Path, serve: Serve) -> tuple[int, bytes]:
    """How many requests 12 responses take, and the judgments."""
    server = serve(said)
    assert judged_by_chat(server, tmp_path / "whole") == 0
    return len(server.asked), judgments_in(tmp_path / "whole")


@pytest.mark.long
def test_pairs_of_failed_responses_are_not_asked_again(
    tmp_path, whole: tuple[int, bytes], capsys, serve: Serve
) -> None:
    """Every fifth request is refused for good, until the third run; no pair is answered twice."""
    answered: list[str] = []
    refused, failing = 0, True

    def answer(body: Any) -> tuple[int, Any]:
        nonlocal refused
        refused += 1
        if failing and refused % 5 == 0:
            return 400, {"error": {"message": "no"}}
        answered.append(body["messages"][-1]["content"])
        return said(body)

    server = serve(answer)
    assert judged_by_chat(server, tmp_path / "out") == 3
    first = len(answered)
    assert judged_by_chat(server, tmp_path / "out") in (0, 3)
    failing = False
    before = len(answered)
    capsys.readouterr()
    assert judged_by_chat(server, tmp_path / "out", "--price", "1000000/0") == 0
    assert 0 < first < before < len(answered) == whole[0]
    assert judgments_in(tmp_path / "out") == whole[1]
    # The third run counts its own replies, of nine tokens each; its results rest on all of them.
    lines = {line.split()[0]: line for line in capsys.readouterr().err.splitlines() if line.startswith("  a")}
    assert f" {9 * (len(answered) - before):,} " in lines["asked"]
    assert f" {9 * len(answered):,} " in lines["all"]


@pytest.mark.long
def test_pairs_of_a_killed_run_are_not_asked_again(tmp_path: Path, whole: tuple[int, bytes], serve: Serve) -> None:
    answered = 0

    def answer(body: Any) -> tuple[int, Any]:
        nonlocal answered
        answered += 1
        time.sleep(0.02)
        return said(body)

    server, out = serve(answer), tmp_path / "out"
    options = ("--base-url", server.url, "--limit", "12", "--concurrency", "2", "--out", str(out))
    command = ("-m", "judge", "run", *COMMAND, "--model", "checker/chat/m", *options)
    process = start_python(*command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: answered >= whole[0] // 2)
        process.kill()
        process.wait()
        assert judged_by_chat(server, out) == 0
    finally:
        process.kill()
    # Of each response under way, the reply that was coming is lost.
    assert whole[0] <= len(server.asked) <= whole[0] + 2
    assert judgments_in(out) == whole[1]
