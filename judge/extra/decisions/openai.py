"""`decisions/<model>`: a decision model of OpenAI, or another one under OpenAI's contract at `--base-url`."""

from judge.extra.decisions.contracts import OpenAIContract
from judge.extra.decisions.model import DecisionModel
from judge.judges.backends.openai import OpenAIModel
from judge.judges.model import ModelOptions, Price

_PRICES = {"gpt-6-luna": Price(0.1e-6, 0.0)}
"""OpenAI's list prices of November 2026; litellm's table has those of the same models where they write."""
_MOST, _MOST_ELSEWHERE = 400, 64
"""Questions of a call: as many as OpenAI takes, and as many as vLLM does."""


class DecisionsModel(DecisionModel, OpenAIModel):
    """A judge of OpenAI's contract."""

    backend = "decisions"
    contract = OpenAIContract()

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, options)
        self.asks_together = _MOST if self._base_url is None else _MOST_ELSEWHERE

    def price(self) -> Price | None:
        """OpenAI's list price; None at another address."""
        return _PRICES.get(self._model) if self._base_url is None else None


open_model = DecisionsModel
