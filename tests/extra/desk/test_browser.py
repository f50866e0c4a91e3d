"""The assess desk as people meet it: a real process, a real browser, and a keyboard."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from judge.cli import main
from judge.gold.rows import read_gold
from judge.jobs.folder import write_pool as write_harness_pool
from judge.jobs.pooling import Pooling, pool_runs
from tests.browsing import NARROW, WIDE, faults, overflow, watch
from tests.conftest import PROJECT, start_python
from tests.extra.desk.test_adjudication import damage, first_round
from tests.extra.desk.world import HOSTILE, write_judgments, write_pool
from tests.time_limit import PATIENCE


class Served:
    """A desk in a process of its own."""

    def __init__(self, folder: Path, *more: str, port: int = 0, store: str = "labels.sqlite") -> None:
        told = ("--pool", folder / "out", "--seed", "1", "--store", folder / store, "--port", port, *more)
        self.process = start_python("-m", "judge", "serve", "assess", *told, stdout=subprocess.PIPE)
        self.links = []
        for _ in range(max(1, more.count("--assessor"))):
            line = self.process.stdout.readline()
            self.links += re.findall(r"http://\S+", line)
        assert self.links, self.end()
        self.port = int(self.links[0].split(":")[2].split("/")[0])

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """The exit code after a signal, and what was said on stderr."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, said


@pytest.fixture
def serve(tmp_path: Path, heeded: None) -> Iterator[type[Served]]:
    """Starts desks, and ends those that a failed test leaves."""
    started: list[Served] = []

    class Watched(Served):
        def __init__(self, *given: object, **options: object) -> None:
            started.append(self)
            super().__init__(*given, **options)  # type: ignore[arg-type]

    yield Watched
    for served in started:
        if served.process.poll() is None:
            served.end(signal.SIGKILL)


ANN = ("--assessor", "ann", "--prompt", "groundedness")


def keys(page: Page, *pressed: str) -> None:
    """Press keys, and wait for the page that the last one leads to."""
    for key in pressed[:-1]:
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press(pressed[-1])


def said(page: Page) -> str:
    return page.inner_text("header")


def test_ten_labels_by_keyboard_survive_a_crash_and_become_gold(tmp_path, page: Page, serve: type[Served]) -> None:
    out = write_pool(tmp_path)
    served = serve(tmp_path, *ANN)
    page.goto(served.links[0])
    assert "token" not in page.url
    given: dict[str, int | None] = {}
    for number, key in enumerate(("0", "1", "2", "3", "u", "3", "2", "1", "0", "2")):
        (response,) = re.findall(r"Response (\d+) of a run", page.inner_text(".response"))
        given[f"R{int(response):05}"] = None if key == "u" else int(key)
        if number == 3:
            page.keyboard.press("c")
            page.keyboard.type("10 of 12? zcu")
            page.keyboard.press("Escape")
        keys(page, key, "Enter")
    assert "10 of 12" in said(page)
    # The machine goes down, without a word.
    assert served.end(signal.SIGKILL)[0] == -signal.SIGKILL
    again = serve(tmp_path, *ANN, port=served.port)
    assert again.links == served.links
    # The page that was open goes on.
    keys(page, "3", "Enter")
    assert "11 of 12" in said(page)
    keys(page, "z")
    assert "10 of 12" in said(page)
    page.goto(again.links[0].replace("?token", "list?token"))
    assert "10 of 12? zcu" in page.inner_text("main table")
    code, err = again.end(signal.SIGINT)
    assert (code, "ann: 10 of 12 labeled" in err) == (0, True)
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} == {"out", "topics.json", "labels.sqlite"}
    gold = tmp_path / "gold.jsonl"
    assert main(["gold", "import", "desk", str(tmp_path / "labels.sqlite"), "--out", str(gold)]) == 0
    assert {row.response_id: row.grade for row in read_gold(gold)} == {
        response: grade for response, grade in given.items() if grade is not None
    }
    assert main(["gold", "check", str(gold), "--pool", str(out)]) == 0


def test_keys_do_what_the_list_of_keys_says(tmp_path: Path, page: Page, serve: type[Served]) -> None:
    write_pool(tmp_path)
    page.goto(serve(tmp_path, *ANN).links[0])
    home = page.url.removesuffix("1")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("?")
    assert not page.locator("#keys").is_visible()
    # Without a choice nothing is saved.
    page.keyboard.press("Enter")
    assert page.url == f"{home}1"
    assert page.locator("[name=grade]:checked").count() == 0
    # A key that is no level, and keys with Ctrl, choose nothing.
    for key in ("7", "Control+2", "Alt+2"):
        page.keyboard.press(key)
    assert page.locator("[name=grade]:checked").count() == 0
    keys(page, "s")
    assert page.url == f"{home}2"
    keys(page, "b")
    assert page.url == f"{home}1"
    # What is typed into the comment is text; Ctrl and Enter save from there.
    page.keyboard.press("1")
    page.keyboard.press("c")
    page.keyboard.type("2 u z s b ?")
    page.keyboard.press("Enter")
    page.keyboard.type("second line")
    keys(page, "Control+Enter")
    assert "1 of 12" in said(page)
    keys(page, "z")
    assert page.url == f"{home}1"
    assert "0 of 12" in said(page)
    # The arrows go from level to level, as in every form.
    page.keyboard.press("0")
    page.keyboard.press("ArrowDown")
    assert page.locator("[name=grade]:checked").get_attribute("value") == "1"
    keys(page, "Enter")
    keys(page, "3", "Enter")
    # A label is changed where it was given.
    keys(page, "b")
    assert page.locator("[name=grade]:checked").get_attribute("value") == "3"
    keys(page, "u", "Enter")
    assert "2 of 12" in said(page) and "unable to judge" in said(page)


def test_single_keys_stay_off_from_page_to_page(tmp_path: Path, page: Page, serve: type[Served]) -> None:
    write_pool(tmp_path)
    page.goto(serve(tmp_path, *ANN).links[0])
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Single keys work").uncheck()
    page.keyboard.press("Escape")
    for key in ("1", "u", "s", "?"):
        page.keyboard.press(key)
    assert page.locator("[name=grade]:checked").count() == 0
    page.locator('input[value="1"]').check()
    keys(page, "Enter")
    assert page.url.endswith("/2") and "1 of 12" in said(page)
    page.keyboard.press("z")
    page.keyboard.press("1")
    assert page.locator("[name=grade]:checked").count() == 0
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Single keys work").check()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    assert page.locator("[name=grade]:checked").get_attribute("value") == "1"


def test_a_key_that_is_held_down_labels_once(tmp_path: Path, page: Page, serve: type[Served]) -> None:
    write_pool(tmp_path)
    page.goto(serve(tmp_path, *ANN).links[0])
    page.keyboard.press("2")
    with page.expect_navigation():
        page.keyboard.down("Enter")
        page.keyboard.down("Enter")
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert "1 of 12" in said(page)


def test_it_works_without_scripts(tmp_path: Path, browser: Browser, serve: type[Served]) -> None:
    write_pool(tmp_path)
    served = serve(tmp_path, *ANN)
    context = browser.new_context(java_script_enabled=False, viewport=NARROW)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(served.links[0])
    assert page.locator(".evidence > details[open]").count() == 2
    page.get_by_label("Mostly grounded.").check()
    page.get_by_label("Comment").fill("by hand")
    page.get_by_role("button", name="Save").click()
    assert "1 of 12" in said(page)
    page.get_by_role("button", name="Keys").click()
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Undo").click()
    assert "0 of 12" in said(page)
    context.close()


def long_pool(folder: Path) -> None:
    """A pool whose texts are as long as the track allows: 250 tokens, five passages."""
    out = write_pool(folder)
    sentence = "A response of a run says one more thing about the dog that the user has. "
    lines = [json.loads(line) for line in (out / "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["text"] += " " + (sentence * 16).strip()
        line["passages"] = ["p1", "p2"]
    (out / "pool.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    passages = (out / "passages.jsonl").read_text(encoding="utf-8").replace("passage.", "passage. " + sentence * 12)
    (out / "passages.jsonl").write_text(passages, encoding="utf-8")


def test_response_rubric_and_first_passage_are_seen_without_scrolling(tmp_path, page, serve) -> None:
    long_pool(tmp_path)
    page.goto(serve(tmp_path, *ANN, "--topics", str(tmp_path / "topics.json")).links[0])
    keys(page, "2", "Enter")
    for seen in (".response > .loose", ".rubric .level >> nth=0", ".rubric .level >> nth=4", ".rubric button",
                 ".evidence details >> nth=0"):  # fmt: skip
        box = page.locator(seen).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= WIDE["height"], seen
        assert box["x"] >= 0 and box["x"] + box["width"] <= WIDE["width"], seen
    # The response is not cut by its own box either.
    assert page.evaluate("(box => box.scrollHeight <= box.clientHeight)(document.querySelector('.response'))")


def test_on_a_phone_the_levels_stay_in_sight_and_passages_are_folded(tmp_path, page: Page, serve) -> None:
    long_pool(tmp_path)
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(serve(tmp_path, *ANN).links[0])
    # The rubric is explained at the first response only.
    for number in (1, 2):
        assert page.locator(".evidence > details[open]").count() == 0
        for title in page.locator(".evidence > details > summary").all():
            title.click()
        for _ in range(4):
            for seen in ("[name=grade] >> nth=0", "[name=grade] >> nth=4", ".rubric button"):
                box = page.locator(seen).bounding_box()
                assert box is not None and box["height"] >= 40
                assert box["y"] >= 0 and box["y"] + box["height"] <= NARROW["height"], seen
            page.mouse.wheel(0, 1000)
        # What the page ends with lies above the bar.
        end = "document.querySelector('.evidence').getBoundingClientRect().bottom"
        assert page.evaluate(f"0 < {end} && {end} <= document.querySelector('.rubric').getBoundingClientRect().top")
        page.evaluate("scrollTo(0, 0)")
        page.locator("[name=grade] >> nth=1").press("ArrowRight")
        assert page.evaluate("scrollY") == 0
        assert page.locator(".meaning", has_text="Mostly grounded.").bounding_box()["width"] > 100  # type: ignore[index]
        keys(page, "Enter")
        assert f"{number} of 12" in said(page)


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)], ids=["wide", "narrow"])
def test_pages_are_for_everybody(tmp_path, browser, serve, scheme, size) -> None:
    long_pool(tmp_path)
    judgments = write_judgments(tmp_path, dict.fromkeys(range(1, 13), 2))
    prompts = ("--prompt", "relevance", "--prompt", "groundedness/sentences", "--topics", str(tmp_path / "topics.json"))
    given = {"runs": PROJECT / "examples" / "runs", "topics": PROJECT / "examples" / "topics.json"}
    write_harness_pool(tmp_path / "pairs" / "out", pool_runs(Pooling(**given, unit="pair", draw=8)))
    of_pairs = "--prompt", "preference", "--topics", str(given["topics"])
    texts = PROJECT / "examples" / "passages.jsonl"
    write_harness_pool(tmp_path / "passages" / "out", pool_runs(Pooling(**given, passages=texts, unit="passage")))
    of_passages = "--prompt", "passage_relevance", "--topics", str(given["topics"])
    kinds: Sequence[tuple[str, ...]] = (
        prompts,
        (*ANN[2:], "--made", "postedit", "--judgments", str(judgments)),
        of_pairs,
        of_passages,
    )
    folders = {of_pairs: tmp_path / "pairs", of_passages: tmp_path / "passages"}
    for number, options in enumerate(kinds):
        served = serve(folders.get(options, tmp_path), "--assessor", "ann", *options, store=f"{number}.sqlite")
        context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        watched = watch(page)
        page.goto(served.links[0])
        home = page.url.removesuffix("1")
        for _ in range(2):
            assert (faults(page), overflow(page)) == ([], 0), page.url
            page.get_by_role("radio").first.check()
            page.locator("#label button").click()
        page.goto(f"{home}list")
        assert (faults(page), overflow(page)) == ([], 0), page.url
        page.get_by_role("button", name="Keys").click()
        assert (faults(page), overflow(page)) == ([], 0), "keys"
        assert watched == []
        context.close()
        served.end()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_passage_of_any_length_is_read_and_labeled(tmp_path, page: Page, serve: type[Served], size) -> None:
    """The question is in sight from the first moment, the passage without unfolding anything, the grades always."""
    examples = PROJECT / "examples"
    lines = [json.loads(line) for line in (examples / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = "".join(f"{json.dumps({**line, 'contents': 'Rails and owls. ' * 13_000})}\n" for line in lines)
    (tmp_path / "passages.jsonl").write_text(texts, encoding="utf-8")
    pooling = Pooling(
        runs=examples / "runs", topics=examples / "topics.json", passages=tmp_path / "passages.jsonl", unit="passage"
    )
    write_harness_pool(tmp_path / "out", pool_runs(pooling))
    page.set_viewport_size(size)
    topics = str(examples / "topics.json")
    page.goto(serve(tmp_path, "--assessor", "ann", "--prompt", "passage_relevance", "--topics", topics).links[0])
    keys(page, "3", "Enter")
    assert "1 of 51" in said(page)
    assert overflow(page) == 0
    for seen in (".talk .utterance >> nth=0", "[name=grade] >> nth=0", "[name=grade] >> nth=3", ".rubric button"):
        box = page.locator(seen).bounding_box()
        assert box is not None
        assert box["y"] >= 0 and box["y"] + box["height"] <= size["height"], seen
    start = page.locator(".response").bounding_box()
    assert start is not None and start["y"] < size["height"]
    # Nothing that is folded or long stands between the question and the beginning of the passage.
    folded = page.locator(".talk > details[open]").count()
    assert folded == (0 if size == NARROW else 2)
    keys(page, "z")
    assert "0 of 51" in said(page)


def test_a_page_of_another_site_can_do_nothing(tmp_path: Path, browser: Browser, serve: type[Served]) -> None:
    write_pool(tmp_path)
    served = serve(tmp_path, *ANN)
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.links[0])
    desk, token = page.url, page.locator("input[name=form_token]").first.get_attribute("value")
    # Even with the token of the form, which it cannot know.
    attack = f"""<form method="post" action="{desk}"><input name="form_token" value="{token}">
        <input name="grade" value="2"><button>Win a prize</button></form>"""
    context.route("http://other.example/", lambda route: route.fulfill(body=attack, content_type="text/html"))
    page.goto("http://other.example/")
    page.get_by_role("button").click()
    page.wait_for_url(desk)
    assert "not open to you" in page.inner_text("main") or "Not from this desk" in page.inner_text("main")
    page.goto(desk)
    assert "0 of 12" in said(page)
    context.close()


def test_an_adjudicator_decides_by_keyboard_between_two_who_stay_unnamed(
    tmp_path: Path, page: Page, serve: type[Served]
) -> None:
    first_round(tmp_path, dict.fromkeys(range(1, 4), (0, 3)))
    store = tmp_path / "labels.sqlite"
    damage(store, f"UPDATE label SET comment = '{HOSTILE.replace(chr(39), chr(39) * 2)}' WHERE grade = 3")
    served = serve(tmp_path, "--assessor", "dee", "--prompt", "groundedness", "--adjudicate")
    page.goto(served.links[0])
    title = page.title()
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        assert (overflow(page), faults(page), page.title()) == (0, [], title)
    assert page.locator(".earlier dt").all_inner_texts() == ["A", "B"]
    assert page.locator(".earlier script, .earlier img, .earlier a").count() == 0
    assert "ann" not in page.inner_text(".earlier dt >> nth=0") and "why ann?" in page.inner_text(".earlier")
    for key in "112":
        keys(page, key, "Enter")
    assert "All 3 are labeled" in page.inner_text("main")
    code, err = served.end(signal.SIGINT)
    assert (code, "dee: 3 of 3 labeled" in err) == (0, True)
