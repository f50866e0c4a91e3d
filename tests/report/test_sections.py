"""What a report says, and how it becomes a page and Markdown: small records, numbers by hand."""

import re
from types import SimpleNamespace
from typing import cast, get_args

import pytest
from markupsafe import Markup
from msgspec.structs import replace

from judge.io.table import Cell, Column, Plot, Table
from judge.io.text import dollars
from judge.judges.journal_tools import JournalSpending
from judge.judges.prices import Spending
from judge.pool.records import LeftOut
from judge.pool.screen import ScreenCode
from judge.records import Estimate
from judge.report import Content, Facts, Folded, Noted, Quoted, ReportPart, Said, Section
from judge.report.folders import RunFolder
from judge.report.job import Picture, report_markdown
from judge.report.page import Browser, coded, pictured, report_page, section_links, shown_cells, ticks
from judge.report.sections import EXCLUDED, capped, excluded_words
from judge.report.sections.making import in_all, spent
from judge.report.sections.summary import _parts, order_of
from judge.results.rows import RunDifference, Score
from judge.results.tables import tie_letters
from judge.runs.check import CODES
from judge.stats.separation import Place
from tests.results.test_leaderboard import criterion

HOSTILE = "</style></script><img src=x onerror=alert(1)>{{ 7 * 7 }}\n# `x` | <b>"
NOTHING = Browser(Markup(), "", "")


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low, high, 4, 4)


def content(*parts: ReportPart) -> Content:
    return Content("out", "A lead.", (Section("one", "One", parts),), (("run.sha256", "ab" * 32),))


# ---------------------------------------------------------------- who is first and who is last


def placed(run_id: str, rank: int, mean: float, bound: float) -> Score:
    place = Place(rank=rank, low=None, high=None, letters="")
    return Score(run_id=run_id, criterion="c", mean=estimate(mean), bound=bound, place=place)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 1, 2.0, 2.0)], "a has a mean of 2.00"),
        ([("a", 1, 2.0, 2.0), ("b", 2, 1.0, 1.0)], "a comes first with a mean of 2.00, b last with a mean of 1.00"),
        # 3.00 on 4 of 16 turns is 12 / 16 = .75 over all; it is last for that.
        ([("a", 1, 2.0, 2.0), ("b", 2, 3.0, 0.75)],
            "a comes first with a mean of 2.00, b last with a mean of 3.00 (0.75 over all turns)"),
        ([("a", 1, 3.0, 3.0), ("b", 1, 3.0, 3.0), ("c", 3, 1.0, 1.0)],
            "a and b come first with a mean of 3.00, c last with a mean of 1.00"),
        # One rank, and one mean over all turns: 8 of 16 turns at 2.00, and 16 at 1.00.
        ([("a", 1, 3.0, 3.0), ("b", 2, 2.0, 1.0), ("c", 2, 1.0, 1.0), ("d", 2, 1.0, 1.0)],
            "a comes first with a mean of 3.00, b and 2 others last with a mean over all turns of 1.00"),
        ([("a", 1, 2.0, 2.0), ("b", 1, 2.0, 2.0)], "the 2 runs have the same rank with a mean of 2.00"),
    ],
)  # fmt: skip
def test_who_is_first_and_last_goes_by_ranks(rows: list[tuple[str, int, float, float]], said: str) -> None:
    assert order_of([placed(*each) for each in rows]) == said


# ---------------------------------------------------------------- why something was not judged


def test_every_reason_of_an_exclusion_has_words() -> None:
    """The reasons of the pool have words; errors of runs have words of their own."""
    assert EXCLUDED.keys() == set(get_args(LeftOut))
    reasons = [*EXCLUDED, *(f"screen_{code}" for code in get_args(ScreenCode)), *CODES]
    assert [reason for reason in reasons if "without a description" in excluded_words(reason, "response")] == []
    assert excluded_words("below_depth", "response") == "ranked lower than the responses that are judged"
    assert excluded_words("below_depth", "dialogue") == "ranked lower than the response that stands in the dialogue"
    assert excluded_words("screen_not_english", "response") == "the screen: not in English"
    assert excluded_words("bad_rank", "response") == CODES["bad_rank"].meaning
    assert excluded_words("unheard_of", "response") == "a problem without a description"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gold.jsonl: without 3 topics", "gold.jsonl: without 3 topics."),
        ("out/gold: no grade", "out/gold: no grade."),
        ("no grade: see gold.jsonl", "No grade: see gold.jsonl."),
        ("groundedness/graded: other prompt.", "groundedness/graded: other prompt."),
        ("so few.", "So few."),
        ("", "."),
    ],
)
def test_a_sentence_begins_with_a_capital_but_a_file_keeps_its_name(text: str, said: str) -> None:
    assert capped(text) == said


# ---------------------------------------------------------------- pictures in the lines of a table


def drawn(*marks: Estimate) -> str:
    plot = Plot("mean", 0, 3, tuple(((mark, False),) for mark in marks))
    page = report_page(content(Table([("a",)] * len(marks), ("run",), plot=plot)), NOTHING).decode()
    return page[page.rindex('<div class="hero-lines') : page.rindex("</svg>")]


def test_a_mark_stands_at_its_share_of_the_axis() -> None:
    """Of 0 to 3, 0 is at the start, 3 at the end, 1.5 in the middle, however wide the axis is."""
    picture = drawn(estimate(1.5, 0, 3))
    assert '<line class="bar" x1="0.0%" x2="100.0%" y1="11" y2="11"/>' in picture
    assert '<circle class="dot" cx="50.0%" cy="11" r="4.5"><title>1.50 [0.00, 3.00]</title>' in picture
    assert re.findall(r">(\d)</text>", picture) == ["0", "1", "2", "3"]
    # Without an interval there is no bar, without a value no mark, and what lies beyond the axis is at its end.
    assert 'class="bar' not in drawn(estimate(1.0))
    assert "<circle" not in drawn(Estimate(None, None, None, 0, 0, "nothing"))
    assert 'cx="100.0%"' in drawn(estimate(9.0))


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.0, 1.0, ["0", "0.25", "0.5", "0.75", "1"]), (0.0, 9.0, ["0", "3", "6", "9"]), (2.0, 2.0, ["2.0"])],
)
def test_an_axis_has_at_most_five_round_ticks(low: float, high: float, shown: list[str]) -> None:
    assert [text for _, text in ticks(Plot("x", low, high, ()))] == shown


def test_a_picture_above_its_table_is_close_to_its_values_and_shows_the_whole_scale_on_request() -> None:
    means = (estimate(2.12, 2.0, 2.24), estimate(2.31, 2.2, 2.42))
    plot = Plot("mean", 0, 3, tuple(((mean, False),) for mean in means))
    table = Table((("a", 1504), ("b", 2)), ("run", "turns"), plot=plot)
    close, whole = pictured(table)
    assert (close[0].low, close[0].high, close[1]) == (pytest.approx(1.8), pytest.approx(2.6), "close")
    assert (whole[0].low, whole[0].high, whole[1]) == (0, 3, "whole")
    page = report_page(content(table), NOTHING).decode()
    assert page.count('<span class="hero-name">') == 4
    assert '<td class="number" data-value="1504.0">1,504</td>' in page
    wide = Table((("a",),), ("run",), plot=Plot("mean", 0, 3, (((estimate(1.5, 0, 3), False),),)))
    assert [scale for _, scale in pictured(wide)] == ["whole"]


@pytest.mark.parametrize(
    ("cells", "head", "values"),
    [
        (("16 of 16", "-"), "number", (16, None)),
        (("-100 %", "+8 %"), "number", (-100, 8)),
        (("30.0 s", "2.0 min"), "number", (30, 120)),
        (("1.5 h", "nothing"), "number", (5400, 0)),
        (("$1,234.50", "76/3"), "number", (1234.5, 76)),
        (("8 %", "few"), "", (None, None)),
        ((estimate(0.123456), 2.0), "number", (0.123456, 2)),
    ],
)
def test_numbers_stand_below_their_heading_and_are_sorted_by_what_they_are(
    cells: tuple[Cell, Cell], head: str, values: tuple[float | None, float | None]
) -> None:
    shown, rows, named = shown_cells(Table((("a", cells[0]), ("b", cells[1])), ("run", "how many")))
    assert (shown[named].classes, shown[1].classes) == ("", head)
    assert [(row[1].classes, row[1].value) for row in rows] == [(head or "short", value) for value in values]


def test_grades_are_a_bar_of_their_shares_with_their_counts_in_words() -> None:
    table = Table((("a", {0: 1, 2: 0, 3: 39}), ("b", None)), ("run", Column("grades", about="how often")), "Grades")
    page = report_page(content(table), NOTHING).decode()
    assert re.findall(r'<span class="chip level-\d">(\d)</span>', page) == ["0", "2", "3"]
    assert 'role="img" aria-label="0: 1, 2: 0, 3: 39">' in page
    assert '<g class="level-3"><title>grade 3: 39 of 40</title><rect x="2.50%" width="97.50%" height="22"/>' in page
    assert re.findall(r"<text[^>]*>(\d+)</text>", page) == ["39"]
    assert "\n| b | - |\n\ngrades: how often.\n" in report_markdown(content(table), ()).decode()


def test_what_a_column_says_stands_behind_a_question_mark() -> None:
    table = Table((("a", 1, 2),), ("run", Column("one", about=HOSTILE), Column("two", about="twice")), "A board")
    page = report_page(content(table, table), NOTHING).decode()
    asked = re.findall(r'popovertarget="(about-\d)" aria-label="What “(\w+)” says"', page)
    assert asked == [("about-1", "one"), ("about-2", "two"), ("about-3", "one"), ("about-4", "two")]
    assert re.findall(r'popover id="(about-\d)"><strong>(\w+)</strong>: ', page) == asked
    assert page.count(": twice.</div>") == 2
    assert "<img" not in page.partition("<body>")[2]


# ---------------------------------------------------------------- the page and Markdown


EVERY_PART: tuple[ReportPart, ...] = (
    Said(HOSTILE),
    Said(HOSTILE, "warn"),
    Noted(HOSTILE, (HOSTILE,)),
    Facts(((HOSTILE, HOSTILE),)),
    Table(((HOSTILE, HOSTILE),), ("run", HOSTILE), HOSTILE, (HOSTILE,)),
    Folded(HOSTILE, (Quoted(HOSTILE, HOSTILE),)),
)


def test_whatever_a_text_holds_it_stays_a_text_on_the_page() -> None:
    body = report_page(content(*EVERY_PART), NOTHING).decode().partition("<body>")[2]
    assert "<img" not in body
    assert "<b>" not in body
    assert body.rpartition("</footer>")[2].startswith("\n<script>// Boards are sorted")
    assert body.count("<script") == 1
    assert "{{ 7 * 7 }}" in body
    # The run id is a row's name; line breaks in it are shown.
    assert "\\n# `x` | &lt;b&gt;" in body


def test_whatever_a_text_holds_it_stays_a_text_in_markdown() -> None:
    text = report_markdown(content(*EVERY_PART), ()).decode()
    assert "<img" not in text
    assert "<b>" not in text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[:2] == ["# out", "## One"]
    assert all("# \\`x\\`" not in heading[:6] for heading in headings)
    assert len([line for line in text.splitlines() if line.startswith(">")]) == 2


def test_a_quotation_in_markdown_makes_no_heading_and_no_list_and_a_picture_stands_below() -> None:
    picture = Picture("one", "one", "A picture.", b"<svg/>", b"png")
    text = report_markdown(content(Quoted("The reply", "a title\n===\n- one\n1. two")), [picture]).decode()
    assert "1\\. two\n\n![A picture.](data:image/png;base64,cG5n)" in text
    assert "The reply:\n\n> a title  \n> \\===  \n> \\- one  \n> 1\\. two\n" in text


def test_the_page_lets_only_its_own_style_take_effect() -> None:
    page = report_page(content(Said("fine")), NOTHING).decode()
    policy = "default-src &#39;none&#39;; script-src &#39;sha256-[^ ]+&#39;; style-src &#39;sha256-"
    assert re.search(f'Content-Security-Policy" content="{policy}', page)
    assert re.search(r"https?://", page) is None


def test_a_table_is_announced_and_its_lines_are_named_by_the_run() -> None:
    mean = estimate(2.5, 2.0, 3.0)
    plot = Plot("means", 0, 3, (((mean, False),),))
    table = Table(((1, "the_first", mean),), ("rank", "run", "mean"), "A board", ("A line for each run.",), 2, plot)
    page = report_page(content(table), NOTHING).decode()
    assert "<caption><span>A board</span></caption>" in page
    assert '<th scope="row" class="short">the_<wbr>first</th>' in page
    assert '<td class="number" data-value="2.5">2.50 <span class="range">[2.00, 3.00]</span></td>' in page
    # The picture stands above the numbers that it draws, and only they are read aloud.
    assert page.index('class="plot line"') < page.index("<table")
    assert page.count("<svg") == page.count('aria-hidden="true" focusable="false"') == 4


def test_a_cell_is_shaded_by_its_share() -> None:
    table = Table((("0", 1, 3),), ("people", "0", "1"), "Grades", shares=((None, 0.25, 0.75),))
    page = report_page(content(table), NOTHING).decode()
    assert re.findall('<td class="number (shade-.)"', page) == ["shade-2", "shade-6"]


# ---------------------------------------------------------------- ties


def pair(a: str, b: str, p: float | None) -> RunDifference:
    return RunDifference("c", a, b, estimate(0.5), p, p)


def test_runs_share_a_letter_unless_they_are_told_apart() -> None:
    """a differs from c alone, so b shares a letter with each."""
    pairs = [pair("a", "b", 0.4), pair("a", "c", 0.01), pair("b", "c", 0.06)]
    assert tie_letters("abc", pairs) == {"a": "a", "b": "ab", "c": "b"}
    # Nothing was tested.
    assert tie_letters("ab", [pair("a", "b", None)]) == {}


def test_a_run_is_better_in_green_only_if_what_is_missing_cannot_undo_it() -> None:
    better = pair("a", "b", 0.01)
    cases: list[tuple[RunDifference, str, str]] = [
        (better, "good", "a is measurably better than b (p at most 0.05)."),
        (
            replace(better, if_worst=better),
            "good",
            "a is measurably better than b, both on the turns graded for both and if each missing grade were the worst "
            "(p at most 0.05).",
        ),
        (
            replace(better, if_worst=pair("a", "b", 0.06)),
            "plain",
            "a is measurably better than b on the turns graded for both, but not if each missing grade were the worst "
            "(p at most 0.05).",
        ),
        (
            replace(pair("a", "b", 0.06), if_worst=better),
            "plain",
            "Neither run is measurably better than the other on the turns graded for both; they can be told apart if "
            "each missing grade were the worst (p at most 0.05).",
        ),
    ]
    for row, tone, text in cases:
        tables = SimpleNamespace(differences=[replace(row, criterion="groundedness")])
        judged = SimpleNamespace(criteria=[criterion()], banner="banner", manifest={})
        section = _parts(cast(RunFolder, SimpleNamespace(tables=tables, judged=judged)))
        # An estimate here has no topics, so a warning of few topics follows each verdict that a run is better.
        said = next(section)
        assert isinstance(said, Said)
        assert (said.text.partition(" 4 topics are few")[0], said.tone) == (text, tone)


# ---------------------------------------------------------------- what the judging took


def test_money_in_all_says_how_many_calls_have_no_known_price() -> None:
    """Three calls of which two have a price, and one call without a price."""
    some, none = (
        cast(JournalSpending, SimpleNamespace(spending=Spending(calls=calls, priced=priced, cost=cost)))
        for calls, priced, cost in ((3, 2, 0.75), (1, 0, 0.0))
    )
    assert in_all((some,)) == "at least $0.75; unknown for 1 call"
    assert in_all((none,)) == "unknown for 1 call"


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "nothing"), (0.000123, "$0.00012"), (0.01, "$0.01"), (1234.5, "$1,234.50")]
)
def test_money_is_never_rounded_to_nothing(amount: float, text: str) -> None:
    assert dollars(amount) == text


@pytest.mark.parametrize(
    ("thoughts", "shown"),
    [
        ((0, 0), {}),
        ((80, 0), {"of them thoughts": ["80", "0"], "tokens out": ["90", "90"]}),
    ],
)
def test_a_column_for_thoughts_stands_where_a_judge_has_some(
    thoughts: tuple[int, int], shown: dict[str, list[str]]
) -> None:
    rows = tuple(
        JournalSpending(
            judge=f"server/{number}",
            spending=Spending(
                calls=3, attempts=3, prompt_tokens=700, completion_tokens=90, thought_tokens=tokens, counted=3,
                cost=0.5, priced=3, seconds=4.0, timed=3,
            ),
            first="2026-01-01T00:00:00.000Z", last="2026-01-01T00:00:00.000Z", seconds_p50=1.0, seconds_p95=2.0,
        )
        for number, tokens in enumerate(thoughts)
    )  # fmt: skip
    (section,) = spent(cast(RunFolder, SimpleNamespace(spending=rows)))
    table = section.parts[0]
    assert isinstance(table, Table)
    columns = dict(zip(table.names, zip(*table, strict=True), strict=True))
    assert ("of them thoughts" in columns) == bool(shown)
    assert {name: list(columns[name]) for name in shown} == shown
    assert columns["cost"] == ("$0.50", "$0.50")


@pytest.mark.parametrize(
    ("cost", "said"), [(0.0, []), (0.5, ["The sums leave out what is not known: the tokens of 3 calls."])]
)
def test_a_free_judge_that_counts_no_tokens_leaves_nothing_out(cost: float, said: list[str]) -> None:
    took = Spending(calls=3, attempts=3, cost=cost, priced=3, seconds=1.0, timed=3)
    rows = (JournalSpending(judge="a/b", spending=took, first="2025", last="2025", seconds_p50=None, seconds_p95=None),)
    (section,) = spent(cast(RunFolder, SimpleNamespace(spending=rows)))
    assert [part.text for part in section.parts if isinstance(part, Said)] == said


# ---------------------------------------------------------------- the list of sections


@pytest.mark.parametrize(
    ("names", "links"),
    [
        (["summary", "leaderboard-a", "cost"], ["In short", "Leaderboard", "Cost"]),
        (["leaderboard-a", "leaderboard-b", "agreement-a"], ["Leaderboard: a", "Leaderboard: b", "Agreement"]),
        (["sentences-a", "cost"], ["Sentences", "Cost"]),
        (["leaderboard-a", "leaderboard-c"], ["Leaderboard: a", "Support recall"]),
    ],
)
def test_a_link_to_a_section_is_short(names: list[str], links: list[str]) -> None:
    titles = {
        "summary": "In short",
        "cost": "Cost, tokens and time",
        "leaderboard-a": "Leaderboard: a",
        "leaderboard-b": "Leaderboard: b",
        "leaderboard-c": "Support recall",
        "agreement-a": "Agreement with people: a",
        "sentences-a": "Sentence by sentence: a",
    }
    made = section_links([Section(name, titles[name], ()) for name in names])
    assert made == dict(zip(names, links, strict=True))


def test_a_command_in_a_note_shows_as_code_and_markup_of_strangers_as_text() -> None:
    said = "`judge validate` lists <b>`<i>`</b>."
    assert coded(said) == "<code>judge validate</code> lists &lt;b&gt;<code>&lt;i&gt;</code>&lt;/b&gt;."
