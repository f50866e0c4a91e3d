from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scoring import ScoreServer


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Any], tuple[int, Any]]], ScoreServer]]:
    servers: list[ScoreServer] = []

    def start(answer: Callable[[Any], tuple[int, Any]]) -> ScoreServer:
        servers.append(ScoreServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
