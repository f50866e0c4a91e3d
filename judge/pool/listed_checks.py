"""Passages that runs list, of all runs together: one text each, not too many, none that people graded. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.io.ids import column
from judge.io.table import Table
from judge.io.text import count, shown
from judge.pool.build import Candidate, exclusion_order, normalize
from judge.pool.intake import Submitted
from judge.records import Problem, file_problem
from judge.runs.records import Exclusion

MOST_PAIRS = 1_000_000
"""The most pairs of turn and passage of a pool, which are held in memory."""

GradesByTurn = Mapping[str, Mapping[str, int]]
"""Grades by turn id and passage id, the latter as a column."""


def with_one_text(submitted: Submitted) -> Submitted:
    """The candidates, each with the text of its passage if any run gives it; an InputError if two runs differ in it."""
    files = {run_id: file for file, run_id in submitted.names.items()}
    first: dict[str, tuple[str, Candidate]] = {}
    differing: dict[str, Problem] = {}
    for candidate in submitted.candidates:
        (passage,) = candidate.used
        if passage.text is None:
            continue
        text, earlier = first.setdefault(passage.passage_id, (passage.text, candidate))
        if normalize(text) != normalize(passage.text) and passage.passage_id not in differing:
            differing[passage.passage_id] = file_problem(
                "passage_changed",
                files[candidate.run_id],
                f"passage {shown(passage.passage_id)} has another text here than in {files[earlier.run_id]}, turn "
                f"{shown(earlier.turn_id)}",
                f"number {candidate.rank} of its list",
                turn_id=candidate.turn_id,
            )
    told = f"runs differ in the texts of {count(len(differing), 'passage')}; --passages gives those of the collection"
    refuse([*differing.values()], told)
    candidates: list[Candidate] = []
    for candidate in submitted.candidates:
        (passage,) = candidate.used
        if passage.passage_id in first:
            text, _ = first[passage.passage_id]
            candidate = msgspec.structs.replace(candidate, used=(msgspec.structs.replace(passage, text=text),))
        candidates.append(candidate)
    return msgspec.structs.replace(submitted, candidates=tuple(candidates))


def check_pairs(submitted: Submitted, most: int = MOST_PAIRS) -> None:
    """Refuse more pairs of turn and passage than memory is meant for, as a UsageError that names the largest run."""
    pairs = {(candidate.turn_id, candidate.used[0].passage_id) for candidate in submitted.candidates}
    if len(pairs) > most:
        sizes = {run.run_id: 0 for run in submitted.runs}
        for candidate in submitted.candidates:
            sizes[candidate.run_id] = sizes.get(candidate.run_id, 0) + 1
        largest = max(sizes, key=lambda run_id: sizes[run_id])
        file = next(file for file, run_id in submitted.names.items() if run_id == largest)
        raise UsageError(
            f"{len(pairs):,} pairs of turn and passage, at most {most:,} are judged at once; {file} alone has "
            f"{sizes[largest]:,}: a smaller --depth, or --turns FILE, leaves fewer"
        )


def without_graded(submitted: Submitted, grades: GradesByTurn, name: str) -> Submitted:
    """The submissions without the passages that people graded, each of which is an exclusion.

    An InputError if the qrels grade none of them, since then they are empty, of other turns or of other passages.
    """
    if not grades:
        raise InputError(f"{name}: grades nothing")
    kept: list[Candidate] = []
    rows: list[Exclusion] = []
    for candidate in submitted.candidates:
        grade = grades.get(candidate.turn_id, {}).get(column(candidate.used[0].passage_id))
        if grade is None:
            kept.append(candidate)
            continue
        row = Exclusion(
            run_id=candidate.run_id,
            turn_id=candidate.turn_id,
            rank=candidate.rank,
            reason="graded_by_people",
            detail=f"{candidate.used[0].passage_id} has grade {grade}",
        )
        rows.append(row)
    if not rows and kept:
        raise InputError(f"{name}: {_no_match(kept, grades)}")
    return msgspec.structs.replace(
        submitted,
        candidates=tuple(kept),
        exclusions=Table(sorted((*submitted.exclusions, *rows), key=exclusion_order)),
    )


def _no_match(candidates: Sequence[Candidate], grades: GradesByTurn) -> str:
    """Why qrels grade nothing that runs list, in words."""
    turn_id, of_turn = next(iter(grades.items()))
    named = next(iter(of_turn))
    listed = candidates[0]
    there = f"line 1 grades {shown(named)} of turn {shown(turn_id)}"
    here = f"the runs list {shown(listed.used[0].passage_id)} for turn {shown(listed.turn_id)}"
    why = f"grades none of the {count(len(candidates), 'passage')} that the runs list: {there}, {here}"
    if any(map(_documents(grades).__contains__, _prefixes(candidates))):
        return f"{why}; the qrels have ids of documents, and passages are wanted"
    return why


def _documents(grades: GradesByTurn) -> frozenset[str]:
    return frozenset(passage_id for of_turn in grades.values() for passage_id in of_turn)


def _prefixes(candidates: Iterable[Candidate]) -> Iterator[str]:
    """What stands before the last sign that parts a document from its passages."""
    for candidate in candidates:
        passage_id = candidate.used[0].passage_id
        for mark in ":#_-":
            yield passage_id.rpartition(mark)[0]
