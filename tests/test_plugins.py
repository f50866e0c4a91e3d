"""What is added in one place shows up everywhere: a file, a row of a table, an annex, a row of another package."""

import csv
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from judge.plugins import ANNEXES
from tests.calibration_world import FAST
from tests.conftest import PROJECT, json_lines, put, run_python

pytestmark = pytest.mark.long

JUDGED = ["--runs", "examples/runs", "--topics", "examples/topics.json", "--passages", "examples/passages.jsonl"]
OVERLAP = ["--criteria", "groundedness", "--model", "baseline/overlap"]
GOLD = "gold/example.gold.jsonl"
PLAYED = """
import json, sys
# Drawing takes most of a calibration's time and is tested elsewhere.
sys.modules["matplotlib"] = None
from judge.cli import main
for line in json.loads(sys.argv[1]):
    try:
        code = main(line)
    except SystemExit as stopped:
        code = stopped.code
    print(f"\\0{code}\\0", flush=True)
"""


def played(tree: Path, *lines: Sequence[str | Path], beside: Sequence[Path] = ()) -> list[tuple[int, str]]:
    """The exit code of each command line and what it printed, all in one process of a copy of the project."""
    environment = {"PYTHONPATH": os.pathsep.join(map(str, (tree, *beside))), "COLUMNS": "120"}
    played_lines = json.dumps([[*map(str, line)] for line in lines])
    done = run_python("-c", PLAYED, played_lines, cwd=tree, environment=environment)
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("\0")
    assert len(parts) == 2 * len(lines) + 1, done.stderr
    return [(int(code), text.lstrip("\n") or done.stderr) for text, code in zip(parts[::2], parts[1::2], strict=False)]


def judge(tree: Path, *lines: Sequence[str | Path], beside: Sequence[Path] = ()) -> list[str]:
    """What command lines of a copy print, all of which must succeed."""
    results = played(tree, *lines, beside=beside)
    assert [code for code, _ in results] == [0] * len(lines), results
    return [text for _, text in results]


def linked(tree: Path, *copied: str) -> Path:
    """The project in links; what a test changes, such as `judge/stats`, is copied."""
    (tree / "judge").mkdir(parents=True)
    for path in (*(PROJECT / "judge").iterdir(), *(PROJECT / name for name in ("prompts", "gold", "examples"))):
        place = tree / path.relative_to(PROJECT)
        if path.relative_to(PROJECT).as_posix() in copied:
            shutil.copytree(path, place)
        else:
            place.symlink_to(path)
    return tree


def add_row(tree: Path, module: str, table: str, row: str) -> None:
    """Put a row at the end of the literal table of a module."""
    path = tree / "judge" / module
    text = path.read_text(encoding="utf-8")
    changed, tables = re.subn(
        rf"(^{table}: .*?)(^\}})", rf"\g<1>    {row}\n\g<2>", text, flags=re.MULTILINE | re.DOTALL
    )
    assert tables == 1
    path.write_text(changed, encoding="utf-8")


def table_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))


# ---------------------------------------------------------------- a file, or a row of a table


def test_a_criterion_is_a_folder_with_a_file_and_a_variant_a_file(tmp_path: Path) -> None:
    tree = linked(tmp_path, "prompts")
    graded = tree / "prompts" / "groundedness" / "graded.md"
    text = graded.read_text(encoding="utf-8")
    put(tree / "prompts" / "backing" / "strict.md", text.replace('criterion = "groundedness"', 'criterion = "backing"'))
    shutil.copy(graded, graded.with_name("short.md"))
    run = ["run", *JUDGED, "--model", "baseline/overlap", "--out"]
    results = played(
        tree,
        ["prompts", "list", "--json"],
        # With an option before it, the help is that of the plans; what is stored is made anew with a change of them.
        ["run", "--json", "--help", "all"],
        ["prompts", "show", "backing"],
        # The one prompt it has is the default; the baseline refuses it, so the criterion has come as far as a judge.
        [*run, "refused", "--criteria", "backing"],
        [*run, "out", "--prompt", "groundedness/short"],
        ["calibrate", "--gold", GOLD, "--judgments", "out/judgments.jsonl", "--out", "calibrated", *FAST],
    )
    assert [code for code, _ in results] == [0, 0, 0, 2, 0, 0]
    rows = {row["prompt"]: row["default"] for row in json.loads(results[0][1])}
    assert rows["backing/strict"] is rows["groundedness/graded"] is True
    assert rows["groundedness/short"] is False
    assert "backing" in results[1][1]
    assert results[2][1].startswith("+++")
    assert {row["variant"] for row in json_lines(tree / "out" / "judgments.jsonl")} == {"short"}
    assert "groundedness/short" in {row["prompt"] for row in table_of(tree / "calibrated" / "agreement.tsv")}


def test_a_statistic_is_a_row(tmp_path: Path) -> None:
    tree = linked(tmp_path, "judge/stats")
    add_row(
        tree,
        "stats/agreement.py",
        "STATISTICS",
        '"at_least": Statistic(formula=PairMean(lambda d: d >= 0), about="the share of grades no lower", '
        'family="mean", interval="t", scale="interval", label="up", shown="summary", bracketed=True, '
        "worst_case=True),",
    )
    calibrate = ["calibrate", "--gold", GOLD, "--judgments", "out/judgments.jsonl", "--out", "calibrated", *FAST]
    (_, _), (_, said), (code, _) = played(
        tree, ["run", *JUDGED, *OVERLAP, "--out", "out"], calibrate, [*calibrate, "--require", "at_least.lo>=0"]
    )
    assert code == 1
    assert re.search(r"wkappa \[95 %\] +same +AC2 +bias +up\b", said)
    row, *_ = (row for row in table_of(tree / "calibrated" / "agreement.tsv") if row["judge"] == "baseline/overlap")
    confusion = [row for row in table_of(tree / "calibrated" / "confusion.tsv") if row["judge"] == "baseline/overlap"]
    up = sum(int(line["count"]) for line in confusion if int(line["judge_grade"]) >= int(line["human"]))
    assert float(row["at_least"]) == pytest.approx(up / int(row["n"]), abs=1e-6)
    assert float(row["at_least_lo"]) < float(row["at_least"]) < float(row["at_least_hi"])
    assert row["worst_at_least"] == row["at_least"]
    columns = list(row)
    assert columns.index("bias_hi") < columns.index("at_least") < columns.index("rank_correlation")
    report = (tree / "calibrated" / "calibration.md").read_text(encoding="utf-8")
    assert "| up [95 %] |" in report
    assert "up: the share of grades no lower." in " ".join(report.split())


BY_LENGTH = '''
def by_length(case: Case) -> Iterator[FindingRow]:
    """How often the judge gives the assessors' grade, in the shorter and in the longer half of the responses."""
    words = np.array([item.words or 0 for item in case.panel.items])
    longer = words > np.median(words[case.graded])
    same = (case.panel.human == case.column.codes).astype(float)
    for half, items in (("shorter", case.graded & ~longer), ("longer", case.graded & longer)):
        yield case.row({"half": half}, {"same": mean_interval(same[items], case.topics[items].tolist())})
'''
BY_LENGTH_ROW = """\
    "by_length": FindingTable(
        rows=by_length,
        title="Does it agree less about long responses?",
        columns=(*WHOSE, fact("half", "responses"), estimated("same", "same grade [95 %]")),
        on_terminal=True,
    ),"""


def test_a_finding_of_a_calibration_is_a_function_and_a_row(tmp_path: Path) -> None:
    tree = linked(tmp_path, "judge/calibrate")
    path = tree / "judge" / "calibrate" / "diagnostics.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\n_MOVED = ", f"{BY_LENGTH}\n\n_MOVED = "), encoding="utf-8")
    add_row(tree, "calibrate/diagnostics.py", "FINDINGS", BY_LENGTH_ROW.strip())
    _, said, _ = judge(
        tree,
        ["run", *JUDGED, *OVERLAP, "--out", "out"],
        ["calibrate", "--gold", GOLD, "--judgments", "out/judgments.jsonl", "--out", "calibrated", *FAST],
        ["report", "calibrated"],
    )
    found = json.loads((tree / "calibrated" / "calibration.json").read_text(encoding="utf-8"))
    shorter, longer = found["findings"]["by_length"]
    assert (shorter["facts"], longer["facts"]) == ({"half": "shorter"}, {"half": "longer"})
    counts = [row["statistics"]["same"]["n"] for row in (shorter, longer)]
    (row, *_) = (row for row in found["agreement"] if row["judge"] == "baseline/overlap")
    assert sum(counts) == row["n"]
    values = [row["statistics"]["same"]["value"] for row in (shorter, longer)]
    percent = row["statistics"]["percent"]["value"]
    assert sum(n * value for n, value in zip(counts, values, strict=True)) / row["n"] == pytest.approx(percent)
    page = (tree / "calibrated" / "report.html").read_text(encoding="utf-8")
    for shown in (said, (tree / "calibrated" / "calibration.md").read_text(encoding="utf-8"), page):
        assert "Does it agree less about long responses?" in shown
        assert f"{values[1]:.3f}" in shown


def test_an_aggregator_is_a_row(tmp_path: Path) -> None:
    tree = linked(tmp_path, "judge/crowd")
    row = '"panel": Aggregator(aggregate=_weighted_majority, votes=True, smoothed=True, weighs=True, jury=True),'
    add_row(tree, "crowd/labels.py", "AGGREGATORS", row)
    (tree / "labels.csv").write_text(
        "worker,turn_id,response_id,criterion,label\n"
        + "".join(
            f"{worker},1_{turn},R{turn},relevance,{label}\n"
            for turn, labels in enumerate(("330", "012", "122", "331", "002"), 1)
            for worker, label in zip("abc", labels, strict=True)
        ),
        encoding="utf-8",
    )
    names = ("panel", "weighted-majority")
    options = ["--scale", "0-3", "--tie", "lowest", "--majority", "absolute", "--smoothing", "2"]
    crowd, run, *_ = judge(
        tree,
        # With an option before it, the help is that of the plans; what is stored is made anew with a change of them.
        ["crowd", "--json", "--help", "all"],
        ["run", "--json", "--help", "all"],
        *(["crowd", "labels.csv", *options, "--aggregator", name, "--out", name] for name in names),
    )
    assert re.search(r"--aggregator AGGREGATOR (?:(?! --).)*, panel\b", " ".join(crowd.split()))
    assert re.search(r"--jury JURY (?:(?! --).)*, panel\b", " ".join(run.split()))
    outputs = []
    for name in names:
        out = tree / name
        about = json.loads((out / "crowd.json").read_bytes())["options"]
        files = {path.relative_to(out): path.read_text(encoding="utf-8") for path in out.rglob("*.*") if path.is_file()}
        # The one names the aggregator, the other has digests of files that do.
        del files[Path("crowd.json")], files[Path("crowd.sha256")]
        outputs.append((about | {"aggregator": "-"}, {path: text.replace(name, "-") for path, text in files.items()}))
    assert outputs[0] == outputs[1]


def test_a_baseline_is_a_row(tmp_path: Path) -> None:
    tree = linked(tmp_path, "judge/judges")
    path = tree / "judge" / "judges" / "backends" / "baseline.py"
    twin = 'class Twin(Overlap):\n    """The same."""\n\n    name = "baseline/twin"\n\n\nBASELINES: '
    path.write_text(path.read_text(encoding="utf-8").replace("\nBASELINES: ", f"\n{twin}"), encoding="utf-8")
    add_row(tree, "judges/backends/baseline.py", "BASELINES", '"twin": Twin,')
    judge(tree, ["run", *JUDGED, *OVERLAP, "--out", "out"])
    judgments = tree / "out" / "judgments.jsonl"
    other = judgments.with_name("other.jsonl")
    other.write_text(judgments.read_text(encoding="utf-8").replace("baseline/overlap", "paid/model"), encoding="utf-8")
    judge(tree, ["calibrate", "--gold", GOLD, "--judgments", other, "--pool", "out", "--out", "calibrated", *FAST])
    rows = {row["judge"]: row for row in table_of(tree / "calibrated" / "agreement.tsv")}
    assert {name: row["baseline"] for name, row in rows.items()} == {
        "paid/model": "false", "constant": "true", "baseline/overlap": "true", "baseline/twin": "true"
    }  # fmt: skip
    assert rows["baseline/twin"]["wkappa"] == rows["baseline/overlap"]["wkappa"] == rows["paid/model"]["wkappa"]


# ---------------------------------------------------------------- a row of another package

PACKAGE = '''\
"""A package of another track."""
from pathlib import Path

from judge.judges.backends.baseline import Overlap
from judge.judges.model import Backend
from judge.runs.formats.documents import IKAT2024
from judge.stats.agreement import PairMean, Statistic

RULES = IKAT2024.RULES
PROMPTS = Path(__file__).parent / "prompts"
BACKEND, NOWHERE = Backend(module="track", local=True, self_named=True), Backend(local=True)
AT_LEAST = Statistic(formula=PairMean(lambda d: d >= 0), about="the share of grades no lower", family="mean",
                     interval="t", scale="interval", label="up", shown="summary")


def open_model(name, options):
    class Mine(Overlap):
        pass
    Mine.name = f"mine/{name}"
    return Mine()


def sniff(document):
    return isinstance(document.value, dict) and "track" in document.value


def read(document):
    document.value.pop("track")
    return IKAT2024.read(document)
'''
DAMAGED = f"""
from pathlib import Path
RULES, read, PROMPTS = None, None, Path({str(PROJECT / "prompts")!r})
sniff = {{}}.__getitem__
"""
ENTRIES = {
    "formats.track": "track",
    "judges.mine": "track:BACKEND",
    "prompts.track": "track:PROMPTS",
    "statistics.at_least": "track:AT_LEAST",
}


def install(folder: Path, entries: dict[str, str]) -> None:
    """Install a package as pip lays it out."""
    about = folder / "track-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "track.py").write_text(PACKAGE, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: track\nVersion: 1.0\n", encoding="utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (about / "entry_points.txt").write_text(f"[trec_judge.plugins]\n{lines}", encoding="utf-8")


def test_a_package_adds_a_format_a_judge_a_criterion_and_a_statistic(tmp_path: Path) -> None:
    site, out, runs = tmp_path / "site", tmp_path / "out", tmp_path / "runs"
    install(site, ENTRIES)
    (site / "prompts" / "backing").mkdir(parents=True)
    prompt = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    (site / "prompts" / "backing" / "graded.md").write_text(prompt.replace('"groundedness"', '"backing"', 1), "utf-8")
    shutil.copytree(PROJECT / "examples" / "runs", runs)
    changed = next(path for path in sorted(runs.iterdir()) if b'"run_name"' in path.read_bytes())
    changed.write_text(json.dumps({"track": 1, **json.loads(changed.read_bytes())}), encoding="utf-8")
    told, listed, *_ = judge(
        PROJECT,
        ["run", "--help", "all"],
        ["prompts", "list", "--json"],
        ["run", "--runs", runs, *JUDGED[2:], "--criteria", "groundedness", "--model", "mine/overlap", "--out", out],
        ["calibrate", "--gold", GOLD, "--judgments", out, "--out", out / "calibrated", *FAST],
        beside=[site],
    )
    assert re.search(r"--format FORMAT (?:(?! --).)*, track, trec_run\b", " ".join(told.split()))
    assert "backing/graded" in {row["prompt"] for row in json.loads(listed)}
    assert {row["judge"] for row in json_lines(out / "judgments.jsonl")} == {"mine/overlap"}
    assert all(0 < float(row["at_least"]) <= 1 for row in table_of(out / "calibrated" / "agreement.tsv"))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"colors.red": "track"}, "the package track: the plugin 'colors.red': expected one of formats, judges"),
        ({"judges.openai": "track:BACKEND"}, "the package track: the plugin 'judges.openai': there is one already"),
        ({"judges.x": "track:LACKING"}, "the package track: the plugin 'judges.x' cannot be imported: "),
        ({"judges.x": "track:AT_LEAST"}, "the package track: the plugin 'judges.x' has no module"),
        ({"judges.x": "track:NOWHERE"}, "the package track: the plugin 'judges.x' has no module"),
        ({"formats.x": "track:BACKEND"}, "the package track: the plugin 'formats.x' has no RULES, sniff, read"),
        ({"formats.x": "damaged"}, ": the format x cannot read it: TypeError("),
        ({"prompts.x": "damaged:PROMPTS"}, "graded.md: there is a prompt "),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, entries: dict[str, str], said: str) -> None:
    install(tmp_path, entries)
    (tmp_path / "damaged.py").write_text(DAMAGED, encoding="utf-8")
    ((code, told),) = played(PROJECT, ["run", *JUDGED, *OVERLAP, "--out", tmp_path / "o"], beside=[tmp_path])
    assert code == 2
    assert told.startswith("judge: ") and said in told and "Traceback" not in told
    assert not (tmp_path / "o").exists()


# ---------------------------------------------------------------- annexes

WALKED = """
import contextlib, importlib, io, json, pkgutil, sys
sys.modules["matplotlib"] = None
found = {}
# What others made stays imported from tree to tree.
for name, tree in json.loads(sys.argv[1]).items():
    for module in [module for module in sys.modules if module.partition(".")[0] == "judge"]:
        del sys.modules[module]
    sys.path[0] = tree
    import judge
    for module in pkgutil.walk_packages(judge.__path__, "judge."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert all(hasattr(judge, name) for name in judge.__all__)
    assert f"judge.extra.{name}" not in sys.modules
    from judge.cli import main
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(["demo", f"{tree}/demo"])
        with contextlib.suppress(SystemExit):
            main(["--help"])
    found[name] = code, said.getvalue()
print(json.dumps(found))
"""


def test_each_annex_can_be_deleted(tmp_path: Path) -> None:
    for annex in ANNEXES:
        tree = linked(tmp_path / annex)
        extra = tree / "judge" / "extra"
        extra.unlink()
        extra.mkdir()
        for path in (PROJECT / "judge" / "extra").iterdir():
            if path.name not in (annex, "__pycache__"):
                (extra / path.name).symlink_to(path)
    trees = json.dumps({annex: str(tmp_path / annex) for annex in ANNEXES})
    done = run_python("-c", WALKED, trees, cwd=tmp_path, environment={"COLUMNS": "120"})
    assert done.returncode == 0, done.stderr
    for annex, (code, said) in json.loads(done.stdout).items():
        assert code == 0, annex
        listed = set(re.findall(r"^ {12}(.*?)  ", said, re.MULTILINE))
        assert listed and not any(name in listed for name in ANNEXES[annex].commands), annex


def test_the_core_stands_without_any_annex(tmp_path: Path) -> None:
    for folder in ("judge", "tests", "prompts", "gold", "examples", "docs", "bench"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("_build"))
    for file in (*(path for path in PROJECT.glob("[A-Z]*") if path.is_file()), PROJECT / "pyproject.toml"):
        shutil.copy(file, tmp_path)
    for folder in (tmp_path / "judge" / "extra", tmp_path / "tests" / "extra"):
        for annex in ANNEXES:
            shutil.rmtree(folder / annex, ignore_errors=True)
    environment = {"PYTHONPATH": str(tmp_path), "JUDGE_TESTS": "core"}
    done = run_python("-m", "pytest", "-m", "fast", "-p", "no:cacheprovider", cwd=tmp_path, environment=environment)
    assert done.returncode == 0, done.stdout[-4000:]
    assert sum(line.count(".") for line in done.stdout.splitlines() if line.endswith("%]")) > 3000
