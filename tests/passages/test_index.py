"""The index of a collection: it finds what one pass finds, and refuses files that are no longer the ones it is of."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.passages import index
from judge.passages.index import index_collection, read_indexed
from judge.passages.jsonl import NEEDED
from judge.passages.streams import is_index
from tests import conftest
from tests.conftest import refused

ID = "clueweb22-en0012-34-567{:02}:{}"


def row(name, text="Text.", **more):
    return json.dumps({"id": name, "contents": text, "url": "https://example.org"} | more) + "\n"


def put(folder, name, *lines):
    return conftest.put(folder / name, "".join(lines))


def texts(path, *wanted):
    return read_indexed(path, wanted)


def problems(*paths, out):
    return [(Path(one.file).name, one.path, one.message) for one in refused(index_collection, paths, out)]


def test_passages_of_several_files_are_found(tmp_path):
    one = put(tmp_path, "a.jsonl", row(ID.format(1, 0), "zero é"), row(ID.format(1, 1), "one\ntwo"))
    two = put(tmp_path, "b.jsonl", row("KILT_1-2", "three"), "\n", row(ID.format(0, 12), "four").rstrip())
    out = tmp_path / "out.idx"
    assert index_collection([one, two], out) == 4
    assert is_index(out)
    assert not is_index(one)
    assert texts(out, ID.format(1, 1), "KILT_1-2", ID.format(0, 12), ID.format(0, 1), "absent") == {
        ID.format(1, 1): "one\ntwo",
        "KILT_1-2": "three",
        ID.format(0, 12): "four",
    }
    assert read_indexed(out, [ID.format(1, 0)]) == {ID.format(1, 0): "zero é"}


def test_a_folder_stands_for_its_shards_and_the_index_moves_with_it(tmp_path):
    put(tmp_path, "c/shard_10.jsonl", row(ID.format(1, 0), "ten"))
    put(tmp_path, "c/shard_9.jsonl", row(ID.format(2, 0), "nine"))
    put(tmp_path, "c/notes.txt", "not read")
    index_collection([tmp_path / "c"], tmp_path / "c" / "out.idx")
    assert b"shard_9.jsonl" in (tmp_path / "c" / "out.idx").read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "c" / "out.idx").read_bytes()
    shutil.move(tmp_path / "c", tmp_path / "moved")
    assert texts(tmp_path / "moved" / "out.idx", ID.format(1, 0), ID.format(2, 0)) == {
        ID.format(1, 0): "ten",
        ID.format(2, 0): "nine",
    }


def test_an_index_is_read_through_a_link_to_it(tmp_path):
    put(tmp_path, "c/a.jsonl", row("x", "here"))
    index_collection([tmp_path / "c"], tmp_path / "c" / "out.idx")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "c" / "out.idx")
    assert texts(tmp_path / "elsewhere" / "link", "x") == {"x": "here"}
    assert index.indexed_files(tmp_path / "elsewhere" / "link") == [tmp_path / "c" / "a.jsonl"]


def test_a_file_that_grows_meanwhile_is_refused(tmp_path, monkeypatch):
    path = put(tmp_path, "a.jsonl", row("a"), row("b"))

    def growing(*args):
        with path.open("ab") as file:
            file.write(row("c").encode())
        return name_of(*args)

    name_of = index._name
    monkeypatch.setattr(index, "_name", growing)
    # All was read in one block before it grew, or what came later is read too: neither is the file that was opened.
    assert problems(path, out=tmp_path / "out.idx") == [("a.jsonl", "$", "the file changed while it was read")]
    assert list(tmp_path.iterdir()) == [path]


def test_one_id_on_a_thousand_lines_is_the_most(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "MAX_OF_ONE_ID", 3)
    path = put(tmp_path, "a.jsonl", row("y"), *[row("x", "a")] * 3)
    index_collection([path], tmp_path / "out.idx")
    assert texts(tmp_path / "out.idx", "x") == {"x": "a"}
    put(tmp_path, "a.jsonl", row("y"), *[row("x", "a")] * 4)
    [(name, place, message)] = problems(path, out=tmp_path / "new.idx")
    assert (name, place) == ("a.jsonl", "$")
    assert message == f"the id at byte {len(row('y')) + 3 * len(row('x', 'a'))} stands on more than 3 lines"


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_a_collection_without_passages_is_refused(tmp_path, content):
    empty, other = put(tmp_path, "a.jsonl", content), put(tmp_path, "b.jsonl", row("a"))
    found = problems(empty, out=tmp_path / "out.idx")
    assert found == [("a.jsonl", "$", "no passage in it, nor in another of the files")]
    assert index_collection([empty, other], tmp_path / "out.idx") == 1


def test_what_is_no_plain_file_of_passages_is_named_before_anything_is_read(tmp_path):
    put(tmp_path, "c/1.jsonl", row("a"))
    put(tmp_path, "c/3.trecweb", "<DOC>\n")
    for name, content in (("2.jsonl.gz", gzip.compress(b"")), ("4.jsonl", "{".encode("utf-16"))):
        (tmp_path / "c" / name).write_bytes(content)
    index_collection([tmp_path / "c" / "1.jsonl"], tmp_path / "old.idx")
    os.mkfifo(tmp_path / "pipe")
    found = problems(tmp_path / "c", tmp_path / "old.idx", tmp_path / "pipe", out=tmp_path / "out.idx")
    packed = "the file is packed (gzip); an index needs plain JSONL: unpack it, or name only the plain files"
    other = "the file is an index that `judge passages index` wrote; expected what such an index is built from"
    assert found == [
        ("2.jsonl.gz", "$", packed),
        ("3.trecweb", "$", "expected JSON Lines, which begin with '{'"),
        ("4.jsonl", "$", "the file is UTF-16; convert it to UTF-8"),
        ("old.idx", "$", other),
        ("pipe", "$", "an index needs plain files, not a pipe"),
    ]


def test_lines_of_any_form_are_found(tmp_path):
    path = put(
        tmp_path,
        "a.jsonl",
        "\ufeff" + row(ID.format(1, 0), "marked"),
        json.dumps({"contents": "turned", "id": ID.format(1, 1)}) + "\n",
        json.dumps({"id": ID.format(1, 2), "contents": "tight"}, separators=(",", ":")) + "\r\n",
        json.dumps({"doc_id": ID.format(1, 3)[:-2], "passage_id": "3", "passage_text": "\nlist\n"}) + "\n",
        row(ID.format(1, 4), "escaped").replace("clue", "\\u0063lue"),
        row("naïve\t1", "odd"),
        row(ID.format(1, 5), "é" * 1_000_000),
    )
    index_collection([path], tmp_path / "out.idx")
    assert texts(tmp_path / "out.idx", *(ID.format(1, number) for number in range(6)), "naïve\t1") == {
        ID.format(1, 0): "marked", ID.format(1, 1): "turned", ID.format(1, 2): "tight", ID.format(1, 3): "\nlist\n",
        ID.format(1, 4): "escaped", ID.format(1, 5): "é" * 1_000_000, "naïve\t1": "odd",
    }  # fmt: skip


name = st.builds(ID.format, st.integers(0, 99), st.integers(0, 10**8)) | st.text(min_size=1, max_size=20)


@given(st.dictionaries(name, st.text(max_size=50), min_size=1), st.booleans())
def test_an_index_is_a_dict(tmp_path_factory, passages, ascii_only):
    folder = tmp_path_factory.mktemp("index")
    lines = [
        json.dumps({"id": one, "contents": text}, ensure_ascii=ascii_only) + "\n" for one, text in passages.items()
    ]
    half = len(lines) // 2
    files = [put(folder, "a.jsonl", *lines[:half]), put(folder, "b.jsonl", *lines[half:])]
    assert index_collection(files, folder / "out.idx") == len(passages)
    assert texts(folder / "out.idx", *passages, "absent!" * 4) == passages


def test_the_real_passages_of_2023_are_found(shared, tmp_path):
    path = shared / "ikat" / "2023" / "2023_train_topics_psg_text.jsonl"
    expected = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        expected[f"{one['doc_id']}:{one['passage_id']}"] = one["passage_text"]
    index_collection([path], tmp_path / "out.idx")
    assert len(expected) > 100
    assert texts(tmp_path / "out.idx", *expected) == expected


def test_one_text_twice_is_found_and_two_texts_are_refused(tmp_path):
    path = put(tmp_path, "a.jsonl", row("x", "a"), row("y", "a"), row("x", "a"), row("y", "b"))
    index_collection([path], tmp_path / "out.idx")
    assert texts(tmp_path / "out.idx", "x") == {"x": "a"}
    with pytest.raises(InputError, match="passage y has another text"):
        texts(tmp_path / "out.idx", "x", "y")


@pytest.mark.parametrize(
    ("old", "new"), [(b"first", b"FIRST"), (b"last", b"LAST"), (b"last", b"longer"), (b"Text", b"")]
)
def test_a_changed_file_is_refused(tmp_path, old, new):
    path = put(tmp_path, "a.jsonl", row("a", "first"), row("b"), row("c", "last"))
    index_collection([path, put(tmp_path, "b.jsonl", row("d", "here"))], tmp_path / "out.idx")
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(InputError, match=r"a\.jsonl: not as it was when .*out\.idx was built; build the index again"):
        texts(tmp_path / "out.idx", "b")
    assert texts(tmp_path / "out.idx", "d") == {"d": "here"}
    path.unlink()
    with pytest.raises(InputError, match=r"a\.jsonl: the index needs this file and it cannot be read"):
        texts(tmp_path / "out.idx", "b")


def test_a_change_in_the_middle_of_a_file_is_seen_on_the_line(tmp_path):
    """The digest is of the first and last 64 KiB; beyond them the id on the line has to be the wanted one."""
    fill = row("fill", "x" * 70_000)
    path = put(tmp_path, "a.jsonl", fill, row("aaaa"), row("bbbb"), fill)
    index_collection([path], tmp_path / "out.idx")
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"aaaa", b"cccc"))
    with pytest.raises(InputError, match="expected passage aaaa, found cccc; build the index again"):
        texts(tmp_path / "out.idx", "aaaa")
    path.write_bytes(sound.replace(b'{"id": "bbbb"', b" " * 13))
    with pytest.raises(InputError, match="cannot be read as a passage: JSON is malformed"):
        texts(tmp_path / "out.idx", "bbbb")
    path.write_bytes(sound.replace(b'"bbbb", "contents": "Te', b'"bbbb", "contents": "T\xff'))
    # {"id": "bbbb", "contents": "T has 29 bytes.
    with pytest.raises(InputError, match=r"cannot be read as a passage: byte 30 \(0xff\) is not UTF-8"):
        texts(tmp_path / "out.idx", "bbbb")


def test_a_passage_without_text_is_refused(tmp_path):
    path = put(tmp_path, "a.jsonl", '{"id": "a"}\n', '{"id": "b", "contents": 5}\n')
    index_collection([path], tmp_path / "out.idx")
    with pytest.raises(InputError, match="passage a has no text"):
        texts(tmp_path / "out.idx", "a")
    with pytest.raises(InputError, match="cannot be read as a passage"):
        texts(tmp_path / "out.idx", "b")


def test_every_problem_is_listed_up_to_ten_and_nothing_is_written(tmp_path):
    one = put(tmp_path, "a.jsonl", row("a"), "{\n", '{"contents": "x"}\n', '{"id": "x\n', row("b"), '{"id": 5}\n')
    two = put(tmp_path, "b.jsonl", "{}\n")
    (tmp_path / "empty").mkdir()
    found = problems(one, two, tmp_path / "absent", tmp_path / "empty", out=tmp_path / "out.idx")
    assert [(file, place) for file, place, _ in found] == [("absent", "$"), ("empty", "$")]
    found = problems(one, two, out=tmp_path / "out.idx")
    assert [(file, place) for file, place, _ in found] == [
        ("a.jsonl", "line 2: $"),
        ("a.jsonl", "line 3: $"),
        ("a.jsonl", "line 4: $"),
        ("a.jsonl", "line 6: $"),
        ("b.jsonl", "line 1: $"),
    ]
    assert found[1][2] == NEEDED
    many = problems(put(tmp_path, "c.jsonl", *[row("a")] * 9_000, *["{\n"] * 99), out=tmp_path / "out.idx")
    assert [place for _, place, _ in many] == [f"line {number}: $" for number in range(9_001, 9_011)]
    assert not (tmp_path / "out.idx").exists()


def test_an_index_that_points_nowhere_is_refused(tmp_path):
    path = put(tmp_path, "a.jsonl", row("a"))
    out = tmp_path / "out.idx"
    index_collection([path], out)
    stored = out.read_bytes()
    out.write_bytes(stored[:-8] + b"\xff" * 8)
    with pytest.raises(InputError, match="the index is damaged"):
        texts(out, "a")
    out.write_bytes(stored[:-16] + b"\xff" * 8 + stored[-8:])
    with pytest.raises(InputError):
        texts(out, "a")


@given(
    st.lists(
        st.binary(max_size=60) | st.sampled_from([row("a").encode(), b'{"id": "', b'{"id": "clueweb22-en0000-00-'])
    )
)
def test_no_file_makes_a_traceback(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "a.jsonl").write_bytes(b"\n".join(lines))
    try:
        index_collection([folder / "a.jsonl"], folder / "out.idx")
    except InputError as error:
        assert error.problems
        assert not (folder / "out.idx").exists()
