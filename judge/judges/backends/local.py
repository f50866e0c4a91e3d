"""`local/NAME` or `local/PATH.gguf`: a small LLM in this process, on this machine's CPU; nothing is sent anywhere.

One request is computed at a time, on all free cores; the start that its prompt shares with the last prompt is not
computed again. Completions in the label form come with the probability of every label.

OpenVINO computes, through `openvino-genai`. Earlier requests change no bit of a completion, unless they asked the same
messages in another form. The number of threads changes tokens that are computed one by one: those of a text, and a
label that is no likely first token. Where a processor has numbers of 16 bits, neighboring probabilities differ by 6 %.
"""

import asyncio
import functools
import hashlib
import importlib
import importlib.metadata
import json
import math
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

from judge.errors import ContextLengthError, InputError, OperationalError, RejectedError, UsageError
from judge.io.installed import need_extra
from judge.io.processes import usable_cores
from judge.io.text import did_you_mean
from judge.judges.chat import chat_messages, response_format
from judge.judges.forms import label_grammar, literal
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Request
from judge.judges.weights import CATALOG, ModelWeights, cached_digest, ensure, is_here, weights_file
from judge.records import Criterion

_LIKELIEST = 10
"""Number of likeliest first tokens whose probabilities the engine tells; the time that it takes grows with it."""

_BLOCK, _KEPT = 32, 1024
"""Tokens in a block of the engine's cache, and replies that are kept: twice the blocks of the longest context. A prompt
takes a block of its own at least, so the engine has forgotten a prompt by the time that its reply is forgotten here."""


class EngineReply(NamedTuple):
    """What the engine wrote."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    first_tokens: tuple[tuple[str, float], ...] = ()
    """In the label form: first tokens with their probabilities, at least one for each label."""


class Engine:
    """A loaded model, which completes one prompt at a time.

    `module` is `openvino_genai`, `pipeline` an `LLMPipeline` of it, `context` the most tokens of prompt and completion.
    """

    def __init__(self, module: ModuleType, pipeline: Any, context: int) -> None:
        self._module = module
        self._pipeline = pipeline
        self._context = context
        self._tokenizer = pipeline.get_tokenizer()
        self._replies: dict[bytes, EngineReply] = {}

    def ask(self, messages: Sequence[Mapping[str, str]], sent: Mapping[str, Any]) -> EngineReply:
        """The completion of a chat.

        A token that is computed alone differs in its low bits from a token that is computed with others. A repeated
        prompt would be read from the cache except for its last token. A chat with a reply would read the tokens of
        this reply, which the engine wrote one by one. So a repeated prompt gets the same completion again, and a
        chat with replies begins with as many line ends: it shares no start with any other.

        Args:
            messages: The messages, each with `role` and `content`.
            sent: `temperature`, `seed`, `max_tokens`; `labels` in the label form, `schema` in the JSON form.

        Raises:
            ContextLengthError: The prompt is longer than the context.
            RejectedError: The engine does not take the request.
        """
        replies = sum(message["role"] == "assistant" for message in messages)
        try:
            chat = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True)
            prompt = self._tokenizer.encode("\n" * replies + chat, add_special_tokens=False)
            tokens = prompt.input_ids.shape[1]
            if tokens >= self._context:
                # The tokenizer stops where the model's context ends.
                raise ContextLengthError(f"the request has {tokens} tokens or more, the context holds {self._context}")
            # At temperature 0 the seed changes nothing.
            same = {**sent, "seed": sent["seed"] if sent["temperature"] > 0 else None}
            key = hashlib.sha256(json.dumps([messages, same]).encode()).digest()
            if key not in self._replies:
                self._replies[key] = self._complete(prompt, tokens, sent)
                if len(self._replies) > _KEPT:
                    del self._replies[next(iter(self._replies))]
            return self._replies[key]
        except (RuntimeError, ValueError, IndexError) as error:
            raise RejectedError(f"the engine refuses the request: {error}") from error

    def _complete(self, prompt: Any, tokens: int, sent: Mapping[str, Any]) -> EngineReply:
        labels = sent.get("labels")
        output = {}
        first: tuple[tuple[str, float], ...] = ()
        settings: dict[str, Any] = {"max_new_tokens": min(sent["max_tokens"], self._context - tokens)}
        if sent["temperature"] > 0:
            settings |= {"do_sample": True, "temperature": sent["temperature"], "rng_seed": sent["seed"] % 2**63}
        if labels is not None:
            first = self._first_tokens(prompt, labels)
            # Constrained decoding would begin with the likeliest token that a label begins with.
            begun = next((matching for token, _ in first if (matching := _begun(token, labels))), [])
            if len(begun) == 1 and sent["temperature"] == 0:
                return EngineReply(
                    text=begun[0], finish_reason="stop", prompt_tokens=tokens, completion_tokens=1, first_tokens=first
                )
            output = {"grammar": label_grammar(labels)}
        elif "schema" in sent:
            output = {"grammar": json_grammar(sent["schema"])}
        written = self._generate(prompt, settings, output)
        stopped = written.finish_reasons[0] == self._module.GenerationFinishReason.STOP
        text = self._tokenizer.decode(written.tokens[0])
        return EngineReply(
            text=text,
            finish_reason="stop" if stopped else "length",
            prompt_tokens=tokens,
            completion_tokens=len(written.tokens[0]),
            first_tokens=first,
        )

    def _first_tokens(self, prompt: Any, labels: Sequence[str]) -> tuple[tuple[str, float], ...]:
        """The likeliest first tokens, the likeliest first, and one for each label that none of them begins."""
        beams = {"max_new_tokens": 1, "num_beams": _LIKELIEST, "num_return_sequences": _LIKELIEST}
        likeliest = self._generate(prompt, beams)
        found = list(zip(self._tokenizer.decode(likeliest.tokens), likeliest.scores, strict=True))
        for label in labels:
            if not any(_begun(token, [label]) for token, _ in found):
                held = self._generate(prompt, {"max_new_tokens": 1, "logprobs": 1}, {"grammar": label_grammar([label])})
                found.append((self._tokenizer.decode(held.tokens[0]), held.scores[0]))
        return tuple((token, math.exp(score)) for token, score in sorted(found, key=lambda pair: -pair[1]))

    def _generate(self, prompt: Any, settings: Mapping[str, Any], output: Mapping[str, str] | None = None) -> Any:
        config = self._module.GenerationConfig()
        for name, value in settings.items():
            setattr(config, name, value)
        if output:
            config.structured_output_config = self._module.StructuredOutputConfig(**output)
        return self._pipeline.generate(prompt, config)


def json_grammar(schema: Mapping[str, Any]) -> str:
    r"""A grammar of the JSON texts of a schema, with its spaces laid down: small models may write spaces without end.

    >>> print(json_grammar({"type": "object", "properties": {"grade": {"type": "string", "enum": ["0", "1"]}}}))
    root ::= "{" "\"grade\": " ("\"0\"" | "\"1\"") "}"
    string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\""
    integer ::= "-"? [0-9]+
    """
    rules = r"""string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\""
integer ::= "-"? [0-9]+"""
    return f"root ::= {_rule(schema)}\n{rules}"


def _rule(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"({' | '.join(literal(json.dumps(label, ensure_ascii=False)) for label in schema['enum'])})"
    if schema["type"] == "array":
        item = _rule(schema["items"])
        return f'"[" ({item} (", " {item})*)? "]"'
    if schema["type"] == "object":
        members = (f"{literal(json.dumps(name) + ': ')} {_rule(of)}" for name, of in schema["properties"].items())
        return '"{" ' + ' ", " '.join(members) + ' "}"'
    return str(schema["type"])


def _begun(token: str, labels: Sequence[str]) -> list[str]:
    """The labels that a token begins."""
    return [label for label in labels if token and label.startswith(token)]


def start(path: Path, context: int, threads: int, *, reuse: bool) -> Engine:
    """Load a model for so many tokens of prompt and completion; `reuse` computes a shared start of prompts once.

    An OperationalError if the model cannot be loaded.
    """
    module = load_engine()
    scheduler = module.SchedulerConfig()
    scheduler.enable_prefix_caching = reuse
    scheduler.num_kv_blocks = 2 * context // _BLOCK
    # A prompt that is computed in pieces could end with a token that is computed alone.
    scheduler.max_num_batched_tokens = context
    try:
        pipeline = module.LLMPipeline(path, "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=threads)
    except (RuntimeError, ValueError, IndexError) as error:
        raise OperationalError(
            f"{path}: the engine cannot load this model, which is of another architecture than Llama or Qwen, or there "
            "is too little memory"
        ) from error
    return Engine(module, pipeline, context)


def load_engine() -> ModuleType:
    """Import the engine's module; a UsageError if it, or a library that it needs, is missing."""
    try:
        return importlib.import_module("openvino_genai")
    except ImportError as error:
        raise UsageError(f"local models need openvino-genai, which cannot be loaded here: {error}") from error


@functools.cache
def engine_version() -> str:
    """Name and version of the engine, as the journal records them."""
    return f"openvino-genai {importlib.metadata.version('openvino-genai')}"


_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF type code to letter of `struct`."""
_STRING, _ARRAY, _LONGEST = 8, 9, 1 << 26
"""The codes of texts and tables, and most entries of a table; a text may have eight times as many bytes."""


def trained_context(path: Path) -> int | None:
    """Tokens that a model was trained to see at once, by the header of its file; None if that does not say.

    Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian). A file that
    cannot be read, is damaged or is no GGUF file is an InputError.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(f"{path}: is no GGUF file")
            version, _, count = _numbers(file, "IQQ")
            if version not in (2, 3):
                raise InputError(f"{path}: GGUF version {version}, expected 2 or 3")
            for _ in range(count):
                key = _value(file, _STRING)
                value = _value(file, *_numbers(file, "I"))
                if key.endswith(".context_length") and isinstance(value, int):
                    return value
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (EOFError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged GGUF file: {error}") from error
    return None


def _numbers(file: BinaryIO, letters: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{letters}", _take(file, struct.calcsize(f"<{letters}")))


def _take(file: BinaryIO, size: int) -> bytes:
    if size > _LONGEST * 8:
        raise ValueError(f"a value of {size} bytes")
    taken = file.read(size)
    if len(taken) != size:
        raise EOFError("it ends early")
    return taken


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _take(file, *_numbers(file, "Q")).decode("utf-8", "replace")
    if kind == _ARRAY:
        inner, count = _numbers(file, "IQ")
        if count > _LONGEST:
            raise ValueError(f"a table of {count} entries")
        return [_value(file, inner) for _ in range(count)]
    if kind in _NUMBERS:
        return _numbers(file, _NUMBERS[kind])[0]
    raise ValueError(f"a value of unknown type {kind}")


_CONTEXT, _NOT_SENT = 8192, frozenset({"weights", "engine", "n_ctx"})
"""Tokens of prompt and completion together, fewer where a model was trained on fewer; and the parameters that are fixed
when the engine is loaded."""


class _File(NamedTuple):
    path: Path
    sha256: str
    context: int


class LocalModel(Model):
    """A judge in this process.

    Its calls cannot be cut short, so they have no time limit.
    """

    forms: tuple[AnswerForm, ...] = ("label", "json", "text")
    max_concurrency = 1
    uses_cores = True
    free = True

    def __init__(self, source: ModelWeights | Path, options: ModelOptions) -> None:
        # The name goes into every record and must not depend on the folder of the file.
        self.name = f"local/{source.name}"
        self._source = source
        self._options = options
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a machine without the engine, and a file that holds no model."""
        need_extra("llama", self.name)
        load_engine()
        if isinstance(self._source, Path):
            trained_context(self._source)

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Fetch the weights if they are missing, and load them."""
        if isinstance(self._source, ModelWeights):
            ensure(self._source, report)
        with self._lock:
            if self._engine is None:
                self._engine = self._open()

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything beside the messages and the machine (its processor, the threads) that can change a completion."""
        return {
            "weights": self._file.sha256,
            "engine": engine_version(),
            "n_ctx": self._file.context,
            "temperature": self._options.temperature,
            "seed": (self._options.seed or 0) + request.sample,
            **self._form(request),
        }

    async def complete(self, request: Request) -> Completion:
        """Ask once, in a thread."""
        return await asyncio.to_thread(self._complete, request)

    async def aclose(self) -> None:
        """Unload the weights."""
        await asyncio.to_thread(self._close)

    def _complete(self, request: Request) -> Completion:
        sent = {name: value for name, value in self.parameters(request).items() if name not in _NOT_SENT}
        messages = chat_messages(request)
        with self._lock:
            if self._engine is None:
                self._engine = self._open()
            started = time.perf_counter()
            reply = self._engine.ask(messages, sent)
            latency = time.perf_counter() - started
        return Completion(
            text=reply.text,
            # A whole label is complete even where the token limit ended it, see `_form`.
            finish_reason="stop" if request.form == "label" and reply.text in request.labels else reply.finish_reason,
            model=f"{self._file.path.stem}@{self._file.sha256[:8]}",
            system_fingerprint=engine_version(),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=0.0,
            latency=round(latency, 3),
            probabilities=label_probabilities(reply.first_tokens, request.labels) if request.form == "label" else None,
        )

    def _form(self, request: Request) -> dict[str, Any]:
        if request.form == "label":
            # A token has at least one byte, so the longest label needs no more tokens than it has bytes.
            return {"labels": list(request.labels), "max_tokens": max(len(label.encode()) for label in request.labels)}
        if request.form == "text":
            return {"max_tokens": self._options.max_tokens}
        schema = response_format(request)["response_format"]["json_schema"]["schema"]
        return {"max_tokens": self._options.max_tokens, "schema": schema}

    @functools.cached_property
    def _file(self) -> _File:
        source = self._source
        if isinstance(source, ModelWeights):
            return _File(weights_file(source), source.sha256, _CONTEXT)
        return _File(source, cached_digest(source), min(_CONTEXT, trained_context(source) or _CONTEXT))

    def _open(self) -> Engine:
        file = self._file
        again = ""
        if isinstance(self._source, ModelWeights):
            pull = f"; `judge models pull {self._source.name}` fetches them"
            if not is_here(self._source):
                raise OperationalError(f"{self.name}: the weights are not here{pull}")
            again = f"{pull} anew"
        try:
            sha256 = cached_digest(file.path)
        except OSError as error:
            raise OperationalError(f"{file.path}: cannot be read: {error.strerror}") from error
        if sha256 != file.sha256:
            # Every record names the digest of the weights, so no others may answer.
            raise OperationalError(
                f"{file.path}: these are not the weights of {self.name}: SHA-256 {sha256}, "
                f"expected {file.sha256}{again}"
            )
        # Above temperature 0 a prompt is asked again for each sample, and its last token would be computed alone.
        reuse = self._options.temperature == 0
        return start(file.path, file.context, self._options.threads or usable_cores(), reuse=reuse)

    def _close(self) -> None:
        with self._lock:
            self._engine = None


def label_probabilities(tokens: Iterable[tuple[str, float]], labels: Sequence[str]) -> dict[str, float] | None:
    """Probability of each label, from the unconstrained distribution of the first token, normalized over the labels.

    A token counts for a label if that label begins with it and no other label does; outer whitespace and case are
    ignored. Probabilities have six significant digits; the result is None if no token counts.

    >>> label_probabilities([("Yes", 0.4), ("no", 0.1), (" yes", 0.1), ("The", 0.4)], ["yes", "no"])
    {'yes': 0.833333, 'no': 0.166667}
    """
    masses = dict.fromkeys(labels, 0.0)
    for token, probability in tokens:
        prefix = token.strip().casefold()
        matching = [label for label in labels if prefix and label.casefold().startswith(prefix)]
        if len(matching) == 1:
            masses[matching[0]] += probability
    total = sum(masses.values())
    if total <= 0:
        return None
    return {label: float(f"{mass / total:.6g}") for label, mass in masses.items()}


def open_model(model: str, options: ModelOptions) -> LocalModel:
    """A model of the catalog by its name, or any GGUF file by its path."""
    if options.base_url is not None:
        raise UsageError(f"--base-url is for judges that run elsewhere; local/{model} runs here")
    if model in CATALOG:
        return LocalModel(CATALOG[model], options)
    if not model.endswith(".gguf"):
        raise UsageError(
            f"no local model called {model!r}{did_you_mean(model, CATALOG)} (there are {', '.join(CATALOG)}, or "
            "local/PATH for a file PATH.gguf)"
        )
    return LocalModel(Path(model).expanduser(), options)
