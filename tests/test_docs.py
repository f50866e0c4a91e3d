"""What the documents say about the command line is true."""

import argparse
import contextlib
import functools
import inspect
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import judge
from judge.cli import COMMANDS, GENERAL, command_parser, functions_of, main
from judge.cli.declared import _plan_of
from judge.cli.demo import write_example
from judge.cli.parser import EXAMPLES
from judge.io.plan import shape_of
from tests.conftest import PROJECT
from tests.extra.desk.visiting import label_at_once
from tests.mock import Mock
from tests.reader import JUDGE, MADE, blocks, commands, provide, told_files

DOCUMENTS = [
    path.relative_to(PROJECT).as_posix()
    for folder, pattern in (
        (".", "*.md"),
        ("docs", "**/*.md"),
        ("examples", "*.md"),
        ("gold", "*.md"),
        ("skills", "**/*.md"),
    )
    for path in sorted((PROJECT / folder).glob(pattern))
    if "_build" not in path.parts
]

READ_FIRST = [name for name in DOCUMENTS if name.startswith(("docs/tutorial", "docs/how-to/", "docs/explanation/"))]
"""Pages that show what their commands print; `test_tutorial.py` carries them out."""


def test_every_file_names_the_version_that_is_published() -> None:
    lines = {"CITATION.cff": "version: {}", ".zenodo.json": '  "version": "{}",', "CHANGELOG.md": "## [{}]"}
    for name, line in lines.items():
        assert line.format(judge.__version__) in (PROJECT / name).read_text(encoding="utf-8").splitlines(), name


@functools.cache
def options_of(command: str) -> set[str]:
    parser = command_parser(command)
    names = {name for action in parser._actions for name in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            names |= {name for sub in action.choices.values() for one in sub._actions for name in one.option_strings}
    return names


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_and_option_in_a_document_exists(document: str) -> None:
    text = (PROJECT / document).read_text(encoding="utf-8")
    for command, rest in re.findall(
        r"^[ `]*(?:\.venv/bin/)?judge ((?:batch|completions|evaluate|nuggets|serve) [a-z-]+|[a-z]+)"
        r"([^\n`|]*)",
        text,
        re.MULTILINE,
    ):
        assert command in {*COMMANDS, "help"}, f"judge {command}"
        for option in re.findall(r"(?<![\w-])--[a-z-]+", rest):
            assert option in options_of(command) | {"--help"}, f"judge {command} {option}"
    run_options = options_of("run")
    for option in re.findall(r"`(--[a-z-]+)", text):
        known = run_options.union(*(options_of(command) for command in COMMANDS))
        assert option in known | {"--help", "--group", *re.findall(r"--[a-z-]+", GENERAL)}, option


OUTPUTS = {"out", "report_dir", "save_config", "store", "requests"}
"""Options that name what is written; any other path is read."""

ONLY_READ = {
    "make demo": "a fresh environment is made",
    "make test": "it is this very test",
    "python3 -m venv .venv": "a fresh environment is made",
    ".venv/bin/pip install -e '.[all]'": "packages are fetched",
    ". .venv/bin/activate": "likewise",
    ".venv/bin/judge demo": "test_extras.py runs it",
    ".venv/bin/pip install --upgrade 'pip>=25.1' && .venv/bin/pip install -e '.[all]' --group dev": "packages are "
    "fetched",
    ".venv/bin/judge models pull smollm2-135m && .venv/bin/python -m pytest": "the weights of a model are fetched",
    "judge bench --data data/ --model local/smollm2-135m --limit 50 --threads 2 --dataset begin-wow begin-cmu "
    "attributionbench faithbench summedits --out local-smollm2-135m/": "the weights of a model are fetched",
    "judge batch submit round-1/": "no batch API is here; tests/extra/scale/test_batches.py plays one",
    "judge batch status round-1/": "likewise",
    "judge batch collect round-1/ --out out/": "likewise",
    "judge completions import output.jsonl errors.jsonl --requests round-1/ --out out/": "no engine has brought "
    "anything back; tests/extra/scale/test_batches.py plays one",
    "judge run --runs runs/ --topics topics.json --passages passages.jsonl --model server/MODEL --base-url "
    "http://gpu:8000/v1 --engine ray --workers 4 --out out/": "no such server is here; test_ray_runs.py "
    "has one, and a cluster",
    "judge run --runs runs/ --topics topics.json --passages passages.jsonl --model server/MODEL --base-url "
    "http://gpu:8000/v1 --engine ray --address head:6379 --out out/": "likewise",
    r"""awk -F '\t' -v OFS='\t' 'NR > 1 && $7 != "" {print $6, "grade@1", $7}' pairs/ratings.tsv > ratings""": (
        "test_pairs.py runs it, and the next one"
    ),
    "judge evaluate responses out --format ir_measures --board ratings": "likewise",
}
"""The lines of the pages that no test carries out, and why; each must still be a line of a page."""


NOT_CARRIED_OUT = {
    "demo": "test_extras.py runs it, and --full fetches weights",
    "models": "the weights of a model are fetched",
    "models pull": "the weights of a model are fetched",
    "batch": "no batch API is here",
    "batch submit": "no batch API is here",
    "batch status": "no batch API is here",
    "batch collect": "no batch API is here",
    "completions import": "no engine has brought anything back",
}
"""The commands whose examples no test carries out, and why."""

REFUSED = {
    "judge calibrate --gold LLMJudge/llmjudge_test.qrel --judgments LLMJudge-benchmark/*.txt "
    "--criterion passage_relevance --out out/llmjudge": 2,
    # Nothing has come back from the first round here.
    "judge requests --runs runs/ --topics topics.json --passages passages.jsonl --model openai/gpt-4.1-mini "
    "--out out/ --requests round-2/": 2,
    # The assessors of these tests agree on everything.
    "judge serve assess --pool out --plan plan.jsonl --topics examples/topics.json --seed 1 --store labels.sqlite "
    "--adjudicate --assessor dee": 2,
    # Nobody has labeled anything here.
    "judge serve assess --pool out/ --plan plan.jsonl --assessor dee --store labels.sqlite --adjudicate": 2,
}
"""The lines that fail as their page says, with the exit code."""


def page_blocks(document: str) -> list[tuple[str, str]]:
    return blocks((PROJECT / document).read_text(encoding="utf-8"))


def parsed(command: str) -> argparse.Namespace:
    """What the command line makes of a line of a document; it must take the line as it stands."""
    words = shlex.split(command, comments=True)
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name = " ".join(words[:length])
    args = command_parser(name).parse_args(words[length:])
    function = functions_of(name)[1][getattr(args, "action", "")]
    for parameter in inspect.signature(function).parameters.values():
        for field, declared in _plan_of(parameter).model_fields.items():
            if shape_of(declared).of is Path and hasattr(args, field):
                value = getattr(args, field)
                setattr(args, field, list(map(Path, value)) if isinstance(value, list) else Path(value))
    return args


def put_there(command: str, document: str) -> None:
    """Make what a command reads and nobody has made yet."""
    values = {name: value if isinstance(value, list) else [value] for name, value in vars(parsed(command)).items()}
    for name in sorted(values.keys() - OUTPUTS):
        for path in values[name]:
            if (isinstance(path, Path) and not path.exists()) or (
                path in MADE and "." in path and not Path(path).exists()
            ):
                path = Path(path)
                assert provide(path.as_posix(), document), f"{document}: judge {command}: there is no {path}"


def carried_out(line: str, document: str) -> int:
    """The exit code of a command line; one of `judge` alone is carried out here, without a process of its own."""
    first, _, command = line.partition(" ")
    words = shlex.split(command)
    if first == "judge":
        put_there(" ".join(itertools.takewhile(lambda word: word not in SHELL, command.split())), document)
    if first == "cd":
        os.chdir(words[0])
        return 0
    if first != "judge" or SHELL & set(words):
        program = f'judge() {{ {shlex.quote(sys.executable)} -m judge "$@"; }}\n{line}'
        surroundings = os.environ | {"PYTHONPATH": str(PROJECT)}
        return subprocess.run(["bash", "-c", program], env=surroundings, check=False).returncode
    spread = ([path.as_posix() for path in sorted(Path().glob(word))] if "*" in word else [word] for word in words)
    return main(list(itertools.chain.from_iterable(spread)))


SHELL = {"|", ">", ">>", "&&", "||"}


@pytest.fixture
def reader(mock: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader beside the example, who has a key for a model."""
    monkeypatch.setattr("judge.judges.backends.openai.USUAL", f"http://127.0.0.1:{mock.port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-reader")
    monkeypatch.setenv("JUDGE_MODEL", JUDGE)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    label_at_once(monkeypatch)
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if page_blocks(name) and name not in READ_FIRST])
def test_the_blocks_of_a_document_run_in_order(document: str, reader: None) -> None:
    """Each command line and each block of Python is carried out, on the files of `tests/reader.py`."""
    for name, content in told_files((PROJECT / document).read_text(encoding="utf-8")):
        Path(name).write_text(content, encoding="utf-8")
    namespace: dict[str, object] = {}
    for language, block in page_blocks(document):
        if language == "python":
            exec(compile(block, document, "exec"), namespace)
        lines = commands(block) if language == "sh" else re.findall(r"run: (judge .+)", block)
        for line in lines:
            if line in ONLY_READ:
                continue
            assert carried_out(line, document) in (REFUSED.get(line, 0), 1), f"{document}: {line}"


@pytest.mark.long
@pytest.mark.parametrize("typed", [typed for typed in EXAMPLES if typed not in NOT_CARRIED_OUT])
def test_the_examples_of_a_command_run(typed: str, reader: None) -> None:
    """The lines at the end of `--help`, which the page of the command shows: each beside the files of a reader."""
    for place, line in enumerate(EXAMPLES[typed]):
        folder = Path(f"{place}").absolute()
        folder.mkdir()
        with contextlib.chdir(folder):
            assert carried_out(line, f"judge {typed}") in (REFUSED.get(line, 0), 1), line


def test_every_block_is_of_a_kind_that_is_known() -> None:
    """Commands (of workflows too) and Python are carried out; the others are output, code, and a file of options."""
    kinds = {language for document in DOCUMENTS for language, _ in page_blocks(document)}
    assert kinds <= {"sh", "yaml", "python", "text", "diff", "toml"}


def test_no_line_is_left_out_that_is_on_no_page() -> None:
    shown = {line for document in DOCUMENTS for language, block in page_blocks(document) if language == "sh"
             for line in commands(block)}  # fmt: skip
    assert ONLY_READ.keys() - shown == set()


def test_the_flow_in_the_package_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROJECT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    flow = "".join(re.findall(r"^    .*\n", judge.__doc__ or "", re.MULTILINE))
    namespace: dict[str, object] = {name: getattr(judge, name) for name in judge.__all__}
    exec(textwrap.dedent(flow), namespace)
    assert isinstance(namespace["rows"], judge.Table)
    assert {row.run_id for row in namespace["rows"]} >= {"harbor-grounded", "mill-fluent-invented"}


def test_the_program_of_the_package_ends_with_the_code_of_its_command() -> None:
    done = subprocess.run([sys.executable, "-m", "judge", "absent"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 2)


def test_a_closed_pipe_is_no_error() -> None:
    pipe = f"{sys.executable} -m judge prompts show groundedness/graded | true"
    process = subprocess.run(pipe, shell=True, capture_output=True, text=True, check=False)
    assert process.stderr == ""


def test_the_skill_says_when_an_agent_should_load_it() -> None:
    """Its commands are checked and carried out as those of every page."""
    skill = "skills/judge/SKILL.md"
    assert skill in DOCUMENTS
    text = (PROJECT / skill).read_text(encoding="utf-8")
    found = re.match(r"---\nname: (judge)\ndescription: (.{80,1024})\n---\n", text)
    assert found is not None and "Use when" in found[2]
    assert skill in (PROJECT / "README.md").read_text(encoding="utf-8")
