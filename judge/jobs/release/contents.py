"""The files of a bundle: a judged folder's records with other names, without what may not be published."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.records import Failure, Judgment
from judge.ask.results import FAILURES, JUDGMENTS, MEMBER_FAILURES, MEMBERS, is_jury
from judge.ask.returned import judge_notes, mask_notes, model_notes, unpublished_models, with_model
from judge.calibrate.certificate import MODEL_RETURNED, difference
from judge.crowd.jury import SELF_JUDGING
from judge.io.files import json_bytes, jsonl_bytes, read_stored
from judge.io.folder import FileContent, content_digest
from judge.io.ids import natural_key
from judge.io.installed import __version__
from judge.io.steps import Step, Steps
from judge.io.text import count, markdown_cell, printable
from judge.jobs.folder import content_rows, file_contents, pool_records, result_lines
from judge.jobs.judged import JudgedFolder
from judge.jobs.manifest import MANIFEST, RECORD, OutputFolder
from judge.jobs.recheck import RECHECK
from judge.jobs.release.names import Pseudonyms
from judge.judges.backends import backend_facts
from judge.pool.bank import ANSWERS, TURNS, stored_pool
from judge.pool.records import Pool, PooledResponse, PooledRun
from judge.records import Criterion
from judge.results.qrels import qrel_name
from judge.units import UNITS
from judge.units.unit import Unit

_COPIED = ("missing_passages.tsv", "screen.tsv")
"""Files that name no run and quote no text."""
_MANIFEST_KEPT = (
    *("schema", "judge_version", "python", "status", "asked", "certificate", "counts", "prices"),
    *("seeds", "cluster", "spending"),
)
"""Keys of the manifest that name no run, no file and no address."""
_RUN_KEPT = ("run_type", "format", "year", "selected", "eval_response", "turns")
_UNPUBLISHED = "(not published)"
_SELF_JUDGED = f"{SELF_JUDGING}: runs and members of the jury are of one family; which ones is not published"
_FINGERPRINT = re.compile(r"fp_[0-9a-z_]{1,40}")
"""What OpenAI calls a state of its servers; others may put anything there."""
_ADDRESS = re.compile(r"\w+://[^\s'\",;)}]+")


def bundle_files(
    judged: JudgedFolder,
    names: Pseudonyms,
    prompts: Mapping[str, Path],
    steps: Steps,
    models: Mapping[str, str],
    *,
    passage_text: bool,
    rationales: bool,
) -> dict[str, FileContent]:
    """The files by name, without README and list of digests.

    `models`: what stands in place of names that servers gave (`hidden_models`).
    """
    pool = renamed_pool(judged.pool, names)
    if not passage_text:
        # A reference answer may quote passages as well.
        asked = {turn_id: msgspec.structs.replace(turn, references=()) for turn_id, turn in pool.turns.items()}
        pool = msgspec.structs.replace(pool, passages={}, turns=asked)
    steps(Step("making the leaderboard anew"))
    return {
        **_tables(msgspec.structs.replace(judged, pool=pool), models),
        **_results(judged, rationales, models),
        **pool_records(pool),
        **{name: read_stored(judged.path / name) for name in _COPIED if (judged.path / name).is_file()},
        **_rechecked(judged.path, models),
        **{
            f"prompts/{part.prompt_id}.md": read_stored(part.file)
            for part in prompt_parts(judged, prompts, passage_text=passage_text)
            if part.lacking is None
        },
        MANIFEST: json_bytes(_manifest(judged.manifest, names, pool, models)),
    }


def renamed_pool(pool: Pool, names: Pseudonyms) -> Pool:
    """The pool in the order of its pseudonyms, without the digests by which a run file is recognized."""
    return msgspec.structs.replace(
        pool,
        responses=tuple(_renamed_response(response, names) for response in pool.responses),
        answers=tuple(_renamed_response(answer, names) for answer in pool.answers),
        exclusions=tuple(
            msgspec.structs.replace(exclusion, run_id=names.runs[exclusion.run_id]) for exclusion in pool.exclusions
        ),
        runs=tuple(sorted((_renamed_run(run, names) for run in pool.runs), key=lambda run: natural_key(run.run_id))),
    )


def _renamed_response(response: PooledResponse, names: Pseudonyms) -> PooledResponse:
    entries = (msgspec.structs.replace(run, run_id=names.runs[run.run_id]) for run in response.runs)
    return msgspec.structs.replace(
        response, runs=tuple(sorted(entries, key=lambda run: (natural_key(run.run_id), run.rank)))
    )


def _renamed_run(run: PooledRun, names: Pseudonyms) -> PooledRun:
    return msgspec.structs.replace(
        run, run_id=names.runs[run.run_id], team=run.team and names.teams[run.team], digest=""
    )


def hidden_models(judged: JudgedFolder, replies: Iterable[Judgment | Failure]) -> dict[str, str]:
    """The names of models that are not published, and fingerprints of servers, with what stands in their place.

    The replies have them, their second answers, and a certificate.
    """
    again = _recheck_rows(judged.path)
    named = [(reply.judge, reply.model) for reply in replies if isinstance(reply, Judgment) and reply.model]
    named += [(row["judge"], row[name]) for row in again for name in ("model", "again_model") if row.get(name)]
    of_replies = {model for _, model in named}
    judges = dict.fromkeys(judge for judge, _ in named)
    matches = (judged.manifest.get("certificate") or {}).get("matches", ())
    certified: set[str] = set()
    for match in matches:
        if match["item"] == MODEL_RETURNED:
            certified.update(_names_of(match))
    named += [("", model) for model in certified - of_replies]
    named += [(judge, model) for model in certified for judge in judges if not backend_facts(judge).self_named]
    prints = set()
    for row in again:
        for name in ("system_fingerprint", "again_system_fingerprint"):
            prints.add(row.get(name))
    hidden = {name: _UNPUBLISHED for name in prints if name and not _FINGERPRINT.fullmatch(name)}
    return {**hidden, **unpublished_models(named)}


def _recheck_rows(folder: Path) -> list[dict[str, Any]]:
    """The second answers of a folder; none where nothing was asked again."""
    path = folder / RECHECK
    return msgspec.json.Decoder(dict[str, Any]).decode_lines(read_stored(path)) if path.is_file() else []


def _rechecked(folder: Path, models: Mapping[str, str]) -> dict[str, FileContent]:
    """The file of the second answers, without hidden names."""
    if not (folder / RECHECK).is_file():
        return {}
    rows = _recheck_rows(folder)
    for row in rows:
        for name in ("model", "again_model", "system_fingerprint", "again_system_fingerprint"):
            if row.get(name) in models:
                row[name] = models[row[name]]
    return {RECHECK: jsonl_bytes(rows)}


def _names_of(match: Mapping[str, str]) -> list[str]:
    names: list[str] = []
    for side in ("certified", "found"):
        names.extend(match[side].split(", "))
    return names


def _published(result: Judgment | Failure, rationales: bool, models: Mapping[str, str]) -> Judgment | Failure:
    """The result without the judge's words, unless they are published, and without hidden names of models."""
    result = with_model(result, models)
    if rationales:
        return result
    if isinstance(result, Judgment):
        return msgspec.structs.replace(result, rationale=None)
    # What a provider or a reply says may quote anything; which passages lack a text is the harness's own word.
    return msgspec.structs.replace(result, raw=None, detail=result.detail if result.reason == "no_passages" else "")


def _tables(public: JudgedFolder, models: Mapping[str, str]) -> dict[str, bytes]:
    juries = [_jury(about) for about in public.manifest.get("jury", {}).values()]
    warnings = dict.fromkeys(f"Warning: {text}" for about in juries for text in about["warnings"])
    notes = (
        *judge_notes(public.results),
        *model_notes(with_model(result, models) for result in public.results),
        *mask_notes(public.results),
        *warnings,
        *(f"{line}." for line in public.clustered),
    )
    used = public.with_used().used
    of_used = {} if used is None else used.files(public.banner)
    return public.tables.files(public.banner, public.criteria, notes) | of_used


def _results(judged: JudgedFolder, rationales: bool, models: Mapping[str, str]) -> dict[str, FileContent]:
    files: dict[str, FileContent] = {}
    folder = judged.path
    for criterion in judged.criteria:
        name = f"qrels/{qrel_name(criterion)}"
        files[name] = read_stored(folder / name)
        sidecar = msgspec.json.decode(read_stored(folder / f"{name}.json"))
        sidecar["calibration"] = _without_addresses(sidecar.get("calibration"))
        statement = judged.manifest.get("certificate")
        if isinstance(statement, dict) and "banner" in statement:
            sidecar["calibration"] = statement["banner"]
        sidecar["models_returned"] = _renamed(sidecar.get("models_returned", ()), models)
        if "jury" in sidecar:
            sidecar["jury"] = _jury(sidecar["jury"])
        files[f"{name}.json"] = json_bytes(sidecar)
    shown = partial(_published, rationales=rationales, models=models)
    files |= result_lines(judged.results, JUDGMENTS, FAILURES, shown)
    if (folder / MEMBERS).is_file():
        files |= result_lines(OutputFolder(folder).replies, MEMBERS, MEMBER_FAILURES, shown)
    return files


def _jury(about: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a jury, with warnings that name no run."""
    warnings = (_SELF_JUDGED if text.startswith(SELF_JUDGING) else text for text in about.get("warnings", ()))
    return {**about, "warnings": list(dict.fromkeys(warnings))}


def published_folder(judged: JudgedFolder, models: Mapping[str, str]) -> JudgedFolder:
    """The folder with a certificate's statement that names no address and no hidden model: it compares both."""
    statement = _without_addresses(judged.manifest.get("certificate"))
    for match in (statement or {}).get("matches", ()):
        if match["item"] != MODEL_RETURNED:
            continue
        before = difference(match["item"], match["certified"], match["found"])
        for side in ("certified", "found"):
            match[side] = ", ".join(_renamed(match[side].split(", "), models))
        after = difference(match["item"], match["certified"], match["found"])
        statement["banner"] = statement["banner"].replace(printable(before), after)
    manifest = {**judged.manifest, "certificate": statement}
    return msgspec.structs.replace(judged, manifest=manifest)


def _renamed(names: Iterable[str], models: Mapping[str, str]) -> list[str]:
    return sorted({models.get(name, name) for name in names})


def _without_addresses(value: Any) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub(_UNPUBLISHED, value)
    if isinstance(value, dict):
        return {name: _without_addresses(member) for name, member in value.items()}
    return [_without_addresses(member) for member in value] if isinstance(value, list) else value


class PromptPart(NamedTuple):
    """A prompt behind the results."""

    prompt_id: str
    criterion: Criterion
    file: Path
    lacking: str | None
    """Why its file is no part of the bundle; None if it is."""


def prompt_parts(judged: JudgedFolder, own: Mapping[str, Path], *, passage_text: bool) -> Iterator[PromptPart]:
    """The prompts behind the results by id, those of juries each; without what a bundle does not publish."""
    known = {prompt_id: find_criterion(path) for prompt_id, path in own.items()}
    asked = {
        (f"{reply.criterion}/{reply.variant}", reply.criterion_digest)
        for reply in OutputFolder(judged.path).replies
        # A jury's grades, where its folder has no members, are under a digest of their own.
        if not is_jury(reply.judge)
    }
    for prompt_id, digest in sorted(asked):
        criterion = find_criterion(prompt_id, known)
        lacking = None
        if criterion.digest != digest:
            lacking = "its file is not the one that was judged with, so it is left out"
        elif not passage_text and any(_EVIDENCE & dict(example.shown).keys() for example in criterion.examples):
            lacking = (
                "its examples show texts of passages or references, so it is left out (--passage-text publishes it)"
            )
        yield PromptPart(prompt_id, criterion, own.get(prompt_id) or prompt_path(prompt_id), lacking)


_EVIDENCE = {"passages", "reference"}
"""The inputs that may not be published without a license."""


def _manifest(manifest: Mapping[str, Any], names: Pseudonyms, pool: Pool, models: Mapping[str, str]) -> dict[str, Any]:
    """How the folder came about, without command line, paths, addresses and digests of run files."""
    configuration = dict(manifest.get("configuration", {}))
    options = dict(configuration.get("options", {}))
    if options.get("base_url") is not None:
        options["base_url"] = _UNPUBLISHED
    configuration["options"] = options
    # Whoever knows the names could try them out on the digest of a pool that has them.
    configuration["pool"] = content_digest(stored_pool(pool)["pool.jsonl"])
    configuration["runs"] = {names.runs[run]: "" for run in sorted(configuration.get("runs", {}))}
    runs: list[dict[str, Any]] = []
    for run in manifest.get("runs", ()):
        runs.append(
            {
                "run_id": names.runs[str(run["run_id"])],
                "team": run.get("team") and names.teams[run["team"]],
                **{key: run[key] for key in _RUN_KEPT if key in run},
            }
        )
    jury = {name: _jury(about) for name, about in manifest.get("jury", {}).items()}
    recheck = dict(manifest.get("recheck") or {})
    if "served" in recheck:
        sides = ("before", "after")
        recheck["served"] = [
            {**change, **{side: models.get(change[side], change[side]) for side in sides}}
            for change in recheck["served"]
        ]
    return {
        **{key: manifest[key] for key in _MANIFEST_KEPT if key in manifest},
        **({"recheck": recheck} if recheck else {}),
        "models_returned": _renamed(manifest.get("models_returned", ()), models),
        **({"jury": jury} if jury else {}),
        "configuration": configuration,
        "runs": sorted(runs, key=lambda run: natural_key(run["run_id"])),
    }


README = "README.md"
_OF_RUNS = (
    "`judge leaderboard .` makes the leaderboard again from these files, and `judge report .` a page for the browser."
)
_OF_PASSAGES = "`judge evaluate passages --qrels` and `judge pool --passage-qrels` take the qrels as they are."
_ORDER = (
    "corrected.md corrected.tsv grades.md grades.tsv "
    "leaderboard.md leaderboard.tsv differences.tsv ratings.tsv pairs.tsv sentences.tsv citations.tsv "
    "used_passages.md used_passages.tsv used_passage_grades.tsv qrels/*.qrel "
    "qrels/*.json response_runs/*.run bank.json pool.txt pool.jsonl judgments.jsonl failures.jsonl members.jsonl "
    "member_failures.jsonl recheck.jsonl passages.jsonl runs.jsonl interactive.tsv"
).split()


def _contents(unit: Unit) -> dict[str, str]:
    """A file or a pattern of files to what it holds; the most wanted first."""
    contents = file_contents(unit) | {
        "qrels/*.qrel": f"the grades as qrels: id of the {unit.nouns.turn}, 0, id of the {unit.nouns.response}, grade; "
        "`.llm`, since a model gave them",
        "pool.jsonl": "the same in full: texts, ids of passages, lengths, and which runs gave them",
        "judgments.jsonl": "every grade",
        "corrected.md": "the leaderboard corrected by people's grades, and how to read it",
        "corrected.tsv": "the same as a table",
        "prompts/*": "the prompts as the judge got them, before the texts were filled in",
        MANIFEST: "how the grades were made: versions, options, digests of topics, prompts and pool",
    }
    order = (
        *_ORDER,
        ANSWERS,
        TURNS,
        "excluded.tsv",
        "missing_passages.tsv",
        "screen.tsv",
        "prompts/*",
        MANIFEST,
        RECORD,
    )
    return {name: contents[name] for name in order}


def readme(names: Iterable[str], judged: JudgedFolder, left_out: Iterable[str], license: str | None) -> bytes:
    """The page."""
    held = {*names, RECORD}
    unit = UNITS[judged.pool.unit]
    rows = content_rows(_contents(unit), held)
    runs = count(len(judged.pool.runs), "run")
    responses = count(len(judged.pool.responses), f"pooled {unit.nouns.response}")
    prompts = ", ".join(criterion.prompt_id for criterion in judged.criteria)
    judges = ", ".join(sorted(set().union(*judged.said_by.values())))
    paragraphs = [
        f"# {unit.nouns.response.capitalize()} assessment",
        f"{runs}, {responses}; judged by {markdown_cell(judges)} under {prompts}, with judge {__version__}.",
        f"**{markdown_cell(judged.banner)}**",
        *map(markdown_cell, judge_notes(judged.results)),
        *left_out,
        f"Terms of use: {markdown_cell(license)}" if license else "No terms of use are named here.",
        "\n".join(("| file | content |", "|---|---|", *rows)),
        _OF_PASSAGES if unit.listed else _OF_RUNS,
    ]
    return ("\n\n".join(paragraphs) + "\n").encode()


def left_out(unit: Unit, *, hidden: bool, models: bool, passage_text: bool, rationales: bool) -> Iterator[str]:
    """What a bundle does not hold, a paragraph each."""
    if hidden:
        yield "Runs and teams have pseudonyms. Whoever made this bundle keeps the list of their names."
    if models:
        yield (
            "Where a server called its model by another name than the one that was asked, `unpublished-model-1` and so "
            "on stand in its place, and its own marks of its state are left out."
        )
    if not passage_text:
        yield (
            "The texts of the passages are left out: `passages.jsonl` is empty, and `pool.jsonl` has their ids. After "
            "a `#`, an id has the SHA-256 of a text that the run itself gave. Reference answers of a table are left "
            "out, too."
        )
    if not rationales:
        yield "The judge's own words are left out, since they may quote passages: reasons, and replies that failed."
    yield f"A {unit.nouns.response} has the text that a run submitted, so it may quote passages."
