"""A small pool and a bank, as records."""

from judge.extra.nuggets import Importance, LabelFailure, MatchedNugget, MatchLabel, Nugget, NuggetBank
from judge.extra.nuggets.labels import PairLabels
from judge.io.ids import topic_of
from judge.pool.records import Pool, PooledResponse, PooledRun
from tests.build import pooled


def response(number: int, turn_id: str, *run_ids: str, text: str = "") -> PooledResponse:
    """A response that these runs ranked first."""
    return pooled(f"R{number:05d}", turn_id, *run_ids, text=text or f"Text {number}.")


def pool(*responses: PooledResponse, turns: tuple[str, ...] = ()) -> Pool:
    """A pool of which each run had to answer these turns."""
    run_ids = sorted({entry.run_id for each in responses for entry in each.runs})
    runs = tuple(PooledRun(name, "automatic", None, "ikat2024", "0" * 64, True, turns) for name in run_ids)
    return Pool(responses, {}, (), runs)


def nugget(name: str, importance: Importance | None = "okay") -> Nugget:
    """A nugget whose id says what it is of, such as `1-1_2/1` or `1-1/1`."""
    scope = name.partition("/")[0]
    return Nugget(name, topic_of(scope), f"Fact {name}.", scope if "_" in scope else None, importance)


def bank(*nuggets: Nugget) -> NuggetBank:
    return NuggetBank("judge", nuggets)


def known(labels: dict[tuple[int, str], MatchLabel], **failures: str) -> PairLabels:
    """Labels by number of response and nugget; `R1__1_1_2__1="budget"` is no name, so failures go by `fail`."""
    return PairLabels({(f"R{number:05d}", name): label for (number, name), label in labels.items()}, {}, {}, 0, True)


def fail(labels: PairLabels, number: int, name: str, reason: str) -> PairLabels:
    """The same, with the failure of one pair."""
    failure = LabelFailure(
        turn_id=name.partition("/")[0],
        nugget_id=name,
        response_id=f"R{number:05d}",
        reason=reason,  # type: ignore[arg-type]
        detail="why",
        judge="server/m",
    )
    return labels._replace(failures={**labels.failures, (f"R{number:05d}", name): failure})


def row(number: int, name: str, label: MatchLabel, turn_id: str = "", **more: object) -> MatchedNugget:
    """A match by ann."""
    given = {"assessor": "ann", "response_id": f"R{number:05d}"} | more
    return MatchedNugget(turn_id or name.partition("/")[0], name, label, **given)  # type: ignore[arg-type]
