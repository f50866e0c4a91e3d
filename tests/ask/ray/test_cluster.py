"""How many CPUs a worker takes of a cluster; Ray is played."""

from types import SimpleNamespace
from typing import Any

import pytest

from judge.ask.ray.cluster import RayCluster
from judge.ask.settings import Settings
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
