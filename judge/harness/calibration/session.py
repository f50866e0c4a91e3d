"""A calibration on its way: gold, labels that are there or asked for, panels, findings, files."""

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import bundled_criteria, default_prompts, find_criterion
from judge.ask.dialogue import Task
from judge.ask.labels import Labels, is_jury, labels_of
from judge.ask.loop import assess
from judge.ask.progress import FetchReporter, Reporter
from judge.ask.prompt import needs_turn
from judge.ask.records import Failure, Judgment
from judge.ask.several import Fetching
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.baselines import ASKED
from judge.calibrate.certificate import PARAMETERS, Certificate, certificate_bytes, make_certificate
from judge.calibrate.findings import Calibration
from judge.calibrate.gate import parse_requirement
from judge.calibrate.intake import (
    Gold,
    LabelSource,
    make_panels,
    parse_scale,
    read_gold_files,
    read_sources,
    same_grades,
)
from judge.calibrate.panel import Panel
from judge.calibrate.report.folder import calibration_files
from judge.calibrate.selection import choose
from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import make_folder, replace_folder
from judge.files.stored import sha256
from judge.gold import open_sealed, read_seal
from judge.gold.rows import GoldRow
from judge.harness.calibration.asking import Asking, ProgressReport, gold_tasks, results_jsonl
from judge.harness.calibration.certified import certified, resampling
from judge.harness.calibration.plan import ASKING, CalibrationPlan, by_id, check_plan
from judge.harness.manifest import JOURNAL, MANIFEST
from judge.models.backends import open_model
from judge.models.families import read_families
from judge.models.journal import Journal
from judge.models.model import Model
from judge.pool.folder import read_pool_folder
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.runs.topics import read_topics
from judge.text.safe import shown

CERTIFICATE = "certificate.json"
RECORD = "calibration.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class CalibrationOutcome(msgspec.Struct, frozen=True):
    """What a calibration gave."""

    calibration: Calibration
    certificate: Certificate
    trusted: bool
    """Whether every criterion's verdict is TRUSTED."""


def calibrate_judges(
    plan: CalibrationPlan,
    now: datetime | None = None,
    *,
    asking: Callable[[str], ProgressReport] | None = None,
    fetching: Fetching | None = None,
    progress: bool = False,
) -> CalibrationOutcome:
    """Read, ask if need be, compare, and write the output folder.

    Args:
        plan: What to do.
        now: For the certificate and the ledger of sealed grades; by default the clock's time.
        asking: Given a judge's name, what is called after each of its judgments.
        fetching: Called while a model is fetched, with what, the bytes done and the bytes in all.
        progress: Instead of calling these, show bars in a notebook or on a terminal, elsewhere lines now and then.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    with contextlib.ExitStack() as shown:
        if progress:
            fetching = shown.enter_context(FetchReporter(sys.stderr))

            def asking(judge: str) -> ProgressReport:
                return shown.enter_context(Reporter(judge, sys.stderr))

        return _Session(plan, now or datetime.now(UTC), asking or (lambda judge: lambda progress: None), fetching).run()


class _Session:
    """A calibration on its way, with what was read so far."""

    def __init__(
        self, plan: CalibrationPlan, now: datetime, asking: Callable[[str], ProgressReport], fetching: Fetching | None
    ) -> None:
        check_plan(plan)
        self.plan, self.now = plan, now
        self._criterion = None if plan.criterion is None else os.fspath(plan.criterion)
        self.asking = Asking(plan, asking, fetching)
        self.rules = tuple(map(parse_requirement, plan.requirements))
        self.families = read_families(Path(plan.families)) if plan.families else {}
        self.scale = parse_scale(plan.scale, plan.polarity) if plan.scale else None
        self.prompts = by_id(map(find_criterion, plan.prompts))
        self.only = self._only()
        self.warnings: list[str] = []
        self.openings: int | None = None
        self.seal: str | None = None
        self.out = Path(plan.out) if plan.out is not None else None
        self.answers: dict[str, bytes] = {}

    def run(self) -> CalibrationOutcome:
        gold = read_gold_files([Path(path) for path in self.plan.gold], self.only, self.scale)
        if gold.columns:
            self.warnings.append(
                "files of columns do not say how their grades were made; they are taken as given blind"
            )
        rows, sources = self._asked(gold) if self.plan.models else self._stored(gold)
        panels, unmatched = self._panels(rows, sources)
        self.warnings += self._unmet(rows, sources, panels)
        if self.out:
            make_folder(self.out)
        if unmatched:
            self.warnings.append(f"{unmatched} of {len(rows)} gold grades are of responses not in the pool")
        options = CalibrationOptions(
            requirements=self.rules,
            seed=self.plan.seed,
            replicates=self.plan.replicates,
            permutations=self.plan.permutations,
            epsilon=self.plan.epsilon,
            families=self.families,
            openings=self.openings,
        )
        found = calibrate(panels, options)
        found = msgspec.structs.replace(found, warnings=(*self.warnings, *found.warnings))
        entries = certified(self.plan, gold, panels, found, self.openings, self.seal)
        certificate = make_certificate(entries, self.now.date().isoformat())
        if self.out:
            files = self.answers | calibration_files(found)
            files[CERTIFICATE] = certificate_bytes(certificate, self.out / CERTIFICATE)
            # Were the writing to stop half-way, no certificate may stand beside tables it is not about.
            replace_folder(self.out, files, RECORD, inputs=self._inputs(), last=CERTIFICATE)
        trusted = bool(found.verdicts) and all(one.word == "TRUSTED" for one in found.verdicts)
        return CalibrationOutcome(found, certificate, trusted)

    def _inputs(self) -> list[Path]:
        """The files that were read."""
        judgments = [Path(path) for path in self.plan.judgments]
        beside = [path.with_name("failures.jsonl") for path in judgments]
        return [*judgments, *beside, *map(Path, self.plan.gold)]

    def _unmet(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource], panels: Sequence[Panel]) -> list[str]:
        """What has gold and no judgments, or judgments and no gold: no verdict is about it."""
        if self.only is not None:
            return []
        compared = {panel.criterion for panel in panels}
        graded = {row.criterion for row in rows}
        judged = {one.prompt.partition("/")[0] for source in sources for one in source.labels if one.prompt}
        return [
            *(f"{name}: gold, but no judgments; nothing is said about it" for name in sorted(graded - compared)),
            *(f"{name}: judgments, but no gold; nothing is said about it" for name in sorted(judged - graded)),
        ]

    def _only(self) -> str | None:
        """The one criterion to look at; a prompt named for it joins the prompts."""
        wanted = self._criterion
        if wanted is None or not ("/" in wanted or wanted.endswith(".md")):
            return wanted
        prompt = find_criterion(wanted)
        self.prompts.setdefault(prompt.prompt_id, prompt)
        return prompt.name

    def _stored(self, gold: Gold) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The rows and the labels that are there, with the baselines."""
        pool = Path(self.plan.pool) if self.plan.pool is not None else None
        sources = read_sources([Path(path) for path in self.plan.judgments], pool, self.scale)
        sources = tuple(msgspec.structs.replace(one, labels=self._wanted(one.labels)) for one in sources)
        self._find_prompts(sources)
        labels = [one for source in sources for one in source.labels]
        question = {
            "gold": gold.digest,
            "labels": sorted([one.digest, one.judge, one.prompt or "", one.prompt_digest or ""] for one in labels),
            "criterion": self.only,
            "scale": [
                self.plan.scale,
                self.plan.polarity,
                self.plan.gold_scale and os.fspath(self.plan.gold_scale),
            ],
            "resampling": resampling(self.plan),
            "requirements": sorted(self.plan.requirements),
        }
        rows = (*gold.rows, *self._opened(question, gold.rows, sources))
        return rows, (*sources, *self._baselines(rows, sources))

    def _wanted(self, labels: Sequence[Labels]) -> tuple[Labels, ...]:
        """Those under the criterion, or the very prompt, that was asked for."""
        wanted = self._criterion
        if wanted is None:
            return tuple(labels)
        exact = {one.prompt_id for one in self.prompts.values()} if wanted != self.only else None
        return tuple(
            one
            for one in labels
            if one.prompt is None or (one.prompt in exact if exact else one.prompt.partition("/")[0] == self.only)
        )

    def _find_prompts(self, sources: Sequence[LabelSource]) -> None:
        """The prompts behind labels, with a warning where a file has changed since."""
        # By name only: what a file of judgments says is no path to be read.
        bundled = {one.prompt_id: one for one in bundled_criteria()}
        for source in sources:
            for one in source.labels:
                if one.prompt is None:
                    continue
                if one.prompt not in self.prompts:
                    if one.prompt not in bundled:
                        raise UsageError(
                            f"{one.source}: no prompt called {shown(one.prompt)} comes with judge: give the file of a "
                            "prompt of your own with --prompt PATH"
                        )
                    self.prompts[one.prompt] = bundled[one.prompt]
                if self.prompts[one.prompt].digest != one.prompt_digest and not is_jury(one.judge):
                    file = self.prompts[one.prompt].file
                    self.warnings.append(f"{one.source}: {file} has changed since these judgments were made")

    def _opened(
        self, question: Mapping[str, Any], dev: Sequence[GoldRow], sources: Sequence[LabelSource]
    ) -> tuple[GoldRow, ...]:
        """The sealed test grades, if there are some; the look at them is logged."""
        if self.plan.test is None:
            return ()
        if any(row.split != "dev" for row in dev):
            raise UsageError("--test goes with the dev.jsonl that `judge gold split` wrote beside it (--gold)")
        # What would stop a calibration must not cost a look at the sealed grades.
        self._panels(dev, sources)
        if self.out:
            make_folder(self.out)
        test = Path(self.plan.test)
        seal = Path(self.plan.seal) if self.plan.seal is not None else test.with_name("seal.json")
        digest = sha256(msgspec.json.encode(question, order="sorted"))
        now = self.now.isoformat(timespec="seconds")
        rows, opening = open_sealed(
            test, seal, digest, now, check=lambda rows: self._check_sealed((*dev, *rows), sources)
        )
        self.openings, self.seal = opening.number, read_seal(seal).commitment
        return rows

    def _check_sealed(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> None:
        """Sealed grades that cannot be used stop everything before the look is on record, and are not shown."""
        try:
            self._panels(rows, sources)
        except InputError as error:
            raise InputError(
                f"{self.plan.test}: {max(1, len(error.problems))} faults of the sealed grades, such as grades off "
                "their scale; the seal was not opened"
            ) from None

    def _baselines(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[LabelSource, ...]:
        """What baselines say of the same responses, where there is a pool to read and nobody asked them yet."""
        pool = next((source.pool for source in sources if source.pool is not None), None)
        judges = {labels.judge for source in sources for labels in source.labels}
        added: list[LabelSource] = []
        for name in ASKED if pool is not None else ():
            model = open_model(name)
            prompts = self._gradable(model, {row.criterion for row in rows}) if name not in judges else []
            if pool is None or not prompts:
                continue
            with Journal(None) as journal:
                results = assess(self._gold_tasks(rows, pool, prompts, 1), model, journal, pool)
            added.append(LabelSource(labels_of(results, name, sha256(b"")), pool))
        return tuple(added)

    def _gradable(self, model: Model, criteria: Collection[str]) -> list[Criterion]:
        """For each criterion that was judged, the first of its prompts that a model can grade, else the default one."""
        found: list[Criterion] = []
        for criterion in sorted(criteria):
            judged = [prompt for prompt in self.prompts.values() if prompt.name == criterion]
            default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
            if prompt := next((one for one in (*judged, *default) if _accepts(model, one)), None):
                self.prompts.setdefault(prompt.prompt_id, prompt)
                found.append(prompt)
        return found

    def _asked(self, gold: Gold) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The rows and what the models say; on test grades only the judge that was chosen is asked."""
        plan = self.plan
        if plan.pool is None or self.out is None:
            raise UsageError(ASKING)
        pool, out = read_pool_folder(Path(plan.pool), "passages.jsonl"), self.out
        prompts = [one for one in self.prompts.values() if self.only in (None, one.name)]
        turns = turns_by_id(read_topics(Path(plan.topics))) if plan.topics is not None else None
        blind = [one.prompt_id for one in prompts if needs_turn(one)]
        if blind and turns is None:
            raise UsageError(f"{', '.join(blind)}: shown with the conversation, so a topics file is needed (--topics)")
        dev = tuple(row for row in gold.rows if row.split != "test")
        # All of them first: what one cannot be asked must not show after another was paid.
        models = [self.asking.open(name, prompts) for name in dict.fromkeys(plan.models)]
        make_folder(out)
        if (out / MANIFEST).exists():
            raise InputError(
                f"{out}: holds the results of `judge run`, which asking would write over: choose another --out"
            )
        with Journal(out / JOURNAL) as journal:
            results: list[Judgment | Failure] = []
            for model in models:
                wanted = self._gold_tasks(dev, pool, prompts, plan.samples)
                results += self.asking.ask(model, wanted, journal, pool, turns)
            panels, _ = self._panels(dev, [self._source(results, pool)])
            chosen = [one for panel in panels if (one := choose(panel, "dev" if panel.split[0] == "dev" else "all"))]
            held_out = tuple(row for row in gold.rows if row.split == "test")
            if plan.test is not None:
                if any(isinstance(one, Failure) and one.reason == "budget" for one in results):
                    raise OperationalError("the budget is spent before a judge is chosen: the test grades stay closed")
                pairs = sorted((one.judge, self.prompts[one.prompt].digest) for one in chosen if one.prompt)
                options = msgspec.to_builtins(plan.options)
                parameters = {name: options[name] for name in PARAMETERS}
                question = {"gold": gold.digest, "chosen": pairs, "parameters": parameters}
                question |= {"resampling": resampling(plan), "requirements": sorted(plan.requirements)}
                held_out += self._opened(question, gold.rows, [self._source(results, pool)])
            for column in chosen if held_out else ():
                prompt = [self.prompts[column.prompt]] if column.prompt else []
                wanted = self._gold_tasks(held_out, pool, prompt, plan.samples)
                model = self.asking.again(column.judge, prompt)
                results += self.asking.ask(model, wanted, journal, pool, turns)
        self.answers = {
            "judgments.jsonl": results_jsonl(results, Judgment),
            "failures.jsonl": results_jsonl(results, Failure),
        }
        # Before anything is computed of them: what the models said must not hang on the statistics.
        replace_folder(out, self.answers, RECORD, inputs=self._inputs(), last=CERTIFICATE, more=True)
        source = self._source(results, pool)
        rows = (*dev, *held_out)
        return rows, (source, *self._baselines(rows, [source]))

    def _gold_tasks(
        self, rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int
    ) -> tuple[Task, ...]:
        return gold_tasks(rows, pool, prompts, samples, str(self.plan.gold[0]))

    def _source(self, results: Sequence[Judgment | Failure], pool: Pool) -> LabelSource:
        return LabelSource(labels_of(results, str(self.out), sha256(b"")), pool)

    def _panels(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[tuple[Panel, ...], int]:
        """Gold and labels side by side.

        Raises:
            UsageError: Nothing was both graded and judged.
        """
        named = {one.prompt.partition("/")[0] for source in sources for one in source.labels if one.prompt}
        columns = any(one.prompt is None for source in sources for one in source.labels)
        criteria = {row.criterion for row in rows if columns or row.criterion in named}
        if self.only is not None:
            criteria &= {self.only}
        elif columns and len(criteria) > 1:
            raise UsageError(
                f"{self.plan.gold[0]} has grades of {', '.join(sorted(criteria))}, and files of columns do not say "
                "which they are about: --criterion NAME is needed"
            )
        scales = {name: self._gold_scale(name) for name in sorted(criteria)}
        found = make_panels(rows, sources, self.prompts, scales, str(self.plan.gold[0]), criteria)
        if not found[0]:
            raise UsageError(f"{self.plan.gold[0]}: no grade of a response under a criterion that was judged")
        return found

    def _gold_scale(self, criterion: str) -> Scale:
        """The scale that the gold of a criterion is on."""
        if self.plan.gold_scale is not None:
            prompt = find_criterion(self.plan.gold_scale)
            if prompt.name == criterion:
                return prompt.scale
        if self.scale is not None:
            return self.scale
        scales = [one.scale for one in self.prompts.values() if one.name == criterion]
        if not scales and criterion in default_prompts():
            return find_criterion(criterion).scale
        if not scales:
            raise UsageError(f"the grades of {criterion} are not known: --scale LOW-HIGH is needed")
        if not all(same_grades(one, scales[0]) for one in scales):
            raise UsageError(
                f"the prompts of {criterion} have different scales: --gold-scale PROMPT names the one whose scale the "
                "gold is on, and judges on others are compared as positive or not"
            )
        return scales[0]


def _accepts(model: Model, prompt: Criterion) -> bool:
    try:
        model.check([prompt])
    except UsageError:
        return False
    return True
