"""What calibration finds beside agreement: a finding is a function that gives rows about one judge, and their table.

A new one is a function and a row of FINDINGS; files, reports and the terminal follow. Pure.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.calibrate.agreement import unweighted
from judge.calibrate.findings import FindingFact, FindingRow
from judge.calibrate.panel import Case, Panel
from judge.calibrate.passages import RANKED, cuts, leakage, leaks, rankings
from judge.calibrate.report.lookup import merged, why_undefined
from judge.calibrate.report.sections import (
    JUDGE,
    NOTE,
    WHOSE,
    FindingColumn,
    FindingTable,
    basis_of,
    both,
    estimated,
    fact,
    filed,
    over_of,
    shown,
)
from judge.calibrate.selection import ASSESSORS, equivalences
from judge.io.ids import natural_key
from judge.io.table import Column
from judge.io.text import code, interval, number, printable
from judge.records import Estimate
from judge.stats.alternative import alternative_annotator
from judge.stats.discrimination import PROBABILITY, Forecasts, brier_of_shares, midranks
from judge.stats.means import mean_interval, slope_interval, welch
from judge.stats.ranking import SYSTEM, split_half, system_agreement
from judge.stats.tables import Undefined

MAP_WEIGHT = 5.0
"""How many items the line through all items counts as, in each cell of the calibration map."""
FEWEST_RUNS = 3
"""Fewest runs whose ranking is compared."""
PREFERENCE = {
    "accuracy": "the share of the same preference, where judge and assessors prefer one response",
    "near": "accuracy in the third of these pairs whose runs the assessors prefer about as often as each other",
    "middle": "accuracy in the next third; pairs of equal gaps are in one third",
    "far": "accuracy in the third of the largest gaps",
    "decisive": "the share of the judge's verdicts that prefer one response",
    "decisive_human": "the share of the assessors' verdicts that prefer one response",
    "flipped": "the share of pairs whose verdict changed with the order",
    "first_human": "the share of the assessors' preferences that are for the response shown first",
    "first_place": "the logarithm of the odds between equal runs that the judge prefers the response shown first",
}
"""The statistics of a judge of pairs; `first_place` is of all pairs that it compared, the others of those with gold."""
_NUMBER = re.compile(r"\d+")


def slopes(case: Case) -> Iterator[FindingRow]:
    """Judge minus assessor, in grades, against the response's length in words (log2) and the place of its turn.

    Of a pair it is how many times longer the first response is, over both orders, which share the turn's place.
    """
    panel = case.panel
    words = np.array([-1.0 if item.words is None else max(item.words, 1) / item.second_words for item in panel.items])
    depth = np.array([-1 if item.seconds else _depth(item.turn_id) for item in panel.items])
    orders = (1, -1) if panel.of_pairs else (1,)
    measured: tuple[tuple[str, NDArray[Any], NDArray[np.bool_]], ...] = (
        ("log2_words", np.log2(np.where(words > 0, words, 1)), words > 0),
        ("turn_depth", depth, depth >= 0),
    )
    gap = _gap(case)
    for what, x, has in measured:
        items = case.graded & has
        if items.any():
            xs = np.outer(orders, x[items]).ravel()
            ys = np.outer(orders, gap[items]).ravel()
            slope = slope_interval(xs, ys, np.tile(panel.topic[items], len(orders)))
            yield case.row({"what": what}, {"estimate": replace(slope, n=slope.n // len(orders))})


def families(case: Case) -> Iterator[FindingRow]:
    """Judge minus assessor by the family of models behind a run; a judge's own family is where favor would show.

    Runs are the units. Each has the mean of judge minus assessor over its items; Welch's interval is between the
    family's runs and all others. Runs without a family are among the others.
    """
    family_of = case.options.families
    gap = _gap(case)
    graded = case.graded
    means: dict[str, float] = {}
    for run_id, side in _by_run(case.panel).items():
        items = graded & (side != 0)
        if items.any():
            means[run_id] = float((side * gap)[items].mean())
    for family in sorted({family_of[run_id] for run_id in means if run_id in family_of}):
        own = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) == family])
        others = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) != family])
        facts: dict[str, FindingFact] = {
            "what": "family",
            "family": family,
            "is_self": family == family_of.get(case.column.judge),
            "runs": len(own),
            "mean": float(own.mean()),
        }
        yield case.row(facts, {"estimate": welch(own, others)})


def calibration_map(case: Case) -> Iterator[FindingRow]:
    """The mean grade of the assessors where the judge gives each grade, drawn to the line through all items.

    It applies to single responses; the mean of a run needs gold of that run (`judge.results.corrected`).
    """
    if not case.graded.any():
        return
    g = np.array(case.panel.grades, dtype=np.float64)
    human = case.panel.mean[case.graded]
    judge = g[case.column.codes[case.graded]]
    centered = judge - judge.mean()
    spread = float(centered @ centered)
    slope = float(centered @ human) / spread if spread else 0.0
    line = np.clip(human.mean() + slope * (g - judge.mean()), g[0], g[-1])
    for i, grade in enumerate(case.panel.grades):
        cell = human[judge == g[i]]
        facts: dict[str, FindingFact] = {
            "grade": grade,
            "n": len(cell),
            "mean": float(cell.mean()) if len(cell) else None,
            "shrunken": (float(cell.sum()) + MAP_WEIGHT * float(line[i])) / (len(cell) + MAP_WEIGHT),
            "weight": MAP_WEIGHT,
        }
        yield case.row(facts)


def probabilities(case: Case) -> Iterator[FindingRow]:
    """The label probabilities as forecasts of the assessors' grades, of the chosen judge on test grades too.

    Nothing where a graded item has none.
    """
    for split in dict.fromkeys((case.split, case.decided or case.split)):
        panel = case.panel
        both = panel.within(split) & (case.column.codes >= 0) & ~panel.tied
        p = case.column.probabilities[both]
        if len(p) and not np.isnan(p).any():
            items = Forecasts(p, case.column.codes[both], panel.human[both])
            statistics = unweighted(PROBABILITY, items, panel.topic[both], panel)
            yield case.row({"brier_of_shares": float(brier_of_shares(items))}, statistics, split)


def systems(case: Case) -> Iterator[FindingRow]:
    """The runs in the judge's order against the assessors' order; nothing with fewer than FEWEST_RUNS graded runs."""
    panel = case.panel
    graded = case.graded
    sides = {run_id: side * graded for run_id, side in _by_run(panel).items() if (side * graded).any()}
    if len(sides) < FEWEST_RUNS:
        return
    g = np.array(panel.grades, dtype=np.float64)
    counts = _sums(panel, sides, *np.ones((2, len(panel.items))))
    lowest_and_highest = g[0] + g[-1]
    human = _sums(panel, sides, panel.mean, lowest_and_highest - panel.mean)
    judge = _sums(panel, sides, g[case.column.codes], lowest_and_highest - g[case.column.codes])
    statistics = system_agreement(
        human,
        counts,
        judge,
        counts,
        np.random.default_rng(case.options.seed),
        higher_is_better=panel.higher_is_better,
        replicates=case.options.replicates,
    )
    rng = np.random.default_rng(case.options.seed)
    halves = split_half(human, counts, judge, counts, rng, higher_is_better=panel.higher_is_better)
    facts: dict[str, FindingFact] = {
        "runs": len(sides),
        "half_human": halves.human,
        "half_judge": halves.judge,
        "halves": halves.reason,
    }
    yield case.row(facts, statistics)


def preferences(case: Case) -> Iterator[FindingRow]:
    """How a judge of pairs prefers one response, beside the assessors; nothing of anything but pairs."""
    panel = case.panel
    column = case.column
    if not any(item.seconds for item in panel.items):
        return
    mask = panel.within(case.split)
    places = np.arange(len(panel.grades))
    sign = 1 if panel.higher_is_better else -1
    ahead = np.sign(2 * places - len(places) + 1) * sign
    # Assessors who tie on both sides of the middle alike prefer none.
    human = np.sign((2 * (panel.shares @ places) - len(places) + 1).round(9)).astype(np.int64) * sign
    judge = ahead[column.codes]
    flipped = mask & np.array([reason == "flipped" for reason in column.reasons])
    both = np.flatnonzero(case.graded & (human != 0) & (judge != 0))
    gaps = _gaps(panel, human, mask)[both]
    # Equal gaps share a rank, so that they are in one third.
    third = np.floor(3 * (midranks(gaps) - 0.5) / max(len(both), 1))

    def share(which: NDArray[np.bool_], among: NDArray[Any]) -> Estimate:
        topics = case.topics[among].tolist()
        return mean_interval(which[among].tolist(), topics, bounds=(0, 1), what="such verdicts")

    statistics = {
        "accuracy": share(judge == human, both),
        "near": share(judge == human, both[third == 0]),
        "middle": share(judge == human, both[third == 1]),
        "far": share(judge == human, both[third == 2]),
        "decisive": share(judge != 0, case.graded),
        "decisive_human": share(human != 0, mask),
        "flipped": share(flipped, case.graded | flipped),
        "first_human": share(human > 0, mask & (human != 0)),
    }
    if column.origin and column.origin.first_place:
        statistics["first_place"] = column.origin.first_place
    yield case.row(statistics=statistics)


def alternative(case: Case) -> Iterator[FindingRow]:
    """The alternative annotator test: by accuracy on two grades, else by RMSE; nothing with fewer than two assessors.

    A row for each assessor, all with the judge's numbers; one with the reason where there is no result.
    """
    panel = case.panel
    if len(panel.assessors) < 2:
        return
    mask = panel.within(case.split)
    epsilon = case.options.epsilon
    score: Literal["accuracy", "rmse"] = "rmse" if len(panel.grades) > 2 else "accuracy"
    assessors = {name: np.where(mask, codes, -1) for name, codes in panel.assessors.items()}
    judge = np.where(mask, case.column.codes, -1)
    test = alternative_annotator(assessors, judge, epsilon=epsilon, score=score, grades=panel.grades)
    if isinstance(test, Undefined):
        yield case.row({"epsilon": float(epsilon), "reason": test.reason})
        return
    for assessor, p in test.p_values.items():
        facts: dict[str, FindingFact] = {
            "epsilon": float(epsilon),
            "omega": test.omega,
            "rho": test.rho,
            "assessor": assessor,
            "n": test.n.get(assessor),
            "p": p,
            "rejected": test.rejected.get(assessor),
        }
        yield case.row(facts)


def _gap(case: Case) -> NDArray[np.float64]:
    """Judge minus the assessors' mean in grades (N,); without meaning where the judge gave no grade."""
    g = np.array(case.panel.grades, dtype=np.float64)
    return np.asarray(g[case.column.codes] - case.panel.mean, dtype=np.float64)


def _gaps(panel: Panel, human: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the runs of each pair are apart (N,), by how often assessors prefer them (N,) in the pairs of a mask."""
    won: dict[str, list[float]] = defaultdict(list)
    for item, preferred, inside in zip(panel.items, human.tolist(), mask.tolist(), strict=True):
        if inside:
            for run_id in item.runs:
                won[run_id].append(preferred)
            for run_id in item.seconds:
                won[run_id].append(-preferred)
    mean = {run_id: float(np.mean(outcomes)) for run_id, outcomes in won.items()}

    def strength(runs: Sequence[str]) -> float:
        return float(np.mean([mean.get(run_id, 0.0) for run_id in runs]))

    gaps = np.array([abs(strength(item.runs) - strength(item.seconds)) for item in panel.items])
    return np.asarray(gaps.round(12), dtype=np.float64)


def _by_run(panel: Panel) -> dict[str, NDArray[np.int8]]:
    """The items of each run (N,), runs in natural order: 1, -1 where it gave the second response of a pair, else 0."""
    run_ids = sorted({run_id for item in panel.items for run_id in item.runs + item.seconds}, key=natural_key)
    by_run = {}
    for run_id in run_ids:
        sides = [(run_id in item.runs) - (run_id in item.seconds) for item in panel.items]
        by_run[run_id] = np.array(sides, dtype=np.int8)
    return by_run


def _sums(
    panel: Panel, sides: Mapping[str, NDArray[Any]], values: NDArray[np.float64], seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums of values by run and topic (R x T), `seconds` being those of a pair for the run shown second."""
    T = len(panel.topics)
    by_run = []
    for side in sides.values():
        weights = np.where(side > 0, values, np.where(side < 0, seconds, 0))
        by_run.append(np.bincount(panel.topic, weights=weights, minlength=T))
    return np.array(by_run)


def _depth(turn_id: str) -> int:
    """The first number of the turn's own part of its id: 3 for `9-1_3` and for `132_3-2`; -1 if there is none."""
    match = _NUMBER.search(turn_id.rpartition("_")[2])
    return int(match[0][:9]) if match and "_" in turn_id else -1


def _one_sided(rows: Sequence[FindingRow]) -> str:
    statistic = printable(str(rows[0].facts.get("statistic")))
    text = (
        f"EQUIVALENT: {statistic} differs by less than {number(rows[0].number('margin'))}, by "
        "two one-sided tests at 5 % (the 90 % interval over topics lies within the margin). DIFFERENT: by more. Each "
        "pair is tested alone."
    )
    if any(row.facts.get("b") == ASSESSORS for row in rows):
        text += (
            f" {code(ASSESSORS)}: each assessor against the consensus of the others, and the judge against the same."
        )
    return text


def _weighed(rows: Sequence[FindingRow]) -> str:
    return (
        f"Shrunken: drawn to the line through all items, as if {number(rows[0].number('weight'), 0)} more lay on "
        "it. For single items; the mean of a run is corrected by gold of that run "
        f"({code('judge leaderboard --gold')})."
    )


def _preferred(rows: Sequence[FindingRow]) -> str:
    statistics = rows[0].statistics
    return (
        "A verdict counts where both orders agree on it. Assessors prefer one response in "
        f"{interval(statistics.get('decisive_human'), 2)} of all pairs, and of these the one shown first in "
        f"{interval(statistics.get('first_human'), 2)}."
    )


def _why_no_ranking(row: FindingRow, names: Mapping[str, str]) -> str:
    """Why there is no value or no interval, by these names of the statistics."""
    reasons = [(name, row.statistics[key].reason) for key, name in names.items() if key in row.statistics]
    halves = row.facts.get("halves")
    return merged([*reasons, ("halves", str(halves) if halves else None)])


def _property(row: FindingRow) -> str:
    if row.facts.get("what") == "log2_words":
        return "doubling of the words"
    return "turn further into the conversation"


def _cut(row: FindingRow) -> str:
    own = " (the scale's own)" if row.facts.get("own") else ""
    return f"{row.facts.get('cut')}{own}"


def _family(row: FindingRow) -> str:
    family = str(row.facts.get("family"))
    return f"{family} (the judge's own)" if row.facts.get("is_self") else family


_HALVES = (
    fact(
        "half_human",
        Column(
            "tau-b half to half: assessors",
            about="how the runs rank on a random half of the topics, against the assessors' ranking on the "
            "other half, and behind it the same of the judge. The assessors' own is a noise ceiling: only a "
            "judge with less noise exceeds it",
        ),
    ),
    fact("half_judge", "judge"),
)
"""How two halves of the topics agree, in tables of rankings."""
_MOVED = "What moves the judge away from the assessors, on {grades}"
FINDINGS: dict[str, FindingTable] = {
    # A line for each judge of pairs.
    "preferences": FindingTable(
        rows=preferences,
        title="Does it prefer the responses that the assessors prefer?",
        text=_preferred,
        columns=(
            *WHOSE,
            *(
                estimated(
                    name,
                    None
                    if name.endswith("_human")
                    else Column(name.replace("_", " ") + " [95 %]", signed=name == "first_place", about=about),
                )
                for name, about in PREFERENCE.items()
            ),
            over_of("statistics.accuracy"),
            basis_of("statistics.accuracy"),
            both("note", NOTE, why_undefined),
        ),
        file="preferences.tsv",
        after="agreement",
        on_terminal=True,
        places=2,
    ),
    # A line for each judge, each of people's grades, and each of the judge's or all that are positive.
    "leakage": FindingTable(
        rows=leakage,
        title="What the judge makes of passages of each grade, on {grades}",
        text=leaks,
        columns=(
            JUDGE,
            *map(fact, ("human", "judged")),
            estimated("share"),
            basis_of("statistics.share"),
            filed("note=statistics.share.reason"),
        ),
        file="leakage.tsv",
        of_chosen=True,
        on_terminal=True,
    ),
    # A line for each judge and each grade from which on a passage is taken as relevant.
    "cuts": FindingTable(
        rows=cuts,
        title="Relevant or not, on {grades}",
        text="Each line takes a grade and those above it as relevant, for people and the judge alike.",
        columns=(
            JUDGE,
            FindingColumn(fact("cut").file, "relevant from", _cut),
            fact("human", Column("people", about="the share of passages that are relevant by people")),
            fact("judged", Column("judge", about="the share that is relevant by the judge")),
            estimated("kappa", Column("kappa [95 %]", about="Cohen's, agreement beyond chance, of relevant or not")),
            estimated(
                "auc",
                Column(
                    "AUC [95 %]",
                    about="how often the judge puts a relevant passage above one that is not, ties counted half; by "
                    "its expected grades where it gives label probabilities, else by its grades",
                ),
            ),
            estimated(
                "precision",
                Column("precision [95 %]", about="of the passages that the judge calls relevant, the share by people"),
            ),
            estimated(
                "recall",
                Column("recall [95 %]", about="of the passages that people call relevant, the share by the judge"),
            ),
            fact("auc_of"),
            basis_of("statistics.auc"),
            FindingColumn({"notes": why_undefined}),
        ),
        file="cuts.tsv",
        of_chosen=True,
        on_terminal=True,
        places=2,
    ),
    # A line for each judge, where runs are given: how its qrels rank them beside people's.
    "rankings": FindingTable(
        rows=rankings,
        title="Do its qrels rank the runs as people's do?",
        text="Each run has its value by all grades of either side, over the turns that both graded; a passage without "
        "a grade counts as not relevant. Intervals describe how the two rankings would agree on other topics.",
        columns=(
            JUDGE,
            shown("judge", "name"),
            fact("measure", "measure"),
            fact("runs", "runs"),
            *(
                estimated(name, Column(f"{statistic.label} [95 %]") if name == "tau_b" else None)
                for name, statistic in RANKED.items()
            ),
            *_HALVES,
            FindingColumn(
                {"notes": lambda row: _why_no_ranking(row, {name: name for name in RANKED})},
                NOTE,
                lambda row: _why_no_ranking(row, {name: statistic.label for name, statistic in RANKED.items()}),
            ),
        ),
        file="rankings.tsv",
        on_terminal=True,
        places=2,
    ),
    # A line for each judge that is set against the chosen one; the difference has a 90 % interval.
    "equivalence": FindingTable(
        rows=equivalences,
        title="Is it as good as another judge, or as an assessor?",
        text=_one_sided,
        columns=(
            filed("criterion split statistic=facts.statistic"),
            both("a", "judge", "name"),
            fact("b", "against"),
            shown("grades", "split"),
            estimated("difference", Column("difference [90 %]", signed=True)),
            fact("margin"),
            over_of("statistics.difference"),
            fact("equivalence", "equivalence"),
            basis_of("statistics.difference"),
            both("note", NOTE, "statistics.difference.reason"),
        ),
        file="equivalence.tsv",
        after="selection",
        on_terminal=True,
    ),
    # A line for each judge and grade: the assessors' mean grade where the judge gives it.
    "calibration_map": FindingTable(
        rows=calibration_map,
        title="What a grade of the judge is worth, on {grades}",
        text=_weighed,
        columns=(
            JUDGE,
            FindingColumn(fact("grade").file, "judge's grade", lambda row: str(row.facts.get("grade"))),
            fact("n", "n"),
            fact("mean", "assessors' mean"),
            fact("shrunken", "shrunken"),
            fact("weight"),
        ),
        file="calibration_map.tsv",
        of_chosen=True,
        places=2,
    ),
    # A line for each judge that gives label probabilities: how far they forecast the assessors' grades.
    "probabilities": FindingTable(
        rows=probabilities,
        title="Are its label probabilities probabilities?",
        text="Beside Brier's score stands that of one forecast for all items, the shares of the assessors' grades: "
        "a judge that is no better knows nothing of the single item.",
        columns=(
            *WHOSE,
            *(
                estimated(name, Column(f"{name} [95 %]", signed=name == "overconfidence", about=statistic.about))
                for name, statistic in PROBABILITY.items()
            ),
            fact("brier_of_shares", "brier of shares"),
            over_of("statistics.brier"),
            basis_of("statistics.brier"),
            both("note", NOTE, why_undefined),
        ),
        file="probabilities.tsv",
    ),
    # A line for each slope, and below for each family, in one file of the same columns.
    "slopes": FindingTable(
        rows=slopes,
        title=_MOVED,
        columns=(
            filed("judge=name criterion split"),
            FindingColumn(fact("what").file, "for each", _property),
            *map(fact, ("family", "is_self", "runs", "mean")),
            estimated("estimate", Column("judge minus assessor [95 %]", signed=True)),
            over_of("statistics.estimate"),
            basis_of("statistics.estimate"),
            both("note", NOTE, "statistics.estimate.reason"),
        ),
        file="diagnostics.tsv",
        of_chosen=True,
    ),
    "families": FindingTable(
        rows=families,
        title=_MOVED,
        columns=(
            filed("judge=name criterion split"),
            fact("what"),
            FindingColumn(fact("family").file, "family of runs", _family),
            fact("is_self"),
            fact("runs", "runs"),
            fact("mean", Column("judge minus assessor", signed=True)),
            estimated("estimate", Column("against other runs [95 %]", signed=True)),
            basis_of("statistics.estimate"),
            both("note", NOTE, "statistics.estimate.reason"),
        ),
        file="diagnostics.tsv",
        of_chosen=True,
    ),
    # A line for each judge and assessor.
    "alternative": FindingTable(
        rows=alternative,
        title="Could the judge stand in for an assessor? On {grades}",
        text="The alternative annotator test (Calderon, Reichart & Dror, 2025). One number without the others says "
        "nothing. Items count as independent of each other, so p is too small where topics differ.",
        columns=(
            JUDGE,
            shown("judge", "name"),
            fact("epsilon", Column("epsilon", about="the handicap that an assessor's higher cost is worth")),
            fact("omega", Column("omega", about="the share of assessors over whom the judge is preferred")),
            fact(
                "rho",
                Column(
                    "rho",
                    about="how often, on average, it fits the other assessors at least as well as the one left out",
                ),
            ),
            fact("assessor", "assessor"),
            fact("n", "n"),
            fact("p", Column("p", p_values=True)),
            fact("rejected", "rejected"),
            both("note", NOTE, "facts.reason"),
        ),
        file="alternative.tsv",
        over_items=True,
        places=2,
    ),
    # A line for each judge: how its ranking of the runs agrees with the assessors'.
    "systems": FindingTable(
        rows=systems,
        title="Does it rank the runs as the assessors do?",
        text="Intervals describe how the two rankings would agree on "
        "other topics. Where runs are close, both rankings are noisy, and the true ones agree better than that.",
        columns=(
            *WHOSE,
            fact("runs", "runs"),
            *(estimated(name, Column(f"{statistic.label} [95 %]")) for name, statistic in SYSTEM.items()),
            *_HALVES,
            FindingColumn(
                {"notes": lambda row: _why_no_ranking(row, {name: name for name in SYSTEM})},
                NOTE,
                lambda row: _why_no_ranking(row, {name: statistic.label for name, statistic in SYSTEM.items()}),
            ),
        ),
        file="systems.tsv",
        places=2,
    ),
}
"""By name, in the order of reports."""
