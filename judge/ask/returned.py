"""Notes about replies: the models that answered, how sure a judge is, who judged what. Pure."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from judge.ask.records import Failure, Judgment
from judge.ask.results import kinds_of
from judge.io.ids import groups_of
from judge.io.text import count, decimals, printable
from judge.judges.backends import backend_facts
from judge.judges.credentials import MASK

_SNAPSHOT = re.compile(r"([-@:_](\d{4}-\d\d-\d\d|\d\d-\d{2,4}|v?\d{3,}|v\d+|latest))*")
"""What providers add to a model's name: the date or the version of what they serve under it today."""


_TOLD = re.compile(r"([-@:_.](\d{4}-\d\d-\d\d|\d\d-\d{2,4}|v?\d{1,8}|latest|preview)){0,3}")
"""What may stand behind the name that was asked and tells no more than a date or a version."""


def unpublished_models(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The names by which servers call their models and that are not published, each with what stands in its place.

    A server may put anything there, a path of its machine or a text that it was sent. The name that was asked is known
    anyway, also with a date or a version behind it, and so is the one that a backend gives itself.

    `named`: judge and name, as replies pair them.

    >>> unpublished_models([("server/m-7b", "m-7b-2026-01-31"), ("server/m-7b", "/srv/team-x/m-7b")])
    {'/srv/team-x/m-7b': 'unpublished-model-1'}
    """
    known = dict[str, bool]()
    for judge, model in dict.fromkeys(named):
        known[model] = known.get(model, False) or _is_known(judge, model)
    hidden = sorted(model for model, is_known in known.items() if not is_known)
    return {model: f"unpublished-model-{number}" for number, model in enumerate(hidden, 1)}


def with_model(result: Judgment | Failure, models: Mapping[str, str]) -> Judgment | Failure:
    """The result with what stands in place of a hidden name of its model."""
    if isinstance(result, Judgment) and result.model is not None and result.model in models:
        return msgspec.structs.replace(result, model=models[result.model])
    return result


def _is_known(judge: str, model: str) -> bool:
    if backend_facts(judge).self_named:
        return True
    answered = model.lower()
    if answered == judge.lower():
        return True
    asked = judge.partition("/")[2].lower().split("/")
    # Behind a gateway, a model may answer without the names of those that it was asked through.
    for place in range(len(asked)):
        name = "/".join(asked[place:]).removesuffix("-latest")
        if answered.startswith(name) and _TOLD.fullmatch(answered[len(name) :]) is not None:
            return True
    return False


def model_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """A sentence for each judge whose replies name another model than the one asked, or several.

    A name with a date or a version behind it (`gpt-x-2026-01-31` for `gpt-x`) is the model that was asked.
    """
    named: dict[str, Counter[str]] = {}
    for kind, number in kinds_of(results).items():
        if kind.model:
            named.setdefault(kind.judge, Counter())[kind.model] += number
    notes = []
    for judge, models in sorted(named.items()):
        other = [model for model in models if not _is_asked(judge, model)]
        if other or len(models) > 1:
            counts = ", ".join(f"{model!r} ({number})" for model, number in sorted(models.items()))
            what = "another model than the one asked" if other else "several models"
            so = "Grades of several models are not one judge's." if len(models) > 1 else "The grades are that model's."
            notes.append(f"{judge}: its replies name {what}: {counts}. {so}")
    return tuple(notes)


def mask_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """A sentence for each judge whose replies lost something that is written nowhere."""
    masked: Counter[str] = Counter()
    for kind, number in kinds_of(results).items():
        if kind.masked:
            masked[kind.judge] += number
    return tuple(
        f"{judge}: {count(number, 'result')} with {MASK}: a key or password stood there, or the judge wrote the stars."
        for judge, number in sorted(masked.items())
    )


def form_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """A sentence for each judge whose judgments were answered in several forms, with the share of each."""
    forms: dict[str, Counter[str]] = {}
    for kind, number in kinds_of(results).items():
        if kind.form is not None:
            forms.setdefault(kind.judge, Counter())[kind.form] += number
    notes = []
    for judge, counts in sorted(forms.items()):
        if len(counts) > 1:
            shares = ", ".join(f"{number} in the form {form}" for form, number in counts.most_common())
            notes.append(f"{judge}: of {counts.total()} judgments, {shares}.")
    return tuple(notes)


def _is_asked(judge: str, model: str) -> bool:
    if backend_facts(judge).self_named:
        return True
    # A path or a provider may stand before the name on either side.
    asked = judge.rpartition("/")[2].lower().removesuffix("-latest")
    answered = model.rpartition("/")[2].lower()
    return answered.startswith(asked) and _SNAPSHOT.fullmatch(answered[len(asked) :]) is not None


def by_criterion(parts: Mapping[str, str]) -> Iterator[str]:
    """Which criteria each judge judges, in words.

    >>> list(by_criterion({"groundedness": "checker/overlap", "naturalness": "local/x", "relevance": "local/x"}))
    ['groundedness by checker/overlap', 'naturalness and relevance by local/x']
    """
    for judge in dict.fromkeys(parts.values()):
        yield f"{' and '.join(name for name, by in parts.items() if by == judge)} by {judge}"


def entropy(probabilities: Mapping[str, float]) -> float:
    """-Σ p log₂ p in bits: 0 for a judge that is sure of one label, log₂ k where all k labels are alike.

    >>> entropy({"0": 0.5, "1": 0.25, "2": 0.25, "3": 0.0})
    1.5
    """
    total = math.fsum(probabilities.values())
    return math.fsum(-p / total * math.log2(p / total) for p in probabilities.values() if p > 0)


def certainty_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """For each judge and prompt a sentence: how many judgments have label probabilities, and their mean entropy."""
    judgments = (result for result in results if isinstance(result, Judgment))
    groups = groups_of(((each.judge, each.criterion, each.variant), each) for each in judgments)
    return tuple(_note(judge, f"{name}/{variant}", found) for (judge, name, variant), found in groups.items())


def _note(judge: str, prompt: str, judgments: Sequence[Judgment]) -> str:
    told = [judgment.probabilities for judgment in judgments if judgment.probabilities]
    said = f"{judge} under {prompt}: {len(told)} of {len(judgments)} judgments have label probabilities"
    if not told:
        return said
    mean = math.fsum(map(entropy, told)) / len(told)
    most = math.log2(max(map(len, told)))
    return f"{said}, with a mean entropy of {decimals(mean, 2)} bits (0 is sure, {most:.2f} is no idea)"


def judge_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """Which judge judged which criterion, if it is not one judge."""
    judges: dict[str, set[str]] = {}
    for kind in kinds_of(results):
        if kind.reason is None:
            judges.setdefault(kind.criterion, set()).add(kind.judge)
    parts = {criterion: min(names) for criterion, names in judges.items() if len(names) == 1}
    if len(parts) < len(judges) or len(set(parts.values())) < 2:
        return ()
    return (f"Judged: {printable(', '.join(by_criterion(parts)))}.",)
