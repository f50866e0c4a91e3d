"""Reports of real folders: what they hold, how they follow their results, what is refused."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page

import judge
from judge.ask.criteria import find_criterion
from judge.calibrate.report.folder import SCHEMA as FINDINGS_SCHEMA
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.io.files import sha256
from judge.io.folder import recorded
from judge.io.steps import Step
from judge.jobs.judged import read_judged
from judge.pool.bank import Lines, read_pool
from judge.pool.records import Pool
from judge.report import Said
from judge.report.folders import read_calibration
from judge.report.job import ReportPlan, write_report
from tests.browsing import NARROW, WIDE, faults, overflow, watch
from tests.calibration_world import contents
from tests.conftest import INPUTS, PROJECT, put

EXAMPLE = PROJECT / "examples"
GOLD = PROJECT / "gold" / "example.gold.jsonl"
OVERLAP = ["--criteria", "groundedness", "--model", "baseline/overlap"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the output folder `out` and the calibration `cal`."""
    place = tmp_path_factory.mktemp("made")
    assert main(["run", *INPUTS, *OVERLAP, "--out", str(place / "out")]) == 0
    gold = ["--gold", str(GOLD), "--gold-scale", "groundedness/graded"]
    prompts = ["--prompt", "groundedness/graded", "--prompt", "groundedness/yes_no", "--model", "baseline/overlap"]
    drawn = ["--replicates", "200", "--permutations", "200"]
    pool = ["--pool", str(place / "out")]
    assert main(["calibrate", *gold, *prompts, *pool, *drawn, "--out", str(place / "cal")]) in (0, 1)
    return place


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """A copy of the output folder, with the page that the run left."""
    return Path(shutil.copytree(made / "out", tmp_path / "out"))


def headings(page: Path) -> list[str]:
    lines = (page.with_suffix(".md")).read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("## ") for line in lines if line.startswith("## ")]


def checked(folder: Path, record: str) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", record], cwd=folder, check=True)


# ---------------------------------------------------------------- what is written


def test_a_report_stands_beside_the_results_and_changes_none(out: Path) -> None:
    before = contents(out)
    outcome = write_report(ReportPlan(folders=out))
    after = contents(out)
    new = {"report.html", "report.md", "report.sha256", "report/leaderboard-groundedness.svg", "report/by-topic.svg",
           "report/by-depth.svg"}  # fmt: skip
    assert after.keys() == before.keys() | new
    assert all(after[name] == content for name, content in before.items() if "report" not in name)
    assert outcome.page == out / "report.html"
    verdict, banner, *_ = outcome.content.sections[0].parts
    assert verdict == Said("No run is measurably better than another: that needs 8 topics in common.", "plain")
    assert isinstance(banner, Said)
    assert banner.text.startswith("UNCALIBRATED")
    for record in ("run.sha256", "report.sha256"):
        checked(out, record)
    assert headings(outcome.page) == [
        "In short", "Leaderboard: groundedness", "What became of the judgments", "Cost, tokens and time", "By topic",
        "By depth of the conversation", "The submissions", "Why judgments are missing", "How it was made",
    ]  # fmt: skip


def test_a_report_reads_its_pool_once(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(responses: Lines, passages: Lines, name: str, *beside: Lines) -> Pool:
        read.append(name)
        return read_pool(responses, passages, name, *beside)

    monkeypatch.setattr("judge.pool.bank.read_pool", counted)
    write_report(ReportPlan(folders=out))
    assert read == [str(out)]


def test_a_report_does_not_say_where_its_author_keeps_things(out: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "prompts" / "own.md"
    prompt.parent.mkdir()
    shutil.copy(PROJECT / "prompts" / "groundedness" / "graded.md", prompt)
    lines = (out / "judgments.jsonl").read_text(encoding="utf-8").replace('"variant":"graded"', '"variant":"own"')
    # A digest that is none: the prompt has changed since.
    lines = re.sub('"criterion_digest":"[0-9a-f]{64}"', f'"criterion_digest":"{"0" * 64}"', lines)
    (out / "judgments.jsonl").write_text(lines, encoding="utf-8")
    (out / "failures.jsonl").unlink()
    outcome = write_report(ReportPlan(folders=out, prompts=[prompt]))
    assert outcome.warnings == (f"{out}: {prompt} has changed since these judgments were made",)
    for name in ("report.html", "report.md"):
        told = (out / name).read_text(encoding="utf-8")
        assert "Out: the file of groundedness/own has changed since these judgments were made." in told
        assert str(tmp_path) not in told


def test_the_page_names_the_results_that_it_was_made_from(out: Path) -> None:
    write_report(ReportPlan(folders=out))
    assert sha256((out / "run.sha256").read_bytes()) in (out / "report.html").read_text(encoding="utf-8")


def test_a_report_says_how_far_it_is(out: Path) -> None:
    told: list[Step] = []
    write_report(ReportPlan(folders=out), told.append)
    assert list(dict.fromkeys(step.what for step in told)) == [
        "reading folders", "listing judgments", "drawing", "writing",
    ]  # fmt: skip


def test_the_same_folder_gives_the_same_bytes(out: Path, tmp_path: Path) -> None:
    write_report(ReportPlan(folders=out, out=tmp_path / "a"))
    write_report(ReportPlan(folders=out, out=tmp_path / "b"))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_gold_adds_agreement_and_corrected_means(made: Path, tmp_path: Path) -> None:
    outcome = write_report(ReportPlan(folders=made / "out", gold=GOLD, out=tmp_path))
    added = ["Leaderboard, corrected by people's grades", "How far to believe the judge",
             "Agreement with people: groundedness"]  # fmt: skip
    assert headings(outcome.page)[2:5] == added
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    # By hand from the gold: mill-fluent-invented has 0.25, where the judge gave 0.88.
    assert "| 7 | mill-fluent-invented | 0.25 | 0.88 | +0.62 |" in text
    assert "INCONCLUSIVE" in text
    assert "A line for each run, the best first. No range where people graded every response." in text


def test_a_report_with_gold_or_a_calibration_does_not_say_that_nobody_compared(made: Path, tmp_path: Path) -> None:
    plans = {
        "alone": ReportPlan(folders=made / "out", out=tmp_path / "alone"),
        "gold": ReportPlan(folders=made / "out", gold=GOLD, out=tmp_path / "gold"),
        "beside": ReportPlan(folders=(made / "out", made / "cal"), out=tmp_path / "beside"),
    }
    said = {}
    for name, plan in plans.items():
        write_report(plan)
        said[name] = (tmp_path / name / "report.md").read_text(encoding="utf-8")
    assert "nobody has compared" in said["alone"]
    for name in ("gold", "beside"):
        assert "nobody has compared" not in said[name]
        # One word stands, that of the verdict.
        assert "CALIBRATED" not in said[name]
        short = said[name].partition("## In short")[2].partition("\n## ")[0]
        assert len(re.findall("NOT TRUSTED|INCONCLUSIVE", short)) == 1


def test_a_verdict_on_another_judge_or_prompt_says_nothing_of_this_one(made: Path) -> None:
    judged = read_judged(made / "out")
    (verdict,) = read_calibration(made / "cal" / "calibration.json").verdicts
    assert judged.beside([verdict]).verdicts == (verdict,)
    for other in ({"judge": "server/m graded"}, {"prompt": "groundedness/strict"}):
        assert judged.beside([msgspec.structs.replace(verdict, **other)]).verdicts == ()


def test_where_only_some_criteria_were_compared_each_has_its_word(made: Path) -> None:
    judged = read_judged(made / "out")
    (verdict,) = read_calibration(made / "cal" / "calibration.json").verdicts
    both = msgspec.structs.replace(judged, criteria=(*judged.criteria, find_criterion("naturalness")))
    banner = both.beside([verdict]).banner
    assert banner.startswith(f"Judged by people's grades, without a certificate: groundedness {verdict.word}, ")
    assert banner.endswith("; naturalness not compared.")


def test_a_corrected_board_is_reported_with_its_run(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "corrected"
    assert main(["leaderboard", str(made / "out"), "--gold", str(GOLD), "--out", str(out)]) == 0
    with pytest.raises(InputError, match="corrected leaderboard: `judge report OUT --gold FILE` shows it"):
        write_report(ReportPlan(folders=out))


def test_gold_that_does_not_say_how_it_was_drawn_gives_agreement_alone(made: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in GOLD.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        del row["inclusion_probability"]
    gold = put(tmp_path / "gold.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    outcome = write_report(ReportPlan(folders=made / "out", gold=gold, out=tmp_path / "report"))
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "without the probabilities with which responses were chosen for gold" in text
    assert "Agreement with people: groundedness" in headings(outcome.page)


def test_a_calibration_is_reported_by_verdict_agreement_and_prompts(made: Path, tmp_path: Path) -> None:
    outcome = write_report(ReportPlan(folders=made / "cal", out=tmp_path))
    assert headings(outcome.page) == ["In short", "Agreement with people: groundedness"]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "### Comparisons on all grades" in text
    assert "calibration.sha256 with the SHA-256" in text


def test_two_folders_stand_side_by_side(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "out"
    assert main(["run", *INPUTS, *OVERLAP, "--prompt", "groundedness/yes_no", "--out", str(other)]) == 0
    found = headings(write_report(ReportPlan(folders=(made / "out", other), out=tmp_path / "both")).page)
    assert found[:2] == ["The folders", "Side by side: groundedness"]
    # Two folders of one name are told apart by those above them.
    assert found[2:4] == [f"In short, {made.name}/out", f"Leaderboard: groundedness, {made.name}/out"]
    assert "In short, other/out" in found
    # Overlap gives yes where it gives 2 or 3, so that both agree on what is positive: 58 of 76 responses.
    text = (tmp_path / "both" / "report.md").read_text(encoding="utf-8")
    # No response differs on three topics: the interval reaches down to where it would be if one did.
    assert "| same grade | 1.00 [0.54, 1.00] |" in text
    # Positive or not is a scale of two grades, on which nothing can be two off.
    assert "Kappa: agreement beyond chance, 1 is perfect. Difference:" in text
    assert f"| {made.name}/out: 1 | 0 | 58 | 58 |" in text
    assert {name for name in contents(tmp_path / "both") if name.endswith("-in-2.svg")} == {
        f"report/{name}-in-2.svg" for name in ("leaderboard-groundedness", "by-topic", "by-depth")
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "20"], "A trial: only 20 judgments were asked for"),
        (["--jury", "majority", "--samples", "2"], "graded for groundedness by jury"),
    ],
)
def test_a_trial_and_a_jury_are_reported_as_such(tmp_path: Path, arguments: list[str], said: str) -> None:
    assert main(["run", *INPUTS, *OVERLAP, *arguments, "--out", str(tmp_path / "out")]) == 0
    write_report(ReportPlan(folders=tmp_path / "out"))
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert said in text
    left_out = "Left out: a turn whose grade is lacking through the provider, the budget or a trial."
    assert (left_out in text) == ("--limit" in arguments)


def test_a_summary_has_verdicts_and_boards_alone(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(made)
    assert main(["report", str(made / "out"), str(made / "cal"), "--summary"]) == 0
    said = capsys.readouterr().out
    shown = ["The folders", "In short, out", "Leaderboard: groundedness, out", "In short, cal"]
    assert re.findall(r"^## (.+)", said, re.MULTILINE) == shown
    assert "| 1 | quarry-copied | 3.00 |" in said
    assert "whether baseline/overlap graded agrees" in said
    assert "![" not in said
    assert main(["report", str(made / "out"), "--summary", "--out", "x"]) == 2
    assert contents(made) == before


def test_where_nothing_has_a_grade_nothing_is_drawn_or_averaged(tmp_path: Path) -> None:
    """Without passages no response can be judged for groundedness, so no run has a mean."""
    runs = ["--runs", str(EXAMPLE / "runs" / "lantern-half-right.jsonl")]
    assert main(["run", *runs, *OVERLAP, "--out", str(tmp_path)]) == 1
    outcome = write_report(ReportPlan(folders=tmp_path))
    assert headings(outcome.page) == [
        "In short", "Leaderboard: groundedness", "What became of the judgments", "Cost, tokens and time",
        "The submissions", "Why judgments are missing", "How it was made",
    ]  # fmt: skip
    assert set(outcome.files) == {"report.html", "report.md"}
    assert "Groundedness: no run has a grade." in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_run_under_a_prompt_of_ones_own_has_its_page(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    shutil.copy(PROJECT / "prompts" / "groundedness" / "graded.md", prompt)
    own = ["--prompt", str(prompt), "--model", "baseline/overlap"]
    assert main(["run", *INPUTS, *own, "--out", str(tmp_path / "o")]) == 0
    assert "groundedness/mine" in (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="no prompt called"):
        write_report(ReportPlan(folders=tmp_path / "o"))
    write_report(ReportPlan(folders=tmp_path / "o", prompts=prompt))


# ---------------------------------------------------------------- a report follows its results


def test_the_same_run_again_keeps_the_report_and_its_markdown(out: Path) -> None:
    assert main(["report", str(out)]) == 0
    before = contents(out)
    assert main(["run", *INPUTS, *OVERLAP, "--out", str(out)]) == 0
    # The command line is on record, so the first run of the same words only settles where the folder lies.
    settled = contents(out)
    assert main(["run", *INPUTS, *OVERLAP, "--out", str(out)]) == 0
    assert contents(out) == settled
    assert before.keys() >= settled.keys()


def test_other_results_take_the_report_of_the_earlier_ones_away(out: Path) -> None:
    assert main(["report", str(out)]) == 0
    earlier = (out / "report.html").read_bytes()
    assert main(["run", *INPUTS, *OVERLAP, "--limit", "20", "--replace", "--out", str(out)]) == 0
    assert "A trial" in (out / "report.html").read_text(encoding="utf-8")
    assert (out / "report.html").read_bytes() != earlier
    assert not (out / "report.md").exists()
    assert not (out / "report").exists()


def test_from_python_a_stale_report_goes_as_well(out: Path) -> None:
    assert main(["report", str(out)]) == 0
    plan = judge.Plan(
        runs=EXAMPLE / "runs", topics=EXAMPLE / "topics.json", passages=EXAMPLE / "passages.jsonl",
        criteria="groundedness", model="baseline/overlap", limit=20, replace=True, out=out,
    )  # fmt: skip
    judge.run(plan)
    assert not [name for name in contents(out) if name.startswith("report")]


def test_a_report_that_somebody_edited_is_left_alone(out: Path) -> None:
    write_report(ReportPlan(folders=out))
    (out / "report.md").write_text("my notes", encoding="utf-8")
    assert main(["run", *INPUTS, *OVERLAP, "--limit", "20", "--replace", "--out", str(out)]) == 0
    assert (out / "report.md").read_text(encoding="utf-8") == "my notes"
    assert {name for name, _ in recorded(out, "report.sha256")} == {"report.html"}


def test_a_page_that_cannot_be_written_fails_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", *INPUTS, *OVERLAP, "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    (tmp_path / "out" / "report.sha256").unlink()
    (tmp_path / "out" / "report.html").unlink()
    (tmp_path / "out" / "report.html").mkdir()
    capsys.readouterr()
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "warning: no report: " in said
    assert "the results are complete" in said


def test_a_run_says_where_to_start_and_lists_its_files(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *INPUTS, *OVERLAP, "--out", str(made / "out")]) == 0
    said = capsys.readouterr().err
    assert f"start here: {made / 'out' / 'leaderboard.md'}" in said
    assert str(made / "out" / "report.html") in said
    index = (made / "out" / "index.md").read_text(encoding="utf-8")
    for name in contents(made / "out"):
        folder, _, file = name.rpartition("/")
        pattern = f"{folder}/*{file[file.rindex('.') :]}" if folder else name
        assert f"`{pattern}`" in index or name in ("index.md", "report.sha256"), name


# ---------------------------------------------------------------- what is refused


def test_what_cannot_be_reported_on_is_refused_and_nothing_is_written(made: Path, tmp_path: Path) -> None:
    unfinished, edited = (Path(shutil.copytree(made / "out", tmp_path / name)) for name in ("unfinished", "edited"))
    manifest = json.loads((unfinished / "manifest.json").read_bytes())
    put(unfinished / "manifest.json", json.dumps({**manifest, "status": "unfinished"}))
    configuration = {**manifest["configuration"], "runs": None}
    put(edited / "manifest.json", json.dumps({**manifest, "configuration": configuration}))
    assert main(["pool", *INPUTS, "--out", str(tmp_path / "pool")]) == 0
    (tmp_path / "empty").mkdir()
    broken = Path(shutil.copytree(made / "cal", tmp_path / "broken"))
    (broken / "calibration.json").write_text("{", encoding="utf-8")
    other = Path(shutil.copytree(made / "cal", tmp_path / "other"))
    findings = json.loads((other / "calibration.json").read_bytes())
    put(other / "calibration.json", json.dumps({**findings, "schema": 1, "findings": None}))
    out = made / "out"
    refused: list[tuple[ReportPlan, str]] = [
        (ReportPlan(folders=unfinished, out=tmp_path / "r"), "the run is not finished"),
        (ReportPlan(folders=edited, out=tmp_path / "r"), r"configuration\.runs: null: expected runs with digests"),
        (ReportPlan(folders=tmp_path / "pool", out=tmp_path / "r"), "a pool that nobody has judged yet"),
        (ReportPlan(folders=tmp_path / "empty", out=tmp_path / "r"), "neither judgments.jsonl nor calibration.json"),
        (ReportPlan(folders=tmp_path / "none", out=tmp_path / "r"), "no such folder"),
        (ReportPlan(folders=broken, out=tmp_path / "r"), "not the findings of a calibration"),
        (
            ReportPlan(folders=other, out=tmp_path / "r"),
            rf"calibration\.json: findings of layout 1, this is judge \S+ \(layout {FINDINGS_SCHEMA}\)$",
        ),
        (ReportPlan(folders=(out, made / "cal")), "--out DIR says where"),
        (ReportPlan(folders=(out, out), out=tmp_path / "r"), "named twice"),
        (ReportPlan(folders=made / "cal", gold=GOLD, out=tmp_path / "r"), "has its own gold"),
        (ReportPlan(folders=out, criterion="naturalness", out=tmp_path / "r"), "no judgment under naturalness"),
        (ReportPlan(folders=out, gold=tmp_path / "no.jsonl", out=tmp_path / "r"), "cannot be read"),
    ]
    for plan, said in refused:
        with pytest.raises((InputError, UsageError), match=said):
            write_report(plan)
    assert not (tmp_path / "r").exists()
    with pytest.raises(UsageError, match="folders: expected a value, found none"):
        ReportPlan(folders=())


def test_gold_off_the_scale_of_one_folder_names_the_folder_its_prompt_and_the_way_out(
    made: Path, tmp_path: Path
) -> None:
    arguments = ["run", *INPUTS, "--model", "baseline/overlap", "--prompt", "groundedness/yes_no"]
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    two = Path(shutil.copytree(tmp_path / "one", tmp_path / "two"))
    judgments = (two / "judgments.jsonl").read_text(encoding="utf-8")
    others = judgments.replace('"groundedness"', '"naturalness"').replace('"yes_no"', '"graded"')
    (two / "judgments.jsonl").write_text(judgments + others, encoding="utf-8")
    plan = ReportPlan(folders=(made / "out", tmp_path / "one"), gold=GOLD, out=tmp_path / "r")
    with pytest.raises(InputError) as refused:
        write_report(plan)
    assert str(refused.value) == (
        f"{tmp_path / 'one'}: gold and judgments cannot be compared under groundedness: the gold has grades that are "
        "not on the scale (groundedness/yes_no has grades 0 to 1, higher is better): report on this folder without "
        "--gold"
    )
    assert {problem.code for problem in refused.value.problems} == {"off_scale"}
    with pytest.raises(InputError, match=r"or on another of its criteria with --criterion$"):
        write_report(ReportPlan(folders=two, gold=GOLD, out=tmp_path / "r"))
    assert not (tmp_path / "r").exists()
    write_report(ReportPlan(folders=two, gold=GOLD, criterion="naturalness", out=tmp_path / "r"))


def test_sealed_gold_stays_closed(made: Path, tmp_path: Path) -> None:
    rows = GOLD.read_text(encoding="utf-8").splitlines(keepends=True)
    gold = put(tmp_path / "groundedness.jsonl", "".join(row for row in rows if '"groundedness"' in row))
    split = ["--test", "0.34", "--seed", "1", "--out", str(tmp_path / "split")]
    assert main(["gold", "split", str(gold), *split]) == 0
    with pytest.raises((InputError, UsageError)):
        write_report(ReportPlan(folders=made / "out", gold=tmp_path / "split" / "test.jsonl", out=tmp_path / "r"))


# ---------------------------------------------------------------- in a browser

LONG = "a-run-name-of-forty-one-characters-0000001"
STRANGE = '</style><img src="http://x.invalid/" onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def hostile(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page on runs with a long and a hostile name, whose responses and problems are hostile too, with gold."""
    place = tmp_path_factory.mktemp("hostile")
    shutil.copytree(EXAMPLE / "runs", place / "runs")
    for file, name in (("harbor-grounded.json", STRANGE), ("quarry-copied.json", LONG)):
        run = json.loads((place / "runs" / file).read_bytes())
        run["run_name"] = name
        run["turns"][0]["responses"][0]["text"] += f" {STRANGE}"
        (place / "runs" / file).write_text(json.dumps(run), encoding="utf-8")
    inputs = ["--runs", str(place / "runs"), *INPUTS[2:]]
    assert main(["run", *inputs, *OVERLAP, "--out", str(place / "out")]) == 0
    assert main(["report", str(place / "out"), "--gold", str(GOLD)]) == 0
    return place / "out" / "report.html"


@pytest.mark.parametrize(("size", "theme"), [(NARROW, "light"), (WIDE, "dark")], ids=["narrow", "wide"])
def test_the_page_opens_from_the_disk_without_a_fault(
    browser: Browser, hostile: Path, theme: str, size: dict[str, int]
) -> None:
    context = browser.new_context(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    watched = watch(page)
    page.goto(hostile.as_uri())
    assert page.title() == "out: judge report"
    assert page.locator("img").count() == 0
    assert page.get_by_role("rowheader", name=LONG).count() > 0
    assert overflow(page) == 0
    # No link to a section lies beyond the edge, where one would have to scroll for it.
    beyond = "links => links.filter((link) => link.getBoundingClientRect().right > innerWidth).length"
    assert page.locator("nav.contents a").evaluate_all(beyond) == 0
    assert faults(page) == []
    assert watched == []
    context.close()


def test_a_caption_stays_readable_while_its_table_scrolls(page: Page, hostile: Path) -> None:
    page.set_viewport_size(NARROW)
    page.goto(hostile.as_uri())
    box = page.locator("#leaderboard-groundedness .scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 100")
    for scrolled in (0, 100, 10_000):
        box.evaluate("(box, left) => { box.scrollLeft = left; }", scrolled)
        around, words = box.bounding_box(), box.locator("caption span").bounding_box()
        assert words["x"] >= around["x"]
        assert words["x"] + words["width"] <= around["x"] + around["width"]


def test_the_summary_needs_no_script(browser: Browser, hostile: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(hostile.as_uri())
    assert page.get_by_role("heading", level=1, name="out").is_visible()
    assert page.get_by_role("table", name="Groundedness: grades 0 to 3, higher is better").is_visible()
    assert page.locator("#leaderboard-groundedness svg circle").count() == 7
    context.close()


def test_the_page_is_walked_by_keyboard_and_landmarks(page: Page, hostile: Path) -> None:
    page.goto(hostile.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the report"
    assert page.get_by_role("main").count() == 1
    for link in page.get_by_role("navigation").first.get_by_role("link").all():
        target = link.get_attribute("href") or ""
        assert page.locator(target).count() == 1, target


def test_on_paper_the_folded_parts_are_open_and_the_list_of_sections_is_not_there(page: Page, hostile: Path) -> None:
    page.goto(hostile.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 794, "height": 1123})
    assert not page.get_by_role("navigation", name="Sections").is_visible()
    assert page.locator("#leaderboard-groundedness th .sort").last.is_visible()
    assert overflow(page) == 0
    assert page.locator("#made .facts").first.bounding_box()["height"] > 0  # type: ignore[index]


def test_a_board_is_sorted_by_its_headings_and_comes_back_to_its_order(page: Page, hostile: Path) -> None:
    page.goto(hostile.as_uri())
    board = page.locator("#leaderboard-groundedness table.board")
    order = board.locator("tbody th").all_text_contents()
    head = board.get_by_role("columnheader", name="good responses")
    for sort, first in (("ascending", "12 %"), ("descending", "100 %"), (None, "100 %")):
        head.locator(".sort").press("Enter")
        assert head.get_attribute("aria-sort") == sort
        assert board.locator("tbody tr").first.locator("td").nth(3).text_content() == first
    assert board.locator("tbody th").all_text_contents() == order


def test_a_question_mark_opens_by_keyboard_and_without_a_script(browser: Browser, hostile: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(hostile.as_uri())
    said = page.get_by_text("good responses: the share with a positive grade (2, 3).")
    page.get_by_role("button", name="What “good responses” says").press("Enter")
    assert said.is_visible()
    page.keyboard.press("Escape")
    assert not said.is_visible()
    page.close()
