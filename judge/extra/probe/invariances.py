"""Alterations that change nothing a grade may depend on: the grade must stay. Pure.

The rewritings are small rules and a table of words, not a paraphrase by a model: they change a few words of a response.
"""

import re

import numpy as np

from judge.extra.probe.records import Inapplicable, ProbeItem, Twin, WantedLabels
from judge.io.sentences import split_sentences

_CONTRACTED = re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should|must)n['’]t\b", re.IGNORECASE)
_FULL = (
    (r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should) not\b", r"\1n't"),
    (r"\b(can)not\b", r"\1't"),
    (r"\b(it|that|there|he|she) is(?= [a-z])", r"\1's"),
    (r"\b(you|they|we) are(?= [a-z])", r"\1're"),
    (r"\b(you|they|we|it) will(?= [a-z])", r"\1'll"),
    (r"\b(I) am(?= [a-z])", r"\1'm"),
)
"""Words that are contracted, where nothing is contracted yet."""
_CONNECTIVE = "In fact"
_STARTERS = "The|This|These|Those|There|It|Its|They|Their|You|Your|We|A|An|If|In|On|At|For|When|Most|Some|Many|All"
_STARTER = re.compile(rf"(?:(?<=[.!?] )|\A)({_STARTERS})\b")
_OPENING = "Thank you for your question, I am happy to help you with it."
_CLOSING = "I hope that this helps. Please feel free to ask if there is anything else that you would like to know."
_LISTED = re.compile(r"^[ \t]*(?:[-*•#]|\(?\d{1,3}[.)])\s", re.MULTILINE)
_FIRST_WORDS = re.compile(r"\s*(\w\S*(?:[ ]\S+){0,3})")

SYNONYMS = {
    "allowed": "permitted", "almost": "nearly", "area": "region", "assist": "help", "big": "large",
    "build": "construct", "built": "constructed", "children": "kids", "choose": "select", "commonly": "frequently",
    "difficult": "hard", "doctor": "physician", "easy": "simple", "entire": "whole", "fast": "quick",
    "frequently": "often", "gives": "provides", "helpful": "useful", "however": "nevertheless",
    "important": "significant", "keep": "retain", "large": "big", "maybe": "perhaps", "method": "approach",
    "nearly": "almost", "necessary": "required", "often": "frequently", "perhaps": "maybe", "pick": "choose",
    "quickly": "rapidly", "rapidly": "quickly", "required": "necessary", "shows": "demonstrates",
    "significant": "important", "small": "little", "sufficient": "enough", "typically": "usually",
    "usually": "normally", "various": "different",
}  # fmt: skip
"""Lower-case word to another one of the same meaning in most places; a new word is a new entry."""


def contracted(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """`do not` becomes `don't`; in a response with such contractions they are written out."""
    text = item.response.text
    if _CONTRACTED.search(text):
        return _rewritten(item, _CONTRACTED.sub(r"\1 not", text), "contractions written out")
    for pattern, short in _FULL:
        text = re.sub(pattern, short, text, flags=re.IGNORECASE)
    return _rewritten(item, text, "contracted")


def with_synonyms(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """Words of the table are replaced."""
    replaced: list[str] = []

    def instead(match: re.Match[str]) -> str:
        other = SYNONYMS.get(match[0])
        if other is None:
            return match[0]
        replaced.append(f"{match[0]} -> {other}")
        return other

    text = re.sub(r"[a-z]+", instead, item.response.text)
    return _rewritten(item, text, ", ".join(dict.fromkeys(replaced)))


def with_connective(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """A sentence that begins with `The`, `It` and the like begins with `In fact`; the second one if it can."""
    found = [*_STARTER.finditer(item.response.text)]
    match = next((one for one in found if one.start() > 0), found[0] if found else None)
    if match is None:
        return Inapplicable("no sentence begins with a word that a connective can stand before")
    text = item.response.text
    return _rewritten(
        item, f"{text[: match.start()]}{_CONNECTIVE}, {match[0].lower()}{text[match.end() :]}", f"+ {_CONNECTIVE}"
    )


def padded(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """Empty phrases stand before and behind."""
    return _rewritten(item, f"{_OPENING} {item.response.text.strip()} {_CLOSING}", "opening and closing phrases")


def bulleted(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """Every sentence is an item of a list."""
    sentences = split_sentences(item.response.text)
    if len(sentences) < 2 or _LISTED.search(item.response.text):
        return Inapplicable("a single sentence, or a list already")
    return _rewritten(item, "\n".join(f"- {sentence}" for sentence in sentences), "sentences as a list")


def bold(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """The first words are bold."""
    return _rewritten(item, _FIRST_WORDS.sub(r"**\1**", item.response.text, count=1), "first words bold")


def headed(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """A heading stands before."""
    return _rewritten(item, f"## Answer\n\n{item.response.text}", "+ ## Answer")


def reordered(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """The passages stand the other way round."""
    backwards = item.passages[::-1]
    if backwards == item.passages:
        return Inapplicable("fewer than two passages")
    return Twin(item.response.text, backwards, "passages in reverse order")


def _rewritten(item: ProbeItem, text: str, change: str) -> Twin | Inapplicable:
    if text == item.response.text:
        return Inapplicable("nothing in the response to rewrite")
    return Twin(text, item.passages, change)
