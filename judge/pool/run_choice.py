"""Which runs are pooled, where a list names them or a rule chooses them by a measure."""

from collections.abc import Mapping
from pathlib import Path

from judge.errors import UsageError
from judge.io.ids import natural_key
from judge.io.safe import shown
from judge.pool.intake import Submitted, leave_out
from judge.pool.lists import read_run_ids
from judge.pool.records import Pool
from judge.pool.selection import DEFAULT_MEASURE, RunRule, RunScore, choice_tsv, choose_runs, mean_value
from judge.runs.families import read_teams
from judge.runs.formats import rules_of
from judge.runs.measures import Measures
from judge.runs.ranking import ranking
from judge.runs.records import Run


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
        value = mean_value(self._measures, self._turns, ranking(run))
        self._scores[run.run_id] = RunScore(run.run_id, team, automatic, value)

    def applied(self, submitted: Submitted) -> Submitted:
        """The submissions, less the runs that the rule does not choose."""
        chosen, reasons = choose_runs(self._rule, self._scores)
        self.table = choice_tsv(self._measures.names[0], self._scores, chosen, reasons)
        others = dict.fromkeys(submitted.names.values(), "the rule did not consider it")
        return leave_out(submitted, chosen, others | reasons)


def listed_runs(file: Path, submitted: Submitted, previous: Pool | None) -> Submitted:
    """The submissions, less the runs that a file does not name; the file may name runs of `previous` too.

    Raises:
        InputError: The file names a run that is neither submitted nor pooled.
        UsageError: The file leaves out a submitted run that the pool already has.
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
