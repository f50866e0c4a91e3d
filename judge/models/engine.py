"""llama.cpp's server inside this process, through `xllamacpp`: one model, one prompt at a time.

The settings were chosen so that neither earlier requests nor the number of threads change a bit of a completion.
"""

import contextlib
import importlib
import importlib.metadata
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from judge.errors import ContextLengthError, OperationalError, RejectedError, UsageError

if TYPE_CHECKING:
    import xllamacpp

_BATCH = 1024
"""Prompt tokens computed at once; longer batches are no faster and need more memory."""
_FRESH = 64
"""Characters at the end of a prompt that are always computed again, see `Engine.ask`."""


class Engine:
    """A loaded model, which completes one prompt at a time."""

    def __init__(self, server: "xllamacpp.Server") -> None:
        self._server = server
        self._last = ""

    def ask(self, messages: Sequence[Mapping[str, str]], sent: Mapping[str, Any]) -> dict[str, Any]:
        """The engine's reply to a chat request, as its protocol writes it.

        Probabilities differ in their low bits when a token is computed in a batch of fewer than eight tokens. A
        completion is computed so; the end of a prompt would be too, if only its last word differed from the last
        prompt. The start shared with the last prompt is therefore used again only if no such token takes part.

        Args:
            messages: The messages, each with `role` and `content`.
            sent: All other parameters of the request.

        Raises:
            ContextLengthError: The prompt is longer than the context.
            RejectedError: The engine does not take the request.
        """
        prompt = "\x00".join(message["content"] for message in messages)
        repeats = self._last.startswith(prompt[:-_FRESH])
        decoded = any(message["role"] == "assistant" for message in messages)
        try:
            reply: dict[str, Any] = self._server.handle_chat_completions(
                {**sent, "messages": messages, "cache_prompt": not repeats and not decoded}
            )
        except (RuntimeError, ValueError) as error:
            raise RejectedError(f"the engine refuses the request: {error}") from error
        refusal = reply.get("error")
        if refusal is None:
            self._last = prompt
            return reply
        if refusal.get("type") == "exceed_context_size_error":
            raise ContextLengthError(
                f"the request has {refusal.get('n_prompt_tokens')} tokens, the context holds {refusal.get('n_ctx')}"
            )
        raise RejectedError(f"the engine refuses the request: {refusal.get('message')}")


def start(path: Path, context: int, threads: int) -> Engine:
    """Load a model.

    Args:
        path: A GGUF file.
        context: Tokens that a prompt and its completion may have together.
        threads: CPU threads.

    Raises:
        OperationalError: The model cannot be loaded.
    """
    engine = load_engine()
    params = engine.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # With flash attention or repacked weights, low bits depend on how the prompt is split. Without repacked
    # weights, prompts are also read 15 % faster (x86-64 with AVX2) and 0.6 GB less memory is needed.
    params.flash_attn_type = engine.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_extra_bufts = True
    # The server would keep up to 8 GiB of earlier prompts.
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.warmup = False
    params.enable_reasoning = 0
    # The engine opens a port on the loopback address: a random key keeps others out. Its log is not for the user.
    params.api_keys = [secrets.token_hex(32)]
    params.ui = params.endpoint_slots = params.endpoint_props = False
    params.verbosity = -1
    try:
        return Engine(engine.Server(params))
    except RuntimeError as error:
        raise OperationalError(f"{path}: the engine cannot load this model, or there is too little memory") from error


def load_engine() -> ModuleType:
    """Import the engine's module.

    Raises:
        UsageError: The module is not installed, or a library that it needs is missing.
    """
    # Threads that wait by spinning cost a third of the speed when other programs want a core. OpenMP reads this once.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        hint = "; on Debian and Ubuntu, the package libgomp1 has it" if "libgomp" in str(error) else ""
        raise UsageError(f"local models need xllamacpp, which cannot be loaded here: {error}{hint}") from error


def engine_version() -> str:
    """Name and version of the engine, as the journal records them."""
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Number of cores that this process may use: those it is bound to, within its container's share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        share, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, int(share) // int(period))
    return max(cores, 1)
