"""Datasets of the benchmark: files found in every layout, rows read as people released them, problems all at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import InputError
from judge.extra.bench import DATASETS
from judge.extra.bench.datasets import LabeledResponse, find_file, find_files, is_there
from tests.conftest import PROJECT, put, refused


def read(dataset: str, folder: Path) -> tuple[LabeledResponse, ...]:
    return tuple(DATASETS[dataset].read(folder).responses.values())


def problems(dataset: str, folder: Path) -> list[str]:
    """Code, place and message of every problem for which a folder is refused."""
    return [f"{problem.code} {problem.path}: {problem.message}" for problem in refused(DATASETS[dataset].read, folder)]


# The files.


@pytest.mark.parametrize("path", ["data.tsv", "a/data.tsv", "repository/a/b/c/data.tsv"])
def test_a_file_is_found_at_most_four_folders_below(tmp_path: Path, path: str) -> None:
    file = put(tmp_path / path, "x")
    assert find_file(tmp_path, "data.tsv") == file
    assert is_there(tmp_path, ("data.tsv",)) and not is_there(tmp_path, ("data.tsv", "other.tsv"))


@pytest.mark.parametrize("path", ["a/b/c/d/e/data.tsv", ".git/data.tsv", "a/.data.tsv", "old_data.tsv"])
def test_a_file_deeper_down_or_hidden_is_not_found(tmp_path: Path, path: str) -> None:
    put(tmp_path / path, "x")
    assert not is_there(tmp_path, ("data.tsv",))
    with pytest.raises(InputError, match=r"no file data\.tsv at most 4 folders below"):
        find_file(tmp_path, "data.tsv")


def test_of_equal_copies_the_first_in_natural_order_is_read_and_of_others_none(tmp_path: Path) -> None:
    later, first = put(tmp_path / "copy10/data.tsv", "x"), put(tmp_path / "copy9/data.tsv", "x")
    assert find_file(tmp_path, "data.tsv") == first
    later.write_text("y", encoding="utf-8")
    with pytest.raises(InputError, match=r"copy9/data.tsv and .*copy10/data.tsv: two files of one name that differ"):
        find_file(tmp_path, "data.tsv")


def test_a_pattern_may_have_a_folder_alternatives_and_several_files(tmp_path: Path) -> None:
    for path in ("prompts/a-1.txt", "scores/a-10.txt", "scores/a-2.txt"):
        put(tmp_path / path, "x")
    assert [file.name for file in find_files(tmp_path, "judges/*.txt|scores/*.txt")] == ["a-2.txt", "a-10.txt"]
    with pytest.raises(InputError, match=r"a-2.txt and .*a-10.txt: expected one file scores/\*\.txt"):
        find_file(tmp_path, "scores/*.txt")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder that can be read"):
        is_there(tmp_path / "absent", ("data.tsv",))


def test_a_folder_of_very_many_files_is_no_folder_of_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(tmp_path / f"{name}.txt", "x")
    monkeypatch.setattr("judge.extra.bench.datasets.MOST_ENTRIES", 3)
    assert not is_there(tmp_path, ("d.txt",))
    monkeypatch.setattr("judge.extra.bench.datasets.MOST_ENTRIES", 2)
    with pytest.raises(InputError, match="more than 2 files: name a folder nearer to the data"):
        is_there(tmp_path, ("d.txt",))


# The table.


@pytest.mark.parametrize("name", DATASETS)
def test_a_row_is_consistent(name: str) -> None:
    dataset = DATASETS[name]
    assert dataset.name == name
    assert (PROJECT / "prompts" / dataset.criterion).is_dir()
    assert list(dataset.grades) == sorted(set(dataset.grades))
    # At least one grade is not positive, or there is nothing to tell apart.
    assert set(dataset.positive) < set(dataset.grades) and dataset.positive
    assert dataset.size > 0 and dataset.files and dataset.unit and dataset.licence and dataset.source


# BEGIN.

BEGIN = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"


def begin_row(knowledge: str, response: str, label: str) -> str:
    return f"t5\twow\t{knowledge}\thi\t{response}\t{label}\n"


def test_begin_is_read_with_the_evidence_as_unit(tmp_path: Path) -> None:
    rows = [
        begin_row("Ferries sail.", 'He said "yes', "Fully attributable"),
        begin_row("Mills grind.", "Well.", "Generic"),
        begin_row("Ferries sail.", "They fly.", "Not fully attributable"),
    ]
    put(tmp_path / "BEGIN-dataset/wow/begin_dev_wow.tsv", BEGIN + "".join(rows))
    first = "begin_dev_wow.tsv:2"
    assert read("begin-wow", tmp_path) == (
        LabeledResponse(first, first, 1, (), 'He said "yes', ("Ferries sail.",), "hi"),
        LabeledResponse("begin_dev_wow.tsv:3", "begin_dev_wow.tsv:3", 0, (), "Well.", ("Mills grind.",), "hi"),
        LabeledResponse("begin_dev_wow.tsv:4", first, 0, (), "They fly.", ("Ferries sail.",), "hi"),
    )


def test_rows_without_label_evidence_or_response_are_counted(tmp_path: Path) -> None:
    rows = [
        begin_row("Ferries sail.", "They sail.", "Fully attributable"),
        begin_row("", "They sail.", "Fully attributable"),
        begin_row("Ferries sail.", "\u200b", "Generic"),
        begin_row("Ferries sail.", "They sail.", ""),
        begin_row("Ferries sail.", "They sail.", ""),
    ]
    put(tmp_path / "begin_dev_cmu.tsv", BEGIN + "".join(rows))
    assert [response.item_id for response in read("begin-cmu", tmp_path)] == ["begin_dev_cmu.tsv:2"]
    assert DATASETS["begin-cmu"].read(tmp_path).skipped == {"empty evidence": 1, "empty response": 1, "no label": 2}


def test_all_problems_of_a_table_are_listed(tmp_path: Path) -> None:
    rows = [begin_row("a", "b", "fully attributable"), "t5\twow\n", begin_row("a", "b\0", "Generic")]
    put(tmp_path / "begin_dev_wow.tsv", BEGIN + "".join(rows))
    assert problems("begin-wow", tmp_path) == [
        "wrong_columns line 3: 2 cells: expected 6, as in the header",
        "wrong_label line 2: label 'fully attributable': expected 'Not fully attributable' or 'Generic' or "
        "'Fully attributable'",
        "wrong_text line 4: begin_dev_wow.tsv:4: a text with NUL or a lone surrogate",
    ]


def test_very_many_problems_are_not_all_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.files.MAX_PROBLEMS", 2)
    put(tmp_path / "begin_dev_wow.tsv", BEGIN + begin_row("a", "b", "x") * 5)
    assert [message.partition(":")[0] for message in problems("begin-wow", tmp_path)] == [
        "wrong_label line 2",
        "wrong_label line 3",
        "too_many_problems line 4",
    ]


def test_a_dataset_without_a_usable_response_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "begin_dev_wow.tsv", BEGIN + begin_row("a", "b", ""))
    with pytest.raises(InputError, match="no usable response in the dataset: 1 with no label"):
        read("begin-wow", tmp_path)


# AttributionBench.


def claim(number: int, label: str, **changed: Any) -> dict[str, Any]:
    values = {"id": f"ExpertQA_{number}", "question": "Why?", "claim": "Ferries sail.", "references": ["They do."]}
    return {**values, "attribution_label": label, **changed}


def jsonl(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_attributionbench_is_read_with_the_question_as_unit(tmp_path: Path) -> None:
    rows = jsonl(claim(1, "attributable"), claim(2, "not attributable"), claim(3, "attributable", references=[]))
    put(tmp_path / "AttributionBench/data/dev_all_subset_balanced.jsonl", rows)
    assert read("attributionbench", tmp_path) == (
        LabeledResponse("ExpertQA_1", "ExpertQA_1", 1, (), "Ferries sail.", ("They do.",), "Why?"),
        LabeledResponse("ExpertQA_2", "ExpertQA_1", 0, (), "Ferries sail.", ("They do.",), "Why?"),
    )
    assert DATASETS["attributionbench"].read(tmp_path).skipped == {"empty evidence": 1}


def test_all_problems_of_lines_are_listed(tmp_path: Path) -> None:
    rows = jsonl(claim(1, "attributable"), claim(1, "attributable"), claim(2, "attributable", references="x"))
    put(tmp_path / "dev_all_subset_balanced.jsonl", rows + jsonl(claim(3, "yes"), claim(4, "", id="a\x1b")) + "{\n")
    assert problems("attributionbench", tmp_path) == [
        "repeated_item line 2: ExpertQA_1 stands in the files more than once",
        "wrong_type line 3: $.references: Expected `array`, got `str`",
        "wrong_label line 4: label 'yes': expected 'not attributable' or 'attributable'",
        "wrong_type line 6: $: Input data was truncated",
    ]


def test_an_id_that_cannot_be_printed_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path / "dev_all_subset_balanced.jsonl", jsonl(claim(1, "attributable", id="a\x1b[1m")))
    assert problems("attributionbench", tmp_path) == [r"unusable_id line 1: id 'a\x1b[1m': unprintable or too long"]


# FaithBench.


def sample(number: int, *labels: list[str], **metadata: Any) -> dict[str, Any]:
    annotations = [{"label": label, "note": ""} for label in labels]
    return {"sample_id": number, "source": "S", "summary": "T", "annotations": annotations, "metadata": metadata}


def test_faithbench_takes_the_worst_label_of_any_span(tmp_path: Path) -> None:
    samples = [
        sample(0),
        sample(1, ["Benign"]),
        sample(2, ["Benign"], ["Questionable"]),
        sample(3, ["Benign"], ["Unwanted", "Unwanted.Extrinsic"]),
    ]
    put(tmp_path / "FaithBench/data_for_release/batch_10.json", {"samples": samples[2:]})
    put(tmp_path / "FaithBench/data_for_release/batch_2.json", {"samples": samples[:2]})
    # The authors' repository also has this file of another shape.
    put(tmp_path / "FaithBench/annot/batch_2_annotation.json", [])
    responses = read("faithbench", tmp_path)
    assert [(response.item_id, response.grade) for response in responses] == [
        ("batch_2/0", 3), ("batch_2/1", 2), ("batch_10/2", 1), ("batch_10/3", 0),
    ]  # fmt: skip
    assert {response.unit for response in responses} == {"batch_2/0"}


def test_faithbench_has_the_scores_of_its_detectors(tmp_path: Path) -> None:
    skipped = {**sample(2, hhemv1=0.5), "summary": " "}
    samples = [sample(0, hhemv1=0.25, gpt_4o=1), sample(1, ["Unwanted"], hhemv1=0.75, gpt_4o=None), skipped]
    put(tmp_path / "batch_1.json", {"samples": samples})
    stored = DATASETS["faithbench"].stored
    assert stored(tmp_path) == {"hhemv1": {"batch_1/0": 0.25, "batch_1/1": 0.75}, "gpt_4o": {"batch_1/0": 1.0}}
    put(tmp_path / "batch_1.json", {"samples": [sample(0, hhemv1="high"), sample(1, trueteacher=2)]})
    assert [(problem.path, problem.message) for problem in refused(stored, tmp_path)] == [
        ("$.samples[0].metadata.hhemv1", "expected a number of 0 to 1, found 'high'"),
        ("$.samples[1].metadata.trueteacher", "expected a number of 0 to 1, found 2"),
    ]


def test_all_problems_of_json_are_listed_over_all_files(tmp_path: Path) -> None:
    bad = {**sample(2), "summary": None}
    put(tmp_path / "batch_1.json", {"samples": [sample(0, ["Unwanted", "Terrible"]), bad]})
    put(tmp_path / "batch_2.json", "[1")
    put(tmp_path / "batch_3.json", {"sample": []})
    labels = "'Unwanted' or 'Unwanted.Intrinsic' or 'Unwanted.Extrinsic' or 'Questionable' or 'Benign'"
    assert problems("faithbench", tmp_path) == [
        f"wrong_label $.samples[0]: label 'Terrible': expected {labels}",
        "wrong_type $.samples[1].summary: Expected `str`, got `null`",
        "truncated_json : line 1, column 3: the file ends in the middle of the JSON; it was cut short",
        "wrong_type $.samples: expected a list, found null",
    ]


def test_a_lone_surrogate_is_a_problem_in_names_and_texts(tmp_path: Path) -> None:
    text = json.dumps({"samples": [{**sample(0), "\udc00": 1}, {**sample(1), "summary": "\ud800"}]})
    put(tmp_path / "batch_1.json", text)
    assert problems("faithbench", tmp_path) == [
        "wrong_text $.samples[0]: the name of a field has a lone surrogate",
        "wrong_text $.samples[1]: batch_1/1: a text with NUL or a lone surrogate",
    ]


# SummEdits.


def test_summedits_reads_every_domain_with_the_shared_document_as_unit(tmp_path: Path) -> None:
    def row(item: str, label: int | None, doc: str = "D") -> dict[str, Any]:
        return {"id": item, "doc": doc, "summary": f"S {item}", "label": label, "edit_types": []}

    folder = "factualNLG/data/summedits"
    put(tmp_path / f"{folder}/summedits_samsum.json", [row("a_og", 1), row("a_0", 0), row("a_1", None)])
    put(tmp_path / f"{folder}/summedits_news.json", [row("a_og", 1, "E")])
    assert read("summedits", tmp_path) == (
        LabeledResponse("news/a_og", "news/a_og", 1, (), "S a_og", ("E",)),
        LabeledResponse("samsum/a_og", "samsum/a_og", 1, (), "S a_og", ("D",)),
        LabeledResponse("samsum/a_0", "samsum/a_og", 0, (), "S a_0", ("D",)),
    )
    assert DATASETS["summedits"].read(tmp_path).skipped == {"no label": 1}
    put(tmp_path / f"{folder}/summedits_news.json", [row("a_og", 2)])
    assert problems("summedits", tmp_path) == ["wrong_type $[0].label: Invalid enum value 2"]


# RAG 2024.


def test_support_is_read_by_the_first_citation_of_each_sentence(tmp_path: Path) -> None:
    def sentence(text: object, *citations: tuple[str, str]) -> dict[str, Any]:
        return {"text": text, "citations": [{"reference": of, "support": label} for of, label in citations]}

    cited = [
        sentence("A", ("p", "2"), ("q", "0")),
        sentence("B"),
        sentence("C", ("gone", "1")),
        sentence("D", ("p", "-1")),
    ]
    name = "final.citation_judgments_with_prediction.jsonl"
    rows = [{"topic_id": "t", "run_id": "r", "sentences": [*cited, sentence(float("nan"), ("p", "1"))]}]
    put(tmp_path / name, json.dumps(rows[0]))
    put(tmp_path / "segments.jsonl", '{"docid": "p", "segment": "P"}')
    assert read("rag24-support", tmp_path) == (LabeledResponse("t/r/0", "t", 2, (), "A", ("P",)),)
    skipped = {"no citation": 1, "no public text of the passage": 1, "no label": 1, "empty response": 1}
    assert DATASETS["rag24-support"].read(tmp_path).skipped == skipped
    bad = [sentence("A", ("p", "4"))], [sentence("A", (["p"], "2"))], [sentence({}, ("p", "2"))]
    lines = jsonl(*({"topic_id": "t", "run_id": "r", "sentences": of} for of in bad), rows[0] | {"run_id": None})
    put(tmp_path / name, lines + "[]\n{")
    assert [found.split(":")[0] for found in problems("rag24-support", tmp_path)] == [
        *(f"wrong_type line {n}" for n in (2, 3, 4, 5)), "truncated_json line 6", "wrong_label line 1",
    ]  # fmt: skip


def test_nuggets_are_read_as_claims_whose_evidence_is_the_answer(tmp_path: Path) -> None:
    nuggets = [{"text": "A", "assignment": "partial_support"}, {"assignment": "support"}, {"text": "C"}]
    row = {"qid": "t", "query": "q", "run_id": "r", "answer_text": "a", "nuggets": nuggets}
    file = put(tmp_path / "nugget_assignment.jl", json.dumps(row))
    assert read("rag24-nuggets", tmp_path) == (LabeledResponse("t/r/0", "t", 1, (), "A", ("a",), "q"),)
    assert DATASETS["rag24-nuggets"].read(tmp_path).skipped == {"empty response": 1, "no label": 1}
    file.write_text(jsonl(row | {"nuggets": [{"text": "A", "assignment": "failed"}]}, {"qid": 1}), encoding="utf-8")
    assert [found.split(": ")[0] for found in problems("rag24-nuggets", tmp_path)] == [
        "wrong_label line 1", "wrong_type line 2",
    ]  # fmt: skip


# LLMJudge.


def test_llmjudge_reads_qrels_and_the_labels_of_judges(tmp_path: Path) -> None:
    put(tmp_path / "LLMJudge/data/llmjudge_test_qrel_idx.txt", "q1 0 p1 3\nq1 0 p2 0\nq2 0 p1 1\n")
    assert read("llmjudge", tmp_path) == (
        LabeledResponse("q1/p1", "q1", 3),
        LabeledResponse("q1/p2", "q1", 0),
        LabeledResponse("q2/p1", "q2", 1),
    )
    benchmark = "LLMJudge-benchmark"
    # Off the scale, a pair of no query, a pair without a label: as released.
    put(tmp_path / f"{benchmark}/submissions/scores/team-a.txt", "q1 0 p1 5\nq9 0 p1 1\nq2 0 p1 0\n")
    put(tmp_path / f"{benchmark}/submissions/prompts/team-a.txt", "q1 0 p1 Judge the passage")
    put(tmp_path / f"{benchmark}/data/team-b.txt", "q1 0 p2 2\n")
    put(tmp_path / f"{benchmark}/data/read-me.txt", "These are labels.\n")
    stored = DATASETS["llmjudge"].stored
    assert stored(tmp_path) == {"team-a": {"q1/p1": 5.0, "q2/p1": 0.0}, "team-b": {"q1/p2": 2.0}}
    put(tmp_path / f"{benchmark}/data/team-a.txt", "q1 0 p1 3\n")
    with pytest.raises(InputError, match="another file has other labels of team-a"):
        stored(tmp_path)


def test_llmjudge_lists_the_problems_of_every_judge(tmp_path: Path) -> None:
    put(tmp_path / "llmjudge_test.qrel", "q1 0 p1 3\n")
    put(tmp_path / "judges/team-a.txt", "q1 0 p1 yes\n")
    put(tmp_path / "judges/team-b.txt", "q1 0 p1 1\nq1 0 p1 2\n")
    stored = DATASETS["llmjudge"].stored
    assert stored is not None
    assert [(Path(problem.file).name, problem.code) for problem in refused(stored, tmp_path)] == [
        ("team-a.txt", "wrong_grade"),
        ("team-b.txt", "duplicate_row"),
    ]
    put(tmp_path / "llmjudge_test.qrel", "q1 0 p1 4\n")
    assert problems("llmjudge", tmp_path) == ["off_scale line 1: grade 4: expected one of 0, 1, 2, 3"]


# CAsT-ReGIn.

TREE = [
    {
        "number": 132,
        "turn": [
            {"number": "1-1", "participant": "User", "utterance": "Ferries?", "manual_rewritten_utterance": "Ferries?"},
            {"number": "1-2", "parent": "1-1", "participant": "System", "response": "Yes.", "provenance": []},
            {
                "number": "1-3",
                "parent": "1-2",
                "participant": "User",
                "utterance": "When?",
                "manual_rewritten_utterance": "When do ferries sail?",
            },
        ],
    }
]


def judged(turn: str, item: str, text: str) -> dict[str, Any]:
    labels = {"Naturalness": 1, "Relevance": 3, "Conciseness": 0}
    return {turn: {"Responses": [{"Response ID": item, "Response Text": text, **labels}]}}


def test_cast_regin_is_read_with_the_conversation(tmp_path: Path) -> None:
    put(tmp_path / "treccastweb/2022/2022_evaluation_topics_tree_v1.0.json", TREE)
    judgments = judged("132_1-3", "R00001", " At noon.") | judged("132_1-1", "R00001", "")
    put(tmp_path / "CAsT-ReGIn/response_evaluation/qrels/response_judgments.json", judgments)
    expected = LabeledResponse("132_1-3/R00001", "132", 3, (), " At noon.", (), "When?", (("Ferries?", "Yes."),))
    assert read("cast-regin-relevance", tmp_path) == (expected,)
    assert [read(f"cast-regin-{name}", tmp_path)[0].grade for name in ("naturalness", "conciseness")] == [1, 0]
    assert DATASETS["cast-regin-relevance"].read(tmp_path).skipped == {"empty response": 1}


def test_cast_regin_tells_of_turns_without_a_topic_and_bad_grades(tmp_path: Path) -> None:
    put(tmp_path / "2022_evaluation_topics_tree_v1.0.json", TREE)
    bad = judged("132_1-1", "R1", "Yes")
    bad["132_1-1"]["Responses"][0]["Naturalness"] = 4
    put(tmp_path / "part/qrels/response_judgments.json", judged("133_1-1", "R1", "No") | bad)
    told = problems("cast-regin-naturalness", tmp_path)
    assert [message.partition(":")[0] for message in told] == [
        "wrong_type $['132_1-1'].Responses[0].Naturalness",
        "unknown_turn turn 133_1-1",
    ]


# USR.


def test_usr_is_read_with_three_grades_and_the_turns_of_the_dialogue(tmp_path: Path) -> None:
    def given(text: str, *natural: int) -> dict[str, Any]:
        return {"response": text, "model": "m", "Natural": list(natural), "Overall": [5, 5, 5]}

    dialogues = [
        {"context": "hi\nhello\nwhy ?\n", "fact": "f\n", "responses": [given("so", 3, 3, 1), given("ok", 1, 2, 3)]},
        {"context": "hello\nwhy ?\n", "fact": "f\n", "responses": [given("so", 1, 2, 2), given("no")]},
    ]
    put(tmp_path / "pc_usr_data.json", dialogues)
    assert read("usr-persona", tmp_path) == (
        # Two of three, the mean where all differ, two of three.
        LabeledResponse("0/0", "0", 3, (3, 3, 1), "so", (), "why ?", (("hi", "hello"),)),
        LabeledResponse("0/1", "0", 2, (1, 2, 3), "ok", (), "why ?", (("hi", "hello"),)),
        LabeledResponse("1/0", "1", 2, (1, 2, 2), "so", (), "why ?", (("", "hello"),)),
    )
    assert DATASETS["usr-persona"].read(tmp_path).skipped == {"no label": 1}
    put(tmp_path / "tc_usr_data.json", [{"context": "hi", "responses": [given("so", 4)]}, {"context": 1}])
    assert problems("usr-topical", tmp_path) == [
        "off_scale $[0].responses[0].Natural: [4]: expected grades of 1 to 3",
        "wrong_type $[1].context: Expected `str`, got `int`",
    ]


# TransparentCIS.


def test_transparentcis_is_read_from_both_tables(tmp_path: Path) -> None:
    expected = (
        LabeledResponse("Q1_EC1", "Q1", 4, (4, 4, 3), "Noon.", (), "When?"),
        LabeledResponse("Q1_EC2", "Q1", 3, (2, 4, 3), "At noon.", (), "When?"),
    )
    labels = {"Q1_EC1": (4, 4, 3), "Q1_EC2": (2, 4, 3)}
    rows = [
        f"{item}\tw{worker}\t{dimension}\t{grade}\n"
        for item, grades in labels.items()
        for worker, grade in enumerate(grades)
        for dimension in ("relevance",)
    ]
    put(tmp_path / "long/judgments_long.tsv", "item_id\tworker_id\tdimension\tlabel\n" + "".join(rows))
    texts = {"Q1_EC1": "Noon.", "Q1_EC2": "At noon."}
    items = {item: {"question": "When?", "response": text} for item, text in texts.items()}
    put(tmp_path / "long/items.json", items)
    header = ",questions_ids,questions,answers,answers_ids,relevance\n"
    wide = header + "3,1,When?,Noon.,EC1,\"['4', '4', '3']\"\n4,1,When?,At noon.,EC2,\"['2', '4', '3']\"\n"
    put(tmp_path / "transparentCIS/results/user_study_output/output_processed.csv", wide)
    assert (
        read("transparentcis-relevance", tmp_path / "long")
        == read("transparentcis-relevance", tmp_path / "transparentCIS")
        == expected
    )
    assert read("transparentcis-relevance", tmp_path) == expected


def test_transparentcis_lists_its_problems(tmp_path: Path) -> None:
    header = "item_id\tdimension\tlabel\n"
    put(tmp_path / "judgments_long.tsv", header + "a_1\trelevance\t5\nb_1\trelevance\t4\nb_1\tinterest\tx\n")
    put(tmp_path / "items.json", {"a_1": {"question": "q", "response": "r"}, "c_1": []})
    assert problems("transparentcis-relevance", tmp_path) == [
        "wrong_type $['c_1']: Expected `object`, got `array`",
        "wrong_label item a_1: label '5': expected '1' or '2' or '3' or '4'",
        f"unknown_item item b_1: not in {tmp_path / 'items.json'}",
    ]
    folder = tmp_path / "wide"
    header = ",questions_ids,questions,answers,answers_ids,relevance\n"
    row = "3,1,When?,Noon.,EC1,\"__import__('os')\"\n"
    put(folder / "output_processed.csv", header + row)
    assert problems("transparentcis-relevance", folder) == [
        "wrong_label line 2: relevance: expected a list of labels such as ['3', '4']"
    ]
