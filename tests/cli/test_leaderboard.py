import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.prompt_edit import with_examples
from judge.cli import main
from judge.errors import UsageError
from judge.gold.rows import GoldRow, gold_jsonl, read_gold, text_digest
from judge.gold.seal import write_split
from judge.io.files import sha256
from judge.io.ids import topic_of
from judge.jobs.manifest import SCHEMA
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool
from judge.records import Example
from judge.results.leaderboard import CORRECTED_COLUMNS
from judge.runs.records import Exclusion
from judge.stats import generalizability
from tests.calibration_world import failure, judgment, pooled, row, write_gold, write_judged
from tests.conftest import complaint, on_stderr, printed, put, read_ledger

GROUNDEDNESS = find_criterion("groundedness")
RUNS = ("own\x1b[31m|run", "solid", "weak")
TURNS = [f"{topic}_{turn}" for topic in range(1, 9) for turn in range(1, 4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An output folder of three runs: the judge thinks too well of the first, and misses one turn of the last."""
    rng = np.random.default_rng(4)
    grades = [level.grade for level in GROUNDEDNESS.scale.levels]
    responses, judgments, failures, gold = [], [], [], []
    chosen = {TURNS[place] for place in rng.permutation(len(TURNS))[:12]}
    for run, (run_id, quality) in enumerate(zip(RUNS, (1.3, 1.8, 0.6), strict=True)):
        for turn_id in TURNS:
            response_id = f"R{len(responses):05d}"
            responses.append(pooled(response_id, response_id, run_id, turn_id=turn_id, passages=()))
            truth = quality + rng.normal(0, 0.7)
            human, judged = (
                int(np.clip(round(value), min(grades), max(grades)))
                for value in (truth, truth + 0.3 + (1.5 if run == 0 else 0) + rng.normal(0, 0.4))
            )
            if run_id == "weak" and turn_id == TURNS[0]:
                failures.append(failure(turn_id, response_id, "unreadable", "litellm/m"))
            else:
                judgments.append(judgment(turn_id, response_id, judged, "litellm/m"))
            if turn_id in chosen:
                gold.append(row(turn_id, response_id, human, "A", inclusion_probability=0.5))
    pool = Pool(tuple(responses), {}, (Exclusion("solid", "9_1", 1, "over_limit", ""),))
    out = write_judged(tmp_path / "out", pool, judgments, failures)
    (tmp_path / "gold.jsonl").write_bytes(gold_jsonl(gold))
    (tmp_path / "families.tsv").write_text(f"{RUNS[0]}\tgpt\nsolid\tllama\nlitellm/m\tgpt\n", encoding="utf-8")
    return out


def run(*arguments: object) -> int:
    return main(["leaderboard", *map(str, arguments)])


def table(text: str) -> list[dict[str, str]]:
    header, *rows = (line.split("\t") for line in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_without_gold_the_leaderboard_is_raw_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, run(folder))
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
    assert printed(capsys, run(folder)).startswith("CALIBRATED (certificate of today).")


def test_gold_takes_the_lead_from_the_judges_favorite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, families, out = folder.parent / "gold.jsonl", folder.parent / "families.tsv", folder.parent / "corrected"
    shown = printed(capsys, run(folder, "--gold", gold, "--families", families, "--out", out))
    assert "UNCALIBRATED" not in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    rows = table((out / "corrected.tsv").read_text(encoding="utf-8"))
    assert list(rows[0]) == list(CORRECTED_COLUMNS)
    by_run = {row["run"]: row for row in rows}
    own, solid, weak = (by_run[name] for name in ("own\\x1b[31m|run", "solid", "weak"))
    assert rows[0] == solid
    assert float(own["raw"]) > float(solid["raw"])
    assert float(own["bias"]) > 1
    assert (own["flags"], own["family"], solid["flags"], weak["flags"]) == ("SELF", "gpt", "", "MISSING")
    assert (weak["n"], weak["missing"], own["gold_n"]) == ("23", "1", "12")
    assert weak["bound_lo"] != weak["lo"]
    assert (out / "corrected.md").read_text(encoding="utf-8").startswith("# Leaderboard, corrected by gold")
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
        "schema": 3, "target": "topics", "gold": digest, "cautions": [],
    }  # fmt: skip
    rows = shown["rows"]
    assert [row["place"]["rank"] for row in rows] == [1, 2, 3]
    assert {row["mean"]["n"] for row in rows} <= {11, 12}
    assert [row["counts"]["turns"] for row in json.loads(printed(capsys, run(folder, "--json")))] == [24, 24, 24]


def test_gold_without_probabilities_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b',"inclusion_probability":0.5', b""))
    said = complaint(capsys, run(folder, "--gold", gold))
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


def test_each_new_question_to_sealed_grades_is_on_record(folder: Path, parts: Path, capsys) -> None:
    def asked(*options: str) -> list[str]:
        assert run(folder, "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl", "--json", *options) == 0
        shown = json.loads(capsys.readouterr().out)
        assert sum(row["counts"]["gold"] for row in shown["rows"]) == 35
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
    assert "opened for 2 different questions" in " ".join(printed(capsys, run(folder, *asked)).split())
    pool_of(folder, {*dev, *held_out[:1]})
    assert "this look compares 1 of the sealed grades" in complaint(capsys, run(folder, *asked))
    assert [entry.compared for entry in read_ledger(parts / "seal.json")] == [
        {"groundedness": len(held_out)}, {"groundedness": 11}
    ]  # fmt: skip


def test_sealed_grades_that_cannot_be_used_stay_sealed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b',"inclusion_probability":0.5', b""))
    parts = folder.parent / "split"
    write_split(read_gold(gold), 0.5, 1, parts)
    said = complaint(capsys, run(folder, "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl"))
    assert (
        "35 problems of the gold, the sealed grades included (inclusion_probability); the seal was not opened" in said
    )
    assert read_ledger(parts / "seal.json") == ()


def test_grades_are_not_opened_for_a_place_that_cannot_be_written(folder: Path, parts: Path, capsys) -> None:
    place = parts / "seal.json" / "corrected"
    said = complaint(capsys, run(folder, "--gold", parts / "dev.jsonl", "--test", parts / "test.jsonl", "--out", place))
    assert "cannot be used as an output folder" in said
    assert read_ledger(parts / "seal.json") == ()


def test_dev_grades_alone_are_no_sample_of_the_pool(folder: Path, parts: Path, capsys) -> None:
    assert run(folder, "--gold", parts / "dev.jsonl") == 2
    assert "give both parts of the split (the test part with --test), or --target topics" in capsys.readouterr().err
    assert run(folder, "--gold", parts / "dev.jsonl", "--target", "topics", "--out", folder.parent / "x.md") == 0
    for text in (capsys.readouterr().out, (folder.parent / "x.md").read_text(encoding="utf-8")):
        assert "the gold is only the dev part of a split" in " ".join(text.split())


def test_a_run_of_a_jury_members_family_is_flagged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("judgments.jsonl", "failures.jsonl"):
        (folder / name).write_bytes((folder / name).read_bytes().replace(b'"litellm/m"', b'"jury/median"'))
    arguments = "--gold", folder.parent / "gold.jsonl", "--families", folder.parent / "families.tsv", "--json"
    shown = json.loads(printed(capsys, run(folder, *arguments)))
    assert not any("SELF" in row.get("flags", ()) for row in shown["rows"])
    assert shown["cautions"] == [
        "groundedness: no manifest says who the jury's members are, so no run is flagged SELF"
    ]  # fmt: skip
    members = [
        {"judge": judge, "prompt": GROUNDEDNESS.prompt_id, "prompt_digest": GROUNDEDNESS.digest, "sample": 0}
        for judge in ("litellm/other", "litellm/m")
    ]
    configured = {"jury": {"aggregator": "median", "members": {"groundedness": members}}}
    (folder / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "configuration": configured}), encoding="utf-8")
    shown = json.loads(printed(capsys, run(folder, *arguments)))
    assert [row["run_id"] for row in shown["rows"] if "SELF" in row.get("flags", ())] == [RUNS[0]]
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
    assert said in complaint(capsys, run(folder, *(argument.replace("{gold}", gold) for argument in arguments)))


def test_gold_of_other_responses_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    gold.write_bytes(gold.read_bytes().replace(b'"R0', b'"R9'))
    assert "no grade of a pooled response under groundedness" in complaint(capsys, run(folder, "--gold", gold))


def test_a_folder_without_judgments_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected an output folder of `judge run`" in complaint(capsys, run(tmp_path))


def test_a_folder_with_two_judgments_of_one_response_is_refused(folder: Path, capsys) -> None:
    file = folder / "judgments.jsonl"
    content = file.read_bytes()
    file.write_bytes(content + content.splitlines(keepends=True)[0])
    assert "two judgments of R00000 under groundedness/" in complaint(capsys, run(folder))


def test_a_grade_off_its_scale_counts_in_no_mean(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "judgments.jsonl"
    first, *others = file.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = {**json.loads(first), "grade": 9}
    file.write_text("".join([json.dumps(changed) + "\n", *others]), encoding="utf-8")
    for more in ([], ["--gold", folder.parent / "gold.jsonl"]):
        assert f"off_scale at {changed['turn_id']} {changed['response_id']}: $.grade: grade 9 under groundedness/" in (
            complaint(capsys, run(folder, *more))
        )


def test_a_changed_prompt_is_announced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "judgments.jsonl"
    file.write_bytes(file.read_bytes().replace(GROUNDEDNESS.digest.encode(), b"f" * 64, 1))
    assert "has changed since these judgments were made" in on_stderr(capsys, run(folder))


CRITERION = find_criterion("groundedness")


class Folder:
    """A judged folder of four runs on topics of two turns, each response with the labels of two assessors."""

    def __init__(self, path: Path, topics: int, assessors: int = 2) -> None:
        rng = np.random.default_rng(12)
        grades = [level.grade for level in CRITERION.scale.levels]
        responses, judgments, failures, gold = [], [], [], []
        self.judged: list[tuple[float, str, str]] = []
        for run in range(4):
            for turn_id in (f"{topic}_{turn}" for topic in range(topics) for turn in (1, 2)):
                response_id = f"R{len(responses):05d}"
                responses.append(pooled(response_id, response_id, f"run{run}", turn_id=turn_id, passages=()))
                truth = 0.5 + 0.5 * run + rng.normal(0, 0.5)
                grade, *labels = (
                    int(np.clip(round(truth + rng.normal(0, 0.5)), min(grades), max(grades)))
                    for _ in range(1 + assessors)
                )
                if run == 0 and turn_id == "0_1":
                    failures.append(failure(turn_id, response_id, "unreadable", "litellm/m"))
                    grade = min(grades)
                else:
                    judgments.append(judgment(turn_id, response_id, grade, "litellm/m"))
                self.judged.append((float(grade), f"run{run}", turn_id))
                gold += [row(turn_id, response_id, label, f"A{place}") for place, label in enumerate(labels)]
        self.path = write_judged(path / "out", Pool(tuple(responses), {}, ()), judgments, failures)
        self.gold = write_gold(path / "gold.jsonl", gold)


@pytest.fixture
def pilot(tmp_path: Path) -> Folder:
    return Folder(tmp_path, 10)


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    return json.loads(printed(capsys, main(["plan", *map(str, arguments), "--json"])))


def test_the_judges_grades_are_taken_apart_and_a_missing_one_is_the_worst(pilot: Folder, capsys) -> None:
    values, runs, turns = (list(column) for column in zip(*pilot.judged, strict=True))
    of = generalizability.grade_variance(
        generalizability.GradeTable(values, runs, [topic_of(turn) for turn in turns], turns)
    )
    assert isinstance(of, generalizability.GradeVariance)
    (found,) = told(capsys, pilot.path)["pilots"]
    assert (found["criterion"], found["graders"], found["turns_per_topic"]) == ("groundedness", "judge", 2.0)
    assert {row["source"]: row["estimate"] for row in found["variance"]["components"]} == pytest.approx(
        {row.source: row.estimate for row in of.components}
    )
    assert [(design["topics"], design["labels"], design["grades"]) for design in found["designs"]] == [
        (10, 1, 20), (25, 1, 50), (50, 1, 100), (100, 1, 200), (200, 1, 400),
    ]  # fmt: skip
    variance = generalizability.difference_variance(of, generalizability.Design(2.0))
    assert found["designs"][1]["difference"] == pytest.approx(
        generalizability.half_width_factor(25) * (variance / 25) ** 0.5
    )


def test_more_topics_make_all_better_and_goals_are_met(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = told(capsys, pilot.path, "--half-width", "0.1", "--difference", "0.2")["pilots"]
    designs = found["designs"]
    for name in ("mean", "difference", "detectable"):
        assert [design[name] for design in designs] == sorted((design[name] for design in designs), reverse=True)
    for name in ("relative", "absolute"):
        shares = [design["reliability"][name] for design in designs]
        assert shares == sorted(shares) and 0 < shares[0] < shares[-1] < 1
    width, power = found["needed"]
    assert (width["goal"], width["size"], power["goal"], power["size"]) == ("half_width", 0.1, "difference", 0.2)
    for needed in (width, power):
        assert needed["topics"]["low"] < needed["topics"]["value"] < needed["topics"]["high"]
    (longer,) = told(capsys, pilot.path, "--half-width", "0.1", "--turns", "6")["pilots"]
    assert longer["turns_per_topic"] == 6
    assert longer["needed"][0]["topics"]["value"] < width["topics"]["value"]


def test_gold_of_several_assessors_sets_topics_against_labels(pilot: Folder, capsys) -> None:
    found = told(capsys, pilot.path, "--gold", pilot.gold, "--half-width", "0.1")["pilots"]
    assert [one["graders"] for one in found] == ["judge", "assessors", "judge - assessors"]
    _, assessors, apart = found
    assert [row["source"] for row in assessors["variance"]["components"]][-2:] == ["assessor", "label"]
    needed = {one["labels"]: one["topics"]["value"] for one in assessors["needed"]}
    assert needed[1] > needed[2] > needed[3]
    # A label more of every response costs more grades than the topics that it saves.
    assert needed[1] < 2 * needed[2]
    assert (apart["variance"]["grades"], apart["designs"], apart["needed"]) == (79, [], [])


def test_one_label_a_response_says_nothing_of_more_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = Folder(tmp_path, 10, assessors=1)
    _, assessors, _ = told(capsys, pilot.path, "--gold", pilot.gold)["pilots"]
    assert {design["labels"] for design in assessors["designs"]} == {1}
    assert "label" not in [row["source"] for row in assessors["variance"]["components"]]


def test_the_terminal_has_the_same_figures(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, main(["plan", str(pilot.path), "--gold", str(pilot.gold), "--half-width", "0.1"]))
    outcome = judge.plan_topics(judge.TopicsPlan(folder=pilot.path, gold=[pilot.gold], half_width=0.1))
    first = outcome.pilots[0]
    assert out.startswith("groundedness, judge: 4 runs, 10 topics, 20 turns, 80 grades\n")
    assert f"{first.designs[0].difference:.3f}" in out
    topics = first.needed[0].topics
    value, low, high = (f"{number:.0f}" for number in (topics.value, topics.low, topics.high) if number is not None)
    assert f"An interval of +-0.1 with 1 label a response: topics {value} [{low}, {high}]\n" in out
    assert "Over any number of topics the judge moves a difference of two runs by 0." in out


def test_few_topics_are_no_pilot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(Folder(tmp_path, 7).path), "--half-width", "0.1"]) == 0
    said = capsys.readouterr()
    assert (
        "Warning: groundedness, judge: 7 topics: the variances may be far off, and nothing is planned by them"
        in said.err
    )
    assert said.out.endswith("No plan: fewer than 8 topics.\n")
    assert "+-" not in said.out


def test_bad_goals_and_sealed_gold_are_refused(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("0", "-1", "nan", "inf", "x"):
        with pytest.raises(SystemExit, match="2"):
            main(["plan", str(pilot.path), "--half-width", size])
    with pytest.raises(UsageError, match=r"difference: expected a finite number"):
        judge.plan_topics(judge.TopicsPlan(folder=pilot.path, difference=float("nan")))
    write_split(read_gold(pilot.gold), 0.5, 1, pilot.path.parent / "split")
    sealed = pilot.path.parent / "split" / "test.jsonl"
    assert "sealed test grades" in complaint(capsys, main(["plan", str(pilot.path), "--gold", str(sealed)]))


def with_example(folder: Path, first: GoldRow) -> Path:
    """The bundled prompt with an example, as a file of one's own."""
    shown = (("passages", ()), ("response", ("x",)))
    example = Example(first.turn_id, text_digest(str(first.response_id)), first.grade, shown)
    bundled = find_criterion("groundedness")
    text = prompt_path("groundedness").read_text(encoding="utf-8")
    return put(folder.parent / "own" / "graded.md", with_examples(text, bundled, [example]))


def test_examples_of_the_prompt_are_no_gold_of_its_judge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = folder.parent / "gold.jsonl"
    own = with_example(folder, read_gold(gold)[0])
    assert run(folder, "--gold", gold, "--prompt", own, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cautions"][-1] == (
        "groundedness: 1 gold response left out for every judge, shown as an example by groundedness/graded"
    )
    assert sum(row["counts"]["gold"] for row in found["rows"]) == 34


def test_an_example_whose_grade_stands_for_itself_alone_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    responses = read_pool_folder(folder).responses
    rows = [row(one.turn_id, one.response_id, place % 4, inclusion_probability=1.0)
            for place, one in enumerate(responses)]  # fmt: skip
    gold = put(folder.parent / "all.jsonl", gold_jsonl(rows))
    own = with_example(folder, rows[0])
    assert run(folder, "--gold", gold, "--prompt", own, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert not any("left out" in text for text in found["cautions"])
    assert {score["more"]["method"] for score in found["rows"]} == {"census"}
