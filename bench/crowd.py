"""Aggregation of workers' labels: how fast, how much memory, how often right, and how much the rules differ.

    python -m bench.crowd speed        10M labels (2M items x 5, 5,000 workers, 4 grades), from arrays and from Parquet
    python -m bench.crowd peers        1M labels beside crowd-kit, where it is installed
    python -m bench.crowd spam         simulated crowds with 0, 20 and 40 % spammers
    python -m bench.crowd real DIR     transparentCIS (DIR holds judgments_long.tsv) under every rule

Each figure of `speed` comes from a process of its own, so that its peak memory is its own. Exits with 1 if a target is
missed: majority 2 s, 10 iterations of Dawid and Skene's model 10 s, 2 GB.
"""

import argparse
import csv
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings, Item
from judge.crowd.layout import Layout
from judge.crowd.tables import read_tables
from judge.stats.consensus import SHARES, TIES
from tests.crowd.test_aggregators import spammed

GRADES = (0, 1, 2, 3)
WORKERS = 5_000
PER_ITEM = 5
PER_TURN = 20
ROUND = CrowdSettings(max_iterations=10)
TARGETS = {"majority": 2.0, "dawid-skene": 10.0}
GIB = 2**20
"""ru_maxrss is in KiB."""


def arrays(items: int, order: str = "table") -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Worker, item and label of 5 labels an item, and the truth; workers are right in 50 to 95 %."""
    rng = np.random.default_rng(4)
    item = np.repeat(np.arange(items, dtype=np.int32), PER_ITEM)
    # The r-th label of an item is by one of the r-th fifth of the workers, so that nobody labels it twice.
    fifth = WORKERS // PER_ITEM
    worker = rng.integers(0, fifth, len(item), dtype=np.int32) + fifth * np.tile(np.arange(5, dtype=np.int32), items)
    if order == "shuffled":
        shuffled = rng.permutation(len(item))
        item, worker = item[shuffled], worker[shuffled]
    truth = rng.integers(0, len(GRADES), items, dtype=np.int8)
    right = rng.random(len(item), dtype=np.float32) < rng.uniform(0.4, 0.95, WORKERS).astype(np.float32)[worker]
    return worker, item, np.where(right, truth[item], rng.integers(0, 4, len(item), dtype=np.int8)), truth


def crowd(worker: np.ndarray, item: np.ndarray, code: np.ndarray, items: int) -> CrowdLabels:
    names = [f"R{i}" for i in range(PER_TURN)]
    turns = [f"{turn // 10}_{turn % 10}" for turn in range(items // PER_TURN + 1)]
    return CrowdLabels(
        criterion="relevance",
        grades=GRADES,
        workers=tuple(f"w{i}" for i in range(WORKERS)),
        items=tuple(Item(turns[i // PER_TURN], names[i % PER_TURN]) for i in range(items)),
        worker=worker.astype(np.int32),
        item=item.astype(np.int32),
        code=code.astype(np.int8),
    )


def write_parquet(path: Path, items: int) -> None:
    import polars as pl

    worker, item, code, _ = arrays(items)
    ids = pl.DataFrame({"worker": worker, "item": item, "label": code}).lazy()
    turn = pl.col("item") // PER_TURN
    ids.select(
        worker=pl.format("w{}", "worker"),
        turn_id=pl.format("{}_{}", turn // 10, turn % 10),
        response_id=pl.format("R{}", pl.col("item") % PER_TURN),
        label="label",
    ).sink_parquet(path)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB


def measure(source: str, name: str, items: int) -> None:
    """One line: source, aggregator, seconds to get the labels, to aggregate, CPU of that, peak memory, share right."""
    start = time.perf_counter()
    if source.endswith(".parquet"):
        layout = Layout(columns={}, scales={"relevance": GRADES}, criteria=["relevance"])
        labels = read_tables([Path(source)], layout)["relevance"]
        truth = None
    else:
        worker, item, code, truth = arrays(items, source)
        labels = crowd(worker, item, code, items)
    got = time.perf_counter()
    before = time.process_time()
    grades = AGGREGATORS[name].aggregate(labels, ROUND)
    cpu, done = time.process_time() - before, time.perf_counter()
    right = "" if truth is None else f"{np.mean(grades.code == truth):.4f}"
    what = "Parquet" if source.endswith(".parquet") else f"arrays, {source}"
    print(f"{what:17} {name:18} {got - start:8.2f} {done - got:10.2f} {cpu:8.2f} {peak():8.2f}  {right}", flush=True)
    if (limit := TARGETS.get(name)) and (done - got > limit or peak() > 2):
        raise SystemExit(1)


def speed(items: int, names: list[str]) -> int:
    print(f"{f'{items * PER_ITEM:,} labels':36} {'get':>8} {'aggregate':>10} {'CPU, s':>8} {'GiB':>8}  right")
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        parquet = Path(folder) / "labels.parquet"
        write = [sys.executable, __file__, "write", str(parquet), "--items", str(items)]
        subprocess.run(write, check=True)
        for source in ("table", "shuffled", str(parquet)):
            for name in names:
                command = [sys.executable, __file__, "measure", source, name, "--items", str(items)]
                missed += subprocess.run(command, check=False).returncode != 0
    print(f"targets missed: {missed}")
    return int(missed > 0)


def peers(items: int) -> int:
    if importlib.util.find_spec("crowdkit") is None:
        print("skipped: crowd-kit is not installed here (pip install crowd-kit)")
        return 0
    import pandas as pd
    from crowdkit.aggregation import MACE, DawidSkene, MajorityVote

    worker, item, code, truth = arrays(items)
    frame = pd.DataFrame({"task": item, "worker": worker, "label": code})
    labels = crowd(worker, item, code, items)
    theirs = {
        "majority": MajorityVote(),
        "dawid-skene": DawidSkene(n_iter=10, tol=-1e9),
        "mace": MACE(n_iter=10, n_restarts=1),
    }
    print(f"{len(item):,} labels   ours: s, right   crowd-kit: s, right")
    for name, peer in theirs.items():
        start = time.perf_counter()
        ours = AGGREGATORS[name].aggregate(labels, ROUND).code
        middle = time.perf_counter()
        other = peer.fit_predict(frame).sort_index().to_numpy()
        end = time.perf_counter()
        right = np.mean(ours == truth), np.mean(other == truth)
        print(f"{name:18} {middle - start:8.2f} {right[0]:.4f} {end - middle:8.2f} {right[1]:.4f}")
    return 0


def rules() -> dict[str, tuple[str, CrowdSettings]]:
    """Every aggregator, and the majority under all its options."""
    majority = {
        f"{share} {tie}": ("majority", CrowdSettings(majority=share, tie=tie)) for share in SHARES for tie in TIES
    }
    return majority | {name: (name, CrowdSettings()) for name in AGGREGATORS if name != "majority"}


def spam(worlds: int) -> int:
    print(f"{'share right':26} " + " ".join(f"{s:>4.0%} spam, sd" for s in (0, 0.2, 0.4)) + f"   ({worlds} worlds)")
    right = defaultdict(list)
    for share in (0, 0.2, 0.4):
        for seed in range(worlds):
            labels, truth = spammed(share, seed)
            for rule, (name, options) in rules().items():
                right[rule, share].append(np.mean(AGGREGATORS[name].aggregate(labels, options).code == truth))
    for rule in rules():
        cells = (f"{np.mean(right[rule, s]):.3f} ({np.std(right[rule, s], ddof=1):.3f})" for s in (0, 0.2, 0.4))
        print(f"{rule:26}  " + "  ".join(cells))
    return 0


def real(folder: Path) -> int:
    """How each rule's grades of the 14 x 50 items differ from the default's."""
    with (folder / "judgments_long.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    workers = {name: i for i, name in enumerate(sorted({row["worker_id"] for row in rows}))}
    items = {name: i for i, name in enumerate(sorted({row["item_id"] for row in rows}))}
    by_dimension = defaultdict(list)
    for row in rows:
        by_dimension[row["dimension"]].append((workers[row["worker_id"]], items[row["item_id"]], int(row["label"])))
    codes, tied, unvoted = defaultdict(list), defaultdict(int), defaultdict(int)
    for dimension, triples in sorted(by_dimension.items()):
        worker, item, label = np.array(triples).T
        labels = CrowdLabels(
            dimension, (1, 2, 3, 4), tuple(workers), tuple(Item(name.split("_")[0], name) for name in items),
            worker.astype(np.int32), item.astype(np.int32), (label - 1).astype(np.int8),
        )  # fmt: skip
        for rule, (name, options) in rules().items():
            grades = AGGREGATORS[name].aggregate(labels, options)
            codes[rule].append(grades.code)
            tied[rule] += grades.tied.sum()
            unvoted[rule] += grades.unvoted.sum()
    default = np.concatenate(codes["plurality mean-half-up"])
    print(f"{len(rows):,} labels, {len(default)} items, {tied['mean']} tied; next to plurality mean-half-up:")
    print(f"{'rule':26} {'other':>6} {'%':>6} {'>1 off':>7} {'unvoted':>8} {'mean':>6}  grades 1-4")
    for rule, parts in codes.items():
        code = np.concatenate(parts)
        off = np.abs(code - default)
        print(
            f"{rule:26} {np.sum(off > 0):6} {np.mean(off > 0):6.1%} {np.sum(off > 1):7} {unvoted[rule]:8} "
            f"{np.mean(code + 1):6.3f}  {np.bincount(code, minlength=4).tolist()}"
        )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    timed = commands.add_parser("speed")
    timed.add_argument("--items", type=int, default=2_000_000)
    timed.add_argument("--only", nargs="+", choices=AGGREGATORS, default=["majority", "dawid-skene"])
    measured = commands.add_parser("measure")
    measured.add_argument("source")
    measured.add_argument("name", choices=AGGREGATORS)
    measured.add_argument("--items", type=int, required=True)
    written = commands.add_parser("write")
    written.add_argument("path", type=Path)
    written.add_argument("--items", type=int, required=True)
    commands.add_parser("peers").add_argument("--items", type=int, default=200_000)
    commands.add_parser("spam").add_argument("--worlds", type=int, default=20)
    commands.add_parser("real").add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.command == "speed":
        return speed(args.items, args.only)
    if args.command == "measure":
        measure(args.source, args.name, args.items)
    elif args.command == "write":
        write_parquet(args.path, args.items)
    elif args.command == "peers":
        return peers(args.items)
    elif args.command == "spam":
        return spam(args.worlds)
    else:
        return real(args.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
