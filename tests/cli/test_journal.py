"""`judge journal`, and what the commands that ask a judge say about journals and prices."""

import json
import sqlite3
from pathlib import Path

import pytest

from judge.cli import main
from judge.judges.journal import Journal
from judge.judges.journal_tools import verify_journal
from tests.conftest import PROJECT, complaint, manifest, printed, run_example

EXAMPLE = PROJECT / "examples"
CALLS = 76
"""77 pooled responses, one of which lacks a passage."""


def run(out: Path, *more: str) -> int:
    return run_example(out, "--criteria", "groundedness", *more)


OVERLAP = ("--model", "baseline/overlap")


def damage(journal: Path) -> str:
    """Change a grade in the journal, and say under which digest."""
    connection = sqlite3.connect(journal)
    row = connection.execute(
        'SELECT digest, completion FROM completion WHERE completion LIKE \'%"text":"0%\''
    ).fetchone()
    connection.execute(
        "UPDATE completion SET completion = ? WHERE digest = ?", (row[1].replace('"text":"0', '"text":"2', 1), row[0])
    )
    connection.commit()
    connection.close()
    return str(row[0])


def test_a_hyphen_is_standard_output(out: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with Journal(out / "journal.sqlite") as journal:
        journal.add_fact("read", "grade", "baseline/overlap")
    lines = printed(capsys, main(["journal", "export", str(out)]))
    *calls, about_judges = lines.splitlines()
    assert len(calls) == CALLS
    assert json.loads(about_judges).keys() == {"facts"}
    assert printed(capsys, main(["journal", "export", str(out), "-o", "-"])) == lines
    assert not Path("-").exists()


def test_a_changed_grade_is_noticed_and_the_way_out_works(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = out / "journal.sqlite"
    before = (out / "judgments.jsonl").read_bytes()
    assert main(["journal", "verify", str(out)]) == 0
    assert capsys.readouterr().out == f"sound               {CALLS}\nproblems            0\n"
    digest = damage(journal)
    said = complaint(capsys, run(out, *OVERLAP))
    assert f"{journal}: damaged at the completion {digest}: its content is not what was recorded" in said
    assert f"judge journal salvage {journal} -o NEW" in said
    assert (out / "judgments.jsonl").read_bytes() == before
    assert main(["journal", "verify", str(journal)]) == 1
    said = capsys.readouterr()
    assert f"problems            1\n  {digest}: its content is not what was recorded\n" in said.out
    assert f"`judge journal salvage {journal} -o NEW` keeps what is sound" in said.err
    new = out.parent / "new.sqlite"
    assert main(["journal", "salvage", str(out), "-o", str(new)]) == 1
    assert f"sound               {CALLS - 1}\n" in capsys.readouterr().out
    new.replace(journal)
    assert run(out, *OVERLAP) == 0
    assert (out / "judgments.jsonl").read_bytes() == before
    assert verify_journal(journal).sound == CALLS


def test_a_log_must_not_stay_beside_a_new_journal(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SQLite would play the log of the old journal into the new one."""
    log = out / "journal.sqlite-wal"
    for number, told in enumerate((False, True)):
        if told:
            log.write_bytes(b"")
        assert main(["journal", "salvage", str(out), "-o", str(out.parent / f"new-{number}.sqlite")]) == 0
        assert (f"remove {log} too" in capsys.readouterr().err) is told


def test_a_journal_that_is_not_there_is_a_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = complaint(capsys, main(["journal", "verify", str(tmp_path)]))
    assert f"{tmp_path / 'journal.sqlite'}: no such journal" in told


# ---------------------------------------------------------------- prices and dry runs


def counted(shown: str) -> dict[str, int]:
    """The counts of a dry run, by their labels."""
    labels = {"judgments", "from the journal", "without evidence", "by a shared call", "beyond the limit",
              "calls to be made"}  # fmt: skip
    lines = ((line[:20].strip(), line[20:].split()) for line in shown.splitlines())
    return {label: int(values[0]) for label, values in lines if label in labels}


@pytest.mark.parametrize(
    "more", [(), ("--limit", "10"), ("--jury", "majority", "--model", "server/b", "--samples", "3")]
)
def test_a_dry_run_explains_every_judgment(out: Path, capsys, more: tuple[str, ...]) -> None:
    options = ["--model", "server/a", "--base-url", "http://localhost:1", "--criteria", "groundedness", "naturalness"]
    shown = printed(capsys, run(out.parent / "new", *options, *more, "--dry-run"))
    counts = counted(shown)
    judgments, calls = counts.pop("judgments"), counts.pop("calls to be made")
    assert len(counts) == 4
    assert judgments - sum(counts.values()) == calls
    factors = 2 * 3 if "--jury" in more else 1
    assert judgments == 77 * 2 * factors
    assert f"judgments           {judgments} = 77 responses × 2 prompts × " in shown
    assert counts["beyond the limit"] == (2 * 77 - 2 * 10 if "--limit" in more else 0)


def test_a_dry_run_counts_what_the_journal_has(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert counted(printed(capsys, run(out, *OVERLAP, "--dry-run"))) == {
        "judgments": 77, "from the journal": CALLS, "without evidence": 1, "by a shared call": 0,
        "beyond the limit": 0, "calls to be made": 0,
    }  # fmt: skip


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"])
def test_a_dry_run_needs_no_key(model: str, tmp_path, monkeypatch, capsys) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "needs a key" in complaint(capsys, run(tmp_path / "out", "--model", model))
    shown = printed(capsys, run(tmp_path / "out", "--model", model, "--dry-run"))
    assert f"calls to be made    {CALLS}" in shown
    assert "cost                about $" in shown
    assert not (tmp_path / "out").exists()


SERVER = ("--model", "server/a", "--base-url", "http://localhost:1")


@pytest.mark.parametrize(
    ("prices", "tokens_in", "tokens_out"),
    [
        (["--price", "100/1000"], 100, 1000),
        (["--price", "server/a=100/1000"], 100, 1000),
        (["--price", "1/1", "--price", "server/a=100/1000"], 100, 1000),
    ],
)
def test_a_price_of_the_user_makes_the_cost_known(tmp_path, capsys, prices, tokens_in, tokens_out) -> None:
    told = " ".join(printed(capsys, run(tmp_path / "out", *SERVER, "--dry-run")).split())
    assert "unknown: no price for server/a here (--price IN/OUT or a file (--prices) gives one)" in told
    assert run(tmp_path / "out", *SERVER, "--dry-run", "--max-cost", "1") == 2
    assert "the price of server/a is not known here" in capsys.readouterr().err
    shown = printed(capsys, run(tmp_path / "out", *SERVER, "--dry-run", "--max-cost", "1", *prices))
    tokens = int(shown.partition("prompt tokens       about ")[2].split()[0].replace(",", ""))
    assert f"reply tokens        about {CALLS * 150:,}\n" in shown
    typical = (tokens * tokens_in + CALLS * 150 * tokens_out) / 1e6
    most = (tokens * tokens_in + CALLS * 1024 * tokens_out) / 1e6
    assert f"cost                about ${typical:.2f}, at most ${most:.2f}\n" in shown
    assert "estimated by        4 bytes a token and 150 tokens a reply, our own guess" in shown


@pytest.mark.parametrize("price", ["1", "1/2/3/4", "1//3", "a/b", "-1/2", "1/nan", "=1/2", "server/a=", ""])
def test_what_is_no_price_is_refused(tmp_path: Path, price: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", *SERVER, "--dry-run", f"--price={price}")
    assert "argument --price" in capsys.readouterr().err


def test_prices_stand_in_the_manifest_and_change_no_configuration(out: Path) -> None:
    before = manifest(out)
    assert before["prices"] == {"baseline/overlap": {"in": 0.0, "out": 0.0}}
    assert run(out, *OVERLAP, "--price", "0.4/1.6") == 0
    after = manifest(out)
    assert after["prices"] == {"baseline/overlap": {"in": 0.4, "out": 1.6}}
    assert after["configuration"] == before["configuration"]
    assert run(out, *OVERLAP, "--price", "0.4/0.1/1.6") == 0
    assert manifest(out)["prices"] == {"baseline/overlap": {"in": 0.4, "cached": 0.1, "out": 1.6}}
