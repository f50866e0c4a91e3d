"""The ledger of a search: a line for every candidate, with what it is worth on dev."""

from judge.extra.improve.entries import WordingEntries
from judge.extra.improve.grades import CandidateGrades
from judge.extra.improve.page import Ledger, LedgerLine
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.search import WordingSearch


def make_ledger(plan: ImprovePlan, search: WordingSearch, openings: int) -> Ledger:
    """A line for every candidate, the refused ones too; `openings`: for how many questions the test was opened."""
    candidates = search.candidates
    grades = search.grades
    wordings = grades.wordings
    columns = wordings.columns
    seed = plan.resampling_seed
    kept = {column.prompt for column in wordings.kept(seed)}
    chosen = grades.chosen
    nested = _nested(candidates, grades, seed)
    lines = []
    for entry in candidates.entries:
        criterion = entry.criterion
        column = columns.get(criterion.prompt_id) if criterion else None
        status = "refused" if criterion is None else "dropped"
        if criterion is not None and criterion.prompt_id in kept:
            status = "kept"
        if criterion is chosen:
            status = "chosen"
        lines.append(
            LedgerLine(
                candidate=entry.variant,
                round=entry.round,
                parent=entry.parent or None,
                proposer=entry.by or None,
                prompt_digest=criterion.digest if criterion else None,
                status=status,
                agreement=wordings.agreement(column, seed, plan.replicates) if column else None,
                missing=wordings.missing(column) if column else None,
                gain=wordings.gain(column, seed) if column and criterion is not candidates.first else None,
                nested=nested[entry.round] if criterion else None,
                reason=entry.refused or (wordings.why_missing(column) if column else None) or None,
            )
        )
    return Ledger(
        statistic=wordings.statistic,
        judge=grades.judges.judges[0].name,
        stopped=search.stopped,
        notes=tuple(search.notes),
        nested=nested[max(nested)],
        openings=openings,
        lines=tuple(lines),
    )


def _nested(candidates: WordingEntries, grades: CandidateGrades, seed: int) -> dict[int, float | None]:
    """The agreement of the choice among all candidates up to each round, on topics that it was not made on."""
    wordings = grades.wordings
    nested: dict[int, float | None] = {}
    for number in sorted({entry.round for entry in candidates.entries}):
        columns = []
        with_cuts = False
        for entry in candidates.entries:
            if entry.criterion is None or entry.round > number:
                continue
            if grades.cut is not None and entry.criterion.digest == grades.cut.prompt_digest:
                with_cuts = True
            elif (column := wordings.columns.get(entry.criterion.prompt_id)) is not None:
                columns.append(column)
        choose = wordings.nested_with_cuts if with_cuts else wordings.nested
        nested[number] = choose(columns, seed)
    return nested
