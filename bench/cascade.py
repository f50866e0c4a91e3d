"""What the checker `checker/overlap` settles of public labels by people, and what a cascade with it loses.

    python -m bench.cascade DATA        BEGIN, AttributionBench and FaithBench, in this folder as for `judge bench`

The table needs no other judge: the share of items that the checker settles, and how many of them it calls
positive or not as people do. The lines below those of FaithBench set the stored labels of a detector beside a cascade
that asks this detector only what the checker leaves open: Cohen's kappa with people, positive or not, and the
difference with its 95 % interval over source documents.
"""

import argparse
from pathlib import Path

import numpy as np

from judge.ask.opening import ask_free
from judge.ask.records import Judgment
from judge.extra.bench.job import BenchInputs, BenchPlan
from judge.extra.checkers.cascade import Cascade
from judge.io.text import interval
from judge.stats.agreement import point
from judge.stats.comparison import compare
from judge.stats.tables import topic_tables

BOUNDS = ((0.0, 1.0), (0.1, 0.9), (0.1, 0.8), (0.2, 0.8), (0.2, 0.7), (0.4, 0.6))
SETS = ("begin-wow", "attributionbench", "faithbench")
DETECTORS = ("gpt_4o", "gpt-4-turbo", "trueteacher")
SCALE = (0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    print("dataset\titems\tbounds\tsettled\tas people\tcalled positive: as people\tnot positive: as people")
    for name in SETS:
        plan = BenchPlan(
            data=data, out=data, model="checker/overlap", datasets=[name], prompts=["groundedness/sentences"]
        )
        inputs = BenchInputs(plan)
        answers = ask_free(inputs.judge.models[0], inputs.tasks, inputs.pool, inputs.turns)
        results = {answer.response_id: answer for answer in answers}
        drawn = inputs.sets[0][0]
        items = list(zip(drawn.ids, drawn.items, strict=True))
        people = np.array([item.grade in drawn.dataset.positive for _, item in items])
        found = [results[response_id] for response_id, _ in items]
        called = np.array([isinstance(one, Judgment) and one.grade in (2, 3) for one in found])
        for low, high in BOUNDS:
            settled = np.array([Cascade("checker/overlap", low, high).settles(one) for one in found])
            shares = (_share(people == called, settled & side) for side in (settled, called, ~called))
            print(name, len(items), f"{low:g}:{high:g}", f"{settled.mean():.2f}", *shares, sep="\t")
            if name == "faithbench":
                _detectors(data, drawn, items, people, called, settled, f"{low:g}:{high:g}")


def _share(right: np.ndarray, of: np.ndarray) -> str:
    return f"{right[of].mean():.2f} of {of.sum()}" if of.any() else "-"


def _detectors(data, drawn, items, people, called, settled, bounds) -> None:
    stored = drawn.dataset.stored(data)
    units = {unit: place for place, unit in enumerate(sorted({item.unit for _, item in items}))}
    unit = np.array([units[item.unit] for _, item in items])
    for detector in DETECTORS:
        scores = [stored[detector].get(item.item_id) for _, item in items]
        there = np.array([score is not None for score in scores])
        said = np.array([score is not None and score >= 0.5 for score in scores])
        human = np.where(there, people, -1)
        pair = [
            topic_tables(human, codes.astype(np.int64), unit, 2, len(units))
            for codes in (np.where(settled, called, said), said)
        ]
        values = [float(point("kappa", tables.sum(axis=0), SCALE)) for tables in pair]
        compared = compare(
            {("cascade", detector): (pair[0], pair[1])}, "kappa", SCALE, np.random.default_rng(2023), permutations=1
        )
        gap = interval(compared.pairs[0].difference, signed=True)
        print("", detector, bounds, f"kappa {values[1]:.3f} alone, {values[0]:.3f} in the cascade: {gap}", sep="\t")


if __name__ == "__main__":
    main()
