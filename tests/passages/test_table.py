"""The table of passage ids: it equals a dict, damage is refused, and a build that fails leaves nothing."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, OperationalError
from judge.passages.streams import is_index
from judge.passages.table import build_table, open_table

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parent.parent.parent
ids = st.binary(min_size=1, max_size=30) | st.text(min_size=1, max_size=20).map(str.encode)


class Listed:
    """Ids with numbers as a listing that keeps every content."""

    problems = property(lambda self: self)

    def __init__(self, pairs, refusal=None):
        self.pairs, self.refusal = pairs, refusal

    def entries(self):
        for line, (name, content) in enumerate(self.pairs):
            yield name, b"%d" % content, line

    def source(self):
        return {"of": "a test"}

    def repeated(self, earlier, entry, times):
        pass

    def settle(self):
        if self.refusal:
            raise self.refusal


def built(path, pairs):
    build_table(path, "hashes", Listed(pairs))
    return open_table(path, "hashes")


def numbered(count):
    return [(b"id-%05d" % number, number % 251) for number in range(count)]


@given(st.lists(st.tuples(ids, st.integers(0, 9))), st.lists(ids))
def test_a_table_is_a_dict(tmp_path_factory, pairs, strangers):
    path = tmp_path_factory.mktemp("table") / "t"
    assert build_table(path, "hashes", Listed(pairs)) == len(set(pairs))
    table = open_table(path, "hashes")
    for name in [*dict(pairs), *strangers, b"", b"\xff" * 40]:
        assert table.find(name) == [b"%d" % content for content in sorted({one for key, one in pairs if key == name})]
    assert table.source == {"of": "a test"}
    assert [one.name for one in path.parent.iterdir()] == ["t"]


def test_order_does_not_change_a_byte(tmp_path):
    built(tmp_path / "a", numbered(5_000))
    built(tmp_path / "b", numbered(5_000)[::-1])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_flipped_bit_anywhere_is_refused_or_changes_no_answer(tmp_path):
    """A wrong answer would accuse an honest run of naming passages that do not exist, or of planting their texts."""
    path = tmp_path / "t"
    built(path, numbered(600)[::2])
    sound = path.read_bytes()
    asked = [b"id-%05d" % number for number in (0, 1, 50, 299, 300, 301, 302, 598, 599)] + [b"a", b"z"]

    def answers():
        table = open_table(path, "hashes")
        return [table.find(name) for name in asked]

    right = answers()
    refused = 0
    for place in {*range(0, len(sound), 23), *range(200)}:
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert answers() == right, place
        except InputError as error:
            refused += 1
            assert re.search("damaged|not an index", str(error))
    assert refused > 50


def test_a_file_that_is_no_whole_index_is_refused(tmp_path):
    path = tmp_path / "t"
    built(path, numbered(600))
    sound = path.read_bytes()
    assert is_index(path)
    for content, message in (
        (sound[:-5_000], "the index is damaged"),
        (sound[:100], "the index is damaged"),
        (b"", "not an index"),
        (b"x" * 200, "not an index"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            for name, _ in numbered(600):
                open_table(path, "hashes").find(name)


def test_an_index_of_the_other_kind_and_a_missing_file_are_refused(tmp_path):
    built(tmp_path / "t", numbered(1))
    with pytest.raises(InputError, match="an index of a hash list; expected one of a collection"):
        open_table(tmp_path / "t", "offsets")
    with pytest.raises(InputError, match="No such file"):
        open_table(tmp_path / "absent", "hashes")
    assert not is_index(tmp_path / "absent")
    assert not is_index(tmp_path)


def test_a_full_disk_leaves_the_old_table_and_nothing_else(tmp_path):
    path = tmp_path / "t"
    built(path, numbered(1))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OperationalError, match=r"t: the index cannot be written"):
            built(path, numbered(30_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


BUILD = """
import os, signal, sys
from pathlib import Path
from judge.passages.table import build_table
class Listed:
    problems = property(lambda self: self)
    def entries(self):
        if sys.argv[2] == "wait":
            print("reading", flush=True)
            sys.stdin.read()
        for number in range(100_000):
            yield b"%d" % min(number, 70_000), b"%d" % number, number
        if sys.argv[2] == "reading":
            os.kill(os.getpid(), signal.SIGKILL)
    def source(self):
        return {}
    def repeated(self, earlier, entry, times):
        if sys.argv[2] == "writing":
            os.kill(os.getpid(), signal.SIGKILL)
    def settle(self):
        if sys.argv[2] == "ending":
            os.kill(os.getpid(), signal.SIGKILL)
build_table(Path(sys.argv[1]), "hashes", Listed())
"""


def run(path, how):
    arguments = [sys.executable, "-c", BUILD, str(path), how]
    return subprocess.Popen(arguments, cwd=PROJECT, env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("how", ["reading", "writing", "ending"])
def test_after_a_kill_the_old_table_is_there_and_the_next_build_takes_over_what_is_left(tmp_path, how):
    path = tmp_path / "t"
    built(path, numbered(1))
    before = path.read_bytes()
    with run(path, how) as build:
        pass
    assert build.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert built(path, numbered(2)).find(b"id-00001") == [b"1"]
    assert list(tmp_path.iterdir()) == [path]


def test_two_builds_of_one_file_do_not_mix(tmp_path):
    path = tmp_path / "t"
    with run(path, "wait") as build:
        assert build.stdout.readline() == b"reading\n"
        with pytest.raises(OperationalError, match=r"t: another build is writing this file"):
            built(path, numbered(2))
        build.stdin.close()
        assert build.wait() == 0
    assert open_table(path, "hashes").find(b"70000")[-1:] == [b"99999"]
    assert built(path, numbered(2)).find(b"70000") == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_index_under_the_temporary_name_is_not_written_over(tmp_path):
    built(tmp_path / ".t.tmp", numbered(3))
    with pytest.raises(OperationalError, match="another build is writing this file"):
        built(tmp_path / "t", numbered(2))
    assert open_table(tmp_path / ".t.tmp", "hashes").find(b"id-00002") == [b"2"]


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "victim").write_bytes(b"")
    for link in (Path.symlink_to, Path.hardlink_to):
        link(tmp_path / ".t.tmp", tmp_path / "victim")
        with pytest.raises(OperationalError, match="a link, and nothing is written through links"):
            built(tmp_path / "t", numbered(2))
        (tmp_path / ".t.tmp").unlink()
    assert (tmp_path / "victim").read_bytes() == b""


def test_a_refused_build_leaves_no_folders(tmp_path):
    with pytest.raises(InputError, match="no such luck"):
        build_table(tmp_path / "a" / "b" / "t", "hashes", Listed(numbered(3), InputError("no such luck")))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_an_operational_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match="cannot be written"):
        built(tmp_path / "file" / "t", [])
