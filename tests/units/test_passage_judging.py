"""Passages judged by models of every kind, over a server of this machine: forms, juries, budgets, batches, rechecks."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from tests.batch_server import answered
from tests.conftest import PROJECT, json_lines, printed, put
from tests.mock import Mock

pytestmark = pytest.mark.slow

EXAMPLES = PROJECT / "examples"
PAIRS = 51
"""Pairs of turn and passage of the example that have a text; one more has none."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, no_keys: None, no_pause: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "decisions-key-1")


def command(name: str, out: Path, *more: object) -> int:
    given = [name, "--runs", EXAMPLES / "runs", "--topics", EXAMPLES / "topics.json", "--passages"]
    given += [EXAMPLES / "passages.jsonl", "--criteria", "passage_relevance", "--out", out, *more]
    return main([str(each) for each in given])


def judged(mock: Mock, out: Path, *more: object, model: str = "server/mock") -> int:
    return command("run", out, "--model", model, "--base-url", mock.base_url, *more)


def grades(out: Path) -> dict[str, int]:
    """The grade of each pair, as the qrels have it."""
    lines = (out / "qrels" / "passage_relevance.llm.qrel").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines)
    return {f"{turn} {passage}": int(grade) for turn, _, passage, grade in rows}


@pytest.mark.parametrize(
    ("model", "options", "form", "has_expected"),
    [
        ("server/mock", (), "json", False),
        ("server/mock", ("--form", "text"), "text", False),
        ("server/mock", ("--logprobs",), "label", True),
        ("server/mock", ("--prompt", "passage_relevance/ikat"), "json", False),
        ("decisions/mock", (), "decision", True),
    ],
)
def test_each_form_grades_each_pair_once(tmp_path, mock: Mock, model, options, form, has_expected) -> None:
    assert judged(mock, tmp_path / "out", *options, model=model) == 0
    rows = json_lines(tmp_path / "out" / "judgments.jsonl")
    assert (len(rows), {row["form"] for row in rows}) == (PAIRS, {form})
    assert [row["expected"] is not None for row in rows] == [has_expected] * PAIRS
    assert len(grades(tmp_path / "out")) == PAIRS
    assert sum(mock.paid_per_item().values()) == PAIRS
    # All is recalled, and read again as it was.
    assert judged(mock, tmp_path / "out", *options, model=model) == 0
    assert sum(mock.paid_per_item().values()) == PAIRS
    assert json_lines(tmp_path / "out" / "judgments.jsonl") == rows


@pytest.mark.parametrize("model", ["server/mock", "decisions/mock"])
def test_grades_do_not_depend_on_how_many_are_asked_at_once(tmp_path, mock: Mock, model) -> None:
    mock.config(latency=0.005, jitter=0.8)
    files: set[tuple[bytes, ...]] = set()
    for concurrency in (1, 2, 64):
        out = tmp_path / str(concurrency)
        assert judged(mock, out, "--concurrency", concurrency, model=model) == 0
        files.add(
            tuple(
                (out / name).read_bytes()
                for name in ("judgments.jsonl", "grades.tsv", "qrels/passage_relevance.llm.qrel")
            )
        )
    assert len(files) == 1


def test_a_jury_grades_passages_by_its_members(tmp_path, mock: Mock) -> None:
    assert judged(mock, tmp_path / "out", "--jury", "median", "--samples", 3) == 0
    members: dict[str, list[int]] = {}
    for row in json_lines(tmp_path / "out" / "members.jsonl"):
        members.setdefault(row["response_id"], []).append(row["grade"])
    assert {len(given) for given in members.values()} == {3}
    medians = {response_id: sorted(given)[1] for response_id, given in members.items()}
    assert {row["response_id"]: row["grade"] for row in json_lines(tmp_path / "out" / "judgments.jsonl")} == medians
    assert len(grades(tmp_path / "out")) == PAIRS


def test_some_passages_are_asked_again(tmp_path, mock: Mock) -> None:
    assert judged(mock, tmp_path / "out", "--recheck", 7) == 0
    rows = json_lines(tmp_path / "out" / "recheck.jsonl")
    assert len(rows) == 7
    assert {row["response_id"] for row in rows} <= {
        row["response_id"] for row in json_lines(tmp_path / "out" / "judgments.jsonl")
    }
    assert sum(mock.paid_per_item().values()) == PAIRS + 7


def test_a_spent_budget_leaves_the_rest_for_the_next_command(tmp_path, mock: Mock, capsys) -> None:
    priced = ("--price", "1000/1000", "--concurrency", 1)
    assert judged(mock, tmp_path / "out", *priced, "--max-cost", "10") == 3
    first = sum(mock.paid_per_item().values())
    reasons = Counter(row["reason"] for row in json_lines(tmp_path / "out" / "failures.jsonl"))
    assert 0 < first < PAIRS and reasons == {"budget": PAIRS - first, "no_passages": 1}
    assert len(grades(tmp_path / "out")) == first
    assert judged(mock, tmp_path / "out", *priced) == 0
    assert sum(mock.paid_per_item().values()) == PAIRS == len(grades(tmp_path / "out"))
    capsys.readouterr()
    assert judged(mock, tmp_path / "new", *priced, "--dry-run", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["by_model"]
    assert (row["judgments"], row["without_evidence"], row["expected"]["calls"]) == (PAIRS + 1, 1, PAIRS)


def test_replies_are_read_again_without_a_call(tmp_path, mock: Mock, capsys) -> None:
    assert judged(mock, tmp_path / "out") == 0
    paid = mock.paid_per_item()
    before = (tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel").read_bytes()
    capsys.readouterr()
    changes = json.loads(printed(capsys, main(["journal", "reparse", str(tmp_path / "out"), "--json"])))["changes"]
    assert (changes, mock.paid_per_item()) == ([], paid)
    assert (tmp_path / "out" / "qrels" / "passage_relevance.llm.qrel").read_bytes() == before


def test_batch_engines_grade_what_a_run_would_ask(tmp_path, mock: Mock, capsys) -> None:
    out = tmp_path / "out"
    engine = ("--model", "server/m", "--base-url", "http://127.0.0.1:9/v1")
    assert command("requests", out, *engine, "--requests", tmp_path / "round") == 0
    asked: list[dict[str, Any]] = json_lines(tmp_path / "round" / "requests-00001.jsonl")
    assert len(asked) == PAIRS
    back = put(tmp_path / "back.jsonl", "".join(f"{json.dumps(answered(line))}\n" for line in asked))
    given = ["completions", "import", back, "--requests", tmp_path / "round", "--out", out]
    assert main([str(each) for each in given]) == 0
    assert command("run", out, *engine) == 0
    # The engine gives each the worst grade, and nothing is left to ask.
    assert Counter(grades(out).values()) == {0: PAIRS}


def test_a_judge_with_probabilities_has_an_auc_by_expected_grades(tmp_path, mock: Mock, capsys) -> None:
    assert judged(mock, tmp_path / "out", model="decisions/mock") == 0
    people = "".join(
        f"{pair.replace(' ', ' 0 ')} {number % 4}\n" for number, pair in enumerate(grades(tmp_path / "out"))
    )
    gold = put(tmp_path / "nist.qrel", people)
    capsys.readouterr()
    given = ["calibrate", "--gold", gold, "--judgments", tmp_path / "out", "--criterion", "passage_relevance", "--json"]
    found = json.loads(printed(capsys, main([str(each) for each in given])))
    row = next(row for row in found["agreement"] if row["judge"] == "decisions/mock")
    cut = next(row for row in found["findings"]["cuts"] if row["judge"] == "decisions/mock" and row["facts"]["own"])
    assert cut["facts"]["auc_of"] == "expected grades"
    assert cut["statistics"]["auc"]["value"] == pytest.approx(row["statistics"]["auc"]["value"])
