"""A small world for tests of calibration: topics, responses, assessors and judges, and the files they come in."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.ask.results import Label, Labels
from judge.calibrate.panel import Panel, gold_items, make_panel
from judge.gold.rows import GoldRow
from judge.io.files import jsonl_bytes
from judge.io.ids import topic_of
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage, Scale
from tests import build
from tests.conftest import put

SCALE = build.scale()
FAST = ("--replicates", "200", "--permutations", "200")
"""The fewest resamples there may be."""
RUNS = ("ape", "bee", "cat", "dog", "eel")


class Item(msgspec.Struct, frozen=True):
    """A response, what it deserves, and what a noisy assessor gave it."""

    turn_id: str
    response_id: str
    deserved: int
    gold: int
    run_id: str


def items(topics: int = 24, each: int = 5, noise: float = 0.1, seed: int = 1) -> list[Item]:
    """Responses of every grade in every topic, `each` a topic, one a run."""
    rng = random.Random(seed)
    found = []
    for topic in range(1, topics + 1):
        for place in range(each):
            deserved = rng.randrange(4)
            gold = rng.randrange(4) if rng.random() < noise else deserved
            number = len(found) + 1
            found.append(Item(f"{topic}_{place + 1}", f"R{number:05}", deserved, gold, RUNS[place % len(RUNS)]))
    return found


def labeled(world: Iterable[Item], noise: float, seed: int) -> dict[str, int]:
    """A judge's grade of every response, which is a random one as often as `noise` says."""
    rng = random.Random(seed)
    return {one.response_id: rng.randrange(4) if rng.random() < noise else one.deserved for one in world}


def row(
    turn_id: str, response_id: str, grade: int, assessor: str = "ann", criterion: str = "groundedness", **more: object
) -> GoldRow:
    return GoldRow(turn_id, topic_of(turn_id), criterion, grade, assessor, response_id, **more)  # type: ignore[arg-type]


def gold_rows(world: Iterable[Item], assessor: str = "ann", **more: object) -> list[GoldRow]:
    return [row(one.turn_id, one.response_id, one.gold, assessor, **more) for one in world]


def labels(
    judge: str, grades: Mapping[tuple[str, str], int | None] | Sequence[Label], prompt: str | None = None
) -> Labels:
    """Labels from (turn_id, response_id) to grade, or as they are."""
    if isinstance(grades, Mapping):
        grades = [Label(*key, grade, None if grade is not None else "unable") for key, grade in grades.items()]
    return Labels(judge, prompt, "d" * 64 if prompt else None, f"{judge}.txt", "e" * 64, tuple(grades))


def panel_of(rows: Sequence[GoldRow], *said: Labels, scale: Scale = SCALE, **more: Any) -> Panel:
    """Gold under groundedness beside labels, which are on the scale of the gold unless they come with their own."""
    return make_panel("groundedness", scale, gold_items(rows, None)["groundedness"], said, **more)


def pooled(
    response_id: str, text: str, *runs: str, turn_id: str = "1-1_1", passages: tuple[str, ...] | None = None
) -> PooledResponse:
    """A response that runs gave at rank 1, with a passage of its own unless others are named."""
    used = (f"p{response_id}",) if passages is None else passages
    return build.pooled(response_id, turn_id, *runs, text=text, passages=used)


def pool(world: Iterable[Item], *, shift: int = 0, words: Callable[[Item], int] = lambda one: 0) -> Pool:
    """The responses with passages that hold as many thirds of their words as they deserve; ids moved by `shift`."""
    responses, passages = [], {}
    for one in world:
        number = int(one.response_id[1:])
        terms = [f"term{number}{letter}" for letter in "abc"]
        text = " ".join([*terms, *["the"] * words(one)])
        key = f"passage{number}"
        passages[key] = Passage(key, " ".join([f"start{number}", *terms[: one.deserved]]), "collection")
        responses.append(pooled(f"R{number + shift:05}", text, one.run_id, turn_id=one.turn_id, passages=(key,)))
    return Pool(tuple(responses), passages, ())


@cache
def prompt_digest(prompt: str) -> str:
    """Of a bundled prompt, whose file no test of this world changes."""
    return find_criterion(prompt).digest


def judgment(
    turn_id: str, response_id: str, grade: int, judge: str = "server/m", prompt: str = "groundedness/graded",
    *, unable: bool = False, expected: float | None = None, sample: int = 0, digest: str | None = None, **changed: Any,
) -> Judgment:  # fmt: skip
    """A judgment under a prompt, which is a bundled one or has this digest; `changed` replaces fields."""
    criterion, _, variant = prompt.partition("/")
    made = Judgment(
        response_id, turn_id, topic_of(turn_id), criterion, variant, grade, unable, expected, None, None, (), judge,
        "m-2026", digest or prompt_digest(prompt), "r" * 64, "json", False, sample,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


def failure(turn_id: str, response_id: str, reason: str, judge: str = "server/m", **changed: Any) -> Failure:
    """A failure under groundedness/graded; `changed` replaces fields."""
    digest = prompt_digest("groundedness/graded")
    made = Failure(
        response_id, turn_id, topic_of(turn_id), "groundedness", "graded", reason, "", None, judge, digest, None, 0
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


def jsonl(records: Iterable[object]) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in records)


def write_gold(path: Path, rows: Iterable[GoldRow]) -> Path:
    kept = [{name: value for name, value in msgspec.to_builtins(one).items() if value is not None} for one in rows]
    return put(path, jsonl(kept))


def write_pool(folder: Path, of: Pool) -> None:
    put(folder / "pool.jsonl", pool_jsonl(of))
    (folder / "passages.jsonl").write_bytes(passages_jsonl(of))


def write_judged(folder: Path, of: Pool, said: Iterable[Judgment], failed: Iterable[Failure]) -> Path:
    """An output folder of `judge run` with these results, without its manifest."""
    write_pool(folder, of)
    (folder / "excluded.tsv").write_bytes(excluded_tsv(of.exclusions))
    (folder / "runs.jsonl").write_bytes(jsonl_bytes(of.runs))
    (folder / "judgments.jsonl").write_bytes(jsonl(said))
    (folder / "failures.jsonl").write_bytes(jsonl(failed))
    return folder


def write_output(
    folder: Path,
    world: Sequence[Item],
    judges: Mapping[str, Mapping[str, int]],
    prompt: str = "groundedness/graded",
    *,
    shift: int = 0,
) -> Path:
    """An output folder of `judge run` without its manifest; the path of its judgments.jsonl."""
    write_pool(folder, pool(world, shift=shift))
    found = [
        judgment(one.turn_id, f"R{int(one.response_id[1:]) + shift:05}", grades[one.response_id], judge, prompt)
        for judge, grades in judges.items()
        for one in world
        if one.response_id in grades
    ]
    return put(folder / "judgments.jsonl", jsonl(found))


def write_columns(path: Path, grades: Mapping[tuple[str, str], int]) -> Path:
    return put(path, "".join(f"{turn} 0 {item} {grade}\n" for (turn, item), grade in grades.items()))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the journal."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("journal.sqlite")
    }


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a TSV file with a header."""
    head, *lines = path.read_text(encoding="utf-8").split("\n")
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines if line]
