"""The sorted table: it equals a dict for ids of every form, in any order, and a failed build leaves nothing."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, OperationalError
from judge.passages import claim
from judge.passages.blocks import BLOCK, trailer_size
from judge.passages.keys import NUMBER_DIGITS, OTHER, WINDOW, id_of, key_of, keys_of, packed_keys
from judge.passages.magic import MAGIC, is_index
from judge.passages.table import WIDTH, build_table, clashes, distinct, open_table, sorted_rows

digits = st.text("0123456789", min_size=1, max_size=9)
clueweb = st.builds(
    "clueweb22-en{:04}-{:02}-{:05}:{}".format,
    st.integers(0, 9999),
    st.integers(0, 99),
    st.integers(0, 99999),
    st.integers(0, 12) | st.integers(0, 10**NUMBER_DIGITS - 1),
)
nearly = st.builds("clueweb22-{}{}-{}-{}:{}".format, st.sampled_from(["en", "de"]), digits, digits, digits, digits)
other = st.from_regex(r"\A(MARCO_D|KILT_|WAPO_)[0-9a-f]{1,12}-[0-9]{1,3}\Z") | nearly | st.text(min_size=1, max_size=30)
ids = clueweb | other


def rows(*pairs):
    keys = np.array([key for key, _ in pairs], np.uint64)
    return keys, np.array([[value] * WIDTH for _, value in pairs], np.uint8).reshape(-1, WIDTH)


def built(path, batches, **options):
    build_table(path, "hashes", batches, lambda: {}, **options)
    return open_table(path, "hashes")


def test_a_clueweb_id_is_its_digits():
    assert key_of(b"clueweb22-en0012-34-56789:7") == 12_34_56789_0000007
    assert key_of(b"clueweb22-en0000-00-00000:0") == 0
    assert key_of(b"clueweb22-en9999-99-99999:9999999") == 10**18 - 1 < OTHER


@pytest.mark.parametrize(
    "name",
    [
        "clueweb22-en0012-34-56789:07",
        "clueweb22-en0012-34-56789:12345678",
        "clueweb22-en0012-34-56789:",
        "clueweb22-de0012-34-56789:7",
        "clueweb22-en0012-34-56789:7 ",
        "clueweb22-en0012-34-56789:٧",
        "MARCO_D1-2",
        "",
        "\ud800",
    ],
)
def test_every_other_id_is_hashed(name):
    key = int(keys_of([name])[0])
    assert key >= OTHER
    assert id_of(key) is None


@given(clueweb)
def test_a_packed_key_gives_its_id_back(name):
    assert id_of(key_of(name.encode())) == name


@given(st.lists(st.tuples(ids, st.sampled_from(["", "\t", '"', "x", "9"])), max_size=20))
def test_blocks_of_ids_have_the_keys_of_single_ones(written):
    parts = [(name + end).encode(errors="surrogatepass") for name, end in written]
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    content = np.frombuffer(b"".join(parts) + bytes(WINDOW), np.uint8)
    keys, good, stops = packed_keys(content, starts, ord(":"))
    for (name, end), part, key, sound, stop, start in zip(written, parts, keys, good, stops, starts, strict=True):
        if key_of(name.encode(errors="surrogatepass")) < OTHER and end in ("\t", '"', "x"):
            assert sound
            assert (key, stop - start) == (key_of(name.encode()), len(name.encode()))
        if sound:
            following = content[start:].tobytes()[: stop - start]
            assert key_of(following) == key, part


SOUND = b"clueweb22-en0012-34-56789:17"


@pytest.mark.parametrize("place", range(len(SOUND)))
def test_every_byte_of_a_packed_id_counts(place):
    """Another byte anywhere makes another id, and never one with the same key."""
    for byte in b"a:/ -\0\xff":
        changed = SOUND[:place] + bytes([byte]) + SOUND[place + 1 :]
        if changed == SOUND:
            continue
        _, good, stops = packed_keys(np.frombuffer(changed + bytes(WINDOW), np.uint8), np.array([0]), ord(":"))
        assert not good[0] or (place == len(SOUND) - 1 and stops[0] == place)
        assert key_of(changed) >= OTHER


def test_passage_numbers_are_packed_in_one_form_only():
    for number, packable in (("0", 1), ("10", 1), ("9999999", 1), ("00", 0), ("01", 0), ("10000000", 0), ("", 0)):
        name = f"clueweb22-en0012-34-56789:{number}"
        content = np.frombuffer(name.encode() + b'"' + bytes(WINDOW), np.uint8)
        keys, good, stops = packed_keys(content, np.array([0]), ord(":"))
        assert good[0] == packable
        assert (key_of(name.encode()) < OTHER) == packable
        if packable:
            assert (keys[0], stops[0]) == (key_of(name.encode()), len(name))


@given(st.dictionaries(ids, st.integers(0, 255)), st.integers(1, 9), st.integers(1, 400), st.randoms(), st.lists(ids))
def test_a_table_is_a_dict(tmp_path_factory, pairs, size, chunk_rows, random, strangers):
    folder = tmp_path_factory.mktemp("table")
    shuffled = list(pairs.items())
    random.shuffle(shuffled)
    batches = [
        rows(*((key_of(name.encode(errors="surrogatepass")), value) for name, value in shuffled[at : at + size]))
        for at in range(0, len(shuffled), size)
    ]
    table = built(folder / "t", batches, chunk_rows=chunk_rows)
    asked = [*pairs, *strangers]
    first, past = table.find(keys_of(asked))
    for name, begin, end in zip(asked, first, past, strict=True):
        assert table.payload[begin:end, 0].tolist() == ([pairs[name]] if name in pairs else [])
    assert table.header.count == len(pairs)
    assert sorted(table.keys.tolist()) == table.keys.tolist()


@pytest.mark.slow
def test_order_and_batches_do_not_change_a_byte(tmp_path):
    pairs = [(number * 7919 % 10_007, number % 251) for number in range(5_000)]
    build_table(tmp_path / "a", "hashes", [rows(*pairs)], lambda: {})
    for name, chunk_rows in (("b", 10), ("c", 700), ("d", 4_999)):
        backwards = [rows(*pairs[at : at + 3]) for at in range(0, 5_000, 3)][::-1]
        build_table(tmp_path / name, "hashes", backwards, lambda: {}, chunk_rows=chunk_rows)
        assert (tmp_path / name).read_bytes() == (tmp_path / "a").read_bytes()


def test_rows_of_one_key_stay_in_order_and_are_found_together(tmp_path):
    pairs = [(5, value) for value in range(40)] + [(4, 99), (6, 98)]
    table = built(tmp_path / "t", [rows(one) for one in pairs], chunk_rows=6)
    first, past = table.find(np.array([5, 7], np.uint64))
    assert table.payload[first[0] : past[0], 0].tolist() == list(range(40))
    assert first[1] == past[1]


def test_clashes_are_keys_with_two_payloads():
    keys, payload = sorted_rows([rows((3, 1), (2, 7), (3, 1), (9, 0), (2, 8), (9, 0), (9, 1))])
    assert clashes(keys, payload).tolist() == [2, 9]


def test_the_check_sees_every_row_once_and_its_refusal_leaves_nothing(tmp_path):
    seen = []
    batches = [rows((number, 0)) for number in range(50)]
    built(tmp_path / "t", batches, check=lambda keys, _: seen.extend(keys.tolist()), chunk_rows=7)
    assert seen == list(range(50))
    (tmp_path / "t").unlink()

    def refuse(keys, payload):
        raise InputError("no")

    with pytest.raises(InputError):
        built(tmp_path / "t", batches, check=refuse)
    assert list(tmp_path.iterdir()) == []


def test_no_rows_is_a_table_too(tmp_path):
    first, past = built(tmp_path / "t", []).find(keys_of(["a"]))
    assert (first.tolist(), past.tolist()) == ([0], [0])


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "t"
    built(path, [rows((1, 2), (3, 4))])
    sound = path.read_bytes()
    assert is_index(path)
    for content, message in (
        (sound[:-1], "expected 224 bytes, found 223"),
        (sound + b"x", "expected 224 bytes, found 225"),
        (sound[:70], "header of the index is damaged"),
        (sound[: len(MAGIC)], "header of the index is damaged"),
        (sound.replace(b'"count":2', b'"count":1'), "header of the index is damaged"),
        (sound[: len(MAGIC)] + b"\xff" * 8 + sound[len(MAGIC) + 8 :], "header of the index is damaged"),
        (sound.replace(b"judge-passages-2", b"judge-passages-1"), "of an earlier version of judge"),
        (b"", "not an index"),
        (b"x" * 200, "not an index"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            open_table(path, "hashes")


def test_a_flipped_bit_anywhere_is_refused_or_changes_no_answer(tmp_path):
    """A wrong answer would accuse an honest run of naming passages that do not exist, or of planting their texts."""
    path = tmp_path / "t"
    pairs = [(number * 3, number % 251) for number in range(2 * BLOCK + 100)]
    built(path, [rows(*pairs)])
    sound = path.read_bytes()
    asked = np.array([0, 1, 3 * 50, 3 * BLOCK, 3 * (BLOCK + 1), 3 * (2 * BLOCK + 99), 10**9], np.uint64)

    def answers():
        table = open_table(path, "hashes")
        first, past = table.find(asked)
        return first.tolist(), past.tolist(), table.rows(first[past > first]).tolist()

    right = answers()
    refused = 0
    for place in {*range(0, len(sound), 997), *range(0, 200), *range(len(sound) - 100, len(sound))}:
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert answers() == right, place
        except InputError as error:
            refused += 1
            assert re.search("damaged|not an index|earlier version", str(error))
    # Three blocks are read, which is all of them: only the padding behind the header may be damaged unseen.
    assert refused > 300


def test_keys_are_found_as_in_one_sorted_array(tmp_path):
    """Keys that repeat lie on both sides of the bounds of blocks."""
    numbers = np.sort(np.random.default_rng(1).integers(0, 900, 3 * BLOCK)).astype(np.uint64)
    table = built(tmp_path / "t", [rows(*((int(number), 0) for number in numbers))], chunk_rows=5000)
    asked = np.arange(0, 950, dtype=np.uint64)[::-1]
    first, past = table.find(asked)
    assert first.tolist() == np.searchsorted(numbers, asked, "left").tolist()
    assert past.tolist() == np.searchsorted(numbers, asked, "right").tolist()


def test_only_what_is_read_is_checked(tmp_path):
    path = tmp_path / "t"
    built(path, [rows(*((number, 1) for number in range(3 * BLOCK)))])
    sound = path.read_bytes()
    path.write_bytes(sound[: -(trailer_size(3 * BLOCK) + 1)] + b"?" + sound[-trailer_size(3 * BLOCK) :])
    table = open_table(path, "hashes")
    first, _ = table.find(np.array([5, 3 * BLOCK - 1], np.uint64))
    assert table.rows(first[:1]).tolist() == [[1] * WIDTH]
    with pytest.raises(InputError, match="t: the index is damaged: its checksums do not match; build it again"):
        table.rows(first[1:])


def test_an_index_of_the_other_kind_and_a_missing_file_are_refused(tmp_path):
    built(tmp_path / "t", [rows((1, 2))])
    with pytest.raises(InputError, match="an index of a hash list; expected one of a collection"):
        open_table(tmp_path / "t", "offsets")
    with pytest.raises(InputError, match="No such file"):
        open_table(tmp_path / "absent", "hashes")
    assert not is_index(tmp_path / "absent")
    assert not is_index(tmp_path)


def test_a_full_disk_leaves_the_old_table_and_nothing_else(tmp_path):
    path = tmp_path / "t"
    built(path, [rows((1, 2))])
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        for chunk_rows in (100, 10_000):
            with pytest.raises(OperationalError, match=r"cannot be written: File too large; building needs 48 bytes"):
                built(
                    path,
                    (rows(*((n, 0) for n in range(at, at + 100))) for at in range(0, 3_000, 100)),
                    chunk_rows=chunk_rows,
                )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_the_size_is_claimed_before_the_table_is_written(tmp_path):
    """The sorted chunks fit under the limit and the table, which has a header too, does not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, hard))
    try:
        with pytest.raises(OperationalError, match="File too large"):
            built(tmp_path / "t", [rows(*((n, 0) for n in range(1_000)))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from judge.passages.table import build_table
def batches():
    for number in range(100):
        yield np.arange(1000, dtype=np.uint64), np.zeros((1000, 16), np.uint8)
    os.kill(os.getpid(), signal.SIGKILL)
build_table(Path(sys.argv[1]), "hashes", batches(), dict, chunk_rows=2000)
"""
KILLED_IN_MERGE = """
import os, signal, sys
from pathlib import Path
import numpy as np
from judge.passages.table import build_table
def batches():
    for number in range(100):
        yield np.arange(1000, dtype=np.uint64) + np.uint64(1000 * number), np.zeros((1000, 16), np.uint8)
def check(keys, payload):
    if keys[-1] > 50000:
        os.kill(os.getpid(), signal.SIGKILL)
build_table(Path(sys.argv[1]), "hashes", batches(), dict, check, chunk_rows=2000)
"""


def run(script, path):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parent.parent.parent,
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("script", [KILLED, KILLED_IN_MERGE])
def test_after_a_kill_the_old_table_is_there_and_the_next_build_takes_over_what_is_left(tmp_path, script):
    path = tmp_path / "t"
    built(path, [rows((7, 7))])
    before = path.read_bytes()
    with run(script, path) as build:
        pass
    assert build.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"t", ".t.tmp"}
    assert built(path, [rows((1, 2))]).keys.tolist() == [1]
    assert list(tmp_path.iterdir()) == [path]


WAITING = """
import sys
from pathlib import Path
import numpy as np
from judge.passages.table import build_table
def batches():
    print("reading", flush=True)
    sys.stdin.read()
    yield np.arange(1000, dtype=np.uint64), np.zeros((1000, 16), np.uint8)
build_table(Path(sys.argv[1]), "hashes", batches(), dict)
"""


@pytest.mark.slow
def test_two_builds_of_one_file_do_not_mix(tmp_path):
    path = tmp_path / "t"
    with run(WAITING, path) as build:
        assert build.stdout.readline() == b"reading\n"
        with pytest.raises(OperationalError, match=r"t: another build is writing this file"):
            built(path, [rows((1, 2))])
        build.stdin.close()
        assert build.wait() == 0
    assert open_table(path, "hashes").keys.tolist() == list(range(1000))
    assert built(path, [rows((1, 2))]).keys.tolist() == [1]
    assert list(tmp_path.iterdir()) == [path]


def test_a_build_that_ends_between_opening_and_locking_loses_nothing(tmp_path, monkeypatch):
    """What was opened under the temporary name is the finished table by then, and must not be written over."""
    path = tmp_path / "t"
    lock = claim.fcntl.flock

    def late(*args):
        monkeypatch.setattr(claim.fcntl, "flock", lock)
        (tmp_path / ".t.tmp").rename(tmp_path / "finished")
        (tmp_path / "finished").write_bytes(b"whole")
        lock(*args)

    monkeypatch.setattr(claim.fcntl, "flock", late)
    assert built(path, [rows((1, 2))]).keys.tolist() == [1]
    assert (tmp_path / "finished").read_bytes() == b"whole"


def test_a_file_system_without_locks_gets_a_name_of_its_own(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(claim.fcntl, "flock", refuse)
    assert built(tmp_path / "t", [rows((1, 2))]).keys.tolist() == [1]
    assert (tmp_path / "t").exists()
    assert not [one.name for one in tmp_path.iterdir() if len(one.name) > len(".t.tmp")]


def test_a_failed_build_leaves_no_folders(tmp_path):
    def wrong():
        raise InputError("no")
        yield

    with pytest.raises(InputError):
        built(tmp_path / "a" / "b" / "t", wrong())
    assert list(tmp_path.iterdir()) == []


def test_rows_that_repeat_are_dropped_and_two_of_one_key_are_kept():
    pairs = [(1, 1), (1, 1), (2, 1), (2, 1), (2, 2), (2, 3), (2, 1), (3, 1), (4, 1), (4, 2), (4, 1)]
    keys, payload = distinct(*rows(*pairs))
    expected = [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2)]
    assert list(zip(keys.tolist(), payload[:, 0].tolist(), strict=True)) == expected
    assert clashes(keys, payload).tolist() == [2, 4]


def test_one_key_on_every_row_is_held_a_few_times_only(tmp_path):
    held = []
    batches = (rows(*[(5, 1)] * 100) for _ in range(50))
    build_table(tmp_path / "t", "hashes", batches, dict, lambda keys, _: held.append(len(keys)), thin=distinct,
                chunk_rows=500)  # fmt: skip
    assert held == [10]


def test_a_folder_that_cannot_be_written_is_an_operational_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match="cannot be written"):
        built(tmp_path / "file" / "t", [])


@given(
    st.lists(
        st.one_of(
            st.from_regex(r"clueweb22-en[0-9]{4}-[0-9]{2}-[0-9]{5}:[0-9]{1,9}", fullmatch=True),
            st.from_regex(r"clueweb22-en[0-9]{4}-[0-9]{2}-[0-9]{5}:[0-9]{1,3}[a-z\n:]?", fullmatch=True),
            st.text(max_size=40),
        ),
        max_size=20,
    )
)
def test_the_keys_of_many_ids_are_those_of_each(ids):
    assert keys_of(ids).tolist() == [key_of(one.encode(errors="surrogatepass")) for one in ids]
