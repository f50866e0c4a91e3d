"""What is said of a certificate's second year, in sentences. Pure."""

from collections.abc import Sequence

from judge.calibrate.findings import GRADES, WORDS, Carried, LabeledSupport, SupportRow
from judge.io.text import count, decimals
from judge.records import Estimate
from judge.stats.noninferiority import CarryWord


def support_words(found: LabeledSupport) -> str:
    """The badge in one sentence, without its period."""
    if found.word == "UNKNOWN":
        return f"Whether the items are like those labeled is UNKNOWN: {found.reason}"
    if found.word == "WITHIN":
        return f"The items are WITHIN what was labeled, by {_and([row.measure for row in found.rows])}"
    texts = [_beyond(row) for row in found.rows if row.is_outside]
    return f"The items are OUTSIDE what was labeled: {', '.join(texts)}"


def _beyond(row: SupportRow) -> str:
    share = _percent(row.beyond)
    if row.measure == GRADES:
        return f"{share} have grades by the judge that hardly any labeled one had"
    places = 0 if row.measure == WORDS else 2
    return f"{share} are beyond {decimals(row.low, places)} to {decimals(row.high, places)} in {row.measure}"


def _percent(share: Estimate) -> str:
    if share.value is None:
        return "an unknown share"
    text = f"{decimals(100 * share.value, 0)} %"
    if share.low is None or share.high is None:
        return text
    return f"{text} [{decimals(100 * share.low, 0)}, {decimals(100 * share.high, 0)}]"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def carried_words(carried: Carried) -> str:
    """What is said of a second year wherever its certificate is used, in one sentence without its period."""
    values = [_value(estimate) for estimate in (carried.certified, carried.found)]
    text = (
        f"The agreement certified on {carried.date} ({carried.verdict}) {_VERBS[carried.word]}: {carried.statistic} "
        f"{values[0]} there, {values[1]} here, difference {_value(carried.difference)}, margin {carried.margin:g}"
    )
    if carried.topics_needed is not None:
        text += (
            f"; about {count(carried.labels_needed or 0, 'label')} on {count(carried.topics_needed, 'topic')} would "
            "decide it if the difference stays as it is"
        )
    return text


_VERBS: dict[CarryWord, str] = {
    "CARRIES": "CARRIES to other topics",
    "DOES NOT CARRY": "DOES NOT CARRY to other topics",
    "INCONCLUSIVE": "is INCONCLUSIVE on other topics",
}


def _value(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f} without an interval"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
