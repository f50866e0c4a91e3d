"""A probe in the certificate of the judge that it is of: the same prompt, model, options, parser and renderer."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.calibrate.certificate import Certificate, Match, certificate_digest, match_run
from judge.calibrate.certified import Certified
from judge.calibrate.probe.card import ProbeCard, ProbedJudge
from judge.calibrate.probe.certified import certified_probe
from judge.errors import UsageError
from judge.models.model import Model
from judge.records import Criterion


def check_bound(
    certificate: Certificate,
    models: Sequence[Model],
    criteria: Sequence[Criterion],
    options: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse a certificate of another judge before anything is asked.

    Args:
        certificate: What was calibrated.
        models: The judges of the probe.
        criteria: Its prompts.
        options: Name of a model to its options.

    Raises:
        UsageError: No judge under no prompt is what the certificate certifies.
    """
    differing: list[str] = []
    for model in models:
        for criterion in criteria:
            different = _different(match_run(certificate, [criterion], model.name, options[model.name]))
            if not different:
                return
            differing.append(f"{criterion.prompt_id} by {model.name}: {different}")
    raise UsageError(f"the certificate is of another judge ({'. '.join(differing)})")


def with_probe(
    certificate: Certificate, card: ProbeCard, digest: str, criteria: Sequence[Criterion]
) -> tuple[Certificate | None, tuple[str, ...]]:
    """The certificate with the probe in the entries that it is of, and a sentence for each entry that it is not of.

    Args:
        certificate: What was calibrated.
        card: What the probe found.
        digest: SHA-256 of `probe.json`.
        criteria: The prompts of the probe.

    Returns:
        The new certificate, or None if the probe is of none of its entries; the sentences.
    """
    by_digest = {criterion.digest: criterion for criterion in criteria}
    entries: list[Certified] = []
    notes: list[str] = []
    bound = False
    for entry in certificate.certified:
        found = [
            _same(certificate, of, by_digest[of.prompt_digest]) for of in card.judges if of.criterion == entry.criterion
        ]
        of = next((judge for judge in found if isinstance(judge, ProbedJudge)), None)
        if of is not None:
            entries.append(msgspec.structs.replace(entry, probed=certified_probe(card, of, digest)))
            bound = True
            continue
        entries.append(entry)
        reasons = "; ".join(each for each in found if isinstance(each, str)) or "the criterion was not probed"
        notes.append(f"the probe is not in the certificate's entry of {entry.criterion}: {reasons}")
    made = msgspec.structs.replace(certificate, certified=tuple(entries))
    return (msgspec.structs.replace(made, digest=certificate_digest(made)) if bound else None), tuple(notes)


def _same(certificate: Certificate, of: ProbedJudge, criterion: Criterion) -> ProbedJudge | str:
    """The probed judge if the certificate's entry is of it, else what differs."""
    returned = {criterion.name: of.models_returned}
    different = _different(match_run(certificate, [criterion], of.judge, of.options, returned))
    return different or of


def _different(matches: Sequence[Match]) -> str:
    return "; ".join(f"{m.item}: {m.certified} certified, {m.found} here" for m in matches if not m.same)
