"""Passages graded by people: drawn, dealt out on sheets and at the desk, and back as gold, agreement and qrels."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.extra.desk.assess import AssessPlan, open_assess_desk
from judge.extra.probe.alterations import ProbeItem
from judge.extra.probe.probes import KINDS, probes_of
from judge.extra.probe.twins import make_twin
from judge.gold.plan import PlanRow, make_plan
from judge.gold.rows import GoldRow, citation_digest, read_gold
from judge.jobs.gold import GoldSheetPlan, write_gold_sheet
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool
from judge.stats.tables import Undefined
from tests.build import pooled
from tests.conftest import PROJECT, complaint, json_lines, on_stderr, printed, put
from tests.extra.desk.visiting import Visitor
from tests.units.test_passages import listed

EXAMPLES = PROJECT / "examples"
TOPICS = EXAMPLES / "topics.json"
HOSTILE = (
    '</p><script>document.title = "taken"</script><img src=x onerror=alert(1)><style>*{display:none}</style>'
    " **bold** \x1b[31mred zero\u200bwidth \u202elive"
)
ODD = {
    "a b, c:0": HOSTILE,
    "d/../e:0": "=HYPERLINK(1) owls hunt at night",
    "long:0": "Owls hunt at night. " * 10_500,
    "none:0": None,
}
"""Ids with a space, a comma and a slash; texts that are hostile, a formula, 210,000 characters long, and none."""


def said(*words: object) -> list[str]:
    return [str(word) for word in words]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the passages of the example judged (`out`), a plan of all of them, and people's grades."""
    folder = tmp_path_factory.mktemp("passages")
    given = said("--runs", EXAMPLES / "runs", "--topics", TOPICS, "--passages", EXAMPLES / "passages.jsonl")
    out = folder / "out"
    assert (
        main(["run", *given, *said("--criteria", "passage_relevance", "--model", "baseline/overlap", "--out", out)])
        == 0
    )
    assert main(["gold", "plan", *said("--pool", out, "--n", 60, "--seed", 1, "--out", folder / "plan.jsonl")]) == 0
    rows = []
    for number, row in enumerate(json_lines(folder / "plan.jsonl")):
        fields = {name: row[name] for name in ("turn_id", "topic_id", "response_id", "text_sha256", "stratum")}
        fields |= {"criterion": "passage_relevance", "inclusion_probability": row["inclusion_probability"]}
        rows.append({**fields, "assessor": "ann", "grade": number % 4})
        if number % 3 == 0:
            rows.append({**fields, "assessor": "bob", "grade": (number + number % 2) % 4})
    put(folder / "gold.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of one run with three turns, whose ids and texts are odd."""
    folder = tmp_path_factory.mktemp("odd")
    passages = [(name, 9.0 - rank, True, None) for rank, name in enumerate(ODD)]
    put(folder / "run.json", listed("one", {f"1-1_{number}": [passages] for number in (1, 2, 3)}))
    texts = [json.dumps({"id": name, "contents": text}) for name, text in ODD.items() if text]
    put(folder / "passages.jsonl", "\n".join(texts))
    turns = [
        {"turn_id": number, "utterance": f"And this {HOSTILE}?", "resolved_utterance": f"What of owls {number}?"}
        | {"response": f"Answer {number}."}
        for number in (1, 2, 3)
    ]
    put(folder / "topics.json", [{"number": "1-1", "title": "owls", "ptkb": {"1": HOSTILE}, "turns": turns}])
    given = said("--runs", folder / "run.json", "--passages", folder / "passages.jsonl", "--topics")
    given += said(folder / "topics.json", "--criteria", "passage_relevance", "--model", "baseline/overlap")
    assert main(["run", *given, *said("--out", folder / "out")]) == 0
    return folder


# ---------------------------------------------------------------- plans


def grid(turns: int, passages: int) -> Pool:
    """Two runs that list the same passages of each turn."""
    responses = [
        pooled(
            f"R{turn * passages + rank:05}",
            f"{turn}-1_1",
            "one",
            "two",
            passages=(f"p{rank}",),
            unit="passage",
            text="",
        )
        for turn in range(turns)
        for rank in range(passages)
    ]
    return Pool(tuple(responses), {}, ())


def drawn(pool: Pool, seed: int) -> tuple[PlanRow, ...]:
    return make_plan(pool, 6, seed, criteria=("passage_relevance",), per_run=1).rows


def test_turns_are_drawn_with_all_their_passages_and_the_stated_probability() -> None:
    pool = grid(5, 3)
    counts: Counter[str] = Counter()
    for seed in range(400):
        rows = drawn(pool, seed)
        of_turn = Counter(row.turn_id for row in rows)
        # 6 of 15 passages are 2 of 5 turns.
        assert len(of_turn) == 2 and set(of_turn.values()) == {3}
        assert {(row.inclusion_probability, row.stratum) for row in rows} == {(0.4, "drawn")}
        counts.update(of_turn.keys())
    # 160 of 400 on average, with a standard deviation of 9.8.
    assert all(abs(n - 160) < 4 * 9.8 for n in counts.values())


def test_a_plan_says_passages_and_leaves_out_those_without_a_text(graded: Path, tmp_path: Path, capsys) -> None:
    given = said("--pool", graded / "out", "--n", 20, "--seed", 1, "--per-run", 5, "--out", tmp_path / "plan.jsonl")
    told = on_stderr(capsys, main(["gold", "plan", *given]))
    rows = json_lines(tmp_path / "plan.jsonl")
    assert told.splitlines()[0].endswith(f"plan.jsonl: {len(rows)} of 51 passages, 6 of 16 turns")
    assert "1 passage not drawn: no text of the passage" in told and "response" not in told
    pool = read_pool_folder(graded / "out", "passages.jsonl")
    drawn_turns = {row["turn_id"] for row in rows}
    expected = {
        response.response_id: citation_digest("", response.listed_as)
        for response in pool.responses
        if response.turn_id in drawn_turns and response.passages[0] in pool.passages
    }
    assert {row["response_id"]: row["text_sha256"] for row in rows} == expected
    # All turns are equally likely: 6 of 16.
    assert {row["inclusion_probability"] for row in rows} == {6 / 16}


def test_passages_are_drawn_by_the_grade_of_the_judge(graded: Path, tmp_path: Path, capsys) -> None:
    judgments = graded / "out" / "judgments.jsonl"
    given = said("--pool", graded / "out", "--n", 20, "--seed", 1, "--judgments", judgments, "--stratify", "judge")
    told = on_stderr(capsys, main(["gold", "plan", *given, *said("--out", tmp_path / "plan.jsonl")]))
    assert "plan.jsonl: 20 of 51 passages" in told
    grades = {row["response_id"]: row["grade"] for row in json_lines(judgments)}
    rows = json_lines(tmp_path / "plan.jsonl")
    assert {(row["stratum"], row["inclusion_probability"]) for row in rows} == {
        (f"grade {grade}", 20 / 51) for grade in (0, 1, 2)
    }
    assert all(row["stratum"] == f"grade {grades[row['response_id']]}" for row in rows)


def test_what_has_grades_is_not_drawn_again(graded: Path, tmp_path: Path, capsys) -> None:
    given = said("--pool", graded / "out", "--n", 20, "--seed", 1, "--gold", graded / "gold.jsonl")
    told = complaint(capsys, main(["gold", "plan", *given, *said("--out", tmp_path / "plan.jsonl")]))
    assert "nothing is left to label" in told


@pytest.mark.parametrize("command", ["plan", "sheet", "desk"])
def test_a_pool_without_any_text_has_nothing_to_label(tmp_path: Path, command: str, capsys) -> None:
    put(tmp_path / "run.json", listed("one", {"1-1_1": [[("p:0", 1.0, True, None)]]}))
    pool = said("pool", "--runs", tmp_path / "run.json", "--criteria", "passage_relevance", "--out", tmp_path / "out")
    put(tmp_path / "passages.jsonl", json.dumps({"id": "p:0", "contents": "Owls."}))
    assert main([*pool, *said("--passages", tmp_path / "passages.jsonl")]) == 0
    (tmp_path / "out" / "passages.jsonl").write_text("")
    turn = {"turn_id": 1, "utterance": "Owls?"}
    topics = put(tmp_path / "topics.json", [{"number": "1-1", "title": "o", "ptkb": {}, "turns": [turn]}])
    given: dict[str, list[str]] = {
        "plan": said("gold", "plan", "--n", 1, "--seed", 1, "--out", tmp_path / "plan.jsonl"),
        "sheet": said("gold", "sheet", "--to", "csv", "--topics", topics, "--out", tmp_path / "sheet"),
        "desk": said("serve", "assess", "--topics", topics, "--assessor", "a", "--store", tmp_path / "s.sqlite"),
    }
    told = complaint(capsys, main([*given[command], *said("--pool", tmp_path / "out")]))
    assert "no passage there has a text, so nobody can grade a passage" in told


# ---------------------------------------------------------------- sheets


def sheet(folder: Path, out: Path, to: str, **more: object) -> dict[str, str]:
    topics = folder / "topics.json" if (folder / "topics.json").exists() else TOPICS
    outcome = write_gold_sheet(GoldSheetPlan(pool=folder / "out", to=to, topics=topics, out=out, **more))
    assert outcome.unit == "passage"
    return {name: (out / name).read_bytes().decode("utf-8-sig") for name in outcome.files}


def cells(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(1_000_000)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_table_has_a_passage_in_a_row_with_the_question_in_full(graded: Path, tmp_path: Path) -> None:
    rows = cells(sheet(graded, tmp_path / "csv", "csv")["sheet.csv"])
    assert list(rows[0])[-3:] == ["about_user", "conversation", "passage"]
    # 52 passages, of which one has no text.
    assert len(rows) == 51 and all(row["passage"] for row in rows)
    (row,) = (row for row in rows if row["response_id"] == "R00008")
    *_, utterance, resolved = row["conversation"].splitlines()
    assert utterance == "User: And what will the two of us have to pay?"
    assert resolved.startswith("In full: What do my sister Ada and I have to pay")


def test_pages_of_all_kinds_say_passage(graded: Path, tmp_path: Path) -> None:
    html = sheet(graded, tmp_path / "html", "html")["sheet.html"]
    assert "<h1>51 passages to label</h1>" in html and "<h3>Passage to assess</h3>" in html
    form = sheet(graded, tmp_path / "mturk", "mturk")["form.html"]
    assert "<h1>Assess the passages</h1>" in form and "<h2>Passage 1</h2>" in form
    config = sheet(graded, tmp_path / "ls", "labelstudio")["config.xml"]
    assert '<Header value="Passage to assess"/>' in config
    for page in (html, form, config):
        assert "Response" not in page and "that it names" not in page and "it names" not in page


def test_sheets_hold_odd_passages_and_come_back(odd: Path, tmp_path: Path, capsys) -> None:
    rows = cells(sheet(odd, tmp_path / "csv", "csv", assessors=("ann",))["sheet-ann.csv"])
    assert len(rows) == 9
    shown = {row["passage"][:12] for row in rows}
    assert shown == {"</p><script>", "\\=HYPERLINK(", "Owls hunt at"}
    assert not any("\x1b" in row["passage"] or "\u202e" in row["passage"] for row in rows)
    html = sheet(odd, tmp_path / "html", "html")["sheet.html"]
    assert "<script>document" not in html and "&lt;script&gt;document" in html
    for number, row in enumerate(rows):
        row["grade"] = str(number % 4)
    with (tmp_path / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    given = said(
        "gold", "import", "csv", tmp_path / "labels.csv", "--pool", odd / "out", "--out", tmp_path / "gold.jsonl"
    )
    assert main(given) == 0
    gold = read_gold(tmp_path / "gold.jsonl")
    assert {(row.turn_id, row.response_id, row.grade) for row in gold} == {
        (row["turn_id"], row["response_id"], int(row["grade"])) for row in rows
    }
    names = {response.response_id: response.listed_as for response in read_pool_folder(odd / "out").responses}
    assert all(row.text_sha256 == citation_digest("", names[row.response_id or ""]) for row in gold)
    capsys.readouterr()
    of_sheets = ("gold", "sheet", "--pool", odd / "out", "--topics", odd / "topics.json")
    # A spreadsheet cuts the long one, and MTurk takes no page of its length.
    notes = on_stderr(capsys, main(said(*of_sheets, "--to", "csv", "--out", tmp_path / "again")))
    assert "9 passages, 9 labels to give" in notes and "3 passages not dealt: no text of the passage" in notes
    assert "3 texts longer than 32,767 characters" in notes
    refusal = complaint(capsys, main(said(*of_sheets, "--to", "mturk", "--out", tmp_path / "mturk")))
    assert "MTurk takes 65,535" in refusal


# ---------------------------------------------------------------- the desk


class Desk:
    """An open desk with one assessor at it."""

    def __init__(self, visitor: Visitor, token: str, seat: str) -> None:
        self.visitor = visitor
        self.home = f"/{seat}/"
        visitor.enter(self.home, token)

    def page(self, place: int | str) -> str:
        return self.visitor.get(f"{self.home}{place}").text

    def label(self, place: int, grade: str, comment: str = "") -> None:
        page = self.visitor.get(f"{self.home}{place}")
        assert self.visitor.submit(page, f"{self.home}{place}", grade=grade, comment=comment).status_code == 303


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Opens desks of a folder; they are closed at the end."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def opened(folder: Path, **more: object) -> Desk:
            topics = folder / "topics.json" if (folder / "topics.json").exists() else TOPICS
            fields = {
                "pool": folder / "out",
                "topics": topics,
                "assessors": ["ann"],
                "store": tmp_path / "labels.sqlite",
            }
            made, store = stack.enter_context(open_assess_desk(AssessPlan(**fields | more)))
            visitor = stack.enter_context(Visitor(made.app(port=8765)))
            return Desk(visitor, store.seats[0].token, store.seats[0].path)

        yield opened


def test_the_desk_shows_the_question_what_led_to_it_and_one_passage(graded: Path, desk: Callable[..., Desk]) -> None:
    made = desk(graded)
    assert "0 of 51" in made.page(1)
    pages = [made.page(place) for place in range(1, 52)]
    (page,) = (page for page in pages if "A standard return from Orrin" in page)
    full = next(
        turn["resolved_utterance"]
        for topic in json.loads(TOPICS.read_text())
        for turn in topic["turns"]
        if turn["utterance"].startswith("And what will the two of us have to pay?")
    )
    shown = (full, "And what will the two of us have to pay?", "How do I arrange help with boarding?")
    shown += ("I hold a Companion Card.", "A standard return from Orrin")
    levels = ("Not relevant.", "On the subject only.", "Useful.", "Exactly what is needed.")
    order = [page.index(words) for words in shown + levels]
    assert order == sorted(order)
    assert re.findall(r'data-key="(.)"', page) == ["0", "1", "2", "3", "u"]
    assert "number" in page and ">Passage <" in page
    for words in ("Response", "What the response rests on", "not needed", "harbor-grounded", "clueweb22"):
        assert words not in page


@pytest.mark.parametrize(("prompt", "folded"), [("passage_relevance/graded", 0), ("passage_relevance/resolved", 2)])
def test_what_the_prompt_hides_from_a_judge_is_folded(
    graded: Path, desk: Callable[..., Desk], prompt: str, folded: int
) -> None:
    page = desk(graded, prompts=[prompt]).page(1)
    assert len(re.findall("(?:Said before|About the user): not needed for passage_relevance", page)) == folded
    assert len(re.findall(r"<details open>\s*<summary>(?:Said before|About the user)", page)) == 2 - folded


def test_hostile_passages_stay_texts_at_the_desk(odd: Path, desk: Callable[..., Desk]) -> None:
    made = desk(odd)
    assert "0 of 9" in made.page(1)
    everything = [*(made.page(place) for place in range(1, 10)), made.page("list")]
    for page in everything:
        assert not any(
            mark in page for mark in ("<script>document", "<img", "<style>*", "<strong>bold", "\u202e", "\x1b")
        )
    assert sum("&lt;script&gt;document" in page.partition(">Passage <")[2] for page in everything) == 3
    assert max(map(len, everything)) > 210_000
    assert "Open a passage to change its label." in everything[-1]
    assert "Owls hunt at night. Owls" in everything[-1] and len(everything[-1]) < 20_000


def test_labels_of_the_desk_become_gold_of_passages(
    graded: Path, desk: Callable[..., Desk], tmp_path: Path, capsys
) -> None:
    given = said("--pool", graded / "out", "--n", 9, "--seed", 2, "--per-run", 1, "--out", tmp_path / "plan.jsonl")
    assert main(["gold", "plan", *given]) == 0
    planned = {row["response_id"]: row for row in json_lines(tmp_path / "plan.jsonl")}
    made = desk(graded, plan=tmp_path / "plan.jsonl")
    for place in range(1, len(planned) + 1):
        made.label(place, "unable" if place == 1 else str(place % 4), "why" * (place == 2))
    # The last label is taken back, and given anew.
    page = made.visitor.get(f"{made.home}1")
    assert made.visitor.submit(page, f"{made.home}undo").status_code == 303
    made.label(len(planned), "3")
    out = tmp_path / "gold.jsonl"
    assert main(said("gold", "import", "desk", tmp_path / "labels.sqlite", "--out", out)) == 0
    rows = read_gold(out)
    assert len(rows) == len(planned) - 1
    for row in rows:
        plan = planned[row.response_id or ""]
        assert (row.turn_id, row.text_sha256, row.stratum) == (plan["turn_id"], plan["text_sha256"], plan["stratum"])
        assert row.inclusion_probability == pytest.approx(plan["inclusion_probability"])
        assert (row.criterion, row.assessor, row.made) == ("passage_relevance", "ann", "blind")
    capsys.readouterr()
    assert "0 errors, 0 warnings" in on_stderr(capsys, main(said("gold", "check", out, "--pool", graded / "out")))


# ---------------------------------------------------------------- what the labels are good for


def test_people_and_judge_are_compared_and_people_with_each_other(graded: Path, tmp_path: Path, capsys) -> None:
    given = said("--gold", graded / "gold.jsonl", "--judgments", graded / "out" / "judgments.jsonl", "--topics", TOPICS)
    given += said("--criterion", "passage_relevance", "--out", tmp_path / "out")
    told = printed(capsys, main(["calibrate", *given]))
    grades = {row["response_id"]: row["grade"] for row in json_lines(graded / "out" / "judgments.jsonl")}
    both: dict[str, set[int]] = {}
    for row in json_lines(graded / "gold.jsonl"):
        both.setdefault(row["response_id"], set()).add(row["grade"])
    share = sum((grades[name] in people) / len(people) for name, people in both.items()) / len(both)
    head, *rows = (tmp_path / "out" / "agreement.tsv").read_text().splitlines()
    row = dict(zip(head.split("\t"), rows[0].split("\t"), strict=True))
    assert (row["gold"], row["n"]) == ("51", "51")
    assert float(row["percent"]) == pytest.approx(share, abs=1e-6)
    # Every third of 51 has two assessors.
    assert "between the assessors themselves" in told and "n = 17" in " ".join(told.split())
    report = (tmp_path / "out" / "disagreements.md").read_text()
    assert "**The user asks**" in report and "**Passage clueweb22" in report and "**Response**" not in report
    assert "doubling of the words" in (tmp_path / "out" / "calibration.md").read_text()


def test_peoples_grades_become_qrels_by_the_ids_of_passages(graded: Path, tmp_path: Path, capsys) -> None:
    given = said("crowd", graded / "gold.jsonl", "--prompt", "passage_relevance", "--pool", graded / "out")
    assert main([*given, *said("--out", tmp_path / "crowd")]) == 0
    qrels = tmp_path / "crowd" / "qrels" / "passage_relevance.qrel"
    names = {
        response.response_id: (response.turn_id, response.listed_as)
        for response in read_pool_folder(graded / "out").responses
    }
    wanted = {names[row["response_id"]] for row in json_lines(graded / "gold.jsonl")}
    lines = [line.split(" ") for line in qrels.read_text().splitlines()]
    assert {(turn_id, passage_id) for turn_id, _, passage_id, _ in lines} == wanted and len(lines) == 51
    bank = json.loads((tmp_path / "crowd" / "bank.json").read_text())
    assert bank["clueweb22-en9999-01-00017:1"].startswith("Kestrel trains leave Orrin")
    judgments = json.loads((tmp_path / "crowd" / "passage_judgments.json").read_text())
    assert judgments["1-1_1"]["Passages"][0]["Passage ID"] == "clueweb22-en9999-01-00017:0"
    assert main(said("evaluate", "passages", "--runs", EXAMPLES / "runs", "--qrels", qrels)) == 0
    assert "--unit question" in complaint(capsys, main([*given, *said("--unit", "question", "--out", tmp_path / "q")]))


def test_qrels_of_passages_are_gold_in_either_spelling_of_turns(graded: Path, tmp_path: Path) -> None:
    (first, *_) = read_pool_folder(graded / "out").responses
    expected = GoldRow(
        turn_id="1-1_1",
        topic_id="1-1",
        criterion="passage_relevance",
        grade=2,
        assessor="nist",
        response_id=first.response_id,
        text_sha256=citation_digest("", first.listed_as),
        run_id="bramble-broken",
    )
    for turn_id in ("1-1_1", "1-1-1"):
        qrels = put(tmp_path / f"{turn_id}.qrel", f"{turn_id} 0 {first.listed_as} 2\n")
        given = said("gold", "import", "qrels", qrels, "--criterion", "passage_relevance", "--assessor", "nist")
        assert main([*given, *said("--pool", graded / "out", "--out", tmp_path / "gold.jsonl")]) == 0
        assert read_gold(tmp_path / "gold.jsonl") == (expected,)


def test_a_passage_outside_the_plan_is_named_as_the_qrels_name_it(graded: Path, tmp_path: Path, capsys) -> None:
    pool = graded / "out"
    plan = tmp_path / "plan.jsonl"
    assert main(["gold", "plan", *said("--pool", pool, "--n", 20, "--seed", 1, "--out", plan)]) == 0
    planned = {row["turn_id"] for row in json_lines(plan)}
    beyond = next(item for item in read_pool_folder(pool).responses if item.turn_id not in planned)
    qrels = put(tmp_path / "nist.qrel", f"{beyond.turn_id} 0 {beyond.listed_as} 2\n")
    given = said("gold", "import", "qrels", qrels, "--pool", pool, "--plan", plan, "--out", tmp_path / "gold.jsonl")
    told = complaint(capsys, main([*given, "--criterion", "passage_relevance"]))
    assert f"the plan has no '{beyond.listed_as}' in this turn" in " ".join(told.split())


@pytest.mark.parametrize("named", ["a b, c:0", "d/../e:0", "R00001"])
def test_a_table_may_name_passages_by_their_own_ids(odd: Path, tmp_path: Path, named: str) -> None:
    pool = read_pool_folder(odd / "out")
    (meant,) = (
        response
        for response in pool.responses
        if response.turn_id == "1-1_1" and named in (response.listed_as, response.response_id)
    )
    table = put(tmp_path / "t.csv", f'turn_id,passage_id,grade\n1-1_1,"{named}",3\n')
    given = said("gold", "import", "csv", table, "--pool", odd / "out", "--out", tmp_path / "gold.jsonl")
    more = ("--column", "response_id=passage_id", "--criterion", "passage_relevance", "--assessor", "ann")
    assert main([*given, *more]) == 0
    assert [(row.response_id, row.text_sha256, row.grade) for row in read_gold(tmp_path / "gold.jsonl")] == [
        (meant.response_id, citation_digest("", meant.listed_as), 3)
    ]


def test_a_split_counts_passages(graded: Path, tmp_path: Path, capsys) -> None:
    given = said("gold", "split", graded / "gold.jsonl", "--test", 0.5, "--seed", 1, "--out", tmp_path / "split")
    told = on_stderr(capsys, main(given))
    assert re.search(r"^dev: \d+ passages, \d+ grades, [12] topics?$", told, re.MULTILINE)
    judgments = graded / "out" / "judgments.jsonl"
    given = said("--gold", tmp_path / "split" / "dev.jsonl", "--test", tmp_path / "split" / "test.jsonl")
    assert main(["calibrate", *given, *said("--judgments", judgments, "--criterion", "passage_relevance")]) == 0


def test_without_topics_word_overlap_is_left_out_and_said(graded: Path, tmp_path: Path, capsys) -> None:
    judgments = put(
        tmp_path / "judgments.jsonl",
        (graded / "out" / "judgments.jsonl").read_text().replace("baseline/overlap", "server/m"),
    )
    given = said("calibrate", "--gold", graded / "gold.jsonl", "--judgments", judgments, "--pool", graded / "out")
    given += said("--criterion", "passage_relevance")
    assert main(given) == 0
    out, err = capsys.readouterr()
    assert "baseline/overlap is not compared under passage_relevance/graded" in err and "(--topics)" in err
    assert "baseline/overlap" not in out
    assert main([*given, *said("--topics", TOPICS)]) == 0
    assert "baseline/overlap graded" in capsys.readouterr().out


def test_a_probe_alters_the_passage_that_is_graded() -> None:
    criterion = find_criterion("passage_relevance")
    item = ProbeItem(
        response=pooled("R1", "1-1_1", text="", passages=("p",), unit="passage"),
        passages=("The owls do not sleep. They hunt at night.",),
        elsewhere=(("Bread needs flour.",),),
        question="When do owls hunt?",
    )
    twins = {probe.name: make_twin(probe, item, criterion, 1) for probe in probes_of(criterion, KINDS)}
    assert not any(name.endswith("@response") for name in twins)
    assert {name for name in twins if name.endswith("@passage")} and "negation" not in twins
    for name, twin in twins.items():
        if isinstance(twin, Undefined):
            continue
        assert twin.text == "" and len(twin.passages) == 1 and twin.passages != item.passages, name
    assert twins["passages swapped"].passages == ("Bread needs flour.",)
    assert twins["contractions"].passages == ("The owls don't sleep. They hunt at night.",)
    # Of responses, the probes are as they were.
    assert "sentence invented" in {probe.name for probe in probes_of(find_criterion("groundedness"), KINDS)}


# ---------------------------------------------------------------- every command that takes a pool or gold

RANKS_NO_RUNS = "a pool of passages ranks no runs: `judge evaluate passages` measures them by its qrels"
NOT_THESE = "about responses, but passages are judged here"
SERVER = "--model server/m --base-url http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("leaderboard OUT", 2, RANKS_NO_RUNS),
        ("leaderboard OUT --gold GOLD", 2, RANKS_NO_RUNS),
        ("report OUT", 2, RANKS_NO_RUNS),
        ("plan OUT", 2, RANKS_NO_RUNS),
        ("evaluate responses OUT", 2, RANKS_NO_RUNS),
        ("release OUT --gold GOLD --out NEW", 2, RANKS_NO_RUNS),
        ("release OUT --out NEW", 0, "README.md says what each is"),
        ("drift OUT OUT", 1, "INCONCLUSIVE"),
        ("evaluate qrels QRELS QRELS", 0, "Both graded 51 items of 16 turns"),
        ("evaluate passages --runs RUNS --qrels QRELS", 0, "harbor-grounded"),
        ("evaluate passages --runs RUNS --qrels GOLD", 2, "JSON, not qrels"),
        ("run --runs RUNS --passages TEXTS --criteria passage_relevance --fill GOLD --model baseline/overlap --out NEW",
         2, "`judge crowd --pool` makes qrels"),
        ("gold plan --pool OUT --criteria naturalness --n 4 --seed 1 --out NEW", 2, NOT_THESE),
        ("gold sheet --pool OUT --prompt naturalness --topics TOPICS --to csv --out NEW", 2, NOT_THESE),
        ("gold sheet --pool OUT --to csv --out NEW", 2, "a topics file is needed (--topics)"),
        ("gold check GOLD --pool OUT", 0, "0 errors, 0 warnings"),
        ("serve assess --pool OUT --assessor a --store NEW", 2, "a topics file is needed (--topics)"),
        ("serve assess --pool OUT --prompt relevance --topics TOPICS --assessor a --store NEW", 2, NOT_THESE),
        ("calibrate --pool OUT --gold GOLD --prompt groundedness --model baseline/overlap --out NEW", 2, NOT_THESE),
        ("calibrate --pool OUT --gold GOLD --prompt passage_relevance/graded --prompt passage_relevance/resolved "
         "--model baseline/overlap --topics TOPICS --out NEW", 0, "baseline/overlap resolved"),
        ("crowd GOLD --pool OUT --prompt passage_relevance --out NEW", 0, "written to"),
        ("probe OUT --model baseline/overlap --out NEW", 2, "a topics file is needed (--topics)"),
        ("probe OUT --topics TOPICS --items 3 --model baseline/overlap --out NEW", 1, "keywords stuffed"),
        (f"nuggets create --pool OUT {SERVER} --out NEW", 2, NOT_THESE),
        (f"nuggets match --pool OUT --bank NUGGETS {SERVER} --out NEW", 2, NOT_THESE),
        ("journal verify OUT", 0, "sound               51"),
        ("journal export OUT --out NEW", 0, "51 completions"),
        ("journal reparse OUT", 0, "changed             0"),
        ("journal stats OUT", 0, "calls             51"),
        ("convert OUT --to parquet --out NEW", 0, "51 rows in judgments.parquet"),
    ],
)  # fmt: skip
def test_every_command_takes_passages_or_says_why_not(
    graded: Path, tmp_path: Path, capsys, typed: str, code: int, words: str
) -> None:
    named = {
        "OUT": graded / "out",
        "GOLD": graded / "gold.jsonl",
        "QRELS": graded / "out" / "qrels" / "passage_relevance.llm.qrel",
        "TOPICS": TOPICS,
        "RUNS": EXAMPLES / "runs",
        "TEXTS": EXAMPLES / "passages.jsonl",
        "NUGGETS": EXAMPLES / "nuggets.jsonl",
        "NEW": tmp_path / "new",
    }
    assert main([str(named.get(word, word)) for word in typed.split()]) == code
    out, err = capsys.readouterr()
    assert words in " ".join(f"{out} {err}".split()) or words in out + err
    assert "Traceback" not in err
    if code == 2:
        assert err.startswith("judge: ")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "typed",
    [
        "gold plan --pool OUT --criteria passage_relevance --n 4 --seed 1 --out NEW",
        "gold sheet --pool OUT --prompt passage_relevance --topics TOPICS --to csv --out NEW",
        "gold check GOLD --pool OUT",
        "serve assess --pool OUT --prompt passage_relevance --topics TOPICS --assessor a --store NEW",
    ],
)
def test_beside_responses_it_is_said_where_the_passages_are(graded: Path, tmp_path: Path, capsys, typed: str) -> None:
    out = tmp_path / "out"
    given = said("--runs", EXAMPLES / "runs", "--topics", TOPICS, "--passages", EXAMPLES / "passages.jsonl")
    assert main(["pool", *given, *said("--criteria", "naturalness", "passage_relevance", "--out", out)]) == 0
    capsys.readouterr()
    named = {"OUT": out, "GOLD": graded / "gold.jsonl", "TOPICS": TOPICS, "NEW": tmp_path / "new"}
    told = complaint(capsys, main([str(named.get(word, word)) for word in typed.split()]))
    assert f"about passages, but responses are judged here; the passages are in {out / 'passages'}" in told


def test_a_pool_of_one_passage_is_labeled_too(odd: Path, tmp_path: Path, capsys) -> None:
    put(tmp_path / "run.json", listed("solo", {"1-1_1": [[("a b, c:0", 1.0, True, None)]]}))
    given = said("--runs", tmp_path / "run.json", "--passages", odd / "passages.jsonl", "--topics", odd / "topics.json")
    given += said("--criteria", "passage_relevance", "--model", "baseline/overlap", "--out", tmp_path / "out")
    assert main(["run", *given]) == 0
    judgments = tmp_path / "out" / "judgments.jsonl"
    capsys.readouterr()
    for more in ((), ("--judgments", judgments), ("--judgments", judgments, "--stratify", "judge")):
        plan = tmp_path / f"plan{len(more)}.jsonl"
        given = said("gold", "plan", "--pool", tmp_path / "out", "--n", 5, "--seed", 1, "--out", plan, *more)
        assert "1 of 1 passage, 1 of 1 turn" in on_stderr(capsys, main(given))
        assert [(row["inclusion_probability"], row["stratum"]) for row in json_lines(plan)] == [(1.0, "certain")]
    assert [response.listed_as for response in read_pool_folder(tmp_path / "out").responses] == ["a b, c:0"]
    gold = replace_grades(tmp_path, 1)
    given = said(
        "crowd", gold, "--prompt", "passage_relevance", "--pool", tmp_path / "out", "--out", tmp_path / "crowd"
    )
    assert main(given) == 0
    assert (tmp_path / "crowd" / "qrels" / "passage_relevance.qrel").read_text() == "1-1_1 0 a%20b,%20c:0 1\n"


def replace_grades(folder: Path, grade: int) -> Path:
    """A gold file in which ann gives this grade to all that is planned."""
    lines = []
    for row in json_lines(folder / "plan0.jsonl"):
        kept = {name: row[name] for name in ("turn_id", "topic_id", "response_id", "text_sha256")}
        lines.append(json.dumps({**kept, "criterion": "passage_relevance", "grade": grade, "assessor": "ann"}))
    return put(folder / "gold.jsonl", "\n".join(lines) + "\n")
