"""The whole calibration: agreement, choice and diagnostics of every panel, and the verdict, by an interval's end."""

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

import judge.calibrate.agreement as agreement
from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.findings import (
    AgreementRow,
    Calibration,
    CalibrationOptions,
    Choice,
    ComparisonRow,
    FindingRow,
    Requirement,
    Split,
    TrustVerdict,
    Word,
)
from judge.calibrate.panel import Case, JudgeColumn, Panel, constant
from judge.calibrate.selection import (
    candidates,
    choose,
    comparisons,
    selection,
)
from judge.errors import UsageError
from judge.gold.rows import BLIND
from judge.io.ids import clustering
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.text import count
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, primary_statistic
from judge.stats.comparison import FEWEST_COMPARED
from judge.stats.raters import GradeCodes
from judge.stats.resampling import resampled

DEFAULT_THRESHOLD = 0.4
"""The default bound: above it, agreement beyond chance is more than fair.

J. R. Landis & G. G. Koch (1977), Biometrics 33(1), 159-174.
"""
FEWEST_ITEMS = 100
FEWEST_TOPICS = 20
"""Fewest judged gold items and topics that a judge is accepted by; what an interval of fewer says depends on luck."""
_RULE = re.compile(r"\s*([a-z_0-9]+)\s*\.\s*(lo|hi)\s*(>=|<=)\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*")
_TOO_FEW = "chosen on the same grades, and too few topics"
_POINT = re.compile(r"\s*([a-z_0-9]+)\s*(?:>=|<=|>|<|=)")


def parse_requirement(text: str) -> Requirement:
    """Read a rule such as `wkappa.lo>=0.4` or `bias.hi<=0.3`.

    A UsageError if the text is not a rule, names no statistic, or bounds a point estimate.
    """
    match = _RULE.fullmatch(text)
    if not match:
        hint = "; a point estimate is no gate: use its lower end" if _POINT.match(text) else ""
        raise UsageError(f"requirement {text!r}: expected STATISTIC.lo>=NUMBER or STATISTIC.hi<=NUMBER{hint}")
    statistic, end, sign, number = match.groups()
    if statistic not in STATISTICS:
        raise UsageError(f"requirement {text!r}: no statistic {statistic!r}, there are {', '.join(STATISTICS)}")
    if (end, sign) not in (("lo", ">="), ("hi", "<=")):
        raise UsageError(f"requirement {text!r}: expected .lo>= or .hi<=, the end that can fail")
    return Requirement(statistic, "lo" if end == "lo" else "hi", float(number))


def rules_of(requirements: Sequence[Requirement], primary: str) -> tuple[Requirement, ...]:
    """The requirements; if there are none, `DEFAULT_THRESHOLD` for the lower end of the primary statistic."""
    return tuple(requirements) or (Requirement(primary, "lo", DEFAULT_THRESHOLD),)


def verdict(
    row: AgreementRow,
    requirements: Sequence[Requirement],
    made: Sequence[str],
    choice: Choice | None,
    worst: Mapping[Requirement, Estimate],
    cluster: str = "topic",
) -> TrustVerdict:
    """The verdict: TRUSTED if every requirement is met, NOT TRUSTED if one is clearly failed, else INCONCLUSIVE.

    A rule `x.lo>=b` is met where the interval lies above b, failed where it lies below, and open where b is
    inside. Where a judge was chosen among several on these very grades, the primary statistic goes by the interval
    that allows for the choice. Only blind grades by people can make a judge trusted, and no fewer than FEWEST_ITEMS on
    FEWEST_TOPICS. `worst` has the statistic of each requirement with missing grades at their worst; it is empty if no
    grade is missing. `cluster` names what `row.topics` counts.
    """
    reused = choice if choice and choice.chosen_on == row.split and len(choice.tried) > 1 else None
    words: list[Word] = []
    reasons: list[tuple[Word, str]] = []
    deciding = row.statistics[row.primary]
    for rule in requirements:
        estimate = row.statistics[rule.statistic]
        after = ""
        if rule.statistic == row.primary and reused:
            estimate = reused.after_choice or replace(estimate, low=None, high=None, reason=_TOO_FEW)
            after = f", after choosing among {len(reused.tried)} on the same grades"
            deciding = estimate
        word = word_of_rule(rule, estimate)
        after_worst = reused.after_choice_worst if reused and rule.statistic == row.primary else None
        if reused and rule.statistic != row.primary and word == "TRUSTED":
            # The choice looked at these very grades, and no interval of this statistic allows for it.
            word = "INCONCLUSIVE"
            after = ", but the judge was chosen on the same grades"
        words.append(word)
        reasons.append((word, f"{_against(rule, estimate)}{after}"))
        if after_worst is not None:
            word = _not_worse(word_of_rule(rule, after_worst))
            words.append(word)
            # Where only other candidates miss grades, the two intervals are the same.
            if not _same_interval(after_worst, estimate):
                far = f"{after}, with missing grades at the far end of the scale"
                reasons.append((word, f"{_against(rule, after_worst)}{far}"))
        elif rule in worst:
            word = _not_worse(word_of_rule(rule, worst[rule]))
            words.append(word)
            missing = count(row.gold - row.n, "missing grade")
            far = f", with the {missing} at the far end of the scale"
            reasons.append((word, f"{_against(rule, worst[rule])}{far}"))
    if set(words) == {"TRUSTED"} and too_few(row.n, row.topics):
        words.append("INCONCLUSIVE")
        reasons.append(("INCONCLUSIVE", least_to_accept(row.n, row.topics, cluster)))
    if not_blind := why_not_trusted(made):
        words.append("INCONCLUSIVE")
        reasons.append(("INCONCLUSIVE", not_blind))
    result: Word = "TRUSTED"
    if "NOT TRUSTED" in words:
        result = "NOT TRUSTED"
    elif "INCONCLUSIVE" in words:
        result = "INCONCLUSIVE"
    # A rule that is met is no reason for a verdict against the judge.
    because = tuple(reason for word, reason in reasons if result == "TRUSTED" or word != "TRUSTED")
    return TrustVerdict(
        criterion=row.criterion,
        judge=row.name,
        prompt=row.prompt,
        split=row.split,
        word=result,
        requirements=tuple(map(str, requirements)),
        reasons=because,
        estimate=deciding,
        statistic=row.primary,
    )


def why_not_trusted(made: Sequence[str]) -> str:
    """Why gold that was made in these ways cannot make a judge trusted; empty if it can."""
    not_blind = [way for way in made if way not in BLIND]
    if not not_blind:
        return ""
    made_otherwise = ", ".join(not_blind)
    return f"the gold was not graded blind ({made_otherwise}): it may flatter a judge, and cannot make one trusted"


def too_few(n: int, topics: int) -> bool:
    """Whether a judge cannot be accepted by so few items or topics."""
    return n < FEWEST_ITEMS or topics < FEWEST_TOPICS


def least_to_accept(n: int, topics: int, cluster: str) -> str:
    """How many items and topics there are, and how few are enough."""
    return (
        f"{count(n, 'judged gold item')} on {count(topics, cluster)} cannot make a judge trusted: "
        f"that takes {FEWEST_ITEMS} on {FEWEST_TOPICS}"
    )


def worst_codes(panel: Panel, codes: GradeCodes, rule: Requirement) -> GradeCodes:
    """The codes, with every missing grade replaced by the one that is worst for the requirement."""
    if STATISTICS[rule.statistic].signed:
        return np.where(codes < 0, 0 if rule.end == "lo" else len(panel.grades) - 1, codes)
    return panel.farthest(codes)


def word_of_rule(rule: Requirement, estimate: Estimate) -> Word:
    """TRUSTED where the interval keeps the bound, NOT TRUSTED where it lies beyond, else INCONCLUSIVE."""
    low = estimate.low
    high = estimate.high
    if low is None or high is None:
        return "INCONCLUSIVE"
    if rule.end == "lo":
        met = low >= rule.bound
        failed = high < rule.bound
    else:
        met = high <= rule.bound
        failed = low > rule.bound
    if met:
        return "TRUSTED"
    return "NOT TRUSTED" if failed else "INCONCLUSIVE"


def _not_worse(word: Word) -> Word:
    """A verdict from missing grades at their worst: they can leave it open, but are no evidence against a judge."""
    return "INCONCLUSIVE" if word == "NOT TRUSTED" else word


def _same_interval(a: Estimate, b: Estimate) -> bool:
    """Whether two estimates have the same interval to the decimals that are shown, or lack it for the same reason."""
    a = a.rounded(3)
    b = b.rounded(3)
    if a.low is None or a.high is None:
        return (a.value, a.low, a.high, a.reason) == (b.value, b.low, b.high, b.reason)
    return (a.low, a.high) == (b.low, b.high)


def _against(rule: Requirement, estimate: Estimate) -> str:
    """Where the interval of a statistic lies, seen from the bound of its rule."""
    text = f"{rule.statistic} {_shown(estimate)}"
    if estimate.low is None or estimate.high is None:
        return text
    word = word_of_rule(rule, estimate)
    if word == "INCONCLUSIVE":
        return f"{text} has {rule.bound:g} inside"
    side = "above" if (word == "TRUSTED") == (rule.end == "lo") else "below"
    return f"{text} lies {side} {rule.bound:g}"


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined ({estimate.reason})"
    if estimate.low is None or estimate.high is None:
        return f"has no interval ({estimate.reason})"
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


SEPARABLE = 0.05
"""The level under which max-T calls a judge better than a baseline."""


def calibrate(panels: Sequence[Panel], options: CalibrationOptions | None = None, steps: Steps = quiet) -> Calibration:
    """Agreement, comparisons, choice, verdict and findings of every panel, in the panels' order."""
    agreements: list[AgreementRow] = []
    compared: list[ComparisonRow] = []
    selections: list[Choice] = []
    verdicts: list[TrustVerdict] = []
    findings: dict[str, tuple[FindingRow, ...]] = dict.fromkeys(FINDINGS, ())
    warnings: list[str] = []
    for panel in panels:
        part = _calibrate(panel, options or CalibrationOptions(), steps)
        agreements += part.agreement
        compared += part.comparisons
        selections += part.selections
        verdicts += part.verdicts
        for name, rows in part.findings.items():
            findings[name] += rows
        warnings += part.warnings
    theme = any(panel.cluster == "theme" for panel in panels)
    return Calibration(
        agreement=tuple(agreements),
        comparisons=tuple(compared),
        selections=tuple(selections),
        verdicts=tuple(verdicts),
        findings=findings,
        warnings=tuple(warnings),
        cluster="theme" if theme else msgspec.UNSET,
    )


def _calibrate(panel: Panel, options: CalibrationOptions, steps: Steps) -> Calibration:
    split: Split = "dev" if "test" in panel.split or "dev" in panel.split else "all"
    seed = options.seed
    baselines = (constant(panel, panel.within(split)), *(column for column in panel.columns if column.baseline))
    columns = (*candidates(panel), *baselines)
    judged = tuple(column for column in columns if column.origin is not None)
    rows = _rows(panel, columns, split, options, steps)
    chosen = choose(panel, split)
    decided: Split = split
    if chosen is not None and "test" in panel.split:
        decided = "test"
        rows |= _rows(panel, (chosen, *baselines), "test", options, steps)
    steps(Step(f"comparing judges, {panel.criterion}"))
    compared, best = comparisons(panel, judged, split, seed, options.permutations)
    if chosen is None:
        choice = None
        decision = _without_choice(panel, decided, options)
    else:
        choice = selection(panel, chosen, split, rows, best, seed, options.replicates, options.openings)
        decision = _verdict(panel, chosen, rows[chosen.name, decided], choice, options)
    cases = []
    for column in judged:
        others = tuple(other for other in judged if other is not column)
        decided_on = decided if column is chosen else None
        cases.append(Case(panel=panel, column=column, split=split, decided=decided_on, others=others, options=options))
    return Calibration(
        agreement=tuple(rows.values()),
        comparisons=compared,
        selections=(choice,) if choice else (),
        verdicts=(decision,),
        findings=_findings(cases),
        warnings=(
            *_warnings(panel, decided, chosen, choice, options),
            *_too_few_to_compare(panel, split),
            *_not_beaten(panel, choice, baselines, compared),
        ),
    )


def _findings(cases: Sequence[Case]) -> dict[str, tuple[FindingRow, ...]]:
    """What each finding says of the judges of a panel."""
    findings = {}
    for name, table in FINDINGS.items():
        rows: list[FindingRow] = []
        for case in cases:
            rows += table.rows(case) if table.rows else ()
        findings[name] = tuple(rows)
    return findings


def _rows(
    panel: Panel, columns: Sequence[JudgeColumn], split: Split, options: CalibrationOptions, steps: Steps
) -> dict[tuple[str, Split], AgreementRow]:
    between = agreement.ceiling(panel, panel.within(split), options.seed, options.replicates)
    return {
        (column.name, split): agreement.agreement_row(panel, column, split, between, options.seed, options.replicates)
        for column in stepped(f"resampling, {panel.criterion}, {split}", columns, steps)
    }


def _verdict(
    panel: Panel, chosen: JudgeColumn, row: AgreementRow, choice: Choice | None, options: CalibrationOptions
) -> TrustVerdict:
    rules = rules_of(options.requirements, row.primary)
    worst: dict[Requirement, Estimate] = {}
    for rule in rules if row.n < row.gold else ():
        tables = panel.tables(worst_codes(panel, chosen.codes, rule), panel.within(row.split))
        rng = np.random.default_rng(options.seed)
        worst[rule] = resampled(rule.statistic, tables, panel.grades, rng, replicates=options.replicates).estimate
    return verdict(row, rules, panel.made, choice, worst, panel.cluster)


def _without_choice(panel: Panel, split: Split, options: CalibrationOptions) -> TrustVerdict:
    """The verdict without a chosen judge: no judge has grades that define the primary statistic."""
    tried = candidates(panel)
    name = primary_statistic(len(panel.grades))
    reason = "no judge has grades that the statistic is defined for"
    return TrustVerdict(
        criterion=panel.criterion,
        judge=tried[0].name if tried else "-",
        prompt=tried[0].prompt if tried else None,
        split=split,
        word="INCONCLUSIVE",
        requirements=tuple(map(str, rules_of(options.requirements, name))),
        reasons=(reason,),
        estimate=Estimate(value=None, low=None, high=None, n=0, topics=0, reason=reason),
        statistic=name,
    )


def _warnings(
    panel: Panel, split: Split, chosen: JudgeColumn | None, choice: Choice | None, options: CalibrationOptions
) -> tuple[str, ...]:
    """What a reader must know before any number, about the items that the verdict rests on."""
    name = panel.criterion
    mask = panel.within(split)
    judge = chosen or next(iter(candidates(panel)), None)
    if judge is not None:
        mask = mask & (judge.codes >= 0)
    n = int(mask.sum())
    T = len(set(panel.topic[mask].tolist()))
    warnings = _clustered(panel, mask)
    if too_few(n, T):
        warnings.append(f"{name}: {least_to_accept(n, T, panel.cluster)}")
    if panel.weighted:
        warnings.append(
            f"{name}: items were drawn with unequal probabilities, which agreement is weighted by; rank correlation, "
            "test-retest, calibration map, diagnostics, preferences and the ranking of runs are of the drawn items"
        )
    if panel.binary:
        warnings.append(
            f"{name}: scales differ, so grades are compared as positive or not; nothing here is about grades"
        )
    if split == "test" and options.openings is None:
        warnings.append(f"{name}: the test grades are not sealed, so nobody can tell how often they were looked at")
    if not_blind := why_not_trusted(panel.made):
        warnings.append(f"{name}: {not_blind}")
    counts = panel.shares[mask].sum(axis=0)
    if panel.of_pairs:
        counts = (counts + counts[::-1]) / 2
    rare = [str(grade) for grade, count in zip(panel.grades, counts, strict=True) if count < 5]
    if rare:
        warnings.append(
            f"{name}: fewer than 5 gold items of grade {', '.join(rare)}; intervals of kappa may be too narrow"
        )
    if choice is not None and split == "all" and len(choice.tried) > 1:
        warnings.append(
            f"{name}: the best of {len(choice.tried)} was chosen and is reported on the same grades; "
            "`judge gold split` makes a test set"
        )
    if options.openings is not None and options.openings > 1:
        warnings.append(
            f"{name}: the sealed test grades have been opened for {options.openings} different questions; "
            "what is reported on them is no longer held out"
        )
    return tuple(warnings)


def _clustered(panel: Panel, mask: NDArray[np.bool_]) -> list[str]:
    """What the intervals are over if it is not topics, and units on both sides of the split."""
    if panel.cluster == "topic":
        return []
    topics = (item.topic_id for item, judged in zip(panel.items, mask, strict=True) if judged)
    dev = panel.topic[[side == "dev" for side in panel.split]]
    test = panel.topic[[side == "test" for side in panel.split]]
    both = ", ".join(panel.topics[place] for place in np.intersect1d(dev, test))
    notes = [f"{panel.criterion}: {note}" for note in clustering(topics, panel.cluster)]
    if both:
        notes.append(
            f"{panel.criterion}: of theme {both}, some topics are in dev and others in test, so the test grades are "
            "not of other themes; `judge gold split --cluster theme` parts no theme"
        )
    return notes


def _too_few_to_compare(panel: Panel, split: Split) -> list[str]:
    """A warning where judges are compared on fewer topics than tell any two of them apart."""
    T = len(set(panel.topic[panel.within(split)].tolist()))
    if T >= FEWEST_COMPARED or len(candidates(panel)) < 2:
        return []
    return [
        f"{panel.criterion}: judges are compared on {count(T, panel.cluster)}; "
        f"fewer than {FEWEST_COMPARED} tell no two of them apart"
    ]


def _not_beaten(
    panel: Panel, choice: Choice | None, baselines: Sequence[JudgeColumn], compared: Sequence[ComparisonRow]
) -> list[str]:
    """Warnings for the baselines that the chosen judge is not shown to beat; whoever pays for it should know."""
    if choice is None:
        return []
    apart = [pair for pair in compared if pair.p_max_t is not None and pair.p_max_t < SEPARABLE]
    better = {(pair.a, pair.b) for pair in apart if (pair.difference.value or 0.0) > 0}
    better |= {(pair.b, pair.a) for pair in apart if (pair.difference.value or 0.0) < 0}
    return [
        f"{panel.criterion}: {choice.chosen} is not shown to agree better than {column.name}, which costs nothing"
        for column in baselines
        if column.origin is not None and (choice.chosen, column.name) not in better
    ]
