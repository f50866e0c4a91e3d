"""The rules of the field on one turn, response, passage list or PTKB list of a run. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import attrgetter

from judge.records import Problem, Provenance, Response, Run, RunTurn, Severity, TokenCount, Turn
from judge.runs.check.entries import check_entries
from judge.runs.fields import Findings, ancestors, member, usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.formats.shape import ResponsePlace, Rules, Statement, TurnPlace
from judge.runs.provenance import TOP_PASSAGES, has_scores, used_provenance
from judge.runs.tokens import MAX_CHARS
from judge.text.ids import natural_key, topic_of
from judge.text.safe import has_content, shown, storable

MAX_RANK = 1_000_000
_ID, _TEXT = attrgetter("passage_id"), attrgetter("text")
PTKB_ID = re.compile(r"[1-9][0-9]{0,8}")

Owner = tuple[int, int | None]
"""Index of a turn, and of a response in it or None for the whole turn."""


class Sheet:
    """The findings about one run, and what is out because of them."""

    def __init__(self, run: Run, found: Sequence[Problem], places: Sequence[TurnPlace]) -> None:
        self.run = run
        self.rules = rules_of(run.format)
        self.places = places or _default_places(run, self.rules)
        complaints = [problem for problem in found if problem.severity == "error"]
        self.findings = Findings(run.file, {problem.path for problem in complaints})
        self.findings.problems.extend(found)
        self.md5s: Mapping[str, bytes | None] = {}
        self.unknown: frozenset[str] = frozenset()
        self.same_text: Callable[[str, bytes], bool] | None = None
        self.whole: tuple[str, str] | None = None
        self.out: dict[Owner, tuple[str, str]] = {}
        self.lost: list[Problem] = []
        owners: dict[str, Owner] = {}
        for i, place in enumerate(self.places):
            owners[place.path] = (i, None)
            owners.update((response.path, (i, j)) for j, response in enumerate(place.responses))
        for problem in complaints:
            owner = next((owners[path] for path in ancestors(problem.path) if path in owners), None)
            if owner is not None:
                self.out.setdefault(owner, (problem.code, detail_of(problem.path, problem.message)))
            elif problem.path.startswith("$") and "[" not in problem.path:
                self.whole = self.whole or (problem.code, detail_of(problem.path, problem.message))
            else:
                self.lost.append(problem)

    def warn(self, code: str, path: str, message: str) -> None:
        """Add a warning."""
        self.findings.add("warning", code, path, message)

    def error(self, owner: Owner | None, code: str, path: str, message: str) -> None:
        """Add an error that takes out `owner`, or the run if that is None."""
        self.findings.add("error", code, path, message)
        if owner is None:
            self.whole = self.whole or (code, detail_of(path, message))
        else:
            self.out.setdefault(owner, (code, detail_of(path, message)))


def check_turn(sheet: Sheet, i: int, turn: RunTurn, first: dict[str, str]) -> None:
    """Check a turn's id and its responses' ranks; `first` maps the ids seen to where they were."""
    place = sheet.places[i]
    owner = (i, None)
    path = _below(place.path, ".turn_id")
    if not usable_turn_id(turn.turn_id):
        message = f"{shown(turn.turn_id)} is not a turn id such as 9-1_3, 0_3 or 132_1-3"
        sheet.error(owner, "malformed_turn_id", path, message)
    elif turn.turn_id in first:
        message = f"{turn.turn_id} was already at {first[turn.turn_id]}; only the first counts"
        sheet.error(owner, "duplicate_turn", path, message)
    first.setdefault(turn.turn_id, place.path)
    if not turn.responses:
        sheet.error(owner, "no_response", _below(place.path, ".responses"), "the turn has no response")
    ranks: set[int] = set()
    last = 0
    known = True
    for j, response in enumerate(turn.responses):
        path = _below(place.responses[j].path, ".rank")
        rank = response.rank
        if not 1 <= rank <= MAX_RANK:
            sheet.error((i, j), "bad_rank", path, f"rank {shown(rank)}, expected 1 to {MAX_RANK:,}")
            known = False
            continue
        if rank in ranks:
            message = f"rank {rank} was already given in this turn; only the first response with it counts"
            sheet.error((i, j), "duplicate_rank", path, message)
        elif rank < last:
            sheet.warn("ranks_not_increasing", path, f"rank {rank} after rank {last}")
        ranks.add(rank)
        last = rank
    if ranks and 1 not in ranks and known:
        sheet.warn("no_rank_one", _below(place.path, ".responses"), f"the best rank is {min(ranks)}")


def check_unknown(sheet: Sheet, i: int, turn_id: str, highest: Mapping[str, int | None]) -> None:
    """Say why a turn is not in the topics; `highest` is the number of each topic's last turn."""
    path = _below(sheet.places[i].path, ".turn_id")
    topic_id, number = topic_of(turn_id), turn_id.rpartition("_")[2]
    last = highest.get(topic_id)
    if last is not None and re.fullmatch("[0-9]{1,9}", number) and int(number) > last:
        message = f"topic {topic_id} has {last} turns, so there is no turn {number}"
        sheet.error((i, None), "turn_number_too_high", path, message)
    else:
        known = "has no such turn" if topic_id in highest else "is not in the topics"
        message = f"{shown(turn_id)}: topic {shown(topic_id)} {known}"
        sheet.error((i, None), "unknown_turn", path, message)


def check_topics(sheet: Sheet, turns: Mapping[str, Turn]) -> bool:
    """Whether the run has a turn of any topic in `turns`; if not, that is told once, for the whole run."""
    topics = {turn.topic_id for turn in turns.values()}
    named = [turn.turn_id for turn in sheet.run.turns if usable_turn_id(turn.turn_id)]
    if not named or any(topic_of(turn_id) in topics for turn_id in named):
        return True
    here = ", ".join(map(shown, sorted(named, key=natural_key)[:3]))
    there = ", ".join(map(shown, sorted(turns, key=natural_key)[:3]))
    message = (
        f"none of the run's {len(named)} turns is of a topic of the topics file (the run has {here} …, the topics "
        f"{there} …), so the topics are of another year or the run is; nothing else was compared with them"
    )
    sheet.error(None, "wrong_topics", sheet.rules.turns or _below(sheet.places[0].path, ".turn_id"), message)
    return False


def check_text(
    sheet: Sheet,
    i: int,
    j: int,
    response: Response,
    count_tokens: Callable[[str], TokenCount | None],
    limit: int,
    rule: str,
) -> None:
    """Check that a response has a text that can be judged, and its length.

    `count_tokens` may give None for a text within the limit.
    """
    path = _below(sheet.places[i].responses[j].path, ".text")
    text = response.text
    if not has_content(text):
        found = "empty" if not text else "only characters that cannot be seen" if text.strip() else "only white space"
        sheet.error((i, j), "empty_text", path, f"the text is {found}")
    elif len(text) > MAX_CHARS:
        message = f"{len(text):,} characters, which is over {MAX_CHARS:,}"
        sheet.error((i, j), "text_too_long", path, message)
    elif not storable(text):
        message = "the text has a NUL or a lone surrogate, so it cannot be sent or stored"
        sheet.error((i, j), "unusable_text", path, message)
    else:
        tokens = count_tokens(text)
        if tokens is not None and tokens.cut is not None:
            counts = f"bare {tokens.bare}, english {tokens.english}, whitespace {tokens.whitespace}"
            message = f"{getattr(tokens, rule)} tokens by the {rule} rule, limit {limit} ({counts})"
            sheet.warn("over_token_limit", path, message)


def check_passages(sheet: Sheet, i: int, j: int, response: Response) -> None:
    """Check the evidence that a response names."""
    rules, passages = sheet.rules, response.provenance
    if rules.passages is None:
        return
    turn, place = sheet.places[i], sheet.places[i].responses[j]
    base = f"{(turn if rules.keyed else place).path}.{rules.passages}"
    own = f"{place.path}.citations" if rules.keyed else base
    if not passages:
        sheet.warn("no_provenance", base, "no passage, so groundedness cannot be judged")
        return
    # One loop that does next to nothing for most entries, for a run may have 300,000 of them.
    marked = [passage for passage in passages if passage.used is not False or passage.text is not None]
    if rules.flags_used:
        _check_used(sheet, base, own, passages, marked)
    shared = len(passages) - place.extra
    if not rules.keyed:
        _check_entries(sheet, (i, j), base, passages)
    elif j == 0:
        # The references of a turn are those of each of its responses: once is enough.
        _check_entries(sheet, (i, None), base, passages[:shared])
    if place.extra:
        _check_entries(sheet, (i, j), own, passages[shared:])
    if any(passage.text for passage in marked):
        _check_passage_texts(sheet, (i, j), base, response)


def _check_used(
    sheet: Sheet, base: str, own: str, passages: Sequence[Provenance], marked: Sequence[Provenance]
) -> None:
    """Check the marks of a list; `marked` has at least the passages that are not marked as unused."""
    absent = any(passage.used is None for passage in marked)
    used = any(passage.used for passage in marked)
    if (used and not absent) or _unreadable_flag(sheet, base, passages):
        return
    if not used:
        which = "with the highest scores" if has_scores(passages) else "first of the list, where scores are missing,"
        message = f"no passage is marked as used, so the {TOP_PASSAGES} {which} count as used"
        sheet.warn("no_used_passage", own, message)
    else:
        for k in (k for k, passage in enumerate(passages) if passage.used is None):
            message = "not said whether it was used, while others of the list are marked; it counts as not used"
            sheet.findings.add_entry(base, "warning", "missing_used", f"{base}[{k}].used", message)


def _unreadable_flag(sheet: Sheet, base: str, passages: Sequence[Provenance]) -> bool:
    """Whether the reader complained of a mark in the list, which is then neither there nor absent."""
    silent = sheet.findings.silent
    if not silent:
        return False
    unread = (k for k, passage in enumerate(passages) if passage.used is None)
    # Of many faults some were only counted, and among those may be a mark.
    return any(path in silent for k in unread for path in (f"{base}[{k}]", f"{base}[{k}].used", f"{base}[*]"))


def _check_entries(sheet: Sheet, owner: Owner, base: str, passages: Sequence[Provenance]) -> None:
    def report(severity: Severity, code: str, path: str, message: str) -> None:
        sheet.findings.add_entry(base, severity, code, path, message)
        if severity == "error":
            sheet.out.setdefault(owner, (code, detail_of(path, message)))

    check_entries(sheet.rules, sheet.run.run_type, base, passages, report)
    if sheet.md5s:
        _check_collection(sheet, base, passages)


def _check_collection(sheet: Sheet, base: str, passages: Sequence[Provenance]) -> None:
    """Check that the collection has each passage, and that a text that the run gives for it is the collection's."""
    rules, same_text = sheet.rules, sheet.same_text
    # Loops over lists without fault run in C, for a run may have 300,000 entries.
    if sheet.unknown.isdisjoint(map(_ID, passages)) and not any(map(_TEXT, passages)):
        return
    for k, passage in enumerate(passages):
        passage_id, text, md5 = passage.passage_id, passage.text, sheet.md5s.get(passage.passage_id)
        path = member(base, passage_id) if rules.keyed else f"{base}[{k}].id"
        if md5 is None:
            # An id that cannot be one of the collection's was told of as such, or was not looked up.
            if passage_id in sheet.unknown and (rules.passage_id is None or rules.passage_id.fullmatch(passage_id)):
                message = f"the collection has no passage {shown(passage_id)}"
                sheet.findings.add_entry(base, "warning", "unknown_passage", path, message)
        elif text and same_text is not None and (not storable(text) or not same_text(text, md5)):
            message = f"not the collection's text of {shown(passage_id)}, so it is not shown to a judge as evidence"
            sheet.findings.add_entry(base, "warning", "passage_text_differs", f"{base}[{k}].text", message)


def _check_passage_texts(sheet: Sheet, owner: Owner, base: str, response: Response) -> None:
    """Check the texts that would be sent: those of the used passages."""
    used, _ = used_provenance(response, sheet.run.format)
    for passage in used:
        text = passage.text or ""
        if len(text) > MAX_CHARS:
            code, message = "text_too_long", f"{len(text):,} characters, which is over {MAX_CHARS:,}"
        elif not storable(text):
            code = "unusable_text"
            message = "the passage has a NUL or a lone surrogate, so it cannot be sent or stored"
        else:
            continue
        k = next(k for k, one in enumerate(response.provenance) if one is passage)
        sheet.error(owner, code, f"{base}[{k}].text", message)


def check_ptkb(sheet: Sheet, i: int, j: int, response: Response, turn: Turn | None) -> None:
    """Check the PTKB statements that a response names, against those of the topic where there is one."""
    rules, place = sheet.rules, sheet.places[i].responses[j]
    if rules.ptkb is None:
        return
    base = f"{place.path}.ptkb_provenance"
    if not response.ptkb_provenance:
        sheet.warn("no_ptkb", base, "no PTKB statement")
    if rules.ptkb == "statements":
        _check_statements(sheet, base, response.ptkb_provenance)
    else:
        _check_ptkb_ids(sheet, base, response.ptkb_provenance, place.statements, turn)


def _check_statements(sheet: Sheet, base: str, statements: Sequence[str]) -> None:
    """Check statements given by their text; a new one from the conversation is allowed."""
    seen: set[str] = set()
    for k, text in enumerate(statements):
        if not text.strip():
            sheet.findings.add_entry(base, "warning", "empty_ptkb", f"{base}[{k}]", "the statement is empty")
        elif text in seen:
            message = f"{shown(text)} is already in this list"
            sheet.findings.add_entry(base, "warning", "duplicate_ptkb", f"{base}[{k}]", message)
        seen.add(text)


def _check_ptkb_ids(
    sheet: Sheet, base: str, ptkb_ids: Sequence[str], given: Sequence[Statement], turn: Turn | None
) -> None:
    """Check statements given by their number, in 2023 with text and score."""
    known = {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}
    statements = given or ((None, None),) * len(ptkb_ids)
    id_field = ".id" if given else ""
    seen: set[str] = set()
    previous: float | None = None

    def warn(code: str, path: str, message: str) -> None:
        sheet.findings.add_entry(base, "warning", code, path, message)

    for k, (ptkb_id, (text, score)) in enumerate(zip(ptkb_ids, statements, strict=True)):
        at = f"{base}[{k}]"
        if ptkb_id not in known and not PTKB_ID.fullmatch(ptkb_id):
            warn("invalid_ptkb_id", at + id_field, f"{shown(ptkb_id)} is not a statement's number, from 1")
        elif ptkb_id in seen:
            warn("duplicate_ptkb", at + id_field, f"statement {ptkb_id} is already in this list")
        elif turn is not None and ptkb_id not in known:
            warn("unknown_ptkb_id", at + id_field, f"the topic's PTKB has no statement {ptkb_id}")
        if text is not None and not text.strip():
            warn("empty_ptkb", f"{at}.text", "the statement is empty")
        elif text is not None and text != known.get(ptkb_id, text):
            message = f"{shown(text)}, but statement {shown(ptkb_id)} of the topic is {shown(known[ptkb_id])}"
            warn("ptkb_text_differs", f"{at}.text", message)
        seen.add(ptkb_id)
        if score is None:
            if given:
                warn("missing_ptkb_score", f"{at}.score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            warn("score_not_finite", f"{at}.score", f"{score} is not a number to rank by")
        else:
            if previous is not None and score >= previous:
                warn("ptkb_scores_not_decreasing", f"{at}.score", f"{score} after {previous}")
            previous = score


def _default_places(run: Run, rules: Rules) -> tuple[TurnPlace, ...]:
    def place(i: int, turn: RunTurn) -> TurnPlace:
        path = f"{rules.turns}[{i}]" if rules.turns else f"line {i + 1}: $"
        return TurnPlace(path, tuple(ResponsePlace(f"{path}.responses[{j}]") for j in range(len(turn.responses))))

    return tuple(place(i, turn) for i, turn in enumerate(run.turns))


def _below(path: str, field: str) -> str:
    """The path of a field, or the path itself where a format has lines and not fields."""
    return path + field if "$" in path else path


def rank_of(response: Response) -> int | None:
    """A response's rank as an exclusion may carry it: None if it is beyond all reason."""
    return response.rank if abs(response.rank) <= MAX_RANK else None


def detail_of(path: str, message: str) -> str:
    """Where and what, as an exclusion's detail."""
    return f"{path}: {message}" if path else message
