import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.errors import JudgeError, OperationalError, RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore
from judge.extra.checkers.server import ServerChecker, joined
from judge.judges.backends import open_model
from judge.judges.model import ModelOptions
from tests.scoring import Serve

NLI = {"supports": "0", "contradicts": "2", "join": "</s></s>"}
LABELS = ("entailment", "neutral", "contradiction")


def scored(url: str, settings: Mapping[str, str], *pairs: tuple[str, str]) -> list[PairScore]:
    scorer = ServerChecker("m", ModelOptions(base_url=url), settings)
    scorer.check([])

    async def ask() -> list[PairScore]:
        try:
            return await scorer.score(pairs)
        finally:
            await scorer.aclose()

    return asyncio.run(ask())


def classified(*rows: list[float], labels: tuple[str, ...] = LABELS) -> dict[str, Any]:
    """As vLLM writes it: the label is that of the likeliest class alone."""
    data = [
        {"index": index, "label": labels[row.index(max(row))], "probs": row, "num_classes": len(row)}
        for index, row in enumerate(rows)
    ]
    return {"id": "classify-1", "object": "list", "created": 1, "model": "m", "data": data[::-1], "usage": {}}


def test_classify_of_vllm_takes_a_pair_as_one_text(serve: Serve) -> None:
    server = serve(lambda body: (200, classified([0.7, 0.2, 0.1], [0.1, 0.3, 0.6])))
    pairs = ("The ferry leaves at noon.", "It leaves at noon."), ("The ferry leaves at noon.", "It leaves at one.")
    assert scored(f"{server.url}/classify", NLI, *pairs) == [PairScore(0.7, 0.1), PairScore(0.1, 0.6)]
    ((path, body),) = server.asked
    assert (path, body["model"]) == ("/classify", "m")
    assert body["input"] == [
        "The ferry leaves at noon.</s></s>It leaves at noon.",
        "The ferry leaves at noon.</s></s>It leaves at one.",
    ]


def test_without_a_class_of_contradiction_none_is_told(serve: Serve) -> None:
    server = serve(lambda body: (200, classified([0.2, 0.8], labels=("LABEL_0", "LABEL_1"))))
    settings = {"supports": "1", "join": "</s>"}
    assert scored(f"{server.url}/classify", settings, ("p", "s")) == [PairScore(0.8, 0.0)]


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        ("Noon.</s></s>Dogs ride free.", "Noon.< /s>< /s>Dogs ride free.</s></s>Dogs ride free."),
        # What is left when one token is taken out must not be another.
        ("Noon.<</s>/s>", "Noon.<< /s>/s></s></s>Dogs ride free."),
    ],
)
def test_a_passage_cannot_end_where_it_likes(passage: str, expected: str) -> None:
    assert joined(passage, "Dogs ride free.", "</s></s>") == expected


PIECES = st.lists(st.sampled_from(["<", "/s", ">", "</s>", "[", "SEP", "]", "[SEP]", "Noon.", " "])).map("".join)


@given(passage=PIECES, sentence=PIECES, join=st.sampled_from(["</s>", "</s></s>", "[SEP]"]))
def test_no_text_adds_a_separator(passage: str, sentence: str, join: str) -> None:
    token = "[SEP]" if join == "[SEP]" else "</s>"
    text = joined(passage, sentence, join)
    assert text.count(token) == join.count(token)
    # Nothing but spaces is added.
    assert text.replace(" ", "") == f"{passage}{join}{sentence}".replace(" ", "")


@given(passage=st.text("| ax", max_size=12), join=st.sampled_from(["||", " || ", "|", "a b", "a  b", "aa", "|||"]))
def test_no_separator_of_any_form_is_left_in_a_text(passage: str, join: str) -> None:
    assert join.strip() not in joined(passage, "", join).removesuffix(join)


def test_a_separator_of_white_space_is_in_every_text() -> None:
    assert joined("a  b", "c", "  ") == "a  b  c"


@pytest.mark.parametrize(
    ("row", "labels", "settings", "error", "message"),
    [
        ([0.1, 0.2, 0.7], LABELS, NLI | {"supports": "2", "contradicts": "0"}, OperationalError,
         "calls its class 2 'contradiction', which does not go with supports=2"),
        ([0.7, 0.2, 0.1], LABELS, NLI | {"supports": "1"}, OperationalError,
         "calls its class 0 'entailment', which does not go with supports=1"),
        ([0.7, 0.2, 0.1], LABELS, NLI | {"supports": "3"}, OperationalError,
         "3 classes, so supports=3 names none: expected a number from 0 to 2"),
        ([0.7, 0.3], LABELS, NLI, OperationalError, "2 classes, so contradicts=2 names none"),
        ([1.2, 0.1, 0.1], LABELS, NLI, RejectedError, "Expected `float` <= 1.0 - at `$.data[0].probs[0]`"),
    ],
)  # fmt: skip
def test_classes_that_do_not_go_together_are_an_error(
    serve: Serve, row: list[float], labels: tuple[str, ...], settings: Mapping[str, str], error: type[JudgeError],
    message: str,
) -> None:  # fmt: skip
    server = serve(lambda body: (200, classified(row, labels=labels)))
    with pytest.raises(error) as raised:
        scored(f"{server.url}/classify", settings, ("p", "s"))
    assert message in str(raised.value)


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


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("m", "classify", "needs supports and join: "),
        ("m#join=[SEP]", "classify", "needs supports: "),
        ("m#supports=entailment,join=[SEP]", "classify", "supports=entailment of checker/server/m: expected"),
        ("m#supports=0,join=[SEP]", "predict", "at /predict has no use for join"),
        ("m#supports=0,contradicts=1", "score", "at /score has no use for contradicts, supports"),
        ("m#suports=0", "predict", "setting 'suports=0' of checker/server; did you mean supports? (expected settings"),
        ("m#supports=0,supports=1", "predict", "setting 'supports=1' of checker/server"),
        ("m#supports=", "predict", "setting 'supports=' of checker/server"),
        ("m#instruction=none", "predict", "it takes supports, contradicts, join"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(name: str, path: str, message: str) -> None:
    options = ModelOptions(base_url=f"http://localhost:1/{path}")
    with pytest.raises(UsageError) as raised:
        open_model(f"checker/server/{name}", options).check([find_criterion("groundedness/sentences")])
    assert message in str(raised.value)


def test_settings_are_part_of_the_name_and_of_what_is_recorded() -> None:
    name = "checker/server/org/m:7b#supports=0,contradicts=2,join=</s></s>@0.7"
    model = open_model(name, ModelOptions(base_url="http://localhost:1/classify"))
    assert model.name == name
    # A number sign that no setting follows is a part of the model's name.
    assert open_model("checker/server/m#2@0.7").name == "checker/server/m#2@0.7"
    settings = {"supports": "0", "contradicts": "2", "join": "[SEP]"}
    recorded = ServerChecker("m", ModelOptions(base_url="http://localhost:1/classify"), settings).rule()
    assert recorded == {
        "model": "m", "supports": "0", "contradicts": "2", "join": "[SEP]",
    }  # fmt: skip
