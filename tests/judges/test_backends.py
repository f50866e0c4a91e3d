"""The base class of judges, and the facts of backends, by which alone a judge is treated."""

import pytest

from judge.ask.account import given_price
from judge.errors import UsageError
from judge.judges.backends import BACKENDS, backend_facts, judges_in
from judge.judges.model import FREE, Model, Price
from tests.ask.test_returned import notes
from tests.conftest import annex
from tests.mock import ask

pytestmark = pytest.mark.fast

WITH_FACTS = ("scale.service", "scale.requests", "checkers.cascade")
"""Modules of annexes that go by the facts of a backend."""


@pytest.mark.parametrize("backend", ["baseline", "checker", "litellm", "local", "openai", "server"])
def test_a_copy_of_a_backend_is_treated_alike(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offers, requests, cascades = map(annex, WITH_FACTS)
    copy = f"{backend}-2"
    monkeypatch.setitem(BACKENDS, copy, BACKENDS[backend])

    def treated(name: str) -> list[object]:
        judge = f"{name}/anthropic/m"
        try:
            offer: object = offers.offer_of(judge)
        except UsageError as error:
            offer = str(error)
        try:
            cascade: object = cascades.parse_cascade(f"{judge}@0.1:0.8").low
        except UsageError:
            cascade = None
        return [
            notes(judge, "another"),
            given_price(judge, {"anthropic/m": FREE}),
            offer,
            requests.OpenQuestion("d", judge, {"model": "anthropic/m"}, ask()).model,
            cascade,
            judges_in(f"{judge}@0.1:0.8+openai/gpt-x"),
            backend_facts(judge),
        ]

    assert str(treated(copy)).replace(f"{copy}/", f"{backend}/") == str(treated(backend))


def test_a_judge_needs_no_more_than_a_name_and_complete() -> None:
    model = Model()
    request = ask()
    model.check([])
    model.prepare(lambda step, done, total: None)
    assert (model.sent(request), model.parts(request), model.endpoint, model.limits) == (None, None, None, None)
    assert not (model.free or model.uses_cores or model.servers)
    with pytest.raises(NotImplementedError):
        model.parameters(request)

    model.free = True
    assert model.price() == FREE == Price(0.0, 0.0)
