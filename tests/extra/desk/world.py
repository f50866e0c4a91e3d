"""A small pool to label, with a plan and conversations, written as files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.ask.criteria import find_criterion
from judge.extra.desk.assess_inputs import AssessPlan
from judge.gold.plan import PlanRow
from judge.gold.rows import text_digest
from judge.io.line_stream import jsonl_bytes
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.records import Passage
from judge.runs.records import TokenCount
from tests.calibration_world import jsonl, judgment
from tests.conftest import put

HOSTILE = (
    '</p><script>document.title = "taken"</script><img src=x onerror="document.title = \'taken\'">'
    '<style>* { display: none }</style>{{ 7 * 7 }}</textarea><a href="javascript:alert(1)">here</a>'
)


def response(number: int, text: str | None = None, passages: Sequence[str] = ("p1", "p2")) -> PooledResponse:
    """Two responses for each turn, three turns for each topic."""
    turn = (number - 1) // 2
    topic = f"{turn // 3 + 1}-1"
    text = f"Response {number} of a run." if text is None else text
    runs = tuple(RunEntry(f"run-{run}", 1, "used", "") for run in (2, 10))
    count = TokenCount(5, 5, 5, None)
    return PooledResponse(f"R{number:05}", f"{topic}_{turn % 3 + 1}", topic, text, tuple(passages), count, False, runs)


def write_pool(folder: Path, n: int = 12, *, hostile: bool = False) -> Path:
    """The output folder of a pool with topics beside it."""
    out = folder / "out"
    out.mkdir(parents=True)
    texts = {1: HOSTILE} if hostile else {}
    responses = tuple(response(number, texts.get(number)) for number in range(1, n + 1))
    second = HOSTILE if hostile else "The second passage."
    passages = {"p1": Passage("p1", "The first passage.", "collection"), "p2": Passage("p2", second, "collection")}
    pool = Pool(responses, passages, ())
    (out / "pool.jsonl").write_bytes(pool_jsonl(pool))
    (out / "passages.jsonl").write_bytes(passages_jsonl(pool))
    topics = sorted({one.topic_id for one in responses})
    turn: dict[str, Any] = {"ptkb_provenance": [], "response_provenance": []}
    said = HOSTILE if hostile else "What about number"
    document = [
        {
            "number": topic,
            "title": said,
            "ptkb": {"1": f"{said}: I have a dog."},
            "turns": [
                turn | {"turn_id": number, "utterance": f"{said} {number}?", "response": f"{said} answered {number}."}
                | {"resolved_utterance": f"{said} {number} of topic {topic}?"}
                for number in (1, 2, 3)
            ],
        }
        for topic in topics
    ]  # fmt: skip
    (folder / "topics.json").write_text(json.dumps(document), encoding="utf-8")
    return out


def write_plan(folder: Path, numbers: Sequence[int], criteria: Sequence[str] = ("groundedness",)) -> Path:
    """A plan of these responses, drawn with probability .25."""
    rows = tuple(
        PlanRow(
            *(one.turn_id, one.topic_id, one.response_id, text_digest(one.text), ("run-2", "run-10"), tuple(criteria)),
            0.25,
            "drawn",
        )
        for one in map(response, numbers)
    )
    return put(folder / "plan.jsonl", jsonl_bytes(rows))


def write_judgments(folder: Path, grades: dict[int, int], prompt: str = "groundedness/graded") -> Path:
    """Grades of the judge `server/m`."""
    rows = [
        judgment(one.turn_id, one.response_id, grade, "server/m", prompt)
        for one, grade in ((response(number), grade) for number, grade in grades.items())
    ]
    return put(folder / "judgments.jsonl", jsonl(rows))


def plan_of(folder: Path, **changes: Any) -> AssessPlan:
    """One assessor who labels the whole pool for groundedness."""
    fields: dict[str, Any] = {
        "pool": folder / "out", "store": folder / "labels.sqlite", "assessors": ["ann"], "prompts": ["groundedness"],
        "seed": 1,
    }  # fmt: skip
    return AssessPlan(**fields | changes)


GRADED = find_criterion("groundedness/graded")
