"""The distribution as its users get it: built the same twice, and tried in an empty environment.

`python -m bench.distribution build DIST` makes wheel and sdist from the files that git knows, makes both again from the
unpacked sdist, under another umask and other dates, and compares the bytes; it needs hatchling. `python -m
bench.distribution try FILE ...` installs each file in an environment of its own and runs the demo there, in an empty
folder; it needs the package index.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMANDS = (("judge", "demo", "shown"), ("judge", "report", "shown/judged"), ("trec-judge", "doctor"))
"""What is run where the distribution alone is installed."""


def built(source: Path, out: Path) -> dict[str, bytes]:
    """The files that a source folder is built to, by name; all dates in them are of the last commit."""
    date = os.environ.get("SOURCE_DATE_EPOCH") or said("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": date}
    run(sys.executable, "-m", "hatchling", "build", "-d", out.absolute(), cwd=source, env=environment)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def build(out: Path) -> None:
    """Build twice, from a copy of what git knows and from the sdist of the first time; a SystemExit if they differ."""
    with tempfile.TemporaryDirectory() as folder:
        copy, again = Path(folder, "copy"), Path(folder, "again")
        for name in filter(None, said("git", "-C", ROOT, "ls-files", "-z").split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
        first = built(copy, Path(folder, "first"))
        usual = os.umask(0o077)
        with tarfile.open(next(Path(folder, "first").glob("*.tar.gz"))) as sdist:
            sdist.extractall(again, filter="data")
        second = built(next(again.iterdir()), Path(folder, "second"))
        os.umask(usual)
    if different := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
        raise SystemExit(f"built twice with different bytes: {', '.join(different)}")
    out.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (out / name).write_bytes(content)
        print(f"{name}: {len(content):,} bytes, the same twice")


def try_out(distribution: Path) -> None:
    """Install a file alone and run the commands in an empty folder; their outputs come from nowhere else."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "environment"), with_pip=True)
        programs = Path(folder, "environment", "bin")
        run(programs / "python", "-m", "pip", "install", "--quiet", distribution.absolute())
        empty = Path(folder, "empty")
        empty.mkdir()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for program, *words in COMMANDS:
            run(programs / program, *words, cwd=empty, env=environment)


def run(*words: object, **more: object) -> None:
    """Run a program; a CalledProcessError if it fails."""
    subprocess.run(list(map(str, words)), check=True, **more)


def said(*words: object) -> str:
    """What a program prints."""
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Build, or try what was built."""
    parser = argparse.ArgumentParser(prog="python -m bench.distribution")
    parsers = parser.add_subparsers(dest="action", required=True)
    parsers.add_parser("build").add_argument("out", type=Path)
    parsers.add_parser("try").add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.action == "build":
        build(args.out)
    else:
        for file in args.files:
            try_out(file)


if __name__ == "__main__":
    main()
