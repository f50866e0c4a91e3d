"""Forms: how the lines of each kind of batch are written and read.

A new form is a module with a `FORM` and a row in `FORMS`.
"""

from judge.errors import UsageError
from judge.models.backends import batch_format, batch_judges
from judge.models.batch.forms import anthropic, gemini, openai
from judge.models.batch.forms.form import BatchForm

FORMS = {
    "openai": openai.FORM,
    "server": openai.SERVED,
    "anthropic": anthropic.FORM,
    "gemini": gemini.FORM,
    "litellm": openai.FORM,
}
"""The batch format of a judge, as its backend names it, to the form of its lines."""


def form_of(judge: str) -> BatchForm:
    """The form in which a judge's requests are written.

    Raises:
        UsageError: The judge runs in this process, so there is nothing to hand over.
    """
    name = batch_format(judge)
    if name is not None:
        return FORMS[name]
    raise UsageError(
        f"{judge} is asked in this process, so there are no requests to hand over; `judge run` asks it "
        f"(requests are written for {batch_judges(FORMS)})"
    )
