"""The browser of judgments in a real browser, opened from disk: filters, keys, links, items, and hostile texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from judge.calibrate.disagreements import Disagreement, JudgeGrade, ShownPassage
from judge.records import Passage
from judge.report.page import browse
from tests.browsing import NARROW, WIDE, faults, overflow
from tests.report.browsed import (
    BUS,
    FERRY,
    calibrated,
    disagreement,
    failed,
    gold_file,
    judgment,
    opened,
    response,
    runs,
    write_folder,
    write_page,
)

pytestmark = pytest.mark.slow

ASKED = f'<passage n="1">\n{FERRY.text}\n</passage>\n<response>\nThe ferry leaves at noon.\n</response>\nGrade:'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four responses of two turns and three runs, with every kind of outcome."""
    said = {"rationale": "Nobody said that one may swim.", "expected": 1.25}
    said["probabilities"] = {"0": 0.25, "1": 0.25, "2": 0.5}
    return write_folder(
        tmp_path / "out",
        [
            response(1, "The ferry leaves at noon. Swim if you miss it.", runs=runs("run-a", "run-b")),
            response(2, "Take bus 7.", passages=("bus-7", "bus-8"), runs=runs("run-c")),
            response(3, "At noon.", "1-1_2", runs=runs("run-a")),
            response(4, "Hello!", "1-1_2", runs=runs("run-b"), truncated=True),
        ],
        [
            judgment(1, 1, **said, sentences=("supported", "unsupported"), request_digest="a" * 64, repaired=True),
            failed(2, "no_passages", detail="1 of 2 used passages have no text", raw=None),
            judgment(3, 3, "1-1_2"),
            judgment(4, -1, "1-1_2", unable=True),
            judgment(1, 4, criterion="naturalness"),
            failed(3, "unreadable", "1-1_2", criterion="naturalness"),
        ],
        sent={"a" * 64: (ASKED, '{"grade": "one"}')},
        topics=True,
    )


def show(page: Page, folders: Sequence[Path], gold: Sequence[Path] = (), at: str = "", **options: Any) -> str:
    """Open the judgments of some folders, wait for the list or the item, and return the page's address."""
    address = write_page(folders[0].parent / "report", browse(opened(folders), gold, **options))
    page.goto(address + at)
    expect(page.locator("#browse-item-title" if "item=" in at else "#browse-list tbody tr").first).to_be_visible()
    return address


def rows(page: Page) -> list[str]:
    return page.locator("#browse-list a").all_inner_texts()


def choose(page: Page, facet: str, value: str) -> None:
    page.select_option(f"#browse-{facet}", value)


def status(page: Page) -> Any:
    return expect(page.locator("#browse-status"))


FACETS = [
    ("run", "run-b", ["R00001", "R00001", "R00004"]),
    ("turn", "1-1_2", ["R00003", "R00003", "R00004"]),
    ("criterion", "naturalness", ["R00001", "R00003"]),
    ("grade", "1", ["R00001"]),
    ("grade", "4", ["R00001"]),
    ("grade", "unable", ["R00004"]),
    ("grade", "no_passages", ["R00002"]),
    ("differs", "gold", ["R00001"]),
    ("differs", "none", ["R00001", "R00002", "R00003", "R00003", "R00004"]),
]


def test_a_facet_filters_and_says_beforehand_how_many(page: Page, folder: Path) -> None:
    show(page, [folder], [gold_file(folder, ("R00001", "ann", 3))])
    for facet, value, found in FACETS:
        option = page.locator(f"#browse-{facet} option[value='{value}']")
        assert str(option.text_content()).endswith(f"({len(found)})"), (facet, value)
        choose(page, facet, value)
        status(page).to_contain_text(f"{len(found)} of 6 judgments")
        assert rows(page) == found, (facet, value)
        choose(page, facet, "")
        status(page).to_have_text("6 judgments, 1 with a disagreement")


def test_counts_of_a_facet_are_of_what_the_other_filters_let_pass(page: Page, folder: Path) -> None:
    show(page, [folder])
    choose(page, "run", "run-a")
    status(page).to_contain_text("4 of 6")
    choose(page, "criterion", "groundedness")
    status(page).to_contain_text("2 of 6")
    # Of groundedness, run-a has two judgments, run-b two and run-c one; run-a has two of naturalness.
    assert page.locator("#browse-run option").all_text_contents() == ["All runs", "run-a (2)", "run-b (2)", "run-c (1)"]
    assert page.locator("#browse-criterion option").all_text_contents()[1:] == ["groundedness (2)", "naturalness (2)"]
    page.click("#browse-clear")
    status(page).to_have_text("6 judgments")


def test_turns_are_offered_within_a_topic(page: Page, tmp_path: Path) -> None:
    turns = ["1-1_1", "1-1_2", "2-1_1"]
    folder = write_folder(
        tmp_path / "out",
        [response(number, "Yes.", turn) for number, turn in enumerate(turns)],
        [judgment(number, 1, turn) for number, turn in enumerate(turns)],
    )
    show(page, [folder])
    expect(page.locator("#browse-turn")).to_be_hidden()
    choose(page, "topic", "1-1")
    status(page).to_have_text("2 of 3 judgments")
    choose(page, "turn", "1-1_2")
    status(page).to_have_text("1 of 3 judgments")
    assert rows(page) == ["R00001"]
    choose(page, "topic", "2-1")
    assert rows(page) == ["R00002"]


SEARCHES = {
    "SWIM": ["R00001", "R00001"], "run-c": ["R00002"], "noon ferry": ["R00001", "R00001"], "may swim": ["R00001"],
    "island": ["R00001", "R00001", "R00002"], "r00004": ["R00004"], "submarine": [], "no text": ["R00002"],
}  # fmt: skip


def test_a_search_wants_all_words_in_texts_utterances_rationales_or_ids(page: Page, folder: Path) -> None:
    show(page, [folder])
    for query, found in SEARCHES.items():
        page.fill("#browse-q", query)
        told = f"{len(found)} of 6 judgments" if found else "No judgment passes these filters."
        expect(page.locator("#browse-list a").first).to_have_text(found[0]) if found else None
        status(page).to_have_text(told)
        assert rows(page) == found, query


def test_a_link_shows_the_same_filters_and_the_same_item(page: Page, folder: Path) -> None:
    address = show(page, [folder])
    choose(page, "run", "run-a")
    page.fill("#browse-q", "noon")
    status(page).to_contain_text("4 of 6")
    choose(page, "sort", "high")
    page.wait_for_url(f"{address}#browse:q=noon&run=run-a&sort=high")
    link = page.url
    # 4, 3, 1, and the one without a grade.
    assert rows(page) == ["R00001", "R00003", "R00001", "R00003"]
    page.goto("about:blank")
    page.goto(link)
    status(page).to_contain_text("4 of 6")
    assert rows(page) == ["R00001", "R00003", "R00001", "R00003"]
    assert page.input_value("#browse-q") == "noon"
    page.locator("#browse-list a").nth(1).click()
    expect(page.locator("#browse-item-title")).to_have_text("Response R00003, groundedness")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#browse-item-title")).to_have_text("Response R00003, groundedness")
    page.go_back()
    page.go_forward()
    expect(page.locator("#browse-item-title")).to_have_text("Response R00003, groundedness")


def test_a_link_to_an_item_that_is_not_there_shows_the_list_and_says_so(page: Page, folder: Path) -> None:
    page.goto(f"{write_page(folder.parent / 'report', browse(opened([folder])))}#browse:item=R99999/groundedness")
    status(page).to_have_text("This report has no judgment R99999/groundedness.")
    assert len(rows(page)) == 6


def test_a_folder_without_judgments_says_so(page: Page, tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text("{}", encoding="utf-8")
    page.goto(write_page(tmp_path / "report", browse(opened([tmp_path]))))
    status(page).to_have_text("There is no judgment to show.")
    expect(page.locator("#browse-notes")).to_contain_text("has no disagreements.jsonl")
    expect(page.locator("#browse-filters")).to_be_hidden()


def test_back_leads_from_an_item_to_the_list(page: Page, folder: Path) -> None:
    show(page, [folder])
    page.locator("#browse-list a").first.click()
    expect(page.locator("#browse-item-title")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#browse-item-title")).to_have_text("Response R00001, naturalness")
    page.go_back()
    expect(page.locator("#browse-list")).to_be_visible()
    expect(page.locator("#browse-item")).to_be_hidden()


def test_everything_works_by_keyboard_alone(page: Page, folder: Path) -> None:
    show(page, [folder])
    page.locator("h2").scroll_into_view_if_needed()
    focused = "document.activeElement.textContent"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "R00002"
    page.keyboard.press("k")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    title = page.locator("#browse-item-title")
    expect(title).to_have_text("Response R00002, groundedness")
    expect(title).to_be_focused()
    page.keyboard.press("j")
    expect(title).to_have_text("Response R00003, groundedness")
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "R00003"
    page.keyboard.press("/")
    expect(page.locator("#browse-q")).to_be_focused()
    page.keyboard.type("jkl?")
    assert page.input_value("#browse-q") == "jkl?"
    page.fill("#browse-q", "")
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(page.locator("#browse-keys")).to_be_hidden()
    page.locator("#browse-help").focus()
    page.keyboard.press("?")
    expect(page.locator("#browse-keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#browse-keys")).to_be_hidden()
    expect(page.locator("#browse-list")).to_be_visible()


def test_single_keys_can_be_turned_off(page: Page, folder: Path) -> None:
    show(page, [folder])
    page.click("#browse-help")
    page.uncheck("#browse-keys-on")
    page.keyboard.press("Escape")
    page.locator("#browse-list a").first.focus()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "R00001"
    page.keyboard.press("/")
    expect(page.locator("#browse-q")).not_to_be_focused()


def test_an_item_shows_all_that_is_on_record(page: Page, folder: Path) -> None:
    gold = gold_file(folder, ("R00001", "ann", 3), ("R00001", "bob", 2))
    show(page, [folder], [gold], "#browse:item=R00001/groundedness")
    item = page.locator("#browse-item")
    for shown in (
        *("run-a, run-b", "How do I get to the island?", "ferry-1", FERRY.text),
        *("Nobody said that one may swim.", "expected grade 1.25", "asked a second time", "prompt groundedness/mine"),
    ):
        expect(item).to_contain_text(shown)
    for cells in (["ann", "3", "blind"], ["bob", "2", "blind"]):
        expect(item.locator(".gold tr", has_text=cells[0]).locator("td")).to_have_text(cells)
    # The two assessors differ, so that their mean of 2.5 is rounded up.
    expect(item.locator(".gold .level-3").first).to_have_text("3")
    expect(item.locator("tr", has_text="0.50").locator("td").first).to_have_text("2")
    page.get_by_text("PTKB (2 statements)").click()
    expect(item.locator("li", has_text="I live near the harbor.")).to_contain_text("linked to this turn")
    expect(item.locator("li", has_text="I am afraid of water.")).not_to_contain_text("linked")
    page.get_by_text("Prompt and reply: server/made-up").click()
    expect(item.locator(".browse-sent pre")).to_have_text(["You assess groundedness.", ASKED, '{"grade": "one"}'])


LONG_TURN = "1-1_2"


@pytest.fixture
def lengthy(tmp_path: Path) -> tuple[Path, Path]:
    """A judgment as long as real ones are, and its gold: 110 words of response, 45 of rationale, 130 of passage."""
    passage = Passage("ferry-1", "The ferry leaves the pier at noon and is back by six. " * 12, "collection")
    shares = dict.fromkeys("0123", 0.25)
    rationale = "It says that one may swim, which no passage says. " * 5
    said = judgment(1, 1, LONG_TURN, rationale=rationale, expected=1.25, probabilities=shares)
    text = "The ferry leaves at noon, and you may swim if you miss it. " * 9
    folder = write_folder(tmp_path / "out", [response(1, text, LONG_TURN)], [said], passages=[passage], topics=True)
    return folder, gold_file(folder, ("R00001", "ann", 3), ("R00001", "bob", 2), turn=LONG_TURN)


def boxes(page: Page) -> dict[str, dict[str, float]]:
    """Where the parts of an item lie in the window."""
    item = page.locator("#browse-item")
    parts = {
        "utterance": item.locator(".browse-asked .stranger"),
        "response": item.locator("section:has(> h4:text-is('Response')) .stranger"),
        "gold": item.locator(".browse-card.gold"),
        "judge": item.locator(".browse-card:not(.gold)"),
        "rationale": item.locator(".browse-card .stranger"),
        "passage": item.locator("#browse-passage-0 .stranger"),
    }
    return {name: part.bounding_box() or {} for name, part in parts.items()}


def test_response_grades_rationale_and_passage_are_seen_at_one_glance(page: Page, lengthy: tuple[Path, Path]) -> None:
    page.set_viewport_size(WIDE)
    folder, gold = lengthy
    show(page, [folder], [gold])
    page.locator("#browse-list a").click()
    expect(page.locator("#browse-item-title")).to_be_visible()
    assert WIDE["height"] == 900
    for name, box in boxes(page).items():
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 900, name
    # The table of 4 probabilities takes no more than it needs.
    assert (page.locator(".browse-shares").bounding_box() or {})["width"] <= 240


def test_on_a_narrow_screen_an_item_reads_from_the_utterance_to_the_passages(page, lengthy) -> None:
    page.set_viewport_size(NARROW)
    folder, gold = lengthy
    show(page, [folder], [gold], "#browse:item=R00001/groundedness")
    found = boxes(page)
    tops = [found[name]["y"] for name in ("utterance", "response", "gold", "judge", "passage")]
    assert tops == sorted(tops)
    assert overflow(page) == 0


def test_each_sentence_has_its_verdict_and_the_passage_that_holds_its_words(page: Page, folder: Path) -> None:
    show(page, [folder], at="#browse:item=R00001/groundedness")
    first, second = page.locator(".browse-sentences li").all()
    expect(first).to_have_text("The ferry leaves at noon.supportedpassage 1 holds 100 % of its words")
    expect(second).to_have_text("Swim if you miss it.unsupported")
    expect(page.locator("#browse-item")).to_contain_text("it was computed, and no judge named it")
    first.get_by_role("button").click()
    expect(page.locator("#browse-passage-0")).to_be_focused()


def test_an_item_without_a_grade_says_why(page: Page, folder: Path) -> None:
    show(page, [folder], at="#browse:item=R00002/groundedness")
    item = page.locator("#browse-item")
    for shown in ("no passages", "1 of 2 used passages have no text", "1 of 2 passages without a text", BUS.text):
        expect(item).to_contain_text(shown)
    expect(item).to_contain_text("The prompt and the reply of this judgment are not on record.")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#browse-item-title")).to_have_text("Response R00003, naturalness")
    page.get_by_text("Reply: server/made-up").click()
    expect(item.locator(".browse-sent pre")).to_have_text(["I had rather not say."])


def test_what_happened_before_the_turn_and_a_cut_response_are_shown(page: Page, folder: Path) -> None:
    show(page, [folder], at="#browse:item=R00004/groundedness")
    item = page.locator("#browse-item")
    for shown in ("When does it leave?", "When does the ferry leave?", "cut at the token limit", "unable"):
        expect(item).to_contain_text(shown)
    page.get_by_text("Conversation before it (1 exchange)").click()
    expect(item.locator(".browse-exchange")).to_contain_text("How do I get to the island?")
    expect(item.locator(".browse-exchange")).to_contain_text("By ferry.")


def test_a_jury_shows_its_votes_and_where_they_differ(page: Page, tmp_path: Path) -> None:
    votes = [
        *(judgment(1, 0, judge="server/a", rationale="No."), judgment(1, 3, judge="server/b", request_digest="b" * 64)),
        *(judgment(2, 2, judge="server/a"), judgment(2, 2, judge="server/b")),
    ]
    folder = write_folder(
        tmp_path / "out",
        [response(1, "By ferry."), response(2, "By bus.")],
        [judgment(1, 2, judge="jury/mean"), judgment(2, 2, judge="jury/mean")],
        members=votes,
        sent={"b" * 64: ("Grade it.", "3")},
    )
    show(page, [folder])
    choose(page, "differs", "jury")
    status(page).to_contain_text("1 of 2")
    page.locator("#browse-list a").click()
    cells = page.locator(".browse-card tr", has_text="server/a").locator("td")
    expect(cells).to_have_text(["server/a", "0", "No."])
    page.get_by_text("Prompt and reply: server/b").click()
    expect(page.locator(".browse-sent pre").last).to_have_text("3")


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    texts = ["Alike.", "Near.", "Far.", "Lost."]
    grades = {"one": (2, 1, 0, 2), "two": (2, 2, 3, None)}
    return [
        write_folder(
            tmp_path / name,
            [response(number, text) for number, text in enumerate(texts, 1)],
            [
                judgment(n, grade, rationale=f"{name} says {grade}.") if grade is not None else failed(n, "refused")
                for n, grade in enumerate(given, 1)
            ],
        )
        for name, given in grades.items()
    ]


def test_two_folders_stand_side_by_side_with_what_they_grade_otherwise_first(page: Page, two: list[Path]) -> None:
    show(page, two)
    # 3 apart, 1 apart, one without a grade, alike.
    assert rows(page) == ["R00003", "R00002", "R00004", "R00001"]
    status(page).to_have_text("4 judgments, 3 with a disagreement")
    assert page.locator("#browse-list thead th").all_inner_texts() == ["Response", "Turn", "Run", "one", "two"]
    choose(page, "side", "two")
    choose(page, "grade", "3")
    status(page).to_contain_text("1 of 4")
    page.locator("#browse-list a").click()
    cards = page.locator(".browse-card")
    expect(cards.nth(0)).to_contain_text("one says 0.")
    expect(cards.nth(1)).to_contain_text("two says 3.")


def test_a_calibration_shows_gold_beside_every_judge(page: Page, tmp_path: Path) -> None:
    def line(response_id: str, first: int, second: int | None) -> Disagreement:
        off = JudgeGrade("server/a", "groundedness/mine", first, None, "As I see it.", None, first - 3)
        other = JudgeGrade("server/b", None, second, None, None, None if second else "refused", second and second - 3)
        passages = tuple(ShownPassage(f"ferry-{n}", FERRY.text) for n in range(5))
        return disagreement(response_id, off, other, text=f"By {response_id}.", passages=passages)

    folder = calibrated(tmp_path / "calibration", line("R00002", 0, None), line("R00001", 2, 2))
    show(page, [folder])
    assert rows(page) == ["R00002", "R00001"]
    page.locator("#browse-list a").first.click()
    item = page.locator("#browse-item")
    for shown in ("ann", "server/a, groundedness/mine", "As I see it.", "server/b", "refused", "How?", "2 more pass"):
        expect(item).to_contain_text(shown)
    expect(item.get_by_text(FERRY.text).filter(visible=True)).to_have_count(3)


def many(folder: Path, count: int) -> Path:
    return write_folder(
        folder,
        [response(n, f"Response number {n}, found by word{n}.", f"{n // 50}-1_{n % 50 + 1}") for n in range(count)],
        [judgment(n, n % 4, f"{n // 50}-1_{n % 50 + 1}", rationale=f"reason{n}") for n in range(count)],
    )


def test_many_judgments_stand_in_the_page_itself(page: Page, tmp_path: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    show(page, [many(tmp_path / "out", 3000)])
    expect(page.locator("#browse-list tbody tr")).to_have_count(50)
    expect(page.locator(".browse-excerpt").first).to_contain_text("Response number 0,")
    page.click("#browse-after")
    expect(page.locator("#browse-page")).to_have_text("Page 2 of 60")
    expect(page.locator("#browse-list a").first).to_have_text("R00050")
    page.fill("#browse-q", "word2999")
    status(page).to_have_text("1 of 3,000 judgments")
    page.locator("#browse-list a").click()
    expect(page.locator("#browse-item")).to_contain_text("reason2999")
    assert len(asked) == 1 and page.locator("script[src]").count() == 0


TRICKS = [
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "<!--<script> {{ 7 * 7 }} ${alert(1)} javascript:alert(1) \u202egnorw\u202c \u2028 \u2029 \ufeff",
    "__proto__",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_hostile_text_stays_a_text_wherever_it_stands(page: Page, tmp_path: Path, trick: str) -> None:
    passage = Passage(f"{trick} id", f"{trick} passage", "collection")
    said = judgment(
        1, 2, "1-1_1", judge=f"{trick} judge", model=f"{trick} model", variant=f"{trick} variant",
        criterion=f"{trick} criterion", rationale=f"{trick} rationale", sentences=(f"{trick} label",),
        probabilities={f"{trick} level": 1.0}, request_digest="a" * 64,
    )  # fmt: skip
    folder = write_folder(
        tmp_path / "out",
        [
            response(number, f"{trick} response {number}", passages=(passage.passage_id,), runs=runs(f"{trick} run"))
            for number in (1, 2)
        ],
        [said, failed(2, detail=f"{trick} detail", raw=f"{trick} raw")],
        passages=[passage],
        sent={"a" * 64: (f"{trick} asked", f"{trick} replied")},
    )
    page.on("dialog", lambda dialog: pytest.fail(f"a text ran: {dialog.message}"))
    # What would show "wrong" in place of "gnorw" is seen as a sign.
    seen = trick.replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    show(page, [folder])
    choose(page, "criterion", f"{seen} criterion")
    choose(page, "criterion", "")
    page.locator("#browse-list a").first.click()
    page.locator(".browse-sent summary").click()
    item = page.locator("#browse-item")
    for name in "run judge model variant criterion rationale level id passage asked replied".split():
        expect(item).to_contain_text(f"{seen} {name}")
    page.get_by_role("button", name="Next").click()
    expect(item).to_contain_text(f"{seen} detail")
    assert page.locator("#browse-item img, #browse-item script").count() == 0


def test_a_response_of_a_million_characters_is_shown_in_part_first(page: Page, tmp_path: Path) -> None:
    text = "water " * 170_000 + "the end"
    folder = write_folder(tmp_path / "out", [response(1, text)], [judgment(1, 0)])
    show(page, [folder], at="#browse:item=R00001/groundedness")
    box = page.locator("#browse-item .browse-texts .stranger", has_text="water").first
    assert len(str(box.text_content())) == 20_000
    page.get_by_role("button", name="Show all 1,020,007 characters").click()
    expect(box).to_contain_text("the end")


def test_at_the_last_page_of_the_list_the_focus_goes_to_the_other_button(page: Page, tmp_path: Path) -> None:
    responses = [response(number, f"Ferry {number}.") for number in range(1, 61)]
    show(page, [write_folder(tmp_path / "out", responses, [judgment(number, 0) for number in range(1, 61)])])
    place = page.get_by_role("status").filter(has_text="Page")
    for key, other, told in (("#browse-after", "#browse-before", "2"), ("#browse-before", "#browse-after", "1")):
        page.locator(key).press("Enter")
        expect(place).to_have_text(f"Page {told} of 2")
        expect(page.locator(other)).to_be_focused()


def test_a_text_from_right_to_left_begins_at_the_right(page: Page, tmp_path: Path) -> None:
    show(page, [write_folder(tmp_path / "out", [response(1, "שלום\nferry")], [judgment(1, 0)])])
    begins = """(element) => {
        const range = document.createRange(), box = element.getBoundingClientRect();
        range.selectNodeContents(element);
        return [...range.getClientRects()].map((line) => line.left > box.left + box.width / 2);
    }"""
    assert all(page.locator(".browse-excerpt").evaluate(begins))
    page.locator("#browse-list a").click()
    response_box = page.locator("#browse-item .stranger").filter(has_text="ferry").first
    lines = response_box.evaluate(begins)
    assert (lines[0], lines[-1]) == (True, False)


def test_a_table_that_scrolls_does_so_by_keyboard(page: Page, folder: Path) -> None:
    page.set_viewport_size({"width": 320, "height": 256})
    show(page, [folder], [gold_file(folder, ("R00001", "assessor" * 9, 3))])
    page.locator("#browse-list a").first.click()
    table = page.get_by_role("region", name="Gold of each assessor")
    assert table.evaluate("(box) => box.scrollWidth > box.clientWidth")
    table.press("ArrowRight")
    page.wait_for_function("(box) => box.scrollLeft > 0", arg=table.element_handle())


@pytest.mark.parametrize(("size", "scheme"), [(NARROW, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_list_and_item_have_no_fault_and_fit_their_window(page, folder, size, scheme) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    show(page, [folder], [gold_file(folder, ("R00001", "ann", 3))])
    assert (faults(page), overflow(page)) == ([], 0)
    page.click("#browse-help")
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.locator("#browse-list a").first.click()
    # `all` takes what is there at once, and the page draws the item only after the address has changed.
    expect(page.locator("#browse-item summary").first).to_be_visible()
    for summary in page.locator("#browse-item summary").all():
        summary.click()
    expect(page.locator(".browse-sent pre")).to_have_count(3)
    assert (faults(page), overflow(page)) == ([], 0)


def test_print_shows_the_list_without_its_controls(page: Page, folder: Path) -> None:
    show(page, [folder])
    page.emulate_media(media="print")
    expect(page.locator("#browse-list table")).to_be_visible()
    expect(page.locator("#browse-filters")).to_be_hidden()
    expect(page.locator("#browse-pager")).to_be_hidden()
