"""ARGUE's measures of reports: citations, sentences, coverage of nuggets, and F. Pure.

W. Walden et al. (2025), Auto-ARGUE, arXiv:2509.26184.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from judge.extra.nuggets import scores
from judge.io.ids import Cluster, cluster_of, natural_key
from judge.io.table import Cell, Table
from judge.stats.means import mean_interval


def harmonic(precision: float, recall: float) -> float:
    """The harmonic mean of a precision and a recall; 0 if both are 0.

    >>> harmonic(0.5, 0.25)
    0.3333333333333333
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


ReportShares = Mapping[str, tuple[float, float]]
"""Measure to what a report has of it, and to the most that it could have; without a measure that nobody knows."""
COVERAGES = {
    "nugget_coverage": scores.MEASURES["strict_all_score"],
    "nugget_coverage_weighted": scores.MEASURES["strict_weighted_score"],
}
ARGUE = ("citation_relevance", "citation_support", "sentence_support", *COVERAGES)
ARGUE_F = {"f1": "nugget_coverage", "f1_weighted": "nugget_coverage_weighted"}
"""Name to the measure whose harmonic mean with `sentence_support` it is."""


def report_shares(sentences: Sequence[Mapping[str, bool | None]], unit: scores.RunUnit) -> ReportShares:
    """What ARGUE counts in a report.

    `sentences`: the passages that each one cites, and whether they bear it out; None where nobody knows. Such a
    citation is left out, and so is its sentence: if only those that are known to fail stayed, failures would lower the
    share. A citation is relevant if the bank names its passage. A sentence is supported if all that it cites bears it
    out; without a citation it is not, since nobody says whether it needs one. Coverage needs a match of every nugget.
    """
    cited: list[tuple[str, bool | None]] = []
    for sentence in sentences:
        cited.extend(sentence.items())
    borne = [found for _, found in cited if found is not None]
    known = [each.values() for each in sentences if None not in each.values()]
    named: set[str] = set()
    for nugget in unit.nuggets:
        named.update(nugget.passages)
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
            sums: list[list[float]] = []
            for part in parts:
                sums.append([math.fsum(side) for side in zip(*(of[part] for of in there), strict=True)])
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
