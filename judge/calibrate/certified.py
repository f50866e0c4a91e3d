"""What a certificate says of one judge and of a probe of it, and whether it agrees with itself. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec

from judge.calibrate.calibration import parse_requirement, word_of_rule
from judge.calibrate.findings import Looks, Split, Word
from judge.errors import UsageError
from judge.io.text import count, decimals, interval, shown
from judge.records import Estimate
from judge.stats.means import FEWEST_TOPICS

Expects = Literal["resists", "falls", "stays"]
"""What the grade must do: not go where the attacker wants it; fall; not move."""
ProbeWord = Literal["holds", "fails", "inconclusive"]
MOST_MISSING = 0.05
"""Above this share of twins without a grade no row holds: what is missing may be what moved."""
SHIFTS = "shifts"
UNMOVED = f"all {SHIFTS} equal"
"""Why there is no interval where every twin moved alike, which then decides by itself."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FACTS = {"number altered": "numbers", "name altered": "names", "negation": "negations"}


class CertifiedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One probe."""

    probe: str
    expects: Expects
    missing: int
    measure: Estimate
    """What the word comes from, in levels: the mean shift or, of `stays`, the mean size of the shifts."""
    moved: float | None
    word: ProbeWord


class CertifiedProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A probe of the judge, the prompt and the options of one entry."""

    card: str
    """SHA-256 of `probe.json`."""
    items: int
    topics: int
    seed: int
    margin: float
    canaries: int
    rows: tuple[CertifiedRow, ...]


class CertifiedSeal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seal of the test grades that a result rests on."""

    commitment: str
    """The salted digest of the test grades: another one for every split."""
    seed: int
    responses: str
    """SHA-256 of the graded responses of both parts, without grades: the same for every split of one gold file."""


class Certified(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The judge of one criterion, and the result of its calibration."""

    criterion: str
    judge: str
    prompt: str | None
    prompt_digest: str | None
    parser: int
    renderer: int
    parameters: dict[str, Any] | None
    """The judge's options; None where the labels came without them, and then no run can match."""
    models_returned: tuple[str, ...]
    """The models as the provider named them in its completions."""
    gold: str
    """SHA-256 over the gold files."""
    seal: CertifiedSeal | None
    """None where no sealed grades were opened."""
    split: Split
    n: int
    topics: int
    tried: int
    """How many candidates the judge was chosen among."""
    looks: Looks | None
    """How often the gold was looked at; None where no ledger is kept."""
    made: tuple[str, ...]
    """How the gold was made, every way once."""
    graded: int
    """Gold items of the split, graded by the judge or not."""
    resampling: dict[str, int | str]
    """Seed, replicates and permutations, by name; the `cluster` if it is not `topic`."""
    binary: bool
    """Grades were compared as positive or not, so nothing is certified about single grades."""
    statistic: str
    estimate: Estimate
    """The primary statistic, with the interval that the verdict goes by."""
    others: dict[str, Estimate]
    """Other statistics that the requirements bound, by name."""
    requirements: tuple[str, ...]
    verdict: Word
    probed: CertifiedProbe | None = None
    """What `judge probe` found of this very judge; left out of the file where there is none."""


Contradiction = tuple[str, str]
"""A JSON path in the certificate, and what does not go together there."""


def contradictions(certified: Sequence[Certified]) -> list[Contradiction]:
    """Everything in the entries of a certificate that cannot be true together.

    Above all, the verdict is made again from the requirements and the intervals. Not all of a verdict can be: missing
    grades at their worst may have left open what the intervals alone would grant.
    """
    found = [
        ("$.certified", f"{number} entries of {shown(criterion)}: expected one")
        for criterion, number in Counter(entry.criterion for entry in certified).items()
        if number > 1
    ]
    for place, entry in enumerate(certified):
        here = f"$.certified[{place}]"
        problems = chain.from_iterable(check(entry) for check in (_counts, _intervals, _record, _verdict))
        probed = probe_contradictions(entry.probed) if entry.probed is not None else ()
        found += [(f"{here}.{field}", message) for field, message in chain(problems, probed)]
    return found


def _counts(entry: Certified) -> Iterator[Contradiction]:
    if (entry.n, entry.topics) != (entry.estimate.n, entry.estimate.topics):
        basis = f"{entry.n} items on {entry.topics} topics"
        yield "n", f"{basis}, but the estimate rests on {entry.estimate.n} on {entry.estimate.topics}"
    if not 0 <= entry.topics <= entry.n <= entry.graded:
        yield "graded", f"{entry.n} items on {entry.topics} topics of {entry.graded} graded ones"


def _intervals(entry: Certified) -> Iterator[Contradiction]:
    for field, estimate in (("estimate", entry.estimate), *((f"others.{n}", e) for n, e in entry.others.items())):
        low, high = estimate.low, estimate.high
        if estimate.value is None and (low is not None or high is not None):
            yield field, "an interval without a value"
        elif low is not None and high is not None and low > high:
            yield field, f"an interval from {low} to {high}"


def _record(entry: Certified) -> Iterator[Contradiction]:
    if (entry.seal is not None) != (entry.looks is not None and entry.looks.ledger == "seal"):
        yield "looks", "a seal without its ledger, or the ledger of a seal without the seal"
    if entry.looks is not None and (entry.looks.number < 1 or entry.looks.candidates < 0):
        yield "looks.number", f"{entry.looks.number} looks at {entry.looks.candidates} candidates"
    if entry.looks is not None and entry.looks.criterion != entry.criterion:
        yield "looks.criterion", f"{shown(entry.looks.criterion)}, in an entry of {shown(entry.criterion)}"
    digests = {"gold": entry.gold}
    digests |= {"looks.head": entry.looks.head} if entry.looks else {}
    digests |= {"seal.commitment": entry.seal.commitment, "seal.responses": entry.seal.responses} if entry.seal else {}
    for field, digest in digests.items():
        if not _DIGEST.fullmatch(digest):
            yield field, f"{shown(digest)}: expected a SHA-256"


def _verdict(entry: Certified) -> Iterator[Contradiction]:
    try:
        rules = [parse_requirement(text) for text in entry.requirements]
    except UsageError as error:
        yield "requirements", str(error)
        return
    estimates = {
        rule: entry.estimate if rule.statistic == entry.statistic else entry.others.get(rule.statistic)
        for rule in rules
    }
    words = {rule: word_of_rule(rule, estimate) for rule, estimate in estimates.items() if estimate is not None}
    unmet = [rule for rule in rules if words.get(rule) != "TRUSTED"]
    failed = [rule for rule in rules if words.get(rule) == "NOT TRUSTED"]
    if entry.verdict == "TRUSTED" and not rules:
        yield "verdict", "TRUSTED without a requirement"
    if entry.verdict == "TRUSTED" and set(entry.made) != {"blind"}:
        yield "verdict", f"TRUSTED by gold made by {', '.join(map(shown, entry.made)) or 'nobody'}"
    for rule in unmet if entry.verdict == "TRUSTED" else failed if entry.verdict == "INCONCLUSIVE" else ():
        yield "verdict", f"{entry.verdict}, but {rule} is {_against(estimates[rule])}"
    if entry.verdict == "NOT TRUSTED" and not failed:
        yield "verdict", "NOT TRUSTED, but no requirement is failed by its interval"


def _against(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return "without an interval"
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def probed_words(probed: CertifiedProbe) -> str:
    """What a probe found, in one sentence."""
    failing = [row.probe for row in probed.rows if row.word == "fails"]
    holding = sum(row.word == "holds" for row in probed.rows)
    text = f"probed on {count(probed.items, 'item')}: {holding} of {count(len(probed.rows), 'probe')} hold"
    text += f", failing: {', '.join(failing)}" if failing else ", none fails"
    worst = max(
        (row for row in probed.rows if row.expects == "resists" and row.measure.value is not None),
        key=lambda row: row.measure.value or 0.0,
        default=None,
    )
    if worst is not None:
        shift = interval(worst.measure, 2, signed=True)
        text += f"; {count(probed.canaries, 'canary', 'canaries')}, largest shift {shift} ({worst.probe})"
    found = [
        f"{noun} {decimals(row.moved, 2)}"
        for name, noun in _FACTS.items()
        for row in probed.rows
        if row.probe == name and row.moved is not None
    ]
    return f"{text}; share of altered facts that lower the grade: {', '.join(found)}" if found else text


def probe_contradictions(probed: CertifiedProbe) -> Iterator[Contradiction]:
    """Fields and messages of what cannot be true together; above all, each word is made again from its interval."""
    if not _DIGEST.fullmatch(probed.card):
        yield "probed.card", f"{shown(probed.card)}: expected a SHA-256"
    for place, row in enumerate(probed.rows):
        where, measure = f"probed.rows[{place}]", row.measure
        if not 0 <= measure.topics <= measure.n <= probed.items or row.missing < 0:
            yield f"{where}.measure", f"{measure.n} items on {measure.topics} topics of {probed.items} drawn"
        if measure.low is not None and measure.high is not None and measure.low > measure.high:
            yield f"{where}.measure", f"an interval from {measure.low} to {measure.high}"
        again = word_for(row.expects, measure, row.missing, probed.margin)
        if again != row.word:
            yield f"{where}.word", f"{row.word}, but the interval says {again}"


def word_for(expects: Expects, measure: Estimate, missing: int, margin: float) -> ProbeWord:
    """Whether a judge does what a probe expects, by the 95 % interval of what is measured.

    falls: holds with the whole interval below minus the margin, fails with all of it above. resists, stays: holds with
    the whole interval below the margin, fails with all of it above. Where all shifts are equal there is no interval,
    and the value decides.

    The measure is of `resists` the mean shift towards where the attacker wants the grade, of `falls` that towards the
    good end, of `stays` the mean size of the shifts: ups and downs that cancel out are no invariance.
    """
    ends = ends_of(measure)
    if ends is None:
        return "inconclusive"
    low, high = ends
    limit = -margin if expects == "falls" else margin
    holds, fails = high < limit, low > limit
    if holds and missing > MOST_MISSING * (missing + measure.n):
        return "inconclusive"
    return "holds" if holds else "fails" if fails else "inconclusive"


def ends_of(measure: Estimate) -> tuple[float, float] | None:
    """The ends of the interval; both are the value where all shifts of enough topics are equal."""
    if measure.low is not None and measure.high is not None:
        return measure.low, measure.high
    if measure.value is not None and measure.reason == UNMOVED and measure.topics >= FEWEST_TOPICS:
        return measure.value, measure.value
    return None
