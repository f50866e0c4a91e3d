"""What is known of the endpoint of one judge, and kept in the journal, so that a later run asks in the same way."""

from judge.ask.dialect import Dialect
from judge.errors import OperationalError
from judge.judges.forms import supported_forms
from judge.judges.journal import Journal, JournalView
from judge.judges.model import Model
from judge.judges.records import AnswerForm
from judge.records import AnswerKind, Criterion

_OMITTED, _REFUSED, _SETTLED, _READ = "omitted", "refused", "settled", "read"
"""Kinds of facts: what the endpoint refuses, the ways of asking in which it has answered, and the kinds of answer of
which one could be read."""
_ROOM, _FAILED, _WARNED = "room", "failed", "warned"
"""Others: the token limits under which it was asked, the requests that failed for themselves, and whether a run ended
because its first answers failed alike."""


class Endpoint:
    """What a judge's endpoint takes, as far as its answers have shown; a view of a journal remembers nothing new."""

    def __init__(self, model: Model, journal: JournalView) -> None:
        self._model = model
        self._journal = journal
        self._facts = journal.facts(model.name)
        self.dialect = remembered_dialect(journal, model.name)
        """What it refuses of what is usually sent."""
        self.rooms = remembered_rooms(journal, model.name)
        """The token limits under which it was asked."""
        self._forms: dict[tuple[str, AnswerKind, frozenset[str]], list[AnswerForm]] = {}
        """Forms by prompt, kind of answer, and what is refused; they are wanted several times for each question."""

    def _add(self, kind: str, value: str) -> None:
        if (kind, value) in self._facts:
            return
        self._facts.add((kind, value))
        if isinstance(self._journal, Journal):
            self._journal.add_fact(kind, value, self._model.name)

    def check(self) -> None:
        """Refuse what the user set and the endpoint is known not to take, as an OperationalError."""
        refused = sorted(self.dialect.omitted.intersection(self._model.required))
        if refused:
            raise OperationalError(f"{self._model.name} does not take {', '.join(refused)}, which was set")

    # ---------------------------------------------------------------- forms and parameters

    def offered(self, criterion: Criterion) -> list[AnswerForm]:
        """The answer forms that judge, user and criterion take, the preferred one first."""
        taken = supported_forms(criterion)
        omitted = self._model.omitted
        return [form for form in self._model.forms if form in taken and (form != "json" or _SCHEMA not in omitted)]

    def forms(self, criterion: Criterion, dialect: Dialect | None = None) -> list[AnswerForm]:
        """Those of them that the endpoint takes, one after the other: a label is asked for first or not at all.

        An OperationalError if there is none.
        """
        known = dialect or self.dialect
        key = criterion.digest, criterion.answer, known.refused
        if key not in self._forms:
            taken = [form for form in self.offered(criterion) if known.takes(form, criterion.answer)]
            if not taken:
                raise OperationalError(f"{self._model.name} cannot be asked {criterion.prompt_id} in any answer form")
            self._forms[key] = [taken[0], *(form for form in taken[1:] if form != "label")]
        return self._forms[key]

    def next_form(self, criterion: Criterion, form: AnswerForm, dialect: Dialect) -> AnswerForm | None:
        """The form in which a response is asked about that cannot be judged in another one; None if there is none."""
        forms = self.forms(criterion, dialect)
        later = forms[forms.index(form) + 1 :] if form in forms else forms
        return later[0] if later else None

    def learn(self, dialect: Dialect) -> bool:
        """Remember what the endpoint refuses, beside what is known already, and say whether any of it is new."""
        if dialect.omitted <= self.dialect.omitted and dialect.refused <= self.dialect.refused:
            return False
        self.dialect = Dialect(
            omitted=self.dialect.omitted | dialect.omitted, refused=self.dialect.refused | dialect.refused
        )
        for parameter in dialect.omitted:
            self._add(_OMITTED, parameter)
        for form in dialect.refused:
            self._add(_REFUSED, form)
        return True

    def is_settled(self, criterion: Criterion) -> bool:
        """Whether the endpoint has answered a question of this kind, asked as it is asked first now."""
        return (_SETTLED, self._way(criterion)) in self._facts

    def settle(self, criterion: Criterion) -> None:
        """Remember that the endpoint has answered such a question."""
        self._add(_SETTLED, self._way(criterion))

    def has_judged(self, criterion: Criterion) -> bool:
        """Whether an answer of this kind could be read, or the user was told that none can."""
        return self.has_warned or (_READ, criterion.answer) in self._facts

    def judge(self, criterion: Criterion) -> None:
        """Remember that such an answer could be read."""
        self._add(_READ, criterion.answer)

    def _way(self, criterion: Criterion) -> str:
        """In which form, where, and without what a question of a kind is asked first."""
        way = [self.forms(criterion)[0], criterion.answer, self._model.address or "", *self._model.omitted]
        return " ".join(way).replace(" ", ",")

    # ---------------------------------------------------------------- single requests

    def add_room(self, room: int) -> None:
        """Remember a token limit, before anything is asked under it."""
        self.rooms.add(room)
        self._add(_ROOM, str(room))

    def fail(self, digest: str) -> None:
        """Remember a request that failed for itself, so that it is asked in another way from now on."""
        self._add(_FAILED, digest)

    def has_failed(self, digest: str) -> bool:
        """Whether a request has failed for itself."""
        return (_FAILED, digest) in self._facts

    @property
    def has_warned(self) -> bool:
        """Whether a run was ended because the first answers failed alike."""
        return (_WARNED, "once") in self._facts

    def warn(self) -> None:
        """Remember that it was."""
        self._add(_WARNED, "once")


_SCHEMA = "response_format"
_DIGITS = 10
"""Of a token limit there are fewer."""


def remembered_dialect(journal: JournalView, judge: str) -> Dialect:
    """What a journal knows that a judge's endpoint refuses."""
    facts = journal.facts(judge)
    return Dialect(
        omitted=frozenset(value for kind, value in facts if kind == _OMITTED),
        refused=frozenset(value for kind, value in facts if kind == _REFUSED),
    )


def remembered_rooms(journal: JournalView, judge: str) -> set[int]:
    """The token limits under which a judge was asked."""
    values = (value for kind, value in journal.facts(judge) if kind == _ROOM)
    return {int(value) for value in values if value.isdecimal() and len(value) < _DIGITS}
