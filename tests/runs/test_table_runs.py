"""Tables of questions and answers are runs: columns by their usual names, questions as topics."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.io.rows import rows_of
from judge.runs.formats import read_run
from judge.runs.formats.table import is_table, looks_like_table, read_tables
from judge.runs.formats.table_columns import USUAL
from judge.runs.formats.table_rows import texts_of
from judge.runs.sources import find_sources

ROWS = [
    {"question": "How tall?", "contexts": ["It is 34 metres high.", "It is open."], "answer": "34 metres."},
    {"question": "When?", "contexts": ["It was lit in 1871."], "answer": "In 1871."},
]


def tables_of(path: Path, **named: str):
    tables = find_sources([path], named).tables
    assert tables is not None
    return tables


def put(path: Path, rows: list[dict]) -> Path:
    """The rows in the form that the name of the file says."""
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        sign = {".csv": ",", ".tsv": "\t"}[path.suffix]

        def cell(value: object) -> str:
            text = value if isinstance(value, str) else json.dumps(value)
            return '"' + text.replace('"', '""') + '"'

        lines = [sign.join(rows[0]), *(sign.join(map(cell, row.values())) for row in rows)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
def test_every_form_of_a_table_gives_the_same_run(tmp_path, suffix):
    tables = tables_of(put(tmp_path / f"app{suffix}", ROWS))
    (read,) = tables.runs
    assert read.run is not None
    assert (read.run.run_id, read.run.format) == ("app", "table")
    assert [(turn.turn_id, turn.responses[0].text) for turn in read.run.turns] == [
        ("q1_1", "34 metres."), ("q2_1", "In 1871."),
    ]  # fmt: skip
    texts = [[passage.text for passage in turn.responses[0].listed] for turn in read.run.turns]
    assert texts == [row["contexts"] for row in ROWS]
    assert [(topic.topic_id, topic.turns[0].utterance) for topic in tables.topics or ()] == [
        ("q1", "How tall?"), ("q2", "When?"),
    ]  # fmt: skip


@pytest.mark.parametrize("role", ["question", "answer", "contexts", "reference"])
def test_every_usual_name_is_found_in_any_case(tmp_path, role):
    for name in USUAL[role]:
        humped = name[0] + name.title().replace("_", "")[1:]
        for written in (name, name.upper(), name.replace("_", " ").title(), humped):
            row = {"question": "q", "answer": "a", "contexts": ["c"], "reference": "r"}
            row[written] = row.pop(role)
            source = tables_of(put(tmp_path / "t.jsonl", [row])).sources[0]
            assert source.columns[role] == written


def test_one_object_may_be_on_several_lines(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(ROWS[0], indent=1), encoding="utf-8")
    (read,) = tables_of(path).runs
    assert [turn.responses[0].text for turn in read.run.turns] == ["34 metres."]  # type: ignore[union-attr]


def test_a_folder_of_tables_with_columns_of_other_names_says_how_to_name_them(tmp_path):
    put(tmp_path / "t.csv", [{"frage": "q", "antwort": "a"}])
    with pytest.raises(InputError) as refused:
        find_sources([tmp_path])
    (problem,) = refused.value.problems
    assert "no columns of questions and answers by their usual names (--column ROLE=COLUMN" in problem.message
    assert len(find_sources([tmp_path], {"question": "frage", "answer": "antwort"}).tables.runs) == 1  # type: ignore[union-attr]


def test_systems_in_a_column_are_runs_that_share_their_questions(tmp_path):
    rows = [{"system": name, **row} for name in ("b", "a") for row in ROWS]
    tables = tables_of(put(tmp_path / "t.jsonl", rows))
    assert [(read.run.run_id, [turn.turn_id for turn in read.run.turns]) for read in tables.runs if read.run] == [
        ("b", ["q1_1", "q2_1"]), ("a", ["q1_1", "q2_1"]),
    ]  # fmt: skip
    assert tables.sources[0].keys == (("b", "q1_1"), ("b", "q2_1"), ("a", "q1_1"), ("a", "q2_1"))


def test_ids_that_each_row_has_for_itself_do_not_part_the_questions_that_systems_share(tmp_path):
    rows = [
        {"id": number, "system": system, "question": question, "answer": f"{question} {system}"}
        for number, (system, question) in enumerate([("a", "q"), ("a", "r"), ("b", "r"), ("b", "q")], 1)
    ]
    turns = [("a", "q1_1"), ("a", "q2_1"), ("b", "q2_1"), ("b", "q1_1")]
    (source,) = tables_of(put(tmp_path / "t.jsonl", rows)).sources
    assert list(source.keys) == turns
    reason = "no two systems share an id in 'id', though they share questions"
    assert source.said.endswith(f"not used: 'id'; {reason}, so the texts of questions tell them apart")
    # So in a file a system; and where one id is shared, ids are of questions.
    files = [put(tmp_path / f"{name}.jsonl", [row for row in rows if row["system"] == name]) for name in ("a", "b")]
    assert [key for read in read_tables(files).sources for key in read.keys] == turns
    rows[3]["id"] = 1
    (source,) = tables_of(put(tmp_path / "t.jsonl", rows)).sources
    assert list(source.keys) == [("a", "1_1"), ("a", "2_1"), ("b", "3_1"), ("b", "1_1")]
    assert source.without_ids == ""


def test_ids_that_cannot_name_turns_are_said_not_to_be_used(tmp_path):
    rows = [{"id": f"case {number}", "question": "qr"[number], "answer": "a"} for number in range(2)]
    (source,) = tables_of(put(tmp_path / "t.jsonl", rows)).sources
    assert [turn_id for _, turn_id in source.keys] == ["q1_1", "q2_1"]
    assert "id from" not in source.said
    assert "not all of 'id' are letters and digits without spaces" in source.said


def test_a_question_that_is_asked_again_is_another_turn_of_its_topic(tmp_path):
    tables = tables_of(put(tmp_path / "t.jsonl", [ROWS[0], ROWS[1], ROWS[0]]))
    assert [turn.turn_id for turn in tables.runs[0].run.turns] == ["q1_1", "q2_1", "q1_2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("columns", "turns"),
    [
        ([{"id": "7"}, {"id": "x-2"}], ["7_1", "x-2_1"]),
        # Ids with spaces are no ids of turns, so questions are numbered.
        ([{"id": "row 1"}, {"id": "row 2"}], ["q1_1", "q2_1"]),
        ([{"topic": "t"}, {"topic": "t"}], ["t_1", "t_2"]),
        ([{"topic": "t", "id": "9"}, {"topic": "u", "id": "9"}], ["t_1", "u_1"]),
        ([{"conversation": "c", "turn": 2}, {"conversation": "c", "turn": "1"}], ["c_2", "c_1"]),
    ],
)
def test_ids_topics_and_turns_name_the_turns(tmp_path, columns, turns):
    rows = [{**own, **row} for own, row in zip(columns, ROWS, strict=True)]
    tables = tables_of(put(tmp_path / "t.jsonl", rows))
    assert [turn.turn_id for turn in tables.runs[0].run.turns] == turns  # type: ignore[union-attr]


def test_a_conversation_shows_what_came_before(tmp_path):
    rows = [
        {"conversation": "c", "turn": 1, "question": "How tall?", "answer": "34.", "reference": "34 metres."},
        {"conversation": "c", "turn": 2, "question": "And wide?", "answer": "Nine."},
        {"conversation": "c", "turn": 3, "question": "Thanks.", "answer": "Bye."},
    ]
    (topic,) = tables_of(put(tmp_path / "t.jsonl", rows)).topics or ()
    said = [[(each.utterance, each.response) for each in turn.context] for turn in topic.turns]
    # The reference is what was said before, or the answer of the only system.
    assert said == [[], [("How tall?", "34 metres.")], [("How tall?", "34 metres."), ("And wide?", "Nine.")]]


def test_references_of_all_rows_of_a_question_count(tmp_path):
    rows = [
        {"system": "a", "question": "q", "answer": "x", "reference": '["1871", "in 1871"]'},
        {"system": "b", "question": "q", "answer": "y", "reference": "the year 1871"},
    ]
    (topic,) = tables_of(put(tmp_path / "t.jsonl", rows)).topics or ()
    assert topic.turns[0].references == ("1871", "in 1871", "the year 1871")


@pytest.mark.parametrize(
    ("rows", "named", "said"),
    [
        ([{"answer": "a", "response": "b", "question": "q"}], {},
            "'answer' and 'response' may each be the answer; name one: --column answer=answer"),
        ([{"question": "q", "reply": "a"}], {"question": "question"}, "no column of answers"),
        ([{"question": "q", "answer": "a"}], {"answer": "reply"},
            "no column 'reply' for answer; found 'question', 'answer'"),
        ([{"question": " ", "answer": "a"}], {}, "line 1: no question in the column 'question'"),
        ([{"question": "q", "answer": ["a"]}], {},
            "line 1: column 'answer': expected a text, found a list with 1 entries"),
        ([{"question": "q", "answer": "a", "contexts": '["cut'}], {}, "expected a text, or a list of texts as JSON"),
        ([{"question": "q", "answer": "a", "contexts": ["c", 1]}], {},
            "expected a text, or a list of texts as JSON; found a list with 1"),
        ([{"question": "q", "answer": "a", "contexts": [{"text": "c"}, {"title": "t", "score": 1}]}], {},
            "expected a text, or a list of texts as JSON; found a list with an object of 'title', 'score'"),
        ([{"question": "q", "answer": {"city": "a"}}], {"answer": "answer"},
            "line 1: column 'answer': expected a text, found an object of 'city'"),
        ([{"question": {"asked": "q"}, "answer": "a"}], {},
            "no column of questions (question, query, user_input, input, inputs, prompt, request); "
            "found 'question.asked', 'answer'; name it: --column question=COLUMN"),
        ([{"question": "q", "answer": "a", "system": ""}], {}, "no name of a system in the column 'system'"),
        ([{"question": "q", "answer": "a", "turn": 1}], {}, "a turn without a conversation"),
        ([{"question": "q", "answer": "a", "topic": "t", "turn": "x"}], {}, "turn 'x': expected a whole number"),
        ([{"question": "q", "answer": "a", "topic": "a b"}], {}, "topic 'a b': expected letters and digits"),
        ([{"id": 1, "question": "q", "answer": "a"}, {"id": 1, "question": "q", "answer": "b"}], {},
            "line 2: the id '1' of 't' was already at line 1; if several systems answered, --column system=COLUMN"),
        ([{"id": 1, "system": "a", "question": "q", "answer": "a"},
          {"id": 1, "system": "b", "question": "r", "answer": "b"}], {}, "line 2: 1_1 asks 'r' here, 'q' at "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_message_with_its_place(tmp_path, rows, named, said):
    path = put(tmp_path / "t.jsonl", rows)
    with pytest.raises(InputError) as refused:
        read_tables([path], named)
    (problem, *_) = refused.value.problems
    assert said in f"{problem.path}: {problem.message}"
    assert problem.file == str(path)


@pytest.mark.parametrize(
    "columns",
    [
        {"question": ["q", "r"], "answer": ["a", "b"]},
        {"question": {"0": "q", "1": "r"}, "answer": {"0": "a", "1": "b"}},
    ],
)
def test_a_table_that_is_written_by_columns_is_refused_with_the_way_to_write_rows(tmp_path, columns):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(columns), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_tables([path])
    (problem,) = refused.value.problems
    assert problem.message.startswith("an object of columns: expected an object for each row")


def test_rows_inside_an_object_are_refused_with_the_name_of_their_member(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"passed": 2, "data": ROWS}), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_tables([path])
    (problem,) = refused.value.problems
    assert problem.message.startswith("an object with rows in 'data': expected these rows themselves")


def test_a_role_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="--column anser: no such role; did you mean answer"):
        read_tables([put(tmp_path / "t.jsonl", ROWS)], {"anser": "x"})


def test_a_column_that_makes_no_table_of_the_files_says_how_they_are_read_as_one(tmp_path):
    path = put(tmp_path / "t.json", [{"frage": "q", "antwort": "a"}])
    with pytest.raises(UsageError, match="the runs look like none; --format table reads them as such"):
        find_sources([path], {"answer": "Antwort"})
    with pytest.raises(InputError) as refused:
        find_sources([path], {"answer": "Antwort"}, "table")
    assert "no column 'Antwort' for answer; found 'frage', 'antwort'" in refused.value.problems[0].message


def test_tables_and_runs_of_tracks_are_not_judged_together(tmp_path):
    put(tmp_path / "t.jsonl", ROWS)
    (tmp_path / "run.json").write_text('{"run_name": "r", "run_type": "automatic", "turns": []}', encoding="utf-8")
    with pytest.raises(UsageError, match="judge them apart"):
        find_sources([tmp_path])


@pytest.mark.parametrize(
    "content",
    [
        b'{"metadata": {"run_id": "r"}, "answer": [{"text": "t", "citations": []}], "references": []}\n',
        b'{"run_name": "r", "turns": [{"turn_id": "1-1_1", "question": "q", "answer": "a"}]}',
        b"1-1_1 Q0 d1 1 2.0 run\n",
        b"turn_id\tresponse_id\n",
        b"# Notes\n\nThe answer to a question, and more.\n",
        b"",
    ],
)
def test_what_is_no_table_is_not_taken_for_one(tmp_path, content):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    assert not looks_like_table(path, content)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("metadata", {"source": "log", "question": "of another"}),
        ("references", ["Ten."]),
        ("turns", 3),
        ("turns", [{"role": "user", "content": "Hello."}]),
        ("responses", ["no", "yes"]),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_a_question_and_an_answer_that_are_texts_are_a_table_whatever_else_a_row_has(tmp_path, member, value, as_list):
    row = {member: value, "question": "When does it open?", "answer": "At ten."}
    path = put(tmp_path / ("t.json" if as_list else "t.jsonl"), [row, row])
    tables = find_sources([path]).tables
    assert tables is not None
    (read,) = tables.runs
    assert read.run is not None
    assert [turn.responses[0].text for turn in read.run.turns] == ["At ten.", "At ten."]
    # So in a folder, and where the first row is longer than what is read at first.
    put(path, [{"question": "q", "context": "x" * 5000, member: value, "answer": "a"}])
    tables = find_sources([tmp_path]).tables
    assert tables is not None and len(tables.runs) == 1


def test_an_id_and_an_answer_that_is_a_text_are_a_table_whatever_else_a_row_has(tmp_path):
    assert is_table(put(tmp_path / "t.jsonl", [{"id": 1, "answer": "At ten.", "metadata": {}}]))
    assert not is_table(put(tmp_path / "t.jsonl", [{"id": 1, "answer": [{"text": "At ten."}], "metadata": {}}]))


def test_what_is_no_run_says_how_rows_are_read(tmp_path):
    read = read_run(put(tmp_path / "t.json", [{"frage": "q", "antwort": "a"}]))
    assert read.run is None
    message = read.problems[-1].message
    assert "found a list with 1 entries, the first of them an object with 'frage', 'antwort'; rows of" in message
    assert message.endswith("are read by --format table; --column answer=COLUMN names a column")


def test_a_first_row_longer_than_the_head_is_still_seen(tmp_path):
    row = {"contexts": ["x" * 100_000], "question": "q", "answer": "a"}
    assert is_table(put(tmp_path / "t.jsonl", [row])) and is_table(put(tmp_path / "t.json", [row]))


def test_a_cell_of_megabytes_is_read(tmp_path):
    row = {"question": "q", "contexts": "x" * 2_000_000, "answer": "a"}
    (read,) = tables_of(put(tmp_path / "t.csv", [row])).runs
    assert len(read.run.turns[0].responses[0].listed[0].text) == 2_000_000  # type: ignore[union-attr, arg-type]


def test_rows_in_memory_are_a_table_and_their_digest_is_that_of_their_content():
    one, same, other = rows_of(ROWS), rows_of([dict(row) for row in ROWS]), rows_of(ROWS[:1])
    assert one.digest == same.digest != other.digest
    tables = find_sources([one]).tables
    assert tables is not None and [read.run.run_id for read in tables.runs if read.run] == ["data"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_a_table(library):
    module = pytest.importorskip(library)
    frame = module.DataFrame({
        "question": ["q", "r"], "answer": ["a", None], "contexts": [["c", "d"], ["e"]], "score": [1.0, float("nan")],
    })  # fmt: skip
    tables = find_sources([rows_of(frame)]).tables
    assert tables is not None
    run = tables.runs[0].run
    assert run is not None
    assert [turn.responses[0].text for turn in run.turns] == ["a", ""]
    assert [len(turn.responses[0].listed) for turn in run.turns] == [2, 1]


def test_a_frame_with_a_column_twice_is_refused_as_a_file_is():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["q", "a", "b"]], columns=["question", "answer", "answer"])
    with pytest.raises(UsageError, match="data: the table has 'answer' more than once"):
        rows_of(frame)


def test_what_pandas_has_for_no_value_is_none():
    pandas = pytest.importorskip("pandas")
    day = pandas.Timestamp("2026-01-02")
    frame = pandas.DataFrame({"answer": ["a", pandas.NA], "when": [day, pandas.NaT], "n": [1.5, float("nan")]})
    assert [row.cells for row in rows_of(frame).rows] == [
        {"answer": "a", "when": day, "n": 1.5}, {"answer": None, "when": None, "n": None},
    ]  # fmt: skip


def test_parquet_with_lists_is_a_table(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame(ROWS).write_parquet(tmp_path / "t.parquet")
    (read,) = tables_of(tmp_path / "t.parquet").runs
    assert [len(turn.responses[0].listed) for turn in read.run.turns] == [2, 1]  # type: ignore[union-attr]


@given(st.lists(st.text(min_size=1).filter(str.strip)))
def test_a_list_in_a_cell_is_read_as_json_and_as_python_writes_it(texts):
    wanted = [text.strip() for text in texts]
    assert texts_of(json.dumps(texts)) == wanted
    assert texts_of(repr(texts)) == wanted


@given(st.one_of(st.none(), st.text(), st.integers(), st.lists(st.one_of(st.text(), st.integers(), st.none()))))
def test_no_cell_raises(cell):
    texts = texts_of(cell)
    assert texts is None or all(text.strip() == text != "" for text in texts)


@pytest.mark.parametrize(
    ("name", "runs", "rows"),
    [("plain.csv", 1, 5), ("one_context.csv", 1, 5), ("semicolon.csv", 1, 5), ("two_systems.csv", 2, 10),
     ("ragas.jsonl", 1, 5), ("deepeval.json", 1, 5), ("minimal.jsonl", 1, 2)],
)  # fmt: skip
def test_tables_as_other_tools_write_them(shared, name, runs, rows):
    tables = tables_of(shared.parent / "cases" / "tables" / name)
    assert (len(tables.runs), len(tables.sources[0].keys)) == (runs, rows)


def test_a_column_that_is_named_is_found_where_json_escapes_its_letters(tmp_path):
    path = put(tmp_path / "t.json", [{"Präfix": "q", "answer": "a"}])
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\\u00e4"))
    assert looks_like_table(path, path.read_bytes(), {"question": "Präfix"})


def test_a_list_of_objects_in_a_cell_is_read_as_one_that_is_no_text():
    documents = [{"page_content": "One.", "metadata": {}}, {"document.content": "Two.", "document.score": 0.5}]
    assert texts_of(documents) == texts_of(json.dumps(documents)) == texts_of(repr(documents)) == ["One.", "Two."]
    assert texts_of("[{{citation}}] says so") == ["[{{citation}}] says so"]


def test_lists_as_numpy_writes_them_keep_their_texts_apart():
    assert texts_of("['One text.'\n 'The other\\'s.', \"third\"]") == ["One text.", "The other's.", "third"]
    assert texts_of("['it said \" \" once']") == ['it said " " once']


@pytest.mark.parametrize("content", ["sep=;\nquestion;answer\nq;a\n", '\ufeff"The ""question""","answer"\nq,a\n'])
def test_headers_are_seen_as_spreadsheets_write_them(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    named = {"question": 'The "question"'} if "The" in content else None
    assert looks_like_table(path, path.read_bytes(), named)


@pytest.mark.parametrize(
    ("role", "name"),
    [("question", "user_input"), ("question", "input"), ("answer", "actual_output"), ("answer", "response"),
     ("contexts", "retrieved_contexts"), ("contexts", "retrieval_context"), ("reference", "ground_truth"),
     ("reference", "expected_output"), ("id", "query_id"), ("system", "model"), ("topic", "conversation")],
)  # fmt: skip
def test_names_that_other_tools_write_are_usual(role, name):
    assert name in USUAL[role]


def exchanges(path: Path, **named: str) -> list[tuple[str | None, str, list[str | None]]]:
    """Question, answer and contexts of each row of a table that is one system."""
    tables = tables_of(path, **named)
    asked = {turn.turn_id: turn.utterance for topic in tables.topics or () for turn in topic.turns}
    (read,) = tables.runs
    assert read.run is not None
    found: list[tuple[str | None, str, list[str | None]]] = []
    for turn in read.run.turns:
        (response,) = turn.responses
        found.append((asked[turn.turn_id], response.text, [passage.text for passage in response.listed]))
    return found


def refusal(path: Path, **named: str) -> str:
    with pytest.raises(InputError) as refused:
        find_sources([path], named)
    (problem,) = refused.value.problems
    return problem.message


HUMAN = {"type": "human", "content": "How tall?", "metadata": None}
AI = {"type": "ai", "content": "34 metres.", "tool_calls": None}
USER = {"role": "user", "content": "How tall?"}
ASSISTANT = {"role": "assistant", "content": "34 metres."}
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
@pytest.mark.parametrize(
    "row",
    [
        # A data set and a run of LangSmith, its data frame, and a row of MLflow.
        {"id": "1", "inputs": {"question": "How tall?"}, "outputs": {"answer": "34 metres.", "contexts": ["c"]},
         "metadata": {"question": "no"}},
        {"inputs.question": "How tall?", "outputs.answer": "34 metres.", "outputs.documents": ["c"],
         "reference.answer": "34", "feedback.answer": 1, "example_id": "x"},
        {"inputs": {"query": "How tall?"}, "outputs": "34 metres.", "expectations": {"context": "c"}},
        # Chains give back what they were asked.
        {"inputs": {"query": "How tall?"}, "outputs": {"query": "no", "output": "34 metres."}, "context": "c"},
        # Traces of Langfuse, spans of Phoenix, a result of promptfoo.
        {"input": {"question": "How tall?"}, "output": {"answer": "34 metres."}, "context": ["c"], "metadata": {}},
        {"input": [SYSTEM, USER], "output": ASSISTANT, "context": ["c"]},
        {"attributes": {"input": {"value": "How tall?"}, "output": {"value": "34 metres."}}, "documents": ["c"]},
        {"attributes.input.value": "How tall?", "attributes.output.value": "34 metres.", "context.trace_id": "t",
         "attributes.retrieval.documents": [{"document.content": "c"}]},
        {"id": "1", "prompt": {"raw": "Answer: How tall?"}, "response": {"output": "34 metres.", "cached": False},
         "vars": {"question": "How tall?", "context": "c"}, "testCase": {"vars": {"question": "no"}}, "metadata": {}},
        # DeepEval writes every column.
        {"input": "How tall?", "actual_output": "34 metres.", "retrieval_context": ["c"], "context": None},
        # One question and one answer as messages.
        {"messages": [SYSTEM, USER, ASSISTANT], "context": "c"},
        {"conversations": [{"from": "human", "value": "How tall?"}, {"from": "gpt", "value": "34 metres."}],
         "context": "c"},
        {"user_input": [HUMAN, AI], "retrieved_contexts": ["c"]},
        {"inputs": {"messages": [USER]}, "outputs": {"messages": [ASSISTANT]}, "context": "c"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "How tall?"}]}, ASSISTANT], "context": "c"},
        {"messages": [{"type": "constructor", "kwargs": HUMAN}, {"type": "ai", "data": {"content": "34 metres."}}],
         "context": "c"},
    ],
)  # fmt: skip
def test_rows_as_tools_write_them_are_read(tmp_path, suffix, row):
    cells = {name: "" if suffix == ".csv" and cell is None else cell for name, cell in row.items()}
    path = put(tmp_path / f"t{suffix}", [cells, cells])
    expected = ("How tall?", "34 metres.", ["c"])
    if "id" in cells:
        path = put(path, [cells, {**cells, "id": "2"}])
    assert exchanges(path) == [expected, expected]


def test_names_of_objects_count_where_no_other_name_is_there(tmp_path):
    row = {"question": "q", "inputs": "x", "answer": "a", "outputs": "y", "reference": "r", "expected_response": "z"}
    (source,) = tables_of(put(tmp_path / "t.jsonl", [row])).sources
    assert source.columns == {"question": "question", "answer": "answer", "reference": "reference"}


def test_objects_are_read_as_python_writes_them_too(tmp_path):
    path = put(tmp_path / "t.csv", [{"inputs": "{'question': 'q'}", "outputs": "{'answer': 'a', 'n': None}"}])
    assert exchanges(path) == [("q", "a", [])]


def test_cells_that_are_all_json_are_the_texts_in_them(tmp_path):
    rows = [
        {"id": '"7"', "latency": "1.5", "input": '{"question":"q"}', "output": '"Said \\"so\\".\\n"', "tags": "[]"},
        {"id": '"8"', "latency": "", "input": '{"question":"r"}', "output": '""', "tags": "[]"},
    ]
    path = put(tmp_path / "t.csv", rows)
    assert exchanges(path) == [("q", 'Said "so".\n', []), ("r", "", [])]
    (source,) = tables_of(path).sources
    assert [key for _, key in source.keys] == ["7_1", "8_1"]
    assert [row.cells["output"] for row in source.table.again()] == ['Said "so".\n', ""]
    # One text without quotation marks, and they belong to the texts.
    path = put(path, [*rows, {**rows[0], "id": "9", "tags": "none"}])
    assert exchanges(path)[1][1] == '""'


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_member_of_an_object_is_named_with_a_dot(tmp_path, suffix):
    row = {"inputs": {"text": "q"}, "outputs": {"result": "a", "docs": ["c"]}, "provider": {"id": "m/1"}}
    path = put(tmp_path / f"t{suffix}", [row])
    assert refusal(path) == (
        "no column of answers (answer, response, output, outputs, actual_output, generated_answer); found "
        "'inputs.text', 'outputs.result', 'outputs.docs', 'provider.id'; name it: --column answer=COLUMN"
    )
    named = {"answer": "outputs.result", "contexts": "outputs.docs", "system": "provider.id"}
    assert exchanges(path, **named) == [("q", "a", ["c"])]
    (source,) = tables_of(path, **named).sources
    assert [key for key, _ in source.keys] == ["m/1"]
    # The members stand in the place of the object, when the rows are read again too.
    columns = ("inputs.text", "outputs.result", "outputs.docs", "provider.id")
    assert source.table.columns == columns
    assert [set(again.cells) for again in source.table.again()] == [{*columns}]


def test_members_that_may_each_have_a_role_are_named(tmp_path):
    row = {"inputs": {"question": "q", "query": "r"}, "outputs": {"answer": "a"}}
    path = put(tmp_path / "t.jsonl", [row])
    said = "'inputs.question' and 'inputs.query' may each be the question; name one: --column question=inputs.question"
    assert refusal(path) == said
    assert exchanges(path, question="inputs.query") == [("r", "a", [])]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "answer": '{"city": "Ulm"}'},
        {"question": "q", "answer": '{"city": "Ulm"}', "extra": {"answer": "no"}, "note": {"question": "no"}},
    ],
)
def test_an_answer_that_is_json_itself_is_judged_as_it_stands(tmp_path, row):
    for suffix in (".csv", ".jsonl"):
        path = put(tmp_path / f"t{suffix}", [row])
        assert exchanges(path) == [("q", '{"city": "Ulm"}', [])]
        assert tables_of(path).sources[0].table.columns == tuple(row)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [USER, ASSISTANT, USER, ASSISTANT]},
         "column 'messages': 2 rows whose messages are not one question and one answer, such as 4 messages (user, "
         "assistant, user, assistant) at "),
        ({"user_input": [HUMAN, AI, HUMAN], "reference": "34"}, "column 'user_input': 2 rows whose messages"),
        ({"scenario": "s", "turns": [USER, ASSISTANT, USER, ASSISTANT]}, "column 'turns': 2 rows whose messages"),
        ({"input": [USER, ASSISTANT, USER], "output": ASSISTANT}, "column 'input': 2 rows whose messages"),
        ({"inputs": {"messages": [USER]}, "outputs": {"messages": [USER, ASSISTANT]}},
         "column 'outputs.messages': 2 rows whose messages are not"),
        ({"conversation": [USER, ASSISTANT, {"role": "tool", "content": "x"}, ASSISTANT]}, "column 'conversation'"),
    ],
)  # fmt: skip
def test_a_dialogue_in_a_row_is_no_answer(tmp_path, suffix, row, said):
    message = refusal(put(tmp_path / f"t{suffix}", [row, row]))
    assert message.startswith(said)
    assert message.endswith("write a row for each answer, with columns `conversation` and `turn` so that the judge "
                            "sees what came before")  # fmt: skip


def test_messages_before_a_question_are_told_not_to_be_seen(tmp_path):
    rows = [
        {"question": "q", "history": [], "answer": "a"},
        {"question": "r", "history": [USER, ASSISTANT], "answer": "b"},
    ]
    (source,) = tables_of(put(tmp_path / "t.jsonl", rows)).sources
    assert source.said.endswith("not used: 'history'; no judge sees the messages in 'history'")


def test_systems_whose_questions_are_messages_share_them(tmp_path):
    rows = [{"id": n, "system": name, "input": [USER], "output": ASSISTANT} for n, name in enumerate("ab")]
    (source,) = tables_of(put(tmp_path / "t.jsonl", rows)).sources
    assert list(source.keys) == [("a", "q1_1"), ("b", "q1_1")]


def test_rows_deep_in_an_object_are_refused_with_the_name_of_their_member(tmp_path):
    row = {"vars": {"question": "q"}, "response": {"output": "a"}, "metadata": {}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"results": [row]}, "metadata": {}}), encoding="utf-8")
    assert "; if 'results.results' has the rows, write them themselves, in a list or one a line; " in refusal(path)


def test_an_object_with_thousands_of_members_is_no_part_of_a_row(tmp_path):
    row = {"question": "q", "answer": "a", "outputs": {f"{number}.context": "c" for number in range(101)}}
    assert tables_of(put(tmp_path / "t.jsonl", [row])).sources[0].table.columns == ("question", "answer", "outputs")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_objects_in_data_frames_and_parquet_are_read(tmp_path, library):
    module = pytest.importorskip(library)
    pytest.importorskip("polars")
    frame = module.DataFrame([{"inputs": {"question": "q"}, "outputs": {"answer": "a", "contexts": ["c"]}}])
    tables = find_sources([rows_of(frame)]).tables
    assert tables is not None
    assert tables.sources[0].table.columns == ("inputs.question", "outputs.answer", "outputs.contexts")
    if library == "polars":
        frame.write_parquet(tmp_path / "t.parquet")
        assert exchanges(tmp_path / "t.parquet") == [("q", "a", ["c"])]
