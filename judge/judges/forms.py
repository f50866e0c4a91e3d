"""The answer forms in which a judge can be asked: schema, instruction, labels. Pure."""

import functools
from collections.abc import Sequence
from typing import Any

from judge.judges.records import AnswerForm, AskedCriterion
from judge.records import Criterion

_REASONS = "your reasons in at most three sentences"


def supported_forms(criterion: Criterion) -> tuple[AnswerForm, ...]:
    """The answer forms that a criterion allows; `label` is not among them where one label is not the whole answer."""
    several = criterion.answer != "grade" or criterion.together
    return ("json", "text") if several else ("json", "text", "label")


def answer_labels(criterion: Criterion) -> tuple[str, ...]:
    """The labels that a judge chooses from: those of the scale, or those of a sentence."""
    if criterion.answer == "sentences":
        return tuple(level.label for level in criterion.sentence_levels)
    return criterion.scale.labels


@functools.lru_cache(maxsize=256)
def answer_instruction(criterion: Criterion, form: AnswerForm) -> str:
    """The closing words of a prompt: how to answer this criterion in this form."""
    if criterion.answer == "nuggets":
        return nuggets_instruction(criterion.scale.labels, form)
    return form_instruction(answer_labels(criterion), form, per_sentence=criterion.answer == "sentences")


def nuggets_instruction(labels: Sequence[str], form: AnswerForm) -> str:
    """How to answer with a list of nuggets, given the labels of the grade."""
    if form == "json":
        return (
            'Reply with one JSON object and nothing else: first "nuggets", a list of strings, the most important '
            f'first; then "grade", one of {_quoted(labels)}.'
        )
    return (
        "Write each nugget on one line that begins with `- `, the most important nugget first. Then end with exactly "
        f"one line of this form, where LABEL is one of {', '.join(labels)}:\nGrade: LABEL"
    )


def form_instruction(labels: Sequence[str], form: AnswerForm, *, per_sentence: bool) -> str:
    """How to answer in this form, given only the labels; `per_sentence` asks for one label for each sentence."""
    menu = ", ".join(labels)
    quoted = _quoted(labels)
    match form, per_sentence:
        case "label", _:
            # Decoding is constrained to the labels, and the levels name them: a cue is enough. Every token after the
            # response is computed again for each judgment.
            return "Label:"
        case "json", False:
            return (
                f'Reply with one JSON object and nothing else: first "rationale", {_REASONS}; '
                f'then "grade", one of {quoted}.'
            )
        case "json", _:
            return (
                f'Reply with one JSON object and nothing else: first "rationale", {_REASONS}; then "sentences", a list '
                f'with {{"n": number, "label": label}} for every numbered sentence, in order. Labels: {quoted}.'
            )
        case _, False:
            return (
                f"Give {_REASONS}. Then end with exactly one line of this form, where LABEL is one of {menu}:\n"
                "Grade: LABEL"
            )
        case _:
            return (
                f"Give {_REASONS}. Then label every numbered sentence, in order, one line each, in this form, "
                f"where LABEL is one of {menu}:\n1: LABEL"
            )


def group_instruction(together: Sequence[AskedCriterion], form: AnswerForm) -> str:
    """How to answer several criteria in one reply."""
    if form == "json":
        members = _quoted([asked.name for asked in together])
        grades = "; ".join(f'of "{asked.name}" one of {_quoted(asked.labels)}' for asked in together)
        return (
            "Reply with one JSON object and nothing else. It has one member for each criterion, in this order: "
            f'{members}. Each member is an object: first "rationale", {_REASONS}; then "grade": {grades}.'
        )
    menus = ", ".join(f"one of {', '.join(asked.labels)} for {asked.name}" for asked in together)
    lines = "\n".join(f"{asked.name}: LABEL" for asked in together)
    return (
        f"For each criterion, give {_REASONS}. Then end with exactly one line for each criterion, in this order and "
        f"this form, where LABEL is {menus}:\n{lines}"
    )


def group_schema(together: Sequence[AskedCriterion]) -> dict[str, Any]:
    """JSON schema of one reply to several criteria: a member with rationale and grade for each, in order."""
    return _closed_object({asked.name: answer_schema(asked.labels, 0) for asked in together})


def answer_schema(labels: Sequence[str], sentences: int) -> dict[str, Any]:
    """JSON schema of an answer, using only what strict modes allow; the rationale comes before the grade.

    `sentences` are to be labeled; 0 when one grade is asked.
    """
    label = {"type": "string", "enum": list(labels)}
    if not sentences:
        return _closed_object({"rationale": {"type": "string"}, "grade": label})
    entry = _closed_object({"n": {"type": "integer"}, "label": label})
    return _closed_object({"rationale": {"type": "string"}, "sentences": {"type": "array", "items": entry}})


def nuggets_schema(labels: Sequence[str]) -> dict[str, Any]:
    """JSON schema of a list of nuggets and the grade that says whether there are any."""
    nuggets = {"type": "array", "items": {"type": "string"}}
    return _closed_object({"nuggets": nuggets, "grade": {"type": "string", "enum": list(labels)}})


def label_grammar(labels: Sequence[str]) -> str:
    r"""A GBNF grammar that allows one of the labels and nothing else.

    >>> label_grammar(["yes", 'a "no"'])
    'root ::= "yes" | "a \\"no\\""'
    """
    return "root ::= " + " | ".join(map(literal, labels))


def literal(text: str) -> str:
    """A text as a GBNF grammar writes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
