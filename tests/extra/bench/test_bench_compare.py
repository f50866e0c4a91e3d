"""`judge bench compare`: cards side by side, differences on the same items, and what is not comparable."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from judge.cli import main
from judge.extra.bench.card import parse_card
from judge.extra.bench.page import judge_grids
from judge.io.files import json_bytes
from tests.conftest import PROJECT, complaint, json_lines, put
from tests.extra.bench.bench_world import Ruled, dataset, items, write

pytestmark = pytest.mark.long


def by_length(factor: int) -> Ruled:
    return Ruled(lambda request: str(len(request.response) * factor // 3 % 4), name=f"server/length-{factor}")


TABLE = {each.name: each for each in (dataset(), dataset("other", rung="easy"))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two judges on two datasets, in the folders `a` and `b`; a third one, `c`, on another version of one."""
    out = tmp_path_factory.mktemp("cards")
    folder = write(write(out / "data", items(12)), items(9), "other")
    newer = write(out / "newer", [msgspec.structs.replace(row, grade=1 - row.grade) for row in items(12)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.extra.bench.DATASETS", TABLE)
        for name, factor, data in (("a", 1, folder), ("b", 2, folder), ("c", 5, newer)):
            measured(patch, by_length(factor), data, out / name)
    return out


@pytest.fixture
def cards(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these folders."""
    monkeypatch.setattr("judge.extra.bench.DATASETS", TABLE)
    return shutil.copytree(made, tmp_path / "cards")


def measured(monkeypatch: pytest.MonkeyPatch, judge: Ruled, folder: Path, out: Path, *more: str) -> None:
    monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: judge)
    assert main(["bench", "--data", str(folder), "--model", judge.name, "--out", str(out), *more]) == 0


def compared(capsys: pytest.CaptureFixture[str], *folders: Path) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["bench", "compare", *map(str, folders), "--format", "json"]) == 0
    return {grid["title"]: grid for grid in json.loads(capsys.readouterr().out)}


def test_judges_by_datasets_and_differences_on_the_same_items(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grids = compared(capsys, cards / "a", cards / "b")
    assert [*grids] == ["Agreement", "Differences"]
    of = {name: parse_card((cards / name / "card.json").read_bytes(), name) for name in "ab"}
    assert [row["judge"] for row in grids["Agreement"]["rows"]] == ["server/length-1", "server/length-2"]
    for row, card in zip(grids["Agreement"]["rows"], of.values(), strict=True):
        for each in card.datasets:
            assert row[each.name] == msgspec.to_builtins(each.judge.statistics["kappa"])
    auc = {
        (name, column): roc_auc_score(
            [row["positive"] for row in rows if row["dataset"] == column],
            [row["score"] for row in rows if row["dataset"] == column],
        )
        for name in "ab"
        for rows in [json_lines(cards / name / "items.jsonl")]
        for column in ("tiny", "other")
    }
    for row in grids["Differences"]["rows"]:
        difference = row["a - b"]["value"]
        assert difference == pytest.approx(auc["a", row["dataset"]] - auc["b", row["dataset"]])
        assert row["a - b"]["low"] < difference < row["a - b"]["high"]
    assert [row["items"] for row in grids["Differences"]["rows"]] == [48, 36]


def test_cells_of_different_items_are_said_to_be(cards: Path, monkeypatch, capsys) -> None:
    measured(monkeypatch, by_length(2), cards / "data", cards / "trial", "--limit", "40")
    # 40 of 48 items of one dataset, all 36 of the other.
    notes = compared(capsys, cards / "a", cards / "trial")["Agreement"]["notes"]
    said = "On tiny judges graded different items, 40 to 48 of them: only paired differences are on the same ones."
    assert [note for note in notes if "different items" in note] == [said]
    assert not any(
        "different items" in note for note in compared(capsys, cards / "a", cards / "b")["Agreement"]["notes"]
    )


def test_a_difference_is_on_the_items_that_both_ranked(cards: Path, monkeypatch, capsys) -> None:
    measured(monkeypatch, by_length(2), cards / "data", cards / "trial", "--limit", "20")
    (tiny, other) = compared(capsys, cards / "a", cards / "trial")["Differences"]["rows"]
    assert (tiny["items"], other["items"]) == (20, 20)
    rows = {
        name: {row["item_id"]: row for row in json_lines(cards / name / "items.jsonl")[:48]} for name in ("a", "trial")
    }
    drawn = [row for row in json_lines(cards / "trial" / "items.jsonl") if row["dataset"] == "tiny"]
    gold = [row["positive"] for row in drawn]
    expected = roc_auc_score(gold, [rows["a"][row["item_id"]]["score"] for row in drawn])
    assert tiny["AUC a"] == pytest.approx(expected)


def test_answers_beside_cards_have_the_same_gold(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The digest in a card says that the answers are its own, not that their gold is everybody's."""
    other = cards / "other-gold"
    shutil.copytree(cards / "b", other)
    rows = json_lines(other / "items.jsonl")
    rows[3]["unit"] = "elsewhere"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (other / "items.jsonl").write_text(text, encoding="utf-8")
    card = json.loads((other / "card.json").read_text(encoding="utf-8"))
    card["items_digest"] = hashlib.sha256(text.encode()).hexdigest()
    (other / "card.json").write_text(json.dumps(card), encoding="utf-8")
    capsys.readouterr()
    assert main(["bench", "compare", str(cards / "a"), str(other)]) == 2
    assert f"unit or gold of '{rows[3]['item_id']}' of 'tiny' are others" in capsys.readouterr().err


def test_other_data_and_another_prompt_are_not_compared(cards: Path, monkeypatch, capsys) -> None:
    prompted = cards / "prompted"
    yes = Ruled(lambda request: "yes" if len(request.response) % 2 else "no", name="server/length-3")
    measured(monkeypatch, yes, cards / "data", prompted, "--dataset", "other", "--prompt", "groundedness/yes_no")
    grids = compared(capsys, cards / "a", cards / "c", prompted)
    a, c, other = grids["Agreement"]["rows"]
    assert a["tiny"]["value"] is not None and c["tiny"]["value"] is None and other["other"]["value"] is None
    notes = "\n".join(grids["Agreement"]["notes"])
    digests = {
        (name, each.name): each
        for name in ("a", "c", "prompted")
        for each in parse_card((cards / name / "card.json").read_bytes(), name).datasets
    }
    first, second = (digests[name, "tiny"].digest[:12] for name in "ac")
    assert f"server/length-5 on tiny: other data ({second}) than the card of server/length-1 ({first}), so not" in notes
    assert "server/length-3 on other: another prompt, groundedness/yes_no (" in notes
    assert "Differences" not in grids


def test_a_column_of_grades_and_of_positive_or_not_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = items(12, grades=(0, 1, 2, 3))
    stored = {
        "graded": {row.item_id: float(max(row.grade - 1, 0)) for row in rows},
        "flagged": {row.item_id: float(row.grade > 0) for row in rows},
    }
    ordinal = dataset(grades=(0, 1, 2, 3), positive=(2, 3), stored=stored)
    monkeypatch.setattr("judge.extra.bench.DATASETS", {"tiny": ordinal})
    folder = write(tmp_path / "data", rows)
    assert main(["bench", "--data", str(folder), "--stored", "--out", str(tmp_path / "out")]) == 0
    agreement = compared(capsys, tmp_path / "out")["Agreement"]
    kappa = {row["judge"]: row["tiny"]["value"] for row in agreement["rows"]}
    gold = [row.grade >= 2 for row in rows]
    graded = [row.grade for row in rows], [max(row.grade - 1, 0) for row in rows]
    assert kappa["graded"] == pytest.approx(cohen_kappa_score(*graded, weights="quadratic"))
    assert kappa["flagged"] == pytest.approx(cohen_kappa_score(gold, [row.grade > 0 for row in rows]))
    assert "On tiny flagged is compared as positive or not, other judges by grades." in agreement["notes"]


def test_cards_without_their_items_have_no_differences(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cards / "b" / "items.jsonl").unlink()
    grids = compared(capsys, cards / "a", cards / "b" / "card.json")
    assert "Differences" not in grids
    assert grids["Agreement"]["notes"][-1] == (
        "Without items.jsonl beside the card of server/length-2 there are no paired differences of it."
    )


def test_a_folder_of_cards_stands_for_all_of_them(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(cards / "a", cards / "a-again")
    assert [row["judge"] for row in compared(capsys, cards)["Agreement"]["rows"]] == [
        "server/length-1 (1)",
        "server/length-1 (2)",
        "server/length-2",
        "server/length-5",
    ]


@pytest.mark.parametrize(("file", "content", "said"), [
    ("card.json", '{"schema": 9}', "expected a judge card of layout 4, this says 9"),
    ("card.json", '{"schema": 4}', "not a judge card: Object missing required field `judge`"),
    ("items.jsonl", "{}\n", "items.jsonl: not the items of the card beside it: their digests differ"),
])  # fmt: skip
def test_what_is_no_card_is_told(file: str, content: str, said: str, cards: Path, capsys) -> None:
    (cards / "b" / file).write_text(content)
    assert said in complaint(capsys, main(["bench", "compare", str(cards / "a"), str(cards / "b")]))


def test_one_card_is_nothing_to_compare(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", str(cards / "a"), str(cards / "a")]) == 2
    assert capsys.readouterr().err.endswith("judge: 1 card: expected two or more to compare\n")
    assert main(["bench", "compare", str(cards / "data")]) == 2


def test_the_published_cards_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    folder = PROJECT / "docs" / "cards"
    every = sorted(folder.glob("*/card.json"))
    assert len(every) == 8
    grids = compared(capsys, *every)
    assert {row["judge"] for row in grids["Agreement"]["rows"]} >= {"baseline/overlap", "gpt_4o", "willia-umbrela1"}
    # Labels of datasets that may not be passed on stand in no card of ours.
    assert not list(folder.rglob("items.jsonl"))


def test_the_published_cards_are_made_again(shared: Path, tmp_path: Path) -> None:
    """Of the same data, every number and digest of the cards in the documents comes out again."""
    folder = PROJECT / "docs" / "cards"
    published = {path.parent.name: parse_card(path.read_bytes(), str(path)) for path in folder.glob("*/card.json")}
    # The local models take minutes.
    published = {name: card for name, card in published.items() if not name.startswith("local-")}
    overlap = published.pop("baseline-overlap")
    names = [each.name for each in overlap.datasets]
    call = ["bench", "--data", str(shared), "--out"]
    assert main([*call, str(tmp_path / "one"), "--model", "baseline/overlap", "--dataset", *names]) == 0
    assert main([*call, str(tmp_path / "stored"), "--stored", "--dataset", "llmjudge", "faithbench"]) == 0
    pairs = [(overlap, tmp_path / "one"), *((card, tmp_path / "stored" / name) for name, card in published.items())]
    for card, again in pairs:
        made = parse_card((again / "card.json").read_bytes(), str(again))
        assert (made.datasets, made.items_digest) == (card.datasets, card.items_digest)


def test_names_of_a_strangers_card_are_texts_in_every_form(cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cards / "b" / "card.json"
    card = parse_card(path.read_bytes(), "card.json")
    hostile = msgspec.structs.replace(card.datasets[0], name="=x\x1b[31m\n\ty")
    path.write_bytes(json_bytes(msgspec.structs.replace(card, datasets=(hostile,))))
    assert main(["bench", "compare", str(cards / "a" / "card.json"), str(path), "--format", "tsv"]) == 0
    header = capsys.readouterr().out.splitlines()[0].split("\t")
    assert header[-3:] == [r"\=x\x1b[31m\n\ty" + end for end in ("", "_low", "_high")]


@pytest.mark.parametrize(("change", "said"), [
    ({"judge": "j" * 201}, "$.judge: 'jjj"),
    ({"names": ["tiny", "tiny"]}, "$.datasets[1].name: dataset 'tiny' is already at $.datasets[0]"),
    ({"names": ["tiny", "d" * 100_000]}, "$.datasets[1].name: 'ddd"),
    ({"schema": "9" * 100_000}, "expected a judge card of layout 4, this says '999"),
])  # fmt: skip
def test_a_strangers_card_is_refused_in_a_line(change: dict[str, Any], said: str, cards: Path, capsys) -> None:
    path = cards / "b" / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    for place, name in enumerate(change.pop("names", [])):
        card["datasets"][place]["name"] = name
    path.write_text(json.dumps(card | change), encoding="utf-8")
    message = complaint(capsys, main(["bench", "compare", str(cards / "a"), str(path)]))
    assert said in message
    assert len(message) < 600


def test_a_card_of_very_many_datasets_is_looked_through_once(cards: Path) -> None:
    card = parse_card((cards / "a" / "card.json").read_bytes(), "card.json")

    class Counted(tuple):  # type: ignore[type-arg]
        walks = 0

        def __iter__(self) -> Any:
            Counted.walks += 1
            return super().__iter__()

    datasets = [msgspec.structs.replace(card.datasets[0], name=f"d{n}") for n in range(50)]
    judge_grids([msgspec.structs.replace(card, datasets=Counted(datasets)), card])
    assert Counted.walks < 5


def test_a_folder_with_files_of_others_is_refused_before_anything_is_asked(cards: Path, monkeypatch, capsys) -> None:
    ruled = by_length(1)
    monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: ruled)
    out = cards / "other"
    put(out / "card.md", "mine")
    assert main(["bench", "--data", str(cards / "data"), "--model", ruled.name, "--out", str(out)]) == 2
    assert "card.md: not listed in bench.sha256" in capsys.readouterr().err
    assert ruled.calls == 0
