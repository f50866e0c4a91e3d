"""Several LLM judges as one: the members of a jury, their consensus, warnings about it, and notes for its outputs."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.asking import Judge
from judge.ask.opening import MOST_SAMPLES
from judge.ask.records import Failure, Judgment, Tasks, in_a_word
from judge.ask.results import JURY, StoredResults, places_of, stored
from judge.crowd.labels import AGGREGATORS, CrowdGrades, CrowdLabels, CrowdSettings, Item
from judge.errors import UsageError
from judge.io.files import sha256
from judge.io.ids import natural_key, natural_order
from judge.io.text import count, interval, printable
from judge.records import Criterion, Estimate, FailureReason
from judge.stats.reliability import alpha_interval
from judge.units import UNITS

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
    rule: str
    """How the members' grades become one grade, in words."""
    ties: int
    """Responses for which several grades share the most votes."""
    alpha: Estimate
    """Krippendorff's ordinal alpha between the members."""
    unlike: int = 0
    """Responses whose grade is none of those that most members gave, because members were weighed."""


def juries() -> tuple[str, ...]:
    """The aggregators of a jury."""
    return tuple(name for name, row in AGGREGATORS.items() if row.jury)


def jury_criterion(prompts: Sequence[Criterion], members: Sequence[Member]) -> Criterion:
    """The criterion as the jury judges it: the first prompt, under a digest over all members with their prompts.

    A UsageError if the prompts have different scales.
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
    members' most frequent reason. Results come in the order in which the members' results name the responses.
    """
    grades = tuple(sorted(level.grade for level in criterion.scale.levels))
    numbers, places, codes = _votes(criterion, members, results, grades)
    # Columns of the codes in natural order of turn and response.
    items = sorted(numbers, key=natural_order)
    codes = codes[:, [numbers[item] for item in items]]
    worker, item = np.nonzero(codes >= 0)
    names = member_names(members)
    labels = CrowdLabels(
        criterion=criterion.name,
        grades=grades,
        workers=tuple(names),
        items=tuple(items),
        worker=worker.astype(np.int32),
        item=item.astype(np.int32),
        code=codes[worker, item],
    )
    settings = CrowdSettings(tie="mean-half-middle") if UNITS[criterion.unit].orders > 1 else CrowdSettings()
    voted = AGGREGATORS[aggregator].aggregate(labels, settings) if len(labels.code) else None
    index = {item: i for i, item in enumerate(items)}
    verdicts = (
        _verdict(criterion, [results[place] for place in row], names, f"{JURY}{aggregator}", voted, index[item])
        for item, row in zip(numbers, places.T.tolist(), strict=True)
    )
    weighed = voted is not None and AGGREGATORS[aggregator].weighs
    return Verdicts(
        results=stored(verdicts, folder),
        rule="no member gave a grade" if voted is None else voted.rule,
        ties=0 if voted is None else int(voted.tied.sum()),
        alpha=alpha_interval(codes, labels.topic, grades, "ordinal", np.random.default_rng(_SEED)),
        unlike=voted.unlike if voted is not None and weighed else 0,
    )


def _votes(
    criterion: Criterion, members: Sequence[Member], results: Sequence[Judgment | Failure], grades: Sequence[int]
) -> tuple[dict[Item, int], NDArray[np.int64], NDArray[np.int8]]:
    """The responses in order, and of each member (rows) the place of its result and its code, -1 without a grade."""
    member = {(member.judge, member.prompt_digest, member.sample): i for i, member in enumerate(members)}
    items: dict[Item, int] = {}
    votes = array("q")
    for place in places_of(results, criterion.name):
        result = results[place]
        number = items.setdefault(Item(result.turn_id, result.response_id), len(items))
        code = grades.index(result.grade) if isinstance(result, Judgment) and not result.unable else -1
        votes.extend((member[result.judge, result.criterion_digest, result.sample], number, place, code))
    who, which, result_places, result_codes = np.array(votes, dtype=np.int64).reshape(-1, 4).T
    places, codes = np.full((2, len(members), len(items)), -1, dtype=np.int64)
    places[who, which] = result_places
    codes[who, which] = result_codes
    if (places < 0).any():
        raise ValueError(f"a member of the jury has no result for some response under {criterion.name}")
    return items, places, codes.astype(np.int8)


def _verdict(
    criterion: Criterion,
    row: Sequence[Judgment | Failure],
    names: Sequence[str],
    judge: str,
    grades: CrowdGrades | None,
    place: int,
) -> Judgment | Failure:
    """The jury's result for the response at a place of the grades, from a result of each member."""
    judged = [result for result in row if isinstance(result, Judgment)]
    unable = sum(result.unable for result in judged)
    graded = len(judged) - unable
    line = "; ".join(f"{name}: {in_a_word(result)}" for name, result in zip(names, row, strict=True))
    asked = [[result.judge, result.criterion_digest, result.sample, result.request_digest] for result in row]
    common: dict[str, Any] = {
        "response_id": row[0].response_id,
        "turn_id": row[0].turn_id,
        "topic_id": row[0].topic_id,
        "criterion": criterion.name,
        "variant": criterion.variant,
        "judge": judge,
        "criterion_digest": criterion.digest,
        "request_digest": sha256(msgspec.json.encode(asked)),
        "sample": 0,
    }
    levels = sorted(criterion.scale.levels, key=lambda level: level.grade)
    if unable > graded and 2 * len(judged) >= len(row) and criterion.scale.unable is not None:
        grade = criterion.scale.unable.grade
        expected = None
        probabilities = None
    elif graded and 2 * graded >= len(row) and grades is not None:
        grade = levels[grades.code[place]].grade
        expected = float(grades.mean[place])
        shares = grades.shares[place].tolist()
        probabilities = {level.label: round(p, _DECIMALS) for level, p in zip(levels, shares, strict=True)}
    else:
        # Of equally frequent reasons, that of the first member.
        reasons: Counter[FailureReason] = Counter(result.reason for result in row if isinstance(result, Failure))
        detail = f"{graded} of {len(row)} members gave a grade: {line}"
        return Failure(**common, reason=reasons.most_common(1)[0][0], detail=detail, raw=None)
    return Judgment(
        **common,
        grade=grade,
        unable=probabilities is None,
        expected=expected,
        probabilities=probabilities,
        rationale=line,
        sentences=(),
        model=None,
        form=Counter(result.form for result in judged).most_common(1)[0][0],
        repaired=any(result.repaired for result in judged),
    )


def member_names(members: Sequence[Member]) -> list[str]:
    """Distinct names of the members: the judge, the prompt if there are several, `#n` if there are several samples."""
    prompts = len({member.prompt_digest for member in members}) > 1
    samples = any(member.sample for member in members)
    names: list[str] = []
    for member in members:
        prompt = f" {member.prompt}" if prompts else ""
        sample = f" #{member.sample + 1}" if samples else ""
        names.append(printable(f"{member.judge}{prompt}{sample}"))
    return names


def cautions(
    aggregator: str,
    members: Mapping[str, Sequence[Member]],
    families: Mapping[str, str],
    runs: Iterable[str],
    temperature: float,
) -> tuple[str, ...]:
    """Warnings about the members, by criterion.

    `families`: run or judge to its family of models; `runs`: the runs that are judged.
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
    everyone = list(chain.from_iterable(members.values()))
    judges = list(dict.fromkeys(member.judge for member in everyone))
    if temperature == 0 and any(member.sample for member in everyone):
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
            f"{verdicts.ties} ties; {_unlike(verdicts)}grade: {verdicts.rule}"
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


def _unlike(verdicts: Verdicts) -> str:
    if not verdicts.unlike:
        return ""
    return f"{count(verdicts.unlike, 'grade is', 'grades are')} none that most members gave; "


def _size(members: Sequence[Member]) -> str:
    prompts = list(dict.fromkeys(member.prompt for member in members))
    return f"{len(members)} under {' and '.join(prompts)}" if len(prompts) > 1 else str(len(members))


def _alpha(alpha: Estimate) -> str:
    if alpha.value is None:
        return f"ordinal alpha is undefined ({alpha.reason})"
    return f"ordinal alpha {interval(alpha)}{f' ({alpha.reason})' if alpha.low is None else ''}"


class Jury(Judge):
    """Every model of a judge under every prompt of a criterion (in natural order), each asked `samples` times."""

    def __init__(
        self,
        aggregator: str,
        judge: Judge,
        prompts: Mapping[str, Sequence[Criterion]],
        samples: int,
        families: Mapping[str, str],
        runs: Iterable[str],
    ) -> None:
        """Take the models of a judge and prompts, whose order does not matter; `families` and `runs` as in `cautions`.

        A UsageError if the aggregator makes means of verdicts on pairs, the jury has one member, prompts differ in
        scale, or members are equal.
        """
        if not 1 <= samples <= MOST_SAMPLES:
            raise UsageError(f"{samples} samples: expected 1 to {MOST_SAMPLES} (--samples)")
        if not AGGREGATORS[aggregator].votes and any(
            UNITS[prompt.unit].orders > 1 for prompt in chain.from_iterable(prompts.values())
        ):
            raise UsageError(f"--jury {aggregator} makes a tie of a vote for each response; pairs take --jury majority")
        judges = [model.name for model in judge.models]
        if twice := list(dict.fromkeys(name for name in judges if judges.count(name) > 1)):
            raise UsageError(f"{', '.join(twice)}: named twice; --samples N asks every model N times")
        super().__init__(judge.models, judge.options, judge.settings, f"{JURY}{aggregator}")
        self.aggregator = aggregator
        self.samples = samples
        self.prompts = {
            name: tuple(sorted(prompts[name], key=lambda prompt: natural_key(prompt.prompt_id)))
            for name in sorted(prompts)
        }
        for variants in self.prompts.values():
            for prompt, later in combinations(variants, 2):
                # Records could not distinguish them.
                if prompt.digest == later.digest or prompt.prompt_id == later.prompt_id:
                    raise UsageError(
                        f"{prompt.file} and {later.file} are the same prompt or are both called {prompt.prompt_id}: "
                        "give each once, or rename one of the files"
                    )
        self.members: dict[str, tuple[Member, ...]] = {}
        for name, variants in self.prompts.items():
            asked = product(judges, variants, range(samples))
            self.members[name] = tuple(
                Member(judge=model, prompt=prompt.prompt_id, prompt_digest=prompt.digest, sample=sample)
                for model, prompt, sample in asked
            )
        """By criterion: every model under every prompt, as often as it is asked."""
        for name, jury in self.members.items():
            if len(jury) == 1:
                raise UsageError(
                    f"{name}: one member is no jury: give several --model, several --prompt of {name}, or --samples"
                )
        self.warnings = cautions(aggregator, self.members, families, runs, judge.options.temperature)
        self.criteria = tuple(jury_criterion(variants, self.members[name]) for name, variants in self.prompts.items())
        """The criteria as the jury judges them."""

    def tasks(self, wanted: Tasks) -> Tasks:
        """The tasks of one model, for the tasks of the jury."""
        return wanted.varied(lambda criterion: tuple(product(self.prompts[criterion.name], range(self.samples))))

    def configuration(self) -> dict[str, object]:
        """The members as JSON values; a jury of other members has another configuration."""
        members = {name: list(map(msgspec.to_builtins, members)) for name, members in self.members.items()}
        return {"jury": {"aggregator": self.aggregator, "members": members}}

    def decide(
        self, collected: Sequence[Judgment | Failure], folder: Path | None = None
    ) -> tuple[StoredResults, JuryNotes]:
        """Aggregate the results of all members to the jury's results, with notes for the outputs."""
        verdicts = {
            criterion.name: consensus(criterion, self.members[criterion.name], collected, self.aggregator, folder)
            for criterion in self.criteria
        }
        results = StoredResults.joined(verdict.results for verdict in verdicts.values())
        return results, JuryNotes(verdicts, self.members, self.warnings, collected)
