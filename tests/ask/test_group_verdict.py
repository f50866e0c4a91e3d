"""What one reply says of several criteria: each verdict is read by itself, as strictly as one alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.ask.records import Unreadable, Verdict
from judge.ask.verdict import parse_group
from judge.judges.records import AnswerForm, Completion

PARTS = tuple(map(find_criterion, ("completeness", "groundedness/yes_no", "naturalness")))
"""0 to 3 and unable; yes and no; 0 to 4."""
NAMES = ("completeness", "groundedness", "naturalness")
BAD = "unreadable"


def read(text: str, form: AnswerForm = "text", finish: str | None = "stop") -> dict[str, Verdict | Unreadable]:
    return parse_group(Completion(text, finish, None), PARTS, form)


def outcomes(text: str, form: AnswerForm = "text", finish: str | None = "stop") -> tuple[int | str, ...]:
    """By name, the grade or why there is none."""
    found = read(text, form, finish)
    assert tuple(found) == NAMES
    return tuple(one.reason if isinstance(one, Unreadable) else one.grade for one in found.values())


LINES = "completeness: 2\ngroundedness: yes\nnaturalness: 4"
TEXT: dict[str, tuple[int | str, ...]] = {
    LINES: (2, 1, 4),
    f"Reasons.\n\n{LINES}\n": (2, 1, 4),
    "**Completeness:** 2\n- groundedness : `yes`\n**naturalness: 4**": (2, 1, 4),
    LINES.replace("\n", "\n\n"): (2, 1, 4),
    f"Grade: 3 is what the response asks for.\n{LINES}": (2, 1, 4),
    "completeness: unable\ngroundedness: yes\nnaturalness: 4": (-1, 1, 4),
    # Each fault is of its own criterion.
    "completeness: 7\ngroundedness: yes\nnaturalness: 4": (BAD, 1, 4),
    "completeness: 2\ngroundedness: maybe\nnaturalness: 3.5": (2, BAD, BAD),
    "completeness: 2\ngroundedness: yes\nnaturalness: 4 of 4": (2, 1, BAD),
    f"naturalness: 3\n{LINES}": (2, 1, BAD),
    f"Naturalness is 3, I think.\n{LINES}": (2, 1, BAD),
    f"The naturalness grade is 3.\n{LINES}": (2, 1, BAD),
    f"Naturalness is 4, I think.\n{LINES}": (2, 1, 4),
    f"naturalness: it flows, mostly.\n{LINES}": (2, 1, 4),
    f"A naturalness of 3 would be too low.\n{LINES}": (2, 1, 4),
    # What a text goes on after may be quoted or withdrawn.
    f"{LINES}\nOr rather not.": (BAD, BAD, BAD),
    # Where the judge leaves a criterion out, a line about it may be quoted.
    "completeness: 2\nnaturalness: 4": (BAD, BAD, BAD),
    "completeness: 2\nOr rather:\ngroundedness: yes\nnaturalness: 4": (BAD, BAD, BAD),
    "completeness: 2\ngroundedness: yes\nIt ends so:\nnaturalness: 4": (BAD, BAD, BAD),
    "It begins so:\nnaturalness: 4\n\ncompleteness: 2\ngroundedness: yes": (BAD, BAD, BAD),
    "It begins so:\nnaturalness: 4\ncompleteness: 2\ngroundedness: yes": (BAD, BAD, BAD),
    "It begins so:\ncompleteness: 3\n\ngroundedness: yes\nnaturalness: 4": (BAD, BAD, BAD),
    f"It holds:\n{LINES}".replace("\n", "\n\n"): (2, 1, 4),
    "It holds:\ncompleteness: 3\n\ngroundedness: yes\n\nnaturalness: 4": (BAD, BAD, BAD),
    "I cannot grade it. It ends so:\nnaturalness: 4": (BAD, BAD, BAD),
    "": (BAD, BAD, BAD),
    "Grade: 2": (BAD, BAD, BAD),
    "2\nyes\n4": (BAD, BAD, BAD),
    "I'm sorry, I cannot help with that.": ("refused",) * 3,
    f"<think>naturalness: 0</think>{LINES}": (2, 1, 4),
    "<think>hm": (BAD, BAD, BAD),
}  # fmt: skip


@pytest.mark.parametrize("reply", TEXT)
def test_text_form(reply: str) -> None:
    expected = TEXT[reply]
    unable = PARTS[0].scale.unable
    assert outcomes(reply) == tuple(unable.grade if grade == -1 else grade for grade in expected)


def document(**members: Any) -> str:
    whole = {"completeness": "2", "groundedness": "yes", "naturalness": "4"} | members
    return json.dumps(
        {
            name: {"rationale": f"On {name}.", "grade": grade} if isinstance(grade, str | int) else grade
            for name, grade in whole.items()
            if grade is not None
        }
    )


GOOD = document()
JSON: dict[str, tuple[int | str, ...]] = {
    GOOD: (2, 1, 4),
    f"```json\n{GOOD}\n```": (2, 1, 4),
    document(completeness=2, groundedness="Yes."): (2, 1, 4),
    document(naturalness=None): (2, 1, BAD),
    document(naturalness="5"): (2, 1, BAD),
    document(naturalness={"grade": 4.5}): (2, 1, BAD),
    document(naturalness=["4"]): (2, 1, BAD),
    document(naturalness={"rationale": "no grade"}): (2, 1, BAD),
    '{"completeness": 2, "groundedness": "yes", "naturalness": "4"}': (BAD, BAD, BAD),
    document(naturalness={"grade": "4", "rationale": ["a", "b"]}): (2, 1, 4),
    f"{document(naturalness='3')}\n{GOOD}": (2, 1, BAD),
    f"{GOOD} {GOOD}": (2, 1, 4),
    f'{{"naturalness": {{"grade": "4"}}}} {GOOD}': (2, 1, 4),
    f"naturalness: 3\n{GOOD}": (2, 1, BAD),
    f"{GOOD}\nOr rather not.": (BAD, BAD, BAD),
    GOOD[:-1]: (BAD, BAD, BAD),
    '{"grade": "2"}': (BAD, BAD, BAD),
    '{"refusal": "no"}': ("refused",) * 3,
    document(naturalness={"grade": "4"})[:-1] + ', "naturalness": {"grade": "3"}}': (BAD, BAD, BAD),
    LINES: (2, 1, 4),
    f"<think>{document(naturalness='0')}</think>{GOOD}": (2, 1, 4),
}  # fmt: skip


@pytest.mark.parametrize("reply", JSON, ids=lambda reply: reply[:50])
def test_json_form(reply: str) -> None:
    assert outcomes(reply, "json") == JSON[reply]


@pytest.mark.parametrize(
    ("form", "reply", "finish", "expected"),
    [
        ("text", LINES, "length", ("truncated",) * 3),
        ("json", GOOD, "length", (2, 1, 4)),
        ("json", GOOD[:-1], "length", ("truncated",) * 3),
        ("json", document(naturalness="9"), "max_tokens", (2, 1, "truncated")),
        ("json", GOOD, "content_filter", ("content_filter",) * 3),
        ("text", LINES, "refusal", ("refused",) * 3),
    ],
)
def test_finish_reasons(form: AnswerForm, reply: str, finish: str, expected: tuple[int | str, ...]) -> None:
    assert outcomes(reply, form, finish) == expected


def test_rationales_are_of_each_criterion_in_json_and_shared_in_text() -> None:
    assert [one.rationale for one in read(GOOD, "json").values() if isinstance(one, Verdict)] == [
        "On completeness.", "On groundedness.", "On naturalness.",
    ]  # fmt: skip
    shared = read(f"It lacks a part.\nIt flows.\n\n{LINES}")
    assert {one.rationale for one in shared.values() if isinstance(one, Verdict)} == {"It lacks a part.\nIt flows."}


def test_a_fault_names_the_criterion_and_what_was_expected() -> None:
    found = read("completeness: 7\ngroundedness: no\nnaturalness: 4")
    assert found["completeness"] == Unreadable(BAD, "found grade ' 7', expected one of 0, 1, 2, 3, unable")
    told = "the reply does not end with the lines `completeness: LABEL`, `groundedness: LABEL`, `naturalness: LABEL`"
    assert read("naturalness: 4")["naturalness"] == Unreadable(BAD, f"{told} in this order")
    assert read(document(naturalness=None), "json")["naturalness"] == Unreadable(
        BAD, 'the JSON object has no "naturalness"'
    )


LABELS = st.tuples(*(st.sampled_from(part.scale.labels) for part in PARTS))


@given(
    labels=LABELS,
    reasons=st.text(max_size=60).filter(lambda text: not any(name in text.casefold() for name in NAMES)),
    marks=st.sampled_from(["{}", "**{}**", "- {}", "{} "]),
)
def test_lines_as_instructed_are_read_whatever_stands_before_them(labels, reasons, marks) -> None:
    if reasons.lstrip().startswith("<think>"):
        return
    lines = [marks.format(f"{name}: {label}") for name, label in zip(NAMES, labels, strict=True)]
    found = read("\n".join([reasons, *lines]))
    for part, label in zip(PARTS, labels, strict=True):
        verdict = found[part.name]
        assert isinstance(verdict, Verdict)
        unable = part.scale.unable
        levels = {level.label: level.grade for level in (*part.scale.levels, *([unable] if unable else []))}
        assert verdict.grade == levels[label]


PIECES = [
    *NAMES, ": ", "2", "7", "yes", "unable", "\n", "**", "{", "}", '"', '{"naturalness": ', '{"grade": "2"}', ", ",
    '"completeness": ', LINES, GOOD, "is ", "grade", "<think>", "</think>", "\ud800", "I'm sorry", "- ",
]  # fmt: skip


@given(
    text=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5))).map("".join),
    form=st.sampled_from(["json", "text"]),
    finish=st.sampled_from(["stop", "length", "content_filter", None]),
)
def test_no_reply_raises_or_leaves_a_scale(text: str, form: AnswerForm, finish: str | None) -> None:
    for part, verdict in zip(PARTS, read(text, form, finish).values(), strict=True):
        if isinstance(verdict, Unreadable):
            verdict.detail.encode()
            continue
        assert verdict.unable or verdict.grade in {level.grade for level in part.scale.levels}
        (verdict.rationale or "").encode()


@given(labels=LABELS, other=LABELS)
def test_two_different_verdicts_are_none(labels: tuple[str, ...], other: tuple[str, ...]) -> None:
    first = "\n".join(f"{name}: {label}" for name, label in zip(NAMES, other, strict=True))
    second = "\n".join(f"{name}: {label}" for name, label in zip(NAMES, labels, strict=True))
    for part, one, two in zip(PARTS, labels, other, strict=True):
        assert isinstance(read(f"{first}\nNo:\n{second}")[part.name], Verdict) == (one == two)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["*", "naturalness", "naturalness:", "naturalness: 2\n", "{", '{"', "[", " ", "\n", "_"]
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_a_long_monotonous_reply_is_read_in_step_with_its_length(unit: str, form: AnswerForm) -> None:
    assert isinstance(read(unit * (200_000 // len(unit)), form)["completeness"], Unreadable)
