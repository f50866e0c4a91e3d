"""The items of several folders as one list: the same response under the same criterion is one item of several sides."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from judge.ask.criteria import criterion_names, find_criterion
from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.stored_results import read_results
from judge.calibrate.report.disagreements import DISAGREEMENTS
from judge.errors import InputError
from judge.gold.rows import GoldRow, read_gold
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.io.paths import StrPath
from judge.jobs.judged import JudgedFolder
from judge.records import Criterion, Scale
from judge.report.folders import FINDINGS, folder_names
from judge.report.items import BrowsedItem, BrowsedItems, BrowsedSide
from judge.report.items_calibration import read_calibration_items
from judge.report.items_folder import read_folder_items
from judge.runs.records import Turn

MOST_ITEMS = 50_000
"""About how many judgments a page shows: it would need minutes to open, and nobody reads as many."""
_Key = tuple[str, str, str | None, tuple[str, ...], str]


def gather(
    folders: Sequence[Path],
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    judged: Mapping[Path, JudgedFolder] | None = None,
    most: int = MOST_ITEMS,
) -> BrowsedItems:
    """Read the items of all folders, or a sample of them.

    Args:
        folders: Output folders of `judge run` or folders of `judge calibrate`.
        gold: Gold files, whose grades stand beside the judges'.
        criterion: The only criterion, or the file of the prompt that the judgments are under.
        prompts: Prompt files of the user, for judgments under them.
        judged: Those of the folders that were read already.
        most: About how many judgments to read, beside those of responses with gold.

    Raises:
        InputError: A folder is neither, or a file is damaged.
        UsageError: There is no such prompt.
    """
    own, wanted = _prompts(prompts, criterion)
    given = [row for path in gold for row in read_gold(path)]
    # A page that shows them one by one would teach the test part to whoever tunes prompts.
    rows = [row for row in given if row.split != "test"]
    sides: list[BrowsedSide] = []
    scales: dict[tuple[int, str], Scale] = {}
    turns: dict[str, Turn] = {}
    notes: list[str] = []
    if hidden := len(given) - len(rows):
        notes.append(f"Not shown here: {count(hidden, 'grade')} by assessors on a test part.")
    judged, shown = judged or {}, 0
    numbers = [_number(folder, wanted, judged.get(folder)) for folder in folders]
    share = min(1.0, most / max(1, sum(numbers)))
    together: dict[tuple[_Key, int], list[BrowsedItem]] = {}
    for folder, name in zip(folders, folder_names(folders), strict=True):
        read = _read(folder, name, len(folders) > 1, len(sides), rows, own, share, judged.get(folder))
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
                shown += _is_judged(folder)
    if share < 1:
        beside = " and those with grades by assessors" if rows else ""
        notes.append(
            f"Shown here: {shown:,} of {sum(numbers):,} judgments, those of a random part of the responses{beside}. "
            f"The tables are over all of them, and {JUDGMENTS} holds them."
        )
    merged = sorted(map(_merged, together.values()), key=_order)
    used = {item.turn_id for item in merged}
    kept = {turn_id: turn for turn_id, turn in turns.items() if turn_id in used}
    return BrowsedItems(tuple(sides), merged, kept, scales, tuple(dict.fromkeys(notes)))


def _is_judged(folder: Path) -> bool:
    """Whether the judgments of a folder are shown, and not what its calibration found."""
    return not any((folder / name).is_file() for name in (DISAGREEMENTS, FINDINGS)) and (folder / JUDGMENTS).is_file()


def _prompts(prompts: Sequence[StrPath], criterion: str | None) -> tuple[list[Criterion], str | None]:
    """The prompts of the user, and the name of the only criterion, which may be given as the file of a prompt."""
    own = [find_criterion(prompt) for prompt in prompts]
    if criterion is None or criterion in {*criterion_names(), *(prompt.name for prompt in own)}:
        return own, criterion
    own.append(find_criterion(criterion))
    return own, own[-1].name


def _number(folder: Path, wanted: str | None, judged: JudgedFolder | None) -> int:
    """How many judgments of a criterion a folder has, or of all criteria; one of `judge calibrate` counts for none."""
    if not _is_judged(folder):
        return 0
    results = judged.results if judged else read_results(folder / JUDGMENTS, folder / FAILURES)
    return len(results) if wanted is None else sum(result.criterion == wanted for result in results)


def _read(
    folder: Path,
    name: str,
    several: bool,
    first: int,
    gold: Sequence[GoldRow],
    own: Sequence[Criterion],
    share: float,
    judged: JudgedFolder | None,
) -> BrowsedItems:
    # A calibration that asked its judges has their judgments too, and no pool.
    if (folder / DISAGREEMENTS).is_file():
        return read_calibration_items(folder, name if several else "", first)
    if (folder / FINDINGS).is_file():
        return BrowsedItems(
            (), (), {}, {}, (f"{name} has no {DISAGREEMENTS}: the same `judge calibrate` command writes it.",)
        )
    if (folder / JUDGMENTS).is_file():
        return read_folder_items(folder, name, first, gold, own, share, judged)
    raise InputError(
        f"{folder}: neither {JUDGMENTS} nor {DISAGREEMENTS} is there: expected an output folder of `judge run`, or of "
        "`judge calibrate`"
    )


def _key(item: BrowsedItem) -> _Key:
    # Two pools number the same response differently, so its content names it.
    passages = tuple(sorted(passage.passage_id for passage in item.passages))
    identity = item.text
    if identity is None:
        identity = next(iter(item.opinions.values())).response_id
    return item.turn_id, item.criterion, identity, passages, "text" if item.text is not None else "id"


def _merged(same: Sequence[BrowsedItem]) -> BrowsedItem:
    """One item of all sides; conversation and passages are those of the first folder that has them."""
    if len(same) == 1:
        return same[0]
    first = same[0]
    graded = next((item for item in same if item.gold), first)
    return msgspec.structs.replace(
        first,
        truncated=any(item.truncated for item in same),
        runs=tuple(sorted({run for item in same for run in item.runs}, key=lambda run: (natural_key(run[0]), run[1]))),
        passages=next(
            (item.passages for item in same if all(p.text is not None for p in item.passages)), first.passages
        ),
        opinions={side: said for item in same for side, said in item.opinions.items()},
        gold=graded.gold,
        gold_grade=graded.gold_grade,
        apart=None,
    )


def _order(item: BrowsedItem) -> tuple[object, ...]:
    first = item.opinions[min(item.opinions)]
    return natural_key(item.turn_id), natural_key(first.response_id), natural_key(item.criterion)
