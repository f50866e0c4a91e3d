"""What asks the models of `judge run`: the loop alone, or an engine whose workers make the calls of the loop."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Literal

from judge.ask.asking import CallEngine
from judge.errors import UsageError
from judge.io.installed import need_extra
from judge.io.safe import printable
from judge.judges.model import ModelOptions
from judge.plugins import need, refuse_absent

EngineName = Literal["ray"]
"""An engine; it changes no result."""


def check_engine(engine: EngineName | None, address: str | None, workers: int | None, *, cascade: bool) -> None:
    """Refuse options with which no engine can be used; nothing is started."""
    if engine is None:
        if address is not None or workers is not None:
            raise UsageError("--address and --workers are for an engine (--engine ray)")
        return
    if cascade:
        raise UsageError("--engine ray cannot ask a cascade (--cascade): judge it without an engine")
    refuse_absent(f"engines.{engine}", f"--engine {engine}")
    need_extra("ray", "--engine ray")
    address_of(address)


@contextmanager
def open_engine(
    engine: EngineName | None, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions
) -> Iterator[CallEngine | None]:
    """What makes the calls of models elsewhere, until the block ends; None where this process makes them."""
    if engine is None:
        yield None
        return
    made = need(f"engines.{engine}", f"--engine {engine}")(address_of(address), workers, names, options)
    with closing(made) as opened:
        yield opened.model


def address_of(address: str | None) -> str | None:
    """The address of a cluster's head, `HOST:PORT`; None where a cluster is to be started here."""
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is None or address == "local":
        return None
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(
            f"{printable(address)}: expected HOST:PORT of a Ray cluster's head; judge has to run on one of its nodes"
        )
    return address
