"""Every command that writes a folder leaves in it what it makes, and no file of an earlier call."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.site.files import COLUMNS, entries
from judge.ask.criteria import criterion_names
from judge.cli import main
from judge.io.ids import topic_of
from tests import calibration_world as world
from tests.conftest import PROJECT
from tests.mock import start_mock

WORLD = world.items(topics=8)
RUNS = PROJECT / "examples/runs"
CALLERS = set(
    """
    jobs/validation crowd/outputs jobs/calibration/__init__ jobs/leaderboard
    jobs/gold extra/evaluate/responses extra/evaluate/spans extra/bench/job
    extra/evaluate/rankings extra/evaluate/qrels extra/nuggets/create extra/nuggets/questions
    extra/nuggets/scoring extra/probe/job extra/improve/job jobs/folder jobs/release/__init__ jobs/run report/job
    """.split()
)
"""The modules that write a folder."""
NAMING = set(
    """
    extra/probe/card calibrate/report/folder extra/bench/card jobs/crowd jobs/manifest jobs/release/contents
    """.split()
)
"""Other modules that name the files of one."""
READ = {r"plan\.jsonl", r"seal\.json", r"\.names\.json", r"response_bank\.json"}
"""What they name, and only read or write beside the folder."""


class Writer(NamedTuple):
    """A command that writes a folder; `{}` stands for the folder of inputs."""

    record: str
    plain: str
    """The call that makes the fewest files."""
    out: str = "--out"


_READ = f"--topics {PROJECT}/examples/topics.json --passages {PROJECT}/examples/passages.jsonl --replace"
_POOL = f"pool --runs {{}}/runs {_READ}"
_RUN = f"run --runs {{}}/runs {_READ}"
_TALKED = f"run --runs {PROJECT}/examples/interactive {_READ}"
_OVERLAP = "--criteria groundedness --model baseline/overlap"
_CHECKED = "--criteria groundedness --prompt groundedness/sentences --model checker/overlap"
_FEW = "--select-runs {}/two.txt --screen off"
_RULE = "--select-runs best-per-team --passage-qrels {}/passages.qrel --teams {}/teams.tsv --screen off"
_REPLAYED = "--model replay/{}/judged/journal.sqlite"
_CALIBRATE = "calibrate --replicates 200 --permutations 200"
_STORED = f"{_CALIBRATE} --gold {{}}/gold.jsonl --judgments {{}}/labels"
_CROWD = "crowd {}/labels.csv --scale 0-3"
_LINKS = f"--topics {PROJECT}/examples/topics.json"
_BANK = PROJECT / "examples/nuggets.jsonl"
_RANKED = "runs.* rankings.* pairs.* swaps.* holes.* tau_range.*"
_TABLES = "diagnostics.tsv systems.tsv probabilities.tsv"
_PICTURES = "agreement{0}.svg agreement{0}.png confusion{0}.svg confusion{0}.png"

WRITERS = {
    "run": Writer("run.sha256", f"{_RUN} {_OVERLAP} {_FEW}"),
    "pool": Writer("run.sha256", f"{_POOL} {_FEW}"),
    "calibrate": Writer("calibration.sha256",
        f"{_CALIBRATE} --gold {{}}/gold.qrel --judgments {{}}/judge.qrel --criterion groundedness"),
    "crowd": Writer("crowd.sha256", _CROWD),
    "gold-sheet": Writer("sheet.sha256", "gold sheet --pool {}/judged --to csv"),
    "leaderboard": Writer("corrected.sha256", f"leaderboard {{}}/judged --gold {PROJECT}/gold/example.gold.jsonl"),
    "evaluate-responses": Writer("responses.sha256", "evaluate responses {}/judged"),
    "spans": Writer("spans.sha256", "evaluate spans --gold {}/gold.spans --run {}/run.spans"),
    "bench": Writer("bench.sha256", "bench --data {}/public --dataset begin-wow --model baseline/overlap"),
    "evaluate-passages": Writer("passages.sha256", "evaluate passages --runs {}/one --qrels {}/passages.qrel"),
    "evaluate-statements": Writer("statements.sha256", f"evaluate statements --runs {{}}/one {_LINKS}"),
    "evaluate-qrels": Writer("sets.sha256", "evaluate qrels {}/gold.qrel {}/judge.qrel"),
    "probe": Writer("probe.sha256", f"probe {{}}/judged {_OVERLAP} --items 3 --kinds invariance --replace"),
    "improve": Writer("improve.sha256",
        "improve --gold {}/grounded/gold.jsonl --pool {}/judged --prompt groundedness/graded --proposer "
        "{}/wording.md --model baseline/overlap --replicates 200 --permutations 200"),
    "nuggets-create": Writer("bank.sha256",
        f"nuggets create --pool {{}}/judged {_LINKS} --limit 2 --model replay/{{}}/bank/journal.sqlite"),
    "nuggets-match": Writer("matches.sha256",
        f"nuggets match --pool {{}}/judged --bank {_BANK} --model baseline/overlap"),
    "nuggets-score": Writer("scores.sha256",
        f"nuggets score --pool {{}}/judged --bank {_BANK} --matches {{}}/people.jsonl"),
    "validate": Writer("pages.sha256", "validate --runs {}/one", "--report-dir"),
    "report": Writer("report.sha256", "report {}/judged"),
    "release": Writer("run.sha256", "release {}/judged"),
}  # fmt: skip

OPTIONAL = (
    ("run", f"{_RUN} {_OVERLAP} --select-runs {{}}/two.txt", "screen.tsv"),
    ("run", f"{_RUN} {_OVERLAP} {_RULE}", "run_choice.tsv"),
    ("run", f"{_RUN} {_OVERLAP} --screen off", "response_runs/*.run"),
    ("run", f"{_RUN} {_CHECKED} {_FEW}", "sentences.tsv citations.tsv"),
    ("run", f"{_RUN} {_OVERLAP} {_FEW} --jury majority --samples 2 --recheck 2",
        "members.jsonl member_failures.jsonl recheck.jsonl"),
    ("run", f"{_RUN} {_FEW} {_REPLAYED} --criteria groundedness naturalness", "qrels/response_naturalness.llm.qrel*"),
    ("run", f"{_RUN} {_FEW} {_REPLAYED} --criteria preference", "ratings.tsv pairs.tsv qrels/*"),
    ("run", f"{_RUN} {_FEW} --criteria passage_relevance --model baseline/overlap --fill {{}}/passages.qrel",
        "grades.tsv grades.md qrels/*"),
    ("run", f"{_RUN} {_FEW} --criteria passage_relevance groundedness --model baseline/overlap",
        "used_passages.tsv used_passages.md used_passage_grades.tsv"),
    ("run", f"run --runs {PROJECT}/examples/answers.csv {_OVERLAP} --screen off",
        "results.csv turns.jsonl response_runs/*.run"),
    ("run", f"run --runs {PROJECT}/examples/citations/runs --criteria support --model baseline/overlap",
        "answers.jsonl qrels/* response_runs/*.run"),
    ("pool", f"{_POOL} --select-runs {{}}/two.txt", "screen.tsv"),
    ("pool", f"{_POOL} {_RULE}", "run_choice.tsv"),
    ("pool", f"{_POOL} --screen off", "response_runs/*.run"),
    ("run", f"{_TALKED} {_OVERLAP} --screen off", "turns.jsonl interactive.tsv response_runs/*.run"),
    ("pool", f"pool {_TALKED.partition(' ')[2]} --screen off", "turns.jsonl response_runs/*.run"),
    ("pool", f"{_RUN} {_OVERLAP} {_FEW}",
        "judgments.jsonl failures.jsonl leaderboard.tsv leaderboard.md differences.tsv qrels/*.qrel qrels/*.json"),
    ("calibrate",
        f"{_CALIBRATE} --gold {{}}/gold.jsonl --model baseline/overlap --prompt groundedness --pool {{}}/labels",
        f"judgments.jsonl failures.jsonl {_TABLES}"),
    ("calibrate",
        f"{_CALIBRATE} --gold {{}}/split --test {{}}/split --pool {{}}/judged --model baseline/overlap --families "
        "{}/teams.tsv --prompt groundedness/graded --prompt groundedness/yes_no --gold-scale groundedness/graded",
        "judgments.jsonl failures.jsonl comparisons.tsv diagnostics.tsv systems.tsv probabilities.tsv"),
    ("calibrate", f"{_STORED}/judgments.jsonl", f"comparisons.tsv {_TABLES}"),
    ("calibrate", f"{_STORED}/judgments.jsonl --margin 0.1", f"comparisons.tsv equivalence.tsv {_TABLES}"),
    ("calibrate", f"{_STORED}/judgments.jsonl {{}}/labels/natural.jsonl --gold {{}}/gold.jsonl {{}}/natural.jsonl",
        f"comparisons.tsv {_TABLES} {_PICTURES.format('-1')} {_PICTURES.format('-2')}"),
    ("calibrate", f"{_STORED}/judgments.jsonl --gold {{}}/three.jsonl", f"alternative.tsv comparisons.tsv {_TABLES}"),
    ("calibrate",
        f"{_CALIBRATE} --gold {{}}/passages.qrel --judgments {{}}/passages.qrel --criterion passage_relevance "
        "--runs {}/one", "leakage.tsv cuts.tsv rankings.tsv diagnostics.tsv"),
    ("crowd", f"{_CROWD} --known {{}}/known.tsv", "removed.tsv"),
    ("crowd", f"{_CROWD} --bank {{}}/bank.json", "bank.json"),
    ("crowd", f"{_CROWD} --mi-turns {{}}/turns.txt", "qrels/subset/response_relevance.qrel"),
    ("crowd", f"{_CROWD} --with-judgments {{}}/crowd.qrel", "with_judgments.tsv"),
    ("crowd", f"{_CROWD} --unit question",
        "question_judgments.json qrels/question_relevance.qrel qrels/filtered/question_relevance.qrel"),
    ("crowd", "crowd {}/labels.csv {}/novelty.csv --scale 0-3",
        "qrels/response_novelty.qrel qrels/filtered/response_novelty.qrel"),
    ("gold-sheet", "gold sheet --pool {}/judged --to csv --assessor ann", "sheet-ann.csv"),
    ("gold-sheet", "gold sheet --pool {}/judged --to html --assessor ann", "sheet-ann.html"),
    ("gold-sheet", "gold sheet --pool {}/judged --to html", "sheet.html"),
    ("gold-sheet", "gold sheet --pool {}/judged --to mturk", "batch.csv form.html"),
    ("gold-sheet", "gold sheet --pool {}/judged --to labelstudio", "tasks.json config.xml"),
    ("probe", f"probe {{}}/judged {_OVERLAP} --items 3 --kinds invariance --prompt groundedness/graded "
        "--prompt groundedness/yes_no --replace", "probe-?.svg probe-?.png"),
    ("probe", f"probe {{}}/judged {_OVERLAP} --items 3 --kinds invariance --certificate {{}}/cal", "certificate.json"),
    ("evaluate-responses", f"evaluate responses {{}}/judged --topics {PROJECT}/examples/topics.json",
        "ptkb.tsv ptkb.json ptkb.md ptkb.tex"),
    ("evaluate-passages", f"evaluate passages --runs {{}}/one --qrels {{}}/passages.qrel {_LINKS}",
        "ptkb.tsv ptkb.json ptkb.md ptkb.tex"),
    ("evaluate-passages", "evaluate passages --runs {}/one --qrels {}/passages.qrel --gold {}/passages.qrel",
        "corrected.*"),
    ("evaluate-statements", "evaluate statements --runs {}/one --qrels {}/nist {}/org",
        "side_by_side.* nist_*.svg nist_*.png org_*.svg org_*.png"),
    ("evaluate-qrels", "evaluate qrels {}/judged {}/judged", f"{_RANKED} slopes.*"),
    ("evaluate-qrels", "evaluate qrels {}/judged {}/judged --measure mean RR", f"{_RANKED} slopes-1.* slopes-2.*"),
    ("validate", "validate --runs {}/two", "quarry-copied.md"),
    ("spans", "evaluate spans --gold {}/gold.spans --run {}/run.spans {}/ranked.res --qrels {}/ranked.qrel",
        "passages.*"),
    ("report", f"report {{}}/judged --gold {PROJECT}/gold/example.gold.jsonl",
        "report/corrected.svg report/agreement-*.svg report/confusion-*.svg"),
    ("nuggets-score",
        f"nuggets score --pool {{}}/judged --bank {_BANK} --matches {{}}/judged.jsonl --gold {{}}/people.jsonl",
        "corrected.*"),
    ("release", "release {}/judged --keep-names", "response_runs/*.run"),
    ("release", "release {}/checked", "sentences.tsv citations.tsv prompts/groundedness/sentences.md"),
)  # fmt: skip
"""Command, a call that makes more files than the plain one, and patterns of these."""


@pytest.fixture(scope="module", autouse=True)
def _no_page_of_the_run() -> Iterator[None]:
    """The page that a run leaves has a record of its own; here `judge report` writes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.cli.tables.name_results", lambda outcome: None)
        yield


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(RUNS, folder / "runs")
    for name, runs in {"one": ["harbor-grounded"], "two": ["harbor-grounded", "quarry-copied"]}.items():
        (folder / name).mkdir()
        for run in runs:
            shutil.copy(RUNS / f"{run}.json", folder / name)
    passages = (PROJECT / "examples/passages.jsonl").read_text(encoding="utf-8").splitlines()
    texts = {
        "two.txt": "harbor-grounded\nquarry-copied\n",
        "teams.tsv": "".join(f"{path.name.partition('.')[0]}\tteam\n" for path in sorted(RUNS.iterdir())),
        "passages.qrel": "".join(f"1-1_1 0 {json.loads(line)['id']} 2\n" for line in passages),
        "labels.csv": _labels("relevance"),
        "novelty.csv": _labels("novelty"),
        "known.tsv": "turn_id\tresponse_id\tacceptable\n1_1\tR1\t0,1\n",
        "bank.json": '{"R1": "One.", "R2": "Two."}',
        "turns.txt": "1_1\n",
        "gold.spans": "1\tacacia tree\n2\tRed Sox\n",
        "run.spans": "1\tthe tree\n2\tred socks\n",
        "ranked.res": "1 Q0 p1 1 2.5 r\n1 Q0 p2 2 1.5 r\n",
        "ranked.qrel": "1 Q0 p2 1\n",
        "nist": "1-1_1 0 1 1\n1-1_1 0 2 0\n",
        "org": "1-1_1 0 1 0\n1-1_1 0 2 1\n",
        "crowd.qrel": "1_1 0 R1 3\n1_2 0 R2 1\n2_1 0 R3 2\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(PROJECT / "prompts/groundedness/graded.md", folder / "wording.md")
    _calibration(folder)
    _public(folder / "public")
    call(folder, "--out", folder / "judged", f"{_RUN} {_OVERLAP}")
    call(folder, "--out", folder / "checked", f"{_RUN} {_CHECKED} {_FEW}")
    with start_mock() as mock:
        served = f"--limit 2 --model server/m --base-url {mock.base_url}"
        call(folder, "--out", folder / "bank", f"nuggets create --pool {{}}/judged {_LINKS} {served}")
    _matches(folder)
    asked = "--model baseline/overlap --prompt groundedness/graded --pool {}/judged"
    (folder / "grounded").mkdir()
    gold = (PROJECT / "gold" / "example.gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "grounded" / "gold.jsonl").write_text("".join(line for line in gold if '"groundedness"' in line))
    call(folder, "--out", folder / "split", "gold split {}/grounded/gold.jsonl --test 0.34 --seed 1")
    call(folder, "--out", folder / "cal", f"{_CALIBRATE} --gold {{}}/grounded/gold.jsonl {asked}")
    return folder


def _matches(folder: Path) -> None:
    """Matches of every response with every nugget of its turn, by a person and by a judge."""
    rows = [json.loads(line) for line in (folder / "judged/pool.jsonl").read_text(encoding="utf-8").splitlines()]
    nuggets = [json.loads(line) for line in _BANK.read_text(encoding="utf-8").splitlines()]
    pairs = [(row, nugget) for row in rows for nugget in nuggets if row["turn_id"] == nugget["turn_id"]]
    for name, by in {"people": {"assessor": "ann"}, "judged": {"judge": "server/m"}}.items():
        matches = [
            {"turn_id": row["turn_id"], "response_id": row["response_id"], "nugget_id": nugget["nugget_id"],
             "label": "supports" if (place + len(name)) % 3 else "does_not", **by}
            for place, (row, nugget) in enumerate(pairs)
        ]  # fmt: skip
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(match) + "\n" for match in matches), encoding="utf-8")


def _public(folder: Path) -> None:
    """A few lines in the shape of BEGIN."""
    folder.mkdir()
    labels = ("Fully attributable", "Not fully attributable")
    rows = [f"Train {n} has a ramp.\tA train?\tTrain {n} has a ramp.\t{labels[n % 2]}\n" for n in range(12)]
    header = "knowledge\tmessage\tresponse\tbegin_label\n"
    (folder / "begin_dev_wow.tsv").write_text(header + "".join(rows), encoding="utf-8")


def _labels(criterion: str) -> str:
    rows = [f"{who},{item},{criterion},{label}\n" for item in ("1_1,R1", "1_2,R2", "2_1,R3") for who, label in _VOTES]
    return "worker,turn_id,response_id,criterion,label\n" + "".join(rows)


_VOTES = (("a", 3), ("b", 3), ("c", 1))


def _calibration(folder: Path) -> None:
    """Gold and labels of two judges, in columns and as records."""
    world.write_gold(folder / "gold.jsonl", world.gold_rows(WORLD))
    world.write_gold(folder / "natural.jsonl", world.gold_rows(WORLD, criterion="naturalness"))
    world.write_gold(
        folder / "three.jsonl", [row for name in ("ann", "bob", "cem") for row in world.gold_rows(WORLD, name)]
    )
    # Turns whose places are not known, so that nothing can depend on them.
    places = [(f"{topic_of(one.turn_id)}_last", one) for one in WORLD]
    world.write_columns(folder / "gold.qrel", {(turn, one.response_id): one.gold for turn, one in places})
    world.write_columns(folder / "judge.qrel", {(turn, one.response_id): one.deserved for turn, one in places})
    world.write_pool(folder / "labels", world.pool(WORLD, words=lambda one: int(one.response_id[1:]) % 7))
    judges = {"server/good": world.labeled(WORLD, 0.1, 2), "server/bad": world.labeled(WORLD, 0.6, 3)}
    asked = {"judgments": "groundedness/graded", "natural": "naturalness/graded"}
    for name, prompt in asked.items():
        made = [
            world.judgment(
                one.turn_id, one.response_id, grade := grades[one.response_id], judge, prompt, expected=grade + 0.1
            )
            for judge, grades in judges.items()
            for one in WORLD
        ]
        (folder / f"labels/{name}.jsonl").write_bytes(world.jsonl(made))


def call(inputs: Path, option: str, out: Path, arguments: str) -> int:
    """Exit code of a command."""
    return main([*(word.replace("{}", str(inputs)) for word in arguments.split()), option, str(out)])


def made(command: str, inputs: Path, out: Path, arguments: str) -> set[str]:
    """The names in the folder after a call, all of which the record must list.

    A folder in it with a record of its own is another one, of which the same holds.
    """
    writer = WRITERS[command]
    # A replay that lacks answers exits with 1 or 3, after writing all the same.
    assert call(inputs, writer.out, out, arguments) != 2
    inner = [record.parent for record in out.glob(f"*/{writer.record}")]
    names = set[str]()
    for folder in (*inner, out):
        check = ["sha256sum", "--check", "--strict", "--quiet", writer.record]
        subprocess.run(check, cwd=folder, check=True)
        names = world.contents(folder).keys() - {writer.record}
        if folder == out:
            names = {name for name in names if name.partition("/")[0] not in {path.name for path in inner}}
        listed = {line.split("  ", 1)[1] for line in (folder / writer.record).read_text(encoding="utf-8").splitlines()}
        assert listed == names
    return names


@pytest.fixture(scope="module")
def plain(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What the plain call of each command makes in a new folder."""
    place = tmp_path_factory.mktemp("plain")
    return {name: made(name, inputs, place / name, writer.plain) for name, writer in WRITERS.items()}


class Called:
    """The folders that calls with optional files have written, each made once."""

    def __init__(self, inputs: Path, place: Path) -> None:
        self.inputs, self.place = inputs, place
        self.names: dict[tuple[str, str], tuple[Path, set[str]]] = {}

    def __call__(self, command: str, arguments: str) -> tuple[Path, set[str]]:
        key = command, arguments
        if key not in self.names:
            out = self.place / str(len(self.names))
            self.names[key] = out, made(command, self.inputs, out, arguments)
        return self.names[key]


@pytest.fixture(scope="module")
def called(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Called:
    return Called(inputs, tmp_path_factory.mktemp("called"))


@pytest.mark.long
@pytest.mark.parametrize(("command", "arguments", "patterns"), OPTIONAL)
def test_an_optional_file_goes_with_its_option(called, plain, command, arguments, patterns) -> None:
    out, names = called(command, arguments)
    optional = names - plain[command]
    assert {name for name in optional if not any(fnmatchcase(name, one) for one in patterns.split())} == set()
    assert {one for one in patterns.split() if not any(fnmatchcase(name, one) for name in optional)} == set()
    if (command, arguments) == next(row[:2] for row in OPTIONAL if row[0] == command):
        # Its own copy, so that the calls may come in any order.
        again = Path(shutil.copytree(out, out.with_name(f"{out.name}-again")))
        assert made(command, called.inputs, again, WRITERS[command].plain) == plain[command]


PICTURED = (
    *((name, WRITERS[name].plain) for name in ("calibrate", "leaderboard", "evaluate-responses", "probe", "report")),
    ("evaluate-qrels", "evaluate qrels {}/judged {}/judged"),
)


@pytest.mark.parametrize(("command", "arguments"), PICTURED)
def test_without_matplotlib_everything_but_the_pictures_is_made(
    called: Called,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: str,
) -> None:
    _, names = called(command, arguments)
    pictures = {name for name in names if name.endswith((".svg", ".png"))}
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    capsys.readouterr()
    assert made(command, called.inputs, tmp_path / "out", arguments) == names - pictures
    assert pictures and "".join(capsys.readouterr()).count("pip install 'trec-judge[pictures]'") == 1


@pytest.mark.long
def test_every_file_that_a_folder_can_hold_is_made_here(called: Called, plain: dict[str, set[str]]) -> None:
    names = set().union(*plain.values(), *(called(command, arguments)[1] for command, arguments, _ in OPTIONAL))
    for module in sorted(CALLERS | NAMING):
        for pattern in _named(ast.parse((PROJECT / "judge" / f"{module}.py").read_text(encoding="utf-8"))) - READ:
            assert any(re.fullmatch(pattern, name) for name in names), f"{module}: {pattern} is in no row of OPTIONAL"


UNRECORDED = (
    ("--out", "gold split --test 0.5 --seed 1 {}/gold.jsonl"),
    ("--out", "gold plan --pool {}/judged --n 40 --per-run 5 --seed 1"),
    ("-o", "validate --fix --runs {}/one"),
    ("-o", "convert --to trec-run --runs {}/one"),
)
"""Calls that write files without a record of them."""
RUN_IDS = {
    path.name.partition(".")[0] for kind in ("runs", "interactive") for path in (PROJECT / "examples" / kind).iterdir()
}
SHARED = {name for names in COLUMNS for name in names.split(", ")}
TABLE_COLUMNS = set((PROJECT / "examples" / "answers.csv").read_text(encoding="utf-8").partition("\n")[0].split(","))
DOCUMENTS = {"manifest.json", "crowd.json", "selection.json", "certificate.json", "calibration.json", "seal.json",
             "response_groundedness.llm.qrel.json", "card.json", "timing.json"}  # fmt: skip
"""The files of one JSON object with fields of ours."""


@pytest.mark.long
def test_every_file_and_its_fields_are_in_the_list_of_files(called: Called, tmp_path: Path) -> None:
    calls = [*((command, writer.plain) for command, writer in WRITERS.items()), *(row[:2] for row in OPTIONAL)]
    # A bundle is a folder of ours with the prompts and a page about it.
    folders = [called(command, arguments)[0] for command, arguments in calls if command != "release"]
    for place, (option, arguments) in enumerate(UNRECORDED):
        folders.append(tmp_path / str(place))
        call(called.inputs, option, folders[-1] / "plan.jsonl" if "plan" in arguments else folders[-1], arguments)
    paths = {path: general(path) for folder in folders for path in folder.rglob("*") if path.is_file()}
    missing = set()
    for path, name in paths.items():
        about = [one for one in entries() if name in {listed.rpartition("/")[2] for listed in one.names}]
        text = "".join(f"{one.content}{one.about}" for one in about)
        missing |= set() if about else {name}
        if about and "<run_id>" not in name and (path.suffix in (".tsv", ".csv", ".jsonl") or path.name in DOCUMENTS):
            fields = stems(fields_of(path)) - SHARED
            if name == "results.csv":
                # The columns of the table that was judged come first, and each criterion has its own.
                fields = {re.sub("^groundedness_", "<criterion>_", field) for field in fields} - TABLE_COLUMNS
            missing |= {f"{name}: {field}" for field in fields if f"`{field}`" not in text}
    assert not missing


def general(path: Path) -> str:
    """The name of a file as the list of files writes it."""
    name = re.sub(r"-\d(?=\.(svg|png)$)", "", re.sub("|".join(RUN_IDS), "<run_id>", path.name))
    # The list has "likewise for questions".
    name = re.sub(r"_(all|filtered|mi_subset)(?=\.qrel)", "", re.sub("^question_", "response_", name))
    name = "<run_id>.run" if path.parent.name == "response_runs" else name.replace("example-team", "<team>")
    if path.parent.name in ("chosen", "candidates"):
        return "<variant>.md"
    # Qrels of passages begin with what is graded, as the name of their criterion does.
    criteria = [criterion for criterion in criterion_names() if criterion != "passage_relevance"]
    return re.sub(
        "|".join([*criteria, "diversity", "novelty"]), "<criterion>", re.sub("^(nist|org)_", "<qrels>_", name)
    )


def fields_of(path: Path) -> list[str]:
    """The columns of a table, the fields of a record, the top fields of a document."""
    if path.suffix in (".tsv", ".csv"):
        return path.read_text(encoding="utf-8-sig").partition("\n")[0].split("\t" if path.suffix == ".tsv" else ",")
    if path.suffix == ".jsonl":
        return [field for line in path.read_text(encoding="utf-8").splitlines() for field in json.loads(line)]
    return list(json.loads(path.read_bytes()))


def stems(columns: list[str]) -> set[str]:
    """Columns without the two ends of each interval, without grades, and without names of files."""
    ends = ("_lo", "_hi", "_low", "_high")
    kept = {column for column in columns if not (column.endswith(ends) and column.rpartition("_")[0] in columns)}
    kept = {re.sub(r"^passage_\d+$", "passage_1", column) for column in kept}
    return {re.sub(r"^(count|p)_-?\d+$", r"\1_<grade>", re.sub("^(nist|org)$", "<qrels>", column)) for column in kept}


def test_every_module_that_writes_a_folder_is_known_here() -> None:
    package = PROJECT / "judge"
    modules = {path.relative_to(package).with_suffix(""): path for path in package.rglob("*.py")}
    callers = {str(name) for name, path in modules.items() if "replace_folder(" in path.read_text(encoding="utf-8")}
    assert callers - {"io/folder"} == CALLERS


def _named(tree: ast.AST) -> set[str]:
    """The file names in a module as regular expressions."""
    within = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    named = set()
    for node in set(ast.walk(tree)) - within:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in parts)
        # A star stands for several files.
        if "*" not in text and re.fullmatch(r"\S*[^\s.\\]\S*\\\.(tsv|md|jsonl?|qrel|run|svg|png|txt)", text):
            named.add(text)
    return named


@pytest.mark.parametrize(
    ("option", "first", "second"),
    [
        ("-o", "validate --fix --runs {}/two", "validate --fix --runs {}/one"),
        ("-o", "convert --to trec-run --runs {}/two", "convert --to trec-run --runs {}/one"),
        ("--out", "gold split --test 0.5 --seed 1 {}/gold.jsonl", "gold split --test 0.5 --seed 2 {}/gold.jsonl"),
    ],
)
def test_a_command_without_a_record_refuses_a_folder_with_another_call_in_it(
    inputs: Path, tmp_path: Path, option: str, first: str, second: str
) -> None:
    assert call(inputs, option, tmp_path / "out", first) == 0
    before = world.contents(tmp_path / "out")
    assert call(inputs, option, tmp_path / "out", second) == 2
    assert world.contents(tmp_path / "out") == before
    assert call(inputs, option, tmp_path / "out", first) == 0
    assert world.contents(tmp_path / "out") == before


@pytest.mark.parametrize("second", ["calibrate", "validate"])
def test_two_commands_in_one_folder_keep_to_their_own_files(inputs, plain, tmp_path, second) -> None:
    run, other, out = WRITERS["run"], WRITERS[second], tmp_path / "out"
    call(inputs, run.out, out, f"{_RUN} {_OVERLAP}")
    # The pages stand beside no Markdown of somebody else.
    code = call(inputs, other.out, out, other.plain)
    assert code == (2 if second == "validate" else 0)
    names = plain[second] | {other.record} if code == 0 else set()
    assert call(inputs, run.out, out, run.plain) == 0
    assert world.contents(out).keys() == plain["run"] | {run.record} | names
    for record in {run.record, other.record} & world.contents(out).keys():
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", record], cwd=out, check=True)
