"""Records that tests of every room need: a scale, a response in a pool."""

from collections.abc import Iterable, Sequence
from typing import Any

from judge.io.ids import topic_of
from judge.pool.records import PooledResponse, RunEntry
from judge.records import Level, Scale
from judge.runs.records import Provenance, TokenCount


def scale(
    grades: Iterable[int] = range(4),
    polarity: Any = "higher",
    positive: tuple[int, ...] = (2, 3),
    unable: Level | None = None,
) -> Scale:
    """A scale of these grades, each with itself as its label."""
    levels = tuple(Level(grade, str(grade), "") for grade in grades)
    return Scale(levels=levels, polarity=polarity, positive=positive, unable=unable)


def pooled(
    response_id: str,
    turn_id: str,
    *runs: str | tuple[str, int],
    text: str = "text",
    passages: Sequence[str] = (),
    **changed: Any,
) -> PooledResponse:
    """A response that runs gave, at rank 1 unless a rank stands beside; `changed` gives further fields."""
    entries = []
    for run in runs:
        run_id, rank = (run, 1) if isinstance(run, str) else run
        entries.append(RunEntry(run_id=run_id, rank=rank, provenance_rule="used", text_sha256="0" * 64))
    words = len(text.split())
    return PooledResponse(
        response_id=response_id,
        turn_id=turn_id,
        topic_id=topic_of(turn_id),
        text=text,
        passages=tuple(passages),
        tokens=TokenCount(bare=words, english=words, whitespace=words, cut=None),
        truncated=False,
        runs=tuple(entries),
        **changed,
    )


def psg(passage_id: str, score: float | None = None, used: bool | None = None, text: str | None = None) -> Provenance:
    return Provenance(passage_id, score, used, text)
