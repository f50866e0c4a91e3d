"""One table of readers and faults: what each reader of `fuzz.py` says of a file that is broken in a usual way.

`readers.tsv` has a line for each reader and a column for each fault: `-` where the file is read, the codes of the
problems where it is not, each with its first line, or how the message begins that refuses the whole file. What is
empty, in another encoding, cut off, twice there, nested or of another type is tested there, and not once more for each
reader.
"""

import gzip
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from judge.errors import JudgeError
from tests import fuzz

pytestmark = pytest.mark.slow


def _in_the_middle(content: bytes, what: bytes) -> bytes:
    """Between two characters."""
    place = len(content) // 2
    while content[place] & 0xC0 == 0x80:
        place -= 1
    return content[:place] + what + content[place:]


FAULTS: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "blank": lambda content: b" \n\n",
    "NUL": lambda content: _in_the_middle(content, b"\0"),
    "no UTF-8": lambda content: _in_the_middle(content, b"\xff"),
    "UTF-16": lambda content: content.decode("utf-8", "replace").encode("utf-16"),
    "cut": lambda content: content[: len(content) // 2],
    "twice": lambda content: content.rstrip(b"\n") + b"\n" + content,
    "another type": lambda content: b"[1]\n",
    "nested": lambda content: b"[" * 100_000,
    "cut gzip": lambda content: gzip.compress(content, mtime=0)[:-9],
}
"""What makes a sound file broken."""
_HEADER, *_LINES = Path(__file__).with_name("readers.tsv").read_text(encoding="utf-8").splitlines()
OUTCOMES = {line.partition("\t")[0]: dict(zip(FAULTS, line.split("\t")[1:], strict=True)) for line in _LINES}


def outcome(read: Callable[[Path, bytes], object], folder: Path, content: bytes) -> str:
    """What stands in the table; a message is one line, and a problem names the file."""
    try:
        read(folder, content)
    except JudgeError as error:
        message = str(error).replace(f"{folder}/", "")
        assert message.isprintable()
        places: dict[str, str] = {}
        for problem in getattr(error, "problems", ()):
            # Readers of bytes are told a name.
            assert Path(problem.file).parent == folder or problem.file.split("/")[0] in ("x", "out")
            place = problem.path.partition(":")[0]
            places.setdefault(problem.code, f" {place}" if place.startswith("line") else "")
        if places:
            return "; ".join(code + place for code, place in places.items())
        told = re.search(r"^(?:[\w.-]+: )?((?:line \d+: )?[^:;(]+)", message)
        assert told is not None
        return told[1].rstrip()
    return "-"


def test_every_reader_has_a_line() -> None:
    """Runs are read whatever is wrong with them: their problems are tested by format (`tests/runs`)."""
    assert _HEADER.split("\t") == ["reader", *FAULTS]
    assert [*OUTCOMES] == [name for name in fuzz.READERS if not name.startswith(("runs", "regin"))]


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_is_broken_in_a_usual_way_is_told(name: str, tmp_path: Path) -> None:
    reader = fuzz.READERS[name]
    sound = reader.seeds()[0]
    outcomes = {}
    for number, (fault, broken) in enumerate(FAULTS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes[fault] = outcome(reader.read, folder, broken(sound))
    assert outcomes == OUTCOMES[name]
