"""Cuts as a candidate of the search: fitted to the best prompt so far, without a call."""

from msgspec.structs import replace as changed_record

from judge.ask.prompt_edit import with_cuts
from judge.calibrate.cuts import cross_fitted, why_no_cuts
from judge.errors import UsageError
from judge.extra.improve.entries import WordingEntries
from judge.extra.improve.grades import CandidateGrades
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import Proposal


def add_cuts(plan: ImprovePlan, candidates: WordingEntries, grades: CandidateGrades) -> list[str]:
    """Fit cuts to the best prompt, as another candidate; a sentence why there are none."""
    wordings = grades.wordings
    column = wordings.best
    if column is None or column.origin is None:
        return ["No cuts: no wording has an agreement."]
    panel = wordings.panel
    inside = panel.within(wordings.split)
    if reason := why_no_cuts(panel, column, inside):
        return [f"No cuts: {reason}."]
    found = cross_fitted(panel, column, plan.resampling_seed, inside)
    base = grades.prompt_of(column)
    try:
        text = with_cuts(candidates.contents[base.variant], base, found.cuts)
    except UsageError as error:
        return [f"No cuts: {error}."]
    proposal = Proposal(text, parent=base.variant, name=f"{base.variant}-cuts")
    criterion = candidates.enter(candidates.next_round, proposal, "cuts").criterion
    if criterion is None:
        return []
    labels = []
    for label, code in zip(column.first, found.codes.tolist(), strict=True):
        if label is None:
            continue
        if code >= 0:
            labels.append(changed_record(label, grade=panel.grades[code]))
        else:
            labels.append(changed_record(label, grade=None, reason=label.reason or "unreadable"))
    cut = changed_record(
        column.origin,
        prompt=criterion.prompt_id,
        prompt_digest=criterion.digest,
        labels=tuple(labels),
    )
    grades.add_cut(cut)
    return []
