"""BLEU and ROUGE of texts against references, by sacrebleu and rouge-score.

K. Papineni, S. Roukos, T. Ward & W.-J. Zhu (2002), BLEU: a method for automatic evaluation of machine translation, ACL.
C.-Y. Lin (2004), ROUGE: a package for automatic evaluation of summaries, ACL workshop. M. Post (2018), A call for
clarity in reporting BLEU scores, WMT.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Literal, NamedTuple, get_args

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

    Words are lower-cased runs of ASCII letters and digits, stemmed by Porter's rules.

    Args:
        texts: Turn to text.
        references: Turn to its references, for every turn of the texts.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGES), use_stemmer=True)
    values: dict[RougeName, dict[str, float]] = {name: {} for name in ROUGES}
    for turn_id, text in texts.items():
        best = scorer.score_multi(references[turn_id], text)
        for name in ROUGES:
            values[name][turn_id] = float(best[name].fmeasure)
    return values


def rouge_settings() -> str:
    """The settings of ROUGE and the version of its package."""
    return f"F|stem:porter|refs:best|version:{version('rouge-score')}"
