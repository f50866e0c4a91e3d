"""Which items are drawn, and their twins; an item's twins are the same whichever other items are drawn. Pure."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec
import numpy as np

from judge.extra.probe.records import Inapplicable, Probe, ProbeItem, Twin, WantedLabels
from judge.io.ids import natural_key
from judge.io.safe import digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Passage


def draw_items(pool: Pool, n: int, seed: int, *, with_passages: bool) -> tuple[ProbeItem, ...]:
    """Draw items evenly over the topics: one of each topic in turn, topics and responses in random order.

    A larger draw with the same seed begins with the items of a smaller one.

    Args:
        pool: The responses.
        n: How many items.
        seed: Of the draw.
        with_passages: Draw only responses all of whose used passages have a text.
    """
    by_topic: dict[str, list[PooledResponse]] = defaultdict(list)
    for response in pool.responses:
        if not with_passages or is_complete(response, pool):
            by_topic[response.topic_id].append(response)
    topics = sorted(by_topic, key=natural_key)
    order = _rng(seed, "topics").permutation(len(topics))
    queues = []
    for topic_id in (topics[place] for place in order):
        responses = by_topic[topic_id]
        queues.append([responses[place] for place in _rng(seed, "topic", topic_id).permutation(len(responses))])
    deepest = max(map(len, queues), default=0)
    drawn = [queue[depth] for depth in range(deepest) for queue in queues if depth < len(queue)][:n]
    elsewhere = _elsewhere(pool)
    return tuple(
        ProbeItem(
            response,
            _texts(response, pool),
            tuple(texts for turn, texts in elsewhere[response.topic_id] if turn != response.turn_id),
            place,
        )
        for place, response in enumerate(drawn)
    )


def is_complete(response: PooledResponse, pool: Pool) -> bool:
    """Whether a response names passages and all of them have a text."""
    return bool(response.passages) and all(key in pool.passages for key in response.passages)


def make_twin(probe: Probe, item: ProbeItem, criterion: Criterion, seed: int) -> Twin | Inapplicable:
    """The twin of an item under a probe; random choices depend on seed, probe and item alone."""
    rng = _rng(seed, probe.name, item.response.response_id)
    return probe.make(item, wanted_labels(criterion), rng)


def wanted_labels(criterion: Criterion) -> WantedLabels:
    """The labels of the best and the worst grade or, where sentences are labeled, of what leads to them."""
    levels = sorted(criterion.scale.levels, key=lambda level: level.grade, reverse=criterion.scale.polarity == "lower")
    if criterion.rollup is None:
        return WantedLabels(levels[-1].label, levels[0].label)
    counted = criterion.rollup.label
    others = (
        level.label for level in criterion.sentence_levels if level.label not in (counted, criterion.rollup.ignored)
    )
    other = next(others, counted)
    return (
        WantedLabels(counted, other)
        if criterion.rollup.cuts[0][1] == levels[-1].grade
        else WantedLabels(other, counted)
    )


def twin_response(item: ProbeItem, twin: Twin, name: str) -> PooledResponse:
    """The twin as a pooled response, its passages under keys of `passages_of`."""
    return msgspec.structs.replace(
        item.response,
        response_id=f"{item.response.response_id}.{name}",
        text=twin.text,
        passages=tuple(map(_key, twin.passages)),
    )


def passages_of(twins: Iterable[Twin]) -> dict[str, Passage]:
    """The passages of twins, by key."""
    texts = {text: None for twin in twins for text in twin.passages}
    return {_key(text): Passage(_key(text), text, "collection") for text in texts}


def _key(text: str) -> str:
    return f"probe#{digest(text)}"


def _texts(response: PooledResponse, pool: Pool) -> tuple[str, ...]:
    return tuple(pool.passages[key].text for key in response.passages if key in pool.passages)


def _elsewhere(pool: Pool) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Topic to the turns of its responses with the texts of their passages, each pair once."""
    sets: dict[str, dict[tuple[str, tuple[str, ...]], None]] = defaultdict(dict)
    for response in pool.responses:
        if is_complete(response, pool):
            sets[response.topic_id][response.turn_id, _texts(response, pool)] = None
    return defaultdict(list, {topic_id: list(pairs) for topic_id, pairs in sets.items()})


def _rng(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, int(digest("\n".join(names))[:16], 16)])
