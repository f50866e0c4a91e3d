"""`judge passages`: what it writes and says, and its exit codes; and paths as people give them."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

import judge
from judge.cli import main
from judge.errors import InputError
from judge.io.files import file_in
from judge.runs.formats import find_runs
from tests.cli.test_validate import run
from tests.conftest import PROJECT, complaint, printed, put

IDS = [f"clueweb22-en0000-00-00000:{number}" for number in range(12)]


@pytest.fixture
def folder(tmp_path):
    lines = [json.dumps({"id": name, "contents": f"Text of {name}."}) for name in reversed(IDS)]
    (tmp_path / "collection.jsonl").write_text("\n".join(lines) + "\n")
    rows = [row(name, f"Text of {name}.") for name in IDS]
    (tmp_path / "hashes.tsv").write_text("".join(rows))
    (tmp_path / "runs").mkdir()
    return tmp_path


def row(name, text):
    document, _, number = name.partition(":")
    return f"{document}\t{number}\t{hashlib.md5(text.encode()).hexdigest()}\n"


def put_run(folder, *used, name="r"):
    passages = [{"id": one, "score": 1 - place / 1000, "used": True} for place, one in enumerate(used)]
    passages.append({"id": IDS[11], "score": 0.1, "used": False})
    document = run("9-1_1", name=name, ptkb_provenance=[], passage_provenance=passages)
    (folder / "runs" / f"{name}.json").write_text(json.dumps(document))


def extract(folder, *more):
    out = folder / "out.jsonl"
    code = main(["passages", "extract", "--runs", str(folder / "runs"), *more, "-o", str(out)])
    return code, [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else None


def test_the_used_passages_are_extracted_in_natural_order(folder, capsys):
    put_run(folder, IDS[10], IDS[2])
    put_run(folder, IDS[2], IDS[9], name="s")
    expected = [{"id": IDS[n], "contents": f"Text of {IDS[n]}."} for n in (2, 9, 10)]
    assert extract(folder, "--passages", str(folder / "collection.jsonl")) == (0, expected)
    assert capsys.readouterr() == ("", f"{folder / 'out.jsonl'}: 3 of 3 passages\n")


def test_depth_takes_the_passages_of_lower_ranks_too(folder, capsys):
    put_run(folder, IDS[0])
    path = folder / "runs" / "r.json"
    document = json.loads(path.read_text())
    second = {"id": IDS[1], "score": 1, "used": True}
    response = {"rank": 2, "text": "More.", "ptkb_provenance": [], "passage_provenance": [second]}
    document["turns"][0]["responses"].append(response)
    path.write_text(json.dumps(document))
    for options, expected in (([], [IDS[0]]), (["--depth", "2"], [IDS[0], IDS[1]])):
        code, lines = extract(folder, "--passages", str(folder / "collection.jsonl"), *options)
        assert (code, [line["id"] for line in lines]) == (0, expected)


def test_an_index_of_the_collection_gives_the_same_bytes(folder, capsys):
    put_run(folder, IDS[10], IDS[2])
    collection, index = folder / "collection.jsonl", folder / "collection.idx"
    extract(folder, "--passages", str(collection))
    before = (folder / "out.jsonl").read_bytes()
    capsys.readouterr()
    assert main(["passages", "index", "--collection", str(collection), "-o", str(index)]) == 0
    assert capsys.readouterr().err == f"{index}: 12 passages indexed\n"
    extract(folder, "--passages", str(index))
    assert (folder / "out.jsonl").read_bytes() == before


def test_missing_passages_are_counted_named_and_exit_1(folder, capsys):
    absent = [f"clueweb22-en0000-00-00001:{number}" for number in range(12)]
    put_run(folder, IDS[0], *absent)
    code, lines = extract(folder, "--passages", str(folder / "collection.jsonl"))
    assert (code, [line["id"] for line in lines]) == (1, [IDS[0]])
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("out.jsonl: 1 of 13 passages")
    assert said[1] == "12 not found:"
    assert said[2:] == [*(f"  {name}" for name in absent[:10]), "  … and 2 more"]


@pytest.mark.parametrize("indexed", [False, True])
def test_texts_that_are_not_the_collections_are_left_out(folder, capsys, indexed):
    put_run(folder, *IDS[:3])
    hashes = put(folder / "hashes.tsv", row(IDS[0], f"Text of {IDS[0]}.") + row(IDS[1], "Another text."))
    if indexed:
        assert main(["passages", "index", "--hashes", str(hashes), "-o", str(folder / "hashes.idx")]) == 0
        assert capsys.readouterr().err == f"{folder / 'hashes.idx'}: 2 passages indexed\n"
        hashes = folder / "hashes.idx"
    code, lines = extract(folder, "--passages", str(folder / "collection.jsonl"), "--passage-hashes", str(hashes))
    assert (code, [line["id"] for line in lines]) == (1, [IDS[0]])
    said = capsys.readouterr().err.splitlines()
    assert said[1:] == [
        "1 left out, not on the hash list:",
        f"  {IDS[2]}",
        "1 left out, the text differs from the hash list:",
        f"  {IDS[1]}",
    ]


def put_pool(folder):
    pool = folder / "pool"
    pool.mkdir()
    text = "The run's own."
    key = f"{IDS[5]}#{hashlib.sha256(text.encode()).hexdigest()}"
    response = {
        "response_id": "R00001", "turn_id": "9-1_1", "topic_id": "9-1", "text": "Text.", "passages": [IDS[4], key],
        "tokens": {"bare": 2, "english": 2, "whitespace": 1, "cut": None}, "truncated": False, "runs": [],
    }  # fmt: skip
    line = {"id": IDS[5], "contents": text, "key": key, "source": "run"}
    (pool / "passages.jsonl").write_text(json.dumps(line) + "\n")
    (pool / "pool.jsonl").write_text(json.dumps(response) + "\n")
    (pool / "excluded.tsv").write_text("run_id\tturn_id\trank\treason\tdetail\n")
    (pool / "runs.jsonl").write_bytes(b"")
    return pool


def test_the_passages_of_a_pool_are_extracted_whoever_gave_the_text(folder, capsys):
    pool = put_pool(folder)
    out = folder / "out.jsonl"
    code = main(
        ["passages", "extract", "--pool", str(pool), "--passages", str(folder / "collection.jsonl"), "-o", str(out)]
    )
    assert code == 0, capsys.readouterr().err
    assert [json.loads(line)["contents"] for line in out.read_text().splitlines()] == [
        f"Text of {IDS[4]}.",
        f"Text of {IDS[5]}.",
    ]


def test_errors_in_runs_are_mentioned(folder, capsys):
    put_run(folder, IDS[0])
    (folder / "runs" / "bad.json").write_text("{")
    code, lines = extract(folder, "--passages", str(folder / "collection.jsonl"))
    assert (code, len(lines)) == (1, 1)
    assert "1 error in the runs; `judge validate` lists them" in capsys.readouterr().err
    # They are told before the collection is read.
    assert main(["passages", "extract", "--runs", str(folder / "runs"), "--passages", "none", "-o", "new"]) == 2
    told = capsys.readouterr().err
    assert told.index("1 error in the runs") < told.index("cannot be used")


def test_without_a_response_nothing_is_written(folder, capsys):
    (folder / "runs" / "bad.json").write_text("{")
    assert extract(folder, "--passages", str(folder / "collection.jsonl")) == (2, None)
    said = capsys.readouterr().err
    assert "runs: no response, so no passage to extract" in said
    assert "bad.json" in said


def test_bad_lists_exit_2_and_write_nothing(folder, capsys):
    (folder / "hashes.tsv").write_text("wrong\n")
    assert main(["passages", "index", "--hashes", str(folder / "hashes.tsv"), "-o", str(folder / "x.idx")]) == 2
    assert "hash_list_wrong at line 1: $: expected document, number and MD5" in capsys.readouterr().err
    assert not (folder / "x.idx").exists()


def test_inputs_are_never_overwritten(folder, capsys):
    for source, name in (("--hashes", "hashes.tsv"), ("--collection", "collection.jsonl")):
        before = (folder / name).read_bytes()
        assert main(["passages", "index", source, str(folder / name), "-o", str(folder / name)]) == 2
        assert "the output would replace the input" in capsys.readouterr().err
        assert (folder / name).read_bytes() == before
    assert main(["passages", "index", "--hashes", str(folder / "hashes.tsv"), "-o", str(folder)]) == 2
    assert "this is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "link"),
    [
        *(("hashes.tsv", None), ("runs/r.json", "link_to"), ("shards/1.jsonl", "symlink_to")),
        *(("collection.jsonl", None), ("collection.idx", "link_to"), ("pool/passages.jsonl", "symlink_to")),
        *(("pool/pool.jsonl", None), ("pool/excluded.tsv", "link_to"), ("pool/runs.jsonl", "symlink_to")),
        ("pool/manifest.json", None),
    ],
)
def test_what_extract_reads_is_never_overwritten(folder, capsys, name, link):
    put_run(folder, IDS[0])
    (put_pool(folder) / "manifest.json").write_bytes(b"{}")
    collection, index = folder / "collection.jsonl", folder / "collection.idx"
    put(folder / "shards" / "1.jsonl", collection.read_bytes())
    assert main(["passages", "index", "--collection", str(collection), "-o", str(index)]) == 0
    source, before = folder / name, (folder / name).read_bytes()
    out = source
    if link:
        out = folder / "another.name"
        out.hardlink_to(source) if link == "link_to" else out.symlink_to(source)
    users = ["--pool", str(folder / "pool")] if name.startswith("pool") else ["--runs", str(folder / "runs")]
    passages = ["--passages", str(folder / "shards"), str(index), "--passage-hashes", str(folder / "hashes.tsv")]
    capsys.readouterr()
    assert main(["passages", "extract", *users, *passages, "-o", str(out)]) == 2
    assert "the output would replace the input" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_an_output_that_is_no_regular_file_is_refused(folder, capsys):
    put_run(folder, IDS[0])
    os.mkfifo(folder / "pipe")
    out = ["-o", str(folder / "pipe")]
    passages = ["--passages", str(folder / "collection.jsonl")]
    for action in (
        ["index", "--hashes", str(folder / "hashes.tsv")],
        ["extract", "--runs", str(folder / "runs"), *passages],
    ):
        assert "not a regular file; name the file to write" in complaint(capsys, main(["passages", *action, *out]))
    assert (folder / "pipe").is_fifo()


def test_hashes_and_collection_exclude_each_other(folder, capsys):
    for more in (
        ["index", "--hashes", "a", "--collection", "b"],
        ["extract", "--passages", "a", "--pool", "b", "--runs", "c"],
    ):
        assert complaint(capsys, main(["passages", *more, "-o", "c"])).endswith("give exactly one of them\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("mill-fluent-invented.json", "quarry-copied.json"):
        Path("late").mkdir(exist_ok=True)
        (Path("runs") / name).rename(Path("late") / name)
    return tmp_path


def pooled(out: str, *runs: str) -> dict[str, bytes]:
    assert main(["pool", *runs, "--topics", "topics.json", "--passages", "passages.jsonl", "-o", out]) == 0
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in Path(out).rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "run.sha256", "problems.json")
    }


def test_several_folders_and_files_are_pooled_in_whatever_order_they_are_given(here: Path) -> None:
    first = pooled("a", "--runs", "runs", "late/quarry-copied.json", "--runs", "late")
    assert first == pooled("b", "--runs", "late/", "--runs", "runs/harbor-grounded.json", "runs")
    assert len(first["runs.jsonl"].splitlines()) == 7


def test_the_order_and_the_spelling_of_what_is_given_do_not_matter(here: Path) -> None:
    Path("link").symlink_to("late")
    files, problems = find_runs(["runs", "late"])
    assert [path.name for path in files[:2]] == ["mill-fluent-invented.json", "quarry-copied.json"]
    assert find_runs(["late", Path("runs")]) == (files, problems)
    again, _ = find_runs(["late", "runs", "runs/../late/quarry-copied.json", "link"])
    assert again == files


def test_every_missing_folder_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert complaint(capsys, main(["validate", "runs", "none", "empty"])) == (
        "judge: none: cannot be read: No such file or directory; empty: no run files here\n"
    )
    with pytest.raises(InputError, match="none: cannot be read"):
        judge.read_runs(["runs", "none"])


@pytest.mark.parametrize("command", ["validate", "tokens"])
def test_runs_are_named_with_the_option_or_without_it(here: Path, command: str, capsys) -> None:
    told = []
    for runs in (["runs", "late"], ["--runs", "runs", "late"], ["runs", "--runs", "late"]):
        main([command, *runs, "--topics", "topics.json", "--json"])
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2]
    with pytest.raises(SystemExit):
        main([command, "--topics", "topics.json"])
    assert capsys.readouterr().err == (
        f"judge {command}: argument --runs: a value is required\n`judge {command} --help all` lists the options\n"
    )


def test_two_run_files_of_one_name_get_no_copies_under_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("runs/harbor-grounded.json", "late/harbor-grounded.json")
    assert "judge: harbor-grounded.json: several run files have this name, and so would their copies\n" in complaint(
        capsys, main(["validate", "runs", "late", "--fix", "-o", "fixed"])
    )
    assert not Path("fixed").exists()


def test_a_folder_of_ours_stands_for_its_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = PROJECT / "gold" / "example.gold.jsonl"
    lines = gold.read_text(encoding="utf-8").splitlines(keepends=True)
    Path("gold.jsonl").write_text("".join(line for line in lines if '"groundedness"' in line), encoding="utf-8")
    inputs = ["--runs", "runs", "late", "--topics", "topics.json", "--passages", "passages.jsonl"]
    overlap = ["--model", "baseline/overlap", "--criteria", "groundedness"]
    assert main(["run", *inputs, *overlap, "--out", "out"]) == 0
    assert main(["gold", "split", "gold.jsonl", "--test", "0.34", "--seed", "1", "--out", "split"]) == 0
    quick = ["--replicates", "200", "--permutations", "200", "--json"]
    told = []
    for gold_, test, judgments in (
        ("split/dev.jsonl", "split/test.jsonl", "out/judgments.jsonl"),
        ("split", "split", "out"),
    ):
        capsys.readouterr()
        assert main(["calibrate", "--gold", gold_, "--test", test, "--judgments", judgments, *quick]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["criteria"] == told[1]["criteria"] if "criteria" in told[0] else told[0].keys() == told[1].keys()
    assert main(["gold", "check", "split", "--pool", "out"]) == 0
    draw = ["--pool", "out", "--n", "40", "--per-run", "5", "--seed", "1"]
    assert main(["gold", "plan", *draw, "--judgments", "out", "--out", "a.jsonl"]) == 0
    assert main(["gold", "plan", *draw, "--judgments", "out/judgments.jsonl", "--out", "b.jsonl"]) == 0
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    capsys.readouterr()
    # So few topics prove no judge steady.
    of_files = printed(capsys, main(["drift", "out/judgments.jsonl", "out/judgments.jsonl"]), 1)
    assert printed(capsys, main(["drift", "out", "out"]), 1) == of_files
    extracted = []
    for pool, passages in (("out", "passages.jsonl"), ("out/pool.jsonl", "out")):
        assert main(["passages", "extract", "--pool", pool, "--passages", passages, "-o", f"{pool[:3]}.x"]) in (0, 1)
        extracted.append(Path("out.x").read_bytes())
    assert extracted[0] == extracted[1]


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r": a folder without dev\.jsonl or gold\.jsonl; name the file$"):
        file_in(tmp_path, "dev.jsonl", "gold.jsonl")
    assert file_in(tmp_path / "absent", "dev.jsonl") == tmp_path / "absent"
