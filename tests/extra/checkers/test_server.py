from collections.abc import Mapping

import pytest

from judge.ask.criteria import find_criterion
from judge.errors import RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore
from judge.extra.checkers.served import ServerChecker
from judge.judges.backends import open_model
from judge.judges.model import ModelOptions
from tests.cross_encoder import scored_by
from tests.scoring import Serve


def scored(url: str, settings: Mapping[str, str], *pairs: tuple[str, str]) -> list[PairScore]:
    return scored_by(ServerChecker("m", ModelOptions(base_url=url), settings), pairs)


def test_labels_that_say_nothing_are_told_by_the_name(serve: Serve) -> None:
    """text-embeddings-inference sorts the labels by their scores, so a number stands for its LABEL_N."""
    row = [{"label": "LABEL_1", "score": 0.9}, {"label": "LABEL_0", "score": 0.1}]
    server = serve(lambda body: (200, [row]))
    for supports, expected in (("LABEL_0", 0.1), ("label_1", 0.9), ("0", 0.1)):
        assert scored(f"{server.url}/predict", {"supports": supports}, ("p", "s")) == [PairScore(expected)]
    with pytest.raises(RejectedError, match="#supports=LABEL_1"):
        scored(f"{server.url}/predict", {}, ("p", "s"))
    with pytest.raises(RejectedError, match="no class 'LABEL_2'"):
        scored(f"{server.url}/predict", {"supports": "LABEL_1", "contradicts": "LABEL_2"}, ("p", "s"))


@pytest.mark.parametrize(("name", "path", "message"), [
    ("m#supports=0,contradicts=1", "score", "at /score has no use for contradicts, supports"),
    ("m#suports=0", "predict", "setting 'suports=0' of checker/server; did you mean supports? (expected settings"),
    ("m#supports=0,supports=1", "predict", "setting 'supports=1' of checker/server"),
    ("m#supports=", "predict", "setting 'supports=' of checker/server"),
    ("m#instruction=none", "predict", "it takes supports, contradicts)"),
])  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(name: str, path: str, message: str) -> None:
    options = ModelOptions(base_url=f"http://localhost:1/{path}")
    with pytest.raises(UsageError) as raised:
        open_model(f"checker/server/{name}", options).check([find_criterion("groundedness/sentences")])
    assert message in str(raised.value)


def test_settings_are_part_of_the_name_and_of_what_is_recorded() -> None:
    name = "checker/server/org/m:7b#supports=0,contradicts=2@0.7"
    options = ModelOptions(base_url="http://localhost:1/predict")
    assert open_model(name, options).name == name
    # A number sign that no setting follows is a part of the model's name.
    assert open_model("checker/server/m#2@0.7").name == "checker/server/m#2@0.7"
    settings = {"supports": "0", "contradicts": "2"}
    assert ServerChecker("m", options, settings).rule() == {"model": "m", **settings}
