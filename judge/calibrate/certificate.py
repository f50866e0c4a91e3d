"""The certificate: which prompt, judge and parameters were calibrated, on which gold, and with what result."""

import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.carried import carried_words, support_words
from judge.calibrate.certified import Certified, probed_words
from judge.calibrate.findings import LabeledSupport
from judge.errors import InputError
from judge.io.files import StrPath, json_bytes, read_stored, sha256
from judge.io.installed import __version__
from judge.io.text import count, printable, shown
from judge.records import Criterion

SCHEMA = 3
CALIBRATED = "CALIBRATED"
"""The first word of the banner where every criterion is as certified, and trusted."""
_UNCALIBRATED = "UNCALIBRATED"
_LIBRARIES = ("krippendorff", "msgspec", "numpy", "scipy")
PARAMETERS = ("temperature", "seed", "base_url", "logprobs", "form", "omit", "reasoning_effort")
"""The options of a judge that certificates record."""


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`certificate.json`."""

    schema: int
    date: str
    """ISO date of the calibration."""
    judge_version: str
    python: str
    libraries: dict[str, str]
    certified: tuple[Certified, ...]
    digest: str
    """SHA-256 of all other fields."""


class _Layout(msgspec.Struct):
    """The part of a certificate that says how to read the rest."""

    schema: int


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


MODEL_RETURNED = "model returned"
"""The item of a `Match` that has the models as the provider named them."""


class CertificateStatement(msgspec.Struct, frozen=True):
    """What a run may say about its judge."""

    calibrated: bool
    """Whether every criterion matches and is TRUSTED."""
    banner: str
    """The line that stands over every output."""
    matches: tuple[Match, ...]


def certified_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of a judge's options, as records show them, those that may change a grade."""
    return {name: options.get(name) for name in PARAMETERS}


def make_certificate(certified: Sequence[Certified], date: str) -> Certificate:
    """A certificate of these results, with the versions of the package, Python and the libraries in use."""
    libraries = {name: version(name) for name in _LIBRARIES}
    made = Certificate(
        schema=SCHEMA,
        date=date,
        judge_version=__version__,
        python=platform.python_version(),
        libraries=libraries,
        certified=tuple(certified),
        digest="",
    )
    return msgspec.structs.replace(made, digest=certificate_digest(made))


def certificate_digest(certificate: Certificate) -> str:
    """SHA-256 of the content, as JSON with sorted keys and without the field `digest`."""
    return sha256(json_bytes(msgspec.structs.replace(certificate, digest="")))


def certificate_bytes(certificate: Certificate, path: Path) -> bytes:
    """The content of `certificate.json`; an equal certificate already at `path` keeps its date, and so its bytes."""
    try:
        earlier = read_certificate(path) if path.exists() else None
    except InputError:
        earlier = None
    if earlier is not None:
        dated = msgspec.structs.replace(earlier, date=certificate.date, digest=certificate.digest)
        certificate = earlier if dated == certificate else certificate
    return json_bytes(certificate)


def read_certificate(path: StrPath) -> Certificate:
    """The certificate in a file.

    An InputError if the file cannot be read, is not a certificate, has another layout, or was changed afterwards.
    """
    try:
        content = read_stored(path)
        layout = msgspec.json.decode(content, type=_Layout).schema
        if layout != SCHEMA:
            raise InputError(f"{path}: certificate of layout {layout}, this is judge {__version__} (layout {SCHEMA})")
        certificate = msgspec.json.decode(content, type=Certificate)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a certificate that judge wrote: {error}") from error
    digest = certificate_digest(certificate)
    if digest != certificate.digest:
        raise InputError(
            f"{path}: a certificate that was changed afterwards certifies nothing: its digest is "
            f"{shown(certificate.digest)}, that of its content {digest}"
        )
    return certificate


def match_run(
    certificate: Certificate,
    criteria: Iterable[Criterion],
    judge: str,
    parameters: Mapping[str, Any],
    models_returned: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Match, ...]:
    """Every item of the certificate beside that of the run, by criterion.

    Of the judge's options only PARAMETERS are compared, and the models that the provider named by criterion only once
    there are any.
    """
    by_criterion = {entry.criterion: entry for entry in certificate.certified}
    matches: list[Match] = []
    for criterion in criteria:
        entry = by_criterion.get(criterion.name)
        if entry is None:
            matches.append(
                Match(criterion=criterion.name, item="criterion", certified="not certified", found=criterion.name)
            )
            continue
        pairs: list[tuple[str, object, object]] = [
            ("judge", entry.judge, judge),
            ("prompt", entry.prompt, criterion.prompt_id),
            ("prompt digest", entry.prompt_digest, criterion.digest),
            ("parser", entry.parser, PARSER_VERSION),
            ("renderer", entry.renderer, RENDERER_VERSION),
        ]
        options = entry.parameters if entry.parameters is not None else dict.fromkeys(PARAMETERS, "unknown")
        pairs += [(name, options.get(name), parameters.get(name)) for name in PARAMETERS]
        if models_returned is not None:
            pairs.append((MODEL_RETURNED, entry.models_returned, tuple(models_returned.get(criterion.name, ()))))
        for item, certified, own in pairs:
            matches.append(Match(criterion=criterion.name, item=item, certified=_shown(certified), found=_shown(own)))
    return tuple(matches)


def statement(
    certificate: Certificate,
    matches: Sequence[Match],
    criteria: Iterable[Criterion],
    supports: Mapping[str, LabeledSupport] = MappingProxyType({}),
) -> CertificateStatement:
    """Whether the run may call its grades calibrated, and the banner that stands over every output.

    `supports`: by criterion, whether the responses are like those that the certificate rests on.
    """
    levels = {criterion.name: criterion.scale.levels for criterion in criteria}
    names = list(dict.fromkeys(match.criterion for match in matches))
    by_criterion = {entry.criterion: entry for entry in certificate.certified}
    words = {name: _word(by_criterion.get(name), matches, len(levels.get(name, ()))) for name in names}
    word = _headline(words.values())
    parts = []
    for name in names:
        unlike = [match for match in matches if match.criterion == name and not match.same]
        # Another address is no other judge, and the statement names it.
        different = [match for match in unlike if match.item != "base_url"]
        entry = by_criterion.get(name)
        if entry is None:
            parts.append(f"{name}: no certificate")
            continue
        if different:
            listed = "; ".join(difference(match.item, match.certified, match.found) for match in different)
            parts.append(f"{name}: not as certified ({listed})")
            continue
        verdict = "" if entry.verdict == word else f"{entry.verdict} "
        parts.append(f"{name}: as certified, {verdict}{_result(entry)}")
        parts += [f"Its {m.item} is another: {m.certified} certified, {m.found} here" for m in unlike]
        if entry.probed is not None:
            parts.append(f"It was {probed_words(entry.probed)}")
        if entry.carried is not None:
            parts.append(carried_words(entry.carried))
        if name in supports:
            parts.append(support_words(supports[name]))
        if _is_collapsed(entry, len(levels.get(name, ()))):
            parts.append(f"That is about positive or not, and not about the grades of {name}")
    # A certificate may come from anyone: no character of it may break out of the banner.
    banner = printable(f"{word} (certificate of {certificate.date}): {'. '.join(parts)}.")
    return CertificateStatement(word == CALIBRATED, banner, tuple(matches))


def _word(entry: Certified | None, matches: Sequence[Match], levels: int) -> str:
    """What a certificate makes of the grades under one criterion of so many levels, in a word.

    `entry`: what it certifies of the criterion; None if nothing.
    """
    if entry is None or _is_collapsed(entry, levels):
        return _UNCALIBRATED
    # Another address is no other judge.
    if any(match.criterion == entry.criterion and not match.same and match.item != "base_url" for match in matches):
        return _UNCALIBRATED
    return CALIBRATED if entry.verdict == "TRUSTED" else entry.verdict


def _headline(words: Collection[str]) -> str:
    """The word for all criteria: UNCALIBRATED where one is not as certified, else the worst of their verdicts."""
    for word in (_UNCALIBRATED, "NOT TRUSTED", "INCONCLUSIVE"):
        if word in words:
            return word
    return CALIBRATED if words else _UNCALIBRATED


def _is_collapsed(entry: Certified, levels: int) -> bool:
    """Whether grades of more than two levels were compared as positive or not."""
    return entry.binary and levels > 2


def difference(item: str, certified: str, found: str) -> str:
    """What a banner says of an item that is not as certified."""
    return f"{item}: {certified} certified, {found} here"


def _result(entry: Certified) -> str:
    text = f"by {' and '.join(entry.requirements)}, {entry.statistic} {_interval(entry)} on {entry.split}"
    text += f", chosen among {entry.tried}" if entry.tried > 1 else ""
    if entry.looks is not None and entry.looks.number > 1:
        text += f", test grades opened for {entry.looks.number} different questions"
        text += f" with {count(entry.looks.candidates, 'candidate')}"
    return text


def _interval(entry: Certified) -> str:
    estimate = entry.estimate
    unit = "theme" if entry.resampling.get("cluster") == "theme" else "topic"
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return f"without an interval ({estimate.reason})"
    n = f"n={estimate.n}, {count(estimate.topics, unit)}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}] ({n})"


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
