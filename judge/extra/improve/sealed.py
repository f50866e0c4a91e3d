"""The sealed test of a search: whether it can prove a gain, its one opening, and the word."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from judge.ask.records import Failure, Judgment
from judge.ask.results import Labels
from judge.calibrate.panel import Panel
from judge.errors import InputError
from judge.extra.improve import GainWord, Wordings, word_of_gain
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.search import WordingSearch
from judge.gold.rows import GoldRow, parse_gold
from judge.gold.seal import SEAL, read_sealed, seal_of
from judge.io.ids import cluster_of
from judge.io.text import count
from judge.jobs.calibration.inputs import with_baselines
from judge.jobs.calibration.labels import CalibrationJudges, LabeledGold, question_to_gold
from judge.jobs.calibration.look import open_test
from judge.records import Criterion, Estimate
from judge.results.turns import HARNESS
from judge.stats.resampling import FEWEST_RESAMPLED


class _UnansweredError(Exception):
    """Answers on the test are missing that another call may give."""


class SealedTest:
    """The sealed grades of a plan, which stay closed where no gain can be proven, or none is found on dev."""

    def __init__(self, plan: ImprovePlan, judges: CalibrationJudges, first: Criterion) -> None:
        """Find out what can be proven; an InputError if the grades are of no response under the criterion."""
        self._plan = plan
        self._judges = judges
        self._first = first
        self.unproven = self._why_unproven()
        """Why no gain can be proven, whatever is found on dev; empty where one can."""
        self.unanswered = ""
        """Which answers are missing for which the seal stays closed; empty where none is."""

    def _why_unproven(self) -> str:
        """By which responses have sealed grades under the criterion; what these grades are stays unread."""
        inputs = self._judges.inputs
        test = inputs.plan.test
        seal = seal_of(test, inputs.plan.seal)
        if test is None or seal is None:
            return self._why_no_test()
        _, stored = read_sealed(test, seal)
        tasks = self._judges.tasks(parse_gold(stored, str(test)), [self._first])
        if not tasks:
            raise InputError(
                f"{test}: no sealed grade of {self._first.name} is of a response in the pool; the seal was not opened"
            )
        cluster = self._plan.cluster
        units = {cluster_of(task.response.topic_id, cluster) for task in tasks}
        if len(units) >= FEWEST_RESAMPLED:
            return ""
        size = count(len(units), cluster)
        return f"a test of {size} proves no gain ({FEWEST_RESAMPLED} are the least), so the seal stays closed"

    def _why_no_test(self) -> str:
        beside = any((path if path.is_dir() else path.parent).joinpath(SEAL).exists() for path in self._plan.gold)
        how = "`judge gold split` seals some topics for --test"
        if beside:
            how = "--test names the sealed grades beside them"
        unsealed = any(row.split == "test" for row in self._judges.inputs.gold.rows)
        what = "the test grades in --gold are not sealed" if unsealed else "gold has no test topics here"
        return f"{what}; {how}"

    def label(self, search: WordingSearch, now: datetime) -> LabeledGold:
        """The labels of both parts, where a better prompt can be proven; else those of dev, and the seal stays closed.

        The first prompt and the chosen one are asked before the seal is opened, so that the look names what it
        compares.
        """
        judges = self._judges
        inputs = judges.inputs
        chosen = search.grades.chosen
        dev_labels = search.grades.labels()
        (judge,) = judges.judges
        endpoints = {model.name: model.endpoint for model in judge.models if model.endpoint}
        closed = LabeledGold(
            rows=judges.dev,
            labels=with_baselines(inputs, judges.dev, dev_labels),
            record=None,
            warnings=(),
            endpoints=endpoints,
        )
        if self.unproven or chosen is self._first:
            return closed
        best = search.grades.wordings.best
        asked = {
            "improved": self._first.digest,
            **question_to_gold(inputs, [best] if best else [], endpoints),
        }

        def held_out(rows: tuple[GoldRow, ...]) -> tuple[Labels, ...]:
            _refuse_unanswered(search.grades.ask([self._first, chosen], rows))
            return search.grades.labels()

        beside = (self._first.prompt_id, chosen.prompt_id)
        try:
            rows, labels, record = open_test(inputs, now, asked, dev_labels, held_out, beside)
        except _UnansweredError as error:
            self.unanswered = str(error)
            return closed
        return closed._replace(rows=rows, labels=labels, record=record)

    def gain(self, panel: Panel, chosen: Criterion) -> tuple[Estimate, tuple[str, ...]]:
        """The gain on the opened grades, and a warning for each prompt that has no grade of some of the items."""
        wordings = Wordings(panel, "test", self._first.prompt_id)
        warnings = []
        for prompt, effect in ((self._first, "larger"), (chosen, "smaller")):
            column = wordings.columns[prompt.prompt_id]
            if missing := wordings.missing(column):
                warnings.append(
                    f"{prompt.prompt_id} has no grade of {count(missing, 'sealed item')} "
                    f"({wordings.why_missing(column)}): they count as the farthest ones, which makes the gain {effect}"
                )
        gain = wordings.gain(wordings.columns[chosen.prompt_id], self._plan.resampling_seed)
        return gain, tuple(warnings)

    def word(self, search: WordingSearch, gain: Estimate | None) -> tuple[GainWord, str]:
        """The word, and why it is not GAINED; `gain` is that on the opened grades."""
        if gain is not None:
            word = word_of_gain(gain)
            if word == "GAINED":
                return word, ""
            if gain.low is None:
                return word, f"no interval of the gain: {gain.reason}"
            return word, "the interval holds 0" if word == "INCONCLUSIVE" else "the interval does not lie above 0"
        if search.grades.chosen is self._first:
            tried = "no candidate agreed better on dev"
            if all(entry.criterion in (None, self._first) for entry in search.candidates.entries):
                tried = "nothing was tried"
            return "NOT GAINED", tried if self._plan.test is None else f"{tried}, so the seal stays closed"
        if self.unanswered:
            return "INCONCLUSIVE", self.unanswered
        return "UNPROVEN", self.unproven


def _refuse_unanswered(results: Sequence[Judgment | Failure]) -> None:
    """Refuse to compare on the items that a provider happened to answer."""
    reasons = [result.reason for result in results if isinstance(result, Failure) and result.reason in HARNESS]
    if reasons:
        by_reason = ", ".join(f"{reason}: {number}" for reason, number in Counter(reasons).most_common())
        raise _UnansweredError(
            f"{len(reasons):,} of {count(len(results), 'answer')} on the test did not come ({by_reason}), so the seal "
            "stays closed; the same command asks for them again"
        )
