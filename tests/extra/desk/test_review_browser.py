"""A review in a real browser: by keyboard from the list to a wording that is asked again, wide and narrow."""

import re
import threading
from collections.abc import Iterator

import msgspec
import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from judge.ask.progress import Progress
from judge.extra.desk.app import listen
from judge.extra.desk.rerun import Rewording
from judge.extra.desk.review import Review
from tests.browsing import NARROW, faults, overflow, watch
from tests.extra.desk.test_review import BETTER, GRADED, SEAT, TEXT, World, write_world
from tests.mock import start_mock


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Review, str]]:
    """A desk that answers, with the link to it."""
    with start_mock() as mock:
        world = World(write_world(tmp_path_factory.mktemp("review")), mock)
        listener = listen(port=0)
        review = Review(world.plan(), SEAT, listener.hosts, listener.port)
        config = uvicorn.Config(review.app, http="h11", ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]})
        thread.start()
        yield review, listener.links([SEAT])[0][1]
        server.should_exit = True
        thread.join()


def sound(page: Page) -> None:
    """Nothing is wider than the window, nothing is hard to use, and no text of a stranger is an element."""
    assert (overflow(page), faults(page)) == (0, [])
    assert page.locator("main img, main script, main b").count() == 0


def arrive(page: Page, address: str) -> None:
    """Wait until a page is there whole, so that its keys work."""
    page.wait_for_url(address)
    page.wait_for_function("document.readyState === 'complete'")


def test_from_the_worst_item_to_a_new_wording_by_keyboard(desk: tuple[Review, str], page: Page) -> None:
    review, link = desk
    page.goto(link)
    assert "token" not in page.url
    sound(page)
    # j to the second item, k back to the first, Enter opens it, j goes on to the second.
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    arrive(page, "**/item/0*")
    assert page.locator(".response").inner_text() == review.cases.items[0].text
    sound(page)
    page.keyboard.press("j")
    arrive(page, "**/item/1*")
    page.keyboard.press("e")
    arrive(page, "**/prompt?**")
    sound(page)
    box = page.get_by_label("The whole prompt file")
    assert box.input_value().strip() == TEXT.strip()
    # Letters in a field are letters.
    page.get_by_label("Name of the new wording").focus()
    page.keyboard.press("End")
    page.keyboard.type("jk")
    assert page.get_by_label("Name of the new wording").input_value() == "graded-v2jk"
    box.fill(TEXT.replace("{{levels}}", ""))
    page.get_by_label("Name of the new wording").press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("the text ends without {{levels}}")
    sound(page)
    page.get_by_label("The whole prompt file").fill(BETTER)
    page.get_by_label("Name of the new wording").fill("strict")
    page.keyboard.press("Enter")
    arrive(page, "**/rerun?**")
    expect(page.locator(".diff .new .line")).to_contain_text("Be strict. You assess groundedness")
    sound(page)
    page.get_by_label("Items").fill("24")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("24 dev items under two wordings are 48 judgments")
    page.get_by_role("button", name="Ask both wordings").press("Enter")
    # The page looks again by itself until the job has ended.
    expect(page.get_by_role("heading", name="Agreement before and after")).to_be_visible(timeout=60_000)
    outcome = review.job.outcome
    for row in (outcome.old, outcome.new):
        value = row.statistics["wkappa"].value
        assert value is not None
        expect(page.locator("main table")).to_contain_text(f"{value:.2f}")
    expect(page.locator("main")).to_contain_text("paired by item")
    expect(page.locator("main")).to_contain_text("have been looked at")
    page.locator("main details").last.locator("summary").press("Enter")
    sound(page)


def test_a_filter_keeps_its_items_on_the_way_through(desk: tuple[Review, str], page: Page) -> None:
    _, link = desk
    page.goto(link)
    page.get_by_label("The judge is").select_option("lower")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("direction=lower"))
    count = page.locator("a.case").count()
    assert 0 < count == page.locator("a.case .badge.accent").count()
    page.locator("a.case").first.click()
    expect(page.get_by_text(f"1 of {count}", exact=True)).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text(f"2 of {count}", exact=True)).to_be_visible()


def test_the_focus_stays_while_a_rerun_is_followed(desk: tuple[Review, str], page: Page, monkeypatch) -> None:
    review, link = desk
    old = review.shelf.prompts()[0][GRADED]
    new = old._replace(criterion=msgspec.structs.replace(old.criterion, variant="slow"))
    with monkeypatch.context() as job:
        job.setattr(review.job, "question", Rewording(old, new, "server/m", None))
        job.setattr(review.job, "outcome", None)
        job.setattr(type(review.job), "running", True)
        job.setattr(review.job, "progress", Progress(3, 40, 0, 0, 0))
        page.goto(link)
        page.get_by_role("link", name="Rerun").click()
        page.get_by_role("button", name="Stop").focus()
        expect(page.locator("#how-far")).to_contain_text("3 of 40")
        job.setattr(review.job, "progress", Progress(7, 40, 0, 1, 0))
        expect(page.locator("#how-far")).to_contain_text("7 of 40 judgments, 1 without a grade")
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "7")
        expect(page.get_by_role("button", name="Stop")).to_be_focused()
        job.setattr(type(review.job), "running", False)
        job.setattr(review.job, "error", "stopped")
        expect(page.get_by_role("alert")).to_contain_text("stopped")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone_in_both_schemes(desk: tuple[Review, str], browser: Browser, scheme: str) -> None:
    _, link = desk
    context = browser.new_context(viewport=NARROW, color_scheme=scheme)  # type: ignore[arg-type]
    phone = context.new_page()
    watched = watch(phone)
    home = link.partition("?")[0]
    for address in (link, f"{home}item/0", f"{home}prompts", f"{home}prompt?name={GRADED}", f"{home}rerun"):
        phone.goto(address)
        sound(phone)
    context.close()
    assert watched == []
