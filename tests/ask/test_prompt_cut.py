"""A prompt that a server did not read to its end is a failure, and no grade."""

from pathlib import Path

import pytest

from judge.ask.loop import assess
from judge.ask.prompt_cut import prompt_cut
from judge.ask.records import Failure, Judgment, tasks
from judge.judges.journal import Journal
from judge.judges.records import Completion, Message
from tests.ask.test_loop import Scripted, criterion, pool

PROSE = "The train leaves at nine. "
"""26 characters, 6 words: some 6 tokens."""


def completion(tokens: int | None, cached: int | None = None, raw: str | None = None) -> Completion:
    return Completion(
        text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=tokens, cached_tokens=cached, raw=raw
    )


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        # 26,000 characters: 2,600 tokens are the least that can be believed.
        (PROSE * 1000, 2_599, True),
        (PROSE * 1000, 2_600, False),
        (PROSE * 1000, 5_800, False),
        # A count at a power of two is that of a context: 6 characters a token, 24,588 for 4,098.
        (PROSE * 945, 4_098, False),
        (PROSE * 946, 4_098, True),
        (PROSE * 946, 4_088, True),
        (PROSE * 946, 4_087, False),
        # 100,000 spaces are few tokens, and so is a ruled line.
        (PROSE * 200 + " " * 100_000, 1_300, False),
        ("=" * 50_000, 400, False),
        # Chinese has more tokens than half its characters; a count of a tenth of that is no reading.
        ("火车九点开。" * 1000, 3_500, False),
        ("火车九点开。" * 1000, 350, True),
        # Every context holds a short prompt; a server that counts nothing says nothing.
        (PROSE * 100, 12, False),
        (PROSE * 1000, None, False),
        (PROSE * 1000, 0, False),
        (PROSE * 1000, -5, False),
    ],
)
def test_fewer_tokens_than_a_text_can_have_are_no_reading(text: str, tokens: int | None, cut: bool) -> None:
    assert (prompt_cut((Message("user", text),), completion(tokens)) is not None) == cut


def test_tokens_of_a_cache_were_read_too() -> None:
    assert prompt_cut((Message("user", PROSE * 1000),), completion(300)) is not None
    assert prompt_cut((Message("user", PROSE * 1000),), completion(300, cached=5_500)) is None


def test_a_server_that_says_so_is_believed_and_a_text_that_says_so_is_not() -> None:
    messages = (Message("user", PROSE),)
    assert prompt_cut(messages, completion(10, raw='{"truncated": true, "choices": []}')) is not None
    assert prompt_cut(messages, completion(10, raw='{"choices": [{"text": "\\"truncated\\": true"}]}')) is None
    assert prompt_cut(messages, completion(10, raw='{"truncated": false}')) is None


def test_a_grade_of_half_a_prompt_is_a_failure(tmp_path: Path) -> None:
    """As a server with a context of 2,048 tokens answers: the short response is graded, the long one is not."""
    one = pool(["short", PROSE * 1700])
    model = Scripted({PROSE * 1700: [completion(2_050)]}, default=completion(300))
    with Journal(tmp_path / "j") as journal:
        short, long = assess(tasks(one, [criterion()]), model, journal, one)
        assert isinstance(short, Judgment)
        assert isinstance(long, Failure)
        assert long.reason == "prompt_cut"
        assert long.detail.startswith("the server read 2,050 tokens of a prompt of 44,")
        assert "larger context" in long.detail
        # It was paid for, and is not asked again.
        assert len(model.asked) == 2
        assert [*assess(tasks(one, [criterion()]), Scripted(), journal, one)] == [short, long]
