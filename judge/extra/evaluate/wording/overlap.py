"""BLEU and ROUGE of texts against references, by sacrebleu and rouge-score.

K. Papineni, S. Roukos, T. Ward & W.-J. Zhu (2002), BLEU: a method for automatic evaluation of machine translation, ACL.
C.-Y. Lin (2004), ROUGE: a package for automatic evaluation of summaries, ACL workshop. M. Post (2018), A call for
clarity in reporting BLEU scores, WMT.
"""

import functools
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal, NamedTuple, get_args

_WORD = r"(?V1)\p{Han}|\p{Hiragana}|\p{Katakana}|(?:[[\p{L}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]\p{M}*)+"


def rouge_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; a character of Chinese or Japanese is a word, since no space ends one.

    In a text of ASCII they are those of rouge-score before it stems them.

    >>> rouge_words("Café no. 9, naïve_x: 茶です")
    ['café', 'no', '9', 'naïve', 'x', '茶', 'で', 'す']
    """
    words: list[str] = _pattern().findall(text.lower())
    return words


@functools.cache
def _pattern() -> Any:
    import regex

    return regex.compile(_WORD)


RougeName = Literal["rouge1", "rouge2", "rougeL"]
ROUGES: tuple[RougeName, ...] = get_args(RougeName)


class CorpusBleu(NamedTuple):
    """BLEU of all texts together, which is no mean over texts."""

    value: float
    """From 0 to 100."""
    signature: str
    """The settings, as sacrebleu writes them."""


def corpus_bleu(texts: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusBleu:
    """BLEU with n-grams up to four words, in sacrebleu's standard settings.

    Args:
        texts: The texts, at least one; an empty one has no n-gram and makes all texts together shorter.
        references: For each text its references, one or more.
    """
    from sacrebleu.metrics import BLEU

    # `force` only keeps a warning back.
    bleu = BLEU(force=True)
    most = max(map(len, references))
    streams = [[given[place] if place < len(given) else None for given in references] for place in range(most)]
    score = bleu.corpus_score(texts, streams)
    return CorpusBleu(float(score.score), str(bleu.get_signature()))


def rouge_scores(
    texts: Mapping[str, str], references: Mapping[str, Sequence[str]]
) -> dict[RougeName, dict[str, float]]:
    """F of each ROUGE and turn, against the reference that is best for it.

    Words are those of `rouge_words`; those of ASCII are stemmed by Porter's rules, as rouge-score does. A turn whose
    references have no word has no value: there is nothing that a text could share.

    Args:
        texts: Turn to text.
        references: Turn to its references, for every turn of the texts.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGES), tokenizer=_StemmedWords())
    values: dict[RougeName, dict[str, float]] = {name: {} for name in ROUGES}
    for turn_id, text in texts.items():
        if not has_words(references[turn_id]):
            continue
        best = scorer.score_multi(references[turn_id], text)
        for name in ROUGES:
            values[name][turn_id] = float(best[name].fmeasure)
    return values


def has_words(references: Sequence[str]) -> bool:
    """Whether some reference has a word for ROUGE."""
    return any(map(rouge_words, references))


class _StemmedWords:
    """A tokenizer of rouge-score."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer

        self._stem = PorterStemmer().stem

    def tokenize(self, text: str) -> list[str]:
        """The words of a text; rouge-score leaves those of up to three letters as they are."""
        return [self._stem(word) if len(word) > 3 and word.isascii() else word for word in rouge_words(text)]


def rouge_settings() -> str:
    """The settings of ROUGE and the version of its package."""
    return f"F|tok:unicode|stem:porter|refs:best|version:{version('rouge-score')}"
