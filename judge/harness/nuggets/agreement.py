"""Matches of a judge beside people's: what `judge nuggets agree` does, for use from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath
from judge.harness.nuggets.scoring import read_labels_of, read_pool_with_runs
from judge.nuggets.agreement import MatchAgreement, match_agreement
from judge.nuggets.forms import read_bank
from judge.text.ids import Cluster, check_cluster, cluster_of

SEED = 2023


class NuggetAgreePlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets agree` can be told; paths may be strings, and one may stand where several may."""

    pool: StrPath
    """The output folder with the pool."""
    bank: StrPath
    """The bank of nuggets."""
    gold: Sequence[StrPath]
    """People's matches."""
    matches: Sequence[StrPath]
    """Files or folders of a judge's matches; of several judges the majority counts."""
    renamed: Mapping[str, str] = {}
    """Name of a run in the matches to its id in the pool."""
    cluster: Cluster = "topic"
    """What the intervals are over."""
    seed: int = SEED
    """Of the resamples."""


def compare_matches(plan: NuggetAgreePlan) -> MatchAgreement:
    """Compare a judge's matches with people's.

    Raises:
        UsageError: The gold is of judges, the matches are of people, or they share no pair.
        InputError: An input is bad; every problem is listed.
    """
    check_cluster(plan.cluster)
    bank, pool = read_bank(plan.bank), read_pool_with_runs(Path(plan.pool))
    people = read_labels_of(plan.gold, bank, pool, plan.renamed)
    judge = read_labels_of(plan.matches, bank, pool, plan.renamed)
    if not people.people or judge.people:
        raise UsageError("expected people's matches as --gold, and a judge's as --matches")
    topics = {response.response_id: response.topic_id for response in pool.responses}
    clusters = {key: cluster_of(topics[key[0]], plan.cluster) for key in people.labels}
    if not people.labels.keys() & judge.labels.keys():
        raise UsageError("people and the judge matched no pair in common")
    return match_agreement(people, judge, clusters, plan.seed)
