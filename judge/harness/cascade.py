"""What a job makes of a cascade: the check of its options, what records say of it, and what a certificate covers."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge.ask.cascade import Cascade, parse_cascade, settled_counts
from judge.ask.cascading import OpenCascade
from judge.ask.records import Failure, Judgment
from judge.calibrate.certificate import Certificate, Match, match_run
from judge.errors import UsageError
from judge.models.address import without_credentials
from judge.models.secrets import scrub
from judge.records import Criterion

CASCADE_URL = "cascade_url"
"""The option of a judge that is the address of its cascade's checker."""


def check_cascade(cascade: str | None, address: str | None, *, jury: bool, together: bool) -> Cascade | None:
    """The cascade of a plan, None where it has none.

    Args:
        cascade: `CHECKER@LOW:HIGH`.
        address: The checker's address.
        jury: Whether the plan has several models, or one under several prompts or asked several times.
        together: Whether the plan asks for several criteria in one call.

    Raises:
        UsageError: It cannot be read, goes with none of the other options, or is missing where it has an address.
    """
    if cascade is None:
        if address is not None:
            raise UsageError("--cascade-url is the address of a cascade's checker, which --cascade names")
        return None
    if jury:
        raise UsageError("--cascade asks one model what its checker leaves open, so it does not go with a jury")
    if together:
        raise UsageError(
            "--cascade does not go with --together: a settled criterion would still be asked with the others"
        )
    return parse_cascade(cascade)


def cascade_configuration(opened: OpenCascade) -> dict[str, Any]:
    """The cascade as a configuration has it."""
    return opened.cascade.recorded(published_address(opened.address))


def cascade_manifest(opened: OpenCascade, results: Sequence[Judgment | Failure]) -> dict[str, Any]:
    """What a manifest says of a cascade: checker and bounds, and how many judgments of each criterion it settled."""
    counts = [
        {
            "criterion": row.criterion,
            "settled": row.settled,
            "asked": row.asked,
            "without_evidence": row.without_evidence,
            "checker_failed": row.checker_failed,
        }
        for row in settled_counts(results)
    ]
    return {**cascade_configuration(opened), "counts": counts}


def cascade_matches(
    certificate: Certificate,
    criteria: Sequence[Criterion],
    opened: OpenCascade,
    model: str,
    options: Mapping[str, Any],
    returned: Mapping[str, Sequence[str]] | None,
) -> tuple[Match, ...]:
    """Every item of a certificate beside that of a run with a cascade; criteria that go to the model whole are its own.

    The arguments are those of `match_run`, with the model that is asked the rest.
    """
    whole = opened.cascade.judge(model), {**options, **address_option(opened.address)}
    return tuple(
        match
        for criterion in criteria
        for asked in (whole if opened.judges(criterion) else (model, options),)
        for match in match_run(certificate, [criterion], *asked, returned)
    )


def address_option(address: str | None) -> dict[str, str]:
    """The address of a cascade's checker as an option of the judge; empty where there is none."""
    url = published_address(address)
    return {} if url is None else {CASCADE_URL: url}


def published_address(address: str | None) -> str | None:
    """An address as records show it."""
    return None if address is None else scrub(without_credentials(address))
