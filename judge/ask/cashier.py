"""What a call takes before and after it: money is set aside for it, and what comes back is entered and recorded.

The loop and the driver of a Ray cluster have one each, so a call is paid for in one way wherever it was sent from.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from judge.ask.account import Account
from judge.ask.budget import Budget
from judge.ask.questions import Questions
from judge.ask.silence import Silence
from judge.models.journal import Journal
from judge.models.model import Model
from judge.models.records import Completion, Request


class Cashier:
    """Pays for the calls to one judge.

    Args:
        model: The judge.
        journal: Holds every paid completion.
        questions: The judge's questions.
        budget: What may be spent.
        account: Where calls are entered.
        silence: Counts what the judge answers.
    """

    def __init__(
        self,
        model: Model,
        journal: Journal,
        questions: Questions,
        budget: Budget,
        account: Account,
        silence: Silence,
    ) -> None:
        self._model = model
        self._journal = journal
        self._questions = questions
        self._budget = budget
        self._account = account
        self._silence = silence
        self._news = asyncio.Event()
        """Set when those that wait for money should look again."""

    async def afford(self, request: Request, check: Callable[[], None]) -> float:
        """Wait until the budget can pay for a call beside those in flight, and give what is set aside for it.

        Args:
            request: What is to be sent.
            check: Raises what ends the wait.

        Raises:
            BudgetError: The money is spent.
        """
        while True:
            check()
            self._budget.check()
            reserved = self._budget.reserve(request)
            if reserved is not None:
                return reserved
            self._news.clear()
            await self._news.wait()

    def release(self, reserved: float) -> None:
        """Take back what was set aside for a call that has ended."""
        self._budget.release(reserved)
        self.wake()

    def wake(self) -> None:
        """Let those that wait for money look again."""
        self._news.set()

    def charge(self, request: Request, completion: Completion) -> Completion:
        """Count a completion, and give it with its cost."""
        self._silence.answered()
        return self._budget.charge(request, completion)

    def record(
        self, digest: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Enter a completion that was charged, and begin to record it.

        Returns:
            A future that is done when the completion is on the disk.

        Raises:
            OperationalError: It cannot be recorded.
        """
        self._account.ask(self._model.name, digest, request, completion, self._questions.sent(request))
        return self._journal.write(digest, self._model.name, parameters, request, completion)
