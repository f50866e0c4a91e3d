import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.records import Judgment, SentenceSupport
from judge.io.table import records_tsv
from judge.pool.records import PooledResponse
from judge.results.details import CITATIONS
from judge.results.tables import result_tables
from tests.results.test_leaderboard import judgment, pool, pooled

CRITERION = find_criterion("groundedness/sentences")
NONE = SentenceSupport((), 0.1)
NO_CLAIM = SentenceSupport((), None)


def cited(response_id: str, turn_id: str, *passages: str) -> PooledResponse:
    return msgspec.structs.replace(pooled(response_id, turn_id, ("x", 1)), passages=passages)


def checked(response: PooledResponse, *support: SentenceSupport) -> Judgment:
    labels = tuple("supported" if one.passages else "no_claim" if one is NO_CLAIM else "unsupported" for one in support)
    made = judgment(response, 1, variant="sentences")
    return msgspec.structs.replace(made, sentences=labels, support=support)


def test_precision_is_over_passages_and_recall_over_sentences() -> None:
    a, b = cited("R0", "1_1", "p", "q", "r"), cited("R1", "2_1", "p")
    results = [
        # Passages p and q of three support something; two of four claims are supported.
        checked(a, SentenceSupport(("p",), 0.9), SentenceSupport(("p", "q"), 0.8), NONE, NO_CLAIM, NONE),
        # Nothing is supported, by one passage.
        checked(b, NONE),
    ]
    rows = result_tables(pool(a, b), results, [CRITERION]).citations
    assert [(row.run_id, row.part, row.mean.value, row.mean.n) for row in rows] == [
        ("x", "precision", (2 / 3 + 0) / 2, 2),
        ("x", "recall", (2 / 4 + 0) / 2, 2),
    ]
    head, first, _ = records_tsv(CITATIONS, rows, 4).splitlines()
    assert head.split() == "run_id criterion measure responses mean low high topics note".split()
    assert first.split("\t")[:5] == ["x", "groundedness", "precision", "2", "0.3333"]


def test_a_judge_that_names_no_passage_has_no_rows() -> None:
    a = cited("R0", "1_1", "p")
    labeled = msgspec.structs.replace(judgment(a, 3, variant="sentences"), sentences=("supported",))
    assert not result_tables(pool(a), [labeled], [CRITERION]).citations
