"""CAsT-ReGIn held against its README: the release, a sound folder made up by hand, and damaged ones."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.crowd.released import KINDS, Name, read_resource
from judge.errors import InputError
from judge.extra.reproduce.published import PublishedNumber, Reproduction, reproduce_publication
from judge.extra.reproduce.regin import regenerate
from judge.io.table import Table
from tests.conftest import complaint, printed

Items = Mapping[str, Sequence[tuple[str, str, tuple[int, int, int]]]]

RESPONSES: Items = {
    "132_1-1": [("R00000", " A cat sat.", (2, 1, 0)), ("R00001", "A cat  sat!", (2, 3, 0))],
    "132_1-3": [("R00002", "Dogs bark", (1, 1, 1))],
    "133_2-1": [("R00000", " A cat sat.", (3, 2, 2)), ("R00003", "Naïve?", (3, 3, 3))],
}
QUESTIONS: Items = {"132_1-1": [("Q0001", "Which?", (2, 1, 0))], "134_1-5": [("Q0002", "Why not?", (1, 3, 1))]}


def write_part(folder: Path, name: Name, items: Items, turns: Sequence[str] | None = None) -> Path:
    """A sound part of the resource."""
    kind = KINDS[name]
    place = folder / kind.folder
    (place / "qrels").mkdir(parents=True)
    judgments = {
        turn_id: {
            kind.list_field: [
                {kind.id_field: item_id, kind.text_field: text, **dict(zip(kind.labels, grades, strict=True))}
                for item_id, text, grades in rows
            ]
        }
        for turn_id, rows in items.items()
    }
    bank = {item_id: text for rows in items.values() for item_id, text, _ in rows}
    (place / kind.judgments).write_text(json.dumps(judgments, ensure_ascii=False), encoding="utf-8")
    (place / kind.bank).write_text(json.dumps(bank, ensure_ascii=False), encoding="utf-8")
    part = next(part for part in read_resource(folder) if part.kind.name == name)
    for path, content in regenerate(part, turns).items():
        (place / path).write_bytes(content)
    return place


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A sound resource of three turns with responses and two with questions."""
    write_part(tmp_path / "in", "response", RESPONSES)
    write_part(tmp_path / "in", "question", QUESTIONS, ["134_1-5"])
    return tmp_path / "in"


def readme(made: Reproduction, part: str) -> dict[str, PublishedNumber]:
    return {each.measure: each for each in made.numbers if (each.table, each.row) == ("README", part)}


def broken(made: Reproduction, part: str) -> dict[str, tuple[float | None, str]]:
    """The statements of the README that do not hold."""
    return {name: (each.difference, each.reason) for name, each in readme(made, part).items() if each.difference}


def grid(made: Reproduction, title: str) -> Table[Any]:
    return next(grid for grid in made.beyond if grid.title == title)


@pytest.fixture(scope="module")
def real(shared: Path) -> Reproduction:
    return reproduce_publication("cast-regin", shared / "cast-regin")


def test_the_release_against_its_readme(real: Reproduction) -> None:
    made = real
    assert broken(made, "responses") == {
        "judged texts other than the bank's": (4, "3 of 4 in white space only: R00531, R00013, R00653, R00740"),
        "response_relevance: turns without a grade of 2 or more": (1, "not filtered, against the README: 139_1-5"),
        "response_naturalness: turns without a grade of 2 or more": (1, "not filtered, against the README: 135_1-1"),
        "response_conciseness: turns without a grade of 2 or more": (
            *(4, "not filtered, against the README: 139_1-1, 139_2-13, 142_1-5, 142_5-5"),
        ),
    }
    assert broken(made, "questions") == {"judged items that the bank lacks": (1, "Q2173")}
    assert (len(readme(made, "responses")), len(readme(made, "questions"))) == (10, 9)
    counts = [each for each in made.numbers if each.table == "release"]
    assert [each for each in counts if each.row == "questions" and each.difference != 0] == []
    # The subsets: turns with a grade of 2 or more, and the listed turns.
    assert {each.published for each in counts if each.measure.startswith("rows of")} == {"1919", "246"}
    responses = {each.measure: each for each in counts if each.row == "responses"}
    judged = responses["judged responses"]
    assert (judged.published, judged.ours and judged.ours.value, judged.difference) == ("2479", 1626, -853)
    assert {each.reason for each in responses.values()} == {"rows of topics 143-149 are not in this folder"}


def test_the_released_grades_agree_little_with_themselves_and_responses_end_at_the_limit(real: Reproduction) -> None:
    _, _, pairs, same, kappa, _ = next(
        line for line in grid(real, "Retests") if line[:2] == ("responses", "naturalness")
    )
    # 15 of 43 pairs have equal grades.
    assert (pairs, same.value, round(kappa.value, 3)) == (43, pytest.approx(15 / 43), 0.297)
    lengths = {line[:2]: line[2:6] for line in grid(real, "Lengths")}
    # Responses, over 250, exactly 250, longest: none is over the limit by the bare tokenizer, and many are at it.
    assert lengths["responses", "bare"] == (1626, 0, 213, 250)
    assert lengths["responses", "english"][1] == 441


def test_a_sound_folder_breaks_one_statement_where_a_turn_has_no_relevant_grade(release: Path) -> None:
    made = reproduce_publication("cast-regin", release)
    none = "turns without a grade of 2 or more"
    # Turn 132_1-3 has the grades 1 1 1 only, and 132_1-1 has conciseness 0 0.
    assert broken(made, "responses") == {
        f"response_relevance: {none}": (1, "not filtered, against the README: 132_1-3"),
        f"response_naturalness: {none}": (1, "not filtered, against the README: 132_1-3"),
        f"response_conciseness: {none}": (2, "not filtered, against the README: 132_1-1, 132_1-3"),
        "132_1-1: pooled items of the README's example not judged": (5, "R00263, R00321, R00395, R00585, R00711"),
    }
    relevance = next(each for each in made.numbers if each.measure == "relevance 3" and each.row == "responses")
    assert (relevance.ours.value, relevance.ours.n, relevance.ours.topics) == (2, 5, 2)
    # The release has no responses of topic 134.
    assert relevance.reason == "rows of topics 135-149 are not in this folder"


def test_a_turn_of_the_subset_is_told_by_the_file_where_no_list_is(release: Path) -> None:
    measure = "qrels/question_relevance_mi_subset.qrel: lines that the judgments do not give"
    assert readme(reproduce_publication("cast-regin", release), "questions")[measure].difference == 0
    (release / KINDS["question"].folder / "mi_subset_turns.txt").write_text("132_1-1\n")
    # By this list the subset has the other line.
    made = reproduce_publication("cast-regin", release)
    assert readme(made, "questions")[measure].difference == 2
    (rows,) = (each for each in made.numbers if each.measure == "rows of question_relevance_mi_subset")
    assert (rows.published, rows.ours and rows.ours.value) == ("246", 1)


def test_lines_that_the_judgments_do_not_give_are_counted_with_the_reason(release: Path) -> None:
    place = release / KINDS["response"].folder
    qrels = place / "qrels" / "response_relevance.qrel"
    qrels.write_text(qrels.read_text().replace("R00003 3", "R00003 0"))
    pool = place / KINDS["response"].pool
    pool.write_text("".join(pool.read_text().splitlines(keepends=True)[1:]))
    mi_subset = release / KINDS["question"].folder / "qrels" / "question_relevance_mi_subset.qrel"
    mi_subset.write_text("134_1-5 0 Q0002 many\n")
    made = reproduce_publication("cast-regin", release)
    lines = "lines that the judgments do not give"
    # A changed line is one too many and one too few.
    assert broken(made, "responses")[f"qrels/response_relevance.qrel: {lines}"] == (
        2,
        "not as in the judgments: 1 grade: 133_2-1 R00003",
    )
    assert broken(made, "responses")[f"response_pool_depth_1.pool: {lines}"] == (
        1,
        "judged but not here: 1 pair: 132_1-1 R00000",
    )
    assert readme(made, "questions")[f"qrels/question_relevance_mi_subset.qrel: {lines}"].difference == 1


def test_a_retest_is_a_pair_of_nearly_equal_texts_of_one_turn(release: Path) -> None:
    lines = {line[:2]: line for line in grid(reproduce_publication("cast-regin", release), "Retests")}
    for criterion, same in (("relevance", 1.0), ("naturalness", 0.0), ("conciseness", 1.0)):
        line = lines["responses", criterion]
        assert line[2] == 1
        assert getattr(line[3], "value", None) == same
    assert lines["questions", "novelty"][2] == 0


def test_the_parts_are_found_below_the_folder_and_in_one_folder(release: Path, tmp_path: Path) -> None:
    apart = reproduce_publication("cast-regin", release).numbers
    for kind in KINDS.values():
        shutil.copytree(release / kind.folder, tmp_path / "one", dirs_exist_ok=True)
    assert reproduce_publication("cast-regin", tmp_path / "one").numbers == apart
    deep = tmp_path / "a" / "b" / "c" / "CAsT-ReGIn"
    deep.parent.mkdir(parents=True)
    release.rename(deep)
    assert reproduce_publication("cast-regin", tmp_path / "a").numbers == apart


def test_a_part_without_its_bank_or_without_the_other_part_is_reproduced(tmp_path: Path) -> None:
    place = write_part(tmp_path, "question", QUESTIONS)
    (place / KINDS["question"].bank).unlink()
    made = reproduce_publication("cast-regin", tmp_path)
    assert "The responses are not in this folder." in made.notes
    assert not any("bank" in each.measure for each in made.numbers)
    assert {line[2] for line in grid(made, "Retests")} == {0}


def test_every_damage_to_the_judgments_is_listed(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = release / KINDS["response"].folder / KINDS["response"].judgments
    judgments = json.loads(path.read_text(encoding="utf-8"))
    rows = judgments["132_1-1"]["Responses"]
    rows[0]["Relevance"] = 7
    rows.append(dict(rows[1]))
    del judgments["132_1-3"]["Responses"][0]["Naturalness"]
    path.write_text(json.dumps(judgments), encoding="utf-8")
    with pytest.raises(InputError, match="damaged: 3 problems") as raised:
        reproduce_publication("cast-regin", release)
    assert [problem.code for problem in raised.value.problems] == ["wrong_grade", "repeated_item", "wrong_grade"]
    path.write_text("[", encoding="utf-8")
    assert "response_judgments.json" in complaint(capsys, main(["reproduce", "cast-regin", str(release)]))
    assert main(["reproduce", "cast-regin", str(release / "absent")]) == 2


def test_hostile_turns_and_ids_are_shown_and_run_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = {"=1+1_1-1": [("<b>|R", "\x1b[31mred", (1, 0, 1))], "132_1-1": [("R1", "=cmd()", (0, 0, 0))]}
    write_part(tmp_path / "in", "response", items)
    out = tmp_path / "out"
    shown = printed(capsys, main(["reproduce", "cast-regin", str(tmp_path / "in"), "--out", str(out)]))
    assert "\x1b" not in shown
    assert "=1+1_1-1" in shown
    for path in out.iterdir():
        assert b"\x1b" not in path.read_bytes()
    assert "<b>" not in (out / "comparison.md").read_text()
