"""The page of an assessor in a browser: filled in by keyboard, closed, opened again, downloaded, and imported."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from judge.gold.rows import read_gold
from judge.jobs.gold import GoldImportPlan, import_gold_files
from tests.browsing import NARROW, browser, faults, overflow, page, watch
from tests.gold.test_sheets import HOSTILE, IDS, RUN, SCALES, crowd_of, expected, meant, world, written

__all__ = ["browser", "page", "world"]
pytestmark = pytest.mark.slow


@pytest.fixture
def sheet(world: Path) -> Path:
    written(world, "html", assessors=("ann", "bob"), double=1.0)
    return world / "html/sheet-ann.html"


def label_all(page: Page, who: str) -> None:
    """Every label by keyboard alone, from the first response on."""
    page.locator("#first input").first.focus()
    for _ in IDS:
        article = page.locator("article:has(:focus)")
        for criterion in SCALES:
            page.keyboard.press(str(meant(str(article.get_attribute("data-response")), criterion, who)))
        page.keyboard.press("n")


def download(page: Page, path: Path) -> Path:
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download labels").click()
    assert caught.value.suggested_filename == f"labels-{path.stem}.csv"
    caught.value.save_as(path)
    return path


def test_labels_by_keyboard_come_back(world: Path, sheet: Path, page: Page) -> None:
    page.goto(sheet.as_uri())
    label_all(page, "ann")
    expect(page.locator("#done")).to_have_text("10 of 10 labels")
    path = download(page, world / "ann.csv")
    options = {"source": "csv", "plan": world / "plan.jsonl", "pool": world / "pool"}
    import_gold_files(GoldImportPlan(files=[path], out=world / "gold.jsonl", **options))
    rows = read_gold(world / "gold.jsonl")
    assert sorted((row.response_id, row.criterion, row.assessor, row.grade) for row in rows) == expected("ann")
    assert crowd_of(world, path) == expected("ann")


def test_nothing_of_a_stranger_runs_and_no_run_is_named(sheet: Path, page: Page) -> None:
    page.goto(sheet.as_uri())
    assert RUN not in page.content()
    shown = {
        article.get_attribute("data-response"): article.locator(".response").text_content()
        for article in page.locator("article").all()
    }
    assert shown[IDS[0]] == HOSTILE[0]
    assert shown[IDS[1]] == HOSTILE[1]
    assert shown[IDS[2]] == HOSTILE[2]
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0


def test_a_handler_that_gets_in_does_not_run(sheet: Path, browser: Browser) -> None:
    context = browser.new_context()
    opened = context.new_page()
    watched = watch(opened)
    opened.goto(sheet.as_uri())
    opened.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=evil onclick=\"name = 1\">x</p>')")
    opened.locator("#evil").click()
    assert opened.evaluate("window.name") == ""
    assert any("Content Security Policy" in line for line in watched)
    context.close()


def test_labels_stay_when_the_page_is_closed_and_belong_to_this_sheet(world: Path, sheet: Path, page: Page) -> None:
    page.goto(sheet.as_uri())
    page.locator("#first input").nth(1).check()
    page.locator("#first textarea").fill("=why?")
    page.reload()
    expect(page.locator("#done")).to_have_text("1 of 10 labels")
    expect(page.locator("#first textarea")).to_have_value("=why?")
    with download(page, world / "ann.csv").open(encoding="utf-8-sig", newline="") as file:
        comments = {row["comment"] for row in csv.DictReader(file)}
    assert comments == {"\\=why?", ""}
    page.goto((sheet.parent / "sheet-bob.html").as_uri())
    expect(page.locator("#done")).to_have_text("0 of 10 labels")


def test_an_earlier_download_is_taken_over(world: Path, sheet: Path, browser: Browser, page: Page) -> None:
    page.goto(sheet.as_uri())
    label_all(page, "ann")
    page.locator("#first textarea").fill('two\nlines, "quoted"')
    path = download(page, world / "ann.csv")
    before = path.read_bytes()
    context = browser.new_context()
    other = context.new_page()
    watched = watch(other)
    other.goto(sheet.as_uri())
    other.get_by_text("Keys, and how").click()
    other.locator("#earlier").set_input_files(path)
    expect(other.locator("#taken")).to_have_text("10 labels taken over")
    assert download(other, world / "ann.csv").read_bytes() == before
    other.locator("#earlier").set_input_files({"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    expect(other.locator("#taken")).to_have_text("This is no table that this page wrote.")
    context.close()
    assert watched == []


def test_a_page_without_a_name_asks_for_it(world: Path, page: Page) -> None:
    written(world, "html")
    page.goto((world / "html/sheet.html").as_uri())
    page.get_by_role("button", name="Download labels").click()
    expect(page.locator("#assessor")).to_be_focused()
    page.locator("#assessor").fill("Cem Ö.")
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download labels").click()
    assert caught.value.suggested_filename == "labels-Cem_..csv"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_usable_by_everybody(sheet: Path, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(sheet.as_uri())
    assert faults(page) == []
    assert overflow(page) <= 0
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    assert faults(page) == []
    assert overflow(page) <= 0


def test_the_button_leads_to_what_is_not_labeled_yet(sheet: Path, page: Page) -> None:
    page.goto(sheet.as_uri())
    for place in (0, 1, 3):
        page.locator("fieldset").nth(place).locator("input").last.check()
    page.get_by_role("button", name="Next without a label").click()
    expect(page.locator("fieldset").nth(2).locator("input").first).to_be_focused()
