"""The files of a crowd's grades, byte by byte, and what may be in a folder before they are written."""

import dataclasses
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from judge.crowd.known import KnownItem
from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings, Item
from judge.crowd.outputs import MANIFEST, RECORD, crowd_files, write_crowd
from judge.crowd.study import Study, study
from judge.crowd.summary import terminal
from judge.errors import OperationalError, UsageError
from judge.gold.rows import GoldRow, parse_gold, text_digest
from judge.io.files import sha256
from judge.io.folder import write_atomic
from judge.io.ids import natural_key, parse_qrels
from tests.conftest import put, refused
from tests.crowd.world import SCALE, crowd


def of_table(table: dict[tuple[str, str], dict[str, int]], criterion: str = "relevance") -> CrowdLabels:
    """(turn, item) to worker to label."""
    given = [(worker, *item, label) for item, labels in table.items() for worker, label in labels.items()]
    return crowd(given, criterion)


RELEVANCE = of_table(
    {
        ("1_10", "R2"): {"a": 3, "b": 3, "c": 0},
        ("1_2", "R10"): {"a": 1, "b": 0, "c": 1},
        ("1_2", "R9"): {"a": 0, "b": 3, "d": 0, "e": 3},
        ("1_2", "K"): {"a": 0, "b": 0, "c": 0, "f": 3},
        ("1_3", "R1"): {"f": 2},
        ("2_1", "R2"): {"a": 1, "b": 1, "c": 1},
    }
)
NOVELTY = of_table({("1_2", "R10"): {"a": 2, "b": 2, "c": 2}, ("1_4", "R1"): {"a": 0, "b": 0, "c": 1}}, "novelty")
KNOWN = (KnownItem("1_2", "K", "relevance", (0, 1)),)
TEXTS = {
    Item("1_10", "R2"): "Café.",
    Item("1_2", "R10"): "Same.",
    Item("1_2", "R9"): " Same.",
    Item("2_1", "R2"): "Café.",
}


def studied(*labels: CrowdLabels, known: tuple[KnownItem, ...] = KNOWN, aggregator: str = "majority") -> Study:
    return study({one.criterion: one for one in labels or (RELEVANCE,)}, known, CrowdSettings(aggregator))


def lines(files: dict[str, bytes], name: str) -> list[list[str]]:
    return [line.split("\t") for line in files[name].decode().splitlines()]


def test_qrels_are_in_natural_order_without_known_items_and_without_items_that_lost_all_labels() -> None:
    files = crowd_files(studied())
    # 0, 3, 0, 3 is tied: its mean 1.5 is rounded up to 2, which nobody gave.
    assert files["qrels/response_relevance.qrel"] == b"1_2 0 R9 2\n1_2 0 R10 1\n1_10 0 R2 3\n2_1 0 R2 1\n"
    assert files["qrels/filtered/response_relevance.qrel"] == b"1_2 0 R9 2\n1_2 0 R10 1\n1_10 0 R2 3\n"
    assert files["pool.txt"] == b"".join(
        f"{turn} Q0 {item} 1 0.0 crowd\n".encode()
        for turn, item in (("1_2", "R9"), ("1_2", "R10"), ("1_10", "R2"), ("2_1", "R2"))
    )
    assert "qrels/subset/response_relevance.qrel" not in files
    assert "bank.json" not in files


def test_filter_and_subset_are_of_whole_turns() -> None:
    files = crowd_files(studied(), turns=["2_1", "1_2"], filter_min=3, unit="question")
    assert files["qrels/filtered/question_relevance.qrel"] == b"1_10 0 R2 3\n"
    assert files["qrels/subset/question_relevance.qrel"] == b"1_2 0 R9 2\n1_2 0 R10 1\n2_1 0 R2 1\n"
    # Of 1_3 only the removed worker's label was there.
    problems = refused(crowd_files, studied(), turns=["1_3", "1_2", "x"])
    assert [problem.turn_id for problem in problems] == ["1_3", "x"]


def test_ids_become_columns(tmp_path: Path) -> None:
    files = crowd_files(studied(of_table({("1 a_1", "R 1"): {"a": 1, "b": 1}}, "rel/../x"), known=()))
    (name,) = (name for name in files if name.startswith("qrels/response"))
    assert Path(name).parent == Path("qrels")
    assert [(row.turn_id, row.item_id) for row in parse_qrels(files[name].decode(), name)] == [("1%20a_1", "R%201")]


def test_the_bank_is_cast_regins() -> None:
    files = crowd_files(studied(), texts=TEXTS)
    assert files["bank.json"].decode() == '{\n    "R2": "Café.",\n    "R9": " Same.",\n    "R10": "Same."\n}\n'
    assert files == crowd_files(studied(), texts=TEXTS)


def test_the_json_has_cast_regins_shape() -> None:
    files = crowd_files(studied(RELEVANCE, NOVELTY), texts=TEXTS)
    assert files["response_judgments.json"].startswith(
        b'{\n    "1_2": {\n        "Responses": [\n            {\n                "Response ID": "R9",\n'
        b'                "Response Text": " Same.",\n                "Relevance": 2\n            },\n'
    )
    judgments = json.loads(files["response_judgments.json"])
    assert list(judgments) == ["1_2", "1_4", "1_10", "2_1"]
    second = {"Response ID": "R10", "Response Text": "Same.", "Relevance": 1, "Novelty": 2}
    assert judgments["1_2"]["Responses"][1] == second
    assert judgments["1_4"] == {"Responses": [{"Response ID": "R1", "Novelty": 0}]}
    questions = json.loads(crowd_files(studied(), unit="question")["question_judgments.json"])
    assert questions["2_1"] == {"Questions": [{"Question ID": "R2", "Relevance": 1}]}


@pytest.mark.parametrize("names", [("relevance", "Relevance"), ("response ID",), ("Response Text", "x")])
def test_two_things_cannot_be_one_field_of_the_json(names: tuple[str, ...]) -> None:
    found = studied(*(dataclasses.replace(RELEVANCE, criterion=name) for name in names), known=())
    with pytest.raises(UsageError, match="one field"):
        crowd_files(found)
    if len(names) == 1:
        assert crowd_files(found, unit="question")


def test_the_summary_says_what_the_json_lacks() -> None:
    two = crowd_files(studied(RELEVANCE, NOVELTY), texts=TEXTS)["summary.md"].decode()
    # Of 1_2 R9, 1_2 R10, 1_4 R1, 1_10 R2 and 2_1 R2, 1_4 R1 has no text, and R10 alone has both grades.
    assert "of 5 items, 1 have no text and 4 have no grade under one criterion or more" in two
    assert "incomplete" not in crowd_files(studied(), texts=TEXTS)["summary.md"].decode()


def test_the_json_of_cast_regins_own_grades_is_its_own(shared: Path) -> None:
    released = shared / "cast-regin/clarifying_question_evaluation/qrels/question_judgments.json"
    turns = json.loads(released.read_bytes())
    labels, texts = {}, {}
    for name in ("Relevance", "Novelty", "Diversity"):
        table = {}
        for turn_id, turn in turns.items():
            for question in turn["Questions"]:
                item = Item(turn_id, question["Question ID"])
                table[item] = {"one": question[name]}
                texts[item] = question["Question Text"]
        labels[name.lower()] = of_table(table, name.lower())
    files = crowd_files(study(labels, (), CrowdSettings()), unit="question", texts=texts)
    made = json.loads(files["question_judgments.json"])
    order = {
        turn_id: sorted(turn["Questions"], key=lambda q: natural_key(q["Question ID"]))
        for turn_id, turn in turns.items()
    }
    assert {turn_id: turn["Questions"] for turn_id, turn in made.items()} == order
    assert sorted(files["qrels/filtered/question_relevance.qrel"].decode().splitlines()) == sorted(
        (released.parent / "question_relevance_filtered.qrel").read_text().splitlines()
    )


def test_gold_is_gold_and_a_second_id_of_one_text_a_second_assessor() -> None:
    rows = parse_gold(crowd_files(studied(), texts=TEXTS)["gold.jsonl"], "gold.jsonl")
    first = replace(rows[0], distribution=None)
    # Whether these are all responses or a part of them is not known.
    assert first == GoldRow("1_2", "1", "relevance", 2, "crowd", "R9", text_digest("Same."), made="blind")
    whole = parse_gold(crowd_files(studied(), texts=TEXTS, whole=["relevance"])["gold.jsonl"], "gold.jsonl")
    assert [row.inclusion_probability for row in whole] == [1.0] * 4
    assert [(row.turn_id, row.response_id, row.assessor) for row in rows] == [
        ("1_2", "R9", "crowd"),
        ("1_2", "R10", "crowd#2"),
        ("1_10", "R2", "crowd"),
        ("2_1", "R2", "crowd"),
    ]
    plain = parse_gold(crowd_files(studied())["gold.jsonl"], "gold.jsonl")
    assert [(row.assessor, row.text_sha256) for row in plain] == [("crowd", None)] * 4


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_soft_labels_are_distributions_of_the_gold(aggregator: str) -> None:
    found = studied(RELEVANCE, NOVELTY, aggregator=aggregator)
    # The removed worker alone labeled the third item.
    assert found.grades["relevance"].code[2] == -1
    files = crowd_files(found)
    rows = parse_gold(files["gold.jsonl"], "gold.jsonl")
    assert len(rows) == sum(int((one.code >= 0).sum()) for one in found.grades.values())
    for row in rows:
        assert list(row.distribution) == ["0", "1", "2", "3"]
        assert sum(row.distribution.values()) == pytest.approx(1, abs=1e-5)
    assert ("p_0" in lines(files, "items.tsv")[0]) == (found.grades["relevance"].fit is not None)


def test_items_say_how_their_grade_came_about() -> None:
    header, *rows = lines(crowd_files(studied()), "items.tsv")
    assert header == [
        *("turn_id", "response_id", "criterion", "grade", "n", "tied", "mean", "entropy", "unvoted"),
        *(f"count_{grade}" for grade in SCALE),
    ]
    assert rows[0] == ["1_2", "R9", "relevance", "2", "4", "true", "1.500000", "1.000000", "true", "2", "0", "0", "2"]
    # An item that lost all its labels has no grade, which is not the grade 0.
    assert rows[2] == ["1_3", "R1", "relevance", "", "0", "", "", "", "", "0", "0", "0", "0"]


def test_scales_that_differ_share_the_columns_that_they_can() -> None:
    coarse = dataclasses.replace(NOVELTY, grades=(1, 2, 5, 6))
    header, *rows = lines(crowd_files(studied(RELEVANCE, coarse)), "items.tsv")
    assert header[9:] == [f"count_{grade}" for grade in (0, 1, 2, 3, 5, 6)]
    assert rows[0][9:] == ["2", "0", "0", "2", "", ""]
    assert rows[-1][9:] == ["", "2", "1", "", "0", "0"]


def test_the_audit_trail() -> None:
    files = crowd_files(studied())
    assert lines(files, "removed.tsv") == [
        ["topic_id", "worker", "turn_id", "response_id", "criterion", "label", "acceptable"],
        ["1", "f", "1_2", "K", "relevance", "3", "0,1"],
    ]
    assert lines(files, "few_labels.tsv")[1:] == [["1_3", "R1", "relevance", "0", "1"]]
    assert "removed.tsv" not in crowd_files(studied(known=()))
    overall = [row for row in lines(files, "reliability.tsv")[1:] if not row[1]]
    assert [row[2] for row in overall] == ["kept", "all"]


def test_pairs_of_a_sample_without_any_are_not_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "| relevance | 0 | - | 100.0% |" in crowd_files(studied())["summary.md"].decode()
    monkeypatch.setattr("judge.crowd.study.MOST_PAIRS", 1)
    text = crowd_files(studied())["summary.md"].decode()
    assert "| relevance | not computed: none among those sampled | - | 40.0% |" in text


def test_a_criterion_that_is_not_wanted_filters_and_is_gone() -> None:
    known = (KnownItem("1_2", "K", "novelty", (0,)),)
    novelty = of_table({("1_2", "K"): {"a": 3}, ("1_2", "R10"): {"a": 1}}, "novelty")
    labels = {"relevance": RELEVANCE, "novelty": novelty}
    found = study(labels, known, CrowdSettings(), wanted=["relevance"])
    assert list(found.labels) == list(found.grades) == list(found.few) == ["relevance"]
    assert found.audit.removed == (("1", "a"),)
    # Of a's labels in topic 1: 1_10 R2, 1_2 R10 and R9.
    assert found.audit.labels_removed == {"relevance": {"1": 3}}
    assert crowd_files(found)["qrels/response_relevance.qrel"].startswith(b"1_2 0 R9 3")


def test_the_summary_says_the_rule_and_what_the_filter_did() -> None:
    found = studied(RELEVANCE, NOVELTY)
    text = crowd_files(found)["summary.md"].decode()
    assert found.grades["relevance"].rule in text
    assert "1 removal of 1 worker" in text
    assert "Grades changed against no filter: relevance 1 of 5, novelty 0 of 2." in text
    shown = terminal(found)
    assert "1 removal of 1 worker" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_hostile_criterion_is_shown_as_it_is() -> None:
    name = "a|b<script>" + "x" * 150
    found = studied(dataclasses.replace(RELEVANCE, criterion=name), known=())
    text = crowd_files(found)["summary.md"].decode()
    assert "<script>" not in text
    assert "a|b" not in text
    assert all(len(line) <= 80 for line in terminal(found).splitlines() if not line.startswith("rule"))


# The folder


def test_the_manifest_has_the_digests_and_names_no_place(tmp_path: Path) -> None:
    source = put(tmp_path / "labels.csv", b"x")
    files = crowd_files(studied())
    write_crowd(tmp_path / "out", files, [source], {"aggregator": "majority"})
    written = {
        str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()
    }
    record = written.pop(RECORD).decode()
    listed = {name: sha256(content) for name, content in written.items()}
    manifest = json.loads(written.pop(MANIFEST))
    assert written == files
    assert manifest["inputs"] == [{"file": "labels.csv", "sha256": sha256(b"x")}]
    assert record == "".join(f"{listed[name]}  {name}\n" for name in sorted(listed))
    assert manifest["options"] == {"aggregator": "majority"}
    assert str(tmp_path) not in json.dumps(manifest)


def test_a_folder_half_written_has_no_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_crowd(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, [], {})

    def write(path: Path, data: bytes) -> None:
        raise OperationalError(f"{path}: {len(data)} bytes cannot be written")

    monkeypatch.setattr(
        "judge.io.folder.write_atomic",
        lambda path, data: write(path, data) if path.name == "a.tsv" else write_atomic(path, data),
    )
    with pytest.raises(OperationalError):
        write_crowd(tmp_path, {"a.tsv": b"2"}, [], {})
    assert not (tmp_path / MANIFEST).exists()
