"""The manifest: how an output folder came about, what it holds, and whether new results may go into it."""

import os
import platform
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import JOURNAL as JOURNAL
from judge.ask.results import FAILURES, JUDGMENTS, MEMBER_FAILURES, MEMBERS, StoredResults, read_results
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError
from judge.io.files import StrPath, json_bytes, published, read_stored, sha256
from judge.io.folder import content_digest, make_folder, recorded, remove_recorded
from judge.io.ids import natural_key
from judge.io.installed import __version__
from judge.io.text import shown
from judge.judges.credentials import scrub, without_credentials
from judge.pool.bank import BESIDE, read_pool_folder, stored_pool
from judge.pool.intake import Submitted
from judge.pool.records import Pool
from judge.records import Criterion, Problem
from judge.runs.profiles import UNLIMITED
from judge.runs.topics import stored_topics

SCHEMA = 3
"""Version of the folder's layout and of the manifest."""
MANIFEST = "manifest.json"
RECORD = "run.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
GROWING = frozenset({"runs", "pool", "passages", "pooling"})
"""Keys of a configuration that change when a pool is added to; `check_extended` compares the members of `pooling`."""

POOLING = ("topics", "pooling", "token_rule")
"""Keys of a configuration that say how a pool was made."""
LOOKED = ", "
ADDED = " + "
"""What stands between two draws of pairs in a configuration: where runs were rated in between, and where not."""
UNFINISHED = "unfinished"
"""Status of a folder while its files are written; it stays if the writing stops."""
POOLED = "pooled"
"""Status of a folder with a pool and no judgments."""

READ_ELSEWHERE = "read it with the version of judge that wrote it, or make it anew in another folder"
WRITE_ELSEWHERE = "choose another --out"
"""What to do about a folder that this version cannot read, for whom it is an input and for whom an output."""

_EVIDENCE = frozenset({"passages", "pool", "pooling.missing_passages", "pooling.passage_hashes"})
"""What differs in a configuration where the texts of passages came after the pool."""
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def pool_configuration(
    submitted: Submitted, pool: Pool, pooling: Mapping[str, Any], topics: Path | None, earlier_runs: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that determines a pool, as JSON values."""
    texts = stored_pool(pool)
    return {
        "runs": {**earlier_runs, **{run.run_id: run.digest for run in submitted.runs}},
        "topics": None if topics is None else sha256(stored_topics(topics)),
        "passages": content_digest(texts["passages.jsonl"]),
        "pool": content_digest(texts["pool.jsonl"]),
        "pooling": dict(pooling),
        "token_rule": {
            "rule": submitted.count_tokens.rule,
            "limit": submitted.count_tokens.limit,
            "versions": submitted.count_tokens.versions,
        },
    }


def configuration(
    pooled: Mapping[str, Any], criteria: Sequence[Criterion], judge: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that determines the judgments, as JSON values: equal configurations give comparable results."""
    return {
        **pooled,
        "criteria": {prompt.name: {"prompt": prompt.prompt_id, "sha256": prompt.digest} for prompt in criteria},
        "judge": judge,
        "options": dict(options),
        "parser": PARSER_VERSION,
        "renderer": RENDERER_VERSION,
    }


def job_manifest(status: str, configured: Mapping[str, Any], **facts: object) -> bytes:
    """What the files of a job were made of; a rerun gives the same bytes, because no time of day is recorded."""
    return json_bytes({"judge_version": __version__, "status": status, "configuration": configured, **facts})


class OutputFolder:
    """A folder that `judge pool` or `judge run` writes; each part is read once, when it is asked for.

    `advice`: what to do about a manifest that this version cannot read.
    """

    def __init__(self, path: StrPath, advice: str = READ_ELSEWHERE) -> None:
        self.path = Path(path)
        self._advice = advice

    @cached_property
    def manifest(self) -> dict[str, Any] | None:
        """How the folder came about; None if it has no manifest."""
        path = self.path / MANIFEST
        if not path.exists():
            return None
        try:
            manifest = msgspec.json.decode(read_stored(path))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not a manifest that judge wrote ({error}); {self._advice}") from error
        if not isinstance(manifest, dict) or not isinstance(manifest.get("configuration"), dict):
            raise InputError(f"{path}: not a manifest that judge wrote; {self._advice}")
        if manifest.get("schema") != SCHEMA:
            raise InputError(
                f"{self.path}: made by judge {manifest.get('judge_version')} (layout {manifest.get('schema')}), "
                f"this is {__version__} (layout {SCHEMA}); {self._advice}"
            )
        return manifest

    @property
    def status(self) -> str | None:
        """Whether the job came to its end; None without a manifest."""
        return (self.manifest or {}).get("status")

    @property
    def options(self) -> dict[str, Any]:
        """The options that the folder was made with, by their names on the command line."""
        options = (self.manifest or {}).get("options")
        return dict(options) if isinstance(options, dict) else {}

    @property
    def runs(self) -> dict[str, str]:
        """Run ids and digests of the manifest; empty without one."""
        runs = self.manifest["configuration"].get("runs") if self.manifest else None
        return dict(runs) if isinstance(runs, dict) else {}

    @cached_property
    def pool(self) -> Pool:
        """The pool, which has the runs of the manifest."""
        pool = read_pool_folder(self.path / "pool.jsonl", *BESIDE)
        # A folder without a manifest was put together by hand. A run that was stopped leaves a manifest, written first.
        if self.manifest is None or self.status == UNFINISHED:
            return pool
        runs = self.manifest["configuration"].get("runs", {})
        if not isinstance(runs, dict):
            raise InputError(f"{self.path / MANIFEST}: $.configuration.runs: {shown(runs)}: expected runs with digests")
        pooled = {run.run_id for run in pool.runs}
        if runs.keys() != pooled:
            names = ", ".join(map(shown, sorted(runs.keys() ^ pooled, key=natural_key)[:5]))
            raise InputError(f"{self.path / 'runs.jsonl'}: not the runs of {self.path / MANIFEST}: {names}")
        return pool

    @cached_property
    def results(self) -> StoredResults:
        """What was judged and what is missing; they stay in their files."""
        judgments = self.path / JUDGMENTS
        if not judgments.exists():
            raise InputError(f"{self.path}: no {JUDGMENTS} there: expected an output folder of `judge run`")
        return read_results(judgments, self.path / FAILURES)

    @cached_property
    def replies(self) -> StoredResults:
        """What models said: the members of a jury, else the judge."""
        members = self.path / MEMBERS
        return read_results(members, self.path / MEMBER_FAILURES) if members.is_file() else self.results


def check_folder(
    out: Path,
    wanted: Mapping[str, Any],
    *,
    trial: bool,
    replace: bool = False,
    may_differ: Collection[str] = (),
    record: str = RECORD,
    beside: Collection[str] = (),
) -> bool:
    """Refuse a folder whose results have another configuration; whether it has one, so that its results must go.

    `out`: made if it does not exist. `trial`: only some of the judgments are to be made. `replace`: accept results of
    another configuration, and a trial in place of a finished run. `may_differ`: keys of the configuration that are
    expected to change. `record`: the job's own list of its files, which it writes first. `beside`: folders in this one
    that another part of the job writes.
    """
    make_folder(out)
    if not os.access(out, os.W_OK):
        raise InputError(f"{out}: cannot be used as an output folder: no permission to write")
    present = [path.name for path in out.iterdir() if not path.name.startswith((JOURNAL, record, "."))]
    # Read later than the names: another process of judge may have begun to write them, its record first.
    manifest = OutputFolder(out, WRITE_ELSEWHERE).manifest
    if manifest is None:
        own = {*beside, *(name.partition("/")[0] for name, _ in recorded(out, record))}
        if foreign := sorted({*present} - own):
            raise InputError(
                f"{out}: holds {', '.join(foreign[:5])} and no manifest of judge, so its files are somebody else's; "
                "choose an empty folder as --out"
            )
        return False
    stored = _without_addresses(manifest["configuration"])
    wanted = _without_addresses(wanted)
    # The configuration of a pool that nobody has judged yet names no judge.
    judged = "judge" in stored
    different = list(differences(stored, wanted, sorted({*stored, *wanted} if judged else stored)))
    expected = may_differ if judged else {*may_differ, *_EVIDENCE}
    surprising = [row for row in different if not {row[0], row[0].partition(".")[0]} & {*expected}]
    if surprising and not replace:
        held = "results of another configuration" if judged else "a pool that was made in another way"
        raise InputError(
            f"{out}: holds {held} ({'; '.join(_in_words(row) for row in surprising)}). Choose another --out, or "
            f"--replace to write {'these results over (the journal of paid calls is kept)' if judged else 'over it'}"
        )
    if trial and manifest.get("status") == "complete" and not replace:
        raise InputError(f"{out}: holds a finished run, which a trial with --limit would write over; see --replace")
    return bool(different)


def _without_addresses(configured: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the addresses of its judges, on which no judgment depends."""
    comparable: dict[str, Any] = {}
    for key, value in configured.items():
        if isinstance(value, dict):
            value = {name: part for name, part in value.items() if name != "base_url"}
        comparable[key] = value
    return comparable


def pool_manifest(
    configured: Mapping[str, Any], submitted: Submitted, pool: Pool, argv: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """How a folder came about whose pool is not judged to the end, as JSON values, without secrets and homes."""
    return {
        "schema": SCHEMA,
        "judge_version": __version__,
        "python": platform.python_version(),
        "status": UNFINISHED,
        "argv": [_presentable(argument) for argument in argv],
        "options": {name: _public(value) for name, value in options.items()},
        "configuration": dict(configured),
        "asked": {},
        "prices": {},
        "spending": [],
        "limits": submitted.limits.recorded() | _other_limits(submitted),
        "certificate": None,
        "runs": [msgspec.structs.replace(run, file=published(run.file)) for run in submitted.runs],
        "counts": {
            "runs": len(configured["runs"]),
            "problems": _by_severity(submitted.problems),
            "pooled": len(pool.responses),
            "excluded": Counter(exclusion.reason for exclusion in pool.exclusions),
            "results": {},
        },
        "models_returned": [],
        "seeds": {"sampling": configured.get("options", {}).get("seed")},
    }


def _other_limits(submitted: Submitted) -> dict[str, Any]:
    """The limits of formats that have others than most runs, as JSON values; nothing where all have the same."""
    others = {format: limits.recorded() for format, limits in submitted.other_limits.items()}
    return {"by_format": others} if others else {}


def _by_severity(problems: Sequence[Problem]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for problem in problems:
        counts[problem.severity] += problem.count
    return counts


def _presentable(argument: str) -> str:
    """A command-line argument as it may be published: no secrets, no home, and text even where it was bytes."""
    return published(scrub(without_credentials(argument))).encode("utf-8", "backslashreplace").decode()


def _public(value: Any) -> Any:
    """The value of an option as it may be published."""
    if isinstance(value, str):
        return _presentable(value)
    return [_public(member) for member in value] if isinstance(value, list | tuple) else value


def differences(
    there: Mapping[str, Any], wanted: Mapping[str, Any], keys: Iterable[str]
) -> Iterator[tuple[str, Any, Any]]:
    """What differs under these keys: name and both values; two objects are compared member by member."""
    for key in keys:
        before = there.get(key)
        now = wanted.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
            yield from ((f"{key}.{name}", before.get(name), now.get(name)) for name in names)
        elif before != now:
            yield key, before, now


def _in_words(difference: tuple[str, Any, Any]) -> str:
    """What differs; of two files or prompts of one name, that their contents do."""
    key, before, now = difference
    if key == "pooling.unit":
        return f"it is of {before or 'response'}s, and {now or 'response'}s are judged now"
    name = _named(key)
    there = "none" if before == UNLIMITED else brief(before)
    here = "none" if now == UNLIMITED else brief(now)
    return f"{name}: {there} there, {here} now" if there != here else f"{name}: other content there than now"


def _named(key: str) -> str:
    """What the user calls a member of a configuration: an option, or what it is about.

    >>> _named("pooling.over_limit"), _named("criteria.support"), _named("judge")
    ('--over-limit', 'prompt of support', 'judge')
    """
    group, _, name = key.partition(".")
    match group:
        case "topics" | "passages":
            return f"--{group}"
        case "pool":
            return "pooled responses"
        case "runs" if name:
            return f"run {name}"
        case "criteria" if name:
            return f"prompt of {name}"
        case "token_rule":
            return _TOKEN_RULE.get(name, key)
        case "pooling" | "options" if name:
            return f"--{_OPTIONS.get(key, name.replace('_', '-'))}"
    return key.replace("_", " ")


_TOKEN_RULE = {
    "limit": "token limit (--profile or --token-limit)",
    "rule": "way of counting tokens (--profile or --token-rule)",
    "versions": "versions of the tokenizer",
}
"""What the user calls a member of the rule for lengths."""


def brief(value: Any) -> str:
    """A value as JSON without its digests, a long one shortened."""
    if value is None:
        return "none"
    if isinstance(value, dict) and "sha256" in value:
        value = value.get("prompt")
    text = msgspec.json.encode(value).decode()
    text = "given" if _DIGEST.fullmatch(text.strip('"')) else _DIGEST.sub("…", text)
    return text if len(text) <= 100 else f"{text[:97]}…"


_OPTIONS = {
    "pooling.only_turns": "turns",
    "pooling.thresholds": "screen-threshold",
    "token_rule.rule": "token-rule",
    "token_rule.limit": "token-limit",
}
"""Options whose names differ from those in a configuration."""


def check_extended(folder: OutputFolder, wanted: Mapping[str, Any], files: Mapping[str, StrPath | None]) -> None:
    """Refuse to add to a pool that was made in another way: one leaderboard cannot hold both."""
    if folder.manifest is None:
        raise InputError(
            f"{folder.path}: no {MANIFEST} there: expected an output folder of `judge run` or `judge pool`"
        )
    options = folder.options
    differing = []
    for key, before, now in differences(folder.manifest["configuration"], wanted, POOLING):
        if key == "pooling.draw" and str(now).startswith((f"{before}{LOOKED}", f"{before}{ADDED}")):
            continue
        option = _OPTIONS.get(key, key.rpartition(".")[2].replace("_", "-"))
        if option in files:
            before = options.get(option, brief(before)) if before else "none"
            now = files[option] or "none"
            differing.append(
                f"{now} has changed since" if str(before) == str(now) else f"--{option}: {before} there, {now} now"
            )
        else:
            differing.append(f"--{option}: {brief(before)} there, {brief(now)} now")
    if differing:
        raise InputError(
            f"{folder.path}: pooled in another way ({'; '.join(differing)}). Leave these options out to pool as "
            "before, or pool all runs anew into another folder"
        )


def looks(configured: Any) -> int:
    """How often runs were rated before the next pairs were drawn, and once more, by the configuration of a pool."""
    pooling = configured.get("pooling") if isinstance(configured, dict) else None
    return str(pooling.get("draw")).count(LOOKED) + 1 if isinstance(pooling, dict) else 1


REPORT_RECORD = "report.sha256"
"""The list of the files of a report, for `sha256sum -c`."""


@contextmanager
def reported(out: Path, record: str) -> Iterator[None]:
    """While a job writes a folder: remove the folder's report if the job leaves other files than were there before."""
    before = _content(out / record)
    yield
    if _content(out / record) != before:
        remove_recorded(out, REPORT_RECORD)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
