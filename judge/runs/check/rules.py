"""The rules of the field on one run: its turns, responses and evidence, and what its errors take out. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from operator import attrgetter

import msgspec

from judge.io.ids import natural_key, topic_of
from judge.io.text import MAX_ID, count, has_content, printable_id, shown, storable
from judge.records import Problem
from judge.runs.check import CODES, as_error
from judge.runs.check.entries import EntryScores, check_entries, check_ptkb
from judge.runs.fields import ProblemLog, ancestors, member, usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.formats.shape import ReadRun, ResponsePlace
from judge.runs.ranking import TOP_PASSAGES, absent_evidence, has_scores, used_provenance
from judge.runs.records import Provenance, Response, Run, RunTurn, TokenCount, Turn
from judge.runs.tokens import MAX_CHARS, TokenCounter, joined_words

MAX_RANK = 1_000_000
_LONGEST = 6
"""The most digits of a turn number that is compared with others."""
_ID = attrgetter("passage_id")
_SCORE = attrgetter("score")
_TEXT = attrgetter("text")


class CollectionHashes(msgspec.Struct, frozen=True):
    """The MD5s of a collection's passages, with which the runs' passages are compared."""

    find: Callable[[Sequence[str]], Sequence[bytes | None]]
    """The MD5 of each passage id, None for an id that the collection does not have."""
    same_text: Callable[[str, bytes], bool]
    """Whether a text has an MD5."""


class RunCheck:
    """One run while it is checked: its problems, and the turns and responses that its errors take out.

    A problem is of the turn and the response `at` which the check is, or of the whole run.
    """

    def __init__(self, read: ReadRun, run: Run, hashes: CollectionHashes | None, errors: Collection[str] = ()) -> None:
        """`errors` are codes of warnings that are errors here."""
        self.run, self.rules, self.places = run, rules_of(run.format), read.places
        known = [as_error(problem) if problem.code in errors else problem for problem in read.problems]
        complaints = [problem for problem in known if problem.severity == "error"]
        self.log = ProblemLog(run.file, known, {problem.path for problem in complaints}, errors=errors)
        self.whole: tuple[str, str] | None = None
        """Code and detail of the first error of the whole run."""
        self.out: dict[tuple[int, int | None], tuple[str, str]] = {}
        """Index of a turn, and of a response in it or None for the whole turn, to its first error."""
        self.lost: list[Problem] = []
        self._at: tuple[int, int | None] | None = None
        self._of_others: set[int] = set()
        """Places of turns that the file says are another run's."""
        self._first: dict[str, str] = {}
        """The path of the first turn of each id."""
        self._hashes = hashes if self.rules.passages is not None else None
        self._md5s: Mapping[str, bytes | None] = {}
        self._unknown: frozenset[str] = frozenset()
        owners: dict[str, tuple[int, int | None]] = {}
        for i, place in enumerate(self.places):
            owners[place.path] = (i, None)
            owners.update((response.path, (i, j)) for j, response in enumerate(place.responses))
        for problem in complaints:
            owner = next((owners[path] for path in ancestors(problem.path) if path in owners), None)
            if owner is not None:
                self._take_out(owner, problem.code, problem.path, problem.message)
                if problem.code == "several_runs":
                    self._of_others.add(owner[0])
            elif problem.path.startswith("$") and "[" not in problem.path:
                self._take_out(None, problem.code, problem.path, problem.message)
            else:
                self.lost.append(problem)

    def at(self, i: int | None, j: int | None = None) -> None:
        """Go to a response, a turn or the whole run."""
        self._at = None if i is None else (i, j)
        self.log.turn_id = None if i is None else printable_id(self.run.turns[i].turn_id) or None

    def add(self, code: str, path: str, message: str) -> None:
        """Add a problem; an error takes out what it is of."""
        self.log.add(code, path, message)
        self._take_out(self._at, code, path, message)

    def add_entry(self, base: str, code: str, path: str, message: str) -> None:
        """Add a problem of an entry in the list at `base`; an error takes out the same as in `add`."""
        self.log.add_entry(base, code, path, message)
        self._take_out(self._at, code, path, message)

    def _take_out(self, owner: tuple[int, int | None] | None, code: str, path: str, message: str) -> None:
        if CODES[code].severity != "error" and code not in self.log.errors:
            return
        if owner is None:
            self.whole = self.whole or (code, detail_of(path, message))
        else:
            self.out.setdefault(owner, (code, detail_of(path, message)))

    def head(self) -> None:
        """Check what the run says of itself."""
        run = self.run
        rules = self.rules
        # Where every turn names the run, the first one stands for it.
        first = self.places[0].path if self.places else "$"
        top = first if rules.form == "entries" else first.rpartition("$")[0] + "$"

        def path(member: str) -> str:
            return top + member.removeprefix("$") if member.startswith("$") else member

        if not run.run_id.strip():
            self.add("empty_run_id", path(rules.run_id), "the run has no name")
        elif not run.run_id.isprintable() or len(run.run_id) > MAX_ID:
            message = f"{shown(run.run_id)} has unprintable characters or more than {MAX_ID} characters"
            self.add("unusable_run_id", path(rules.run_id), message)
        expected = "one of " + ", ".join(rules.run_types)
        if rules.run_type is not None and not run.run_type:
            self.add("empty_run_type", path(rules.run_type), f"missing or empty, expected {expected}")
        elif rules.run_type is not None and run.run_type not in rules.run_types:
            self.add("unknown_run_type", path(rules.run_type), f"{shown(run.run_type)} is not {expected}")
        if not run.turns:
            self.add("no_turns", rules.turns, "the run has no turns")

    def wrong_topics(self, reason: str) -> None:
        """Report once, for the whole run, why it is not for the topics."""
        message = f"{reason}, so the topics are of another year or the run is; nothing else was compared with them"
        self.add("wrong_topics", self.rules.turns or _below(self.places[0].path, self.rules.turn_id), message)

    def turn(self, i: int, turn: RunTurn) -> None:
        """Check a turn's id and its responses' ranks."""
        place = self.places[i]
        path = _below(place.path, self.rules.turn_id)
        if not usable_turn_id(turn.turn_id):
            message = f"{shown(turn.turn_id)} is not a turn id such as 9-1_3, 0_3 or 132_1-3"
            self.add("malformed_turn_id", path, message)
        elif turn.turn_id in self._first:
            message = f"{turn.turn_id} was already at {self._first[turn.turn_id]}; only the first counts"
            self.add("duplicate_turn", path, message)
        # Where users led the conversations, another run's turn does not take the place of this run's.
        if not (self.rules.own_turns and i in self._of_others):
            self._first.setdefault(turn.turn_id, place.path)
        if not turn.responses:
            self.add("no_response", _below(place.path, ".responses"), "the turn has no response")
        ranks: set[int] = set()
        last = 0
        known = True
        for j, response in enumerate(turn.responses):
            self.at(i, j)
            path = _below(place.responses[j].path, ".rank")
            rank = response.rank
            if not 1 <= rank <= MAX_RANK:
                self.add("bad_rank", path, f"rank {shown(rank)}, expected 1 to {MAX_RANK:,}")
                known = False
                continue
            if rank in ranks:
                message = f"rank {rank} was already given in this turn; only the first response with it counts"
                self.add("duplicate_rank", path, message)
            elif rank < last:
                self.add("ranks_not_increasing", path, f"rank {rank} after rank {last}")
            ranks.add(rank)
            last = rank
        self.at(i)
        if ranks and 1 not in ranks and known:
            self.add("no_rank_one", _below(place.path, ".responses"), f"the best rank is {min(ranks)}")

    def known_turn(
        self, i: int, turn_id: str, turns: Mapping[str, Turn], highest: Mapping[str, int | None]
    ) -> Turn | None:
        """The turn of the topics that a run's turn is; if the topics cannot have it, a problem is reported.

        `highest` is the number of each topic's last turn. Where users led the conversations, a topic may have any turn.
        """
        topic_id = topic_of(turn_id)
        number = turn_id.rpartition("_")[2]
        turn = None if self.rules.own_turns else turns.get(turn_id)
        if turn is not None or not usable_turn_id(turn_id) or (self.rules.own_turns and topic_id in highest):
            return turn
        path = _below(self.places[i].path, self.rules.turn_id)
        last = highest.get(topic_id)
        if last is not None and re.fullmatch("[0-9]{1,9}", number) and int(number) > last:
            message = f"topic {topic_id} has {last} turns, so there is no turn {number}"
            self.add("turn_number_too_high", path, message)
        else:
            known = "has no such turn" if topic_id in highest else "is not in the topics"
            self.add("unknown_turn", path, f"{shown(turn_id)}: topic {shown(topic_id)} {known}")
        return None

    def missing_turns(self, turns: Mapping[str, Turn]) -> None:
        """Report the turns of the topics that the run does not have."""
        for turn_id in sorted(turns.keys() - self._first.keys(), key=natural_key):
            self.log.turn_id = turn_id
            self.log.add("missing_turn", self.rules.turns, "the topics have this turn, the run has not")

    def text(self, place: ResponsePlace, text: str, tokens: TokenCounter | None) -> None:
        """Check that a response has a text that can be judged; with `tokens`, check its length."""
        path = _below(place.path, f".{place.names.text}")
        if not has_content(text):
            what = (
                "empty" if not text else "only characters that cannot be seen" if text.strip() else "only white space"
            )
            self.add("empty_text", path, f"the text is {what}")
        elif len(text) > MAX_CHARS:
            self.add("text_too_long", path, f"{len(text):,} characters, which is over {MAX_CHARS:,}")
        elif not storable(text):
            self.add("unusable_text", path, "the text has a NUL or a lone surrogate, so it cannot be sent or stored")
        elif tokens is not None and (counts := tokens.over(text)) is not None and counts.cut is not None:
            self.add("over_token_limit", path, _lengths(counts, tokens))
        elif tokens is not None and (joined := joined_words(text, tokens.limit)) is not None:
            words, hidden = joined
            message = f"{_lengths(tokens(text), tokens)}, yet {words:,} words where joined ones are split"
            self.add("joined_words", path, f"{message}; invisible characters: {hidden:,}")

    def collection(self) -> None:
        """Look up every passage whose id the collection may have, in one call; most evidence of the run is there."""
        if self._hashes is None:
            return
        distinct = dict.fromkeys(passage.passage_id for turn in self.run.turns for passage in turn.passages)
        ids = [passage_id for passage_id in distinct if 0 < len(passage_id) <= MAX_ID and passage_id.isprintable()]
        self._md5s = dict(zip(ids, self._hashes.find(ids), strict=True)) if ids else {}
        self._unknown = frozenset(passage_id for passage_id, md5 in self._md5s.items() if md5 is None)
        turns = []
        for turn in self.run.turns:
            if turn.responses:
                used, _ = used_provenance(min(turn.responses, key=attrgetter("rank")), self.run.format)
                turns.append((sum(self._md5s.get(passage.passage_id) is None for passage in used), len(used)))
        if message := absent_evidence(turns, "is not in the collection"):
            self.add("absent_evidence", self.rules.turns, message)

    def passages(self, i: int, j: int, response: Response, most: int | None) -> None:
        """Check the evidence that a response names; of `most` passages it may cite."""
        rules = self.rules
        references = response.references
        if rules.passages is None:
            return
        turn = self.places[i]
        place = self.places[i].responses[j]
        base = f"{(turn if rules.keyed else place).path}.{rules.passages}"
        own = f"{place.path}.{place.names.citations}" if rules.keyed else base
        if not (references or response.listed):
            self.add("no_provenance", own if rules.own_turns else base, "no passage, so groundedness cannot be judged")
            return
        # One cheap loop keeps few entries: a run may have 300,000.
        marked = [passage for passage in response.listed if passage.used is not False or passage.text is not None]
        if rules.flags_used:
            self._used(base, own, response, marked)
        if references and j == 0:
            # All responses of a turn share its references: they are checked once.
            self.at(i)
            self._entries(base, references, references.values())
            self.at(i, j)
        others: Sequence[Provenance] = response.listed
        if references:
            others = [passage for passage in others if passage.passage_id not in references]
        if others:
            self._entries(own, [*map(_ID, others)], [*map(_SCORE, others)], [*map(_TEXT, others)])
        if any(passage.text for passage in marked):
            self._texts(base, response)
        cited = sum(passage.used is True for passage in marked)
        if most is not None and cited > most:
            self.add("too_many_citations", own, f"{cited} used passages, at most {most} are allowed")

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
            self.add("no_used_passage", own, message)
        else:
            for k in (k for k, passage in enumerate(passages) if passage.used is None):
                message = "not said whether it was used, while others of the list are marked; it counts as not used"
                self.add_entry(base, "missing_used", f"{base}[{k}].used", message)

    def _unreadable_flag(self, base: str, passages: Sequence[Provenance]) -> bool:
        """Whether the reader reported a mark of the list; such a mark is neither present nor absent."""
        silent = self.log.silent
        unread = (k for k, passage in enumerate(passages) if passage.used is None) if silent else ()
        # `[*]` stands for problems that were only counted; one of them may be a mark.
        return any(path in silent for k in unread for path in (f"{base}[{k}]", f"{base}[{k}].used", f"{base}[*]"))

    def _entries(self, base: str, ids: Collection[str], scores: EntryScores, texts: Sequence[str | None] = ()) -> None:
        rules = self.rules
        hashes = self._hashes
        check_entries(rules, self.run.run_type, base, ids, scores, partial(self.add_entry, base))
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
                    self.add_entry(base, "unknown_passage", path, message)
            elif text and (not storable(text) or not hashes.same_text(text, md5)):
                message = f"not the collection's text of {shown(passage_id)}, so it is not shown to a judge as evidence"
                self.add_entry(base, "passage_text_differs", f"{base}[{k}].text", message)

    def _texts(self, base: str, response: Response) -> None:
        """Check the texts of the used passages, which a request would quote."""
        used, _ = used_provenance(response, self.run.format)
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
            self.add(code, f"{base}[{k}].text", message)

    def ptkb(self, place: ResponsePlace, response: Response, turn: Turn | None) -> None:
        """Check the PTKB statements that a response names; with `turn`, against those of its topic."""
        if self.rules.ptkb is None:
            return
        base = f"{place.path}.{place.names.ptkb}"
        # A simulated user may have told nothing yet.
        if not response.ptkb_provenance and not self.rules.own_turns:
            self.add("no_ptkb", base, "no PTKB statement")
        check_ptkb(self.rules, base, response.ptkb_provenance, place.statements, turn, partial(self.add_entry, base))

    def conversation(self) -> None:
        """Report turns in which the user said nothing, and turns that lack one before them."""
        numbers: dict[str, dict[int, int]] = {}
        for i, turn in enumerate(self.run.turns):
            self.at(i)
            if turn.responses and not (turn.utterance or "").strip():
                path = f"{self.places[i].responses[0].path}.user_utterance"
                self.add("empty_utterance", path, "the user said nothing, so a judge sees no utterance")
            digits = turn.turn_id.rpartition("_")[2]
            if usable_turn_id(turn.turn_id) and digits.isdecimal() and len(digits) <= _LONGEST:
                numbers.setdefault(topic_of(turn.turn_id), {}).setdefault(int(digits), i)
        # The documentation of 2025 counts turns from 0, the program of 2026 from 1.
        start = 0 if any(0 in of_topic for of_topic in numbers.values()) else 1
        for topic_id in sorted(numbers, key=natural_key):
            for number, i in sorted(numbers[topic_id].items()):
                if number > start and number - 1 not in numbers[topic_id]:
                    self.at(i)
                    message = f"the run has no turn {topic_id}_{number - 1}, so the context of this turn has a gap"
                    self.add("missing_exchange", self.places[i].path + self.rules.turn_id, message)


def _below(path: str, field: str) -> str:
    """The path of a field, or the path itself where a format has lines instead of fields."""
    return path + field if "$" in path else path


def _lengths(counts: TokenCount, tokens: TokenCounter) -> str:
    """The length of a text by the rule that decides, the limit, and the length by every rule."""
    by_rule = f"bare {counts.bare}, english {counts.english}, whitespace {counts.whitespace}"
    n = count(getattr(counts, tokens.rule), "token")
    return f"{n} by the {tokens.rule} rule, limit {tokens.limit} ({by_rule})"


def detail_of(path: str, message: str) -> str:
    """Path and message, as the detail of an exclusion."""
    return f"{path}: {message}" if path else message


def rank_of(response: Response) -> int | None:
    """A response's rank for an exclusion; None where its size exceeds `MAX_RANK`."""
    return response.rank if abs(response.rank) <= MAX_RANK else None
