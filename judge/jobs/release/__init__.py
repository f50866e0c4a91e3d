"""The bundle that a track may publish: what `judge release` does, for use from Python."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.records import Failure
from judge.ask.results import JUDGMENTS
from judge.errors import InputError, UsageError, refuse
from judge.io.files import file_sha256, json_bytes, published
from judge.io.folder import check_apart, make_folder, recorded, replace_folder, same_place, write_atomic
from judge.io.plan import Option
from judge.io.printout import Printout
from judge.io.steps import Step, Steps, quiet
from judge.io.text import count
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.leaderboard import CORRECTED_RECORD, CorrectionPlan, correct_leaderboard, correction_files
from judge.jobs.manifest import RECORD, UNFINISHED, OutputFolder, reported
from judge.jobs.options import GoldFiles, OwnPrompts
from judge.jobs.release.contents import (
    README,
    bundle_files,
    hidden_models,
    left_out,
    prompt_parts,
    published_folder,
    readme,
)
from judge.jobs.release.contents import (
    renamed_pool as renamed_pool,
)
from judge.jobs.release.names import Pseudonyms, check_pseudonyms, completed, read_pseudonyms, remaining
from judge.records import file_problem
from judge.units import UNITS

NAMES = ".names.json"
"""The end of the private file's name, after that of the bundle's folder."""


class ReleasePlan(OwnPrompts, GoldFiles):
    """Everything `judge release` can be told."""

    folder: Annotated[Path, Option(metavar="OUT", place="only")]
    """Output folder of `judge run`."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """The folder of the bundle."""
    names: Annotated[Path | None, Option(metavar="FILE")] = None
    """Private file of pseudonyms, made or used again (default: DIR.names.json, beside DIR)."""
    keep_names: bool = False
    """Publish the names of runs and teams."""
    allow_names: bool = False
    """Accept names that are left in texts."""
    passage_text: bool = False
    """Publish the texts of passages; their license must allow it."""
    rationales: bool = False
    """Publish the judge's own words, which may quote passages."""
    model_names: bool = False
    """Publish the names by which servers call their models, whatever a server put there."""
    license: Annotated[str | None, Option(metavar="TEXT")] = None
    """Terms of use, for the bundle's README."""

    def _check(self) -> None:
        if self.keep_names:
            self.refuse_unused(["names", "allow_names"], "--keep-names publishes every name")
        if not self.gold:
            self.refuse_unused(["columns"], "they are of tables of people's grades (--gold)")


def release_folder(plan: ReleasePlan, steps: Steps = quiet) -> Printout:
    """Write the bundle of a finished folder; every place of a name that is left in a text is listed."""
    folder = plan.folder
    out = plan.out
    steps(Step("reading the folder"))
    _check_folder(folder)
    own = {find_criterion(path).prompt_id: prompt_path(path) for path in plan.prompts}
    judged = read_judged(folder, prompts=plan.prompts)
    if plan.gold:
        asked = CalibrationPlan(
            judgments=(folder / JUDGMENTS,),
            gold=plan.gold,
            columns=plan.columns,
            cluster=judged.cluster,
            prompts=plan.prompts,
        )
        judged = judged.beside(calibrate_judges(asked).calibration.verdicts)
    models = {} if plan.model_names else hidden_models(judged, OutputFolder(folder).replies)
    public = published_folder(judged, models)
    private = None if plan.keep_names else plan.names or out.resolve().with_name(f"{out.resolve().name}{NAMES}")
    _check_out(plan, folder, out, private)
    before = Pseudonyms() if private is None else read_pseudonyms(private)
    names = _names(judged, before, keep=plan.keep_names)
    if private is not None:
        check_pseudonyms(private, names)
    texts = {"passage_text": plan.passage_text, "rationales": plan.rationales}
    files = bundle_files(public, names, own, steps, models, **texts)
    if plan.gold:
        correction = CorrectionPlan(folder=folder, gold=plan.gold, columns=plan.columns, prompts=plan.prompts)
        # Gold may name runs, so they are renamed only afterwards.
        board = correct_leaderboard(correction, judged)
        rows = tuple(msgspec.structs.replace(row, run_id=names.runs[row.run_id]) for row in board.rows)
        files |= correction_files(msgspec.structs.replace(board, rows=rows), correction.target)
    lacking = left_out(UNITS[public.pool.unit], hidden=private is not None, models=bool(models), **texts)
    files = {README: readme(files, public, lacking, plan.license), **files}
    steps(Step("looking for names"))
    left = () if plan.keep_names else tuple(remaining(files, (*names.hidden, *_places(judged, names))))
    if left and not plan.allow_names:
        raise InputError(
            f"{out}: not written: {count(len(left), 'line')} would show what is not published; --keep-names publishes "
            "the names of runs and teams, --allow-names accepts these lines",
            left,
        )
    if private is not None and names != before:
        # Before the bundle: pseudonyms that nobody can resolve are worth nothing. Its owner alone may read the file.
        make_folder(private.parent)
        write_atomic(private, json_bytes(names), mode=0o600)
    make_folder(out)
    with reported(out, RECORD):
        replace_folder(out, files, RECORD, inputs=[] if private is None else [private])
    notes = [f"{count(len(files), 'file')}; {out / README} says what each is"]
    if private is not None:
        notes.append(f"keep {private} private: it says whose the pseudonyms are, and the next bundle uses it again")
    return Printout(
        parts=(tuple(f"accepted: {problem.file}: {problem.path}: {problem.message}" for problem in left),),
        files=(out,),
        warnings=tuple(f"warning: {line}" for line in _warnings(judged, own, passage_text=plan.passage_text)),
        notes=tuple(notes),
    )


def _check_folder(folder: Path) -> None:
    """Refuse a folder that is not finished, or whose files are not those that `judge run` wrote."""
    if (folder / CORRECTED_RECORD).is_file() and not (folder / JUDGMENTS).exists():
        raise InputError(
            f"{folder}: a corrected leaderboard: `judge release OUT --gold FILE` publishes it with its run"
        )
    stored = OutputFolder(folder)
    if stored.manifest is None or stored.status == UNFINISHED:
        raise InputError(f"{folder}: no finished run there: expected an output folder of `judge run`")
    entries = sorted(recorded(folder, RECORD))
    if not entries:
        raise InputError(f"{folder}: no {RECORD} there, so nothing says that its files are as `judge run` wrote them")
    problems = []
    for name, digest in entries:
        path = folder / name
        found = "missing" if not path.is_file() else "" if file_sha256(path) == digest else "changed since"
        if found:
            problems.append(file_problem("file_changed", path, f"{found}: see {RECORD}", "$"))
    refuse(problems, f"{folder}: not as `judge run` wrote it: run the same command again")


def _check_out(plan: ReleasePlan, folder: Path, out: Path, private: Path | None) -> None:
    """Refuse an output folder that holds the input or files of others, and a private file inside the bundle."""
    check_apart(out, [folder])
    if same_place(out.parent, folder) or folder.resolve() in out.resolve().parents:
        raise UsageError(f"{out}: this is inside {folder}; give a folder outside it")
    # The record is written first, so a bundle that a kill left half-written is known by it too.
    if out.exists() and any(out.iterdir()) and README not in {name for name, _ in recorded(out, RECORD)}:
        raise UsageError(f"{out}: holds files that this command did not write; give an empty folder")
    for around in private.resolve().parents if private is not None else ():
        # Another bundle around it is published as well.
        if around == out.resolve() or (
            (around / README).is_file() and README in {name for name, _ in recorded(around, RECORD)}
        ):
            raise UsageError(
                f"{private}: this is inside {around}, which is published; name a place outside it (--names)"
            )


def _names(judged: JudgedFolder, before: Pseudonyms, *, keep: bool) -> Pseudonyms:
    pool = judged.pool
    listed = judged.manifest.get("runs", ())
    runs = {run.run_id for run in pool.runs} | {exclusion.run_id for exclusion in pool.exclusions}
    for response in (*pool.responses, *pool.answers):
        runs |= {entry.run_id for entry in response.runs}
    runs |= {str(run["run_id"]) for run in listed}
    teams = {run.team for run in pool.runs if run.team} | {str(run["team"]) for run in listed if run.get("team")}
    if keep:
        return Pseudonyms({run: run for run in runs}, {team: team for team in teams})
    return completed(before, runs, teams)


def _places(judged: JudgedFolder, names: Pseudonyms) -> tuple[str, ...]:
    """Names that tell of people and places: of run files, of one's own server, of a model below a home."""
    url = judged.manifest.get("configuration", {}).get("options", {}).get("base_url")
    hosts = [urlsplit(text).hostname for text in (url.values() if isinstance(url, dict) else [url]) if text]
    models: set[str] = set()
    for result in judged.results:
        models.update(name for name in (result.judge, getattr(result, "model", None)) if name)
    stems = [PurePath(str(run.get("file", ""))).name.partition(".")[0] for run in judged.manifest.get("runs", ())]
    homes = sorted(name for name in models if published(name) != name)
    return (
        *(host for host in hosts if host),
        *homes,
        *(stem for stem in stems if stem and names.runs.get(stem) != stem),
    )


def _warnings(judged: JudgedFolder, own: Mapping[str, Path], *, passage_text: bool) -> tuple[str, ...]:
    lines = [*judged.warnings]
    if judged.manifest.get("status") != "complete":
        lines.append("this was a trial: only some of the responses were judged")
    for part in prompt_parts(judged, own, passage_text=passage_text):
        if part.lacking is not None:
            lines.append(f"{part.prompt_id}: {part.lacking}")
        elif shown := part.criterion.examples:
            comments = count(sum(example.comment is not None for example in shown), "comment")
            graded = count(len(shown), "example")
            lines.append(f"{part.prompt_id}: publishes {graded}: people's grades, and {comments} by assessors")
    lines = list(dict.fromkeys(lines))
    missing = Counter(result.reason for result in judged.results if isinstance(result, Failure))
    if missing:
        reasons = ", ".join(f"{reason} × {number}" for reason, number in sorted(missing.items()))
        lines.append(f"judgments are missing: {reasons}")
    return tuple(lines)
