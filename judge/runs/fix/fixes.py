"""Fixes on the decoded JSON of a run: each changes the JSON in place for one code and logs the change. Pure.

A fix is made only where the values have the types of the format; validation reports the others. Paths are those of the
file as it was given.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from judge.runs.fields import Fields
from judge.runs.fix.evidence import fix_passages, fix_ptkb
from judge.runs.fix.log import FixLog, rises, scores_of
from judge.runs.formats import rules_of
from judge.runs.formats.shape import Rules, names_of, turn_label
from judge.runs.records import Run, TokenCount
from judge.runs.tokens import countable, truncated


class Fixer(FixLog):
    """Fixes the turns of one run; `run` gives the format and whether the run is judged."""

    def __init__(self, run: Run, count_tokens: Callable[[str], TokenCount]) -> None:
        super().__init__(run.file)
        self.rules: Rules = rules_of(run.format)
        self._format = run.format
        self._texts = run.eval_response
        self.count_tokens = count_tokens

    def run(self, value: Any) -> None:
        """Fix a run that is one JSON object."""
        turns = value.get("turns") if type(value) is dict else None
        for i, turn in enumerate(turns if type(turns) is list else ()):
            self.turn(turn, f"$.turns[{i}]")

    def turn(self, turn: Any, path: str) -> None:
        """Fix one turn; `path` is its JSON path."""
        if type(turn) is not dict:
            return
        self.turn_id = turn_label(turn, self.rules.turn_id)
        if self.rules.fix is not None:
            self.rules.fix(self, turn, path)
            return
        if self.rules.keyed:
            self.coerce_members(turn.get("references"), f"{path}.references")
            self._order_references(turn, f"{path}.references")
        responses = turn.get("responses")
        if type(responses) is not list:
            return
        for j, response in enumerate(responses):
            if type(response) is dict:
                self._response(response, turn, f"{path}.responses[{j}]")
        self._order_responses(turn, responses, f"{path}.responses")

    def _response(self, response: dict[str, Any], turn: dict[str, Any], path: str) -> None:
        self.coerce(response, "rank", path, Fields.integer)
        names = names_of(self.rules, response)
        self._shorten(response, names.text, path)
        if self.rules.keyed:
            self.coerce_members(response.get(names.citations), f"{path}.{names.citations}")
            self._order_citations(response, names.citations, turn.get("references"), path)
        elif self.rules.passages is not None:
            passages = response.get(self.rules.passages)
            fix_passages(self, self.rules, self._format, passages, f"{path}.{self.rules.passages}")
        if self.rules.ptkb is not None:
            holder, _, name = names.ptkb.rpartition(".")
            owner = response.get(holder) if holder else response
            statements = owner.get(name) if type(owner) is dict else None
            fix_ptkb(self, self.rules, statements, f"{path}.{names.ptkb}")

    def _shorten(self, response: dict[str, Any], name: str, path: str) -> None:
        """Cut an over-long text after the last token within the limit."""
        text = response.get(name)
        if not (self._texts and type(text) is str and countable(text)):
            return
        kept, _ = truncated(text, self.count_tokens)
        if len(kept) < len(text) and kept.strip():
            response[name] = kept
            self.note("over_token_limit", f"{path}.{name}", text, kept)

    def _order_references(self, turn: dict[str, Any], path: str) -> None:
        references = turn.get("references")
        if type(references) is dict and (scores := scores_of(references.values())) and rises(scores):
            turn["references"] = self._sorted_members(references, path)

    def _order_citations(self, response: dict[str, Any], name: str, references: Any, path: str) -> None:
        """Order the citations by score if those that are not references, which alone count, are out of order."""
        citations = response.get(name)
        if type(citations) is not dict or not scores_of(citations.values()):
            return
        listed = references if type(references) is dict else {}
        if rises([score for passage_id, score in citations.items() if passage_id not in listed]):
            response[name] = self._sorted_members(citations, f"{path}.{name}")

    def _sorted_members(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        ids = list(value)
        order = sorted(range(len(ids)), key=lambda k: -value[ids[k]])
        self.moved("scores_not_decreasing", path, ids, order)
        return {ids[k]: value[ids[k]] for k in order}

    def _order_responses(self, turn: dict[str, Any], responses: list[Any], path: str) -> None:
        """Order the responses of a turn by rank where all ranks can be read."""
        ranks: list[Any] = [response.get("rank") if type(response) is dict else None for response in responses]
        if all(type(rank) is int and rank >= 1 for rank in ranks) and _falls_anew(ranks):
            order = sorted(range(len(ranks)), key=lambda j: ranks[j])
            self.moved("ranks_not_increasing", path, ranks, order)
            turn["responses"] = [responses[j] for j in order]


def _falls_anew(ranks: Sequence[Any]) -> bool:
    """Whether some rank is below the one before; a rank that was already given is another problem."""
    return any(rank < previous and rank not in ranks[:j] for j, (previous, rank) in enumerate(pairwise(ranks), start=1))
