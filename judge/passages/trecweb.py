"""Wanted passages out of TREC-web files, as the CAsT and iKAT segmenters write them."""

import functools
import io
import re
from collections.abc import Iterator

from judge.passages.streams import MAX_LINE, Bad, Hit

_DOCNO = re.compile(rb"<DOCNO>\s*(.*?)\s*</DOCNO>")
_OPEN = re.compile(rb"<passage id=(\d+)>", re.IGNORECASE)


def trecweb(content: io.BufferedReader, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    """Passages between `<passage id=N>` and `</passage>` lines.

    iKAT joins document and number with a colon, CAsT with a hyphen.

    Raises:
        OSError: The stream cannot be read to the end.
    """
    document = ""
    opened = size = 0
    names: list[str] = []
    text: list[bytes] = []
    for number, line in enumerate(iter(functools.partial(content.readline, MAX_LINE), b""), 1):
        size += len(line)
        if len(line) == MAX_LINE or (names and size > MAX_LINE):
            bad(number, f"a line or passage of more than {MAX_LINE >> 20} MiB")
            return
        if opened:
            if line[:2] == b"</" and line[:10].lower() == b"</passage>":
                if names:
                    try:
                        passage = b"".join(text).removesuffix(b"\n").decode()
                    except UnicodeDecodeError as error:
                        bad(opened, f"cannot be read as a passage: {error}")
                    else:
                        yield from ((opened, name, passage) for name in names)
                opened = 0
                names = []
            elif names:
                text.append(line)
        elif line[:1] == b"<":
            if match := _DOCNO.match(line):
                document = match[1].decode(errors="replace")
            elif match := _OPEN.match(line):
                opened, text, size = number, [], 0
                place = match[1].decode()
                names = [name for name in (f"{document}:{place}", f"{document}-{place}") if name in wanted]
    if opened:
        bad(opened, f"the file ends inside passage {place} of document {document}")
