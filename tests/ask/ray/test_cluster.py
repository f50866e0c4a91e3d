"""How a cluster begins and ends, and how many CPUs a worker takes of it; Ray is played."""

import asyncio
import contextlib
import os
import platform
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judge.ask.ray import cluster as module
from judge.ask.ray.cluster import RayCluster, WorkerHandle
from judge.ask.ray.messages import Versions
from judge.ask.settings import Settings
from judge.errors import OperationalError
from judge.files.bundle import __version__
from judge.models.model import ModelOptions
from tests.ask.test_loop import Scripted


class PlayedRay:
    """Nodes with so many CPUs; notes what each worker takes."""

    def __init__(self, *cpus: float) -> None:
        self.cpus = cpus
        self.taken: list[int] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": cpus}} for cpus in self.cpus]

    def remote(self, worker: type) -> Any:
        def options(*, num_cpus: int, **others: object) -> Any:
            self.taken.append(num_cpus)
            return SimpleNamespace(remote=lambda *args: None)

        return SimpleNamespace(options=options)


def test_the_cluster_is_there_before_the_loop_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = RayCluster(None, 2, ["fake/scripted"], ModelOptions())
    begun: list[PlayedRay] = []

    def connected() -> PlayedRay:
        begun.append(PlayedRay(2.0))
        return begun[-1]

    monkeypatch.setattr(cluster, "_connected", connected)
    assert cluster.room(Scripted()) == 2
    assert begun


@pytest.mark.parametrize(
    ("nodes", "workers", "threads", "cpus", "room"),
    [
        ((8.0, 8.0), None, 4, 4, 4),
        # Ray would wait forever for a node with so many CPUs.
        ((2.0, 8.0), None, 4, 2, 5),
        ((2.0,), None, 64, 2, 1),
        # A cluster of our own has a CPU for each worker.
        ((2.0,), 2, 4, 1, 2),
        ((8.0,), 3, 4, 2, 3),
        ((2.0,), 5, 1, 1, 5),
    ],
)
def test_a_worker_takes_no_more_cpus_than_there_are(
    nodes: tuple[float, ...], workers: int | None, threads: int, cpus: int, room: int
) -> None:
    ray: Any = PlayedRay(*nodes)
    cluster = RayCluster(None, workers, ["fake/scripted"], ModelOptions(threads=threads))
    cluster._ray = ray
    assert cluster.room(Scripted()) == room
    cluster.start(Scripted(), Settings())
    assert ray.taken == [cpus]


@pytest.mark.parametrize(
    ("judge", "python", "said"),
    [
        ("0.0.1", platform.python_version(), rf"a Ray node has judge 0\.0\.1 .* this process judge {__version__} "),
        (__version__, "3.9.1", r"a Ray node has judge .* and Python 3\.9\.1, this process "),
        (__version__, platform.python_version(), None),
    ],
)
def test_a_node_with_other_versions_ends_the_run(judge: str, python: str, said: str | None) -> None:
    async def versions() -> Versions:
        return Versions(judge, python)

    ray: Any = SimpleNamespace(exceptions=SimpleNamespace(RayError=RuntimeError))
    worker = WorkerHandle(ray, SimpleNamespace(versions=SimpleNamespace(remote=versions)))
    with contextlib.nullcontext() if said is None else pytest.raises(OperationalError, match=said):
        asyncio.run(worker.begin())


class PlayedModule:
    """The module `ray`, with the parts of it that judge takes: it has one token until it is told to read anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """That for temporary files."""
        self.running = False
        self.broken = False
        self.token: str | None = None
        self.seen: list[dict[str, str]] = []
        self.Config = SimpleNamespace(initialize=lambda settings: None)
        self.AuthenticationTokenLoader = SimpleNamespace(instance=lambda: SimpleNamespace(reset_cache=self.forget))

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: object) -> None:
        self.look()
        os.environ["RAY_AUTH_MODE"] = "token"
        self.token = self.token or os.environ["RAY_AUTH_TOKEN"]
        # The head takes that of the environment, and the driver would not get in with another.
        assert self.token == os.environ["RAY_AUTH_TOKEN"]
        if self.broken:
            raise RuntimeError("no cluster")
        self.running = True

    def shutdown(self) -> None:
        self.look()
        self.running = False

    def forget(self) -> None:
        self.token = None

    def look(self) -> None:
        assert len(list(self.folder.iterdir())) == 1
        self.seen.append({name: value for name, value in os.environ.items() if name.startswith("RAY_")})


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedModule:
    """Ray, in an environment where it writes on the terminal, with a home that has no token."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    monkeypatch.setattr(os, "environ", {**kept, "RAY_LOG_TO_STDERR": "1"})
    monkeypatch.setattr(Path, "expanduser", lambda path: tmp_path / "nothing")
    monkeypatch.setattr("judge.ask.ray.folder._HOME", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ray: Any = PlayedModule(tmp_path)
    for name in ("ray", "ray._raylet"):
        monkeypatch.setitem(sys.modules, name, ray)
    # As where another version of Ray has no such module.
    monkeypatch.setitem(sys.modules, "ray._private.worker", None)
    return ray


def begin(address: str | None = None) -> RayCluster:
    cluster = RayCluster(address, 2, ["fake/scripted"], ModelOptions())
    with cluster:
        cluster._connected()
    return cluster


def test_the_environment_is_that_of_ray_until_it_has_ended_and_then_that_of_the_caller(played: PlayedModule) -> None:
    before = dict(os.environ)
    begin()
    assert dict(os.environ) == before
    first, last = played.seen
    assert last == {**first, "RAY_AUTH_MODE": "token"}
    assert "RAY_LOG_TO_STDERR" not in last
    assert list(played.folder.iterdir()) == []


def test_the_next_run_of_a_process_takes_the_token_that_it_has_then(played: PlayedModule) -> None:
    begin()
    assert played.token is None
    os.environ["RAY_AUTH_TOKEN"] = "mine"
    begin()
    assert [seen["RAY_AUTH_TOKEN"] == "mine" for seen in played.seen] == [False, False, True, True]


def test_a_token_stays_with_ray_where_it_must_not_be_without_one(played: PlayedModule) -> None:
    os.environ["RAY_AUTH_MODE"] = "token"
    begin()
    assert played.token is not None
    # The next run has a new one nevertheless.
    begin()
    assert len({seen["RAY_AUTH_TOKEN"] for seen in played.seen}) == 2


@pytest.mark.parametrize("lost", [True, False])
def test_ray_keeps_its_token_where_it_has_not_ended(
    lost: bool, played: PlayedModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("still there")

    monkeypatch.setattr(played, "shutdown", fail)
    before = dict(os.environ)
    cluster = RayCluster(None, 2, ["fake/scripted"], ModelOptions())
    # Where the head is lost, nothing waits for Ray to end.
    monkeypatch.setattr(module.atexit, "register", lambda leave: None)
    with contextlib.nullcontext() if lost else pytest.raises(RuntimeError, match="still there"), cluster:
        cluster._connected()
        cluster._lost = lost
    assert played.token is not None
    assert dict(os.environ) == before
    assert list(played.folder.iterdir()) == []


@pytest.mark.parametrize("address", [None, "127.0.0.1:1"])
def test_the_environment_is_put_back_where_there_is_no_cluster(address: str | None, played: PlayedModule) -> None:
    before = dict(os.environ)
    played.broken = True
    with pytest.raises(OperationalError, match=r"no cluster|no Ray cluster can be reached at 127\.0\.0\.1:1"):
        begin(address)
    assert dict(os.environ) == before
    assert list(played.folder.iterdir()) == []


def test_a_run_beside_a_ray_of_the_caller_changes_nothing(played: PlayedModule) -> None:
    played.running = True
    played.token = "mine"
    before = dict(os.environ)
    cluster = RayCluster(None, 2, ["fake/scripted"], ModelOptions())
    with cluster:
        assert cluster._connected() is sys.modules["ray"]
        assert dict(os.environ) == before
    assert (played.running, played.token, played.seen) == (True, "mine", [])


def test_a_version_of_ray_without_the_listener_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray._private.worker", None)
    with module._no_listener():
        pass
