"""The Python API where people use it: in scripts, in notebooks, inside a running event loop."""

import asyncio
import contextvars
import importlib
import inspect
import os
import re
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import nbclient
import nbformat
import polars
import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

import judge
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment, tasks
from judge.ask.results import StoredResults, stored
from judge.calibrate.certificate import read_certificate
from judge.cli.declared import _without_required
from judge.cli.demo import write_example
from judge.errors import AuthenticationError, Interrupted
from judge.gold.rows import read_gold
from judge.io.plan import Options, shape_of
from judge.io.table import Table
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.records import Message
from judge.passages import read_passages
from judge.passages.hashes import open_hashes
from judge.pool.lists import read_families
from judge.records import Estimate, Problem, Record
from judge.results.told import told_results
from tests.ask.test_loop import Scripted, criterion, judged, pool
from tests.conftest import PROJECT
from tests.mock import start_mock
from tests.test_docs import page_blocks
from tests.test_walls import DOORS

TEXTS = [f"t{index}" for index in range(12)]


# ---------------------------------------------------------------- inside a running loop


def inside_a_loop(call: Callable[[], Any]) -> Any:
    """What a synchronous call gives where an event loop runs in this thread, as in a notebook."""

    async def cell() -> Any:
        return call()

    return asyncio.run(cell())


def test_inside_a_loop_the_results_are_the_same(tmp_path: Path) -> None:
    model = Scripted({"t3": ["no", "still no"]}, delay=0.001)
    outside = judged(tmp_path / "outside", Scripted({"t3": ["no", "still no"]}), TEXTS)
    assert inside_a_loop(lambda: judged(tmp_path / "inside", model, TEXTS)) == outside
    assert isinstance(outside, StoredResults)
    assert "<table" in outside._repr_html_() and outside.to_dicts()[0]["kind"] == "judgment"
    assert model.closed


def test_a_model_whose_connections_belong_to_a_loop_works_inside_another(tmp_path: Path) -> None:
    with start_mock() as server, Journal(tmp_path / "journal") as journal:
        one = pool(TEXTS)
        for _ in range(2):
            model = open_model("server/mock", judge.ModelOptions(base_url=server.base_url))
            results = inside_a_loop(lambda: assess(tasks(one, [criterion()]), model, journal, one))  # noqa: B023
            assert [type(result) for result in results] == [Judgment] * 12
        assert server.stats()["requests"] == 12


def test_inside_a_loop_the_model_sees_the_context_variables_of_the_caller(tmp_path: Path) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    seen: set[str] = set()

    def call() -> None:
        variable.set("set")
        judged(tmp_path, Scripted(hook=lambda calls: seen.add(variable.get())), TEXTS)

    inside_a_loop(call)
    assert seen == {"set"}


def test_inside_a_loop_what_is_raised_is_raised_to_the_caller(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="401"):
        inside_a_loop(lambda: judged(tmp_path, Scripted({"t1": [AuthenticationError("401")]}), TEXTS))

    def report(progress: Progress) -> None:
        raise LookupError("the bar is gone")

    with pytest.raises(LookupError, match="the bar is gone"):
        inside_a_loop(lambda: judged(tmp_path, Scripted(), TEXTS, report=report))


STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def restored(heeded: None) -> Iterator[None]:
    """A signal means after a test what it meant before."""

    def mine(number: int, frame: object) -> None:
        raise AssertionError(f"signal {number} arrived outside of the job")

    terminated = signal.signal(signal.SIGTERM, mine)
    before = [signal.getsignal(number) for number in STOPPING]
    yield
    assert [signal.getsignal(number) for number in STOPPING] == before
    signal.signal(signal.SIGTERM, terminated)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("around", [inside_a_loop, lambda call: call()])
@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_drains_and_loses_nothing(tmp_path, number, around) -> None:
    def interrupt(calls: int) -> None:
        if calls == 6:
            os.kill(os.getpid(), number)

    model = Scripted(delay=0.05, hook=interrupt)
    texts = [f"t{index}" for index in range(200)]
    with pytest.raises(Interrupted, match=r"of 200 judgments made.* goes on from here"):
        around(lambda: judged(tmp_path, model, texts))
    assert 6 <= len(model.asked) < 100
    assert model.closed
    again = Scripted()
    assert len(around(lambda: judged(tmp_path, again, texts))) == 200
    assert len(again.asked) == 200 - len(model.asked)


@pytest.mark.usefixtures("restored")
def test_a_second_ctrl_c_inside_a_loop_breaks_the_calls_off(tmp_path: Path) -> None:
    model = Scripted(delay=60)
    timers = [threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)) for after in (0.3, 0.8)]
    for timer in timers:
        timer.start()
    with pytest.raises(KeyboardInterrupt):
        inside_a_loop(lambda: judged(tmp_path, model, TEXTS))
    assert model.closed
    for timer in timers:
        timer.join()


def test_inside_a_loop_of_another_thread(tmp_path: Path) -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(inside_a_loop(lambda: judged(tmp_path, Scripted(), TEXTS))))
    thread.start()
    thread.join()
    assert len(results) == 12


# ---------------------------------------------------------------- paths and lists


class Given(os.PathLike[str]):
    """A path of a kind that nobody expects."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


READERS = (open_hashes, read_certificate, read_families, read_gold, read_passages)
"""Of what is beside the main line."""
KINDS: list[Callable[[str], Any]] = [str, Given]
"""Other tests give paths of `pathlib`."""


def leaves(hint: Any) -> set[Any]:
    """The types that a hint is made of."""
    if get_origin(hint) is os.PathLike or not get_args(hint):
        return {hint}
    return {leaf for part in get_args(hint) if not isinstance(part, list) for leaf in leaves(part)}


def public_hints() -> Iterator[tuple[str, Any]]:
    """Name and type of each parameter of a public function."""
    public = {name: getattr(judge, name) for name in judge.__all__}
    public |= {member.__name__: member for member in READERS}
    for name, member in public.items():
        functions = [member] if inspect.isfunction(member) else []
        if member is Journal:
            functions = [one for one in vars(member).values() if inspect.isfunction(one)]
        for function in functions:
            hints = get_type_hints(function)
            yield from ((f"{name}({field})", hint) for field, hint in hints.items() if field != "return")


def test_every_public_path_may_be_text_or_any_path() -> None:
    paths = {name: found for name, hint in public_hints() if (found := leaves(hint)) & {Path, os.PathLike[str]}}
    assert {"read_topics(path)", "read_runs(runs)", "make_pool(passages)", "Journal(path)",
            "find_criterion(name_or_path)"} <= paths.keys()  # fmt: skip
    for name, found in paths.items():
        assert {str, os.PathLike[str]} <= found, name


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the example and its gold in it, as the documents have it."""
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", KINDS)
def test_the_stages_take_any_kind_of_path(path: Callable[[str], Any], example: Path) -> None:
    runs = judge.read_runs(path("examples/runs"), judge.read_topics(path("examples/topics.json")))
    passages = path("examples/passages.jsonl")
    pools = [judge.make_pool(runs, given) for given in (passages, [passages])]
    assert pools[0] == pools[1]
    prompt = judge.find_criterion(path(str(PROJECT / "prompts" / "groundedness" / "graded.md")))
    with Journal(path("one.sqlite")) as journal:
        judge.assess(tasks(pools[0], [prompt]), open_model("baseline/overlap"), journal, pools[0])
        assert len(journal) > 50
    with Journal(None) as journal:
        journal.adopt(path("one.sqlite"))
        assert len(journal) > 50


@pytest.mark.parametrize("path", KINDS)
def test_the_readers_take_any_kind_of_path(path: Callable[[str], Any], example: Path) -> None:
    Path("teams.tsv").write_text("harbor-grounded\tharbor\n", encoding="utf-8")
    Path("hashes.tsv").write_text(f"clueweb22-en0012-34-56789\t0\t{'0' * 32}\n", encoding="utf-8")
    assert read_families(path("teams.tsv")) == {"harbor-grounded": "harbor"}
    assert len(read_gold(path("gold/example.gold.jsonl"))) > 100
    assert open_hashes(path("hashes.tsv")).find(["clueweb22-en0012-34-56789:0"]) == [bytes(16)]
    assert read_passages(path("examples/passages.jsonl"), {"absent"}) == {}
    with pytest.raises(judge.InputError, match="not a certificate"):
        read_certificate(path("teams.tsv"))


@pytest.mark.parametrize("path", KINDS)
def test_the_jobs_take_any_kind_of_path_and_one_alone(path: Callable[[str], Any], example: Path) -> None:
    """Inside a running loop, as a notebook has it."""
    Path("turns.txt").write_text("1-1_1\n1-1_2\n2-1_1\n3-1_1\n", encoding="utf-8")
    Path("teams.tsv").write_text("harbor-grounded\tharbor\n", encoding="utf-8")
    Path("runs.txt").write_text("harbor-grounded\nquarry-copied\n", encoding="utf-8")
    graded = path(str(PROJECT / "prompts" / "groundedness" / "graded.md"))
    plan = judge.Plan(
        runs=path("examples/runs"),
        topics=path("examples/topics.json"),
        passages=path("examples/passages.jsonl"),
        only_turns=path("turns.txt"),
        select_runs=path("runs.txt"),
        prompts=graded,
        criteria="groundedness",
        model="baseline/overlap",
        families=None,
        out=path("out"),
    )
    assert (plan.criteria, len(plan.prompts), len(plan.passages or ())) == (("groundedness",), 1, 1)
    outcome = inside_a_loop(lambda: judge.run(plan))
    assert {row.run_id for row in outcome.leaderboard} == {"harbor-grounded", "quarry-copied"}
    assert outcome._repr_html_() == f"<p>{outcome.banner}</p>{outcome.leaderboard._repr_html_()}"
    extended = inside_a_loop(lambda: judge.run(plan.with_values(extend=path("out"), out=path("more"))))
    assert extended.results == outcome.results
    calibration = CalibrationPlan(
        gold=path("gold/example.gold.jsonl"),
        models="baseline/overlap",
        prompts=graded,
        pool=path("out"),
        families=path("teams.tsv"),
        criterion="groundedness",
        requirements="wkappa.lo>=0.4",
        replicates=200,
        permutations=200,
        out=path("cal"),
    )
    tried = inside_a_loop(lambda: calibrate_judges(calibration, datetime(2026, 1, 1, tzinfo=UTC)))
    assert [one.criterion for one in tried.certificate.certified] == ["groundedness"]
    stored = calibration.with_values(
        models=(), judgments=path("out/judgments.jsonl"), prompts=(), out=None, criterion=graded, gold_scale=graded
    )
    again = inside_a_loop(lambda: calibrate_judges(stored, datetime(2026, 1, 1, tzinfo=UTC)))
    assert again.calibration.verdicts[0].criterion == "groundedness"
    certified = plan.with_values(certificate=path("cal/certificate.json"), out=path("certified"))
    assert inside_a_loop(lambda: judge.run(certified)).statement is not None


def test_a_data_frame_of_results_says_what_they_are_about(tmp_path: Path) -> None:
    """A row for each run that gave the response; a missing judgment has its reason and no grade."""
    examples = PROJECT / "examples"
    plan = judge.Plan(
        runs=examples / "runs",
        topics=examples / "topics.json",
        passages=examples / "passages.jsonl",
        criteria="groundedness",
        model="baseline/overlap",
        out=tmp_path / "out",
    )
    outcome = judge.run(plan)
    rows = outcome.results.to_dicts()
    assert list(rows[0])[:7] == ["run_id", "turn_id", "question", "text", "criterion", "grade", "reason"]
    given = {(entry.run_id, response.turn_id) for response in outcome.pool.responses for entry in response.runs}
    assert sorted((row["run_id"], row["turn_id"]) for row in rows) == sorted(given)
    texts = {response.response_id: response.text for response in outcome.pool.responses}
    assert all(row["text"] == texts[row["response_id"]] and row["question"] for row in rows)
    missing = [(row["run_id"], row["turn_id"], row["grade"], row["reason"]) for row in rows if row["reason"]]
    assert missing == [("thistle-faulty", "2-1_5", None, "no_passages")]
    assert outcome.results[:3].to_dicts()[0] == {name: rows[0][name] for name in outcome.results[:3].to_dicts()[0]}
    # The same of a folder that was judged before, which holds no questions; what is missing comes last.
    again = judge.read_judged(tmp_path / "out").results.to_dicts()
    assert [{**row, "question": None} for row in sorted(rows, key=lambda row: row["reason"] is not None)] == again


def test_a_result_about_no_response_of_the_pool_names_no_run(tmp_path: Path) -> None:
    one = pool(["a"])
    with Journal(tmp_path / "journal") as journal:
        results = assess(tasks(one, [criterion()]), Scripted(), journal, one)
    (row,) = told_results(stored(results), msgspec.structs.replace(one, responses=()), {}).to_dicts()
    assert (row["run_id"], row["text"], row["question"]) == (None, None, None)
    assert row["response_id"] == one.responses[0].response_id and row["grade"] is not None


@pytest.mark.parametrize("kind", [judge.Plan, judge.Pooling, CalibrationPlan])
def test_no_field_of_several_takes_a_text_letter_by_letter(kind: type[Options]) -> None:
    shapes = {name: shape_of(field) for name, field in kind.model_fields.items()}
    of_paths = {name: shape.many for name, shape in shapes.items() if shape.of is Path}
    assert set(of_paths.values()) == {True, False}
    # Alone, some options are refused for lack of another.
    kind = _without_required(kind)
    for name, several in of_paths.items():
        for given in ("odd", Given("odd")):
            made = getattr(kind(**{name: given}), name)
            assert made == ((Path("odd"),) if several else Path("odd"))


# ---------------------------------------------------------------- names


def test_no_public_name_is_hidden_by_a_room() -> None:
    rooms = [importlib.import_module(f"judge.{name}") for name in DOORS]
    assert all(isinstance(room, types.ModuleType) for room in rooms)
    assert not set(DOORS) & set(judge.__all__)
    for name in judge.__all__:
        assert not isinstance(getattr(judge, name), types.ModuleType), name


def test_the_package_shows_its_public_names_and_no_others() -> None:
    assert [name for name in dir(judge) if not name.startswith("__")] == [
        name for name in judge.__all__ if not name.startswith("__")
    ]
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = judge.absent
    namespace: dict[str, Any] = {}
    exec("from judge import *", namespace)
    assert judge.__all__ == sorted(judge.__all__) and set(judge.__all__) <= namespace.keys()
    for name in judge.__all__:
        assert getattr(judge, name) is namespace[name]


# ---------------------------------------------------------------- records and tables

HOSTILE = "<script>alert('x')</script> $\\href{javascript:x}{y}$ \u202ecod \x1b[31m"
PROBLEMS = Table(Problem("code", "error", "run.json", turn, "$", HOSTILE) for turn in ("1-1_1", None))


def test_a_record_is_one_short_line() -> None:
    assert repr(pool(["a", "b"])) == "Pool(responses=2, passages=1, exclusions=0, runs=0, turns=0, answers=0)"
    assert repr(Message("user", "word " * 1000)) == f"Message(role='user', content={'word ' * 8!r}…)"
    assert repr(Estimate(0.123456, None, 0.5, 3, 2)) == "Estimate(value=0.1235, high=0.5, n=3, topics=2)"
    assert "\x1b" not in repr(PROBLEMS[0])
    one = pool(["a", "b"])
    with Journal(None) as journal:
        good, bad = assess(tasks(one, [criterion()]), Scripted({"b": ["no"]}), journal, one)
    assert isinstance(good, Judgment)
    assert isinstance(bad, Failure)
    assert repr(good) == "Judgment(R00000 naturalness=2 by fake/scripted)"
    assert repr(msgspec.structs.replace(good, unable=True)) == "Judgment(R00000 naturalness=unable by fake/scripted)"
    assert repr(bad) == "Failure(R00001 naturalness: unreadable by fake/scripted)"


def test_a_table_is_a_tuple() -> None:
    rows = tuple(PROBLEMS)
    assert rows == PROBLEMS
    assert hash(PROBLEMS) == hash(rows)
    assert isinstance(PROBLEMS[:1], Table)
    assert PROBLEMS[0] is rows[0]
    assert msgspec.json.encode(PROBLEMS) == msgspec.json.encode(rows)


class Measured(Record, frozen=True):
    name: str
    mean: Estimate | None
    shares: dict[str, float]
    parts: tuple[Message, ...] = ()


MEASURED = Table(
    [
        *(Measured(f"run-{index}", None, {}) for index in range(150)),
        Measured("last", Estimate(0.5, 0.25, 0.75, 10, 5), {"0": 0.9}, (Message("user", "hello"),)),
    ]
)
COLUMNS = ["name", "mean.value", "mean.low", "mean.high", "mean.n", "mean.topics", "mean.reason", "shares.0", "parts"]


def test_records_in_a_record_become_columns_of_their_own() -> None:
    rows = MEASURED.to_dicts()
    # Every row has every column, though only the last one has a mean.
    assert {frozenset(row) for row in rows} == {frozenset(COLUMNS)}
    assert rows[0] == {**dict.fromkeys(COLUMNS), "name": "run-0", "parts": []}
    assert rows[-1]["mean.low"] == 0.25
    assert rows[-1]["shares.0"] == 0.9
    assert rows[-1]["parts"] == [{"role": "user", "content": "hello"}]
    assert Table[Measured]().to_dicts() == []


def test_a_table_becomes_a_data_frame() -> None:
    frame = MEASURED.to_pandas()
    assert sorted(frame.columns) == sorted(COLUMNS)
    assert frame["mean.value"].max() == 0.5
    other = MEASURED.to_polars()
    assert (other.height, other["mean.high"].max()) == (151, 0.75)
    assert isinstance(other.schema["parts"], polars.List)


def test_judgments_and_failures_share_a_table() -> None:
    one = pool(["a", "b"])
    with Journal(None) as journal:
        results = assess(tasks(one, [criterion()]), Scripted({"b": ["no"]}), journal, one)
    rows = results.to_dicts()
    assert [(row["kind"], row["grade"], row["reason"]) for row in rows] == [
        ("judgment", 2, None),
        ("failure", None, "unreadable"),
    ]


def test_a_notebook_shows_texts_of_strangers_as_text() -> None:
    shown = PROBLEMS._repr_html_()
    assert shown.count("<tr>") == 1 + 2
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in shown
    assert not any(part in shown for part in ("<script", "\u202e", "\x1b"))
    # Jupyter makes formulas, with links in them, of what stands between dollars.
    assert 'class="tex2jax_ignore mathjax_ignore"' in shown
    assert "<b>" not in Table([Measured("x", None, {"<b>": 1.0})])._repr_html_()


def test_a_long_table_and_a_long_text_are_shown_in_part() -> None:
    shown = Table(Message("user", f"{index} {'x' * 1000}") for index in range(1000))._repr_html_()
    assert shown.count("<tr>") == 1 + 50
    assert "<caption>the first 50 rows</caption>" in shown
    assert len(shown) < 50 * 200


# ---------------------------------------------------------------- progress


def test_progress_is_shown_on_request_and_passed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Progress] = []
    with Journal(tmp_path / "journal") as journal:
        everything = pool(TEXTS)
        wanted = tasks(everything, [criterion()])
        assess(wanted, Scripted(), journal, everything, report=seen.append, progress=True)
    assert re.fullmatch(r"fake/scripted: 12/12 judged, [\d.]+/s, \$0.1200\n", capsys.readouterr().err)
    assert [progress.done for progress in seen] == list(range(1, 13))
    judged(tmp_path, Scripted(), TEXTS)
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------- a notebook

STARTED = "import asyncio; assert asyncio.get_running_loop().is_running()"
INTERRUPTED = """
import os, signal, threading
from judge.judges.backends.baseline import Overlap

answer = Overlap.complete

async def slowly(self, request):
    await asyncio.sleep(0.3)
    return await answer(self, request)

Overlap.complete = slowly
threading.Timer(2.6, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    with judge.Journal("slow.sqlite") as journal:
        slow = {"settings": judge.Settings(concurrency=4), "progress": True}
        judge.assess(judge.tasks(pool, criteria), judge.open_model("baseline/overlap"), journal, pool, **slow)
except judge.OperationalError as error:
    print(type(error).__name__, error)
with judge.Journal("slow.sqlite") as journal:
    print(len(journal) > 0)
"""


def outputs_in_a_kernel(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(Path(name).absolute()))
    kernel = AsyncKernelManager()
    # This interpreter's, whatever kernels are installed for the user.
    kernel._kernel_spec = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    client = nbclient.NotebookClient(notebook, timeout=120)
    # Not as an argument: a kernel that it is given it does not end.
    client.km = kernel
    client.execute()
    return [cell.get("outputs", []) for cell in notebook.cells]


@pytest.mark.long
def test_the_tour_prints_what_it_shows(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tour = nbformat.read(PROJECT / "examples/tour.ipynb", as_version=4)
    shown = [[each.get("text") for each in cell.get("outputs", [])] for cell in tour.cells]
    outputs = outputs_in_a_kernel(tour, monkeypatch)
    assert [[each.get("text") for each in some] for some in outputs] == shown
    assert ["image/png" in each.get("data", ()) for some in outputs for each in some].count(True) == 1


@pytest.mark.long
def test_the_cells_of_the_page_run_in_a_kernel(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [text for language, text in page_blocks("docs/run.md") if language == "python"]
    cells = [nbformat.v4.new_code_cell(source) for source in (STARTED, *cells, INTERRUPTED)]
    outputs = outputs_in_a_kernel(nbformat.v4.new_notebook(cells=cells), monkeypatch)
    # A job of under two seconds has a line and no bar; on a busy machine it may take longer.
    *shown, table = outputs[1]
    assert any(one.get("text", "").startswith("baseline/overlap: 77/77 judged, ") for one in shown)
    assert "<td>harbor-grounded</td>" in table.data["text/html"]
    assert "mean.low" in outputs[2][-1].data["text/html"]
    assert table.data["text/html"] == outputs[3][-1].data["text/html"]
    bar, said = outputs[4][0], outputs[4][-1].text
    assert "/77" in bar.data["text/html"]
    assert said.startswith("Interrupted stopped with ")
    assert said.endswith("goes on from here\nTrue\n")
