"""What is asked about one task, until there is an outcome."""

from collections.abc import Callable

from judge.ask.answers import Asked, is_filler
from judge.ask.calls import Calls, Writing
from judge.ask.dialect import Dialect, adapted
from judge.ask.questions import Answer, Questions, failure, outcome
from judge.ask.records import Failure, Judgment, Task
from judge.ask.together import Together
from judge.errors import (
    AuthenticationError,
    BudgetError,
    CallError,
    JudgeError,
    OperationalError,
    ParameterRefused,
    StructureUnsupported,
    TransientError,
)
from judge.judges.records import AnswerForm, Completion, Request


class TaskDialogue:
    """Asks about one task, in the way that the endpoint takes.

    `digest` and `request` are the first ones; `learn` remembers what the endpoint refuses. `together` joins the
    requests with those of other tasks; None where they are asked alone.
    """

    def __init__(
        self,
        questions: Questions,
        calls: Calls,
        task: Task,
        digest: str,
        request: Request,
        learn: Callable[[Dialect], None],
        together: Together | None = None,
    ) -> None:
        self._questions = questions
        self._endpoint = questions.endpoint
        self._calls = calls
        self._task = task
        self._first = request
        self._learn = learn
        self._together = together
        self._judge = questions.model.name
        self._digest = digest
        """Of the last request."""
        self._was_settled = self._endpoint.is_settled(task.criterion)
        """Whether it was settled how the question is asked when that began."""
        self._completions: dict[str, Completion] = {}
        """By the digests of their requests."""
        self.write: Writing = None
        """What writes the last reply to the disk."""

    async def ask(self) -> Judgment | Failure:
        """Ask until there is an outcome; it counts once `write` is done.

        Until the judge has given such an answer, a refusal changes what is taken for the endpoint's dialect, and the
        question is asked anew. Afterwards, a request that fails under an answer form is asked once more in the next
        form, for this response alone; so is one that got nothing but white space. The outcome rests on what was said in
        the last form, which is all that a later run looks for.
        """
        endpoint = self._endpoint
        criterion = self._task.criterion
        dialect = endpoint.dialect
        request = self._first
        while True:
            try:
                answer = await self._inquire(request)
            except (CallError, AuthenticationError) as error:
                again = self._again(error, request, dialect)
                if again is not None:
                    dialect, request = again
                    self._completions.clear()
                    continue
                if isinstance(error, AuthenticationError):
                    raise
                self._questions.account.rest(self._judge, self._completions)
                self.write = None
                return failure(self._task, self._judge, error.reason, str(error), digest=self._digest)
            following: AnswerForm | None = None
            if is_filler(answer.completion, answer.request.form):
                following = endpoint.next_form(criterion, request.form, dialect)
            if following is None:
                break
            if self.write is not None:
                await self.write
            self._completions.clear()
            request = self._questions.request(self._task, following, dialect)
        # Without what was left out, it was taken, whatever became of the form.
        self._learn(Dialect(omitted=dialect.omitted))
        if not endpoint.is_settled(criterion) and request.form == endpoint.forms(criterion, dialect)[0]:
            self._learn(dialect)
            endpoint.settle(criterion)
        settled = outcome(self._task, answer, self._judge, self._digest)
        if isinstance(settled, Judgment):
            endpoint.judge(criterion)
        self._questions.account.rest(self._judge, self._completions)
        return settled

    def _again(self, error: JudgeError, request: Request, dialect: Dialect) -> tuple[Dialect, Request] | None:
        """The same question in another way, after the endpoint refused it; None if there is none.

        An OperationalError if the endpoint refuses a parameter that the user set.
        """
        questions = self._questions
        endpoint = self._endpoint
        criterion = self._task.criterion
        if isinstance(error, ParameterRefused) and error.parameter in questions.model.required:
            raise OperationalError(f"{self._judge} does not take {error.parameter}, which was set: {error}")
        changed = adapted(dialect, error, request, criterion.answer)
        if endpoint.is_settled(criterion):
            if changed is not None and not self._was_settled and not self._completions:
                # Another question has settled it meanwhile.
                self._was_settled = True
                return endpoint.dialect, questions.request(self._task, endpoint.forms(criterion)[0])
            changed = None
        if isinstance(error, ParameterRefused):
            return None if changed is None else (changed, questions.request(self._task, request.form, changed))
        if self._completions:
            # The form was answered before, so that the endpoint takes it.
            changed = None
        if changed is None and not isinstance(error, StructureUnsupported):
            return None
        form = endpoint.next_form(criterion, request.form, dialect)
        if form is None:
            return None
        if changed is None:
            endpoint.fail(questions.answers.digest(request))
        dialect = changed or dialect
        return dialect, questions.request(self._task, form, dialect)

    async def _inquire(self, request: Request) -> Answer:
        """Ask, beginning with this request."""
        talk = self._questions.inquiry(self._task, request)
        following = next(talk)
        digest = self._digest if following is self._first else None
        try:
            while True:
                completion = await self._completion(self._questions.answers.look_up(following, digest))
                digest = None
                following = talk.send(completion)
                # One question may take many replies; each is on the disk before the next is paid for.
                if self.write is not None:
                    await self.write
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer

    async def _completion(self, asked: Asked) -> Completion:
        """The reply to a request; once more, with more room, where it ended at its token limit."""
        while True:
            self._digest = asked.digest
            self._completions |= asked.cut
            if asked.request.room is not None:
                self._endpoint.add_room(asked.request.room)
            try:
                completion, self.write = await self._calls.completion(asked.digest, asked.request, self._together)
            except CallError as error:
                if not asked.cut or isinstance(error, (TransientError, BudgetError)):
                    raise
                # The endpoint has no such room, so that the reply which was cut off is what there is.
                self._endpoint.fail(asked.digest)
                self.write = None
                self._digest, completion = list(asked.cut.items())[-1]
                return completion
            self._completions[asked.digest] = completion
            more = self._questions.answers.with_more_room(asked._replace(completion=completion))
            if more is None:
                return completion
            if self.write is not None:
                await self.write
            asked = more
