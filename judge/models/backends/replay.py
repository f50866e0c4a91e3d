"""`replay/FILE`: answers from a recorded journal, under the recorded judge's own name; nothing is sent.

Digests come out as they were recorded, so that a replayed run is the recorded run. A file with several judges needs
one named: `replay/FILE::backend/model`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import RejectedError, StructureUnsupported, UsageError
from judge.models.journal import Recorded, read_journal
from judge.models.model import ModelOptions, Price
from judge.models.records import AnswerForm, Completion, Message, Request
from judge.records import Criterion

_FORMS: tuple[AnswerForm, ...] = ("label", "json", "text")


class Replay:
    """A judge that only remembers."""

    max_concurrency: int | None = 1

    def __init__(self, path: Path, judge: str, recorded: Sequence[Recorded]) -> None:
        self.name = judge
        self._path = path
        self._by_request: dict[tuple[tuple[Message, ...], int], Recorded] = {}
        for entry in recorded:
            earlier = self._by_request.setdefault((entry.messages, entry.sample), entry)
            if earlier.digest != entry.digest:
                raise UsageError(
                    f"{path}: {judge} was asked the same thing under different parameters "
                    f"({earlier.digest[:12]}, {entry.digest[:12]}): which to replay cannot be told"
                )
        self.forms: tuple[AnswerForm, ...] = tuple(
            form for form in _FORMS if any(entry.form == form for entry in recorded)
        )

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Nothing to refuse: a request that was not recorded fails by itself."""

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Nothing to fetch."""

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The recorded parameters of this request."""
        entry = self._by_request.get((request.messages, request.sample))
        return {} if entry is None else entry.parameters

    def price(self) -> Price:
        """Nothing."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request) -> Completion:
        """The recorded completion.

        Raises:
            StructureUnsupported: It is not in the recording in this form, but may be in another.
            RejectedError: It is not in the recording.
        """
        entry = self._by_request.get((request.messages, request.sample))
        if entry is not None:
            return entry.completion
        message = f"{self._path} holds no completion for this request"
        if request.form != self.forms[-1]:
            # The endpoint may have refused structured output in the middle of the recorded run.
            raise StructureUnsupported(message, lasting=False)
        raise RejectedError(message)

    async def aclose(self) -> None:
        """Nothing to release."""


def open_model(model: str, options: ModelOptions) -> Replay:
    """Open a recording.

    Raises:
        InputError: The file is missing or no journal.
        UsageError: The recording is empty, or holds several judges and none is named.
    """
    file, _, judge = model.partition("::")
    path = Path(file)
    recorded = list(read_journal(path))
    judges = sorted({entry.judge for entry in recorded})
    if not judges:
        raise UsageError(f"{path}: the recording is empty")
    if not judge and len(judges) > 1:
        raise UsageError(f"{path}: holds several judges, name one as replay/{file}::JUDGE: {', '.join(judges)}")
    judge = judge or judges[0]
    if judge not in judges:
        raise UsageError(f"{path}: holds no judge {judge!r}, but {', '.join(judges)}")
    return Replay(path, judge, [entry for entry in recorded if entry.judge == judge])
