"""The assess desk answers: the page of a task, saving, undoing, the list, and nothing of anybody else."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from judge.ask.criteria import bundled_criteria, find_criterion, prompt_path
from judge.ask.prompt import guidance
from judge.ask.prompt_edit import with_examples
from judge.ask.prompt_file import parse_criterion, why_no_examples
from judge.errors import UsageError
from judge.extra.desk.assess import label_words, level_keys, open_assess_desk, question
from judge.extra.desk.store import LabelStore
from judge.jobs.folder import write_pool as write_harness_pool
from judge.jobs.gold import GoldDrawPlan, draw_gold_plan
from judge.jobs.pooling import Pooling, pool_runs
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan
from judge.pool.pairs import one_each, other_orders
from judge.records import Example, Level
from tests.conftest import PROJECT
from tests.extra.desk.visiting import Visitor
from tests.extra.desk.world import HOSTILE, plan_of, write_judgments, write_pool


class Desk:
    """An open desk with a browser at it."""

    def __init__(self, visitor: Visitor, store: LabelStore) -> None:
        self.visitor, self.store = visitor, store

    def enter(self, seat: int = 0) -> str:
        """The path of a seat that was entered."""
        path = f"/{self.store.seats[seat].path}/"
        self.visitor.enter(path, self.store.seats[seat].token)
        return path

    def label(self, path: str, grade: str, comment: str = "") -> httpx.Response:
        """Give the label that a page asks for, and return the page that follows."""
        place = self.visitor.get(path).headers.get("location", path)
        answer = self.visitor.submit(self.visitor.get(place), place, grade=grade, comment=comment)
        if answer.status_code != 303:
            return answer
        return self.visitor.get(self.visitor.get(answer.headers["location"]).headers.get("location", path))


@contextmanager
def desk(folder: Path, **changes: Any) -> Iterator[Desk]:
    with open_assess_desk(plan_of(folder, **changes)) as (opened, store), Visitor(opened.app(port=8765)) as visitor:
        yield Desk(visitor, store)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Desk]:
    """A desk at which ann labels twelve responses for groundedness."""
    write_pool(tmp_path)
    with desk(tmp_path) as made:
        yield made


def response_of(page: httpx.Response) -> str:
    found = re.search(r"Response (\d+) of a run", page.text)
    assert found, page.text
    return f"R{int(found[1]):05}"


def test_a_label_leads_to_the_next_task_and_is_kept(opened: Desk) -> None:
    home = opened.enter()
    first = opened.visitor.get(f"{home}1")
    assert "The first passage." in first.text and "0 of 12" in first.text
    assert first.text.count('type="radio"') == 5
    second = opened.label(home, "2", "  one\r\nfact  ")
    assert "1 of 12" in second.text
    assert "number 1</a>: 2</p>" in second.text
    assert response_of(second) != response_of(first)
    kept = opened.store.labeled("1")[1]
    assert (kept.grade, kept.rationale) == (2, "one\nfact")
    again = opened.visitor.get(f"{home}1")
    assert 'value="2" data-key="2" required checked' in again.text
    assert ">one\nfact</textarea>" in again.text


@pytest.mark.parametrize(("grade", "comment", "said"), [
    ("", "kept", "Choose a level first."),
    ("4", "kept", "Choose a level first."),
    ("-1", "kept", "Choose a level first."),
    ("2.0", "kept", "Choose a level first."),
    ("2", "x" * 10_001, "The comment must be text of at most 10,000 characters."),
    ("2", "a\0b", "The comment must be text of at most 10,000 characters."),
])  # fmt: skip
def test_what_is_no_label_is_not_saved(opened: Desk, grade: str, comment: str, said: str) -> None:
    answer = opened.label(opened.enter(), grade, comment)
    assert answer.status_code == 422
    assert said in answer.text
    assert comment != "kept" or ">kept</textarea>" in answer.text
    assert opened.store.labeled("1") == {}


def test_undo_shows_the_response_again_without_its_label(opened: Desk) -> None:
    home = opened.enter()
    page = opened.label(home, "2")
    answer = opened.visitor.submit(page, f"{home}undo")
    assert answer.headers["location"] == f"{home}1"
    first = opened.visitor.get(f"{home}1")
    assert "checked" not in first.text and "0 of 12" in first.text
    assert "Undo" not in first.text
    # Nothing is left to undo.
    assert opened.visitor.submit(first, f"{home}undo").headers["location"] == home


def test_one_that_is_left_for_later_comes_again_before_the_page_that_says_the_end(tmp_path: Path) -> None:
    write_pool(tmp_path, 3)
    with desk(tmp_path) as opened:
        home = opened.enter()
        assert opened.visitor.get(f"{home}?after=1").headers["location"] == f"{home}2"
        for place, grade, following in ((2, "1", f"{home}3"), (3, "unable", f"{home}1"), (1, "3", None)):
            page = opened.visitor.get(f"{home}{place}")
            answer = opened.visitor.submit(page, f"{home}{place}", grade=grade, comment="")
            end = opened.visitor.get(answer.headers["location"])
            assert end.headers.get("location") == following
        assert (end.status_code, "All 3 are labeled" in end.text) == (200, True)


@pytest.mark.parametrize("path", ["0", "13", "99999999999999999999", "-1", "none", "1.0"])
def test_a_task_that_is_not_there_is_a_page_that_says_so(opened: Desk, path: str) -> None:
    answer = opened.visitor.get(opened.enter() + path)
    assert (answer.status_code, "No such page" in answer.text) == (404, True)


@pytest.mark.slow
def test_two_assessors_share_some_items_and_see_nothing_of_each_other(tmp_path: Path) -> None:
    write_pool(tmp_path)
    with desk(tmp_path, assessors=["zelda", "bob"], double=0.5) as opened:
        zelda, bob = opened.enter(0), opened.enter(1)
        # 12 items: 6 are everybody's, 3 more each.
        assert "0 of 9" in opened.visitor.get(f"{zelda}1").text
        assert ", 6 double" in opened.visitor.get(f"{zelda}1").text
        for _ in range(9):
            opened.label(zelda, "3", "zelda's words")
        for place in range(1, 10):
            page = opened.visitor.get(f"{bob}{place}").text
            assert "zelda" not in page and "checked" not in page and "0 of 9" in page
        assert "zelda" not in opened.visitor.get(f"{bob}list").text
        assert opened.visitor.get(f"{bob}labels.tsv").text.count("\n") == 1
        assert opened.visitor.get(f"{zelda}labels.tsv").text.count("zelda's words") == 9
        # A form of one is none of the other.
        page = opened.visitor.get(f"{zelda}1")
        assert opened.visitor.submit(page, f"{bob}1", grade="0").status_code == 403
        assert opened.store.labeled("2") == {}


def test_nobody_sees_a_run_or_a_grade_of_a_judge(tmp_path: Path) -> None:
    out = write_pool(tmp_path)
    # Files that cannot be read: the desk must not even try.
    for name in ("judgments.jsonl", "failures.jsonl", "manifest.json", "leaderboard.tsv", "journal.sqlite"):
        (out / name).write_bytes(b"\xff\xfe not read")
    with desk(tmp_path) as opened:
        home = opened.enter()
        for place in range(1, 13):
            page = opened.visitor.get(f"{home}{place}").text
            assert "run-" not in page and "server/m" not in page and "badge warn" not in page


def test_post_editing_shows_the_judges_grade_and_marks_the_labels(tmp_path: Path) -> None:
    write_pool(tmp_path)
    judgments = write_judgments(tmp_path, dict.fromkeys(range(1, 12), 3))
    with desk(tmp_path, made="postedit", judgments=judgments) as opened:
        home = opened.enter()
        seen = []
        for place in range(1, 13):
            page = opened.visitor.get(f"{home}{place}")
            suggested = "server/m has graded this response" in page.text
            assert suggested == ("the judge’s grade" in page.text)
            assert suggested == ('value="3" data-key="3" required checked' in page.text)
            seen.append(suggested)
            opened.visitor.submit(page, f"{home}{place}", grade="2", comment="")
        assert sorted(seen) == [False] + [True] * 11
        made = opened.store._connection.execute("SELECT made, count(*) FROM labels GROUP BY made").fetchall()
        assert made == [("blind", 1), ("postedit", 11)]
        # An assessor's own label is shown in place of the judge's.
        assert 'value="2" data-key="2" required checked' in opened.visitor.get(f"{home}1").text


def test_a_prompt_says_what_is_shown_and_what_is_asked(tmp_path: Path) -> None:
    out = write_pool(tmp_path)
    prompts = ["groundedness/sentences", "naturalness", "relevance"]
    with desk(tmp_path, pool=out, prompts=prompts, topics=tmp_path / "topics.json") as opened:
        home = opened.enter()
        assert "0 of 36" in opened.visitor.get(f"{home}1").text
        pages = [opened.visitor.get(f"{home}{place}").text for place in (1, 2, 3)]
        assert [re.findall(r'badge accent">(\w+)<', page) for page in pages] == [
            [prompt.split("/")[0]] for prompt in prompts
        ]
        assert ["Conversation: not needed" in page for page in pages] == [True, True, False]
        assert ["Passages: not needed" in page for page in pages] == [False, True, True]
        assert "<strong>contradicted</strong>" in pages[0]
        assert "How well does the response follow on from the utterance" in pages[2]
        assert all("{{" not in page and "levels}}" not in page for page in pages)


@pytest.mark.slow
def test_the_list_shows_ones_own_labels_page_by_page(tmp_path: Path) -> None:
    write_pool(tmp_path, 120)
    with desk(tmp_path) as opened:
        home = opened.enter()
        for grade, comment in (("2", ""), ("unable", "no idea"), ("0", "<b>bold</b>")):
            opened.label(home, grade, comment)
        places = {
            query: re.findall(rf'number"><a href="{home}(\d+)"', opened.visitor.get(f"{home}list?{query}").text)
            for query in ("", "page=2", "page=99", "page=x", "show=comment", "show=unable", "show=open", "show=none")
        }
        assert places[""] == places["page=x"] == places["show=none"] == [str(n) for n in range(1, 101)]
        assert f'rel="next" href="{home}list?show=all&amp;page=2"' in opened.visitor.get(f"{home}list").text
        assert places["page=2"] == places["page=99"] == [str(n) for n in range(101, 121)]
        assert (places["show=comment"], places["show=unable"]) == (["2", "3"], ["2"])
        assert places["show=open"][0] == "4"
        assert "&lt;b&gt;bold" in opened.visitor.get(f"{home}list").text
        table = opened.visitor.get(f"{home}labels.tsv").text.splitlines()
        assert table[0] == "place\tturn_id\tcriterion\tgrade\tunable\tcomment"
        labeled = [line.split("\t")[3:] for line in table[1:]]
        assert labeled == [["2", "0", ""], ["", "1", "no idea"], ["0", "0", "<b>bold</b>"]]


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    write_pool(tmp_path, 2, hostile=True)
    with desk(tmp_path, prompts=["relevance"], topics=tmp_path / "topics.json", assessors=["<b>ann"]) as opened:
        home = opened.enter()
        for place in (1, 2):
            opened.visitor.submit(opened.visitor.get(f"{home}{place}"), f"{home}{place}", grade="1", comment=HOSTILE)
        for path in ("1", "2", "list", ""):
            page = opened.visitor.get(home + path)
            assert "text/html" in page.headers["content-type"]
            for mark in ("<script>document", "<img", "<style>", "49</textarea>", "<b>", 'href="javascript'):
                assert mark not in page.text
        assert "&lt;script&gt;document.title" in opened.visitor.get(f"{home}1").text


def test_a_store_that_cannot_be_written_says_so(opened: Desk, tmp_path: Path) -> None:
    home = opened.enter()
    page = opened.visitor.get(f"{home}1")
    (tmp_path / "labels.sqlite").rename(tmp_path / "moved.sqlite")
    answer = opened.visitor.submit(page, f"{home}1", grade="1", comment="")
    assert (answer.status_code, "Nothing was saved" in answer.text) == (500, True)
    assert "was moved, removed or replaced" in answer.text and opened.store.labeled("1") == {}
    assert "0 of 12" in opened.visitor.get(f"{home}1").text


def test_a_label_that_waits_for_a_locked_store_holds_nobody(opened: Desk, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "labels.sqlite", isolation_level=None)) as other:
        home = opened.enter()
        page = opened.visitor.get(f"{home}1")
        other.execute("BEGIN IMMEDIATE")
        with opened.visitor.meanwhile(page, f"{home}1", grade="1", comment="") as saving:
            assert opened.visitor.get(f"{home}2").status_code == 200
            assert not saving.done()
            other.execute("ROLLBACK")
        assert saving.result().status_code == 303
        assert "1 of 12" in opened.visitor.get(f"{home}2").text


def test_a_label_waits_for_a_locked_store_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.extra.desk.store.PATIENCE", 0.05)
    write_pool(tmp_path)
    store = tmp_path / "labels.sqlite"
    with desk(tmp_path) as opened, closing(sqlite3.connect(store, isolation_level=None)) as other:
        home = opened.enter()
        other.execute("BEGIN IMMEDIATE")
        answer = opened.label(home, "1")
        assert (answer.status_code, "cannot be written: database is locked. Go back" in answer.text) == (503, True)


def test_a_dialogue_is_shown_from_its_first_words_to_its_last(tmp_path: Path) -> None:
    runs = PROJECT / "examples" / "runs" / "thistle-faulty.json"
    pooled = pool_runs(Pooling(runs=runs, topics=PROJECT / "examples" / "topics.json", unit="dialogue"))
    write_harness_pool(tmp_path / "out", pooled)
    place = [response.topic_id for response in pooled.pool.responses].index("3-1")
    assert pooled.pool.responses[place].text == ""
    with desk(tmp_path, prompts=["usefulness"]) as opened:
        home = opened.enter()
        pages = [opened.visitor.get(f"{home}{number}").text for number in (1, 2, 3)]
        (page,) = (page for page in pages if "How do I make a rye starter" in page)
    spoken = re.findall(r'<(?:p|div) class="(?:stranger utterance|stranger|loose)">(?:<p>)?([^<]*)</', page)
    assert spoken[0] == "How do I make a rye starter from nothing?"
    assert spoken[-2:] == ["How do I bake it in my pot, and when may I cut it?", "(no answer)"]
    # Five turns of the user, each with an answer or the note that there is none.
    assert len(spoken) == 10
    assert "The system’s last response" in page
    assert "The user says" not in page
    assert "Which level fits" not in page and "How useful is this dialogue to its user?" in page


def test_both_responses_of_a_pair_are_shown_apart(tmp_path: Path) -> None:
    topics = PROJECT / "examples" / "topics.json"
    pooled = pool_runs(Pooling(runs=PROJECT / "examples" / "runs", topics=topics, unit="pair", draw=4))
    write_harness_pool(tmp_path / "out", pooled)
    plan = GoldDrawPlan(
        pool=tmp_path / "out", n=9, seed=1, per_run=1, criteria="preference", out=tmp_path / "plan.jsonl"
    )
    planned = [row.response_id for row in draw_gold_plan(plan).rows]
    with desk(tmp_path, prompts=["preference"], topics=topics) as opened:
        home = opened.enter()
        page = opened.visitor.get(f"{home}1").text
        # Two pairs were drawn, and a person sees each in one order, which the id names.
        assert [opened.visitor.get(f"{home}{number}").status_code for number in (2, 3)] == [200, 404]
    others = other_orders(pooled.pool)
    assert sorted(planned + [others[name].response_id for name in planned]) == sorted(others)
    sides = {seed: [one.text for one in one_each(pooled.pool, seed).responses] for seed in range(9)}
    assert len(set(map(tuple, sides.values()))) == 4
    assert one_each(pooled.pool, 1, [*others][:1]).responses[0].response_id == next(iter(others))
    shown = re.findall(r'<h1>(First|Second) response.*?</h1>\n<div class="loose"><p>([^<]*)</p>', page)
    assert [place for place, _ in shown] == ["First", "Second"]
    assert tuple(unescape(text) for _, text in shown) in {(one.text, one.second) for one in pooled.pool.responses}


def test_a_desk_asks_about_the_unit_of_its_pool(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="usefulness/graded: about dialogues, but responses are judged here"),
        desk(tmp_path, pool=write_pool(tmp_path), prompts=["usefulness"]),
    ):
        pass


@pytest.mark.parametrize(("grades", "keys"), [
    ((0, 1, 2, 3), "0123"),
    ((1, 0), "10"),
    # Not all are digits, so each has its place.
    ((-1, 0, 1), "123"),
    ((8, 9, 10), "123"),
    # A tenth place has no key.
    (tuple(range(10, 21)), "123456789"),
])  # fmt: skip
def test_the_key_of_a_level_is_its_grade_or_its_place(grades: tuple[int, ...], keys: str) -> None:
    found = level_keys([Level(grade, str(grade), "") for grade in grades])
    assert list(found.values()) == [*keys, *[""] * (len(grades) - len(keys))]


@pytest.mark.parametrize("criterion", bundled_criteria(), ids=lambda criterion: criterion.prompt_id)
def test_every_prompt_has_guidance_without_marks_of_its_own(criterion) -> None:  # type: ignore[no-untyped-def]
    paragraphs = guidance(criterion)
    assert paragraphs and paragraphs[0].startswith("You ")
    # The rubric has the levels, so no paragraph announces them.
    assert all("{{" not in text and not text.endswith(":") for text in [*paragraphs, question(criterion)])
    assert question(criterion) == "" or question(criterion).endswith("?")
    text = prompt_path(criterion.prompt_id).read_text(encoding="utf-8")
    if why_no_examples(criterion.unit, criterion.answer, criterion.inputs):
        return
    # People are shown no examples, so no heading of these is a question.
    shown = tuple((name, ("x",)) for name in criterion.inputs)
    example = Example("1_1", "0" * 64, criterion.scale.levels[0].grade, shown)
    own = parse_criterion(with_examples(text, criterion, [example]).encode(), "own", "own.md")
    assert (guidance(own), question(own)) == (guidance(criterion), question(criterion))


@pytest.mark.parametrize(("prompt", "grade", "words"), [
    ("groundedness/graded", 2, "2"),
    ("groundedness/yes_no", 1, "1 yes"),
    ("groundedness/yes_no", 0, "0 no"),
    ("relevance/ikat", None, "unable to judge"),
])  # fmt: skip
def test_a_label_in_words(prompt: str, grade: int | None, words: str) -> None:
    assert label_words(find_criterion(prompt), grade) == words


def test_a_citation_stands_marked_in_its_answer_and_one_without_a_text_is_not_dealt(tmp_path: Path) -> None:
    """Of four citations one has no text; a sentence without a citation is part of the answer all the same."""
    sentences = {"One.": [0, 1], "Two <b>.": [], "Three.": [2], "Four.": [0]}
    answer = [{"text": text, "citations": cited} for text, cited in sentences.items()]
    line = {"run_id": "r", "topic_id": "7", "references": ["s0", "s1", "s2"], "answer": answer}
    (tmp_path / "r.jsonl").write_text(json.dumps(line), "utf-8")
    texts = (json.dumps({"id": name, "text": f"About {name}."}) + "\n" for name in ("s0", "s1"))
    (tmp_path / "passages.jsonl").write_text("".join(texts), "utf-8")
    pooling = Pooling(runs=tmp_path / "r.jsonl", passages=tmp_path / "passages.jsonl", unit="citation")
    write_harness_pool(tmp_path / "out", pool_runs(pooling))
    drawing = GoldDrawPlan(pool=tmp_path / "out", n=9, seed=1, out=tmp_path / "plan.jsonl")
    drawn = draw_gold_plan(drawing)
    assert (len(drawn.rows), drawn.without_text, {row.criteria for row in drawn.rows}) == (3, 1, {("support",)})
    for plan in (None, tmp_path / "plan.jsonl"):
        store = tmp_path / f"{plan and plan.stem}.sqlite"
        with desk(tmp_path, prompts=(), plan=plan, store=store) as made:
            path = made.enter()
            assert len(made.store.tasks(made.store.seats[0].path)) == 3
            pages = [made.visitor.get(f"{path}{place}").text for place in (1, 2, 3)]
        assert not any("About s2" in page or "is not known" in page for page in pages)
        (marked,) = [page for page in pages if "<mark>Four.</mark>" in page]
        assert "One. Two &lt;b&gt;. Three. <mark>Four.</mark>" in marked and "The marked sentence" in marked


@pytest.mark.slow
def test_a_reference_answer_is_shown_to_whoever_labels_by_it_and_to_nobody_else(tmp_path: Path) -> None:
    row = {
        "question": "How tall?",
        "contexts": ["It is high."],
        "answer": "34.",
        "reference": ["34 metres", "112 feet"],
    }
    run(Plan(runs=[row], criteria="groundedness", model="baseline/overlap", out=tmp_path / "out"))
    with desk(tmp_path, pool=tmp_path / "out", prompts=["correctness", "naturalness"]) as opened:
        home = opened.enter()
        pages = [opened.visitor.get(f"{home}{place}").text for place in (1, 2)]
    assert all("How tall?" in page for page in pages)
    headings = [re.findall(r"Reference answer ?\d?", page) for page in pages]
    assert headings == [["Reference answer 1", "Reference answer 2"], []]
    assert ["112 feet" in page for page in pages] == [True, False]
