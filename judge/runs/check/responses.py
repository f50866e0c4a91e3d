"""The rules of the field on a run's responses: their texts, their evidence, their PTKB statements. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from operator import attrgetter

import msgspec

from judge.io.text import MAX_ID, count, has_content, shown, storable
from judge.runs.check.entries import EntryScores, check_entries, check_ptkb
from judge.runs.check.rules import RunCheck, below
from judge.runs.fields import member
from judge.runs.formats.shape import ResponsePlace
from judge.runs.ranking import TOP_PASSAGES, absent_evidence, has_scores, used_provenance
from judge.runs.records import Provenance, Response, TokenCount, Turn
from judge.runs.tokens import MAX_CHARS, TokenCounter, joined_words

_ID = attrgetter("passage_id")
_SCORE = attrgetter("score")
_TEXT = attrgetter("text")


class CollectionHashes(msgspec.Struct, frozen=True):
    """The MD5s of a collection's passages, with which the runs' passages are compared."""

    find: Callable[[Sequence[str]], Sequence[bytes | None]]
    """The MD5 of each passage id, None for an id that the collection does not have."""
    same_text: Callable[[str, bytes], bool]
    """Whether a text has an MD5."""


class ResponseCheck:
    """The responses of a run while it is checked, each of which the check is `at`."""

    def __init__(self, check: RunCheck, hashes: CollectionHashes | None) -> None:
        self._check = check
        self._add = check.add
        self._add_entry = check.add_entry
        self._run = check.run
        self._rules = check.rules
        self._hashes = hashes if check.rules.passages is not None else None
        self._md5s: Mapping[str, bytes | None] = {}
        self._unknown: frozenset[str] = frozenset()
        # Whoever has a table without passages does not ask about evidence.
        tabular = self._rules.form == "table"
        self._evidence = self._rules.passages is not None and not (
            tabular and all(not response.listed for turn in check.run.turns for response in turn.responses)
        )

    def text(self, place: ResponsePlace, text: str, tokens: TokenCounter | None) -> None:
        """Check that a response has a text that can be judged; with `tokens`, check its length."""
        path = below(place.path, f".{place.names.text}")
        if not has_content(text):
            what = (
                "empty" if not text else "only characters that cannot be seen" if text.strip() else "only white space"
            )
            self._add("empty_text", path, f"the text is {what}")
        elif len(text) > MAX_CHARS:
            self._add("text_too_long", path, f"{len(text):,} characters, which is over {MAX_CHARS:,}")
        elif not storable(text):
            self._add("unusable_text", path, "the text has a NUL or a lone surrogate, so it cannot be sent or stored")
        elif tokens is not None and (counts := tokens.over(text)) is not None and counts.cut is not None:
            self._add("over_token_limit", path, _lengths(counts, tokens))
        elif tokens is not None and (joined := joined_words(text, tokens.limit)) is not None:
            words, hidden = joined
            message = f"{_lengths(tokens(text), tokens)}, yet {words:,} words where joined ones are split"
            self._add("joined_words", path, f"{message}; invisible characters: {hidden:,}")

    def collection(self) -> None:
        """Look up every passage whose id the collection may have, in one call; most evidence of the run is there."""
        if self._hashes is None:
            return
        distinct = dict.fromkeys(passage.passage_id for turn in self._run.turns for passage in turn.passages)
        ids = [passage_id for passage_id in distinct if 0 < len(passage_id) <= MAX_ID and passage_id.isprintable()]
        self._md5s = dict(zip(ids, self._hashes.find(ids), strict=True)) if ids else {}
        self._unknown = frozenset(passage_id for passage_id, md5 in self._md5s.items() if md5 is None)
        turns = []
        for turn in self._run.turns:
            if turn.responses:
                used, _ = used_provenance(min(turn.responses, key=attrgetter("rank")), self._run.format)
                turns.append((sum(self._md5s.get(passage.passage_id) is None for passage in used), len(used)))
        if message := absent_evidence(turns, "is not in the collection"):
            self._add("absent_evidence", self._rules.turns, message)

    def passages(self, i: int, j: int, response: Response, most: int | None) -> None:
        """Check the evidence that a response names; of `most` passages it may cite."""
        rules = self._rules
        references = response.references
        if not self._evidence:
            return
        turn = self._check.places[i]
        place = self._check.places[i].responses[j]
        base = f"{(turn if rules.keyed else place).path}.{rules.passages}"
        own = f"{place.path}.{place.names.citations}" if rules.keyed else base
        if not (references or response.listed):
            self._add("no_provenance", own if rules.own_turns else base, "no passage, so groundedness cannot be judged")
            return
        # One cheap loop keeps few entries: a run may have 300,000.
        marked = [passage for passage in response.listed if passage.used is not False or passage.text is not None]
        if rules.flags_used:
            self._used(base, own, response, marked)
        if references and j == 0:
            # All responses of a turn share its references: they are checked once.
            self._check.at(i)
            self._entries(base, references, references.values())
            self._check.at(i, j)
        others: Sequence[Provenance] = response.listed
        if references:
            others = [passage for passage in others if passage.passage_id not in references]
        if others:
            self._entries(own, [*map(_ID, others)], [*map(_SCORE, others)], [*map(_TEXT, others)])
        if any(passage.text for passage in marked):
            self._texts(base, response)
        cited = sum(passage.used is True for passage in marked)
        if most is not None and cited > most:
            self._add("too_many_citations", own, f"{cited} used passages, at most {most} are allowed")

    def _used(self, base: str, own: str, response: Response, marked: Sequence[Provenance]) -> None:
        """Check the `used` marks of a list; `marked` has at least the passages that are not marked as unused."""
        absent = any(passage.used is None for passage in marked)
        used = any(passage.used for passage in marked)
        passages = response.listed
        if (used and not absent) or self._unreadable_flag(base, passages):
            return
        if not used:
            scored = has_scores(response.provenance)
            which = "with the highest scores" if scored else "first of the list, where scores are missing,"
            message = f"no passage is marked as used, so the {TOP_PASSAGES} {which} count as used"
            self._add("no_used_passage", own, message)
        else:
            for k in (k for k, passage in enumerate(passages) if passage.used is None):
                message = "not said whether it was used, while others of the list are marked; it counts as not used"
                self._add_entry(base, "missing_used", f"{base}[{k}].used", message)

    def _unreadable_flag(self, base: str, passages: Sequence[Provenance]) -> bool:
        """Whether the reader reported a mark of the list; such a mark is neither present nor absent."""
        silent = self._check.log.silent
        unread = (k for k, passage in enumerate(passages) if passage.used is None) if silent else ()
        # `[*]` stands for problems that were only counted; one of them may be a mark.
        return any(path in silent for k in unread for path in (f"{base}[{k}]", f"{base}[{k}].used", f"{base}[*]"))

    def _entries(self, base: str, ids: Collection[str], scores: EntryScores, texts: Sequence[str | None] = ()) -> None:
        rules = self._rules
        hashes = self._hashes
        check_entries(rules, self._run.run_type, base, ids, scores, partial(self._add_entry, base))
        # Lists without a problem are passed in C: a run may have 300,000 entries.
        if hashes is None or (self._unknown.isdisjoint(ids) and not any(texts)):
            return
        for k, (passage_id, text) in enumerate(zip_longest(ids, texts)):
            md5 = self._md5s.get(passage_id)
            path = member(base, passage_id) if rules.keyed else f"{base}[{k}].id"
            if md5 is None:
                # An id of another form has a problem of its own, or was not looked up.
                if passage_id in self._unknown and (rules.passage_id is None or rules.passage_id.fullmatch(passage_id)):
                    message = f"the collection has no passage {shown(passage_id)}"
                    self._add_entry(base, "unknown_passage", path, message)
            elif text and (not storable(text) or not hashes.same_text(text, md5)):
                message = f"not the collection's text of {shown(passage_id)}, so it is not shown to a judge as evidence"
                self._add_entry(base, "passage_text_differs", f"{base}[{k}].text", message)

    def _texts(self, base: str, response: Response) -> None:
        """Check the texts of the used passages, which a request would quote."""
        used, _ = used_provenance(response, self._run.format)
        for passage in used:
            text = passage.text or ""
            if len(text) > MAX_CHARS:
                code = "text_too_long"
                message = f"{len(text):,} characters, which is over {MAX_CHARS:,}"
            elif not storable(text):
                code = "unusable_text"
                message = "the passage has a NUL or a lone surrogate, so it cannot be sent or stored"
            else:
                continue
            k = next(k for k, listed in enumerate(response.provenance) if listed is passage)
            self._add(code, f"{base}[{k}].text", message)

    def ptkb(self, place: ResponsePlace, response: Response, turn: Turn | None) -> None:
        """Check the PTKB statements that a response names; with `turn`, against those of its topic."""
        if self._rules.ptkb is None:
            return
        base = f"{place.path}.{place.names.ptkb}"
        # A simulated user may have told nothing yet.
        if not response.ptkb_provenance and not self._rules.own_turns:
            self._add("no_ptkb", base, "no PTKB statement")
        check_ptkb(self._rules, base, response.ptkb_provenance, place.statements, turn, partial(self._add_entry, base))


def _lengths(counts: TokenCount, tokens: TokenCounter) -> str:
    """The length of a text by the rule that decides, the limit, and the length by every rule."""
    by_rule = f"bare {counts.bare}, english {counts.english}, whitespace {counts.whitespace}"
    n = count(getattr(counts, tokens.rule), "token")
    return f"{n} by the {tokens.rule} rule, limit {tokens.limit} ({by_rule})"
