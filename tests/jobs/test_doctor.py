"""`judge doctor`: what it finds of this machine, and of judges that are well, ill or not there."""

import contextlib
import importlib.metadata
import json
import shutil
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.jobs import doctor
from judge.judges.backends.server import ServerModel
from judge.judges.records import Completion, Request
from judge.runs.records import TokenCount
from judge.runs.tokens import TokenCounter
from tests.conftest import printed, put
from tests.mock import Mock
from tests.scoring import Handler, listening

pytestmark = pytest.mark.usefixtures("no_keys")


def by_check(report: tuple[doctor.CheckFinding, ...], model: str | None = None) -> dict[str, doctor.CheckFinding]:
    return {finding.check: finding for finding in report if finding.model == model}


def test_every_check_of_the_machine_has_one_line(tmp_path: Path) -> None:
    report = doctor.examine(doctor.DoctorPlan(folder=tmp_path))
    assert len(report) == len(doctor.MACHINE_CHECKS) == len(by_check(report))
    assert all(finding.state != "fails" for finding in report)
    assert by_check(report)["tokens"].state == "ok"
    assert list(tmp_path.iterdir()) == []
    assert all("\n" not in f"{finding.found}{finding.advice}" for finding in report)


def test_keys_are_named_and_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody-1234567")
    monkeypatch.setenv("JUDGE_API_KEY", " ")
    assert doctor.keys(tmp_path)[:2] == ("warning", "empty, or with characters that no key has: JUDGE_API_KEY")
    monkeypatch.delenv("JUDGE_API_KEY")
    assert doctor.keys(tmp_path)[1] == "set: OPENAI_API_KEY"
    assert "nobody" not in str(doctor.examine(doctor.DoctorPlan(folder=tmp_path)))


Usage = namedtuple("Usage", "total used free")


def test_a_folder_that_cannot_be_written_or_is_nearly_full_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert doctor.disk(tmp_path)[0] == "ok"
    assert doctor.disk(tmp_path / "none") == (
        "warning", "nothing can be written here: No such file or directory", "name a folder with --out"
    )  # fmt: skip
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(0, 0, 1 << 29))
    assert doctor.disk(tmp_path) == ("warning", "0.5 GiB free", "free some space: journal and results need it")


def test_a_missing_package_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "krippendorff":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert doctor.packages(tmp_path) == (
        "fails", "not installed: krippendorff", "install trec-judge anew with pip"
    )  # fmt: skip


def test_tokens_that_are_counted_otherwise_or_not_at_all_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(TokenCounter, "__call__", lambda self, text: TokenCount(2, 2, 2, None))
    state, found, advice = doctor.tokens(tmp_path)
    assert (state, advice) == ("fails", "install the spaCy that judge asks for")
    assert found.endswith(" counts [2, 2, 2], expected [5, 9, 5]")

    def missing(self: TokenCounter) -> None:
        raise ImportError("no spaCy")

    monkeypatch.setattr(TokenCounter, "__init__", missing)
    assert doctor.tokens(tmp_path)[:2] == ("fails", "they cannot be counted: no spaCy")


def test_a_variable_that_no_record_could_show_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x: y")
    assert doctor.environment(tmp_path)[0] == "fails"


def test_an_output_that_cannot_show_every_character_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding="UTF-8"))
    assert doctor.encoding(tmp_path)[0] == "ok"
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding="ascii"))
    assert doctor.encoding(tmp_path)[0] == "warning"


def test_another_package_with_a_module_of_our_name_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = {"judge": "judge/decide", "trec-judge": "judge/cli", "judged": "judged/cli", "old": "judge/_bundled/x"}
    for name, place in places.items():
        info = tmp_path / f"{name.replace('-', '_')}-0.2.0.dist-info"
        put(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2.0\n")
        (info / "RECORD").write_text(f"{place}.py,,\n{info.name}/RECORD,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.packages(tmp_path)[:2] == ("fails", "judge has a module judge, too")


def test_a_failure_makes_the_exit_code_1_and_a_wrong_name_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, main(["doctor", "--model", "baseline/overlap", "--json"])))[-1] == {
        "check": "set up",
        "state": "ok",
        "found": "a rule of this package; it needs nothing",
        "advice": None,
        "model": "baseline/overlap",
    }
    assert "fails    set up" in printed(capsys, main(["doctor", "--model", "server/m"]), 1)
    assert main(["doctor", "--model", "nobody"]) == 2
    assert main(["doctor", "--base-url", "http://localhost:1"]) == 2
    with pytest.raises(UsageError, match="none is named"):
        doctor.examine(doctor.DoctorPlan(base_url="http://localhost:1"))


def test_a_checker_scores_a_sentence_and_is_asked_for_no_grade() -> None:
    """The passage has all content words of the sentence."""
    findings = [finding for finding in doctor.examine(doctor.DoctorPlan(models=["checker/overlap"])) if finding.model]
    assert [(finding.check, finding.state, finding.found) for finding in findings] == [
        ("set up", "ok", "options and files can be used"),
        ("answer", "ok", "a sentence that its passage says is supported with probability 1.00"),
    ]
    failed = doctor.examine(doctor.DoctorPlan(models=["checker/chat/m"], base_url="http://127.0.0.1:9"))[-1]
    assert (failed.check, failed.state) == ("answer", "fails")


def test_weights_that_are_not_fetched_are_a_warning_with_the_way_to_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    report = doctor.examine(doctor.DoctorPlan(models=["local/smollm2-135m"], folder=tmp_path))
    (found,) = by_check(report, "local/smollm2-135m").values()
    assert (found.state, found.found) == ("warning", "the weights are not here (98 MB)")
    assert found.advice.startswith("`judge models pull smollm2-135m` fetches them")
    assert all(finding.state != "fails" for finding in report)


def finding_of(check: Any, judge: doctor.ExaminedJudge) -> doctor.CheckFinding | None:
    """What a check of a judge finds where it waits for nobody."""
    running = check(judge)
    try:
        running.send(None)
    except StopIteration as stop:
        found: doctor.CheckFinding | None = stop.value
        return found
    raise AssertionError("it waits")


def test_an_answer_that_is_not_the_object_of_the_schema_is_a_warning() -> None:
    assert finding_of(doctor.structured, doctor.ExaminedJudge("server/m", "http://localhost:1")).state == "warning"


@pytest.mark.parametrize(
    ("cached", "said"),
    [
        (None, "the provider does not say whether it caches prompts"),
        (0, "0 of 1400 tokens of an equal beginning came from the cache"),
        (1280, "1280 of 1400 tokens of an equal beginning came from the cache"),
    ],
)
def test_what_a_provider_says_of_its_cache(monkeypatch: pytest.MonkeyPatch, cached: int | None, said: str) -> None:
    async def complete(self: ServerModel, request: Request) -> Completion:
        return Completion("Grade: yes", "stop", "m", prompt_tokens=1400, cached_tokens=cached)

    monkeypatch.setattr(ServerModel, "complete", complete)
    found = finding_of(doctor.caching, doctor.ExaminedJudge("server/m", "http://localhost:1"))
    assert (found.state, found.found) == ("ok", said)


def of_server(base_url: str, name: str = "server/m") -> dict[str, doctor.CheckFinding]:
    return by_check(doctor.examine(doctor.DoctorPlan(models=[name], base_url=base_url)), name)


def test_a_judge_that_is_well(mock: Mock) -> None:
    found = of_server(mock.base_url)
    assert {name: finding.state for name, finding in found.items()} == dict.fromkeys(
        ("set up", "address", "answer", "schema", "logprobs", "cache", "context"), "ok"
    )
    assert found["address"].found.startswith(f"{mock.base_url} answers in ")
    assert found["logprobs"].found.startswith("given: yes 0.")
    # An answer, one with log probabilities, a second one with the same beginning, and a long one.
    assert mock.stats()["requests"] == 4


def test_a_server_that_cuts_a_long_prompt_is_told(mock: Mock) -> None:
    choice = {"message": {"role": "assistant", "content": "Grade: yes"}, "finish_reason": "stop"}
    cut = {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 2050, "completion_tokens": 3}}
    mock.script({}, {}, {}, {"status": 200, "body": cut})
    found = of_server(mock.base_url)["context"]
    assert found.state == "warning"
    assert found.found.startswith("the server read 2,050 tokens of a prompt of ")
    mock.script({}, {}, {}, {"status": 400, "body": {"error": {"code": "context_length_exceeded", "message": "long"}}})
    assert "is refused: status 400: long" in of_server(mock.base_url)["context"].found


def test_what_an_endpoint_refuses_is_left_out(mock: Mock) -> None:
    refusal = {"error": {"message": "Unsupported value", "param": "temperature"}}
    mock.config(refused={"temperature": [400, refusal], "system": [400, {"error": "System role not supported"}]})
    found = of_server(mock.base_url)
    assert {finding.state for finding in found.values()} == {"ok"}
    assert found["answer"].found.endswith(", without system, temperature")


def test_a_judge_that_takes_no_schema_and_gives_no_log_probabilities(mock: Mock) -> None:
    mock.config(response_format="reject", logprobs="reject")
    found = of_server(mock.base_url)
    assert {name for name, finding in found.items() if finding.state != "ok"} == {"schema"}
    assert found["schema"].state == "warning"
    assert found["logprobs"].found.startswith("none: status 400")
    mock.config(response_format="ignore", logprobs="ignore")
    found = of_server(mock.base_url)
    assert found["schema"].state == "warning"
    assert found["logprobs"].found.startswith("none came with the answer")


def test_a_wrong_key_and_a_missing_key(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    mock.config(key="right-key-1234")
    monkeypatch.setenv("JUDGE_API_KEY", "wrong-key-1234")
    found = of_server(mock.base_url)
    assert found["answer"].state == "fails"
    assert "wrong-key" not in str(found)
    assert "schema" not in found
    found = by_check(doctor.examine(doctor.DoctorPlan(models=["openai/gpt-4o"])), "openai/gpt-4o")
    assert found["set up"].found == "openai/gpt-4o needs a key: set the environment variable OPENAI_API_KEY"
    assert list(found) == ["set up"]


@contextlib.contextmanager
def answering(status: int, kind: str, body: bytes, **headers: str) -> Iterator[str]:
    class Answer(Handler):
        def do_GET(self) -> None:
            self.say(body, status, **{"Content-Type": kind, **headers})

    with listening(Answer) as url:
        yield f"{url}/v1"


def test_what_stands_at_an_address() -> None:
    with answering(200, "text/html", b"<html>Welcome</html>") as url:
        assert of_server(url)["address"].found.endswith("with a web page: no API is there")
    with answering(403, "application/json", b"{}") as url:
        assert "wants a key, and JUDGE_API_KEY is not set (status 403)" in of_server(url)["address"].found
    with answering(302, "text/plain", b"", Location="https://example.org/v1/models") as url:
        assert "redirects to https://example.org" in of_server(url)["address"].found
    listed = msgspec.json.encode({"data": [{"id": "\x1b[31mother"}]})
    with answering(200, "application/json", listed) as url:
        found = of_server(url)
    assert found["address"].state == "warning"
    assert "it lists 1 model and not this one: '\\x1b[31mother'" in found["address"].found
    # The API takes no questions there.
    assert found["answer"].state == "fails"
    assert of_server("http://127.0.0.1:9/v1")["address"].advice == "start the server, or correct --base-url"


@pytest.mark.parametrize("model", ["decisions/gpt-6-luna", "systemone/jev"])
def test_a_judge_that_writes_nothing_is_asked_as_it_is_in_a_run(
    mock: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "decisions-key-1")
    report = doctor.examine(doctor.DoctorPlan(models=(model,), base_url=mock.base_url, folder=tmp_path))
    found = by_check(report, model)
    # Neither a schema nor logprobs: it writes no text, and each answer is made of probabilities.
    assert list(found) == [
        "set up", "address", "answer", "cache", "context"
    ]  # fmt: skip
    assert {name: finding.state for name, finding in found.items() if finding.state != "ok"} == {}
    assert mock.stats()["requests"] == 3
    assert "tokens of a prompt of" in found["context"].found


def test_a_decision_about_a_prompt_that_was_cut_is_told(
    mock: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "decisions-key-1")
    answer = {"model": "m", "answers": [{"type": "predicate", "name": "q1", "probability": 0.9}]}
    tokens = [{"usage": {"input_tokens": number, "output_tokens": 0}} for number in (400, 400, 512)]
    mock.script(*({"body": {**answer, **usage}} for usage in tokens))
    report = doctor.examine(doctor.DoctorPlan(models=("decisions/m",), base_url=mock.base_url, folder=tmp_path))
    context = by_check(report, "decisions/m")["context"]
    assert context.state == "warning"
    assert context.found.startswith("the server read 512 tokens of a prompt of ")
