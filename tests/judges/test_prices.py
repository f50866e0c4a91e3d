"""Prices: of a call, as text, and files of them."""

import json
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.judges.model import Price
from judge.judges.prices import read_prices

TOML = """
# US dollars per million tokens
["openai/gpt-4.1-mini"]
in = 0.40
cached = 0.10
out = 1.60

["server/a"]
in = 1
out = 2

["*"]
in = 0
out = 0
"""
PRICES = {"openai/gpt-4.1-mini": Price(0.4e-6, 1.6e-6, 0.1e-6), "server/a": Price(1e-6, 2e-6), "*": Price(0.0, 0.0)}


def file(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "prices"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_cached_token_has_a_price_of_its_own() -> None:
    """Of 1,000 tokens 600 are cached: 400 × $2 + 600 × $0.5 + 50 × $8 per million."""
    assert Price(2e-6, 8e-6, 0.5e-6).cost(1000, 600, 50) == pytest.approx(0.0008 + 0.0003 + 0.0004)
    assert Price(2e-6, 8e-6).cost(1000, 600, 50) == pytest.approx(0.002 + 0.0004)
    assert Price(2e-6, 8e-6, 0.0).cost(1000, 600, 50) == pytest.approx(0.0008 + 0.0004)


@pytest.mark.parametrize(
    ("price", "text"), [(Price(0.4e-6, 1.6e-6), "0.4/1.6"), (Price(0.4e-6, 1.6e-6, 0.1e-6), "0.4/0.1/1.6")]
)
def test_a_price_as_text_is_what_the_option_takes(price: Price, text: str) -> None:
    assert str(price) == text


def close(found: dict[str, Price]) -> bool:
    """Whether these are PRICES, in the last digits or almost."""
    return {model: str(price) for model, price in found.items()} == {model: str(PRICES[model]) for model in PRICES}


def test_prices_are_read_from_toml_and_from_json(tmp_path: Path) -> None:
    assert close(read_prices(file(tmp_path, TOML)))
    as_json = {
        "openai/gpt-4.1-mini": {"in": 0.4, "cached": 0.1, "out": 1.6},
        "server/a": {"in": 1, "out": 2},
        "*": {"in": 0, "out": 0},
    }
    for content in (json.dumps(as_json), "\ufeff\n" + json.dumps(as_json)):
        assert close(read_prices(file(tmp_path, content)))


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    content = {
        "a": {"in": 1},
        "b": {"in": -1, "out": "2", "cached": True},
        "c": 3,
        "d": {"in": 1, "out": 2, "cache": 0.5},
        "e": {"in": 1e300, "out": 1},
        "good": {"in": 1, "out": 2},
    }
    with pytest.raises(InputError, match="7 problems, so no price of this file is used") as refused:
        read_prices(file(tmp_path, json.dumps(content)))
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert list(told) == ['$["a"].out', '$["b"].in', '$["b"].out', '$["b"].cached', '$["c"]', '$["d"]["cache"]',
                          '$["e"].in']  # fmt: skip
    assert told['$["a"].out'] == "is missing"
    assert "-1 is no number of dollars: expected zero or more" in told['$["b"].in']
    assert "expected a table such as {in = 0.40, cached = 0.10, out = 1.60}" in told['$["c"]']
    assert told['$["d"]["cache"]'] == "no key of a price (in, cached, out); did you mean cached?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no price"),
        ("{}", "holds no price"),
        ("[openai/gpt-x]\nin = 1\n", "not TOML"),
        ('{"a": {"in": 1, "out": 2},', "not JSON"),
        ('{"a": {"in": 1, "out": 2}, "a": {"in": 3, "out": 4}}', "not JSON: 'a' occurs twice"),
        ('{"a": {"in": 1, "out": 2, "out": 4}}', "not JSON: 'out' occurs twice"),
        ('{"a": {"in": NaN, "out": 1}}', "1 problem"),
        (b"\xff\xfe", "not TOML"),
        ("a" * 70_000, "at most 65,536"),
        ('{"a":' * 5000, "not JSON"),
    ],
)
def test_what_is_no_file_of_prices_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_prices(file(tmp_path, content))


def test_a_name_with_a_dot_and_no_quotation_marks_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_prices(file(tmp_path, "[gpt-4.1-mini]\nin = 1\nout = 2\n"))
    assert any("stands in quotation marks" in problem.message for problem in refused.value.problems)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: cannot be read"):
        read_prices(tmp_path / "none.toml")
