"""The items of an output folder of `judge run`: its pool, its results, the jury's votes, its conversations."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.criteria import find_criterion
from judge.ask.labels import FAILURES, JUDGMENTS, is_jury
from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import read_results
from judge.calibrate.disagreements import AssessorGrade
from judge.errors import InputError, UsageError
from judge.gold import GoldByResponse
from judge.gold.rows import GoldRow, match
from judge.io.stored import read_stored, sha256
from judge.jobs.judged import JudgedFolder
from judge.jobs.manifest import JOURNAL, read_manifest
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.report.items import BrowsedItem, BrowsedItems, BrowsedSide, Opinion, opinion, used_passages
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.stats.means import consensus

_BITS = 64
"""Bits of the number that decides whether a response is shown."""


def read_folder_items(
    folder: Path,
    name: str,
    side: int,
    gold: Sequence[GoldRow],
    own: Sequence[Criterion] = (),
    share: float = 1.0,
    judged: JudgedFolder | None = None,
) -> BrowsedItems:
    """Read the items of an output folder.

    Args:
        folder: The folder.
        name: What the browser calls it.
        side: The number of the folder among those that are shown.
        gold: Gold rows; those of other responses than the folder's are ignored.
        own: Prompts of the user that judgments may be under.
        share: The share of the responses without gold to read; the same responses of every folder.
        judged: The folder, if it was read already.

    Raises:
        InputError: A file of the folder is missing or damaged.
    """
    pool = judged.pool if judged else read_pool_folder(folder / "pool.jsonl", "passages.jsonl")
    results = judged.results if judged else read_results(folder / JUDGMENTS, folder / FAILURES)
    matched = match(gold, pool)[0] if gold else {}
    drawn = _Drawn(pool, matched, share)
    votes: dict[tuple[str, str], list[Opinion]] = {}
    if (folder / "members.jsonl").exists():
        for vote in read_results(folder / "members.jsonl", folder / "member_failures.jsonl"):
            if drawn.holds(vote):
                votes.setdefault((vote.response_id, vote.criterion), []).append(opinion(vote))
    turns, notes = _conversations(folder, name, pool)
    journal = folder / JOURNAL
    if not journal.is_file():
        notes = (*notes, f"{name} has no {JOURNAL}, so prompts and replies as sent are not shown.")
    return BrowsedItems(
        sides=(BrowsedSide(name, journal if journal.is_file() else None),),
        items=_items(pool, filter(drawn.holds, results), votes, side, matched),
        turns=turns,
        scales={(side, criterion): scale for criterion, scale in _scales(results, own).items()},
        notes=notes,
    )


def _items(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    votes: Mapping[tuple[str, str], list[Opinion]],
    side: int,
    matched: GoldByResponse,
) -> Iterator[BrowsedItem]:
    responses = {response.response_id: response for response in pool.responses}
    for result in results:
        response = responses.get(result.response_id)
        key = result.response_id, result.criterion
        rows = matched.get(key, ())
        yield BrowsedItem(
            turn_id=result.turn_id,
            topic_id=result.topic_id,
            criterion=result.criterion,
            text=response.text if response else None,
            truncated=response is not None and response.truncated,
            passages=used_passages(response.passages, pool.passages) if response else (),
            runs=tuple((entry.run_id, entry.rank) for entry in response.runs) if response else (),
            opinions={side: opinion(result, tuple(votes.get(key, ())))},
            gold=tuple(AssessorGrade(row.assessor, row.grade, row.made) for row in rows),
            gold_grade=consensus([row.grade for row in rows]) if rows else None,
        )


class _Drawn:
    """The responses that are shown: a share of them, and all that have gold.

    What a response says decides, so two pools that number it differently have the same sample.
    """

    def __init__(self, pool: Pool, matched: GoldByResponse, share: float) -> None:
        self._bound = int(share * 2**_BITS)
        self._every = share >= 1
        self._shown = {response_id for response_id, _ in matched}
        self._pooled: set[str] = set()
        if not self._every:
            for response in pool.responses:
                self._pooled.add(response.response_id)
                if self._falls(response.turn_id, response.text):
                    self._shown.add(response.response_id)

    def holds(self, result: Judgment | Failure) -> bool:
        """Whether the response of a result is shown."""
        if self._every or result.response_id in self._shown:
            return True
        return result.response_id not in self._pooled and self._falls(result.turn_id, result.response_id)

    def _falls(self, turn_id: str, identity: str) -> bool:
        said = f"{turn_id}\n{identity}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(said, digest_size=_BITS // 8).digest(), "big")
        return number < self._bound


def _scales(results: Sequence[Judgment | Failure], own: Sequence[Criterion]) -> dict[str, Scale]:
    """The scales of the prompts as they were when the judge was asked; a jury's digest is not that of a file."""
    by_id = {prompt.prompt_id: prompt for prompt in own}
    prompts = {(r.criterion, r.variant, r.criterion_digest, is_jury(r.judge)) for r in results}
    scales = {}
    for criterion, variant, digest, jury in sorted(prompts):
        prompt_id = f"{criterion}/{variant}"
        try:
            found = find_criterion(prompt_id, by_id)
        except (UsageError, InputError):
            continue
        if jury or found.digest == digest:
            scales[criterion] = found.scale
    return scales


def _conversations(folder: Path, name: str, pool: Pool) -> tuple[dict[str, Turn], tuple[str, ...]]:
    """The turns of the pool's conversations and of the topics file, and a note where the latter cannot be shown."""
    turns, notes = _of_topics(folder, name)
    if all(response.turn_id in pool.turns for response in pool.responses):
        notes = ()
    return turns_shown(pool, turns) or {}, notes


def _of_topics(folder: Path, name: str) -> tuple[dict[str, Turn], tuple[str, ...]]:
    """The turns of the topics file that the manifest names, if it still is the same file; else a note."""
    manifest: Mapping[str, Any] = read_manifest(folder) or {}
    options = manifest.get("options")
    named = options.get("topics") if isinstance(options, dict) else None
    recorded = manifest.get("configuration", {}).get("topics")
    if not isinstance(named, str) or recorded is None:
        return {}, (f"{name} was made without a topics file, so conversations are not shown.",)
    try:
        path = Path(named).expanduser()
        same = sha256(read_stored(path)) == recorded
        turns = {turn.turn_id: turn for topic in read_topics(path) for turn in topic.turns} if same else {}
    except (InputError, RuntimeError):
        # Nobody may have the home that the path begins with.
        return {}, (f"Conversations are not shown: {named}, the topics file of {name}, is not there.",)
    if not same:
        return {}, (f"Conversations are not shown: {named} has changed since {name} was made.",)
    return turns, ()
