"""Gold of the responses of runs, of which citations and pairs have parts. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct, structs

from judge.ask.records import Judgment
from judge.errors import refuse
from judge.gold.rows import BY_GRADE, GoldByResponse, GoldRow, check_scale, deciding
from judge.io.ids import groups_of
from judge.pool.pairs import equal_responses, other_orders
from judge.pool.records import Pool
from judge.records import Criterion
from judge.results.citations import Measure, cited_responses, key_of
from judge.results.pairs import share_of_first
from judge.results.turns import RunTurns, TurnGrade


class GoldGrade(Struct, frozen=True):
    """The gold of one response."""

    grade: float
    probability: float
    """The inclusion probability; nan where it is unknown."""
    stratum: str | None
    rows: tuple[GoldRow, ...]
    whole: bool = True
    """Of a measure of citations: whether each that counts has gold."""
    parts: "tuple[GoldGrade, ...]" = ()
    """Of a measure: the citations that count, or pairs, and what each is worth."""
    share: float = 1.0
    """Of a part: how much of the measure it is."""
    judged: float = math.nan
    """Of a part: what it is worth by the judge; nan counts as the whole."""
    drawn_as: str = ""
    """The id of a pair that was drawn by itself; else the response or its turn was."""
    labeled: bool = True
    """Whether a person gave it; False where it is known without a label."""

    @property
    def given(self) -> tuple[float, ...]:
        """The grades that the assessors gave."""
        return tuple(row.grade for row in self.rows) or (self.grade,)

    @property
    def known(self) -> bool:
        """Whether there is gold."""
        return not math.isnan(self.grade)


_NO_GOLD = GoldGrade(math.nan, math.nan, None, ())


def gold_grades(matched: GoldByResponse, criterion: Criterion, name: str) -> dict[str, GoldGrade]:
    """Response id to the mean grade of its assessors, as it is: rounding it would give every tie a direction.

    Where a response was adjudicated, the adjudication is its grade.
    """
    rows = {
        response_id: tuple(deciding(rows))
        for (response_id, criterion_name), rows in matched.items()
        if criterion_name == criterion.name and rows
    }
    problems = check_scale((row for group in rows.values() for row in group), criterion.scale, name)
    refuse(problems, f"{name}: grades that are not on the scale of {criterion.prompt_id}")
    grades: dict[str, GoldGrade] = {}
    for response_id, group in rows.items():
        grades[response_id] = GoldGrade(
            grade=fmean(row.grade for row in group),
            probability=group[0].inclusion_probability or math.nan,
            stratum=group[0].stratum,
            rows=group,
        )
    return grades


def measured_gold(
    measure: Measure,
    pool: Pool,
    runs: Sequence[RunTurns],
    gold: Mapping[str, GoldGrade],
    verdicts: Iterable[Judgment] = (),
) -> dict[str, GoldGrade]:
    """Gold of citations, or of pairs, each in one order, as gold of responses.

    What has no gold was not drawn, or does not count where all gold is certain. What cites nothing and ties of equal
    responses need no label, so they were chosen for certain. They are no gold of a run that has no label and needs
    some. `verdicts`: the judge's of pairs, those that are `agreed`.
    """
    drawn = any(of.probability < 1 for of in gold.values())
    strata = all(of.stratum is not None for of in gold.values())
    found: dict[str, GoldGrade] = {}
    if measure.of_pairs:
        by_response = _won_gold(measure, pool, gold, verdicts)
    else:
        by_response = _cited_gold(measure, pool, runs, gold)
    for name, sentences in by_response.items():
        citing = sum(map(bool, sentences))
        # A sentence that cites nothing is 0 without a label, so the others are all of the measure.
        most = citing / len(sentences) if measure.recall and citing else 1.0
        parts: list[GoldGrade] = []
        for each in sentences:
            for part in each:
                parts.append(structs.replace(part, grade=most * part.grade, share=1 / len(each) / citing))
        known = [part for part in parts if part.known]
        if known or not parts:
            first = known[0] if known else structs.replace(_NO_GOLD, probability=1.0, stratum="certain", labeled=False)
            counted = tuple(parts if drawn else known)
            alike = len({(part.probability, part.drawn_as) for part in counted}) < 2
            found[name] = GoldGrade(
                grade=measure.score([[part.grade if part.known else None for part in each] for each in sentences]),
                probability=first.probability if alike else 1 / math.fsum(of.share / of.probability for of in known),
                stratum=first.stratum if strata else None,
                rows=tuple(row for part in known for row in part.rows),
                whole=len(known) == len(parts),
                parts=counted,
                labeled=first.labeled,
            )
    for run in runs:
        names: set[str] = set()
        for response in (*(of for of, _ in run.graded), *run.failed, *run.left_out):
            names.add(response.response_id)
        without_label = names & found.keys()
        if without_label < names and not any(found[name].labeled for name in without_label):
            for name in without_label:
                del found[name]
    return found


def _cited_gold(
    measure: Measure, pool: Pool, runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]
) -> dict[str, list[list[GoldGrade]]]:
    """Response id to what the citations of each sentence that count are worth."""
    cited = cited_responses(pool)
    worth = {name: structs.replace(grade, grade=fmean(map(measure.worth, grade.given))) for name, grade in gold.items()}
    grades: dict[str, list[list[GoldGrade]]] = {}
    for run in runs:
        for response in (*(of for of, _ in run.graded), *run.failed, *run.left_out):
            grades[response.response_id] = [
                [worth.get(citation.response_id, _NO_GOLD) for citation in each]
                for each in measure.looked_at(cited.get(run.run_id, {}).get(response.turn_id, []))
            ]
    return grades


def _won_gold(
    measure: Measure, pool: Pool, gold: Mapping[str, GoldGrade], verdicts: Iterable[Judgment]
) -> dict[str, list[list[GoldGrade]]]:
    """Response id to what it won of each pair of its turn, each as a sentence with one citation."""
    scale = measure.of.scale
    others = other_orders(pool)
    said = {each.response_id: share_of_first(each.grade, scale) for each in verdicts}
    parts: dict[str, list[list[GoldGrade]]] = defaultdict(list)
    for pair in pool.responses:
        name = pair.response_id
        other = others[pair.response_id].response_id
        grade = gold.get(name, _NO_GOLD)
        # The order with gold counts, else the first one.
        if other not in gold and (grade.known or name < other):
            by_people = [share_of_first(given, scale) for given in grade.given]
            won = fmean(by_people) if grade.known else math.nan, said.get(name, math.nan)
            singly = name if grade.probability < 1 and (grade.stratum or "").startswith(BY_GRADE) else ""
            for entry in pair.runs:
                of_gold, of_judge = won if entry.rank == 1 else (1 - won[0], 1 - won[1])
                part = structs.replace(grade, grade=of_gold, judged=of_judge, drawn_as=singly)
                parts[key_of(entry.run_id, pair.turn_id).response_id].append([part])
    # Equal responses tie for certain, for people as for the judge.
    tie = GoldGrade(grade=0.5, probability=1.0, stratum="certain", rows=(), judged=0.5, labeled=False)
    for turn_id, *run_ids in equal_responses(pool):
        for run_id in run_ids:
            parts[key_of(run_id, turn_id).response_id].append([tie])
    return parts


def drawn_apart(grade: GoldGrade | None, judged: float) -> list[GoldGrade]:
    """What of a response was drawn together, or not at all, each as one part; `judged` is its measure by the judge."""
    groups = groups_of(((part.probability, part.drawn_as), part) for part in (grade.parts if grade else ()))
    if len(groups) < 2 and not any(singly for _, singly in groups):
        return [structs.replace(grade or _NO_GOLD, judged=judged)]
    found = []
    for of in groups.values():
        share = math.fsum(part.share for part in of)
        said = math.fsum(part.share * (judged if math.isnan(part.judged) else part.judged) for part in of) / share
        worth = math.fsum(part.share * part.grade for part in of) / share
        found.append(structs.replace(of[0], share=share, judged=said, grade=worth))
    return found


def counted_runs(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> list[RunTurns]:
    """The runs with the responses that they left out among the graded, as if the judge gave each the run's mean.

    So the judge's mean stays, and gold corrects it for them too, if it was drawn from them. Gold chosen for certain
    says nothing of responses without it, so it has to be of all that the run left out.
    """
    drawn = {name for name, grade in gold.items() if not math.isnan(grade.probability)}
    certain = all(grade.probability == 1 for grade in gold.values())
    counted = []
    from_all = any(response.response_id in drawn for run in runs for response in run.left_out)
    for run in runs:
        if from_all and (not certain or all(response.response_id in drawn for response in run.left_out)):
            mean = TurnGrade(math.fsum(given.grade for _, given in run.graded) / max(len(run.graded), 1), None)
            graded = (*run.graded, *((response, mean) for response in run.left_out))
            run = structs.replace(run, graded=graded, left_out=())
        counted.append(run)
    return counted
