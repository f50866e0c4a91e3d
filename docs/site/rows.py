"""What is held as rows: codes of problems, reasons of missing grades, run formats, prompts, judge cards."""

import inspect
import re

import judge.records
from docs.site.markdown import cell, code, escaped, facts, fenced, table
from docs.site.pages import DOCS
from judge.ask.criteria import bundled_criteria, default_prompts
from judge.extra.bench import DATASETS
from judge.extra.bench.card import parse_card
from judge.extra.bench.page import CardsPlan, card_page, compare_bench
from judge.records import Criterion, Level
from judge.report.sections import EXCLUDED
from judge.runs.check import SECTIONS
from judge.runs.formats import FORMATS, format_of, rules_of
from judge.runs.formats.table import FORMAT
from judge.runs.formats.table_columns import USUAL


def row_pages() -> dict[str, str]:
    """The pages of codes, data sets, formats and prompts."""
    return {
        "reference/codes.md": _codes(),
        "reference/datasets.md": _datasets(),
        "reference/formats.md": _formats(),
        "reference/prompts.md": _prompts(),
    }


def card_pages(opening: str) -> dict[str, str]:
    """The judge cards, and below the words of their first page the tables that set them side by side."""
    folder = DOCS / "cards"
    cards = {path.parent.name: path for path in sorted(folder.glob("*/card.json"))}
    grids = compare_bench(CardsPlan(cards=[folder]))
    tables = "\n\n".join(grid.markdown().rstrip() for grid in grids)
    return {"cards/index.md": f"{opening}\n{tables}\n"} | {
        f"cards/{name}/card.md": card_page(parse_card(path.read_bytes(), str(path))) for name, path in cards.items()
    }


def reasons() -> dict[str, str]:
    """Why a judgment is missing, by reason, from the docstring of the type."""
    source = inspect.getsource(judge.records)
    found = re.search(r'^FailureReason = .*?"""(.*?)"""', source, re.MULTILINE | re.DOTALL)
    text = " ".join((found[1] if found else "").split("\n\n", 1)[1].split())
    pairs = re.findall(r"((?:[a-z_]+, )*[a-z_]+): (.*?\.)(?= [a-z_]+[,:] ?|$)", text)
    return {name: meaning for names, meaning in pairs for name in names.split(", ")}


def _codes() -> str:
    parts = [
        "# Codes and reasons\n\n`judge validate` gives each problem of a run a code; "
        "[Validation](../validation.md) says how they differ from the official validators. An error cannot be "
        "judged; a warning is judged, but it breaks the guidelines. The columns of years say what the validator of "
        "iKAT did: E, the file ends with an error; W, a warning; –, it is accepted; nothing where the year's "
        "format has no such thing.",
    ]
    header = ("code", "severity", "meaning", "2023", "2024", "2025", "advice to the team", "`--fix`")
    for section, rows in SECTIONS.items():
        cells = [
            (code(name), row.severity, cell(row.meaning), *row.official, cell(row.advice), cell(row.fix))
            for name, row in rows.items()
        ]
        parts += [
            f"## {section}",
            table(header, cells),
        ]
    parts += [
        "## Why a response is not judged",
        "The reasons of `excluded.tsv`, beside the codes of errors and the flags of the screen (`screen_<code>`); "
        "[Pooling](../pooling.md) explains them.",
        table(("reason", "meaning"), [(code(name), cell(meaning)) for name, meaning in EXCLUDED.items()]),
        "## Why a judgment is missing",
        "A failure is never a grade. `failures.jsonl` has the reason and the raw reply of each.",
        table(("reason", "meaning"), [(code(name), cell(meaning)) for name, meaning in reasons().items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _datasets() -> str:
    header = ("name", "what", "criterion", "scale", "positive", "n", "unit", "rung", "licence", "how to get it")
    rows = [
        (
            *(code(each.name), cell(each.title), each.criterion, f"{each.grades[0]}-{each.grades[-1]}"),
            *(", ".join(map(str, each.positive)), f"{each.size:,}", each.unit, each.rung or "–"),
            *(cell(each.licence), cell(each.source)),
        )
        for each in DATASETS.values()
    ]
    return (
        "# Data sets\n\nThe public labels that `judge bench` reads; [Bench](../bench.md) says what they mean. *n* is "
        "the number of labeled responses of the whole release. A judge is worth its price above the first rung.\n\n"
        f"{table(header, rows)}\n"
    )


_NUMBER_OF_STATEMENTS = {"numbers": "by number", "objects": "by number, text and score", "texts": "by text", None: "–"}


def _formats() -> str:
    parts = [
        "# Run formats\n\nA format is recognized by its content, in this order. `--format NAME` names it instead. "
        "[Validation](../validation.md) says what is checked; [Converting](../convert.md) what can be converted."
    ]
    for name in FORMATS:
        rules = rules_of(name)
        form = {
            "document": "one JSON object",
            "lines": "JSON Lines, one turn a line",
            "entries": "a JSON array or JSON Lines, a turn each",
            "pool": "a pool beside its bank",
            "table": "a table, an answer a row",
            "list": "lines, one for each passage of a turn",
        }
        pairs = [
            ("file", form[rules.form]),
            ("run id", code(rules.run_id)),
            ("turns", code(rules.turns) if rules.turns else "–"),
            ("run type", code(rules.run_type) if rules.run_type else "–"),
            ("run types", ", ".join(map(code, rules.run_types)) or "–"),
            ("run types without scores", ", ".join(map(code, rules.scoreless)) or "–"),
            ("passages", code(rules.passages) if rules.passages else "–"),
            ("says which passages it used", "yes" if rules.flags_used else "no"),
            ("has its own conversations", "yes" if rules.own_turns else "no"),
            ("names PTKB statements", _NUMBER_OF_STATEMENTS[rules.ptkb]),
            ("passage ids", code(_readable(rules.passage_id)) if rules.passage_id else "–"),
            ("year of the track", str(rules.year or "–")),
        ]
        about = format_of(name).about
        parts += [f"## {code(name)}", escaped(about), facts(pairs)]
        if name == FORMAT:
            usual = [(code(role), ", ".join(map(code, names))) for role, names in USUAL.items()]
            parts += [
                "What each column is for, and the names by which it is found; small letters and capitals, spaces and "
                "hyphens are the same. [Judge your own answers](../how-to/your-own-answers.md) leads through it.",
                table(("role", "usual names"), usual),
            ]
    return "\n\n".join(parts) + "\n"


def _readable(pattern: re.Pattern[str]) -> str:
    """A pattern without the marks that only save time."""
    return re.sub(r"(?<=[}+])\+", "", pattern.pattern)


def _prompts() -> str:
    parts = [
        "# Prompts\n\nThe prompts that come with judge. A criterion that is named without a variant means "
        f"{', '.join(map(code, sorted(default_prompts().values())))}. [Prompts](../prompts.md) says how to write one."
    ]
    for criterion in bundled_criteria():
        parts += _prompt(criterion)
    return "\n\n".join(parts) + "\n"


_ANSWERS = {
    "grade": "one grade",
    "sentences": "a label for each sentence",
    "nuggets": "a list of nuggets, and a grade that says whether there are any",
}


def _prompt(criterion: Criterion) -> list[str]:
    scale = criterion.scale
    pairs = [
        ("a judge may see", ", ".join(map(code, criterion.inputs))),
        ("answer", _ANSWERS[criterion.answer]),
        ("good end", {"higher": "the highest grade", "lower": "the lowest grade"}[scale.polarity]),
        ("positive grades", ", ".join(map(str, scale.positive))),
        ("version, digest", f"{criterion.version}, {code(criterion.digest[:12])}"),
    ]
    parts = [f"## {code(criterion.prompt_id)}", facts(pairs)]
    if criterion.sentence_levels:
        parts += ["Labels of a sentence:", _levels(criterion.sentence_levels)]
    parts += ["Levels:", _levels((*scale.levels, *((scale.unable,) if scale.unable else ())))]
    return [*parts, "System message:", fenced(criterion.system), "User message:", fenced(criterion.user)]


def _levels(levels: tuple[Level, ...]) -> str:
    rows = [(str(level.grade), code(level.label), cell(level.description)) for level in levels]
    return table(("grade", "label", "meaning"), rows)
