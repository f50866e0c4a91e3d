"""Whether a server read the whole prompt that it was sent, by what its reply says of that. Pure.

Some servers cut a prompt to their context without a word, and answer with status 200. A grade of half a prompt is no
grade of the response.
"""

import json
import re
from collections.abc import Iterable, Sequence

from judge.judges.http_errors import at
from judge.judges.records import Completion, Message

_LONGEST_TOKEN = 10.0
"""Characters that the tokens of a text have at most on average: about 4.5 in English prose, fewer in other languages,
and more only where characters are repeated."""
_AT_A_CONTEXT = 6.0
"""The same where the count is as large as contexts are."""
_SIZES = 1024
"""Contexts are multiples of this."""
_NEAR = 8
"""Tokens by which a count may miss a context: those that a chat template adds."""
_SMALLEST = 500
"""Tokens that every context holds."""
_LEARNED, _MARGIN = 20, 1.25
"""Calls from which the bound is learned, and how far it is above the longest tokens of these calls."""
_REPEATED = re.compile(r"(.{1,8}?)\1{3,}", re.DOTALL)
REMEDY = "give the server a larger context (num_ctx, --ctx-size, --max-model-len)"


class PromptReading:
    """What a server is known to read, from the counts of its replies.

    A prompt was cut if its tokens would be longer than those of any tokenizer, and the server never counted more. Some
    servers do not count what they have in a cache; their small counts are no sizes of a context, because they counted
    more when they read the same text first. The `calls` of earlier runs, messages and completions, say what the
    server counted and how long the tokens of this judge are. What comes in this run changes neither, so that the order
    of replies does not count.
    """

    def __init__(self, calls: Iterable[tuple[Sequence[Message], Completion]] = ()) -> None:
        lengths = []
        self._most_counted = 0
        """Tokens of the longest prompt that the server counted."""
        for messages, completion in calls:
            counted = completion.prompt_tokens or 0
            if counted >= _SMALLEST:
                lengths.append(_size(messages) / _read_tokens(completion))
                self._most_counted = max(self._most_counted, counted)
        self._longest_token = _LONGEST_TOKEN
        if len(lengths) >= _LEARNED:
            # These calls may have been about texts in another language.
            self._longest_token = min(_LONGEST_TOKEN, max(_AT_A_CONTEXT, _MARGIN * max(lengths)))

    def cut(self, messages: Sequence[Message], completion: Completion) -> str | None:
        """Why a prompt was not read to its end, as far as the reply tells; None if nothing speaks for it.

        >>> prompt = (Message("user", "The train leaves at nine. " * 1700),)
        >>> read = Completion(text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=2050)
        >>> PromptReading().cut(prompt, read)
        'the server read 2,050 tokens of a prompt of 44,200 characters'
        """
        size = _size(messages)
        if _says_so(completion):
            return f"the server says that it cut a prompt of {size:,} characters"
        counted = completion.prompt_tokens or 0
        tokens = _read_tokens(completion)
        if counted < _SMALLEST or counted < self._most_counted - _NEAR or size <= _AT_A_CONTEXT * tokens:
            return None
        at_a_context = min(counted % _SIZES, -counted % _SIZES) <= _NEAR
        longest = _AT_A_CONTEXT if at_a_context else self._longest_token
        distinct = sum(len(_REPEATED.sub(r"\1", message.content)) for message in messages)
        if distinct <= longest * tokens:
            return None
        return f"the server read {tokens:,} tokens of a prompt of {size:,} characters"


def _size(messages: Iterable[Message]) -> int:
    return sum(len(message.content) for message in messages)


def _read_tokens(completion: Completion) -> int:
    """Tokens that the server read, as far as it says; some count what they read from a cache apart."""
    return (completion.prompt_tokens or 0) + (completion.cached_tokens or 0)


def _says_so(completion: Completion) -> bool:
    """Whether a reply says that the prompt was cut; of a reply that ended at its limit, that is the reply itself."""
    if completion.raw is None or '"truncated"' not in completion.raw or completion.is_cut:
        return False
    try:
        body = json.loads(completion.raw)
    except (ValueError, RecursionError):
        return False
    return any(isinstance(place, dict) and place.get("truncated") is True for place in (body, at(body, dict, "usage")))
