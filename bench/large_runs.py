"""Full-size runs, read, checked and pooled: seconds and peak memory.

    python bench/large_runs.py [--runs 28] [--turns 332] [--passages 1000] [--keep DIR]

Makes the runs (iKAT 2024 form, about 25 MB each at the default size), then pools them in a process of its own.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [
    f"{a}{b}" for a in ("ba", "de", "ki", "lo", "mu", "ra", "su", "te") for b in ("nd", "rk", "st", "lm", "pe", "ty")
]
CHILD = """
import resource, sys, time
from pathlib import Path
from judge.intake import make_pool, read_runs
begun = time.perf_counter()
submitted = read_runs(Path(sys.argv[1]))
read = time.perf_counter()
pool = make_pool(submitted)
print(f"read and checked {len(submitted.runs)} runs in {read - begun:.1f} s, "
      f"pooled {len(pool.responses)} responses in {time.perf_counter() - read:.1f} s, "
      f"{len(submitted.problems)} problems, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
"""


def make_run(path: Path, number: int, turns: int, passages: int) -> None:
    """Write one run."""
    rng = random.Random(number)
    written = {"run_name": f"run-{number}", "run_type": "automatic", "eval_response": True, "turns": []}
    for turn in range(turns):
        provenance = [
            {
                "id": f"clueweb22-en{rng.randrange(47):04}-{rng.randrange(100):02}-{rng.randrange(10**5):05}:{k % 30}",
                "score": round(100 - k * 0.05 - number * 1e-3, 6),
                "used": k < 3,
            }
            for k in range(passages)
        ]
        text = " ".join(rng.choices(WORDS, k=150))
        response = {"rank": 1, "text": text, "ptkb_provenance": [1, 2], "passage_provenance": provenance}
        written["turns"].append({"turn_id": f"{turn // 13}_{turn % 13 + 1}", "responses": [response]})
    path.write_text(json.dumps(written), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=28)
    parser.add_argument("--turns", type=int, default=332)
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(args.runs):
            path = folder / f"run-{number}.json"
            if not path.exists():
                make_run(path, number, args.turns, args.passages)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", CHILD, str(folder)], check=True)
        wall = time.perf_counter() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{size:.0f} MB in {wall:.1f} s wall, {used.ru_utime + used.ru_stime:.1f} s CPU")


if __name__ == "__main__":
    main()
