import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.ask.questions import Answer, outcome
from judge.ask.records import Judgment, Task, Verdict
from judge.ask.returned import certainty_notes, entropy, model_notes
from judge.judges.records import Completion, provider_name
from tests.ask.test_prompt import pooled, turn
from tests.ask.test_prompt import render as rendered
from tests.calibration_world import judgment

JUDGMENT = judgment("1_1", "R1", 1, prompt="c/v", digest="d", model=None)


def notes(judge: str, *models: str | None) -> tuple[str, ...]:
    return model_notes(msgspec.structs.replace(JUDGMENT, judge=judge, model=model) for model in models)


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("openai/gpt-4.1-mini", "gpt-4.1-mini"),
        ("openai/gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"),
        ("openai/gpt-4", "gpt-4-0613"),
        ("litellm/anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("litellm/anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("litellm/azure/gpt-4o", "gpt-4o-2024-08-06"),
        ("server/meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("server/Llama-3.1-8B", "meta-llama/llama-3.1-8b"),
        ("server/m", None),
        ("baseline/overlap", "overlap-1"),
        ("local/qwen2.5-1.5b", "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M@cc324af0"),
    ],
)
def test_the_model_that_was_asked_is_no_news(judge: str, model: str | None) -> None:
    assert notes(judge, model, model) == ()


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("openai/gpt-4", "gpt-4-turbo-2024-04-09"), ("openai/gpt-4.1", "gpt-4.1-mini"),
        ("openai/gpt-4.1-mini", "gpt-4.1"), ("server/strong", "weak"), ("server/gpt-4", "gpt-40"),
        ("server/gpt-4", "gpt-4.1"), ("server/claude-3", "claude-3-5"),
    ],
)  # fmt: skip
def test_another_model_is_named(judge: str, model: str) -> None:
    (note,) = notes(judge, model, model)
    assert note.startswith(f"{judge}: its replies name another model than the one asked: '{model}' (2).")


def test_a_model_that_changes_is_named_with_its_counts() -> None:
    (note,) = notes("server/m", "m-2026-01-01", "m-2026-02-02", "m-2026-01-01")
    assert note.startswith("server/m: its replies name several models: 'm-2026-01-01' (2), 'm-2026-02-02' (1).")
    (note,) = notes("baseline/overlap", "overlap-1", "overlap-2")
    assert "several models: 'overlap-1' (1), 'overlap-2' (1)" in note


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        (None, None),
        ("m" * 200, "m" * 200),
        ("m" * 201, f"{'m' * 60}… (changed by judge, 201 characters long)"),
        ("Claude 3.5 Sonnet", "Claude 3.5 Sonnet"),
        ("Alice lives at 12 Main Street", "Alice lives at… (changed by judge, 29 characters long)"),
        ("a\n\x1b[1m\u202eb", "a\ufffd\ufffd[1m\ufffdb… (changed by judge, 8 characters long)"),
    ],
)
def test_a_name_that_is_no_name_is_changed_and_says_so(name: str | None, recorded: str | None) -> None:
    task = Task(pooled("It is cold."), find_criterion("naturalness"))
    reply = Completion("2", "stop", name)
    answer = Answer(Verdict(2, None), reply, rendered(task, {}, turn("x"), "text"), repaired=False)
    result = outcome(task, answer, "server/m", "d")
    assert isinstance(result, Judgment)
    assert result.model == recorded == provider_name(recorded)
    assert recorded is None or f"than the one asked: '{recorded}' (1)" in model_notes([result])[0]


def test_each_judge_has_a_note_of_its_own() -> None:
    both = [
        msgspec.structs.replace(JUDGMENT, judge=judge, model="other") for judge in ("server/b", "server/a", "server/b")
    ]
    assert [note.partition(":")[0] for note in model_notes(both)] == ["server/a", "server/b"]


def test_entropy_is_in_bits_and_of_shares() -> None:
    assert entropy({"yes": 1.0, "no": 0.0}) == 0
    assert entropy(dict.fromkeys("0123", 0.25)) == 2
    # Rounded shares need not add up to 1: .5 and .5 of .999998.
    assert entropy({"yes": 0.499999, "no": 0.499999}) == pytest.approx(1)


def test_a_note_says_how_many_have_probabilities_and_how_sure_they_are() -> None:
    # (1 + 0) / 2 bits of two labels.
    told = [
        msgspec.structs.replace(JUDGMENT, probabilities=shares)
        for shares in ({"0": 0.5, "1": 0.5}, {"0": 1.0, "1": 0.0})
    ]
    assert certainty_notes([*told, JUDGMENT]) == (
        "server/m under c/v: 2 of 3 judgments have label probabilities, with a mean entropy of "
        "0.50 bits (0 is sure, 1.00 is no idea)",
    )
    assert certainty_notes([JUDGMENT]) == ("server/m under c/v: 0 of 1 judgments have label probabilities",)
