"""Every file that a command writes, and each of its fields, is in the list of files; pages lead to each other."""

import re
from pathlib import Path

import pytest

from docs.site.pages import subjects
from judge.cli import main
from tests.conftest import PROJECT, printed


def written_files(page: str, folder: Path) -> None:
    """Write the files that a page tells its reader to write: a name, then a block without a language."""
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    for name, content in re.findall(r"`([\w.]+)`[^`\n]*\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")


def test_the_worked_example_of_a_crowd_gives_the_grades_that_the_page_shows(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    written_files("crowd.md", tmp_path)
    assert main(["crowd", "labels.csv", "--scale", "0-3", "--known", "known.tsv", "--out", "crowd"]) == 0
    qrels = Path("crowd/qrels/response_relevance.qrel").read_text(encoding="utf-8")
    assert f"reads:\n```\n{qrels}```" in (PROJECT / "docs" / "crowd.md").read_text(encoding="utf-8")


def test_the_worked_example_of_a_prompt_is_a_sound_prompt(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    written_files("prompts.md", tmp_path)
    assert "mine.md: good: groundedness/mine" in printed(capsys, main(["prompts", "check", "mine.md"]))


def test_the_reference_leads_to_every_page() -> None:
    assert {page.name for page in (PROJECT / "docs").glob("*.md")} == {*subjects(), "index.md", "tutorial.md"}


LINKED = [
    path
    for path in sorted([*PROJECT.glob("*.md"), *PROJECT.glob("gold/*.md"), *PROJECT.glob("docs/**/*.md")])
    if "_build" not in path.parts
]


@pytest.mark.parametrize("page", LINKED, ids=[page.relative_to(PROJECT).as_posix() for page in LINKED])
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, _, section in re.findall(r"\]\(([^):#]*)(#([\w-]+))?\)", text):
        other = page if not target else (page.parent / target).resolve()
        assert other.exists(), target
        if section:
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in anchors, f"{target}#{section}"
