"""The tables of a browser: columns for filters, and the details of each item behind references, packed once."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from judge.report.gather import gather
from judge.report.listing import GRADED, NONE, NOT_THERE, PackedTable, Packer, TextTables, listing
from judge.report.page import browse
from tests.report.browsed import BUS, FERRY, failed, judgment, opened, response, runs, write_folder


def unpacked(chunk: str) -> bytes:
    return zlib.decompress(base64.b64decode(chunk))


def columns(listed: tuple[str, object]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(unpacked(listed[0]))
    return read


def test_the_columns_of_two_folders(tmp_path: Path) -> None:
    one = write_folder(
        tmp_path / "one",
        [response(1, "By ferry.", runs=runs("run-10", "run-9")), response(2, "By bus.", "1-1_2")],
        [judgment(1, 3, rationale="It says so."), failed(2, turn="1-1_2")],
    )
    two = write_folder(tmp_path / "two", [response(7, "By ferry.")], [judgment(7, 1, judge="server/other")])
    read = columns(listing(gather(opened([one, two]))))
    assert (read["sides"], read["order"]) == (["one", "two"], "worst")
    assert (read["runs"], read["run_sets"]) == (["run-9", "run-10", "run-a"], [[0, 1, 2], [2]])
    assert (read["topics"], read["turns"], read["turn_topic"]) == (["1-1"], ["1-1_1", "1-1_2"], [0, 0])
    assert read["rows"]["name"] == ["R00001/groundedness", "R00002/groundedness"]
    assert read["rows"]["gap_judges"] == [2, None]
    assert [said["state"] for said in read["said"]] == [[GRADED, 2], [GRADED, NOT_THERE]]
    assert [said["grade"] for said in read["said"]] == [[3, None], [1, None]]
    assert (read["reasons"], read["judges"]) == (["unreadable"], ["server/made-up", "server/other"])


def test_names_of_items_are_unique(tmp_path: Path) -> None:
    one = write_folder(tmp_path / "one", [response(1, "By ferry.")], [judgment(1, 3)])
    two = write_folder(tmp_path / "two", [response(1, "By bus.")], [judgment(1, 3)])
    assert sorted(columns(listing(gather(opened([one, two]))))["rows"]["name"]) == [
        "R00001/groundedness",
        "R00001/groundedness~2",
    ]


def test_details_refer_to_texts_and_a_passage_within_a_prompt_is_no_second_text(tmp_path: Path) -> None:
    asked = f'<passage n="1">\n{FERRY.text}\n</passage>\n<response>\nBy ferry.\n</response>\nGrade:'
    folder = write_folder(
        tmp_path / "out",
        [response(1, "By ferry.", passages=("bus-7", "ferry-1"))],
        [judgment(1, 0, expected=0.0, request_digest="a" * 64, rationale="Not there.")],
        sent={"a" * 64: (asked, '{"grade": 0}')},
    )
    _, tables = listing(gather(opened([folder])))
    searched, stored, (detail,) = (read(tables[name]) for name in ("searched", "stored", "items"))
    said = detail["sides"]["0"]

    def text(reference: int) -> str:
        return str((stored if reference % 2 else searched)[reference >> 1])

    assert searched == ["By ferry.", "Not there."]
    assert stored.count(FERRY.text) == stored.count(BUS.text) == 1
    assert [(key, text(reference)) for key, reference, _ in detail["passages"]] == [
        ("bus-7", BUS.text),
        ("ferry-1", FERRY.text),
    ]
    assert (said["grade"], said["expected"], text(said["reply"])) == (0, 0.0, '{"grade": 0}')
    role, references = said["sent"][1]
    assert (role, "".join(map(text, references))) == ("user", asked)


def test_many_judgments_lie_in_files_beside_the_page(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [response(1, "By ferry.")], [judgment(1, 3)])
    inside, beside = browse(opened([folder])), browse(opened([folder]), inline=0)
    assert inside.files == {}
    assert sorted(beside.files) == [f"report-data/{name}-0.js" for name in ("items", "searched", "stored", "turns")]
    assert beside.files["report-data/items-0.js"].startswith(b'document.currentScript.packed="')
    assert 'id="judge-items-0"' in inside.markup
    assert 'id="judge-items-0"' not in beside.markup


# Any text, lone surrogates too, and what could end a block of a page.
TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["</script>", "<!--", "]]>", "\u2028", "\0", "\ud800", '"\\', ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def read(table: PackedTable) -> list[Any]:
    values: list[Any] = []
    for start, chunk in table:
        assert start == len(values)
        values += json.loads(unpacked(chunk).decode("utf-8", "surrogatepass"))
    return values


@given(st.lists(VALUES, max_size=30), st.integers(1, 200))
def test_a_table_is_unpacked_as_it_was_packed(values: list[object], size: int) -> None:
    packer = Packer(size)
    assert [packer.add(value) for value in values] == list(range(len(values)))
    table = packer.table()
    assert read(table) == values
    assert all(re.fullmatch("[A-Za-z0-9+/=]+", chunk) for _, chunk in table)


@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=30))
def test_a_reference_leads_to_its_text_and_a_text_that_is_searched_to_the_searched_ones(given_texts) -> None:
    texts = TextTables(64)
    references = [texts.searched(text) if search else texts.stored(text) for text, search in given_texts]
    tables = [read(table) for table in texts.tables()]
    for (text, search), reference in zip(given_texts, references, strict=True):
        assert tables[reference % 2][reference >> 1] == text
        assert not (search and reference % 2)
    assert all(len(table) == len(set(map(str, table))) for table in tables)


def test_a_text_is_stored_once_and_none_has_no_place() -> None:
    texts = TextTables()
    assert texts.searched("a ferry") == texts.stored("a ferry") == texts.searched("a ferry") == 0
    assert texts.stored("a bus") == 1
    assert texts.stored(None) == NONE
    assert [read(table) for table in texts.tables()] == [["a ferry"], ["a bus"]]


def test_a_chunk_ends_before_the_value_that_would_exceed_it() -> None:
    packer = Packer(10)
    for text in ("abcd", "efgh", "a text that is longer than a chunk"):
        packer.add(text)
    # Two texts of six bytes with their quotation marks do not fit into ten.
    assert [start for start, _ in packer.table()] == [0, 1, 2]
