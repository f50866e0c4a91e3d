"""Full-size runs, checked with `judge validate` and pooled: MB/s of JSON and peak memory.

    python -m bench.large_runs [--form 2024|2024-text|2025] [--runs 28] [--turns 332] [--passages 1000]
        [--keep DIR] [--official SCRIPT] [--repeat 1]

Makes the runs (about 25 MB each at the default size) and a topics file with their turns, then measures in processes of
their own `judge validate --topics` (read and all checks, start-up included) and what `judge run` does before it asks a
judge (read, check, pool). `2024-text` gives the used passages with their texts, 2025 is JSON Lines with references
and citations. Run ids and texts differ, so no run profits from another's.

`--keep` keeps the runs in DIR and uses those that are there. `--official` times the track's own
`validate_trec_ikat25.py`, which takes one run at a time, on the runs of the 2025 form. The best of `--repeat`
measurements is printed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [
    f"{a}{b}" for a in ("ba", "de", "ki", "lo", "mu", "ra", "su", "te") for b in ("nd", "rk", "st", "lm", "pe", "ty")
]
USED = 3
TURNS_OF_A_TOPIC = 13
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
last = (done.stdout.strip().splitlines() or ["nothing printed"])[-2:]
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, " | ".join(last), sep="\\t")
"""
POOL = """
import sys
from pathlib import Path
from judge.pool.intake import make_pool, read_runs
submitted = read_runs(Path(sys.argv[1]))
print(len(submitted.runs), "runs,", len(make_pool(submitted).responses), "pooled responses")
"""


def turn_id(turn: int) -> str:
    """The id of a run's turn number `turn` (from 0)."""
    return f"{turn // TURNS_OF_A_TOPIC}_{turn % TURNS_OF_A_TOPIC + 1}"


def make_run(path: Path, number: int, form: str, turns: int, passages: int) -> None:
    """Write one run."""
    rng = random.Random(number)
    made = (make_turn(rng, number, form, turn, passages) for turn in range(turns))
    if form == "2025":
        text = "".join(f"{json.dumps(turn)}\n" for turn in made)
    else:
        text = json.dumps(
            {"run_name": f"run-{number}", "run_type": "automatic", "eval_response": True, "turns": list(made)}
        )
    path.write_text(text, encoding="utf-8")


def make_turn(rng: random.Random, number: int, form: str, turn: int, passages: int) -> dict[str, object]:
    """One turn in its form, with one response."""
    text = " ".join(rng.choices(WORDS, k=150))
    scores = {
        f"clueweb22-en{rng.randrange(47):04}-{rng.randrange(100):02}-{rng.randrange(10**5):05}:{k % 30}": round(
            100 - k * 0.05 - number * 1e-3, 6
        )
        for k in range(passages)
    }
    if form == "2025":
        return {
            "metadata": {"team_id": "bench", "run_id": f"run-{number}", "run_type": "automatic"},
            "turn_id": turn_id(turn),
            "responses": [
                {
                    "rank": 1,
                    "text": text,
                    "citations": dict(list(scores.items())[:USED]),
                    "ptkb_provenance": ["I am vegan.", "I have a dog."],
                }
            ],
            "references": scores,
        }
    provenance = [
        {"id": passage_id, "score": score, "used": k < USED}
        | ({"text": " ".join(rng.choices(WORDS, k=120))} if k < USED and form == "2024-text" else {})
        for k, (passage_id, score) in enumerate(scores.items())
    ]
    response = {"rank": 1, "text": text, "ptkb_provenance": [1, 2], "passage_provenance": provenance}
    return {"turn_id": turn_id(turn), "responses": [response]}


def make_topics(path: Path, form: str, turns: int) -> None:
    """Write the topics with the turns of the runs."""
    statements = ["I am vegan.", "I have a dog."]
    topics = []
    for first in range(0, turns, TURNS_OF_A_TOPIC):
        numbers = range(1, min(TURNS_OF_A_TOPIC, turns - first) + 1)
        topic = {"number": str(first // TURNS_OF_A_TOPIC), "title": "Bench"}
        if form == "2025":
            topic["ptkb"] = statements
            topic["responses"] = [
                {
                    "turn_id": number,
                    "user_utterance": "What?",
                    "response": "That.",
                    "relevant_ptkbs": [],
                    "citations": [],
                }
                for number in numbers
            ]
        else:
            topic["ptkb"] = {str(k): statement for k, statement in enumerate(statements, 1)}
            topic["turns"] = [
                {
                    "turn_id": number,
                    "utterance": "What?",
                    "response": "That.",
                    "ptkb_provenance": [],
                    "response_provenance": [],
                }
                for number in numbers
            ]
        topics.append(topic)
    path.write_text(json.dumps(topics), encoding="utf-8")


def measure(name: str, size: float, commands: list[list[str]], repeat: int) -> None:
    """Run commands one after the other, `repeat` times, and print the fastest time."""
    best = None
    for _ in range(repeat):
        cpu, peak, printed = 0.0, 0.0, ""
        begun = time.perf_counter()
        for command in commands:
            # The peak of all children of a process is one number, so each command gets a parent of its own.
            out = subprocess.run([sys.executable, "-c", PEAK, *command], check=True, capture_output=True, text=True)
            code, seconds, mib, printed = out.stdout.rstrip("\n").split("\t")
            cpu, peak = cpu + float(seconds), max(peak, float(mib))
        wall = time.perf_counter() - begun
        if best is None or wall < best[0]:
            best = (wall, cpu, peak, code, printed)
    wall, cpu, peak, code, printed = best
    print(f"{name}: {size:.0f} MB in {wall:.1f} s = {size / wall:.0f} MB/s ({cpu:.1f} s CPU), peak {peak:.0f} MiB, "
          f"exit {code}: {printed}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=("2024", "2024-text", "2025"), default="2024")
    parser.add_argument("--runs", type=int, default=28)
    parser.add_argument("--turns", type=int, default=332)
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--official", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        runs = folder / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        topics = folder / "topics.json"
        make_topics(topics, args.form, args.turns)
        paths = [runs / f"run-{number}.json{'l' if args.form == '2025' else ''}" for number in range(args.runs)]
        for number, path in enumerate(paths):
            if not path.exists():
                make_run(path, number, args.form, args.turns, args.passages)
        size = sum(path.stat().st_size for path in paths) / 1e6
        judge = [sys.executable, "-m", "judge", "validate", "--runs", str(runs), "--topics", str(topics)]
        measure("judge validate", size, [judge], args.repeat)
        measure("read, check, pool", size, [[sys.executable, "-c", POOL, str(runs)]], args.repeat)
        if args.official:
            script = [sys.executable, str(args.official), "--topics", str(topics), "--input"]
            measure(args.official.name, size, [[*script, str(path)] for path in paths], args.repeat)


if __name__ == "__main__":
    main()
