"""A prompt with cuts that are fitted to gold, under which the replies that are there get other grades."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.criteria import find_criterion, load_criterion, prompt_path
from judge.ask.prompt_edit import with_cuts
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.gold.seal import write_split
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.cuts import UNSPLIT, CutsPlan, PromptCuts, add_cuts
from tests.calibration_world import gold_rows, items, jsonl, judgment, pool, row, write_gold, write_pool
from tests.conftest import json_lines, put, run_example
from tests.mock import Mock

WORLD = items()
GRADED = "groundedness/graded"


def said(judge: str = "server/m", shift: float = 0.8, **changed: Any) -> list[Any]:
    """A judge whose expected grade is the people's and `shift` more or less, and its grade the nearest level."""
    found = []
    for place, one in enumerate(WORLD):
        expected = min(max(one.gold + shift - 0.2 * (place % 2), 0.0), 3.0)
        found.append(judgment(one.turn_id, one.response_id, round(expected), judge, expected=expected, **changed))
    return found


def judged(folder: Path, *judgments: Any) -> Path:
    write_pool(folder / "run", pool(WORLD))
    return put(folder / "run" / "judgments.jsonl", jsonl(judgments)).parent


def gold_of(folder: Path, **more: Any) -> Path:
    return write_gold(folder / "gold.jsonl", gold_rows(WORLD, **{"split": "dev", **more}))


def cut(folder: Path, gold: Path, **more: Any) -> PromptCuts:
    return add_cuts(
        CutsPlan(**{"prompt": GRADED, "gold": [gold], "judgments": [folder / "run"], "out": folder / "mine.md", **more})
    )


def test_cuts_that_gain_are_written_into_a_prompt(tmp_path: Path) -> None:
    judged(tmp_path, *said())
    outcome = cut(tmp_path, gold_of(tmp_path))
    found = outcome.found
    prompt = load_criterion(tmp_path / "mine.md")
    bundled = find_criterion(GRADED)
    # Expected grades are .6 or .8, 1.6 or 1.8, 2.6 or 2.8, and 3; the middles are .5, 1.5 and 2.5.
    assert (found.kind, prompt.cuts, prompt) == ("shifted", found.cuts, outcome.criterion)
    assert (found.statistic, found.n, found.topics, found.without) == ("wkappa", 120, 24, 0)
    assert (found.fitted, found.nested, found.optimism) == (1.0, 1.0, 0.0)
    assert found.judged is not None
    assert found.judged < 0.8
    assert (
        msgspec.structs.replace(prompt, cuts=(), variant="graded", file=bundled.file, digest=bundled.digest) == bundled
    )
    assert outcome.warnings == ()


def test_cuts_that_gain_nothing_are_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged(tmp_path, *said(shift=0.1))
    gold = gold_of(tmp_path)
    outcome = cut(tmp_path, gold)
    assert (outcome.criterion, outcome.found.gain, outcome.found.gains) == (None, 0.0, False)
    command = ["prompts", "cuts", GRADED, "--gold", str(gold), "--judgments", str(tmp_path / "run")]
    assert main([*command, "--out", str(tmp_path / "mine.md")]) == 1
    out, _ = capsys.readouterr()
    assert out.splitlines()[-1] == "nothing is written: the cuts gain nothing on other topics"
    assert main([*command, "--out", str(tmp_path / "mine.md"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["file"] is None
    assert not (tmp_path / "mine.md").exists()


def test_the_command_prints_what_the_cuts_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged(tmp_path, *said())
    gold = gold_of(tmp_path, split=None)
    out = tmp_path / "mine.md"
    assert (
        main(["prompts", "cuts", GRADED, "--gold", str(gold), "--judgments", str(tmp_path / "run"), "-o", str(out)])
        == 0
    )
    shown, said_too = capsys.readouterr()
    assert said_too == f"warning: {UNSPLIT}\n"
    lines = shown.splitlines()
    assert lines[0].split() == ["judge", "server/m", "under", GRADED]
    assert lines[-1] == f"{out}: groundedness/mine, digest {load_criterion(out).digest[:12]}"
    assert "optimism 0.000" in shown
    assert "on the fitted topics 1.000" in lines


def test_new_cuts_take_the_place_of_old_ones(tmp_path: Path) -> None:
    judged(tmp_path, *said())
    gold = gold_of(tmp_path)
    cut(tmp_path, gold)
    mine = load_criterion(tmp_path / "mine.md")
    put(
        tmp_path / "run" / "judgments.jsonl",
        jsonl(said(shift=-0.8, prompt="groundedness/mine", digest=mine.digest)),
    )
    again = cut(tmp_path, gold, prompt=str(tmp_path / "mine.md"), out=tmp_path / "other.md")
    text = (tmp_path / "other.md").read_text(encoding="utf-8")
    assert text.count("cuts = [") == 1
    assert again.criterion is not None
    assert again.criterion.cuts != mine.cuts


IN_ONE_LINE = """+++
criterion = "groundedness"
version = 1
polarity = "higher"
positive = [1]
inputs = ["response"]
answer = "grade"

level = [{ grade = 0, description = "no" }, { grade = 1, description = "yes" }]
+++

# System

{{levels}}

# User

[1] This begins like a table:
{{response}}
{{answer}}
"""


def test_cuts_come_before_the_first_table_which_may_be_none(tmp_path: Path) -> None:
    path = put(tmp_path / "own.md", IN_ONE_LINE)
    cut_file = put(tmp_path / "cut.md", with_cuts(IN_ONE_LINE, load_criterion(path), (0.3,)))
    assert cut_file.read_text(encoding="utf-8") == IN_ONE_LINE.replace("\n+++\n\n#", "\ncuts = [0.3]\n+++\n\n#")
    assert load_criterion(cut_file).cuts == (0.3,)
    bundled = prompt_path(GRADED).read_text(encoding="utf-8")
    text = with_cuts(bundled, find_criterion(GRADED), (0.5, 0.9, 1.8))
    assert text == bundled.replace('answer = "grade"\n', 'answer = "grade"\ncuts = [0.5, 0.9, 1.8]\n')


@pytest.mark.parametrize(
    ("changed", "more", "told"),
    [
        ({"expected": None}, {}, r"no cuts for server/m: the judge gave no label probabilities \(--logprobs"),
        ({"digest": "0" * 64}, {}, "has changed since these judgments were made"),
        ({"prompt": "groundedness/yes_no"}, {}, "expected the grades of one judge under groundedness/graded"),
        ({}, {"judge": "server/x"}, "found none"),
    ],
)
def test_judgments_that_cannot_be_cut(tmp_path: Path, changed: dict[str, Any], more: dict[str, Any], told: str) -> None:
    without = changed.pop("expected", 1) is None
    judgments = said(**changed)
    if without:
        judgments = [msgspec.structs.replace(one, expected=None) for one in judgments]
    judged(tmp_path, *judgments)
    with pytest.raises((InputError, UsageError), match=told):
        cut(tmp_path, gold_of(tmp_path), **more)


def test_dev_gold_of_three_topics_is_needed(tmp_path: Path) -> None:
    judged(tmp_path, *said())
    write_split(gold_rows(WORLD), 0.5, 1, tmp_path / "split")
    with pytest.raises(UsageError, match="sealed test grades: cuts are fitted to grades of dev topics"):
        cut(tmp_path, tmp_path / "split" / "test.jsonl")
    first = [one for one in gold_rows(WORLD) if one.topic_id in ("1", "2")]
    with pytest.raises(InputError, match=r"no cuts for server/m: 2 dev topics, and 3 are the least"):
        cut(tmp_path, write_gold(tmp_path / "two.jsonl", first))


def asked(folder: Path, mock: Mock, gold: Path, prompt: str | Path) -> dict[str, dict[str, Any]]:
    plan = CalibrationPlan(
        gold=(gold,), models=("server/mock",), base_url=mock.base_url, prompts=(prompt,), pool=folder / "run",
        out=folder / "cal", logprobs=True, replicates=200, permutations=200,
    )  # fmt: skip
    calibrate_judges(plan)
    lines = (folder / "cal" / "judgments.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["response_id"]: line for line in map(json.loads, lines)}


def test_no_call_is_made_for_new_cuts(tmp_path: Path, mock: Mock) -> None:
    write_pool(tmp_path / "run", pool(WORLD))
    gold = gold_of(tmp_path)
    before = asked(tmp_path, mock, gold, GRADED)
    sent = mock.stats()["requests"]
    assert sent >= len(WORLD)
    # People grade 2 what the judge has an expected grade of 1.6 or more for, else 1.
    people = [
        row(one["turn_id"], one["response_id"], 1 + (one["expected"] >= 1.6), split="dev") for one in before.values()
    ]
    outcome = cut(tmp_path, write_gold(tmp_path / "other.jsonl", people), judgments=[tmp_path / "cal"])
    assert outcome.criterion is not None
    after = asked(tmp_path, mock, gold, tmp_path / "mine.md")
    assert mock.stats()["requests"] == sent
    for response_id, one in after.items():
        earlier = before[response_id]
        assert one["grade"] == sum(one["expected"] >= cut for cut in outcome.criterion.cuts)
        assert (one["expected"], one["request_digest"]) == (earlier["expected"], earlier["request_digest"])
        assert one["criterion_digest"] == outcome.criterion.digest != earlier["criterion_digest"]
    assert [one["grade"] for one in after.values()] != [one["grade"] for one in before.values()]


def test_a_run_under_cuts_takes_every_reply_from_the_journal(tmp_path: Path, mock: Mock) -> None:
    text = prompt_path(GRADED).read_text(encoding="utf-8")
    path = put(tmp_path / "cut.md", with_cuts(text, find_criterion(GRADED), (0.5, 0.9, 1.8)))
    out = tmp_path / "out"
    judge = ["--model", "server/a", "--base-url", mock.base_url]
    assert run_example(out, "--criteria", "groundedness", *judge, "--logprobs") == 0
    sent = mock.stats()["requests"]
    # The mock gives .7 to its label and .1 to each other one: .6, 1.2, 1.8 or 2.4.
    wanted = {0: 1, 1: 2, 2: 3, 3: 3}
    before = {line["response_id"]: line["grade"] for line in json_lines(out / "judgments.jsonl")}
    assert run_example(out, "--prompt", str(path), *judge, "--logprobs", "--replace") == 0
    assert mock.stats()["requests"] == sent
    after = json_lines(out / "judgments.jsonl")
    assert {line["response_id"]: line["grade"] for line in after} == {
        name: wanted[grade] for name, grade in before.items()
    }
    assert {line["criterion_digest"] for line in after} == {load_criterion(path).digest}


def test_a_run_without_probabilities_stops_early_under_cuts(
    tmp_path: Path, mock: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    text = prompt_path(GRADED).read_text(encoding="utf-8")
    path = put(tmp_path / "cut.md", with_cuts(text, find_criterion(GRADED), (0.5, 0.9, 1.8)))
    judge = ["--model", "server/a", "--base-url", mock.base_url]
    assert run_example(tmp_path / "out", "--prompt", str(path), *judge) == 3
    told = capsys.readouterr().err
    assert "the first 3 questions failed alike, so nothing else was asked: the reply has no label probabilities" in told
    assert mock.stats()["requests"] == 3
    # Asked once more all the same, each is a failure, and the exit code says that there is no grade.
    assert run_example(tmp_path / "out", "--prompt", str(path), *judge) == 1
    assert json_lines(tmp_path / "out" / "judgments.jsonl") == []
    failures = json_lines(tmp_path / "out" / "failures.jsonl")
    assert {line["reason"] for line in failures} == {"unreadable", "no_passages"}
    assert len(failures) == 77
