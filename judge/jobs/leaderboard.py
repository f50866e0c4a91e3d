"""A judged folder's leaderboard corrected by gold, and the folder as the pilot of the next collection.

That is what `judge leaderboard --gold` and `judge plan` do, for use from Python.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from judge.ask.records import Judgment
from judge.ask.results import JUDGMENTS, is_jury
from judge.calibrate.certificate import read_certificate
from judge.calibrate.gold_tables import apart, read_gold_tables
from judge.calibrate.report.plots import raw_vs_corrected
from judge.calibrate.second_year import DEFAULT_MARGIN, SecondYearPlan, plan_second_year
from judge.errors import InputError, UsageError
from judge.gold.examples import without_examples
from judge.gold.rows import GoldRow, match, one_order
from judge.gold.seal import GOLD_FILES, SEAL, TEST_FILES, Look, open_sealed, read_seal, read_unsealed, seal_of
from judge.io.files import file_in, file_sha256, read_stored, sha256
from judge.io.folder import make_folder, replace_folder, write_atomic
from judge.io.ids import Cluster
from judge.io.installed import has_extra, undrawn
from judge.io.plan import AboveZero, Option, Positive, in_folders
from judge.io.table import records_tsv
from judge.io.text import count, examples
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.options import GoldFiles, OwnPrompts
from judge.pool.lists import read_families
from judge.pool.pairs import other_orders
from judge.records import Criterion
from judge.results.citations import Measure, boards_of, headlines_of, refuse_listed
from judge.results.corrected import change, corrected
from judge.results.gold import gold_grades, measured_gold
from judge.results.gold_sample import cautions, check_sample
from judge.results.leaderboard import CORRECTED_COLUMNS, corrected_markdown
from judge.results.pairs import agreed
from judge.results.planning import Goal, Pilot, pilots, warnings
from judge.results.rows import RankingChange, Score, too_few_topics
from judge.results.turns import turns_by_criterion
from judge.units import UNITS

CORRECTED_RECORD = "corrected.sha256"
"""The list of digests in a folder of a corrected leaderboard."""


class CorrectionPlan(OwnPrompts, GoldFiles):
    """Everything `judge leaderboard --gold` can be told."""

    folder: Annotated[Path, Option(metavar="OUT", place="only")]
    """Output folder of `judge run`."""
    test: Annotated[Path | None, Option(metavar="FILE")] = None
    """Sealed test grades of `judge gold split`, used together with --gold; each opening is logged."""
    seal: Annotated[Path | None, Option(metavar="FILE")] = None
    """Their seal (default: seal.json beside --test)."""
    criterion: Annotated[str | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion; a prompt file of your own if the judgments are under one."""
    target: Literal["pool", "topics"] = "pool"
    """Corrected means of these responses, or of the runs on topics like these."""
    families: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run or judge, tab, family of models behind it: flags SELF."""
    fallback: Literal["family"] | None = None
    """Correct runs with fewer than 3 gold grades by their family's error."""
    cluster: Cluster | None = None
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one (default: as the folder was made)."""
    out: Annotated[Path | None, Option(short="o", metavar="PATH")] = None
    """Write the corrected leaderboard, to a folder or to a file named .tsv or .md."""


class CorrectionOutcome(msgspec.Struct, frozen=True):
    """The corrected leaderboard, and the cautions to read with it."""

    criteria: tuple[Criterion, ...]
    """The criteria with gold."""
    rows: tuple[Score, ...]
    """One row per run and criterion."""
    changes: dict[str, RankingChange]
    """By criterion, how the ranking changed."""
    cautions: tuple[str, ...]
    """What limits the corrected means, a sentence each."""
    warnings: tuple[str, ...]
    """A line for each prompt file that has changed since, and one for pictures that are not drawn."""
    gold: str
    """Digest of the gold files."""
    seal: str | None
    """The salted digest of the sealed grades; a digest without salt would let readers test guesses."""
    clustered: tuple[str, ...] = ()
    """In words, over what the intervals are if it is not topics."""
    notes: tuple[str, ...] = ()
    """In words, what was taken for what in tables of grades."""


def correct_leaderboard(plan: CorrectionPlan, judged: JudgedFolder | None = None) -> CorrectionOutcome:
    """Correct the means of a judged folder by gold, and write them if the plan names a place.

    `judged`: the folder, if it was read already.
    """
    seal_of(plan.test, plan.seal)
    if not plan.gold and plan.test is None:
        raise UsageError("a correction needs gold grades (--gold)")
    if plan.fallback and plan.families is None:
        raise UsageError("--fallback family needs --families, which says what family a run is of")
    plan = in_folders(plan, gold=GOLD_FILES, test=TEST_FILES, seal=(SEAL,))
    judged = judged or read_judged(plan.folder, plan.criterion, plan.cluster, plan.prompts)
    refuse_listed(judged.pool)
    gold, notes = _gold(plan, judged, "they are opened with --test, which puts it on record")
    digest = sha256(b"\n".join(sorted(sha256(read_stored(path)).encode() for path in plan.gold)))
    seal = seal_of(plan.test, plan.seal)
    if seal is not None and plan.out is not None:
        # Grades are not opened for what cannot be written.
        _make_place(plan.out)
    sealed, warnings = _opened(plan, judged, gold, digest, seal) if seal is not None else ((), ())
    criteria, rows, all_cautions = _corrected(plan, judged, (*gold, *sealed), warnings)
    boards = boards_of(criteria)
    changes: dict[str, RankingChange] = {}
    for board in boards:
        scores = [row for row in rows if row.criterion == board.name]
        changes[board.name] = change(scores, higher_is_better=board.scale.polarity == "higher")
    unmade: Sequence[str] = ()
    if plan.out is not None and not _is_file(plan.out):
        unmade = undrawn("pictures of the raw and the corrected means")
    outcome = CorrectionOutcome(
        criteria=boards,
        rows=rows,
        changes=changes,
        cautions=all_cautions,
        warnings=(*judged.warnings, *unmade),
        gold=digest,
        seal=None if seal is None else read_seal(seal).commitment,
        clustered=judged.clustered,
        notes=notes,
    )
    if plan.out is not None:
        _write_correction(plan.out, plan, outcome)
    return outcome


def _gold(plan: GoldFiles, judged: JudgedFolder, advice: str) -> tuple[tuple[GoldRow, ...], tuple[str, ...]]:
    """The grades of all files, none of which is under seal, and what was taken for what in tables.

    `advice` says what to do with sealed grades.
    """
    tables, files = apart(plan.gold, plan.columns)
    gold = read_unsealed(files, advice)
    if not tables:
        return gold, ()
    criteria = {criterion.name for criterion in judged.criteria}
    read = read_gold_tables(tables, plan.columns, criteria, judged.pool, judged.criteria)
    rows, notes = _with_certainty(read.rows, judged)
    return (*gold, *rows), (*read.notes, *notes)


def _with_certainty(rows: Sequence[GoldRow], judged: JudgedFolder) -> tuple[tuple[GoldRow, ...], list[str]]:
    """Grades of tables, and a note where they are of all that was judged, which leaves nothing to chance."""
    others = other_orders(judged.pool)
    graded: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        response_id = row.response_id or ""
        graded[row.criterion].add(response_id)
        if response_id in others:
            graded[row.criterion].add(others[response_id].response_id)
    judgments: dict[str, set[str]] = defaultdict(set)
    for result in judged.results:
        if isinstance(result, Judgment):
            judgments[result.criterion].add(result.response_id)
    certain = {criterion for criterion, judged_ids in judgments.items() if judged_ids <= graded[criterion]}
    notes: list[str] = []
    known: list[GoldRow] = []
    for row in rows:
        if row.inclusion_probability is None and row.criterion in certain:
            row = msgspec.structs.replace(row, inclusion_probability=1.0)
            notes.append(f"{row.criterion}: every judged response has a grade, so none was drawn by chance")
        known.append(row)
    return tuple(known), list(dict.fromkeys(notes))


def _opened(
    plan: CorrectionPlan, judged: JudgedFolder, gold: tuple[GoldRow, ...], digest: str, seal: Path
) -> tuple[tuple[GoldRow, ...], tuple[str, ...]]:
    """The sealed grades, and a warning if they were opened before for another question."""
    question = {
        "gold": digest,
        "target": plan.target,
        "fallback": plan.fallback and sorted(read_families(Path(str(plan.families))).items()),
        **({} if judged.cluster == "topic" else {"cluster": judged.cluster}),
        "criteria": [(criterion.prompt_id, criterion.digest) for criterion in judged.criteria],
        "judgments": file_sha256(judged.path / JUDGMENTS),
        # The means are of the pool's responses, so a pool with fewer of them asks another question.
        "pool": [(response.response_id, response.turn_id, response.text) for response in judged.pool.responses],
        "runs": [[entry.run_id for entry in response.runs] for response in judged.pool.responses],
    }

    def look(rows: tuple[GoldRow, ...]) -> Look:
        try:
            criteria, _, _ = _corrected(plan, judged, (*gold, *rows))
            matched, _ = match(rows, judged.pool, str(plan.test))
        except InputError as error:
            if not error.problems:
                raise
            codes = ", ".join(sorted({problem.code for problem in error.problems}))
            raise InputError(
                f"{plan.test}: {len(error.problems)} problems of the gold, the sealed grades included ({codes}); the "
                "seal was not opened"
            ) from None
        compared = Counter(criterion for _, criterion in matched)
        asked = sha256(msgspec.json.encode(question, order="sorted"))
        return asked, {criterion.name: compared[criterion.name] for criterion in criteria}, {}

    rows, opening = open_sealed(Path(str(plan.test)), seal, datetime.now(UTC).isoformat(timespec="seconds"), look)
    if opening.number < 2:
        return rows, ()
    return rows, (
        f"the sealed test grades have been opened for {opening.number} different questions; what is reported on them "
        "is no longer held out",
    )


def _corrected(
    plan: CorrectionPlan, judged: JudgedFolder, gold: Sequence[GoldRow], warnings: Sequence[str] = ()
) -> tuple[tuple[Criterion, ...], tuple[Score, ...], tuple[str, ...]]:
    """The criteria with gold, their rows, and the cautions to read with them."""
    families = {} if plan.families is None else read_families(plan.families)
    name = ", ".join(str(path) for path in (*plan.gold, plan.test) if path)
    gold = one_order(gold, judged.pool, {criterion.name: criterion.scale.ends for criterion in judged.criteria})
    # A response that was chosen for certain stands for itself alone: what the judge was shown of it moves no other.
    certain = tuple(row for row in gold if row.inclusion_probability == 1)
    drawn = tuple(row for row in gold if row.inclusion_probability != 1)
    tested = {row.topic_id for row in gold if row.split == "test"}
    shown = without_examples(drawn, judged.criteria, judged.pool, tested)
    matched, unmatched = match((*certain, *shown.rows), judged.pool, name)
    graded = {criterion for _, criterion in matched}
    criteria = tuple(prompt for prompt in judged.criteria if prompt.name in graded)
    if not criteria:
        names = ", ".join(criterion.name for criterion in judged.criteria)
        raise UsageError(f"{name}: no grade of a pooled response under {names}")
    all_cautions = [*warnings, *shown.warnings]
    if unmatched:
        all_cautions.append(f"{len(unmatched)} of {len(gold)} gold grades are of responses not in the pool")
    if without := [criterion.name for criterion in judged.criteria if criterion not in criteria]:
        all_cautions.append(f"no gold under {', '.join(without)}, so nothing is said of it here")
    rows: list[Score] = []
    in_part: dict[str, list[str]] = defaultdict(list)
    for criterion, runs in turns_by_criterion(judged.pool, judged.results, criteria):
        labeled = criterion.of if isinstance(criterion, Measure) else criterion
        judges = judged.judges(labeled)
        if families and judges and all(map(is_jury, judges)):
            all_cautions.append(
                f"{criterion.name}: no manifest says who the jury's members are, so no run is flagged SELF"
            )
        grades = gold_grades(matched, labeled, name)
        if isinstance(criterion, Measure):
            verdicts = agreed(judged.pool, judged.results, labeled)
            verdicts = [each for each in verdicts if each.variant == labeled.variant]
            grades = measured_gold(criterion, judged.pool, runs, grades, verdicts)
            nouns = UNITS[labeled.unit].nouns
            if partly := sum(not grade.whole for grade in grades.values()):
                text = (
                    f"of {count(partly, 'response')} only some {nouns.responses} have gold; the others count as not "
                    "drawn, or not at all where all gold was chosen for certain"
                )
                in_part[text].append(criterion.name)
        all_cautions += [f"{labeled.name}: {text}" for text in cautions(runs, grades)]
        check_sample(runs, grades, plan.target, name)
        corrected_rows = corrected(
            runs,
            criterion,
            grades,
            target=plan.target,
            families=families,
            judge_families={families[judge] for judge in judges if judge in families},
            fallback=plan.fallback,
            cluster=judged.cluster,
        )
        unplaced = [row.more["topics"] for row in corrected_rows if row.few_topics]
        if unplaced:
            all_cautions.append(f"{criterion.name}: {too_few_topics(max(unplaced), judged.cluster)}")
        rows += corrected_rows
    all_cautions += [f"{examples(names, 2)}: {text}" for text, names in in_part.items()]
    return criteria, tuple(rows), tuple(dict.fromkeys(all_cautions))


def _is_file(out: Path) -> bool:
    return out.suffix in {".tsv", ".md"} and not out.is_dir()


def correction_files(outcome: CorrectionOutcome, target: str) -> dict[str, bytes]:
    """The corrected leaderboard as `corrected.tsv` and `corrected.md`."""
    report = corrected_markdown(
        outcome.rows,
        outcome.criteria,
        outcome.changes,
        target=target,
        cautions=outcome.cautions,
        clustered=outcome.clustered,
    )
    return {
        "corrected.tsv": records_tsv(CORRECTED_COLUMNS, outcome.rows, 4).encode(),
        "corrected.md": report.encode(),
    }


def _make_place(out: Path) -> None:
    make_folder(out.parent if _is_file(out) else out)


def _write_correction(out: Path, plan: CorrectionPlan, outcome: CorrectionOutcome) -> None:
    _make_place(out)
    files = correction_files(outcome, plan.target)
    if _is_file(out):
        write_atomic(out, files["corrected.tsv" if out.suffix == ".tsv" else "corrected.md"])
        return
    if has_extra("pictures"):
        files["corrected.svg"], files["corrected.png"] = raw_vs_corrected(outcome.rows)
    replace_folder(out, files, CORRECTED_RECORD)


class TopicsPlan(OwnPrompts, GoldFiles):
    """Everything `judge plan` can be told."""

    folder: Annotated[Path | None, Option(metavar="OUT", place="only")] = None
    """Output folder of `judge run`: the pilot."""
    certificate: Annotated[Path | None, Option(metavar="FILE")] = None
    """In place of it a `certificate.json`: labels that show whether its agreement carries to other topics."""
    margin: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, Option(metavar="M")] = None
    """With --certificate, how much less agreement does not matter (default: 0.1)."""
    criterion: Annotated[str | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion; a prompt file of your own if the judgments are under one."""
    half_width: Annotated[AboveZero | None, Option(metavar="H")] = None
    """Topics for a 95 % interval of a difference of two runs of +-H."""
    difference: Annotated[AboveZero | None, Option(metavar="D")] = None
    """Topics that find a true difference D with probability .8."""
    turns: Annotated[Positive | None, Option(metavar="N")] = None
    """Turns of a topic (default: as in the pilot)."""

    def _check(self) -> None:
        if (self.folder is None) == (self.certificate is None):
            raise UsageError("expected an output folder of `judge run`, or a certificate (--certificate)")
        if self.certificate is None:
            self.refuse_unused(["margin"], "it is how much less agreement than certified does not matter")
        else:
            others = ("gold", "columns", "criterion", "prompts", "half_width", "difference", "turns")
            self.refuse_unused(others, "a certificate says all that its second year is planned by")


class TopicsOutcome(msgspec.Struct, frozen=True):
    """The pilots, and what limits them."""

    pilots: tuple[Pilot, ...]
    """For each criterion the judge's grades; with gold the assessors' grades and the differences of the two."""
    warnings: tuple[str, ...]
    """A sentence each."""
    notes: tuple[str, ...] = ()
    """In words, what was taken for what in tables of grades."""


def plan_certified(plan: TopicsPlan) -> tuple[SecondYearPlan, ...]:
    """How many labels on how many other topics show that a certificate's agreement carries, by criterion."""
    if plan.certificate is None:
        raise UsageError("a second year is planned by a certificate (--certificate)")
    certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
    return plan_second_year(certificate.certified, DEFAULT_MARGIN if plan.margin is None else plan.margin)


def plan_topics(plan: TopicsPlan) -> TopicsOutcome:
    """Take the grades of a judged folder apart, and plan topics by them; sealed gold is refused."""
    folder = plan.folder
    if folder is None:
        raise UsageError("topics are planned by an output folder of `judge run`")
    plan = in_folders(plan, gold=GOLD_FILES)
    judged = read_judged(folder, plan.criterion, prompts=plan.prompts)
    refuse_listed(judged.pool)
    if UNITS[judged.pool.unit].orders > 1:
        raise UsageError(
            f"{plan.folder}: a pool of pairs: who wins how often depends on who is compared, so no topics are planned "
            "by it; plan by grades of responses, such as those of `judge run --criteria usefulness`"
        )
    name = ", ".join(map(str, plan.gold))
    gold, notes = _gold(plan, judged, "a plan needs none of them; give the dev part")
    shown = without_examples(gold, judged.criteria, judged.pool)
    matched, unmatched = match(shown.rows, judged.pool, name)
    names = {criterion.name for criterion in judged.criteria}
    if plan.gold and not any(criterion in names for _, criterion in matched):
        raise UsageError(f"{name}: no grade of a pooled response under {', '.join(sorted(names))}")
    sizes: tuple[tuple[Goal, float | None], ...] = ("half_width", plan.half_width), ("difference", plan.difference)
    wanted = {goal: size for goal, size in sizes if size is not None}
    outcomes: list[Pilot] = []
    for criterion in headlines_of(judged.criteria):
        outcomes += pilots(judged.pool, judged.results, criterion, matched, wanted, plan.turns)
    left = (f"{len(unmatched)} gold grades are of responses not in the pool",) if unmatched else ()
    return TopicsOutcome(tuple(outcomes), (*judged.warnings, *shown.warnings, *left, *warnings(outcomes)), notes)
