"""Labels that models are asked for, beside gold."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.blocks import needs_turn
from judge.ask.cascade import asked_model
from judge.ask.labels import FAILURES, JUDGMENTS, labels_of
from judge.ask.questions import Questions, filler_notes
from judge.ask.records import Failure, Judgment
from judge.ask.returned import model_notes
from judge.ask.several import check_prices, forecasts
from judge.ask.subjects import check_unit
from judge.ask.tasks import Task
from judge.calibrate.certificate import certified_options
from judge.calibrate.findings import CascadeBounds, GroupCost
from judge.calibrate.intake import Gold, LabelSource
from judge.calibrate.panel import Column, Panel
from judge.calibrate.selection import choose
from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import make_folder
from judge.files.stored import sha256
from judge.gold import match, seal_of
from judge.gold.rows import GoldRow
from judge.gold.seal import read_seal, read_sealed
from judge.harness.calibration.asking import Asking, results_jsonl
from judge.harness.calibration.baselines import baseline_labels
from judge.harness.calibration.cascades import PlannedCascades
from judge.harness.calibration.certified import resampling
from judge.harness.calibration.comparison import GoldComparison
from judge.harness.calibration.forecast import CalibrationForecast
from judge.harness.calibration.group_costs import group_costs
from judge.harness.calibration.labeled import LabeledGold
from judge.harness.calibration.look import GoldLook, check_dev
from judge.harness.calibration.plan import ASKING, CalibrationPlan
from judge.harness.cascade import address_option
from judge.harness.dry_run import ModelForecast, checker_forecasts, model_forecasts
from judge.harness.manifest import JOURNAL, MANIFEST
from judge.models.journal import Journal, JournalView, open_journal, paid_journals
from judge.models.model import Model, recorded_options
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.records import Criterion
from judge.runs.records import Turn


class AskedLabels:
    """The models of a plan, asked about the responses that have gold.

    Args:
        plan: The options of the calibration; it names models.
        comparison: Knows the prompts and makes the panels.
        look: Opens the sealed grades, if the plan names any.
        asking: Opens models and asks them, under one budget.
        topics: The turns of the topics by id; None without topics.

    Raises:
        UsageError: An option is missing, or a model cannot be asked the prompts.
        InputError: The pool is bad; every problem is listed.
    """

    def __init__(
        self,
        plan: CalibrationPlan,
        comparison: GoldComparison,
        look: GoldLook,
        asking: Asking,
        topics: Mapping[str, Turn] | None,
    ) -> None:
        if plan.pool is None or plan.out is None:
            raise UsageError(ASKING)
        self._plan, self._comparison, self._look, self._asking = plan, comparison, look, asking
        self._out = Path(plan.out)
        self._pool = read_pool_folder(Path(plan.pool), "passages.jsonl")
        only = comparison.only
        self._prompts = [prompt for prompt in comparison.prompts.values() if only in (None, prompt.name)]
        check_unit(self._prompts, self._pool.unit)
        self._turns = turns_shown(self._pool, topics)
        with_turn = [prompt.prompt_id for prompt in self._prompts if needs_turn(prompt)]
        if with_turn and self._turns is None:
            names = ", ".join(with_turn)
            raise UsageError(f"{names}: shown with the conversation, so a topics file is needed (--topics)")
        # All models are opened first, so that one that cannot be asked stops the job before another is paid.
        self._models = [asking.open(name, self._prompts) for name in dict.fromkeys(plan.models)]
        self._cascades = PlannedCascades(plan, asking, self._prompts, self._models)
        check_prices(plan.models, [*self._models, *self._cascades.checkers], plan.settings)
        self._results: list[Judgment | Failure] = []
        self._costs: tuple[GroupCost, ...] = ()
        self._bounds: tuple[CascadeBounds, ...] = ()

    def beside(self, gold: Gold) -> LabeledGold:
        """The gold rows, and what the models said; only the chosen judge is asked about responses with test grades.

        Args:
            gold: The gold files.

        Raises:
            UsageError: Nothing was both graded and judged, or the gold does not go with the sealed grades.
            InputError: The output folder holds other results, or the sealed grades cannot be used.
            OperationalError: Asking stopped early; the same call goes on from there.
        """
        dev = self._checked(gold)
        make_folder(self._out)
        plan, look = self._plan, self._look
        with open_journal(self._out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
            for model in self._models:
                self._ask(model, dev, journal)
            chosen = self._chosen(dev)
            look.asked = self._asked(gold, chosen)

            def held_out(rows: tuple[GoldRow, ...]) -> tuple[LabelSource, ...]:
                for column in chosen if rows else ():
                    self._ask_chosen(column, rows, journal)
                return (self._source(self._results),)

            rows = gold.rows
            if plan.test is not None:
                if any(isinstance(result, Failure) and result.reason == "budget" for result in self._results):
                    raise OperationalError("the budget is spent before a judge is chosen: the test grades stay closed")
                # Asked before the seal is opened, so that the look names the very labels that it compares.
                rows, sources = look.open(rows, [self._source(self._results)], held_out)
            else:
                sources = held_out(tuple(row for row in rows if row.split == "test"))
                sources += baseline_labels(self._comparison, rows, sources)
            notes = filler_notes((model.name for model in self._models), journal)
        answers = {
            JUDGMENTS: results_jsonl(self._results, Judgment),
            FAILURES: results_jsonl(self._results, Failure),
        }
        warnings = (*model_notes(self._results), *notes)
        return LabeledGold(rows, sources, warnings, answers, self._costs, self._bounds, self._cascades)

    def forecast(self, gold: Gold) -> CalibrationForecast:
        """Count what `beside` would send beyond what the journals hold.

        Args:
            gold: The gold files.

        Raises:
            UsageError: Nothing that is graded would be judged, or the gold does not go with the sealed grades.
            InputError: The output folder holds other results, or the sealed grades cannot be used.
        """
        dev = self._checked(gold)
        plan, pool, turns = self._plan, self._pool, self._turns
        wanted = self._tasks(dev, self._prompts)
        rows: tuple[ModelForecast, ...] = ()
        longest = plan.options.max_tokens
        with JournalView(paid_journals(self._out / JOURNAL, plan.journal)) as journal:
            rows += model_forecasts(forecasts(self._models, wanted, journal, pool, turns), plan.settings, longest)
            for opened in {opened.checker.name: opened for opened in self._cascades.opened}.values():
                checked = forecasts((opened.checker,), opened.questions(wanted)[0], journal, pool, None)
                rows += checker_forecasts(opened, checked, longest)
        asked = {prompt.name for prompt in self._prompts}
        matched, unmatched = match(dev, pool, str(plan.gold[0]))
        return CalibrationForecast(
            responses=len({response for response, criterion in matched if criterion in asked}),
            unmatched=sum(row.criterion in asked for row in unmatched),
            by_model=rows,
            test_judgments=self._held_out(gold),
        )

    def _held_out(self, gold: Gold) -> int:
        """Judgments of responses with test grades, at most; a seal names the responses, and stays closed."""
        seal = seal_of(self._plan.test, self._plan.seal)
        criteria = {prompt.name: prompt for prompt in self._prompts}
        if seal is None:
            return len(self._tasks([row for row in gold.rows if row.split == "test"], tuple(criteria.values())))
        test = read_seal(seal).test
        return min(test.rows, len(test.items) * len(criteria)) * self._plan.samples

    def _checked(self, gold: Gold) -> tuple[GoldRow, ...]:
        """The gold that is not held out, once everything is checked that would stop the calibration after calls."""
        seal = seal_of(self._plan.test, self._plan.seal)
        if self._plan.test is not None and seal is not None:
            check_dev(gold.rows)
            read_sealed(Path(self._plan.test), seal)
        dev = tuple(row for row in gold.rows if row.split != "test")
        if not self._tasks(dev, self._prompts):
            raise self._comparison.nothing_judged()
        if self._out.exists() and not self._out.is_dir():
            raise InputError(f"{self._out}: cannot be used as an output folder: it is none")
        if (self._out / MANIFEST).exists():
            raise InputError(
                f"{self._out}: holds the results of `judge run`, which asking would write over: choose another --out"
            )
        return dev

    def _ask(self, model: Model, dev: tuple[GoldRow, ...], journal: Journal) -> None:
        """Ask a model, alone and in cascades, about the responses without test grades."""
        plan, pool, cascades = self._plan, self._pool, self._cascades
        wanted = self._tasks(dev, self._prompts)
        answers = self._asking.ask(model, wanted, journal, pool, self._turns)
        questions = Questions(model, journal, pool, self._turns)
        self._results += answers
        self._results += cascades.beside(model, wanted, answers, questions, journal, pool)
        if plan.cascade_grid:
            self._bounds += cascades.bounds(model, wanted, answers, lambda said: self._tried(dev, said))
        self._costs += group_costs(model.name, questions, self._prompts, lambda group: self._tasks(dev, group))

    def _ask_chosen(self, column: Column, rows: tuple[GoldRow, ...], journal: Journal) -> None:
        """Ask the judge of a column about the responses with test grades."""
        prompt = [self._comparison.prompts[column.prompt]] if column.prompt else []
        wanted = self._tasks(rows, prompt)
        model = self._asking.again(asked_model(column.judge), prompt)
        opened = self._cascades.of(column.judge)
        self._results.extend(
            self._asking.ask(model, wanted, journal, self._pool, self._turns)
            if opened is None
            else self._cascades.ask(opened, model, wanted, journal, self._pool, self._turns)
        )

    def _chosen(self, dev: tuple[GoldRow, ...]) -> list[Column]:
        """The judge that is chosen for each criterion, where one is."""
        panels, _ = self._comparison.panels(dev, [self._source(self._results)])
        choices = (choose(panel, "dev" if panel.split[0] == "dev" else "all") for panel in panels)
        return [column for column in choices if column]

    def _asked(self, gold: Gold, chosen: Sequence[Column]) -> dict[str, Any]:
        """What a look at the gold asks of it."""
        plan, endpoints = self._plan, self._asking.endpoints
        options = recorded_options(plan.options)
        judges = sorted({asked_model(column.judge) for column in chosen} & endpoints.keys())
        moved = {judge: endpoints[judge] for judge in judges}
        return {
            **({"endpoints": moved} if moved else {}),
            "gold": gold.digest,
            "parameters": certified_options(options | address_option(plan.cascade_url)),
            "margin": plan.margin,
            "resampling": resampling(plan),
            "requirements": sorted(plan.requirements),
        }

    def _tasks(self, rows: Sequence[GoldRow], prompts: Sequence[Criterion]) -> tuple[Task, ...]:
        return self._comparison.tasks(rows, self._pool, prompts, self._plan.samples)

    def _source(self, results: Sequence[Judgment | Failure]) -> LabelSource:
        return LabelSource(labels_of(results, str(self._out), sha256(b"")), self._pool)

    def _tried(self, rows: Sequence[GoldRow], said: Sequence[Judgment | Failure]) -> tuple[Panel, ...]:
        """The panels of other bounds of a cascade, which the look at the gold counts."""
        panels, _ = self._comparison.panels(rows, [self._source(said)])
        self._look.tried += panels
        return panels
