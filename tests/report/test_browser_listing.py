"""The tables of a browser: a column for each filter, and the details of each item behind references."""

import json
from pathlib import Path
from typing import Any

from judge.report.gather import gather
from judge.report.listing import GRADED, NOT_THERE, Listing, listing, unpacked
from judge.report.page import browse
from tests.report.browsed import BUS, FERRY, failed, judgment, opened, response, runs, write_folder


def columns(listed: Listing) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(unpacked(listed.columns))
    return read


def table(listed: Listing, name: str) -> list[Any]:
    return [value for chunk in listed.tables[name].chunks for value in json.loads(unpacked(chunk))]


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
    listed = listing(gather(opened([folder])))
    searched, stored = table(listed, "searched"), table(listed, "stored")
    (detail,) = table(listed, "items")
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
