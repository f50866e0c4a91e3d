"""The items of an output folder of `judge run`: its pool, its results, the jury's votes, its conversations."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import multimode
from typing import Any

import msgspec

from judge.ask.criteria import criterion_names, find_criterion
from judge.ask.records import Failure, Judgment
from judge.ask.results import FAILURES, JUDGMENTS, MEMBERS, is_jury, read_results
from judge.calibrate.disagreements import DISAGREEMENTS, Disagreement, JudgeGrade, assessor_grade, parse_disagreements
from judge.calibrate.gold_tables import apart, read_gold_tables
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldByResponse, GoldRow, deciding, match, read_gold
from judge.io.files import StrPath, read_stored, sha256
from judge.io.ids import groups_of, natural_key
from judge.io.text import count
from judge.jobs.judged import JudgedFolder
from judge.jobs.manifest import JOURNAL, OutputFolder
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool, RunEntry
from judge.records import Criterion, Scale
from judge.report import items as listed
from judge.results.used import relevance_words
from judge.runs.records import Turn
from judge.runs.topics import read_topics, stored_topics, turns_by_id
from judge.units import UNITS

_BITS = 64
"""Bits of the number that decides whether a response is shown."""


def read_folder_items(
    judged: JudgedFolder, name: str, side: int, gold: Sequence[GoldRow], own: Sequence[Criterion], share: float
) -> listed.BrowsedItems:
    """The items of an output folder of `judge run`.

    `share`: the share of the responses without gold to read; the same responses of every folder. An InputError if a
    file of the folder is missing or damaged.
    """
    folder = judged.path
    pool = judged.pool
    matched = match(gold, pool)[0] if gold else {}
    drawn = _Drawn(pool, matched, share)
    replies = OutputFolder(folder).replies if (folder / MEMBERS).exists() else ()
    votes = groups_of(
        ((vote.response_id, vote.criterion), listed.opinion(vote)) for vote in replies if drawn.holds(vote)
    )
    turns, notes = _of_topics(folder, name)
    if all(response.turn_id in pool.turns for response in pool.responses):
        notes = ()
    journal = folder / JOURNAL
    if not journal.is_file():
        notes = (*notes, f"{name} has no {JOURNAL}, so prompts and replies as sent are not shown.")
    sides = ((name, journal if journal.is_file() else None),)
    scales = _scales(judged.results, own)
    relevance: dict[str, dict[str, str]] = {}
    for passage in judged.used.passages if judged.used is not None else ():
        relevance.setdefault(passage.turn_id, {})[passage.passage_id] = relevance_words(passage)
    items = _run_items(pool, filter(drawn.holds, judged.results), votes, side, matched, relevance)
    of_side = {(side, criterion): scale for criterion, scale in scales.items()}
    return listed.BrowsedItems(
        sides=sides, items=items, turns=turns_shown(pool, turns) or {}, scales=of_side, notes=notes
    )


def _run_items(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    votes: Mapping[tuple[str, str], list[listed.Opinion]],
    side: int,
    matched: GoldByResponse,
    relevance: Mapping[str, Mapping[str, str]],
) -> Iterator[listed.BrowsedItem]:
    responses = {response.response_id: response for response in pool.responses}
    if UNITS[pool.unit].part_of_response:
        # As in the response of the first run that has it, so that sentences follow each other.
        places = {
            name: min(((natural_key(of.run_id), of.rank, of.citation) for of in response.runs), default=())
            for name, response in responses.items()
        }
        results = sorted(results, key=lambda result: (natural_key(result.turn_id), places.get(result.response_id, ())))
    for result in results:
        response = responses.get(result.response_id)
        key = result.response_id, result.criterion
        rows = matched.get(key, ())
        modes = multimode(row.grade for row in deciding(rows))
        yield listed.BrowsedItem(
            turn_id=result.turn_id,
            topic_id=result.topic_id,
            criterion=result.criterion,
            text=response.shown if response else None,
            truncated=response is not None and response.truncated,
            passages=listed.used_passages(response.passages, pool.passages, relevance.get(result.turn_id))
            if response
            else (),
            runs=tuple((entry.run_id, _place(entry)) for entry in response.runs) if response else (),
            opinions={side: listed.opinion(result, tuple(votes.get(key, ())))},
            gold=tuple(assessor_grade(row) for row in rows),
            gold_grade=modes[0] if len(modes) == 1 else None,
        )


def _place(entry: RunEntry) -> str:
    """Where a run has a response, unless it is the first one, or a citation."""
    if entry.citation:
        return f"sentence {entry.rank}, citation {entry.citation}"
    return "" if entry.rank == 1 else f"rank {entry.rank}"


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
                if self._falls(response.turn_id, response.shown):
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


def _of_topics(folder: Path, name: str) -> tuple[dict[str, Turn], tuple[str, ...]]:
    """The turns of the topics file that the manifest names, if it still is the same file; else a note."""
    manifest: Mapping[str, Any] = OutputFolder(folder).manifest or {}
    options = manifest.get("options")
    named = options.get("topics") if isinstance(options, dict) else None
    recorded = manifest.get("configuration", {}).get("topics")
    if recorded is None:
        return {}, (f"{name} was made without a topics file, so conversations are not shown.",)
    if not isinstance(named, str):
        return {}, (f"Conversations are not shown: {name} does not say where its topics file is.",)
    try:
        path = Path(named).expanduser()
        if sha256(stored_topics(path)) != recorded:
            return {}, (f"Conversations are not shown: {named} has changed since {name} was made.",)
        return turns_by_id(read_topics(path)), ()
    except (InputError, RuntimeError):
        # Nobody may have the home that the path begins with.
        return {}, (f"Conversations are not shown: {named}, the topics file of {name}, is not there.",)


_Said = tuple[str, str, str]
"""Judge, prompt and response id."""


def read_calibration_items(folder: Path, name: str, first: int, *, alone: bool) -> listed.BrowsedItems:
    """The items of an output folder of `judge calibrate`; `alone`: whether no other folder is shown.

    An InputError if the file of the items cannot be read; every damaged line is listed.
    """
    if not (folder / DISAGREEMENTS).is_file():
        lacks = f"{name} has no {DISAGREEMENTS}: the same `judge calibrate` command writes it."
        return listed.BrowsedItems(sides=(), items=(), turns={}, scales={}, notes=(lacks,))
    path = folder / DISAGREEMENTS
    lines = parse_disagreements(read_stored(path), str(path))
    judges = dict.fromkeys(_judge(said) for line in lines for said in line.judges)
    numbers = {judge: first + number for number, judge in enumerate(judges)}
    turns = {
        line.turn_id: Turn(
            turn_id=line.turn_id,
            topic_id=line.topic_id,
            utterance=line.utterance,
            resolved_utterance=None,
            context=line.context,
            ptkb=(),
        )
        for line in lines
        if line.utterance is not None
    }
    journal = folder / JOURNAL
    asked = _asked(folder, {(*_judge(said), line.response_id) for line in lines for said in line.judges})
    there = journal if journal.is_file() else None
    sides = tuple((_name("" if alone else name, judge), there) for judge in judges)
    return listed.BrowsedItems(
        sides=sides, items=_calibration_items(lines, numbers, asked), turns=turns, scales={}, notes=()
    )


def _asked(folder: Path, wanted: Collection[_Said]) -> dict[_Said, listed.Opinion]:
    """What the judges said of the shown responses, where the calibration asked them; of several samples, the first."""
    if not (folder / JUDGMENTS).is_file():
        return {}
    results = read_results(folder / JUDGMENTS, folder / FAILURES)
    keyed = (((one.judge, f"{one.criterion}/{one.variant}", one.response_id), one) for one in results)
    return {key: listed.opinion(one) for key, one in keyed if not one.sample and key in wanted}


def _judge(said: JudgeGrade) -> tuple[str, str]:
    return said.judge, said.prompt or ""


def _name(folder: str, judge: tuple[str, str]) -> str:
    return ": ".join(filter(None, (folder, ", ".join(filter(None, judge)))))


def _calibration_items(
    lines: Sequence[Disagreement], sides: Mapping[tuple[str, str], int], asked: Mapping[_Said, listed.Opinion]
) -> Iterator[listed.BrowsedItem]:
    for line in lines:
        differences = [said.difference for said in line.judges]
        yield listed.BrowsedItem(
            turn_id=line.turn_id,
            topic_id=line.topic_id,
            criterion=line.criterion,
            text=line.text,
            truncated=False,
            passages=tuple((passage.id, passage.text, None, "") for passage in line.passages),
            runs=(),
            opinions={sides[_judge(said)]: _opinion(line, said, asked) for said in line.judges},
            gold=line.gold,
            gold_grade=line.gold_grade,
            # Each difference is the judge's distance from gold, on whatever scale the calibration compared.
            apart=listed.Gaps(
                gold=max((listed.spread([difference, 0]) for difference in differences), default=None),
                judges=listed.spread(differences) if len(differences) > 1 else None,
                jury=None,
            ),
        )


def _opinion(line: Disagreement, said: JudgeGrade, asked: Mapping[_Said, listed.Opinion]) -> listed.Opinion:
    given = asked.get((*_judge(said), line.response_id)) or listed.Opinion(
        response_id=line.response_id,
        judge=said.judge,
        prompt=said.prompt or "",
        grade=said.grade,
        reason=said.reason if said.grade is None else None,
        expected=said.expected,
        rationale=said.rationale,
    )
    return msgspec.structs.replace(given, off=listed.spread([said.difference, 0]))


MOST_ITEMS = 20_000
"""About how many judgments a page shows: with prompts and passages they take 65 MB, and nobody reads as many."""
_Key = tuple[str, str, str | None, tuple[str, ...], str]


def gather(
    folders: Mapping[str, JudgedFolder | Path],
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    most: int = MOST_ITEMS,
    *,
    columns: Sequence[str] = (),
) -> listed.BrowsedItems:
    """The items of all folders, or a sample of them; folders are by name, a path is one of `judge calibrate`.

    `most`: about how many judgments to read, beside those of responses with gold. `columns`: `ROLE=COLUMN` of tables
    of people's grades. An InputError if a file is damaged. A UsageError if there is no such prompt.
    """
    own, wanted = _prompts(prompts, criterion)
    tables, files = apart(gold, columns)
    given = [row for path in files for row in read_gold(path)]
    # A page that shows them one by one would teach the test part to whoever tunes prompts.
    rows = [row for row in given if row.split != "test"]
    sides: list[tuple[str, Path | None]] = []
    scales: dict[tuple[int, str], Scale] = {}
    turns: dict[str, Turn] = {}
    notes: list[str] = []
    if hidden := len(given) - len(rows):
        notes.append(f"Not shown here: {count(hidden, 'grade')} by assessors on a test part.")
    shown = 0
    number = _judgments(folders.values(), wanted)
    share = min(1.0, most / max(1, number))
    together: dict[tuple[_Key, int], list[listed.BrowsedItem]] = {}
    for name, folder in folders.items():
        if isinstance(folder, JudgedFolder):
            names = {criterion.name for criterion in folder.criteria}
            of_tables = read_gold_tables(tables, columns, names, folder.pool, folder.criteria)
            labeled = (*rows, *of_tables.rows)
            read = read_folder_items(folder, name, len(sides), labeled, own, share)
        else:
            read = read_calibration_items(folder, name, len(sides), alone=len(folders) == 1)
        sides += read.sides
        scales |= read.scales
        turns = {**read.turns, **turns}
        notes += read.notes
        # Texts that runs gave may make two responses of one folder alike in all that other folders can know.
        alike: Counter[_Key] = Counter()
        for item in read.items:
            if wanted in (None, item.criterion):
                key = _key(item)
                together.setdefault((key, alike[key]), []).append(item)
                alike[key] += 1
                shown += isinstance(folder, JudgedFolder)
    if share < 1:
        beside = " and those with grades by assessors" if rows or tables else ""
        notes.append(
            f"Shown here: {shown:,} of {number:,} judgments, those of a random part of the responses{beside}. "
            f"The tables are over all of them, and {JUDGMENTS} holds them."
        )
    merged = sorted(map(_merged, together.values()), key=_order)
    used = {item.turn_id for item in merged}
    kept = {turn_id: turn for turn_id, turn in turns.items() if turn_id in used}
    return listed.BrowsedItems(
        sides=tuple(sides), items=merged, turns=kept, scales=scales, notes=tuple(dict.fromkeys(notes))
    )


def _judgments(folders: Iterable[JudgedFolder | Path], wanted: str | None) -> int:
    """The number of judgments and failures of folders, or of those under the wanted criterion."""
    number = 0
    for folder in folders:
        if isinstance(folder, JudgedFolder):
            results = folder.results
            number += len(results) if wanted is None else sum(result.criterion == wanted for result in results)
    return number


def _prompts(prompts: Sequence[StrPath], criterion: str | None) -> tuple[list[Criterion], str | None]:
    """The prompts of the user, and the name of the only criterion, which may be given as the file of a prompt."""
    own = [find_criterion(prompt) for prompt in prompts]
    if criterion is None or criterion in {*criterion_names(), *(prompt.name for prompt in own)}:
        return own, criterion
    own.append(find_criterion(criterion))
    return own, own[-1].name


def _key(item: listed.BrowsedItem) -> _Key:
    # Two pools number the same response differently, so its content names it.
    passages = tuple(sorted(name for name, *_ in item.passages))
    if item.text is not None:
        return item.turn_id, item.criterion, item.text, passages, "text"
    return item.turn_id, item.criterion, next(iter(item.opinions.values())).response_id, passages, "id"


def _merged(same: Sequence[listed.BrowsedItem]) -> listed.BrowsedItem:
    """One item of all sides; conversation and passages are those of the first folder that has them."""
    if len(same) == 1:
        return same[0]
    first = same[0]
    graded = next((item for item in same if item.gold), first)
    return msgspec.structs.replace(
        first,
        truncated=any(item.truncated for item in same),
        runs=tuple(sorted({run for item in same for run in item.runs}, key=lambda run: tuple(map(natural_key, run)))),
        passages=next(
            (item.passages for item in same if all(text is not None for _, text, *_ in item.passages)), first.passages
        ),
        opinions={side: said for item in same for side, said in item.opinions.items()},
        gold=graded.gold,
        gold_grade=graded.gold_grade,
        apart=None,
    )


def _order(item: listed.BrowsedItem) -> tuple[object, ...]:
    first = item.opinions[min(item.opinions)]
    return natural_key(item.turn_id), natural_key(first.response_id), natural_key(item.criterion)
