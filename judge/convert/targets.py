"""One run as a file of another format; `TARGETS` says which there are.

What makes a response distinct in a pool (turn, text, used passages) is kept wherever the target can say it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from judge.convert.changes import Changes, counted, listed
from judge.provenance import TOP_PASSAGES, has_scores, used_provenance
from judge.provenance_run import MAX_PASSAGES, provenance_run
from judge.records import Provenance, Response, Run, RunTurn, Turn
from judge.runs import rules_of
from judge.runs.shape import ResponsePlace, Statement, TurnPlace
from judge.text import storable

_PTKB_ID = re.compile(r"-?[0-9]{1,9}", re.ASCII)


class Source(msgspec.Struct, frozen=True):
    """A run to convert and what may be known about it from elsewhere."""

    run: Run
    places: tuple[TurnPlace, ...]
    turns: Mapping[str, Turn] | None
    """The turns of the topics by turn id."""
    team: str | None
    """The team id to write where the target has one; None for the run's own."""

    def statements(self, turn_id: str) -> dict[str, str]:
        """The PTKB of a turn's topic, number to text; empty where it is not known."""
        turn = self.turns.get(turn_id) if self.turns is not None else None
        return {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}


class Target(msgspec.Struct, frozen=True):
    """A format to write."""

    suffix: str
    write: Callable[[Source, Changes], bytes]
    obeys_eval_response: bool
    """Whether a run that asks not to be judged can be written."""
    needs_team: bool = False


def _ikat2024(source: Source, changes: Changes) -> bytes:
    run = source.run
    if run.team is not None:
        changes.dropped("team", run.team)
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
    run_type = _run_type(run, {"generation-only": "only_response"}, "ikat2024", changes)
    head = {"run_name": run.run_id, "run_type": run_type, "eval_response": run.eval_response}
    return msgspec.json.format(msgspec.json.encode(head | {"turns": turns}), indent=1) + b"\n"


def _entries(response: Response, changes: Changes) -> list[dict[str, Any]]:
    """A response's passages as 2024 has them: flags as they were, texts where there are any."""
    missing = unusable = 0
    entries: list[dict[str, Any]] = []
    for passage in response.provenance:
        entry: dict[str, Any] = {"id": passage.passage_id, "used": passage.used is True}
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
        changes.dropped("passage scores", counted(missing, "score") + " not finite, which JSON cannot hold")
    if unusable:
        changes.dropped("passage texts", counted(unusable, "text") + " with NUL or a lone surrogate")
    return entries


def _numbers(response: Response, where: ResponsePlace, source: Source, turn_id: str, changes: Changes) -> list[int]:
    """The PTKB provenance as numbers of the topic's statements."""
    if source.run.format == "ikat2025":
        numbers: dict[str, str] = {}
        for ptkb_id, text in source.statements(turn_id).items():
            numbers.setdefault(text, ptkb_id)
        found = [(text, numbers.get(text, "")) for text in response.ptkb_provenance]
    else:
        found = [(ptkb_id, ptkb_id) for ptkb_id in response.ptkb_provenance]
        if any(text or score is not None for text, score in where.statements):
            changes.dropped("PTKB texts and scores", counted(len(where.statements), "statement"), "numbers alone")
    lost = [name for name, number in found if not _PTKB_ID.fullmatch(number)]
    if lost:
        changes.dropped("PTKB statements", listed(lost), _why(source, turn_id))
    return [int(number) for _, number in found if _PTKB_ID.fullmatch(number)]


def _ikat2025(source: Source, changes: Changes) -> bytes:
    run = source.run
    run_type = _run_type(run, {"only_response": "generation-only"}, "ikat2025", changes)
    team = source.team or run.team or ""
    if run.team is not None and team != run.team:
        changes.altered("team", run.team, team)
    metadata = {"team_id": team, "run_id": run.run_id, "run_type": run_type}
    lines = []
    for turn, place in _turns(source, changes):
        references = _references(turn, place, changes)
        responses = []
        for response, where in _responses(turn, place, changes):
            citations = _citations(response, run.format, references, changes)
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
    # Without scores the order of the list counts, and scores by place say just that.
    changes.altered("passage scores", "missing or not finite", f"{len(first)}.0 to 1.0 by place in the list")
    return {passage_id: float(len(first) - k) for k, passage_id in enumerate(first)}


def _citations(response: Response, format: str, references: Mapping[str, float], changes: Changes) -> dict[str, float]:
    """The used passages, with a note of all that a reader of the new file would see otherwise."""
    provenance = response.provenance
    used, rule = used_provenance(response, format)
    if rule == "top5" and used:
        changes.altered("citations", "no passage flagged as used", f"the first {len(used)} by rank are cited")
    elif not used and references:
        after = f"with no citation the turn's first {TOP_PASSAGES} references count as used"
        changes.altered("citations", "a response without passages", after)
    ids = list(dict.fromkeys(passage.passage_id for passage in provenance))
    if len(ids) < len(provenance):
        changes.dropped("repeated passages", counted(len(provenance) - len(ids), "repetition"))
    if ids and ids != list(references):
        before = counted(len(ids), "passage") + " in a list of its own"
        changes.dropped("passage list", before, f"the turn's {counted(len(references), 'reference')}")
    texts = sum(passage.text is not None for passage in provenance)
    if texts:
        changes.dropped("passage texts", counted(texts, "text"))
    return {passage.passage_id: references[passage.passage_id] for passage in used}


def _statements(response: Response, where: ResponsePlace, source: Source, turn_id: str, changes: Changes) -> list[str]:
    """The PTKB provenance as texts: the topic's, or the run's own where the topic's is not known."""
    given: Sequence[Statement] = where.statements or ((None, None),) * len(response.ptkb_provenance)
    if source.run.format == "ikat2025":
        found = [(text, text) for text in response.ptkb_provenance]
    else:
        known = source.statements(turn_id)
        pairs = zip(response.ptkb_provenance, given, strict=True)
        found = [(ptkb_id, known.get(ptkb_id) or text or "") for ptkb_id, (text, _) in pairs]
    if any(score is not None for _, score in given):
        changes.dropped("PTKB scores", counted(len(given), "statement"))
    lost = [name for name, text in found if not (text and storable(text))]
    if lost:
        changes.dropped("PTKB statements", listed(lost), _why(source, turn_id))
    return [text for _, text in found if text and storable(text)]


def _why(source: Source, turn_id: str) -> str:
    """Why a statement could not be found."""
    if source.turns is None:
        return "dropped: no topics given"
    return "dropped: not in the topic's PTKB" if turn_id in source.turns else "dropped: the topics have no such turn"


def _trec_run(source: Source, changes: Changes) -> bytes:
    for turn, place in _turns(source, changes):
        ranked = {passage.passage_id for response in turn.responses for passage in response.provenance}
        if len(ranked) > MAX_PASSAGES:
            before = counted(len(ranked) - MAX_PASSAGES, "passage") + f" beyond the first {MAX_PASSAGES}"
            changes.dropped("passages", before)
        for response, _ in _responses(turn, place, changes):
            if not response.provenance:
                changes.dropped("response", "no passages to rank")
    return provenance_run(source.run).encode()


def _turns(source: Source, changes: Changes) -> Iterable[tuple[RunTurn, TurnPlace]]:
    for turn, place in zip(source.run.turns, source.places, strict=True):
        changes.turn_id, changes.rank = turn.turn_id, None
        yield turn, place
    changes.turn_id = changes.rank = None


def _responses(turn: RunTurn, place: TurnPlace, changes: Changes) -> Iterable[tuple[Response, ResponsePlace]]:
    for response, where in zip(turn.responses, place.responses, strict=True):
        changes.rank = response.rank
        yield response, where
    changes.rank = None


def _run_type(run: Run, names: Mapping[str, str], format: str, changes: Changes) -> str:
    """The run's type in the words of `format`."""
    known = rules_of(format).run_types
    before = run.run_type or ""
    after = names.get(before, before)
    if after != before:
        changes.altered("run type", before, after)
    elif after not in known:
        changes.altered("run type", before, f"kept, though the format has only {', '.join(known)}")
    return after


def _storable(text: str, changes: Changes) -> str:
    """A response's text; only one that nobody is to judge may still have what JSON cannot hold."""
    if storable(text):
        return text
    changes.dropped("response text", "NUL or a lone surrogate in the text")
    return ""


TARGETS = {
    "ikat2025": Target(".jsonl", _ikat2025, obeys_eval_response=False, needs_team=True),
    "ikat2024": Target(".json", _ikat2024, obeys_eval_response=True),
    "trec-run": Target(".provenance.run", _trec_run, obeys_eval_response=True),
}
"""Name on the command line to what is written."""
