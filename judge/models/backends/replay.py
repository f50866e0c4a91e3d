"""`replay/FILE`: completions from a recorded journal, under the name of the recorded judge; nothing is sent.

Request digests are those of the recording, so replayed judgments equal the recorded ones. If the file holds several
judges, the name says which one: `replay/FILE::backend/model`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import StructureUnsupported
from judge.models.model import Model, ModelOptions
from judge.models.recording import Recording
from judge.models.records import AnswerForm, Completion, Request

_FORMS: tuple[AnswerForm, ...] = ("label", "json", "text")


class Replay(Model):
    """A judge that repeats recorded completions."""

    max_concurrency = 1
    free = True

    def __init__(self, path: Path, recording: Recording) -> None:
        self.name = recording.judge
        self._path, self._recording = path, recording
        self.forms: tuple[AnswerForm, ...] = tuple(form for form in _FORMS if form in recording.forms)

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The recorded parameters of this request; empty if it is not in the recording."""
        return self._recording.parameters(request.messages, request.sample) or {}

    async def complete(self, request: Request) -> Completion:
        """The recorded completion.

        Raises:
            StructureUnsupported: The recording lacks the request in this form, but may have it in another.
            InputError: The recording has changed since it was opened.
        """
        completion = self._recording.completion(request.messages, request.sample)
        if completion is not None:
            return completion
        # In the middle of the recorded run, the judge may have been asked in another form.
        raise StructureUnsupported(f"{self._path} holds no completion for this request", lasting=False)

    async def aclose(self) -> None:
        """Release the recording."""
        self._recording.close()


def open_model(model: str, options: ModelOptions) -> Replay:
    """The judge recorded in `FILE`, or in `FILE::JUDGE` the one of that name.

    Raises:
        InputError: The file is missing, or is neither a journal nor exported from one.
        UsageError: The recording is empty, lacks the named judge, holds several judges and none is named, or the judge
            was asked the same thing under different parameters.
    """
    file, _, judge = model.partition("::")
    return Replay(Path(file), Recording(Path(file), judge))
