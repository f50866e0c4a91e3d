"""Fixed copies: what is fixed, how the log says it, and that nothing else changes."""

import copy
import gzip
import json
import re
import signal
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.runs.check import CODES
from judge.runs.check.validate import validate_run
from judge.runs.fix import FixedCopy, FixFolder, fixed_copy
from judge.runs.fix.fixes import Fixer
from judge.runs.formats import read_run
from judge.runs.records import Run, TokenCount
from judge.runs.tokens import TokenCounter
from tests import conftest
from tests.runs import TokenLimit

LIMIT = 250


def words(text, limit=LIMIT):
    """A token count by white space, in place of spaCy."""
    found = [match.end() for match in re.finditer(r"\S+", text)]
    n = len(found)
    return TokenCount(bare=n, english=n, whitespace=n, cut=found[limit - 1] if n > limit else None)


def head(format="ikat2024", *, eval_response=True):
    return Run("r", "automatic", None, format, "a.json", "", eval_response, ())


def passage(number, score, **more):
    return {"id": f"clueweb22-en0000-00-00000:{number}", "score": score} | more


def fix(response, format="ikat2024", **turn):
    """A turn with one response, fixed; gives the response and the fixes as (path, code, before, after)."""
    fixer = Fixer(head(format), words)
    turn = {"turn_id": "9-1_1", "responses": [{"rank": 1, "text": "Text."} | response]} | turn
    fixer.turn(turn, "$")
    fixes = [(fix.path.removeprefix("$.responses[0]."), fix.code, fix.before, fix.after) for fix in fixer.fixes]
    return turn["responses"][0], fixes, turn


N, PP, PTKB = "clueweb22-en0000-00-00000:", "passage_provenance", "ptkb_provenance"
ONE, TWO = ({"id": "1", "text": "a", "score": score} for score in ("0.5", 0.4))


def listed(*rows, **more):
    """Passages from pairs of number and score, or triples that end in whether it was used."""
    return {PP: [passage(*row[:2], **({"used": row[2]} if len(row) > 2 else {}), **more) for row in rows]}


def bare(*numbers, used):
    """Passages without scores, of which the first `used` are."""
    return {PP: [{"id": f"{N}{number}", "used": k < used} for k, number in enumerate(numbers)]}


FIXES = [
    # format, members of a response, the same once fixed (None: as they were), fixes
    # Passages are ordered by score, and ties keep their order; not where a score cannot be ranked by.
    ("ikat2024", listed((0, 9), (1, 3), (2, 5.5), (3, 3), (4, 1), used=True),
     listed((0, 9), (2, 5.5), (1, 3), (3, 3), (4, 1), used=True),
     [(f"{PP}[1:3]", "scores_not_decreasing", [f"{N}1", f"{N}2"], [f"{N}2", f"{N}1"])]),
    *(("ikat2024", listed((0, 1.0), (1, score), (2, 3.0), used=True), None, [])
      for score in (None, float("nan"), float("inf"), "high", True)),
    # The best of a repeated passage is kept, and is used if any was. By falling score the entries are 2, 0, 1, 3.
    ("ikat2024", listed((0, 2, False), (1, 1.5, False), (0, 3, False), (0, 1, True)),
     listed((0, 3, True), (1, 1.5, False)),
     [(f"{PP}[0:3]", "scores_not_decreasing", [f"{N}0", f"{N}1", f"{N}0"], [f"{N}0", f"{N}0", f"{N}1"]),
      (f"{PP}[0]", "duplicate_passage", passage(0, 2, used=False), None),
      (f"{PP}[3]", "duplicate_passage", passage(0, 1, used=True), None),
      (f"{PP}[2].used", "duplicate_passage", False, True)]),
    # A repetition that says something new is kept.
    ("ikat2024", {PP: [passage(0, 2, used=True, text="One."), passage(0, 1, used=False, text="Another.")]}, None, []),
    ("ikat2024", {PP: [passage(0, 2, used=True), passage(0, 1, used=False, note="x")]}, None, []),
    # The five best are flagged where none is, and the first five where there are no scores.
    ("ikat2024", listed(*((n, 10 - n) for n in range(7))), listed(*((n, 10 - n, n < 5) for n in range(7))),
     [*((f"{PP}[{n}].used", "no_used_passage", None, True) for n in range(5)),
      (f"{PP}[*].used", "no_used_passage", None, False)]),
    ("ikat2024", bare(3, 3, 1, 2, 4, 5, 6, used=0), bare(3, 1, 2, 4, 5, 6, used=5),
     [(f"{PP}[1]", "duplicate_passage", {"id": f"{N}3", "used": False}, None),
      *((f"{PP}[{k}].used", "no_used_passage", False, True) for k in (0, 2, 3, 4, 5))]),
    # Passages without a flag beside flagged ones are not used; a flag of another type is left for validation.
    ("ikat2024", listed((0, 3, None), (1, 2, True)), listed((0, 3, False), (1, 2, True)),
     [(f"{PP}[*].used", "missing_used", None, False)]),
    *(("ikat2024", listed((0, 3, used), (1, 2)), None, []) for used in ("yes", 0, 1, "false")),
    # Statements stand once, by their numbers, by what they say, or by their texts.
    ("ikat2024", {PTKB: [1, 2, 1]}, {PTKB: [1, 2]}, [(f"{PTKB}[2]", "duplicate_ptkb", 1, None)]),
    ("ikat2024", {PTKB: ["3", 3, "03"]}, {PTKB: [3]},
     [(f"{PTKB}[0]", "coerced_value", "3", 3), (f"{PTKB}[1]", "duplicate_ptkb", 3, None),
      (f"{PTKB}[2]", "coerced_value", "03", 3), (f"{PTKB}[2]", "duplicate_ptkb", 3, None)]),
    ("ikat2024", {PTKB: [0, 0, "x", "x", None, None, 1.0, 1.0, True, True]}, None, []),
    ("ikat2023", {PTKB: [ONE, TWO, {"id": "1", "text": "b"}]},
     {PTKB: [ONE | {"score": 0.5}, {"id": "1", "text": "b"}]},
     [(f"{PTKB}[0].score", "coerced_value", "0.5", 0.5), (f"{PTKB}[1]", "duplicate_ptkb", TWO, None)]),
    ("ikat2025", {PTKB: ["I am vegan.", "", "", "I am vegan."]}, {PTKB: ["I am vegan.", "", ""]},
     [(f"{PTKB}[3]", "duplicate_ptkb", "I am vegan.", None)]),
    # Ranks and scores are written as the numbers that they are read as.
    *(("ikat2024", {"rank": rank}, {"rank": 2}, [("rank", "coerced_value", rank, 2)]) for rank in ("2", 2.0)),
    *(("ikat2024", {"rank": rank}, None, []) for rank in (2, "two", 2.5, True, None)),
    ("cast2022", {"provenance": [{"id": "MARCO_1-1", "score": "2"}]},
     {"provenance": [{"id": "MARCO_1-1", "score": 2.0}]}, [("provenance[0].score", "coerced_value", "2", 2.0)]),
    *(("cast2022", {"provenance": [{"id": "MARCO_1-1", "score": score}]}, None, [])
      for score in ("nan", "inf", "1e999", 2)),
]  # fmt: skip


@pytest.mark.parametrize(("format", "before", "after", "expected"), FIXES)
def test_each_fix_and_its_row_of_the_log(format, before, after, expected):
    response, fixes, _ = fix(copy.deepcopy(before), format)
    # As text, since 2 and 2.0 are equal.
    assert repr(response) == repr({"rank": 1, "text": "Text."} | (before if after is None else after))
    assert fixes == expected


@pytest.mark.parametrize("rule", ["bare", "english"])
def test_a_text_of_251_tokens_comes_out_with_250(rule):
    counter = TokenCounter(rule=rule, limit=LIMIT)
    fixer = Fixer(head(), counter)
    text = " ".join(f"word{n}" for n in range(251))
    turn = {"turn_id": "9-1_1", "responses": [{"rank": 1, "text": text}]}
    fixer.turn(turn, "$")
    kept = turn["responses"][0]["text"]
    assert kept == " ".join(f"word{n}" for n in range(250))
    assert getattr(counter(kept), rule) == 250
    assert [(fix.code, fix.before, fix.after) for fix in fixer.fixes] == [("over_token_limit", text, kept)]


def test_a_text_is_cut_again_while_what_is_left_is_still_too_long():
    def grows(text):
        return words(text, 3) if len(text) > 8 else words(text, 2)

    fixer = Fixer(head(), grows)
    turn = {"turn_id": "9-1_1", "responses": [{"rank": 1, "text": "aa bb cc dd"}]}
    fixer.turn(turn, "$")
    assert turn["responses"][0]["text"] == "aa bb"


@pytest.mark.parametrize(
    ("rule", "limit", "text", "left"),
    [
        # NFKC writes the accent with a space, so this is one word by its white space and 251 by the rule.
        ("whitespace", 250, "a\u00b4" * 250, ""),
        # Leading white space is a token of its own.
        ("bare", 1, "\n\nword", "\n\n"),
    ],
)
def test_a_text_is_not_cut_to_nothing(rule, limit, text, left):
    counter = TokenCounter(rule=rule, limit=limit)
    assert text[: counter(text).cut] == left
    fixer = Fixer(head(), counter)
    turn = {"turn_id": "9-1_1", "responses": [{"rank": 1, "text": text}]}
    fixer.turn(turn, "$")
    assert (turn["responses"][0]["text"], fixer.fixes) == (text, [])


def test_texts_that_are_not_judged_are_not_cut():
    fixer = Fixer(head(eval_response=False), words)
    fixer.turn({"turn_id": "9-1_1", "responses": [{"rank": 1, "text": "w " * 300}]}, "$")
    assert fixer.fixes == []
    assert fix({"text": " " * 300})[1] == fix({"text": "\0" + "w " * 300})[1] == []


def test_references_and_citations_of_2025_are_ordered():
    response, fixes, turn = fix(
        {"citations": {"a": 1, "x": "2", "b": 9, "y": 3}}, "ikat2025", references={"a": 1, "b": "5", "c": 3}
    )
    assert list(turn["references"].items()) == [("b", 5.0), ("c", 3), ("a", 1)]
    # Only x and y are ranked by their own scores, of which the second is higher.
    assert list(response["citations"].items()) == [("b", 9), ("y", 3), ("x", 2.0), ("a", 1)]
    assert [fix[:2] for fix in fixes] == [
        ("$.references.b", "coerced_value"),
        ("$.references[0:3]", "scores_not_decreasing"),
        ("citations.x", "coerced_value"),
        ("citations[0:4]", "scores_not_decreasing"),
    ]


def test_citations_that_are_references_keep_their_order():
    response, fixes, _ = fix({"citations": {"a": 1, "b": 2}}, "ikat2025", references={"b": 2, "a": 1})
    assert (list(response["citations"]), fixes) == (["a", "b"], [])


@pytest.mark.parametrize(
    ("ranks", "fixed"),
    [
        ([2, 1, 3], [1, 2, 3]),
        ([2, 1, 2], [1, 2, 2]),
        ([1, 2, 1], [1, 2, 1]),
        ([2, 0], [2, 0]),
        ([2, "x", 1], [2, "x", 1]),
    ],
)
def test_responses_are_ordered_by_rank(ranks, fixed):
    fixer = Fixer(head(), words)
    turn = {"turn_id": "9-1_1", "responses": [{"rank": rank, "text": str(j)} for j, rank in enumerate(ranks)]}
    fixer.turn(turn, "$.turns[0]")
    assert [response["rank"] for response in turn["responses"]] == fixed
    assert len(fixer.fixes) == (ranks != fixed)


def test_values_that_are_no_turn_or_response_are_left_alone():
    for value in (None, [], 1, {"responses": 1}, {"responses": [1, None, [], {"passage_provenance": [1]}]}):
        fixer = Fixer(head(), words)
        kept = copy.deepcopy(value)
        fixer.turn(value, "$")
        assert (value, fixer.fixes) == (kept, [])


def document(**response):
    answer = {"rank": 1, "text": "Text.", "ptkb_provenance": [1], "passage_provenance": [passage(0, 1, used=True)]}
    turns = [{"turn_id": "9-1_1", "responses": [answer | response]}]
    return {"run_name": "r", "run_type": "manual", "eval_response": True, "own": {"x": 1e-7}, "turns": turns}


def copied(path, format=None):
    return fixed_copy(path, read_run(path, format).run, words, format)


def test_a_sound_run_keeps_its_bytes(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"run_name" :"r", "turns": [{"turn_id":"9-1_1","responses":[]}], "x": 1.50}\r\n\n')
    assert copied(path) == FixedCopy(path.read_bytes())


@pytest.mark.parametrize(
    "style", [{}, {"indent": 1}, {"indent": "\t"}, {"separators": (",", ":")}, {"indent": 4, "ensure_ascii": False}]
)
def test_an_fixed_run_keeps_its_style_and_all_that_was_not_fixed(tmp_path, style):
    path = tmp_path / "a.json"
    before = document(text="Ünï\u2028\u202e", ptkb_provenance=[1, 2, 1])
    path.write_bytes(json.dumps(before, **style).encode() + b"\n")
    outcome = copied(path)
    after = document(text="Ünï\u2028\u202e", ptkb_provenance=[1, 2])
    assert outcome.stored.decode() == json.dumps(after, **style) + "\n"
    assert len(outcome.fixes) == 1


def test_values_that_json_does_not_have_are_kept(tmp_path):
    path = tmp_path / "a.json"
    text = '{"run_name": "r", "x": [NaN, -Infinity, "\\ud800", "ü", 123456789012345678901234567890], "turns": [%s]}'
    turn = '{"turn_id": "9-1_1", "responses": [{"rank": %s, "text": "T"}]}'
    path.write_text(text % turn % '"1"', encoding="utf-8")
    assert copied(path).stored.decode() == text % turn % "1"


def test_a_packed_file_is_packed_again_and_always_the_same(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document(rank="1")).encode(), mtime=5))
    outcome = copied(path)
    assert outcome.stored[:8] == b"\x1f\x8b\x08\x00\0\0\0\0"
    assert json.loads(gzip.decompress(outcome.stored)) == document(rank=1)
    path.write_bytes(gzip.compress(json.dumps(document()).encode(), mtime=5))
    assert copied(path).stored == path.read_bytes()


def test_a_byte_order_mark_is_taken_off(tmp_path):
    path = tmp_path / "a.json"
    text = json.dumps(document()).encode()
    path.write_bytes(b"\xef\xbb\xbf" + text)
    outcome = copied(path)
    assert outcome.stored == text
    assert [(fix.code, fix.path, fix.after) for fix in outcome.fixes] == [("byte_order_mark", "", None)]


def test_of_json_lines_only_the_fixed_change(tmp_path):
    path = tmp_path / "a.jsonl"
    meta = {"run_id": "r", "run_type": "automatic", "team_id": "t"}

    def line(turn_id, rank, **style):
        turn = {"metadata": meta, "turn_id": turn_id, "references": {}, "responses": [{"rank": rank, "text": "T"}]}
        return json.dumps(turn, **style).encode()

    sound, faulty = line("1-1_1", 1, separators=(",", " :  ")), line("1-1_2", "1")
    path.write_bytes(b"\n".join([sound, b"", b'{"broken', faulty + b"\r", b""]))
    outcome = copied(path)
    assert outcome.stored == b"\n".join([sound, b"", b'{"broken', line("1-1_2", 1) + b"\r", b""])
    assert [fix.path for fix in outcome.fixes] == ["line 4: $.responses[0].rank"]


def test_a_single_turn_of_2025_over_several_lines_is_fixed_copy(tmp_path):
    path = tmp_path / "a.json"
    turn = {"metadata": {"run_id": "r"}, "turn_id": "1-1_1", "responses": [{"rank": "1", "text": "T"}]}
    path.write_text(json.dumps(turn, indent=2), encoding="utf-8")
    outcome = copied(path)
    assert [fix.path for fix in outcome.fixes] == ["line 1: $.responses[0].rank"]
    assert outcome.stored.decode() == json.dumps(turn, indent=2).replace('"1"', "1")


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ('"text": "U"', "the member 'text' is twice in one JSON object"),
        ('"x": 1e999', "the JSON has a number beyond the reach of a float"),
    ],
)
def test_a_run_that_would_not_be_the_same_is_not_written_anew(tmp_path, member, why):
    path = tmp_path / "a.json"
    text = '{"run_name": "r", "turns": [{"turn_id": "9-1_1", "responses": [{"rank": "1", "text": "T", %s}]}]}'
    path.write_text(text % member, encoding="utf-8")
    assert copied(path) == FixedCopy(None, refused=f"not fixed: {why}")


@pytest.mark.parametrize("depth", [100, 800, 900])
def test_deep_json_is_fixed_or_refused(tmp_path, depth):
    path = tmp_path / "a.json"
    text = '{"run_name": "r", "x": %s, "turns": [{"turn_id": "9-1_1", "responses": [{"rank": %s, "text": "T"}]}]}'
    path.write_text(text % ("[" * depth + "]" * depth, '"1"'), encoding="utf-8")
    outcome = copied(path)
    if outcome.stored is None:
        assert outcome.refused == "not fixed: the JSON is nested too deeply"
    else:
        assert outcome.stored.decode() == text % ("[" * depth + "]" * depth, "1")


def test_a_pool_is_not_fixed_copy(tmp_path):
    assert fixed_copy(tmp_path / "pool", head("cast_regin"), words).refused


def put(folder, name="a.json", **response):
    return conftest.put(folder / name, document(**response))


def test_the_log_has_every_fix_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path / "runs", text="w\t\x7f\u202e" + " w" * 250)
    with FixFolder(tmp_path / "out", tmp_path / "runs", [path]) as folder:
        assert folder.write(path, copied(path)) == tmp_path / "out" / "a.json"
    lines = (tmp_path / "out" / "fixes.tsv").read_text(encoding="utf-8").split("\n")
    assert lines[0] == "file\tturn_id\tpath\tcode\tbefore\tafter"
    assert lines[2:] == [""]
    cells = lines[1].split("\t")
    # The log is sent out, so it does not say where the runs are kept.
    assert cells[:4] == ["runs/a.json", "9-1_1", "$.turns[0].responses[0].text", "over_token_limit"]
    assert lines[1].replace("\t", "").isprintable()
    assert json.loads(cells[4]) == "w\t\x7f\u202e" + " w" * 250
    assert json.loads(cells[5]) == "w\t\x7f\u202e" + " w" * 248
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a.json", "fixes.tsv"]


def test_the_folder_may_be_used_again_for_the_same_runs_only(tmp_path):
    path = put(tmp_path / "runs", rank="1")
    for _ in range(2):
        with FixFolder(tmp_path / "out", tmp_path / "runs", [path]) as folder:
            folder.write(path, copied(path))
    with FixFolder(tmp_path / "out", tmp_path / "runs", [path]) as folder:
        assert folder.write(path, FixedCopy(None, refused="why")) is None
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["fixes.tsv"]
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 'notes\.txt', which this command did not write"):
        FixFolder(tmp_path / "out", tmp_path / "runs", [path])


KILLED = """
import os, pathlib, signal, sys
from judge.runs.fix import FixFolder, FixedCopy
runs, out = map(pathlib.Path, sys.argv[1:])
paths = sorted(runs.iterdir())
with FixFolder(out, runs, paths) as folder:
    folder.write(paths[0], FixedCopy(b"{}"))
    os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
    folder.write(paths[1], FixedCopy(b"half"))
"""


@pytest.mark.slow
def test_what_was_killed_can_be_done_again(tmp_path):
    paths = [put(tmp_path / "runs", name, rank="1") for name in ("a.json", "b.json")]
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "runs", out], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert sorted(one.name for one in out.iterdir()) == [".b.json.tmp", ".fixes.tsv.tmp", "a.json"]
    for outcome in (FixedCopy(None, refused="why"), FixedCopy(b"whole")):
        with FixFolder(out, tmp_path / "runs", paths) as folder:
            folder.write(paths[0], FixedCopy(b"{}"))
            folder.write(paths[1], outcome)
        names = sorted(one.name for one in out.iterdir())
        assert names == ["a.json", *(["b.json"] if outcome.stored else []), "fixes.tsv"]
    (out / ".c.json.tmp").write_bytes(b"")
    with pytest.raises(UsageError, match=r"holds '\.c\.json\.tmp'"):
        FixFolder(out, tmp_path / "runs", paths)


def test_a_run_that_is_a_link_is_not_written_over_where_it_lies(tmp_path):
    path = put(tmp_path / "out", rank="1")
    (tmp_path / "out" / "fixes.tsv").write_bytes(b"")
    (tmp_path / "runs").mkdir()
    link = tmp_path / "runs" / "a.json"
    link.symlink_to(path)
    with pytest.raises(UsageError, match="give a folder of its own"):
        FixFolder(tmp_path / "out", tmp_path / "runs", [link])


def test_the_input_is_never_touched(tmp_path):
    path = put(tmp_path / "runs", rank="1")
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    for folder in (tmp_path / "runs", tmp_path / "link", tmp_path / "runs" / ".." / "runs"):
        for runs in (tmp_path / "runs", path):
            with pytest.raises(UsageError, match="give a folder of its own"):
                FixFolder(folder, runs, [path])
    with pytest.raises(UsageError, match="give a folder outside it"):
        FixFolder(tmp_path / "link" / "out", tmp_path / "runs", [path])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.json").hardlink_to(path)
    with pytest.raises(UsageError, match=r"holds 'a\.json', which this command did not write"):
        FixFolder(tmp_path / "out", tmp_path / "runs", [path])
    with pytest.raises(UsageError, match="name of the log"):
        FixFolder(tmp_path / "new", tmp_path / "runs", [tmp_path / "runs" / "fixes.tsv"])


SCORES = st.one_of(
    st.floats(-9, 9),
    st.integers(-9, 9),
    st.sampled_from(["1", "2.5", "x", None, float("nan"), True, 10**400, [], "inf"]),
)
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["clueweb22-en0000-00-00000:1", "clueweb22-en0000-00-00000:2", "c", "", 7])},
        optional={"score": SCORES, "used": st.sampled_from([True, False, None, "yes"]), "text": st.sampled_from("ab")},
    ),
    st.none(),
)
TEXTS = st.one_of(st.text("ab \n.\u3000", max_size=30), st.sampled_from(["\0 a b c d e", " ", None, "\ud800 b c d e"]))
STATEMENTS = st.one_of(
    st.sampled_from([1, 2, "1", "2", "01", 0, None, "x", True]),
    st.fixed_dictionaries({"id": st.sampled_from(["1", "2", "x", 1])}, optional={"score": SCORES, "text": TEXTS}),
)
RESPONSES = st.fixed_dictionaries(
    {"rank": st.sampled_from([1, 2, 3, 0, "1", "2", 2.0, None, "x"])},
    optional={
        "text": TEXTS,
        "passage_provenance": st.lists(ENTRIES, max_size=8),
        "provenance": st.lists(ENTRIES, max_size=8),
        "citations": st.dictionaries(st.sampled_from("abcd"), SCORES),
        "ptkb_provenance": st.lists(STATEMENTS, max_size=4),
    },
)
TURNS = st.fixed_dictionaries(
    {"turn_id": st.sampled_from(["9-1_1", "9-1_2", 3]), "responses": st.lists(RESPONSES, max_size=4)},
    optional={"references": st.dictionaries(st.sampled_from("abcd"), SCORES)},
)


REPEATED_WITHOUT_A_SCORE = {
    "turn_id": "9-1_1",
    "responses": [
        {"rank": 1, "passage_provenance": [passage(2, -1.0), passage(1, 0.0), {"id": "clueweb22-en0000-00-00000:1"}]}
    ],
}
"""The repetition goes, and only then can the others be ordered."""


@pytest.mark.long
@given(st.lists(TURNS, max_size=3), st.sampled_from(["ikat2023", "ikat2024", "ikat2025", "cast2022"]))
@example([REPEATED_WITHOUT_A_SCORE], "ikat2023")
@settings(max_examples=300, deadline=None)
def test_fixing_a_fixed_run_fixes_nothing(turns, format):
    def once():
        fixer = Fixer(head(format), lambda text: words(text, 3))
        for i, turn in enumerate(turns):
            fixer.turn(turn, f"$.turns[{i}]")
        return fixer.fixes

    once()
    fixed = copy.deepcopy(turns)
    assert once() == []
    assert repr(turns) == repr(fixed)


SOUND = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([1, 2, "1"]),
        "text": st.text("ab ", min_size=1, max_size=30).map("a".__add__),
        "passage_provenance": st.lists(
            st.builds(passage, st.integers(1, 5), st.floats(-9, 9) | st.just("1.5")).flatmap(
                lambda entry: st.sampled_from([entry, entry | {"used": True}, entry | {"used": False}])
            ),
            min_size=1,
            max_size=8,
        ),
        "ptkb_provenance": st.lists(st.sampled_from([1, 2, "1", "2"]), min_size=1, max_size=4),
    }
)


@given(st.lists(SOUND, min_size=1, max_size=4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_can_be_fixed_is_fixed(tmp_path_factory, responses, marked):
    path = tmp_path_factory.mktemp("runs") / "a.json"
    turns = [{"turn_id": "9-1_1", "responses": responses}]
    text = json.dumps({"run_name": "r", "run_type": "manual", "eval_response": True, "turns": turns})
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + text.encode())

    def codes():
        read = read_run(path)
        checked = validate_run(read, None, TokenLimit(lambda text: words(text, 3), 3, "bare"))
        return read.run, {problem.code for problem in checked.problems} & {
            code for code, row in CODES.items() if row.fix
        }

    run, before = codes()
    outcome = fixed_copy(path, run, lambda text: words(text, 3))
    assert {fix.code for fix in outcome.fixes} <= before
    path.write_bytes(outcome.stored)
    assert codes()[1] == set()


def test_real_runs_are_fixed_and_then_left_alone(shared, tmp_path):
    for name, fixes in (
        ("ikat/2024/sample_run.json", {"coerced_value": 602}),
        ("ikat/2025/runs/cfda-ikat2025-auto-1.jsonl", {"over_token_limit": 1}),
        ("ikat/2023/sample_run.json", {}),
        ("cast2022/sample_run.json", {}),
    ):
        path = shared / name
        counter = TokenCounter()
        outcome = fixed_copy(path, read_run(path).run, counter)
        found = [fix.code for fix in outcome.fixes]
        assert {code: found.count(code) for code in found} == fixes
        copy_ = tmp_path / path.name
        copy_.write_bytes(outcome.stored)
        assert fixed_copy(copy_, read_run(copy_).run, counter) == FixedCopy(outcome.stored)
