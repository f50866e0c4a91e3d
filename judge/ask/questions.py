"""What a judge is asked about a pool, and which of it the journal answers already."""

from collections.abc import Mapping

from judge.ask.account import Account
from judge.ask.dialogue import Task, dialogue, evidence_gap, failure, outcome
from judge.ask.estimates import TokenRates, learned_rates, prompt_bytes
from judge.ask.prompt import render
from judge.ask.records import Failure, Judgment
from judge.errors import OperationalError
from judge.models.forms import supported_forms
from judge.models.journal import Journal
from judge.models.journal_rows import request_digest
from judge.models.model import Model
from judge.models.records import AnswerForm, Completion, Request
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn

_SAMPLE = 1000
"""Calls of the journal from which estimates are learned."""


class Questions:
    """The requests of one judge about one pool, and their answers in one journal.

    Args:
        model: The judge.
        journal: The journal.
        pool: The pool.
        turns: The turns by id, for criteria that show the conversation.
        account: Where recalled completions are entered; None where nobody wants to know.
    """

    def __init__(
        self,
        model: Model,
        journal: Journal,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
        account: Account | None = None,
    ) -> None:
        self._model = model
        self._journal = journal
        self._pool = pool
        self._turns = turns or {}
        self._account = account or Account()
        self._form_key = f"form:{model.name}"
        self._structured = journal.meta(self._form_key) != "text"

    def forms(self, criterion: Criterion) -> list[AnswerForm]:
        """The answer forms to try, the preferred one first: those that both judge and criterion support.

        Raises:
            OperationalError: They share no form.
        """
        offered = [form for form in self._model.forms if form in supported_forms(criterion)]
        if not self._structured and offered != ["json"]:
            offered = [form for form in offered if form != "json"]
        if not offered:
            raise OperationalError(f"{self._model.name} cannot be asked {criterion.prompt_id} in any answer form")
        return offered

    def refuse_json(self) -> None:
        """Remember, in the journal too, that the judge takes no JSON schema."""
        if self._structured:
            self._structured = False
            self._journal.set_meta(self._form_key, "text")

    def request(self, task: Task, form: AnswerForm) -> Request:
        """The first request of a task."""
        turn = self._turns.get(task.response.turn_id)
        return render(task.criterion, task.response, self._pool.passages, turn, form, task.sample)

    def digest(self, request: Request) -> str:
        """The digest of a request, under which the journal keeps its completion."""
        return request_digest(self._model.name, self._model.parameters(request), request)

    def rates(self) -> TokenRates:
        """What the judge's tokens come to, as far as the journal tells."""
        sizes, prompts, replies = [], [], []
        for messages, call in self._journal.sample(self._model.name, _SAMPLE):
            if call.prompt_tokens and call.completion_tokens:
                sizes.append(prompt_bytes(messages))
                prompts.append(call.prompt_tokens)
                replies.append(call.completion_tokens)
        return learned_rates(len(sizes), sum(sizes), sum(prompts), sum(replies))

    def gap(self, task: Task) -> Failure | None:
        """The failure of a task that lacks the passages that its criterion needs."""
        gap = evidence_gap(task, self._pool)
        return None if gap is None else failure(task, self._model.name, "no_passages", gap)

    def recall(self, task: Task) -> Judgment | Failure | None:
        """The outcome of the task, in any form, if the journal holds every completion that it needs."""
        for form in self._model.forms if len(self._journal) else ():
            if form in supported_forms(task.criterion):
                settled = self._recall_in(task, form)
                if settled is not None:
                    return settled
        return None

    def calls(self, task: Task) -> dict[str, tuple[Request, Completion]]:
        """The requests that the outcome of a task rests on with their completions, by digest; empty without one."""
        for form in self._model.forms if len(self._journal) and self.gap(task) is None else ():
            if form in supported_forms(task.criterion):
                calls: dict[str, tuple[Request, Completion]] = {}
                if self._recall_in(task, form, calls) is not None:
                    return calls
        return {}

    def _recall_in(
        self, task: Task, form: AnswerForm, calls: dict[str, tuple[Request, Completion]] | None = None
    ) -> Judgment | Failure | None:
        talk = dialogue(task.criterion, self.request(task, form))
        completions: dict[str, Completion] = {}
        try:
            request = next(talk)
            while True:
                digest = self.digest(request)
                completion = self._journal.get(digest)
                if completion is None:
                    return None
                completions[digest] = completion
                if calls is not None:
                    calls[digest] = request, completion
                request = talk.send(completion)
        except StopIteration as stop:
            self._account.rest(self._model.name, completions)
            return outcome(task, stop.value, self._model.name, digest)
