"""Which runs are pooled, where a list names them or a rule chooses them by a measure."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Literal, get_args

from judge.errors import UsageError
from judge.io.ids import natural_key
from judge.io.table import tsv
from judge.io.text import printable, shown
from judge.pool.intake import Submitted, leave_out
from judge.pool.lists import read_run_ids, read_teams
from judge.pool.records import Pool
from judge.records import Record
from judge.runs.formats import rules_of
from judge.runs.measures import Measures, Ranking
from judge.runs.ranking import ranking
from judge.runs.records import Run

RunRule = Literal["best-automatic-per-team", "best-per-team", "above-median"]
"""How runs are chosen.

best-automatic-per-team: each team's best automatic run, if above the median of all automatic runs (iKAT 2023).
best-per-team: each team's best run.
above-median: every run above the median of all runs.
"""

RUN_RULES: tuple[RunRule, ...] = get_args(RunRule)
CHOICE_COLUMNS = ("run_id", "team", "automatic", "measure", "value", "chosen", "reason")
DEFAULT_MEASURE = "nDCG@5"
"""The measure by which iKAT 2023 ordered its passage ranking runs."""


class RunScore(Record, frozen=True):
    """The facts by which a rule chooses a run: its team, whether it is automatic, its value of the measure."""

    run_id: str
    team: str | None
    automatic: bool
    value: float


class RunChoice:
    """A rule that chooses runs by a measure of their passages."""

    def __init__(
        self, rule: RunRule, grades: Mapping[str, Mapping[str, int]], measure: str | None, teams: Path | None
    ) -> None:
        """Prepare the measure, by default nDCG@5; `teams` is a file of teams, where the runs do not name theirs."""
        self._rule = rule
        self._measures = Measures([measure or DEFAULT_MEASURE], grades)
        self._turns = frozenset(grades)
        self._teams = read_teams(teams) if teams is not None else {}
        self._scores: dict[str, RunScore] = {}
        self.table: str | None = None
        """The choice as TSV with its reasons; None until the rule is `applied`."""

    def measure(self, run: Run) -> None:
        """Measure a run while its passages are in memory."""
        team = self._teams.get(run.run_id) or run.team
        # CAsT 2022 runs do not say how they were made.
        automatic = run.run_type == "automatic" or rules_of(run.format).run_type is None
        self._scores[run.run_id] = RunScore(run.run_id, team, automatic, self.value(ranking(run)))

    def value(self, ranking: Ranking) -> float:
        """The mean of the measure over every judged turn; a turn without passages counts 0."""
        values = self._measures.values(ranking)[self._measures.names[0]]
        return fmean(values.get(turn, 0.0) for turn in self._turns)

    def applied(self, submitted: Submitted) -> Submitted:
        """The submissions, less the runs that the rule does not choose."""
        reasons, self.table = choose_runs(self._rule, self._scores, self._measures.names[0])
        chosen = {run_id for run_id, (is_chosen, _) in reasons.items() if is_chosen}
        others = dict.fromkeys(submitted.names.values(), "the rule did not consider it")
        return leave_out(submitted, chosen, others | {run_id: reason for run_id, (_, reason) in reasons.items()})


def choose_runs(rule: RunRule, scores: Mapping[str, RunScore], measure: str) -> tuple[dict[str, tuple[bool, str]], str]:
    """Whether a rule chooses each run and why, by run id; and the same as TSV, chosen runs first, by falling value.

    A team's best run has the highest value; among equal values, the first run id in natural order. A run above the
    median is strictly above it: a single run is not, nor is any of several equal runs. A UsageError if the rule needs
    the team of a run that has none, or it chooses no run.
    """
    automatic_only = rule == "best-automatic-per-team"
    considered = [score for score in scores.values() if score.automatic or not automatic_only]
    nameless = sorted((score.run_id for score in considered if not score.team), key=natural_key)
    if nameless and rule != "above-median":
        raise UsageError(f"no team is known for {', '.join(map(printable, nameless))}: name them in a file of teams")
    middle = median(score.value for score in considered) if considered else 0.0
    of_all = f"the median {middle:.4f} of the {len(considered)} {'automatic runs' if automatic_only else 'runs'}"
    best: dict[str | None, RunScore] = {}
    for score in sorted(considered, key=lambda score: (-score.value, natural_key(score.run_id))):
        best.setdefault(score.team, score)
    found: dict[str, tuple[bool, str]] = {}
    for run_id, score in scores.items():
        first = best.get(score.team, score)
        if automatic_only and not score.automatic:
            found[run_id] = False, "not an automatic run"
        elif rule != "above-median" and first.run_id != run_id:
            found[run_id] = False, f"{printable(first.run_id)} is the team's best with {first.value:.4f}"
        elif rule != "best-per-team" and score.value <= middle:
            found[run_id] = False, f"not above {of_all}"
        else:
            found[run_id] = (
                True,
                {
                    "best-automatic-per-team": f"the team's best automatic run, above {of_all}",
                    "best-per-team": "the team's best run",
                    "above-median": f"above {of_all}",
                }[rule],
            )
    if not any(is_chosen for is_chosen, _ in found.values()):
        why = "; ".join(f"{printable(run_id)}: {found[run_id][1]}" for run_id in sorted(found, key=natural_key))
        raise UsageError(f"the rule {rule} chooses no run: {why or 'there is none'}")
    words = {True: "yes", False: "no"}
    order = sorted(found, key=lambda run_id: (not found[run_id][0], -scores[run_id].value, natural_key(run_id)))
    lines = (
        (run_id, of.team, words[of.automatic], measure, of.value, words[found[run_id][0]], found[run_id][1])
        for run_id, of in ((run_id, scores[run_id]) for run_id in order)
    )
    return found, tsv(CHOICE_COLUMNS, lines)


def listed_runs(file: Path, submitted: Submitted, previous: Pool | None) -> Submitted:
    """The submissions, less the runs that a file does not name; the file may name runs of `previous` too.

    An InputError if the file names a run that is neither submitted nor pooled. A UsageError if the file leaves out a
    submitted run that the pool already has.
    """
    names = set(submitted.names.values())
    pooled = {run.run_id for run in previous.runs if run.selected} if previous else set()
    chosen = read_run_ids(file, names | pooled)
    if dropped := sorted((names & pooled) - chosen, key=natural_key):
        raise UsageError(
            f"{file} does not name {', '.join(map(shown, dropped[:5]))}, which the pool that is extended has already: "
            "name them too, or keep their files out of the folder of runs"
        )
    return leave_out(submitted, chosen, dict.fromkeys(names, f"not in {file.name}"))
