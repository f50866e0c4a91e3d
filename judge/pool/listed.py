"""Which passages that runs list are judged: the first ones of each turn. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from judge.io.ids import run_turn_id
from judge.io.text import MAX_ID, shown, storable
from judge.pool.build import Candidate
from judge.pool.records import PooledTurn
from judge.pool.selection import Selection
from judge.runs.formats import rules_of
from judge.runs.ranking import ranking, used_provenance
from judge.runs.records import Exclusion, Provenance, Response, Run, RunTurn


def passage_candidates(
    run: Run, selection: Selection, own: Mapping[str, PooledTurn]
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """The first passages of each turn of a run, and what is excluded.

    Excluded are turns that are not selected, and listed ids under which no passage can be judged. Of a list that is
    judged whole, all are first. `own` has the pool's turns by the ids that the run gives them.
    """
    kept: list[Candidate] = []
    excluded: list[Exclusion] = []
    depth = None if rules_of(run.format).whole_lists else selection.depth
    ranked = ranking(run) if depth is not None else {}
    for turn in {turn.turn_id: turn for turn in reversed(run.turns)}.values():
        turn_id = own[turn.turn_id].turn_id if turn.turn_id in own else turn.turn_id
        if selection.turns is not None and run_turn_id(turn_id) not in selection.turns:
            row = Exclusion(
                run_id=run.run_id,
                turn_id=turn_id,
                rank=None,
                reason="not_selected_turn",
                detail=f"the turn is not among the {len(selection.turns)} selected",
            )
            excluded.append(row)
            continue
        listed: Iterable[str]
        if depth is None:
            listed = dict.fromkeys(passage.passage_id for passage in turn.passages)
        else:
            listed = [passage_id for passage_id, _ in ranked[turn.turn_id]]
        if selection.provenance == "used":
            used = _used(turn.responses, run.format)
            listed = [passage_id for passage_id in listed if passage_id in used]
        order: list[str] = []
        for place, passage_id in enumerate(listed, 1):
            if _is_id(passage_id):
                order.append(passage_id)
            else:
                excluded.append(_without_id(run.run_id, turn_id, place, passage_id))
        first = order[:depth]
        if selection.provenance == "both":
            # The judged response may use what stands far down in its list, or not in it at all.
            used = _used(_first_ranked(turn), run.format)
            order += [passage_id for passage_id in used if passage_id not in order and _is_id(passage_id)]
            first += [passage_id for passage_id in order[len(first) :] if passage_id in used]
        texts = _texts(turn, first)
        ranks = {passage_id: rank for rank, passage_id in enumerate(order, 1)}
        for place, passage_id in enumerate(first):
            beyond = depth is not None and place >= depth
            candidate = Candidate(
                run_id=run.run_id,
                turn_id=turn_id,
                rank=ranks[passage_id],
                text="",
                used=(Provenance(passage_id, text=texts.get(passage_id)),),
                provenance_rule="used" if beyond or selection.provenance == "used" else "ranked",
            )
            kept.append(candidate)
    return tuple(kept), tuple(excluded)


def _without_id(run_id: str, turn_id: str, rank: int, passage_id: str) -> Exclusion:
    """That no passage can be judged under an id."""
    return Exclusion(
        run_id=run_id,
        turn_id=turn_id,
        rank=rank,
        reason="unusable_id",
        detail=f"passage id {shown(passage_id)}: expected 1 to {MAX_ID} characters that can be printed",
    )


def _first_ranked(turn: RunTurn) -> Sequence[Response]:
    """The response that stands for the run in the turn, if there is any."""
    return sorted(turn.responses, key=lambda response: response.rank)[:1]


def _used(responses: Iterable[Response], format: str) -> Mapping[str, None]:
    """The passages that responses use, in their order."""
    used: dict[str, None] = {}
    for response in responses:
        passages, _ = used_provenance(response, format)
        used |= dict.fromkeys(passage.passage_id for passage in passages)
    return used


def _is_id(passage_id: str) -> bool:
    return 0 < len(passage_id) <= MAX_ID and passage_id.isprintable()


def _texts(turn: RunTurn, passage_ids: Sequence[str]) -> dict[str, str]:
    """The texts that a run gives these passages of a turn."""
    wanted = set(passage_ids)
    texts: dict[str, str] = {}
    for passage in turn.passages:
        if passage.text and passage.passage_id in wanted and storable(passage.text):
            texts.setdefault(passage.passage_id, passage.text)
    return texts
