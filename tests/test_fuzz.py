"""A fast part of `fuzz.py`: damaged files end in a result or in one of our errors."""

import json
import os
from pathlib import Path

import pytest

from judge.errors import InputError
from tests import fuzz

pytestmark = pytest.mark.slow

INPUTS = int(os.environ.get("FUZZ_INPUTS", "32"))
"""Of each reader."""


@pytest.mark.parametrize("name", fuzz.READERS)
def test_no_input_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    # What organizers get from teams is damaged in most ways.
    inputs = INPUTS * 8 if name.startswith("runs") else INPUTS
    assert fuzz.fuzz(name, inputs, 5, tmp_path).total() == inputs + len(fuzz.READERS[name].seeds())


@pytest.mark.parametrize("name", [name for name in fuzz.READERS if name.startswith(("passages", "hash", "collection"))])
def test_every_sound_input_has_passages_that_are_looked_for(name: str, tmp_path: Path) -> None:
    """Else what is damaged would be no part of what is read."""
    assert all(fuzz.READERS[name].read(tmp_path, seed) for seed in fuzz.READERS[name].seeds())


def test_a_number_means_one_input() -> None:
    seeds = fuzz.READERS["runs"].seeds()
    inputs = [[fuzz.damaged(fuzz.Rng(f"{seed} runs {k}"), seeds) for k in range(60)] for seed in (1, 1, 2)]
    assert inputs[0] == inputs[1]
    # Some inputs are not damaged at all.
    assert sum(a != b for a, b in zip(inputs[0], inputs[2], strict=True)) > 40


def test_a_seed_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, content: bytes) -> None:
        raise InputError("no")

    monkeypatch.setitem(fuzz.READERS, "strict", fuzz.Reader(lambda: (b"seed",), refuse))
    with pytest.raises(InputError):
        fuzz.fuzz("strict", 1, 1, tmp_path)


def test_an_exception_of_any_other_kind_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(folder: Path, content: bytes) -> None:
        if content == b"seed":
            return
        if content.startswith(b"seed"):
            raise InputError("ours")
        raise IndexError("not ours")

    monkeypatch.setitem(fuzz.READERS, "broken", fuzz.Reader(lambda: (b"seed",), read))
    with pytest.raises(IndexError, match="not ours") as caught:
        fuzz.fuzz("broken", 50, 1, tmp_path)
    (kept,) = tmp_path.parent.glob("*.input")
    assert not kept.read_bytes().startswith(b"seed") and str(kept) in caught.value.__notes__[0]


def test_raw_tokens_and_repeated_keys_stand_in_the_text() -> None:
    text = fuzz._dumped(fuzz.Rng(1), {"a": fuzz._MARK + "nan", f"b{fuzz._AGAIN}": 1, "b": 2})
    assert text == '{"a": NaN, "b": 1, "b": 2}'
    assert json.loads(text, object_pairs_hook=list)[1:] == [("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("gold", b'{"\\ud800": 1}\n', id="a field's name that is no text"),
        pytest.param("manifest", b'{"schema": "\xed\xa0\x80"}', id="a manifest that is not UTF-8"),
        pytest.param(
            "passages", b'{"id": "p", "contents": "a", "x": ' + b"[" * 100_000 + b"\n", id="a passage likewise"
        ),
    ],
)
def test_what_ended_in_a_traceback_once(name: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        fuzz.READERS[name].read(tmp_path, content)
