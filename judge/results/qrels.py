"""Judgments as response qrels, each file with a sidecar that says how it was made. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from judge.ask.records import Failure, Judgment
from judge.files.trec import QrelRow, column, qrels_lines, safe_name
from judge.records import Criterion, Level, Scale
from judge.results.sentences import label_counts
from judge.text.ids import natural_key

_Result = TypeVar("_Result", Judgment, Failure)

NOTE = "Grades by a machine judge, not by human assessors."


def qrel_name(criterion: Criterion) -> str:
    """The file's name; `.llm.` distinguishes it from human qrels even in a copy."""
    return f"response_{safe_name(criterion.name)}.llm.qrel"


def qrels_text(judgments: Iterable[Judgment], criterion: Criterion) -> str:
    """The grades under one criterion as qrels, in natural order; `unable` judgments are left out.

    Responses are listed by turn, dialogues by topic.

    Raises:
        ValueError: A response has two judgments under the criterion.
    """
    grades: dict[tuple[str, str], int] = {}
    for judgment in _under(judgments, criterion):
        if judgment.unable:
            continue
        key = (_listed_under(judgment, criterion), judgment.response_id)
        if key in grades:
            what = "topic" if criterion.unit == "dialogue" else "turn"
            raise ValueError(f"{key[1]} of {what} {key[0]} has two judgments under {criterion.prompt_id}")
        grades[key] = judgment.grade
    order = sorted(grades, key=lambda key: (natural_key(key[0]), natural_key(key[1])))
    return qrels_lines(
        QrelRow(column(listed), column(response), grades[listed, response]) for listed, response in order
    )


def _listed_under(judgment: Judgment, criterion: Criterion) -> str:
    """The id in the first column, as in `PooledResponse.listed_under`."""
    return judgment.topic_id if criterion.unit == "dialogue" else judgment.turn_id


def sidecar(
    criterion: Criterion, judgments: Iterable[Judgment], failures: Iterable[Failure], calibration: str
) -> dict[str, Any]:
    """How the qrels of one criterion were made, as JSON values.

    Args:
        criterion: The prompt of the qrels; results under other prompts are skipped.
        judgments: Judgments under any prompts.
        failures: Failures under any prompts.
        calibration: How far the grades may be trusted, in words.
    """
    under = tuple(_under(judgments, criterion))
    failed = tuple(_under(failures, criterion))
    graded = [judgment.grade for judgment in under if not judgment.unable]
    counts = Counter(graded)
    scale = criterion.scale
    return {
        "file": qrel_name(criterion),
        "note": NOTE,
        "calibration": calibration,
        "criterion": criterion.name,
        **({"unit": "dialogue", "rows": "topic_id 0 response_id grade"} if criterion.unit == "dialogue" else {}),
        "prompt": criterion.prompt_id,
        "prompt_version": criterion.version,
        "prompt_digest": criterion.digest,
        "scale": {
            "levels": [_level(level) for level in scale.levels],
            "polarity": scale.polarity,
            "positive": sorted(scale.positive),
            "unable": _level(scale.unable) if scale.unable else None,
        },
        "reading": f"{scale.polarity} grades are better; {_unable(scale.unable)}",
        "share": _share(scale, len({_listed_under(judgment, criterion) for judgment in under if not judgment.unable})),
        "judges": sorted({result.judge for result in under} | {result.judge for result in failed}),
        "models_returned": sorted({judgment.model for judgment in under if judgment.model is not None}),
        "counts": {
            "graded": len(graded),
            "by_grade": {str(level.grade): counts[level.grade] for level in scale.levels},
            "unable": len(under) - len(graded),
            "failures": dict(sorted(Counter(failure.reason for failure in failed).items())),
        },
        **({"sentences": label_counts(under, criterion)} if _one_labels(criterion, (*under, *failed)) else {}),
    }


def _one_labels(criterion: Criterion, results: Iterable[Judgment | Failure]) -> bool:
    """Whether one judge labels the sentences; the two of a cascade do not use the same labels."""
    return criterion.answer == "sentences" and all(result.cascade is None for result in results)


def _share(scale: Scale, turns: int) -> str:
    """Which share of positive grades a reader of the qrels gets, and which one the leaderboard has beside it."""
    grades = sorted(level.grade for level in scale.levels)
    positive = sorted(scale.positive)
    beside = "share_positive there is over the graded turns of the run alone"
    if not positive or scale.polarity == "lower" or positive[0] < 1 or positive != grades[-len(positive) :]:
        return (
            "trec_eval cannot make a share of positive grades of this file, since it takes grades from 1 on, the "
            f"higher the better; share_of_turns of leaderboard.tsv is over the {turns} turns of this file, {beside}"
        )
    return (
        f"P(rel={positive[0]})@1 of this file and response_runs/, by `trec_eval -c` or ir-measures, is "
        f"share_of_turns of leaderboard.tsv: over the {turns} turns of this file, where a turn without a grade is not "
        f"positive; {beside}"
    )


def _under(results: Iterable[_Result], criterion: Criterion) -> Iterator[_Result]:
    """The results that this prompt asked for."""
    wanted = (criterion.name, criterion.variant)
    return (result for result in results if (result.criterion, result.variant) == wanted)


def _level(level: Level) -> dict[str, Any]:
    return {"grade": level.grade, "label": level.label, "description": level.description}


def _unable(unable: Level | None) -> str:
    return f"responses judged {unable.label!r} are left out" if unable else "the scale has no 'unable' level"
