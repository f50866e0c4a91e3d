"""`systemone/<model>`: a decision model under TypeSafe's contract System One, at an address that the user names."""

from collections.abc import Sequence

from judge.errors import MissingKeyError
from judge.extra.decisions.contracts import SystemOneContract
from judge.extra.decisions.model import DecisionModel
from judge.records import Criterion


class SystemOneModel(DecisionModel):
    """A judge of System One."""

    backend = "systemone"
    contract = SystemOneContract()
    asks_together = 64
    """The contract names no number; servers that name one take so many."""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing address, and what every decision model refuses."""
        if self._base_url is None:
            raise MissingKeyError(
                f"{self.name} needs --base-url, the address before /systemone, such as https://api.typesafe.ai/v1"
            )
        super().check(criteria)


open_model = SystemOneModel
