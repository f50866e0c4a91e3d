"""The indexes behind `judge passages index`: rows a second, peak memory, and milliseconds of look-ups.

    python -m bench.passage_index [--rows 20000000] [--lines 2000000] [--shuffled] [--keep DIR]

Makes a hash list and a collection in the form of iKAT's, then builds the index of each in a process of its own. Wall
time counts what else the machine does; CPU time does not.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCUMENTS = 20_000
"""Documents that are made at once."""
FULL = 116_838_987
"""Rows of iKAT's list."""


def document(number: int, shuffled: bool) -> str:
    """A ClueWeb22 id; in no order if shuffled (104,729 is coprime to the number of ids)."""
    place = number * 104_729 % 10**9 if shuffled else number
    return f"clueweb22-en{place // 10**7:04}-{place // 10**5 % 100:02}-{place % 10**5:05}"


def make_list(path: Path, rows: int, shuffled: bool) -> None:
    """Write a hash list of at least so many rows, documents of 1 to 17 passages."""
    rng = random.Random(1)
    made = first = 0
    with path.open("w", encoding="utf-8") as file:
        while made < rows:
            lines = []
            for number in range(first, first + DOCUMENTS):
                name, passages = document(number, shuffled), rng.randint(1, 17)
                digests = os.urandom(16 * passages).hex()
                lines += [f"{name}\t{k}\t{digests[32 * k : 32 * k + 32]}\n" for k in range(passages)]
            file.write("".join(lines))
            made += len(lines)
            first += DOCUMENTS


def make_collection(path: Path, lines: int, shuffled: bool) -> None:
    """Write a collection with lines of about 800 bytes."""
    text = "word " * 140
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            name = f"{document(number // 9, shuffled)}:{number % 9}"
            file.write(json.dumps({"id": name, "contents": text, "url": "https://example.org/" + name}) + "\n")


def sample(path: Path, count: int) -> list[bytes]:
    """Lines at random places of a file."""
    rng = random.Random(2)
    sampled = []
    with path.open("rb") as file:
        for _ in range(count):
            file.seek(rng.randrange(path.stat().st_size - 5_000))
            file.readline()
            sampled.append(file.readline())
    return sampled


def report(what: str, count: int, size: int, wall: float, cpu: float) -> None:
    """Print how fast an index was built."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {count:,} in {wall:.1f} s ({cpu:.1f} s CPU): {count / wall / 1e6:.2f} M/s ({count / cpu / 1e6:.2f} "
        f"M per CPU second), {size / wall / 1e9:.2f} GB/s, peak {peak:.0f} MiB; "
        f"{FULL:,} would take {FULL / count * wall:.0f} s"
    )


def measure_hashes(path: Path) -> None:
    """Build the index of a list and look passages up."""
    from judge.passages.hashes import index_hashes, open_hashes

    out = path.with_suffix(".idx")
    wall, cpu = time.perf_counter(), time.process_time()
    count = index_hashes(path, out)
    report("hash list", count, path.stat().st_size, time.perf_counter() - wall, time.process_time() - cpu)
    fields = [line.decode().split() for line in sample(path, 100_000)]
    ids = [f"{name}:{number}" for name, number, _ in fields]
    for asked in (2_500, 100_000):
        wall = time.perf_counter()
        digests = open_hashes(out).find(ids[:asked])
        print(f"  open and look up {asked:,}: {(time.perf_counter() - wall) * 1e3:.1f} ms")
        assert digests == [bytes.fromhex(md5) for *_, md5 in fields[:asked]]


def measure_collection(path: Path) -> None:
    """Build the index of a collection and read passages through it."""
    from judge.passages.index import index_collection, read_indexed

    out = path.with_suffix(".idx")
    wall, cpu = time.perf_counter(), time.process_time()
    count = index_collection([path], out)
    report("collection", count, path.stat().st_size, time.perf_counter() - wall, time.process_time() - cpu)
    wanted = {json.loads(line)["id"] for line in sample(path, 2_500)}
    for turn in ("first", "second"):
        wall = time.perf_counter()
        passages = read_indexed(out, wanted)
        print(f"  open and read {len(wanted):,} passages, {turn} time: {(time.perf_counter() - wall) * 1e3:.1f} ms")
        assert passages.keys() == wanted


def main() -> None:
    """Make the files, then measure each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--shuffled", action="store_true", help="ids in no order")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make and keep the files here")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure = measure_hashes if args.measure.suffix == ".tsv" else measure_collection
        measure(args.measure)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, size, make in (("list.tsv", args.rows, make_list), ("c.jsonl", args.lines, make_collection)):
            make(folder / name, size, args.shuffled)
            subprocess.run([sys.executable, __file__, "--measure", str(folder / name)], check=True)


if __name__ == "__main__":
    main()
