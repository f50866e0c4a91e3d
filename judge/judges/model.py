"""The interface of a judge: its options, its price, and one call that is one attempt."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.errors import CallError, UsageError
from judge.judges.limits import RateLimits
from judge.judges.prices import FREE as FREE
from judge.judges.prices import Price as Price
from judge.judges.records import LIMITS, AnswerForm, Completion, ReasoningEffort, Request
from judge.records import Criterion


class ModelOptions(msgspec.Struct, frozen=True):
    """Options that the user may set for any model; a backend refuses an option that it cannot honor."""

    base_url: str | None = None
    """The address, where it is not the usual one of the backend; part of no digest."""
    temperature: float = 0.0
    max_tokens: int = 1024
    """Most tokens of a completion."""
    seed: int | None = None
    timeout: float = 120.0
    """Most seconds for one attempt."""
    threads: int | None = None
    """CPU threads of a local model; None means all cores that this process may use."""
    logprobs: bool = False
    """Ask for the probability of every label, and so for one label without reasons where a grade is asked."""
    form: AnswerForm | None = None
    """The only answer form to ask in; None for the first one that judge, endpoint and criterion take."""
    omit: tuple[str, ...] = ()
    """Parameters that are not sent; `system` puts the system message in front of the user's."""
    reasoning_effort: ReasoningEffort | None = None
    """How much the model is to think before it answers; None leaves that to the provider."""

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think."""
        return self.reasoning_effort not in (None, "none")


def refuse_threads(options: ModelOptions, judge: str) -> None:
    """Refuse a number of threads for a judge that does not run here."""
    if options.threads is not None:
        raise UsageError(f"--threads is for local models; {judge} does not run here")


def recorded_options(options: ModelOptions) -> dict[str, Any]:
    """The options as records show them: `logprobs`, `form`, `omit` and `reasoning_effort` only where they are set."""
    recorded: dict[str, Any] = msgspec.to_builtins(options)
    shown_where_set = ("logprobs", "form", "omit", "reasoning_effort")
    return {name: value for name, value in recorded.items() if value or name not in shown_where_set}


def set_by_user(options: ModelOptions) -> tuple[str, ...]:
    """The parameters that the user set to something else than the default; for judges that take all of them."""
    names = []
    if options.temperature != 0:
        names.append("temperature")
    if options.seed is not None:
        names.append("seed")
    if options.reasoning_effort is not None:
        names.append("reasoning_effort")
    return tuple(names)


def omitted_by_user(options: ModelOptions) -> tuple[str, ...]:
    """The parameters that the user says are not sent.

    >>> omitted_by_user(ModelOptions(omit=("max_tokens", "response_format")))
    ('max_completion_tokens', 'max_tokens', 'response_format')
    """
    names = set(options.omit)
    if "max_tokens" in names:
        names.add("max_completion_tokens")
    return tuple(sorted(names))


def sent_parameters(wished: Mapping[str, Any], omitted: Collection[str]) -> dict[str, Any]:
    """What is sent of parameters: those with a value, without the omitted ones.

    The token limit goes under its other name where the usual one is omitted.

    >>> sent_parameters({"max_tokens": 9, "temperature": 0.0, "seed": None}, ["max_tokens"])
    {'max_completion_tokens': 9, 'temperature': 0.0}
    """
    usual, other = LIMITS
    sent = {}
    for name, value in wished.items():
        called = other if name == usual and usual in omitted else name
        if value is not None and called not in omitted:
            sent[called] = value
    return sent


def room_of(options: ModelOptions) -> int | None:
    """The most tokens of a reply to a judge that is sent this limit; None where it is not sent."""
    return None if "max_tokens" in options.omit else options.max_tokens


class SentRequests(NamedTuple):
    """What one call of a judge sends, where the judge asks in words of its own."""

    requests: int
    prompt_bytes: int
    """Of the texts of these requests in UTF-8."""
    reply_tokens: int
    """Most tokens of their replies together."""


class Model:
    """A judge. One call is one attempt: retries, journal and concurrency belong to the loop.

    A judge of one's own defines `name`, `parameters` and `complete`; all else has a default.
    """

    name: str
    """`backend/model`, as every record names the judge."""
    forms: tuple[AnswerForm, ...] = ("json", "text")
    """Answer forms this judge can be asked in, the preferred one first."""
    omitted: tuple[str, ...] = ()
    """Parameters that the user says are not sent; `system` puts the system message in front of the user's."""
    required: tuple[str, ...] = ()
    """Parameters that the user set and the judge sends, so that none of them is left out where the endpoint refuses it;
    --reasoning-effort is for judges that name it here."""
    room: int | None = None
    """Most tokens of a reply, where a request may ask for more; None where it may not."""
    recorded = False
    """Whether its answers are those of a recording, which may lack any of them."""
    max_concurrency: int | None = None
    """More calls in flight than this gain nothing; None if there is no such number."""
    endpoint: str | None = None
    """The address to which the environment moves the judge, as records show it; part of no digest."""
    limits: RateLimits | None = None
    """What the provider said of its rate limits with its last reply, an error included; None if nothing."""
    uses_cores = False
    """Whether a call computes on all cores of this machine."""
    free = False
    """Whether nobody bills a call."""
    immediate = False
    """Whether a call computes its answer at once and never fails, so that calls need no slots and no second attempt."""
    changeable = False
    """Whether it may be another judge under the same name, so that what could not be read of it is asked for again."""
    counts_longest = False
    """Whether the provider counts the longest possible reply against its limits, as Azure does."""
    asks_together: int = 1
    """Most questions about one material that one call may carry; the loop asks so many in one call."""

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str | None:
        """Where the judge is asked, without credentials; None where it runs here, or where nobody named an address."""
        return None

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse, before anything is sent, what can never work: criteria, options, a missing key or file."""

    def open(self, options: ModelOptions) -> None:
        """Take over options of the user, for a judge that was made before they were given."""

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Fetch what the judge needs; `report` gets the name of the step, the bytes done, and the bytes in all."""

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages, as JSON values; the request's digest covers it."""
        raise NotImplementedError

    def price(self) -> Price | None:
        """The price, or None if it is not known offline."""
        return FREE if self.free else None

    def sent(self, request: Request) -> SentRequests | None:
        """What a call sends if it divides the request; None if it sends the request as it is, or nothing."""
        return None

    def questions_in(self, request: Request) -> int:
        """How many of `asks_together` a request takes up."""
        return 1

    def parts(self, request: Request) -> Sequence[Request] | None:
        """Requests of their own that are asked first; the call with their `replies` sends nothing. None if it sends."""
        return None

    def notes(self, completions: Iterable[Completion]) -> tuple[str, ...]:
        """What readers of the grades should know of these replies, a sentence each."""
        return ()

    def stop(self) -> None:
        """Begin no further call: where calls wait for a worker, they fail."""

    async def complete(self, request: Request) -> Completion:
        """Ask once.

        A CallError if this call failed; TransientError if asking again may help. An OperationalError if no call can
        succeed until the user fixes something.
        """
        raise NotImplementedError

    async def complete_together(self, requests: Sequence[Request]) -> list[Completion | CallError]:
        """Ask questions about one material, at most `asks_together` of them, whose user's messages are equal.

        One call, if the judge can carry several. The errors of the whole call are those of `complete`; an error that is
        about one question alone stands in its place.
        """
        replies: list[Completion | CallError] = []
        for request in requests:
            try:
                replies.append(await self.complete(request))
            except CallError as error:
                replies.append(error)
        return replies

    async def aclose(self) -> None:
        """Release connections and memory."""


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of backends: what holds for every judge of one, also where a record knows only its name."""

    module: str = ""
    """Has `open_model(model: str, options: ModelOptions) -> Model`."""
    local: bool = False
    """The judge runs in this process; nothing is sent anywhere."""
    self_named: bool = False
    """The judge itself names the model that answered, so that it can be no other than the one asked."""
    baseline: bool = False
    """A rule that reads no prompt, with which every other judge is compared."""
    checker: bool = False
    """The judge scores sentences against texts."""
    names_provider: bool = False
    """The name of the model begins with a provider, and may stand without the name of the backend."""
    key: str | None = None
    """The environment variable with the key; None if there is none, or if it depends on the model."""
    usual_address: str | None = None
    """The address of the API where the user gives none."""
    extra: str | None = None
    """The extra of the package that the backend needs."""
    batch: Mapping[str, str] = {}
    """Beginning of a model's name to the format of its batch requests; the first that fits counts."""
    ready: str = "its key is set"
    """What is true of a judge that its `check` does not refuse, in words."""
    asked_to_test: bool = True
    """Whether a question shows more than `check` does."""
