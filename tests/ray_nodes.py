"""A cluster of Ray on this machine, for any test that needs one: a process with a head, to which nodes are added.

Run as a program, it is that process: each line that it reads adds a node, and it ends the cluster with its input.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_STORE = 80_000_000


class RayNodes:
    """A running cluster of one CPU a node."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = str(self._said()["address"])

    def add(self) -> int:
        """Add a node, and give the process id of its raylet."""
        assert self._process.stdin is not None
        self._process.stdin.write("add\n")
        self._process.stdin.flush()
        return int(self._said()["raylet"])

    def kill_head(self) -> None:
        """Kill what keeps the cluster together."""
        for pid in children(self._process.pid):
            if b"gcs_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def _said(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said


def children(process: int) -> list[int]:
    """The processes that a process has started and that live."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]


def workers(raylet: int) -> list[int]:
    """The processes of judge's workers at a node."""
    return [pid for pid in children(raylet) if b"RayWorker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def kill_node(raylet: int) -> None:
    """Kill a node with everything that runs there."""
    for pid in (raylet, *children(raylet)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """A cluster with a head of one CPU, ended with the block."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trec-judge[ray]'")
    if not Path("/proc/self/task").is_dir():
        pytest.skip("the processes of a node are found by /proc, as Linux has it")
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ray_nodes"],
        env={**environment, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield RayNodes(process)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            # Without its head, a cluster may not end.
            for pid in children(process.pid):
                kill_node(pid)
            process.kill()
            process.wait()
        process.stdout.close()


def _main() -> None:
    from ray.cluster_utils import Cluster

    # What Ray prints is no answer.
    answers, sys.stdout = sys.stdout, sys.stderr

    def say(**answer: object) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    node = {"num_cpus": 1, "object_store_memory": _STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    say(address=cluster.address)
    for _ in sys.stdin:
        added = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
        say(raylet=added.all_processes["raylet"][0].process.pid)
    cluster.shutdown()


if __name__ == "__main__":
    _main()
