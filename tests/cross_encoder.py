"""A small cross-encoder in ONNX whose logits can be worked out by hand.

It compares words: each logit is a line over the share of the sentence's tokens that the passage holds. A word counts as
often as both hold it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.mock import used

WORDS = ("[UNK]", "[CLS]", "[SEP]", "the", "ferry", "leaves", "at", "noon", "dogs", "ride", "free", "rain")


def tokenizer() -> str:
    """Words between white space; a pair is `[CLS] passage [SEP] sentence [SEP]`."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in WORDS[:3]])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    # As files on hubs often have it.
    made.enable_padding(length=32)
    return str(made.to_str())


def model(weights: Sequence[float], biases: Sequence[float], kind: str = "int64") -> Any:
    """Logits weights · share + biases, of the inputs that BERT has."""
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper

    number = {"int64": TensorProto.INT64, "int32": TensorProto.INT32}[kind]
    constants = {
        "rows": np.array([2], np.int64),
        "columns": np.array([1], np.int64),
        "all": np.array([1, 2], np.int64),
        "along": np.array([1], np.int64),
        "one": np.array(1.0, np.float32),
        "weights": np.array([weights], np.float32),
        "biases": np.array(biases, np.float32),
    }
    nodes = [
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["seen"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["seen", "second"], ["first"]),
        # same[i, j]: token i of the passage is token j of the sentence.
        helper.make_node("Unsqueeze", ["input_ids", "rows"], ["down"]),
        helper.make_node("Unsqueeze", ["input_ids", "columns"], ["across"]),
        helper.make_node("Equal", ["down", "across"], ["equal"]),
        helper.make_node("Cast", ["equal"], ["same"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["first", "rows"], ["from"]),
        helper.make_node("Unsqueeze", ["second", "columns"], ["to"]),
        helper.make_node("Mul", ["same", "from"], ["part"]),
        helper.make_node("Mul", ["part", "to"], ["pairs"]),
        # The separators of both parts are one such pair, and one token of the sentence.
        helper.make_node("ReduceSum", ["pairs", "all"], ["matches"], keepdims=0),
        helper.make_node("Sub", ["matches", "one"], ["matched"]),
        helper.make_node("ReduceSum", ["second", "along"], ["length"], keepdims=0),
        helper.make_node("Sub", ["length", "one"], ["words"]),
        helper.make_node("Div", ["matched", "words"], ["share"]),
        helper.make_node("Unsqueeze", ["share", "along"], ["column"]),
        helper.make_node("MatMul", ["column", "weights"], ["sloped"]),
        helper.make_node("Add", ["sloped", "biases"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "share",
        [
            helper.make_tensor_value_info(name, number, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(biases)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(made)
    return made


def write_encoder(
    folder: Path,
    weights: Sequence[float],
    biases: Sequence[float],
    config: Mapping[str, Any],
    kind: str = "int64",
    place: str = "model.onnx",
) -> Path:
    """A folder with the model and its files."""
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(model(weights, biases, kind).SerializeToString())
    (folder / "tokenizer.json").write_text(tokenizer(), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def scored_by(scorer: Any, pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """What a checker makes of pairs of texts."""
    scorer.check([])
    return list(used(scorer, lambda scorer: scorer.score(pairs)))
