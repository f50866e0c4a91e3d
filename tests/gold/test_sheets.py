"""Sheets go out and labels come back: every grade that an assessor meant is the grade of a gold row."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.crowd.labels import Item
from judge.errors import InputError, UsageError
from judge.gold.plan import PlanRow
from judge.gold.rows import read_gold, text_digest
from judge.gold.sheets import SheetItem, shares
from judge.gold.sheets.kinds import LARGEST, WRAPPING, SheetOptions
from judge.io.files import jsonl_bytes
from judge.jobs.crowd import CrowdPlan, grade_crowd
from judge.jobs.gold import GoldImportPlan, GoldSheetPlan, import_gold_files, write_gold_sheet
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage
from tests.calibration_world import pooled
from tests.conftest import PROJECT, put, refused

HOSTILE = (
    '=HYPERLINK("http://evil.example","x")',
    "</div></crowd-form><script>alert(1)</script> ${response_id_1} {{ 7*7 }} $passages",
    "<img src=x onerror=alert(1)> ]]> & &amp; \"quoted\" 'single'\nsecond line,\twith; signs",
    "\x1b[31mred \u202eevil \ud7ff 😀 𝕏",
    "- a list\n- of two",
)
"""What strangers may write as a response."""
IDS = ("R00002", "R100000", "R99999", "R00001", "R00011")
RUN = "secret-run"
GROUNDED = ("Not grounded", "Weakly grounded", "Mostly grounded", "Fully grounded")
"""What the levels of groundedness/graded are called."""
SCALES = {"groundedness": 4, "naturalness": 5}


def response(response_id: str, text: str, turn_id: str = "1-1_2") -> PooledResponse:
    return pooled(response_id, text, RUN, turn_id=turn_id, passages=("p",))


RESPONSES = tuple(response(name, text) for name, text in zip(IDS, HOSTILE, strict=True))
POOL = Pool(RESPONSES, {"p": Passage("p", f"Passage. {HOSTILE[1]}", "collection")}, ())
PLANNED = tuple(
    PlanRow(each.turn_id, "1-1", each.response_id, text_digest(each.text), (RUN,), tuple(SCALES), 0.25, "drawn")
    for each in RESPONSES
)
TOPICS = [
    {
        "number": "1-1",
        "title": "t",
        "ptkb": {"1": "I <b>like</b> cats."},
        "turns": [
            {"turn_id": 1, "utterance": "Hello?", "response": HOSTILE[1], "ptkb_provenance": []},
            {"turn_id": 2, "utterance": "=And </script>?", "response": "-", "ptkb_provenance": []},
        ],
    }
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A pool, a plan of it, and its topics."""
    put(tmp_path / "pool/pool.jsonl", pool_jsonl(POOL))
    (tmp_path / "pool/passages.jsonl").write_bytes(passages_jsonl(POOL))
    (tmp_path / "plan.jsonl").write_bytes(jsonl_bytes(PLANNED))
    (tmp_path / "topics.json").write_text(json.dumps(TOPICS), encoding="utf-8")
    return tmp_path


def written(world: Path, to: str, **options) -> dict[str, bytes]:
    """The files of a sheet."""
    given = {"plan": world / "plan.jsonl", "topics": world / "topics.json", **options}
    outcome = write_gold_sheet(GoldSheetPlan(pool=world / "pool", to=to, out=world / to, **given))
    return {name: (world / to / name).read_bytes() for name in outcome.files}


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def as_csv(rows: Sequence[Mapping[str, object]], delimiter: str = ",") -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def meant(response_id: str, criterion: str, who: str) -> int:
    """The grade that an assessor means: any rule will do that gives every grade to somebody."""
    return (int(response_id[1:]) + len(criterion) + (who == "bob")) % SCALES[criterion]


def expected(*who: str) -> list[tuple[str, str, str, int]]:
    return sorted((r, c, w, meant(r, c, w)) for r in IDS for c in SCALES for w in who)


def gold_of(world: Path, source: str, *files: Path, **options) -> list[tuple[str, str, str, int]]:
    """(response, criterion, assessor, grade) after an import by the plan, and what the plan adds."""
    out = world / "gold.jsonl"
    import_gold_files(
        GoldImportPlan(source=source, files=files, out=out, plan=world / "plan.jsonl", pool=world / "pool", **options)
    )
    rows = read_gold(out)
    digests = {each.response_id: text_digest(each.text) for each in RESPONSES}
    for row in rows:
        assert (row.turn_id, row.topic_id, row.inclusion_probability, row.stratum) == ("1-1_2", "1-1", 0.25, "drawn")
        assert (row.text_sha256, row.run_id, row.made) == (digests[row.response_id], RUN, "blind")
    return sorted((str(row.response_id), row.criterion, row.assessor, row.grade) for row in rows)


def crowd_of(world: Path, *files: Path) -> list[tuple[str, str, str, int]]:
    """The same labels as `judge crowd` reads them."""
    scales = [f"{name}=0-{k - 1}" for name, k in SCALES.items()]
    graded = grade_crowd(CrowdPlan(labels=files, scales=scales, out=world / "crowd")).study
    found = []
    for criterion, labels in graded.labels.items():
        for worker, item, code in zip(labels.worker, labels.item, labels.code, strict=True):
            place: Item = labels.items[item]
            found.append((place.item_id, criterion, labels.workers[worker], labels.grades[code]))
    return sorted(found)


# Tables


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("words", [False, True])
def test_tables_filled_in_come_back(world: Path, delimiter: str, words: bool) -> None:
    files = written(world, "csv", assessors=("ann", "bob"), double=1.0)
    assert list(files) == ["sheet-ann.csv", "sheet-bob.csv", "levels.csv"]
    paths = []
    for who in ("ann", "bob"):
        rows = table(files[f"sheet-{who}.csv"])
        for row in rows:
            assert row["assessor"] == who
            grade = meant(row["response_id"], row["criterion"], who)
            row["grade"] = GROUNDED[grade] if words and row["criterion"] == "groundedness" else str(grade)
        paths.append(world / f"{who}.csv")
        paths[-1].write_text(as_csv(rows, delimiter), encoding="utf-8-sig")
    assert gold_of(world, "csv", *paths) == expected("ann", "bob")
    assert gold_of(world, "crowd", *paths) == expected("ann", "bob")
    assert crowd_of(world, *paths) == expected("ann", "bob")


def test_a_table_opens_in_a_spreadsheet_and_runs_nothing(world: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    content = written(world, "csv")["sheet.csv"]
    assert content.startswith(b"\xef\xbb\xbf")
    rows = table(content)
    cells = {row["response_id"]: row["response"] for row in rows}
    assert cells["R00002"] == '\\=HYPERLINK("http://evil.example","x")'
    assert cells["R00011"] == "\\- a list\n- of two"
    assert cells["R99999"] == HOSTILE[2]
    assert cells["R00001"] == "\ufffd[31mred \ufffdevil \ud7ff 😀 𝕏"
    assert not any(re.match(r"\s*[=+@-]", cell) for row in rows for cell in row.values())
    assert RUN.encode() not in content
    for frame in (pandas.read_csv(io.BytesIO(content)), polars.read_csv(content)):
        assert list(frame.columns) == list(rows[0])
        assert list(frame["response"]) == [row["response"] for row in rows]


def test_the_levels_stand_beside_the_table(world: Path) -> None:
    levels = [tuple(row.values()) for row in table(written(world, "csv")["levels.csv"])]
    said = [text for criterion, grade, text in levels if criterion == "groundedness" and grade == "2"]
    (description,) = [level.description for level in find_criterion("groundedness").scale.levels if level.grade == 2]
    assert said == [description]
    assert ("naturalness", "unable", "Unable to judge.") in levels


def test_cells_that_hold_no_grade_are_counted_and_words_of_no_level_are_named(world: Path) -> None:
    rows = table(written(world, "csv")["sheet.csv"])
    for row in rows:
        row |= {"assessor": "ann", "grade": ""}
    rows[1]["grade"], rows[2]["grade"] = "1", "Unable to judge."
    path = put(world / "ann.csv", as_csv(rows))
    options = {"source": "csv", "out": world / "gold.jsonl"}
    notes = import_gold_files(GoldImportPlan(files=[path], **options)).notes
    assert [note for note in notes if "not used" not in note] == [
        f"{path}: 8 rows without a grade: not labeled",
        "1 label left out: unable to judge",
        "taken as given blind; --made says otherwise",
    ]
    assert [row.grade for row in read_gold(world / "gold.jsonl")] == [1]
    rows[1]["grade"], rows[2]["grade"] = "sort of", "7"
    path.write_text(as_csv(rows), encoding="utf-8")
    problems = refused(import_gold_files, GoldImportPlan(files=[path], prompts=list(SCALES), **options))
    first = csv_lines(path)
    assert [(p.code, p.file, p.path) for p in problems] == [
        ("wrong_value", str(path), f"line {first[1]}: $.grade"),
        ("wrong_value", str(path), f"line {first[2]}: $.grade"),
    ]
    assert "'sort of'" in problems[0].message
    assert problems[1].message.startswith("7 of ")
    # A text means what the user says; without --prompt, a criterion has the scale of its default prompt.
    (problem,) = refused(import_gold_files, GoldImportPlan(files=[path], words={"Sort of": 2}, **options))
    assert problem.message.startswith("7 of ") and problem.message.endswith("; --prompt names another prompt")
    for row in rows:
        row["criterion"] = "novelty"
    path.write_text(as_csv(rows), encoding="utf-8")
    notes = import_gold_files(GoldImportPlan(files=[path], words={"Sort of": 2}, **options)).notes
    assert [row.grade for row in read_gold(world / "gold.jsonl")] == [2, 7]


def csv_lines(path: Path) -> list[int]:
    """The line on which each row below the header begins."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        lines = [reader.line_num + 1]
        lines += [reader.line_num + 1 for _ in reader]
    return lines[:-1]


def test_what_assessors_will_not_see_is_said(world: Path) -> None:
    (world / "pool/passages.jsonl").write_bytes(b"")
    of_pool = {"pool": world / "pool", "prompts": ["groundedness"]}
    written_to = write_gold_sheet(GoldSheetPlan(to="csv", out=world / "a", **of_pool))
    assert written_to.notes == ("5 responses with passages that have no text: `judge passages` finds texts",)
    long = Pool((response("R00002", "x" * 32_768), response("R00003", "x" * 32_767)), POOL.passages, ())
    (world / "pool/pool.jsonl").write_bytes(pool_jsonl(long))
    (world / "pool/passages.jsonl").write_bytes(passages_jsonl(long))
    assert write_gold_sheet(GoldSheetPlan(to="html", out=world / "b", **of_pool)).notes == ()
    written_to = write_gold_sheet(GoldSheetPlan(to="csv", out=world / "a", **of_pool))
    assert written_to.notes == ("1 text longer than 32,767 characters, which spreadsheets cut: --to html shows all",)


def test_a_sheet_of_a_mixed_pool_needs_the_topics(world: Path) -> None:
    runs = ["examples/interactive", "examples/runs/harbor-grounded.json"]
    pool, plan = world / "mixed", world / "part.jsonl"
    assert main(["pool", "--out", str(pool), "--runs", *(str(PROJECT / path) for path in runs)]) == 0
    of_pool = {"pool": pool, "prompts": ["groundedness"], "to": "csv"}
    with pytest.raises(UsageError, match=r"the topics \(--topics\) lack turns of the sheet: "):
        write_gold_sheet(GoldSheetPlan(out=world / "a", **of_pool))
    write_gold_sheet(GoldSheetPlan(out=world / "a", topics=PROJECT / "examples/topics.json", **of_pool))
    rows = [json.loads(line) for line in (pool / "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    own = {row["turn_id"]: row for row in rows if "~" in row["turn_id"]}
    shared = {row["turn_id"]: row for row in rows if "~" not in row["turn_id"]}
    for number, of_turn in enumerate((own, shared)):
        planned = [
            PlanRow(
                *(row["turn_id"], row["turn_id"].rpartition("_")[0], row["response_id"], text_digest(row["text"])),
                *((RUN,), ("groundedness",), 0.25, "drawn"),
            )
            for row in of_turn.values()
        ]
        plan.write_bytes(jsonl_bytes(planned))
        out = world / f"b{number}"
        write_gold_sheet(GoldSheetPlan(out=out, plan=plan, **of_pool))
        sheets = [table(path.read_bytes()) for path in out.glob("*.csv")]
        conversations = [row.get("conversation") for sheet in sheets for row in sheet if "response" in row]
        assert [bool(text) for text in conversations] == [of_turn is own] * len(of_turn)


# MTurk

HEAD = {"HITId": "H", "AssignmentId": "A", "AssignmentStatus": "Approved", "WorkTimeInSeconds": 60}


def answers_of(row: Mapping[str, str], worker: str, per_task: int) -> dict[str, dict[str, bool]]:
    """What a worker chooses, as crowd-form sends it: for each radio group, which button is on."""
    chosen = {}
    for slot in range(1, per_task + 1):
        if name := row[f"response_id_{slot}"]:
            for criterion, k in SCALES.items():
                grade = str(meant(name, criterion, worker))
                values = [*map(str, range(k)), "unable"]
                chosen[f"{criterion}_{slot}"] = {value: value == grade for value in values}
    return chosen


@pytest.mark.parametrize("per_task", [1, 2, 5])
@pytest.mark.parametrize("packed", [False, True])
def test_the_results_of_a_batch_come_back(world: Path, per_task: int, packed: bool) -> None:
    batch = table(written(world, "mturk", items_per_task=per_task)["batch.csv"])
    assert len(batch) == -(-len(IDS) // per_task)
    rows = []
    for row in batch:
        for worker in ("ann", "bob"):
            chosen = answers_of(row, worker, per_task)
            answers: dict[str, object] = {"Answer.taskAnswers": json.dumps([chosen])}
            if not packed:
                # A page with fewer responses leaves its cells empty.
                groups = [f"{criterion}_{slot}" for slot in range(1, per_task + 1) for criterion in SCALES]
                answers = {
                    f"Answer.{group}.{value}": str(chosen.get(group, {}).get(value, "")).lower()
                    for group in groups
                    for value in [*map(str, range(SCALES[group[:-2]])), "unable"]
                }
            shown = {f"Input.{name}": value for name, value in row.items()}
            rows.append({**HEAD, "WorkerId": worker, **shown, **answers, "Approve": "", "Reject": ""})
    path = put(world / "Batch_1_batch_results.csv", as_csv(rows))
    assert gold_of(world, "crowd", path) == expected("ann", "bob")
    assert crowd_of(world, path) == expected("ann", "bob")


class _Shown(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, and the text of one class."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = dict(attrs).get("class") == "text response"
        self.texts += [""] if self._open else []

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[-1] += data


def put_in(form: str, row: Mapping[str, str]) -> str:
    """The page that MTurk makes: values go in as they are, one name after the other, so texts could name others."""
    for name, value in row.items():
        form = form.replace(f"${{{name}}}", value)
    return form


def test_a_form_shows_strangers_texts_and_nothing_else_of_them(world: Path) -> None:
    files = written(world, "mturk", items_per_task=5)
    (row,) = table(files["batch.csv"])
    form = files["form.html"].decode()
    assert set(re.findall(r"\$\{(\w+)\}", form)) == set(row)
    plain, filled = _Shown(), _Shown()
    plain.feed(form)
    page = put_in(form, row)
    filled.feed(page)
    assert "${" not in page and RUN not in page
    assert [tag for tag, _ in filled.tags if tag == "script"] == ["script", "script"]
    assert not any(name.startswith("on") for _, attributes in filled.tags for name in attributes)
    assert not any(tag == "img" for tag, _ in filled.tags)
    by_id = dict(zip([row[f"response_id_{n}"] for n in range(1, 6)], filled.texts, strict=True))
    assert by_id["R100000"] == HOSTILE[1]
    assert by_id["R99999"] == HOSTILE[2]
    assert by_id["R00011"] == HOSTILE[4]
    # MTurk refuses characters of four bytes in a table, and a cell on several lines.
    assert max(map(ord, files["batch.csv"].decode())) <= 0xFFFF
    assert files["batch.csv"].count(b"\n") == 2
    names = {attributes.get("name") for tag, attributes in filled.tags if tag == "input"}
    assert names == {f"{criterion}_{slot}" for criterion in SCALES for slot in range(1, 6)}


def test_a_page_that_mturk_would_refuse_is_named(world: Path) -> None:
    long = Pool((response("R00002", "x" * (LARGEST - 100)), response("R00003", "short")), POOL.passages, ())
    (world / "pool/pool.jsonl").write_bytes(pool_jsonl(long))
    problems = refused(written, world, "mturk", plan=None)
    assert [(problem.code, problem.turn_id) for problem in problems] == [("too_long", "1-1_2")]
    assert "MTurk takes 65,535" in problems[0].message
    assert not (world / "mturk").exists()


def test_a_page_may_be_as_long_as_mturk_takes(world: Path) -> None:
    def size(text: str) -> int:
        pool = Pool((response("R00002", text),), POOL.passages, ())
        (world / "pool/pool.jsonl").write_bytes(pool_jsonl(pool))
        files = written(world, "mturk", plan=None)
        (row,) = table(files["batch.csv"])
        return len(put_in(files["form.html"].decode(), row).encode()) + WRAPPING

    room = LARGEST - size("x") + 1
    assert size("x" * room) == LARGEST
    with pytest.raises(InputError):
        size("x" * (room + 1))


# Label Studio


def label_studio(tasks: Iterable[dict[str, dict[str, str]]], shape: str, *, alias: bool = True) -> str:
    """An export of all annotations by two annotators."""
    whole, flat = [], []
    for number, task in enumerate(tasks, start=1):
        annotations = []
        for who in ("ann", "bob"):
            labels = {name: meant(task["data"]["response_id"], name, who) for name in SCALES}
            texts = {
                name: str(grade) if alias else find_criterion(name).scale.levels[grade].description
                for name, grade in labels.items()
            }
            result = [
                {"from_name": name, "to_name": "response", "type": "choices", "value": {"choices": [text]}}
                for name, text in texts.items()
            ]
            about = {"annotation_id": number, "annotator": who, "lead_time": 9.5, "created_at": "2025-01-01"}
            annotations.append({"id": number, "completed_by": {"email": who}, "result": result, "lead_time": 9.5})
            result.append({"from_name": "comment", "type": "textarea", "value": {"text": ["2, I think"]}})
            flat.append({**task["data"], "id": number, **texts, "comment": "2, I think", **about})
        whole.append({"id": number, "data": task["data"], "annotations": annotations})
    return {"json": json.dumps(whole), "json-min": json.dumps(flat), "csv": as_csv(flat)}[shape]


@pytest.mark.parametrize("shape", ["json", "json-min", "csv"])
@pytest.mark.parametrize("alias", [True, False])
def test_the_exports_of_label_studio_come_back(world: Path, shape: str, alias: bool) -> None:
    tasks = json.loads(written(world, "labelstudio")["tasks.json"])
    path = put(world / f"export.{shape.removesuffix('-min')}", label_studio(tasks, shape, alias=alias))
    assert gold_of(world, "crowd", path) == expected("ann", "bob")
    assert crowd_of(world, path) == expected("ann", "bob")


def test_levels_of_a_prompt_of_ones_own_come_back(world: Path) -> None:
    text = (PROJECT / "prompts/groundedness/yes_no.md").read_text(encoding="utf-8")
    for level in find_criterion("groundedness/yes_no").scale.levels:
        text = text.replace(level.description, ("Nope.", "Yep, all of it.")[level.grade])
    prompt = put(world / "mine.md", text)
    rows = table(written(world, "csv", plan=None, prompts=[prompt], assessors=("ann",))["sheet-ann.csv"])
    assert "Yep, all of it." in (world / "csv/levels.csv").read_text(encoding="utf-8")
    for row in rows:
        row["grade"] = ("nope", "Yep, all of it")[int(row["response_id"][1:]) % 2]
    path = put(world / "ann.csv", as_csv(rows))
    wanted = sorted((name, "groundedness", "ann", int(name[1:]) % 2) for name in IDS)
    assert gold_of(world, "csv", path, prompts=[prompt]) == wanted
    graded = grade_crowd(CrowdPlan(labels=[path], prompts=[prompt], out=world / "crowd"))
    assert sorted((row.response_id, row.grade) for row in graded.grades) == [
        (name, grade) for name, _, _, grade in wanted
    ]
    with pytest.raises(UsageError, match="give one scale"):
        grade_crowd(CrowdPlan(labels=[path], prompts=[prompt], scales=["0-3"], out=world / "crowd"))


def test_the_labeling_interface_is_well_formed_and_names_what_the_tasks_have(world: Path) -> None:
    files = written(world, "labelstudio")
    root = ElementTree.fromstring(files["config.xml"])
    tasks = json.loads(files["tasks.json"])
    fields = {element.get("value", "")[1:] for element in root.iter("Text")}
    assert all(fields <= task["data"].keys() for task in tasks)
    assert {element.get("valueType") for element in root.iter("Text")} == {"text"}
    choices = {control.get("name"): [choice.get("alias") for choice in control] for control in root.iter("Choices")}
    assert choices == {name: [*map(str, range(k)), "unable"] for name, k in SCALES.items()}
    names = {element.get("name") for element in root.iter() if element.tag in ("Text", "Choices", "TextArea")}
    assert {element.get("toName") for element in root.iter("Choices")} <= names
    by_id = {task["data"]["response_id"]: task["data"]["response"] for task in tasks}
    assert by_id["R99999"] == HOSTILE[2]
    assert RUN not in files["tasks.json"].decode()


# Other tools, whose labels need no sheet of ours


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.csv", "task,worker,label\n1-1_2/R00002,w,Mostly grounded\n1-1_2/R100000,w,0\n"),
        ("columns.tsv", "worker\tturn_id\tresponse_id\tgroundedness\nw\t1-1_2\tR00002\t2\nw\t1-1_2\tR100000\t0\n"),
        ("qualtrics.csv",
            "ResponseId,Finished,1-1_2.R00002.groundedness,1-1_2.R100000.groundedness,1-1_2.R99999.groundedness\n"
            'Response ID,Finished,Q1,Q2,Q3\n"{""ImportId"":""_recordId""}",x,y,z,q\nw,True,2,Not grounded,\n'),
    ],
)  # fmt: skip
def test_other_tools_come_back_too(world: Path, name: str, content: str) -> None:
    found = gold_of(world, "crowd", put(world / name, content), criterion="groundedness")
    assert found == [("R00002", "groundedness", "w", 2), ("R100000", "groundedness", "w", 0)]


def test_of_a_crowd_too_an_empty_label_is_counted_and_a_plan_names_the_criteria(world: Path) -> None:
    (world / "plan.jsonl").write_bytes(jsonl_bytes([replace(row, criteria=("novelty",)) for row in PLANNED]))
    path = put(
        world / "batch.csv",
        "WorkerId,Input.turn_id,Input.response_id,Answer.novelty,Answer.comment\n"
        "w,1-1_2,R00002,3,very\nw,1-1_2,R100000,,nothing\nw,1-1_2,R00001,Unable to judge,\n",
    )
    options = {"source": "crowd", "files": [path], "out": world / "gold.jsonl", "plan": world / "plan.jsonl"}
    assert import_gold_files(GoldImportPlan(**options)).notes[:2] == (
        f"{path}: 1 row without a label: not labeled",
        "1 label left out: unable to judge",
    )
    (row,) = read_gold(world / "gold.jsonl")
    assert (row.response_id, row.criterion, row.grade) == ("R00002", "novelty", 3)
    with pytest.raises(UsageError, match="about tables of a crowd, not about csv"):
        import_gold_files(GoldImportPlan(**{**options, "source": "csv", "table": "mturk"}))


# Who labels what


def items(n: int) -> list[SheetItem]:
    return [SheetItem(f"{k % 3}_1", f"R{k}", ("c",), (), (), "t", ()) for k in range(n)]


def test_every_assessor_has_an_order_of_his_own_in_which_turns_stay_together() -> None:
    dealt = shares(items(12), ("ann", "bob"), 1.0, 1)
    ann, bob = dealt.values()
    assert sorted(ann) == sorted(bob) == sorted(items(12))
    assert ann != bob
    assert dealt == shares(items(12)[::-1], ("ann", "bob"), 1.0, 1)
    assert ann != shares(items(12), ("ann",), None, 2)["ann"]
    for share in (ann, bob):
        turns = [item.turn_id for item in share]
        assert len([turn for turn, before in zip(turns, [None, *turns], strict=False) if turn != before]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"assessors": ("../x",)}, "names a file"),
        ({"assessors": ("ann", "Ann")}, "given twice"),
        ({"double": 0.5}, "two assessors"),
        ({"assessors": ("a", "b"), "double": 1.5}, "share from 0 to 1"),
        ({"items_per_task": 2}, "with --to mturk"),
        ({"prompts": ["conciseness"]}, "nothing to label for conciseness"),
        ({"prompts": ["groundedness/yes_no", "groundedness/graded"]}, "two scales"),
        ({"to": "mturk", "assessors": ("ann",)}, "deals out the work itself"),
        ({"plan": None, "topics": None, "prompts": ["relevance"]}, "topics file is needed"),
        ({"to": "paper"}, "invalid choice: 'paper'"),
    ],
)
def test_what_cannot_be_done_is_said(world: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        written(world, str(options.get("to", "csv")), **{k: v for k, v in options.items() if k != "to"})
    assert not (world / "csv").exists()


def test_a_plan_of_another_pool_and_ids_that_are_formulas_are_refused(world: Path) -> None:
    (world / "plan.jsonl").write_bytes(jsonl_bytes([replace(PLANNED[0], response_id="R00077")]))
    assert [problem.code for problem in refused(written, world, "csv")] == ["not_in_pool"]
    (world / "pool/pool.jsonl").write_bytes(pool_jsonl(Pool((response("R00002", "x", "=1+1_2"),), POOL.passages, ())))
    problems = refused(written, world, "labelstudio", plan=None, topics=None)
    assert [problem.code for problem in problems] == ["wrong_id"]


def test_a_plan_asks_for_each_response_what_it_lacks(world: Path) -> None:
    rows = [PLANNED[0], replace(PLANNED[1], criteria=("naturalness",))]
    (world / "plan.jsonl").write_bytes(jsonl_bytes(rows))
    asked = [(row["response_id"], row["criterion"]) for row in table(written(world, "csv")["sheet.csv"])]
    assert sorted(asked) == [("R00002", "groundedness"), ("R00002", "naturalness"), ("R100000", "naturalness")]


def test_the_whole_pool_is_a_sheet_without_a_plan(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = world / "s"
    arguments = ["gold", "sheet", "--pool", str(world / "pool"), "--to", "csv", "--prompt", "naturalness/cast"]
    assert main([*arguments, "-o", str(folder)]) == 0
    assert "5 responses, 5 labels to give: naturalness\n" in capsys.readouterr().err
    rows = table((folder / "sheet.csv").read_bytes())
    assert {row["response_id"] for row in rows} == set(IDS)
    assert "passage_1" not in rows[0]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*arguments, "-o", str(folder)]) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert SheetOptions().seed == 0


def test_a_sheet_shows_the_question_of_a_table_and_its_references_where_the_prompt_does(tmp_path: Path) -> None:
    row = {"question": "How tall?", "contexts": ["It is high."], "answer": "34.", "reference": "=34 metres"}
    run(Plan(runs=[row], criteria="groundedness", model="baseline/overlap", out=tmp_path / "out"))
    shown = []
    for prompt in ("correctness", "naturalness"):
        write_gold_sheet(GoldSheetPlan(pool=tmp_path / "out", to="csv", prompts=prompt, out=tmp_path / prompt))
        (cells,) = table((tmp_path / prompt / "sheet.csv").read_bytes())
        shown.append(cells["conversation"])
    assert shown == ["User: How tall?\nReference: =34 metres", "User: How tall?"]
