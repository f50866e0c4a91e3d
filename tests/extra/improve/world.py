"""A judge that reads its prompt, one that rewrites it, and gold that both are measured on."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import find_criterion
from judge.extra.improve.plan import ImprovePlan
from judge.gold.seal import write_split
from judge.judges.backends.function import FunctionJudge
from judge.judges.records import Completion, Request
from tests.calibration_world import Item, gold_rows, items, pool, write_pool

GRADED = "groundedness/graded"
CARE = "Count the terms."
"""The words under which the judge looks closely."""
SHOWN = "Graded examples:"
"""The words under which a bundled prompt shows examples."""
Messages = list[dict[str, str]]
WORLD = tuple(items(topics=30, each=6))


def careful_judge(noise: Mapping[str, float], name: str = "scripted/1") -> FunctionJudge:
    """Gives what a response deserves, and a chance grade as often as `noise` says for words of the prompt.

    `noise` is the share by a phrase of the prompt; "" is that of every other prompt.
    """
    seen: list[str] = []

    def answer(messages: Messages) -> int:
        user = messages[1]["content"]
        prompt = messages[0]["content"] + user
        seen.append(user)
        phrase = next((phrase for phrase in noise if phrase and phrase in prompt), "")
        response = user.rpartition("<response>")[2]
        deserved = deserved_by(user)
        chance = int(hashlib.sha256(f"{phrase} {response}".encode()).hexdigest()[:8], 16)
        return chance % 4 if (chance >> 8) % 1000 < 1000 * noise[phrase] else deserved

    judge = FunctionJudge(name, answer)
    judge.seen = seen  # type: ignore[attr-defined]
    return judge


class HesitantJudge(FunctionJudge):
    """Gives a grade more than a response deserves, and expects .6 more; says so by label probabilities.

    With `wavering`, it expects anything from nothing to a grade more. `silent` are words of responses that it gives no
    probabilities for.
    """

    def __init__(self, name: str = "hesitant/1", *, wavering: bool = False, silent: Sequence[str] = ()) -> None:
        super().__init__(name, self._grade)
        self.seen: list[str] = []
        self._wavering = wavering
        self._silent = silent

    def _grade(self, messages: Messages) -> int:
        self.seen.append(messages[1]["content"])
        return min(deserved_by(messages[1]["content"]) + 1, 3)

    async def complete(self, request: Request) -> Completion:
        completion = await super().complete(request)
        message = request.messages[1].content
        deserved = deserved_by(message)
        response = message.rpartition("<response>")[2]
        if any(word in response for word in self._silent):
            return completion
        share = 0.6
        if self._wavering:
            share = int(hashlib.sha256(response.encode()).hexdigest()[:4], 16) / 2**16
        if deserved == 3:
            return msgspec.structs.replace(completion, probabilities={"2": (1 - share) / 2, "3": (1 + share) / 2})
        probabilities = {str(deserved): 1 - share, str(deserved + 1): share}
        return msgspec.structs.replace(completion, probabilities=probabilities)


def deserved_by(message: str) -> int:
    """How many terms of the response the passage has; both are the last of the message, after any examples."""
    shown, _, response = message.rpartition("<response>")
    passage = shown.rpartition("<passage")[2]
    terms = set(re.findall(r"term\w+", response))
    return len(terms & set(re.findall(r"term\w+", passage)))


def reply(extra: str, **changed: Any) -> str:
    """A proposer's reply: the first prompt with a sentence more."""
    first = find_criterion(GRADED)
    return json.dumps({"system": f"{first.system}\n\n{extra}", "user": first.user, **changed})


def scripted_proposer(write: Callable[[str], str], name: str = "writer/1") -> FunctionJudge:
    """A model that answers a request for a wording with what `write` makes of the whole message."""
    seen: list[str] = []

    def answer(messages: Messages) -> str:
        seen.append(messages[1]["content"])
        return write(messages[1]["content"])

    proposer = FunctionJudge(name, answer)
    proposer.seen = seen  # type: ignore[attr-defined]
    return proposer


def improving(folder: Path, *, world: tuple[Item, ...] = WORLD, sealed: bool = True, **options: Any) -> ImprovePlan:
    """A plan on this world, whose gold is split into halves."""
    if not (folder / "pool").exists():
        write_pool(folder / "pool", pool(world))
        write_split(gold_rows(world), 0.5, 1, folder / "split")
    test = {"test": folder / "split"} if sealed else {}
    usual = {
        "gold": [folder / "split"],
        "pool": folder / "pool",
        "prompt": GRADED,
        "ways": ["rewrites"],
        "out": folder / "out",
        "replicates": 200,
        "permutations": 200,
    }
    return ImprovePlan(**{**usual, **test, **options})
