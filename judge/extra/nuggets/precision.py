"""Nugget precision: the share of a response's claims that nuggets carry, and F with recall; measures of ARGUE. Pure.

A claim is a sentence that states a fact. The precision of a unit is over the claims of all its responses, so it stands
beside the recall of the same unit. A unit without a claim has no precision.

Each response counts in one unit. Where a topic has nuggets of its own and of turns, claims are labeled by both. Then
the responses to these turns are units of the turns, and the topic has the others. Recall is of one of both, so there is
no F.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from judge.extra.nuggets import CLAIM_LABELS, ClaimLabel, scores
from judge.extra.nuggets.labels import KnownClaims
from judge.io.ids import Cluster, cluster_of, groups_of, natural_key
from judge.io.table import Cell, Table, TsvColumns, fields, records_table
from judge.records import Estimate, Record
from judge.results.turns import HARNESS
from judge.stats.means import mean_interval

PRECISIONS: Mapping[str, frozenset[ClaimLabel]] = {
    "nugget_precision": frozenset({"nugget"}),
    "precision": frozenset({"nugget", "passage"}),
}
"""Name to the labels of the claims that count; a measure is a row."""
RECALL = "strict_all_score"
"""The recall in F."""
F = "f1"
_ABOUT = {
    "nugget_precision": "share of the claims that some nugget carries",
    "precision": "share of the claims that some nugget or a used passage carries",
    F: f"harmonic mean of nugget_precision and {RECALL} of the same unit",
}

ClaimStatus = Literal["labeled", "no_claim", "missing", "unanswered"]
"""labeled: the sentences of every response have labels. no_claim: none of them claims anything. missing: a response has
no labels. unanswered: the run ranked no pooled response first."""


class ClaimUnit(Record, frozen=True):
    """What carries the claims of a run in a turn or topic with nuggets."""

    run_id: str
    scope: str
    """The turn, or the topic for nuggets of a whole topic."""
    topic_id: str
    responses: tuple[str, ...]
    """The pooled responses that the run ranked first there."""
    status: ClaimStatus
    labels: dict[ClaimLabel, int]
    """Label to the number of sentences of all responses; empty unless all of them have labels."""
    values: dict[str, float]
    """Precision, or F, to its value; without one that the unit does not have."""
    reasons: dict[str, str]
    """Response id to the reason of missing labels."""
    has_f: bool
    """Whether the unit can have F: claims and recall are of the same nuggets."""
    f1_bound: float | None
    """F with everything missing against the run, and 0 without a claim; None if a lack counts against no run."""

    @property
    def counts(self) -> dict[str, int]:
        """Every label with the number of its sentences."""
        return {label: self.labels.get(label, 0) for label in CLAIM_LABELS}

    @property
    def claims(self) -> int:
        """How many sentences claim something."""
        return sum(self.labels.values()) - self.counts["no_claim"]


class NuggetPrecision(Record, frozen=True):
    """The precision of one run."""

    run_id: str
    units: int
    """Turns and topics with nuggets that the run had to answer."""
    labeled: int
    """Those whose every response has labels, and that claim something."""
    no_claim: int
    """Those that claim nothing."""
    missing: int
    """Those with a response without labels."""
    unanswered: int
    """Those without a response."""
    means: dict[str, Estimate]
    """Precision, or F, to its mean over the units that have it."""
    f1_bound: float | None
    """F over all units that can have it: without a response or a claim it is 0, and missing labels count against the
    run; None if there is no such unit."""


def claim_units(units: Iterable[scores.RunUnit], known: KnownClaims) -> tuple[ClaimUnit, ...]:
    """What carries the claims of each unit, in the order of the units."""
    units = tuple(units)
    topics = {unit.topic_id for unit in units if unit.scope == unit.topic_id}
    both = topics & {unit.topic_id for unit in units if unit.scope != unit.topic_id}
    taken = {(unit.run_id, each) for unit in units if unit.scope != unit.topic_id for each in unit.responses}
    # The judge answered about these responses, if only by a reply that nobody can use.
    answered = known.labels.keys() | {key for key, each in known.failures.items() if each.reason not in HARNESS}
    reached = {unit.scope for unit in units if not answered.isdisjoint(unit.responses)}
    made = []
    for unit in units:
        responses = unit.responses
        if unit.scope == unit.topic_id in both:
            responses = tuple(each for each in responses if (unit.run_id, each) not in taken)
            if not responses:
                continue
        made.append(_unit(unit, responses, known, unit.topic_id not in both, unit.scope in reached))
    return tuple(made)


def precision_names(known: KnownClaims) -> tuple[str, ...]:
    """The measures that the labels give: without passages shown, nobody knows what they carry."""
    return (*(name for name, labels in PRECISIONS.items() if known.passages or "passage" not in labels), F)


def _unit(
    unit: scores.RunUnit, responses: tuple[str, ...], known: KnownClaims, has_f: bool, reached: bool
) -> ClaimUnit:
    lacking = [each for each in responses if each not in known.labels]
    reasons = {each: known.failures[each].reason if each in known.failures else "not_asked" for each in lacking}
    given = () if lacking else responses
    labels: dict[ClaimLabel, int] = Counter(label for each in given for label in known.labels[each])
    claims = sum(n for label, n in labels.items() if label != "no_claim")
    status: ClaimStatus = "labeled" if claims else "no_claim"
    if lacking:
        status = "missing"
    elif not responses:
        status = "unanswered"
    values: dict[str, float] = {}
    if claims:
        names = [name for name in precision_names(known) if name != F]
        values = {name: sum(labels.get(label, 0) for label in PRECISIONS[name]) / claims for name in names}
    f1_bound: float | None = None
    left_out = unit.status == "left_out" or any(scores.counts_against_nobody(why, reached) for why in reasons.values())
    if has_f and not left_out:
        recall = scores.value_of(unit, scores.MEASURES[RECALL]) or 0.0
        f1_bound = harmonic(values.get("nugget_precision", 0.0), recall) if claims else 0.0
        if claims and unit.status == "matched":
            values[F] = f1_bound
    run_id, scope, topic_id = unit.run_id, unit.scope, unit.topic_id
    return ClaimUnit(run_id, scope, topic_id, responses, status, dict(labels), values, reasons, has_f, f1_bound)


def harmonic(precision: float, recall: float) -> float:
    """The harmonic mean of a precision and a recall; 0 if both are 0.

    >>> harmonic(0.5, 0.25)
    0.3333333333333333
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


ReportShares = Mapping[str, tuple[float, float]]
"""Measure to what a report has of it, and to the most that it could have; without a measure that nobody knows."""
COVERAGES = {
    "nugget_coverage": scores.MEASURES[RECALL],
    "nugget_coverage_weighted": scores.MEASURES["strict_weighted_score"],
}
ARGUE = ("citation_relevance", "citation_support", "sentence_support", *COVERAGES)
ARGUE_F = {"f1": "nugget_coverage", "f1_weighted": "nugget_coverage_weighted"}
"""Name to the measure whose harmonic mean with `sentence_support` it is."""


def report_shares(sentences: Sequence[Mapping[str, bool | None]], unit: scores.RunUnit) -> ReportShares:
    """What ARGUE counts in a report: W. Walden et al. (2025), Auto-ARGUE, arXiv:2509.26184.

    `sentences`: the passages that each one cites, and whether they bear it out; None where nobody knows. Such a
    citation is left out, and so is its sentence: if only those that are known to fail stayed, failures would lower the
    share. A citation is relevant if the bank names its passage. A sentence is supported if all that it cites bears it
    out; without a citation it is not, since nobody says whether it needs one. Coverage needs a match of every nugget.
    """
    cited = [pair for sentence in sentences for pair in sentence.items()]
    borne = [found for _, found in cited if found is not None]
    known = [each.values() for each in sentences if None not in each.values()]
    named = {passage for nugget in unit.nuggets for passage in nugget.passages}
    shares: dict[str, tuple[float, float]] = {
        "citation_relevance": (sum(passage in named for passage, _ in cited), len(cited))
    }
    if borne or not cited:
        shares["citation_support"] = sum(borne), len(borne)
    if known or not sentences:
        shares["sentence_support"] = sum(bool(each) and all(each) for each in known), len(known)
    if unit.status != "incomplete":
        # All of them are matched, or nothing was answered and has no fault either.
        labels = {nugget.nugget_id: unit.labels.get(nugget.nugget_id, "does_not") for nugget in unit.nuggets}
        shares |= {name: measure.sums(unit.nuggets, labels) for name, measure in COVERAGES.items()}
    return shares


def argue_values(reports: Sequence[ReportShares]) -> dict[str, float]:
    """ARGUE's measures over all that the reports have together, with F; 0 where there is nothing to count.

    A measure that nobody knows of any report has no value.

    >>> one = {"sentence_support": (1, 2), "nugget_coverage": (1, 4)}
    >>> argue_values([one, one])["f1"] == harmonic(2 / 4, 2 / 8)
    True
    """
    values: dict[str, float] = {}
    for name in (*ARGUE, *ARGUE_F):
        parts = ("sentence_support", ARGUE_F[name]) if name in ARGUE_F else (name,)
        if there := [of for of in reports if of.keys() >= set(parts)]:
            sums = ([math.fsum(side) for side in zip(*(of[part] for of in there), strict=True)] for part in parts)
            shares = [have / most if most else 0.0 for have, most in sums]
            values[name] = harmonic(shares[0], max(shares[1], 0.0)) if name in ARGUE_F else shares[0]
    return values


def argue_grid(reports: Mapping[str, Sequence[tuple[scores.RunUnit, ReportShares]]], cluster: Cluster) -> Table[Any]:
    """A line for each run and measure of ARGUE: over its reports together, and the mean over them.

    `reports`: run to its reports, each with its unit.
    """
    lines: list[tuple[Cell, ...]] = []
    for run_id in sorted(reports, key=natural_key):
        units = [unit for unit, _ in reports[run_id]]
        each = [argue_values([report]) for _, report in reports[run_id]]
        micro = argue_values([report for _, report in reports[run_id]])
        for name in (*ARGUE, *ARGUE_F):
            there = [(unit.topic_id, of[name]) for unit, of in zip(units, each, strict=True) if name in of]
            bounds = scores.bounds_of(units, COVERAGES[name]) if name in COVERAGES else (0.0, 1.0)
            clusters = [cluster_of(topic_id, cluster) for topic_id, _ in there]
            macro = mean_interval([value for _, value in there], clusters, bounds=bounds, what="reports")
            lines.append((run_id, name, micro.get(name), macro, len(there), len(units)))
    notes = (
        "micro: over all reports together. macro: the mean over reports; one that has nothing to count has 0.",
        "known: the reports in both. A citation without a grade, its sentence, and the coverage of a report without a "
        "match of every nugget are left out.",
    )
    return Table(lines, ("run", "measure", "micro", "macro", "known", "reports"), "ARGUE", notes, places=3)


def nugget_precision(
    units: Iterable[ClaimUnit], names: Sequence[str], cluster: Cluster = "topic"
) -> tuple[NuggetPrecision, ...]:
    """A row for each run, in natural order."""
    by_run = groups_of((unit.run_id, unit) for unit in units)
    return tuple(
        NuggetPrecision(
            run_id=run_id,
            units=len(by_run[run_id]),
            **{status: [unit.status for unit in by_run[run_id]].count(status) for status in get_args(ClaimStatus)},
            means={name: _mean(by_run[run_id], name, cluster) for name in names},
            f1_bound=_bound(by_run[run_id]),
        )
        for run_id in sorted(by_run, key=natural_key)
    )


def _mean(units: Sequence[ClaimUnit], name: str, cluster: Cluster) -> Estimate:
    having = [unit for unit in units if name in unit.values]
    return mean_interval(
        [unit.values[name] for unit in having],
        [cluster_of(unit.topic_id, cluster) for unit in having],
        bounds=(0.0, 1.0),
        what="turns with claims",
    )


def _bound(units: Iterable[ClaimUnit]) -> float | None:
    """The mean of F with everything missing against the run; what counts against nobody counts as the others do."""
    units = [unit for unit in units if unit.has_f]
    known = [unit.f1_bound for unit in units if unit.f1_bound is not None]
    answered = [unit.f1_bound for unit in units if unit.status != "unanswered"]
    asked = [value for value in answered if value is not None]
    if not known or (answered and not asked):
        return None
    return math.fsum(asked) / len(asked) * len(answered) / len(units) if asked else 0.0


def precision_grid(rows: Iterable[NuggetPrecision], names: Sequence[str]) -> Table[Any]:
    """The runs with their precision and F, in natural order."""
    notes = (
        *(f"{name}: {_ABOUT[name]}." for name in names),
        "Means are over the labeled units, f1 over those of them whose every nugget is matched. A unit that claims "
        "nothing, lacks labels or has no response has no precision, so silence costs none: read it beside recall.",
        "f1_bound: over all units; one without a response or a claim counts as 0, and what is missing as in the bound "
        "of recall. Topics with nuggets of their own and of their turns have no f1 and count in neither.",
    )
    means = " ".join(f"{name}=means.{name}" for name in names)
    columns = fields(f"run=run_id {means} f1_bound units labeled no_claim missing unanswered")
    return records_table(columns, rows, "Precision", notes, places=3)


def claims_grid(units: Iterable[ClaimUnit], names: Sequence[str]) -> Table[Any]:
    """A line for each run and unit; a value where the unit has it."""
    labels = "nugget=counts.nugget passage=counts.passage none=counts.none no_claim=counts.no_claim"
    columns: TsvColumns = {
        **scores.UNIT_COLUMNS,
        "sentences": lambda unit: sum(unit.labels.values()),
        **fields(f"claims {labels} {' '.join(f'{name}=values.{name}' for name in names)}"),
        "reasons": lambda unit: scores.told_reasons(unit.reasons),
    }
    return records_table(columns, units, "Claims")
