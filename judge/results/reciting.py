"""Runs whose responses recite the judge's prompt. Pure."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from judge.io.words import COPIED_RUN, word_runs, words_of
from judge.pool.records import Pool
from judge.records import Criterion
from judge.units import UNITS

_FEW = 3
"""Words of a short run: whatever shares COPIED_RUN words with a prompt has such a run of it at every fixed step."""


def reciting_runs(pool: Pool, criteria: Iterable[Criterion]) -> dict[str, dict[str, float]]:
    """Criterion to the runs that recite its prompt, each with the share of its pooled responses that do.

    They have COPIED_RUN words in a row of the system message or of a level's description, which stand neither in a
    passage that the response used nor in what the user of an interactive run said. Pairs are of two runs, and are left
    out. Source of the threat: Yang et al. 2026, arXiv 2601.13227.
    """
    known = {criterion.name: _prompt_runs(criterion) for criterion in criteria if UNITS[criterion.unit].orders == 1}
    short: set[tuple[str, ...]] = set()
    for run in chain.from_iterable(known.values()):
        short.update(word_runs(run, _FEW))
    step = COPIED_RUN - _FEW + 1
    pooled = Counter[str]()
    reciting: dict[str, Counter[str]] = {name: Counter() for name in known}
    for response in pool.responses if short else ():
        words = words_of(response.text)
        run_ids = {entry.run_id for entry in response.runs}
        pooled.update(run_ids)
        if short.isdisjoint(zip(*(words[place::step] for place in range(_FEW)), strict=False)):
            continue
        shown = [pool.passages[key].text for key in response.passages if key in pool.passages]
        shown += [pool.turns[response.turn_id].utterance] if response.turn_id in pool.turns else []
        own = {*word_runs(words)}.difference(*(word_runs(words_of(text)) for text in shown))
        for name, runs in known.items():
            if not runs.isdisjoint(own):
                reciting[name].update(run_ids)
    shares: dict[str, dict[str, float]] = {}
    for name, counts in reciting.items():
        shares[name] = {run_id: n / pooled[run_id] for run_id, n in counts.items()}
    return shares


def _prompt_runs(criterion: Criterion) -> frozenset[tuple[str, ...]]:
    """Every COPIED_RUN consecutive words of a prompt."""
    levels = (*criterion.scale.levels, *criterion.sentence_levels)
    texts = (criterion.system, *(level.description for level in levels))
    return frozenset(chain.from_iterable(word_runs(words_of(text)) for text in texts))
