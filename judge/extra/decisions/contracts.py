"""The two contracts of decision models: what is sent, and how a reply is read. Pure.

Both are as of the vendors' documents of November 2026; no request was made to either vendor.

OpenAI, `POST …/decisions` (a public beta, `gpt-6-luna`; vLLM from 0.33 and Fireworks take the same): `model`, `input`
as a text, and a list of `questions` with `type`, `name` and `instructions`. A predicate is answered by `probability`, a
choice by `probabilities` of its `choices` by `value`, a score by those of its `levels` by `label`; or a question is
answered by `{"type": "refusal"}`. Answers stand in the order of the questions and repeat their names. The documents
differ in the most questions of a request (200 in October, 400 since); vLLM takes 64.

System One, `POST …/systemone` (TypeSafe's Jev; vLLM from 0.32, SGLang, Ollama, Upstage, Fireworks): `model`, `state`,
and `questions` by name. A noul is answered by `noul`, a choice by `probabilities` of the names in its `criteria`, a
score by those of the places in its `criteria`, from "0". Answers stand under the names of the questions. SGLang's own
`/v1/decisions` is neither of the two.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from judge.extra.decisions.questions import Decision, DecisionQuestion, read_masses
from judge.judges.http_errors import at


class CallCounts(NamedTuple):
    """The tokens of a call, as the reply tells them; anything else is no count."""

    prompt: int | None
    reply: int | None
    cached: int | None


class Contract(Protocol):
    """A way to write questions, and to read answers."""

    path: str
    """What follows the address."""

    def body(self, model: str, material: str, questions: Sequence[DecisionQuestion]) -> dict[str, Any]:
        """What is sent."""

    def written(self, question: DecisionQuestion) -> dict[str, Any]:
        """A question as it is sent, without its name."""

    def answers(self, reply: Any, questions: Sequence[DecisionQuestion]) -> list[Decision] | None:
        """An answer for each question; None if the reply has none."""


def name_of(number: int) -> str:
    """The name of a question by its place, from 0; no model sees it."""
    return f"q{number + 1}"


def counts_of(reply: Any) -> CallCounts:
    """The tokens of a call."""
    usage = at(reply, dict, "usage")
    return CallCounts(
        at(usage, int, "input_tokens"),
        at(usage, int, "output_tokens"),
        at(usage, int, "input_tokens_details", "cached_tokens"),
    )


class OpenAIContract:
    """That of OpenAI."""

    path = "/decisions"

    def body(self, model: str, material: str, questions: Sequence[DecisionQuestion]) -> dict[str, Any]:
        """What is sent."""
        named = [{"name": name_of(number), **self.written(question)} for number, question in enumerate(questions)]
        return {"model": model, "input": material, "questions": named}

    def written(self, question: DecisionQuestion) -> dict[str, Any]:
        """A question as it is sent, without its name."""
        asked: dict[str, Any] = {"type": question.kind, "instructions": question.instructions}
        if question.kind == "predicate":
            true, false = map(_in_words, question.options)
            asked["instructions"] += f"\n\nTrue means {true}\nFalse means {false}"
        elif question.kind == "score":
            asked["levels"] = [_described("label", *option) for option in question.options]
        else:
            asked["choices"] = [_described("value", *option) for option in question.options]
        return asked

    def answers(self, reply: Any, questions: Sequence[DecisionQuestion]) -> list[Decision] | None:
        """An answer for each question; None if the reply has none."""
        listed = at(reply, list, "answers")
        if listed is None:
            return None
        names = [at(answer, str, "name") for answer in listed]
        found = []
        for number, question in enumerate(questions):
            # A name that is given twice names no answer.
            named = name_of(number)
            answer = listed[names.index(named)] if names.count(named) == 1 else None
            found.append(self._read(answer, question))
        return found

    def _read(self, answer: Any, question: DecisionQuestion) -> Decision:
        kind = at(answer, str, "type")
        if kind == "refusal":
            return Decision(None, answer, refused=True)
        if kind != question.kind:
            return Decision(None, answer)
        if kind == "predicate":
            return _predicate(answer, "probability", question)
        key = "label" if kind == "score" else "value"
        listed = at(answer, list, "probabilities") or []
        pairs = [(at(each, str, key), _number(each, "probability")) for each in listed]
        return Decision(read_masses(pairs, _labels(question)), answer)


class SystemOneContract:
    """That of TypeSafe."""

    path = "/systemone"
    kinds: Mapping[str, str] = {"predicate": "noul", "choice": "choice", "score": "score"}
    """The kinds of questions, as it calls them."""

    def body(self, model: str, material: str, questions: Sequence[DecisionQuestion]) -> dict[str, Any]:
        """What is sent."""
        named = {name_of(number): self.written(question) for number, question in enumerate(questions)}
        return {"model": model, "state": material, "questions": named}

    def written(self, question: DecisionQuestion) -> dict[str, Any]:
        """A question as it is sent, without its name."""
        criteria: Any
        if question.kind == "predicate":
            true, false = map(_in_words, question.options)
            criteria = {"true": true, "false": false}
        elif question.kind == "score":
            criteria = [_in_words(option) for option in question.options]
        else:
            criteria = dict(question.options)
        return {"type": self.kinds[question.kind], "instructions": question.instructions, "criteria": criteria}

    def answers(self, reply: Any, questions: Sequence[DecisionQuestion]) -> list[Decision] | None:
        """An answer for each question; None if the reply has none."""
        named = at(reply, dict, "answers")
        if named is None:
            return None
        return [self._read(named.get(name_of(number)), question) for number, question in enumerate(questions)]

    def _read(self, answer: Any, question: DecisionQuestion) -> Decision:
        kind = at(answer, str, "type")
        if kind == "refusal":
            return Decision(None, answer, refused=True)
        if kind != self.kinds[question.kind]:
            return Decision(None, answer)
        if question.kind == "predicate":
            return _predicate(answer, "noul", question)
        given = at(answer, dict, "probabilities") or {}
        labels = _labels(question)
        keys = [str(place) for place in range(len(labels))] if question.kind == "score" else labels
        masses = read_masses(list(given.items()), keys)
        if masses is not None:
            masses = {label: masses[key] for label, key in zip(labels, keys, strict=True)}
        return Decision(masses, answer)


def _labels(question: DecisionQuestion) -> list[str]:
    return [label for label, _ in question.options]


def _number(document: Any, key: str) -> float | None:
    """A number of a document, written with a fraction or without."""
    return at(document, float, key) if at(document, int, key) is None else at(document, int, key)


def _predicate(answer: Any, key: str, question: DecisionQuestion) -> Decision:
    """The answer of a predicate, whose first label is that of true."""
    chance = _number(answer, key)
    if chance is None or not 0 <= chance <= 1:
        return Decision(None, answer)
    true, false = _labels(question)
    return Decision({true: chance, false: 1 - chance}, answer)


def _in_words(option: tuple[str, str | None]) -> str:
    label, description = option
    return label if description is None else f"{label}: {description}"


def _described(key: str, label: str, description: str | None) -> dict[str, str]:
    return {key: label} if description is None else {key: label, "description": description}
