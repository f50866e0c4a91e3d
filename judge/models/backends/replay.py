"""`replay/FILE`: completions from a recorded journal, under the name of the recorded judge; nothing is sent.

Request digests are those of the recording, so replayed judgments equal the recorded ones. If the file holds several
judges, the name says which one: `replay/FILE::backend/model`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import StructureUnsupported, UsageError
from judge.models.journal_export import read_recorded
from judge.models.journal_rows import Recorded
from judge.models.limits import RateLimits
from judge.models.model import ModelOptions, Price
from judge.models.records import AnswerForm, Completion, Message, Request
from judge.records import Criterion

_FORMS: tuple[AnswerForm, ...] = ("label", "json", "text")


class Replay:
    """A judge that repeats recorded completions."""

    max_concurrency: int | None = 1
    endpoint: str | None = None
    limits: RateLimits | None = None

    def __init__(self, path: Path, judge: str, recorded: Sequence[Recorded]) -> None:
        self.name = judge
        self._path = path
        self._by_request: dict[tuple[tuple[Message, ...], int], Recorded] = {}
        for entry in recorded:
            earlier = self._by_request.setdefault((entry.messages, entry.sample), entry)
            if earlier.digest != entry.digest:
                raise UsageError(
                    f"{path}: {judge} was asked the same thing under different parameters "
                    f"({earlier.digest[:12]}, {entry.digest[:12]}): the recording does not say which to replay"
                )
        self.forms: tuple[AnswerForm, ...] = tuple(
            form for form in _FORMS if any(entry.form == form for entry in recorded)
        )

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Nothing is refused: a request that is not in the recording fails when it is asked."""

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Nothing is fetched: the journal is on the disk."""

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The recorded parameters of this request; empty if it is not in the recording."""
        entry = self._by_request.get((request.messages, request.sample))
        return {} if entry is None else entry.parameters

    def price(self) -> Price:
        """No price: nothing is paid."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request) -> Completion:
        """The recorded completion.

        Raises:
            StructureUnsupported: The recording lacks the request in this form, but may have it in another.
        """
        entry = self._by_request.get((request.messages, request.sample))
        if entry is not None:
            return entry.completion
        # In the middle of the recorded run, the judge may have been asked in another form.
        raise StructureUnsupported(f"{self._path} holds no completion for this request", lasting=False)

    async def aclose(self) -> None:
        """Nothing is released: the journal is closed once it is read."""


def open_model(model: str, options: ModelOptions) -> Replay:
    """The judge recorded in `FILE`, or in `FILE::JUDGE` the one of that name.

    Raises:
        InputError: The file is missing, or is neither a journal nor exported from one.
        UsageError: The recording is empty, lacks the named judge, or holds several judges and none is named.
    """
    file, _, judge = model.partition("::")
    path = Path(file)
    recorded = list(read_recorded(path))
    judges = sorted({entry.judge for entry in recorded})
    if not judges:
        raise UsageError(f"{path}: the recording is empty")
    if not judge and len(judges) > 1:
        raise UsageError(f"{path}: holds several judges, name one as replay/{file}::JUDGE: {', '.join(judges)}")
    judge = judge or judges[0]
    if judge not in judges:
        raise UsageError(f"{path}: holds no judge {judge!r}, but {', '.join(judges)}")
    return Replay(path, judge, [entry for entry in recorded if entry.judge == judge])
