import bz2
import gzip
import itertools
import json
import os
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.passages import check_texts, differing, files_of, jsonl, listed, read_passages, streams
from judge.passages.index import index_collection
from judge.passages.streams import MAX_PROBLEMS, open_stream, whole_lines
from judge.passages.streams import zstd as zstandard
from judge.records import Passage
from tests.conftest import put, refused

COLLECTION = (
    '{"id": "clueweb22-en0000-00-00000:0", "contents": "zero \\u00e9", "url": "https://example.org/0"}\n'
    '{"id": "clueweb22-en0000-00-00000:1", "contents": "one\\ntwo", "url": "https://example.org/0"}\n'
    '{"id": "clueweb22-en0000-00-00001:0", "contents": "three", "url": "https://example.org/1"}\n'
)
ZERO, ONE, THREE = (f"clueweb22-en0000-00-0000{end}" for end in ("0:0", "0:1", "1:0"))

IKAT_WEB = """<DOC>
<DOCNO>clueweb22-en0000-00-00000</DOCNO>
<DOCHDR>
</DOCHDR>
<HTML>
<TITLE>A <b>title</b></TITLE>
<URL>https://example.org/0</URL>
<BODY>
<PASSAGE id=0>
zero é
</PASSAGE>
<PASSAGE id=1>
one
two
</PASSAGE></BODY>
</HTML>
</DOC>
<DOC>
<DOCNO>clueweb22-en0000-00-00001</DOCNO>
<BODY>
<PASSAGE id=0>
three
</PASSAGE></BODY>
</DOC>
"""


def written(folder: Path, content: str | bytes, name: str = "passages.jsonl") -> Path:
    return put(folder / name, content if isinstance(content, bytes) else content.encode())


def texts(paths: list[Path], *wanted: str) -> dict[str, str]:
    found = read_passages(paths, wanted)
    assert all(key == one.passage_id and one.source == "collection" for key, one in found.items())
    return {key: one.text for key, one in found.items()}


def problems(*paths: Path, wanted: tuple[str, ...] = ("a",)) -> list[tuple[str, str, str]]:
    return [(Path(one.file).name, one.path, one.message) for one in refused(read_passages, paths, wanted)]


def test_wanted_passages_are_found_and_unknown_ids_are_absent(tmp_path: Path) -> None:
    found = read_passages([written(tmp_path, COLLECTION)], {ONE, THREE, "clueweb22-en0000-00-00002:0"})
    assert found == {ONE: Passage(ONE, "one\ntwo", "collection"), THREE: Passage(THREE, "three", "collection")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": "a", "contents": "x"}', {"a": "x"}),
        ('{"id":"a","contents":"x"}', {"a": "x"}),
        ('{"contents": "x", "id": "a"}', {"a": "x"}),
        ('  {"id": "a", "contents": "x"}  ', {"a": "x"}),
        ('{"id": "a", "contents": "x"}\r', {"a": "x"}),
        ('\n\n{"id": "a", "contents": "x"}\n\n', {"a": "x"}),
        ('\ufeff{"id": "a", "contents": "x"}', {"a": "x"}),
        ('{"id": "\\u0061", "contents": "x"}', {"a": "x"}),  # an escape in the id
        ('{"id": "b", "contents": "x", "id": "a"}', {}),  # passed over by its head
        ('{"id": "a", "contents": "x", "id": "b"}', {}),  # the last of two keys counts, as in any JSON reader
        ('{"doc_id": "d", "passage_id": "3", "passage_text": "\\nx"}', {"d:3": "\nx"}),
        ('{"id": "a", "title": "t", "text": "x"}', {"a": "x"}),
        ('{"docid": "a", "url": "u", "segment": "x"}', {"a": "x"}),
        ('{"id": "a", "contents": ""}', {"a": ""}),
        ('{"id":"b","contents":"x","id":"a"}', {}),
        ('{"id": "é", "contents": "x"}', {"é": "x"}),
        ('{"id": "q\\"", "contents": "x"}', {'q"': "x"}),
        ("", {}),
    ],
)
def test_shapes_of_a_line(tmp_path: Path, line: str, expected: dict[str, str]) -> None:
    assert texts([written(tmp_path, line)], "a", "d:3", "é", 'q"', "\ud800") == expected


def zstd(content: bytes) -> bytes:
    """With the checksum of the content, as the `zstd` command writes it."""
    return zstandard.compress(content, options={zstandard.CompressionParameter.checksum_flag: 1})


SKIPPED = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"
"""A Zstandard frame that holds no content."""


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd, lambda content: SKIPPED + zstd(content)])
def test_packed_files_are_known_by_their_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    halves = COLLECTION.encode().split(b"\n", 1)
    packed = pack(halves[0] + b"\n") + pack(halves[1])  # two members, as after `cat`
    assert texts([written(tmp_path, packed)], ZERO, THREE) == {ZERO: "zero é", THREE: "three"}


def test_trecweb_and_json_lines_give_the_same_passages(tmp_path: Path) -> None:
    ids = (ZERO, ONE, THREE)
    web = texts([written(tmp_path, IKAT_WEB, "c.trecweb")], *ids)
    assert web == texts([written(tmp_path, COLLECTION)], *ids)
    assert len(web) == 3


def test_trecweb_of_cast_joins_by_hyphen(tmp_path: Path) -> None:
    content = (
        "<DOC>\n<DOCNO>MARCO_D1</DOCNO>\n<BODY>\n<passage id=0>\nno\n</passage>\n<passage id=1>\nyes\n</passage>\n"
    )
    assert texts([written(tmp_path, content)], "MARCO_D1-1", "MARCO_D1-2") == {"MARCO_D1-1": "yes"}


def test_markup_inside_a_trecweb_passage_is_text(tmp_path: Path) -> None:
    inside = "<DOCNO>x</DOCNO>\n<PASSAGE id=7>\n</PASSAG\n\n"
    content = f"<DOC>\n<DOCNO>d</DOCNO>\n<PASSAGE id=0>\n{inside}\n</PASSAGE>\n<PASSAGE id=1>\nend\n</PASSAGE>\n"
    assert texts([written(tmp_path, content)], "d:0", "d:1", "x:7") == {"d:0": inside, "d:1": "end"}


def test_a_folder_is_its_shards_in_natural_order(tmp_path: Path) -> None:
    for name in ("p10.jsonl", "p9.jsonl.gz", ".hidden.jsonl", "notes.txt"):
        written(tmp_path, f'{{"id": "a", "contents": "{name}"}}', name)
    assert texts([tmp_path], "a") == {"a": "p9.jsonl.gz"}


def test_reading_stops_when_all_are_found(tmp_path: Path) -> None:
    first = written(tmp_path, '{"id": "a", "contents": "x"}\nnot JSON\n', "1.jsonl")
    second = written(tmp_path, "not JSON\n", "2.jsonl")
    assert texts([first, second], "a") == {"a": "x"}
    assert texts([second]) == {}


def test_the_same_text_twice_is_no_problem(tmp_path: Path) -> None:
    assert texts([written(tmp_path, '{"id": "a", "contents": "x"}\n' * 2)], "a", "b") == {"a": "x"}


def test_two_texts_for_one_id_are_a_problem(tmp_path: Path) -> None:
    one = written(tmp_path, '{"id": "a", "contents": "x"}\n', "1.jsonl")
    two = written(tmp_path, '{"id": "c", "contents": "x"}\n{"id": "a", "contents": "y"}\n', "2.jsonl")
    assert problems(one, two, wanted=("a", "b")) == [
        ("2.jsonl", "line 2: $", "passage a has another text here than before")
    ]


A_AND_B = '{"id": "a", "contents": "x"}\n{"id": "b", "contents": "y"}\n'
OTHER_A = '{"id": "a", "contents": "other"}\n'
BETWEEN = '{"id": "c", "contents": "z"}\n' * 20_000
TREC = "<DOC>\n<DOCNO>a</DOCNO>\n<passage id=1>\n{}\n</passage>\n</DOC>\n"


@pytest.mark.parametrize(
    ("content", "wanted", "line"),
    [
        (OTHER_A + A_AND_B, ("a", "b"), 2),
        (A_AND_B + OTHER_A, ("a", "b"), 3),
        (A_AND_B + BETWEEN + OTHER_A, ("a", "b"), 20_003),
        (OTHER_A + BETWEEN + A_AND_B, ("a", "b"), 20_002),
        (gzip.compress((A_AND_B + BETWEEN + OTHER_A).encode()), ("a", "b"), 20_003),
        (TREC.format("x") + TREC.format("other"), ("a:1",), 9),
        # Other lines behind the last wanted passage are still nobody's concern.
        (A_AND_B + "not JSON\n" + OTHER_A, ("a", "b"), 4),
    ],
)
def test_the_second_text_of_a_passage_is_found_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | bytes, wanted: tuple[str, ...], line: int
) -> None:
    file = written(tmp_path, content)
    (problem,) = problems(file, wanted=wanted)
    assert problem[1:] == (f"line {line}: $", f"passage {wanted[0]} has another text here than before")
    # A large file is read to the last wanted passage, and no further.
    monkeypatch.setattr("judge.passages._READ_WHOLLY", file.stat().st_size)
    assert problems(file, wanted=wanted) == [problem]
    monkeypatch.setattr("judge.passages._READ_WHOLLY", file.stat().st_size - 1)
    if content in (OTHER_A + A_AND_B, OTHER_A + BETWEEN + A_AND_B):
        assert problems(file, wanted=wanted) == [problem]
    else:
        assert set(texts([file], *wanted)) == set(wanted)


def test_a_file_that_is_damaged_behind_the_last_wanted_passage_is_read(tmp_path: Path) -> None:
    packed = gzip.compress((A_AND_B + 5 * BETWEEN).encode())[:-9]
    assert texts([written(tmp_path, packed)], "a", "b") == {"a": "x", "b": "y"}


def broken(packed: bytes, place: int) -> bytes:
    return packed[:place] + bytes([packed[place] ^ 0xFF]) + packed[place + 1 :]


def zstd_long(content: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(options={zstandard.CompressionParameter.window_log: 28})
    return packer.compress(content) + packer.flush()


@pytest.mark.parametrize(
    ("content", "where", "says"),
    [
        ('{"x": 1}\n{"id": "a"}', "line 2: $", "expected `id` and `contents` or"),
        ('{"x": 1}\n{"contents": "x", "id": 5}', "line 2: $", "Expected `str | null`, got `int`"),
        ('{"x": 1}\n{"id": "a", "contents": "x', "line 2: $", "truncated"),
        ('{"x": 1}\n{"id": "a", "contents": "\\ud800"}', "line 2: $", ""),
        (b'{"x": 1}\n{"id": "a", "contents": "\xff"}', "line 2: $", "byte 26 (0xff) is not UTF-8: invalid start byte"),
        ('{"x": 1}\n[1]', "line 2: $", "Expected `object`"),
        ('[{"id": "a", "contents": "x"}]', "line 1: $", "expected JSON Lines"),
        (b"\xff\xfe{\x00", "$", "the file is UTF-16; convert it to UTF-8"),
        (b"\xfd7zXZ\x00\x00", "$", "the file is packed by xz; unpack it, or pack it by gzip, bzip2 or Zstandard"),
        (b"PK\x03\x04", "$", "the file is a zip archive; unpack it"),
        ("<DOC>\n<DOCNO>d</DOCNO>\n<PASSAGE id=4>\ncut", "line 3: $", "ends inside passage 4 of document d"),
        (b"<DOC>\n<DOCNO>a</DOCNO>\n<PASSAGE id=0>\n\xff\n</PASSAGE>", "line 3: $", "invalid start byte"),
        (gzip.compress(b"{}" * 99, mtime=0)[:-9], "$", "cannot be read to the end"),
        (b"\x1f\x8b\x08\x00" + b"\xff" * 50, "$", "cannot be read to the end"),
        (bz2.compress(b"{}" * 99)[:-9], "$", "ends inside a bzip2 stream"),
        (bz2.compress(b"{}" * 99) + b"garbage", "$", "cannot be read to the end: Invalid data stream"),
        (bz2.compress(b"{}" * 99) + bz2.compress(b"{}")[:-9], "$", "ends inside a bzip2 stream"),
        (bz2.compress(b"{}\n") * 2 + b"\0" * 9_000 + b"x", "$", "cannot be read to the end: Invalid data stream"),
        (broken(bz2.compress(b"{}" * 99) * 3, 60), "$", "cannot be read to the end: Invalid data stream"),
        (zstd_long(b"{}"), "$", "packed by `zstd --long` beyond 128 MiB; pack it again without --long"),
        (zstd(b"{}" * 99)[:-2], "$", "ends inside a Zstandard frame"),
        (zstd(b"{}" * 99) + b"\x28", "$", "ends inside a Zstandard frame"),
        (zstd(b"{}" * 99) + b"garbage", "$", "cannot be read to the end"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "$", "cannot be read to the end"),
        (gzip.compress(b"{}" * 99, mtime=0) + b"garbage", "$", "end too soon, or something else follows them"),
        (bytes(range(256)), "line 1: $", "expected JSON Lines"),
        (b'{"x": ' + b"[" * 100_000, "line 1: $", "cannot be read as a passage"),
        (b'{"id":"a"\n', "line 1: $", "truncated"),
        (b'{"id": "a\n{"id": "b\n', "line 1: $", "cannot be read as a passage"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_line(tmp_path: Path, content: str | bytes, where: str, says: str) -> None:
    found = problems(written(tmp_path, content), wanted=("a", "a:0"))
    assert [(name, path) for name, path, _ in found][-1] == ("passages.jsonl", where)
    assert says in found[-1][2]


def test_every_missing_path_is_named_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = problems(tmp_path / "no", tmp_path / "empty", tmp_path / "nor")
    assert found[0] == ("no", "$", "cannot be read: No such file or directory")
    assert found[1][:2] == ("empty", "$")
    assert found[1][2].startswith("the folder has no file that ends in one of .jsonl, .jsonl.gz")
    assert found[2][0] == "nor"


def test_a_wrong_file_is_given_up_after_some_problems(tmp_path: Path) -> None:
    found = problems(written(tmp_path, "{\n" * 1000))
    assert [path for _, path, _ in found] == [f"line {number}: $" for number in range(1, MAX_PROBLEMS + 1)]


def test_a_pipe_is_as_good_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[COLLECTION.encode()])
    writer.start()
    assert texts([pipe], THREE) == {THREE: "three"}
    writer.join()


def test_the_passages_of_the_canonical_responses_of_2023(shared: Path) -> None:
    lines = (shared / "ikat/2023/canonical_with_provenance_train.jsonl").read_text("utf-8").split("\n")
    expected = {one["id"]: one["text"] for line in lines if line for one in json.loads(line)["provenance"]}
    assert len(expected) == 194
    assert texts([shared / "ikat/2023/2023_train_topics_psg_text.jsonl"], *expected) == expected


LONG = "l" * 39
"""The first 40 bytes of an id are hashed, so what follows this and one more letter is told apart otherwise."""


@pytest.mark.parametrize("wanted", [LONG, LONG + "a", LONG + "ab", LONG + "ac", LONG + 'a"', LONG + "é"])
def test_ids_of_40_bytes_and_more(tmp_path: Path, wanted: str) -> None:
    others = [
        LONG[1:], LONG, LONG + "a", LONG + "ab", LONG + "ac", LONG + "abc", LONG + 'a"', LONG + 'a\\"', LONG + "é",
    ]  # fmt: skip
    lines = "".join(json.dumps({"id": one, "contents": f"<{one}>"}, ensure_ascii=False) + "\n" for one in others)
    assert texts([written(tmp_path, lines)], wanted, "none") == {wanted: f"<{wanted}>"}


def oracle(files: list[bytes], wanted: set[str]) -> dict[str, str]:
    rows = [json.loads(line) for content in files for line in content.split(b"\n") if line.strip()]
    return {row["id"]: row["contents"] for row in rows if row["id"] in wanted}


IDS = st.one_of(
    st.text(max_size=3),
    st.text('ab\\"\n\u00e9\U0001f600', max_size=45),
    st.from_regex(r"clueweb22-en0000-0[01]-0000[0-2]:[0-2]", fullmatch=True),
)
ROWS = st.dictionaries(IDS, st.text(max_size=60), max_size=30)


@given(
    ROWS,
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n", " \n"]))),
    st.lists(st.sampled_from([bytes, gzip.compress, bz2.compress, zstd]), min_size=1, max_size=3),
    st.sampled_from([48, 64, 100, 1 << 20]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_shards_packing_and_layout_give_what_parsing_every_line_gives(
    tmp_path_factory: Any, rows: dict[str, str], layout: list[Any], packs: list[Any], block: int, last: bool, rng: Any
) -> None:
    written_lines = []
    for place, (key, text) in enumerate(rows.items()):
        tight, ascii, swapped, end = layout[place % len(layout)] if layout else (False, False, False, "\n")
        row = {"contents": text, "id": key} if swapped else {"id": key, "contents": text, "url": key}
        written_lines.append(json.dumps(row, ensure_ascii=ascii, separators=(",", ":") if tight else None) + end)
    shards = ["".join(written_lines[place :: len(packs)]).encode() for place in range(len(packs))]
    shards = [shard if last else shard.removesuffix(b"\n") for shard in shards]
    folder = tmp_path_factory.mktemp("shards")
    for place, (pack, shard) in enumerate(zip(packs, shards, strict=True)):
        written(folder, pack(shard), f"{place}.jsonl")
    wanted = {key for key in rows if rng.random() < 0.7} | {"nowhere"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_BLOCK", block)
        assert texts([folder], *wanted) == oracle(shards, wanted)


@given(st.lists(st.sampled_from([b"\n", b"", b" ", b"{", b'{"id": "q', b"[]", b'{"id": "b"}', b'{"id": "a", ', b"\r"])))
def test_bad_lines_have_their_numbers_whatever_the_blocks(tmp_path_factory: Any, lines: list[bytes]) -> None:
    content = b'{"id": "c", "contents": ""}\n' + b"\n".join(lines)
    path = written(tmp_path_factory.getbasetemp(), content, "bad.jsonl")

    def bad(line: bytes) -> bool:
        return bool(line.strip()) and not line.startswith((b'{"id": "q', b'{"id": "b'))

    expected = [f"line {number}: $" for number, line in enumerate(content.split(b"\n"), 1) if number > 1 and bad(line)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_BLOCK", 48)
        if expected:
            assert [where for _, where, _ in problems(path)] == expected[:MAX_PROBLEMS]
        else:
            assert texts([path], "a") == {}


@pytest.mark.parametrize("kind", ["{", "<DOC>\n<"])
def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path, monkeypatch, kind: str) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 1 << 21)
    found = problems(written(tmp_path, zstd(kind.encode() + b"x" * (1 << 23))))
    assert found == [("passages.jsonl", f"line {1 + kind.count(chr(10))}: $", found[0][2])]
    assert "of more than 2 MiB" in found[0][2]


def test_a_passage_has_a_million_characters_at_most_and_a_line_more_than_a_block(tmp_path: Path) -> None:
    text, most = "x" * (5 << 20), "é" * 1_000_000
    lines = f'{{"id": "b", "contents": "{text}"}}\n{{"id": "a", "contents": "{most}"}}\n{{"id": "c", "contents": ""}}'
    path, index = written(tmp_path, lines), tmp_path / "index"
    index_collection([path], index)
    for source, where in ((path, "line 1: $"), (index, "$")):
        assert texts([source], "a", "c") == {"a": most, "c": ""}
        refusal = [(source.name, where, "passage b is longer than 1,000,000 characters")]
        assert problems(source, wanted=("b", "c")) == refusal


def test_an_open_passage_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 1 << 10)
    path = written(tmp_path, "<DOC>\n<DOCNO>a</DOCNO>\n<PASSAGE id=0>\n" + "no end\n" * 1000)
    # 1,024 bytes are passed by the 147th line of 7 bytes.
    expected = [("passages.jsonl", "line 150: $", "a line or passage of more than 0 MiB")]
    assert problems(path, wanted=("a:0", "b")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstd])
def test_a_stream_reads_as_a_plain_file_does(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = os.urandom(1000) * 1000
    with open_stream(written(tmp_path, pack(content))) as stream:
        assert stream.read(10) == content[:10]
        assert stream.read() == content[10:]
        assert stream.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize("fill", [b"", b"\0" * 20_000])
def test_bzip2_streams_in_a_row_are_one_content(tmp_path: Path, fill: bytes) -> None:
    parts = [os.urandom(300) * 9_000, b"", b"x\n", b"y" * 70_000]
    with open_stream(written(tmp_path, b"".join(bz2.compress(part) + fill for part in parts))) as stream:
        assert stream.read() == b"".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("pack", [bz2.compress, zstd])
def test_a_packed_file_is_unpacked_in_pieces(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """A packed block of 46 bytes may hold 45 MB."""
    bomb = pack(b"\0" * (64 << 20))
    assert len(bomb) < streams._PIECE
    with open_stream(written(tmp_path, bomb)) as stream:
        tracemalloc.start()
        try:
            assert stream.read(100) == b"\0" * 100
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_zstandard_frames_are_read_to_every_cut(tmp_path: Path) -> None:
    """A file that is cut between two frames is a whole one; any other cut is said."""
    frames = [zstd(b"one\n" * 9), SKIPPED, zstd(os.urandom(300))]
    whole = b"".join(frames)
    ends = list(itertools.accumulate(map(len, frames)))
    for cut in range(5, len(whole) + 1):
        with open_stream(written(tmp_path, whole[:cut])) as stream:
            if cut in ends:
                stream.read()
            else:
                with pytest.raises(OSError, match=r"^the file ends inside a Zstandard frame$"):
                    stream.read()


def test_texts_are_checked_against_the_hash_list() -> None:
    # printf 'one' | md5sum; printf 'two' | md5sum
    one, two = (bytes.fromhex(md5) for md5 in ("f97c5d29941bfb1b2fdab0874906ab82", "b8a9f715dbb64fd5c56e7783c6820a61"))
    given = {key: Passage(key, "one", "collection") for key in ("d:10", "d:9", "d:1", "e:0")}
    md5s = {"d:10": two, "d:9": two, "d:1": one, "e:0": None}

    def find(ids: Sequence[str]) -> list[bytes | None]:
        return [md5s[key] for key in ids]

    assert listed(given, find) == {key: one for key, one in given.items() if key != "e:0"}
    assert differing(given, find) == ["d:9", "d:10"]
    found = check_texts(given, find, "c.jsonl")
    assert [(one.code, one.file, one.path) for one in found] == [
        ("passage_text_differs", "c.jsonl", "passage d:9: $"),
        ("passage_text_differs", "c.jsonl", "passage d:10: $"),
    ]


def test_the_files_of_a_collection_are_all_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    shard = written(tmp_path / "c", COLLECTION, "1.jsonl")
    packed = written(tmp_path / "c", gzip.compress(COLLECTION.encode(), mtime=0), "2.jsonl.gz")
    index = tmp_path / "i.idx"
    index_collection([shard], index)
    assert files_of([tmp_path / "c"]) == [shard, packed]
    assert [one.resolve() for one in files_of([index])] == [index, shard]
    with pytest.raises(InputError):
        files_of([tmp_path / "absent"])


@given(st.lists(st.text("ab\n", max_size=9).map(str.encode)), st.integers(1, 12))
def test_blocks_are_cut_behind_line_breaks(blocks: list[bytes], longest: int) -> None:
    content = b"".join(blocks)
    cut = list(whole_lines([one for one in blocks if one], longest))
    if None in cut:
        assert cut.index(None) == len(cut) - 1
        rest = content[sum(len(one) for one in cut if one) :]
        # An end beyond the limit may still be found in the block in which the limit is passed.
        assert len(rest.partition(b"\n")[0]) > longest or b"\n" in rest
    else:
        assert b"".join(one for one in cut if one) == content + (b"\n" if content and content[-1:] != b"\n" else b"")
        assert all(one and one.endswith(b"\n") for one in cut)
