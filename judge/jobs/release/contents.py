"""The files of a bundle: a judged folder's records with other names, without what may not be published."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.labels import FAILURES, JUDGMENTS, is_jury
from judge.ask.records import Failure, Judgment
from judge.ask.returned import model_notes, settled_notes
from judge.ask.stored_results import read_results
from judge.crowd.jury import SELF_JUDGING
from judge.io.content import FileContent, Pieces, content_digest, jsonl_pieces
from judge.io.ids import natural_key
from judge.io.line_stream import json_bytes
from judge.io.steps import Step, Steps
from judge.io.stored import read_stored
from judge.io.trec import response_run, safe_names
from judge.jobs.judged import JudgedFolder
from judge.jobs.manifest import MANIFEST
from judge.jobs.recheck import RECHECK
from judge.jobs.release.pseudonyms import Pseudonyms, renamed
from judge.pool.bank import excluded_tsv, pool_lines, runs_jsonl, stored_pool, turns_jsonl
from judge.pool.folder import TURNS
from judge.pool.records import Pool, PooledResponse, PooledRun
from judge.results.qrels import qrel_name

_MEMBERS, _MEMBER_FAILURES = "members.jsonl", "member_failures.jsonl"
_COPIED = ("missing_passages.tsv", "screen.tsv", RECHECK)
"""Files that name no run and quote no text."""
_MANIFEST_KEPT = (
    *("schema", "judge_version", "python", "status", "asked", "certificate", "counts", "models_returned", "prices"),
    *("seeds", "cluster", "spending", "recheck"),
)
"""Keys of the manifest that name no run, no file and no address."""
_RUN_KEPT = ("run_type", "format", "year", "selected", "eval_response", "turns")
_UNPUBLISHED = "(not published)"
_HUB_PARTS = 2
"""Parts of a model's name on a hub: whose it is, and what it is called."""
_SELF_JUDGED = f"{SELF_JUDGING}: runs and members of the jury are of one family; which ones is not published"
_ADDRESS = re.compile(r"\w+://[^\s'\",;)}]+")


class Texts(msgspec.Struct, frozen=True):
    """Which texts of others a bundle holds."""

    passages: bool = False
    """Whether the passages are in it, which the license of many collections forbids."""
    rationales: bool = False
    """Whether the judge's own words are in it, which may quote passages: reasons, and replies that failed."""


def bundle_files(
    judged: JudgedFolder, names: Pseudonyms, texts: Texts, prompts: Mapping[str, Path], steps: Steps
) -> dict[str, FileContent]:
    """The files by name, without README and list of digests.

    Args:
        judged: The folder.
        names: Whom each run and team is called.
        texts: Which texts of others are in it.
        prompts: Prompt id to the file of a prompt of the user.
        steps: Called as the leaderboard is made.
    """
    pool = renamed_pool(judged.pool, names)
    if not texts.passages:
        pool = msgspec.structs.replace(pool, passages={})
    steps(Step("making the leaderboard anew"))
    return {
        **_tables(msgspec.structs.replace(judged, pool=pool)),
        **_results(judged, texts),
        "pool.txt": pool_lines(pool).encode(),
        **stored_pool(pool),
        **_response_runs(pool),
        "runs.jsonl": runs_jsonl(pool),
        **({TURNS: turns_jsonl(pool)} if pool.turns else {}),
        "excluded.tsv": excluded_tsv(pool.exclusions),
        **{name: read_stored(judged.path / name) for name in _COPIED if (judged.path / name).is_file()},
        **_prompt_files(judged, prompts),
        MANIFEST: json_bytes(_manifest(judged.manifest, names, pool)),
    }


def renamed_pool(pool: Pool, names: Pseudonyms) -> Pool:
    """The pool with pseudonyms for runs and teams, and without the digests by which a run file is recognized.

    What stood in the order of the names stands in that of the pseudonyms, which tells nothing of the names.
    """
    return msgspec.structs.replace(
        pool,
        responses=tuple(_renamed_response(response, names) for response in pool.responses),
        exclusions=tuple(
            msgspec.structs.replace(exclusion, run_id=renamed(names.runs, exclusion.run_id))
            for exclusion in pool.exclusions
        ),
        runs=tuple(sorted((_renamed_run(run, names) for run in pool.runs), key=lambda run: natural_key(run.run_id))),
    )


def _renamed_response(response: PooledResponse, names: Pseudonyms) -> PooledResponse:
    entries = (msgspec.structs.replace(run, run_id=renamed(names.runs, run.run_id)) for run in response.runs)
    return msgspec.structs.replace(
        response, runs=tuple(sorted(entries, key=lambda run: (natural_key(run.run_id), run.rank)))
    )


def _renamed_run(run: PooledRun, names: Pseudonyms) -> PooledRun:
    return msgspec.structs.replace(
        run, run_id=renamed(names.runs, run.run_id), team=renamed(names.teams, run.team), digest=""
    )


def _without(results: Iterable[Judgment | Failure], texts: Texts) -> Iterator[Judgment | Failure]:
    """The results without the judge's words, unless they are published."""
    for result in results:
        if texts.rationales:
            yield result
        elif isinstance(result, Judgment):
            yield msgspec.structs.replace(result, rationale=None)
        else:
            # What a provider or a reply says may quote anything; which passages lack a text is the harness's own word.
            detail = result.detail if result.reason == "no_passages" else ""
            yield msgspec.structs.replace(result, raw=None, detail=detail)


def _tables(public: JudgedFolder) -> dict[str, bytes]:
    juries = [_jury(about) for about in public.manifest.get("jury", {}).values()]
    warnings = dict.fromkeys(f"Warning: {text}" for about in juries for text in about["warnings"])
    notes = (
        *settled_notes(public.results),
        *model_notes(public.results),
        *warnings,
        *(f"{line}." for line in public.clustered),
    )
    return public.tables.files(public.banner, public.criteria, notes)


def _results(judged: JudgedFolder, texts: Texts) -> dict[str, FileContent]:
    files: dict[str, FileContent] = {}
    folder = judged.path
    for criterion in judged.criteria:
        name = f"qrels/{qrel_name(criterion)}"
        files[name] = read_stored(folder / name)
        sidecar = msgspec.json.decode(read_stored(folder / f"{name}.json"))
        sidecar["calibration"] = _without_addresses(sidecar.get("calibration"))
        if "jury" in sidecar:
            sidecar["jury"] = _jury(sidecar["jury"])
        files[f"{name}.json"] = json_bytes(sidecar)
    files |= _lines(judged.results, texts, JUDGMENTS, FAILURES)
    if (folder / _MEMBERS).is_file():
        votes = read_results(folder / _MEMBERS, folder / _MEMBER_FAILURES)
        files |= _lines(votes, texts, _MEMBERS, _MEMBER_FAILURES)
    return files


def _lines(results: Sequence[Judgment | Failure], texts: Texts, graded: str, failed: str) -> dict[str, FileContent]:
    """The results as two files of these names."""

    def of(kind: type[Judgment] | type[Failure]) -> Pieces:
        return Pieces(lambda: jsonl_pieces(result for result in _without(results, texts) if isinstance(result, kind)))

    return {graded: of(Judgment), failed: of(Failure)}


def _jury(about: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a jury, with warnings that name no run."""
    warnings = (_SELF_JUDGED if text.startswith(SELF_JUDGING) else text for text in about.get("warnings", ()))
    return {**about, "warnings": list(dict.fromkeys(warnings))}


def _response_runs(pool: Pool) -> dict[str, bytes]:
    lines: dict[str, list[tuple[str, str, int]]] = {run.run_id: [] for run in pool.runs if run.selected}
    for response in pool.responses:
        for entry in response.runs:
            lines.setdefault(entry.run_id, []).append((response.listed_under, response.response_id, entry.rank))
    files = safe_names(lines)
    return {f"response_runs/{files[run]}.run": response_run(run, entries).encode() for run, entries in lines.items()}


def without_addresses(judged: JudgedFolder) -> JudgedFolder:
    """The folder with a certificate's statement that names no address: it compares the judge's address with its own."""
    manifest = {**judged.manifest, "certificate": _without_addresses(judged.manifest.get("certificate"))}
    return msgspec.structs.replace(judged, manifest=manifest)


def _without_addresses(value: Any) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub(_UNPUBLISHED, value)
    if isinstance(value, dict):
        return {name: _without_addresses(member) for name, member in value.items()}
    return [_without_addresses(member) for member in value] if isinstance(value, list) else value


def prompt_parts(judged: JudgedFolder, own: Mapping[str, Path]) -> Iterator[tuple[str, Path | None]]:
    """The prompts behind the results, those of a jury's members and of a group each, by id.

    Args:
        judged: The folder.
        own: Prompt id to the file of a prompt of the user.

    Yields:
        The id; the file, None where it is not the one that was judged with.
    """
    known = {prompt_id: find_criterion(path) for prompt_id, path in own.items()}
    asked = {
        (f"{reply.criterion}/{reply.variant}", reply.criterion_digest)
        for reply in _replies(judged)
        if not is_jury(reply.judge)
    }
    for prompt_id, digest in sorted(asked):
        criterion = find_criterion(prompt_id, known)
        for part in criterion.together or (criterion,):
            file = own.get(part.prompt_id) or prompt_path(part.prompt_id)
            yield part.prompt_id, file if criterion.digest == digest else None


def _replies(judged: JudgedFolder) -> Sequence[Judgment | Failure]:
    """What models said, and a jury's grades where its folder has no members; those are under a digest of their own."""
    if (judged.path / _MEMBERS).is_file():
        return read_results(judged.path / _MEMBERS, judged.path / _MEMBER_FAILURES)
    return judged.results


def _prompt_files(judged: JudgedFolder, own: Mapping[str, Path]) -> dict[str, bytes]:
    """The prompts, where their files are still those that the judgments were made under."""
    return {f"prompts/{name}.md": read_stored(file) for name, file in prompt_parts(judged, own) if file is not None}


def _manifest(manifest: Mapping[str, Any], names: Pseudonyms, pool: Pool) -> dict[str, Any]:
    """How the folder came about, without command line, paths, addresses and digests of run files."""
    configuration = dict(manifest.get("configuration", {}))
    options = dict(configuration.get("options", {}))
    if options.get("base_url") is not None:
        options["base_url"] = _UNPUBLISHED
    configuration["options"] = options
    if "cascade" in configuration:
        configuration["cascade"] = _without_addresses(configuration["cascade"])
    pooling = dict(configuration.get("pooling", {}))
    encoder = PurePath(pooling.get("encoder") or "")
    if len(encoder.parts) > _HUB_PARTS or encoder.is_absolute():
        # The name of a folder of one's own; a name of a hub stays whole.
        pooling["encoder"] = encoder.name
    configuration["pooling"] = pooling
    # Whoever knows the names could try them out on the digest of a pool that has them.
    configuration["pool"] = content_digest(stored_pool(pool)["pool.jsonl"])
    configuration["runs"] = {renamed(names.runs, run): "" for run in sorted(configuration.get("runs", {}))}
    runs = [
        {
            "run_id": renamed(names.runs, str(run["run_id"])),
            "team": renamed(names.teams, run.get("team")),
            **{key: run[key] for key in _RUN_KEPT if key in run},
        }
        for run in manifest.get("runs", ())
    ]
    jury = {name: _jury(about) for name, about in manifest.get("jury", {}).items()}
    return {
        **{key: manifest[key] for key in _MANIFEST_KEPT if key in manifest},
        **({"jury": jury} if jury else {}),
        **({"cascade": _without_addresses(manifest["cascade"])} if "cascade" in manifest else {}),
        "configuration": configuration,
        "runs": sorted(runs, key=lambda run: natural_key(run["run_id"])),
    }
