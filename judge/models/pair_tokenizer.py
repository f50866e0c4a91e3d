"""Passages and sentences as the tokens of a cross-encoder, in windows where a passage is too long."""

from typing import Any

from judge.errors import ContextLengthError, InputError, RejectedError
from judge.models.http_errors import shorten
from judge.models.onnx_files import ModelFiles

OVERLAP = 8
"""A window shares a part of its tokens with the next: the tokens of a pair, divided by this."""


class PairTokenizer:
    """Splits pairs as the file of a tokenizer says.

    Args:
        files: The files of the model.

    Raises:
        InputError: Its file describes no tokenizer.
    """

    def __init__(self, files: ModelFiles) -> None:
        from tokenizers import Tokenizer

        self._length = files.length
        try:
            self._tokenizer: Any = Tokenizer.from_str(files.tokenizer.decode())
            # A passage that writes a separator must not end where it likes.
            self._tokenizer.encode_special_tokens = True
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(self._length, stride=self._length // OVERLAP, strategy="only_first")
        except Exception as error:  # the package raises nothing narrower
            raise InputError(f"{files.model}: its tokenizer.json cannot be used: {first_line(error)}") from error

    def windows(self, passage: str, sentence: str) -> list[Any]:
        """The pair as tokens: one encoding, or several where the passage is too long for one.

        Raises:
            ContextLengthError: The sentence leaves no room for the passage.
            RejectedError: A text cannot be split.
        """
        for text in (passage, sentence):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise RejectedError(f"the pair cannot be read: {error.reason} at character {error.start}") from error
        try:
            alone = self._tokenizer.encode(sentence, add_special_tokens=False)
            room = self._length - len(alone.ids) - self._tokenizer.num_special_tokens_to_add(True)
            # The windows must go on, and a window of a few words says nothing.
            least = 2 * (self._length // OVERLAP)
            encoding = self._tokenizer.encode(passage, sentence) if room > least else None
        except Exception as error:  # the package raises nothing narrower
            raise RejectedError(f"the tokenizer cannot split a pair: {first_line(error)}") from error
        if encoding is None:
            raise ContextLengthError(
                f"a sentence leaves {max(room, 0)} of the model's {self._length} tokens for the passage, expected more "
                f"than {least}"
            )
        return [encoding, *encoding.overflowing]


def first_line(error: Exception) -> str:
    """The first line of what a package says of an error."""
    return shorten(str(error).strip().split("\n", 1)[0])
