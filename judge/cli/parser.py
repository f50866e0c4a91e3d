"""The parser of every command: no argument is dropped, a mistake is answered in two lines, help ends with examples."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

EXIT_CODES = """\
exit codes:
  0  done
  1  findings: errors in runs or prompts, nothing that could be judged, or a gate that is not met
  2  the command or its input is bad; no result was written
  3  something outside failed or was interrupted; the same command resumes
"""
GENERAL = """\
for every command:
  --max-file-size SIZE  the most bytes of content of a file that is read, unpacked or not: 2G, 800M (default 512M)
"""


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fold paragraphs to the width of the terminal; one with indented lines is a list, and stays as it is."""
        parts = text.split("\n\n")
        return "\n\n".join(
            part if "\n " in part else super(_Formatter, self)._fill_text(part, width, "") for part in parts
        )


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of one of its actions.

    An option of several values accumulates when it is repeated, and any other one is refused. An option that is not
    given leaves no value.
    """

    def __init__(self, *, lists: str = "options", examples: Sequence[str] = (), **settings: Any) -> None:
        fixed: dict[str, Any] = {"formatter_class": _Formatter, "allow_abbrev": False}
        super().__init__(**fixed | settings)
        self.lists = lists
        self.epilog = settings.get("epilog") or _epilog(examples or EXAMPLES.get(self.prog.removeprefix("judge "), ()))
        self.register("action", None, _stored)
        self.register("action", "append", _Gathered)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse; an unknown option is said first, because it is often the one that seems to be missing."""
        if args is not None and self._subparsers is None:
            self._refuse(_unknown_options(args, self._option_string_actions))
        known, unknown = super().parse_known_args(args, namespace)
        self._refuse(unknown)
        return known, unknown

    def _refuse(self, unknown: Sequence[str]) -> None:
        if unknown:
            option = unknown[0].partition("=")[0]
            from judge.io.text import did_you_mean

            hint = did_you_mean(option, self._option_string_actions) if option.startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            # It would slow down `judge --help`.
            from judge.io.plan import no_choice

            raise argparse.ArgumentError(action, no_choice(value, list(map(str, action.choices))))

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, without credentials, and where the options are listed; exit code 2."""
        # They would slow down `judge --help`.
        from judge.io.text import printable
        from judge.judges.credentials import redact

        self.exit(2, f"{self.prog}: {printable(redact(message))}\n`{self.prog} --help` lists the {self.lists}\n")


def _epilog(examples: Sequence[str]) -> str:
    lines = "".join(f"  {example}\n" for example in examples)
    end = f"{GENERAL}\n{EXIT_CODES}"
    return f"examples:\n{lines}\n{end}" if examples else end


def _unknown_options(args: Sequence[str], known: Iterable[str]) -> list[str]:
    """The words that look like an option and are none; as for argparse, a word with a space is a value."""
    names = set(known)
    before = args[: args.index("--")] if "--" in args else args
    return [
        word for word in before if word.startswith("--") and " " not in word and word.partition("=")[0] not in names
    ]


class _Once(argparse.Action):
    """Takes one value, or the values of a positional argument."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if self.option_strings and hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "given more than once: it takes one value")
        setattr(namespace, self.dest, values)


class _Gathered(argparse.Action):
    """Takes values, and more of them when it is repeated."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        values = values if isinstance(values, list) else [values]
        setattr(namespace, self.dest, [*getattr(namespace, self.dest, ()), *values])


def _stored(**settings: Any) -> argparse.Action:
    """The action of an argument that names none: several values of an option accumulate."""
    return (_Gathered if settings["option_strings"] and settings.get("nargs") == "+" else _Once)(**settings)


EXAMPLES = {
    "run": (
        "judge run --runs runs/ --topics topics.json --passages passages.jsonl --model openai/gpt-4.1-mini --out out/",
        "judge run --runs runs/ --criteria groundedness relevance --topics topics.json --dry-run",
        "judge run --runs late.json --extend out/",
    ),
    "pool": (
        "judge pool --runs runs/ --topics topics.json --passages passages.jsonl --out out/",
        "judge pool --runs runs/ late.json --depth 3 --screen exclude --out out/",
        "judge pool --unit dialogue --runs runs/ --topics topics.json --out dialogues/",
    ),
    "report": (
        "judge report out/",
        "judge report out/ --gold gold.jsonl",
        "judge report out-2024/ out-2025/ --out both/",
    ),
    "release": (
        "judge release out/ --out bundle/",
        'judge release out/ --out bundle/ --keep-names --license "CC BY 4.0"',
    ),
    "doctor": (
        "judge doctor",
        "judge doctor --model openai/gpt-4.1-mini --model baseline/overlap",
        "judge doctor --model server/m --base-url http://localhost:8000/v1 --json",
    ),
    "demo": ("judge demo", "judge demo try-it --full"),
    "validate": (
        "judge validate runs/ --topics topics.json",
        "judge validate run.json --topics topics.json --json",
        "judge validate runs/ --topics topics.json --fix --out fixed/ --report-dir pages/",
    ),
    "tokens": ("judge tokens runs/", "judge tokens runs/ --token-limit 200 --tsv"),
    "convert": (
        "judge convert runs/ --to trec-run --out trec/",
        "judge convert runs/ --to ikat2025 --team mine --topics topics.json --out new/",
        "judge convert out/ --to parquet --out tables/",
    ),
    "passages": (
        "judge passages index --hashes passage_hashes.tsv --out hashes.idx",
        "judge passages extract --runs runs/ --passages collection/ --out passages.jsonl",
    ),
    "passages index": (
        "judge passages index --hashes passage_hashes.tsv --out hashes.idx",
        "judge passages index --collection shards/ --out collection.idx",
    ),
    "passages extract": (
        "judge passages extract --runs runs/ --passages collection/ --out passages.jsonl",
        "judge passages extract --pool out/ --passages collection.idx --passage-hashes hashes.idx --out passages.jsonl",
    ),
    "models": ("judge models list", "judge models pull qwen2.5-1.5b"),
    "models list": ("judge models list", "judge models list --json"),
    "models pull": ("judge models pull qwen2.5-1.5b", "judge models pull smollm2-135m"),
    "journal": ("judge journal verify out/", "judge journal stats out/", "judge journal reparse out/"),
    "journal verify": ("judge journal verify out/", "judge journal verify out/journal.sqlite"),
    "journal salvage": (
        "judge journal salvage out/ --out salvaged.sqlite",
        "judge journal salvage damaged.sqlite --out sound.sqlite",
    ),
    "journal stats": ("judge journal stats out/", "judge journal stats out/journal.sqlite --json"),
    "journal export": ("judge journal export out/ --out journal.jsonl", "judge journal export out/journal.sqlite"),
    "journal reparse": ("judge journal reparse out/", "judge journal reparse out/ --json"),
    "journal merge": (
        "judge journal merge out-may/ out-june/ --out both.sqlite",
        "judge journal merge out/ journal.jsonl --out all.sqlite",
    ),
    "prompts": ("judge prompts list", "judge prompts show groundedness/graded --rendered", "judge prompts check my.md"),
    "prompts list": ("judge prompts list", "judge prompts list --json"),
    "prompts show": ("judge prompts show groundedness", "judge prompts show my.md --rendered --form label"),
    "prompts check": ("judge prompts check my.md", "judge prompts check mine/a.md mine/b.md"),
    "gold": (
        "judge gold check gold.jsonl --pool out/",
        "judge gold split gold.jsonl --test 0.5 --seed 1 --out split/",
        "judge gold plan --pool out/ --n 200 --seed 1 --out plan.jsonl",
    ),
    "gold check": ("judge gold check gold.jsonl --pool out/", "judge gold check split/ --json"),
    "gold import": (
        "judge gold import qrels response_groundedness.qrel --criterion groundedness --pool out/ --out gold.jsonl",
        "judge gold import csv grades.csv --column turn_id=turn --pool out/ --plan plan.jsonl --out gold.jsonl",
    ),
    "gold split": (
        "judge gold split gold.jsonl --test 0.5 --seed 1 --out split/",
        "judge gold split gold.jsonl --test 0.3 --seed 2026 --cluster theme --out split/",
    ),
    "gold sheet": (
        "judge gold sheet plan.jsonl --pool out/ --topics topics.json --to html --assessor ann --out ann/",
        "judge gold sheet plan.jsonl --pool out/ --to mturk --items-per-task 3 --out batch/",
    ),
    "gold plan": (
        "judge gold plan --pool out/ --n 200 --seed 1 --out plan.jsonl",
        "judge gold plan --pool out/ --judgments out/ --gold gold.jsonl --n 100 --seed 2 --out next.jsonl",
    ),
    "leaderboard": (
        "judge leaderboard out/",
        "judge leaderboard out/ --gold gold.jsonl --out corrected/",
    ),
    "plan": (
        "judge plan out/ --half-width 0.1",
        "judge plan out/ --gold gold.jsonl --criterion groundedness --difference 0.2 --json",
    ),
    "crowd": (
        "judge crowd labels.csv --scale 0-3 --known known.tsv --out crowd/",
        "judge crowd labels.csv more.csv --scale relevance=0-3 --scale fluency=0-2 --bank out/ --out crowd/",
    ),
    "drift": (
        "judge drift out-2025/ out-2026/ --margin 0.1",
        "judge drift before/judgments.jsonl after/judgments.jsonl --margin 0.1 --json",
    ),
    "calibrate": (
        "judge calibrate --gold gold.jsonl --judgments out/",
        "judge calibrate --gold split/ --test split/ --pool out/ --model openai/gpt-4.1-mini "
        "--prompt groundedness/graded --prompt my.md --out cal/",
        "judge calibrate --gold gold.jsonl --judgments a/ b/ --require 'wkappa.lo>=0.4' --out cal/",
    ),
    "completion": ("judge completion bash", "judge completion fish"),
}
"""Examples of every command and action of the core, for the end of its help."""
