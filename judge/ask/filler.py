"""Replies to a JSON schema that are white space up to the token limit, and when a judge gives too many of them. Pure.

Constrained decoding lets a weak model write white space for ever, wherever JSON allows it. Nothing in such a reply is a
verdict, and the same model may well give one in the text form.
"""

from judge.models.records import AnswerForm, Completion

FEW = 3
"""With fewer replies of white space than this, a judge is still asked under the schema."""
SHARE = 0.1
"""With a smaller share of its replies under the schema, too."""
CUT_OFF = frozenset({"length", "max_tokens"})
"""Finish reasons of a reply that ended at the token limit."""


def is_filler(completion: Completion, form: AnswerForm) -> bool:
    """Whether a reply to a JSON schema was cut off in white space that makes up most of it.

    >>> is_filler(Completion(text='{"rationale":' + " " * 50, finish_reason="length", model=None), "json")
    True
    """
    text = completion.text
    return form == "json" and completion.finish_reason in CUT_OFF and 2 * len(text.rstrip()) < len(text)


class SchemaReplies:
    """How many replies of a judge to a JSON schema there were, and how many of them were white space."""

    def __init__(self) -> None:
        self.heard = self.filler = 0

    def count(self, completion: Completion, form: AnswerForm) -> None:
        """Count a reply."""
        self.heard += form == "json"
        self.filler += is_filler(completion, form)

    @property
    def hopeless(self) -> bool:
        """Whether at least three replies, and a tenth of all, were white space."""
        return self.filler >= FEW and self.filler >= SHARE * self.heard
