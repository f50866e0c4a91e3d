"""The checker from a file, with small models whose scores can be worked out by hand."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.errors import ContextLengthError, InputError, RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore
from judge.extra.checkers.onnx import ModelFiles, OnnxChecker
from judge.judges.backends import open_model
from judge.judges.model import FREE, ModelOptions
from tests.cross_encoder import scored_by, tokenizer, write_encoder

pytest.importorskip("onnx", reason="makes the models of these tests")
pytest.importorskip("onnxruntime", reason="runs them")
pytestmark = pytest.mark.slow

CRITERION = find_criterion("groundedness/sentences")
NLI = {"id2label": {"0": "entailment", "1": "neutral", "2": "contradiction"}}
TWO = {"id2label": {"0": "not_entailment", "1": "entailment"}}
NO_SETTINGS: Mapping[str, str] = {}
WEIGHTS, BIASES = (4.0, 0.0, -4.0), (-2.0, 0.0, 2.0)
PASSAGE, WHOLE, HALF, NONE = "the ferry leaves at noon", "the ferry leaves", "ferry rain", "dogs ride free"


def softmax(*logits: float) -> list[float]:
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


def scored(
    folder: Path, *pairs: tuple[str, str], settings: Mapping[str, str] = NO_SETTINGS, options: Any = None
) -> list[PairScore]:
    return scored_by(OnnxChecker(str(folder), options or ModelOptions(), settings), pairs)


def pairs_of(scores: Sequence[PairScore]) -> list[tuple[float, float]]:
    return [score[:2] for score in scores]


@pytest.mark.parametrize(("weights", "biases", "config", "kind", "expected"), [
    # A share of 1 gives the logits 2, 0, -2, one of a half 0, 0, 0, and one of 0 the logits -2, 0, 2.
    *(
        (WEIGHTS, BIASES, NLI, kind, [softmax(2 * x, 0, -2 * x)[::2] for x in (1, 0, -1)])
        for kind in ("int64", "int32")
    ),
    # One logit is a probability by the logistic function.
    ((6.0,), (-3.0,), {}, "int64", [[1 / (1 + math.exp(-logit)), 0.0] for logit in (3, 0, -3)]),
    ((-1.0, 1.0), (0.0, 0.0), TWO, "int64", [[softmax(-x, x)[1], 0.0] for x in (1, 0.5, 0)]),
])  # fmt: skip
def test_classes_by_their_labels(
    tmp_path: Path, weights: Any, biases: Any, config: Any, kind: str, expected: Any
) -> None:
    write_encoder(tmp_path, weights, biases, config, kind)
    found = scored(tmp_path, (PASSAGE, WHOLE), (PASSAGE, HALF), (PASSAGE, NONE))
    assert pairs_of(found) == [pytest.approx(tuple(pair), abs=1e-6) for pair in expected]


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        # Of the passage's three words the sentence has one, of the sentence's one word the passage has all.
        ("ferry leaves noon", "ferry"),
        # Were `[SEP]` read as a separator, the share of the passage's would no longer be 1.
        (f"{PASSAGE} [SEP] rain", WHOLE),
    ],
)
def test_the_passage_comes_first_and_cannot_write_a_separator(tmp_path: Path, passage: str, sentence: str) -> None:
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    (found,) = scored(tmp_path, (passage, sentence))
    assert found.supports == pytest.approx(softmax(2, 0, -2)[0], abs=1e-6)


def test_two_classes_without_words_need_a_setting(tmp_path: Path) -> None:
    write_encoder(tmp_path, (-1.0, 1.0), (0.0, 0.0), {})
    with pytest.raises(UsageError) as raised:
        scored(tmp_path, (PASSAGE, WHOLE))
    assert "none or several of the model's labels mean support: label_0, label_1" in str(raised.value)
    assert "#supports=LABEL_1" in str(raised.value)
    for supports in ("1", "LABEL_1"):
        (found,) = scored(tmp_path, (PASSAGE, WHOLE), settings={"supports": supports})
        assert found[:2] == pytest.approx((softmax(-1, 1)[1], 0.0), abs=1e-6)


def test_a_long_passage_is_read_in_windows(tmp_path: Path) -> None:
    """Pairs of 16 tokens: 3 words and 3 special tokens leave 10 of the passage at a time."""
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI | {"max_position_embeddings": 16})
    away = ["rain"] * 40
    yes, _, no = softmax(2, 0, -2)
    found = scored(
        tmp_path,
        (" ".join([*away, *WHOLE.split()]), WHOLE),
        (" ".join([*WHOLE.split(), *away]), WHOLE),
        (" ".join(away), WHOLE),
        # No window holds more than one of the three words.
        (" ".join(["the", *away[:12], "ferry", *away[:12], "leaves"]), WHOLE),
    )
    third = softmax(4 / 3 - 2, 0, 2 - 4 / 3)[0]
    assert [score.supports for score in found] == [pytest.approx(value, abs=1e-6) for value in (yes, yes, no, third)]
    # Other windows hold nothing of it, so the likeliest contradiction is theirs.
    assert found[0].contradicts == pytest.approx(yes, abs=1e-6)


def test_words_at_the_border_of_a_window_stand_together_in_the_next(tmp_path: Path) -> None:
    """Windows of 10 share 2 tokens, so two neighbors are never torn apart."""
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI | {"max_position_embeddings": 15})
    for before in range(30):
        passage = " ".join(["rain"] * before + ["ferry", "leaves"] + ["rain"] * 30)
        (found,) = scored(tmp_path, (passage, "ferry leaves"))
        assert found.supports == pytest.approx(softmax(2, 0, -2)[0], abs=1e-6), before


def test_a_sentence_that_leaves_no_room_is_a_failure_of_its_item(tmp_path: Path) -> None:
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI | {"max_position_embeddings": 16})
    with pytest.raises(ContextLengthError, match="leaves 0 of the model's 16 tokens for the passage, expected more"):
        scored(tmp_path, (PASSAGE, " ".join(["rain"] * 100)))
    with pytest.raises(ContextLengthError, match="leaves 4 of the model's 16 tokens"):
        scored(tmp_path, (PASSAGE, " ".join(["rain"] * 9)))


def test_empty_and_strange_texts_have_a_score(tmp_path: Path) -> None:
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    found = scored(tmp_path, ("", WHOLE), ("\u0000 \u202e 🛥", "🛥 \u0000"))
    assert [score.supports for score in found] == [
        pytest.approx(softmax(-2, 0, 2)[0], abs=1e-6),
        pytest.approx(0, abs=1),
    ]
    with pytest.raises(RejectedError, match="cannot be read"):
        scored(tmp_path, ("\ud83d", WHOLE))


def test_scores_do_not_depend_on_threads_and_on_other_pairs(tmp_path: Path) -> None:
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    many = [(PASSAGE, WHOLE), (PASSAGE * 3, HALF), (PASSAGE, NONE)]
    together = scored(tmp_path, *many, options=ModelOptions(threads=4))
    assert together == [scored(tmp_path, pair, options=ModelOptions(threads=1))[0] for pair in many]


def test_limits_of_the_configuration(tmp_path: Path) -> None:
    def length(config: dict[str, Any], limits: dict[str, Any] | None = None) -> int:
        write_encoder(tmp_path, WEIGHTS, BIASES, NLI | config)
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(limits or {}), encoding="utf-8")
        return ModelFiles(tmp_path).length

    assert length({}) == 512
    assert length({"max_position_embeddings": 514, "model_type": "roberta"}) == 512
    assert length({"max_position_embeddings": 8192}, {"model_max_length": 1024}) == 1024
    assert length({"max_position_embeddings": 512}, {"model_max_length": 1e30}) == 512
    assert length({"max_position_embeddings": True}, {"model_max_length": "long"}) == 512


def test_the_digest_is_of_all_files_and_no_record_names_the_folder(tmp_path: Path) -> None:
    one = write_encoder(tmp_path / "one" / "nli", WEIGHTS, BIASES, NLI)
    same = write_encoder(tmp_path / "two" / "nli", WEIGHTS, BIASES, NLI, place="onnx/model.onnx")
    other = write_encoder(tmp_path / "three" / "nli", (5.0, 0.0, -4.0), BIASES, NLI)
    digests = [ModelFiles(folder).digest for folder in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
    (other / "model.onnx").write_bytes((one / "model.onnx").read_bytes())
    assert ModelFiles(other).digest == digests[0]
    for name in ("tokenizer.json", "config.json"):
        (other / name).write_bytes((one / name).read_bytes() + b"\n")
        assert ModelFiles(other).digest != digests[0]
        (other / name).write_bytes((one / name).read_bytes())
    (other / "tokenizer_config.json").write_text('{"model_max_length": 64}')
    assert ModelFiles(other).digest != digests[0]
    (other / "tokenizer_config.json").unlink()
    (other / "model.onnx_data").write_bytes(b"weights")
    assert ModelFiles(other).digest != digests[0]

    model = open_model(f"checker/onnx/{one}#supports=0@0.7")
    model.check([CRITERION])
    assert (model.name, model.price()) == (f"checker/onnx/nli~{digests[0][:8]}#supports=0@0.7", FREE)
    assert open_model(f"checker/onnx/{one}/model.onnx").name == f"checker/onnx/model~{digests[0][:8]}"
    assert open_model(f"checker/onnx/{same}#supports=0@0.7").name == model.name
    request: Any = type("Asked", (), {"labels": ("supported", "unsupported")})()
    recorded = model.parameters(request)
    assert (recorded["files"], recorded["supports"], recorded["threshold"]) == (digests[0], "0", 0.7)
    assert str(tmp_path) not in json.dumps(dict(recorded))


def test_two_models_in_folders_of_one_name_are_two_judges(tmp_path: Path) -> None:
    """Else the certificate of one would be the other's, and a path may hold an @ in the name of a folder."""
    folders = [
        write_encoder(tmp_path / place / "nli", weights, BIASES, NLI)
        for place, weights in (("m@v1", WEIGHTS), ("m@v2", tuple(-weight for weight in WEIGHTS)))
    ]
    names = [open_model(f"checker/onnx/{folder}").name for folder in folders]
    assert names == [f"checker/onnx/nli~{ModelFiles(folder).digest[:8]}" for folder in folders]
    assert names[0] != names[1]


def by_expression(pattern: str) -> bytes:
    """A tokenizer that splits by a regular expression."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return json.dumps(json.loads(tokenizer()) | {"pre_tokenizer": split}).encode()


@pytest.mark.parametrize(("name", "content", "message"), [
    ("model.onnx", b"no model", "model.onnx: cannot be loaded as ONNX: "),
    ("model.onnx", b"", "model.onnx: cannot be loaded as ONNX: "),
    ("model.onnx", None, "holds no model, expected model.onnx or onnx/model.onnx, or the path of a file .onnx"),
    ("tokenizer.json", None, "model.onnx: there is no tokenizer.json beside it or in the folder above"),
    ("tokenizer.json", b"{}", "its tokenizer.json cannot be used: "),
    ("tokenizer.json", by_expression("("), "model.onnx: its tokenizer.json cannot be used: Oniguruma error: end"),
    ("tokenizer.json", by_expression(r"(\w+\s?)+$b"), "model.onnx: its tokenizer.json cannot split a pair: Onig: "),
    ("config.json", None, "model.onnx: there is no config.json beside it"),
    ("config.json", b'{"id2label": {"0": "entailment", "2": "x"}}', "$.id2label: expected a label of its own"),
    ("config.json", b'{"id2label": {"0": "x", "1": "X"}}', "$.id2label: expected a label of its own"),
    ("config.json", b'{"id2label": {"0": "entailment", "1": "x"}}', "gives 3 classes, and its config.json 2"),
    ("config.json", b'{"id2label": {"0": "a", "1": "b", "2": "c"}}', "none or several of the model's labels mean"),
])  # fmt: skip
def test_broken_files_are_one_clear_message(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises((InputError, UsageError)) as raised:
        open_model(f"checker/onnx/{tmp_path}").check([CRITERION])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    value = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, [1, 3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("Identity", ["pixel_values"], ["y"])], "g", [value], [out])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(InputError) as raised:
        scored(tmp_path)
    assert 'has the inputs {"pixel_values": "tensor(float)"}, expected input_ids' in str(raised.value)


def test_a_model_of_tokens_gives_no_score_of_a_pair(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    value = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "n"])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "n", "n"])
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["x", "a"], ["y"]),
    ]
    axis = helper.make_tensor("a", TensorProto.INT64, [1], [1])
    made = helper.make_model(
        helper.make_graph(nodes, "g", [value], [out], [axis]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(UsageError, match="gives no finite logits for a pair"):
        scored(tmp_path)


def test_no_number_and_a_panic_of_the_tokenizer_are_failures_of_their_item(tmp_path: Path) -> None:
    """An empty sentence has no words, and 0 of 0 is none; an expression runs out of steps on a text."""
    write_encoder(tmp_path, WEIGHTS, BIASES, NLI)
    with pytest.raises(RejectedError, match="no finite logits"):
        scored(tmp_path, (PASSAGE, ""))
    (tmp_path / "tokenizer.json").write_bytes(by_expression("(z+)+$q"))
    with pytest.raises(RejectedError, match=r"its tokenizer\.json cannot split a pair: Onig: .* retry-limit-in-match"):
        scored(tmp_path, ("z" * 60 + " q", WHOLE))


def test_an_address_is_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "nli", WEIGHTS, BIASES, NLI)
    with pytest.raises(UsageError, match="--base-url is for judges that run elsewhere; checker/onnx/nli runs here"):
        open_model(f"checker/onnx/{folder}", ModelOptions(base_url="http://a:1")).check([CRITERION])


def test_without_the_package_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError) as raised:
        open_model(f"checker/onnx/{tmp_path}").check([CRITERION])
    name = f"checker/onnx/{tmp_path.name}"
    assert str(raised.value) == f"{name} needs onnxruntime, which is not installed: `pip install 'trec-judge[onnx]'`"


def test_a_path_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or folder, expected a cross-encoder in ONNX"):
        open_model(f"checker/onnx/{tmp_path}/absent").check([CRITERION])
    with pytest.raises(UsageError, match="checker/onnx/PATH, checker/reranker/MODEL or checker/reranker-onnx/PATH"):
        open_model("checker/onnx")


def test_the_tokenizer_of_the_tests_pads(tmp_path: Path) -> None:
    """So the other tests show that padding is taken off."""
    from tokenizers import Tokenizer

    assert len(Tokenizer.from_str(tokenizer()).encode("ferry").ids) == 32
