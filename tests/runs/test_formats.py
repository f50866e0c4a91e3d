"""Each run format from a literal file to records; detection by content; what a folder of runs holds."""

import errno
import gzip
import hashlib
import json
import os

import pytest

from judge.errors import InputError, UsageError
from judge.runs.document import read_head
from judge.runs.formats import find_runs, read_run
from judge.runs.records import Provenance, Response, RunTurn
from tests.conftest import PROJECT, put, refused

A, B, C = (f"clueweb22-en0000-00-0000{k}:{k}" for k in range(3))
PASSAGES = [{"id": A, "score": 0.9, "used": False}, {"id": B, "score": 1, "used": True, "text": " As it is.\n"}]
PROVENANCE = (Provenance(A, 0.9, False, None), Provenance(B, 1.0, True, " As it is.\n"))
STATEMENTS = [{"id": "2", "text": "I like tea.", "score": 0.7}, {"id": "1", "text": "I am vegan.", "score": 0.1}]


def run(turn_id, **response):
    turn = {"turn_id": turn_id, "responses": [{"rank": 1, "text": " Text. ", **response}]}
    return {"run_name": "r", "run_type": "manual", "turns": [turn]}


def line(turn_id, **changes):
    response = {"rank": 1, "text": "Text.", "citations": {B: 0.5, C: 0.4}, "ptkb_provenance": ["I like tea."]}
    return {
        "metadata": {"team_id": "t", "run_id": "r", "run_type": "automatic"},
        "turn_id": turn_id,
        "responses": [response],
        "references": {A: 2.0, B: 1},
    } | changes


RUN_2023 = run("9-1_1", passage_provenance=PASSAGES, ptkb_provenance=STATEMENTS)
RUN_2024 = run("0_1", passage_provenance=PASSAGES, ptkb_provenance=[2, 1]) | {"eval_response": True}
CAST = run("132_1-1", provenance=[{"id": "MARCO_00_1-2", "score": 1.0, "text": "t"}])


def written(folder, name, content):
    return put(folder / name, content if isinstance(content, bytes) else json.dumps(content).encode())


def test_ikat2023(tmp_path):
    read = read_run(written(tmp_path, "a.json", RUN_2023))
    assert read.problems == ()
    assert read.run.format == "ikat2023"
    assert (read.run.run_id, read.run.run_type, read.run.team, read.run.eval_response) == ("r", "manual", None, True)
    assert read.run.turns == (RunTurn("9-1_1", (Response(1, " Text. ", PROVENANCE, ("2", "1")),)),)
    assert read.places[0].responses[0].statements == (("I like tea.", 0.7), ("I am vegan.", 0.1))


def test_ikat2024(tmp_path):
    read = read_run(written(tmp_path, "a.json", RUN_2024))
    assert read.problems == ()
    assert read.run.format == "ikat2024"
    assert read.run.turns == (RunTurn("0_1", (Response(1, " Text. ", PROVENANCE, ("2", "1")),)),)


def test_ikat2024_number_in_a_string_is_the_same_statement(tmp_path):
    document = run("0_1", passage_provenance=PASSAGES, ptkb_provenance=["02", 1, 3.0])
    read = read_run(written(tmp_path, "a.json", document))
    assert read.run.turns[0].responses[0].ptkb_provenance == ("2", "1", "3")
    assert [(problem.code, problem.message) for problem in read.problems] == [
        ("coerced_value", "'02' is read as the number 2"),
        ("coerced_value", "3.0 is read as the number 3"),
    ]


def test_ikat2025_used_passages_are_the_citations(tmp_path):
    content = "\n".join(json.dumps(line(turn_id)) for turn_id in ("1-1_1", "1-1_2")).encode()
    read = read_run(written(tmp_path, "a.jsonl", content))
    assert read.run.format == "ikat2025"
    assert (read.run.run_id, read.run.run_type, read.run.team) == ("r", "automatic", "t")
    provenance = (Provenance(A, 2.0, False, None), Provenance(B, 1.0, True, None), Provenance(C, 0.4, True, None))
    response = Response(1, "Text.", provenance[1:], ("I like tea.",), {A: 2.0, B: 1.0})
    assert read.run.turns == (RunTurn("1-1_1", (response,)), RunTurn("1-1_2", (response,)))
    assert response.provenance == provenance
    assert [(problem.code, problem.path) for problem in read.problems] == [
        ("citation_not_in_references", f'line {number}: $.responses[0].citations["{C}"]') for number in (1, 2)
    ]
    # A response without citations used none of the references.
    bare = line("1-1_3")
    bare["responses"].append({"rank": 2, "text": "More.", "citations": {}, "ptkb_provenance": []})
    second = read_run(written(tmp_path, "b.jsonl", json.dumps(bare).encode())).run.turns[0].responses[1]
    assert [passage.used for passage in second.provenance] == [False] * len(second.provenance)


def test_ikat2025_metadata_are_the_first_that_are_given(tmp_path):
    heads = [
        {"team_id": " ", "run_id": "", "run_type": ""},
        {"team_id": "t", "run_id": "", "run_type": "manual"},
        {"team_id": "", "run_id": "r", "run_type": "automatic"},
    ]
    lines = (json.dumps(line(f"1-1_{n}", metadata=head)) for n, head in enumerate(heads, 1))
    read = read_run(written(tmp_path, "a.jsonl", "\n".join(lines).encode()))
    assert (read.run.run_id, read.run.run_type, read.run.team) == ("r", "manual", "t")
    assert [(one.code, one.path) for one in read.problems if one.code != "citation_not_in_references"] == [
        ("empty_team", "line 1: $.metadata.team_id"),
        ("inconsistent_metadata", "line 3: $.metadata.run_type"),
    ]


def test_ikat2025_run_of_one_turn_is_one_json_document(tmp_path):
    content = json.dumps(line("1-1_1", responses=[]), indent=1).encode()
    assert read_run(written(tmp_path, "a.json", content)).run.turns == (RunTurn("1-1_1", ()),)


def test_cast2022(tmp_path):
    read = read_run(written(tmp_path, "a.json", CAST))
    assert read.problems == ()
    assert read.run.format == "cast2022"
    provenance = (Provenance("MARCO_00_1-2", 1.0, None, "t"),)
    assert read.run.turns == (RunTurn("132_1-1", (Response(1, " Text. ", provenance),)),)


POOL = b"132_1-3\tQ0\tR1\t1\t0.0\ttag\n132_1-1 Q0 R0 1 0.0 tag\r\n132_1-3 Q0 R0 1 0.0 tag"
BANK = {"R0": " Nought.", "R1": "One.", "R2": "Two."}


def test_cast_regin_pool_with_its_bank_is_a_run_without_evidence(tmp_path):
    written(tmp_path, "other.json", {"R0": "Too little of the pool."})
    bank = written(tmp_path, "response_bank.json", BANK)
    read = read_run(written(tmp_path, "response_pool.pool", POOL))
    assert read.problems == ()
    assert (read.run.format, read.run.run_id, read.run.eval_response) == ("cast_regin", "tag", True)
    assert read.run.turns == (
        RunTurn("132_1-3", (Response(1, "One.", ()), Response(2, " Nought.", ()))),
        RunTurn("132_1-1", (Response(1, " Nought.", ()),)),
    )
    assert [[one.path for one in place.responses] for place in read.places] == [["line 1", "line 3"], ["line 2"]]
    assert read_run(bank) == read


def test_question_pools_have_the_same_form(tmp_path):
    written(tmp_path, "question_bank.json", {"Q0000": "Which one?"})
    read = read_run(written(tmp_path, "question.pool", b"132_1-1 Q0 Q0000 1 0.0 tag\n"))
    assert read.run.turns == (RunTurn("132_1-1", (Response(1, "Which one?", ()),)),)


@pytest.mark.parametrize(
    ("document", "format"),
    [
        (RUN_2023, "ikat2023"),
        (run("9-1_1", passage_provenance=[], ptkb_provenance=[]), "ikat2023"),
        # Only 2024 has these.
        (run("9-1_1", passage_provenance=[], ptkb_provenance=[1]), "ikat2024"),
        (run("9-1_1", passage_provenance=[]) | {"eval_response": True}, "ikat2024"),
        (run("9-1_1", passage_provenance=[]) | {"run_type": "only_response"}, "ikat2024"),
        (run("0_1", passage_provenance=[], ptkb_provenance=[]), "ikat2024"),
        # Where nothing tells, the later.
        ({"run_name": "r", "turns": []}, "ikat2024"),
        (run(None), "ikat2024"),
        # Objects decide, whatever else 2024 has.
        (RUN_2023 | {"eval_response": False}, "ikat2023"),
        (CAST, "cast2022"),
        (run("132_1-1"), "cast2022"),
        (run("132_1-1", passage_provenance=[]), "ikat2024"),
        (line("1-1_1"), "ikat2025"),
    ],
)
def test_the_format_is_detected_from_content(tmp_path, document, format):
    assert read_run(written(tmp_path, "misnamed.txt", document)).run.format == format


@pytest.mark.parametrize("document", [{}, [], [line("1-1_1")], "run", 3, None, {"9-1_1": {"run": "text"}}])
def test_other_json_is_no_run(tmp_path, document):
    read = read_run(written(tmp_path, "a.json", document))
    assert read.run is None
    assert [problem.code for problem in read.problems] == ["unknown_format"]


def test_a_named_format_is_not_second_guessed(tmp_path):
    path = written(tmp_path, "a.json", RUN_2023)
    read = read_run(path, "ikat2024")
    assert read.run.format == "ikat2024"
    assert [problem.code for problem in read.problems] == ["wrong_type", "wrong_type"]
    assert read_run(path, "ikat2025").run.format == "ikat2025"
    with pytest.raises(UsageError, match="ikat2022"):
        read_run(path, "ikat2022")


def test_a_run_that_says_so_is_not_for_assessment_in_any_year(tmp_path):
    assert read_run(written(tmp_path, "a.json", RUN_2024 | {"eval_response": False})).run.eval_response is False
    assert read_run(written(tmp_path, "b.json", RUN_2023 | {"eval_response": False})).run.eval_response is False


def test_a_packed_file_is_read_whatever_its_name_and_its_digest_is_of_the_stored_bytes(tmp_path):
    stored = gzip.compress(json.dumps(RUN_2024).encode(), mtime=0)
    read = read_run(written(tmp_path, "a.json", stored))
    assert read.run.digest == hashlib.sha256(stored).hexdigest()
    assert read.run.turns == read_run(written(tmp_path, "b.json", RUN_2024)).run.turns


def test_numbers_beyond_json_reach_the_record(tmp_path):
    content = json.dumps(RUN_2024).replace("0.9", "NaN").replace("1, ", "1e999, ", 1).encode()
    passages = read_run(written(tmp_path, "a.json", content)).run.turns[0].responses[0].provenance
    assert passages[0].score != passages[0].score


def test_entries_that_cannot_be_read_keep_their_places(tmp_path):
    document = run("0_1", passage_provenance=[7, PASSAGES[0], {"score": 0.5}])
    read = read_run(written(tmp_path, "a.json", document))
    assert read.run.turns[0].responses[0].provenance == (
        Provenance("", None, None, None), PROVENANCE[0], Provenance("", 0.5, None, None),
    )  # fmt: skip


def test_missing_files_and_folders_are_problems_not_exceptions(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        read = read_run(path)
        assert read.run is None
        assert [problem.code for problem in read.problems] == ["unreadable_file"]


def test_a_file_name_of_any_bytes_can_be_printed(tmp_path):
    path = put(tmp_path / os.fsdecode(b"run\xff.json"), json.dumps(RUN_2024).encode())
    assert read_run(path).run.file == f"{tmp_path}/run\\udcff.json"


def test_candidates_come_in_natural_order(tmp_path):
    for name in ("run10.json", "run2.json.gz", "run1", "x.jsonl"):
        written(tmp_path, name, b" \n{")
    paths, problems = find_runs(tmp_path)
    assert [path.name for path in paths] == ["run1", "run2.json.gz", "run10.json", "x.jsonl"]
    assert problems == ()


@pytest.mark.parametrize(
    ("name", "content", "is_candidate"),
    [
        ("run", b"\xef\xbb\xbf {", True),
        ("run", gzip.compress(b"[1]", mtime=0), True),
        ("run.bin", POOL, True),
        # The name promises a run, so that reading must say what is wrong.
        ("a.JSON", b"", True),
        ("a.jsonl", b"turn,text", True),
        ("a.json.gz", b"\x1f\x8bdamaged", True),
        # Meant as runs, whatever their names: what is wrong is an error and not a note.
        ("a.gz", b"\x1f\x8bdamaged", True),
        ("a.gz", gzip.compress(b"", mtime=0), True),
        ("a.gz", gzip.compress(b"turn,text", mtime=0), True),
        ("run", b"", True),
        ("run", b" \n", True),
        ("run.zip", b"PK\x03\x04rest", True),
        ("run.bz2", b"BZh91AY&SY", True),
        ("run.zst", b"\x28\xb5\x2f\xfdrest", True),
        ("runs.tar", b"run".ljust(257, b"\0") + b"ustar", True),
        ("run", json.dumps(RUN_2024).encode("utf-16"), True),
        ("run", json.dumps(RUN_2024).encode("utf-32"), True),
        ("README.md", b"", False),
        ("notes.TXT", "Our runs".encode("utf-16"), False),
        ("edits_of_ours.tsv", b"", False),
        ("notes.txt", json.dumps(RUN_2024).encode(), True),
        ("README.md", b"Our runs", False),
        ("a.qrels", b"132_1-1 0 R0 1\n", False),
        ("trec.run", b"132_1-1 Q0 MARCO_1-1 1 0.5 tag\n", False),
    ],
)
def test_what_may_be_a_run(tmp_path, name, content, is_candidate):
    written(tmp_path, "other.json", b"{")
    written(tmp_path, name, content)
    paths, problems = find_runs(tmp_path)
    assert (tmp_path / name in paths) is is_candidate
    assert [problem.code for problem in problems] == ([] if is_candidate else ["not_a_run_file"])


def test_a_bank_beside_its_pool_is_not_another_run(tmp_path):
    pool = written(tmp_path, "response.pool", POOL)
    bank = written(tmp_path, "bank.json", BANK)
    assert find_runs(tmp_path) == find_runs([pool, bank]) == ((pool,), ())
    pool.unlink()
    assert find_runs(tmp_path) == ((bank,), ())


def test_what_cannot_be_opened_is_an_error(tmp_path):
    run = written(tmp_path, "run.json", RUN_2024)
    (tmp_path / "gone.json").symlink_to("nowhere")
    (tmp_path / "loop.json").symlink_to("loop.json")
    os.mkfifo(tmp_path / "pipe.json")
    paths, problems = find_runs(tmp_path)
    assert paths == (run,)
    assert [(problem.code, problem.severity) for problem in problems] == [("unreadable_file", "error")] * 3


def test_a_file_without_permission_is_an_error(tmp_path, monkeypatch):
    run = written(tmp_path, "run.json", RUN_2024)
    written(tmp_path, "secret.json", RUN_2024)

    def guarded(path):
        # Permissions do not bind root, who may be running this.
        if path.name == "secret.json":
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_head(path)

    monkeypatch.setattr("judge.runs.formats.read_head", guarded)
    paths, problems = find_runs(tmp_path)
    assert paths == (run,)
    assert [(problem.code, problem.message) for problem in problems] == [
        ("unreadable_file", "cannot be read: Permission denied")
    ]


def test_a_link_among_runs_is_not_followed_and_not_quoted(tmp_path):
    """A team's archive may hold a link to any file that the organizers can read."""
    (tmp_path / "runs").mkdir()
    run = written(tmp_path / "runs", "run.json", RUN_2024)
    (tmp_path / "secret").write_text('{"password": "hunter2"}')
    (tmp_path / "runs" / "link.json").symlink_to("../secret")
    paths, problems = find_runs(tmp_path / "runs")
    assert paths == (run,)
    assert [problem.code for problem in problems] == ["unreadable_file"]
    assert "a link, so not read" in problems[0].message
    # A path that the user names may be a link, to a file or to the folder.
    (tmp_path / "named.json").symlink_to(run)
    assert find_runs(tmp_path / "named.json") == ((tmp_path / "named.json",), ())
    (tmp_path / "named").symlink_to(tmp_path / "runs")
    assert find_runs(tmp_path / "named")[0] == (tmp_path / "named" / "run.json",)


def test_a_linked_bank_is_not_read_for_a_pool(tmp_path):
    pool = written(tmp_path, "x.pool", POOL)
    bank = written(tmp_path, "bank.json", BANK)
    assert read_run(pool).run is not None
    bank.rename(tmp_path.parent / "elsewhere.json")
    bank.symlink_to(tmp_path.parent / "elsewhere.json")
    assert [problem.code for problem in read_run(pool).problems] == ["missing_bank"]


def test_a_single_file_stands_for_itself(tmp_path):
    path = written(tmp_path, ".run", b"")
    assert find_runs(path) == ((path,), ())


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="none: cannot be read"):
        find_runs(tmp_path / "none")
    with pytest.raises(InputError, match="no run files here") as empty:
        find_runs(tmp_path)
    assert empty.value.problems == ()
    written(tmp_path, "README", b"Nothing yet")
    assert [problem.code for problem in refused(find_runs, tmp_path)] == ["not_a_run_file"]


def test_a_file_name_that_is_no_unicode_can_be_stored_in_a_problem(tmp_path):
    (problem,) = read_run(tmp_path / os.fsdecode(b"\xff\n.json")).problems
    assert "\\udcff\\n.json: cannot be read" in problem.message
    assert problem.message.isprintable()


@pytest.mark.parametrize("first", ["5", '"x"', "[]", "null", "[1, 2]"])
def test_a_first_line_that_is_no_turn_costs_no_other_line(tmp_path, first):
    """An array begins like the line `[]`; it ends on another line."""
    path = tmp_path / "run.jsonl"
    turns = (PROJECT / "examples/runs/lantern-half-right.jsonl").read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([first, *turns[1:]]) + "\n", encoding="utf-8")
    read = read_run(path)
    assert sum(turn.turn_id != "" for turn in read.run.turns) == len(turns) - 1
    assert [problem.code for problem in read.problems if problem.severity == "error"] == ["wrong_type"]
