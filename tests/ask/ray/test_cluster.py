"""How many CPUs a worker takes of a cluster; Ray is played."""

import asyncio
import contextlib
import platform
from types import SimpleNamespace
from typing import Any

import pytest

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
