"""What is asked of the engine, with the engine played; how many cores it may use."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.errors import ContextLengthError, OperationalError, RejectedError, UsageError
from judge.models import engine as module
from judge.models.engine import Engine, load_engine, start, usable_cores

LONG = "The ferry to Saltmere leaves at noon and takes an hour, unless the wind is from the east. " * 3
ASK = "How natural is the response? Answer with one label and nothing else: 0, 1, 2, 3."


class Server:
    """Answers what it was told to, and notes what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, Any]] = []

    def handle_chat_completions(self, request: Mapping[str, Any]) -> Any:
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else {"choices": []}
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(*contents: str) -> list[dict[str, str]]:
    roles = ("system", "user", "assistant", "user")
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


def test_the_request_goes_out_as_it_is() -> None:
    server = Server()
    Engine(server).ask(said("s", "u"), {"temperature": 0.0})
    assert server.asked == [{"temperature": 0.0, "messages": said("s", "u"), "cache_prompt": False}]


@pytest.mark.parametrize(
    ("first", "second", "reused"),
    [
        (said("rubric", LONG + ASK), said("rubric", "Another response. " + ASK), True),
        (said("rubric", LONG + ASK), said("rubric", LONG + ASK), False),
        (said("rubric", LONG + "noon"), said("rubric", LONG + "dawn"), False),
        (said("rubric", LONG + ASK), said("rubric", LONG), False),
        (said("rubric", LONG), said("rubric", LONG + ASK), True),
        (said("rubric", LONG), said("rubric", LONG, "unclear", ASK), False),
    ],
    ids=["new text", "the same again", "another last word", "a shorter one", "a longer one", "after a reply"],
)
def test_a_common_start_is_reused_unless_it_could_change_a_bit(
    first: list[dict[str, str]], second: list[dict[str, str]], reused: bool
) -> None:
    server = Server()
    engine = Engine(server)
    engine.ask(first, {})
    engine.ask(second, {})
    assert server.asked[1]["cache_prompt"] is reused


def test_a_refused_prompt_is_not_taken_for_the_last_one() -> None:
    server = Server({"choices": []}, {"error": {"code": 400, "message": "no"}}, {"choices": []})
    engine = Engine(server)
    engine.ask(said("rubric", LONG), {})
    with pytest.raises(RejectedError):
        engine.ask(said("rubric", "x"), {})
    engine.ask(said("rubric", LONG), {})
    assert server.asked[2]["cache_prompt"] is False


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ({"error": {"code": 400, "type": "exceed_context_size_error", "message": "request exceeds …",
                    "n_prompt_tokens": 9000, "n_ctx": 8192}},
         ContextLengthError, "the request has 9000 tokens, the context holds 8192"),
        ({"error": {"code": 400, "type": "invalid_request_error", "message": "failed to parse grammar"}},
         RejectedError, "the engine refuses the request: failed to parse grammar"),
        (RuntimeError("parse error"), RejectedError, "the engine refuses the request: parse error"),
        (ValueError("JSON schema error"), RejectedError, "the engine refuses the request: JSON schema error"),
    ],
)  # fmt: skip
def test_refusals_become_call_errors(answer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Engine(Server(answer)).ask(said("s", "u"), {})


@pytest.mark.parametrize(
    ("quota", "most"),
    [("max 100000\n", 10_000), ("150000 100000\n", 1), ("50000 100000\n", 1), ("nonsense", 10_000), (None, 10_000)],
)
def test_no_more_cores_than_the_container_may_use(tmp_path: Path, quota: str | None, most: int) -> None:
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota, encoding="ascii")
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert usable_cores(path) == min(bound, most)


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(module.importlib, "import_module", broken)
    with pytest.raises(UsageError, match="libgomp1"):
        load_engine()


@pytest.mark.slow
def test_a_file_that_cannot_be_loaded_is_said_without_a_word_of_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(16))
    code = (
        "import sys\nfrom pathlib import Path\nfrom judge.errors import OperationalError\n"
        "from judge.models.engine import start\n"
        "try:\n    start(Path(sys.argv[1]), 512, 1)\n"
        "except OperationalError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent.parent,
    )  # fmt: skip
    assert done.stdout == f"{path}: the engine cannot load this model, or there is too little memory\n"
    assert done.stderr == ""
    with pytest.raises(OperationalError):
        start(tmp_path / "missing.gguf", 512, 1)
