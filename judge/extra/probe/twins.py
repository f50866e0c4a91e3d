"""The items that probes alter, and their altered twins. Pure."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from judge.extra.probe.alterations import ProbeItem, Twin, WantedLabels
from judge.extra.probe.probes import Probe
from judge.io.ids import groups_of, natural_key, nested
from judge.io.text import digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Passage
from judge.runs.records import Turn
from judge.stats.tables import Undefined
from judge.units import UNITS


def draw_items(
    pool: Pool, n: int, seed: int, *, with_passages: bool, turns: Mapping[str, Turn] | None = None
) -> tuple[ProbeItem, ...]:
    """Draw items evenly over the topics: one of each topic in turn, topics and responses in random order.

    A larger draw with the same seed begins with the items of a smaller one. `with_passages`: of responses all of whose
    used passages have a text. `turns`: id to turn, for the questions.
    """
    complete = [response for response in pool.responses if is_complete(response, pool)]
    by_topic = groups_of((response.topic_id, response) for response in (complete if with_passages else pool.responses))
    topics = sorted(by_topic, key=natural_key)
    order = _rng(seed, "topics").permutation(len(topics))
    queues = []
    for topic_id in (topics[place] for place in order):
        responses = by_topic[topic_id]
        queues.append([responses[place] for place in _rng(seed, "topic", topic_id).permutation(len(responses))])
    drawn: list[PooledResponse] = []
    for depth in range(max(map(len, queues), default=0)):
        drawn += [queue[depth] for queue in queues if depth < len(queue)]
    # Topic to the turns of its responses with the texts of their passages, each pair once.
    sets = nested((response.topic_id, (response.turn_id, _texts(response, pool)), None) for response in complete)
    items = []
    for place, response in enumerate(drawn[:n]):
        # A turn of citations has passages of its own to exchange.
        any_turn = UNITS[pool.unit].part_of_response
        of_topic = sets.get(response.topic_id, ())
        others = tuple(texts for turn, texts in of_topic if any_turn or turn != response.turn_id)
        asked = turns.get(response.turn_id) if turns else None
        items.append(
            ProbeItem(
                response=response,
                passages=_texts(response, pool),
                elsewhere=others,
                place=place,
                question=asked.utterance if asked else "",
            )
        )
    return tuple(items)


def is_complete(response: PooledResponse, pool: Pool) -> bool:
    """Whether a response names passages and all of them have a text."""
    return bool(response.passages) and all(key in pool.passages for key in response.passages)


def make_twin(probe: Probe, item: ProbeItem, criterion: Criterion, seed: int) -> Twin | Undefined:
    """The twin of an item under a probe; random choices depend on seed, probe and item alone."""
    rng = _rng(seed, probe.name, item.response.response_id)
    labels = wanted_labels(criterion)
    if not UNITS[criterion.unit].listed:
        return probe.make(item, labels, rng)
    # What is graded is the passage, so it is altered as a response would be.
    graded = msgspec.structs.replace(item.response, text=item.passages[0])
    twin = probe.make(msgspec.structs.replace(item, response=graded), labels, rng)
    if isinstance(twin, Undefined):
        return twin
    return msgspec.structs.replace(twin, text="", passages=twin.passages if probe.with_passages else (twin.text,))


def wanted_labels(criterion: Criterion) -> WantedLabels:
    """The labels of the best and the worst grade or, where sentences are labeled, of what leads to them."""
    levels = sorted(criterion.scale.levels, key=lambda level: level.grade, reverse=criterion.scale.polarity == "lower")
    if criterion.rollup is None:
        return WantedLabels(levels[-1].label, levels[0].label, levels[-1].description)
    described = {level.label: level.description for level in criterion.sentence_levels}
    counted = criterion.rollup.label
    first = criterion.rollup.cuts[0][1] == levels[-1].grade
    other = next((label for label in described if label not in (counted, criterion.rollup.ignored)), counted)
    best, worst = (counted, other) if first else (other, counted)
    return WantedLabels(best, worst, described[best])


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
    texts: dict[str, None] = {}
    for twin in twins:
        for text in twin.passages:
            texts[text] = None
    return {_key(text): Passage(_key(text), text, "collection") for text in texts}


def _key(text: str) -> str:
    return f"probe#{digest(text)}"


def _texts(response: PooledResponse, pool: Pool) -> tuple[str, ...]:
    return tuple(pool.passages[key].text for key in response.passages if key in pool.passages)


def _rng(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, int(digest("\n".join(names))[:16], 16)])
