"""Forms: how the lines of each kind of batch are written and read.

A new form is a module with a `FORM` and a row in `FORMS`.
"""

from judge.errors import UsageError
from judge.models.batch.forms import anthropic, gemini, openai
from judge.models.batch.forms.form import BatchForm

FORMS = {
    "openai/": openai.FORM,
    "server/": openai.SERVED,
    "litellm/anthropic/": anthropic.FORM,
    "litellm/gemini/": gemini.FORM,
    "litellm/": openai.FORM,
}
"""The beginning of a judge's name to the form of its lines; the first row that fits counts."""


def form_of(judge: str) -> BatchForm:
    """The form in which a judge's requests are written.

    Raises:
        UsageError: The judge runs in this process, so there is nothing to hand over.
    """
    for begins, form in FORMS.items():
        if judge.startswith(begins):
            return form
    raise UsageError(
        f"{judge} is asked in this process, so there are no requests to hand over; `judge run` asks it "
        f"(requests are written for {', '.join(f'{begins}…' for begins in FORMS)})"
    )
