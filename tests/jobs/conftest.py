"""What tests of jobs share: runs to spoil, sealed gold, a judge whose answers a test can change."""

import shutil
from pathlib import Path

import msgspec
import pytest

from judge.errors import OperationalError
from judge.gold.seal import write_split
from judge.judges.backends.baseline import Overlap
from judge.judges.model import Price
from judge.judges.records import Completion, Request
from tests.calibration_world import gold_rows, items
from tests.conftest import PROJECT


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example's runs that a test may spoil."""
    return Path(shutil.copytree(PROJECT / "examples" / "runs", tmp_path / "runs"))


def only(example: Path, *names: str) -> Path:
    """The example with no runs but these."""
    for path in example.iterdir():
        if path.name.partition(".")[0] not in names:
            path.unlink()
    return example


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Gold in two parts, of which one is sealed."""
    write_split(gold_rows(items()), 0.5, 1, tmp_path / "split")
    return tmp_path / "split"


class Asked:
    """What the overlap judge was asked, with ways to make it answer otherwise."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.fail_after: int | None = None
        self.cost = 0.0
        self.wrong: set[str] = set()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen, honest = Asked(), Overlap.complete

    async def complete(self: Overlap, request: Request) -> Completion:
        if seen.fail_after is not None and len(seen.requests) >= seen.fail_after:
            raise OperationalError("the world has failed")
        seen.requests.append(request)
        found = await honest(self, request)
        if set(request.labels) & seen.wrong:
            label = request.labels[(len(seen.requests) * 7) % len(request.labels)]
            found = msgspec.structs.replace(found, text=label, probabilities=None)
        return msgspec.structs.replace(found, cost=seen.cost)

    monkeypatch.setattr(Overlap, "complete", complete)
    monkeypatch.setattr(Overlap, "price", lambda self: Price(0.0, 0.0))
    monkeypatch.setattr(Overlap, "immediate", False)
    return seen
