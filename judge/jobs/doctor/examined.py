"""A judge under examination: how it is opened, what it is asked, and what its checks have shown so far."""

from judge.ask.criteria import find_criterion
from judge.jobs.doctor.findings import CheckFinding, CheckState
from judge.judges.address import Address, read_address
from judge.judges.backends import BACKENDS, backend_facts, backend_of_providers, open_model
from judge.judges.connection import Pinged
from judge.judges.forms import answer_labels, form_instruction
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Message, Request
from judge.judges.secrets import redact

_REPLY = 256
"""Tokens of a reply."""
_PREFIX = "You check whether a response keeps to its passages.\n\n" + (
    "A response keeps to its passages if each of its statements stands in one of them. " * 85
)
"""About 1,400 tokens: no provider caches a beginning of fewer than 1,024."""
_SHORT_PREFIX = "You check whether a response keeps to its passages."


class ExaminedJudge:
    """A judge, and what is known of it.

    Args:
        name: `backend/model`.
        base_url: The address of judges that run elsewhere.

    Raises:
        UsageError: There is no such judge.
    """

    def __init__(self, name: str, base_url: str | None) -> None:
        backend, _, model = name.partition("/")
        self.name = name
        self.facts = backend_facts(name) if backend in BACKENDS else BACKENDS[backend_of_providers()].facts
        self.asked_as = model
        """The model's name, as its own server knows it."""
        self.base_url = None if self.facts.local else base_url
        self.model = self.open(logprobs=False)
        self.pinged: Pinged | None = None
        """What answered at its address."""
        self.honors_schema = False
        self.over = False
        """Whether no further check can say anything."""

    def open(self, *, logprobs: bool) -> Model:
        """The judge, with or without label probabilities."""
        return open_model(self.name, ModelOptions(base_url=self.base_url, max_tokens=_REPLY, logprobs=logprobs))

    def address(self) -> Address | None:
        """Where its API is; None where nobody but litellm or this process knows.

        Raises:
            UsageError: The address cannot be read.
        """
        where = self.base_url or self.model.endpoint or self.facts.usual_address
        return None if where is None or self.facts.key is None else read_address(where)

    def request(self, form: AnswerForm, number: int) -> Request:
        """A question whose beginning is the same for every number."""
        criterion = find_criterion("groundedness/yes_no")
        labels = answer_labels(criterion)
        passage, response = f"The train leaves at {number} o'clock.", f"It leaves at {number} o'clock."
        asked = f"Passage: {passage}\nResponse: {response}\nDoes the response keep to the passage? Answers: yes, no.\n"
        return Request(
            response_id=f"R{number:05}",
            turn_id=f"1-1_{number}",
            criterion=criterion.name,
            form=form,
            messages=(
                Message("system", _SHORT_PREFIX if self.facts.local else _PREFIX),
                Message("user", asked + form_instruction(labels, form, per_sentence=False)),
            ),
            scale=criterion.scale,
            labels=labels,
            sentences=0,
            response=response,
            passages=(passage,),
        )

    def find(self, check: str, state: CheckState, found: str, advice: str | None = None) -> CheckFinding:
        """A finding about this judge; a failure ends the examination, since all else would only repeat it."""
        self.over = self.over or state == "fails"
        return CheckFinding(check, state, redact(found), advice, self.name)
