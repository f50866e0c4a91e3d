"""CAsT-ReGIn checked and made again, with runs over its bank ids: what `judge crowd cast-regin` does.

The README says of its evaluation: "We used a threshold of 2 (i.e -L2) and only the evaluated turns at the intersection
of the qrel file and the submission (i.e -c)". That contradicts trec_eval's own help: the level is `-l`, and `-c` is to
"average over the complete set of queries in the relevance judgements instead of the queries in the intersection";
missing ones count as 0. What was done is not said, so both are computed here and named: `complete` is what -c does,
`intersection` what the README describes.

What a turn's ranking is: the run's matched items by rank that are judged in the turn, as under trec_eval's `-J`;
unjudged ones are taken out, so they are neither relevant nor do they hold a place. For responses this stands in for the
README's rule that a run file has only responses with a relevant piece of provenance, of which the first was judged.
P, MRR and MAP take grades of 2 and more as relevant (`-l2`), nDCG takes the grades as they are. A turn in which nothing
is relevant counts as 0, as in trec_eval.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from judge.crowd.released import GRADES, RELEVANT, Part, read_resource, read_turns
from judge.errors import InputError, UsageError
from judge.extra.reproduce.regin import check, qrels_of, regenerate
from judge.io.folder import replace_folder
from judge.io.ids import best_ranks, natural_key, nested, response_run, safe_names, topic_of
from judge.io.plan import Option, Options
from judge.io.steps import Steps, quiet, stepped
from judge.io.table import tsv
from judge.records import Estimate, Problem, Record
from judge.runs.check.validate import validate_together
from judge.runs.formats import find_runs, read_run
from judge.runs.measures import Measures
from judge.runs.records import Run
from judge.stats.means import mean_interval

Rule = Literal["exact", "trimmed", "folded"]
Reason = Literal["unmatched", "ambiguous", "not_judged"]
Averaging = Literal["complete", "intersection"]

RULES: dict[Rule, Callable[[str], str]] = {
    "exact": str,
    "trimmed": str.strip,
    "folded": lambda text: " ".join(text.split()),
}
"""How texts are compared, in the order of trying; the first rule that finds an item decides."""
SHOWN = 200
"""Characters of a text that the list of what was not matched shows."""
_COLUMNS = ("run_id", "turn_id", "rank", "reason", "candidates", "text")
_SCORE_COLUMNS = ("run_id", "qrels", "averaging", "measure", "value", "low", "high", "turns", "topics", "reason")


class MatchedResponse(Record, frozen=True):
    """One submitted response with the items whose text it has."""

    turn_id: str
    rank: int
    text: str
    rule: Rule | None
    items: tuple[str, ...]
    reason: Reason | None
    """Why it does not count: not one item, or one that is not judged in this turn."""


class MatchedRun(Record, frozen=True):
    """A run over the ids of one part."""

    run_id: str
    part: Part
    responses: tuple[MatchedResponse, ...]

    @property
    def entries(self) -> list[tuple[str, str, int]]:
        """Turn, item and rank of every response with one item, judged or not."""
        return [(each.turn_id, each.items[0], each.rank) for each in self.responses if len(each.items) == 1]

    @property
    def counts(self) -> dict[str, int]:
        """How many texts each rule gave one item, and how many do not count for which reason."""
        rules = Counter(response.rule for response in self.responses if len(response.items) == 1)
        reasons = Counter(response.reason for response in self.responses)
        return {rule: rules[rule] for rule in RULES} | {reason: reasons[reason] for reason in get_args(Reason)}


class Score(Record, frozen=True):
    """One measure of one run under one qrels file."""

    run_id: str
    qrels: str
    averaging: Averaging
    measure: str
    estimate: Estimate


class TextIndex:
    """Items of a part by their text, both the bank's and the judged one; an empty text is nobody's."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._judged = frozenset(part.keys)
        texts = {(text, item_id) for item_id, text in part.bank.items()}
        texts |= {(row.text, row.item_id) for row in part.rows}
        self._items: dict[Rule, dict[str, set[str]]] = {rule: defaultdict(set) for rule in RULES}
        for text, item_id in texts:
            if text.strip():
                for rule, key in RULES.items():
                    self._items[rule][key(text)].add(item_id)

    def match(self, turn_id: str, rank: int, text: str) -> MatchedResponse:
        """The items with this text under the first rule that finds any; several are all given, none is preferred."""
        for rule, key in RULES.items():
            if items := self._items[rule].get(key(text)):
                first, *others = item_ids = tuple(sorted(items, key=natural_key))
                judged = (turn_id, first) in self._judged
                reason: Reason | None = "ambiguous" if others else None if judged else "not_judged"
                return MatchedResponse(turn_id, rank, text, rule, item_ids, reason)
        return MatchedResponse(turn_id, rank, text, None, (), "unmatched")

    def match_run(self, run: Run) -> MatchedRun:
        """Every response of a run."""
        matched = (
            self.match(turn.turn_id, response.rank, response.text) for turn in run.turns for response in turn.responses
        )
        return MatchedRun(run.run_id, self.part, tuple(matched))


def match_run(run: Run, indexes: Sequence[TextIndex]) -> MatchedRun:
    """The run over the ids of that part which has more of its texts; where there is no difference, the first."""
    matched = (index.match_run(run) for index in indexes)
    return max(matched, key=lambda of: sum(bool(response.items) for response in of.responses))


def not_matched_tsv(runs: Iterable[MatchedRun]) -> bytes:
    """Every response that does not count, why, and which items it might be; texts escaped and cut at SHOWN."""
    lines = (
        (run.run_id, response.turn_id, response.rank, response.reason, " ".join(response.items), response.text[:SHOWN])
        for run in sorted(runs, key=lambda run: natural_key(run.run_id))
        for response in sorted(run.responses, key=lambda response: (natural_key(response.turn_id), response.rank))
        if response.reason
    )
    return tsv(_COLUMNS, lines).encode("utf-8", "backslashreplace")


Graded = Mapping[str, tuple[dict[str, dict[str, int]], Measures]]
"""Name of a qrels file to its grades by turn and item, and the measures over them."""


def graded(qrels: Mapping[str, Sequence[tuple[str, str, int]]]) -> Graded:
    """Qrels by which runs are evaluated."""
    by_name = {}
    for name, rows in qrels.items():
        grades = nested(rows)
        by_name[name] = grades, Measures([named for named in MEASURES.values() if named], grades)
    return by_name


def evaluate(run: MatchedRun, qrels: Graded) -> list[Score]:
    """Every measure of a run under every qrels file, averaged both ways, with intervals clustered by topic."""
    # As the run file has them.
    ranked = best_ranks(run.entries)
    scores = []
    for name, (grades, measures) in qrels.items():
        judged = {
            turn_id: [item_id for item_id, _ in ranked.get(turn_id, ()) if item_id in of_turn]
            for turn_id, of_turn in grades.items()
        }
        values = measures.values(
            {turn_id: [(item_id, -float(place)) for place, item_id in enumerate(judged[turn_id])] for turn_id in judged}
        )
        values[""] = {turn_id: float(grades[turn_id][items[0]]) for turn_id, items in judged.items() if items}
        turns: dict[Averaging, list[str]] = {
            "complete": list(grades),
            "intersection": [turn_id for turn_id in grades if turn_id in ranked],
        }
        for averaging, chosen in turns.items():
            topics = [topic_of(turn_id) for turn_id in chosen]
            for measure, named in MEASURES.items():
                of_turns = [values[named].get(turn_id, 0.0) for turn_id in chosen]
                bounds = (0.0, 1.0 if named else float(max(GRADES)))
                estimate = mean_interval(of_turns, topics, bounds=bounds, what="turns")
                scores.append(Score(run.run_id, name, averaging, measure, estimate))
    return scores


MEASURES = {
    "P@1": f"P(rel={RELEVANT})@1", "grade@1": "", "nDCG@1": "nDCG@1", "nDCG@3": "nDCG@3", "nDCG@5": "nDCG@5",
    "MRR": f"RR(rel={RELEVANT})", "MAP": f"AP(rel={RELEVANT})",
}  # fmt: skip
"""Name to what ir_measures calls it; the grade of the first item, 0 where there is none, it has not."""


def scores_tsv(scores: Iterable[Score]) -> bytes:
    """`evaluation.tsv`: a line a measure; numbers in full."""
    lines = (
        (
            *(score.run_id, score.qrels, score.averaging, score.measure),
            *(None if value is None else repr(value) for value in (mean.value, mean.low, mean.high)),
            *(mean.n, mean.topics, mean.reason),
        )
        for score in scores
        for mean in (score.estimate,)
    )
    return tsv(_SCORE_COLUMNS, lines).encode("utf-8", "backslashreplace")


class ReginPlan(Options):
    """Everything `judge crowd cast-regin` can be told."""

    folder: Annotated[Path, Option(metavar="DIR", place="only")]
    """The published resource, or one of its two folders."""
    out: Annotated[Path, Option(short="o", metavar="OUT")]
    """Folder to write."""
    mi_turns: Annotated[Path | None, Option(metavar="FILE")] = None
    """Turn ids of question_relevance_mi_subset, one per line."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Submitted runs, to be mapped to bank ids by text."""
    evaluate: bool = False
    """Evaluate the runs."""


class MadeFile(msgspec.Struct, frozen=True):
    """A file that was made, and how it compares with the released one."""

    path: str
    """Relative to the output folder."""
    compared: str
    """`same bytes`, `differs`, or `no release` where the release has no such file."""


class ReginOutcome(msgspec.Struct, frozen=True):
    """Problems of the resource, the files made from it, and the scores of runs over it."""

    problems: tuple[Problem, ...]
    files: tuple[MadeFile, ...] = ()
    """Empty if the judgments or the bank are damaged; nothing was written then."""
    runs: tuple[MatchedRun, ...] = ()
    scores: tuple[Score, ...] = ()


def remake_cast_regin(plan: ReginPlan, steps: Steps = quiet) -> ReginOutcome:
    """Read and check the resource, make every file, and only then write."""
    if plan.evaluate and not plan.runs:
        raise UsageError("--evaluate needs --runs")
    parts = read_resource(plan.folder)
    turns = _mi_turns(plan.mi_turns, parts) if plan.mi_turns is not None else None
    problems = [problem for part in parts for problem in check(part, turns)]
    if any(part.problems for part in parts):
        return ReginOutcome(tuple(problems))
    contents, files = _regenerated(parts, turns)
    inputs = {part.folder / path for part in parts for path in part.released}
    inputs |= {plan.mi_turns} if plan.mi_turns is not None else set()
    runs: list[MatchedRun] = []
    scores: list[Score] = []
    if plan.runs:
        paths, submitted = _runs(plan.runs, problems)
        inputs |= set(paths)
        indexes = [TextIndex(part) for part in parts]
        runs = [match_run(run, indexes) for run in stepped("matching runs", submitted, steps)]
        contents |= _run_files(runs)
    if plan.evaluate:
        qrels = {part.kind.name: graded(qrels_of(part, turns)) for part in parts}
        of_runs = (evaluate(run, qrels[run.part.kind.name]) for run in stepped("evaluating runs", runs, steps))
        scores = [score for of_run in of_runs for score in of_run]
        contents["evaluation.tsv"] = scores_tsv(scores)
    replace_folder(plan.out, contents, "cast-regin.sha256", inputs=inputs)
    return ReginOutcome(tuple(problems), tuple(files), tuple(runs), tuple(scores))


def _mi_turns(path: Path, parts: Sequence[Part]) -> tuple[str, ...]:
    turns = read_turns(path)
    part = next((part for part in parts if part.kind.criterion_of_subsets), None)
    if part is None:
        raise UsageError("--mi-turns is about the clarifying questions, and the folder has none")
    judged = {row.turn_id for row in part.rows}
    unknown = [turn_id for turn_id in turns if turn_id not in judged]
    # Damaged rows were not read, so a turn missing from the rows read may still be judged.
    if unknown and not part.problems:
        message = "no question of this turn is judged"
        problems = [Problem("unknown_turn", "error", str(path), turn_id, "", message) for turn_id in unknown]
        raise InputError(f"{path}: not turns of the resource", problems)
    return turns


def _regenerated(parts: Sequence[Part], turns: Sequence[str] | None) -> tuple[dict[str, bytes], list[MadeFile]]:
    contents: dict[str, bytes] = {}
    files = []
    for part in parts:
        for path, content in regenerate(part, turns).items():
            released = part.released.get(path)
            compared = "no release" if released is None else "same bytes" if content == released else "differs"
            files.append(MadeFile(f"{part.kind.folder}/{path}", compared))
            contents[files[-1].path] = content
    return contents, files


def _runs(given: Sequence[Path], problems: list[Problem]) -> tuple[Sequence[Path], list[Run]]:
    """The paths of the runs, and the readable runs: the first of each run id."""
    paths, folder_problems = find_runs(given)
    problems.extend(folder_problems)
    runs: list[Run] = []
    for path in paths:
        read = read_run(path)
        problems.extend(read.problems)
        if read.run is not None and read.run.run_id:
            runs.append(read.run)
    problems.extend(validate_together(runs))
    return paths, list({run.run_id: run for run in reversed(runs)}.values())[::-1]


def _run_files(runs: Sequence[MatchedRun]) -> dict[str, bytes]:
    names = safe_names(run.run_id for run in runs)
    contents = {
        f"{run.part.kind.name}_runs/{names[run.run_id]}.run": response_run(run.run_id, run.entries).encode()
        for run in runs
        if run.entries
    }
    return contents | {"not_matched.tsv": not_matched_tsv(runs)}
