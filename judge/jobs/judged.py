"""An output folder that `judge run` filled: its pool, its results and the prompts behind them, read back."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.ask.results import JUDGMENTS, is_jury
from judge.calibrate.findings import TrustVerdict
from judge.errors import InputError, UsageError, refuse
from judge.io.files import StrPath
from judge.io.ids import Cluster, check_cluster, clustering
from judge.io.text import count, interval, printable
from judge.jobs.folder import UNCALIBRATED
from judge.jobs.manifest import OutputFolder, looks
from judge.jobs.parts import PASSAGES
from judge.pool.lists import read_grades
from judge.pool.records import Pool, is_new, pool_places
from judge.records import Criterion, file_problem
from judge.results.leaderboard import leaderboard
from judge.results.qrels import qrel_stem
from judge.results.rows import Score
from judge.results.tables import ResultTables, result_tables
from judge.results.told import told_results
from judge.results.used import UsedPassages, used_passages
from judge.units import UNITS


class JudgedFolder(msgspec.Struct, frozen=True):
    """The part of an output folder that leaderboards need."""

    path: Path
    pool: Pool
    results: Sequence[Judgment | Failure]
    """They stay in their files, and are read whenever somebody goes through them."""
    criteria: tuple[Criterion, ...]
    """The prompts behind the results, or only the one asked for."""
    manifest: dict[str, Any]
    warnings: tuple[str, ...]
    """A line for each prompt file that has changed since."""
    said_by: Mapping[str, frozenset[str]]
    """The judges of the results, by `criterion/variant`."""
    cluster: Cluster = "topic"
    """What intervals and tests are over."""
    verdicts: tuple[TrustVerdict, ...] = ()
    """What gold says of the judges of these results, where it stands beside them."""
    used: UsedPassages | None = None
    """Which of the used passages are relevant, where they are judged in a folder in this one and that was looked at."""

    @property
    def clustered(self) -> tuple[str, ...]:
        """The note of outputs that are not over topics."""
        return clustering((response.topic_id for response in self.pool.responses), self.cluster)

    @property
    def banner(self) -> str:
        """How far to believe the judge: the certificate's banner, else what gold says, else that nobody compared."""
        statement = self.manifest.get("certificate")
        if isinstance(statement, dict) and "banner" in statement:
            return str(statement["banner"])
        if not self.verdicts:
            return UNCALIBRATED
        verdicts = {verdict.criterion: verdict for verdict in self.verdicts}
        words = {verdicts[criterion.name].word if criterion.name in verdicts else "" for criterion in self.criteria}
        parts: list[str] = []
        for criterion in self.criteria:
            verdict = verdicts.get(criterion.name)
            if verdict is None:
                parts.append(f"{criterion.name} not compared")
            elif len(words) == 1:
                parts.append(f"{criterion.name}, {_found(verdict)}")
            else:
                parts.append(f"{criterion.name} {verdict.word}, {_found(verdict)}")
        compared = "by people's grades, without a certificate"
        head = f"{words.pop()} {compared}" if len(words) == 1 else f"Judged {compared}"
        return f"{head}: {'; '.join(parts)}."

    def beside(self, verdicts: Iterable[TrustVerdict]) -> "JudgedFolder":
        """The folder with those of the verdicts that are about its judges under its prompts."""
        names: set[tuple[str, str]] = set()
        for prompt_id, judges in self.said_by.items():
            names.update((prompt_id, f"{judge} {prompt_id.partition('/')[2]}") for judge in judges)
        own = tuple(verdict for verdict in verdicts if (verdict.prompt, verdict.judge) in names)
        return msgspec.structs.replace(self, verdicts=own) if own else self

    @property
    def leaderboard(self) -> tuple[Score, ...]:
        """One row per run and criterion."""
        return leaderboard(self.pool, self.results, self.criteria, cluster=self.cluster)

    @property
    def tables(self) -> ResultTables:
        """The leaderboard and every table beside it."""
        return result_tables(
            self.pool, self.results, self.criteria, self.cluster, looks(self.manifest.get("configuration"))
        )

    def judges(self, criterion: Criterion) -> set[str]:
        """The judges that gave the grades; for a jury also its members, which the manifest lists."""
        judges = set(self.said_by.get(criterion.prompt_id, ()))
        if any(map(is_jury, judges)):
            jury = self.manifest.get("configuration", {}).get("jury")
            members = jury.get("members", {}).get(criterion.name, ()) if isinstance(jury, dict) else ()
            if not all(isinstance(member, dict) and isinstance(member.get("judge"), str) for member in members):
                raise InputError("manifest.json: the jury's members are not as `judge run` writes them")
            judges |= {member["judge"] for member in members}
        return judges

    def with_used(self) -> "JudgedFolder":
        """The folder with the relevance of the used passages, where a finished folder of passages stands in it."""
        folder = self.path / PASSAGES
        if OutputFolder(folder).status not in ("complete", "trial") or not (folder / JUDGMENTS).exists():
            return self
        listed = read_judged(folder, cluster=self.cluster)
        if not UNITS[listed.pool.unit].listed:
            return self
        relevance = listed.criteria[0]
        people = folder / "qrels" / f"{qrel_stem(relevance)}.people.qrel"
        used = used_passages(
            self.pool,
            self.results,
            self.criteria,
            listed=listed.pool,
            grades=listed.results,
            relevance=relevance,
            people=read_grades(people) if people.is_file() else {},
            cluster=self.cluster,
        )
        return msgspec.structs.replace(self, used=used)


def _found(verdict: TrustVerdict) -> str:
    estimate = verdict.estimate
    return printable(
        f"{verdict.statistic} {interval(estimate, 2)} "
        f"({count(estimate.n, 'grade')} on {count(estimate.topics, 'topic')})"
    )


def read_judged(
    folder: StrPath, criterion: str | None = None, cluster: Cluster | None = None, prompts: Sequence[StrPath] = ()
) -> JudgedFolder:
    """Read an output folder of `judge run`.

    `criterion`: the only one to look at, or the file of the prompt that the judgments are under. `cluster`: what
    intervals and tests are over; by default as the folder's own leaderboard. `prompts`: files of your own, for
    judgments under them. A UsageError if a prompt cannot be found, or nothing was judged under it.
    """
    if cluster is not None:
        check_cluster(cluster)
    stored = OutputFolder(folder)
    folder = stored.path
    judgments = folder / JUDGMENTS
    results = stored.results
    pool = stored.pool
    survey = _survey(results, pool, judgments)
    criteria, warnings = _criteria(survey, criterion, folder, prompts)
    _check_grades(results, survey, criteria, judgments)
    manifest = stored.manifest or {}
    recorded: Cluster = "theme" if manifest.get("cluster") == "theme" else "topic"
    return JudgedFolder(
        path=folder,
        pool=pool,
        results=told_results(results, pool, pool.turns),
        criteria=criteria,
        manifest=manifest,
        warnings=warnings,
        said_by={prompt: frozenset(judge for _, judge, _ in about) for prompt, about in survey.items()},
        cluster=cluster or recorded,
    )


_Survey = Mapping[str, Collection[tuple[str, str, int | None]]]
"""`criterion/variant` to each digest of the prompt with each judge and the grades that it gave; None without one."""


def _survey(results: Sequence[Judgment | Failure], pool: Pool, path: Path) -> _Survey:
    """What was said under each prompt."""
    survey: dict[str, set[tuple[str, str, int | None]]] = {}
    places = pool_places(pool)
    graded: dict[str, bytearray] = defaultdict(bytearray)
    twice: set[tuple[str, str]] = set()
    for result in results:
        prompt = f"{result.criterion}/{result.variant}"
        failed = isinstance(result, Failure)
        grade = None if isinstance(result, Failure) or result.unable else result.grade
        survey.setdefault(prompt, set()).add((result.criterion_digest, result.judge, grade))
        if not failed and not is_new(result.response_id, graded[prompt], places):
            twice.add((prompt, result.response_id))
    for result in results if twice else ():
        prompt = f"{result.criterion}/{result.variant}"
        if (prompt, result.response_id) in twice:
            raise InputError(f"{path}: two judgments of {result.response_id} under {prompt}: expected one")
    return survey


def _criteria(
    survey: _Survey, wanted: str | None, folder: Path, own: Sequence[StrPath]
) -> tuple[tuple[Criterion, ...], tuple[str, ...]]:
    """The prompts behind the results, or the wanted one; a warning where a file has changed since."""
    if not survey:
        raise InputError(f"{folder}: nothing was judged there")
    digests: dict[str, set[str]] = {}
    for prompt, about in survey.items():
        digests[prompt] = {digest for digest, _, _ in about}
    criteria = _prompts(digests, wanted, folder, {prompt.prompt_id: prompt for prompt in map(find_criterion, own)})
    warnings = []
    juries = all(is_jury(judge) for about in survey.values() for _, judge, _ in about)
    for criterion in criteria:
        if criterion.prompt_id not in digests:
            raise UsageError(f"{folder}: no judgment under {criterion.prompt_id}, only {', '.join(sorted(digests))}")
        if digests[criterion.prompt_id] != {criterion.digest} and not juries:
            warnings.append(f"{folder}: {criterion.file} has changed since these judgments were made")
    return criteria, tuple(warnings)


def _check_grades(
    results: Sequence[Judgment | Failure], survey: _Survey, criteria: tuple[Criterion, ...], path: Path
) -> None:
    """A grade off its prompt's scale would count in a mean: the file, or the prompt, was edited since."""
    scales: dict[str, set[int]] = {}
    for criterion in criteria:
        scales[criterion.prompt_id] = {level.grade for level in criterion.scale.levels}
    off: set[str] = set()
    for prompt_id, scale in scales.items():
        if {grade for *_, grade in survey[prompt_id]} - {*scale, None}:
            off.add(prompt_id)
    problems = [
        file_problem(
            "off_scale",
            path,
            f"grade {result.grade} under {prompt}: expected one of {', '.join(map(str, sorted(scales[prompt])))}",
            f"{result.response_id}: $.grade",
            turn_id=result.turn_id,
        )
        for result in (results if off else ())
        if isinstance(result, Judgment)
        and (prompt := f"{result.criterion}/{result.variant}") in off
        and not result.unable
        and result.grade not in scales[prompt]
    ]
    refuse(problems, f"{path}: {count(len(problems), 'grade')} off the scale")


def _prompts(
    digests: Mapping[str, set[str]], wanted: str | None, folder: Path, own: Mapping[str, Criterion]
) -> tuple[Criterion, ...]:
    names = {prompt.partition("/")[0] for prompt in digests}
    prompts = sorted(digests)
    if wanted is not None and wanted not in names:
        return (find_criterion(wanted),)
    if wanted is not None:
        prompts = [prompt for prompt in prompts if prompt.partition("/")[0] == wanted]
    try:
        return tuple(find_criterion(prompt, own) for prompt in prompts)
    except UsageError as error:
        raise UsageError(f"{folder}: {error}; give each prompt of your own with --prompt PATH") from error
