"""AutoJudge's own runner with our workflow, at a mock endpoint that is then taken away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click import ClickException

from judge.errors import MissingKeyError, OperationalError
from judge.extra.autojudge import AutoJudge
from tests.conftest import PROJECT, put
from tests.mock import Mock

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("endpoint")]
EXAMPLE = PROJECT / "examples"
WRITTEN = ("default.eval.txt", "default.eval.measures.yml", "default.qrels.txt", "default.nuggets.jsonl")


@pytest.fixture(scope="module")
def autojudge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Their package, with a list of stop words in place of NLTK's, which it would fetch as it starts."""
    data = pytest.importorskip("nltk.data")
    words = tmp_path_factory.mktemp("nltk")
    put(words / "corpora" / "stopwords" / "english", "the\n")
    (words / "tokenizers" / "punkt").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "path", [str(words)])
        yield pytest.importorskip("autojudge_base")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, no_keys: None, autojudge: Any, mock: Mock, tmp_path: Path) -> None:
    for name, value in {"BASE_URL": mock.base_url, "MODEL": "mock", "API_KEY": "k"}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
    monkeypatch.setenv("CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    rows = [line.split("\t") for line in (EXAMPLE / "citations" / "topics.tsv").read_text().splitlines()]
    lines = (json.dumps({"request_id": name, "title": text}) for name, text in rows)
    return put(tmp_path / "topics.jsonl", "\n".join(lines))


@pytest.fixture
def inputs(request: pytest.FixtureRequest) -> dict[str, Path]:
    if request.param == "kiddie":
        data = request.getfixturevalue("shared") / "rag-runs" / "kiddie"
        return {"rag-responses": data / "runs" / "repgen", "rag-topics": data / "topics" / "kiddie-topics.jsonl"}
    topics = request.getfixturevalue("topics")
    for path in EXAMPLE.glob("citations/runs/*.jsonl"):
        put(topics.parent / "runs" / path.name, path.read_bytes())
    return {"rag-responses": topics.parent / "runs", "rag-topics": topics, "corpus": EXAMPLE / "passages.jsonl"}


def played(out: Path, inputs: dict[str, Path]) -> dict[str, bytes]:
    """What their runner writes."""
    from autojudge_base.cli import main

    workflow = PROJECT / "judge" / "extra" / "autojudge" / "workflow.yml"
    named = [f"--{name}={path}" for name, path in {**inputs, "workflow": workflow, "out-dir": out}.items()]
    main(["run", *named, "--create-nuggets", "--create-qrels"], standalone_mode=False)
    return {name: (out / name).read_bytes() for name in WRITTEN if (out / name).exists()}


def given(topics: Path) -> tuple[list[Any], list[Any], Any]:
    """The responses, the topics, and a model without CACHE_DIR."""
    from autojudge_base import LlmConfigBase, load_report, load_requests_from_file

    reports = [report for file in sorted(EXAMPLE.glob("citations/runs/*.jsonl")) for report in load_report(file)]
    return reports, load_requests_from_file(topics), LlmConfigBase(model="mock")


@pytest.mark.parametrize("inputs", ["ours", "kiddie"], indirect=True)
def test_a_second_run_without_the_endpoint_gives_the_same_bytes(
    inputs: dict[str, Path], mock: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(put(tmp_path / "here" / "empty", "").parent)
    first = played(tmp_path / "first", inputs)
    assert set(first) == set(WRITTEN)
    paid = mock.paid_per_item()
    assert paid and set(paid.values()) == {1}
    monkeypatch.setenv("OPENAI_BASE_URL", "EMPTY")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert played(tmp_path / "second", inputs) == first
    assert mock.paid_per_item() == paid
    assert [path.name for path in Path.cwd().iterdir()] == ["empty"]
    lines = [line.split("\t") for line in first["default.eval.txt"].decode().splitlines()]
    *of_topics, mean = (float(row[3]) for row in lines if (row[0], row[2]) == (lines[0][0], "relevance"))
    assert mean == pytest.approx(sum(of_topics) / len(of_topics))
    names = {"groundedness", "groundedness_bound", "relevance", "relevance_bound", "nuggets_all_score"}
    assert {measure for _, _, measure, _ in lines} == names


def test_a_failure_is_no_grade_and_the_worst_in_the_bound(mock: Mock, topics: Path) -> None:
    mock.config(faults={"filter-400": 1.0}, faulty="A loaf cut warm is gummy")
    judge = AutoJudge()
    board = judge.judge(*given(topics), criteria=["relevance"])
    values = {(each.run_id, each.topic_id): each.values for each in board.entries}
    assert values["wren-reports", "bread"] == {"relevance_bound": 0.0}
    assert values["wren-reports", "all"]["relevance"] == values["wren-reports", "train"]["relevance"]
    assert set(values["heron-cites", "bread"]) == {"relevance", "relevance_bound"}
    # Without CACHE_DIR nothing is asked twice either, as long as the process lasts.
    paid = mock.stats()["paid"]
    qrels = judge.create_qrels(*given(topics), criteria=["relevance"])
    assert mock.stats()["paid"] == paid
    assert sorted(row.topic_id for row in qrels.rows) == ["bread", "train", "train"]
    assert {row.grade for row in qrels.rows} == {int(of["relevance"]) for of in values.values() if len(of) > 1}


def test_the_address_of_their_configuration_counts(mock: Mock, topics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    reports, requests, config = given(topics)
    AutoJudge().judge(reports, requests, type(config)(model="mock", base_url=mock.base_url), criteria=["relevance"])
    assert mock.stats()["paid"]
    for error in (OperationalError, MissingKeyError):
        with pytest.raises(ClickException, match="the endpoint is off") as refused:
            AutoJudge().judge(reports, requests, type(config)(model="mock", base_url="EMPTY"), criteria=["relevance"])
        assert (type(refused.value.__cause__), refused.value.exit_code) == (error, error.exit_code)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize("inputs", ["ours"], indirect=True)
@pytest.mark.parametrize(("name", "value", "said"), [
    ("API_KEY", "", "set the environment variable OPENAI_API_KEY"),
    ("BASE_URL", "nowhere", "OPENAI_BASE_URL must be an address like http://"),
    ("MODEL", "", "model name 'openai/' has no backend"),
])  # fmt: skip
def test_a_wrong_variable_ends_in_a_message_and_no_file(inputs, name, value, said, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(f"OPENAI_{name}", value)
    with pytest.raises(ClickException, match=said):
        played(tmp_path / "out", inputs)
    assert not {*WRITTEN} & {path.name for path in (tmp_path / "out").iterdir()}


def test_what_cannot_be_done_is_refused(mock: Mock, topics: Path) -> None:
    judge, (reports, requests, config) = AutoJudge(), given(topics)
    with pytest.raises(ClickException, match="settings: no option that a setting may give: criteriaa, model"):
        judge.judge(reports, requests, config, criteriaa=["relevance"], model="x")
    with pytest.raises(
        ClickException, match=r"expected one criterion about responses \(qrels_settings\), found support/"
    ):
        judge.create_qrels(reports, requests, config, criteria=["support"], corpus=str(EXAMPLE / "passages.jsonl"))
    with pytest.raises(ClickException, match="cannot be judged") as refused:
        judge.judge(reports, requests, config, criteria=["relevance"], profile="rag")
    problems = [line.partition(": ")[0] for line in refused.value.message.splitlines()[1:]]
    assert problems == ["heron-cites.jsonl", "wren-reports.jsonl"] and refused.value.exit_code == 2
    assert judge.create_nuggets(None, requests, config) is None
