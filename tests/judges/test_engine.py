"""What is asked of the engine, with the engine played; how many cores it may use."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import ContextLengthError, InputError, OperationalError, RejectedError, UsageError
from judge.io.processes import usable_cores
from judge.judges.backends import local as module
from judge.judges.backends.local import Engine, EngineReply, json_grammar, load_engine, start, trained_context
from judge.judges.forms import answer_schema, nuggets_schema
from tests.conftest import put, run_python

TOKENS = {"1": -1.0, "The": -2.0, " 2": -3.0}
"""First tokens of the played engine, with the logarithms of their probabilities."""


class Pipeline:
    """Plays `openvino_genai`: writes the texts it was told to, and notes the prompts and settings it was asked with."""

    GenerationFinishReason = SimpleNamespace(STOP=1, LENGTH=2)
    GenerationConfig = SimpleNamespace
    StructuredOutputConfig = SimpleNamespace

    def __init__(self, *texts: Any) -> None:
        self.texts = list(texts)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def get_tokenizer(self) -> "Pipeline":
        return self

    def apply_chat_template(self, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        assert add_generation_prompt
        return "|".join(message["content"] for message in messages)

    def encode(self, prompt: str, add_special_tokens: bool) -> Any:
        assert not add_special_tokens
        return SimpleNamespace(input_ids=SimpleNamespace(shape=[1, len(prompt)]), prompt=prompt)

    def decode(self, tokens: Sequence[Any]) -> Any:
        return "".join(tokens) if all(isinstance(token, str) for token in tokens) else ["".join(of) for of in tokens]

    def generate(self, prompt: Any, config: Any) -> Any:
        settings = dict(vars(config))
        if output := settings.pop("structured_output_config", None):
            settings |= vars(output)
        self.asked.append((prompt.prompt, settings))
        if "num_beams" in settings:
            return SimpleNamespace(tokens=[[token] for token in TOKENS], scores=list(TOKENS.values()))
        if "logprobs" in settings:
            return SimpleNamespace(tokens=[["3"]], scores=[-0.5])
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return SimpleNamespace(tokens=[list(text)], finish_reasons=[1 if text.endswith(".") else 2], scores=[0.0])


def chat(*contents: str) -> list[dict[str, str]]:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


def opened(*texts: Any, context: int = 100) -> tuple[Engine, Pipeline]:
    pipeline = Pipeline(*texts)
    return Engine(pipeline, pipeline, context), pipeline  # type: ignore[arg-type]


TEXT = {"temperature": 0.0, "seed": 0, "max_tokens": 50}


@pytest.mark.parametrize(
    ("sent", "settings"),
    [
        (TEXT, {"max_new_tokens": 50}),
        ({**TEXT, "max_tokens": 500}, {"max_new_tokens": 97}),
        ({**TEXT, "temperature": 0.5, "seed": 7},
         {"max_new_tokens": 50, "do_sample": True, "temperature": 0.5, "rng_seed": 7}),
        ({**TEXT, "schema": answer_schema(["0"], 0)},
         {"max_new_tokens": 50, "grammar": json_grammar(answer_schema(["0"], 0))}),
    ],
    ids=["greedy", "to the end of the context", "sampled", "by schema"],
)  # fmt: skip
def test_the_request_goes_out_as_it_is(sent: dict[str, Any], settings: dict[str, Any]) -> None:
    engine, pipeline = opened("Yes.")
    assert engine.ask(chat("s", "u"), sent) == EngineReply("Yes.", "stop", 3, 4)
    assert pipeline.asked == [("s|u", settings)]


@pytest.mark.parametrize(
    ("temperature", "labels", "text", "written"),
    [
        (0.0, ["0", "1", "2"], "1", []),
        (0.0, ["0", "10", "11"], "10", [{"max_new_tokens": 2, "grammar": 'root ::= "0" | "10" | "11"'}]),
        (0.5, ["1", "2"], "2", [{"max_new_tokens": 2, "grammar": 'root ::= "1" | "2"', "do_sample": True,
                                 "temperature": 0.5, "rng_seed": 0}]),
    ],
    ids=["the likeliest token is one label", "it begins two", "drawn"],
)  # fmt: skip
def test_a_label_is_what_constrained_decoding_chooses(temperature, labels, text, written) -> None:
    engine, pipeline = opened(text)
    reply = engine.ask(chat("s", "u"), {"temperature": temperature, "seed": 0, "max_tokens": 2, "labels": labels})
    assert reply.text == text
    assert [settings for _, settings in pipeline.asked if not settings.keys() & {"num_beams", "logprobs"}] == written


def test_each_label_has_a_first_token() -> None:
    engine, pipeline = opened()
    reply = engine.ask(chat("s", "u"), {"temperature": 0.0, "seed": 0, "max_tokens": 1, "labels": ["1", "3"]})
    assert [token for token, _ in reply.first_tokens] == ["3", "1", "The", " 2"]
    assert pipeline.asked[1][1] == {"max_new_tokens": 1, "logprobs": 1, "grammar": 'root ::= "3"'}
    assert reply.text == "3", "the likeliest, although it was not among the likeliest ones at first"


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        (chat("s", "u"), "s|u"),
        (chat("s", "u", "unclear", "again"), "\ns|u|unclear|again"),
        (chat("s", "u", "unclear", "again", "unclear", "again"), "\n\ns|u|unclear|again|unclear|again"),
    ],
)
def test_tokens_that_the_engine_wrote_one_by_one_are_not_read_again(messages, prompt) -> None:
    engine, pipeline = opened("Yes.")
    engine.ask(messages, TEXT)
    assert pipeline.asked[0][0] == prompt


def test_a_repeated_prompt_is_not_computed_from_its_last_token() -> None:
    engine, pipeline = opened("Yes.", "No.", "Maybe.")
    first = engine.ask(chat("s", "u"), TEXT)
    assert engine.ask(chat("s", "other"), TEXT).text == "No."
    assert engine.ask(chat("s", "u"), {**TEXT, "seed": 5}) is first
    assert engine.ask(chat("s", "u"), {**TEXT, "max_tokens": 3}).text == "Maybe."
    assert len(pipeline.asked) == 3


def test_the_oldest_reply_is_forgotten_first() -> None:
    engine, pipeline = opened(*map(str, range(1026)))
    for number in (*range(1025), 1024, 1, 0):
        engine.ask(chat("s", str(number)), TEXT)
    assert [prompt for prompt, _ in pipeline.asked[1024:]] == ["s|1024", "s|0"]


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    engine, pipeline = opened(context=3)
    with pytest.raises(ContextLengthError, match="the request has 3 tokens or more, the context holds 3"):
        engine.ask(chat("s", "u"), TEXT)
    assert pipeline.asked == []


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("no")])
def test_refusals_become_call_errors_and_are_not_remembered(error: Exception) -> None:
    engine, _ = opened(error, "Yes.")
    with pytest.raises(RejectedError, match="the engine refuses the request: no"):
        engine.ask(chat("s", "u"), TEXT)
    assert engine.ask(chat("s", "u"), TEXT).text == "Yes."


@pytest.mark.parametrize(
    ("schema", "root"),
    [
        (answer_schema(['a"b'], 0), r'"{" "\"rationale\": " string ", " "\"grade\": " ("\"a\\\"b\"") "}"'),
        (nuggets_schema(["0"]),
         r'"{" "\"nuggets\": " "[" (string (", " string)*)? "]" ", " "\"grade\": " ("\"0\"") "}"'),
        (answer_schema(["y", "n"], 2)["properties"]["sentences"]["items"],
         r'"{" "\"n\": " integer ", " "\"label\": " ("\"y\"" | "\"n\"") "}"'),
    ],
    ids=["a hostile label", "nuggets", "a sentence"],
)  # fmt: skip
def test_a_schema_is_a_grammar_without_free_spaces(schema: dict[str, Any], root: str) -> None:
    assert json_grammar(schema).splitlines()[0] == f"root ::= {root}"


@pytest.mark.parametrize(
    ("quota", "most"),
    [("max 100000\n", 10_000), ("150000 100000\n", 1), ("50000 100000\n", 1), ("nonsense", 10_000), (None, 10_000)],
)
def test_no_more_cores_than_the_container_may_use(tmp_path: Path, quota: str | None, most: int) -> None:
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota, encoding="ascii")
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert usable_cores(path) == min(bound, most)


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError("libtbb.so.12: cannot open shared object file")

    monkeypatch.setattr(module.importlib, "import_module", broken)
    with pytest.raises(UsageError, match=r"need openvino-genai, which cannot be loaded here: libtbb"):
        load_engine()


@pytest.mark.slow
def test_a_file_that_cannot_be_loaded_is_said_without_a_word_of_the_engine(tmp_path: Path) -> None:
    path = put(tmp_path / "broken.gguf", b"GGUF\x03\x00\x00\x00" + bytes(16))
    code = (
        "import sys\nfrom pathlib import Path\nfrom judge.errors import OperationalError\n"
        "from judge.judges.backends.local import start\n"
        "try:\n    start(Path(sys.argv[1]), 512, 1, reuse=True)\n"
        "except OperationalError as error:\n    print(error)\n"
    )
    done = run_python("-c", code, path)
    assert done.stdout.startswith(f"{path}: the engine cannot load this model")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    with pytest.raises(OperationalError):
        start(tmp_path / "missing.gguf", 512, 1, reuse=True)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def head(*entries: bytes, magic: bytes = b"GGUF", version: int = 3) -> bytes:
    return magic + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


ARCHITECTURE = entry("general.architecture", 8, text("qwen2"))
TAGS = entry("general.tags", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"))
NUMBERS = entry("some.numbers", 9, struct.pack("<IQ3H", 2, 3, 1, 2, 3))
FLAG = entry("some.flag", 7, b"\x01")
CONTEXT = entry("qwen2.context_length", 4, struct.pack("<I", 32768))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (head(ARCHITECTURE, CONTEXT), 32768),
        (head(ARCHITECTURE, TAGS, NUMBERS, FLAG, CONTEXT), 32768),
        (head(CONTEXT, version=2), 32768),
        (head(entry("x.context_length", 10, struct.pack("<Q", 8192))), 8192),
        (head(ARCHITECTURE, TAGS), None),
        (head(), None),
    ],
)
def test_the_trained_context_is_found(tmp_path: Path, data: bytes, expected: int | None) -> None:
    assert trained_context(put(tmp_path / "m.gguf", data + b"tensors follow")) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no GGUF file"),
        (b"PK\x03\x04", "is no GGUF file"),
        (b"GGUF", "it ends early"),
        (head(version=1), "GGUF version 1, expected 2 or 3"),
        (head(ARCHITECTURE, CONTEXT)[:-1], "it ends early"),
        (head(entry("x", 99, b"")), "a value of unknown type 99"),
        (head(entry("x", 9, struct.pack("<IQ", 4, 1 << 40))), "a table of 1099511627776 entries"),
        (head(struct.pack("<Q", 1 << 60)), "a value of 1152921504606846976 bytes"),
        (head(entry("x", 9, struct.pack("<IQ", 9, 1) * 5000)), "damaged GGUF file"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = put(tmp_path / "m.gguf", data)
    with pytest.raises(InputError, match=message) as caught:
        trained_context(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        trained_context(tmp_path / "none.gguf")


@given(st.binary(max_size=200))
def test_random_bytes_after_the_magic_never_cause_another_error(tmp_path_factory, data: bytes) -> None:
    path = put(tmp_path_factory.mktemp("gguf") / "m.gguf", b"GGUF\x03\x00\x00\x00" + data)
    try:
        found = trained_context(path)
    except InputError:
        return
    assert found is None or isinstance(found, int)
