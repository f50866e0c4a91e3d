"""What a simulation found, the band that it must stay in, and how both are printed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate

GRADES = (0, 1, 2, 3)
CUTS = (-0.7, 0.2, 1.0)
TOP = (-1.9, -1.4, -1.02)
"""Cuts that give 85 % of the items the top grade."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """A figure that a simulation obtained, with the band that it must stay in."""

    id: str
    setting: str
    obtained: float
    error: float
    """Monte Carlo standard error: the replicates' standard deviation over √replicates; for a rate, the binomial."""
    low: float | None
    high: float | None

    def within(self, errors: float = 0.0) -> bool:
        """Whether the figure is in its band, or at most so many standard errors out of it."""
        slack = errors * self.error
        return (self.low is None or self.obtained >= self.low - slack) and (
            self.high is None or self.obtained <= self.high + slack
        )


def finding(
    id: str, setting: str, replicates: Sequence[float] | Floats, low: float | None = None, high: float | None = None
) -> Finding:
    values = np.asarray(replicates, dtype=np.float64)
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Finding(id, setting, float(values.mean()), error, low, high)


def shown(figure: Finding) -> str:
    if figure.low is None and figure.high is None:
        band, ok = "-", "-"
    else:
        ends = ["" if end is None else f"{end:.3g}" for end in (figure.low, figure.high)]
        band, ok = f"[{ends[0]}, {ends[1]}]", "ok" if figure.within() else "BROKEN"
    return f"{figure.id:3} {figure.setting:66} {figure.obtained:7.3f} ±{figure.error:.3f}  {band:16} {ok}"


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high
