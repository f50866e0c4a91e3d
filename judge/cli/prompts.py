"""List the bundled prompts, show one, check prompt files of your own, or give one examples or cuts."""

from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from judge.ask import criteria as bundled
from judge.ask.prompt import OF_NUGGETS, render
from judge.ask.records import Task
from judge.cli.declared import JsonOutput
from judge.cli.printing import progress, show
from judge.errors import InputError
from judge.io.plan import Option, Options
from judge.io.printout import Printout
from judge.io.table import Column, Table
from judge.io.text import count, nearest, number
from judge.jobs.cuts import CutsPlan, add_cuts
from judge.jobs.examples import ExamplesPlan, add_examples
from judge.judges.records import AnswerForm
from judge.pool.records import PooledResponse
from judge.records import Criterion, Passage, file_problem
from judge.runs.records import Exchange, PtkbStatement, TokenCount, Turn

_HEADER = ("PROMPT", "SCALE", "POSITIVE", "ANSWER", "DEFAULT", "DIGEST", "INPUTS")

_WORDS = 12
"""The most characters of a scale of words in the table."""


def list_prompts(output: JsonOutput) -> int:
    """One line for every bundled prompt."""
    default = set(bundled.default_prompts().values())
    rows = [_row(criterion, criterion.prompt_id in default) for criterion in bundled.bundled_criteria()]
    table: Table[Any] = Table(rows=map(_cells, rows), columns=[Column(name, empty="", safe=True) for name in _HEADER])
    return show(Printout(data=rows, parts=(table,)), as_json=output.as_json)


class PromptPlan(Options):
    """The options of `judge prompts show`."""

    prompt: Annotated[str, Option(metavar="NAME|PATH", place="only")]
    """Criterion, criterion/variant, or a prompt file."""
    rendered: bool = False
    """As a judge sees it, with a sample response."""
    form: Literal["json", "text", "label"] = "json"
    """Answer form of --rendered."""


def show_prompt(plan: PromptPlan) -> int:
    """The text of a prompt."""
    criterion = bundled.find_criterion(plan.prompt)
    if plan.rendered:
        print(_rendered(criterion, plan.form))
        return 0
    plan.refuse_unused(["form"], "it is about --rendered")
    print(bundled.prompt_path(plan.prompt).read_text(encoding="utf-8").rstrip("\n"))
    return 0


_FILE = Field(description="A prompt file.")


def check(paths: Annotated[tuple[Path, ...], _FILE, Option(metavar="PATH", place="only")], output: JsonOutput) -> int:
    """List every problem of prompt files; 1 if a checked file is not a valid prompt."""
    checked = [_check(path) for path in paths]
    whole = Printout(
        data=[printout.data for printout in checked],
        parts=tuple(chain.from_iterable(printout.parts for printout in checked)),
        legend=tuple(chain.from_iterable(printout.legend for printout in checked)),
        exit=max(printout.exit for printout in checked),
    )
    return show(whole, as_json=output.as_json)


def give_examples(plan: ExamplesPlan, output: JsonOutput) -> int:
    """Write a prompt with graded responses as examples.

    They are chosen from gold of dev topics: the grades take turns, what a judge graded otherwise (--judgments) comes
    first. `judge calibrate` and the corrected leaderboard leave them out.
    """
    with progress("choosing examples"):
        chosen = add_examples(plan)
    criterion = chosen.criterion
    listed = [
        {"turn_id": example.turn_id, "response_sha256": example.response_sha256, "grade": example.grade}
        for example in criterion.examples
    ]
    grades = ", ".join(str(example.grade) for example in criterion.examples)
    number = count(len(criterion.examples), "example")
    disagreed = f", {chosen.disagreements} of them graded otherwise by the judge" if plan.judgments else ""
    whole = Printout(
        data={"file": str(plan.out), "prompt": criterion.prompt_id, "digest": criterion.digest, "examples": listed},
        parts=(
            (
                f"{plan.out}: {number} of {chosen.eligible}, with grades {grades}{disagreed}: "
                f"{criterion.prompt_id}, digest {criterion.digest[:12]}",
            ),
        ),
        warnings=tuple(f"warning: {warning}" for warning in chosen.warnings),
    )
    return show(whole, as_json=output.as_json)


def give_cuts(plan: CutsPlan, output: JsonOutput) -> int:
    """Write a prompt with cut points of expected grades, fitted to gold.

    They are fitted to judgments that are there, by cross-validation over dev topics, and need no new call: the same
    replies get other grades under the new prompt. 1 if they gain nothing; then nothing is written.
    """
    with progress("fitting cuts"):
        outcome = add_cuts(plan)
    found = outcome.found
    criterion = outcome.criterion
    facts = {
        "judge": f"{outcome.judge} under {outcome.prompt}",
        "responses": f"{found.n:,} of {count(found.topics, 'dev topic')}",
        **({"without probabilities": f"{found.without:,}, failures under cuts"} if found.without else {}),
        "statistic": found.statistic,
        "as judged": number(found.judged),
        **{f"cuts {kind}": f"{number(value)} on other topics" for kind, value in found.validated.items()},
        "chosen": f"{found.kind}: {', '.join(f'{cut:g}' for cut in found.cuts)}",
        "on the fitted topics": number(found.fitted),
        "on other topics": f"{number(found.nested)}, the choice repeated; optimism {number(found.optimism)}",
        "gain": number(found.gain, signed=True),
    }
    written = "nothing is written: the cuts gain nothing on other topics"
    if criterion is not None:
        written = f"{plan.out}: {criterion.prompt_id}, digest {criterion.digest[:12]}"
    data = {
        "file": str(plan.out) if criterion else None,
        "prompt": criterion.prompt_id if criterion else None,
        "digest": criterion.digest if criterion else None,
        "judge": outcome.judge,
        **msgspec.structs.asdict(found),
        "optimism": found.optimism,
        "gain": found.gain,
    }
    whole = Printout(
        data=data,
        parts=(facts, (written,)),
        warnings=tuple(f"warning: {warning}" for warning in outcome.warnings),
        exit=0 if criterion else 1,
    )
    return show(whole, as_json=output.as_json)


def _row(criterion: Criterion, default: bool) -> dict[str, Any]:
    scale = criterion.scale
    return {
        "prompt": criterion.prompt_id, "default": default,
        "levels": {level.label: level.grade for level in scale.levels},
        "unable": scale.unable.grade if scale.unable else None, "polarity": scale.polarity,
        "positive": list(scale.positive), "unit": criterion.unit, "inputs": list(criterion.inputs),
        "answer": criterion.answer, "version": criterion.version, "digest": criterion.digest,
    }  # fmt: skip


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["prompt"],
        _scale(row),
        ",".join(map(str, row["positive"])),
        row["answer"],
        "yes" if row["default"] else "",
        row["digest"][:12],
        ",".join(row["inputs"]),
    )


def _scale(row: dict[str, Any]) -> str:
    """`0-3` where labels are grades, `yes=1 no=0` where they are short words, else `-1 to 2`; `/ -1` for unable."""
    levels: dict[str, int] = row["levels"]
    plain = all(label == str(grade) for label, grade in levels.items())
    grades = levels.values()
    words = " ".join(f"{label}={grade}" for label, grade in levels.items())
    if plain:
        text = f"{min(grades)}-{max(grades)}"
    else:
        text = words if len(words) <= _WORDS else f"{min(grades)} to {max(grades)}"
    direction = "" if row["polarity"] == "higher" else " (lower is better)"
    return text + (f" / {row['unable']}" if row["unable"] is not None else "") + direction


def _rendered(criterion: Criterion, form: AnswerForm) -> str:
    """The messages about the sample response, each under a line with its role."""
    passages = {passage.passage_id: passage for passage in _PASSAGES}
    # Of a dialogue the sample response is the last one.
    response = msgspec.structs.replace(_RESPONSE, unit=criterion.unit, second=_CANDIDATES[1])
    task = Task(response, criterion, nugget=_NUGGET, known=(_NUGGET,), candidates=_CANDIDATES)
    request = render(task, passages, _TURN, form)
    return "\n\n".join(f"--- {message.role} ---\n{message.content}" for message in request.messages)


def _check(path: Path) -> Printout:
    """The problems of a file, or that it has none; the exit code is 1 if it has any."""
    try:
        criterion = bundled.load_criterion(path)
    except InputError as error:
        lines = [f"  {problem.path}: {problem.code}: {problem.message}" for problem in error.problems]
        problems = error.problems or (file_problem("unreadable_file", path, str(error)),)
        return Printout(
            data={"file": str(path), "prompt": None, "digest": None, "problems": problems},
            parts=((str(error), *lines),),
            exit=1,
        )
    name = criterion.name
    names = bundled.criterion_names()
    legend: tuple[str, ...] = ()
    if name not in (*names, *OF_NUGGETS):
        meant = nearest(name, names)
        near = (
            f"{path}: warning: the criterion {name} is close to {meant}, which comes with judge; the grades of "
            "different criteria are never compared"
        )
        legend = (near if meant else f"{path}: the criterion {name} is new: none of {', '.join(names)}",)
    return Printout(
        data={"file": str(path), "prompt": criterion.prompt_id, "digest": criterion.digest, "problems": []},
        parts=((f"{path}: good: {criterion.prompt_id}, digest {criterion.digest[:12]}",),),
        legend=legend,
    )


_PASSAGES = (
    Passage("sample-1", "Lake Brenn thaws in late April. Its water stays below 12 degrees until June.", "collection"),
    Passage("sample-2", "The lake's only beach, at Oss, has lifeguards from June to August.", "collection"),
)
_TEXT = "In May the water is still below 12 degrees. There are lifeguards at Oss all year. Do you like cold water?"
_USED = tuple(passage.passage_id for passage in _PASSAGES)
_RESPONSE = PooledResponse(
    response_id="R00000",
    turn_id="1-1_2",
    topic_id="1-1",
    text=_TEXT,
    passages=_USED,
    tokens=TokenCount(20, 24, 21, None),
    truncated=False,
    runs=(),
)
_NUGGET = "Lifeguards are at the beach of Oss from June to August."
_CANDIDATES = ("Nobody guards the beach of Oss in May.", "The lake has fewer than 12 degrees in May.")
_TURN = Turn(
    turn_id="1-1_2",
    topic_id="1-1",
    utterance="Can I swim there in May?",
    resolved_utterance="Can I swim in Lake Brenn in May?",
    context=(Exchange("Which lakes are near Oss?", "Lake Brenn is the nearest one."),),
    ptkb=(PtkbStatement("1", "I am afraid of deep water."),),
)

COMMANDS = {
    "prompts": {"list": list_prompts, "show": show_prompt, "check": check, "examples": give_examples, "cuts": give_cuts}
}
