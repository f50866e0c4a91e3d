"""Judging of dialogues from files to files: pool, gold, calibration, run, correction, report and release."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from judge.cli.tables import print_problems
from judge.errors import UsageError
from judge.jobs import gold as gold_jobs
from judge.jobs.calibration import calibrate_judges
from judge.jobs.calibration.inputs import CalibrationPlan
from judge.jobs.folder import write_pool
from judge.jobs.pooling import Pooling, pool_runs
from judge.jobs.run_inputs import Plan, RunInputs
from judge.pool.bank import read_pool_folder
from judge.records import JudgedUnit
from tests.conftest import PROJECT, annex, run_here
from tests.mock import start_mock

EXAMPLE = PROJECT / "examples"
RUNS = {"runs": [EXAMPLE / "runs", EXAMPLE / "interactive"], "topics": EXAMPLE / "topics.json"}
OVERLAP = "baseline/overlap"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dialogues") / "pool"
    write_pool(out, pool_runs(Pooling(unit="dialogue", depth=1, screen="off", thresholds={}, **RUNS)))
    return out


@pytest.fixture(scope="module")
def of_responses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("responses") / "pool"
    write_pool(out, pool_runs(Pooling(runs=EXAMPLE / "interactive")))
    return out


def test_the_example_has_a_dialogue_for_each_run_and_topic(pool: Path) -> None:
    dialogues = read_pool_folder(pool, "runs.jsonl", "excluded.tsv")
    entries = Counter(entry.run_id for response in dialogues.responses for entry in response.runs)
    # Seven runs answered three topics each; the two interactive ones reached two.
    assert sorted(entries.values()) == [2, 2, 3, 3, 3, 3, 3, 3, 3]
    assert all(run.turns is not None and len(run.turns) == 3 for run in dialogues.runs)
    assert json.loads((pool / "manifest.json").read_bytes())["configuration"]["pooling"]["unit"] == "dialogue"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"depth": 2}, "--depth"),
        ({"over_limit": "exclude", "screen": "exclude"}, "--over-limit, --screen"),
        ({"passages": [EXAMPLE / "passages.jsonl"], "missing_passages": "fail"}, "--passages, --missing-passages"),
    ],
    ids=str,
)
def test_what_is_about_single_responses_is_refused_by_name(options: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named}: without effect here: about single responses and their passages"):
        pool_runs(Pooling(**RUNS, unit="dialogue", **options))


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("response", "; responses with errors are not judged"),
        ("dialogue", "; a response with an error was said all the same, so it stands in its dialogue"),
    ],
)
def test_the_terminal_says_what_becomes_of_errors(
    unit: JudgedUnit, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_problems(pool_runs(Pooling(unit=unit, **RUNS)), checked_topics=True)
    assert capsys.readouterr().err.endswith(f"lists every problem{told}\n")


def test_a_run_is_about_one_unit() -> None:
    with pytest.raises(UsageError, match="judge dialogues and responses into a folder each"):
        RunInputs(Plan(**RUNS, criteria=["usefulness", "groundedness"], model=OVERLAP))
    with pytest.raises(UsageError, match="usefulness/graded: about dialogues, but responses are judged here"):
        RunInputs(Plan(**RUNS, criteria=["usefulness"], unit="response", model=OVERLAP))
    with pytest.raises(UsageError, match="unit: invalid choice: 'dialog'"):
        pool_runs(Pooling(unit="dialog", **RUNS))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not usefulness/graded, which is about dialogues"):
        RunInputs(Plan(**RUNS, criteria=["usefulness"], model=OVERLAP))


def test_dialogues_of_other_runs_need_topics() -> None:
    with pytest.raises(UsageError, match="'harbor-grounded': dialogues need a topics file"):
        pool_runs(Pooling(runs=EXAMPLE / "runs" / "harbor-grounded.json", unit="dialogue"))


def test_a_pool_is_extended_by_its_own_unit(pool: Path, of_responses: Path) -> None:
    with pytest.raises(UsageError, match="a pool of dialogues, to which no responses are added"):
        pool_runs(Pooling(**RUNS, extend=pool))
    with pytest.raises(UsageError, match="a pool of responses, to which no dialogues are added"):
        pool_runs(Pooling(runs=EXAMPLE / "interactive", extend=of_responses, unit="dialogue"))


ROW = {"topic_id": "1-1", "criterion": "usefulness", "grade": 2, "assessor": "ann"}


def test_every_reader_of_a_pool_refuses_prompts_of_the_other_unit(
    pool: Path, of_responses: Path, tmp_path: Path
) -> None:
    probe, questions = map(annex, ("probe.job", "nuggets.questions"))
    first = read_pool_folder(of_responses).responses[0]
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps(ROW | {"turn_id": first.turn_id, "response_id": first.response_id}) + "\n")
    asked = {"models": ["server/m"], "base_url": "http://127.0.0.1:9/v1"}
    for refused in (
        lambda: gold_jobs.check_gold_files(gold_jobs.GoldCheckPlan(files=[gold], pool=of_responses)),
        lambda: gold_jobs.draw_gold_plan(
            gold_jobs.GoldDrawPlan(pool=of_responses, n=4, seed=1, criteria=["usefulness"], out=tmp_path / "plan.jsonl")
        ),
        lambda: gold_jobs.write_gold_sheet(
            gold_jobs.GoldSheetPlan(pool=of_responses, to="csv", prompts=["usefulness"], out=tmp_path / "sheet")
        ),
        lambda: probe.ProbeInputs(
            probe.ProbePlan(folder=of_responses, criteria=["usefulness"], out=tmp_path / "probe", **asked)
        ),
        lambda: calibrate_judges(
            CalibrationPlan(gold=[gold], pool=of_responses, prompts=["usefulness"], out=tmp_path / "cal", **asked)
        ),
    ):
        with pytest.raises(UsageError, match=r"^usefulness/graded: about dialogues, but responses are judged here$"):
            refused()
    # One file may hold the gold of both units.
    both = tmp_path / "both.jsonl"
    grounded = ROW | {"criterion": "groundedness", "turn_id": first.turn_id, "response_id": first.response_id}
    both.write_bytes(gold.read_bytes() + json.dumps(grounded).encode() + b"\n")
    assert len(gold_jobs.check_gold_files(gold_jobs.GoldCheckPlan(files=[both], pool=of_responses)).rows) == 2
    with pytest.raises(UsageError, match=r"^nugget/graded: about responses, but dialogues are judged here$"):
        questions.QuestionInputs(
            questions.NuggetMatchPlan(
                pool=pool, bank=EXAMPLE / "nuggets.jsonl", model=OVERLAP, out=tmp_path / "matches"
            )
        )
    with pytest.raises(UsageError, match="a pool of dialogues: name the criteria to label"):
        gold_jobs.draw_gold_plan(gold_jobs.GoldDrawPlan(pool=pool, n=9, seed=1, out=tmp_path / "plan.jsonl"))
    assert not (tmp_path / "plan.jsonl").exists()


def judge(*arguments: str | Path) -> str:
    done = run_here(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(path: Path, delimiter: str = "\t") -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(), delimiter=delimiter))


def fill(sheet: Path) -> dict[str, int]:
    """Grade every dialogue by its number of characters; the grades by response id."""
    given = {}
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        filled = list(csv.DictReader(file))
    for row in filled:
        row["assessor"], row["grade"] = "ann", str(len(row["conversation"]) % 4)
        given[row["response_id"]] = int(row["grade"])
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, filled[0])
        writer.writeheader()
        writer.writerows(filled)
    return given


@pytest.mark.long
def test_dialogues_go_the_whole_way_from_runs_to_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--runs", EXAMPLE / "runs", EXAMPLE / "interactive", "--topics", EXAMPLE / "topics.json"]
    judge("pool", "--unit", "dialogue", *given, "--out", "out")
    judge("gold", "plan", "--pool", "out", "--n", "25", "--seed", "1", "--criteria", "usefulness",
          "--out", "plan.jsonl")  # fmt: skip
    judge("gold", "sheet", "plan.jsonl", "--pool", "out", "--to", "csv", "--out", "sheet")
    assert "(no answer)" in (tmp_path / "sheet" / "sheet.csv").read_text(encoding="utf-8")
    grades = fill(tmp_path / "sheet" / "sheet.csv")
    judge("gold", "import", "csv", "sheet/sheet.csv", "--pool", "out", "--plan", "plan.jsonl",
          "--out", "gold.jsonl")  # fmt: skip
    judge("gold", "check", "gold.jsonl", "--pool", "out")
    with start_mock() as mock:
        model = ["--model", "server/m", "--base-url", mock.base_url]
        judge("calibrate", "--gold", "gold.jsonl", "--pool", "out", "--prompt", "usefulness", *model,
              "--out", "cal")  # fmt: skip
        asked = mock.stats()["paid"]
        judge("run", *given, "--criteria", "usefulness", "coherence", *model, "--out", "out",
              "--certificate", "cal")  # fmt: skip
        # One judgment for each distinct dialogue and prompt.
        assert mock.stats()["paid"] - asked == 2 * len(grades) == 50
        sent = mock.last()[1]["messages"][1]["content"]
    assert sent.startswith(("<ptkb>\n", "<dialogue>\n[1] User: "))
    qrels = [line.split() for line in (tmp_path / "out/qrels/response_usefulness.llm.qrel").read_text().splitlines()]
    assert {topic for topic, *_ in qrels} == {"1-1", "2-1", "3-1"}
    assert len({response for _, _, response, _ in qrels}) == len(qrels) == len(grades)
    assert json.loads((tmp_path / "out/qrels/response_usefulness.llm.qrel.json").read_bytes())["unit"] == "dialogue"
    board = {row["run_id"]: row for row in rows(tmp_path / "out/leaderboard.tsv") if row["criterion"] == "usefulness"}
    assert {row["turns"] for row in board.values()} == {"3"}
    assert (board["plover-remembers"]["n"], board["plover-remembers"]["flags"]) == ("2", "UNREACHED")
    # With topics in the qrels, the share over them is that of the run's three topics.
    positive = sum(int(g) >= 2 for _, _, r, g in qrels if r in responses_of(tmp_path / "out", "harbor-grounded"))
    assert board["harbor-grounded"]["share_of_turns"] == f"{positive / 3:.4f}"
    assert not (tmp_path / "out" / "interactive.tsv").exists()
    judge("leaderboard", "out", "--gold", "gold.jsonl", "--criterion", "usefulness", "--out", "corrected")
    corrected = {row["run"]: row for row in rows(tmp_path / "corrected/corrected.tsv")}
    # Every dialogue has a grade by people, so the corrected mean is theirs.
    mine = [grades[response] for response in responses_of(tmp_path / "out", "harbor-grounded")]
    assert float(corrected["harbor-grounded"]["corrected"]) == pytest.approx(sum(mine) / 3, abs=1e-4)
    judge("report", "out", "--gold", "gold.jsonl")
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "25 dialogues of 9 runs on 3 topics" in report
    assert "so it stands in its dialogue" in report and "What has an error is not judged" not in report
    assert "<th" in report and "topics graded" in report and "good dialogues" in report
    for told in ("the worst grade for each topic without one", "the gold grades that the judge graded too"):
        assert told in report
    for table in ("out/leaderboard.md", "corrected/corrected.md"):
        told = (tmp_path / table).read_text(encoding="utf-8")
        assert not re.search(r"\b([Tt]urns?|[Rr]esponses?)\b(?! runs)", told), table
    judge("release", "out", "--out", "bundle")
    assert (tmp_path / "bundle/qrels/response_usefulness.llm.qrel").read_bytes() == (
        tmp_path / "out/qrels/response_usefulness.llm.qrel"
    ).read_bytes()
    page = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    assert (
        "9 runs, 25 pooled dialogues; judged by server/m" in page and "id of the topic, 0, id of the dialogue" in page
    )
    for listed in (page, (tmp_path / "out/index.md").read_text(encoding="utf-8")):
        assert "why topics have no grade" in listed and "`turns.jsonl` | the turns of the dialogues: what" in listed
        assert "interactive runs" not in listed and not re.search(r"\bresponses?\b", listed)
    assert (tmp_path / "bundle/turns.jsonl").read_bytes() == (tmp_path / "out/turns.jsonl").read_bytes()
    judge("evaluate", "responses", "out", "--qrels", "out/qrels/response_usefulness.llm.qrel",
          "--criterion", "usefulness")  # fmt: skip
    # Qrels are by topic, and find their dialogues where the pool is given.
    compared = judge("calibrate", "--gold", "gold.jsonl", "--judgments", f"out/qrels/{QRELS}",
                     "--criterion", "usefulness", "--pool", "out")  # fmt: skip
    assert f"{QRELS.removesuffix('.qrel')} on all grades, " in compared
    (tmp_path / "people.qrel").write_text("".join(f"{t} 0 {r} {g}\n" for t, _, r, g in qrels))
    judge("gold", "import", "qrels", "people.qrel", "--pool", "out", "--criterion", "usefulness",
          "--made", "blind", "--out", "people.jsonl")  # fmt: skip
    judge("gold", "check", "people.jsonl", "--pool", "out")


QRELS = "response_usefulness.llm.qrel"


def responses_of(out: Path, run_id: str) -> set[str]:
    lines = (out / "response_runs" / f"{run_id}.run").read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["1-1", "2-1", "3-1"]
    return {line.split()[2] for line in lines}
