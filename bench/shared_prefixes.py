"""What share of a judge's prompt tokens a prefix cache can hold, by the order of the prompt and of asking.

    python -m bench.shared_prefixes POOL [--topics FILE]

POOL is a folder that `judge pool` or `judge run` wrote. Nothing is sent. Two orders of a prompt are compared: the
bundled ones, with the criterion in the system message, and one with the material first and the criterion last. Two
orders of asking are compared: all responses under one prompt and then under the next, as `judge run` asks, and all
prompts of one response side by side.

Tokens are those of cl100k_base, whose table litellm brings along. Requests in flight together see nothing of each
other. The first line also tells how many bytes a token has.
"""

import argparse
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.prompt import PLACEHOLDER, needs_turn, render
from judge.ask.records import Task, evidence_gap, tasks
from judge.io.ids import natural_key
from judge.judges.backends.litellm import load_litellm
from judge.pool.bank import read_pool_folder
from judge.records import Criterion
from judge.runs.topics import read_topics, turns_by_id

MATERIAL = ("passages", "ptkb", "context", "utterance", "resolved_utterance", "response", "sentences")
"""Inputs in an order that is the same for every criterion, those first that several responses may share."""
SETS = (
    ("groundedness",),
    ("naturalness",),
    ("relevance",),
    ("groundedness", "naturalness"),
    ("relevance", "completeness"),
    ("relevance", "completeness", "conciseness"),
    ("groundedness", "naturalness", "relevance", "completeness", "conciseness"),
)


class Cache(NamedTuple):
    """How a cache counts and what it holds."""

    name: str
    block: int
    """Tokens are found by whole blocks."""
    least: int
    """Fewer tokens than these are not found."""
    flight: int = 1
    """Requests that are sent together."""
    holds: int | None = None
    """Blocks that it holds, the longest unused one going first; None for no end, 0 for the last prompt alone."""


CACHES = (
    Cache("vLLM", 16, 16),
    Cache("vLLM, 65,536 tokens", 16, 16, holds=4096),
    Cache("vLLM, 16 in flight", 16, 16, flight=16),
    Cache("last prompt alone", 1, 1, holds=0),
    Cache("OpenAI", 128, 1024),
    Cache("OpenAI, 16 in flight", 128, 1024, flight=16),
)


def criterion_last(criterion: Criterion) -> Criterion:
    """The prompt with its material first and then what is asked."""
    shown = "\n".join(f"{{{{{name}}}}}" for name in MATERIAL if name in criterion.inputs)
    blocks = {f"{{{{{name}}}}}" for name in criterion.inputs}
    question = "\n".join(line for line in criterion.user.splitlines() if line.strip() not in blocks)
    left = {found[1] for found in PLACEHOLDER.finditer(question)} & set(criterion.inputs)
    if left:
        raise SystemExit(f"{criterion.prompt_id}: {', '.join(left)} is not on a line of its own")
    return msgspec.structs.replace(
        criterion,
        system="You assess responses of a conversational system.",
        user=f"{shown}\n{criterion.system}\n{question}",
    )


def found_share(prompts: Sequence[Sequence[int]], cache: Cache) -> float:
    """The share of all tokens that are found in the cache."""
    known: OrderedDict[int, None] = OrderedDict()
    found = 0
    for start in range(0, len(prompts), cache.flight):
        together = [(prompt, list(chained(prompt, cache.block))) for prompt in prompts[start : start + cache.flight]]
        for prompt, keys in together:
            blocks = next((place for place, key in enumerate(keys) if key not in known), len(keys))
            # The last token is always computed, since the reply begins with it.
            tokens = min(blocks, (len(prompt) - 1) // cache.block) * cache.block
            found += tokens if tokens >= cache.least else 0
        if cache.holds == 0:
            known.clear()
        for _, keys in together:
            # The start of a prompt is let go last.
            for key in reversed(keys):
                known[key] = None
                known.move_to_end(key)
        while cache.holds and len(known) > cache.holds:
            known.popitem(last=False)
    return found / sum(map(len, prompts))


def chained(prompt: Sequence[int], block: int) -> Iterator[int]:
    """A key for each full block, which stands for all tokens up to its end."""
    key = 0
    for start in range(0, len(prompt) - block + 1, block):
        key = hash((key, *prompt[start : start + block]))
        yield key


def by_prompt(task: Task) -> tuple[object, ...]:
    """The order in which `judge run` asks."""
    return task.criterion.prompt_id, natural_key(task.response.turn_id), task.response.passages


def by_response(task: Task) -> tuple[object, ...]:
    """All prompts of a response side by side, turn by turn."""
    response = task.response
    return natural_key(response.turn_id), response.passages, natural_key(response.response_id), task.criterion.prompt_id


ORDERS: tuple[tuple[str, Callable[[Task], tuple[object, ...]]], ...] = (
    ("prompt", by_prompt),
    ("response", by_response),
)


def main() -> None:
    """Print a table for each set of criteria: a line for each order, a column for each cache."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--topics", type=Path)
    args = parser.parse_args()
    pool = read_pool_folder(args.pool, "passages.jsonl")
    turns = turns_by_id(read_topics(args.topics)) if args.topics else {}
    load_litellm()
    from litellm.litellm_core_utils.default_encoding import encoding

    def asked(criteria: Sequence[Criterion]) -> list[tuple[Task, str]]:
        return [
            (task, "".join(f"<|{message.role}|>\n{message.content}\n" for message in request.messages))
            for task in tasks(pool, criteria)
            if evidence_gap(task, pool) is None
            for request in (render(task, pool.passages, turns.get(task.response.turn_id), "json"),)
        ]

    for names in SETS:
        first = [find_criterion(name) for name in names]
        made = [] if any(map(needs_turn, first)) and not turns else asked(first)
        if len({task.criterion.name for task, _ in made}) < len(names):
            continue
        size = sum(len(text.encode()) for _, text in made)
        for laid, rows in (("first", made), ("last", asked([criterion_last(criterion) for criterion in first]))):
            encoded = encoding.encode_batch([text for _, text in rows], num_threads=1, disallowed_special=())
            tokens = sum(map(len, encoded))
            if laid == "first":
                print(
                    f"\n{', '.join(names)}: {len(rows):,} requests, {tokens:,} tokens, {size / tokens:.2f} bytes each"
                )
                print("".join(f"{name:>22}" for name in ("criterion, asked by", *(cache.name for cache in CACHES))))
            for order, key in ORDERS[: len(names)]:
                places = sorted(range(len(rows)), key=lambda place: key(rows[place][0]))
                prompts = [encoded[place] for place in places]
                shares = "".join(f"{found_share(prompts, cache):22.1%}" for cache in CACHES)
                print(f"{f'{laid}, {order}':>22}{shares}", flush=True)


if __name__ == "__main__":
    main()
