"""Public labels as a pool: the responses that a judge is asked about, and the turns that its prompt shows. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np

from judge.errors import InputError
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.io.line_stream import jsonl_bytes
from judge.io.safe import digest, shown, storable
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage, Problem, Record
from judge.runs.records import Exchange, TokenCount, Turn


class Drawn(Record, frozen=True):
    """A dataset with the items of it that a judge is measured on."""

    dataset: Dataset
    every: tuple[LabeledResponse, ...]
    places: tuple[int, ...]
    """Which of `every` are drawn, ascending."""
    digest: str
    """SHA-256 of every item as read: labels and texts."""
    files: Mapping[str, str] = {}
    """File below the folder, to its SHA-256."""
    skipped: Mapping[str, int] = {}
    """Why rows of the files are no items, and how many."""

    @property
    def items(self) -> tuple[LabeledResponse, ...]:
        """The drawn items."""
        return tuple(self.every[place] for place in self.places)

    @property
    def ids(self) -> tuple[str, ...]:
        """The response id of each drawn item; the same whichever other items are drawn."""
        return tuple(f"{self.dataset.name}.{place + 1}" for place in self.places)

    @property
    def has_texts(self) -> bool:
        """Whether a judge can be asked about the items."""
        return all(item.response is not None for item in self.every)

    @property
    def has_turns(self) -> bool:
        """Whether some item has the conversation before it."""
        return any(item.utterance or item.context for item in self.every)


def draw(dataset: Dataset, every: Sequence[LabeledResponse], limit: int | None, rng: np.random.Generator) -> Drawn:
    """Draw items of a dataset without replacement; all of them without a limit, or if there are no more.

    Raises:
        InputError: The dataset has no item, two items of one id, a grade off its scale, or a text that cannot be sent.
    """
    _check(dataset, every)
    size = len(every) if limit is None else min(limit, len(every))
    places = range(size) if size == len(every) else sorted(rng.choice(len(every), size, replace=False).tolist())
    return Drawn(dataset, tuple(every), tuple(places), digest(jsonl_bytes(every).decode()))


def _check(dataset: Dataset, every: Sequence[LabeledResponse]) -> None:
    problems: list[Problem] = []

    def note(code: str, item: LabeledResponse, message: str) -> None:
        problems.append(Problem(code, "error", dataset.name, None, shown(item.item_id), message))

    seen: set[str] = set()
    for item in every:
        if item.item_id in seen:
            note("duplicate_item", item, "two items have this id")
        seen.add(item.item_id)
        if strange := {item.grade, *item.grades} - set(dataset.grades):
            note("off_scale", item, f"grade {min(strange)}: the scale has {', '.join(map(str, dataset.grades))}")
        said = [text for exchange in item.context for text in exchange]
        texts = (item.item_id, item.unit, item.response or "", *item.passages, item.utterance, *said)
        if not all(map(storable, texts)):
            note("unstorable_text", item, "a text has a NUL or half of a surrogate pair")
    if problems:
        raise InputError(f"{dataset.name}: {count(len(problems), 'unusable item')}", problems)
    if not every:
        raise InputError(f"{dataset.name}: the files hold no item")


def bench_pool(samples: Sequence[Drawn]) -> tuple[Pool, dict[str, Turn]]:
    """The drawn items of all datasets as one pool, each with a turn of its own, and these turns by id.

    The ids are made here, since those of the data may be any text; a unit of a dataset is a topic.
    """
    keys: dict[str, str] = {}
    passages: dict[str, Passage] = {}
    responses: list[PooledResponse] = []
    turns: dict[str, Turn] = {}
    for drawn in samples:
        units = sorted({item.unit for item in drawn.every}, key=natural_key)
        topics = {unit: f"{drawn.dataset.name}.{number}" for number, unit in enumerate(units, 1)}
        for item, place, response_id in zip(drawn.items, drawn.places, drawn.ids, strict=True):
            for text in item.passages:
                key = keys.setdefault(text, f"P{len(keys) + 1:06d}")
                passages.setdefault(key, Passage(key, text, "collection"))
            text, topic_id = item.response or "", topics[item.unit]
            turn_id, words = f"{topic_id}_{place + 1}", len(text.split())
            responses.append(
                PooledResponse(
                    response_id=response_id,
                    turn_id=turn_id,
                    topic_id=topic_id,
                    text=text,
                    passages=tuple(dict.fromkeys(keys[passage] for passage in item.passages)),
                    tokens=TokenCount(words, words, words, None),
                    truncated=False,
                    runs=(),
                )
            )
            context = tuple(Exchange(utterance, response) for utterance, response in item.context)
            turns[turn_id] = Turn(turn_id, topic_id, item.utterance, None, context, ())
    return Pool(tuple(responses), passages, ()), turns
