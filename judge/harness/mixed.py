"""Judgments carried over from an earlier output folder that were made otherwise: kept on request, marked everywhere."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.labels import CARRIED, read_judgments
from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.stored import read_stored
from judge.harness.manifest import MANIFEST, read_manifest
from judge.records import Criterion, Failure, Judgment, Problem
from judge.text.ids import natural_key

MIXING = frozenset({"criteria", "judge", "jury", "mixed", "options", "parser", "renderer"})
"""What of a configuration changes when judgments made otherwise are kept."""
_MADE = ("judge", "jury", "options", "parser", "renderer")
"""What of a configuration, beside the prompt, another judgment would come of."""


class CarriedJudgment(msgspec.Struct, frozen=True):
    """A judgment made otherwise than those that it stands beside, and how: a line of `carried.jsonl`."""

    origin: dict[str, Any]
    judgment: Judgment


class Carried(msgspec.Struct, frozen=True):
    """All that is carried over."""

    lines: tuple[CarriedJudgment, ...] = ()

    @property
    def judgments(self) -> tuple[Judgment, ...]:
        """The judgments alone."""
        return tuple(line.judgment for line in self.lines)

    @property
    def origins(self) -> list[dict[str, Any]]:
        """The ways in which they were made, as JSON values, and how many in each."""
        counts = Counter(msgspec.json.encode(line.origin, order="sorted") for line in self.lines)
        return [{**msgspec.json.decode(key), "judgments": count} for key, count in sorted(counts.items())]


def mixed_banner(origins: Sequence[Mapping[str, Any]]) -> str:
    """What is to be said over every output that holds carried judgments."""
    ways = "; ".join(
        f"{one['judgments']} by {one['judge']} under {one['prompt']} (another {', '.join(one['differs'])})"
        for one in origins
    )
    return f"MIXED: these grades were not all made in one way. Carried over from before: {ways}."


def differences(earlier: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, list[str]]:
    """By criterion that both configurations have, what they would make other judgments by."""
    making = [key for key in _MADE if earlier.get(key) != wanted.get(key)]
    found: dict[str, list[str]] = {}
    for name in earlier.get("criteria", {}).keys() & wanted["criteria"].keys():
        other = earlier["criteria"][name].get("sha256") != wanted["criteria"][name]["sha256"]
        if making or other:
            found[name] = [*(["prompt"] if other else []), *making]
    return found


def carry(
    folder: Path, wanted: Mapping[str, Any], criteria: Sequence[Criterion], *, in_place: bool, allowed: bool
) -> Carried:
    """The judgments of the folder being extended that the wanted configuration would not make.

    Args:
        folder: An earlier output folder.
        wanted: The configuration of the new results.
        criteria: The new prompts.
        in_place: Whether the new results go into the same folder.
        allowed: Whether such judgments may stand beside the new ones. If not, new results in another folder are made
            without them.

    Raises:
        InputError: There are such judgments and they are not allowed, or their scales are not the new prompts'.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return Carried()
    earlier = manifest["configuration"]
    names = {criterion.name for criterion in criteria}
    lost = sorted(earlier.get("criteria", {}).keys() - names)
    if allowed and in_place and lost:
        raise InputError(f"{folder}: its judgments of {', '.join(lost)} would be lost: name these criteria too")
    everything = _read_carried(folder / CARRIED)
    held = {(line.judgment.criterion, line.judgment.response_id) for line in everything}
    # What the wanted configuration would make just so is in the journal.
    before = [line for line in everything if _differs(line.origin, wanted)]
    different = differences(earlier, wanted)
    made = [
        one
        for one in _read_judgments(folder / "judgments.jsonl")
        if one.criterion in different and (one.criterion, one.response_id) not in held
    ]
    if not allowed:
        if in_place and (before or made):
            ways = "; ".join(f"{name}: another {', '.join(keys)}" for name, keys in sorted(different.items()))
            raise InputError(
                f"{folder}: holds judgments that were made otherwise ({ways or 'carried over from before'}). "
                "Choose another --out to have everything judged in one way, or --allow-mixed to keep them beside the "
                "new ones, marked in every output"
            )
        return Carried()
    _check_scales(folder, different.keys() & {one.criterion for one in made}, criteria)
    how = {
        name: {
            "criterion": name,
            "prompt": earlier["criteria"][name]["prompt"],
            "prompt_digest": earlier["criteria"][name]["sha256"],
            **{key: earlier[key] for key in _MADE if key in earlier},
        }
        for name in different
    }
    lines = [*before, *(CarriedJudgment(how[one.criterion], one) for one in made)]
    kept = [
        CarriedJudgment({**line.origin, "differs": _differs(line.origin, wanted)}, line.judgment)
        for line in lines
        if line.judgment.criterion in names
    ]
    return Carried(tuple(sorted(kept, key=_order)))


def _differs(origin: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What the wanted configuration would make such a judgment otherwise by."""
    prompt = wanted["criteria"].get(origin["criterion"], {}).get("sha256")
    found = ["prompt"] if prompt != origin["prompt_digest"] else []
    for key in _MADE:
        before, now = origin.get(key), wanted.get(key)
        if before == now:
            continue
        if key == "options" and isinstance(before, dict) and isinstance(now, dict):
            found += sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        else:
            found.append(key)
    return found


def as_asked(results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]) -> list[Judgment | Failure]:
    """The results as if all were made under these prompts, for counting; the records themselves stay as they are."""
    variants = {criterion.name: criterion.variant for criterion in criteria}
    return [msgspec.structs.replace(one, variant=variants.get(one.criterion, one.variant)) for one in results]


def carried_jsonl(carried: Carried) -> bytes:
    """`carried.jsonl`: a judgment and its origin a line."""
    return b"".join(msgspec.json.encode(line, order="sorted") + b"\n" for line in carried.lines)


def _read_judgments(path: Path) -> tuple[Judgment, ...]:
    return read_judgments(read_stored(path), str(path)) if path.exists() else ()


def _read_carried(path: Path) -> tuple[CarriedJudgment, ...]:
    if not path.exists():
        return ()
    rows = [row for _, row in decode_lines(read_stored(path), CarriedJudgment, str(path), "carried_damaged")]
    problems = [row for row in rows if isinstance(row, Problem)]
    if problems:
        raise InputError(f"{path}: damaged", problems)
    return tuple(row for row in rows if isinstance(row, CarriedJudgment))


def _check_scales(folder: Path, names: Iterable[str], criteria: Sequence[Criterion]) -> None:
    """Grades of another scale never share a mean."""
    for criterion in criteria:
        if criterion.name not in names:
            continue
        grades = sorted(level.grade for level in criterion.scale.levels)
        about = _scale(folder, criterion.name)
        found = (sorted(level.grade for level in about.levels), about.polarity, sorted(about.positive))
        if found != (grades, criterion.scale.polarity, sorted(criterion.scale.positive)):
            raise InputError(
                f"{folder}: the grades of {criterion.name} there are on another scale ({found[0]}, {found[1]} is "
                f"better, positive {found[2]}) than {criterion.prompt_id} has, so they cannot be mixed"
            )


class _Graded(msgspec.Struct):
    grade: int


class _Scale(msgspec.Struct):
    levels: list[_Graded]
    polarity: str
    positive: list[int]


class _Sidecar(msgspec.Struct):
    """What a sidecar of qrels says of its scale."""

    criterion: str
    scale: _Scale


def _scale(folder: Path, name: str) -> _Scale:
    """The scale that the folder's qrels of a criterion are on."""
    for path in sorted((folder / "qrels").glob("response_*.json")):
        try:
            about = msgspec.json.decode(read_stored(path), type=_Sidecar)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not a sidecar of qrels that judge wrote: {error}") from error
        if about.criterion == name:
            return about.scale
    raise InputError(f"{folder / MANIFEST}: no scale of {name} beside it (qrels/), so nothing can be added to it")


def _order(line: CarriedJudgment) -> tuple[Any, ...]:
    one = line.judgment
    return one.criterion, natural_key(one.turn_id), natural_key(one.response_id)
