"""A server with the batch interfaces of OpenAI and Anthropic, as a thread; tests decide what becomes of a batch."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs

from tests.scoring import Handler, listening


def chat_reply(body: dict[str, Any], text: str) -> dict[str, Any]:
    """A chat completion for the body of a request."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    return {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}


def good_text(body: dict[str, Any]) -> str:
    """A readable answer to a request of ours: the worst grade."""
    formats = body.get("response_format", {}).get("json_schema", {}), body.get("output_config", {}).get("format", {})
    schema = formats[0].get("schema") or formats[1].get("schema")
    if schema is None:
        return "Because.\nGrade: 0"
    return json.dumps({"rationale": "Because.", "grade": schema["properties"]["grade"]["enum"][0]})


def answered(line: dict[str, Any]) -> dict[str, Any]:
    """A line of OpenAI's output for a line of requests."""
    body = chat_reply(line["body"], good_text(line["body"]))
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}


class BatchServer:
    """What the server was sent, and what it says."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Any] = {}
        self.results: dict[str, bytes] = {}
        """Lines of Anthropic's batches."""
        self.created = 0
        self.clock = timedelta()
        """How far its clock is ahead of ours."""
        self.lose_reply = False
        """Begin the next batch, and close the connection without a word."""
        self.drop_batch = False
        """Close the connection of the next batch without a word, and begin none."""
        self.refuse: dict[str, Any] | None = None
        """An error, with its `status` and perhaps a `location`, for the next request."""
        self.refuse_post: dict[str, Any] | None = None
        """The same for the next request that is to begin something."""

    def requests(self, batch_id: str) -> list[dict[str, Any]]:
        """The lines of a batch."""
        batch = self.batches[batch_id]
        if "requests" in batch:
            return list(batch["requests"])
        return [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]

    def put(self, lines: list[dict[str, Any]]) -> str:
        """Keep a file of lines, and give its id."""
        name = f"file-{len(self.files)}"
        self.files[name] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return name


@contextmanager
def start_batch_server() -> Iterator[BatchServer]:
    """Run the server while the context lasts."""

    state = BatchServer()

    class Batches(Handler):
        protocol_version = "HTTP/1.1"

        def refused(self) -> bool:
            if state.refuse is None:
                return False
            error, state.refuse = state.refuse, None
            self.say(
                {"error": error}, error["status"], **({"Location": error["location"]} if "location" in error else {})
            )
            return True

        def do_GET(self) -> None:
            if self.refused():
                return
            path, _, query = self.path.removeprefix("/v1").partition("?")
            parts = path.strip("/").split("/")
            if path in ("/batches", "/messages/batches"):
                names, asked = list(reversed(state.batches)), parse_qs(query)
                after = asked.get("after" if path == "/batches" else "after_id", [""])[0]
                rest = names[names.index(after) + 1 :] if after else names
                page = rest[: int(asked["limit"][0])]
                self.say({"data": [shown(state.batches[name]) for name in page], "has_more": len(rest) > len(page)})
            elif parts[0] == "batches":
                self.say(state.batches[parts[1]])
            elif parts[0] == "files":
                self.say(state.files[parts[1]])
            elif parts[-1] == "results":
                self.say(state.results[parts[2]])
            else:
                self.say(shown(state.batches[parts[2]]))

        def do_POST(self) -> None:
            content = self.body()
            if state.refuse_post is not None:
                state.refuse, state.refuse_post = state.refuse_post, None
            if self.refused():
                return
            path = self.path.removeprefix("/v1")
            if path == "/files":
                kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                parts = BytesParser().parsebytes(kind + content).get_payload()
                form = {
                    part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                    for part in parts
                }  # type: ignore[union-attr]
                assert form["purpose"] == b"batch"
                name = f"file-{len(state.files)}"
                state.files[name] = form["file"]
                about = {"id": name, "object": "file", "purpose": "batch", "bytes": 1, "created_at": 1}
                self.say({**about, "filename": "f", "status": "processed"})
                return
            asked = json.loads(content)
            if state.drop_batch:
                state.drop_batch = False
                self.close_connection = True
                return
            state.created += 1
            name = f"batch_{state.created}"
            if path == "/batches":
                state.batches[name] = {
                    **{"id": name, "object": "batch", "endpoint": asked["endpoint"], "created_at": 1},
                    **{"completion_window": "24h", "input_file_id": asked["input_file_id"], "status": "in_progress"},
                    "request_counts": {"total": 0, "completed": 0, "failed": 0},
                }
            else:
                now = (datetime.now(UTC) + state.clock).isoformat()
                state.batches[name] = {
                    **{"id": name, "type": "message_batch", "processing_status": "in_progress", "created_at": now},
                    **{"requests": asked["requests"], "results_url": None},
                    "request_counts": {"processing": len(asked["requests"])},
                }
            if state.lose_reply:
                state.lose_reply = False
                self.close_connection = True
                return
            self.say(shown(state.batches[name]))

    def shown(batch: Any) -> Any:
        return batch if isinstance(batch, bytes) else {key: value for key, value in batch.items() if key != "requests"}

    with listening(Batches) as state.url:
        yield state
