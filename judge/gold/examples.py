"""Graded responses as examples in a prompt: which are chosen, and that a comparison leaves them out. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import NamedTuple

from judge.errors import UsageError
from judge.gold.rows import GoldRow, finder, response_digest
from judge.io.ids import groups_of, topic_of
from judge.io.text import count, digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Example
from judge.units import UNITS


class ExampleCandidate(NamedTuple):
    """A graded response that may be an example."""

    example: Example
    topic_id: str
    judged: int | None
    """The judge's grade; None where it gave none."""


def choose_examples(
    candidates: Sequence[ExampleCandidate], k: int, seed: int, most: int
) -> tuple[ExampleCandidate, ...]:
    """At most `k` of the candidates, whose texts have at most `most` characters together.

    The grades take turns, the ends of the scale first. Of a grade, what the judge graded otherwise comes before the
    rest, then what is of a topic without an example; among equals SHA-256 of seed, turn and response decides, so the
    order of the candidates does not.
    """
    remaining = groups_of((candidate.example.grade, candidate) for candidate in candidates)
    chosen: list[ExampleCandidate] = []
    room = most
    while len(chosen) < k:
        before = len(chosen)
        for grade in _ends_first(remaining):
            topics = {candidate.topic_id for candidate in chosen}
            shown = {candidate.example.response_sha256 for candidate in chosen}
            fitting = [
                candidate
                for candidate in remaining[grade]
                if candidate.example.length <= room and candidate.example.response_sha256 not in shown
            ]
            if not fitting or len(chosen) == k:
                continue
            best = min(fitting, key=_order(topics, seed))
            remaining[grade].remove(best)
            chosen.append(best)
            room -= best.example.length
        if len(chosen) == before:
            break
    return tuple(chosen)


def _ends_first(grades: Collection[int]) -> list[int]:
    """Grades from both ends of the scale inwards, of each two the lower one first.

    >>> _ends_first({0, 1, 2, 3})
    [0, 3, 1, 2]
    """
    middle = (min(grades, default=0) + max(grades, default=0)) / 2
    return sorted(grades, key=lambda grade: (-abs(grade - middle), grade))


def _order(topics: Set[str], seed: int) -> Callable[[ExampleCandidate], tuple[bool, bool, str]]:
    def key(candidate: ExampleCandidate) -> tuple[bool, bool, str]:
        example = candidate.example
        agrees = candidate.judged is None or candidate.judged == example.grade
        chance = digest(f"{seed}\n{example.turn_id}\n{example.response_sha256}")
        return agrees, candidate.topic_id in topics, chance

    return key


class WithoutExamples(NamedTuple):
    """The gold rows of a comparison, and how many items were left out."""

    rows: tuple[GoldRow, ...]
    warnings: tuple[str, ...]
    """A sentence for each criterion of which items were left out."""


def without_examples(
    rows: Sequence[GoldRow],
    prompts: Iterable[Criterion],
    pool: Pool | None,
    test_topics: Collection[str] = (),
    apart: Collection[str] = (),
) -> WithoutExamples:
    """The rows without those of responses that one of the prompts shows as an example under its criterion.

    They leave the comparison for every judge in it, so that all are compared on the same items. A UsageError if an
    example is of a topic of the test part: of `test_topics`, or of a row of that part, unless it is one of those that
    are not compared (`apart`). A UsageError if a row names its response by an id and there is no pool to find it in.
    """
    showing = groups_of((prompt.name, prompt) for prompt in dict.fromkeys(prompts) if prompt.examples)
    if not showing:
        return WithoutExamples(tuple(rows), ())
    held_out = {*test_topics, *(row.topic_id for row in rows if row.split == "test")} - set(apart)
    for prompt in (prompt for several in showing.values() for prompt in several):
        _refuse_tested(prompt, held_out)
    digests = {
        name: {example.response_sha256 for prompt in several for example in prompt.examples}
        for name, several in showing.items()
    }
    find = None if pool is None else finder(pool)
    kept: list[GoldRow] = []
    left_out: dict[str, set[tuple[str, str]]] = {name: set() for name in showing}
    for row in rows:
        name = _digest_of(row, find) if row.criterion in showing else ""
        if row.criterion in showing and name in digests[row.criterion]:
            left_out[row.criterion].add((row.turn_id, name))
        else:
            kept.append(row)
    warnings: list[str] = []
    for name, items in left_out.items():
        if items:
            prompts_shown = " and ".join(prompt.prompt_id for prompt in showing[name])
            things = count(len(items), f"gold {UNITS[showing[name][0].unit].nouns.response}")
            shown = "as an example" if len(items) == 1 else "as examples"
            warnings.append(f"{name}: {things} left out for every judge, shown {shown} by {prompts_shown}")
    return WithoutExamples(tuple(kept), tuple(warnings))


def _digest_of(row: GoldRow, find: Callable[[GoldRow], PooledResponse | None] | None) -> str:
    """The digest that names a row's response; empty if the pool has no such response."""
    if row.text_sha256 is not None:
        return row.text_sha256
    if find is None:
        raise UsageError(
            f"gold names response {row.response_id} by its id: --pool is needed to see whether a prompt shows it as an "
            "example"
        )
    response = find(row)
    return "" if response is None else response_digest(response)


def _refuse_tested(prompt: Criterion, held_out: Set[str]) -> None:
    """Refuse a prompt with an example of the test part."""
    tested = [example.turn_id for example in prompt.examples if topic_of(example.turn_id) in held_out]
    if tested:
        raise UsageError(
            f"{prompt.file}: shows {count(len(tested), 'example')} of the test part ({', '.join(tested)}): expected "
            "examples of dev topics alone, as `judge prompts examples` takes them from dev.jsonl"
        )
