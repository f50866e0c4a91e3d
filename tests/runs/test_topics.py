"""Topics of each year from a literal file; the faults of a file, all at once."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.errors import InputError
from judge.runs.records import Exchange, PtkbStatement, Topic, Turn
from judge.runs.topics import read_topics
from tests.conftest import put, refused

IKAT_2023 = [
    {
        "number": "9-1",
        "title": "Diet",
        "ptkb": {"1": "I am vegan.", "2": "I like tea."},
        "turns": [
            {"turn_id": 1, "utterance": " Hi", "resolved_utterance": "Hi.", "response": "Hello.\n",
             "ptkb_provenance": [2], "response_provenance": ["a:1", "a:1"]},
            {"turn_id": 2, "utterance": "And?", "resolved_utterance": "And now?", "response": "Tea.",
             "ptkb_provenance": [], "response_provenance": []},
            {"turn_id": 3, "utterance": "Thanks"},
        ],
    }
]  # fmt: skip
STATEMENTS = (PtkbStatement("1", "I am vegan."), PtkbStatement("2", "I like tea."))
IKAT_2025 = [
    {
        "number": "1-1",
        "title": "Diet",
        "ptkb": ["I am vegan.", "I like tea."],
        "responses": [
            {"turn_id": 1, "user_utterance": "Hi", "resolved_utterance": "Hi.", "response": "Hello.",
             "relevant_ptkbs": ["I like tea."], "citations": ["a:1"]},
        ],
    }
]  # fmt: skip


def user(number, parent=None, **fields):
    link = {} if parent is None else {"parent": parent}
    return {"number": number, "participant": "User", "utterance": f"U{number}", **link, **fields}


def system(number, parent, **fields):
    return {
        "number": number, "participant": "System", "response": f"S{number}", "provenance": [], "parent": parent,
    } | fields  # fmt: skip


CAST = [
    {
        "number": 132,
        "turn": [
            user("1-1", manual_rewritten_utterance="M"),
            # The child may come before its parent in the file, and two branches may leave one node.
            user("2-2", "2-1", automatic_rewritten_utterance="A"),
            system("1-2", "1-1", provenance=["MARCO_1-1"]),
            system("2-1", "1-1"),
            user("1-3", "1-2"),
        ],
    }
]


def topics_of(tmp_path, document):
    path = put(tmp_path / "topics.json", document if isinstance(document, bytes) else json.dumps(document).encode())
    return read_topics(path)


def faults(tmp_path, document):
    return [(problem.code, problem.path) for problem in refused(topics_of, tmp_path, document)]


def test_ikat2023(tmp_path):
    (topic,) = topics_of(tmp_path, IKAT_2023)
    first, second, third = topic.turns
    assert topic == Topic("9-1", "Diet", STATEMENTS, (first, second, third))
    assert first == Turn("9-1_1", "9-1", " Hi", "Hi.", (), STATEMENTS, ("2",), ("Hello.\n",), ("a:1", "a:1"))
    assert second.context == (Exchange(" Hi", "Hello.\n"),)
    assert third.context == (Exchange(" Hi", "Hello.\n"), Exchange("And?", "Tea."))
    assert (third.references, third.resolved_utterance, third.passage_ids) == ((), None, ())


def test_ikat2024_numbers_are_integers_and_ids_strings(tmp_path):
    (topic,) = topics_of(tmp_path, [IKAT_2023[0] | {"number": 0}])
    assert (topic.topic_id, topic.turns[0].turn_id, topic.turns[0].topic_id) == ("0", "0_1", "0")


def test_ikat2025_statements_are_numbered_and_links_found_by_text(tmp_path):
    (topic,) = topics_of(tmp_path, IKAT_2025)
    assert topic.turns == (Turn("1-1_1", "1-1", "Hi", "Hi.", (), STATEMENTS, ("2",), ("Hello.",), ("a:1",)),)


def test_ikat2025_a_statement_given_twice_is_the_first(tmp_path):
    (topic,) = topics_of(tmp_path, [IKAT_2025[0] | {"ptkb": ["I like tea.", "I like tea."]}])
    assert topic.turns[0].ptkb_provenance == ("1",)


def test_cast2022_context_follows_the_parents(tmp_path):
    (topic,) = topics_of(tmp_path, CAST)
    turns = {turn.turn_id: turn for turn in topic.turns}
    assert list(turns) == ["132_1-1", "132_2-2", "132_1-3"]
    assert turns["132_1-1"] == Turn("132_1-1", "132", "U1-1", "M", (), (), (), ("S1-2",), ("MARCO_1-1",))
    assert turns["132_2-2"].context == (Exchange("U1-1", "S2-1"),)
    assert turns["132_2-2"].resolved_utterance == "A"
    assert turns["132_1-3"].context == (Exchange("U1-1", "S1-2"),)
    assert turns["132_1-3"].references == ()


def test_cast2022_nodes_that_do_not_alternate_lose_nothing(tmp_path):
    nodes = [system("0", "9"), user("1", "0"), user("2", "1"), user("3", "2")]
    del nodes[0]["parent"]
    (topic,) = topics_of(tmp_path, [{"number": 1, "turn": nodes}])
    assert topic.turns[2].context == (Exchange("", "S0"), Exchange("U1", ""), Exchange("U2", ""))


def test_packed_files_and_byte_order_marks_are_read(tmp_path):
    content = b"\xef\xbb\xbf" + json.dumps(IKAT_2023).encode()
    assert topics_of(tmp_path, gzip.compress(content)) == topics_of(tmp_path, IKAT_2023)


def test_every_fault_of_form_is_listed(tmp_path):
    document = [
        {"number": "9-1", "ptkb": {"1": 5}, "turns": [{"turn_id": 1}, {"turn_id": 1, "utterance": "b"}, 3]},
        {"number": "9-1", "turns": 4},
        {
            "ptkb": {},
            "turns": [{"turn_id": "a", "utterance": None, "ptkb_provenance": [7], "response_provenance": [7]}],
        },
        {"number": "", "ptkb": {}, "turns": [{"turn_id": 1, "utterance": "a"}]},
        {"number": "7 7", "ptkb": {}, "turns": [{"turn_id": "", "utterance": "a"}, {"turn_id": 1, "utterance": "a"}]},
        "topic",
    ]
    assert faults(tmp_path, document) == [
        ("wrong_type", '$[0].ptkb["1"]'),
        ("missing_field", "$[0].turns[0].utterance"),
        ("duplicate_turn", "$[0].turns[1].turn_id"),
        ("wrong_type", "$[0].turns[2]"),
        ("duplicate_topic", "$[1].number"),
        ("missing_field", "$[1].ptkb"),
        ("wrong_type", "$[1].turns"),
        ("missing_field", "$[2].number"),
        ("unknown_statement", "$[2].turns[0].ptkb_provenance[0]"),
        ("wrong_type", "$[2].turns[0].utterance"),
        ("wrong_type", "$[2].turns[0].response_provenance[0]"),
        ("missing_field", "$[3].number"),
        ("missing_field", "$[4].turns[0].turn_id"),
        ("malformed_turn_id", "$[4].turns[1].turn_id"),
        ("wrong_type", "$[5]"),
    ]


def test_every_fault_of_a_tree_is_listed_once(tmp_path):
    nodes = [
        user("1-1", utterance=3), system("1-2", "1-1"), user("1-3", "1-2"), user("1-5", "1-3"), user("1-3", "1-2"),
        user("2-1", "2-9"), user("3-1", "3-2"), system("3-2", "3-1"),
        {"number": "4-1", "participant": "Robot", "utterance": "x"},
    ]  # fmt: skip
    assert faults(tmp_path, [{"number": 1, "turn": nodes}]) == [
        ("duplicate_turn", "$[0].turn[4].number"),
        ("broken_parent", "$[0].turn[5].parent"),
        ("broken_parent", "$[0].turn[6].parent"),
        ("wrong_type", "$[0].turn[0].utterance"),
        ("wrong_type", "$[0].turn[8].participant"),
    ]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[{]", "not_json"), (b"{}", "wrong_type"), (b'{\n "runs": []\n}', "wrong_type"),
        (b'[{"number":\t1', "truncated_json"), (b"[]", "wrong_type"),
        (b'{"metadata": {}}\n{"metadata": {}}', "wrong_type"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_topics_file_is_refused(tmp_path, content, code):
    assert [found for found, _ in faults(tmp_path, content)] == [code]


@pytest.mark.parametrize(("content", "where", "message"), [
    ("7 why is the sea salt", "line 1", "expected JSON, or an id, a tab and a text in each line, found '7 why is"),
    ("\n\n7 why", "line 3", "expected JSON, or an id, a tab and a text in each line, found '7 why'"),
    ("7\twhy\n\twhen\n8\t\n", "line 2", r"expected an id, a tab and a text in UTF-8, found '\twhen'"),
    ("\t7\twhy\n", "line 1", r"expected an id, a tab and a text in UTF-8, found '\t7\twhy'"),
])  # fmt: skip
def test_lines_that_are_no_topics_say_what_a_line_has(tmp_path, content, where, message):
    path = tmp_path / "t.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as caught:
        read_topics(path)
    first = caught.value.problems[0]
    assert (first.code, first.path) == ("wrong_type", where)
    assert first.message.startswith(message)


@pytest.mark.parametrize("names", ["qid\tquery", "Topic_ID\tText", "id\tquestion\r"])
def test_the_names_of_the_columns_are_no_topic(tmp_path, names):
    path = tmp_path / "t.tsv"
    path.write_bytes(f"{names}\n7\twhy\nid\tquery\n".encode())
    # Below a topic they are one.
    assert [topic.topic_id for topic in read_topics(path)] == ["7", "id"]


def test_names_of_columns_alone_are_no_topics(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("qid\tquery\n", "utf-8")
    with pytest.raises(InputError, match="not a usable topics file"):
        read_topics(path)


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="not a usable topics file") as caught:
        read_topics(tmp_path / "none.json")
    assert [problem.code for problem in caught.value.problems] == ["unreadable_file"]


NAMES = st.sampled_from(
    [
        "number", "title", "ptkb", "turns", "turn", "responses", "turn_id", "utterance", "parent", "participant",
        "response",
    ]
)  # fmt: skip
SCALARS = (
    st.none() | st.integers() | st.floats() | st.sampled_from(["User", "System", "1-1", "\ud800"]) | st.text(max_size=4)
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6), max_leaves=25
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=st.lists(st.dictionaries(NAMES, ANY_JSON, max_size=6), max_size=3) | ANY_JSON)
def test_any_json_is_topics_or_bad_input(tmp_path, document):
    try:
        topics = topics_of(tmp_path, document)
    except InputError as error:
        assert error.problems
    else:
        assert all(isinstance(topic, Topic) for topic in topics)
