"""PTKB statements of runs in every format as rankings of numbers, and the assessments of real topics."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judge.errors import InputError
from judge.extra.evaluate.intake import RankedRun, own_assessment, ranked_runs, statement_ranking
from judge.extra.evaluate.measured import MAIN_OF_STATEMENTS, STATEMENT_MEASURES, Evaluator, ask
from judge.pool.lists import read_grades
from judge.runs.formats import read_run
from judge.runs.records import PtkbStatement, Topic, Turn
from judge.runs.topics import read_topics, turns_by_id
from tests.conftest import put

PTKB = (PtkbStatement("1", "I run."), PtkbStatement("2", "I am vegan."), PtkbStatement("3", "I live in Rome."))
TURN = Turn("1-1_1", "1-1", "Where?", None, (), PTKB, ("2",))
TURNS = {"1-1_1": TURN}


def object_2023(ptkb_id: str, score: object, text: str = "a text") -> dict[str, object]:
    return {"id": ptkb_id, "text": text, "score": score}


def run_2023(*responses: list[Any], ranks: tuple[int, ...] = (1, 2, 3)) -> dict[str, object]:
    given = [
        {"rank": rank, "text": "x", "passage_provenance": [], "ptkb_provenance": ptkb}
        for rank, ptkb in zip(ranks, responses, strict=False)
    ]
    return {"run_name": "a", "run_type": "automatic", "turns": [{"turn_id": "1-1_1", "responses": given}]}


def run_2025(statements: list[str]) -> dict[str, object]:
    return {
        "metadata": {"team_id": "t", "run_id": "a", "run_type": "automatic"},
        "turn_id": "1-1_1",
        "responses": [{"rank": 1, "text": "x", "citations": {"p": 1.0}, "ptkb_provenance": statements}],
        "references": {"p": 1.0},
    }


def statements(tmp_path: Path, content: dict[str, object], turns: dict[str, Turn] | None = TURNS) -> RankedRun:
    read = read_run(put(tmp_path / ("a.jsonl" if "metadata" in content else "a.json"), json.dumps(content)))
    assert read.run is not None
    return statement_ranking(read.run, read.places, turns)


def order(run: RankedRun) -> list[str]:
    return [item for item, _ in run.ranking["1-1_1"]]


def test_statements_of_2023_are_ranked_by_score(tmp_path: Path) -> None:
    run = statements(tmp_path, run_2023([object_2023("1", 0.1), object_2023("3", 0.9), object_2023("2", 0.5)]))
    assert run.ranking == {"1-1_1": [("3", 3.0), ("2", 2.0), ("1", 1.0)]}
    assert run.outside == 0


def test_without_a_score_for_each_the_list_is_the_order(tmp_path: Path) -> None:
    run = statements(tmp_path, run_2023([object_2023("1", 0.1), object_2023("3", None), object_2023("2", 0.5)]))
    assert order(run) == ["1", "3", "2"]


def test_numbers_of_2024_are_ranked_in_the_order_of_the_list(tmp_path: Path) -> None:
    assert order(statements(tmp_path, run_2023([3, 1, 3]) | {"eval_response": True})) == ["3", "1"]


def test_texts_of_2025_become_numbers_by_the_topics(tmp_path: Path) -> None:
    run = statements(tmp_path, run_2025(["I  live in Rome. ", "I said so.", "I run.", "I said so.", "\ud800"]))
    assert order(run) == ["3", "outside 1", "1", "outside 4"]
    assert run.outside == 2


def test_numbers_that_the_topic_lacks_keep_their_place(tmp_path: Path) -> None:
    content = run_2023([7, 2]) | {"eval_response": True}
    run = statements(tmp_path, content)
    assert (order(run), run.outside) == (["outside 0", "2"], 1)
    unchecked = statements(tmp_path, content, None)
    assert (order(unchecked), unchecked.outside) == (["7", "2"], None)


def test_the_first_response_by_rank_counts(tmp_path: Path) -> None:
    run = statements(tmp_path, run_2023([1], [2], [2]) | {"eval_response": True})
    assert order(run) == ["1"]
    assert run.remarks == ("1 turn with other statements in other responses, of which the first by rank counts",)
    turned = statements(tmp_path, run_2023([1], [2], ranks=(2, 1)) | {"eval_response": True})
    assert order(turned) == ["2"]


def test_texts_without_topics_and_runs_without_statements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--topics FILE"):
        statements(tmp_path, run_2025(["I run."]), None)
    cast = {"run_name": "a", "run_type": "manual", "turns": [{"turn_id": "132_1-1", "responses": [
        {"rank": 1, "text": "x", "provenance": [{"id": "p", "text": "x", "score": 1.0}]}]}]}  # fmt: skip
    with pytest.raises(InputError, match="cast2022 name no PTKB statements"):
        statements(tmp_path, cast)


def test_the_links_of_the_topics_are_an_assessment() -> None:
    unlinked = Turn("1-1_2", "1-1", "Why?", None, (), PTKB)
    assert own_assessment([Topic("1-1", None, PTKB, (TURN, unlinked))]) == {"1-1_1": {"1": 0, "2": 1, "3": 0}}


def test_measures_by_hand(tmp_path: Path) -> None:
    run = statements(tmp_path, run_2025(["I said so.", "I am vegan.", "I run."]))
    asked = ask(STATEMENT_MEASURES, MAIN_OF_STATEMENTS, item="statement")
    evaluator = Evaluator("org", {"1-1_1": {"1": 0, "2": 1, "3": 1}, "1-1_2": {"1": 1}}, asked)
    evaluator.add(run)
    # Ranks: none, relevant, not; one of the two relevant statements is named. The other turn counts 0.
    found = {score.criterion: score.values["1-1_1"] for score in evaluator.result().scores}
    gain = 1 / 1.584962500721156  # log2(3)
    assert found == pytest.approx(
        {"nDCG@3": gain / (1 + gain), "P@3": 1 / 3, "R@3": 1 / 2, "R@5": 1 / 2, "RR": 1 / 2}
        | {"SetP": 1 / 3, "SetR": 1 / 2, "SetF": 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2), "AP": (1 / 2) / 2}
    )
    assert {score.mean.value for score in evaluator.result().scores if score.criterion == "P@3"} == {1 / 6}


# Real data


def test_the_links_of_2023_are_the_assessment_by_the_organizers(shared: Path) -> None:
    folder = shared / "ikat/2023"
    assert own_assessment(read_topics(folder / "2023_test_topics.json")) == read_grades(folder / "ptkb_rel_org")


def test_the_released_assessments_have_the_turns_of_the_overview(shared: Path) -> None:
    counts = {
        name: (len(grades), sum(map(len, grades.values())))
        for name in ("nist", "org")
        for grades in [read_grades(shared / f"ikat/2023/ptkb_rel_{name}")]
    }
    # Table 1 of the overview of iKAT 2023.
    assert counts == {"nist": (98, 1030), "org": (112, 1158)}


def test_a_submitted_run_of_2025_by_sets_counted_here(shared: Path) -> None:
    topics = read_topics(shared / "ikat/2025/2025_test_topics.json")
    turns = turns_by_id(topics)
    file = shared / "ikat/2025/runs/cfda-ikat2025-auto-1.jsonl"
    (run,) = ranked_runs(file, partial(statement_ranking, turns=turns), [])
    evaluator = Evaluator("org", own_assessment(topics), ask(["SetP", "SetR", "SetF"], "AP"))
    evaluator.add(run)
    found = {score.criterion: score.mean.value for score in evaluator.result().scores}
    sums = {"SetP": 0.0, "SetR": 0.0, "SetF": 0.0}
    entries = {entry["turn_id"]: entry for entry in map(json.loads, file.read_text(encoding="utf-8").splitlines())}
    linked = {turn_id: turn for turn_id, turn in turns.items() if turn.ptkb_provenance}
    outside = 0
    for turn_id, turn in turns.items():
        named = set(entries[turn_id]["responses"][0]["ptkb_provenance"])
        texts = {statement.ptkb_id: statement.text for statement in turn.ptkb}
        outside += len(named - set(texts.values()))
        if turn_id in linked:
            wanted = {texts[ptkb_id] for ptkb_id in turn.ptkb_provenance}
            hits = len(named & wanted)
            sums["SetP"] += hits / max(len(named), 1)
            sums["SetR"] += hits / len(wanted)
            sums["SetF"] += 2 * hits / (len(named) + len(wanted))
    assert {name: found[name] for name in sums} == pytest.approx({name: sums[name] / len(linked) for name in sums})
    assert (run.outside, len(linked)) == (outside, 64)
