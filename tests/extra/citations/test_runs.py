"""Runs of citation tracks: read, checked by the rules of each year, fixed, converted into each other, pooled."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import InputError
from judge.jobs.options import DEFAULT_CRITERIA, usual_criteria
from judge.pool.intake import check_years, read_runs
from judge.runs.check import SECTIONS
from judge.runs.check.validate import validate_run
from judge.runs.convert import convert_run
from judge.runs.fix import fixed_copy
from judge.runs.formats import FORMATS, ReadRun, format_of_lines, read_run
from judge.runs.profiles import PROFILES, limits_of
from judge.runs.records import Provenance
from judge.runs.sources import find_sources, own_criteria
from judge.runs.tokens import TokenCounter
from judge.runs.topics import read_topics, topic_turns
from tests.conftest import json_lines

SEGMENTS = [f"msmarco_v2.1_doc_00_1#{k}_9" for k in range(4)]
SHARDS = [f"shard_00459_{k}" for k in range(4)]
UUIDS = [f"0a1b2c3d-0000-1111-2222-33334444555{k}_0" for k in range(4)]
NARRATIVE = "Why do leaves turn red, and will the tree be well?"


def sentence(text: str, *citations: Any) -> dict[str, Any]:
    return {"text": text, "citations": list(citations)}


def rag24() -> dict[str, Any]:
    answer = [sentence("Leaves turn red.", 0, 1), sentence("The tree is well.")]
    head = {"run_id": "r", "topic_id": "7", "topic": NARRATIVE}
    return head | {"references": SEGMENTS[:2], "response_length": 7, "answer": answer}


def rag25() -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": "r", "type": "automatic", "narrative_id": 7, "narrative": NARRATIVE}
    return {"metadata": metadata, "references": SEGMENTS[:2], "answer": rag24()["answer"]}


def rag26() -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": "r", "run_desc": "d", "narrative_id": "7", "narrative": NARRATIVE}
    answer = [sentence("Leaves turn red.", SHARDS[0], SHARDS[1]), sentence("The tree is well.")]
    return {"metadata": metadata, "references": SHARDS[:2], "answer": answer}


def ragtime25() -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": "r", "topic_id": "7", "task": "english"}
    responses = [{"text": "Leaves turn red.", "citations": {UUIDS[0]: 0.9, UUIDS[1]: 0.5}}, sentence("It is well.")]
    return {"metadata": metadata, "responses": responses, "references": UUIDS[:2]}


def ragtime26() -> dict[str, Any]:
    line = ragtime25()
    line["metadata"]["run_desc"] = "d"
    return line


def dragun25() -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": "r", "topic_id": SEGMENTS[3], "type": "automatic", "use_starter_kit": True}
    documents = {SEGMENTS[0]: {"id": SEGMENTS[0], "text": "Sugars turn leaves red."}}
    return {"metadata": metadata, "responses": [sentence("Leaves turn red.", SEGMENTS[0])], "documents": documents}


GOOD: dict[str, Callable[[], dict[str, Any]]] = {
    "rag2024": rag24, "rag2025": rag25, "rag2026": rag26, "longeval2026": rag25, "rag": rag24,
    "ragtime2025": ragtime25, "ragtime2026": ragtime26, "dragun2025": dragun25, "ragtime": dragun25,
}  # fmt: skip


def read(tmp_path: Path, *lines: dict[str, Any] | str) -> ReadRun:
    path = tmp_path / "run.jsonl"
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines), "utf-8")
    return read_run(path)


def topics(tmp_path: Path, limit: int | None = None) -> dict[str, Any]:
    path = tmp_path / "topics.jsonl"
    line = {"request_id": "7", "problem_statement": NARRATIVE} | ({"limit": limit} if limit else {})
    path.write_text(json.dumps(line), "utf-8")
    return topic_turns(path) or {}


def found(run: ReadRun, profile: str, turns: dict[str, Any] | None = None) -> list[tuple[str, str, str]]:
    limits = limits_of(profile)
    checked = validate_run(run, turns, TokenCounter(limits.token_rule, limits.token_limit), limits=limits)
    return [(each.severity, each.code, each.path) for each in checked.problems]


@pytest.mark.parametrize("profile", GOOD)
def test_a_good_run_of_a_year_has_no_problem(tmp_path: Path, profile: str) -> None:
    run = read(tmp_path, GOOD[profile]())
    assert run.run is not None and run.run.format == ("rag" if "answer" in GOOD[profile]() else "ragtime")
    assert found(run, profile, topics(tmp_path) if profile != "dragun2025" and profile != "ragtime" else None) == []


@pytest.mark.parametrize(
    ("line", "turn_id", "text", "provenance"),
    [
        (rag24(), "7_1", "Leaves turn red. The tree is well.", [(SEGMENTS[0], None), (SEGMENTS[1], None)]),
        (rag26(), "7_1", "Leaves turn red. The tree is well.", [(SHARDS[0], None), (SHARDS[1], None)]),
        (ragtime25(), "7_1", "Leaves turn red. It is well.", [(UUIDS[0], None), (UUIDS[1], None)]),
        (dragun25(), f"{SEGMENTS[3]}_1", "Leaves turn red.", [(SEGMENTS[0], "Sugars turn leaves red.")]),
    ],
)
def test_what_sentences_cite_is_the_provenance(tmp_path: Path, line, turn_id, text, provenance) -> None:
    run = read(tmp_path, line).run
    assert run is not None and (run.run_id, run.team) == ("r", None if "run_id" in line else "t")
    (turn,) = run.turns
    (response,) = turn.responses
    assert (turn.turn_id, response.text) == (turn_id, text)
    assert response.provenance == tuple(Provenance(name, None, True, text) for name, text in provenance)


A, R = "line 1: $.answer", "line 1: $.responses"


def changed(line: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A line with a member at a path such as `answer.0.text` set, or left out where the value is `...`."""
    *above, last = path.split(".")
    place: Any = line
    for name in above:
        place = place[int(name) if isinstance(place, list) else name]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return line


FAULTS = [
    # Numbers are counted from 0, so the second of two references is 1. The RAG track refuses a number of none.
    ("rag", rag24, "answer.0.citations", [2], "warning", "unknown_citation", f"{A}[0].citations[0]"),
    ("rag2025", rag25, "answer.0.citations", [0, 1, -1], "error", "unknown_citation", f"{A}[0].citations[2]"),
    ("rag2026", rag26, "answer.1.citations", [SHARDS[2]], "error", "citation_not_in_references",
     f"{A}[1].citations[0]"),
    ("ragtime2025", ragtime25, "references", UUIDS[:1], "warning", "citation_not_in_references",
     f'{R}[0].citations["{UUIDS[1]}"]'),
    ("rag2026", rag26, "references", [*SHARDS[:2], SHARDS[0]], "warning", "duplicate_passage",
     "line 1: $.references[2]"),
    ("rag2026", rag26, "references", SHARDS[:3], "warning", "uncited_reference", "line 1: $.references[2]"),
    ("ragtime2025", ragtime25, "references", UUIDS[:3], "error", "uncited_reference", "line 1: $.references[2]"),
    ("ragtime", ragtime25, "responses.0.citations", {"": 0.5}, "error", "wrong_type", f'{R}[0].citations[""]'),
    ("rag2025", rag25, "metadata.narrative", ["Why?"], "error", "narrative_differs", "line 1: $.metadata.narrative"),
    ("rag2026", rag26, "answer.1.citations", ["\ud800"], "error", "unusable_text", f"{A}[1].citations[0]"),
    ("rag2026", rag26, "references", [*SHARDS[:2], 3], "error", "wrong_type", "line 1: $.references[2]"),
    ("rag2026", rag26, "answer.0.citations", [*SHARDS[:2], SHARDS[0]], "warning", "duplicate_citation",
     f"{A}[0].citations"),
    ("ragtime2026", ragtime26, "responses.1.citations", [UUIDS[0], UUIDS[1], UUIDS[2], UUIDS[3]], "warning",
     "too_many_citations_of_sentence", f"{R}[1].citations"),
    ("rag2024", rag24, "answer.1.text", " ", "error", "blank_sentence", f"{A}[1].text"),
    ("ragtime2026", ragtime26, "responses.1.text", "", "warning", "blank_sentence", f"{R}[1].text"),
    ("rag2024", rag24, "answer.1.text", 5, "error", "wrong_type", f"{A}[1].text"),
    ("rag2024", rag24, "answer.1", "text", "error", "wrong_type", f"{A}[1]"),
    ("rag2024", rag24, "answer.1.citations", [SEGMENTS[0]], "error", "wrong_type", f"{A}[1].citations"),
    ("rag2025", rag25, "answer.0.citations", {SEGMENTS[0]: 1.0, SEGMENTS[1]: 1.0}, "error", "wrong_type",
     f"{A}[0].citations"),
    ("ragtime2026", ragtime26, "responses.0.citations", {UUIDS[0]: "high"}, "error", "wrong_type",
     f'{R}[0].citations["{UUIDS[0]}"]'),
    ("rag2024", rag24, "answer.1.citations", [True], "error", "wrong_type", f"{A}[1].citations[0]"),
    ("rag2024", rag24, "answer", [], "error", "empty_text", A),
    # 20 references are allowed.
    ("rag2024", rag24, "references", [f"msmarco_v2.1_doc_00_1#{k}_9" for k in range(21)], "error",
     "too_many_references", "line 1: $.references"),
    ("rag2025", rag25, "references", [*SEGMENTS[:2], "x"], "error", "malformed_passage_id", "line 1: $.references[2]"),
    ("rag", rag24, "references", [SEGMENTS[0], "a\u00a0"], "error", "unusable_passage_id", f'{A}["a\\u00a0"]'),
    ("dragun2025", dragun25, "responses.0.citations", ["x"], "error", "malformed_passage_id",
     f"{R}[0].citations[0]"),
    ("rag2025", rag25, "metadata", ..., "error", "missing_field", "line 1: $.metadata"),
    ("rag2025", rag25, "metadata.type", ..., "error", "missing_field", "line 1: $.metadata.type"),
    ("rag2025", rag25, "metadata.narrative_id", ..., "error", "missing_field", "line 1: $.metadata"),
    ("rag2025", rag25, "metadata.narrative", "Why?", "error", "narrative_differs", "line 1: $.metadata.narrative"),
    ("ragtime2025", ragtime25, "metadata.task", ..., "warning", "missing_metadata", "line 1: $.metadata.task"),
    ("rag2026", rag26, "metadata.run_id", ".r", "error", "unusable_run_id", "$.metadata.run_id"),
    ("rag2026", rag26, "metadata.run_id", "r" * 21, "error", "unusable_run_id", "$.metadata.run_id"),
    ("rag2026", rag26, "extra", 1, "warning", "unknown_field", "line 1: $.extra"),
    # 400 words are allowed, then 1,024; the second sentence has four.
    ("rag2025", rag25, "answer.0.text", "red " * 397, "warning", "over_token_limit", A),
    ("rag2026", rag26, "answer.0.text", "red " * 1021, "error", "over_token_limit", A),
    # 16 characters, a space and 11 characters; the topic allows 27.
    ("ragtime2026", ragtime26, "metadata.run_desc", "d", "warning", "over_topic_limit", R),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "line", "path", "value", "severity", "code", "where"), FAULTS)
def test_faults(tmp_path: Path, profile, line, path, value, severity, code, where) -> None:
    turns = topics(tmp_path, 27 if code == "over_topic_limit" else 30) if profile != "dragun2025" else None
    problems = found(read(tmp_path, changed(line(), path, value)), profile, turns)
    beside = {"uncited_reference", "malformed_passage_id", "over_topic_limit", "no_provenance", "missing_turn"}
    assert (severity, code, where) in problems
    assert {found for _, found, _ in problems} - {code} <= beside


def test_what_concerns_several_lines(tmp_path: Path) -> None:
    lines = [ragtime26(), ragtime26(), changed(changed(ragtime26(), "metadata.topic_id", "8"), "metadata.run_id", "s")]
    assert found(read(tmp_path, *lines), "ragtime2026", topics(tmp_path)) == [
        ("error", "duplicate_turn", "line 2: $.metadata"),
        ("error", "unknown_turn", "line 3: $.metadata"),
        ("error", "several_runs", "line 3: $.metadata.run_id"),
    ]
    assert [code for _, code, _ in found(read(tmp_path, ragtime26(), "{"), "ragtime")] == ["truncated_json"]


def test_every_code_of_sentences_is_provoked_here() -> None:
    assert {row[5] for row in FAULTS} >= set(SECTIONS["Citations of sentences"])
    assert {name for name, row in PROFILES.items() if row.formats} - {"table"} == {*GOOD, "neuclir2024"}


@pytest.mark.parametrize(
    ("line", "profile", "message"),
    [
        (rag25(), "ikat2025",
         "rag needs the profile rag, rag2024, rag2025, rag2026 or longeval2026 (--profile), not ikat2025"),
        (rag25(), "ragtime2025", "rag, rag2024, rag2025, rag2026 or longeval2026 (--profile), not ragtime2025"),
        ({"metadata": {"run_id": "r"}, "turn_id": "7_1", "responses": [], "references": {}}, "rag2025",
         "format ikat2025 needs the profile cast2022, ikat2023, "),
    ],
)  # fmt: skip
def test_a_profile_of_other_formats_takes_the_run_out(tmp_path: Path, line, profile, message) -> None:
    checked = validate_run(read(tmp_path, line), None, None, limits=limits_of(profile))
    (problem,) = (each for each in checked.problems if each.code not in ("missing_field", "empty_run_type"))
    assert (problem.severity, problem.code) == ("error", "wrong_profile") and message in problem.message
    assert checked.run is None and [row.turn_id for row in checked.exclusions] == ["*"]


def test_what_is_fixed(tmp_path: Path) -> None:
    line = rag26()
    line["answer"] = [
        sentence("One two.", SHARDS[0], 0),
        sentence("\n"),
        sentence(" ", 1),
        sentence("Three four five."),
        sentence("Six."),
    ]
    run = read(tmp_path, line).run
    fixed = fixed_copy(tmp_path / "run.jsonl", run, TokenCounter("whitespace", 4))
    assert [(fix.turn_id, fix.code, fix.path) for fix in fixed.fixes] == [
        ("7_1", "duplicate_citation", f"{A}[0].citations"),
        ("7_1", "blank_sentence", f"{A}[1]"),
        ("7_1", "over_token_limit", f"{A}[3].text"),
        ("7_1", "over_token_limit", f"{A}[4]"),
    ]
    assert json.loads(fixed.stored or b"") == line | {
        "answer": [sentence("One two.", SHARDS[0]), sentence(" ", 1), sentence("Three four")]
    }
    fine = read(tmp_path, rag26()).run
    assert fixed_copy(tmp_path / "run.jsonl", fine, TokenCounter("whitespace", 1024)).fixes == ()


def test_the_two_formats_are_written_as_each_other(tmp_path: Path) -> None:
    content, changes = convert_run(read(tmp_path, ragtime25()), "rag")
    answer = [sentence("Leaves turn red.", 0, 1), sentence("It is well.")]
    metadata = {"team_id": "t", "run_id": "r", "task": "english", "narrative_id": "7"}
    assert json.loads(content) == {"metadata": metadata, "references": UUIDS[:2], "answer": answer}
    assert [(each.what, each.before, each.dropped) for each in changes] == [("scores of citations", "2 scores", True)]
    content, changes = convert_run(read(tmp_path, rag24()), "ragtime", team="t")
    responses = [sentence("Leaves turn red.", *SEGMENTS[:2]), sentence("The tree is well.")]
    metadata = {"team_id": "t", "run_id": "r", "topic": NARRATIVE, "topic_id": "7"}
    assert json.loads(content) == {"metadata": metadata, "responses": responses, "references": SEGMENTS[:2]}
    assert changes == ()
    content, _ = convert_run(read(tmp_path, changed(ragtime25(), "metadata.task", "\ud800")), "rag")
    assert rb'"task":"\ud800"' in content
    content, changes = convert_run(read(tmp_path, ragtime25() | {"references": []}), "ragtime")
    assert json.loads(content)["responses"][0]["citations"] == {UUIDS[0]: 0.9, UUIDS[1]: 0.5} and changes == ()
    flat = {"run_id": "r", "topic_id": "7", "responses": [sentence("A.", "p")], "documents": {}}
    content, _ = convert_run(read(tmp_path, flat), "rag", team="t")
    assert json.loads(content)["metadata"] == {"team_id": "t", "run_id": "r", "narrative_id": "7"}
    _, changes = convert_run(read(tmp_path, changed(rag24(), "answer.0.citations", [0, 5])), "ragtime", team="t")
    assert [(each.what, each.before) for each in changes] == [("citations of no reference", "1 citation")]
    _, changes = convert_run(read(tmp_path, dragun25()), "rag")
    assert [(each.what, each.before) for each in changes] == [("passage texts", "1 text")]


def test_a_run_without_sentences_is_not_written_as_one_with_them(tmp_path: Path) -> None:
    turn = {"metadata": {"run_id": "r", "team_id": "t", "run_type": "automatic"}, "turn_id": "7_1", "references": {}}
    with pytest.raises(InputError) as caught:
        convert_run(read(tmp_path, turn | {"responses": [{"rank": 1, "text": "a", "citations": {}}]}), "rag")
    assert [each.message for each in caught.value.problems] == [
        "rag has sentences that cite, which runs of ikat2025 have not"
    ]


@pytest.mark.parametrize(
    ("content", "turns"),
    [
        ("\n7\tWhy\u2028red?\r\n8\t Why\n", {"7_1": ("Why\u2028red?", None), "8_1": (" Why", None)}),
        ('{"request_id": 7, "title": "t", "problem_statement": "p", "background": "b", "limit": 2000}',
         {"7_1": ("t\n\np\n\nb", 2000)}),
    ],
)  # fmt: skip
def test_topics_of_one_turn(tmp_path: Path, content: str, turns: dict) -> None:
    (tmp_path / "topics").write_text(content, "utf-8")
    assert {turn.turn_id: (turn.utterance, turn.limit) for topic in read_topics(tmp_path / "topics")
            for turn in topic.turns} == turns  # fmt: skip


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b"7\ta\n7\tb\n\n8\n9 9\tc\n\xe9\td\n", [
            ("duplicate_topic", "line 2"), ("wrong_type", "line 4"), ("malformed_turn_id", "line 5"),
            ("wrong_type", "line 6")]),
        (b'{"request_id": "7", "limit": "x"}\n{"request_id": "", "problem_statement": "p"}\n[]\n', [
            ("missing_field", "line 1: $.problem_statement"), ("wrong_type", "line 1: $.limit"),
            ("missing_field", "line 2: $.request_id"), ("wrong_type", "line 3: $")]),
    ],
)  # fmt: skip
def test_bad_topics_of_one_turn(tmp_path: Path, content: bytes, problems: list) -> None:
    (tmp_path / "topics").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_topics(tmp_path / "topics")
    assert [(each.code, each.path) for each in caught.value.problems] == problems


@pytest.mark.parametrize(
    ("file", "profile", "size", "codes"),
    [
        *((f"kiddie/runs/repgen/run{k}.jsonl", "ragtime", (5, cited), set())
          for k, cited in ((1, 23), (2, 17), (3, 41), (4, 14))),
        ("longeval/generated-responses.jsonl", "longeval2026", (47, 470), set()),
        ("spot/my_best_run_01.jsonl", "ragtime2025", (1, 1),
         {"malformed_passage_id", "citation_not_in_references", "missing_metadata"}),
    ],
)  # fmt: skip
def test_real_samples(shared: Path, file: str, profile: str, size: tuple[int, int], codes: set[str]) -> None:
    run = read_run(shared / "rag-runs" / file)
    assert run.run is not None
    assert (len(run.run.turns), sum(len(list(turn.passages)) for turn in run.run.turns)) == size
    assert {code for _, code, _ in found(run, profile)} == codes


HOSTILE = (None, 1, -1, True, "x", "", "\ud800", "\0", [], {}, [None], [[1]], {"": None}, {"text": None}, 10**30,
           [1e400], "a" * 300, ["\0"], {"\ud800": 1}, float("nan"))  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each member of a JSON value: its owner, and its name or place there."""
    for name, below in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, name
        if isinstance(below, dict | list):
            yield from places(below)


def test_an_odd_line_makes_no_run_of_sentences_of_conversations(tmp_path: Path) -> None:
    metadata = {"run_id": "r", "team_id": "t", "type": "interactive", "topic_id": "7_1"}
    responses = [{"rank": 1, "text": "a", "user_utterance": "u", "citations": {}}]
    odd = {"metadata": metadata, "responses": [{"text": "b", "citations": []}], "references": {}}
    run = read(tmp_path, odd, odd | {"responses": responses}).run
    assert run is not None and run.format == "interactive"
    # Formats of other packages alone keep 2024 runs from being decoded directly.
    assert FORMATS.foreign == set()


def test_topics_of_one_turn_tell_no_year(tmp_path: Path) -> None:
    # Topics 0 to 16 are those of iKAT 2024, 132 to 149 those of CAsT 2022.
    for name, numbers in (("r", range(17)), ("s", range(132, 150))):
        lines = [changed(changed(dragun25(), "metadata.topic_id", k), "metadata.run_id", name) for k in numbers]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), "utf-8")
    submitted = read_runs(tmp_path, limits=limits_of("ragtime"))
    assert [run.year for run in submitted.runs] == [None, None]
    check_years(submitted)


def test_hostile_lines_are_problems_and_no_errors(tmp_path: Path) -> None:
    draw = random.Random(0)
    turns = topics(tmp_path, 30)
    for profile, line, _ in product(GOOD, (0, 1), range(20)):
        lines = [GOOD[profile](), GOOD[profile]()]
        owner, name = draw.choice(list(places(lines[line])))
        if isinstance(owner, dict) and draw.random() < 0.2:
            del owner[name]
        else:
            owner[name] = deepcopy(draw.choice(HOSTILE))
        run = read(tmp_path, *lines)
        if run.run is not None and run.run.format in ("rag", "ragtime"):
            found(run, profile, turns)
            fixed_copy(tmp_path / "run.jsonl", run.run, TokenCounter("whitespace", 2))
            for to in ("rag", "ragtime", "ikat2024"):
                with suppress(InputError):
                    convert_run(run, to, team="t" if to != "ikat2024" else None)


def test_a_response_is_judged_once_by_what_it_cites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    folder.mkdir()
    for name in ("r", "s", "other"):
        line = changed(dragun25(), "metadata.run_id", name)
        if name == "other":
            line["documents"][SEGMENTS[0]]["text"] = "Trees lose water."
        (folder / name).write_text(json.dumps(line), "utf-8")
    asked = ["--criteria", "groundedness", "--model", "checker/overlap", "--profile", "ragtime"]
    assert main(["run", "--runs", str(folder), "--out", str(out), *asked]) == 0
    assert [len(each["runs"]) for each in json_lines(out / "pool.jsonl")] == [2, 1]
    assert "OWNTEXT: grades rest on passage texts that the run brought itself" in capsys.readouterr().out
    # Without a profile its format's is meant; one of another format is refused.
    assert len(read_runs(folder).candidates) == 3
    assert main(["run", "--runs", str(folder), "--out", str(tmp_path / "own"), *asked[:-2]]) == 0
    assert json.loads((tmp_path / "own" / "manifest.json").read_text())["limits"]["profile"] == "ragtime"
    asked[-1] = "ikat2024"
    assert main(["run", "--runs", str(folder), "--out", str(tmp_path / "none"), *asked]) == 2
    assert "a run of the format ragtime needs the profile ragtime, ragtime2025" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_each_run_of_a_folder_is_held_to_the_rules_of_its_own_format(tmp_path: Path, capsys) -> None:
    """300 words are too many for iKAT and for no profile of the format rag but a year's."""
    folder, out = tmp_path / "runs", tmp_path / "out"
    folder.mkdir()
    long = " ".join(["word"] * 300)
    cited = {"run_id": "cited", "topic_id": "7", "references": ["s0"], "answer": [{"text": long, "citations": [0]}]}
    (folder / "cited.jsonl").write_text(json.dumps(cited), "utf-8")
    metadata = {"team_id": "t", "run_id": "talk", "type": "automatic"}
    response = {"text": long, "rank": 1, "citations": {}, "ptkb_provenance": []}
    talk = {"metadata": metadata, "turn_id": "8_1", "responses": [response], "references": {}}
    (folder / "talk.jsonl").write_text(json.dumps(talk), "utf-8")
    main(["validate", str(folder), "--json"])
    printed = capsys.readouterr()
    told = {file["run_id"]: {row["code"] for row in file["problems"]} for file in json.loads(printed.out)["files"]}
    assert "over_token_limit" in told["talk"] and told["cited"] == set()
    main(["validate", str(folder)])
    said = capsys.readouterr().err
    assert "limits: any length that the topic allows, any number of cited passages (profile rag)" in said
    assert "limits: 250 tokens by the rule bare, any number of used passages (profile ikat2025)" in said
    # Criteria that all runs can be judged by, and the limits of each format in the manifest.
    assert main(["pool", "--runs", str(folder), "--out", str(out)]) == 0
    limits = json.loads((out / "manifest.json").read_text())["limits"]
    assert (limits["profile"], limits["token_limit"]) == ("ikat2025", 250)
    assert {name: own["profile"] for name, own in limits["by_format"].items()} == {"rag": "rag"}
    assert len(json_lines(out / "pool.jsonl")) == 2


@pytest.mark.parametrize(
    ("options", "units"),
    [
        # Citation tracks ask for support, whether the profile is named or detected.
        ([], "citations"),
        (["--profile", "rag2024"], "citations"),
        (["--criteria", "support"], "citations"),
        (["--criteria", "naturalness"], "responses"),
        (["--unit", "response"], "responses"),
    ],
)
def test_a_pool_is_of_what_its_criteria_are_about(tmp_path: Path, capsys, options: list[str], units: str) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    folder.mkdir()
    line = {"run_id": "r", "topic_id": "7", "references": [SEGMENTS[0]],
            "answer": [{"text": "One.", "citations": [0]}, {"text": "Two.", "citations": [0]}]}  # fmt: skip
    (folder / "r.jsonl").write_text(json.dumps(line), "utf-8")
    pooling = ["--runs", str(folder), *options]
    assert main(["pool", *pooling, "--out", str(out)]) == 0
    number = {"citations": "2 distinct citations", "responses": "1 distinct response"}[units]
    assert f"pooled {number} of 1 run" in capsys.readouterr().err
    if units == "responses":
        return
    # The documented path: the texts of the passages of this pool, and then `judge run` into its folder.
    passages = tmp_path / "passages.jsonl"
    passages.write_text(json.dumps({"id": SEGMENTS[0], "text": "One."}) + "\n", "utf-8")
    extracted = ["--pool", str(out), "--passages", str(passages), "--out", str(tmp_path / "extracted.jsonl")]
    assert main(["passages", "extract", *extracted]) == 0
    texts = ["--passages", str(tmp_path / "extracted.jsonl")]
    assert main(["run", *pooling, *texts, "--model", "checker/overlap", "--out", str(out)]) == 0
    assert {row["criterion"] for row in json_lines(out / "judgments.jsonl")} == {"support"}
    capsys.readouterr()
    asked = ["run", "--runs", str(folder), *texts, "--model", "checker/overlap", "--out", str(out)]
    assert main([*asked, "--criteria", "groundedness"]) == 2
    assert "it is of citations, and responses are judged now" in capsys.readouterr().err


def test_a_pool_of_another_unit_than_its_criteria_is_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps(rag25()), "utf-8")
    asked = ["pool", "--runs", str(tmp_path / "r.jsonl"), "--out", str(tmp_path / "out")]
    assert main([*asked, "--criteria", "support", "--unit", "response"]) == 2
    assert "support/graded: about citations, but responses are judged here" in capsys.readouterr().err


def test_qrels_that_name_topics_grade_their_only_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TREC RAG names topics such as 2024-19025, which as the id of a turn would be turn 19025 of topic 2024."""
    topics = ("2024-19025", "2024-7")
    lines = (
        {"run_id": "r", "topic_id": topic, "references": ["s0", "s1"],
         "answer": [{"text": "One.", "citations": [0]}, {"text": "Two.", "citations": [1]}]}
        for topic in topics
    )  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "topics.tsv").write_text("".join(f"{topic}\tWhy?\n" for topic in topics), "utf-8")
    # The last topic was answered by no run, and counts.
    named = (*topics, "2024-8")
    (tmp_path / "q.qrel").write_text("".join(f"{topic} 0 s0 1\n" for topic in named), "utf-8")
    (tmp_path / "turns").mkdir()
    (tmp_path / "turns" / "q.qrel").write_text("".join(f"{topic}_1 0 s0 1\n" for topic in named), "utf-8")
    printed = []
    for qrels in (tmp_path / "q.qrel", tmp_path / "turns" / "q.qrel"):
        assert main(["evaluate", "passages", "--runs", str(tmp_path / "r.jsonl"), "--qrels", str(qrels)]) == 0
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out and "3 turns" in printed[0].out
    note = "q.qrel names topics, each of one turn: 2024-7 is 2024-7_1"
    assert printed[0].err.count(note) == 1 and note not in printed[1].err
    pooling = ["--runs", str(tmp_path / "r.jsonl"), "--unit", "response", "--topics", str(tmp_path / "topics.tsv")]
    asked = ["pool", *pooling, "--passage-qrels", str(tmp_path / "q.qrel"), "--out", str(tmp_path / "out")]
    assert main(asked) == 0
    said = capsys.readouterr().err
    assert said.count(note) == 1 and "pooled 2 distinct responses of 1 run; 0 excluded" in said
    # Without topics, a run says that the names are not those of turns.
    asked = [word for word in asked if word not in ("--topics", str(tmp_path / "topics.tsv"))]
    assert main([*asked[:-1], str(tmp_path / "out2")]) == 0
    said = capsys.readouterr().err
    assert said.count(note) == 1 and "pooled 2 distinct responses of 1 run; 0 excluded" in said


def test_a_large_run_is_recognized_by_its_first_lines(tmp_path: Path) -> None:
    line = json.dumps(rag25()) + "\n"
    path = tmp_path / "r.jsonl"
    # The rest is not looked at, so it does not matter here that it is damaged.
    path.write_text(line * (2**20 // len(line) + 1) + "{" * 100, "utf-8")
    assert own_criteria(path) == ("support",)
    path.write_text("[" + ",".join([line] * (2**20 // len(line) + 1)) + "]", "utf-8")
    assert own_criteria(path) == ("support",)
    turn = {"turn_id": "1-1_1", "responses": []}
    run = {"run_name": "r", "run_type": "automatic", "eval_response": True, "turns": [turn]}
    path.write_text(json.dumps(run), "utf-8")
    assert (format_of_lines(path), own_criteria(path)) == ("ikat2024", ())
    path.write_text(json.dumps({**run, "turns": [turn] * 50_000}), "utf-8")
    assert (format_of_lines(path), own_criteria(path)) == (None, ())


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{\n}{", "{}".encode("utf-16"), gzip.compress(b"x" * 9999)[:40], b"\0"],
    ids=["empty", "no_lines", "utf16", "cut_gzip", "nul"],
)
def test_a_damaged_run_does_not_change_what_the_others_are_judged_for(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(damaged)
    (tmp_path / "b.jsonl").write_text(json.dumps(rag25()) + "\n", "utf-8")
    sources = find_sources([tmp_path])
    assert len(sources.files) == 2
    assert usual_criteria(sources) == ("support",)
    (tmp_path / "b.jsonl").unlink()
    assert usual_criteria(find_sources([tmp_path])) == DEFAULT_CRITERIA


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_large_run_of_another_track_is_no_damaged_one(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    # An object on one line, of which more than is looked at.
    other = {"turns": [], "metadata": {"run_id": random.Random(1).randbytes(1 << 20).hex()}}
    (tmp_path / "a.json").write_bytes(pack(json.dumps(other).encode()))
    (tmp_path / "b.jsonl").write_text(json.dumps(rag25()) + "\n", "utf-8")
    assert usual_criteria(find_sources([tmp_path])) == DEFAULT_CRITERIA
