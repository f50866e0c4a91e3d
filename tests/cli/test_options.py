"""What the commands with actions do alike."""

import pytest

from judge.cli import main

SOUND = {
    "passages index": ["--hashes", "a", "-o", "c"],
    "passages extract": ["--runs", "a", "--passages", "b", "-o", "c"],
    "gold check": ["a"],
    "gold import": ["csv", "a", "--out", "c"],
    "gold split": ["a", "--test", "0.5", "--seed", "1", "--out", "c"],
    "gold plan": ["--pool", "a", "--n", "1", "--seed", "1", "--out", "c"],
    "prompts list": [],
    "prompts show": ["relevance"],
    "prompts check": ["a"],
    "models list": [],
    "models pull": ["smollm2-135m"],
}


@pytest.mark.parametrize("action", SOUND)
def test_an_unknown_option_is_answered_with_the_help_of_the_action(capsys, action: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*action.split(), *SOUND[action], "--bogus"])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err == f"judge {action}: unrecognized arguments: --bogus\n`judge {action} --help` lists the options\n"


def test_too_little_memory_is_a_failure_outside_and_no_traceback(monkeypatch, capsys) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("judge.cli.command_module", full)
    assert main(["tokens", "runs"]) == 3
    assert capsys.readouterr().err == (
        "judge: not enough memory; a smaller --max-file-size refuses large files before they are read\n"
    )
