"""The TSV files of a calibration: stable headers, six decimals, an empty cell and a note for an undefined number."""

from collections.abc import Iterable, Mapping

from judge.calibrate.findings import (
    AgreementRow,
    AlternativeRow,
    CalibrationMapRow,
    ComparisonRow,
    EquivalenceRow,
    ExpectedLine,
    FamilyContrast,
    ProbabilityRow,
    Slope,
    SystemAgreement,
    TrustVerdict,
)
from judge.records import Estimate
from judge.stats import agreement
from judge.stats.expected import EXPECTED
from judge.stats.marginals import MarginalTest
from judge.stats.probabilities import PROBABILITY
from judge.stats.ranking import SYSTEM
from judge.text.ids import Cluster
from judge.text.tsv import tsv

STATISTICS = (*agreement.STATISTICS, *EXPECTED)
"""The statistics of agreement, in column order."""
_WORST = tuple(name for name, statistic in agreement.STATISTICS.items() if statistic.worst_case)
_GRADED = agreement.primary_statistic(3)
"""The primary statistic of more than two grades; its interval over items has columns on every scale."""
_MARGINALS = ("bowker", "stuart_maxwell")


def _ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_lo", f"{name}_hi"


AGREEMENT_COLUMNS = (
    *("judge", "prompt", "criterion", "split", "reference", "baseline", "gold", "n", "topics", "coverage"),
    "without_grade",
    *(column for name in STATISTICS for column in _ends(name)),
    *(f"worst_{name}" for name in _WORST),
    *(f"{name}_item_{end}" for name in (_GRADED, "primary") for end in ("lo", "hi")),
    "deff",
    *(f"{name}_{part}" for name in _MARGINALS for part in ("chi2", "df", "p")),
    *_ends("ceiling"),
    *_ends("test_retest"),
    *("primary", "binary", "verdict", "notes"),
)
CONFUSION_COLUMNS = ("judge", "prompt", "criterion", "split", "human", "judge_grade", "count", "row_share")
COMPARISON_COLUMNS = (
    *("criterion", "split", "statistic", "a", "b", *_ends("difference"), "p", "p_max_t", "p_holm", "exact"),
    *("n", "topics", "note"),
)
EQUIVALENCE_COLUMNS = (
    *("criterion", "split", "statistic", "a", "b", *_ends("difference"), "margin", "equivalence", "n", "topics"),
    "note",
)
MAP_COLUMNS = ("judge", "prompt", "criterion", "split", "grade", "n", "mean", "shrunken", "weight")
EXPECTED_COLUMNS = (
    *("judge", "prompt", "criterion", "split", "intercept", *_ends("slope")),
    *("error_grade", "error_expected", "error_line", "n", "topics", "note"),
)
PROBABILITY_COLUMNS = (
    *("judge", "prompt", "criterion", "split", *(column for name in PROBABILITY for column in _ends(name))),
    *("brier_of_shares", "n", "topics", "note"),
)
SYSTEM_COLUMNS = (
    *("judge", "prompt", "criterion", "split", "runs"),
    *(column for name in SYSTEM for column in _ends(name)),
    *("half_human", "half_judge", "notes"),
)
ALTERNATIVE_COLUMNS = (
    *("judge", "prompt", "criterion", "split", "epsilon", "omega", "rho", "assessor", "n", "p", "rejected", "note"),
)
DIAGNOSTIC_COLUMNS = (
    *(
        "judge",
        "criterion",
        "split",
        "what",
        "family",
        "is_self",
        "runs",
        "mean",
        *_ends("estimate"),
        "n",
        "topics",
        "note",
    ),
)


def clustered(table: str, cluster: Cluster) -> str:
    """A table with the unit of its intervals as a last note of each row, unless that is the topic."""
    head, *lines = table.split("\n")
    if cluster == "topic" or not head.endswith(("\tnote", "\tnotes")):
        return table
    said = f"clustered by {cluster}"
    noted = (line and line + (said if line.endswith("\t") else f"; {said}") for line in lines)
    return "\n".join([head, *noted])


def agreement_tsv(rows: Iterable[AgreementRow], verdicts: Iterable[TrustVerdict] = ()) -> str:
    """A row for each judge, criterion and split; `verdict` is empty where there is none about that row."""
    words = {(verdict.criterion, verdict.judge, verdict.prompt, verdict.split): verdict.word for verdict in verdicts}
    return tsv(
        AGREEMENT_COLUMNS,
        ([*_agreement(row), words.get((row.criterion, row.name, row.prompt, row.split)), _notes(row)] for row in rows),
    )


def _agreement(row: AgreementRow) -> list[object]:
    """The cells of a row up to `binary`."""
    without = sorted(row.without_grade.items(), key=lambda item: (-item[1], item[0]))
    marginals: dict[str, MarginalTest] = {test.name: test for test in row.marginals}
    return [
        *(row.judge, row.prompt, row.criterion, row.split, row.reference, row.baseline, row.gold, row.n, row.topics),
        row.coverage,
        ",".join(f"{reason}:{n}" for reason, n in without),
        *_estimates(row.statistics, STATISTICS),
        *(row.worst_case.get(name) for name in _WORST),
        *_estimate(row.item.get(_GRADED))[1:],
        *_estimate(row.item.get(row.primary))[1:],
        row.design_effect.get(row.primary),
        *(cell for name in _MARGINALS for cell in _marginal(marginals.get(name))),
        *_estimate(row.ceiling),
        *_estimate(row.test_retest),
        *(row.primary, row.binary),
    ]


def _notes(row: AgreementRow) -> str:
    named = [(name, row.statistics[name].reason) for name in STATISTICS if name in row.statistics]
    named += [(test.name, test.reason) for test in row.marginals]
    named += [("ceiling", row.ceiling.reason)] if row.ceiling else []
    named += [("test_retest", row.test_retest.reason)] if row.test_retest else []
    return merged(named)


def merged(named: Iterable[tuple[str, str | None]]) -> str:
    """Every reason once, after its names: `kappa, wkappa: all grades equal; ac1: fewer than 5 topics`."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in named:
        if reason:
            by_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def confusion_tsv(rows: Iterable[AgreementRow]) -> str:
    """A row for each judge and pair of grades; `row_share` is the share of the assessors' grade."""
    return tsv(
        CONFUSION_COLUMNS,
        (
            [row.judge, row.prompt, row.criterion, row.split, human, grade, n, n / total if total else None]
            for row in rows
            for human, counts in zip(row.grades, row.confusion, strict=True)
            for total in [sum(counts)]
            for grade, n in zip(row.grades, counts, strict=True)
        ),
    )


def comparisons_tsv(rows: Iterable[ComparisonRow]) -> str:
    """A row for each pair of candidates; the difference is a's statistic minus b's."""
    return tsv(
        COMPARISON_COLUMNS,
        (
            [
                *(row.criterion, row.split, row.statistic, row.a, row.b, *_estimate(row.difference)),
                *(row.p, row.p_max_t, row.p_holm, row.exact),
                *_basis(row.difference),
            ]
            for row in rows
        ),
    )


def equivalence_tsv(rows: Iterable[EquivalenceRow]) -> str:
    """A row for each pair; the difference is a's statistic minus b's, with a 90 % interval."""
    return tsv(
        EQUIVALENCE_COLUMNS,
        (
            [
                *(row.criterion, row.split, row.statistic, row.a, row.b, *_estimate(row.difference)),
                *(float(row.margin), row.word, *_basis(row.difference)),
            ]
            for row in rows
        ),
    )


def calibration_map_tsv(rows: Iterable[CalibrationMapRow]) -> str:
    """A row for each judge and grade: the assessors' mean grade where the judge gives it."""
    return tsv(
        MAP_COLUMNS,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.grade, row.n, row.mean),
                *(float(row.shrunken), float(row.weight)),
            ]
            for row in rows
        ),
    )


def probabilities_tsv(rows: Iterable[ProbabilityRow]) -> str:
    """A row for each judge that gives label probabilities: how far they forecast the assessors' grades."""
    return tsv(
        PROBABILITY_COLUMNS,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, *_estimates(row.statistics, PROBABILITY)),
                *(row.brier_of_shares, *_basis(row.statistics["brier"])[:2]),
                merged((name, row.statistics[name].reason) for name in PROBABILITY),
            ]
            for row in rows
        ),
    )


def system_tsv(rows: Iterable[SystemAgreement]) -> str:
    """A row for each judge: how its ranking of the runs agrees with the assessors'."""
    return tsv(
        SYSTEM_COLUMNS,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.runs),
                *_estimates(row.statistics, SYSTEM),
                *(row.halves.human, row.halves.judge),
                merged(
                    [
                        *((name, row.statistics[name].reason) for name in SYSTEM if name in row.statistics),
                        ("halves", row.halves.reason),
                    ]
                ),
            ]
            for row in rows
        ),
    )


def alternative_tsv(rows: Iterable[AlternativeRow]) -> str:
    """A row for each judge and assessor, all with the judge's epsilon, omega and rho; no assessor without a result."""
    return tsv(
        ALTERNATIVE_COLUMNS,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.epsilon, row.omega, row.rho, assessor),
                *(row.n.get(assessor), row.p_values.get(assessor), row.rejected.get(assessor), row.reason),
            ]
            for row in rows
            for assessor in row.p_values or [""]
        ),
    )


def expected_tsv(rows: Iterable[ExpectedLine]) -> str:
    """A row for each judge: how assessors' grades follow the expected grade."""
    return tsv(
        EXPECTED_COLUMNS,
        (
            [
                *(row.judge, row.prompt, row.criterion, row.split, row.intercept, *_estimate(row.slope)),
                *(row.error_grade, row.error_expected, row.error_line, *_basis(row.slope)),
            ]
            for row in rows
        ),
    )


def diagnostics_tsv(slopes: Iterable[Slope], families: Iterable[FamilyContrast]) -> str:
    """What judge minus assessor depends on; `what` is the slope's variable or `family`."""
    lines: list[list[object]] = [
        [
            *(row.judge, row.criterion, row.split, row.what, None, None, None, None),
            *(*_estimate(row.slope), *_basis(row.slope)),
        ]
        for row in slopes
    ]
    lines += [
        [
            *(row.judge, row.criterion, row.split, "family", row.family, row.is_self, row.runs, row.mean),
            *_estimate(row.contrast),
            *_basis(row.contrast),
        ]
        for row in families
    ]
    return tsv(DIAGNOSTIC_COLUMNS, lines)


def _estimates(statistics: Mapping[str, Estimate], names: Iterable[str]) -> list[float | None]:
    return [cell for name in names for cell in _estimate(statistics.get(name))]


def _estimate(estimate: Estimate | None) -> list[float | None]:
    ends = (estimate.value, estimate.low, estimate.high) if estimate else (None, None, None)
    return [None if end is None else float(end) for end in ends]


def _basis(estimate: Estimate) -> tuple[int, int, str | None]:
    """The numbers of items and topics of an estimate, and the reason of what it lacks."""
    return estimate.n, estimate.topics, estimate.reason


def _marginal(test: MarginalTest | None) -> tuple[float | None, int | None, float | None]:
    return (test.chi2, test.df, test.p) if test else (None, None, None)
