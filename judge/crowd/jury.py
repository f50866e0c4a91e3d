"""Several LLM judges as one: the consensus of a jury's members, warnings about it, and notes for its outputs."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.labels import JURY
from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import StoredResults, places_of, stored
from judge.crowd.aggregators import AGGREGATORS, Aggregated, AggregatorOptions
from judge.crowd.labels import CrowdLabels, Item
from judge.errors import UsageError
from judge.io.cells import decimals
from judge.io.ids import natural_key
from judge.io.safe import printable
from judge.io.stored import sha256
from judge.records import Criterion, Estimate, FailureReason
from judge.stats.reliability import alpha_interval

SELF_JUDGING = "self-judging"
"""How the warnings begin that name runs."""
_FEWEST_WEIGHED = 3
_SEED = 4
_DECIMALS = 6
"""Decimals of probabilities, as in completions."""


class Member(msgspec.Struct, frozen=True, order=True):
    """One member of a jury: a model under a prompt, asked for the n-th time."""

    judge: str
    """`backend/model`."""
    prompt: str
    """`criterion/variant`."""
    prompt_digest: str
    sample: int
    """Counted from 0."""


class Verdicts(msgspec.Struct, frozen=True):
    """The jury's results under one criterion."""

    results: StoredResults
    """In the order in which the members' results name the responses."""
    rule: str
    """How the members' grades become one grade, in words."""
    ties: int
    """Responses for which several grades share the most votes."""
    alpha: Estimate
    """Krippendorff's ordinal alpha between the members."""


def jury_name(aggregator: str) -> str:
    """The jury's name in the field `judge` of records."""
    return f"{JURY}{aggregator}"


def jury_criterion(prompts: Sequence[Criterion], members: Sequence[Member]) -> Criterion:
    """The criterion as the jury judges it: the first prompt, under a digest over all members with their prompts.

    Raises:
        UsageError: The prompts have different scales.
    """
    first = prompts[0]
    for prompt in prompts[1:]:
        if _scale(prompt) != _scale(first):
            raise UsageError(
                f"{first.prompt_id} and {prompt.prompt_id}: members of one jury must grade on one scale, with the same "
                "grades, the same end good and the same grades positive"
            )
    unable = next((prompt.scale.unable for prompt in prompts if prompt.scale.unable is not None), None)
    digest = sha256(msgspec.json.encode([[member.judge, member.prompt_digest, member.sample] for member in members]))
    return msgspec.structs.replace(first, scale=msgspec.structs.replace(first.scale, unable=unable), digest=digest)


def _scale(criterion: Criterion) -> tuple[object, ...]:
    scale = criterion.scale
    return frozenset(level.grade for level in scale.levels), scale.polarity, frozenset(scale.positive)


def consensus(
    criterion: Criterion,
    members: Sequence[Member],
    results: Sequence[Judgment | Failure],
    aggregator: str,
    folder: Path | None = None,
) -> Verdicts:
    """Aggregate the members' results to one judgment or failure for each response.

    If at least half of the members gave a verdict and more were unable than gave a grade, the jury is unable.
    Otherwise it needs the grades of at least half of the members. Without them the result is a failure, with the
    members' most frequent reason.

    Args:
        criterion: From `jury_criterion`.
        members: The M members.
        results: One result of each member for each response; those under other criteria are passed over.
        aggregator: One of JURIES.
        folder: As for `ResultWriter`.
    """
    numbers, places, given = _votes(criterion, members, results)
    labels, codes = _labels(criterion, members, numbers, given)
    aggregated = AGGREGATORS[aggregator](labels, AggregatorOptions()) if len(labels.code) else None
    where = {item: i for i, item in enumerate(labels.items)}
    names = member_names(members)
    judge = jury_name(aggregator)
    rows = zip(*(map(results.__getitem__, places) for places in places), strict=True)
    verdicts = (
        _verdict(criterion, labels.grades, row, names, judge, aggregated, where[item])
        for item, row in zip(numbers, rows, strict=True)
    )
    return Verdicts(
        results=stored(verdicts, folder),
        rule="no member gave a grade" if aggregated is None else aggregated.rule,
        ties=0 if aggregated is None else int(aggregated.tied.sum()),
        alpha=alpha_interval(codes, labels.topic, labels.grades, "ordinal", np.random.default_rng(_SEED)),
    )


def _votes(
    criterion: Criterion, members: Sequence[Member], results: Sequence[Judgment | Failure]
) -> tuple[dict[Item, int], list["array[int]"], list["array[int]"]]:
    member = {(member.judge, member.prompt_digest, member.sample): i for i, member in enumerate(members)}
    code = {grade: i for i, grade in enumerate(sorted(level.grade for level in criterion.scale.levels))}
    items: dict[Item, int] = {}
    places, codes = ([array(kind) for _ in members] for kind in "qb")
    for place in places_of(results, criterion.name):
        result = results[place]
        who = member[result.judge, result.criterion_digest, result.sample]
        number = items.setdefault(Item(result.turn_id, result.response_id), len(items))
        given = code[result.grade] if isinstance(result, Judgment) and not result.unable else -1
        for numbers, value in ((places[who], place), (codes[who], given)):
            numbers.extend([-1] * (number + 1 - len(numbers)))
            numbers[number] = value
    if any(-1 in numbers or len(numbers) < len(items) for numbers in places):
        raise ValueError(f"a member of the jury has no result for some response under {criterion.name}")
    return items, places, codes


def _labels(
    criterion: Criterion, members: Sequence[Member], numbers: Mapping[Item, int], given: Sequence["array[int]"]
) -> tuple[CrowdLabels, NDArray[np.int8]]:
    """The members' grades as a crowd's labels, and as codes (members x items), -1 where there is no grade."""
    grades = tuple(sorted(level.grade for level in criterion.scale.levels))
    items = sorted(numbers, key=lambda item: (natural_key(item.turn_id), natural_key(item.item_id)))
    order = np.array([numbers[item] for item in items], dtype=np.int64)
    codes = np.array([np.asarray(each)[order] for each in given], dtype=np.int8).reshape(len(members), -1)
    worker, place = np.nonzero(codes >= 0)
    labels = CrowdLabels(
        criterion=criterion.name,
        grades=grades,
        workers=tuple(member_names(members)),
        items=tuple(items),
        worker=worker.astype(np.int32),
        item=place.astype(np.int32),
        code=codes[worker, place],
    )
    return labels, codes


def _verdict(
    criterion: Criterion,
    grades: Sequence[int],
    row: Sequence[Judgment | Failure],
    names: Sequence[str],
    judge: str,
    aggregated: Aggregated | None,
    place: int,
) -> Judgment | Failure:
    given = [result for result in row if isinstance(result, Judgment)]
    failed = [result for result in row if isinstance(result, Failure)]
    unable = sum(result.unable for result in given)
    graded = len(given) - unable
    line = "; ".join(f"{name}: {_word(result)}" for name, result in zip(names, row, strict=True))
    asked = [[result.judge, result.criterion_digest, result.sample, result.request_digest] for result in row]
    digest = sha256(msgspec.json.encode(asked))
    level = criterion.scale.unable
    first = row[0]
    if unable > graded and 2 * len(given) >= len(row) and level is not None:
        grade, expected, probabilities = level.grade, None, None
    elif graded and 2 * graded >= len(row) and aggregated is not None:
        grade = grades[aggregated.code[place]]
        expected = float(aggregated.mean[place])
        probabilities = _probabilities(criterion, grades, aggregated, place)
    else:
        return Failure(
            response_id=first.response_id,
            turn_id=first.turn_id,
            topic_id=first.topic_id,
            criterion=criterion.name,
            variant=criterion.variant,
            reason=_reason(failed),
            detail=f"{graded} of {len(row)} members gave a grade: {line}",
            raw=None,
            judge=judge,
            criterion_digest=criterion.digest,
            request_digest=digest,
            sample=0,
        )
    return Judgment(
        response_id=first.response_id,
        turn_id=first.turn_id,
        topic_id=first.topic_id,
        criterion=criterion.name,
        variant=criterion.variant,
        grade=grade,
        unable=probabilities is None,
        expected=expected,
        probabilities=probabilities,
        rationale=line,
        sentences=(),
        judge=judge,
        model=None,
        criterion_digest=criterion.digest,
        request_digest=digest,
        form=Counter(result.form for result in given).most_common(1)[0][0],
        repaired=any(result.repaired for result in given),
        sample=0,
    )


def _word(result: Judgment | Failure) -> str:
    if isinstance(result, Failure):
        return result.reason
    return "unable" if result.unable else str(result.grade)


def _reason(failed: Sequence[Failure]) -> FailureReason:
    """The most frequent reason; of equally frequent ones, that of the first member."""
    return Counter(failure.reason for failure in failed).most_common(1)[0][0]


def _probabilities(criterion: Criterion, grades: Sequence[int], aggregated: Aggregated, place: int) -> dict[str, float]:
    """Label to probability: the model's posterior, else the share of the members."""
    posterior = aggregated.posterior
    shares = aggregated.counts[place] / aggregated.n[place] if posterior is None else posterior[place]
    labels = {level.grade: level.label for level in criterion.scale.levels}
    return {labels[grade]: round(p, _DECIMALS) for grade, p in zip(grades, shares.tolist(), strict=True)}


def member_names(members: Sequence[Member]) -> list[str]:
    """Distinct names of the members: the judge, the prompt if there are several, `#n` if there are several samples."""
    prompts = len({member.prompt_digest for member in members}) > 1
    samples = any(member.sample for member in members)
    return [
        printable(
            f"{member.judge}{f' {member.prompt}' if prompts else ''}{f' #{member.sample + 1}' if samples else ''}"
        )
        for member in members
    ]


def cautions(
    aggregator: str,
    members: Mapping[str, Sequence[Member]],
    families: Mapping[str, str],
    runs: Iterable[str],
    temperature: float,
) -> tuple[str, ...]:
    """Warnings about a jury.

    Args:
        aggregator: One of JURIES.
        members: By criterion.
        families: Run or judge to its family of models.
        runs: Ids of the runs that are judged.
        temperature: The sampling temperature of the members.
    """
    warnings = []
    for criterion, jury in members.items():
        if len(jury) % 2 == 0:
            warnings.append(f"{criterion}: an even number of members ({len(jury)}) can be split in halves")
        if AGGREGATORS[aggregator].weighs and len(jury) < _FEWEST_WEIGHED:
            warnings.append(
                f"{criterion}: of {len(jury)} members nothing tells which one to believe more ({aggregator})"
            )
        for judge, times in Counter(member.judge for member in jury).items():
            if times > 1:
                warnings.append(
                    f"{criterion}: {times} of {len(jury)} members are {judge} under other prompts or asked again: they "
                    "err together, and do not count as independent voices"
                )
    judges = list(dict.fromkeys(member.judge for jury in members.values() for member in jury))
    if temperature == 0 and any(member.sample for jury in members.values() for member in jury):
        warnings.append("at temperature 0 the samples of one model and prompt are hardly more than copies")
    for family in sorted({families[judge] for judge in judges if judge in families}):
        kin = [judge for judge in judges if families.get(judge) == family]
        if len(kin) > 1:
            warnings.append(f"{' and '.join(kin)} are of one family, {family}: they are not independent")
        own = sorted((run for run in runs if families.get(run) == family), key=natural_key)
        if own:
            warnings.append(f"{SELF_JUDGING}: {', '.join(own)} and {' and '.join(kin)} are of one family, {family}")
    return tuple(map(printable, warnings))


class JuryNotes(msgspec.Struct, frozen=True):
    """Notes about a jury beside its judgments."""

    verdicts: Mapping[str, Verdicts]
    """By criterion."""
    members: Mapping[str, tuple[Member, ...]]
    warnings: tuple[str, ...]
    said: Sequence[Judgment | Failure]
    """The results of all members."""

    @property
    def lines(self) -> tuple[str, ...]:
        """For people: the warnings, then how far the members agree."""
        return (*(f"Warning: {warning}" for warning in self.warnings), *self.agreement)

    @property
    def agreement(self) -> tuple[str, ...]:
        """How many members there are, how far they agree and how their grades become one, a line a criterion."""
        return tuple(
            f"{name}, a jury of {_size(self.members[name])}: {_alpha(verdicts.alpha)} between members; "
            f"{verdicts.ties} ties; grade: {verdicts.rule}"
            for name, verdicts in self.verdicts.items()
        )

    def about(self, criterion: str) -> dict[str, Any]:
        """Members, rule, agreement and warnings as JSON values, for manifest and sidecar."""
        verdicts = self.verdicts[criterion]
        return {
            "members": member_names(self.members[criterion]),
            "rule": verdicts.rule,
            "ties": verdicts.ties,
            "alpha": verdicts.alpha,
            "warnings": self.warnings,
        }


def _size(members: Sequence[Member]) -> str:
    prompts = list(dict.fromkeys(member.prompt for member in members))
    return f"{len(members)} under {' and '.join(prompts)}" if len(prompts) > 1 else str(len(members))


def _alpha(alpha: Estimate) -> str:
    value, low, high = (decimals(number, 3) for number in (alpha.value, alpha.low, alpha.high))
    if not value:
        return f"ordinal alpha is undefined ({alpha.reason})"
    return f"ordinal alpha {value} {f'[{low}, {high}]' if low else f'({alpha.reason})'}"
