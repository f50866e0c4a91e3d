"""TREC runs of six columns: their order is trec_eval's, whatever the ranks say, and every bad line is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.runs.formats.trec import MAX_PASSAGES, looks_like_trec_run
from judge.runs.ranking import parse_trec_run
from tests.conftest import refused


def lines(*rows: tuple[str, str, object], run_id: str = "mine") -> str:
    return "".join(f"{turn} Q0 {item} 1 {score} {run_id}\n" for turn, item, score in rows)


def order(text: str) -> dict[str, list[str]]:
    return {turn: [item for item, _ in items] for turn, items in parse_trec_run(text, "a.run").ranking.items()}


def test_items_are_ordered_as_trec_eval_orders_them() -> None:
    close = [("1_1", "a", 0.123456789), ("1_1", "z", 0.123456788)]  # one number in single precision
    assert order(lines(("1_2", "low", -3), ("1_2", "high", 1e3), *close, ("1_1", "b", 2), ("1_1", "c", 2))) == {
        "1_1": ["c", "b", "z", "a"],
        "1_2": ["high", "low"],
    }


def test_an_item_that_is_named_again_counts_once_at_its_best() -> None:
    run = parse_trec_run(lines(("1_1", "a", 1), ("1_1", "b", 2), ("1_1", "a", 3), ("1_1", "b", 0)), "a.run")
    assert [item for item, _ in run.ranking["1_1"]] == ["a", "b"]
    assert run.repeated == 2


def test_the_first_thousand_items_of_a_turn_count() -> None:
    run = parse_trec_run(lines(*(("1_1", f"d{k}", k) for k in range(MAX_PASSAGES + 3))), "a.run")
    assert len(run.ranking["1_1"]) == MAX_PASSAGES
    assert (run.ranking["1_1"][0], run.cut) == ((f"d{MAX_PASSAGES + 2}", float(MAX_PASSAGES)), 3)


def test_every_bad_line_is_listed() -> None:
    text = (
        lines(("1_1", "a", 1))
        + "1_1 Q0 b 2 0.5\n\n1_1 Q0 c 3 1_000 mine\n1_1 Q0 d 4 nan mine\n1_1\tQ0\te\t5\t1e999\tmine\r\n"
        + lines(("1_1", "f", 1), run_id="yours")
    )
    assert [(problem.code, problem.path) for problem in refused(parse_trec_run, text, "a.run")] == [
        ("wrong_columns", "line 2"),
        ("wrong_score", "line 4"),
        ("wrong_score", "line 5"),
        ("wrong_score", "line 6"),
        ("second_run_id", "line 7"),
    ]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_lines_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        parse_trec_run(text, "a.run")


def test_a_space_that_separates_no_columns_stays_in_the_id() -> None:
    assert order("1_1 Q0 a\u00a0b 1 0.5 mine\n") == {"1_1": ["a\u00a0b"]}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"9-1_1 Q0 clueweb22-en0000-94-02275:0 1 0.5 sample_run\n", True),
        (b"\n9-1_1\tQ0\ta\t1\t-1e-3\tr\r\n9-1_1", True),
        (b"9-1_1 0 clueweb22-en0000-94-02275:0 2\n", False),
        (b"9-1_1 0 a 1 0.5 r", True),
        (b"9-1_1 Q0 a 1 r\n", True),
        (b"a b c d e f\n", False),
        (b'{"run_name": "a", "turns": []}', False),
        (b"", False),
    ],
)
def test_a_trec_run_is_known_by_its_first_line(head: bytes, expected: bool) -> None:
    assert looks_like_trec_run(head) is expected


SCORES = st.sampled_from([0.0, 0.5, 0.123456789, 0.123456788, 1.0, -1.0, 1e30, 16777217.0, 16777216.0])


@given(
    st.lists(
        st.tuples(st.sampled_from(["1_1", "1_2"]), st.sampled_from("abcdefgh"), SCORES),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    st.randoms(use_true_random=False),
)
def test_measures_of_the_order_are_those_of_the_scores_as_they_are(rows, random) -> None:
    import pytrec_eval

    qrels = {turn: {"a": 1, "c": 2, "d": 0, "h": 3} for turn in ("1_1", "1_2")}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg_cut_3", "recip_rank", "P_2"})
    raw: dict[str, dict[str, float]] = {}
    for turn, item, score in rows:
        raw.setdefault(turn, {})[item] = score
    random.shuffle(rows)  # type: ignore[attr-defined]
    ranking = parse_trec_run(lines(*rows), "a.run").ranking
    assert evaluator.evaluate({turn: dict(items) for turn, items in ranking.items()}) == evaluator.evaluate(raw)
