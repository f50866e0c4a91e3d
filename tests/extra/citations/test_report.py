"""The report of a pool of citations, whose boards are measures."""

from pathlib import Path

from judge.cli import main
from tests.conftest import PROJECT

EXAMPLE = PROJECT / "examples"


def test_boards_of_measures_have_their_own_names_and_means_that_are_no_grades(tmp_path: Path) -> None:
    given = ["--runs", str(EXAMPLE / "citations/runs"), "--passages", str(EXAMPLE / "passages.jsonl")]
    assert main(["run", *given, "--model", "baseline/overlap", "--out", str(tmp_path / "out")]) == 0
    assert main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert headings[1:4] == ["Support precision weighted", "Support recall weighted", "Support precision hard"]
    board = page[page.index("## Support precision weighted") : page.index("## Support recall weighted")]
    assert "| mean |" in board
    assert "mean grade" not in board
