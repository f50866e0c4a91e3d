"""The address of a Ray cluster."""

import os

from judge.errors import UsageError
from judge.text.safe import printable


def address_of(address: str | None) -> str | None:
    """The address of a cluster's head, `HOST:PORT`; None where a cluster is to be started here.

    Args:
        address: What the user said; None for what the variable RAY_ADDRESS says.

    Raises:
        UsageError: It is no such address.
    """
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is None or address == "local":
        return None
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(
            f"{printable(address)}: expected HOST:PORT of a Ray cluster's head; judge has to run on one of its nodes"
        )
    return address
