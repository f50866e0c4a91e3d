"""What annexes and other packages add: their rows are found everywhere, and the core does without any annex."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judge.plugins import ANNEXES
from tests.conftest import PROJECT
from tests.test_extension import GOLD, JUDGED, table_of

pytestmark = pytest.mark.long

PACKAGE = '''\
"""A package of another track."""
from pathlib import Path

from judge.judges.backends.baseline import Overlap
from judge.judges.model import Backend, BackendFacts
from judge.runs.formats.documents import IKAT2024
from judge.stats.agreement import PairMean, Statistic

RULES = IKAT2024.RULES
PROMPTS = Path(__file__).parent / "prompts"
BACKEND = Backend("track", BackendFacts(local=True, self_named=True))
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
def sniff(document):
    return {{}}["a"]
"""
ENTRIES = {
    "formats.track": "track",
    "judges.mine": "track:BACKEND",
    "prompts.track": "track:PROMPTS",
    "statistics.at_least": "track:AT_LEAST",
}


def install(folder: Path, entries: dict[str, str], package: str = PACKAGE) -> None:
    """Install a package as pip lays it out."""
    about = folder / "track-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "track.py").write_text(package, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: track\nVersion: 1.0\n", encoding="utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (about / "entry_points.txt").write_text(f"[trec_judge.plugins]\n{lines}", encoding="utf-8")


def judge(*arguments: str | Path, beside: Path, code: int = 0, tree: Path = PROJECT) -> str:
    """What a command prints where a package, or a copy of the project, comes first."""
    done = subprocess.run(
        [sys.executable, "-m", "judge", *map(str, arguments)],
        cwd=tree, env={**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{beside}", "COLUMNS": "120"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_package_adds_a_format_a_judge_a_criterion_and_a_statistic(tmp_path: Path) -> None:
    site, out, runs = tmp_path / "site", tmp_path / "out", tmp_path / "runs"
    install(site, ENTRIES)
    (site / "prompts" / "support").mkdir(parents=True)
    prompt = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    (site / "prompts" / "support" / "graded.md").write_text(prompt.replace('"groundedness"', '"support"', 1), "utf-8")
    shutil.copytree(PROJECT / "examples" / "runs", runs)
    changed = next(path for path in sorted(runs.iterdir()) if b'"run_name"' in path.read_bytes())
    changed.write_text(json.dumps({"track": 1, **json.loads(changed.read_bytes())}), encoding="utf-8")
    assert re.search(r"--format \{[^}]*,track\}", judge("run", "--help", beside=site))
    found = json.loads(judge("prompts", "list", "--json", beside=site))
    assert {"support/graded"} <= {row["prompt"] for row in found}
    inputs = ["--runs", runs, *JUDGED[2:], "--criteria", "groundedness"]
    judge("run", *inputs, "--model", "mine/overlap", "--out", out, beside=site)
    judged = [json.loads(line) for line in (out / "judgments.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["judge"] for row in judged} == {"mine/overlap"}
    judge("calibrate", "--gold", GOLD, "--judgments", out, "--out", out / "calibrated", beside=site)
    rows = table_of(out / "calibrated" / "agreement.tsv")
    assert all(0 < float(row["at_least"]) <= 1 for row in rows)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"colors.red": "track"}, "the package track: the plugin 'colors.red': expected one of formats, judges"),
        ({"judges.openai": "track:BACKEND"}, "the package track: the plugin 'judges.openai': there is one already"),
        ({"judges.x": "track:LACKING"}, "the package track: the plugin 'judges.x' cannot be imported: "),
        ({"judges.x": "track:AT_LEAST"}, "the package track: the plugin 'judges.x' has no module, facts"),
        ({"formats.x": "track:BACKEND"}, "the package track: the plugin 'formats.x' has no RULES, sniff, read"),
        ({"formats.x": "damaged"}, ": the format x cannot read it: KeyError('a')"),
        ({"prompts.x": "damaged:PROMPTS"}, "graded.md: there is a prompt "),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, entries: dict[str, str], said: str) -> None:
    install(tmp_path, entries)
    (tmp_path / "damaged.py").write_text(DAMAGED, encoding="utf-8")
    asked = ["--criteria", "groundedness", "--model", "baseline/overlap", "--out", tmp_path / "o"]
    told = judge("run", *JUDGED, *asked, beside=tmp_path, code=2)
    assert told.startswith("judge: ") and said in told and "Traceback" not in told
    assert not (tmp_path / "o").exists()


WALK = """
import importlib, pkgutil, judge
for module in pkgutil.walk_packages(judge.__path__, "judge."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert all(hasattr(judge, name) for name in judge.__all__)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(PROJECT / "judge", tmp_path_factory.mktemp("tree") / "judge"))


@pytest.mark.parametrize("annex", ANNEXES)
def test_each_annex_can_be_deleted(copied: Path, tmp_path: Path, annex: str) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(copied, tree / "judge", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("prompts", "gold", "examples"):
        (tree / folder).symlink_to(PROJECT / folder)
    shutil.rmtree(tree / "judge" / "extra" / annex)
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    subprocess.run([sys.executable, "-c", WALK], env=environment, cwd=tmp_path, check=True, capture_output=True)
    said = judge("--help", beside=tmp_path, tree=tree)
    listed = set(re.findall(r"^ {12}(.*?)  ", said, re.MULTILINE))
    assert not any(name in listed for name in ANNEXES[annex].commands)
    judge("demo", tmp_path / "demo", "--no-model", beside=tmp_path, tree=tree)


def test_the_core_stands_without_any_annex(copied: Path, tmp_path: Path) -> None:
    for folder in ("tests", "prompts", "gold", "examples", "docs", "bench"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    for file in PROJECT.glob("[A-Z]*"):
        if file.is_file():
            shutil.copy(file, tmp_path)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    shutil.copytree(copied, tmp_path / "judge", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (tmp_path / "judge" / "extra", tmp_path / "tests" / "extra"):
        for annex in ANNEXES:
            shutil.rmtree(folder / annex, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "fast", "-p", "no:cacheprovider"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path), "JUDGE_TESTS": "core"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert sum(line.count(".") for line in done.stdout.splitlines() if line.endswith("%]")) > 3000
