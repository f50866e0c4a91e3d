"""Errors: what can go wrong, one tree.

JudgeError                      anything a user may see; carries an exit code
├── UsageError                  the command itself cannot be carried out (exit 2)
│   └── MissingKeyError         a judge's key or address is not given; it needs none until it is asked
├── InputError                  input files are bad; holds every problem found (exit 2)
├── OperationalError            something outside failed; work done so far is safe, resume later (exit 3)
│   ├── AuthenticationError     the provider refuses the key or the model
│   ├── QuotaError              the account is exhausted
│   ├── LogprobsError           the judge gives no log probabilities
│   └── Interrupted             the user pressed Ctrl-C
└── CallError                   one call to a model failed; becomes a Failure, never leaves the loop
    ├── TransientError          may succeed if asked again (5xx, timeout, dropped connection)
    │   └── RateLimitError      too many calls for the provider now (429, 529); waiting helps
    ├── StructureUnsupported    the judge does not take this answer form
    ├── ParameterRefused        the provider names a parameter that it does not take
    ├── ContextLengthError      the request is longer than the model's context
    ├── PromptCutError          the server answered, but read only a part of the request
    ├── ContentFilterError      the provider's filter blocked the request
    ├── BudgetError             the money that may be spent is spent
    └── RejectedError           the provider will never accept this request
"""

# Not imported from typing, because that would slow down `judge --help`, which needs this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge.records import FailureReason, Problem


class JudgeError(Exception):
    """Base of every error a user may see; the command line catches this and nothing wider."""

    exit_code = 2
    status: int | None = None
    """HTTP status of the reply that refused a call; None where there was none."""


class UsageError(JudgeError):
    """The command or call cannot be carried out as given."""


class MissingKeyError(UsageError):
    """The key or the address of a judge is not given; it is needed only where a call has to be made."""


class InputError(JudgeError):
    """Input files are bad; `problems` lists every problem that has a place in a file."""

    def __init__(self, message: str, problems: "Sequence[Problem]" = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


def refuse(problems: "Sequence[Problem]", message: str) -> None:
    """Raise an InputError that lists these problems, if there are any."""
    if problems:
        raise InputError(message, problems)


class OperationalError(JudgeError):
    """Something outside failed; what was done is safe and the same command resumes it."""

    exit_code = 3


class AuthenticationError(OperationalError):
    """The provider refuses the key, or this key may not use this model."""


class QuotaError(OperationalError):
    """The account behind the key is exhausted."""


class LogprobsError(OperationalError):
    """The judge gives no log probabilities of its tokens."""


class Interrupted(OperationalError):
    """The user stopped the run; calls in flight were drained."""


class CallError(JudgeError):
    """One call to a model failed for `reason`."""

    reason: "FailureReason" = "provider_error"


class TransientError(CallError):
    """A failure that may pass if asked again; `retry_after` is how many seconds the provider asks to wait."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimitError(TransientError):
    """The provider takes no more calls for now; `retry_after` as above."""


class StructureUnsupported(CallError):
    """The judge does not take this answer form; unless `lasting`, only this one request failed under it."""

    def __init__(self, message: str, *, lasting: bool = True) -> None:
        super().__init__(message)
        self.lasting = lasting


class ParameterRefused(CallError):
    """The provider does not take `parameter`, by its name in the request."""

    def __init__(self, message: str, parameter: str = "") -> None:
        # A process that gets it pickled makes it of the message alone, and sets the rest.
        super().__init__(message)
        self.parameter = parameter


class ContextLengthError(CallError):
    """The request is longer than the model's context window."""

    reason = "context_length"


class PromptCutError(CallError):
    """The server answered, but read only a part of the request."""

    reason = "prompt_cut"


class ContentFilterError(CallError):
    """The provider's content filter blocked the request."""

    reason = "content_filter"


class BudgetError(CallError):
    """The budget of the user (`--max-cost`) is spent."""

    reason = "budget"


class RejectedError(CallError):
    """The provider will never accept this request; asking again is useless."""
