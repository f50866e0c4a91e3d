"""CAsT-ReGIn: the crowd's grades of responses of CAsT 2022, with the conversations before them."""

from pathlib import Path

from judge.crowd.regin.kinds import GRADES, RELEVANT
from judge.crowd.regin.resource import read_resource
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file
from judge.extra.bench.datasets.reading import DatasetReading, Fill, read_by, skipped_by
from judge.runs.topics import read_topics

JUDGMENTS = "qrels/response_judgments.json"
TOPICS = "2022_evaluation_topics_tree_v1.0.json"


def _fill(criterion: str) -> Fill:
    def fill(folder: Path, reading: DatasetReading) -> None:
        file = find_file(folder, JUDGMENTS)
        topics = find_file(folder, TOPICS)
        turns = {turn.turn_id: turn for topic in read_topics(topics) for turn in topic.turns}
        responses = next(part for part in read_resource(file.parent.parent) if part.kind.name == "response")
        reading.problems.extend(responses.problems)
        for row in responses.rows:
            where = f"turn {row.turn_id}"
            turn = turns.get(row.turn_id)
            if turn is None:
                reading.problem("unknown_turn", file, where, f"not among the turns of {topics}")
                continue
            response = LabeledResponse(
                item_id=f"{row.turn_id}/{row.item_id}",
                unit=turn.topic_id,
                grade=row.grades[criterion],
                response=row.text,
                utterance=turn.utterance,
                context=tuple((earlier.utterance, earlier.response) for earlier in turn.context),
            )
            reading.add(file, where, response)

    return fill


def _dataset(criterion: str) -> Dataset:
    return Dataset(
        name=f"cast-regin-{criterion}",
        title=f"CAsT-ReGIn, {criterion}: one grade of a crowd",
        criterion=criterion,
        grades=tuple(GRADES),
        positive=tuple(grade for grade in GRADES if grade >= RELEVANT),
        unit="topic",
        licence="no licence file",
        source=f"grill-lab/CAsT-ReGIn: response_evaluation/{JUDGMENTS}; daltonj/treccastweb: 2022/{TOPICS}",
        files=(JUDGMENTS, TOPICS),
        rung=None,
        read=read_by(_fill(criterion)),
        size=2479,
        skipped=skipped_by(_fill(criterion)),
    )


CAST_REGIN = tuple(_dataset(criterion) for criterion in ("relevance", "naturalness", "conciseness"))
