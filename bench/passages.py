"""Extraction of passages from a synthetic collection in every packing, beside the commands that only unpack or search.

    python -m bench.passages                 2 GB of lines of 801 bytes (a 48th of iKAT's), 2,500 wanted passages
    python -m bench.passages --gigabytes 0.5 --folder /fast/disk

Rates are bytes of unpacked content by wall time, files in the page cache, the best of three; `CPU` is by the processor
time of the process. Commands that are not installed are left out. The collection is removed at the end.
"""

import argparse
import bz2
import functools
import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LINE = 801
WANTED = 2500
ROUNDS = 3
SLOW = 10.0


def passage_id(number: int) -> str:
    document, place = divmod(number, 8)
    return f"clueweb22-en{document // 10_000_000:04d}-{document // 100_000 % 100:02d}-{document % 100_000:05d}:{place}"


def lines(size: int) -> Iterator[bytes]:
    """About `size` bytes of passages, sorted by id, in which no two neighbors have the same text."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("etaoinshrdlcumwfgypbvk", k=rng.randint(2, 9))) for _ in range(5000)]
    text = " ".join(rng.choices(vocabulary, k=400_000))
    for number in range(size // LINE):
        head = f'{{"id": "{passage_id(number)}", "contents": "'
        tail = f'", "url": "https://example.org/page/{number // 8:09d}"}}\n'
        start = rng.randrange(len(text) - LINE)
        yield (head + text[start : start + LINE - len(head) - len(tail)] + tail).encode()


def make_collection(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.writelines(lines(size))


def packed(plain: Path) -> Iterator[Path]:
    """The collection by each packer, one at a time."""
    from isal import igzip

    from judge.passages.streams import zstd

    openers: dict[str, Callable[[Path], object]] = {
        ".gz": lambda path: igzip.open(path, "wb", compresslevel=1),  # type: ignore[no-untyped-call]
        ".zst": lambda path: zstd.open(path, "wb"),
        ".bz2": lambda path: bz2.BZ2File(path, "wb"),
    }
    for suffix, opened in openers.items():
        path = plain.with_name(plain.name + suffix)
        with plain.open("rb") as content, opened(path) as target:  # type: ignore[attr-defined]
            shutil.copyfileobj(content, target, 1 << 20)
        yield path
        path.unlink()


def best(action: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of the quickest round, of one if that is slow; child processes count."""
    rounds: list[tuple[float, float]] = []
    while len(rounds) < ROUNDS and sum(wall for wall, _ in rounds) < SLOW:
        wall, cpu = time.perf_counter(), cpu_seconds()
        action()
        rounds.append((time.perf_counter() - wall, cpu_seconds() - cpu))
    return min(rounds)


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def show(what: str, size: int, seconds: tuple[float, float]) -> None:
    wall, cpu = (size / 1e9 / each for each in seconds)
    print(f"{what:<36} {seconds[0]:7.2f} s {wall:6.2f} GB/s {cpu:6.2f} GB/s CPU", flush=True)


def extraction(file: Path, size: int, wanted: list[str]) -> None:
    from judge.passages import read_passages

    def extract() -> None:
        # One id that is nowhere: the whole file is read.
        assert len(read_passages([file], [*wanted, "nowhere"])) == len(wanted)

    show(f"judge, {file.name}", size, best(extract))


def command(what: str, size: int, *words: str | Path, counts: bool = False) -> None:
    if shutil.which(str(words[0])):
        # Into /dev/null grep stops at the first match.
        target = subprocess.PIPE if counts else subprocess.DEVNULL
        run = functools.partial(subprocess.run, words, check=True, stdout=target, env={**os.environ, "LC_ALL": "C"})
        show(what, size, best(run))


def bench_extraction(plain: Path) -> None:
    size = plain.stat().st_size
    ids = random.Random(1).sample(range(size // LINE), min(WANTED, size // LINE))
    wanted = [passage_id(number) for number in ids]
    patterns = plain.with_name("patterns")
    patterns.write_text("".join(f'{{"id": "{wanted_id}"\n' for wanted_id in wanted), encoding="utf-8")
    extraction(plain, size, wanted)
    command("cat", size, "cat", plain)
    command("grep -cF -f patterns", size, "grep", "-cF", "-f", patterns, plain, counts=True)
    command("rg -cF -f patterns", size, "rg", "-cF", "-f", patterns, plain, counts=True)
    unpackers = {".gz": ("zcat",), ".zst": ("zstd", "-dcq"), ".bz2": ("bzip2", "-dc")}
    for file in packed(plain):
        extraction(file, size, wanted)
        command(f"{' '.join(unpackers[file.suffix])} alone", size, *unpackers[file.suffix], file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, help="where the collection is made (default: the system's)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        plain = Path(folder) / "collection.jsonl"
        make_collection(plain, int(options.gigabytes * 1e9))
        bench_extraction(plain)


if __name__ == "__main__":
    main()
