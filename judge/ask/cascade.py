"""A cascade: a checker settles the items that it is sure of, and another judge is asked the rest. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from judge.ask.records import Failure, Judgment
from judge.errors import UsageError
from judge.models.backends import backend_facts
from judge.models.checkers import SUPPORTED, THRESHOLD
from judge.records import Criterion, Record
from judge.text.cells import count
from judge.text.safe import printable

_WRITTEN = re.compile(r"(?P<checker>.+)@(?P<low>[^@:/]+):(?P<high>[^@:/]+)")
_NAMED = re.compile(r"(?P<checker>[^/]+/.+?)@[0-9.e-]+:[0-9.e-]+\+(?P<model>.+)", re.DOTALL)


class Cascade(Record, frozen=True):
    """A checker with two bounds of the probability that a passage supports a sentence.

    An item is settled if the highest probability of each of its sentences is at most `low` or at least `high`. The
    grade is then the same at every threshold above `low` and up to `high`.
    """

    checker: str
    """The checker's name, without a threshold."""
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.checker}@{self.low:.12g}:{self.high:.12g}"

    @property
    def threshold(self) -> float:
        """The threshold that the checker labels sentences by: its usual one where that lies between the bounds."""
        return THRESHOLD if self.low < THRESHOLD <= self.high else self.high

    @property
    def first(self) -> str:
        """How the checker is opened, and how records name it as a judge."""
        return self.checker if self.threshold == THRESHOLD else f"{self.checker}@{self.threshold:.12g}"

    def judge(self, model: str) -> str:
        """The name of the whole, with the model that is asked the rest."""
        return f"{self}+{model}"

    def settles(self, judgment: Judgment | Failure) -> bool:
        """Whether a result of the checker stands: it is sure of every sentence that claims something, and of one.

        Args:
            judgment: What the checker said of an item, labeled by `threshold`.
        """
        if not isinstance(judgment, Judgment):
            return False
        told = [
            (support.probability, label)
            for support, label in zip(judgment.support, judgment.sentences, strict=False)
            if support.probability is not None
        ]
        # Probabilities are rounded in records, so the label says on which side of the threshold one lies.
        return bool(told) and all(
            probability >= self.high if label == SUPPORTED else probability <= self.low for probability, label in told
        )

    def settled(self, judgment: Judgment, model: str, sample: int = 0) -> Judgment:
        """The checker's judgment as one of the cascade; the models that providers name are those asked the rest."""
        return msgspec.structs.replace(judgment, cascade=self.judge(model), model=None, sample=sample)

    def recorded(self, address: str | None = None) -> dict[str, Any]:
        """The cascade as JSON values, for a configuration.

        Args:
            address: Where the checker is served, without credentials; None for one that needs no server.
        """
        described = {"checker": self.checker, "low": self.low, "high": self.high}
        return described if address is None else {**described, "base_url": address}


def parse_cascade(text: str) -> Cascade:
    """Read `CHECKER@LOW:HIGH`.

    Raises:
        UsageError: It has another form, the checker has a threshold, or the bounds are none.
    """
    found = _WRITTEN.fullmatch(text)
    low, high = (_number(found[name]) if found else -1.0 for name in ("low", "high"))
    if found is None or not backend_facts(found["checker"]).checker or not 0 <= low < high <= 1:
        raise UsageError(
            f"cascade {printable(text)!r}: expected a checker and two probabilities, the lower one first, such as "
            "checker/overlap@0.1:0.8 (--cascade)"
        )
    # An `@` before a `/` is part of a path.
    before, at, last = found["checker"].rpartition("@")
    if at and _number(last) >= 0:
        raise UsageError(
            f"cascade {printable(text)!r}: the bounds say which threshold the checker labels by, so leave out "
            f"{printable('@' + last)!r} and write {printable(f'{before}@{low:.12g}:{high:.12g}')} (--cascade)"
        )
    return Cascade(found["checker"], low, high)


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return -1.0


def is_cascade(judge: str) -> bool:
    """Whether a judge is a cascade, by its name."""
    return _parts(judge) is not None


def asked_model(judge: str) -> str:
    """The model that a judge asks: of a cascade the one that is asked the rest, of another judge itself.

    >>> asked_model("checker/overlap@0.1:0.8+openai/gpt-x"), asked_model("openai/gpt-x")
    ('openai/gpt-x', 'openai/gpt-x')
    """
    found = _parts(judge)
    return found["model"] if found else judge


def _parts(judge: str) -> re.Match[str] | None:
    """The checker and the model in the name of a cascade; None if the judge is none."""
    found = _NAMED.fullmatch(judge)
    return found if found and backend_facts(judge).checker else None


def rolls_up_support(criterion: Criterion) -> bool:
    """Whether a prompt's grade is the share of supported sentences, which alone the bounds decide."""
    return criterion.rollup is not None and criterion.rollup.label == SUPPORTED


class SettledCount(Record, frozen=True):
    """What became of the items of one criterion in a cascade."""

    criterion: str
    cascade: str
    checker: str | None
    """The checker as records name it; None where it settled nothing."""
    settled: int
    """Items with a judgment of the checker."""
    asked: int
    """Items that the other judge was asked, or would have been with more money or a provider that answers."""
    without_evidence: int
    """Items that nobody was asked, because the texts of passages are missing."""
    checker_failed: int = 0
    """Of the items in `asked`, those on which the checker failed."""

    @property
    def share(self) -> float | None:
        """The share of the items with evidence that the checker settled; None if there are none."""
        put = self.settled + self.asked
        return self.settled / put if put else None


def settled_counts(results: Iterable[Judgment | Failure]) -> tuple[SettledCount, ...]:
    """A row for each criterion and cascade among results, in the order of their first results."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    checkers: dict[str, str] = {}
    for result in results:
        if result.cascade is None:
            continue
        said = rows.setdefault((result.criterion, result.cascade), Counter())
        if isinstance(result, Failure) and result.reason == "no_passages":
            said["without_evidence"] += 1
        elif was_settled(result):
            said["settled"] += 1
            checkers[result.cascade] = result.judge
        else:
            said["asked"] += 1
            said["checker_failed"] += result.checker_failed is not None
    return tuple(
        SettledCount(
            *(criterion, name, checkers.get(name)),
            *(said["settled"], said["asked"], said["without_evidence"], said["checker_failed"]),
        )
        for (criterion, name), said in rows.items()
    )


def was_settled(result: Judgment | Failure) -> bool:
    """Whether a result is the checker's of a cascade."""
    return result.cascade is not None and result.judge != asked_model(result.cascade)


def cascade_notes(results: Sequence[Judgment | Failure]) -> tuple[str, ...]:
    """A sentence for each criterion that a cascade judged: how much the checker settled; none without a cascade."""
    return tuple(_note(row) for row in settled_counts(results))


def _note(row: SettledCount) -> str:
    said = (
        f"{printable(row.criterion)}: {printable(row.checker or _checker_of(row.cascade))} settled {row.settled} "
        f"of {count(row.settled + row.asked, 'judgment')}{_percent(row.share)}, and {row.asked} went to "
        f"{printable(asked_model(row.cascade))}."
    )
    if row.checker_failed:
        said += f" On {row.checker_failed} of these the checker failed."
    if row.settled and row.asked:
        said += f" So the grades are those of two judges: {printable(row.cascade)}."
    return said


def _checker_of(cascade: str) -> str:
    found = _parts(cascade)
    return found["checker"] if found else cascade


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({100 * share:.0f} %)"
