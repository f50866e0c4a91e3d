"""A prompt that a server did not read to its end is a failure, and no grade."""

from pathlib import Path

import pytest

from judge.ask.account import Settings
from judge.ask.loop import assess
from judge.ask.prompt_cut import PromptReading
from judge.ask.records import Failure, Judgment, tasks
from judge.judges.journal import Journal
from judge.judges.records import Completion, Message
from tests.ask.test_loop import Scripted, criterion, pool

PROSE = "The train leaves at nine. "
"""26 characters, 6 words: some 6 tokens."""


def completion(
    tokens: int | None, cached: int | None = None, raw: str | None = None, finish_reason: str = "stop"
) -> Completion:
    return Completion(
        text="Grade: 2", finish_reason=finish_reason, model="m", prompt_tokens=tokens, cached_tokens=cached, raw=raw
    )


def is_cut(text: str, read: Completion, reading: PromptReading | None = None) -> bool:
    return (reading or PromptReading()).cut((Message("user", text),), read) is not None


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        # 26,000 characters: 2,600 tokens are the least that can be believed.
        (PROSE * 1000, 2_599, True),
        (PROSE * 1000, 2_600, False),
        (PROSE * 1000, 5_800, False),
        # A multiple of 1,024 is the size of a context: 6 characters a token, 24,588 for 4,098, 18,432 for 3,072.
        (PROSE * 945, 4_098, False),
        (PROSE * 946, 4_098, True),
        (PROSE * 946, 4_088, True),
        (PROSE * 946, 4_087, False),
        (PROSE * 708, 3_072, False),
        (PROSE * 709, 3_072, True),
        # 100,000 spaces are few tokens, and so are a ruled line and one of two signs.
        (PROSE * 200 + " " * 100_000, 1_300, False),
        ("=" * 50_000, 600, False),
        ("| - " * 10_000, 600, False),
        # Chinese has more tokens than half its characters; a count of a tenth of that is no reading.
        ("火车九点开。" * 1000 + PROSE * 10, 3_500, False),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 9_000))), 600, True),
        # Every context holds 500 tokens; a server that counts nothing says nothing.
        (PROSE * 1000, 499, False),
        (PROSE * 1000, 500, True),
        (PROSE * 100, 12, False),
        (PROSE * 1000, None, False),
        (PROSE * 1000, 0, False),
        (PROSE * 1000, -5, False),
    ],
)
def test_fewer_tokens_than_a_text_can_have_are_no_reading(text: str, tokens: int | None, cut: bool) -> None:
    assert is_cut(text, completion(tokens)) == cut


def test_tokens_of_a_cache_were_read_too() -> None:
    assert is_cut(PROSE * 1000, completion(800))
    assert not is_cut(PROSE * 1000, completion(800, cached=5_500))


def test_a_server_that_counted_more_has_no_such_context() -> None:
    """It does not count what it has in its cache, as it did when it read the same beginning first."""
    before = [((Message("user", PROSE * 1000),), completion(5_800))]
    assert not is_cut(PROSE * 1010, completion(2_048), PromptReading(before))
    # One whose context ends there never counted more.
    before = [
        ((Message("user", PROSE * 300),), completion(1_800)),
        ((Message("user", PROSE * 2000),), completion(2_050)),
    ]
    assert is_cut(PROSE * 1000, completion(2_048), PromptReading(before))


def test_the_order_of_replies_does_not_count() -> None:
    reading = PromptReading()
    assert not is_cut(PROSE * 1000, completion(5_800), reading)
    assert is_cut(PROSE * 1010, completion(2_048), reading)


def calls(number: int, text: str, tokens: int) -> list[tuple[tuple[Message, ...], Completion]]:
    return [((Message("user", text),), completion(tokens))] * number


@pytest.mark.parametrize(
    ("number", "tokens_before", "tokens", "cut"),
    [
        # 2,600 characters in 520 tokens are 5 a token, so 6.25 are the most: 52,000 / 6.25 = 8,320.
        (20, 520, 8_319, True),
        (20, 520, 8_320, False),
        # Too few calls: 10 are the most.
        (19, 520, 8_319, False),
        # 2,600 in 1,300 are 2, as of Chinese; English prose may follow, so 6 are the most: 52,000 / 6 = 8,667.
        (20, 1_300, 8_666, True),
        (20, 1_300, 8_667, False),
    ],
)
def test_the_length_of_tokens_is_learned_from_twenty_calls(number: int, tokens_before: int, tokens: int, cut) -> None:
    reading = PromptReading(calls(number, PROSE * 100, tokens_before))
    assert is_cut(PROSE * 2000, completion(tokens), reading) == cut


@pytest.mark.parametrize(
    ("raw", "finish_reason", "cut"),
    [
        ('{"truncated": true, "choices": []}', "stop", True),
        ('{"choices": [], "truncated":true}', "stop", True),
        ('{"choices": [], "usage": {"truncated": true}}', "stop", True),
        ('{"truncated": false}', "stop", False),
        ('{"truncated": "true"}', "stop", False),
        # Within a text, it is what the judge wrote.
        ('{"choices": [{"text": "\\"truncated\\": true"}]}', "stop", False),
        ('{"choices": [{"message": {"content": {"truncated": true}}}]}', "stop", False),
        # Here the reply was.
        ('{"truncated": true, "choices": []}', "length", False),
        ('{"truncated": true', "stop", False),
    ],
)
def test_a_server_that_says_so_is_believed(raw: str, finish_reason: str, cut: bool) -> None:
    assert is_cut(PROSE, completion(10, raw=raw, finish_reason=finish_reason)) == cut


def test_a_grade_of_half_a_prompt_is_a_failure(tmp_path: Path) -> None:
    """As a server with a context of 2,048 tokens answers: the short response is graded, the long one is not."""
    one = pool(["short", PROSE * 1700])
    model = Scripted({PROSE * 1700: [completion(2_050), completion(11_000)]}, default=completion(300))
    with Journal(tmp_path / "j") as journal:
        settings = Settings(concurrency=1)
        short, long = assess(tasks(one, [criterion()]), model, journal, one, settings=settings)
        assert isinstance(short, Judgment)
        assert isinstance(long, Failure)
        assert long.reason == "prompt_cut"
        assert long.detail.startswith("the server read 2,050 tokens of a prompt of 44,")
        assert "larger context" in long.detail
        assert len(model.asked) == 2
        # It is asked again, since the server may read more today.
        again = list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings))
        assert again[0] == short
        assert isinstance(again[1], Judgment)
        assert len(model.asked) == 3
        assert [*assess(tasks(one, [criterion()]), Scripted(), journal, one)] == again
