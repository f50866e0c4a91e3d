"""Judgments as response qrels, each file with a sidecar that says how it was made. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from judge.ask.records import Failure, Judgment
from judge.ask.results import results_of
from judge.io.ids import QrelRow, column, natural_key, qrels_lines, safe_name
from judge.records import Criterion, Scale
from judge.units import UNITS

NOTE = "Grades by a machine judge, not by human assessors."


def qrel_name(criterion: Criterion) -> str:
    """The file's name; `.llm.` distinguishes it from human qrels even in a copy."""
    return f"{qrel_stem(criterion)}.llm.qrel"


def qrel_stem(criterion: Criterion) -> str:
    """The start of the names of a criterion's qrels, which says what is graded.

    Of the criterion passage_relevance it is the name itself.
    """
    unit = UNITS[criterion.unit]
    what = unit.nouns.response if unit.listed else "response"
    return f"{what}_{safe_name(criterion.name).removeprefix(f'{what}_')}"


def qrels_text(
    results: Sequence[Judgment | Failure], criterion: Criterion, names: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The rows of `graded_rows` as qrels."""
    return qrels_lines(graded_rows(results, criterion, names))


def graded_rows(
    results: Sequence[Judgment | Failure], criterion: Criterion, names: Mapping[str, str] = MappingProxyType({})
) -> list[QrelRow]:
    """The grades under one criterion, ids as columns, in natural order; `unable` judgments are left out.

    Responses are listed by turn, dialogues by topic. `names`: response id to the id that stands in its place, such as
    that of a passage. A ValueError if a response has two judgments under the criterion.
    """
    grades: dict[str, dict[str, int]] = {}
    for result in _under(results, criterion):
        if isinstance(result, Judgment) and not result.unable:
            listed = _listed_under(result, criterion)
            item_id = names.get(result.response_id, result.response_id)
            of_turn = grades.setdefault(listed, {})
            if item_id in of_turn:
                what = UNITS[criterion.unit].nouns.turn
                raise ValueError(f"{item_id} of {what} {listed} has two judgments under {criterion.prompt_id}")
            of_turn[item_id] = result.grade
    rows: list[QrelRow] = []
    for listed in sorted(grades, key=natural_key):
        of_turn = grades[listed]
        item_ids = sorted(of_turn, key=natural_key) if len(of_turn) > 1 else of_turn
        rows += [QrelRow(column(listed), column(item_id), of_turn[item_id]) for item_id in item_ids]
    return rows


def _listed_under(judgment: Judgment, criterion: Criterion) -> str:
    """The id in the first column, as in `PooledResponse.listed_under`."""
    return judgment.topic_id if UNITS[criterion.unit].by_topic else judgment.turn_id


def sidecar(criterion: Criterion, results: Sequence[Judgment | Failure], calibration: str) -> dict[str, Any]:
    """How the qrels of one criterion were made, as JSON values.

    `calibration`: how far the grades may be trusted, in words.
    """
    counts: Counter[int] = Counter()
    failures: Counter[str] = Counter()
    unable = 0
    listed = set()
    judges = set()
    models = set()
    for result in _under(results, criterion):
        judges.add(result.judge)
        if isinstance(result, Failure):
            failures[result.reason] += 1
            continue
        if result.model is not None:
            models.add(result.model)
        if result.unable:
            unable += 1
        else:
            counts[result.grade] += 1
            listed.add(_listed_under(result, criterion))
    scale, level = criterion.scale, criterion.scale.unable
    what = UNITS[criterion.unit].nouns.responses if UNITS[criterion.unit].listed else "responses"
    unable_ones = f"{what} judged {level.label!r} are left out" if level else "the scale has no 'unable' level"
    return {
        "file": qrel_name(criterion), "note": NOTE, "calibration": calibration, "criterion": criterion.name,
        **_rows(criterion),
        "prompt": criterion.prompt_id, "prompt_version": criterion.version, "prompt_digest": criterion.digest,
        "scale": {
            "levels": [msgspec.to_builtins(level) for level in scale.levels],
            "polarity": scale.polarity,
            "positive": sorted(scale.positive),
            "unable": msgspec.to_builtins(scale.unable),
        },
        "reading": f"{scale.polarity} grades are better; {unable_ones}",
        **({} if UNITS[criterion.unit].listed else {"share": _share(scale, len(listed))}),
        "judges": sorted(judges), "models_returned": sorted(models),
        "counts": {
            "graded": counts.total(),
            "by_grade": {str(level.grade): counts[level.grade] for level in scale.levels},
            "unable": unable,
            "failures": dict(sorted(failures.items())),
        },
        **_sentences(results, criterion),
    }  # fmt: skip


def _rows(criterion: Criterion) -> dict[str, str]:
    """What a line says, where it is not of a response in a turn."""
    unit = UNITS[criterion.unit]
    if unit.by_topic:
        return {"unit": unit.name, "rows": "topic_id 0 response_id grade"}
    return {"unit": unit.name, "rows": "turn_id 0 passage_id grade"} if unit.listed else {}


def _sentences(results: Sequence[Judgment | Failure], criterion: Criterion) -> dict[str, Any]:
    """For each label of sentences its sentences, and the responses with at least one; `unable` ones included.

    Empty where no sentence gets a label.
    """
    if criterion.answer != "sentences":
        return {}
    sentences: Counter[str] = Counter()
    responses: Counter[str] = Counter()
    for result in _under(results, criterion):
        if isinstance(result, Judgment):
            sentences.update(result.sentences)
            responses.update(set(result.sentences))
    labels = [level.label for level in criterion.sentence_levels]
    return {"sentences": {name: {"sentences": sentences[name], "responses": responses[name]} for name in labels}}


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


def _under(results: Sequence[Judgment | Failure], criterion: Criterion) -> Iterator[Judgment | Failure]:
    """The results that this prompt asked for."""
    return (result for result in results_of(results, criterion.name) if result.variant == criterion.variant)
