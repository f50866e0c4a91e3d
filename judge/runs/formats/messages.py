"""Conversations in a cell: messages as chat models, LangChain and RAGAS write them.

A row of a table is one answer. Of messages only a single question and a single answer can be one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from judge.io.rows import value_in
from judge.io.text import count

USER = "user"
ASSISTANT = "assistant"
_SYSTEM = "system"
_SPEAKERS: Mapping[str, str] = {
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "gpt": ASSISTANT,
    "system": _SYSTEM,
    "developer": _SYSTEM,
    "tool": "tool",
    "function": "tool",
}
"""What a message calls who wrote it, in small letters."""
_WRITER = ("role", "type", "from", "message.role")
_TEXT = ("content", "value", "message.content")
_INSIDE = ("kwargs", "data")
"""Members in which LangChain writes a message."""
_MOST = 6
"""Messages whose writers a problem names."""


class ChatMessage(NamedTuple):
    """One message."""

    speaker: str
    text: str


def messages_in(cell: Any) -> list[ChatMessage] | None:
    """The messages in a cell: a list of them, or one, as it is or as JSON; None where it has anything else.

    >>> messages_in([{"role": "user", "content": "Why?"}])
    [ChatMessage(speaker='user', text='Why?')]
    >>> messages_in("[{'type': 'ai', 'content': ''}]"), messages_in([{"text": "Why?"}])
    ([ChatMessage(speaker='assistant', text='')], None)
    """
    if isinstance(cell, str):
        if not cell.startswith(("[", "{")) or not any(name in cell for name in _TEXT):
            return None
        cell = value_in(cell)
    if isinstance(cell, Mapping):
        cell = [cell]
    if not isinstance(cell, list) or not cell:
        return None
    messages: list[ChatMessage] = []
    for value in cell:
        message = _message(value)
        if message is None:
            return None
        messages.append(message)
    return messages


def are_of_messages(names: Collection[str]) -> bool:
    """Whether there may be messages among what has members of these names."""
    return any(name in names for name in _WRITER) and any(name in names for name in _TEXT)


def _message(value: Any) -> ChatMessage | None:
    if not isinstance(value, Mapping):
        return None
    members = dict(value)
    for name in _INSIDE:
        inside = value.get(name)
        if isinstance(inside, Mapping):
            # Outside, `type` may say "constructor".
            members |= inside
    writers = (members[name] for name in _WRITER if isinstance(members.get(name), str))
    speaker = next((_SPEAKERS[writer.lower()] for writer in writers if writer.lower() in _SPEAKERS), None)
    content = next((members[name] for name in _TEXT if name in members), None)
    text = _text(content)
    return None if speaker is None or text is None else ChatMessage(speaker, text)


def _text(content: Any) -> str | None:
    """The text of a message; None where it has an image, or anything else that is no text."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "\n".join(texts)


def question_in(messages: Sequence[ChatMessage]) -> str | None:
    """The only message of a user; None where others stand beside it, but for those of the system."""
    said = [message for message in messages if message.speaker != _SYSTEM]
    return said[0].text if [message.speaker for message in said] == [USER] else None


def answer_in(messages: Sequence[ChatMessage]) -> str | None:
    """The only message, if it is an assistant's."""
    return messages[0].text if [message.speaker for message in messages] == [ASSISTANT] else None


def exchange_in(messages: Sequence[ChatMessage]) -> tuple[str, str] | None:
    """The question of a user and the answer of an assistant; None where there is more, but for the system's."""
    said = [message for message in messages if message.speaker != _SYSTEM]
    return (said[0].text, said[1].text) if [message.speaker for message in said] == [USER, ASSISTANT] else None


def described(messages: Sequence[ChatMessage]) -> str:
    """Messages for a problem.

    >>> described([ChatMessage("user", "Why?"), ChatMessage("assistant", "So.")])
    '2 messages (user, assistant)'
    """
    speakers = [message.speaker for message in messages[:_MOST]]
    more = ", …" if len(messages) > _MOST else ""
    return f"{count(len(messages), 'message')} ({', '.join(speakers)}{more})"
