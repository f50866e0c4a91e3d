"""Which used passage belongs to a sentence: the one that a checker found, else the one with most of its words. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from judge.io.sentences import split_sentences
from judge.io.words import content_words
from judge.report.items import BrowsedItem


class Support(NamedTuple):
    """The passage to look at."""

    passage: int
    """Its place among the used passages, from 0."""
    share: float
    """The share of the sentence's content words that it holds; of a checker, its probability of support."""


def supports(sentences: Sequence[str], passages: Sequence[str | None]) -> list[Support | None]:
    """For each sentence the passage that holds most of its words, the first of equals; None where none holds a word.

    >>> supports(["The ferry leaves at dawn.", "Hello!"], ["A bus.", "A ferry leaves the pier at noon."])
    [Support(passage=1, share=0.6666666666666666), None]
    """
    known = [set(content_words(text or "")) for text in passages]
    found: list[Support | None] = []
    for sentence in sentences:
        words = content_words(sentence)
        shares = [sum(word in held for word in words) / len(words) for held in known] if words else []
        best = max(shares, default=0.0)
        found.append(Support(shares.index(best), best) if best else None)
    return found


def checked_supports(item: BrowsedItem, sentences: int) -> list[Support | None] | None:
    """For each sentence the first passage that a checker says supports it; None if no checker judged the item."""
    places = {used.passage_id: place for place, used in reversed([*enumerate(item.passages)])}
    for said in item.opinions.values():
        if said.support and len(said.support) == sentences:
            found = [
                (places.get(one.passages[0].partition("#")[0]) if one.passages else None, one) for one in said.support
            ]
            return [None if at is None else Support(at, one.probability or 0.0) for at, one in found]
    return None


def labeled_sentences(item: BrowsedItem) -> tuple[str, ...]:
    """The sentences of an item's response, if a judge labeled as many; else none."""
    labeled = {len(said.sentences) for top in item.opinions.values() for said in (top, *top.votes) if said.sentences}
    sentences = split_sentences(item.text) if labeled and item.text is not None else ()
    return sentences if len(sentences) in labeled else ()
