"""The checks on one list of passages, against the same rules written out entry by entry."""

from collections import Counter
from math import isfinite, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.text import MAX_ID
from judge.runs.check import CODES
from judge.runs.check.entries import MAX_PASSAGES, check_entries
from judge.runs.fields import LISTED, ProblemLog
from judge.runs.formats import FORMATS, rules_of

BASE = "$.turns[0].responses[0].passage_provenance"
WITH_PASSAGES = [name for name in FORMATS if rules_of(name).passages is not None and rules_of(name).ranked]
GOOD = "clueweb22-en0000-00-00000:0"
OTHER = "clueweb22-en0000-00-00001:1"


def found(format, entries, run_type="automatic"):
    """Severity, code, path and message of every problem, as they would be listed."""
    log = ProblemLog("run.json")

    def add(*problem):
        log.add_entry(BASE, *problem)

    ids, scores = [passage_id for passage_id, _ in entries], [score for _, score in entries]
    check_entries(rules_of(format), run_type, BASE, ids, scores, add)
    log.close_lists()
    return [(one.severity, one.code, one.path, one.message) for one in log.problems]


def expected(format, entries, run_type):
    """How often each code must be found, by the definition of each."""
    rules, counts, seen, previous = rules_of(format), Counter(), set(), None
    counts["too_many_passages"] = int(len(entries) > MAX_PASSAGES)
    scoreless = run_type in rules.scoreless and all(score is None for _, score in entries)
    for passage_id, score in entries:
        if not passage_id or not passage_id.isprintable() or len(passage_id) > MAX_ID:
            counts["unusable_passage_id"] += 1
        elif not rules.passage_id.fullmatch(passage_id):
            counts["malformed_passage_id"] += 1
        counts["duplicate_passage"] += passage_id in seen and passage_id != ""
        seen.add(passage_id)
        if score is None:
            counts["missing_score"] += not scoreless
        elif not isfinite(score):
            counts["score_not_finite"] += 1
        else:
            counts["equal_scores"] += score == previous
            counts["scores_not_decreasing"] += previous is not None and score > previous
            previous = score
    return +counts


def counted(problems):
    counts = Counter()
    for _, code, path, message in problems:
        counts[code] += int(message.split()[1]) if path.endswith("[*]") else 1
    return counts


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                GOOD, OTHER, "", "x", f"{GOOD}\n{OTHER}", f"{GOOD}\n", f"{GOOD} ", "clueweb22-en0000-00-00000:",
                "clueweb22-en٠٠٠٠-00-00000:0", "clueweb22-en0000-00-00000:" + "1" * MAX_ID, "MARCO_d-1",
                "KILT_0-0\nKILT_0-1", "{0}", "\ud800",
            ]
        )
        | st.builds("clueweb22-en0000-00-{:05}:{}".format, st.integers(0, 99999), st.integers(0, 30))
        | st.text(max_size=3),
        st.none() | st.floats() | st.sampled_from([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1.0, 2.0]),
    ),
    max_size=30,
)  # fmt: skip


@given(st.sampled_from(WITH_PASSAGES), ENTRIES, st.booleans(), st.sampled_from(["automatic", "only_response"]))
def test_any_list(format, entries, falling, run_type):
    if falling:
        entries.sort(key=lambda entry: (entry[1] is None, isnan(entry[1] or 0.0), -(entry[1] or 0.0)))
    assert counted(found(format, entries, run_type)) == expected(format, entries, run_type)


UNUSABLE = "{} is empty, too long, or has unprintable characters"
NO_NUMBER = "{} is not a number to rank by"
MESSAGES = [
    ([("", 1.0)], "unusable_passage_id", "[0].id", UNUSABLE.format("''")),
    ([("a\nb", 1.0)], "unusable_passage_id", "[0].id", UNUSABLE.format("'a\\nb'")),
    ([("{0}", 1.0)], "malformed_passage_id", "[0].id", "'{0}' does not have the form of the collection's ids"),
    ([(GOOD, 2.0), (GOOD, 1.0)], "duplicate_passage", "[1].id", f"'{GOOD}' is already in this list"),
    ([(GOOD, 1.0), (OTHER, float("-inf"))], "score_not_finite", "[1].score", NO_NUMBER.format("-inf")),
    ([(GOOD, float("nan"))], "score_not_finite", "[0].score", NO_NUMBER.format("nan")),
    ([(GOOD, 1.0), (OTHER, 1.0)], "equal_scores", "[1].score", "1.0 is also the score of the entry before"),
    ([(GOOD, 1.0), (OTHER, 1.5)], "scores_not_decreasing", "[1].score",
     "1.5 is more than 1.0 of the entry before; they are ranked by score"),
    ([(GOOD, 1.0), (OTHER, None)], "missing_score", "[1].score",
     "no score, so the order of the list is all there is"),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "code", "path", "message"), MESSAGES)
def test_messages(entries, code, path, message):
    assert found("ikat2024", entries) == [(CODES[code].severity, code, BASE + path, message)]


def test_references_are_named_by_id():
    [(_, code, path, _)] = found("ikat2025", [(GOOD, 1.0), (OTHER, 1.0)])
    assert (code, path) == ("equal_scores", f'{BASE}["{OTHER}"]')


def test_only_some_are_listed_and_the_rest_counted():
    n = LISTED + 3
    problems = found("ikat2024", [("x", float(-k)) for k in range(n)])
    assert [path for _, code, path, _ in problems if code == "malformed_passage_id"] == [
        *(f"{BASE}[{k}].id" for k in range(LISTED)),
        f"{BASE}[*]",
    ]
    assert counted(problems) == {"malformed_passage_id": n, "duplicate_passage": n - 1}


def test_more_passages_than_are_assessed():
    entries = [(f"clueweb22-en0000-00-00000:{k}", float(-k)) for k in range(MAX_PASSAGES + 1)]
    assert [(code, path) for _, code, path, _ in found("ikat2024", entries)] == [("too_many_passages", BASE)]
    assert found("ikat2024", entries[:-1]) == []
