"""Intervals and tests of `judge.stats` in simulated worlds with a known truth: do they keep their promises?

    python -m bench.simulations [--only A2,A3] [--replicates N] [--seed S]

Prints the figure of each simulation, its Monte Carlo standard error and the band that it must stay in ("-" where the
figure only shows what another method would do), and exits with 1 if a figure is out of its band. Bands hold for the
default number of replicates; with fewer, a figure near an edge can leave its band by chance.
"""

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec

import numpy as np

from bench.simulations import battles, crowds, gold, judges, leaderboards, passages, runs, small
from bench.simulations.figures import Finding, shown

Simulation = Callable[[int, np.random.Generator], list[Finding]]

SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "A1": (runs.a1, 50),
    "A2": (runs.a2, 300),
    "A3": (runs.a3, 300),
    "A4": (runs.a4, 300),
    "A5": (runs.a5, 200),
    "A6": (runs.a6, 400),
    "A7": (runs.a7, 1000),
    "A8": (runs.a8, 500),
    "A9": (runs.a9, 2000),
    "A10": (runs.a10, 300),
    "B1": (judges.b1, 1000),
    "B2": (judges.b2, 1000),
    "B3": (judges.b3, 600),
    "C1": (judges.c1, 600),
    "C2": (judges.c2, 2000),
    "D": (judges.kappa_coverage, 1500),
    "YB": (judges.yb, 1000),
    "YP": (judges.yp, 600),
    "F1": (gold.f1, 3000),
    "F2": (gold.f2, 3000),
    "F3": (gold.f3, 1000),
    "G10": (partial(leaderboards.with_gold, 10), 300),
    "G20": (partial(leaderboards.with_gold, 20), 300),
    "G40": (partial(leaderboards.with_gold, 40), 200),
    "E": (leaderboards.e, 400),
    "S": (leaderboards.s, 400),
    "N": (leaderboards.n, 400),
    "U": (leaderboards.u, 400),
    "DIFF": (leaderboards.d, 1000),
    "FAIL": (leaderboards.fail, 1000),
    "MISS": (leaderboards.miss, 500),
    "P": (leaderboards.p, 50),
    "L": (gold.real, 300),
    "CITE": (gold.cited, 60),
    "STR": (gold.by_judge, 100),
    "BT": (battles.bt, 300),
    "BTE": (battles.bte, 400),
    "BTM": (partial(battles.bt, drawn=battles.in_two_stages, name="BTM"), 300),
    "BTN": (partial(battles.bte, drawn=battles.in_two_stages, name="BTN"), 400),
    "BTU": (battles.btu, 200),
    "BTW": (battles.btw, 400),
    "BTL": (battles.btl, 400),
    "BTG": (battles.btg, 200),
    "BTP": (battles.btp, 100),
    "S1": (small.means, 2000),
    "S2": (small.coefficients, 1000),
    "S3": (small.families, 400),
    "S4": (small.choices, 500),
    "S5": (small.one_sided, 2000),
    "S6": (small.calibration_errors, 300),
    "S7": (small.rare_errors, 1000),
    "W": (crowds.w, 100),
    "PT": (passages.turns, 300),
    "PP": (passages.singles, 300),
    "PN": (passages.filled_in, 20),
    "PE": (passages.equal_runs, 200),
}
"""The simulations by id, with the number of replicates that the bands are meant for."""
if find_spec("judge.extra.improve") is not None:
    from bench.simulations import wordings

    SIMULATIONS |= {"WE": (wordings.equal, 600), "WB": (wordings.better, 300)}


def simulate(id: str, replicates: int | None = None, seed: int = 0) -> list[Finding]:
    """Run a simulation; its random numbers do not depend on which others run."""
    run, by_default = SIMULATIONS[id]
    return run(replicates or by_default, np.random.default_rng([seed, zlib.crc32(id.encode())]))


def results(ids: Sequence[str], replicates: int | None, seed: int) -> Iterator[list[Finding]]:
    with ProcessPoolExecutor(2) as processes:
        yield from processes.map(partial(simulate, replicates=replicates, seed=seed), ids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="ids, separated by commas")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    ids = args.only.split(",") if args.only else list(SIMULATIONS)
    unknown = [id for id in ids if id not in SIMULATIONS]
    if unknown:
        parser.error(f"no simulation {', '.join(unknown)}; there are {', '.join(SIMULATIONS)}")
    if args.replicates is not None and args.replicates < 2:
        parser.error("--replicates must be at least 2")
    if "L" in ids and not gold.LLMJUDGE.is_dir():
        print("L   skipped: the LLMJudge data are not beside the repository (shared/data/llmjudge)")
        ids.remove("L")
    broken = 0
    for findings in results(ids, args.replicates, args.seed):
        for figure in findings:
            print(shown(figure), flush=True)
            broken += not figure.within()
    if broken:
        print(f"{broken} out of band")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
