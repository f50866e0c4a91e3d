"""One run as a file of another format, one of `TARGETS`, with a log of each value that is dropped or changed.

Turn, text and used passages, which make a response distinct in a pool, are kept wherever the target can hold them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from judge.io.ids import column
from judge.io.table import tsv
from judge.io.text import count, shown, storable
from judge.plugins import OpenTable
from judge.records import Record
from judge.runs.formats import ReadRun, rules_of
from judge.runs.formats.shape import PtkbEntry, ResponsePlace, TurnPlace
from judge.runs.formats.trec import MAX_PASSAGES
from judge.runs.ranking import TOP_PASSAGES, has_scores, provenance_run, used_provenance
from judge.runs.records import Provenance, Response, Run, RunTurn, Turn

HEADER = ("file", "turn_id", "rank", "what", "from", "to")


class Change(Record, frozen=True):
    """One value that the target drops or writes in another form."""

    file: str
    """Name of the source file."""
    turn_id: str | None
    """None for a change of the whole run."""
    rank: int | None
    what: str
    before: str
    after: str
    dropped: bool
    """Whether information is lost; False if it is only written in another form."""


class SourceRun:
    """A run to convert, what may be known of its topics and team, and the changes so far.

    A change is of the turn and the response in work. Changes of a whole kind are counted, and make one row for the run.
    """

    def __init__(self, read: ReadRun, run: Run, turns: Mapping[str, Turn] | None, team: str | None) -> None:
        self.run = run
        self.turns = turns
        self.team = team or run.team or ""
        """The team id to write where the target has one."""
        self.rules = rules_of(run.format)
        self._read = read
        self._turn_id: str | None = None
        self._rank: int | None = None
        self._rows: list[Change] = []
        self._sums: Counter[tuple[str, str, str, bool]] = Counter()

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes; those of the whole run come last."""
        file = Path(self.run.file).name
        sums = (
            Change(
                file=file, turn_id=None, rank=None, what=what, before=count(number, noun), after=after, dropped=dropped
            )
            for (what, noun, after, dropped), number in self._sums.items()
        )
        return (*self._rows, *sums)

    def change(self, what: str, before: str, after: str = "", *, dropped: bool = False) -> None:
        """Log a value that the target cannot hold, or writes in another form."""
        file = Path(self.run.file).name
        self._rows.append(
            Change(
                file=file,
                turn_id=self._turn_id,
                rank=self._rank,
                what=what,
                before=before,
                after=after,
                dropped=dropped,
            )
        )

    def drop(self, what: str, before: str, after: str = "") -> None:
        """Log a value that the target cannot hold."""
        self.change(what, before, after, dropped=True)

    def change_all(self, what: str, number: int, noun: str, after: str = "", *, dropped: bool = False) -> None:
        """Count values of a kind that the target cannot hold, or writes in another form."""
        if number:
            self._sums[what, noun, after, dropped] += number

    def drop_all(self, what: str, number: int, noun: str, after: str = "") -> None:
        """Count values of a kind that the target cannot hold."""
        self.change_all(what, number, noun, after, dropped=True)

    def in_work(self) -> Iterator[tuple[RunTurn, TurnPlace]]:
        """Each turn, which changes are of until the next."""
        for turn, place in zip(self.run.turns, self._read.places, strict=True):
            self._turn_id = turn.turn_id
            self.drop_all("utterances of the user", turn.utterance is not None, "turn")
            self.drop_all("PTKB as told", len(turn.ptkb), "statement")
            yield turn, place
        self._turn_id = None

    def responses(self, turn: RunTurn, place: TurnPlace) -> Iterator[tuple[Response, ResponsePlace]]:
        """Each response of a turn, which changes are of until the next."""
        for response, where in zip(turn.responses, place.responses, strict=True):
            self._rank = response.rank
            yield response, where
        self._rank = None

    def statements(self) -> dict[str, str]:
        """The PTKB of the topic in work, number to text; empty without topics."""
        turn = (self.turns or {}).get(self._turn_id or "")
        return {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}

    def lose_statements(self, lost: Sequence[str]) -> None:
        """Log the statements of the response in work that the target cannot hold, and why."""
        if not lost:
            return
        why = "the topics have no such turn"
        if self.turns is None:
            why = "no topics given"
        elif self._turn_id in self.turns:
            why = "not in the topic's PTKB"
        self.drop("PTKB statements", ", ".join(map(shown, lost)), f"dropped: {why}")

    def text(self, response: Response) -> str:
        """A response's text; "" for one that JSON cannot hold, which only a run that is not judged may have."""
        if storable(response.text):
            return response.text
        self.drop("response text", "NUL or a lone surrogate in the text")
        return ""

    def run_type(self, names: Mapping[str, str], target: str) -> str:
        """The run's type by the target's name for it."""
        known = rules_of(target).run_types
        before = self.run.run_type or ""
        after = names.get(before, before)
        if after != before:
            self.change("run type", before, after)
        elif after not in known:
            self.change("run type", before, f"kept, though the format has only {', '.join(known)}")
        return after

    def lost_in_reading(self) -> None:
        """Log the values of the file that the record of a run does not hold."""
        self._noted("unknown_field", "field", "unknown fields", dropped=True)
        self._noted("inconsistent_metadata", "value", "metadata of later lines", dropped=True)

    def form_lost_in_reading(self) -> None:
        """Log the values that the file has in another form than records and JSON targets."""
        self._noted("coerced_value", "value", "numbers in another form", "numbers")
        if self.rules.keyed:
            responses = (response for turn in self.run.turns for response in turn.responses)
            cited = sum(passage.used is True for response in responses for passage in response.listed)
            self.change_all("citations", cited, "citation", "with the references' scores and in their order")

    def _noted(self, code: str, noun: str, what: str, after: str = "", *, dropped: bool = False) -> None:
        problems = [problem for problem in self._read.problems if problem.code == code]
        if problems:
            number = count(sum(problem.count for problem in problems), noun)
            self.change(what, f"{number}, the first at {problems[0].path}", after, dropped=dropped)


def tally(changes: Iterable[Change]) -> tuple[tuple[str, bool, int], ...]:
    """(what changed, whether it was lost, how often), in alphabetical order."""
    counts = Counter((change.what, change.dropped) for change in changes)
    return tuple((what, dropped, count) for (what, dropped), count in sorted(counts.items()))


def conversion_tsv(changes: Iterable[Change]) -> bytes:
    """The log as TSV under HEADER; a change of the whole run has the turn `*`."""
    lines = (
        (change.file, change.turn_id or "*", change.rank, change.what, change.before, change.after)
        for change in changes
    )
    return tsv(HEADER, lines).encode()


_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


def _ikat2024(source: SourceRun) -> bytes:
    run = source.run
    if run.team is not None:
        source.drop("team", run.team)
    source.lost_in_reading()
    source.form_lost_in_reading()
    turns = []
    for turn, place in source.in_work():
        responses = []
        for response, where in source.responses(turn, place):
            ptkb = _numbers(response, where, source)
            entries = _entries(response, source)
            text = source.text(response)
            responses.append(
                {"rank": response.rank, "text": text, "ptkb_provenance": ptkb, "passage_provenance": entries}
            )
        turns.append({"turn_id": turn.turn_id, "responses": responses})
    run_type = source.run_type({"generation-only": "only_response"}, "ikat2024")
    head = {"run_name": run.run_id, "run_type": run_type, "eval_response": run.eval_response}
    return msgspec.json.format(msgspec.json.encode(head | {"turns": turns}), indent=1) + b"\n"


def _entries(response: Response, source: SourceRun) -> list[dict[str, Any]]:
    """A response's passages in the form of 2024, with flags, scores and texts where it has them."""
    missing = unusable = 0
    entries: list[dict[str, Any]] = []
    for passage in response.provenance:
        entry: dict[str, Any] = {"id": passage.passage_id}
        if passage.used is not None:
            entry["used"] = passage.used
        if passage.score is not None and isfinite(passage.score):
            entry["score"] = passage.score
        elif passage.score is not None:
            missing += 1
        if passage.text is not None and storable(passage.text):
            entry["text"] = passage.text
        elif passage.text is not None:
            unusable += 1
        entries.append(entry)
    if missing:
        source.drop("passage scores", count(missing, "score") + " not finite, which JSON cannot hold")
    if unusable:
        source.drop("passage texts", count(unusable, "text") + " with NUL or a lone surrogate")
    return entries


def _numbers(response: Response, where: ResponsePlace, source: SourceRun) -> list[int]:
    """The PTKB provenance as numbers of the topic's statements."""
    if source.rules.ptkb == "texts":
        numbers: dict[str, str] = {}
        for ptkb_id, text in source.statements().items():
            numbers.setdefault(text, ptkb_id)
        named = [(text, numbers.get(text, "")) for text in response.ptkb_provenance]
    else:
        named = [(ptkb_id, ptkb_id) for ptkb_id in response.ptkb_provenance]
        told = sum(bool(text) or score is not None for text, score in where.statements)
        source.drop_all("PTKB texts and scores", told, "statement", "numbers alone")
    source.lose_statements([name for name, number in named if not _NUMBER.fullmatch(number)])
    return [int(number) for _, number in named if _NUMBER.fullmatch(number)]


def _ikat2025(source: SourceRun) -> bytes:
    run = source.run
    run_type = source.run_type({"only_response": "generation-only"}, "ikat2025")
    if run.team is not None and source.team != run.team:
        source.change("team", run.team, source.team)
    metadata = {"team_id": source.team, "run_id": run.run_id, "run_type": run_type}
    source.lost_in_reading()
    source.form_lost_in_reading()
    lines = []
    for turn, place in source.in_work():
        listed = _references(turn, source)
        references = dict(sorted(listed.items(), key=lambda item: -item[1]))
        source.change_all("order of the references", list(references) != list(listed), "turn", "by falling score")
        responses = []
        for response, where in source.responses(turn, place):
            citations = _citations(response, listed, source)
            ptkb = _statements(response, where, source)
            text = source.text(response)
            responses.append({"rank": response.rank, "text": text, "citations": citations, "ptkb_provenance": ptkb})
        line = {"metadata": metadata, "turn_id": turn.turn_id, "responses": responses, "references": references}
        lines.append(msgspec.json.encode(line) + b"\n")
    return b"".join(lines)


def _references(turn: RunTurn, source: SourceRun) -> dict[str, float]:
    """The passages of all responses of a turn, each once, with a number for a score."""
    first: dict[str, Provenance] = {}
    other_scores: set[str] = set()
    for passage in turn.passages:
        if passage.score != first.setdefault(passage.passage_id, passage).score:
            other_scores.add(passage.passage_id)
    if other_scores:
        named = ", ".join(map(shown, sorted(other_scores)))
        source.drop("passage scores", f"other scores elsewhere in the turn of {named}")
    if source.rules.keyed and any(
        passage.passage_id not in response.references for response in turn.responses for passage in response.listed
    ):
        source.change("references", "citations outside the references", "citations are references")
    if has_scores(tuple(first.values())):
        return {passage_id: passage.score or 0.0 for passage_id, passage in first.items()}
    # Without scores the order of the list counts, and scores by place keep it.
    source.change("passage scores", "missing or not finite", f"{len(first)}.0 to 1.0 by place in the list")
    return {passage_id: float(len(first) - k) for k, passage_id in enumerate(first)}


def _citations(response: Response, references: Mapping[str, float], source: SourceRun) -> dict[str, float]:
    """The used passages; every difference for a reader of the new file is logged."""
    provenance = response.provenance
    used, rule = used_provenance(response, source.run.format)
    if rule == "top5" and used:
        source.change("citations", "no passage flagged as used", f"the first {len(used)} by rank are cited")
    elif not used and references:
        after = f"with no citation the turn's first {TOP_PASSAGES} references count as used"
        source.change("citations", "a response without passages", after)
    ids = list(dict.fromkeys(passage.passage_id for passage in provenance))
    if len(ids) < len(provenance):
        source.drop("repeated passages", count(len(provenance) - len(ids), "repetition"))
    if ids and ids != list(references):
        before = count(len(ids), "passage") + " in a list of its own"
        source.drop("passage list", before, f"the turn's {count(len(references), 'reference')}")
    source.drop_all("passage texts", sum(passage.text is not None for passage in provenance), "text")
    return {passage.passage_id: references[passage.passage_id] for passage in used}


def _statements(response: Response, where: ResponsePlace, source: SourceRun) -> list[str]:
    """The PTKB provenance as texts: the topic's, or the run's own where the topic's is not known."""
    given: Sequence[PtkbEntry] = where.statements or ((None, None),) * len(response.ptkb_provenance)
    if source.rules.ptkb == "texts":
        named = [(text, text) for text in response.ptkb_provenance]
    else:
        known = source.statements()
        pairs = zip(response.ptkb_provenance, given, strict=True)
        named = [(ptkb_id, known.get(ptkb_id) or text or "") for ptkb_id, (text, _) in pairs]
    source.drop_all("PTKB scores", sum(score is not None for _, score in given), "statement")
    source.lose_statements([name for name, text in named if not (text and storable(text))])
    return [text for _, text in named if text and storable(text)]


def _trec_run(source: SourceRun) -> bytes:
    _only_in_a_run(source)
    for turn, place in source.in_work():
        ranked = {passage.passage_id for passage in turn.passages}
        if len(ranked) > MAX_PASSAGES:
            source.drop("passages", count(len(ranked) - MAX_PASSAGES, "passage") + f" beyond the first {MAX_PASSAGES}")
        for response, _ in source.responses(turn, place):
            if not (response.listed or response.references):
                source.drop("response", "no passages to rank")
    return provenance_run(source.run).encode()


def _only_in_a_run(source: SourceRun) -> None:
    """Log every value that a ranking of passages has no column for."""
    run = source.run
    keyed = source.rules.keyed
    source.lost_in_reading()
    for field, value in (("team", run.team), ("run type", run.run_type)):
        if value:
            source.drop(field, value)
    if not run.eval_response:
        source.drop("eval_response", "false")
    if column(run.run_id) != run.run_id:
        source.change("run id", run.run_id, column(run.run_id))
    ranked = "from the number of the turn's passages down to 1"
    ids: set[str] = set()
    for turn in run.turns:
        source.change_all("several responses", len(turn.responses) > 1, "turn", "one ranking of all their passages")
        for response in turn.responses:
            passages = response.listed
            source.drop_all("response texts", 1, "response")
            source.drop_all("PTKB provenance", len(response.ptkb_provenance), "statement")
            told = sum(passage.used is True or (passage.used is False and not keyed) for passage in passages)
            source.drop_all("citations" if keyed else "used flags", told, "passage")
            source.drop_all("passage texts", sum(passage.text is not None for passage in passages), "text")
            distinct = {passage.passage_id for passage in passages}
            source.drop_all("repeated passages", len(passages) - len(distinct), "repetition")
        scored = {passage.passage_id for passage in turn.passages if passage.score is not None}
        source.change_all("passage scores", len(scored), "passage", ranked)
        ids.update(passage.passage_id for passage in turn.passages)
    suspects = (name for name in ids if " " in name or "%" in name or not name.isascii())
    encoded = sum(column(name) != name for name in suspects)
    source.change_all("passage ids", encoded, "id", "with percent signs")


class ConversionTarget(msgspec.Struct, frozen=True):
    """A format to write."""

    suffix: str
    write: Callable[[SourceRun], bytes]
    obeys_eval_response: bool
    """Whether a run that asks not to be judged can be written."""
    needs_team: bool = False
    sources: tuple[str, ...] = ()
    """The formats whose runs can be written; empty for all."""


TARGETS: OpenTable[ConversionTarget] = OpenTable(
    "targets",
    {
        "ikat2025": ConversionTarget(".jsonl", _ikat2025, obeys_eval_response=False, needs_team=True),
        "ikat2024": ConversionTarget(".json", _ikat2024, obeys_eval_response=True),
        "trec-run": ConversionTarget(".provenance.run", _trec_run, obeys_eval_response=True),
    },
)
"""Name on the command line to target."""
