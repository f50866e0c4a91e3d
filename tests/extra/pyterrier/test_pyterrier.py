"""Answers of two pipelines under our measure: in PyTerrier, and as PyTerrier calls ir_measures for it."""

from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest

from judge import FunctionJudge, UsageError, pyterrier
from tests.conftest import json_lines

pytestmark = pytest.mark.slow
TOPICS = pd.DataFrame({"qid": ["1", "q_2", "3"], "query": ["Why do birds fly?", "Why is bread stale?", "When?"]})
PASSAGES = pd.DataFrame({"docno": ["a", "b"], "text": ["Wings lift birds.", "Starch sets."], "score": [1.0, 2.0]})
QRELS = TOPICS[["qid"]].rename(columns={"qid": "query_id"})
NAN = pytest.approx(float("nan"), nan_ok=True)


def values(through: str, measure: Any, *texts: str, passages: pd.DataFrame = PASSAGES) -> list[float]:
    """The measure of each query's answer; in place of PyTerrier, its call of ir_measures."""
    frame = TOPICS.head(len(texts)).assign(qanswer=texts).merge(passages, how="cross")
    if through == "PyTerrier":
        pt = pytest.importorskip("pyterrier", reason="python-terrier is not installed")
        rows = pt.Experiment([frame], TOPICS, TOPICS[["qid"]], [measure], perquery=True)
        found = dict(zip(rows["qid"], rows["value"], strict=True))
    else:
        frame = frame.rename(columns={"qid": "query_id", "docno": "doc_id"})
        found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], QRELS, frame)}
    return [found.pop(query_id) for query_id in TOPICS["qid"]] + [*found]


@pytest.mark.parametrize("through", ["ir_measures", "PyTerrier"])
def test_no_answer_is_asked_about_twice_and_a_lacking_grade_is_no_number(through: str, tmp_path: Path) -> None:
    asked: list[str] = []

    def grade(messages: Any) -> int:
        asked.append(str(messages))
        return next((grade for word, grade in {"lifted": 3, "dried": 1}.items() if word in asked[-1]), 7)

    options: Any = {"model": FunctionJudge("mine/v1", grade), "out": tmp_path}
    plain, zero = pyterrier("groundedness", **options), pyterrier("groundedness", lacking=0.0, **options)
    for measure, lacking in ((plain, NAN), (zero, 0.0)):
        assert values(through, measure, "It is lifted.", "It dried.", "") == [3.0, 1.0, lacking]
        assert values(through, measure, "It is lifted.", "Off the scale.") == [3.0, lacking, lacking]
        assert {each["contents"] for each in json_lines(tmp_path / "passages.jsonl")} == {*PASSAGES["text"]}
    # The reply off the scale is asked for once more, by each of the two measures.
    assert (len(asked), len({*asked})) == (6, 4)
    assert values(through, plain, "It lifted.", passages=pd.DataFrame({"qcontext": ["All of it."]})) == [3.0, NAN, NAN]
    assert [each["contents"] for each in json_lines(tmp_path / "passages.jsonl")] == ["All of it."]


def test_ids_of_queries_may_be_numbers(tmp_path: Path) -> None:
    topics = pd.DataFrame({"query_id": [1, 2], "query": ["Why do birds fly?", "When?"], "qanswer": ["So.", "Now."]})
    measure = pyterrier("naturalness", model=FunctionJudge("mine/v2", lambda messages: 2), out=tmp_path)
    found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], topics[["query_id"]], topics)}
    assert found == {1: 2.0, 2: 2.0}


def test_a_prompt_about_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="responses are judged here"):
        pyterrier("support")
