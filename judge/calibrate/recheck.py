"""How far a judge's grades move when it is asked again: in the same run (recheck) and at another date (drift). Pure."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from judge.ask.results import Label, Labels
from judge.calibrate.findings import Equivalence
from judge.calibrate.selection import word_of
from judge.errors import UsageError
from judge.io.ids import groups_of, natural_order, topic_of
from judge.io.table import Column, RecordColumns, fields
from judge.io.text import count, shown
from judge.records import Estimate, FailureReason, Record
from judge.stats.means import FEWEST_TOPICS, clopper_pearson, mean_interval, unvarying_interval
from judge.stats.raters import codes_of, compare_raters
from judge.stats.run_differences import for_skewness

RECHECK_SEED = 2023
"""Of the choice of what is asked again."""
RECHECKED: RecordColumns = {
    **fields("judge prompt"),
    "asked again": lambda row: row.asked,
    **fields("topics=flipped.topics"),
    Column(
        "other answer", about="the share of second answers with another grade, with its 95 % interval over topics"
    ): lambda row: row.flipped,
    Column("distance", about="how far the two grades are apart on average"): lambda row: row.change,
    **fields("higher lower missing"),
}


class RecheckedItem(Record, frozen=True):
    """One judgment and the second answer to its question; docs/reference/files.toml lists the fields."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    judge: str
    sample: int
    grade: int | None
    """None where the judge was unable to judge."""
    again_grade: int | None
    """None where the judge was unable to judge, or where there is no second answer."""
    again_missing: FailureReason | None
    model: str | None
    again_model: str | None
    system_fingerprint: str | None
    again_system_fingerprint: str | None
    request_digest: str
    again_request_digest: str | None


class RecheckRow(msgspec.Struct, frozen=True):
    """What the second answers of one judge under one prompt say."""

    judge: str
    prompt: str
    asked: int
    flipped: Estimate
    """Share of the second answers that differ from the first, with a 95 % interval over topics."""
    change: Estimate
    """Mean distance of the two grades, where both answers have one, with a 95 % interval over topics."""
    higher: int
    lower: int
    """Second grades above and below the first."""
    missing: int


class ServedChange(msgspec.Struct, frozen=True):
    """The provider named another model or another fingerprint the second time."""

    judge: str
    what: Literal["model", "system_fingerprint"]
    before: str | None
    after: str | None
    replies: int


def parse_part(text: str) -> Callable[[int], int]:
    """How many of so many judgments `2%` or `20` names: the share rounded up, or the number as far as it goes.

    A UsageError if it is neither a share above 0 % and up to 100 % nor a whole number above 0.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        if percent and not rest and 0 < float(number) <= 100:
            # In millionths, because .02 × 150 is a little more than 3.
            millionths = max(1, round(float(number) / 100 * 1_000_000))
            return lambda judged: -(-judged * millionths // 1_000_000)
        if not percent and (most := int(number)) > 0:
            return lambda judged: min(most, judged)
    except ValueError:
        pass
    raise UsageError(f"--recheck {shown(text)}: expected a share such as 2%, or a number of judgments such as 20")


def chosen(judged: Sequence[tuple[str, str, int, str]], part: Callable[[int], int]) -> list[int]:
    """The places of the judgments to ask again, of each judge under each prompt as many as `part` says.

    The order by SHA-256 of seed, sample and response is as good as a random one, and a pool that grows keeps it.
    Prompts are asked about the same responses, so that one call may answer several. `judged` has judge, digest of the
    prompt, sample and response id.
    """
    groups = groups_of((question[:3], place) for place, question in enumerate(judged))
    taken: list[int] = []
    for places in groups.values():
        drawn = sorted(places, key=lambda place: _draw(*judged[place][2:]))
        taken += drawn[: part(len(places))]
    return sorted(taken)


def _draw(sample: int, response_id: str) -> bytes:
    return hashlib.sha256(msgspec.json.encode((RECHECK_SEED, sample, response_id))).digest()


def recheck_rows(items: Sequence[RecheckedItem]) -> tuple[RecheckRow, ...]:
    """What the second answers say, by judge and prompt.

    "Unable to judge" in place of a grade is a flip; it has no distance from a grade.
    """
    groups = groups_of(((item.judge, f"{item.criterion}/{item.variant}"), item) for item in items)
    order = sorted(groups, key=natural_order)
    return tuple(_row(judge, prompt, groups[judge, prompt]) for judge, prompt in order)


def _row(judge: str, prompt: str, items: Sequence[RecheckedItem]) -> RecheckRow:
    answered = [item for item in items if item.again_missing is None]
    pairs = [
        (item.grade, item.again_grade, item.topic_id)
        for item in answered
        if item.grade is not None and item.again_grade is not None
    ]
    distances = [float(abs(after - before)) for before, after, _ in pairs]
    topics = [topic for *_, topic in pairs]
    change = mean_interval(distances, topics, bounds=(0, math.inf), what="changes")
    flipped = _share([item.grade != item.again_grade for item in answered], [item.topic_id for item in answered])
    higher = sum(after > before for before, after, _ in pairs)
    lower = sum(after < before for before, after, _ in pairs)
    return RecheckRow(
        judge=judge,
        prompt=prompt,
        asked=len(items),
        flipped=flipped,
        change=change,
        higher=higher,
        lower=lower,
        missing=len(items) - len(answered),
    )


def _share(which: Sequence[bool], topics: Sequence[str]) -> Estimate:
    """A share of answers; of none or all, with the exact interval of one trial for each topic."""
    share = mean_interval([float(one) for one in which], topics, bounds=(0, 1), what="answers")
    if share.value in (0, 1) and share.topics >= FEWEST_TOPICS:
        low, high = clopper_pearson(share.topics if share.value else 0, share.topics)
        return Estimate(value=share.value, low=low, high=high, n=share.n, topics=share.topics)
    return share


def served_changes(items: Sequence[RecheckedItem]) -> tuple[ServedChange, ...]:
    """Which models and fingerprints changed between the first and the second answer, by judge."""
    return tuple(change for change, _ in _changes(items))


def _changes(items: Sequence[RecheckedItem]) -> list[tuple[ServedChange, list[RecheckedItem]]]:
    """What changed, by judge, each with the items of which it did."""
    changed: dict[tuple[str, Literal["model", "system_fingerprint"], str | None, str | None], list[RecheckedItem]] = {}
    for item in items:
        if item.again_missing is not None:
            continue
        if item.model != item.again_model:
            changed.setdefault((item.judge, "model", item.model, item.again_model), []).append(item)
        if item.system_fingerprint != item.again_system_fingerprint:
            fingerprints = (item.system_fingerprint, item.again_system_fingerprint)
            changed.setdefault((item.judge, "system_fingerprint", *fingerprints), []).append(item)
    changes = []
    for key in sorted(changed, key=lambda key: tuple(map(str, key))):
        judge, what, before, after = key
        replies = len(changed[key])
        changes.append(
            (ServedChange(judge=judge, what=what, before=before, after=after, replies=replies), changed[key])
        )
    return changes


def change_lines(items: Sequence[RecheckedItem], recorded: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each change of what answered, with the times between which it came.

    `recorded` says when the journal recorded the reply to a request, by its digest, as `2025-01-31T12:00:00.000Z`.
    """
    lines = []
    for change, changed in _changes(items):
        # The last of the first answers and the first of the second ones are nearest to the change.
        before = max((recorded.get(item.request_digest, "") for item in changed), default="")
        after = min((recorded.get(item.again_request_digest or "", "") for item in changed), default="")
        came = f"{change.judge}: {count(change.replies, 'second answer')} came from another {change.what}"
        lines.append(f"{came}: {_served(change.before, before)}, then {_served(change.after, after)}")
    return tuple(lines)


def _served(name: str | None, recorded: str) -> str:
    moment = f" ({recorded[:19].replace('T', ' ')})" if recorded else ""
    return f"{'none named' if name is None else shown(name)}{moment}"


AnchorKeys = Mapping[tuple[str, str], tuple[str, ...]]
"""By turn and response id, what the response is called in both files."""
Stability = Literal["STEADY", "MOVED", "INCONCLUSIVE"]


class Drift(msgspec.Struct, frozen=True):
    """One judge under one prompt at two dates, on the responses that it graded at both."""

    before: str
    """The judge, as its first file names it."""
    after: str
    prompt: str | None
    n: int
    topics: int
    change: Estimate
    """Mean of the later grade minus the earlier one, with a 95 % interval over topics (`for_skewness`)."""
    within: Estimate
    """The same with a 90 % interval: two one-sided tests at 5 % go by it."""
    unchanged: Estimate
    """Share of responses with the same grade at both dates."""
    higher: int
    lower: int
    """Responses with a higher and with a lower grade at the later date."""
    lost: int
    gained: int
    """Responses in both files with a grade at the first date only, and at the second only."""
    only_before: int
    only_after: int
    """Responses in one file only."""
    margin: float
    word: Stability


def drift(before: Labels, after: Labels, keys_before: AnchorKeys, keys_after: AnchorKeys, margin: float) -> Drift:
    """Compare a judge's first answers about the same responses at two dates."""
    first = _by_key(before, keys_before)
    second = _by_key(after, keys_after)
    common = sorted(first.keys() & second.keys(), key=natural_order)
    topics = [topic_of(key[0]) for key in common]
    # Labels of a folder name no scale, so the grades of both dates stand for it, and two where all are equal.
    scale = sorted({grade for grade in (*first.values(), *second.values()) if grade is not None})
    most = float(scale[-1] - scale[0]) if len(scale) > 1 else 1.0
    compared = compare_raters(
        (),
        a=codes_of([first[key] for key in common], scale),
        b=codes_of([second[key] for key in common], scale),
        units=codes_of(topics, list(dict.fromkeys(topics))),
        grades=scale,
        seed=RECHECK_SEED,
    )
    changes: list[int] = []
    changed_topics: list[str] = []
    for key, topic in zip(common, topics, strict=True):
        earlier = first[key]
        later = second[key]
        if earlier is not None and later is not None:
            changes.append(later - earlier)
            changed_topics.append(topic)
    within = mean_change(changes, changed_topics, most, level=0.9)
    return Drift(
        before=before.judge,
        after=after.judge,
        prompt=after.prompt,
        n=compared.n,
        topics=compared.topics,
        change=mean_change(changes, changed_topics, most, level=0.95),
        within=within,
        unchanged=_share([not change for change in changes], changed_topics),
        higher=compared.higher,
        lower=compared.lower,
        lost=compared.only_a,
        gained=compared.only_b,
        only_before=len(first.keys() - second.keys()),
        only_after=len(second.keys() - first.keys()),
        margin=margin,
        word=STABILITY[word_of(within, margin)],
    )


def mean_change(changes: Sequence[int], topics: Sequence[str], most: float, level: float) -> Estimate:
    """The mean change with its interval; exact where all changes are equal, and then no wider than one other makes it.

    One other change is one by `most`, of a response of the largest topic.
    """
    if len(set(changes)) != 1:
        return _skewed_mean(changes, topics, most, level)
    mean = Estimate(value=float(changes[0]), low=None, high=None, n=len(changes), topics=len(set(topics)))
    exact = unvarying_interval(mean, topics, (-most, most), level=level)
    place = topics.index(Counter(topics).most_common(1)[0][0])
    others = [
        _skewed_mean([*changes[:place], end, *changes[place + 1 :]], topics, most, level)
        for end in (-most, most)
        if end != changes[0]
    ]
    low = min((other.low for other in others if other.low is not None), default=-most)
    high = max((other.high for other in others if other.high is not None), default=most)
    if exact.low is None or exact.high is None:
        return exact
    return replace(exact, low=max(exact.low, min(low, changes[0])), high=min(exact.high, max(high, changes[0])))


def _skewed_mean(changes: Sequence[float], topics: Sequence[str], most: float, level: float) -> Estimate:
    codes = np.unique(np.array(topics, dtype=np.str_), return_inverse=True)[1]
    sums = np.bincount(codes, weights=changes).astype(np.float64)
    sizes = np.bincount(codes).astype(np.float64)
    return for_skewness(mean_interval(changes, topics, level=level, what="changes"), sums, sizes, most)


def _by_key(labels: Labels, keys: AnchorKeys) -> dict[tuple[str, ...], int | None]:
    def key_of(label: Label) -> tuple[str, ...]:
        return keys.get((label.turn_id, label.response_id), (label.turn_id, label.response_id))

    return {key_of(label): label.grade for label in labels.labels if label.sample == 0}


STABILITY: dict[Equivalence, Stability] = {
    "EQUIVALENT": "STEADY", "DIFFERENT": "MOVED", "INCONCLUSIVE": "INCONCLUSIVE"
}  # fmt: skip
"""What a change within, beyond or across the margin says of a judge."""
