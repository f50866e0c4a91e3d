"""Members' results become a jury's."""

import numpy as np
import pytest
from msgspec.structs import replace

from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.crowd.jury import JuryNotes, Member, Verdicts, cautions, consensus, juries, jury_criterion, member_names
from judge.errors import UsageError
from judge.judges.records import AnswerForm
from judge.records import Criterion, FailureReason
from tests.calibration_world import failure, judgment

GRADED = find_criterion("relevance/graded")
IKAT = find_criterion("relevance/ikat")
"""The same scale, with an `unable` level."""

Said = int | str
"""A grade, `unable`, or the reason of a failure."""


def jury(size: int, prompt: Criterion = IKAT) -> tuple[Member, ...]:
    return tuple(Member(f"server/{'abcdefgh'[i]}", prompt.prompt_id, prompt.digest, 0) for i in range(size))


def result(member: Member, said: Said, item: str = "1-1_1", form: AnswerForm = "json") -> Judgment | Failure:
    about = {"request_digest": f"{member.judge}:{item}:{member.sample}", "sample": member.sample}
    if isinstance(said, str) and said != "unable":
        criterion, _, variant = member.prompt.partition("/")
        about |= {"criterion": criterion, "variant": variant, "criterion_digest": member.prompt_digest}
        return failure(item, f"R{item}", said, member.judge, **about)
    grade = -1 if said == "unable" else int(said)
    about |= {"unable": said == "unable", "rationale": "because", "form": form, "digest": member.prompt_digest}
    return judgment(item, f"R{item}", grade, member.judge, member.prompt, **about)


def decide(rows: list[list[Said]], aggregator: str = "majority", prompt: Criterion = IKAT) -> Verdicts:
    """One turn a row, one member a column."""
    members = jury(len(rows[0]), prompt)
    results = [
        result(member, row[i], f"1-1_{number}")
        for i, member in enumerate(members)
        for number, row in enumerate(rows, start=1)
    ]
    return consensus(jury_criterion([prompt], members), members, results, aggregator)


def only(said: list[Said], aggregator: str = "majority") -> Judgment | Failure:
    (one,) = decide([said], aggregator).results
    return one


@pytest.mark.parametrize(
    ("said", "grade", "expected"),
    [
        ([3, 3, 0], 3, 2.0), ([0, 1], 1, 0.5), ([0, 0, 3, 3], 2, 1.5), ([2, "unreadable"], 2, 2.0),
        ([2, 3, "unreadable", "unable"], 3, 2.5), ([1, 1, "unable"], 1, 1.0), (["unable", "unable", 3], -1, None),
        (["unable", "refused"], -1, None), (["unable", "unable", 1, "refused"], -1, None),
    ],
)  # fmt: skip
def test_the_majority_decides_and_a_tie_goes_to_the_mean_half_up(said, grade: int, expected: float | None) -> None:
    one = only(said)
    assert isinstance(one, Judgment)
    assert (one.grade, one.expected, one.unable) == (grade, expected, grade == -1)
    assert not one.unable or one.probabilities is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (["unreadable", "refused", "refused"], "refused"),
        ([3, "truncated", "unreadable"], "truncated"),
        ([3, "unable", "budget", "budget", "refused"], "budget"),
        (["unable", "refused", "unreadable"], "refused"),
        ([2, 2, "unable", "unable", "provider_error"], "provider_error"),
        (["no_passages", "no_passages"], "no_passages"),
    ],
)
def test_without_half_of_the_members_there_is_a_failure_and_no_grade(said: list[Said], reason: FailureReason) -> None:
    one = only(said)
    assert isinstance(one, Failure)
    assert one.reason == reason
    assert f"{sum(isinstance(word, int) for word in said)} of {len(said)} members gave a grade" in one.detail


def test_an_even_jury_of_pairs_prefers_no_side_to_a_tie() -> None:
    # The first wins by one member and is tied by the other; then the second: a mean of 3/2, and of 1/2.
    said = decide([[2, 1], [0, 1], [2, 0], [2, 2]], prompt=find_criterion("preference/graded")).results
    assert [one.grade for one in said if isinstance(one, Judgment)] == [1, 1, 1, 2]


def test_a_judgment_says_who_gave_what_and_is_the_jurys_own() -> None:
    one = only([3, "unable", 2, "refused"])
    assert isinstance(one, Judgment)
    assert one.judge == "jury/majority"
    assert one.model is None
    assert one.rationale == "server/a: 3; server/b: unable; server/c: 2; server/d: refused"
    assert one.probabilities == {"0": 0.0, "1": 0.0, "2": 0.5, "3": 0.5}
    assert (one.variant, one.sample, one.form) == ("ikat", 0, "json")
    assert one.criterion_digest not in {IKAT.digest, ""}
    assert one.request_digest != only([3, "unable", 2, "unreadable", "refused"]).request_digest


def test_the_digest_is_of_the_members() -> None:
    other = tuple(replace(one, sample=1) for one in jury(2))
    three, again, two, later = (jury_criterion([IKAT], of).digest for of in (jury(3), jury(3), jury(2), other))
    assert three == again
    assert len({three, two, later}) == 3


def test_prompts_on_other_scales_are_refused_and_an_unable_level_is_none() -> None:
    both = jury_criterion([GRADED, IKAT], jury(2))
    assert both.prompt_id == "relevance/graded"
    assert both.scale.unable == IKAT.scale.unable
    groundedness = [find_criterion("groundedness/graded"), find_criterion("groundedness/yes_no")]
    with pytest.raises(UsageError, match="groundedness/graded and groundedness/yes_no: members of one jury"):
        jury_criterion(groundedness, jury(2))


@pytest.mark.parametrize("aggregator", juries())
def test_every_jury_can_decide(aggregator: str) -> None:
    rows: list[list[Said]] = [[0, 0, 1], [3, 3, 3], ["refused", "refused", "refused"], [2, 2, 2]]
    found = decide(rows * 5, aggregator)
    words = [one.grade if isinstance(one, Judgment) else one.reason for one in found.results]
    assert words == [0, 3, "refused", 2] * 5
    assert {one.judge for one in found.results} == {f"jury/{aggregator}"}
    assert [one.turn_id for one in found.results] == [f"1-1_{i}" for i in range(1, 21)]


def test_a_jury_of_which_nobody_says_anything() -> None:
    found = decide([["refused", "unreadable"]], "median")
    assert isinstance(found.results[0], Failure)
    assert (found.rule, found.ties) == ("no member gave a grade", 0)
    assert (found.alpha.value, found.alpha.n) == (None, 0)


def test_alpha_and_ties_are_of_the_members_grades() -> None:
    # Two members who always differ by a grade on a scale of which they use four.
    rows: list[list[Said]] = [[grade, grade] for grade in (0, 1, 2, 3)]
    assert decide(rows).alpha.value == pytest.approx(1.0)
    split = decide([*rows, [0, 3], [3, "unable"]])
    assert split.ties == 1
    assert split.alpha.n == 5
    assert split.alpha.value is not None
    assert split.alpha.value < 1


def test_names_tell_members_apart_and_no_more() -> None:
    two = jury(2)
    assert member_names(two) == ["server/a", "server/b"]
    assert member_names((two[0], replace(two[0], sample=1))) == ["server/a #1", "server/a #2"]
    prompts = (two[0], replace(two[0], prompt="relevance/graded", prompt_digest=GRADED.digest))
    assert member_names(prompts) == ["server/a relevance/ikat", "server/a relevance/graded"]


def said(aggregator: str, members: tuple[Member, ...], temperature: float = 1.0, **families: str) -> str:
    named = {name.replace("_", "/"): family for name, family in families.items()}
    return "\n".join(cautions(aggregator, {"relevance": members}, named, ["ape", "bee"], temperature))


def test_what_to_know_before_believing_a_jury() -> None:
    assert said("majority", jury(3)) == ""
    assert "an even number of members (4)" in said("majority", jury(4))
    assert "of 2 members nothing tells" in said("weighted-majority", jury(2))
    again = (*jury(2), replace(jury(1)[0], sample=1))
    assert "2 of 3 members are server/a" in said("majority", again)
    assert "at temperature 0" in said("majority", again, 0.0)
    assert "at temperature 0" not in said("majority", jury(3), 0.0)
    kin = said("majority", jury(3), server_a="llama", server_c="llama", ape="llama", bee="gpt")
    assert kin.splitlines() == [
        "server/a and server/c are of one family, llama: they are not independent",
        "self-judging: ape and server/a and server/c are of one family, llama",
    ]


def test_a_jury_says_how_many_grades_leave_most_of_its_members() -> None:
    # Three of seven agree with one another throughout, and four say anything, once all the same.
    rng = np.random.default_rng(2)
    rows: list[list[Said]] = [[i % 4] * 3 + rng.integers(0, 4, 4).tolist() for i in range(32)]
    rows.append([0, 0, 0, 3, 3, 3, 3])
    for aggregator, unlike in (("dawid-skene", 1), ("weighted-majority", 1), ("majority", 0)):
        found = decide(rows, aggregator)
        assert found.unlike == unlike
        notes = JuryNotes({"relevance": found}, {"relevance": jury(7)}, (), ())
        assert notes.agreement[0].count("; 1 grade is none that most members gave; grade: ") == unlike
