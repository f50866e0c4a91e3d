"""One run as a file of another format, one of `TARGETS`, with a log of each value that is dropped or changed.

Turn, text and used passages, which make a response distinct in a pool, are kept wherever the target can hold them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any

import msgspec

from judge.io.cells import count
from judge.io.safe import escape_cell, shown, storable
from judge.io.trec import column
from judge.records import Problem
from judge.runs.formats import ikat2024, ikat2025, rules_of
from judge.runs.formats.shape import PtkbEntry, ResponsePlace, Rules, TurnPlace
from judge.runs.ranking import MAX_PASSAGES, TOP_PASSAGES, has_scores, provenance_run, used_provenance
from judge.runs.records import Provenance, Response, Run, RunTurn, Turn

HEADER = ("file", "turn_id", "rank", "what", "from", "to")


class Change(msgspec.Struct, frozen=True):
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


class Changes:
    """The changes of one run in the order of its turns; `turn_id` and `rank` are those of the response in work.

    Changes of a whole kind are counted, and make one row for the run.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.turn_id: str | None = None
        self.rank: int | None = None
        self._rows: list[Change] = []
        self._sums: Counter[tuple[str, str, str, bool]] = Counter()

    @property
    def rows(self) -> tuple[Change, ...]:
        """All changes; those of the whole run come last."""
        sums = (
            Change(self.file, None, None, what, count(number, noun), after, dropped)
            for (what, noun, after, dropped), number in self._sums.items()
        )
        return (*self._rows, *sums)

    def dropped(self, what: str, before: str, after: str = "") -> None:
        """Log a value that the target cannot hold."""
        self._add(what, before, after, dropped=True)

    def altered(self, what: str, before: str, after: str) -> None:
        """Log a value that the target writes in another form."""
        self._add(what, before, after, dropped=False)

    def dropped_all(self, what: str, number: int, noun: str, after: str = "") -> None:
        """Count values of a kind that the target cannot hold."""
        self._sum(what, number, noun, after, dropped=True)

    def altered_all(self, what: str, number: int, noun: str, after: str) -> None:
        """Count values of a kind that the target writes in another form."""
        self._sum(what, number, noun, after, dropped=False)

    def _sum(self, what: str, number: int, noun: str, after: str, *, dropped: bool) -> None:
        if number:
            self._sums[what, noun, after, dropped] += number

    def _add(self, what: str, before: str, after: str, *, dropped: bool) -> None:
        self._rows.append(Change(self.file, self.turn_id, self.rank, what, before, after, dropped))


def listed(texts: Iterable[str]) -> str:
    """Texts from a run in one cell, each shortened and escaped."""
    return ", ".join(shown(text) for text in texts)


def tally(changes: Iterable[Change]) -> tuple[tuple[str, bool, int], ...]:
    """(what changed, whether it was lost, how often), in alphabetical order."""
    counts = Counter((change.what, change.dropped) for change in changes)
    return tuple((what, dropped, count) for (what, dropped), count in sorted(counts.items()))


def conversion_tsv(changes: Iterable[Change]) -> bytes:
    """The log as TSV under HEADER; a change of the whole run has the turn `*`."""
    lines = ["\t".join(HEADER)]
    for change in changes:
        rank = "" if change.rank is None else str(change.rank)
        cells = (change.file, change.turn_id or "*", rank, change.what, change.before, change.after)
        lines.append("\t".join(map(escape_cell, cells)))
    return ("\n".join(lines) + "\n").encode()


_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


class ConvertedRun(msgspec.Struct, frozen=True):
    """A run to convert, with the topics and the team that may be known."""

    run: Run
    places: tuple[TurnPlace, ...]
    problems: tuple[Problem, ...]
    """The problems that its reader reported; some of them explain why the record lacks values of the file."""
    turns: Mapping[str, Turn] | None
    """The turns of the topics by turn id."""
    team: str | None
    """The team id to write where the target has one; None for the run's own."""

    def statements(self, turn_id: str) -> dict[str, str]:
        """The PTKB of a turn's topic, number to text; empty without topics."""
        turn = self.turns.get(turn_id) if self.turns is not None else None
        return {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}


class ConversionTarget(msgspec.Struct, frozen=True):
    """A format to write."""

    suffix: str
    write: Callable[[ConvertedRun, Changes], bytes]
    obeys_eval_response: bool
    """Whether a run that asks not to be judged can be written."""
    needs_team: bool = False


def _ikat2024(source: ConvertedRun, changes: Changes) -> bytes:
    run = source.run
    if run.team is not None:
        changes.dropped("team", run.team)
    _lost_in_reading(source, changes)
    _form_lost_in_reading(source, changes)
    turns = []
    for turn, place in _turns(source, changes):
        responses = []
        for response, where in _responses(turn, place, changes):
            ptkb = _numbers(response, where, source, turn.turn_id, changes)
            entries = _entries(response, changes)
            text = _storable(response.text, changes)
            responses.append(
                {"rank": response.rank, "text": text, "ptkb_provenance": ptkb, "passage_provenance": entries}
            )
        turns.append({"turn_id": turn.turn_id, "responses": responses})
    run_type = _run_type(run, {"generation-only": "only_response"}, ikat2024.RULES, changes)
    head = {"run_name": run.run_id, "run_type": run_type, "eval_response": run.eval_response}
    return msgspec.json.format(msgspec.json.encode(head | {"turns": turns}), indent=1) + b"\n"


def _entries(response: Response, changes: Changes) -> list[dict[str, Any]]:
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
        changes.dropped("passage scores", count(missing, "score") + " not finite, which JSON cannot hold")
    if unusable:
        changes.dropped("passage texts", count(unusable, "text") + " with NUL or a lone surrogate")
    return entries


def _numbers(
    response: Response, where: ResponsePlace, source: ConvertedRun, turn_id: str, changes: Changes
) -> list[int]:
    """The PTKB provenance as numbers of the topic's statements."""
    if rules_of(source.run.format).ptkb == "texts":
        numbers: dict[str, str] = {}
        for ptkb_id, text in source.statements(turn_id).items():
            numbers.setdefault(text, ptkb_id)
        named = [(text, numbers.get(text, "")) for text in response.ptkb_provenance]
    else:
        named = [(ptkb_id, ptkb_id) for ptkb_id in response.ptkb_provenance]
        told = sum(bool(text) or score is not None for text, score in where.statements)
        changes.dropped_all("PTKB texts and scores", told, "statement", "numbers alone")
    lost = [name for name, number in named if not _NUMBER.fullmatch(number)]
    if lost:
        changes.dropped("PTKB statements", listed(lost), _why(source, turn_id))
    return [int(number) for _, number in named if _NUMBER.fullmatch(number)]


def _ikat2025(source: ConvertedRun, changes: Changes) -> bytes:
    run = source.run
    run_type = _run_type(run, {"only_response": "generation-only"}, ikat2025.RULES, changes)
    team = source.team or run.team or ""
    if run.team is not None and team != run.team:
        changes.altered("team", run.team, team)
    metadata = {"team_id": team, "run_id": run.run_id, "run_type": run_type}
    _lost_in_reading(source, changes)
    _form_lost_in_reading(source, changes)
    lines = []
    for turn, place in _turns(source, changes):
        listed_first = _references(turn, place, changes)
        references = dict(sorted(listed_first.items(), key=lambda item: -item[1]))
        changes.altered_all(
            "order of the references", list(references) != list(listed_first), "turn", "by falling score"
        )
        responses = []
        for response, where in _responses(turn, place, changes):
            citations = _citations(response, run.format, listed_first, changes)
            ptkb = _statements(response, where, source, turn.turn_id, changes)
            text = _storable(response.text, changes)
            responses.append({"rank": response.rank, "text": text, "citations": citations, "ptkb_provenance": ptkb})
        line = {"metadata": metadata, "turn_id": turn.turn_id, "responses": responses, "references": references}
        lines.append(msgspec.json.encode(line) + b"\n")
    return b"".join(lines)


def _references(turn: RunTurn, place: TurnPlace, changes: Changes) -> dict[str, float]:
    """The passages of all responses of a turn, each once, with a number for a score."""
    first: dict[str, Provenance] = {}
    other_scores: set[str] = set()
    for response in turn.responses:
        for passage in response.provenance:
            kept = first.setdefault(passage.passage_id, passage)
            if passage.score != kept.score:
                other_scores.add(passage.passage_id)
    if other_scores:
        changes.dropped("passage scores", f"other scores elsewhere in the turn of {listed(sorted(other_scores))}")
    if any(where.extra for where in place.responses):
        changes.altered("references", "citations outside the references", "citations are references")
    if has_scores(tuple(first.values())):
        return {passage_id: passage.score or 0.0 for passage_id, passage in first.items()}
    # Without scores the order of the list counts, and scores by place keep it.
    changes.altered("passage scores", "missing or not finite", f"{len(first)}.0 to 1.0 by place in the list")
    return {passage_id: float(len(first) - k) for k, passage_id in enumerate(first)}


def _citations(response: Response, format: str, references: Mapping[str, float], changes: Changes) -> dict[str, float]:
    """The used passages; every difference for a reader of the new file is logged."""
    provenance = response.provenance
    used, rule = used_provenance(response, format)
    if rule == "top5" and used:
        changes.altered("citations", "no passage flagged as used", f"the first {len(used)} by rank are cited")
    elif not used and references:
        after = f"with no citation the turn's first {TOP_PASSAGES} references count as used"
        changes.altered("citations", "a response without passages", after)
    ids = list(dict.fromkeys(passage.passage_id for passage in provenance))
    if len(ids) < len(provenance):
        changes.dropped("repeated passages", count(len(provenance) - len(ids), "repetition"))
    if ids and ids != list(references):
        before = count(len(ids), "passage") + " in a list of its own"
        changes.dropped("passage list", before, f"the turn's {count(len(references), 'reference')}")
    changes.dropped_all("passage texts", sum(passage.text is not None for passage in provenance), "text")
    return {passage.passage_id: references[passage.passage_id] for passage in used}


def _statements(
    response: Response, where: ResponsePlace, source: ConvertedRun, turn_id: str, changes: Changes
) -> list[str]:
    """The PTKB provenance as texts: the topic's, or the run's own where the topic's is not known."""
    given: Sequence[PtkbEntry] = where.statements or ((None, None),) * len(response.ptkb_provenance)
    if rules_of(source.run.format).ptkb == "texts":
        named = [(text, text) for text in response.ptkb_provenance]
    else:
        known = source.statements(turn_id)
        pairs = zip(response.ptkb_provenance, given, strict=True)
        named = [(ptkb_id, known.get(ptkb_id) or text or "") for ptkb_id, (text, _) in pairs]
    changes.dropped_all("PTKB scores", sum(score is not None for _, score in given), "statement")
    lost = [name for name, text in named if not (text and storable(text))]
    if lost:
        changes.dropped("PTKB statements", listed(lost), _why(source, turn_id))
    return [text for _, text in named if text and storable(text)]


def _why(source: ConvertedRun, turn_id: str) -> str:
    """Why a statement was dropped."""
    if source.turns is None:
        return "dropped: no topics given"
    return "dropped: not in the topic's PTKB" if turn_id in source.turns else "dropped: the topics have no such turn"


def _lost_in_reading(source: ConvertedRun, changes: Changes) -> None:
    """Log the values of the file that the record of a run does not hold."""
    _noted(source, "unknown_field", "field", partial(changes.dropped, "unknown fields"))
    _noted(source, "inconsistent_metadata", "value", partial(changes.dropped, "metadata of later lines"))


def _form_lost_in_reading(source: ConvertedRun, changes: Changes) -> None:
    """Log the values that the file has in another form than records and JSON targets."""
    form = partial(changes.altered, "numbers in another form", after="numbers")
    _noted(source, "coerced_value", "value", form)
    if rules_of(source.run.format).keyed:
        every = (passage for turn in source.run.turns for response in turn.responses for passage in response.provenance)
        cited = sum(passage.used is True for passage in every)
        changes.altered_all("citations", cited, "citation", "with the references' scores and in their order")


def _noted(source: ConvertedRun, code: str, noun: str, note: Callable[[str], None]) -> None:
    problems = [problem for problem in source.problems if problem.code == code]
    if problems:
        note(f"{count(sum(problem.count for problem in problems), noun)}, the first at {problems[0].path}")


def _trec_run(source: ConvertedRun, changes: Changes) -> bytes:
    _only_in_a_run(source, changes)
    for turn, place in _turns(source, changes):
        ranked = {passage.passage_id for response in turn.responses for passage in response.provenance}
        if len(ranked) > MAX_PASSAGES:
            before = count(len(ranked) - MAX_PASSAGES, "passage") + f" beyond the first {MAX_PASSAGES}"
            changes.dropped("passages", before)
        for response, _ in _responses(turn, place, changes):
            if not response.provenance:
                changes.dropped("response", "no passages to rank")
    return provenance_run(source.run).encode()


def _only_in_a_run(source: ConvertedRun, changes: Changes) -> None:
    """Log every value that a ranking of passages has no column for."""
    run = source.run
    _lost_in_reading(source, changes)
    for field, value in (("team", run.team), ("run type", run.run_type)):
        if value:
            changes.dropped(field, value)
    if not run.eval_response:
        changes.dropped("eval_response", "false")
    if column(run.run_id) != run.run_id:
        changes.altered("run id", run.run_id, column(run.run_id))
    keyed = rules_of(run.format).keyed
    ranked = "from the number of the turn's passages down to 1"
    ids: set[str] = set()
    for turn in run.turns:
        changes.altered_all("several responses", len(turn.responses) > 1, "turn", "one ranking of all their passages")
        for response in turn.responses:
            passages = response.provenance
            changes.dropped_all("response texts", 1, "response")
            changes.dropped_all("PTKB provenance", len(response.ptkb_provenance), "statement")
            told = sum(passage.used is True or (passage.used is False and not keyed) for passage in passages)
            changes.dropped_all("citations" if keyed else "used flags", told, "passage")
            changes.dropped_all("passage texts", sum(passage.text is not None for passage in passages), "text")
            distinct = {passage.passage_id for passage in passages}
            changes.dropped_all("repeated passages", len(passages) - len(distinct), "repetition")
        listed_passages = [passage for response in turn.responses for passage in response.provenance]
        scored = {passage.passage_id for passage in listed_passages if passage.score is not None}
        changes.altered_all("passage scores", len(scored), "passage", ranked)
        ids.update(passage.passage_id for passage in listed_passages)
    suspects = (name for name in ids if " " in name or "%" in name or not name.isascii())
    encoded = sum(column(name) != name for name in suspects)
    changes.altered_all("passage ids", encoded, "id", "with percent signs")


def _turns(source: ConvertedRun, changes: Changes) -> Iterable[tuple[RunTurn, TurnPlace]]:
    for turn, place in zip(source.run.turns, source.places, strict=True):
        changes.turn_id, changes.rank = turn.turn_id, None
        changes.dropped_all("utterances of the user", turn.utterance is not None, "turn")
        changes.dropped_all("PTKB as told", len(turn.ptkb), "statement")
        yield turn, place
    changes.turn_id = changes.rank = None


def _responses(turn: RunTurn, place: TurnPlace, changes: Changes) -> Iterable[tuple[Response, ResponsePlace]]:
    for response, where in zip(turn.responses, place.responses, strict=True):
        changes.rank = response.rank
        yield response, where
    changes.rank = None


def _run_type(run: Run, names: Mapping[str, str], target: Rules, changes: Changes) -> str:
    """The run's type by the target's name for it."""
    known = target.run_types
    before = run.run_type or ""
    after = names.get(before, before)
    if after != before:
        changes.altered("run type", before, after)
    elif after not in known:
        changes.altered("run type", before, f"kept, though the format has only {', '.join(known)}")
    return after


def _storable(text: str, changes: Changes) -> str:
    """A response's text; "" for one that JSON cannot hold, which only a run that is not judged may have."""
    if storable(text):
        return text
    changes.dropped("response text", "NUL or a lone surrogate in the text")
    return ""


TARGETS = {
    "ikat2025": ConversionTarget(".jsonl", _ikat2025, obeys_eval_response=False, needs_team=True),
    "ikat2024": ConversionTarget(".json", _ikat2024, obeys_eval_response=True),
    "trec-run": ConversionTarget(".provenance.run", _trec_run, obeys_eval_response=True),
}
"""Name on the command line to target."""
