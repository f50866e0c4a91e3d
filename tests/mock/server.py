"""A mock OpenAI-compatible server: standard library only, its own process, able to misbehave on demand.

`python tests/mock/server.py --port 0` prints the port it listens on. `POST /v1/chat/completions` answers with
a valid verdict in the form asked for; `POST /__config` changes the options below, `POST /__reset` restores
them and forgets the counts; `GET /__stats` and `GET /__last` tell what happened, and `GET /__faults` what may. The
fate of a request follows from its messages, the seed and how often they were sent, so a run can be repeated.
"""

import argparse
import asyncio
import dataclasses
import hashlib
import itertools
import json
import math
import re
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A script finds its neighbor by its bare name.
from faults import FAULTS, HOPELESS, PROVIDERS, Fault, error, said

REASON = "The response was read against what was asked."
MENU = re.compile(r"LABEL is one of (.+):\n(Grade|1): LABEL")
"""How judge's own prompts ask for the text form: of one grade, or of a label for each sentence."""
PLANTED = re.compile(r"\bGrade: ([0-9])\b")
"""A verdict that a text claims for itself."""
SENTENCES = re.compile(r"<(?:sentences|candidates)>\n(.*?)\n</(?:sentences|candidates)>", re.DOTALL)
SOURCE = re.compile(r"<source>\n(.*?)\n</source>", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Options:
    """Every option, as on the command line and in `POST /__config`."""

    latency: float = 0.0
    """Seconds before an answer."""
    jitter: float = 0.0
    """Sigma of a lognormal factor on the latency whose mean is 1."""
    p429: float = 0.0
    p500: float = 0.0
    pbad: float = 0.0
    """Share answered with a paid 200 whose content holds no valid verdict."""
    pdrop: float = 0.0
    """Share whose connection is cut instead of an answer; not paid."""
    faults: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Share of each fault of `faults.py`."""
    faulty: str = ""
    """Only requests with this text in a message meet a fault, whose share is then that of these requests."""
    fault_attempts: int | None = None
    """How often the same messages meet a fault at most; None for no end."""
    slow: float = 5.0
    """Seconds that a slow fault takes."""
    revoked_after: int | None = None
    """Paid calls after which the key is revoked: every later request gets 401."""
    retry_after: float | None = 1.0
    """Seconds in the Retry-After of a 429 (in `retry-after-ms` too if no integer); None sends none."""
    rps: float = 0.0
    """Requests a second let through before 429; 0 for no limit."""
    burst: float = 1.0
    """Requests let through at once under `rps`."""
    provider: str = ""
    """Whose words the limits are told in, with 200 and 429: a row of faults.py; by default, Retry-After."""
    refuse: str = ""
    """Every request is refused with this row of the hopeless refusals of faults.py."""
    response_format: str = "honor"
    """What to do with a json_schema: honor it, ignore it, or reject it with status 400."""
    labels: tuple[str, ...] = ("0", "1", "2", "3")
    """Labels of the text form, unless the prompt names its own."""
    gullible: bool = False
    """Whether the verdict is the last one that a text claims for itself (`Grade: 3`), else the first of the menu."""
    refused: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Parameter to the status and the body with which every request that has it is refused; `system` is a message."""
    logprobs: str = "openai"
    """Log probabilities, where asked for: as openai, vllm or llama.cpp gives them; ignore or reject (status 400)."""
    fingerprint: str = "mock"
    """The `system_fingerprint` of replies."""
    declined: str = ""
    """A decision about a question with this text is a refusal."""
    key: str | None = None
    """When set, requests without this bearer key get 401."""
    seed: int = 0
    script: tuple[dict[str, Any], ...] = ()
    """Answers for the next requests, first come first served: any of status, headers, body, delay, drop, bomb, drip.

    `bomb` is a number of bytes, spaces within gzip, or `endless`; `drip` is the seconds between the bytes of a body.
    """

    def __post_init__(self) -> None:
        if self.response_format not in ("honor", "ignore", "reject"):
            raise ValueError(f"response_format: {self.response_format!r} is none of honor, ignore, reject")
        if self.logprobs not in ("openai", "vllm", "llama.cpp", "ignore", "reject"):
            raise ValueError(f"logprobs: {self.logprobs!r} is none of openai, vllm, llama.cpp, ignore, reject")
        if unknown := self.faults.keys() - FAULTS.keys():
            raise ValueError(f"faults: {', '.join(sorted(unknown))}: none of {', '.join(FAULTS)}")
        if not 0 <= self.p429 + self.p500 + self.pbad + self.pdrop + sum(self.faults.values()) <= 1:
            raise ValueError("p429, p500, pbad, pdrop and faults must add up to at most 1")
        for option, name, rows in (("provider", self.provider, PROVIDERS), ("refuse", self.refuse, HOPELESS)):
            if name and name not in rows:
                raise ValueError(f"{option}: {name!r} is none of {', '.join(rows)}")


class Item:
    """What happened to one set of messages."""

    __slots__ = ("delivered", "not_before", "paid", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.paid = 0
        self.delivered = 0
        """Valid answers written to a client that was still there."""
        self.not_before = 0.0


class Server:
    """Options and counts; decides the fate of each request."""

    def __init__(self, options: Options) -> None:
        self.start_options = options
        self.reset()

    def reset(self) -> None:
        """Back to the options of the command line and to no counts."""
        self.options = self.start_options
        self.script = list(self.options.script)
        self.items: dict[bytes, Item] = {}
        self.statuses: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.requests = self.in_flight = self.max_in_flight = 0
        self.paid = self.paid_bad = self.billed_while_gone = 0
        self.asked_again = self.retry_after_violations = 0
        self.first = self.last = 0.0
        self.tokens, self.filled = self.options.burst, time.monotonic()
        self.seen: tuple[bytes, bytes] = (b"", b"")

    def configure(self, changes: dict[str, Any]) -> None:
        """Change some options; the others stay."""
        self.options = dataclasses.replace(self.options, **changes)
        self.script = list(self.options.script)
        self.tokens = self.options.burst

    def stats(self) -> dict[str, Any]:
        """All counts; `repeated_paid` is paid calls beyond the first of each item."""
        return {
            "requests": self.requests,
            "statuses": dict(self.statuses),
            "faults": dict(self.faults),
            "items": len(self.items),
            "items_paid": sum(1 for item in self.items.values() if item.paid),
            "paid": self.paid,
            "paid_bad": self.paid_bad,
            "repeated_paid": sum(max(0, item.paid - 1) for item in self.items.values()),
            "asked_again": self.asked_again,
            "billed_while_gone": self.billed_while_gone,
            "retry_after_violations": self.retry_after_violations,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "window": max(0.0, self.last - self.first),
        }

    def paid_per_item(self) -> dict[str, int]:
        """Paid calls by the digest of the request's messages."""
        return {digest.hex(): item.paid for digest, item in self.items.items()}

    def handle(self, client: "Client", head: bytes, body: bytes) -> None:
        """Answer one request, now or later."""
        method, path, _ = head.split(b" ", 2)
        if path.endswith((b"/chat/completions", b"/v1/messages", b"/decisions", b"/systemone")) and method == b"POST":
            self.complete(client, head, body)
        elif path == b"/__stats":
            client.reply(200, self.stats())
        elif path == b"/__faults":
            client.reply(200, list(FAULTS))
        elif path == b"/__items":
            client.reply(200, self.paid_per_item())
        elif path == b"/__last":
            client.reply(200, {"head": self.seen[0].decode("latin-1"), "body": self.seen[1].decode("utf-8")})
        elif path == b"/__reset" and method == b"POST":
            self.reset()
            client.reply(200, {})
        elif path == b"/__config" and method == b"POST":
            try:
                self.configure(json.loads(body))
            except (TypeError, ValueError) as wrong:
                client.reply(400, {"error": {"message": str(wrong)}})
            else:
                client.reply(200, dataclasses.asdict(self.options))
        else:
            client.reply(404, {"error": {"message": f"no such path: {path.decode('latin-1')}", "code": 404}})

    def complete(self, client: "Client", head: bytes, body: bytes) -> None:
        """Take one chat completion: count it, draw its fate, schedule its answer."""
        now = time.monotonic()
        options = self.options
        self.seen = (head, body)
        self.requests += 1
        self.first = self.first or now
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            request = as_chat(json.loads(body))
            digest = digest_of(request["messages"])
        except (ValueError, KeyError, TypeError):
            self.finish(client, 400, error(None, "the request is not a chat completion"))
            return
        item = self.items.setdefault(digest, Item())
        item.requests += 1
        self.asked_again += item.delivered > 0
        # A client may wake a clock tick early; 5 ms are not what a rate limit is about.
        self.retry_after_violations += now < item.not_before - 0.005
        if self.script:
            self.play(client, self.script.pop(0), request, digest, item)
            return
        if options.refuse:
            self.play(client, HOPELESS[options.refuse], request, digest, item)
            return
        revoked = options.revoked_after is not None and self.paid >= options.revoked_after
        lacking = (
            options.key is not None and f"authorization: bearer {options.key}".lower().encode() not in head.lower()
        )
        if revoked or lacking:
            self.finish(client, 401, error("invalid_api_key", "Incorrect API key provided"))
            return
        roles = {message["role"] for message in request["messages"]}
        refused = next((name for name in options.refused if name in request or name in roles), None)
        if refused is not None:
            status, body = options.refused[refused]
            self.finish(client, status, body)
            return
        if options.response_format == "reject" and request.get("response_format"):
            message = "response_format of type json_schema is not supported by this model"
            self.finish(client, 400, error(None, message, param="response_format"))
            return
        if options.logprobs == "reject" and request.get("logprobs"):
            message = "logprobs are not supported with this model"
            self.finish(client, 400, error(None, message, param="logprobs"))
            return
        fate, normal = draw(digest, options.seed, item.requests)
        wait = self.bucket(now) if options.rps else 0.0
        if wait or fate < options.p429:
            self.limit(client, item, now, wait)
            return
        fate -= options.p429
        delay = options.latency
        if options.jitter:
            delay *= math.exp(options.jitter * normal - options.jitter**2 / 2)
        loop = asyncio.get_running_loop()
        if fate < options.p500:
            loop.call_later(delay, self.finish, client, 500, error(None, "internal error", type="server_error"))
        elif fate < options.p500 + options.pdrop:
            loop.call_later(delay, self.drop, client)
        else:
            fate -= options.p500 + options.pdrop
            bad = fate < options.pbad
            name = None if bad else self.fault(fate - options.pbad, request, item)
            if name is not None:
                self.faults[name] += 1
                delay += options.slow if FAULTS[name].slow == "first byte" else 0.0
            loop.call_later(delay, self.pay, client, request, digest, item, bad, FAULTS.get(name or ""))

    def fault(self, fate: float, request: dict[str, Any], item: Item) -> str | None:
        """The name of the fault in whose share a number falls."""
        most = self.options.fault_attempts
        if most is not None and item.requests > most:
            return None
        if not any(self.options.faulty in message["content"] for message in request["messages"]):
            return None
        for name, share in self.options.faults.items():
            if fate < share:
                return name if request.get("response_format") or not FAULTS[name].schema_only else None
            fate -= share
        return None

    def play(self, client: "Client", step: dict[str, Any], request: dict[str, Any], digest: bytes, item: Item) -> None:
        """Carry out one step of the script."""
        loop, delay = asyncio.get_running_loop(), float(step.get("delay", 0.0))
        if step.get("drop"):
            loop.call_later(delay, self.drop, client)
        elif "bomb" in step or "drip" in step:
            self.finish(client, step.get("status", 200), None, step)
        elif "body" in step or step.get("status", 200) != 200:
            status, headers = step.get("status", 200), step.get("headers", {})
            loop.call_later(delay, self.finish, client, status, step.get("body", {}), headers)
        else:
            loop.call_later(delay, self.pay, client, request, digest, item, False)

    def bucket(self, now: float) -> float:
        """Take one token of the rate limit; the seconds to wait if there is none."""
        rate = self.options.rps
        self.tokens = min(self.options.burst, self.tokens + (now - self.filled) * rate)
        self.filled = now
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / rate

    def limit(self, client: "Client", item: Item, now: float, wait: float) -> None:
        """Answer 429."""
        headers: dict[str, str] = {}
        seconds = self.options.retry_after
        if seconds is not None:
            seconds = max(seconds, wait)
            item.not_before = now + seconds
        if self.options.provider:
            reply = self.told(429, seconds)
            self.finish(client, 429, reply["body"], reply["headers"])
            return
        if seconds is not None:
            headers["Retry-After"] = str(math.ceil(seconds))
            if seconds != math.ceil(seconds):
                headers["retry-after-ms"] = str(math.ceil(seconds * 1000))
        self.finish(client, 429, error("rate_limit_exceeded", "Rate limit reached", type="requests"), headers)

    def told(self, status: int, wish: float | None) -> dict[str, Any]:
        """What the provider whose words are used says of the limits with a reply."""
        options = self.options
        return said(PROVIDERS[options.provider], status, options.burst, max(0.0, self.tokens), options.rps, wish)

    def pay(
        self,
        client: "Client",
        request: dict[str, Any],
        digest: bytes,
        item: Item,
        bad: bool,
        fault: Fault | None = None,
    ) -> None:
        """Bill a call and answer it, with a valid verdict, without one, or with a fault."""
        paid = fault is None or fault.paid
        self.paid += paid
        self.paid_bad += bad
        item.paid += paid
        if client.gone:
            self.billed_while_gone += paid
        elif not bad and (fault is None or fault.slow):
            item.delivered += 1
        if "questions" in request:
            answer = {"nothing": garbage(digest)} if bad else decisions(request, self.options)
            self.finish(client, 200, answer)
            return
        content = garbage(digest) if bad else verdict(request, self.options)
        limits = self.told(200, None)["headers"] if self.options.provider else None
        prompt = sum(len(message["content"]) for message in request["messages"]) // 5
        message = {"role": "assistant", "content": content, "refusal": None}
        answer = {
            "id": f"chatcmpl-{digest.hex()}",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model"),
            "system_fingerprint": self.options.fingerprint,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"} | logprobs(request, content, self)],
            "usage": {"prompt_tokens": prompt, "completion_tokens": len(content) // 5},
        }
        if fault is None:
            self.finish(client, 200, answer, limits)
        else:
            self.fail(client, fault, answer)

    def fail(self, client: "Client", fault: Fault, answer: dict[str, Any]) -> None:
        """Answer with a fault."""
        self.ended(fault.status if fault.sent else "dropped")
        client.fail(fault, fault.body(answer), self.options.slow)

    def drop(self, client: "Client") -> None:
        """Cut the connection."""
        self.ended("dropped")
        client.abort()

    def finish(self, client: "Client", status: int, body: Any, headers: dict[str, Any] | None = None) -> None:
        """Write an answer and count it; without a body, `headers` is a step of the script with a hostile one."""
        self.ended(status)
        if body is None and headers is not None:
            client.flood(status, headers)
        else:
            client.reply(status, body, headers)

    def ended(self, status: int | str) -> None:
        """Count what became of a request."""
        self.statuses[str(status)] += 1
        self.in_flight -= 1
        self.last = time.monotonic()


def draw(digest: bytes, seed: int, attempt: int) -> tuple[float, float]:
    """A uniform and a standard normal number that follow from the item, the seed and the attempt."""
    noise = hashlib.blake2b(digest + struct.pack("<qq", seed, attempt), digest_size=24).digest()
    fate, radius, angle = (value / 2**64 for value in struct.unpack("<3Q", noise))
    # Box-Muller; 1 - u keeps the logarithm's argument above 0.
    return fate, math.sqrt(-2 * math.log(1 - radius)) * math.cos(2 * math.pi * angle)


def garbage(digest: bytes) -> str:
    """One of several replies that hold no verdict on any scale."""
    kinds = ("I am not sure what you mean.", '{"rationale": "cut off in the mid', "Grade: banana", "")
    return kinds[digest[0] % len(kinds)]


def digest_of(messages: Sequence[dict[str, str]]) -> bytes:
    """Eight bytes that stand for the messages."""
    text = "\0".join(f"{message['role']}\0{message['content']}" for message in messages)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def as_chat(request: dict[str, Any]) -> dict[str, Any]:
    """A request for decisions with what it shows and asks as messages; another one as it is."""
    if "questions" not in request:
        return request
    material = request["state"] if "state" in request else request["input"]
    asked = {"role": "system", "content": json.dumps(request["questions"], ensure_ascii=False)}
    return {**request, "messages": [asked, {"role": "user", "content": material}]}


def decisions(request: dict[str, Any], options: Options) -> dict[str, Any]:
    """The answers to questions under the contract that a request is of.

    One label has 7 parts and each other one 1, as in `logprobs`; which one follows from the question and the material.
    """
    named = request["questions"]
    openai = isinstance(named, list)
    if openai:
        named = {question["name"]: question for question in named}
    answers = {name: decision(question, request["messages"][-1], options, openai) for name, question in named.items()}
    prompt = sum(len(message["content"]) for message in request["messages"]) // 5
    return {
        "model": request["model"],
        "answers": [{"name": name, **answer} for name, answer in answers.items()] if openai else answers,
        "usage": {"input_tokens": prompt, "output_tokens": 0},
    }


def decision(question: dict[str, Any], material: dict[str, str], options: Options, openai: bool) -> dict[str, Any]:
    """The answer to one question."""
    if options.declined and options.declined in question["instructions"]:
        return {"type": "refusal"}
    kind = question["type"]
    asked = {"role": "system", "content": question["instructions"]}
    number = int.from_bytes(digest_of([asked, material]), "big")
    if kind in ("predicate", "noul"):
        return {"type": kind, "probability" if openai else "noul": (1 + number % 9) / 10}
    if openai:
        key = "label" if kind == "score" else "value"
        labels = [option[key] for option in question["levels" if kind == "score" else "choices"]]
    else:
        labels = list(map(str, range(len(question["criteria"])))) if kind == "score" else list(question["criteria"])
    chosen = number % len(labels)
    shares = [(7.0 if place == chosen else 1.0) / (6 + len(labels)) for place in range(len(labels))]
    answer = {"type": kind, "confidence": shares[chosen]}
    answer |= {"score": sum(map(math.prod, enumerate(shares)))} if kind == "score" else {"choice": labels[chosen]}
    if not openai:
        return {**answer, "probabilities": dict(zip(labels, shares, strict=True))}
    pairs = enumerate(zip(labels, shares, strict=True))
    listed = [
        {key: label, "probability": share} | ({"value": place} if kind == "score" else {})
        for place, (label, share) in pairs
    ]
    return {**answer, "probabilities": listed}


def verdict(request: dict[str, Any], options: Options) -> str:
    """A valid verdict in the form asked for.

    It follows from the messages before the first answer, so that asking again does not change a run's verdicts.
    """
    question = itertools.takewhile(lambda message: message["role"] != "assistant", request["messages"])
    number = int.from_bytes(digest_of(list(question)), "big")
    prompt = "\n".join(message["content"] for message in request["messages"])
    if options.gullible:
        number = int((PLANTED.findall(prompt) or ["0"])[-1])
    shown = SENTENCES.findall(prompt)
    sentences = sum(line.startswith("[") for line in shown[-1].split("\n")) if shown else 1
    if prompt.endswith("Label:"):
        labels = labels_of(request, options)
        return labels[number % len(labels)]
    wanted = request.get("response_format")
    if wanted and wanted.get("type") == "json_schema":
        schema = wanted["json_schema"]["schema"]
        if "nuggets" in schema["properties"]:
            nuggets = nuggets_of(prompt)
            none, some = sorted(schema["properties"]["grade"]["enum"])
            return json.dumps({"nuggets": nuggets, "grade": some if nuggets else none})
        if options.response_format == "honor":
            return json.dumps(instance(schema, number, sentences))
    asked = MENU.findall(prompt)
    labels = asked[-1][0].split(", ") if asked else options.labels
    chosen = [labels[(number + place) % len(labels)] for place in range(sentences)]
    if asked and asked[-1][1] == "1":
        return "\n".join([REASON, *(f"{place}: {label}" for place, label in enumerate(chosen, 1))])
    return f"{REASON}\nGrade: {chosen[0]}"


def nuggets_of(prompt: str) -> list[str]:
    """The first three sentences of the source that a prompt shows, as nuggets."""
    (source,) = SOURCE.findall(prompt)[-1:] or [""]
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+", source) if part.strip()][:3]


def labels_of(request: dict[str, Any], options: Options) -> Sequence[str]:
    """The labels that a request for one label holds the reply to; those of the options where it names none."""
    choice: Sequence[str] = request.get("structured_outputs", {}).get("choice", ())
    return choice or re.findall(r'"([^"]+)"', request.get("grammar", "")) or options.labels


def logprobs(request: dict[str, Any], content: str, server: "Server") -> dict[str, Any]:
    """The member `logprobs` of a choice: 7 parts for the chosen label and 1 for each other one, 0 for other words.

    Only vLLM, and only for a choice, leaves no mass to the words that are no label; elsewhere they have a tenth.
    """
    shape = server.options.logprobs
    if not request.get("logprobs") or shape == "ignore":
        return {}
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    labels = schema.get("properties", {}).get("grade", {}).get("enum") or labels_of(request, server.options)
    tokens = re.findall(r"\w+|\W", content)
    last = max((place for place, token in enumerate(tokens) if token in labels), default=None)
    held = shape == "vllm" and "structured_outputs" in request
    places = []
    for place, token in enumerate(tokens):
        likely = {token: 1.0}
        if place == last:
            parts = {label: 7.0 if label == token else 1.0 for label in labels}
            likely = {label: (1.0 if held else 0.9) * part / sum(parts.values()) for label, part in parts.items()}
            likely["The"] = 0.0 if held else 0.1
        shown = [token_of(name, share, shape) for name, share in likely.items()][: request.get("top_logprobs", 0)]
        places.append({**token_of(token, likely[token], shape), "top_logprobs": shown})
    return {"logprobs": {"content": places}}


def token_of(token: str, share: float, shape: str) -> dict[str, Any]:
    """A token with its log probability; llama.cpp gives its number too, and no token has less than -9999."""
    number = {"id": sum(token.encode())} if shape == "llama.cpp" else {}
    return {**number, "token": token, "logprob": math.log(share) if share else -9999.0, "bytes": list(token.encode())}


def instance(schema: dict[str, Any], number: int, items: int, place: int = 0) -> Any:
    """A value that a JSON schema accepts, chosen by `number` where there is a choice; lists get `items` items."""
    if "enum" in schema:
        return schema["enum"][(number + place) % len(schema["enum"])]
    kind = schema["type"]
    if kind == "object":
        return {name: instance(part, number, items, place) for name, part in schema["properties"].items()}
    if kind == "array":
        return [instance(schema["items"], number, items, each) for each in range(items)]
    # The only integers in a verdict are the numbers of its sentences.
    return place + 1 if kind == "integer" else REASON


class Client(asyncio.Protocol):
    """One connection, HTTP/1.1 with keep-alive, bodies by Content-Length."""

    LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
    CLOSE = re.compile(rb"\r\nconnection:\s*close", re.IGNORECASE)

    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.head = b""
        self.needed = 0
        self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember that nobody will read an answer."""
        self.gone = True

    def data_received(self, data: bytes) -> None:
        """Cut requests out of the stream."""
        self.buffer += data
        if not self.buffer[:1].isalpha():
            # Not HTTP, such as a client that speaks TLS; plain servers send it a 400.
            self.reply(400, {})
            self.transport.close()
            return
        while self.buffer:
            if not self.needed:
                end = self.buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                self.head = bytes(self.buffer[: end + 2])
                length = self.LENGTH.search(self.head)
                self.needed = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < self.needed:
                return
            body = bytes(self.buffer[len(self.head) + 2 : self.needed])
            del self.buffer[: self.needed]
            self.needed = 0
            self.server.handle(self, self.head, body)

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """Write an answer: JSON, or a string as it is."""
        if self.gone:
            return
        payload = (body if isinstance(body, str) else json.dumps(body)).encode()
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        length = f"Content-Length: {len(payload)}"
        head = f"HTTP/1.1 {status} Mock\r\nContent-Type: application/json\r\n{extra}{length}\r\n\r\n"
        self.transport.write(head.encode("latin-1") + payload)
        if self.CLOSE.search(self.head):
            self.transport.close()

    def fail(self, fault: Fault, body: dict[str, Any] | str, slow: float) -> None:
        """Write the answer of a fault: all of it, byte by byte, or only the beginning."""
        if self.gone:
            return
        payload = (body if isinstance(body, str) else json.dumps(body)).encode()
        head = f"HTTP/1.1 {fault.status} Mock\r\nContent-Type: {fault.content_type}\r\nContent-Length: {len(payload)}"
        whole = f"{head}\r\n\r\n".encode() + payload
        if fault.slow == "drip":
            size = max(1, len(whole) // 20)
            self.pour((whole[start : start + size] for start in range(0, len(whole), size)), slow / 20)
            return
        # Of the body, so that the length is promised before the connection is cut.
        self.transport.write(whole[: len(whole) - len(payload) + int(fault.sent * len(payload))] if fault.sent else b"")
        if fault.sent == 0.0:
            self.transport.abort()
        elif fault.sent < 1.0:
            self.transport.close()

    def flood(self, status: int, step: dict[str, Any]) -> None:
        """Write a body that swells, never ends, or arrives byte by byte."""
        head = f"HTTP/1.1 {status} Mock\r\nContent-Type: application/json\r\n"
        if "drip" in step:
            self.transport.write(f"{head}Content-Length: 1000\r\n\r\n".encode())
            self.pour(itertools.repeat(b" ", 1000), float(step["drip"]))
        elif step["bomb"] == "endless":
            self.transport.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            self.pour(itertools.repeat(b"10000\r\n" + b" " * 0x10000 + b"\r\n"), 0.0)
        else:
            squeeze = zlib.compressobj(1, wbits=zlib.MAX_WBITS + 16)
            parts = [squeeze.compress(b" " * (1 << 20)) for _ in range(step["bomb"] >> 20)]
            payload = b"".join((*parts, squeeze.flush()))
            self.transport.write(
                f"{head}Content-Encoding: gzip\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload
            )

    def pour(self, parts: Iterator[bytes], seconds: float) -> None:
        """Write parts one after the other, with a pause after each, but no faster than the client reads."""
        waiting = self.transport.get_write_buffer_size() > 1 << 20
        part = b"" if waiting else next(parts, None)
        if self.gone or part is None:
            return
        self.transport.write(part)
        later = seconds or (0.001 if waiting else 0.0)
        asyncio.get_running_loop().call_later(later, self.pour, parts, seconds)

    def abort(self) -> None:
        """Cut the connection without a word."""
        if not self.gone:
            self.transport.abort()


async def serve(host: str, port: int, options: Options) -> None:
    """Listen until the process is ended; the port goes to standard output."""
    server = Server(options)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: Client(server), host, port, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    async with listener:
        await listener.serve_forever()


def main(argv: Sequence[str]) -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Mock OpenAI-compatible server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    read = {"labels": lambda text: tuple(text.split(",")), "fault_attempts": int, "revoked_after": int, "seed": int}
    for field in dataclasses.fields(Options):
        flag = "--" + field.name.replace("_", "-")
        if field.name == "gullible":
            parser.add_argument(flag, action="store_true")
        elif field.name == "faults":
            parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE", help=", ".join(FAULTS))
        elif field.name not in ("script", "refused"):
            kind = str if isinstance(field.default, str) or field.name == "key" else float
            parser.add_argument(flag, type=read.get(field.name, kind), default=field.default)
    arguments = vars(parser.parse_args(argv))
    host, port = arguments.pop("host"), arguments.pop("port")
    shares = (given.partition("=") for given in arguments.pop("fault"))
    arguments["faults"] = {name: float(share) for name, _, share in shares}
    try:
        asyncio.run(serve(host, port, Options(**arguments)))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
