"""List everything that is wrong with the runs of a folder (or with one run file), all at once.

An error means that a response, a turn or a run cannot be judged; a warning, that it is judged although a guideline is
broken. Problems are grouped by file and code, with counts and the first examples. Exit code 0 if there is no error, 1
if there is one, 2 if a file cannot be read as a run at all (everything else is still listed). With --fix, 0 and 1 say
what is wrong with the copies, and with the files that have none.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from judge.cli.options import add_input_arguments
from judge.errors import UsageError
from judge.files.folder import check_apart, check_outside, recorded, replace_folder, same_place
from judge.records import Problem
from judge.runs.check.codes import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.pages import PAGE_EXAMPLES, index_page, page_names, run_page
from judge.runs.check.problems import (
    EXAMPLES,
    FileReport,
    file_report,
    remaining,
    text_lines,
    token_summary,
    total,
    with_problems,
)
from judge.runs.check.sheet import CollectionHashes
from judge.runs.check.validate import validate_run, validate_together
from judge.runs.document import file_name
from judge.runs.fields import LISTED
from judge.runs.fix import LOG, FixedCopy, FixFolder, fixed_copy
from judge.runs.formats import find_runs, read_run
from judge.runs.records import Run, Turn
from judge.runs.tokens import TokenCounter
from judge.runs.topics import read_topics
from judge.text.cells import count
from judge.text.ids import natural_key
from judge.text.safe import printable, shown

SCHEMA = 1
"""Version of what --json prints."""
RECORD = "pages.sha256"
"""The list of the pages, for `sha256sum -c`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input_arguments(parser)
    parser.add_argument(
        "--passage-hashes",
        type=Path,
        metavar="FILE",
        help="the collection's list of `doc_id passage_number MD5`, or its index, to check passage ids and texts",
    )
    parser.add_argument("--strict", action="store_true", help="count warnings as errors")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print all that --all lists, and more, as one JSON object")
    output.add_argument(
        "--all",
        action="store_true",
        help=f"list more than {EXAMPLES} problems of a code and file ({PAGE_EXAMPLES} on a page); of those in one list "
        f"of passages, {LISTED} are listed and the others counted",
    )
    output.add_argument(
        "--report-dir",
        type=Path,
        metavar="DIR",
        help="write one Markdown page per run, to send to its team; outside the runs' folder",
    )
    fixing = parser.add_argument_group("fixed copies")
    fixing.add_argument(
        "--fix", action="store_true", help="write fixed copies of the runs to the folder of -o, and a log of every fix"
    )
    fixing.add_argument("-o", "--output", type=Path, metavar="DIR", help="where --fix writes; outside the runs' folder")


class _Checker:
    """Checks one file after the other, of which one run at a time is in memory."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.turns: dict[str, Turn] | None = None
        if args.topics:
            self.turns = {turn.turn_id: turn for topic in read_topics(args.topics) for turn in topic.turns}
        self.count_tokens = TokenCounter(rule=args.token_rule, limit=args.token_limit)
        self.format: str | None = args.format
        self._args = args
        self._hashes: CollectionHashes | None = None
        if args.passage_hashes:
            from judge.passages.hashes import open_hashes, same_text

            self._hashes = CollectionHashes(open_hashes(args.passage_hashes).find, same_text)

    def check(self, path: Path) -> tuple[FileReport, Run | None]:
        """What is wrong with one file, and its run without the turns."""
        args = self._args
        read = read_run(path, args.format)
        if read.run is None:
            return file_report(file_name(path), None, read.problems), None
        checked = validate_run(
            read.run,
            self.turns,
            self.count_tokens.token_limit,
            problems=read.problems,
            places=read.places,
            hashes=self._hashes,
        )
        # Only the pages and the JSON have room for it, and it needs all counts of every text.
        wanted = args.json or args.report_dir is not None
        tokens = token_summary(read.run, self.count_tokens, args.token_limit) if wanted else ()
        file = file_report(read.run.file, read.run, checked.problems, checked.exclusions, checked.unchecked, tokens)
        # Without its turns a run is small enough to be kept until all are read.
        return file, msgspec.structs.replace(read.run, turns=())


class _Fixed(msgspec.Struct, frozen=True):
    """What --fix did."""

    folder: str
    fixes: int
    files: tuple[FileReport, ...]
    """The copies, with what is still wrong with them."""
    without_copy: tuple[FileReport, ...]
    """What has no copy, with all that is wrong with it."""


def main(args: argparse.Namespace) -> int:
    """Check the runs one after the other and list the problems."""
    if args.fix != (args.output is not None):
        raise UsageError("--fix and -o DIR go together: the fixed copies are written to a folder of their own")
    checker = _Checker(args)
    paths, folder_problems = find_runs(args.runs)
    if args.report_dir is not None:
        check_apart(args.report_dir, (args.runs, *paths))
        check_outside(args.report_dir, args.runs)
        if args.fix and same_place(args.report_dir, args.output):
            raise UsageError("the pages and the fixed copies need different folders")
    fixing = FixFolder(args.output, args.runs, paths) if args.fix else None
    found = [checker.check(path) for path in paths]
    unreadable = any(run is None for _, run in found)
    unreadable = unreadable or any(problem.severity == "error" for problem in folder_problems)
    unread = [(file_report(problem.file, None, [problem]), None) for problem in folder_problems]
    files = _together([*unread, *found], strict=args.strict)
    if args.report_dir is not None:
        _write_pages(args, files, paths)
    fixed = _fix(fixing, checker, dict(zip(paths, found, strict=True)), unread, strict=args.strict) if fixing else None
    _print(args, files, fixed)
    unchecked = {code for file in files for code in file.unchecked}
    for option, needing in (("--topics", NEEDS_TOPICS), ("--passage-hashes", NEEDS_HASHES)):
        if codes := sorted(unchecked & set(needing)):
            print(f"not checked without {option}: {', '.join(codes)}", file=sys.stderr)
    if unreadable:
        return 2
    left = (*fixed.files, *fixed.without_copy) if fixed else files
    return 1 if any(file.errors for file in left) else 0


_Found = tuple[FileReport, Run | None]
"""What is wrong with one file, and its run without the turns."""


def _together(found: Sequence[_Found], *, strict: bool) -> list[FileReport]:
    """The files in natural order, with what is wrong between runs."""
    between: dict[str, list[Problem]] = {}
    for problem in validate_together([run for _, run in found if run is not None]):
        between.setdefault(problem.file, []).append(problem)
    return [
        with_problems(file, between.get(file.file, ()), strict=strict)
        for file in sorted((file for file, _ in found), key=lambda file: natural_key(file.file))
    ]


def _fix(
    folder: FixFolder, checker: _Checker, found: Mapping[Path, _Found], unread: Sequence[_Found], *, strict: bool
) -> _Fixed:
    """Write the fixed copies and check them, together with what has no copy (`unread` is no run at all)."""
    fixes = 0
    copies: list[_Found] = []
    others = list(unread)
    with folder:
        for path, (file, run) in found.items():
            if run is None:
                fixed = FixedCopy(None, refused="not fixed: it cannot be read as a run")
            else:
                fixed = fixed_copy(path, run, checker.count_tokens, checker.format)
            copy = folder.write(path, fixed)
            if copy is None:
                print(printable(f"{file_name(path)}: {fixed.refused}; no copy was written"), file=sys.stderr)
                others.append((file, run))
                continue
            fixes += len(fixed.fixes)
            copies.append(checker.check(copy))
    names = {file.file for file, _ in copies}
    left = _together([*copies, *others], strict=strict)
    return _Fixed(
        file_name(folder.folder),
        fixes,
        tuple(file for file in left if file.file in names),
        tuple(file for file in left if file.file not in names),
    )


def _write_pages(args: argparse.Namespace, files: Sequence[FileReport], paths: Sequence[Path]) -> None:
    """One page per run, or per file that should be one, and the index."""
    names = page_names([file for file in files if file.format or file.errors])
    examples = None if args.all else PAGE_EXAMPLES
    pages = {
        names[file.file]: run_page(file, args.token_limit, args.token_rule, strict=args.strict, examples=examples)
        for file in files
        if file.file in names
    }
    pages["index.md"] = index_page(files, names)
    own = {name for name, _ in recorded(args.report_dir, RECORD)}
    there = sorted(path.name for path in args.report_dir.glob("*.md"))
    # A page of somebody else's would be sent with the others.
    if strange := [name for name in there if name not in pages and name not in own]:
        some = ", ".join(map(shown, strange[:EXAMPLES])) + (", …" if len(strange) > EXAMPLES else "")
        message = f"holds pages that this call does not write: {some}; remove them or choose another folder"
        raise UsageError(f"{args.report_dir}: {message}")
    contents = {name: page.encode("utf-8", "backslashreplace") for name, page in pages.items()}
    inputs = [path for path in (*paths, args.topics, args.passage_hashes) if path]
    replace_folder(args.report_dir, contents, RECORD, inputs=inputs)


def _print(args: argparse.Namespace, files: Sequence[FileReport], fixed: _Fixed | None) -> None:
    if args.json:
        report = {
            "schema": SCHEMA,
            "errors": sum(file.errors for file in files),
            "warnings": sum(file.warnings for file in files),
            "files": files,
            "fixed": fixed,
        }
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    for line in text_lines(files, None if args.all else EXAMPLES):
        print(line)
    if fixed is not None:
        print()
        fixes = count(fixed.fixes, "fix", "fixes")
        print(printable(f"fixed copies in {fixed.folder}: {fixes}, listed in {LOG}; what remains:"))
        for file in fixed.files:
            print(f"  {remaining(file)}")
        if fixed.without_copy:
            print("without a copy:")
        for file in fixed.without_copy:
            print(f"  {remaining(file)}")
        print(total((*fixed.files, *fixed.without_copy)))
