"""Parts of a call whose worker is lost: the driver has each of them before the next one is paid."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.ask.questions import Questions
from judge.ask.ray.cluster import LostWorker
from judge.ask.ray.engine import RayEngine
from judge.ask.ray.messages import Fact, News
from judge.ask.ray.worker import RayWorker
from judge.ask.records import Judgment
from judge.ask.settings import Settings
from judge.ask.tasks import tasks
from judge.models.backends import open_model
from judge.models.call_parts import parts_key
from judge.models.journal import Journal
from judge.models.model import Model, ModelOptions
from tests.ask.ray.test_engine import PlayedCluster, PlayedHandle
from tests.ask.test_loop import Scripted, pool
from tests.scoring import ScoreServer
from tests.time_limit import time_limit

NAME = "checker/chat/m"
CRITERION = find_criterion("groundedness/sentences")
POOL = pool(["Boats leave at noon. Boats return at dusk. Boats sink at night."], ("p1", "p2"))
PAIRS = 3 * 2
"""Three sentences beside two passages."""
ONE = Settings(concurrency=1, attempts=1)


class MortalHandle(PlayedHandle):
    """A worker that is lost with the first part that it says beyond those of its life."""

    async def hear(self) -> News:
        life, self.answers = self.answers, None
        news = await super().hear()
        if life is not None:
            self.answers = life - sum(isinstance(said, Fact) and said.key.startswith("parts:") for said in news.said)
            if self.answers < 0:
                self.kill()
                raise LostWorker("killed")
        return news


class CheckerCluster(PlayedCluster):
    """Starts workers that open the checker themselves, as those of a real cluster do."""

    def __init__(self, options: ModelOptions, lives: list[int]) -> None:
        super().__init__(Scripted(), 1, lives)
        self.options = options
        self.workers: list[RayWorker] = []

    def start(self, model: Model, settings: Settings) -> PlayedHandle:
        worker = RayWorker(NAME, self.options, settings)
        self.workers.append(worker)
        return MortalHandle(worker, self.lives.pop(0) if self.lives else None)


class Chat:
    """A chat model that says Yes, and what the journal holds when a pair is asked."""

    waits = True
    """Whether a reply waits until the journal holds what was paid before."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.key = ""
        self.pairs: list[str] = []
        self.kept: list[int] = []
        self.server = ScoreServer(self.answer)

    def answer(self, body: Any) -> tuple[int, Any]:
        paid = len(set(self.pairs))
        self.pairs.append(body["messages"][-1]["content"])
        # What was paid before is on its way to the driver, which waits for nothing else of this worker.
        deadline = time.monotonic() + 10
        while (kept := self.count()) < paid and self.waits and time.monotonic() < deadline:
            time.sleep(0.002)
        self.kept.append(kept)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 1}
        return 200, {"model": "m", "choices": [choice], "usage": usage}

    def count(self) -> int:
        """How many parts of the call the driver's journal holds."""
        _, _, text = (self.journal.meta(self.key) or "").partition(" ")
        return len(json.loads(text)) if text else 0


@pytest.fixture
def chat() -> Iterator[Chat]:
    with time_limit(60.0), Journal(None) as journal:
        chat = Chat(journal)
        yield chat
        chat.server.close()


def spread(chat: Chat, monkeypatch: pytest.MonkeyPatch, lives: list[int]) -> Judgment:
    options = ModelOptions(base_url=chat.server.url)
    model, cluster = open_model(NAME, options), CheckerCluster(options, lives)
    wanted = tasks(POOL, [CRITERION])
    (digest,) = Questions(model, chat.journal, POOL, {}).first_digests(wanted[0])
    chat.key = parts_key(digest)
    close = model.aclose

    async def close_all() -> None:
        # A node that goes closes its connections; here they would stay.
        for worker in cluster.workers:
            if worker._model is not None:
                await worker._model.aclose()
        await close()

    monkeypatch.setattr(model, "aclose", close_all)
    (result,) = RayEngine(cluster).assess(wanted, model, chat.journal, POOL, settings=ONE)
    assert isinstance(result, Judgment)
    return result


def test_each_part_is_in_the_drivers_journal_while_the_next_pair_is_asked(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread(chat, monkeypatch, [])
    assert chat.kept == list(range(PAIRS))
    # The call has its completion.
    assert chat.count() == 0


@pytest.mark.parametrize(("lives", "lost"), [([2], [3]), ([1, 3], [2, 5]), ([1, 1, 1], [2, 3, 4])])
def test_pairs_that_a_lost_worker_paid_for_are_not_asked_again(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, lives: list[int], lost: list[int]
) -> None:
    """Each worker that is lost takes one part with it, that of the n-th pair, and may have asked for the next one."""
    monkeypatch.setattr(Chat, "waits", False)
    spread(chat, monkeypatch, lives)
    asked = Counter(chat.pairs)
    twice = {number for number, pair in enumerate(asked, 1) if asked[pair] > 1}
    assert set(lost) <= twice <= {*lost, *(number + 1 for number in lost)}
    assert PAIRS + len(lost) <= len(chat.pairs) <= PAIRS + 2 * len(lost)
