"""Completion × scale → Verdict | Unreadable: one grammar on the reply's last verdict, never a default. Pure.

A reply is unreadable if it names no grade of the scale, or if its grade is ambiguous; nothing is clamped, rounded or
guessed.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from judge.ask.filler import CUT_OFF
from judge.ask.records import Unreadable, Verdict
from judge.ask.reply import (
    last_claim,
    last_object,
    no_verdict,
    numbered_lines,
    on_menu,
    rationale_of,
    shown,
    without_thoughts,
)
from judge.models.forms import answer_labels
from judge.models.records import NO_SCORE, AnswerForm, Completion
from judge.records import Criterion, Level, Scale

PARSER_VERSION = 2
"""Goes up whenever the same reply may be read differently than before."""

TRUNCATED = Unreadable("truncated", "the reply was cut off at the token limit")
"""What is said of a reply that might have gone on to a verdict."""


def parse(completion: Completion, criterion: Criterion, form: AnswerForm, sentences: int) -> Verdict | Unreadable:
    """The verdict of a completion; an off-scale, missing or ambiguous verdict is Unreadable.

    Args:
        completion: The completion to read.
        criterion: Gives the scale, and the roll-up where sentences are labeled.
        form: The answer form that was asked for.
        sentences: How many numbered sentences had to be labeled; 0 when one grade is asked.
    """
    reply, cut = reply_of(completion), is_cut(completion)
    if isinstance(reply, Unreadable):
        return reply
    if criterion.answer == "sentences":
        verdict = _parse_sentences(reply, criterion, form, sentences, completion.support, cut=cut)
    else:
        verdict = _parse_grade(reply, criterion.scale, form, completion.probabilities, cut=cut)
    return TRUNCATED if cut and isinstance(verdict, Unreadable) else verdict


def reply_of(completion: Completion) -> str | Unreadable:
    """The text of a completion without thoughts; Unreadable if there is none that could hold a verdict."""
    if completion.finish_reason == "content_filter":
        return Unreadable("content_filter", "the provider's content filter stopped the reply")
    if completion.finish_reason == "refusal":
        return Unreadable("refused", "the provider reports a refusal")
    if completion.finish_reason == NO_SCORE:
        return Unreadable("unreadable", f"the checker's model replied {shown(completion.text)}, expected Yes or No")
    # Some servers send a reasoning model's thoughts in the reply; a grade in the thoughts is not the verdict.
    reply = without_thoughts(completion.text)
    if reply is None:
        reason = "the reply never leaves its thoughts"
        return Unreadable("truncated" if is_cut(completion) else "unreadable", reason)
    return reply


def is_cut(completion: Completion) -> bool:
    """Whether the text ends at the token limit."""
    return completion.finish_reason in CUT_OFF


def _parse_grade(
    reply: str, scale: Scale, form: AnswerForm, probabilities: Mapping[str, float] | None, *, cut: bool
) -> Verdict | Unreadable:
    labels = scale.labels
    rationale: str | None = None
    claimed: object
    answer = last_object(reply, "grade", labels, cut=cut) if form == "json" else None
    if isinstance(answer, Unreadable):
        return answer
    if answer is not None:
        claimed, rationale = answer["grade"], rationale_of(answer)
    elif form == "label" and (label := on_menu(reply, labels)) is not None:
        longer = [candidate for candidate in labels if candidate != label and candidate.startswith(label)]
        if cut and longer:
            return Unreadable("truncated", f"{label!r} may be the beginning of {longer[0]!r}")
        claimed = label
    else:
        claim = last_claim(reply, labels)
        if isinstance(claim, Unreadable):
            return claim
        if cut:
            return Unreadable("truncated", "what follows may have been another verdict")
        claimed, rationale = claim
    return graded(claimed, rationale, scale, probabilities)


def graded(
    claimed: object, rationale: str | None, scale: Scale, probabilities: Mapping[str, float] | None = None
) -> Verdict | Unreadable:
    """The verdict with the label that is claimed; Unreadable if it is not on the scale."""
    labels = scale.labels
    label = on_menu(claimed, labels)
    if label is None:
        return Unreadable("unreadable", f"found grade {shown(claimed)}, expected one of {', '.join(labels)}")
    level = next(level for level in _all_levels(scale) if level.label == label)
    unable = level is scale.unable
    expected = None if unable else expected_grade(probabilities, scale)
    return Verdict(level.grade, rationale, expected=expected, unable=unable)


def _parse_sentences(
    reply: str,
    criterion: Criterion,
    form: AnswerForm,
    sentences: int,
    told: tuple[tuple[float | None, tuple[int, ...]], ...],
    *,
    cut: bool,
) -> Verdict | Unreadable:
    answer = last_object(reply, "sentences", (), cut=cut) if form == "json" else None
    if isinstance(answer, Unreadable):
        return answer
    entries: Sequence[tuple[object, object]]
    if answer is None:
        entries, rationale = numbered_lines(reply)
        if not entries or cut:
            return no_verdict(reply, "no line of the form `1: LABEL`")
    else:
        listed, rationale = answer["sentences"], rationale_of(answer)
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            return Unreadable("unreadable", '"sentences" is not a list of objects with "n" and "label"')
        entries = [(entry.get("n"), entry.get("label")) for entry in listed]
    labels = _by_number(entries, answer_labels(criterion), sentences)
    if isinstance(labels, Unreadable):
        return labels
    verdict = _rolled_up(labels, criterion, rationale)
    if isinstance(verdict, Unreadable):
        return verdict
    if len(told) != sentences:
        return verdict
    return msgspec.structs.replace(verdict, support=told, expected=_expected_by_support(told, labels, criterion))


def _expected_by_support(
    support: Sequence[tuple[float | None, tuple[int, ...]]], labels: Sequence[str], criterion: Criterion
) -> float | None:
    """The mean grade if each sentence that counts were supported with its probability, apart from the others."""
    rollup = criterion.rollup
    if rollup is None or not support:
        return None
    chances = [chance for (chance, _), label in zip(support, labels, strict=True) if label != rollup.ignored]
    # How likely it is that k of the sentences so far are supported.
    likely = [1.0]
    for chance in chances:
        if chance is None:
            return None
        likely = [
            math.fsum((stays * (1 - chance), goes * chance))
            for stays, goes in zip([*likely, 0.0], [0.0, *likely], strict=True)
        ]
    return math.fsum(p * rollup.grade(k / len(chances)) for k, p in enumerate(likely)) if chances else None


def _by_number(
    entries: Sequence[tuple[object, object]], menu: Sequence[str], sentences: int
) -> tuple[str, ...] | Unreadable:
    """The label of each sentence, from number 1 to `sentences`."""
    numbers = {str(number): number for number in range(1, sentences + 1)}
    keys = tuple(numbers)
    labels: dict[int, str] = {}
    for claimed_number, claimed_label in entries:
        key = on_menu(claimed_number, keys)
        if key is None:
            expected = f"1 to {sentences}"
            return Unreadable("unreadable", f"found sentence number {shown(claimed_number)}, expected {expected}")
        label = on_menu(claimed_label, menu)
        if label is None:
            detail = f"sentence {key}: found label {shown(claimed_label)}, expected one of {', '.join(menu)}"
            return Unreadable("unreadable", detail)
        if labels.setdefault(numbers[key], label) != label:
            earlier = labels[numbers[key]]
            return Unreadable("unreadable", f"sentence {key} has two labels, {earlier!r} and {label!r}")
    missing = [key for key, number in numbers.items() if number not in labels]
    if missing:
        return Unreadable("unreadable", f"no label for sentence {', '.join(missing[:10])} of {sentences}")
    return tuple(labels[number] for number in sorted(labels))


def _rolled_up(labels: tuple[str, ...], criterion: Criterion, rationale: str | None) -> Verdict | Unreadable:
    rollup, unable = criterion.rollup, criterion.scale.unable
    if rollup is None:
        raise ValueError(f"{criterion.prompt_id}: sentences are labeled but no roll-up is declared")
    counted = [label for label in labels if label != rollup.ignored]
    if not counted:
        if unable is None:
            return Unreadable("unreadable", "no sentence counts towards a grade")
        return Verdict(unable.grade, rationale, sentences=labels, unable=True)
    share = counted.count(rollup.label) / len(counted)
    return Verdict(rollup.grade(share), rationale, sentences=labels)


def expected_grade(probabilities: Mapping[str, float] | None, scale: Scale) -> float | None:
    """Mean grade under the label probabilities; None where `grade_probabilities` gives none.

    Args:
        probabilities: Label to probability.
        scale: Gives each label its grade.
    """
    by_grade = grade_probabilities(probabilities, scale)
    return None if by_grade is None else math.fsum(grade * p for grade, p in by_grade.items())


def grade_probabilities(probabilities: Mapping[str, float] | None, scale: Scale) -> dict[int, float] | None:
    """The probability of each grade, normalized without "unable".

    None if there are no valid probabilities, or if "unable" has more than half of the mass.

    Args:
        probabilities: Label to probability; labels that are not on the scale are ignored.
        scale: Gives each label its grade.
    """
    if not probabilities:
        return None
    masses = [(level, probabilities.get(level.label, 0.0)) for level in _all_levels(scale)]
    if any(not math.isfinite(mass) or mass < 0 for _, mass in masses):
        return None
    total = math.fsum(mass for _, mass in masses)
    graded = math.fsum(mass for level, mass in masses if level is not scale.unable)
    if graded <= 0 or total - graded > total / 2:
        return None
    return {level.grade: mass / graded for level, mass in masses if level is not scale.unable}


def _all_levels(scale: Scale) -> tuple[Level, ...]:
    return (*scale.levels, scale.unable) if scale.unable else scale.levels
