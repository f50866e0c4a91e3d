"""Every file that a command writes, and each of its fields, is in the list of files; pages lead to each other."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from docs.site.files import COLUMNS, entries
from docs.site.pages import subjects
from judge.ask.criteria import criterion_names
from judge.cli import main
from tests.conftest import PROJECT
from tests.extra.reproduce.test_published import release
from tests.mock import start_mock

pytestmark = pytest.mark.slow

EXAMPLE = PROJECT / "examples"
GOLD = PROJECT / "gold" / "example.gold.jsonl"
RUN_IDS = ("bramble-broken", "harbor-grounded", "lantern-half-right", "mill-fluent-invented", "orchard-manual",
           "quarry-copied", "thistle-faulty")  # fmt: skip


LABELS = """\
worker,turn_id,response_id,criterion,label,seconds
w1,1-1_1,R1,relevance,3,20
w1,1-1_1,R2,relevance,0,21
w1,1-1_2,R3,relevance,2,30
w2,1-1_1,R1,relevance,2,19
w2,1-1_1,R2,relevance,1,15
w2,1-1_2,R3,relevance,2,18
w3,1-1_1,R1,relevance,3,1
w3,1-1_1,R2,relevance,3,1
w3,1-1_2,R3,relevance,3,1
"""


def regin(folder: Path) -> Path:
    """A resource of one part with one turn, in the shape of CAsT-ReGIn."""
    part = folder / "response_evaluation"
    (part / "qrels").mkdir(parents=True)
    texts = {"R1": "Trains have a ramp.", "R2": "Call the station."}
    entries = [
        {"Response ID": name, "Response Text": text, "Relevance": 2, "Naturalness": 3, "Conciseness": 3}
        for name, text in texts.items()
    ]
    (part / "qrels" / "response_judgments.json").write_text(json.dumps({"1-1_1": {"Responses": entries}}))
    (part / "response_bank.json").write_text(json.dumps(texts))
    return folder


@cache
def regin_run() -> str:
    response = {"rank": 1, "text": "Call the station!", "passage_provenance": [], "ptkb_provenance": []}
    turn = {"turn_id": "1-1_1", "responses": [response]}
    return json.dumps({"run_name": "a", "run_type": "automatic", "eval_response": True, "turns": [turn]})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a user types, and the folder that it wrote."""
    out = tmp_path_factory.mktemp("written")
    runs = ["--runs", str(EXAMPLE / "runs"), "--topics", str(EXAMPLE / "topics.json")]
    pooled = [*runs, "--passages", str(EXAMPLE / "passages.jsonl")]
    overlap = ["--model", "baseline/overlap"]
    gold = out / "groundedness.jsonl"
    lines = GOLD.read_text(encoding="utf-8").splitlines(keepends=True)
    gold.write_text("".join(line for line in lines if '"groundedness"' in line), encoding="utf-8")
    # A copy, because the looks at gold are counted beside it.
    (out / "example.synthetic.jsonl").write_bytes((PROJECT / "gold" / "example.synthetic.jsonl").read_bytes())
    (out / "labels.csv").write_text(LABELS)
    (out / "known.tsv").write_text("turn_id\tresponse_id\tcriterion\tacceptable\n1-1_1\tR2\trelevance\t0,1\n")
    (out / "bank.json").write_text(json.dumps({"R1": "one", "R2": "two", "R3": "three"}))
    (out / "mi.txt").write_text("1-1_2\n")
    (out / "labels.txt").write_text("1-1_1 0 R1 3\n1-1_1 0 R2 0\n1-1_2 0 R3 2\n")
    (out / "kin.tsv").write_text("".join(f"{name}\tfamily-{index % 2}\n" for index, name in enumerate(RUN_IDS)))
    (out / "gold.spans").write_text("1\tacacia tree\n2\tRed Sox\n3\tgolden ratio\n4\tfifth amendment\n")
    (out / "run.spans").write_text("1\tthe tree\n2\tred socks\n3\tratio\n4\tamendments\n")
    (out / "ranked.res").write_text("".join(f"{topic} Q0 p{topic % 3} 1 1 r\n" for topic in range(1, 5)))
    (out / "ranked.qrel").write_text("".join(f"{topic} Q0 p1 1\n" for topic in range(1, 5)))
    (out / "regin-runs").mkdir()
    (out / "regin-runs" / "a.json").write_text(regin_run())
    (out / "sound").mkdir()
    (out / "sound" / "harbor.json").write_bytes((EXAMPLE / "runs" / "harbor-grounded.json").read_bytes())

    def judge(name: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> Path:
        assert main([*arguments]) in codes, arguments
        return out / name

    def to(name: str) -> str:
        return str(out / name)

    folders = {
        "judge run": judge("run", "run", *pooled, "--criteria", "groundedness", *overlap, "--out", to("run")),
        "judge pool": judge("pool", "pool", *pooled, "--out", to("pool")),
        "judge gold split": judge(
            "split", "gold", "split", str(gold), "--test", "0.34", "--seed", "1", "--out", to("split")
        ),
        "judge validate": judge(
            "pages", "validate", *runs, "--report-dir", to("pages"), "--fix", "-o", to("fixed"), codes=(1,)
        ),
        "judge convert": judge("trec", "convert", "--runs", to("sound"), "--to", "trec-run", "-o", to("trec")),
        "judge crowd": judge(
            "crowd", "crowd", to("labels.csv"), "--scale", "0-3", "--known", to("known.tsv"), "--bank", to("bank.json"),
            "--mi-turns", to("mi.txt"), "--aggregator", "dawid-skene", "--with-judgments", to("labels.txt"),
            "--out", to("crowd"),
        ),
        "judge crowd cast-regin": judge(
            "regin", "crowd", "cast-regin", str(regin(out / "resource")), "--runs", to("regin-runs"), "--evaluate",
            "--out", to("regin"), codes=(0, 1),
        ),
    }  # fmt: skip
    folders["judge evaluate spans"] = judge(
        "spans", "evaluate", "spans", "--run", to("run.spans"), to("ranked.res"), "--gold", to("gold.spans"),
        "--qrels", to("ranked.qrel"), "--out", to("spans"),
    )  # fmt: skip
    folders["judge validate --fix"] = out / "fixed"
    folders["judge reproduce"] = judge(
        "reproduced", "reproduce", "ikat2023", str(release(out / "ikat2023")), "--out", to("reproduced")
    )
    main(
        [
            "gold",
            "plan",
            "--pool",
            to("run"),
            "--n",
            "40",
            "--per-run",
            "5",
            "--seed",
            "1",
            "--out",
            to("plan/plan.jsonl"),
        ]
    )
    folders["judge gold plan"] = out / "plan"
    sheet = ("gold", "sheet", to("plan/plan.jsonl"), "--pool", to("run"))
    for kind in ("csv", "html", "mturk", "labelstudio"):
        folders[f"judge gold sheet --to {kind}"] = judge(kind, *sheet, "--to", kind, "--out", to(kind))
    folders["judge calibrate"] = judge(
        "cal", "calibrate", "--gold", to("split/dev.jsonl"), "--test", to("split/test.jsonl"), "--pool", to("run"),
        *overlap, "--prompt", "groundedness/graded", "--prompt", "groundedness/yes_no", "--gold-scale",
        "groundedness/graded", "--families", to("kin.tsv"), "--replicates", "200", "--permutations", "200",
        "--out", to("cal"),
    )  # fmt: skip
    folders["judge calibrate --judgments"] = judge(
        "two", "calibrate", "--gold", to("example.synthetic.jsonl"), "--judgments",
        to("run/judgments.jsonl"), "--criterion", "groundedness", "--replicates", "200", "--margin", "0.1",
        "--out", to("two"),
    )  # fmt: skip
    folders["judge run --cascade"] = judge(
        "cascade", "run", *pooled, "--criteria", "groundedness", "--prompt", "groundedness/sentences",
        "--model", "checker/overlap@0.6", "--cascade", "checker/overlap@0.1:0.8", "--out", to("cascade"),
    )  # fmt: skip
    folders["judge calibrate --cascade"] = judge(
        "saved", "calibrate", "--gold", to("example.synthetic.jsonl"), "--pool", to("run"), "--prompt",
        "groundedness/sentences", "--model", "checker/overlap@0.6", "--cascade", "checker/overlap@0.1:0.8",
        "--cascade-grid", "--replicates", "200", "--out", to("saved"),
    )  # fmt: skip
    folders["judge run --jury"] = judge(
        "jury", "run", *pooled, "--criteria", "groundedness", "--jury", "majority", *overlap, "--samples", "2",
        "--recheck", "2",
        "--out", to("jury"),
    )  # fmt: skip
    folders["judge evaluate responses"] = judge(
        "responses", "evaluate", "responses", to("run"), "--topics", runs[-1], "--out", to("responses")
    )
    harbor = str(EXAMPLE / "runs" / "harbor-grounded.json")
    lines = (EXAMPLE / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    (out / "passages.qrel").write_text("".join(f"1-1_1 0 {json.loads(line)['id']} 1\n" for line in lines))
    folders["judge evaluate passages"] = judge(
        "passages", "evaluate", "passages", "--runs", harbor, "--topics", runs[-1], "--qrels", to("passages.qrel"),
        "--out", to("passages"),
    )  # fmt: skip
    (out / "nist").write_text("1-1_1 0 1 1\n")
    (out / "org").write_text("1-1_1 0 2 1\n")
    folders["judge evaluate statements"] = judge(
        "statements", "evaluate", "statements", "--runs", harbor, "--topics", runs[-1], "--qrels", to("nist"),
        to("org"), "--out", to("statements"),
    )  # fmt: skip
    bank = str(EXAMPLE / "nuggets.jsonl")
    nuggets = [json.loads(line) for line in (EXAMPLE / "nuggets.jsonl").read_text(encoding="utf-8").splitlines()]
    pooled_rows = [json.loads(line) for line in (out / "run" / "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    for who in ("assessor", "judge"):
        matches = (
            {"turn_id": row["turn_id"], "response_id": row["response_id"], "nugget_id": nugget["nugget_id"],
             "label": "supports", who: "ann"}
            for row in pooled_rows for nugget in nuggets if nugget["turn_id"] == row["turn_id"]
        )  # fmt: skip
        (out / f"{who}.matches").write_text("".join(json.dumps(match) + "\n" for match in matches))
    folders["judge nuggets claims"] = judge(
        "claimed", "nuggets", "claims", "--pool", to("run"), "--bank", bank, "--model", "checker/overlap", "--prompt",
        "nugget_precision/passages", "--out", to("claimed"),
    )  # fmt: skip
    folders["judge nuggets score"] = judge(
        "scores", "nuggets", "score", "--pool", to("run"), "--bank", bank, "--matches", to("judge.matches"), "--gold",
        to("assessor.matches"), "--claims", to("claimed"), "--out", to("scores"),
    )  # fmt: skip
    folders["judge nuggets match"] = judge(
        "matched", "nuggets", "match", "--pool", to("run"), "--bank", bank, *overlap, "--out", to("matched")
    )
    folders["judge evaluate wording"] = judge(
        "wording", "evaluate", "wording", "--runs", harbor, "--topics", runs[-1], "--out", to("wording")
    )
    with start_mock() as mock:
        folders["judge nuggets create"] = judge(
            "bank", "nuggets", "create", "--pool", to("run"), "--topics", runs[-1], "--model", "server/m", "--base-url",
            mock.base_url, "--limit", "4", "--out", to("bank"),
        )  # fmt: skip
    folders["judge evaluate qrels"] = judge("sets", "evaluate", "qrels", to("run"), to("run"), "--out", to("sets"))
    folders["judge leaderboard"] = judge(
        "corrected", "leaderboard", to("run"), "--gold", str(gold), "--out", to("corrected")
    )
    (out / "public").mkdir()
    begin = [f"Train {n} is late.\tA train?\tIt is late.\tFully attributable\n" for n in range(6)]
    header = "knowledge\tmessage\tresponse\tbegin_label\n"
    (out / "public" / "begin_dev_wow.tsv").write_text(header + "".join(begin), encoding="utf-8")
    folders["judge probe"] = judge(
        "probe", "probe", to("run"), "--criteria", "groundedness", *overlap, "--items", "6", "--out", to("probe"),
        codes=(0, 1),
    )  # fmt: skip
    folders["judge bench"] = judge("card", "bench", "--data", to("public"), *overlap, "--out", to("card"))
    return folders


def general(name: str) -> str:
    """The name of a file as a document writes it."""
    for run_id in RUN_IDS:
        name = name.replace(run_id, "<run_id>")
    name = re.sub("^(nist|org)_", "<qrels>_", name.replace("example-team", "<team>"))
    return re.sub("|".join(criterion_names()), "<criterion>", name)


def fields_of(path: Path) -> list[str]:
    """The columns of a table, the fields of a record, the top fields of a document."""
    if path.suffix in (".tsv", ".csv"):
        sign = "\t" if path.suffix == ".tsv" else ","
        return path.read_text(encoding="utf-8-sig").partition("\n")[0].split(sign)
    if path.suffix == ".jsonl":
        return list(
            {field: None for line in path.read_text(encoding="utf-8").splitlines() for field in json.loads(line)}
        )
    return list(json.loads(path.read_bytes()))


def stems(columns: Iterable[str]) -> set[str]:
    """Columns without the two ends of each interval, without grades, and without names of files."""
    named = set(columns)
    ends = ("_lo", "_hi", "_low", "_high")
    kept = {column for column in named if not (column.endswith(ends) and column.rpartition("_")[0] in named)}
    kept = {re.sub(r"^passage_\d+$", "passage_1", column) for column in kept}
    return {re.sub(r"^(count|p)_-?\d+$", r"\1_<grade>", re.sub("^(nist|org)$", "<qrels>", column)) for column in kept}


TYPED = ("judge run", "judge pool", "judge gold split", "judge gold plan", "judge gold sheet --to csv",
         "judge gold sheet --to html", "judge gold sheet --to mturk", "judge gold sheet --to labelstudio",
         "judge validate", "judge validate --fix",
         "judge convert", "judge crowd", "judge crowd cast-regin", "judge calibrate", "judge calibrate --judgments",
         "judge run --cascade", "judge calibrate --cascade",
         "judge run --jury", "judge leaderboard", "judge evaluate responses", "judge evaluate spans",
         "judge bench", "judge probe", "judge reproduce", "judge evaluate passages", "judge evaluate statements",
         "judge evaluate qrels", "judge nuggets score", "judge nuggets match", "judge nuggets claims",
         "judge nuggets create", "judge evaluate wording")  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("typed", TYPED)
def test_every_output_file_and_its_fields_are_described(typed: str, written: dict[str, Path]) -> None:
    folder = written[typed]
    shared = {name for names in COLUMNS for name in names.split(", ")}
    missing = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = general(path.relative_to(folder).as_posix())
        last = name.rpartition("/")[2]
        said = [one for one in entries() if last in {listed.rpartition("/")[2] for listed in one.names}]
        missing += [] if said else [name]
        if said and path.stem not in RUN_IDS and (path.suffix in (".tsv", ".csv", ".jsonl") or path.name in DOCUMENTS):
            about = "".join(f"{one.content}{one.about}" for one in said)
            fields = sorted(stems(fields_of(path)) - shared)
            missing += [f"{name}: {field}" for field in fields if f"`{field}`" not in about]
    assert not missing


DOCUMENTS = {"manifest.json", "crowd.json", "selection.json", "certificate.json", "calibration.json", "seal.json",
             "response_groundedness.llm.qrel.json", "card.json", "timing.json"}  # fmt: skip
"""The files of one JSON object with fields of ours."""


def written_files(page: str, folder: Path) -> None:
    """Write the files that a page tells its reader to write: a name, then a block without a language."""
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    for name, content in re.findall(r"`([\w.]+)`[^`\n]*\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")


def test_the_worked_example_of_a_crowd_gives_the_grades_that_the_page_shows(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    written_files("crowd.md", tmp_path)
    assert main(["crowd", "labels.csv", "--scale", "0-3", "--known", "known.tsv", "--out", "crowd"]) == 0
    qrels = Path("crowd/qrels/response_relevance.qrel").read_text(encoding="utf-8")
    assert f"reads:\n```\n{qrels}```" in (PROJECT / "docs" / "crowd.md").read_text(encoding="utf-8")


def test_the_worked_example_of_a_prompt_is_a_sound_prompt(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    written_files("prompts.md", tmp_path)
    assert main(["prompts", "check", "mine.md"]) == 0
    assert "mine.md: good: groundedness/mine" in capsys.readouterr().out


def test_the_reference_leads_to_every_page() -> None:
    assert {page.name for page in (PROJECT / "docs").glob("*.md")} == {*subjects(), "index.md", "tutorial.md"}


LINKED = [
    path
    for path in sorted([*PROJECT.glob("*.md"), *PROJECT.glob("gold/*.md"), *PROJECT.glob("docs/**/*.md")])
    if "_build" not in path.parts
]


@pytest.mark.parametrize("page", LINKED, ids=[page.relative_to(PROJECT).as_posix() for page in LINKED])
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, _, section in re.findall(r"\]\(([^):#]*)(#([\w-]+))?\)", text):
        other = page if not target else (page.parent / target).resolve()
        assert other.exists(), target
        if section:
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in anchors, f"{target}#{section}"
