"""The rules of the field on one run: its turns, responses and evidence, and what its errors take out. Pure."""

import re
from collections.abc import Collection, Mapping
from operator import attrgetter

from judge.io.ids import natural_key, topic_of
from judge.io.text import MAX_ID, printable_id, shown
from judge.records import Problem
from judge.runs.check import CODES, as_error
from judge.runs.fields import ProblemLog, ancestors, usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.formats.shape import ReadRun
from judge.runs.records import Response, Run, RunTurn, Turn

MAX_RANK = 1_000_000
_LONGEST = 6
"""The most digits of a turn number that is compared with others."""
_ID = attrgetter("passage_id")
_SCORE = attrgetter("score")
_TEXT = attrgetter("text")


class RunCheck:
    """One run while it is checked: its problems, and the turns and responses that its errors take out.

    A problem is of the turn and the response `at` which the check is, or of the whole run.
    """

    def __init__(self, read: ReadRun, run: Run, errors: Collection[str] = ()) -> None:
        """`errors` are codes of warnings that are errors here."""
        self.run = run
        self.rules = rules_of(run.format)
        self.places = read.places
        problems = [as_error(problem) if problem.code in errors else problem for problem in read.problems]
        complaints = [problem for problem in problems if problem.severity == "error"]
        self.log = ProblemLog(run.file, problems, {problem.path for problem in complaints}, errors=errors)
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
        self.add("wrong_topics", self.rules.turns or below(self.places[0].path, self.rules.turn_id), message)

    def turn(self, i: int, turn: RunTurn) -> None:
        """Check a turn's id and its responses' ranks."""
        place = self.places[i]
        path = below(place.path, self.rules.turn_id)
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
            self.add("no_response", below(place.path, ".responses"), "the turn has no response")
        ranks: set[int] = set()
        last = 0
        readable = True
        for j, response in enumerate(turn.responses):
            self.at(i, j)
            path = below(place.responses[j].path, ".rank")
            rank = response.rank
            if not 1 <= rank <= MAX_RANK:
                self.add("bad_rank", path, f"rank {shown(rank)}, expected 1 to {MAX_RANK:,}")
                readable = False
                continue
            if rank in ranks:
                message = f"rank {rank} was already given in this turn; only the first response with it counts"
                self.add("duplicate_rank", path, message)
            elif rank < last:
                self.add("ranks_not_increasing", path, f"rank {rank} after rank {last}")
            ranks.add(rank)
            last = rank
        self.at(i)
        if ranks and 1 not in ranks and readable:
            self.add("no_rank_one", below(place.path, ".responses"), f"the best rank is {min(ranks)}")

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
        path = below(self.places[i].path, self.rules.turn_id)
        last = highest.get(topic_id)
        if last is not None and re.fullmatch("[0-9]{1,9}", number) and int(number) > last:
            message = f"topic {topic_id} has {last} turns, so there is no turn {number}"
            self.add("turn_number_too_high", path, message)
        else:
            why = "has no such turn" if topic_id in highest else "is not in the topics"
            self.add("unknown_turn", path, f"{shown(turn_id)}: topic {shown(topic_id)} {why}")
        return None

    def missing_turns(self, turns: Mapping[str, Turn]) -> None:
        """Report the turns of the topics that the run does not have."""
        for turn_id in sorted(turns.keys() - self._first.keys(), key=natural_key):
            self.log.turn_id = turn_id
            self.log.add("missing_turn", self.rules.turns, "the topics have this turn, the run has not")


def check_conversation(check: RunCheck) -> None:
    """Report turns in which the user said nothing, and turns that lack one before them."""
    numbers: dict[str, dict[int, int]] = {}
    for i, turn in enumerate(check.run.turns):
        check.at(i)
        if turn.responses and not (turn.utterance or "").strip():
            path = f"{check.places[i].responses[0].path}.user_utterance"
            check.add("empty_utterance", path, "the user said nothing, so a judge sees no utterance")
        digits = turn.turn_id.rpartition("_")[2]
        if usable_turn_id(turn.turn_id) and digits.isdecimal() and len(digits) <= _LONGEST:
            numbers.setdefault(topic_of(turn.turn_id), {}).setdefault(int(digits), i)
    # The documentation of 2025 counts turns from 0, the program of 2026 from 1.
    start = 0 if any(0 in of_topic for of_topic in numbers.values()) else 1
    for topic_id in sorted(numbers, key=natural_key):
        for number, i in sorted(numbers[topic_id].items()):
            if number > start and number - 1 not in numbers[topic_id]:
                check.at(i)
                message = f"the run has no turn {topic_id}_{number - 1}, so the context of this turn has a gap"
                check.add("missing_exchange", check.places[i].path + check.rules.turn_id, message)


def below(path: str, field: str) -> str:
    """The path of a field, or the path itself where a format has lines instead of fields."""
    return path + field if "$" in path else path


def detail_of(path: str, message: str) -> str:
    """Path and message, as the detail of an exclusion."""
    return f"{path}: {message}" if path else message


def rank_of(response: Response) -> int | None:
    """A response's rank for an exclusion; None where its size exceeds `MAX_RANK`."""
    return response.rank if abs(response.rank) <= MAX_RANK else None
