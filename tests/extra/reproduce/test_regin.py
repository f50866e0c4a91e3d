"""CAsT-ReGIn as published: its defects named, its files made again byte for byte, runs matched and evaluated."""

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.crowd.released import KINDS, read_resource, read_turns
from judge.extra.reproduce.cast_regin import TextIndex, evaluate, graded, match_run, not_matched_tsv
from judge.extra.reproduce.regin import check, near_equal_texts, regenerate, retests
from judge.runs.records import Response, Run, RunTurn
from judge.stats.means import mean_interval
from tests.conftest import complaint, printed, put
from tests.extra.reproduce.test_cast_regin import QUESTIONS, write_part

JUDGED = {
    "1_1": [("R00000", " A cat sat.", (2, 1, 0)), ("R00001", "A cat  sat.", (0, 1, 0))],
    "1_3": [("R00002", "Dogs bark", (1, 1, 3))],
    "2_1": [("R00000", " A cat sat.", (3, 2, 2)), ("R00003", "Naïve?", (3, 3, 3))],
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A sound response part of three turns."""
    return write_part(tmp_path / "release", "response", JUDGED)


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=4), encoding="utf-8")


def change(path: Path, mutate: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    mutate(value)
    write(path, value)


def regin(*arguments: object) -> int:
    return main(["crowd", "cast-regin", *map(str, arguments)])


def problems_of(folder: Path) -> dict[tuple[str, str], str]:
    """(file name, code) to message."""
    found = [problem for part in read_resource(folder) for problem in check(part)]
    return {(Path(one.file).name, one.code): one.message for one in found}


def run_of(turns: dict[str, list[str]], run_id: str = "r") -> Run:
    answers = tuple(
        RunTurn(turn_id, tuple(Response(rank, text, ()) for rank, text in enumerate(texts, start=1)))
        for turn_id, texts in turns.items()
    )
    return Run(run_id, None, None, "cast2022", "r.json", "", True, answers)


def submit(path: Path, turns: dict[str, list[str]], run_id: str = "r") -> None:
    path.parent.mkdir(exist_ok=True)
    answers = [
        {"turn_id": turn_id, "responses": [{"rank": n, "text": t, "provenance": []} for n, t in enumerate(texts, 1)]}
        for turn_id, texts in turns.items()
    ]
    write(path, {"run_name": run_id, "run_type": "automatic", "turns": answers})


# The published resource


def test_every_released_file_is_made_again_byte_for_byte(shared: Path, tmp_path: Path, capsys) -> None:
    source = shared / "cast-regin"
    turns = source / "clarifying_question_evaluation" / "mi_subset_turns.txt"
    assert regin(source, "--mi-turns", turns, "--out", tmp_path) == 0
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # The twelve of the release, one that it does not have, and the list of them all.
    assert len(made) == 13
    del made[Path("cast-regin.sha256")]
    subset = Path("clarifying_question_evaluation/qrels/question_relevance_mi_subset.qrel")
    for path in made.keys() - {subset}:
        assert made[path] == (source / path).read_bytes(), path
    out, err = capsys.readouterr()
    assert (out.count("  same bytes  "), out.count("  no release  "), out.count("  differs")) == (11, 1, 0)
    assert err == "0 errors, 17 warnings; 12 files made; 11 of the 11 that are released are the same bytes\n"
    assert max(map(len, out.splitlines())) <= 80


def test_the_subset_is_of_all_turns_listed_and_not_of_the_filtered_ones(shared: Path) -> None:
    folder = shared / "cast-regin" / "clarifying_question_evaluation"
    turns = read_turns(folder / "mi_subset_turns.txt")
    files = regenerate(read_resource(folder)[0], turns)
    lines = files["qrels/question_relevance_mi_subset.qrel"].decode().splitlines()
    every = (folder / "qrels" / "question_relevance_all.qrel").read_text(encoding="utf-8").splitlines()
    assert (len(turns), len(lines)) == (24, 246)
    assert lines == [line for line in every if line.split()[0] in turns]
    filtered = files["qrels/question_relevance_filtered.qrel"].decode().splitlines()
    assert (len(every), len(filtered)) == (2024, 1919)
    # 134_2-3 has nothing relevant: the subset has it, the filtered qrels have not.
    assert any(line.startswith("134_2-3 ") for line in lines)
    assert not any(line.startswith("134_2-3 ") for line in filtered)


RESPONSE_DEFECTS = {
    ("response_judgments.json", "label_orders"): "6 orders: Relevance Naturalness Conciseness (942)",
    ("response_judgments.json", "text_differs"): "4 texts other than the bank's, 3 in whitespace only: R00531 (133_1-1)"
    ", R00013 (133_3-2), R00653 (137_1-9), R00740 (142_5-3)",
    ("response_judgments.json", "shared_ids"): "97 ids, here with how many: R00395 (4)",
    ("response_pool_depth_1.pool", "separators"): "1,626 lines have tabs between columns, 3 qrels files have spaces",
    ("response_bank.json", "outer_space"): "170 texts: R00000",
    ("response_bank.json", "near_equal_texts"): "47 pairs of texts, 44 but for whitespace; 40 judged twice in one turn",
    ("response_relevance.qrel", "not_filtered"): "1 turn: 139_1-5",
    ("response_naturalness.qrel", "not_filtered"): "1 turn: 135_1-1",
    ("response_conciseness.qrel", "not_filtered"): "4 turns: 139_1-1, 139_2-13, 142_1-5, 142_5-5",
}
QUESTION_DEFECTS = {
    ("question_relevance_mi_subset.qrel", "missing_file"): "not here",
    ("question_judgments.json", "not_in_bank"): "1 item: Q2173 (142_5-7)",
    ("question_judgments.json", "shared_ids"): "165 ids, here with how many: Q6477 (98), Q6471 (58)",
    ("question_pool_depth_1.pool", "pool_order"): "at row 180: 133_1-7 Q1736, in the judgments 133_3-8 Q5929",
    ("question_pool_depth_1.pool", "separators"): "2,024 lines have tabs between columns, 4 qrels files have spaces",
    ("question_bank.json", "empty_text"): "1 text, 0 judged: Q0000",
    ("question_bank.json", "escaped_text"): "7 characters",
    ("question_bank.json", "near_equal_texts"): "21 pairs of texts, 1 but for whitespace; 4 judged twice in one turn",
}


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("response_evaluation", RESPONSE_DEFECTS), ("clarifying_question_evaluation", QUESTION_DEFECTS)],
)
def test_every_known_defect_is_named_and_no_other(shared: Path, folder: str, expected: dict[Any, str]) -> None:
    found = problems_of(shared / "cast-regin" / folder)
    assert found.keys() == expected.keys()
    for key, message in expected.items():
        assert message in found[key], key


def test_none_of_the_sample_runs_texts_is_in_the_bank_and_none_is_guessed(shared: Path, tmp_path: Path, capsys) -> None:
    run = shared / "cast2022" / "sample_run.json"
    assert regin(shared / "cast-regin", "--runs", run, "--out", tmp_path) == 0
    assert "sample_run: 207 texts against response_bank: 0 exact" in capsys.readouterr().out
    assert not (tmp_path / "response_runs").exists()
    lines = (tmp_path / "not_matched.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 207
    assert all(line.split("\t")[3] == "unmatched" for line in lines[1:])


# Damage


def test_a_sound_release_has_no_error(release: Path, tmp_path: Path, capsys) -> None:
    for folder in (release, release.parent, release.parent.parent):
        assert regin(folder, "--out", tmp_path / "out") == 0
    assert "  same bytes  qrels/response_relevance.qrel" in capsys.readouterr().out
    written = (tmp_path / "out/response_evaluation/qrels/response_conciseness.qrel").read_text(encoding="utf-8")
    assert written == "1_1 0 R00000 0\n1_1 0 R00001 0\n1_3 0 R00002 3\n2_1 0 R00000 2\n2_1 0 R00003 3\n"


def first(value: Any) -> Any:
    return value["1_1"]["Responses"][0]


@pytest.mark.parametrize(("mutate", "code", "where"), [
    (lambda v: first(v).update(Relevance=4), "wrong_grade", "$['1_1'].Responses[0].Relevance"),
    (lambda v: first(v).update(Relevance=True), "wrong_grade", ".Relevance"),
    (lambda v: first(v).update(Relevance="2"), "wrong_grade", ".Relevance"),
    (lambda v: first(v).update(Relevance=10**30), "wrong_grade", ".Relevance"),
    (lambda v: first(v).pop("Naturalness"), "wrong_grade", ".Naturalness"),
    (lambda v: first(v).update({"Response ID": "R 1"}), "unusable_id", ".Response ID"),
    (lambda v: first(v).update({"Response ID": None}), "unusable_id", ".Response ID"),
    (lambda v: first(v).update({"Response Text": 7}), "wrong_text", ".Response Text"),
    (lambda v: first(v).update({"Response Text": "\0"}), "wrong_text", ".Response Text"),
    (lambda v: v["1_1"]["Responses"].append(first(v)), "repeated_item", "Responses[2]"),
    (lambda v: v["1_1"]["Responses"].insert(0, 5), "wrong_type", "Responses[0]"),
    (lambda v: v["1_1"].pop("Responses"), "wrong_type", "$['1_1']"),
    (lambda v: v.update({"1_9": []}), "wrong_type", "$['1_9']"),
    (lambda v: v.update({"1 9": v.pop("1_3")}), "unusable_id", "$['1 9']"),
    (lambda v: v.clear(), "no_judgments", "$"),
])  # fmt: skip
def test_damaged_judgments_are_an_error_and_nothing_is_written(release, tmp_path, capsys, mutate, code, where) -> None:
    change(release / "qrels/response_judgments.json", mutate)
    assert regin(release, "--out", tmp_path / "out", "--json") == 1
    out, err = capsys.readouterr()
    errors = [one for one in json.loads(out)["problems"] if one["severity"] == "error"]
    assert any(one["code"] == code and where in one["path"] for one in errors)
    assert err.endswith("nothing was written: the judgments or the bank are damaged\n")
    assert not (tmp_path / "out").exists()


def test_all_damage_is_reported_at_once(release: Path) -> None:
    def mutate(value: Any) -> None:
        for turn in value.values():
            for item in turn["Responses"]:
                item["Relevance"] = -1

    change(release / "qrels/response_judgments.json", mutate)
    (release / "response_bank.json").write_text('{"R1": 3, "R2": "a", "R2": "b"}', encoding="utf-8")
    (part,) = read_resource(release)
    codes = [problem.code for problem in part.problems]
    assert codes.count("wrong_grade") == 5
    assert {"wrong_text", "repeated_key"} < set(codes)


@pytest.mark.parametrize(("name", "content", "code"), [
    ("qrels/response_relevance.qrel", b"1_1 0 R00000 1\n", "qrels_grades"),
    ("qrels/response_relevance.qrel", b"1_1 0 R00009 1\n", "qrels_pairs"),
    ("qrels/response_relevance.qrel", b"1_1 0 R00000 9\n", "off_scale"),
    ("qrels/response_relevance.qrel", b"1_1 R00000 2\n", "wrong_columns"),
    ("qrels/response_relevance.qrel", b"\xff\n", "wrong_encoding"),
    ("response_pool_depth_1.pool", b"1_1\tQ0\tR00000\t1\t0.0\tdummytag\n", "pool_differs"),
    ("response_pool_depth_1.pool", b"1_1\tQ0\t\xff\n", "malformed_line"),
])  # fmt: skip
def test_files_that_contradict_the_judgments_are_errors(release, tmp_path, name, content, code) -> None:
    (release / name).write_bytes(content)
    found = [problem for problem in check(read_resource(release)[0]) if problem.code == code]
    assert [problem.severity for problem in found] == ["error"] * len(found) != []
    assert regin(release, "--out", tmp_path / "out") == 1
    # The judgments are sound, so what the file should be is written all the same.
    assert (tmp_path / "out/response_evaluation" / name).stat().st_size > len(content)


@pytest.mark.parametrize(("rewrite", "code"), [
    (lambda text: "".join(reversed(text.splitlines(keepends=True))), "qrels_order"),
    (lambda text: text.replace(" ", "\t"), "qrels_form"),
    (lambda text: text.replace("\n", "\r\n"), "qrels_form"),
])  # fmt: skip
def test_another_order_or_form_of_qrels_is_a_warning(release, tmp_path, capsys, rewrite, code) -> None:
    path = release / "qrels/response_relevance.qrel"
    path.write_bytes(rewrite(path.read_text(encoding="utf-8")).encode())
    out = printed(capsys, regin(release, "--out", tmp_path / "out"))
    assert code in out
    assert "  differs     qrels/response_relevance.qrel" in out


def test_a_released_subset_must_be_the_lines_of_its_turns(shared: Path, tmp_path: Path) -> None:
    source = shared / "cast-regin" / "clarifying_question_evaluation"
    folder = tmp_path / "clarifying_question_evaluation"
    (folder / "qrels").mkdir(parents=True)
    for path in ("qrels/question_judgments.json", "question_bank.json"):
        (folder / path).write_bytes((source / path).read_bytes())
    subset = folder / "qrels/question_relevance_mi_subset.qrel"
    lines = (source / "qrels/question_relevance_all.qrel").read_text(encoding="utf-8").splitlines(keepends=True)
    turn = [line for line in lines if line.startswith("132_1-1 ")]
    subset.write_text("".join(turn), encoding="utf-8")
    assert not [one for one in check(read_resource(folder)[0]) if one.code.startswith("qrels")]
    subset.write_text("".join(turn[1:]), encoding="utf-8")
    assert [one.code for one in check(read_resource(folder)[0]) if one.severity == "error"] == ["qrels_pairs"]


@pytest.mark.parametrize(("name", "content"), [
    *(("qrels/response_judgments.json", content) for content in (b"", b"{", b"\xff{}", b"[" * 100_000, b"[]")),
    *(("response_bank.json", content) for content in (b"\xff{}", b'{"a": ' + b"9" * 5000 + b"}", b"7")),
])  # fmt: skip
def test_hostile_json_is_no_traceback(release: Path, tmp_path: Path, name: str, content: bytes) -> None:
    (release / name).write_bytes(content)
    assert regin(release, "--out", tmp_path / "out") in (1, 2)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_the_resource_or_with_it_twice_is_unreadable(release: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "absent"):
        assert regin(folder, "--out", tmp_path / "out") == 2
    (release / "qrels/response_judgments.json").write_bytes(b"no JSON")
    assert regin(release, "--out", tmp_path / "out") == 2
    put(release.parent / "copy" / "qrels/response_judgments.json", b"{}")
    assert "more than once" in complaint(capsys, regin(release.parent, "--out", tmp_path / "out"))


def test_the_release_is_never_written_over(release: Path, tmp_path: Path, capsys) -> None:
    before = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    assert "choose another folder" in complaint(capsys, regin(release, "--out", release.parent))
    assert {path: path.read_bytes() for path in release.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("content", ["", "132_1-1\n132_1-1\n", "1 1\n", "9_9\n", "\x00\n"])
def test_a_bad_list_of_turns_is_refused(tmp_path: Path, content: str) -> None:
    questions = write_part(tmp_path / "in", "question", QUESTIONS)
    (tmp_path / "turns.txt").write_text(content, encoding="utf-8")
    assert regin(questions, "--mi-turns", tmp_path / "turns.txt", "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_a_list_of_turns_is_about_questions(release: Path, tmp_path: Path) -> None:
    (tmp_path / "turns.txt").write_text("1_1\n", encoding="utf-8")
    assert regin(release, "--mi-turns", tmp_path / "turns.txt", "--out", tmp_path / "out") == 2


# Runs


@pytest.mark.parametrize(("turn_id", "text", "rule", "items", "reason"), [
    ("1_1", " A cat sat.", "exact", ("R00000",), None),
    ("1_1", "A cat  sat.", "exact", ("R00001",), None),
    ("1_1", "A cat sat.", "trimmed", ("R00000",), None),
    ("1_1", "A cat\tsat.", "folded", ("R00000", "R00001"), "ambiguous"),
    ("1_3", "Dogs\n bark ", "folded", ("R00002",), None),
    ("1_3", "dogs bark", None, (), "unmatched"),
    ("1_3", "  ", None, (), "unmatched"),
    ("2_1", "Dogs bark", "exact", ("R00002",), "not_judged"),
    ("9_9", "Dogs bark", "exact", ("R00002",), "not_judged"),
])  # fmt: skip
def test_matching(release, turn_id, text, rule, items, reason) -> None:
    matched = TextIndex(read_resource(release)[0]).match(turn_id, 1, text)
    assert (matched.rule, matched.items, matched.reason) == (rule, items, reason)


def test_the_judged_text_names_an_item_that_the_bank_lacks(release: Path) -> None:
    change(release / "response_bank.json", lambda bank: bank.pop("R00003"))
    assert TextIndex(read_resource(release)[0]).match("2_1", 1, "Naïve?").items == ("R00003",)
    assert ("response_judgments.json", "not_in_bank") in problems_of(release)


def test_run_files_and_the_list_of_what_does_not_count(release: Path, tmp_path: Path, capsys) -> None:
    hostile = "a\tb/../c"
    submit(tmp_path / "runs/r.json", {"1_1": ["Dogs bark", " A cat sat."], "2_1": ["x\ty", "A cat\tsat."]}, hostile)
    assert regin(release, "--runs", tmp_path / "runs", "--out", tmp_path / "out") == 0
    (path,) = (tmp_path / "out/response_runs").iterdir()
    assert path.read_text(encoding="utf-8") == "1_1 Q0 R00002 1 2 a%09b/../c\n1_1 Q0 R00000 2 1 a%09b/../c\n"
    rows = [line.split("\t") for line in (tmp_path / "out/not_matched.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows[1:] == [
        [r"a\tb/../c", "1_1", "1", "not_judged", "R00002", "Dogs bark"],
        [r"a\tb/../c", "2_1", "1", "unmatched", "", r"x\ty"],
        [r"a\tb/../c", "2_1", "2", "ambiguous", "R00000 R00001", r"A cat\tsat."],
    ]
    text = " ".join(capsys.readouterr().out.split())
    assert "2 exact, 0 trimmed, 0 folded, 1 unmatched, 1 ambiguous, 1 not judged" in text


def test_a_run_goes_to_the_bank_that_has_more_of_its_texts(shared: Path) -> None:
    indexes = [TextIndex(part) for part in read_resource(shared / "cast-regin")]
    question = indexes[1].part.rows[0]
    assert match_run(run_of({question.turn_id: [question.text]}), indexes).part.kind.name == "question"
    assert match_run(run_of({"1_1": ["in no bank"]}), indexes).part.kind.name == "response"


def test_not_matched_survives_a_lone_surrogate(release: Path) -> None:
    run = TextIndex(read_resource(release)[0]).match_run(run_of({"1_1": ["\ud800"]}))
    assert not_matched_tsv([run]).count(b"\n") == 2


def test_two_runs_of_one_id_are_an_error_and_the_first_is_used(release: Path, tmp_path: Path) -> None:
    submit(tmp_path / "runs/a.json", {"1_1": [" A cat sat."]})
    submit(tmp_path / "runs/b.json", {"1_3": ["Dogs bark"]})
    assert regin(release, "--runs", tmp_path / "runs", "--out", tmp_path / "out") == 1
    assert (tmp_path / "out/response_runs/r.run").read_text(encoding="utf-8") == "1_1 Q0 R00000 1 1 r\n"


# Evaluation

GRADES = {
    "relevance": [*[("1_1", "R00000", 2), ("1_1", "R00001", 0)], *[("1_3", "R00002", 1)],
        *[("2_1", "R00000", 3), ("2_1", "R00003", 3)]]
}  # fmt: skip
"""The response part's relevance; nothing in 1_3 is relevant."""


@pytest.mark.parametrize(("averaging", "turns", "expected"), [
    # 1_1 is ranked 0 2, 1_3 is ranked 1, and 2_1 is missing.
    ("complete", 3, {"P@1": 0, "grade@1": 1 / 3, "nDCG@1": 1 / 3, "nDCG@3": (1 / log2(3) + 1) / 3,
                     "nDCG@5": (1 / log2(3) + 1) / 3, "MRR": 1 / 6, "MAP": 1 / 6}),
    ("intersection", 2, {"P@1": 0, "grade@1": 1 / 2, "nDCG@1": 1 / 2, "nDCG@3": (1 / log2(3) + 1) / 2,
                         "nDCG@5": (1 / log2(3) + 1) / 2, "MRR": 1 / 4, "MAP": 1 / 4}),
])  # fmt: skip
def test_both_averagings(release: Path, averaging: str, turns: int, expected: dict[str, float]) -> None:
    # "Dogs bark" is not judged in 1_1 and so holds no place there.
    run = TextIndex(read_resource(release)[0]).match_run(
        run_of({"1_1": ["Dogs bark", "A cat  sat.", " A cat sat."], "1_3": ["Dogs bark"]})
    )
    scores = {s.measure: s.estimate for s in evaluate(run, graded(GRADES)) if s.averaging == averaging}
    assert {measure: one.value for measure, one in scores.items()} == pytest.approx(expected)
    assert {one.n for one in scores.values()} == {turns}
    assert {one.reason for one in scores.values()} == {"fewer than 3 topics"}


def test_gain_is_the_grade_and_what_is_not_found_counts(release: Path) -> None:
    part = read_resource(release)[0]
    grades = [("R00002", 1), ("R00000", 3), ("R00001", 2), ("R00003", 3)]
    run = TextIndex(part).match_run(run_of({"1_1": [part.bank[item] for item, _ in grades[:3]]}))
    judged = {"relevance": [("1_1", *graded_item) for graded_item in grades]}
    values = {one.measure: one.estimate.value for one in evaluate(run, graded(judged)) if one.averaging == "complete"}
    assert (values["MRR"], values["MAP"]) == pytest.approx((1 / 2, (1 / 2 + 2 / 3) / 3))
    assert values["nDCG@3"] == pytest.approx((1 + 3 / log2(3) + 2 / 2) / (3 + 3 / log2(3) + 2 / 2))


def test_a_run_without_any_judged_turn_has_no_mean_over_the_intersection(release: Path) -> None:
    run = TextIndex(read_resource(release)[0]).match_run(run_of({"1_1": ["in no bank"]}))
    scores = {(s.averaging, s.measure): s.estimate for s in evaluate(run, graded(GRADES))}
    assert (scores["complete", "MAP"].value, scores["complete", "MAP"].n) == (0.0, 3)
    assert (scores["intersection", "MAP"].value, scores["intersection", "MAP"].reason) == (None, "no turns")


def test_intervals_are_clustered_by_topic(shared: Path) -> None:
    part = read_resource(shared / "cast-regin" / "response_evaluation")[0]
    first = {row.turn_id: row for row in reversed(part.rows)}
    run = TextIndex(part).match_run(run_of({turn_id: [part.bank[row.item_id]] for turn_id, row in first.items()}))
    scores = evaluate(run, graded({"relevance": part.graded("relevance")}))
    got = next(s.estimate for s in scores if (s.averaging, s.measure) == ("complete", "grade@1"))
    values = [float(row.grades["relevance"]) for row in first.values()]
    assert got == mean_interval(values, [turn_id.split("_")[0] for turn_id in first], bounds=(0, 3), what="turns")
    assert (got.n, got.topics) == (105, 10)


def test_evaluation_is_printed_in_80_columns_and_written(release: Path, tmp_path: Path, capsys) -> None:
    submit(tmp_path / "runs/r.json", {"1_1": [" A cat sat."], "2_1": ["Naïve?"]}, "r" * 150)
    arguments = (release, "--runs", tmp_path / "runs", "--evaluate", "--out", tmp_path / "out")
    out = printed(capsys, regin(*arguments))
    assert max(map(len, out.splitlines())) <= 80
    assert "response_relevance: all its turns, missing ones as 0 (trec_eval -c)" in out
    assert "response_relevance: turns that the run has too (the README's words)" in out
    lines = (tmp_path / "out/evaluation.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 * 2 * 7
    assert f"{'r' * 150}\tresponse_relevance\tcomplete\tP@1\t{2 / 3}\t\t\t3\t2\tfewer than 3 topics" in lines
    found = json.loads(printed(capsys, regin(*arguments, "--json")))
    assert list(found) == ["problems", "files", "runs", "evaluation"]
    assert found["runs"][0]["exact"] == 2
    assert {file["compared"] for file in found["files"]} == {"same bytes"}


def test_evaluation_needs_runs(release: Path, tmp_path: Path) -> None:
    assert regin(release, "--evaluate", "--out", tmp_path / "out") == 2
    assert regin(release, "--runs", tmp_path / "absent", "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_many_texts_of_one_wording_are_not_all_paired(release: Path) -> None:
    path = release / KINDS["response"].bank
    bank = json.loads(path.read_text(encoding="utf-8")) | {f"R1{n:04}": "Same." for n in range(5_000)}
    path.write_text(json.dumps(bank), encoding="utf-8")
    (part,) = read_resource(release)
    # 100 of 5,000, and the two that the release has.
    assert len(near_equal_texts(part)) == 100 * 99 // 2 + 1
    assert retests(part) == [("1_1", "R00000", "R00001")]
