"""`judge evaluate qrels`: files of any origin in, tables, one object or a folder out; bad input refused whole."""

import json
import random
from pathlib import Path

import pytest
from msgspec import structs

from judge.cli import main
from judge.extra.evaluate.qrels import QrelsPlan, compare_qrels
from judge.io.files import text_of
from judge.io.ids import topic_of
from tests.calibration_world import Item, contents, items, jsonl, judgment, pool, write_columns, write_pool
from tests.conftest import printed, put

WORLD = [structs.replace(one, turn_id=f"{topic_of(one.turn_id)}_1") for one in items(topics=10, noise=0.3)]
"""Ten turns, each with a response of five runs."""
PASSAGES = [f"p{n}" for n in range(6)]


def write(path: Path, *lines: str) -> str:
    return str(put(path, "".join(f"{line}\n" for line in lines)))


def columns(path: Path, grade: str, keep: float = 1.0) -> str:
    rng = random.Random(3)
    kept = [one for one in WORLD if rng.random() < keep]
    write_columns(path, {(one.turn_id, one.response_id): getattr(one, grade) for one in kept})
    return str(path)


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """An output folder of one judge, as far as a comparison reads it."""
    folder = tmp_path / "out"
    write_pool(folder, pool(WORLD, words=lambda one: int(one.response_id[1:]) + 1))
    write_results(folder, WORLD)
    return folder


def write_results(folder: Path, world: list[Item], *more: bytes) -> None:
    rows = [judgment(one.turn_id, one.response_id, one.deserved, "server/good", "groundedness/graded") for one in world]
    (folder / "judgments.jsonl").write_bytes(jsonl(rows) + b"".join(more))
    for name in ("runs.jsonl", "excluded.tsv"):
        if not (folder / name).exists():
            (folder / name).write_bytes(b"")


@pytest.fixture
def passages(tmp_path: Path) -> dict[str, str]:
    """Two sets of passage qrels and a folder of TREC runs; the turns are of ten topics."""
    rng = random.Random(7)
    turns = [f"{topic}_{turn}" for topic in range(10) for turn in (1, 2)]
    grades = {(turn, item): rng.randrange(4) for turn in turns for item in PASSAGES}
    runs = tmp_path / "runs"
    for n in range(4):
        ranked = (f"{turn} Q0 {item} 1 {grade + rng.gauss(0, n)} run{n}" for (turn, item), grade in grades.items())
        write(runs / f"run{n}.txt", *ranked)
    lines = [f"{turn} 0 {item} {grade}" for (turn, item), grade in grades.items()]
    noisy = [f"{turn} 0 {item} {min(3, max(0, g + rng.choice((-1, 0, 1))))}" for (turn, item), g in grades.items()]
    return {"a": write(tmp_path / "a.qrel", *lines), "b": write(tmp_path / "b.qrel", *noisy[5:]), "runs": str(runs)}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["evaluate", "qrels", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def turned_down(capsys: pytest.CaptureFixture[str], said: str, *arguments: str) -> None:
    code, out, err = told(capsys, *arguments)
    assert (code, out, said in err) == (2, "", True)


def test_passage_qrels_rank_trec_runs_by_ndcg(passages: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, passages["a"], passages["b"], "--runs", passages["runs"], "--json")
    found = json.loads(out)
    assert (code, found["agreement"]["items"], found["agreement"]["a"]["only_items"]) == (0, 115, 5)
    (ranking,) = found["rankings"]
    assert (ranking["measure"], len(ranking["runs"]), len(ranking["pairs"])) == ("nDCG@5", 4, 6)
    assert ranking["runs"][0]["run_id"] == "run0"
    assert ranking["statistics"].keys() == {"tau_b", "tau_ap_b", "rbo_b", "top_1", "top_3", "swapped"}


def test_the_pool_of_an_output_folder_gives_the_runs_and_the_mean_is_their_measure(judged, tmp_path, capsys) -> None:
    code, out, _ = told(capsys, str(judged), columns(tmp_path / "crowd.qrel", "gold", keep=0.8), "--json")
    found = json.loads(out)
    (ranking,) = found["rankings"]
    assert (code, ranking["measure"]) == (0, "mean")
    by_run = {run["run_id"]: run for run in ranking["runs"]}
    grades = [one.deserved for one in WORLD if one.run_id == "ape"]
    assert by_run["ape"]["a"]["mean"]["value"] == pytest.approx(sum(grades) / len(grades))
    holes = {row["run_id"]: row for row in ranking["holes"]}
    assert sum(row["only_a"] for row in holes.values()) == found["agreement"]["a"]["only_items"] > 0
    for run_id, row in holes.items():
        value = by_run[run_id]["b"]["mean"]["value"]
        assert row["range_b"]["low"] <= value <= row["range_b"]["high"]
        assert row["range_a"]["low"] == row["range_a"]["high"]


def test_scales_that_differ_are_refused_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path / "a.qrel", "1_1 0 p 3", "1_1 0 q 1", "2_1 0 p 0")
    b = write(tmp_path / "b.qrel", "1_1 0 p 1", "1_1 0 q 1", "2_1 0 p 0")
    code, _, err = told(capsys, a, b)
    assert code == 2
    assert "A has the grades 0 to 3" in err and "B 0 to 1" in err and "--positive N M" in err
    # Positive: 1, 0, 0 by A and 1, 1, 0 by B.
    code, out, _ = told(capsys, a, b, "--positive", "2", "1", "--json")
    assert json.loads(out)["agreement"]["confusion"] == [[1, 1], [0, 1]]
    assert told(capsys, a, b, "--scale", "0-3")[0] == 0
    turned_down(capsys, "--positive 9: A has the grades 0 to 3", a, b, "--positive", "9")
    with pytest.raises(SystemExit):
        told(capsys, a, b, "--positive", "1", "1", "1")
    assert "argument --positive: expected at most 2 values" in capsys.readouterr().err


@pytest.mark.parametrize(("first", "second", "options", "said"), [
    ("1_1 0 p 1", "2_1 0 p 1", "", "no turn that both graded: '1_1' in"),
    ("1_1 0 p 1", "1_1 0 q 1", "", "no item that both graded, on 1 common turn"),
    ("1_1 0 p 1\n1_1 0 p 2", "1_1 0 p", "", "duplicate_row at 1_1 line 2"),
    ("1_1 0 p 1\n1_1 0 p 2", "1_1 0 p", "", "wrong_columns at 1_1 line 1: 3 columns"),
    ("1-1 0 p 1\n1_1 0 p 1", "1_1 0 p 1", "", "duplicate_row at 1_1: p is graded twice"),
    ("1_1 0 p 5", "1_1 0 p -1", "--scale 0-3", "off_scale at 1_1 p: grade 5: expected one of 0, 1, 2, 3"),
    ("1_1 0 p 5", "1_1 0 p -1", "--scale 0-3", "off_scale at 1_1 p: grade -1"),
    ("1_1 0 p 500", "1_1 0 p 1", "", "grades from 0 to 500: expected a scale of at most 101 grades"),
    ("1_1 0 p 1", "1_1 0 p 1", "--measure AP", "--measure needs runs (--runs)"),
])  # fmt: skip
def test_bad_input_is_refused_with_all_problems(tmp_path, capsys, first, second, options, said) -> None:
    a, b = write(tmp_path / "a.qrel", first), write(tmp_path / "b.qrel", *second.split("\n"))
    turned_down(capsys, said, a, b, *options.split())


def test_problems_of_both_sets_and_of_the_runs_are_told_at_once(passages: dict[str, str], tmp_path, capsys) -> None:
    bad = write(tmp_path / "runs" / "bad.run", "1_1 Q0 p 1 0.5 bad", "1_1 Q0 p 1 nan bad", "1_1 Q0 p")
    a = write(tmp_path / "bad.qrel", "1_1 0 p x")
    code, _, err = told(capsys, a, str(tmp_path / "nothing.qrel"), "--runs", passages["runs"])
    assert code == 2
    assert "wrong_grade at 1_1 line 1" in err and "nothing.qrel: cannot be read" in err
    assert f"{bad}: wrong_score" in err and f"{bad}: wrong_columns" in err


def test_runs_of_other_turns_are_refused(passages: dict[str, str], tmp_path, capsys) -> None:
    write(tmp_path / "runs" / "other.run", "77_1 Q0 p 1 0.5 other")
    turned_down(
        capsys,
        "'other': other_turns: answers none of the 20 turns",
        passages["a"],
        passages["b"],
        "--runs",
        passages["runs"],
    )


def test_a_run_that_neither_set_graded_is_told_and_a_measure_with_two_names_counts_once(
    passages: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "runs" / "far.run", "1_1 Q0 elsewhere 1 0.5 far")
    arguments = (passages["a"], passages["b"], "--runs", passages["runs"], "--measure", "MAP", "AP", "--json")
    code, out, err = told(capsys, *arguments)
    assert (code, [ranking["measure"] for ranking in json.loads(out)["rankings"]]) == (0, ["AP"])
    assert "Warning: 'far', AP: 1 item, none graded by A or B: its score says nothing" in err


def test_runs_of_passages_do_not_go_with_grades_of_responses(judged: Path, passages: dict[str, str], capsys) -> None:
    turned_down(
        capsys,
        "no run ranks an item that A or B graded",
        str(judged),
        str(judged),
        "--runs",
        f"{passages['runs']}/run1.txt",
    )


def test_turns_that_the_topics_lack_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turn = {"turn_id": 1, "utterance": "u", "resolved_utterance": "u", "response": "r"}
    turn |= {"response_provenance": [], "ptkb_provenance": []}
    topics = put(tmp_path / "topics.json", json.dumps([{"number": "1", "ptkb": {"1": "x"}, "turns": [turn]}]))
    a = write(tmp_path / "a.qrel", "1_1 0 p 1", "1_2 0 p 0")
    turned_down(capsys, "unknown_turn at 1_2", a, a, "--topics", str(topics))


def test_judgments_of_two_criteria_need_the_name_of_one(judged: Path, tmp_path, capsys) -> None:
    write_results(judged, WORLD, jsonl([judgment("1_1", "R00001", 4, "server/good", "naturalness/graded")]))
    gold = columns(tmp_path / "gold.qrel", "gold")
    turned_down(capsys, "expected one judge under one prompt (--criterion NAME)", str(judged), gold)
    assert told(capsys, str(judged), gold, "--criterion", "groundedness")[0] == 0
    turned_down(capsys, "no judgment under relevance", str(judged), gold, "--criterion", "relevance")


def test_two_pools_that_mean_other_responses_by_one_id_are_refused(judged: Path, tmp_path, capsys) -> None:
    other = tmp_path / "other"
    write_pool(other, pool(WORLD, words=lambda one: int(one.response_id[1:]) + (one.response_id == "R00003") + 1))
    write_results(other, WORLD)
    turned_down(capsys, "other_response at 1_1 R00003", str(judged), str(other))
    assert told(capsys, str(judged), str(judged))[0] == 0


def test_grades_off_the_scale_count_as_missing_where_that_is_asked(tmp_path, capsys) -> None:
    a = write(tmp_path / "a.qrel", "1_1 0 p 1", "1_1 0 q 3")
    b = write(tmp_path / "b.qrel", "1_1 0 p 1", "1_1 0 q -1")
    code, out, err = told(capsys, a, b, "--scale", "0-3", "--off-scale", "missing", "--json")
    assert (code, json.loads(out)["agreement"]["a"]["only_items"]) == (0, 1)
    assert "1 of 2 grades off the scale, which count as missing" in err


def test_where_lower_is_better_the_ranking_turns_and_ndcg_is_refused(judged: Path, tmp_path, capsys) -> None:
    gold = columns(tmp_path / "gold.qrel", "gold")
    lower = ("--scale", "0-3", "--polarity", "lower", "--runs", str(judged))
    assert told(capsys, gold, gold, *lower)[0] == 0
    found = compare_qrels(QrelsPlan(a=gold, b=gold, scale="0-3", polarity="lower", runs=[judged])).rankings[0]
    values = [run.a.mean.value for run in found.runs]
    assert values == sorted(values, key=lambda value: value or 0.0)
    turned_down(capsys, "lower grades are better here", gold, gold, *lower, "--measure", "nDCG@5")


def test_the_folder_holds_every_table_and_a_picture_and_is_the_same_again(passages, tmp_path, capsys) -> None:
    arguments = (passages["a"], passages["b"], "--runs", passages["runs"], "--measure", "nDCG@5", "P@5")
    code, out, _ = told(capsys, *arguments, "--format", "tsv", "--out", str(tmp_path / "one"))
    assert code == told(capsys, *arguments, "--out", str(tmp_path / "two"))[0] == 0
    first = contents(tmp_path / "one")
    assert first == contents(tmp_path / "two")
    assert {*"sets.tsv runs.md holes.tex swaps.json slopes-1.svg slopes-2.png sets.sha256".split()} <= first.keys()
    assert first["rankings.tsv"].decode() in out


def test_a_judge_of_llmjudge_against_nist(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "llmjudge"
    code, out, _ = told(
        capsys, str(folder / "llmjudge_test.qrel"), str(folder / "judges/willia-umbrela1.txt"), "--json"
    )
    found = json.loads(out)["agreement"]
    assert (code, found["items"], found["topics"], found["confusion"][0]) == (0, 4423, 25, [1521, 369, 88, 27])
    # Kappa and alpha as published, with the interval of 25 topics.
    published = {"kappa": 0.286272, "alpha_ordinal": 0.491793, "wkappa": 0.504356, "ac2": 0.732516}
    assert {name: round(found["statistics"][name]["value"], 6) for name in published} == published
    kappa = found["statistics"]["kappa"]
    assert (round(kappa["low"], 4), round(kappa["high"], 4)) == (0.1634, 0.4004)


@pytest.mark.long
def test_the_stored_judges_of_rag_2026(shared: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """The figures on the page: five judges in pairs, over two versions, and as a jury."""
    monkeypatch.chdir(tmp_path)
    gpt, *versions = [
        str(shared / f"rag26/rag25-climbmix-umbrela-{name}.qrels.gz")
        for name in ("codex-gpt5.5-medium-reasoning-v1", "qwen3.5-9b-v1", "qwen3.5-9b-v2",
                     "ministral-3-14b-instruct-2512-v1", "ministral-3-14b-instruct-2512-v2")
    ]  # fmt: skip

    def kappa(a: str, b: str) -> float:
        found = json.loads(told(capsys, a, b, "--scale", "0-4", "--json")[1])["agreement"]
        assert (found["items"], found["topics"]) == (26341, 22)
        return round(found["statistics"]["kappa"]["value"], 3)

    assert [kappa(gpt, version) for version in versions] == [0.290, 0.301, 0.266, 0.211]
    moved = []
    for pair in (versions[:2], versions[2:]):
        (row,) = json.loads(printed(capsys, main(["drift", *pair, "--scale", "0-4", "--json"]), 1))["rows"]
        moved.append([round(row["change"][end], 3) for end in ("value", "low", "high")])
    assert moved == [[-0.114, -0.157, -0.070], [0.171, 0.123, 0.221]]
    jury = gpt, versions[1], versions[3]
    rows = [(n, *line.split()) for n, name in enumerate(jury) for line in text_of(Path(name)).splitlines()]
    lines = (f"{n},{turn},{passage},{grade}" for n, turn, _, passage, grade in rows)
    write(tmp_path / "jury.csv", "worker,turn_id,response_id,label", *lines)
    assert main("crowd jury.csv --scale 0-4 --criterion relevance --out jury".split()) == 0
    assert "0.65 [0.61, 0.69]" in capsys.readouterr().out
    assert [kappa("jury/qrels/response_relevance.qrel", name) for name in jury] == [0.477, 0.771, 0.576]


def test_a_small_p_value_is_named_and_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixty grades of 0 that the other side calls 1: chi2 is 60, and p about 1e-14."""
    grades = [(f"{n % 6}-1_{n // 6}", n) for n in range(100)]
    a = write(tmp_path / "a.qrel", *(f"{turn} 0 p{n} {int(n >= 60 and n % 2)}" for turn, n in grades))
    b = write(tmp_path / "b.qrel", *(f"{turn} 0 p{n} {int(n < 60 or n % 2)}" for turn, n in grades))
    code, out, _ = told(capsys, a, b)
    assert code == 0
    tests = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith(("bowker", "stuart_"))}
    assert all(cells[2:4] == ["<", "0.0001"] for cells in tests.values()) and len(tests) == 2


def test_nist_qrels_of_2024_against_a_degraded_copy(shared, tmp_path, capsys) -> None:
    qrels = shared / "ikat/qrels/2024_test_qrels.trec"
    lines = qrels.read_text(encoding="utf-8").splitlines()
    degraded = write(tmp_path / "degraded.qrel", *(line for n, line in enumerate(lines) if n % 5))
    run = shared / "ikat/2024/sample_run.json"
    code, out, _ = told(capsys, str(qrels), degraded, "--runs", str(run), "--measure", "P@5", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["agreement"]["items"] == len(lines) - len(range(0, len(lines), 5))
    assert found["agreement"]["statistics"]["kappa"]["value"] == 1
    (holes,) = found["rankings"][0]["holes"]
    # The copy lacks nothing but the holes, so graded best they reach the score by all of the qrels, or more.
    value = found["rankings"][0]["runs"][0]["a"]["mean"]["value"]
    assert holes["range_b"]["low"] <= value <= holes["range_b"]["high"]
    assert (holes["only_b"], holes["only_a"] > 0) == (0, True)


def test_intervals_over_themes_are_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{theme}-{persona}_1 0 p{n} {n % 2}" for theme in range(4) for persona in (1, 2) for n in range(3)]
    a, b = write(tmp_path / "a.qrel", *rows), write(tmp_path / "b.qrel", *rows[:-1], "3-2_1 0 p2 1")
    assert "Intervals are 95 %, over topics." in told(capsys, a, b)[1]
    assert "Intervals are 95 %, over themes." in told(capsys, a, b, "--cluster", "theme")[1]
