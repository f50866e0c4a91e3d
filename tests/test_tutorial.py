"""The pages that people read first show what their commands print."""

import re
import shlex
from pathlib import Path

import pytest

from bench import topics_picture
from bench.page_outputs import OPERATORS, differs, play, steps
from tests.conftest import PROJECT
from tests.test_docs import OUTPUTS, parsed

TUTORIAL = PROJECT / "docs" / "tutorial.md"
PAGES = [TUTORIAL, *sorted(PROJECT.glob("docs/how-to/*.md")), *sorted(PROJECT.glob("docs/explanation/*.md"))]


def _cannot_run(command: str) -> bool:
    """Whether a command needs a model, or files that only the reader has."""
    if not command.startswith("judge "):
        return False
    words = shlex.split(command, comments=True)[1:]
    call = words[: next((place for place, word in enumerate(words) if word in OPERATORS), len(words))]
    if "--config" in call:
        return False
    values = vars(parsed(shlex.join(call)))
    given = [value for name, value in values.items() if name not in {*OUTPUTS, "save_config"}]
    paths = [path for value in given for path in (value if isinstance(value, list) else [value])]
    models = values.get("model") or []
    ask = [model for model in models if not model.startswith(("baseline/", "replay/"))]
    sends = not (values.get("dry_run") or values.get("save_config"))
    return (bool(ask) and sends) or any(
        isinstance(path, Path) and not path.exists() for path in paths
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(PROJECT / "docs").as_posix() for page in PAGES])
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    played = list(play(text) if page == TUTORIAL else play(text, _cannot_run))
    assert len(played) == sum(shown is not None for _, _, shown in steps(text))
    for shown, printed in played:
        line = text[: shown.start()].count("\n") + 1
        assert not differs(shown[2], printed), f"line {line}: {differs(shown[2], printed)}"


def test_lines_may_be_left_out_only_where_the_page_says_so() -> None:
    assert not differs("a\n…\nd\n", "a\nb\nc\nd\n")
    assert not differs("…\n12/12 judged, 250.7/s\n", "read\n12/12 judged, 9/s\n")
    assert "shown, not printed: 'c'" in differs("a\nc\n", "a\nb\n")
    assert differs("a\n", "a\nb\n") == "printed, not shown: 'b'"
    assert differs("…\nb\na\n", "a\nb\n").startswith("shown, not printed: 'a'")


def test_a_block_of_output_belongs_to_the_block_before_it() -> None:
    found = list(steps("```sh\na\n```\n```text\nb\n```\n\n```sh\nc\n```\n\nwords\n\n```text\nd\n```\n"))
    assert [(commands, shown and shown[2]) for _, commands, shown in found] == [("a\n", "b\n"), ("c\n", None)]


@pytest.mark.slow
def test_the_picture_of_intervals_is_the_one_that_the_script_draws() -> None:
    picture = (PROJECT / "docs" / "pictures" / "topics.svg").read_text(encoding="utf-8")
    assert picture == topics_picture.picture()


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(PROJECT / "docs").as_posix() for page in PAGES])
def test_every_picture_has_a_text_and_is_there(page: Path) -> None:
    for text, place in re.findall(r"!\[(.*?)\]\((.*?)\)", page.read_text(encoding="utf-8")):
        assert len(text) > 20 and (page.parent / place).is_file(), place
