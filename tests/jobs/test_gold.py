"""Gold as jobs: what they find and write is what `judge gold` finds and writes."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold import read_seal
from judge.jobs.gold import (
    GoldCheckPlan,
    GoldDrawPlan,
    GoldImportPlan,
    GoldSplitPlan,
    check_gold_files,
    draw_gold_plan,
    import_gold_files,
    split_gold_file,
)

PROJECT = Path(__file__).parent.parent.parent
EXAMPLE = str(PROJECT / "gold" / "example.gold.jsonl")
BEGIN = (
    "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"
    "m\twow\tK\thi\tone\tFully attributable\n"
    "n\twow\tK\thi\ttwo\tGeneric\n"
)


@pytest.fixture
def begin(tmp_path: Path) -> str:
    path = tmp_path / "begin.tsv"
    path.write_text(BEGIN, encoding="utf-8")
    return str(path)


def test_a_check_finds_what_the_command_lists(pooled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check_gold_files(GoldCheckPlan(files=[EXAMPLE], pool=pooled))
    assert main(["gold", "check", EXAMPLE, "--pool", str(pooled), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(msgspec.json.encode(checked.problems))
    assert (len(checked.rows), checked.unmatched) == (153, 0)
    assert [problem.code for problem in checked.problems] == ["not_blind"]
    wrong = check_gold_files(GoldCheckPlan(files=[EXAMPLE], scale=(0, 1), polarity="higher"))
    assert "off_scale" in {problem.code for problem in wrong.problems}
    with pytest.raises(UsageError, match="--scale and --polarity go together"):
        check_gold_files(GoldCheckPlan(files=[EXAMPLE], scale=(0, 1)))


def test_an_import_writes_what_the_command_writes(begin: str, tmp_path: Path) -> None:
    imported = import_gold_files(
        GoldImportPlan(
            source="begin",
            files=[begin],
            out=str(tmp_path / "job.jsonl"),
            pool_out=str(tmp_path / "job"),
            assessor="ann",
            inclusion=0.5,
            constants={"stratum": "s"},
            generic_as_zero=True,
        )
    )
    out = ["--out", str(tmp_path / "command.jsonl"), "--pool-out", str(tmp_path / "command")]
    given = ["--assessor", "ann", "--inclusion", "0.5", "--constant", "stratum=s", "--generic-as-zero"]
    assert main(["gold", "import", "begin", begin, *out, *given]) == 0
    for name in ("{}.jsonl", "{}/pool.jsonl", "{}/passages.jsonl"):
        job, command = tmp_path / name.format("job"), tmp_path / name.format("command")
        assert job.read_bytes() == command.read_bytes()
    assert [(row.grade, row.assessor, row.inclusion_probability, row.stratum) for row in imported.rows] == [
        (1, "ann", 0.5, "s"),
        (0, "ann", 0.5, "s"),
    ]


def test_a_table_is_imported_by_its_columns_with_the_texts_of_a_bank(tmp_path: Path) -> None:
    table, bank = tmp_path / "table.csv", tmp_path / "bank.json"
    table.write_text("turn,id,score\n1_1,R1,2\n", encoding="utf-8")
    bank.write_text('{"R1": "One."}', encoding="utf-8")
    columns = {"turn_id": "turn", "response_id": "id", "grade": "score"}
    (row,) = import_gold_files(
        GoldImportPlan(
            source="csv",
            files=[str(table)],
            out=str(tmp_path / "job"),
            bank=str(bank),
            criterion="charm",
            assessor="ann",
            columns=columns,
        )
    ).rows
    assert (row.turn_id, row.response_id, row.grade) == ("1_1", "R1", 2)
    assert row.text_sha256 == hashlib.sha256(b"One.").hexdigest()
    given = ["--bank", str(bank), "--criterion", "charm", "--assessor", "ann"]
    given += [word for field, column in columns.items() for word in ("--column", f"{field}={column}")]
    assert main(["gold", "import", "csv", str(table), "--out", str(tmp_path / "command"), *given]) == 0
    assert (tmp_path / "job").read_bytes() == (tmp_path / "command").read_bytes()


def test_an_import_replaces_neither_its_input_nor_another_pool(begin: str, pooled: Path, tmp_path: Path) -> None:
    def refused(error: type[Exception], message: str, **fields: object) -> None:
        plan = {"source": "begin", "files": [begin], "out": str(tmp_path / "out"), **fields}
        with pytest.raises(error, match=message):
            import_gold_files(GoldImportPlan(**plan))

    before = (pooled / "pool.jsonl").read_bytes()
    refused(InputError, "holds another pool", pool_out=pooled)
    refused(UsageError, "would be written over what it is made of", out=begin)
    refused(UsageError, "invalid choice: 'nist'", source="nist")
    refused(UsageError, "given twice: criterion", criterion="c", constants={"criterion": "d"})
    refused(UsageError, "x is given twice", constants=["x=1", "x=1"])
    assert (pooled / "pool.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["begin.tsv"]


def test_a_split_is_that_of_the_command(tmp_path: Path) -> None:
    seal = split_gold_file(GoldSplitPlan(file=EXAMPLE, share=0.5, seed=3, out=str(tmp_path / "job")))
    arguments = ["gold", "split", EXAMPLE, "--test", "0.5", "--seed", "3", "--out", str(tmp_path / "command")]
    assert main(arguments) == 0
    # The salt, and with it the seal's digests, is drawn anew.
    for name in ("dev.jsonl", "test.jsonl"):
        assert (tmp_path / "job" / name).read_bytes() == (tmp_path / "command" / name).read_bytes()
    assert seal.dev.rows + seal.test.rows == 153
    assert read_seal(tmp_path / "job" / "seal.json") == seal


def test_a_plan_is_that_of_the_command_and_replaces_no_other(pooled: Path, tmp_path: Path) -> None:
    def drawn(seed: int) -> None:
        plan = draw_gold_plan(GoldDrawPlan(pool=pooled, n=40, per_run=2, seed=seed, out=str(tmp_path / "job")))
        assert (plan.frame, plan.frame_turns, plan.graded) == (77, 16, 0)
        assert len(plan.rows) == len((tmp_path / "job").read_bytes().splitlines())

    drawn(1)
    options = ["--n", "40", "--per-run", "2", "--seed", "1", "--out", str(tmp_path / "command")]
    assert main(["gold", "plan", "--pool", str(pooled), *options]) == 0
    before = (tmp_path / "command").read_bytes()
    assert (tmp_path / "job").read_bytes() == before
    with pytest.raises(UsageError, match="too few for 10 responses of every run"):
        draw_gold_plan(GoldDrawPlan(pool=pooled, n=40, seed=1, out=tmp_path / "other"))
    with pytest.raises(InputError, match="holds another plan"):
        drawn(2)
    drawn(1)
    assert (tmp_path / "job").read_bytes() == before
