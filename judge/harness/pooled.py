"""A pool written into an output folder without any judgment: what `judge pool` does after pooling."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.asking import JOURNAL, Asking, JournalPlace
from judge.errors import InputError
from judge.files.folder import replace_folder, same_place
from judge.files.paths import StrPath
from judge.harness.earlier import reported
from judge.harness.folder import pool_files
from judge.harness.index import INDEX, index_markdown
from judge.harness.manifest import GROWING, MANIFEST, POOLED, RECORD, UNFINISHED, Manifest, check_folder, read_manifest
from judge.harness.pooling import Pooled


def write_pool(
    out: StrPath,
    pooled: Pooled,
    argv: Sequence[str] = (),
    *,
    extended: StrPath | None = None,
    replace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write a pool into a folder; `judge run` with the same options can continue there.

    Args:
        out: The folder.
        pooled: The pool.
        argv: The command line, for the manifest.
        extended: The folder whose pool was extended; its journal is taken over, so that nothing is paid for twice.
        replace: Write over another pool, and remove its judgments.
        options: The options by their names on the command line, for the manifest.

    Raises:
        InputError: The folder cannot be used or holds something else.
    """
    out, earlier = Path(out), None if extended is None else Path(extended)
    in_place = earlier is not None and same_place(earlier, out)
    manifest = read_manifest(out)
    if in_place and not replace and manifest is not None and "judge" in manifest["configuration"]:
        raise InputError(f"{out}: judged already; `judge run --extend {out}` adds runs to it")
    changed = check_folder(out, pooled.configured, trial=False, replace=replace, may_differ=GROWING if in_place else ())
    if earlier is not None and not in_place and (earlier / JOURNAL).exists():
        with Asking(JournalPlace(out, known=(earlier / JOURNAL,)), pooled.pool, None):
            pass  # An asking takes over what earlier journals hold.

    def manifest_of(status: str) -> dict[str, bytes]:
        manifest = Manifest(argv, options or {}, pooled.configured, pooled.submitted, pooled.pool)
        return {MANIFEST: manifest.encoded(status)}

    files = pool_files(pooled)
    with reported(out, RECORD):
        replace_folder(out, manifest_of(UNFINISHED) | files, RECORD, more=not changed)
        files[INDEX] = index_markdown(files, pooled.pool.unit)
        replace_folder(out, files | manifest_of(POOLED), RECORD)
