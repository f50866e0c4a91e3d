"""What a collection of many judgments takes: seconds and peak memory of each step, from 10⁴ judgments on.

    python -m bench.millions --judgments 10000 100000 1000000 [--keep DIR] [--steps run leaderboard …]

Makes 40 runs whose responses are distinct, five criteria, three answers of one judge to each (a jury of `--samples 3`),
and a journal in which every answer is recorded already, so that nothing but judge itself takes time. Then each step
runs as a process of its own, and a line of TSV says what it took.

`--keep` keeps what was made in DIR and uses what is there. Texts have the usual lengths (150 words a response, three
used passages of 120 words), but prompts are short.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.million_inputs import write_gold, write_labels
from bench.million_replies import return_lines
from judge.ask.questions import Questions
from judge.jobs.run_inputs import Plan, RunInputs
from judge.judges.journal import Journal
from judge.judges.journal_store import new_row
from judge.judges.records import Completion

RUNS = 40
CRITERIA = ("groundedness", "naturalness", "relevance", "completeness", "conciseness")
SAMPLES = 3
OF_A_TURN = RUNS * len(CRITERIA) * SAMPLES
"""Judgments; what is made is the largest multiple of it up to the number that is asked for."""
TURNS_OF_A_TOPIC = 13
WORDS = [
    f"{a}{b}" for a in ("ba", "de", "ki", "lo", "mu", "ra", "su", "te") for b in ("nd", "rk", "st", "lm", "pe", "ty")
]
PROMPT = """+++
criterion = "{criterion}"
version = 1
polarity = "higher"
positive = [2, 3]
inputs = ["response"{passages}]
answer = "grade"
{levels}+++

# System

Grade the {criterion} of a response.
{{{{levels}}}}

# User

{shown}{{{{response}}}}
{{{{answer}}}}
"""
LEVEL = '[[level]]\ngrade = {grade}\ndescription = "Level {grade}."\n'
MODEL = "server/bench"
Given = tuple[Callable[[], object], list[str]]
"""What a step needs made, which takes no part in its time, and its command."""
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, sep="\\t")
if done.returncode: print(done.stdout[-2000:], file=sys.stderr)
"""


def text(rng: random.Random, words: int) -> str:
    """A text of some words."""
    return " ".join(rng.choices(WORDS, k=words))


def make(folder: Path, turns: int) -> None:
    """Write runs, passages and prompts."""
    (folder / "runs").mkdir(parents=True)
    passages = [name for turn in range(turns) for name in used(turn)]
    rng = random.Random(0)
    with (folder / "passages.jsonl").open("w") as file:
        for name in passages:
            file.write(json.dumps({"id": name, "contents": text(rng, 120)}) + "\n")
    for run in range(RUNS):
        rng = random.Random(run + 1)
        with (folder / "runs" / f"run-{run}.jsonl").open("w") as file:
            for turn in range(turns):
                file.write(json.dumps(answer(rng, run, turn)) + "\n")
    (folder / "prompts").mkdir()
    for criterion in CRITERIA:
        shows = criterion == "groundedness"
        (folder / "prompts" / f"{criterion}.md").write_text(
            PROMPT.format(
                criterion=criterion,
                passages=', "passages"' if shows else "",
                shown="{{passages}}\n" if shows else "",
                levels="".join(LEVEL.format(grade=grade) for grade in range(4)),
            )
        )


def used(turn: int) -> list[str]:
    """The passages that every run uses in a turn."""
    return [f"clueweb22-en{turn // 10**5:04}-00-{turn % 10**5:05}:{number}" for number in range(3)]


def answer(rng: random.Random, run: int, turn: int) -> dict[str, Any]:
    """One turn of a run."""
    names = used(turn)
    return {
        "metadata": {"team_id": "harbor", "run_id": f"run-{run}", "run_type": "automatic"},
        "turn_id": f"{turn // TURNS_OF_A_TOPIC + 1}_{turn % TURNS_OF_A_TOPIC + 1}",
        "responses": [
            {
                "rank": 1,
                "text": text(rng, 150),
                "citations": {name: 1.0 - rank / 10 for rank, name in enumerate(names)},
                "ptkb_provenance": ["I am vegan."],
            }
        ],
        "references": {name: 1.0 - rank / 10 for rank, name in enumerate(names)},
    }


def plan(folder: Path) -> Plan:
    """What `judge run` is told."""
    return Plan(
        runs=folder / "runs",
        passages=folder / "passages.jsonl",
        prompts=[folder / "prompts" / f"{criterion}.md" for criterion in CRITERIA],
        model=MODEL,
        base_url="http://localhost:9/v1",
        jury="median",
        samples=SAMPLES,
        out=folder / "out",
    )


def fill(plan: Plan) -> None:
    """Record an answer to every question of a plan in the journal of its output folder."""
    prepared = RunInputs(plan, keys=False)
    model, out = prepared.judge.models[0], prepared.out
    path = out.with_name("filling.sqlite")
    path.unlink(missing_ok=True)
    out.mkdir(exist_ok=True)
    with Journal(path) as journal:
        questions = Questions(model, journal, prepared.pooled.pool, prepared.pooled.turns)

        def rows() -> Iterator[tuple[Any, ...]]:
            for number, task in enumerate(prepared.asked):
                request = questions.request(task, questions.endpoint.forms(task.criterion)[0])
                completion = Completion(reply(task, number), "stop", "bench", prompt_tokens=1500, completion_tokens=20)
                yield new_row(
                    questions.answers.digest(request), model.name, model.parameters(request), request, completion
                )

        for batch in batched(rows()):
            journal.record(batch)
    path.replace(out / "journal.sqlite")


def reply(task: Any, number: int) -> str:
    """What the judge says of a task."""
    said: dict[str, Any] = {"rationale": f"Because of {number % 997}."}
    if task.criterion.sentence_levels:
        # A text of `text` has no full stop, so it is one sentence.
        label = task.criterion.sentence_levels[hash_of(task) % 3].label
        return json.dumps({**said, "sentences": [{"n": 1, "label": label}]})
    return json.dumps({**said, "grade": hash_of(task) % 4})


def batched(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows in transactions."""
    while batch := list(islice(rows, 10_000)):
        yield batch


def hash_of(task: Any) -> int:
    """A number that a response, a criterion and a sample have always."""
    return random.Random(f"{task.response.response_id} {task.criterion.name} {task.sample}").randrange(1 << 30)


def by_files(folder: Path, run: list[str]) -> dict[str, Given]:
    """The way through files: requests, what came back for them, and a run from a recorded journal."""
    requests, lines, out, replayed = (folder / name for name in ("requests", "lines.jsonl", "returned", "replayed"))
    judge, asked = run[:3], run[4 : run.index("--out")]
    others = asked[: asked.index("--model")] + asked[asked.index("--jury") :]

    def empty() -> None:
        for path in (requests, out):
            shutil.rmtree(path, ignore_errors=True)

    return {
        "requests": (empty, [*judge, "requests", *asked, "--out", str(out), "--requests", str(requests)]),
        "completions import": (
            lambda: return_lines(requests, lines),
            [*judge, "completions", "import", str(lines), "--requests", str(requests), "--out", str(out)],
        ),
        "run --model replay": (
            lambda: shutil.rmtree(replayed, ignore_errors=True),
            [*judge, "run", *others, "--model", f"replay/{folder}/out/journal.sqlite", "--out", str(replayed)],
        ),
    }


def measure(name: str, judgments: int, command: list[str]) -> None:
    """Run a command and print what it took."""
    begun = time.perf_counter()
    # The peak of all children of a process is one number, so each command gets a parent of its own.
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True)
    wall = time.perf_counter() - begun
    code, cpu, peak = done.stdout.split("\t")
    print(judgments, name, f"{wall:.1f}", f"{float(cpu):.1f}", f"{float(peak):.0f}", code, sep="\t", flush=True)
    sys.stderr.write(done.stderr)


def reading(judge: list[str], folder: Path, prompts: list[str], wanted: Collection[str] | None) -> dict[str, list[str]]:
    """The steps that read a judged folder; what they take beside it is made, and what they wrote last is removed."""
    out, made = str(folder / "out"), folder / "made"
    journal, gold, labels = f"{out}/journal.sqlite", str(folder / "gold.jsonl"), str(folder / "labels.csv")
    judgments, members = f"{out}/judgments.jsonl", f"{out}/members.jsonl"
    graded = str(folder / "prompts" / f"{CRITERIA[0]}.md")
    steps = {
        "journal salvage": ["journal", "salvage", journal, "-o", f"{made}/salvaged.sqlite"],
        "journal merge": ["journal", "merge", journal, f"{folder}/e.jsonl", "-o", f"{made}/merged.sqlite"],
        "journal reparse": ["journal", "reparse", out, *prompts],
        "evaluate responses": ["evaluate", "responses", out, "--out", f"{made}/responses"],
        "evaluate qrels": ["evaluate", "qrels", judgments, judgments, "--criterion", graded],
        "release": ["release", out, *prompts, "--out", f"{made}/release"],
        "convert": ["convert", out, "--to", "parquet", "--out", f"{made}/tables"],
        "calibrate": [
            *("calibrate", "--gold", gold, "--judgments", members, "--criterion", graded),
            *("--out", f"{made}/calibration"),
        ],
        "leaderboard --gold": ["leaderboard", out, "--gold", gold, *prompts, "--out", f"{made}/corrected"],
        "drift": ["drift", judgments, judgments],
        "gold plan": [
            *("gold", "plan", "--pool", out, "--n", "500", "--seed", "1", "--judgments", members),
            *("--out", f"{made}/plan.jsonl"),
        ],
        "crowd": ["crowd", labels, "--scale", "0-3", "--out", f"{made}/crowd"],
    }
    chosen = [name for name in steps if wanted is None or name in wanted]
    if chosen:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        write_gold(folder, Path(gold), CRITERIA[0])
        if "crowd" in chosen:
            write_labels(folder, Path(labels), CRITERIA, SAMPLES)
    return {name: [*judge, *command] for name, command in steps.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgments", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--steps", nargs="+")
    args = parser.parse_args()
    print("judgments", "step", "wall_s", "cpu_s", "peak_mib", "exit", sep="\t")
    for judgments in args.judgments:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (args.keep or Path(temporary)) / str(judgments)
            out = folder / "out"
            if not (out / "journal.sqlite").exists():
                shutil.rmtree(folder, ignore_errors=True)
                begun = time.perf_counter()
                make(folder, judgments // OF_A_TURN)
                print(f"made in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
                fill(plan(folder))
                print(f"filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
            for path in out.iterdir() if args.steps is None or "run" in args.steps else ():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name != "journal.sqlite":
                    path.unlink()
            judge = [sys.executable, "-m", "judge"]
            run = [*judge, "run", "--runs", str(folder / "runs"), "--passages", str(folder / "passages.jsonl")]
            prompts = [part for name in CRITERIA for part in ("--prompt", str(folder / "prompts" / f"{name}.md"))]
            run += prompts
            run += ["--model", MODEL, "--base-url", "http://localhost:9/v1", "--jury", "median"]
            run += ["--samples", str(SAMPLES), "--out", str(out)]
            steps = {
                "run": run,
                "leaderboard": [*judge, "leaderboard", str(out), *prompts],
                "journal verify": [*judge, "journal", "verify", str(out / "journal.sqlite")],
                "journal stats": [*judge, "journal", "stats", str(out / "journal.sqlite")],
                "journal export": [
                    *judge,
                    "journal",
                    "export",
                    str(out / "journal.sqlite"),
                    "-o",
                    str(folder / "e.jsonl"),
                ],
                "report": [*judge, "report", str(out), *prompts],
            }
            (folder / "e.jsonl").unlink(missing_ok=True)
            number = judgments // OF_A_TURN * OF_A_TURN
            for name, command in steps.items():
                if args.steps is None or name in args.steps:
                    measure(name, number, command)
            # What these take is made of what the steps before have written.
            for name, command in reading(judge, folder, prompts, wanted=args.steps).items():
                if args.steps is None or name in args.steps:
                    measure(name, number, command)
            for name, (before, command) in by_files(folder, run).items():
                if args.steps is None or name in args.steps:
                    before()
                    measure(name, number, command)


if __name__ == "__main__":
    main()
