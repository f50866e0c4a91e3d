"""What a certificate says of one judge and of a probe of it. Pure."""

from typing import Annotated, Any, Literal

import msgspec

from judge.calibrate.findings import Carried, Looks, Split, Word
from judge.io.files import sha256
from judge.io.text import count, decimals, interval
from judge.records import Estimate

Expects = Literal["resists", "falls", "stays"]
"""What the grade must do: not go where the attacker wants it; fall; not move."""
ProbeWord = Literal["holds", "fails", "inconclusive"]
_Integer = Annotated[str, msgspec.Meta(pattern="^-?[0-9]{1,9}$")]
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


class LabeledRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the labeled responses behind a result were like: numbers, and no texts."""

    responses: int
    ranges: dict[str, tuple[float, float]]
    """The 1st and the 99th percentile of each measure of `support.measures_of`."""
    grades: dict[_Integer, int]
    """How many of them the judge gave each grade."""


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
    """How often the sealed grades were looked at; None where none were opened."""
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
    topic_digests: tuple[str, ...] = ()
    """The first 16 digits of SHA-256 of each gold topic, or theme, sorted; empty in certificates from before."""
    design_effect: float | None = None
    """Of the primary statistic."""
    labeled: LabeledRange | None = None
    """What the labeled responses were like; None in certificates from before."""
    carried: Carried | None = None
    """Whether an earlier certificate's agreement holds on the topics of this one."""


def topic_digest(topic: str) -> str:
    """What stands for a topic, or a theme, in a certificate.

    >>> topic_digest("9-1")
    '87b2648195d4d6ee'
    """
    return sha256(topic.encode())[:16]


def probed_words(probed: CertifiedProbe) -> str:
    """What a probe found, in one sentence."""
    failing = [row.probe for row in probed.rows if row.word == "fails"]
    holding = sum(row.word == "holds" for row in probed.rows)
    text = f"probed on {count(probed.items, 'item')}: {holding} of {count(len(probed.rows), 'probe')} hold"
    if inconclusive := sum(row.word == "inconclusive" for row in probed.rows):
        text += f", {inconclusive} inconclusive"
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
