"""The document of a browser: every item with what is said of it, as JSON that stands in a page."""

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from judge.report.gather import gather
from judge.report.listing import json_block, listing
from judge.report.page import browse
from tests.report.browsed import BUS, FERRY, failed, judgment, opened, response, runs, write_folder


def listed(*folders: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json_block(listing(gather(opened(folders)))))
    return read


def test_the_items_of_two_folders(tmp_path: Path) -> None:
    one = write_folder(
        tmp_path / "one",
        [response(1, "By ferry.", runs=runs("run-10", "run-9")), response(2, "By bus.", "1-1_2")],
        [judgment(1, 3, rationale="It says so."), failed(2, turn="1-1_2")],
    )
    two = write_folder(tmp_path / "two", [response(7, "By ferry.")], [judgment(7, 1, judge="server/other")])
    read = listed(one, two)
    assert (read["sides"], read["order"], read["runs"]) == (["one", "two"], "worst", ["run-9", "run-10", "run-a"])
    assert read["turns"] == [{"name": "1-1_1", "topic": "1-1"}, {"name": "1-1_2", "topic": "1-1"}]
    first, second = read["items"]
    assert (first["name"], second["name"]) == ("R00001/groundedness", "R00002/groundedness")
    assert [run for run, _ in first["runs"]] == ["run-9", "run-10", "run-a"]
    assert (first["gaps"], second["gaps"]) == ({"judges": 2}, {})
    assert {side: said["grade"] for side, said in first["sides"].items()} == {"0": 3, "1": 1}
    assert {side: said["reason"] for side, said in second["sides"].items()} == {"0": "unreadable"}
    assert (first["sides"]["0"]["judge"], first["sides"]["1"]["judge"]) == ("server/made-up", "server/other")


def test_names_of_items_are_unique(tmp_path: Path) -> None:
    one = write_folder(tmp_path / "one", [response(1, "By ferry.")], [judgment(1, 3)])
    two = write_folder(tmp_path / "two", [response(1, "By bus.")], [judgment(1, 3)])
    names = [item["name"] for item in listed(one, two)["items"]]
    assert sorted(names) == ["R00001/groundedness", "R00001/groundedness~2"]


def test_a_passage_stands_once_beside_the_items_and_the_prompts_that_hold_it(tmp_path: Path) -> None:
    asked = f'<passage n="1">\n{FERRY.text}\n</passage>\n<response>\nBy ferry.\n</response>\nGrade:'
    folder = write_folder(
        tmp_path / "out",
        [response(1, "By ferry.", passages=("bus-7", "ferry-1"))],
        [judgment(1, 0, expected=0.0, request_digest="a" * 64, rationale="Not there.")],
        sent={"a" * 64: (asked, '{"grade": 0}')},
    )
    read = listed(folder)
    (item,), texts = read["items"], read["texts"]
    said = item["sides"]["0"]
    assert (item["text"], said["rationale"]) == ("By ferry.", "Not there.")
    assert texts.count(FERRY.text) == texts.count(BUS.text) == 1
    assert [(key, texts[place]) for key, place, *_ in item["passages"]] == [
        ("bus-7", BUS.text),
        ("ferry-1", FERRY.text),
    ]
    assert (said["grade"], said["expected"], said["reply"]) == (0, 0.0, '{"grade": 0}')
    role, places = said["sent"][1]
    assert (role, "".join(texts[place] for place in places)) == ("user", asked)


# Any text, lone surrogates too, and what could end a block of a page.
TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["</script>", "<!--", "]]>", "\u2028", "\u202egnp", "\u2066", "\0", "\ud800", '"\\', ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def whole(value: object) -> object:
    """The same with the sign for what is no character in place of halves of one and of what turns an order around."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff\u202a-\u202e\u2066-\u2069]", "\ufffd", value)
    if isinstance(value, list):
        return [whole(member) for member in value]
    if isinstance(value, dict):
        return {whole(key): whole(member) for key, member in value.items()}
    return value


@given(VALUES)
def test_a_value_is_read_as_it_was_written_and_begins_no_tag(value: object) -> None:
    block = json_block(value)
    assert json.loads(block) == whole(value)
    assert "<" not in block
    block.encode()


def test_the_page_holds_the_document_as_a_script_that_no_browser_runs(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [response(1, "By </script> ferry.")], [judgment(1, 3)])
    markup = str(browse(opened([folder])).markup)
    _, _, rest = markup.partition('<script type="application/json" id="judge-data">')
    block, _, end = rest.partition("</script>")
    assert json.loads(block)["items"][0]["text"] == "By </script> ferry." and not end.strip()
