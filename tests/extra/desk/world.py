"""A small pool to label, with a plan and conversations, written as files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.ask.criteria import find_criterion
from judge.extra.desk.assess import AssessPlan
from judge.gold.plan import PlanRow
from judge.gold.rows import text_digest
from judge.io.files import jsonl_bytes
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage
from tests import calibration_world
from tests.calibration_world import jsonl, judgment, pooled
from tests.conftest import put

HOSTILE = (
    '</p><script>document.title = "taken"</script><img src=x onerror="document.title = \'taken\'">'
    '<style>* { display: none }</style>{{ 7 * 7 }}</textarea><a href="javascript:alert(1)">here</a>'
)


def response(number: int, text: str | None = None, passages: Sequence[str] = ("p1", "p2")) -> PooledResponse:
    """Two responses for each turn, three turns for each topic."""
    topic, turn = divmod((number - 1) // 2, 3)
    text = f"Response {number} of a run." if text is None else text
    turn_id = f"{topic + 1}-1_{turn + 1}"
    return pooled(f"R{number:05}", text, "run-2", "run-10", turn_id=turn_id, passages=tuple(passages))


def write_pool(folder: Path, n: int = 12, *, hostile: bool = False) -> Path:
    """The output folder of a pool with topics beside it."""
    responses = tuple(response(number, HOSTILE if hostile and number == 1 else None) for number in range(1, n + 1))
    second = HOSTILE if hostile else "The second passage."
    passages = {"p1": Passage("p1", "The first passage.", "collection"), "p2": Passage("p2", second, "collection")}
    calibration_world.write_pool(folder / "out", Pool(responses, passages, ()))
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
    put(folder / "topics.json", json.dumps(document))
    return folder / "out"


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
    given = ((response(number), grade) for number, grade in grades.items())
    rows = (judgment(one.turn_id, one.response_id, grade, "server/m", prompt) for one, grade in given)
    return put(folder / "judgments.jsonl", jsonl(rows))


def plan_of(folder: Path, **changes: Any) -> AssessPlan:
    """One assessor who labels the whole pool for groundedness."""
    fields: dict[str, Any] = {
        "pool": folder / "out", "store": folder / "labels.sqlite", "assessors": ["ann"], "prompts": ["groundedness"],
        "seed": 1,
    }  # fmt: skip
    return AssessPlan(**fields | changes)


GRADED = find_criterion("groundedness/graded")
