import multiprocessing
import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.gold.rows import read_gold
from judge.io import processes
from judge.io.files import LARGEST_FILE, allow_files, read_stored
from judge.io.ids import natural_key
from judge.io.processes import mapped, processes_for
from judge.io.text import printable
from tests.conftest import put, run_python, start_python
from tests.time_limit import PATIENCE, wait_until

pytestmark = pytest.mark.slow
FOUND = pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found by /proc, as Linux has it")


@pytest.fixture
def limit() -> Iterator[None]:
    yield
    allow_files(LARGEST_FILE)


def test_results_come_in_the_order_of_the_items() -> None:
    items = [f"{number}-{'x' * (number % 7)}\n" for number in range(40)]
    with closing(mapped(printable, items, 3)) as made:
        assert list(made) == list(map(printable, items))
    with closing(mapped(natural_key, items, 2)) as made:
        assert list(made) == list(map(natural_key, items))


def test_a_text_with_a_lone_surrogate_is_sent_both_ways() -> None:
    with closing(mapped(str.upper, ["a\ud800", "b", "\udc00c"], 2)) as made:
        assert list(made) == ["A\ud800", "B", "\udc00C"]


def test_work_is_done_in_other_processes_and_these_end_with_it() -> None:
    with closing(mapped(eval, ["__import__('os').getpid()"] * 12, 2)) as made:
        pids = set(made)
    assert 1 <= len(pids) <= 2 and os.getpid() not in pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_below_two_processes_nothing_is_started() -> None:
    assert list(mapped(eval, ["__import__('os').getpid()"], 1)) == [os.getpid()]


def test_an_error_is_raised_here_at_its_item_with_all_that_it_says(tmp_path: Path) -> None:
    there, broken = put(tmp_path / "there.jsonl", ""), put(tmp_path / "broken.jsonl", '{"turn_id": 3}\n')
    with pytest.raises(InputError) as here:
        read_gold(broken)
    with closing(mapped(read_stored, [there, tmp_path / "gone", there], 2)) as read:
        assert next(read) == b""
        with pytest.raises(InputError, match="gone"):
            next(read)
    with closing(mapped(read_gold, [broken, there], 2)) as read, pytest.raises(InputError) as carried:
        next(read)
    assert str(carried.value) == str(here.value)
    assert carried.value.problems == here.value.problems != ()


def test_what_cannot_be_sent_back_is_made_here() -> None:
    with closing(mapped(eval, ["lambda: 1", "2"], 2)) as made:
        function, number = made
    assert (function(), number) == (1, 2)


def test_the_work_of_a_process_that_dies_is_done_here() -> None:
    here = os.getpid()
    ending = f"__import__('os').kill(__import__('os').getpid(), {int(signal.SIGKILL)})"
    dying = f"'here' if __import__('os').getpid() == {here} else {ending}"
    with closing(mapped(eval, [dying, "1 + 1", dying, "2 + 2"], 2)) as made:
        assert list(made) == ["here", 2, "here", 4]


def test_what_is_printed_does_not_come_between_the_answers(capfd: pytest.CaptureFixture[str]) -> None:
    items = [
        "print('hello') or 1",
        "__import__('os').write(1, b'hello') and 2",
        "__import__('os').write(2, b'hello') and 3",
    ]
    with closing(mapped(eval, items, 2)) as made:
        assert list(made) == [1, 2, 3]
    assert capfd.readouterr() == ("", "")


def test_a_python_that_cannot_be_started_is_no_error(tmp_path: Path) -> None:
    script = """
        import multiprocessing
        from judge.io.processes import mapped
        multiprocessing.set_executable("/nowhere/python")
        print(list(mapped(str.upper, ["a", "b"], 2)))
    """
    done = run_python(put(tmp_path / "script.py", textwrap.dedent(script)))
    assert (done.returncode, done.stdout) == (0, "['A', 'B']\n"), done.stderr


@pytest.mark.parametrize("error", [OSError, ImportError, NotImplementedError])
def test_a_system_without_semaphores_is_no_error(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)
    with closing(mapped(str.upper, ["a", "b"], 2)) as made:
        assert list(made) == ["A", "B"]


def test_a_process_that_may_have_no_children_does_its_work_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    with closing(mapped(str.upper, ["a", "b"], 2)) as made:
        assert list(made) == ["A", "B"]


def test_files_have_the_same_limit_there(tmp_path: Path, limit: None) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"0123456789")
    allow_files(5)
    with (
        closing(mapped(read_stored, [tmp_path / "a", tmp_path / "b"], 2)) as made,
        pytest.raises(InputError, match="more than 5 bytes"),
    ):
        next(made)


def test_an_iteration_that_is_left_early_ends_the_processes() -> None:
    begun = time.monotonic()
    with closing(mapped(eval, ["1", *["__import__('time').sleep(60)"] * 4], 2)) as made:
        assert next(made) == 1
    assert time.monotonic() - begun < 30


PID, SLEEP = "__import__('os').getpid()", "__import__('time').sleep(60)"


def begun(folder: Path) -> subprocess.Popen[str]:
    """A process that has begun with work without end in others, the first of which says its id."""
    script = f"""
from judge.io.processes import mapped
try:
    print("begun", flush=True)
    for made in mapped(eval, [{PID!r}, *[{SLEEP!r}] * 4], 2):
        print(made, flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
# Python ends by the signal if its last exec of a text was interrupted, such as that of a named tuple in an import.
exec("")
"""
    # A session of its own, as Ctrl-C reaches all processes of a terminal's group.
    process = start_python(put(folder / "script.py", script), stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    return process


def is_gone(pid: int) -> bool:
    """Whether a process has ended, though perhaps nobody has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@FOUND
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2, 0.6, 1.0])
def test_ctrl_c_ends_all_processes_without_a_traceback(tmp_path: Path, delay: float) -> None:
    with begun(tmp_path) as process:
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        said, complaint = process.communicate(timeout=PATIENCE)
    *pids, last = said.splitlines()
    assert (process.returncode, last, complaint) == (0, "stopped", "")
    assert all(is_gone(int(pid)) for pid in pids)


@FOUND
def test_processes_end_with_the_one_that_started_them_when_it_is_killed(tmp_path: Path) -> None:
    with begun(tmp_path) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert not is_gone(pid)
        process.kill()
        wait_until(lambda: is_gone(pid))


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
            print("begun")
            from judge.io.processes import mapped
            print(list(mapped(str.upper, ["a", "b", "c"], 2)))
        """)
    )
    # A file in the current folder must not stand in for a module.
    for name in ("pickle", "multiprocessing", "struct"):
        put(tmp_path / f"elsewhere/{name}.py", "open('loaded', 'w')")
    done = run_python(tmp_path / "script.py", cwd=tmp_path / "elsewhere")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["begun", "['A', 'B', 'C']"]
    assert not (tmp_path / "elsewhere/loaded").exists()


def test_processes_are_started_where_they_are_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 8)
    monkeypatch.setattr(processes, "WORTH", 1_000)
    monkeypatch.setattr(processes, "TOGETHER", 4_000)

    def files(*sizes: int, suffix: str = ".json") -> list[Path]:
        paths = [tmp_path / f"{number}{suffix}" for number in range(len(sizes))]
        for path, size in zip(paths, sizes, strict=True):
            path.write_bytes(b" " * size)
        return paths

    assert processes_for([]) == 1
    assert processes_for(files(100, 100)) == 1  # little work
    assert processes_for(files(5_000)) == 1
    assert processes_for(files(900, 900)) == 2  # as many as there are files
    assert processes_for(files(*[900] * 9)) == 3
    assert processes_for(files(*[100] * 9, 1_900)) == 2  # two of the largest fit
    assert processes_for(files(*[100] * 9, 2_100)) == 1
    assert processes_for(files(*[100] * 9, 500, suffix=".gz")) == 1  # 2,500 unpacked
    monkeypatch.setattr(processes, "usable_cores", lambda: 1)
    assert processes_for(files(900, 900)) == 1
    assert processes_for([tmp_path / "gone"]) == 1
