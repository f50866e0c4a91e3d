"""The certificate: which prompt, judge and parameters were calibrated, on which gold, and with what result."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.findings import Split, Word
from judge.errors import InputError
from judge.files.bundle import __version__
from judge.files.jsonl import json_bytes
from judge.files.paths import StrPath
from judge.files.stored import read_stored
from judge.records import Criterion, Estimate
from judge.text.safe import printable

SCHEMA = 1
_LIBRARIES = ("krippendorff", "msgspec", "numpy", "scipy")
PARAMETERS = ("temperature", "max_tokens", "seed", "base_url")
"""What of a judge's options may change a grade."""


class Certified(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One criterion's judge and what calibration found of it."""

    criterion: str
    judge: str
    prompt: str | None
    prompt_digest: str | None
    parser: int
    renderer: int
    parameters: dict[str, Any] | None
    """None where the labels came without them; then no run can match."""
    models_returned: tuple[str, ...]
    """The model as the provider named it in its completions."""
    gold: str
    """SHA-256 over the gold files."""
    seal: str | None
    """The commitment of the sealed test grades that the result rests on too."""
    split: Split
    n: int
    topics: int
    tried: int
    """Candidates that this one was chosen among."""
    openings: int | None
    resampling: dict[str, int]
    """Seed, replicates and permutations."""
    binary: bool
    """Grades were compared as positive or not, so that nothing is certified about grades."""
    statistic: str
    estimate: Estimate
    requirements: tuple[str, ...]
    verdict: Word


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`certificate.json`."""

    schema: int
    date: str
    """ISO date of the calibration."""
    judge_version: str
    python: str
    libraries: dict[str, str]
    certified: tuple[Certified, ...]


class Match(msgspec.Struct, frozen=True):
    """One item of a certificate beside what a run has."""

    criterion: str
    item: str
    certified: str
    found: str

    @property
    def same(self) -> bool:
        """Whether they are equal."""
        return self.certified == self.found


class CertificateStatement(msgspec.Struct, frozen=True):
    """What a run may say about its judge."""

    calibrated: bool
    banner: str
    matches: tuple[Match, ...]


def make_certificate(certified: Sequence[Certified], date: str) -> Certificate:
    """A certificate of today's versions."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return Certificate(SCHEMA, date, __version__, platform.python_version(), libraries, tuple(certified))


def certificate_bytes(certificate: Certificate, path: Path) -> bytes:
    """The file's content; an equal certificate that is there already keeps its date, and so its bytes."""
    try:
        there = read_certificate(path) if path.exists() else None
    except InputError:
        there = None
    if there is not None and msgspec.structs.replace(there, date=certificate.date) == certificate:
        certificate = there
    return json_bytes(certificate)


def read_certificate(path: StrPath) -> Certificate:
    """The certificate in a file.

    Raises:
        InputError: It cannot be read, is none, or is of another layout.
    """
    try:
        found = msgspec.json.decode(read_stored(path), type=Certificate)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a certificate that judge wrote: {error}") from error
    if found.schema != SCHEMA:
        raise InputError(f"{path}: certificate of layout {found.schema}, this is judge {__version__} (layout {SCHEMA})")
    return found


def match_run(
    certificate: Certificate,
    criteria: Iterable[Criterion],
    judge: str,
    parameters: Mapping[str, Any],
    models_returned: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Match, ...]:
    """Every item of the certificate beside the run's, by criterion.

    Args:
        certificate: What was calibrated.
        criteria: The run's prompts.
        judge: `backend/model`.
        parameters: The judge's options; those of PARAMETERS count.
        models_returned: By criterion, the models that the provider named; None before anything was asked.
    """
    by_criterion = {one.criterion: one for one in certificate.certified}
    matches: list[Match] = []
    for criterion in criteria:
        one = by_criterion.get(criterion.name)
        if one is None:
            matches.append(Match(criterion.name, "criterion", "not certified", criterion.name))
            continue
        pairs: list[tuple[str, object, object]] = [
            ("judge", one.judge, judge),
            ("prompt", one.prompt, criterion.prompt_id),
            ("prompt digest", one.prompt_digest, criterion.digest),
            ("parser", one.parser, PARSER_VERSION),
            ("renderer", one.renderer, RENDERER_VERSION),
        ]
        known = one.parameters if one.parameters is not None else dict.fromkeys(PARAMETERS, "unknown")
        pairs += [(name, known.get(name), parameters.get(name)) for name in PARAMETERS]
        if models_returned is not None:
            pairs.append(("model returned", one.models_returned, tuple(models_returned.get(criterion.name, ()))))
        matches += [Match(criterion.name, item, _shown(there), _shown(here)) for item, there, here in pairs]
    return tuple(matches)


def statement(
    certificate: Certificate, matches: Sequence[Match], criteria: Iterable[Criterion]
) -> CertificateStatement:
    """Whether the run may call its grades calibrated, and the banner that stands over every output."""
    levels = {criterion.name: criterion.scale.levels for criterion in criteria}
    names = list(dict.fromkeys(match.criterion for match in matches))
    by_criterion = {one.criterion: one for one in certificate.certified}
    parts = []
    calibrated = bool(names)
    for name in names:
        different = [match for match in matches if match.criterion == name and not match.same]
        one = by_criterion.get(name)
        if different or one is None:
            calibrated = False
            listed = "; ".join(f"{m.item}: {m.certified} certified, {m.found} here" for m in different)
            parts.append(f"{name} does not match the certificate ({listed})")
            continue
        collapsed = one.binary and len(levels.get(name, ())) > 2
        calibrated = calibrated and one.verdict == "TRUSTED" and not collapsed
        parts.append(f"{name} is as certified: {_result(one)}")
        if collapsed:
            parts.append(f"That is about positive or not, and not about the grades of {name}")
    word = "CALIBRATED" if calibrated else "UNCALIBRATED"
    # A certificate is a stranger's file: nothing in it may break out of the banner.
    banner = printable(f"{word} (certificate of {certificate.date}): {'. '.join(parts)}.")
    return CertificateStatement(calibrated, banner, tuple(matches))


def _result(one: Certified) -> str:
    """What calibration found, with all that it depends on."""
    text = (
        f"{one.verdict} by {' and '.join(one.requirements)}, {one.statistic} {_interval(one.estimate)} on {one.split}"
    )
    text += f", chosen among {one.tried}" if one.tried > 1 else ""
    if one.openings is not None and one.openings > 1:
        text += f", test grades opened for {one.openings} different questions"
    return text


def _interval(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return f"without an interval ({estimate.reason})"
    n = f"n={estimate.n}, {estimate.topics} topics"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}] ({n})"


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
