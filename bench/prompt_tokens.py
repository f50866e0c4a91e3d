"""How many tokens the prompts of a folder of `judge requests` have.

    python -m bench.prompt_tokens round-1/ [more folders]

Tokens are those of o200k_base, whose table litellm brings along; each message has four more and each request three, as
OpenAI counts them. Reads files in OpenAI's form. The JSON schema of the answer is left out: it is no part of a message.
"""

import argparse
import importlib.util
import itertools
import os
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

OF_MESSAGE, OF_REQUEST = 4, 3


def prompts(folder: Path) -> dict[str, list[list[str]]]:
    """The messages of every request, by the first message, which says what is asked."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for path in sorted(folder.glob("requests-*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                body: dict[str, Any] = msgspec.json.decode(line)["body"]
                messages = [message["content"] for message in body["messages"]]
                found[messages[0]].append(messages)
    return found


def beginning(texts: list[str]) -> str:
    """The longest beginning that all texts share: that of the first and the last in order."""
    low, high = min(texts), max(texts)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False))
    return low[: sum(1 for _ in same)]


def main() -> None:
    """Print a line for each prompt of each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    given = parser.parse_args()
    litellm = importlib.util.find_spec("litellm")
    assert litellm is not None and litellm.submodule_search_locations is not None
    tables = Path(litellm.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode(text, disallowed_special=()))

    print("folder", "prompt", "requests", "median", "mean", "p95", "shared", "bytes_per_token", sep="\t")
    for folder in given.folders:
        for first, asked in prompts(folder).items():
            tokens = sorted(sum(count(text) + OF_MESSAGE for text in messages) + OF_REQUEST for messages in asked)
            size = sum(len(text.encode()) for messages in asked for text in messages)
            shared = count(beginning(["".join(messages) for messages in asked]))
            print(
                folder, first[:40].replace("\n", " "), len(tokens), f"{statistics.median(tokens):.0f}",
                f"{statistics.mean(tokens):.0f}", tokens[int(0.95 * len(tokens))], shared, f"{size / sum(tokens):.2f}",
                sep="\t",
            )  # fmt: skip


if __name__ == "__main__":
    main()
