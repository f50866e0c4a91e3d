import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.cli import main
from judge.gold import gold_jsonl, read_gold, read_ledger, write_split
from judge.gold.rows import GoldRow
from judge.io.ids import topic_of
from judge.io.stored import sha256
from judge.jobs.manifest import SCHEMA
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl, runs_jsonl
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.results.corrected_tables import COLUMNS
from judge.runs.records import Exclusion, TokenCount

GROUNDEDNESS = find_criterion("groundedness")
RUNS = ("own\x1b[31m|run", "solid", "weak")
TURNS = [f"{topic}_{turn}" for topic in range(1, 9) for turn in range(1, 4)]


def lines(records) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An output folder of three runs: the judge thinks too well of the first, and misses one turn of the last."""
    rng = np.random.default_rng(4)
    grades = [level.grade for level in GROUNDEDNESS.scale.levels]
    responses, judgments, failures, gold = [], [], [], []
    chosen = {TURNS[place] for place in rng.permutation(len(TURNS))[:12]}
    for run, (run_id, quality) in enumerate(zip(RUNS, (1.3, 1.8, 0.6), strict=True)):
        for turn_id in TURNS:
            response_id, topic_id = f"R{len(responses):05d}", topic_of(turn_id)
            entry = RunEntry(run_id, 1, "used", "0" * 64)
            tokens = TokenCount(1, 1, 1, None)
            responses.append(PooledResponse(response_id, turn_id, topic_id, response_id, (), tokens, False, (entry,)))
            truth = quality + rng.normal(0, 0.7)
            human, judged = (
                int(np.clip(round(value), min(grades), max(grades)))
                for value in (truth, truth + 0.3 + (1.5 if run == 0 else 0) + rng.normal(0, 0.4))
            )
            common = response_id, turn_id, topic_id, GROUNDEDNESS.name, GROUNDEDNESS.variant
            if run_id == "weak" and turn_id == TURNS[0]:
                failures.append(
                    Failure(*common, "unreadable", "", None, "litellm/m", GROUNDEDNESS.digest, None, 0)
                )  # fmt: skip
            else:
                judgments.append(
                    Judgment(*common, judged, False, None, None, None, (), "litellm/m", "m", GROUNDEDNESS.digest,
                             "r" * 64, "json", False, 0)
                )  # fmt: skip
            if turn_id in chosen:
                gold.append(GoldRow(turn_id, topic_id, "groundedness", human, "A", response_id,
                                    inclusion_probability=0.5))  # fmt: skip
    pool = Pool(tuple(responses), {}, (Exclusion("solid", "9_1", 1, "over_limit", ""),))
    out = tmp_path / "out"
    out.mkdir()
    (out / "pool.jsonl").write_bytes(pool_jsonl(pool))
    (out / "passages.jsonl").write_bytes(passages_jsonl(pool))
    (out / "excluded.tsv").write_bytes(excluded_tsv(pool.exclusions))
    (out / "runs.jsonl").write_bytes(runs_jsonl(pool))
    (out / "judgments.jsonl").write_bytes(lines(judgments))
    (out / "failures.jsonl").write_bytes(lines(failures))
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(gold))
    (tmp_path / "families.tsv").write_text(f"{RUNS[0]}\tgpt\nsolid\tllama\nlitellm/m\tgpt\n", encoding="utf-8")
    return out


def run(*arguments: object) -> int:
    return main(["leaderboard", *map(str, arguments)])


def table(text: str) -> list[dict[str, str]]:
    header, *rows = (line.split("\t") for line in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_without_gold_the_leaderboard_is_raw_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder) == 0
    out = capsys.readouterr().out
    assert out.startswith("UNCALIBRATED")
    names = [line.split()[1] for line in out.splitlines() if line.startswith(("1  ", "2  ", "3  "))]
    assert names == ["own\\x1b[31m|run", "solid", "weak"]
    assert "23/24" in out
    assert "bound: the mean over all turns, with the worst grade where there is none; ranks go by it" in " ".join(
        out.split()
    )


def test_the_banner_is_that_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {"schema": SCHEMA, "configuration": {}, "certificate": {"banner": "CALIBRATED (certificate of today)."}}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert run(folder) == 0
    assert capsys.readouterr().out.startswith("CALIBRATED (certificate of today).")


@pytest.mark.slow
def test_gold_takes_the_lead_from_the_judges_favorite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, families, out = folder.parent / "gold.jsonl", folder.parent / "families.tsv", folder.parent / "corrected"
    assert run(folder, "--gold", gold, "--families", families, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "UNCALIBRATED" not in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    rows = table((out / "corrected.tsv").read_text(encoding="utf-8"))
    assert list(rows[0]) == list(COLUMNS)
    by_run = {row["run"]: row for row in rows}
    own, solid, weak = (by_run[name] for name in ("own\\x1b[31m|run", "solid", "weak"))
    assert rows[0] == solid
    assert float(own["raw"]) > float(solid["raw"])
    assert float(own["bias"]) > 1
    assert (own["flags"], own["family"], solid["flags"], weak["flags"]) == ("SELF", "gpt", "", "MISSING")
    assert (weak["n"], weak["missing"], own["gold_n"]) == ("23", "1", "12")
    assert weak["bound_lo"] != weak["lo"]
    markdown = (out / "corrected.md").read_text(encoding="utf-8")
    assert markdown.startswith("# Leaderboard, corrected by gold")
    assert (out / "corrected.svg").read_bytes().lstrip().startswith(b"<")
    assert (out / "corrected.png").read_bytes().startswith(b"\x89PNG")


def test_one_file_by_its_ending(folder: Path) -> None:
    for name in ("deep/table.tsv", "table.md"):
        assert run(folder, "--gold", folder.parent / "gold.jsonl", "--out", folder.parent / name) == 0
    assert (folder.parent / "deep/table.tsv").read_text(encoding="utf-8").startswith("criterion\trank\t")
    assert (folder.parent / "table.md").read_text(encoding="utf-8").startswith("# Leaderboard")


def test_json_has_the_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--gold", folder.parent / "gold.jsonl", "--target", "topics", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    digest = sha256(sha256((folder.parent / "gold.jsonl").read_bytes()).encode())
    assert {key: value for key, value in shown.items() if key != "rows"} == {
        "schema": 2, "target": "topics", "gold": digest, "cautions": [],
    }  # fmt: skip
    rows = shown["rows"]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert {row["corrected"]["n"] for row in rows} <= {11, 12}
    assert run(folder, "--json") == 0
    assert [row["turns"] for row in json.loads(capsys.readouterr().out)] == [24, 24, 24]


def test_gold_without_probabilities_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b',"inclusion_probability":0.5', b""))
    assert run(folder, "--gold", gold) == 2
    said = capsys.readouterr().err
    assert "judge gold import --inclusion P" in said
    assert said.count("not known: expected the probability") == 35


def test_gold_that_was_not_given_blind_is_announced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b'"made":"blind"', b'"made":"synthetic"', 3))
    assert run(folder, "--gold", gold, "--out", folder.parent / "x.md") == 0
    shown, said = capsys.readouterr()
    assert shown.startswith("! groundedness: 3 of 35 gold grades were not given blind (3 synthetic)")
    assert "not given blind" not in said
    assert said.endswith(f"the corrected leaderboard is in {folder.parent / 'x.md'}\n")
    assert "**Warning**: groundedness: 3 of 35" in (folder.parent / "x.md").read_text(encoding="utf-8")


@pytest.fixture
def parts(folder: Path) -> Path:
    """The gold split and sealed."""
    write_split(read_gold(folder.parent / "gold.jsonl"), 0.5, 1, folder.parent / "split")
    return folder.parent / "split"


def test_sealed_grades_are_no_gold(folder: Path, parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--gold", parts / "dev.jsonl", parts / "test.jsonl") == 2
    assert "sealed test grades: they are opened with --test" in capsys.readouterr().err
    assert read_ledger(parts / "seal.json") == ()


@pytest.mark.slow
def test_each_new_question_to_sealed_grades_is_on_record(folder: Path, parts: Path, capsys) -> None:
    def asked(*options: str) -> list[str]:
        assert run(folder, "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl", "--json", *options) == 0
        shown = json.loads(capsys.readouterr().out)
        assert sum(row["gold"] for row in shown["rows"]) == 35
        assert "seal" in shown
        return shown["cautions"]

    assert asked() == []
    assert asked() == []
    (caution,) = asked("--target", "topics")
    assert caution.startswith("the sealed test grades have been opened for 2 different questions")
    assert asked("--seal", str(parts / "seal.json")) == [caution]
    assert len(read_ledger(parts / "seal.json")) == 2


def pool_of(folder: Path, wanted: set[str]) -> None:
    """Leave only these responses in the pool of a judged folder."""
    for name in ("pool.jsonl", "judgments.jsonl"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["response_id"] in wanted]
        (folder / name).write_text("".join(kept), encoding="utf-8")


def test_a_smaller_pool_is_another_question_and_a_tiny_one_is_refused(folder: Path, parts: Path, capsys) -> None:
    held_out = [str(row.response_id) for row in read_gold(parts / "test.jsonl")]
    dev = {str(row.response_id) for row in read_gold(parts / "dev.jsonl")}
    asked = "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl"
    assert run(folder, *asked) == 0
    pool_of(folder, {*dev, *held_out[:11]})
    assert run(folder, *asked) == 0
    assert "opened for 2 different questions" in " ".join(capsys.readouterr().out.split())
    pool_of(folder, {*dev, *held_out[:1]})
    assert run(folder, *asked) == 2
    assert "this look compares 1 of the sealed grades" in capsys.readouterr().err
    assert [entry.compared for entry in read_ledger(parts / "seal.json")] == [
        {"groundedness": len(held_out)}, {"groundedness": 11}
    ]  # fmt: skip


def test_sealed_grades_that_cannot_be_used_stay_sealed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b',"inclusion_probability":0.5', b""))
    parts = folder.parent / "split"
    write_split(read_gold(gold), 0.5, 1, parts)
    assert run(folder, "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl") == 2
    said = capsys.readouterr().err
    assert (
        "35 problems of the gold, the sealed grades included (inclusion_probability); the seal was not opened" in said
    )
    assert read_ledger(parts / "seal.json") == ()


def test_dev_grades_alone_are_no_sample_of_the_pool(folder: Path, parts: Path, capsys) -> None:
    assert run(folder, "--gold", parts / "dev.jsonl") == 2
    assert "give both parts of the split (the test part with --test), or --target topics" in capsys.readouterr().err
    assert run(folder, "--gold", parts / "dev.jsonl", "--target", "topics", "--out", folder.parent / "x.md") == 0
    for text in (capsys.readouterr().out, (folder.parent / "x.md").read_text(encoding="utf-8")):
        assert "the gold is only the dev part of a split" in " ".join(text.split())


def test_a_run_of_a_jury_members_family_is_flagged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("judgments.jsonl", "failures.jsonl"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b'"litellm/m"', b'"jury/median"'))
    arguments = "--gold", folder.parent / "gold.jsonl", "--families", folder.parent / "families.tsv", "--json"
    assert run(folder, *arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert not any("SELF" in row["flags"] for row in shown["rows"])
    assert shown["cautions"] == [
        "groundedness: no manifest says who the jury's members are, so no run is flagged SELF"
    ]  # fmt: skip
    members = [
        {"judge": judge, "prompt": GROUNDEDNESS.prompt_id, "prompt_digest": GROUNDEDNESS.digest, "sample": 0}
        for judge in ("litellm/other", "litellm/m")
    ]
    configured = {"jury": {"aggregator": "median", "members": {"groundedness": members}}}
    (folder / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "configuration": configured}), encoding="utf-8")
    assert run(folder, *arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["run_id"] for row in shown["rows"] if "SELF" in row["flags"]] == [RUNS[0]]
    assert shown["cautions"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "x"], "needs --gold"),
        (["--target", "topics"], "needs --gold"),
        (["--fallback", "family"], "needs --gold"),
        (["--seal", "x"], "--seal names the seal of the grades in --test: give both"),
        (["--gold", "{gold}", "--seal", "x"], "--seal names the seal of the grades in --test: give both"),
        (["--gold", "{gold}", "--fallback", "family"], "needs --families"),
        (["--gold", "{gold}", "--criterion", "completeness/graded"], "no judgment under"),
        (["--criterion", "nonsense"], "nonsense"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, arguments: list[str], said: str, capsys) -> None:
    gold = str(folder.parent / "gold.jsonl")
    assert run(folder, *(argument.replace("{gold}", gold) for argument in arguments)) == 2
    assert said in capsys.readouterr().err


def test_gold_of_other_responses_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b'"R0', b'"R9'))
    assert run(folder, "--gold", gold) == 2
    assert "no grade of a pooled response under groundedness" in capsys.readouterr().err


def test_a_folder_without_judgments_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 2
    assert "expected an output folder of `judge run`" in capsys.readouterr().err


def test_a_folder_with_two_judgments_of_one_response_is_refused(folder: Path, capsys) -> None:
    file = folder / "judgments.jsonl"
    content = file.read_bytes()
    file.write_bytes(content + content.splitlines(keepends=True)[0])
    assert run(folder) == 2
    assert "two judgments of R00000 under groundedness/" in capsys.readouterr().err


def test_a_grade_off_its_scale_counts_in_no_mean(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "judgments.jsonl"
    first, *others = file.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = {**json.loads(first), "grade": 9}
    file.write_text("".join([json.dumps(changed) + "\n", *others]), encoding="utf-8")
    for more in ([], ["--gold", folder.parent / "gold.jsonl"]):
        assert run(folder, *more) == 2
        assert f"off_scale at {changed['turn_id']} {changed['response_id']}: $.grade: grade 9 under groundedness/" in (
            capsys.readouterr().err
        )


def test_a_changed_prompt_is_announced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "judgments.jsonl"
    file.write_bytes(file.read_bytes().replace(GROUNDEDNESS.digest.encode(), b"f" * 64, 1))
    assert run(folder) == 0
    assert "has changed since these judgments were made" in capsys.readouterr().err


@pytest.fixture
def lengths(folder: Path) -> Path:
    """The same folder with lengths: the best run's responses are over the limit by the English rule in 22 turns."""
    lines_of = [json.loads(line) for line in (folder / "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    for response in lines_of:
        by_best = response["runs"][0]["run_id"] == RUNS[0]
        long = by_best and response["turn_id"] not in {TURNS[0], TURNS[5]}
        response["tokens"] = {"bare": 250, "english": 251 if long else 250, "whitespace": 240, "cut": None}
    lines_of[0]["tokens"]["bare"] = 251
    text = "".join(json.dumps(line) + "\n" for line in lines_of)
    (folder / "pool.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_the_leaderboard_without_the_long_responses(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*options: object) -> dict[str, dict]:
        assert run(lengths, "--json", "--over-limit", "exclude", *options) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["over_limit"] == "exclude"
        return {"": shown, **{row["run_id"]: row for row in shown["rows"]}}

    english = rows("--token-rule", "english")
    assert (english[""]["rule"], english[""]["limit"]) == ("english", 250)
    first = english[RUNS[0]]
    # A turn without a response stays one that had to be answered.
    assert (first["turns"], first["n"], first["unanswered"]) == (24, 2, 22)
    assert (english["solid"]["n"], english["weak"]["missing"]) == (24, 1)
    bare = rows()
    assert (bare[""]["rule"], bare[RUNS[0]]["n"], bare[RUNS[0]]["unanswered"]) == ("bare", 23, 1)
    assert rows("--token-limit", 300)[RUNS[0]]["n"] == 24
    none = rows("--token-limit", 9)[RUNS[0]]
    assert (none["turns"], none["n"], none["unanswered"], none["mean"]["value"]) == (24, 0, 24, None)


def test_the_rule_and_the_limit_are_those_of_the_judging(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"schema": SCHEMA, "configuration": {"token_rule": {"rule": "english", "limit": 249}}}
    (lengths / "manifest.json").write_text(json.dumps(said), encoding="utf-8")
    assert run(lengths, "--over-limit", "exclude") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Without the 72 of 72 pooled responses of more than 249 tokens by the english rule." in told
    assert run(lengths, "--over-limit", "flag", "--out", lengths / "x.md") == 0
    note = "All judged responses, whatever their length (limit 249 tokens)."
    assert note in capsys.readouterr().out
    assert note in (lengths / "x.md").read_text(encoding="utf-8")


def test_all_rules_side_by_side(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lengths, "--token-sensitivity", "--out", lengths / "x.tsv") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    rows = table((lengths / "x.tsv").read_text(encoding="utf-8"))
    by_key = {(row["run_id"], row["rule"]): row for row in rows}
    assert len(rows) == 3 * 4
    assert [by_key["solid", rule]["n"] for rule in ("none", "bare", "english", "whitespace")] == ["24"] * 4
    own = [by_key["own\\x1b[31m|run", rule] for rule in ("none", "bare", "english", "whitespace")]
    assert [row["over_limit"] for row in own] == ["0", "1", "22", "0"]
    assert [row["n"] for row in own] == ["24", "23", "2", "24"]
    assert own[0]["rank"] == "1"
    assert own[0]["tau_b"] == ""
    assert own[3]["tau_b"] == "1.0000"
    assert run(lengths, "--token-sensitivity", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["rule"], one["runs"]) for one in found["agreements"]] == [
        ("bare", 3),
        ("english", 3),
        ("whitespace", 3),
    ]
    bounds = {rule: [view["bound"] for view in found["views"] if view["rule"] == rule] for rule in ("none", "english")}
    ranks = {rule: [view["rank"] for view in found["views"] if view["rule"] == rule] for rule in ("none", "english")}
    assert ranks["none"] == [1, 2, 3]
    assert ranks["english"] == [sorted(bounds["english"], reverse=True).index(bound) + 1 for bound in bounds["english"]]


def test_runs_that_are_left_without_a_grade_share_the_worst_bound(lengths: Path, capsys) -> None:
    assert run(lengths, "--token-sensitivity", "--token-limit", 245, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["tau_b"], one["runs"]) for one in found["agreements"]] == [(None, 3), (None, 3), (1.0, 3)]
    assert {(view["mean"], view["bound"], view["rank"]) for view in found["views"] if view["rule"] == "bare"} == {
        (None, 0.0, 1)
    }
    assert run(lengths, "--token-sensitivity", "--token-limit", 245, "--out", lengths / "x.md") == 0
    assert "fewer than 2 items" not in (lengths / "x.md").read_text(encoding="utf-8")


def test_what_was_excluded_before_the_judging_stays_out_and_is_counted(lengths: Path, capsys) -> None:
    assert run(lengths, "--token-sensitivity") == 0
    assert "Warning: 1 responses over the limit were never judged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--over-limit", "truncate", "--token-rule", "english"], "--over-limit truncate --token-rule english --out"),
        (["--over-limit", "exclude", "--gold", "x"], "--over-limit and --gold do not go together"),
        (["--token-sensitivity", "--gold", "x"], "--token-sensitivity and --gold do not go together"),
        (["--token-sensitivity", "--token-rule", "bare"], "shows every rule"),
        (["--token-rule", "bare"], "--token-rule needs --over-limit exclude, or --token-sensitivity"),
        (["--token-limit", "9"], "--token-limit needs"),
        (["--over-limit", "exclude", "--out", "folder"], "expected a file named .tsv or .md"),
    ],
)
def test_token_options_that_do_not_go_together(lengths: Path, arguments: list[str], said: str, capsys) -> None:
    assert run(lengths, *arguments) == 2
    assert said in capsys.readouterr().err
