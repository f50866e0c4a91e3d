"""What the loop would do, counted before anything is sent."""

from collections.abc import Sequence
from typing import NamedTuple

from judge.ask.estimates import CallSums, TokenRates
from judge.ask.questions import Questions
from judge.ask.tasks import Task


class Forecast(NamedTuple):
    """What the loop would do; `judgments` is the sum of the four counts that follow it."""

    judgments: int
    """Judgments to make."""
    without_evidence: int
    """Judgments that fail without a call, because a passage that the criterion needs has no text."""
    recalled: int
    """Judgments that the journal answers already."""
    shared: int
    """Judgments that the request of another judgment answers too: equal text, and equal passages if it shows them."""
    calls: int
    """Distinct requests to send; repairs of unreadable replies come on top."""
    sums: CallSums
    """What these requests come to, estimated by `rates`."""
    rates: TokenRates

    @property
    def prompt_tokens(self) -> int:
        """Tokens of these requests' prompts, estimated."""
        return self.sums.prompt_tokens


def forecast(questions: Questions, wanted: Sequence[Task]) -> Forecast:
    """What the loop would do with these tasks; nothing is sent."""
    recalled = without_evidence = shared = 0
    sums = CallSums()
    rates = questions.rates()
    digests: set[str] = set()
    for task in questions.ahead(wanted):
        if questions.gap(task) is not None:
            without_evidence += 1
        elif questions.recall(task) is not None:
            recalled += 1
        else:
            request = questions.request(task, questions.forms(task.criterion)[0])
            digest = questions.digest(request)
            shared += digest in digests
            if digest not in digests:
                sums = sums.plus(request, rates, questions.sent(request))
            digests.add(digest)
    return Forecast(len(wanted), without_evidence, recalled, shared, len(digests), sums, rates)
