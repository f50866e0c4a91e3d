"""The problems of one run while it is checked, and the parts that its errors take out of the judging. Pure."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from judge.io.safe import MAX_ID
from judge.records import Problem
from judge.runs.check.codes import CODES
from judge.runs.fields import ProblemLog, ancestors
from judge.runs.formats import rules_of
from judge.runs.formats.shape import ResponsePlace, Rules, TurnPlace
from judge.runs.records import Run, RunTurn

Owner = tuple[int, int | None]
"""Index of a turn, and of a response in it or None for the whole turn."""


class CollectionHashes(msgspec.Struct, frozen=True):
    """The MD5s of a collection's passages, with which the runs' passages are compared."""

    find: Callable[[Sequence[str]], Sequence[bytes | None]]
    """The MD5 of each passage id, None for an id that the collection does not have."""
    same_text: Callable[[str, bytes], bool] | None = None
    """Whether a text has an MD5; None where only ids are checked."""


class Sheet:
    """The problems of one run, and the turns and responses that its errors take out."""

    def __init__(self, run: Run, read: Sequence[Problem], places: Sequence[TurnPlace]) -> None:
        """`read` are the problems that the run's reader reported."""
        self.run = run
        self.rules = rules_of(run.format)
        self.places = places or _default_places(run, self.rules)
        complaints = [problem for problem in read if problem.severity == "error"]
        self.log = ProblemLog(run.file, read, {problem.path for problem in complaints})
        self.md5s: Mapping[str, bytes | None] = {}
        self.unknown: frozenset[str] = frozenset()
        self.same_text: Callable[[str, bytes], bool] | None = None
        self.whole: tuple[str, str] | None = None
        self.out: dict[Owner, tuple[str, str]] = {}
        self.lost: list[Problem] = []
        self.of_others: set[int] = set()
        """Places of turns that the file says are another run's."""
        owners: dict[str, Owner] = {}
        for i, place in enumerate(self.places):
            owners[place.path] = (i, None)
            owners.update((response.path, (i, j)) for j, response in enumerate(place.responses))
        for problem in complaints:
            owner = next((owners[path] for path in ancestors(problem.path) if path in owners), None)
            if owner is not None:
                self.out.setdefault(owner, (problem.code, detail_of(problem.path, problem.message)))
                if problem.code == "several_runs":
                    self.of_others.add(owner[0])
            elif problem.path.startswith("$") and "[" not in problem.path:
                self.whole = self.whole or (problem.code, detail_of(problem.path, problem.message))
            else:
                self.lost.append(problem)

    def add(self, owner: Owner | None, code: str, path: str, message: str) -> None:
        """Add a problem; an error takes out `owner`, or the whole run if `owner` is None."""
        self.log.add(code, path, message)
        self._take_out(owner, code, path, message)

    def add_entry(self, owner: Owner | None, base: str, code: str, path: str, message: str) -> None:
        """Add a problem of an entry in the list at `base`; an error takes out the same as in `add`."""
        self.log.add_entry(base, code, path, message)
        self._take_out(owner, code, path, message)

    def _take_out(self, owner: Owner | None, code: str, path: str, message: str) -> None:
        if CODES[code].severity != "error":
            return
        if owner is None:
            self.whole = self.whole or (code, detail_of(path, message))
        else:
            self.out.setdefault(owner, (code, detail_of(path, message)))

    def open_collection(self, hashes: CollectionHashes) -> None:
        """Look up every passage of the run whose id the collection may have, all in one call."""
        lists = (response.provenance for turn in self.run.turns for response in turn.responses)
        distinct = dict.fromkeys(passage.passage_id for passages in lists for passage in passages)
        ids = [passage_id for passage_id in distinct if 0 < len(passage_id) <= MAX_ID and passage_id.isprintable()]
        self.md5s = dict(zip(ids, hashes.find(ids), strict=True)) if ids else {}
        self.unknown = frozenset(passage_id for passage_id, md5 in self.md5s.items() if md5 is None)
        self.same_text = hashes.same_text


def _default_places(run: Run, rules: Rules) -> tuple[TurnPlace, ...]:
    def place(i: int, turn: RunTurn) -> TurnPlace:
        path = f"{rules.turns}[{i}]" if rules.turns else f"line {i + 1}: $"
        return TurnPlace(path, tuple(ResponsePlace(f"{path}.responses[{j}]") for j in range(len(turn.responses))))

    return tuple(place(i, turn) for i, turn in enumerate(run.turns))


def detail_of(path: str, message: str) -> str:
    """Path and message, as the detail of an exclusion."""
    return f"{path}: {message}" if path else message
