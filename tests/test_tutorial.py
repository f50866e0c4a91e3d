"""The pages that people read first show what their commands print."""

import re
import shlex

import pytest

from docs.site import topics_picture
from docs.site.page_outputs import OPERATORS, differs, play, steps
from tests.conftest import PROJECT
from tests.test_docs import READ_FIRST, parsed, put_there, reader  # noqa: F401

pytestmark = pytest.mark.long


def _prepare(command: str, page: str) -> bool:
    """Make what a command reads and nobody has made; whether the command is left out, since its model is not here."""
    if not command.startswith("judge "):
        return False
    words = shlex.split(command, comments=True)[1:]
    call = words[: next((place for place, word in enumerate(words) if word in OPERATORS), len(words))]
    if "--config" in call or call[0] == "demo":
        return False
    put_there(shlex.join(call), page)
    models = vars(parsed(shlex.join(call))).get("model") or []
    return any(model.startswith(("local/", "server/", "systemone/")) for model in models)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", READ_FIRST)
def test_the_commands_of_a_page_print_what_it_shows(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    text = (PROJECT / page).read_text(encoding="utf-8")
    played = list(play(text, lambda command: _prepare(command, page)))
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


def test_the_picture_of_intervals_is_the_one_that_the_script_draws() -> None:
    picture = (PROJECT / "docs" / "pictures" / "topics.svg").read_text(encoding="utf-8")
    assert picture == topics_picture.picture()


@pytest.mark.parametrize("page", READ_FIRST)
def test_every_picture_has_a_text_and_is_there(page: str) -> None:
    path = PROJECT / page
    for text, place in re.findall(r"!\[(.*?)\]\((.*?)\)", path.read_text(encoding="utf-8")):
        assert len(text) > 20 and (path.parent / place).is_file(), place
