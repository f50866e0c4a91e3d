"""Hash lists and their indexes: every row is found, in whatever order and packing, and wrong lists are refused."""

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.passages import hashes, same_text
from judge.passages.hashes import index_hashes, open_hashes
from judge.passages.streams import open_stream
from tests.conftest import put, refused

DOCUMENT = "clueweb22-en0012-34-56789"
MD5 = {letter: hashlib.md5(letter.encode()).hexdigest() for letter in "abcdefghijklmnop"}


def line(document=DOCUMENT, number=0, letter="a"):
    return f"{document}\t{number}\t{MD5[letter]}\n"


def listed(folder, *lines, name="list.tsv"):
    return put(folder / name, "".join(lines).encode())


def problems(path):
    return [(problem.code, problem.path, problem.message) for problem in refused(open_hashes, path)]


def both(path, folder):
    """The list read into memory, and its index."""
    index_hashes(path, folder / "list.idx")
    return open_hashes(path), open_hashes(folder / "list.idx")


def test_the_real_sample_is_found_row_for_row(shared, tmp_path):
    path = shared / "ikat" / "2023" / "sample_hashes.tsv"
    content = path.read_bytes()
    rows = [row.split("\t") for row in content.decode().splitlines()]
    ids = [f"{document}:{number}" for document, number, _ in rows]
    expected = [bytes.fromhex(md5) for *_, md5 in rows]
    for found in both(path, tmp_path):
        assert len(rows) == 10_000
        assert found.digest == hashlib.sha256(content).hexdigest()
        assert found.find(ids) == expected
        strangers = [f"{document}:{int(number) + 1000}" for document, number, _ in rows[:50]]
        assert found.find([*strangers, ids[7]]) == [None] * 50 + [expected[7]]


def test_order_and_line_ends_do_not_matter_and_packing_does_not(shared, tmp_path):
    content = (shared / "ikat" / "2023" / "sample_hashes.tsv").read_bytes()
    lines = content.splitlines()
    random.Random(5).shuffle(lines)
    (tmp_path / "shuffled").write_bytes(b"\r\n".join(lines))
    (tmp_path / "packed").write_bytes(gzip.compress(content, 1))
    (tmp_path / "packed2").write_bytes(bz2.compress(content))
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + content)
    ids = ["{}:{}".format(*one.decode().split("\t")[:2]) for one in lines]
    expected = [bytes.fromhex(one.decode().split("\t")[2]) for one in lines]
    for name in ("shuffled", "packed", "packed2", "marked"):
        assert open_hashes(tmp_path / name).find(ids) == expected, name
    assert open_hashes(tmp_path / "packed").digest == hashlib.sha256(content).hexdigest()


def test_the_sample_run_cites_passages_of_the_sample(shared):
    found = open_hashes(shared / "ikat" / "2023" / "sample_hashes.tsv")
    run = json.loads((shared / "ikat" / "2023" / "sample_run.json").read_text())
    ids = [p["id"] for t in run["turns"] for r in t["responses"] for p in r["passage_provenance"]]
    assert ids
    assert None not in found.find(ids)


document = st.builds(
    "clueweb22-en{:04}-{:02}-{:05}".format, st.integers(0, 46), st.integers(0, 99), st.integers(0, 99999)
) | st.from_regex(r"\A(MARCO_D|KILT_|WAPO_|clueweb22-)[0-9a-f]{1,12}\Z")
number = st.integers(0, 30) | st.integers(0, 10**10)


@given(st.dictionaries(st.tuples(document, number), st.binary(min_size=16, max_size=16), min_size=1), st.randoms())
def test_a_list_is_a_dict(tmp_path_factory, pairs, random):
    folder = tmp_path_factory.mktemp("list")
    lines = [f"{name}\t{count}\t{md5.hex()}\n" for (name, count), md5 in pairs.items()]
    random.shuffle(lines)
    expected = {f"{name}:{count}": md5 for (name, count), md5 in pairs.items()}
    for found in both(listed(folder, *lines), folder):
        assert found.find([*expected, "absent", DOCUMENT + ":31"]) == [*expected.values(), None, None]


def test_every_problem_is_listed_up_to_ten(tmp_path):
    path = listed(
        tmp_path,
        line(),
        f"{DOCUMENT} 1 {MD5['a']}\n",
        f"{DOCUMENT}\t1\n",
        f"{DOCUMENT}\t1\t{MD5['a']}\textra\n",
        f"{DOCUMENT}\t1\t{MD5['a'][:-1]}\n",
        f"{DOCUMENT}\t1\t{MD5['a'][:-1]}g\n",
        f"{DOCUMENT}\tone\t{MD5['a']}\n",
        f"\t1\t{MD5['a']}\n",
        f"{DOCUMENT}\t1\t0{MD5['a']}\n",
        line(number=2),
    )
    wanted = "expected document, number and MD5, with tabs between them, found"
    assert problems(path) == [
        ("hash_list_wrong", "line 2: $", f"{wanted} 1 columns"),
        ("hash_list_wrong", "line 3: $", f"{wanted} 2 columns"),
        ("hash_list_wrong", "line 4: $", f"{wanted} 4 columns"),
        ("hash_list_wrong", "line 5: $", f"expected an MD5 of 32 hexadecimal digits, found '{MD5['a'][:-1]}'"),
        ("hash_list_wrong", "line 6: $", f"expected an MD5 of 32 hexadecimal digits, found '{MD5['a'][:-1]}g'"),
        ("hash_list_wrong", "line 7: $", "expected the number of a passage, found 'one'"),
        ("hash_list_wrong", "line 8: $", "the id is empty"),
        ("hash_list_wrong", "line 9: $", f"expected an MD5 of 32 hexadecimal digits, found '0{MD5['a']}'"),
    ]
    many = problems(listed(tmp_path, line(), *["wrong\n"] * 100))
    assert [place for _, place, _ in many] == [f"line {number}: $" for number in range(2, 12)]


@pytest.mark.slow
def test_two_md5s_for_one_passage_are_refused_with_both_lines(tmp_path):
    lines = [line(number=number) for number in range(40_000)]
    lines[39_000] = line(number=3, letter="b")
    lines[20] = "\n"
    lines.append(f"KILT_1\t1\t{MD5['a']}\n")
    lines.append(f"KILT_1\t1\t{MD5['c']}\n")
    path = listed(tmp_path, *lines)
    expected = [
        ("hash_list_wrong", "line 40002: $", "passage KILT_1:1 has another MD5 here than on line 40001"),
        ("hash_list_wrong", "line 39001: $", f"passage {DOCUMENT}:3 has another MD5 here than on line 4"),
    ]
    assert problems(path) == expected
    assert [(one.code, one.path, one.message) for one in refused(index_hashes, path, tmp_path / "list.idx")] == expected
    assert list(tmp_path.iterdir()) == [path]


def piped(path, content):
    """A pipe through which the content comes once."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=[content.encode()], daemon=True).start()
    return path


def test_a_list_from_a_pipe_is_read_once(tmp_path):
    content = line() + line(number=1, letter="b")
    assert open_hashes(piped(tmp_path / "p", content)).find([DOCUMENT + ":1"]) == [bytes.fromhex(MD5["b"])]
    assert index_hashes(piped(tmp_path / "q", content), tmp_path / "list.idx") == 2


def test_clashes_in_a_list_from_a_pipe_are_named_with_their_lines(tmp_path, monkeypatch):
    streams = iter([open_stream])
    # A second time nothing comes through the pipe, and opening it never ends.
    monkeypatch.setattr(hashes, "open_stream", lambda path, taken: next(streams)(path, taken))
    content = line() + line(letter="b") + f"KILT_1,{MD5['a']}\nKILT_1,{MD5['b']}\n"
    assert problems(piped(tmp_path / "p", content)) == [
        ("hash_list_wrong", "line 4: $", "passage KILT_1 has another MD5 here than on line 3"),
        ("hash_list_wrong", "line 2: $", f"passage {DOCUMENT}:0 has another MD5 here than on line 1"),
    ]


def test_what_is_no_list_gets_one_line(tmp_path):
    index_hashes(listed(tmp_path, line()), tmp_path / "list.idx")
    for content, message in (
        ((tmp_path / "list.idx").read_bytes(), "an index that `judge passages index` wrote; expected what such"),
        (lzma.compress(line().encode()), "packed by xz; unpack it"),
        (bytes(range(256)) * 9, "binary; expected the lines of a hash list"),
    ):
        (tmp_path / "wrong").write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            index_hashes(tmp_path / "wrong", tmp_path / "new.idx")
        assert not caught.value.problems
        assert not (tmp_path / "new.idx").exists()


def test_a_list_of_one_row_many_times_is_one_row(tmp_path):
    assert index_hashes(listed(tmp_path, line() * 5_000, line(number=1)), tmp_path / "list.idx") == 2
    assert open_hashes(tmp_path / "list.idx").find([DOCUMENT + ":1"]) == [bytes.fromhex(MD5["a"])]


def test_rows_of_both_forms_stand_in_one_block(tmp_path):
    path = listed(
        tmp_path,
        f"MARCO_D1-2,{MD5['a'].upper()}\r\n\n\r\n",
        f"{DOCUMENT}:7,{MD5['b']}\n",
        f" padded,{MD5['c']}\r\n",
        f"KILT_1\t3\t{MD5['d']}\n",
        f"{DOCUMENT}\t12345678\t{MD5['e']}\n",
        line().rstrip(),
    )
    ids = ["MARCO_D1-2", f"{DOCUMENT}:7", " padded", "KILT_1:3", f"{DOCUMENT}:12345678", f"{DOCUMENT}:0"]
    for found in both(path, tmp_path):
        assert found.find(ids) == [bytes.fromhex(MD5[letter]) for letter in "abcdea"]


def test_a_list_without_end_is_refused(tmp_path):
    assert problems(listed(tmp_path, line(), "x" * 3_000_000))[0][1:] == (
        "line 2: $",
        "the line is longer than 65,536 bytes",
    )
    with pytest.raises(InputError):
        open_hashes(tmp_path / "absent")
    with pytest.raises(InputError):
        open_hashes(tmp_path)


def test_a_list_too_long_for_memory_asks_for_an_index(tmp_path, monkeypatch):
    monkeypatch.setattr(hashes, "MAX_IN_MEMORY", 2)
    path = listed(tmp_path, *(line(number=number) for number in range(3)))
    with pytest.raises(UsageError, match=r"more than 2 rows.*judge passages index --hashes"):
        open_hashes(path)
    assert index_hashes(path, tmp_path / "list.idx") == 3
    assert None not in open_hashes(tmp_path / "list.idx").find([f"{DOCUMENT}:2"])


def test_damaged_packing_is_an_input_error(tmp_path):
    packed = gzip.compress(line().encode() * 1000)
    (tmp_path / "list.gz").write_bytes(packed[:60] + b"\0\0\0\0" + packed[64:])
    with pytest.raises(InputError):
        open_hashes(tmp_path / "list.gz")


def test_the_md5_is_that_of_the_text_in_the_collection():
    text = " two  words é "
    md5 = hashlib.md5(b" two  words \xc3\xa9 ").digest()
    assert same_text(text, md5)
    assert same_text(f"\n{text}\n\n", md5)
    assert same_text(f"\n{text}\n\n", hashlib.md5(text.strip().encode()).digest())
    assert same_text(f"\n{text}\n\n", hashlib.md5(f"\n{text}\n\n".encode()).digest())
    assert not same_text(" two  words e ", md5)
    assert not same_text(" two words é ", md5)
    assert not same_text("\ud800", md5)


BROKEN = st.sampled_from([line(), line(number=1), "\n", "\t", ",", MD5["a"], DOCUMENT, "\r", "7", "é"])


@given(st.binary(max_size=300) | st.lists(BROKEN, max_size=9).map("".join).map(str.encode))
def test_no_list_makes_a_traceback(tmp_path_factory, content):
    path = put(tmp_path_factory.mktemp("hostile") / "list", content)
    with contextlib.suppress(InputError):
        open_hashes(path)
