"""`judge gold`: what it prints where, what it writes, and its exit codes."""

import json
from pathlib import Path

import pytest

from judge.cli import main
from judge.gold.plan import read_plan
from judge.gold.rows import read_gold
from judge.pool.bank import read_pool
from tests.calibration_world import jsonl, judgment
from tests.conftest import complaint, on_stderr, printed, put

PROJECT = Path(__file__).parent.parent.parent
EXAMPLE = PROJECT / "gold" / "example.gold.jsonl"
BEGIN = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"


@pytest.fixture
def begin(tmp_path: Path) -> Path:
    """Twelve responses of two models to six knowledge texts."""
    labels = ("Fully attributable", "Not fully attributable")
    rows = [f"m{n % 2}\twow\tK{n // 2}\thi\tanswer {n}\t{labels[n % 2]}\n" for n in range(12)]
    return put(tmp_path / "begin.tsv", BEGIN + "".join(rows))


def gold(*arguments: object) -> int:
    return main(["gold", *map(str, arguments)])


def row(**fields: object) -> str:
    base = {"turn_id": "1_1", "topic_id": "1", "criterion": "groundedness", "grade": 3, "assessor": "a"}
    return json.dumps({**base, "response_id": "R00000", "inclusion_probability": 1, **fields}) + "\n"


def test_sound_gold_is_silent_and_exits_0(tmp_path: Path, capsys) -> None:
    assert gold("check", put(tmp_path / "g.jsonl", row())) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        err == "1 file, 1 valid row: 0 errors, 0 warnings\nnot checked without --pool: not_in_pool, different_grades\n"
    )


def test_warnings_exit_0_and_errors_1(tmp_path: Path, capsys) -> None:
    assert gold("check", EXAMPLE) == 0
    assert f"{EXAMPLE}: warning not_blind 1-1_1 line 1: $.made: 153 rows are construction" in capsys.readouterr().out
    path = put(tmp_path / "g.jsonl", row(grade=7))
    assert printed(capsys, gold("check", path), 1) == (
        f"{path}: error off_scale 1_1 line 1: $.grade: 'groundedness' grade 7: expected one of 0, 1, 2, 3\n"
    )


def test_many_findings_of_one_code_are_counted_and_json_has_all(tmp_path: Path, capsys) -> None:
    path = put(tmp_path / "g.jsonl", "".join(row(grade=7, response_id=f"R{n}") for n in range(9)))
    lines = printed(capsys, gold("check", path), 1).splitlines()
    assert (len(lines), lines[-1]) == (6, f"{path}: error off_scale: 4 more (--all lists them)")
    problems = json.loads(printed(capsys, gold("check", path, "--json"), 1))
    assert [problem["path"] for problem in problems] == [f"line {n}: $.grade" for n in range(1, 10)]


def test_a_prompt_or_a_scale_may_be_given(tmp_path: Path, capsys) -> None:
    path = put(tmp_path / "g.jsonl", row(grade=2))
    assert "expected one of" in printed(capsys, gold("check", path, "--prompt", "groundedness/yes_no"), 1)
    assert gold("check", path, "--scale", "0-1", "--polarity", "higher") == 1
    path.write_text(row(grade=2, criterion="charm"), encoding="utf-8")
    assert "missing_polarity" in printed(capsys, gold("check", path), 1)
    assert gold("check", path, "--scale", "0-2", "--polarity", "lower") == 0
    with pytest.raises(SystemExit, match="2"):
        gold("check", path, "--scale", "3-0", "--polarity", "lower")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scale", "0-3"], "--scale and --polarity go together"),
        (["--polarity", "higher"], "--scale and --polarity go together"),
        (["--prompt", "groundedness", "--prompt", "groundedness/yes_no"], "gives groundedness two scales"),
        (["--prompt", "charm"], "no prompt called 'charm'"),
        (["--pool", "none"], "none: cannot be read"),
    ],
)
def test_a_check_that_cannot_be_made_exits_2(capsys, arguments: list[str], says: str) -> None:
    assert gold("check", EXAMPLE, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_a_criterion_named_like_a_file_opens_no_file(tmp_path: Path, capsys) -> None:
    secret = put(tmp_path / "secret.md", "secret")
    assert gold("check", put(tmp_path / "g.jsonl", row(criterion=str(secret)))) == 1
    assert "missing_polarity" in capsys.readouterr().out


def test_hostile_text_cannot_drive_the_terminal(tmp_path: Path, capsys) -> None:
    gold("check", put(tmp_path / "g\x1b.jsonl", row(criterion="\x1b[2J\u202e", run_id="\x1b]0;")))
    said = "".join(capsys.readouterr())
    assert "missing_polarity" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_import_check_split_and_plan_go_together(begin: Path, tmp_path: Path, capsys) -> None:
    out, pool = tmp_path / "gold.jsonl", tmp_path / "pool"
    assert gold("import", "begin", begin, "--out", out, "--pool-out", pool, "--inclusion", "1") == 0
    assert f"{out}: 12 grades: 12 of groundedness" in capsys.readouterr().err
    assert {row.inclusion_probability for row in read_gold(out)} == {1.0}
    assert gold("check", out, "--pool", pool, "--prompt", "groundedness/yes_no") == 0
    assert capsys.readouterr().err == "1 file, 12 valid rows: 0 errors, 0 warnings\n"

    split = tmp_path / "split"
    said = on_stderr(capsys, gold("split", out, "--test", "0.5", "--seed", "1", "--out", split))
    assert "dev: 6 responses, 6 grades, 3 topics\ntest: 6 responses, 6 grades, 3 topics\n" in said
    assert f"publish {split / 'dev.jsonl'} and {split / 'seal.json'}" in said
    assert f"keep {split / 'test.jsonl'} and {split / 'test.salt'} to yourself" in said
    assert gold("check", split / "dev.jsonl", split / "test.jsonl", "--pool", pool) == 0

    plan = tmp_path / "plan.jsonl"
    drawn = ("plan", "--pool", pool, "--seed", "2", "--per-run", "2", "--out", plan)
    assert gold(*drawn, "--n", "6", "--criteria", "groundedness") == 0
    assert capsys.readouterr().err.endswith(f"{plan}: 6 of 12 responses, 6 of 12 turns\n")
    table = tmp_path / "graded.csv"
    lines = [f"{one.turn_id},{one.response_id},1" for one in read_plan(plan.read_bytes(), "p")]
    table.write_text("\n".join(["turn_id,response_id,grade", *lines]), encoding="utf-8")
    graded = tmp_path / "graded.jsonl"
    constants = ("--criterion", "groundedness", "--constant", "assessor=ann")
    assert gold("import", "csv", table, "--out", graded, "--plan", plan, *constants, "--made", "blind") == 0
    assert "taken as given blind" not in capsys.readouterr().err
    assert gold("import", "csv", table, "--out", graded, "--plan", plan, *constants) == 0
    assert "taken as given blind; --made says otherwise\n" in capsys.readouterr().err
    rows = read_gold(graded)
    assert [row.inclusion_probability for row in rows] == pytest.approx([0.5] * 6)
    assert {(row.assessor, row.stratum) for row in rows} == {("ann", "drawn")}

    left = (*drawn[:-1], tmp_path / "next.jsonl", "--gold", graded, "--criteria", "groundedness", "--n", "6")
    said = on_stderr(capsys, gold(*left))
    assert "6 of 6 responses, 6 of 6 turns" in said
    assert "6 responses have grades already; together with this plan the inclusion probability of each is 1" in said


def test_bad_input_is_listed_and_nothing_is_written(begin: Path, tmp_path: Path, capsys) -> None:
    begin.write_text(BEGIN + "a\tb\tc\td\te\tno\n" + "a\tb\n", encoding="utf-8")
    out, pool = tmp_path / "gold.jsonl", tmp_path / "pool"
    said = complaint(capsys, gold("import", "begin", begin, "--out", out, "--pool-out", pool))
    assert f"{begin}: wrong_value at line 2: begin_label 'no'" in said
    assert f"{begin}: wrong_columns at line 3: 2 cells" in said
    assert not out.exists()
    assert not pool.exists()


def test_a_pool_that_is_there_is_not_written_over(begin: Path, tmp_path: Path, capsys) -> None:
    pool = tmp_path / "pool"
    put(pool / "pool.jsonl", b"other\n")
    assert gold("import", "begin", begin, "--out", tmp_path / "g", "--pool-out", pool) == 2
    assert "holds another pool" in capsys.readouterr().err
    assert (pool / "pool.jsonl").read_bytes() == b"other\n"
    assert not (tmp_path / "g").exists()


def test_a_plan_that_is_there_is_not_written_over(begin: Path, tmp_path: Path, capsys) -> None:
    gold("import", "begin", begin, "--out", tmp_path / "g", "--pool-out", tmp_path / "pool")
    arguments = ("plan", "--pool", tmp_path / "pool", "--per-run", 1, "--out", tmp_path / "plan", "--n", 6, "--seed")
    assert gold(*arguments, "1") == 0
    before = (tmp_path / "plan").read_bytes()
    assert gold(*arguments, "1") == 0
    assert "holds another plan" in complaint(capsys, gold(*arguments, "2"))
    assert (tmp_path / "plan").read_bytes() == before


def judged_draw(begin: Path, folder: Path, shares: tuple[float, float]) -> list[object]:
    """A plan of 6 of the twelve responses, which a judge gave 1 with these probabilities by turns."""
    pool, path = folder / "pool", folder / "judgments.jsonl"
    gold("import", "begin", begin, "--out", folder / "g", "--pool-out", pool)
    responses = read_pool((pool / "pool.jsonl").read_bytes(), b"", "p").responses
    given = [
        judgment(each.turn_id, each.response_id, 1, "b/m", "groundedness/yes_no", probabilities={"yes": p, "no": 1 - p})
        for number, each in enumerate(responses)
        for p in [shares[number // 2 % 2]]
    ]
    path.write_bytes(jsonl(given))
    draw = ["--n", 6, "--seed", 0, "--per-run", 1, "--out", folder / "plan.jsonl"]
    return ["plan", "--pool", pool, "--judgments", path, *draw]


@pytest.mark.parametrize(("shares", "alike"), [((0.5, 1.0), False), ((1.0, 1.0), True)])
def test_judgments_give_a_plan_its_criteria_and_probabilities(begin, tmp_path, capsys, shares, alike) -> None:
    assert gold(*judged_draw(begin, tmp_path, shares)) == 0
    rows = read_plan((tmp_path / "plan.jsonl").read_bytes(), "p")
    assert {row.criteria for row in rows} == {("groundedness",)}
    assert (len({row.inclusion_probability for row in rows}) == 1) is alike
    assert ("the judgments do not distinguish the turns" in capsys.readouterr().err) is alike


DRAW = ("--pool", "f", "--n", "5", "--seed", "1", "--out", "o")
YES_NO = "b/m\tgroundedness/yes_no\tgroundedness\t"


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (None, "without --confusion no saving is predicted: each grade has its share"),
        (f"{YES_NO}0\t1\t5\n{YES_NO}1\t1\t5\nc\t\tgroundedness\t0\t0\t9\n", "0% fewer labels than responses drawn"),
        (f"{YES_NO}0\t1\t5.5\n", "line 2: $: '0 1 5.5': expected two grades and a number of labels"),
        (f"{YES_NO}0\t1\t-5\n", "expected two grades and a number of labels"),
        ("a\t\tgroundedness\t0\t0\t9\nc\t\tgroundedness\t0\t0\t9\n", "0 judges of these judgments under groundedness"),
    ],
)  # fmt: skip
def test_a_plan_by_grade_says_what_it_saves(begin, tmp_path, capsys, counts, says) -> None:
    table = put(tmp_path / "c.tsv", f"judge\tprompt\tcriterion\thuman\tjudge_grade\tcount\n{counts}")
    confusion = ["--confusion", table] if counts else []
    code = gold(*judged_draw(begin, tmp_path, (0.5, 0.5)), "--stratify", "judge", *confusion)
    assert says in capsys.readouterr().err
    assert code == (0 if counts is None or "fewer" in says else 2)
    assert code or {row.stratum for row in read_plan((tmp_path / "plan.jsonl").read_bytes(), "p")} == {"grade 1"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["import", "csv", "f.csv", "--out", "f.csv"], "would be written over what it is made of"),
        (["import", "csv", "f", "--out", "o", "--inclusion", "1", "--plan", "p"], "--inclusion and --plan: give one"),
        (
            ["import", "csv", "f", "--out", "o", "--criterion", "c", "--constant", "criterion=d"],
            "given twice: criterion",
        ),
        (["import", "csv", "f", "--out", "o"], "cannot be read"),
        (["split", "f", "--test", "0.5", "--seed", "1", "--out", "o"], "cannot be read"),
        (["split", str(EXAMPLE), "--test", "1", "--seed", "1", "--out", "o"], "between 0 and 1"),
        (["plan", *DRAW], "cannot be read"),
        (["plan", *DRAW, "--stratify", "judge"], "--stratify judge: by whose grades? Give --judgments"),
        (["plan", *DRAW, "--confusion", "c"], "--confusion: without effect here: turns are drawn without --stratify"),
    ],
)
def test_what_cannot_be_done_exits_2_with_a_message(tmp_path, monkeypatch, capsys, arguments, says) -> None:
    monkeypatch.chdir(tmp_path)
    err = complaint(capsys, gold(*arguments))
    assert err.startswith("judge: ")
    assert says in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\x00" * 9, b"[" * 100_000, b"\x1f\x8bx", b"\r\n\r\n"])
def test_bytes_of_any_kind_end_in_a_message(tmp_path: Path, capsys, content: bytes) -> None:
    path = put(tmp_path / "f", content)
    assert gold("check", path) in (1, 2)
    assert gold("split", path, "--test", "0.5", "--seed", "1", "--out", tmp_path / "s") == 2
    assert gold("plan", "--pool", path, "--n", "5", "--seed", "1", "--out", tmp_path / "p") == 2
    for source in ("begin", "cast-regin", "crowd", "csv", "qrels"):
        assert gold("import", source, path, "--out", tmp_path / "o") == 2
        assert gold("import", source, EXAMPLE, "--out", tmp_path / "o", "--bank", path) == 2
        assert gold("import", source, EXAMPLE, "--out", tmp_path / "o", "--plan", path) == 2
    assert [one.name for one in tmp_path.iterdir()] == ["f"]
    assert "Traceback" not in capsys.readouterr().err


def test_import_takes_what_other_tools_call_a_criterion(tmp_path: Path, capsys) -> None:
    table = put(
        tmp_path / "g.csv",
        "turn_id,response_id,grade,criterion\n1_1,R0,2,Faithfulness\n1_2,R1,1,answer relevancy\n"
        "1_3,R2,0,Faithfulness\n",
    )
    out = tmp_path / "gold.jsonl"
    assert gold("import", "csv", table, "--assessor", "ann", "--out", out) == 0
    assert [row.criterion for row in read_gold(out)] == ["groundedness", "relevance", "groundedness"]
    said = capsys.readouterr().err
    assert said.count("Faithfulness is called groundedness here") == 1
    assert said.count("answer relevancy is called relevance here") == 1
    plain = put(tmp_path / "h.csv", "turn_id,response_id,grade\n1_1,R0,1\n")
    given = ("import", "csv", plain, "--assessor", "ann", "--out", out, "--criterion")
    assert gold(*given, "helpfulness") == 0
    assert [row.criterion for row in read_gold(out)] == ["usefulness"]
    assert capsys.readouterr().err.count("helpfulness is called usefulness here") == 1
    # A high grade of hallucination is a bad one.
    said = complaint(capsys, gold(*given, "hallucination"))
    assert "line 2: $.criterion: 'hallucination' is the opposite of groundedness: turn the grades around" in said


def test_import_leaves_the_name_of_a_prompt_that_is_named(tmp_path: Path, capsys) -> None:
    text = (PROJECT / "prompts/groundedness/yes_no.md").read_text("utf-8")
    prompt = put(tmp_path / "own.md", text.replace('criterion = "groundedness"', 'criterion = "faithfulness"'))
    plain = put(tmp_path / "h.csv", "turn_id,response_id,grade\n1_1,R0,1\n")
    out = tmp_path / "gold.jsonl"
    given = ("--assessor", "ann", "--criterion", "faithfulness", "--prompt", prompt, "--out", out)
    assert gold("import", "csv", plain, *given) == 0
    assert [row.criterion for row in read_gold(out)] == ["faithfulness"]
    assert "is called" not in capsys.readouterr().err
