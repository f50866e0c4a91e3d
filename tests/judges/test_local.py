"""The local judge: parameters, probabilities, and, where the small weights are at hand, the real thing."""

import asyncio
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.errors import ContextLengthError, InputError, OperationalError, RejectedError, UsageError
from judge.judges.backends import local as module
from judge.judges.backends import open_model
from judge.judges.backends.local import EngineReply, LocalModel, label_probabilities
from judge.judges.forms import answer_schema, label_grammar
from judge.judges.model import ModelOptions
from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.judges.weights import CATALOG, is_here, weights_file
from judge.records import Level, Scale
from tests.conftest import ask, put

pytestmark = pytest.mark.slow

SMALL = CATALOG["smollm2-135m"]
LEVELS = tuple(Level(grade, str(grade), f"level {grade}") for grade in range(4))


def request(form: AnswerForm = "label", text: str = "Is this natural?", sample: int = 0, sentences: int = 0) -> Request:
    messages = (Message("system", "You grade texts from 0 to 3."), Message("user", text))
    scale = Scale(LEVELS, "higher", (2, 3), None)
    asked = {"criterion": "naturalness", "messages": messages, "scale": scale, "response": text}
    return ask(form, sentences=sentences, sample=sample, **asked)


def gguf(folder: Path, context: int = 2048) -> Path:
    key = b"llama.context_length"
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, context)
    return put(folder / "mine.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry)


class FakeEngine:
    """Gives one answer and notes what was asked."""

    def __init__(self, text: str, finish_reason: str, tokens: Mapping[str, float] | None = None) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.answer = EngineReply(text, finish_reason, 42, 1, tuple((tokens or {}).items()))

    def ask(self, messages: list[dict[str, str]], sent: Mapping[str, Any]) -> EngineReply:
        self.asked.append({**sent, "messages": messages})
        return self.answer


def complete(model: LocalModel, asked: Request) -> Completion:
    return asyncio.run(model.complete(asked))


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LocalModel, list[FakeEngine]]]:
    """A model over a file of ours, its engine played by whatever stands first in the list."""
    engines: list[FakeEngine] = []
    monkeypatch.setattr(module, "start", lambda *arguments, reuse: engines[0])
    yield LocalModel(gguf(tmp_path), ModelOptions(max_tokens=200, seed=7)), engines


@pytest.mark.parametrize(
    ("labels", "tokens", "expected"),
    [
        # Whitespace and case do not matter; what is no label counts for nothing.
        ("0 1", [("0", 0.2), (" 0", 0.1), ("1", 0.1), ("The", 0.6)], {"0": 0.3 / 0.4, "1": 0.1 / 0.4}),
        ("yes no", [("Yes", 0.5), ("NO", 0.25), ("no", 0.25)], {"yes": 0.5, "no": 0.5}),
        # The beginning of one label counts for it, that of two for neither.
        ("supported unsupported", [("un", 0.3), ("support", 0.1)], {"supported": 0.25, "unsupported": 0.75}),
        ("-1 0 1", [("-", 0.2), ("0", 0.6), ("1", 0.2)], {"-1": 0.2, "0": 0.6, "1": 0.2}),
        ("partial part none", [("part", 0.5), ("none", 0.5)], {"partial": 0.0, "part": 0.0, "none": 1.0}),
        # A label that no token means has no mass.
        ("0 1 2", [("0", 1e-9), ("2", 3e-9)], {"0": 0.25, "1": 0.0, "2": 0.75}),
        # Six digits, so that the last bits of a float show nowhere.
        ("0 1", [("0", 1 / 3), ("1", 2 / 3)], {"0": 0.333333, "1": 0.666667}),
        ("0 1", [("", 0.5), (" ", 0.2), ("\n", 0.1), ("maybe", 0.2)], None),
        ("0 1", [], None),
    ],
)
def test_probabilities_of_labels(labels, tokens, expected) -> None:
    found = label_probabilities(tokens, labels.split())
    assert found == (expected and pytest.approx(expected, abs=1e-12))
    if found is not None:
        assert list(found) == labels.split()
        assert sum(found.values()) == pytest.approx(1, abs=1e-5)


def test_a_grammar_lets_hostile_labels_be_labels_only() -> None:
    assert label_grammar(["0", 'a" | "b', "c\\d"]) == r'root ::= "0" | "a\" | \"b" | "c\\d"'


def test_a_name_is_in_the_catalog_or_a_file(tmp_path: Path) -> None:
    assert open_model("local/qwen2.5-1.5b").name == "local/qwen2.5-1.5b"
    assert open_model(f"local/{gguf(tmp_path)}").name == "local/mine.gguf"
    with pytest.raises(UsageError, match=r"there are qwen2\.5-1\.5b, smollm2-135m, or local/PATH"):
        open_model("local/gpt-4")
    with pytest.raises(UsageError, match="--base-url"):
        open_model("local/qwen2.5-1.5b", ModelOptions(base_url="http://localhost:1"))


def test_a_file_that_is_no_model_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello", encoding="utf-8")
    with pytest.raises(InputError, match="is no GGUF file"):
        open_model(f"local/{tmp_path}/text.gguf").check(())
    with pytest.raises(InputError, match="cannot be read"):
        open_model(f"local/{tmp_path}/none.gguf").check(())
    open_model(f"local/{gguf(tmp_path)}").check(())
    open_model("local/smollm2-135m").check(())


def test_parameters_name_all_that_shapes_an_answer_and_nothing_of_this_machine(tmp_path: Path) -> None:
    few, many = (LocalModel(SMALL, ModelOptions(threads=threads)) for threads in (1, 8))
    asked = request()
    assert few.parameters(asked) == many.parameters(asked)
    parameters = dict(few.parameters(asked))
    assert str(parameters.pop("engine")).startswith("openvino-genai 2")
    assert parameters == {
        "weights": SMALL.sha256, "n_ctx": 8192, "temperature": 0.0, "seed": 0, "labels": ["0", "1", "2", "3"],
        "max_tokens": 1,
    }  # fmt: skip
    assert str(tmp_path) not in str(LocalModel(gguf(tmp_path), ModelOptions()).parameters(asked))


def test_samples_differ_by_their_seed() -> None:
    model = LocalModel(SMALL, ModelOptions(temperature=0.7, seed=40))
    assert [model.parameters(request(sample=n))["seed"] for n in range(3)] == [40, 41, 42]


def test_a_model_is_not_shown_more_than_it_was_trained_for(tmp_path: Path) -> None:
    assert LocalModel(gguf(tmp_path, 2048), ModelOptions()).parameters(request())["n_ctx"] == 2048
    assert LocalModel(gguf(tmp_path, 131072), ModelOptions()).parameters(request())["n_ctx"] == 8192


def test_the_json_form_is_constrained_by_the_schema_and_has_no_probabilities(played) -> None:
    model, engines = played
    engines.append(FakeEngine('{"rationale": "r", "grade": "2"}', "stop"))
    completion = complete(model, request("json", sentences=2))
    (sent,) = engines[0].asked
    assert sent["schema"] == answer_schema(("0", "1", "2", "3"), 2)
    assert sent["max_tokens"] == 200
    assert "labels" not in sent
    assert completion.probabilities is None
    assert completion.finish_reason == "stop"


def test_the_text_form_is_free(played: tuple[LocalModel, list[FakeEngine]]) -> None:
    model, engines = played
    engines.append(FakeEngine("Reasons. Gra", "length"))
    completion = complete(model, request("text"))
    assert not {"labels", "schema"} & engines[0].asked[0].keys()
    assert (completion.text, completion.finish_reason) == ("Reasons. Gra", "length")


def test_the_label_form_comes_with_probabilities(played: tuple[LocalModel, list[FakeEngine]]) -> None:
    model, engines = played
    engines.append(FakeEngine("2", "length", {"2": 0.3, "1": 0.1, "Let": 0.6}))
    completion = complete(model, request())
    assert completion.text == "2"
    assert completion.finish_reason == "stop", "a label is complete although one token was all that was asked"
    assert completion.probabilities == {"0": 0.0, "1": 0.25, "2": 0.75, "3": 0.0}
    assert completion.cost == 0.0
    assert (completion.prompt_tokens, completion.completion_tokens) == (42, 1)
    assert completion.model is not None and completion.model.startswith("mine@")
    sent = engines[0].asked[0]
    assert sent["messages"] == [
        {"role": "system", "content": "You grade texts from 0 to 3."},
        {"role": "user", "content": "Is this natural?"},
    ]
    assert not {"weights", "engine", "n_ctx"} & sent.keys(), "settled when the engine was loaded"


def test_a_label_that_was_cut_off_says_so(played: tuple[LocalModel, list[FakeEngine]]) -> None:
    model, engines = played
    engines.append(FakeEngine("", "length", {"2": 0.3}))
    assert complete(model, request()).finish_reason == "length"


def test_text_that_is_not_unicode_is_rejected(played: tuple[LocalModel, list[FakeEngine]]) -> None:
    model, engines = played
    engines.append(FakeEngine("2", "stop"))
    with pytest.raises(RejectedError, match="cannot be sent"):
        complete(model, request(text="half an emoji \ud83d"))


def test_nothing_is_fetched_within_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    model = LocalModel(SMALL, ModelOptions())
    with pytest.raises(OperationalError, match="`judge models pull smollm2-135m` fetches them"):
        complete(model, request())
    assert list(tmp_path.iterdir()) == []


def test_preparing_fetches_and_loads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(module, "ensure", lambda weights, report: done.append(f"ensure {weights.name}"))
    monkeypatch.setattr(module, "is_here", lambda weights: True)
    monkeypatch.setattr(module, "cached_digest", lambda path: SMALL.sha256)
    monkeypatch.setattr(module, "start", lambda *arguments, reuse: done.append(f"start with {arguments[2]}, {reuse}"))
    LocalModel(SMALL, ModelOptions(threads=3)).prepare(lambda what, done, total: None)
    assert done == ["ensure smollm2-135m", "start with 3, True"]


def test_altered_weights_answer_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`assess` may be called without `prepare`, which is where `judge run` checks the weights."""
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "start", lambda *arguments, reuse: pytest.fail("the weights were loaded"))
    path = weights_file(SMALL)
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(SMALL.size)  # the right size, all zeros
    with pytest.raises(OperationalError, match=f"expected {SMALL.sha256}; `judge models pull smollm2-135m` fetches"):
        complete(LocalModel(SMALL, ModelOptions()), request())


def test_a_file_that_changed_since_it_was_named_answers_nothing(played, tmp_path) -> None:
    model, _ = played
    sha256 = model.parameters(request())["weights"]
    path = next(tmp_path.glob("*.gguf"))
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(OperationalError, match=f"are not the weights of local/.*, expected {sha256}$"):
        complete(model, request())


needs_small = pytest.mark.skipif(
    not is_here(SMALL), reason="the weights of smollm2-135m are not in the cache: `judge models pull smollm2-135m`"
)
TEXTS = (
    "The ferry leaves at noon. How natural is this answer to a traveler?",
    "The ferry ferry the leaves at at noon noon. How natural is this answer to a traveler?",
    "It departs from the second pier, which is a short walk from the station. How natural is this answer?",
)


@pytest.fixture(scope="module")
def small() -> Iterator[LocalModel]:
    model = LocalModel(SMALL, ModelOptions(threads=1, max_tokens=40))
    model.prepare(lambda what, done, total: None)
    yield model
    asyncio.run(model.aclose())


@pytest.mark.long
@needs_small
def test_the_real_model_answers_with_a_label(small: LocalModel) -> None:
    completion = complete(small, request(text=TEXTS[0]))
    assert completion.text in {"0", "1", "2", "3"}
    assert completion.finish_reason == "stop"
    assert completion.model == "SmolLM2-135M-Instruct-Q4_1@b179c952"
    assert sum(completion.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert all(probability > 0 for probability in completion.probabilities.values())


@pytest.mark.long
@needs_small
def test_the_real_model_gives_the_same_bits_in_any_order_and_again(small: LocalModel) -> None:
    asked = [request(text=text) for text in TEXTS]
    first = [complete(small, one).probabilities for one in asked]
    again = [complete(small, asked[place]).probabilities for place in (2, 2, 0, 1)]
    assert again == [first[2], first[2], first[0], first[1]]
    assert len({str(one) for one in first}) == 3


@pytest.mark.long
@needs_small
def test_the_real_model_writes_an_object_by_the_schema(small: LocalModel) -> None:
    completion = complete(small, request("json", TEXTS[0]))
    assert completion.text.lstrip().startswith("{")
    assert '"rationale"' in completion.text
    assert completion.probabilities is None


@pytest.mark.long
@needs_small
def test_a_request_beyond_the_real_models_context_is_one_failure(small: LocalModel) -> None:
    with pytest.raises(ContextLengthError, match=r"the request has \d+ tokens or more, the context holds 8192"):
        complete(small, request(text="word " * 9000))
    assert complete(small, request(text=TEXTS[0])).text in {"0", "1", "2", "3"}, "the next one is answered"
