"""Packed tables: what a page unpacks is what was packed, each text once."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from judge.report.listing import NONE, PackedTable, Packer, TextTables, unpacked

# Any text, lone surrogates too, and what could end a block of a page.
TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["</script>", "<!--", "]]>", "\u2028", "\0", "\ud800", '"\\', ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def read(table: PackedTable) -> list[object]:
    values: list[object] = []
    for start, chunk in zip(table.starts, table.chunks, strict=True):
        assert start == len(values)
        values += json.loads(unpacked(chunk).decode("utf-8", "surrogatepass"))
    return values


@given(st.lists(VALUES, max_size=30), st.integers(1, 200))
def test_a_table_is_unpacked_as_it_was_packed(values: list[object], size: int) -> None:
    packer = Packer(size)
    assert [packer.add(value) for value in values] == list(range(len(values)))
    table = packer.table()
    assert read(table) == values
    assert all(re.fullmatch("[A-Za-z0-9+/=]+", chunk) for chunk in table.chunks)


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
    assert packer.table().starts == (0, 1, 2)
