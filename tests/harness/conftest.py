"""Fixtures that several jobs share."""

from pathlib import Path

import pytest

from judge.cli import main
from tests.conftest import PROJECT


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pool of the bundled example."""
    out = tmp_path_factory.mktemp("pooled") / "out"
    runs = ["--runs", str(PROJECT / "examples/runs"), "--topics", str(PROJECT / "examples/topics.json")]
    runs += ["--passages", str(PROJECT / "examples/passages.jsonl")]
    assert main(["pool", *runs, "--out", str(out)]) == 0
    return out
