"""What `vllm run-batch` would bring for a folder of requests, for `bench/millions.py`."""

import json
import random
from pathlib import Path
from typing import Any


def return_lines(requests: Path, out: Path) -> None:
    """Write a line for each request in no order: of a hundred, one stands twice and one brings an error."""
    ids = [
        json.loads(line)["custom_id"] for path in sorted(requests.glob("requests-*.jsonl")) for line in path.open("rb")
    ]
    rng = random.Random(0)
    rng.shuffle(ids)
    twice, failed = ids[: len(ids) // 100], set(ids[len(ids) // 100 : len(ids) // 50])
    lines = ids + twice
    rng.shuffle(lines)
    with out.open("w", encoding="utf-8") as file:
        for number, digest in enumerate(lines):
            body: dict[str, Any] = {"error": {"message": "the prompt is longer than the model's context"}}
            if digest not in failed:
                said = json.dumps({"rationale": f"Because of {number % 997}.", "grade": int(digest[:6], 16) % 4})
                choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
                usage = {"prompt_tokens": 1500, "completion_tokens": 20, "total_tokens": 1520}
                body = {"object": "chat.completion", "model": "bench", "choices": [choice], "usage": usage}
            response = {"status_code": 400 if digest in failed else 200, "request_id": str(number), "body": body}
            line = {"id": f"vllm-{number}", "custom_id": digest, "response": response, "error": None}
            file.write(json.dumps(line) + "\n")
