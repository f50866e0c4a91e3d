"""The items of an output folder of `judge run`: its pool, its results, the jury's votes, its conversations."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.criteria import find_criterion
from judge.ask.labels import FAILURES, JUDGMENTS, is_jury
from judge.ask.records import Failure, Judgment
from judge.ask.result_files import read_results
from judge.calibrate.disagreements import AssessorGrade
from judge.errors import InputError, UsageError
from judge.files.stored import read_stored, sha256
from judge.gold.rows import GoldRow, match
from judge.harness.manifest import JOURNAL, read_manifest
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.report.items import BrowsedItem, BrowsedItems, BrowsedSide, Opinion, opinion, used_passages
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.stats.means import consensus


def read_folder_items(
    folder: Path, name: str, side: int, gold: Sequence[GoldRow], own: Sequence[Criterion] = ()
) -> BrowsedItems:
    """Read the items of an output folder.

    Args:
        folder: The folder.
        name: What the browser calls it.
        side: The number of the folder among those that are shown.
        gold: Gold rows; those of other responses than the folder's are ignored.
        own: Prompts of the user that judgments may be under.

    Raises:
        InputError: A file of the folder is missing or damaged.
    """
    pool = read_pool_folder(folder / "pool.jsonl", "passages.jsonl")
    results = read_results(folder / JUDGMENTS, folder / FAILURES)
    votes: dict[tuple[str, str], list[Opinion]] = {}
    if (folder / "members.jsonl").exists():
        for vote in read_results(folder / "members.jsonl", folder / "member_failures.jsonl"):
            votes.setdefault((vote.response_id, vote.criterion), []).append(opinion(vote))
    turns, notes = _conversations(folder, name, pool)
    journal = folder / JOURNAL
    if not journal.is_file():
        notes = (*notes, f"{name} has no {JOURNAL}, so prompts and replies as sent are not shown.")
    return BrowsedItems(
        sides=(BrowsedSide(name, journal if journal.is_file() else None),),
        items=_items(pool, results, votes, side, gold),
        turns=turns,
        scales={(side, criterion): scale for criterion, scale in _scales(results, own).items()},
        notes=notes,
    )


def _items(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    votes: Mapping[tuple[str, str], list[Opinion]],
    side: int,
    gold: Sequence[GoldRow],
) -> Iterator[BrowsedItem]:
    responses = {response.response_id: response for response in pool.responses}
    matched = match(gold, pool)[0] if gold else {}
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
