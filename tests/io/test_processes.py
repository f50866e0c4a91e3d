import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.io import processes
from judge.io.files import LARGEST_FILE, allow_files, read_stored
from judge.io.ids import natural_key
from judge.io.processes import mapped, processes_for
from judge.io.text import printable
from tests.conftest import put, run_python

pytestmark = pytest.mark.slow


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


def test_below_two_processes_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert list(mapped(eval, ["__import__('os').getpid()"], 1)) == [os.getpid()]


def test_an_error_is_raised_here_at_its_item(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"yes")
    with closing(mapped(read_stored, [tmp_path / "there", tmp_path / "gone", tmp_path / "there"], 2)) as made:
        assert next(made) == b"yes"
        with pytest.raises(InputError, match="gone"):
            next(made)


def test_what_cannot_be_sent_back_is_made_here() -> None:
    with closing(mapped(eval, ["lambda: 1", "2"], 2)) as made:
        function, number = made
    assert (function(), number) == (1, 2)


def test_the_work_of_a_process_that_dies_is_done_here() -> None:
    here = os.getpid()
    ending = f"__import__('os').kill(__import__('os').getpid(), {int(signal.SIGTERM)})"
    dying = f"'here' if __import__('os').getpid() == {here} else {ending}"
    with closing(mapped(eval, [dying, "1 + 1", dying, "2 + 2"], 2)) as made:
        assert list(made) == ["here", 2, "here", 4]


def test_what_is_printed_does_not_come_between_the_answers() -> None:
    items = ["print('hello') or 1", "__import__('os').write(1, b'hello') and 2"]
    with closing(mapped(eval, items[:1] + ["3"] * 3, 2)) as made:
        assert list(made) == [1, 3, 3, 3]
    with closing(mapped(eval, items[1:] + ["3"] * 3, 2)) as made:
        assert list(made) == [2, 3, 3, 3]


def test_a_python_that_cannot_be_started_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
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


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
            print("begun")
            from judge.io.processes import mapped
            print(list(mapped(str.upper, ["a", "b", "c"], 2)))
        """)
    )
    # A file in the current folder must not stand in for a module.
    put(tmp_path / "elsewhere/pickle.py", "open('loaded', 'w')")
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
