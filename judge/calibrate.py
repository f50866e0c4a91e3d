"""How far a judge agrees with gold: judgments and assessors' grades of the same responses, side by side."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from judge.errors import InputError
from judge.gold import check_scale
from judge.ids import natural_key
from judge.records import Criterion, Estimate, GoldRow, Judgment, Problem
from judge.stats.agreement import (
    Undefined,
    agreement_weights,
    confusion,
    kappa_interval,
    krippendorff_alpha,
    spearman,
    unit_counts,
)
from judge.stats.means import mean_interval

SEED = 2023
"""Seed of the topic bootstrap: the same draws for every judge, so that only the data tell them apart."""
_KAPPAS: tuple[Literal["none", "quadratic"], ...] = ("none", "quadratic")


class Agreement(msgspec.Struct, frozen=True):
    """One judge against one assessor under one prompt; intervals are over topics."""

    judge: str
    criterion: str
    prompt: str
    assessor: str
    gold: int
    """The assessor's grades of pooled responses."""
    judged: int
    """How many of them the judge graded; the statistics are about these."""
    coverage: float
    percent: Estimate
    within_one: Estimate
    kappa: Estimate
    weighted_kappa: Estimate
    """Quadratic weights."""
    alpha_ordinal: Estimate
    bias: Estimate
    """Mean of judge minus assessor, in grades."""
    rank_correlation: Estimate
    """Spearman's, between the expected grade under the label probabilities and the assessor's."""
    constant_percent: float | None
    """What a judge would reach that always gave the assessor's most frequent grade."""


class _Pair(msgspec.Struct, frozen=True):
    """One response graded by both; the topic is the judgment's, as on the leaderboard."""

    topic_id: str
    human: int
    judge: int
    expected: float | None


def agreement(
    judgments: Sequence[Judgment],
    matched: Mapping[tuple[str, str], Sequence[GoldRow]],
    criterion: Criterion,
) -> tuple[Agreement, ...]:
    """One record a judge and assessor, in natural order of their names.

    Topics, which intervals are over, are those of the turn ids: `9-1` and `9-2`, two personas of one theme, are two.
    A gold row without a grade by the judge (failed, unable, never asked) lowers the coverage, nothing else.

    Args:
        judgments: Judgments of any judges and criteria; those made with other prompts are passed over.
        matched: Gold rows by (response_id, criterion).
        criterion: The prompt and its scale.

    Raises:
        InputError: Grades that are not on the criterion's scale, or two judgments of one response by one judge.
    """
    rows = [
        (response_id, row) for (response_id, name), group in matched.items() if name == criterion.name for row in group
    ]
    by_judge, problems = _by_judge(judgments, criterion)
    problems += check_scale([row for _, row in rows], criterion.scale)
    if problems:
        raise InputError(f"gold and judgments cannot be compared under {criterion.prompt_id}", problems)
    by_assessor: dict[str, list[tuple[str, GoldRow]]] = defaultdict(list)
    for response_id, row in rows:
        by_assessor[row.assessor].append((response_id, row))
    return tuple(
        _agreement(judge, by_judge[judge], assessor, by_assessor[assessor], criterion)
        for judge in sorted(by_judge, key=lambda name: (natural_key(name), name))
        for assessor in sorted(by_assessor, key=lambda name: (natural_key(name), name))
    )


def _by_judge(
    judgments: Sequence[Judgment], criterion: Criterion
) -> tuple[dict[str, dict[str, Judgment]], list[Problem]]:
    """Judgments under the criterion by judge and response id, and what is wrong with them."""
    grades = {level.grade for level in criterion.scale.levels}
    found: dict[str, dict[str, Judgment]] = defaultdict(dict)
    problems: list[Problem] = []
    for one in judgments:
        if (one.criterion, one.variant) != (criterion.name, criterion.variant):
            continue
        where = f"{one.response_id} by {one.judge}"
        if one.response_id in found[one.judge]:
            message = f"{where} is judged twice: expected one judgment"
            problems.append(Problem("duplicate_judgment", "error", "judgments", one.turn_id, "", message))
        elif not one.unable and one.grade not in grades:
            message = f"grade {one.grade} for {where}: expected one of {', '.join(map(str, sorted(grades)))}"
            problems.append(Problem("off_scale", "error", "judgments", one.turn_id, "$.grade", message))
        found[one.judge][one.response_id] = one
    return found, problems


def _agreement(
    judge: str,
    judged: Mapping[str, Judgment],
    assessor: str,
    rows: Sequence[tuple[str, GoldRow]],
    criterion: Criterion,
) -> Agreement:
    pairs = [
        _Pair(judgment.topic_id, row.grade, judgment.grade, judgment.expected)
        for response_id, row in rows
        if (judgment := judged.get(response_id)) and not judgment.unable
    ]
    topics = [pair.topic_id for pair in pairs]
    differences = [pair.judge - pair.human for pair in pairs]
    grades = [level.grade for level in criterion.scale.levels]
    spread = max(grades) - min(grades)
    humans = Counter(pair.human for pair in pairs)
    by_topic: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for pair in pairs:
        by_topic[pair.topic_id].append((pair.human, pair.judge))
    tables = np.array(
        [
            confusion(by_topic[topic_id], grades)
            for topic_id in sorted(by_topic, key=lambda topic_id: (natural_key(topic_id), topic_id))
        ],
        dtype=np.int64,
    ).reshape(-1, len(grades), len(grades))
    kappa, weighted = (
        kappa_interval(tables, agreement_weights(grades, kind), np.random.default_rng(SEED)) for kind in _KAPPAS
    )
    return Agreement(
        judge=judge,
        criterion=criterion.name,
        prompt=criterion.prompt_id,
        assessor=assessor,
        gold=len(rows),
        judged=len(pairs),
        coverage=len(pairs) / len(rows),
        percent=mean_interval([d == 0 for d in differences], topics, bounds=(0, 1), what="outcomes"),
        within_one=mean_interval([abs(d) <= 1 for d in differences], topics, bounds=(0, 1), what="outcomes"),
        kappa=kappa,
        weighted_kappa=weighted,
        alpha_ordinal=_point(
            krippendorff_alpha(unit_counts(tables.sum(axis=0)), grades, "ordinal"), len(pairs), topics
        ),
        bias=mean_interval(differences, topics, bounds=(-spread, spread), what="differences"),
        rank_correlation=_point(_rank_correlation(pairs), len(pairs), topics),
        constant_percent=max(humans.values()) / len(pairs) if pairs else None,
    )


def _rank_correlation(pairs: Sequence[_Pair]) -> float | Undefined:
    """Between expected and human grades, if there is an expected one for every pair."""
    expected = [pair.expected for pair in pairs if pair.expected is not None]
    if len(expected) < len(pairs):
        some = f"label probabilities for only {len(expected)} of {len(pairs)} grades"
        return Undefined(some if expected else "the judge gives no label probabilities")
    return spearman(expected, [pair.human for pair in pairs])


def _point(statistic: float | Undefined, n: int, topics: Sequence[str]) -> Estimate:
    """A statistic for which no interval is computed."""
    if isinstance(statistic, Undefined):
        return Estimate(None, None, None, n, len(set(topics)), statistic.reason)
    return Estimate(statistic, None, None, n, len(set(topics)), "no interval computed")


def read_judgments(stored: bytes, name: str) -> tuple[Judgment, ...]:
    """The judgments in the bytes of a `judgments.jsonl`.

    Raises:
        InputError: Lines that are no judgments.
    """
    judgments: list[Judgment] = []
    problems: list[Problem] = []
    decoder = msgspec.json.Decoder(Judgment)
    for number, line in enumerate(stored.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            judgments.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(Problem("not_a_judgment", "error", name, None, f"line {number}", str(error)))
    if problems:
        raise InputError(f"{name}: {len(problems)} lines are no judgments", problems)
    return tuple(judgments)
