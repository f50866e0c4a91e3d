"""Every fault of the mock server has its documented outcome, through the real loop and a real connection."""

import re
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import Settings
from judge.ask.loop import assess
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import AuthenticationError, OperationalError
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.journal_tools import read_journal
from judge.judges.model import ModelOptions
from tests.ask.test_loop import criterion, pool
from tests.conftest import PROJECT
from tests.mock import Mock
from tests.mock.faults import FAULTS

PAGE = PROJECT / "docs" / "explanation" / "failures.md"
TEXTS = ("poison", "one", "two", "three")
ATTEMPTS = 2

# Fault: the requests that one judgment takes, the completions that are kept of them, and what stands in the end.
OUTCOMES = {
    "slow-first-byte": (ATTEMPTS, 0, "provider_error", "no answer within 0.5 s"),
    "slow-drip": (ATTEMPTS, 0, "provider_error", "no answer within 0.5 s"),
    "dropped": (ATTEMPTS, 0, "provider_error", "ServerDisconnectedError"),
    "half-sent": (ATTEMPTS, 0, "provider_error", "Not enough data"),
    "html": (ATTEMPTS, 0, "provider_error", "status 200, but not JSON: it begins '<!DOCTYPE html>"),
    "error-in-200": (ATTEMPTS, 0, "provider_error", "status 503: The engine is overloaded"),
    "empty-choices": (1, 0, "provider_error", "status 200, but no choices"),
    "filter-400": (1, 0, "content_filter", "status 400: The response was filtered"),
    "filter-200": (1, 1, "content_filter", "the provider's content filter stopped the reply"),
    "context-length": (1, 0, "context_length", "status 400: This model's maximum context length"),
    # Two replies, the second with twice the room.
    "length": (2, 2, "truncated", "tokens): raise --max-tokens"),
    "off-scale": (2, 2, "unreadable", "found grade 17, expected one of 0, 1, 2, 3"),
    "two-verdicts": (2, 2, "unreadable", 'the reply has two JSON objects that differ in "grade"'),
    "quoted-scale": (2, 2, "unreadable", "the reply claims another grade than its JSON object"),
    # Two replies: white space under the schema, then a grade in the text form.
    "white-space": (2, 2, "", ""),
    "length-in-other-words": (2, 2, "truncated", "the reply was cut off at the token limit"),
    "filter-in-other-words": (1, 1, "content_filter", "the provider's content filter stopped the reply"),
    "among-thoughts": (
        1,
        1,
        "unreadable",
        "its verdict is in `reasoning_content`, among the thoughts; set the server's",
    ),
    # One reply, which holds the grade elsewhere or with more around it.
    "tool-call": (1, 1, "", ""),
    "object": (1, 1, "", ""),
    "text-choice": (1, 1, "", ""),
    "end-tokens": (1, 1, "", ""),
    "harmony": (1, 1, "", ""),
    "unopened-thoughts": (1, 1, "", ""),
}
NOT_RETRIED = {"empty-choices", "filter-400", "context-length"}
"""Faults that another attempt of the same run would meet again."""


@pytest.fixture
def mock(mock: Mock) -> Mock:
    mock.config(faulty="poison")
    return mock


def judged(
    mock: Mock, path: Path, texts: tuple[str, ...] = TEXTS, *, fault: str = "", **more: Any
) -> list[Judgment | Failure]:
    one = pool(texts)
    # A busy machine may take half a second for any answer, which would be asked for again.
    timeout = 0.5 if fault.startswith("slow-") else 60.0
    model = open_model("server/mock", ModelOptions(base_url=mock.base_url, timeout=timeout))
    with Journal(path / "journal.sqlite") as journal:
        settings = Settings(concurrency=1, attempts=ATTEMPTS)
        return list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings, **more))


def test_every_fault_has_a_row_here_and_in_the_document() -> None:
    assert set(FAULTS) == set(OUTCOMES)
    rows = dict(re.findall(r"^\| .* \| `([a-z0-9-]+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for fault, (_, _, reason, _) in OUTCOMES.items():
        assert rows[fault].startswith((f"`{reason}`", "likewise") if reason else "none")


@pytest.mark.long
@pytest.mark.parametrize("fault", OUTCOMES)
def test_a_fault_that_stays(mock: Mock, tmp_path: Path, fault: str) -> None:
    mock.config(faults={fault: 1.0})
    requests, kept, reason, detail = OUTCOMES[fault]
    first, *others = judged(mock, tmp_path, fault=fault)
    assert all(isinstance(other, Judgment) for other in others)
    assert mock.stats()["requests"] == requests + len(others)
    assert len(list(read_journal(tmp_path / "journal.sqlite"))) == kept + len(others)
    if not reason:
        assert isinstance(first, Judgment)
        assert (first.form, first.repaired) == ("text" if fault == "white-space" else "json", False)
        return
    assert isinstance(first, Failure)
    assert first.reason == reason
    assert detail in first.detail
    # What is kept is read again and not asked again; the rest is asked again.
    again = judged(mock, tmp_path, fault=fault)
    assert again[1:] == others
    assert isinstance(again[0], Failure)
    assert again[0].reason == reason
    assert mock.stats()["requests"] == 2 * requests + len(others) - (requests if kept else 0)


@pytest.mark.parametrize("fault", OUTCOMES)
def test_a_fault_that_passes(mock: Mock, tmp_path: Path, fault: str) -> None:
    mock.config(faults={fault: 1.0}, fault_attempts=1)
    first, *_ = judged(mock, tmp_path, fault=fault)
    requests, kept, reason, _ = OUTCOMES[fault]
    if reason in ("provider_error", "truncated") and fault not in NOT_RETRIED:
        assert isinstance(first, Judgment)
        assert mock.stats()["requests"] == requests + len(TEXTS) - 1
        return
    # Not met again by a retry, because there is none: the same question is not asked twice in one run.
    assert isinstance(first, Judgment) == (not reason)
    # The next run asks again what is not in the journal, and is answered.
    (after, *_) = judged(mock, tmp_path, fault=fault)
    assert isinstance(after, Judgment) == (not kept or not reason)


def test_a_key_that_is_revoked_stops_the_run_and_loses_nothing(mock: Mock, tmp_path: Path) -> None:
    mock.config(revoked_after=2)
    with pytest.raises(AuthenticationError, match=r"status 401: Incorrect API key provided .* others had an answer"):
        judged(mock, tmp_path)
    # Two calls were paid for, and the third was refused.
    assert mock.stats()["requests"] == 3
    assert len(list(read_journal(tmp_path / "journal.sqlite"))) == 2
    mock.config(revoked_after=None)
    assert all(isinstance(one, Judgment) for one in judged(mock, tmp_path))
    assert set(mock.paid_per_item().values()) == {1}


# ---------------------------------------------------------------- white space under a JSON schema


@pytest.fixture
def blank(mock: Mock) -> Mock:
    """A server that answers every JSON schema with white space."""
    mock.config(faulty="", faults={"white-space": 1.0})
    return mock


def forms(mock: Mock, path: Path) -> list[str]:
    return [entry.form for entry in read_journal(path / "journal.sqlite")]


def test_a_judge_that_answers_a_schema_with_white_space_is_asked_in_text(blank: Mock, tmp_path: Path) -> None:
    results = judged(blank, tmp_path, tuple(f"t{number}" for number in range(20)))
    assert all(isinstance(one, Judgment) and one.form == "text" for one in results)
    # After three replies of white space nobody asks under the schema any more.
    asked = forms(blank, tmp_path)
    assert (asked.count("json"), asked.count("text")) == (3, 20)
    # The next run gets the same from the journal, and a new question goes out in the text form at once.
    texts = tuple(f"t{number}" for number in range(20))
    assert judged(blank, tmp_path, texts) == results
    assert blank.stats()["requests"] == 23
    judged(blank, tmp_path, (*texts, "another"))
    assert forms(blank, tmp_path).count("json") == 3


def test_a_run_that_was_killed_between_the_two_forms_goes_on_in_text(blank: Mock, tmp_path: Path) -> None:
    texts = tuple(f"t{number}" for number in range(4))
    # The key is revoked after the reply of white space, before the question in the text form.
    blank.config(revoked_after=1)
    with pytest.raises(AuthenticationError):
        judged(blank, tmp_path, texts)
    assert forms(blank, tmp_path) == ["json"]
    blank.config(revoked_after=None)
    results = judged(blank, tmp_path, texts)
    assert all(isinstance(one, Judgment) and one.form == "text" for one in results)
    assert set(blank.paid_per_item().values()) == {1}


def test_few_replies_of_white_space_cost_a_judge_nothing(mock: Mock, tmp_path: Path) -> None:
    """Three of 40 replies are less than a tenth."""
    mock.config(faults={"white-space": 1.0})
    texts = (*(f"t{number}" for number in range(37)), *(f"poison {number}" for number in range(3)))
    results = judged(mock, tmp_path, texts)
    assert [one.form for one in results if isinstance(one, Judgment)] == ["json"] * 37 + ["text"] * 3
    assert judged(mock, tmp_path, texts) == results
    judged(mock, tmp_path, ("another",))
    assert forms(mock, tmp_path).count("json") == 41


# ---------------------------------------------------------------- responses that no judge can read


@pytest.mark.long
def test_responses_that_always_fail_do_not_pass_for_a_dead_server(mock: Mock, tmp_path: Path) -> None:
    """The second run asks nothing but them, so that every call is given up; a server that is dead looks the same."""
    mock.config(faults={"html": 1.0})
    texts = tuple(f"{kind} {number}" for number in range(10) for kind in ("good", "poison"))
    for _ in range(2):
        assert [isinstance(one, Judgment) for one in judged(mock, tmp_path, texts)] == [True, False] * 10
    # New questions to a server that is dead still end a run.
    mock.config(faulty="")
    with pytest.raises(OperationalError, match="server/mock does not answer: 20 calls in a row were given up"):
        judged(mock, tmp_path, (*texts, *(f"new {number}" for number in range(10))))
    mock.config(faults={})
    assert all(isinstance(one, Judgment) for one in judged(mock, tmp_path, texts))


def test_the_last_judgments_fail_alone(mock: Mock, tmp_path: Path) -> None:
    """Nothing is left that a stop could save, and the journal of an older version does not know them."""
    judged(mock, tmp_path, ("one", "two"))
    mock.config(faults={"html": 1.0})
    results = judged(mock, tmp_path, ("one", "two", "poison 1", "poison 2", "poison 3"))
    assert [isinstance(one, Judgment) for one in results] == [True] * 2 + [False] * 3
