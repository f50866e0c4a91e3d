"""Small records of a calibration for the tests of its reports."""

from typing import Any

from judge.calibrate import findings
from judge.records import Estimate
from judge.results.rows import Score
from judge.stats.separation import Place
from judge.stats.tables import MarginalTest

NOTHING = findings.Calibration((), (), (), (), {}, ())


def estimate(value: float | None, half: float = 0.1, n: int = 150, topics: int = 25) -> Estimate:
    """A value with a symmetric interval; a `half` of 0 is none."""
    if value is None:
        return Estimate(None, None, None, n, topics, "fewer than 5 topics")
    if not half:
        return Estimate(value, None, None, n, topics, "fewer than 5 topics")
    return Estimate(value, round(value - half, 6), round(value + half, 6), n, topics)


def agreement(judge: str = "local/qwen", wkappa: float | None = 0.61, **changed: Any) -> findings.AgreementRow:
    """A judge on test grades; `changed` replaces fields."""
    fields: dict[str, Any] = {
        "prompt": "groundedness/graded", "criterion": "groundedness", "split": "test", "reference": "consensus of 3",
        "baseline": False, "n": 150, "only_a": 3, "only_b": 0, "topics": 25,
        "without_grade": {"unable": 1, "unreadable": 2},
        "statistics": {
            "percent": estimate(0.7, 0.05), "kappa": estimate(wkappa and wkappa - 0.1), "wkappa": estimate(wkappa),
            "alpha_ordinal": estimate(wkappa), "ac2": estimate(0.8), "bias": estimate(0.31, 0.2),
        },
        "item": {"wkappa": estimate(wkappa, 0.05)},
        "design_effect": {"wkappa": 3.2},
        "worst_case": {"percent": 0.68, "kappa": 0.45, "wkappa": 0.5, "alpha_ordinal": None},
        "confusion": ((30, 15, 5), (10, 30, 10), (0, 5, 45)),
        "grades": (0, 1, 2),
        "marginals": (MarginalTest("bowker", 7.6, 3, 0.055), MarginalTest("stuart_maxwell", 6.9, 2, 0.0317)),
        "ceiling": estimate(0.68, 0.07),
        "test_retest": None,
        "primary": "wkappa",
    }  # fmt: skip
    return findings.AgreementRow(judge=judge, **{**fields, **changed})


def constant(**changed: Any) -> findings.AgreementRow:
    """The constant predictor."""
    row = {"prompt": None, "baseline": True, "item": {}, "design_effect": {}, "marginals": (), "without_grade": {}}
    return agreement("constant", 0.0, **{**row, **changed})


def corrected(run_id: str, raw: float, value: float | None, rank: int | None, **changed: Any) -> Score:
    """A run corrected by gold; `changed` replaces the facts in `facts`."""
    found = estimate(value, 0.15, 30, 12)
    facts: dict[str, Any] = {
        "criterion": "groundedness", "family": None, "n": 120, "missing": 0, "before": estimate(raw, 0.1, 120, 40),
        "raw_bound": raw, "gold": 30, "corrected": found, "bound": value, "bound_low": found.low,
        "bound_high": found.high, "method": "ppi++", "weight": 0.8, "effective_n": 55.0, "bias": 0.2,
        "rank_low": 1, "rank_high": 3, "tie": "a", "flags": (),
    } | changed  # fmt: skip
    place = Place(rank=rank, low=facts["rank_low"], high=facts["rank_high"], letters=facts["tie"]) if rank else None
    more = {
        name: facts[name] for name in ("family", "bound_low", "bound_high", "method", "weight", "effective_n", "bias")
    }
    counts = {"n": facts["n"], "turns": facts["n"] + facts["missing"]}
    criterion = facts["criterion"]
    return Score(
        run_id=run_id,
        criterion=criterion,
        mean=facts["corrected"],
        bound=facts["bound"],
        place=place,
        counts={"gold": facts["gold"]},
        flags=facts["flags"],
        more={name: fact for name, fact in more.items() if fact is not None},
        raw=Score(run_id=run_id, criterion=criterion, mean=facts["before"], bound=facts["raw_bound"], counts=counts),
    )


def calibration(judge: str = "local/qwen", criterion: str = "groundedness", others: int = 1) -> findings.Calibration:
    """Everything about one criterion: the chosen judge, so many others, the constant predictor."""
    prompt = f"{criterion}/graded"
    rows = [agreement(judge, criterion=criterion, prompt=prompt)]
    rows += [
        agreement(f"other/{place}", 0.6 - 0.01 * place, criterion=criterion, prompt=prompt) for place in range(others)
    ]
    rows.append(constant(criterion=criterion))
    chosen, names = rows[0].name, tuple(row.name for row in rows[1:-1])

    def about(split: str = "dev", facts: object = {}, statistics: object = {}) -> findings.FindingRow:
        return findings.FindingRow(judge=judge, prompt=prompt, criterion=criterion, split=split, facts=facts,
                                   statistics=statistics)  # type: ignore[arg-type]  # fmt: skip

    return findings.Calibration(
        agreement=tuple(rows),
        comparisons=tuple(
            findings.ComparisonRow(
                name, chosen, estimate(-0.02, 0.05), 0.4, 0.7, 1.0, False, criterion=criterion, split="test",
                statistic="wkappa"
            )
            for name in names
        ),
        selections=(
            findings.Choice(
                criterion, "wkappa", (chosen, *names), chosen, "dev", estimate(0.66), estimate(0.61), 0.6, None, 0.05,
                names, 2
            ),
        ),
        verdicts=(
            findings.TrustVerdict(
                criterion, chosen, prompt, "test", "TRUSTED", ("wkappa.lo >= 0.4",), ("wkappa.lo is 0.51",),
                estimate(0.61), "wkappa"
            ),
        ),
        findings={
            "calibration_map": (about(facts={"grade": 0, "n": 40, "mean": 0.25, "shrunken": 0.26, "weight": 2.0}),),
            "slopes": (about(facts={"what": "log2_words"}, statistics={"estimate": estimate(0.08, 0.06)}),),
            "families": (
                about(
                    facts={"what": "family", "family": "qwen", "is_self": True, "runs": 4, "mean": 0.5},
                    statistics={"estimate": estimate(0.3, 0.2)},
                ),
            ),
            "systems": (
                about(
                    "test", {"runs": 12, "half_human": 0.7, "half_judge": 0.6, "halves": None},
                    {"tau_b": estimate(0.8), "rbo": estimate(None)},
                ),
            ),
            "alternative": tuple(
                about(facts={"epsilon": 0.15, "omega": 0.5, "rho": 0.62, "assessor": assessor, "n": n, "p": p,
                             "rejected": p < 0.05})
                for assessor, n, p in (("ann", 50, 0.01), ("bob", 49, 0.2))
            ),
        },
        warnings=("The gold was post-edited from an LLM's grades.",),
    )  # fmt: skip
