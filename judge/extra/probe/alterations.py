"""Alterations after which the passages support a response less: the grade must fall. Pure.

Each takes one thing away or makes one thing wrong, by a rule that needs no model. A number or a name is altered only if
the passages have it, and what replaces it is in none of them, so that the altered statement has no support.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from judge.extra.probe.records import Inapplicable, ProbeItem, Twin, WantedLabels
from judge.io.words import containment

_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,9}(?:[.,:]\d{1,9})*+(?![\w\]]|[/-]\d)")
_MARKER = re.compile(r"^[ \t]*\(?\d{1,3}[.)]\s", re.MULTILINE)
"""The number of a list item, which states nothing."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?:;\n\"“”(*#•>-])[\s\"'“‘(*_#>-]*$")
"""What stands before the first word of a sentence, a line or a quotation."""
_END = re.compile(r"[.!?\n]")
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


def swapped(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """The passages are those of another turn of the conversation: the ones with the fewest words of the response."""
    if not item.passages:
        return Inapplicable("the response names no passage")
    others = [texts for texts in item.elsewhere if not set(texts) & set(item.passages)]
    if not others:
        return Inapplicable("no other turn of the topic has other passages")
    farthest = min(others, key=lambda texts: (containment(item.response.text, texts), texts))
    return Twin(item.response.text, farthest, "passages of another turn")


def dropped(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """The passage with the most words of the response is gone; the others stay."""
    if len(item.passages) < 2:
        return Inapplicable("fewer than two passages")
    shares = [containment(item.response.text, [text]) for text in item.passages]
    place = shares.index(max(shares))
    left = item.passages[:place] + item.passages[place + 1 :]
    return Twin(item.response.text, left, f"passage {place + 1} of {len(item.passages)} dropped")


def invented(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """A statement without support stands at the end."""
    start = int(rng.integers(len(INVENTED)))
    for sentence in (*INVENTED[start:], *INVENTED[:start]):
        if containment(sentence, [*item.passages, item.response.text]) < _SUPPORTED:
            text = item.response.text.rstrip()
            between = " " if text.endswith((".", "!", "?")) else "\n"
            return Twin(f"{text}{between}{sentence}", item.passages, f"+ {sentence}")
    return Inapplicable("the passages may support every invented sentence")


def altered_number(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """A number that the passages have is another one, in digits or as a word from two to twelve."""
    text, evidence = item.response.text, "\n".join(item.passages)
    known = {match[0] for match in _numbers(evidence)}
    mine = [*_numbers(text)]
    taken = known | {match[0] for match in mine}
    for number in _shuffled(sorted({match[0] for match in mine} & known), rng):
        other = _other_number(number, taken)
        if other is not None:
            return Twin(
                _replaced(text, [match for match in mine if match[0] == number], other),
                item.passages,
                f"{number} -> {other}",
            )
    words = {word.casefold() for word in _WORD.findall(evidence)}
    used = words | {word.casefold() for word in _WORD.findall(text)}
    spelled = [word for word in NUMBER_WORDS if word in words and re.search(rf"\b{word}\b", text)]
    for word in _shuffled(spelled, rng):
        start = NUMBER_WORDS.index(word)
        for other in (NUMBER_WORDS[(start + step) % len(NUMBER_WORDS)] for step in range(3, len(NUMBER_WORDS) + 2)):
            if other not in used and str(NUMBER_WORDS.index(other) + 2) not in taken:
                return Twin(re.sub(rf"\b{word}\b", other, text), item.passages, f"{word} -> {other}")
    return Inapplicable("no number of the response is in the passages")


def altered_name(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """A name that the passages have is an invented one."""
    text, evidence = item.response.text, "\n".join(item.passages)
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
        return Inapplicable("no name of the response is in the passages")
    name = _shuffled(candidates, rng)[0]
    other = others[int(rng.integers(len(others)))]
    altered = re.sub(rf"\b{re.escape(name)}\b", other, text)
    return Twin(altered, item.passages, f"{name} -> {other}")


def negated(item: ProbeItem, labels: WantedLabels, rng: np.random.Generator) -> Twin | Inapplicable:
    """One statement says the opposite: its negation is removed, or one is put after its verb.

    Of the statements that allow it, it is the one with the most words in the passages. Questions are left alone.
    """
    text = item.response.text
    candidates = [
        (_support(text, start, item.passages), -start, start, end, instead)
        for start, end, instead in _negations(text)
        if not _is_question(text, end)
    ]
    if not candidates:
        return Inapplicable("no statement whose verb takes or has a plain negation")
    *_, start, end, instead = max(candidates)
    return Twin(f"{text[:start]}{instead}{text[end:]}", item.passages, f"{text[start:end]} -> {instead}")


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


def _replaced(text: str, places: Sequence[re.Match[str]], other: str) -> str:
    for match in reversed(places):
        text = f"{text[: match.start()]}{other}{text[match.end() :]}"
    return text


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
    for match in _NOT.finditer(text):
        yield match.start(), match.end(), match[1]
    for match in _CANNOT.finditer(text):
        yield match.start(), match.end(), "can"
    for match in _WONT.finditer(text):
        yield match.start(), match.end(), "will"
    for match in _AFFIRMS.finditer(text):
        yield match.start(), match.end(), "cannot" if match[0] == "can" else f"{match[0]} not"


def _is_question(text: str, place: int) -> bool:
    end = _END.search(text, place)
    return end is not None and end[0] == "?"


def _support(text: str, place: int, passages: Sequence[str]) -> float:
    """The share of content words in the passages of the sentence around a place."""
    start = max((match.end() for match in _END.finditer(text, 0, place)), default=0)
    end = _END.search(text, place)
    return containment(text[start : end.start() if end else len(text)], passages)


def _shuffled(candidates: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [candidates[place] for place in rng.permutation(len(candidates))]
