import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.records import Judgment
from judge.io.table import records_tsv
from judge.pool.records import PooledResponse
from judge.results.details import SENTENCES, sentences_markdown
from judge.results.leaderboard import leaderboard, leaderboard_markdown
from judge.results.qrels import sidecar
from judge.results.tables import result_tables
from judge.stats.means import mean_interval
from tests.results.test_leaderboard import judgment, pool, pooled

CRITERION = find_criterion("groundedness/sentences")
COUNTS = ("responses", "with_label", "sentences")
SUPPORTED, CONTRADICTED, UNSUPPORTED, NO_CLAIM = ("supported", "contradicted", "unsupported", "no_claim")


def labeled(response: PooledResponse, grade: int, *labels: str, unable: bool = False) -> Judgment:
    made = judgment(response, grade, variant="sentences", unable=unable)
    return msgspec.structs.replace(made, sentences=labels)


A = pooled("R0", "1_1", ("x", 1), ("y", 1))
B = pooled("R1", "2_1", ("x", 1))
C = pooled("R2", "2_1", ("y", 1))
D = pooled("R3", "3_1", ("y", 1))
RESULTS = [
    labeled(A, 1, SUPPORTED, CONTRADICTED, NO_CLAIM),
    labeled(B, 1, SUPPORTED, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED),
    labeled(C, 0, CONTRADICTED),
    labeled(D, -1, NO_CLAIM, unable=True),
]
POOL = pool(A, B, C, D)


def test_labels_are_counted_for_each_run_and_contradicted_stands_apart() -> None:
    rows = result_tables(POOL, RESULTS, [CRITERION]).sentences
    found = {(row.run_id, row.part): (*(row.counts[name] for name in COUNTS), row.mean.value) for row in rows}
    assert found == {
        # Of A one of two claims is supported, of B one of four; "no_claim" is in no share.
        ("x", SUPPORTED): (2, 2, 2, (1 / 2 + 1 / 4) / 2),
        ("x", CONTRADICTED): (2, 1, 1, (1 / 2 + 0) / 2),
        ("x", UNSUPPORTED): (2, 1, 3, (0 + 3 / 4) / 2),
        ("x", NO_CLAIM): (2, 1, 1, None),
        # D claims nothing: it has no grade, and no share.
        ("y", SUPPORTED): (2, 1, 1, (1 / 2 + 0) / 2),
        ("y", CONTRADICTED): (2, 2, 2, (1 / 2 + 1) / 2),
        ("y", UNSUPPORTED): (2, 0, 0, 0.0),
        ("y", NO_CLAIM): (2, 1, 1, None),
    }


def test_shares_have_intervals_over_topics() -> None:
    """Twelve topics with one response each, every other one contradicted in half of its two claims."""
    responses = [pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(12)]
    results = [labeled(one, 1, SUPPORTED, CONTRADICTED if i % 2 else SUPPORTED) for i, one in enumerate(responses)]
    rows = result_tables(pool(*responses), results, [CRITERION]).sentences
    (share,) = [row.mean for row in rows if row.part == CONTRADICTED]
    assert share == mean_interval([0, 1 / 2] * 6, [f"{i}" for i in range(12)], bounds=(0, 1))
    assert share.low is not None and share.value is not None and share.high is not None
    assert 0 < share.low < share.value == 1 / 4 < share.high < 1


def test_the_table_says_why_a_number_is_missing() -> None:
    head, *lines = records_tsv(SENTENCES, result_tables(POOL, RESULTS, [CRITERION]).sentences, 4).splitlines()
    assert head.split() == "run_id criterion label responses with_label sentences share low high topics note".split()
    assert lines[1].split("\t") == [
        *("x", "groundedness", CONTRADICTED, "2", "1", "1", "0.2500", "", "", "2", "fewer than 3 topics")
    ]
    assert lines[3].split("\t") == [
        *("x", "groundedness", NO_CLAIM, "2", "1", "1", "", "", "", "", "does not count towards the grade")
    ]


def test_people_read_it_under_the_leaderboard() -> None:
    rows = result_tables(POOL, RESULTS, [CRITERION]).sentences
    text = leaderboard_markdown(leaderboard(POOL, RESULTS, [CRITERION]), "banner", [CRITERION], sentences=rows)
    assert sentences_markdown(rows) in text
    assert "| run | responses | supported | contradicted | unsupported |" in text
    assert "| y | 2 | 0.25 (in 1) | 0.75 (in 2) | 0.00 (in 0) |" in text


def test_the_sidecar_counts_labels() -> None:
    assert sidecar(CRITERION, RESULTS, "")["sentences"] == {
        SUPPORTED: {"sentences": 2, "responses": 2},
        CONTRADICTED: {"sentences": 2, "responses": 2},
        UNSUPPORTED: {"sentences": 3, "responses": 1},
        NO_CLAIM: {"sentences": 2, "responses": 2},
    }


def test_a_prompt_for_one_grade_has_no_rows() -> None:
    graded = find_criterion("groundedness/graded")
    assert not result_tables(POOL, [judgment(A, 3)], [graded]).sentences
    assert "sentences" not in sidecar(graded, [judgment(A, 3)], "")
    assert sentences_markdown(()) == ""
