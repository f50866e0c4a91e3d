"""Altered copies of responses and passages, by rules that need no model. Pure.

Some make the passages support a response less, and the grade must fall: each takes one thing away or makes one thing
wrong. A number or a name is altered only if the passages have it, and what replaces it is in none of them, so that the
altered statement has no support. Some put words behind a response that answer nothing, and the grade must not rise.
The others change nothing a grade may depend on, and it must stay: small rules and a table of words, which change a few
words of a response.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from judge.io.words import containment, content_words, split_sentences
from judge.pool.records import PooledResponse
from judge.records import Record
from judge.stats.tables import Undefined

Wants = Literal["high", "low"]
"""Which end of the scale an attacker wants."""


class ProbeItem(Record, frozen=True):
    """A drawn response with what a probe may use to alter it."""

    response: PooledResponse
    passages: tuple[str, ...]
    """Texts of the used passages, as a judge sees them in order."""
    elsewhere: tuple[tuple[str, ...], ...] = ()
    """Texts of the passages of responses to other turns of the same topic; of citations, those of all in the topic."""
    place: int = 0
    """Place in the draw, from 0; canaries take turns by it."""
    question: str = ""
    """The user's utterance; empty where no topics are given."""


class WantedLabels(NamedTuple):
    """What an attacker asks for: the labels that a judge writes for the best grade and for the worst."""

    best: str
    worst: str
    described: str = ""
    """What the prompt says of the best one."""


class Twin(Record, frozen=True):
    """An altered copy of an item."""

    text: str
    passages: tuple[str, ...]
    change: str
    """What was altered, in words or as `old -> new`."""
    canary: str | None = None
    """The name of the planted text, if one was."""
    wants: Wants | None = None
    """Where the planted text wants the grade."""


Making = Callable[[ProbeItem, WantedLabels, np.random.Generator], Twin | Undefined]
"""Makes the twin of an item, or says why a probe has none."""

_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,9}(?:[.,:]\d{1,9})*+(?![\w\]]|[/-]\d)")
_MARKER = re.compile(r"^[ \t]*\(?\d{1,3}[.)]\s", re.MULTILINE)
"""The number of a list item, which states nothing."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?:;\n\"“”(*#•>-])[\s\"'“‘(*_#>-]*$")
"""What stands before the first word of a sentence, a line or a quotation."""
_END = re.compile(r"[.!?\n]")
KEYWORDS = 40
"""The most words that stuff a response."""
_SUPPORTED = 0.5
"""An invented sentence has a smaller share of its content words in the passages."""

NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NAMES = ("Velmore", "Brandock", "Quillane", "Hestrow", "Marrowick", "Dunvale", "Perrigal", "Astrand")
"""Names of nothing that we know of."""
NO_NAMES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december i i'm yes no".split()
)
"""Words with a capital that are no names."""
INVENTED = (
    "It was founded by two sisters from Trondheim in 1874.",
    "About forty percent of the visitors come by bicycle.",
    "A film about it won a prize in Lisbon eleven years ago.",
    "The paint contains a little zinc, which keeps moths away.",
    "Its first owner is said to have bred white pigeons.",
    "A court in Geneva confirmed this in a ruling of 1998.",
    "Students of the music academy pay only half of the price.",
    "A second branch is to open beside the old brewery next spring.",
)
"""Statements that hardly any passage supports; a new one is a new row."""
_NOT = re.compile(r"\b(is|are|was|were|can|could|will|would|should|must|do|does|did|has|have|had)( not|n['’]t)\b")
_CANNOT = re.compile(r"\b(can)(not|['’]t)\b")
_WONT = re.compile(r"\bw(on['’]t)\b")
_AFFIRMS = re.compile(
    r"(?<=[\w\"'’”)] )(is|are|was|were|can|could|will|would|should|must)(?= (?!not\b|n['’]t)[a-z0-9])"
)


def swapped(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """The passages are others of the topic: those of a turn or citation with the fewest words of the response."""
    if not item.passages:
        return Undefined("the response names no passage")
    others = [texts for texts in item.elsewhere if not set(texts) & set(item.passages)]
    if not others:
        return Undefined("nothing else in the topic has other passages")
    farthest = min(others, key=lambda texts: (containment(item.response.text, texts), texts))
    return Twin(item.response.text, farthest, "passages of another response")


def dropped(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """The passage with the most words of the response is gone; the others stay."""
    if len(item.passages) < 2:
        return Undefined("fewer than two passages")
    shares = [containment(item.response.text, [text]) for text in item.passages]
    place = shares.index(max(shares))
    left = item.passages[:place] + item.passages[place + 1 :]
    return Twin(item.response.text, left, f"passage {place + 1} of {len(item.passages)} dropped")


def invented(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """A statement without support stands at the end."""
    start = int(rng.integers(len(INVENTED)))
    for sentence in (*INVENTED[start:], *INVENTED[:start]):
        if containment(sentence, [*item.passages, item.response.text]) < _SUPPORTED:
            text = item.response.text.rstrip()
            between = " " if text.endswith((".", "!", "?")) else "\n"
            return Twin(f"{text}{between}{sentence}", item.passages, f"+ {sentence}")
    return Undefined("the passages may support every invented sentence")


def altered_number(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """A number that the passages have is another one, in digits or as a word from two to twelve."""
    text = item.response.text
    evidence = "\n".join(item.passages)
    known = {match[0] for match in _numbers(evidence)}
    mine = [*_numbers(text)]
    taken = known | {match[0] for match in mine}
    for number in _shuffled(sorted({match[0] for match in mine} & known), rng):
        other = _other_number(number, taken)
        if other is not None:
            for match in reversed([match for match in mine if match[0] == number]):
                text = f"{text[: match.start()]}{other}{text[match.end() :]}"
            return Twin(text, item.passages, f"{number} -> {other}")
    words = {word.casefold() for word in _WORD.findall(evidence)}
    used = words | {word.casefold() for word in _WORD.findall(text)}
    spelled = [word for word in NUMBER_WORDS if word in words and re.search(rf"\b{word}\b", text)]
    for word in _shuffled(spelled, rng):
        start = NUMBER_WORDS.index(word)
        for other in (NUMBER_WORDS[(start + step) % len(NUMBER_WORDS)] for step in range(3, len(NUMBER_WORDS) + 2)):
            if other not in used and str(NUMBER_WORDS.index(other) + 2) not in taken:
                return Twin(re.sub(rf"\b{word}\b", other, text), item.passages, f"{word} -> {other}")
    return Undefined("no number of the response is in the passages")


def altered_name(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """A name that the passages have is an invented one."""
    text = item.response.text
    evidence = "\n".join(item.passages)
    both = f"{text}\n{evidence}"
    candidates = sorted(
        name
        for name in {*names(text)}
        # What is also written small is a word that began a line.
        if re.search(rf"\b{re.escape(name)}\b", evidence) and not re.search(rf"\b{re.escape(name.lower())}\b", both)
    )
    present = both.casefold()
    others = [name for name in NAMES if name.casefold() not in present]
    if not candidates or not others:
        return Undefined("no name of the response is in the passages")
    name = _shuffled(candidates, rng)[0]
    other = others[int(rng.integers(len(others)))]
    return Twin(re.sub(rf"\b{re.escape(name)}\b", other, text), item.passages, f"{name} -> {other}")


def negated(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """One statement says the opposite: its negation is removed, or one is put after its verb.

    Of the statements that allow it, it is the one with the most words in the passages. Questions are left alone.
    """
    text = item.response.text
    candidates = [
        (containment(sentence, item.passages), -start, start, end, instead)
        for start, end, instead in _negations(text)
        if not (sentence := _sentence(text, start)).endswith("?")
    ]
    if not candidates:
        return Undefined("no statement whose verb takes or has a plain negation")
    *_, start, end, instead = max(candidates)
    return Twin(f"{text[:start]}{instead}{text[end:]}", item.passages, f"{text[start:end]} -> {instead}")


def stuffed(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """The content words of the question, then the frequent ones of the passages, stand behind as a list."""
    frequent = Counter(word for text in item.passages for word in content_words(text)).most_common()
    words = [*dict.fromkeys((*content_words(item.question), *(word for word, _ in frequent)))][:KEYWORDS]
    if not words:
        return Undefined("neither the question nor a passage has a content word")
    return _behind(item, ", ".join(words), f"+ {len(words)} words of question and passages")


def recited(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """What the prompt says of the best grade stands behind, as if the response spoke of itself.

    Alone it would be another response, which some criteria may rightly prefer; behind a response it answers nothing.
    """
    if not labels.described:
        return Undefined("the prompt does not describe the best grade")
    return _behind(item, labels.described, f"+ {labels.described}")


def _behind(item: ProbeItem, words: str, change: str) -> Twin:
    return Twin(f"{item.response.text.rstrip()}\n\n{words}", item.passages, change, wants="high")


def names(text: str) -> Iterator[str]:
    """The names in a text: runs of words with a capital, without the first word of a sentence.

    >>> list(names("The Kestrel trains of Northline run to Port Ellis. Ask Ada on Monday."))
    ['Kestrel', 'Northline', 'Port Ellis', 'Ada']
    """
    run: list[str] = []
    end = -1
    for match in _WORD.finditer(text):
        word = match[0]
        capital = word[0].isupper() and len(word) > 1 and not word.isupper() and word.casefold() not in NO_NAMES
        first = _BEGINS.search(text, max(0, match.start() - 12), match.start()) is not None
        if run and (not capital or first or text[end : match.start()] != " "):
            yield " ".join(run)
            run = []
        if capital and not first:
            run.append(word)
        end = match.end()
    if run:
        yield " ".join(run)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    # A marker ends with a sign and a space behind its number.
    markers = {match.end() - 2 for match in _MARKER.finditer(text)}
    return (match for match in _NUMBER.finditer(text) if match.end() not in markers)


def _other_number(number: str, taken: set[str]) -> str | None:
    """The number with another last digit before its first mark; of a time, another hour; None if all are taken."""
    head, mark, rest = re.fullmatch(r"(\d+)(\D?)(.*)", number).groups()  # type: ignore[union-attr]
    for step in (3, 4, 2, 5, 6, 7, 1, 8, 9):
        other = (
            f"{(int(head) + step) % 24:0{len(head)}d}" if mark == ":" else head[:-1] + str((int(head[-1]) + step) % 10)
        )
        changed = f"{other}{mark}{rest}"
        if changed not in taken and (len(head) > 1 or other != "0"):
            return changed
    return None


def _negations(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and replacement of each place where a negation can be removed or put."""
    for match in chain(_NOT.finditer(text), _CANNOT.finditer(text)):
        yield match.start(), match.end(), match[1]
    for match in _WONT.finditer(text):
        yield match.start(), match.end(), "will"
    for match in _AFFIRMS.finditer(text):
        yield match.start(), match.end(), "cannot" if match[0] == "can" else f"{match[0]} not"


def _sentence(text: str, place: int) -> str:
    """The sentence around a place, with the sign at its end."""
    start = max((match.end() for match in _END.finditer(text, 0, place)), default=0)
    end = _END.search(text, place)
    return text[start : end.end() if end else len(text)]


def _shuffled(candidates: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [candidates[place] for place in rng.permutation(len(candidates))]


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


def contracted(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """`do not` becomes `don't`; in a response with such contractions they are written out."""
    text = item.response.text
    if _CONTRACTED.search(text):
        return _rewritten(item, _CONTRACTED.sub(r"\1 not", text), "contractions written out")
    for pattern, short in _FULL:
        text = re.sub(pattern, short, text, flags=re.IGNORECASE)
    return _rewritten(item, text, "contracted")


def with_synonyms(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
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


def with_connective(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """A sentence that begins with `The`, `It` and the like begins with `In fact`; the second one if it can."""
    found = [*_STARTER.finditer(item.response.text)]
    match = next((one for one in found if one.start() > 0), found[0] if found else None)
    if match is None:
        return Undefined("no sentence begins with a word that a connective can stand before")
    text = item.response.text
    return _rewritten(
        item, f"{text[: match.start()]}{_CONNECTIVE}, {match[0].lower()}{text[match.end() :]}", f"+ {_CONNECTIVE}"
    )


def padded(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """Empty phrases stand before and behind."""
    return _rewritten(item, f"{_OPENING} {item.response.text.strip()} {_CLOSING}", "opening and closing phrases")


def bulleted(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """Every sentence is an item of a list."""
    sentences = split_sentences(item.response.text)
    if len(sentences) < 2 or _LISTED.search(item.response.text):
        return Undefined("a single sentence, or a list already")
    return _rewritten(item, "\n".join(f"- {sentence}" for sentence in sentences), "sentences as a list")


def bold(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """The first words are bold."""
    return _rewritten(item, _FIRST_WORDS.sub(r"**\1**", item.response.text, count=1), "first words bold")


def headed(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """A heading stands before."""
    return _rewritten(item, f"## Answer\n\n{item.response.text}", "+ ## Answer")


def reordered(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Undefined:
    """The passages stand the other way round."""
    backwards = item.passages[::-1]
    if backwards == item.passages:
        return Undefined("fewer than two passages")
    return Twin(item.response.text, backwards, "passages in reverse order")


def _rewritten(item: ProbeItem, text: str, change: str) -> Twin | Undefined:
    if text == item.response.text:
        return Undefined("nothing in the response to rewrite")
    return Twin(text, item.passages, change)
