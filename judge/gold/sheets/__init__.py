"""What a sheet shows: the drawn responses with their conversation and passages, and what the grades mean. Pure.

A sheet is blind: no run, no judge and no grade is on it. The turns of an assessor stand in a random order of his own,
because what is read first is read with fresher eyes; the responses of a turn stay together, so that a conversation is
read once. `kinds` makes the files.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from judge.ask.prompt import NO_ANSWER, guidance
from judge.errors import InputError, UsageError, refuse
from judge.gold.dealing import DOUBLE, deal
from judge.gold.plan import PlanRow, can_be_labeled
from judge.io.ids import natural_key, natural_order
from judge.io.text import count, digest, disarmed, shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, JudgedUnit, file_problem
from judge.records import Problem as Problem
from judge.runs.records import Turn
from judge.units import UNITS

ASSESSOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,79}")
"""Names of assessors, which name files too."""


_NO_TEXT = "(The text of this passage is not known.)"


class SheetRubric(NamedTuple):
    """What the grades of a criterion mean."""

    criterion: str
    guidance: tuple[str, ...]
    """Paragraphs of the prompt's instruction, as far as they are about the response and not about a reply's form."""
    levels: tuple[tuple[int, str], ...]
    inputs: tuple[str, ...]


class SheetItem(NamedTuple):
    """A response to label."""

    turn_id: str
    response_id: str
    criteria: tuple[str, ...]
    statements: tuple[str, ...]
    """What is known about the user, where a prompt shows it."""
    conversation: tuple[tuple[str, str], ...]
    """Who said what before the response, and reference answers where a prompt shows them; empty without topics."""
    response: str
    """What is graded: what the run said, or a passage."""
    passages: tuple[str, ...]
    """The texts of the used passages, in the order in which a judge sees them; empty where no prompt shows them."""


class GoldSheet(NamedTuple):
    """The responses to label, in natural order, and the rubrics."""

    rubrics: tuple[SheetRubric, ...]
    items: tuple[SheetItem, ...]
    unit: JudgedUnit = "response"
    not_dealt: int = 0
    """How many are left out, because nobody can grade a passage without a text."""

    @property
    def noun(self) -> str:
        """What the text to grade is called."""
        return "passage" if UNITS[self.unit].listed else "response"

    @property
    def shows_passages(self) -> bool:
        """Whether a prompt shows a judge the passages beside what is graded."""
        return not UNITS[self.unit].listed and any("passages" in rubric.inputs for rubric in self.rubrics)

    @property
    def without_text(self) -> int:
        """How many responses name passages whose text is not known."""
        return sum(_NO_TEXT in item.passages for item in self.items)


def make_sheet(
    pool: Pool, prompts: Mapping[str, Criterion], plan: Sequence[PlanRow] | None, turns: Mapping[str, Turn] | None
) -> GoldSheet:
    """The sheet of the planned responses, or of all responses of a pool; without turns it shows no conversation.

    What nobody can grade is left out. An InputError if the plan names responses that the pool does not have; each is
    listed. A UsageError if a criterion
    has no prompt, a prompt needs the conversation, or the topics lack a turn.
    """
    responses = {(response.turn_id, response.response_id): response for response in pool.responses}
    if plan is None:
        wanted = dict.fromkeys(responses, tuple(prompts))
    else:
        wanted = {(row.turn_id, row.response_id): row.criteria for row in plan}
        _check_plan(wanted.keys(), responses.keys())
    criteria = sorted(set[str]().union(*wanted.values()))
    if without := [name for name in criteria if name not in prompts]:
        raise UsageError(f"no prompt says what grades of {', '.join(map(shown, without))} mean: name one (--prompt)")
    if idle := sorted(prompts.keys() - criteria):
        raise UsageError(f"--prompt: the plan has nothing to label for {', '.join(idle)}")
    rubrics: list[SheetRubric] = []
    for name in criteria:
        prompt = prompts[name]
        rubrics.append(
            SheetRubric(
                criterion=prompt.name,
                guidance=guidance(prompt),
                levels=tuple(sorted((level.grade, level.description) for level in prompt.scale.levels)),
                inputs=prompt.inputs,
            )
        )
    inputs = set[str]().union(*(rubric.inputs for rubric in rubrics))
    if turns is None and (needed := inputs & {"context", "utterance", "resolved_utterance", "ptkb", "reference"}):
        raise UsageError(f"the prompts show {', '.join(sorted(needed))}, so a topics file is needed (--topics)")
    if turns is not None and (missing := sorted({turn for turn, _ in wanted} - turns.keys(), key=natural_key)):
        raise UsageError(f"the topics (--topics) lack turns of the sheet: {', '.join(missing[:5])}")
    _check_ids(wanted)
    if not wanted:
        raise InputError("there is nothing to label: the pool is empty")
    order = [key for key in sorted(wanted, key=natural_order) if can_be_labeled(responses[key], pool)]
    items = tuple(
        _item(responses[key], wanted[key], pool, turns[key[0]] if turns is not None else None, inputs) for key in order
    )
    return GoldSheet(rubrics=tuple(rubrics), items=items, unit=pool.unit, not_dealt=len(wanted) - len(order))


def shares(
    items: Sequence[SheetItem], assessors: Sequence[str], double: float | None, seed: int
) -> dict[str, tuple[SheetItem, ...]]:
    """Each assessor with the items to label, in the order of reading; the name is empty where nobody is named.

    Every assessor labels the share `double` of the items, or DOUBLE; each other item is labeled by one. A UsageError if
    names are unfit for files or repeated, or `double` has no two assessors.
    """
    names = tuple(assessors) or ("",)
    if unfit := [name for name in assessors if not ASSESSOR.fullmatch(name)]:
        raise UsageError(
            f"--assessor {shown(unfit[0])}: expected up to 80 letters, digits and . _ @ + -, because it names a file"
        )
    if len({name.casefold() for name in names}) < len(names):
        raise UsageError("--assessor: a name is given twice")
    if double is not None and (len(names) < 2 or not 0 <= double <= 1):
        raise UsageError("--double: expected a share from 0 to 1, and two assessors or more")
    dealt = deal(
        [f"{item.turn_id}/{item.response_id}" for item in items], names, DOUBLE if double is None else double, seed
    )
    items_of: dict[str, tuple[SheetItem, ...]] = {}
    for name, places in zip(names, dealt, strict=True):
        items_of[name] = _ordered((items[place] for place in places), f"{seed}/{name}")
    return items_of


def readable(text: str) -> str:
    r"""A text as people read it: line breaks kept, control characters and lone surrogates replaced.

    >>> readable("a\r\nb\x1b[1m")
    'a\nb\ufffd[1m'
    """
    return _UNREADABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


# Bidirectional overrides too: they can show a text in an order in which it was not written.
_UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def _check_plan(planned: Iterable[tuple[str, str]], pooled: Collection[tuple[str, str]]) -> None:
    problems = [
        file_problem("not_in_pool", "plan", f"the pool has no {shown(response_id)} in this turn", turn_id=turn_id)
        for turn_id, response_id in planned
        if (turn_id, response_id) not in pooled
    ]
    refuse(problems, f"the plan is of another pool: {count(len(problems), 'response')} not in it")


def _check_ids(items: Iterable[tuple[str, str]]) -> None:
    """Ids go out and come back in tables, so none may be what a spreadsheet runs."""
    problems: list[Problem] = []
    for name in dict.fromkeys(chain.from_iterable(items)):
        if disarmed(name) != name:
            problems.append(
                file_problem("wrong_id", "pool", f"{shown(name)}: a spreadsheet would run this id as a formula")
            )
    refuse(problems, f"no sheet can hold these ids: {count(len(problems), 'problem')}")


def _item(
    response: PooledResponse, criteria: Sequence[str], pool: Pool, turn: Turn | None, inputs: Collection[str]
) -> SheetItem:
    conversation: list[tuple[str, str]] = []
    statements: list[str] = []
    if turn is not None:
        for exchange in turn.context:
            conversation.append(("User", readable(exchange.utterance)))
            conversation.append(("System", _answer(exchange.response, response)))
        conversation.append(("User", readable(turn.utterance)))
        if "resolved_utterance" in inputs and turn.resolved_utterance != turn.utterance:
            conversation.append(("In full", readable(turn.resolved_utterance or "")))
        if "reference" in inputs:
            conversation.extend(("Reference", readable(text)) for text in turn.references)
        if "ptkb" in inputs:
            statements = [readable(statement.text) for statement in turn.ptkb]
    passages = response.passages if "passages" in inputs else ()
    texts = tuple(readable(pool.passages[key].text) if key in pool.passages else _NO_TEXT for key in passages)
    text = _answer(response.shown, response)
    if UNITS[response.unit].listed:
        text = readable(pool.passages[response.passages[0]].text)
        texts = ()
    return SheetItem(
        turn_id=response.turn_id,
        response_id=response.response_id,
        criteria=tuple(sorted(criteria)),
        statements=tuple(statements),
        conversation=tuple((who, text) for who, text in conversation if text),
        response=text,
        passages=texts,
    )


def _answer(text: str, item: PooledResponse) -> str:
    """What the run said; of a dialogue also where it said nothing."""
    return readable(text) or (NO_ANSWER if UNITS[item.unit].by_topic else "")


def _ordered(items: Iterable[SheetItem], seed: str) -> tuple[SheetItem, ...]:
    """Turns in random order, each with its responses in random order: that of digests, the same on every machine."""

    def place(item: SheetItem) -> tuple[str, str]:
        return digest(f"{seed}/{item.turn_id}"), digest(f"{seed}/{item.turn_id}/{item.response_id}")

    return tuple(sorted(items, key=place))
