"""Disagreements as files: a line of JSON for each, read back too, and a report of the worst to read. Pure."""

from collections.abc import Iterator, Sequence

from judge.ask.blocks import NO_ANSWER
from judge.calibrate.disagreements import Disagreement, JudgeGrade
from judge.calibrate.report.lookup import of
from judge.errors import InputError
from judge.io.cells import count, name_of, number, prose, quotation, table
from judge.io.line_stream import decode_lines, jsonl_bytes
from judge.records import Problem

DISAGREEMENTS, REPORT = "disagreements.jsonl", "disagreements.md"
MOST_SHOWN = 50
"""Disagreements of a criterion that the report shows; the lines have all of them."""
_LONGEST = 2000
"""Characters of one text that the report shows."""
_EXCHANGES = 3
"""Earlier exchanges that the report shows."""


def disagreement_files(found: Sequence[Disagreement], graded: int) -> dict[str, bytes]:
    """The content of both files by name; they are there if nobody disagrees, too.

    Args:
        found: The disagreements, worst first.
        graded: The gold items outside the test part, the agreed ones included.
    """
    return {DISAGREEMENTS: jsonl_bytes(found), REPORT: disagreements_markdown(found, graded).encode()}


def parse_disagreements(content: bytes, name: str) -> tuple[Disagreement, ...]:
    """The disagreements in the bytes of a file of lines, in their order.

    Args:
        content: The bytes, not gzipped.
        name: The file's name, for messages.

    Raises:
        InputError: Some lines are none; every such line is listed.
    """
    found: list[Disagreement] = []
    problems: list[Problem] = []
    for place, row in decode_lines(content, Disagreement, name, "not_a_disagreement"):
        if isinstance(row, Problem):
            problems.append(row)
        elif row.judges:
            found.append(row)
        else:
            where, expected = f"line {place}: $.judges", "expected one judge or more"
            problems.append(Problem("not_a_disagreement", "error", name, row.turn_id, where, expected))
    if problems:
        raise InputError(
            f"{name}: {count(len(problems), 'line')} not as `judge calibrate` writes {DISAGREEMENTS}", problems
        )
    return tuple(found)


def disagreements_markdown(found: Sequence[Disagreement], graded: int) -> str:
    """The report of the worst disagreements of each criterion, every text of others without markup."""
    return "\n\n".join(_blocks(found, graded)) + "\n"


def _blocks(found: Sequence[Disagreement], graded: int) -> Iterator[str]:
    yield "# Where judges and assessors disagree"
    yield (
        f"On {len(found)} of {count(graded, 'item')} with gold, a judge's grade is not the assessors', or is missing. "
        "The worst come first: by the greatest distance between a judge's grade and the assessors', then by the number "
        "of judges that err. Items of a test part are never shown here."
    )
    if found and all(item.text is None for item in found):
        yield "The texts are not known: `--pool` names the pool that has them."
    elif found and all(item.utterance is None for item in found):
        yield "The conversations are not known: `--topics` names the topics file that has them."
    for criterion in dict.fromkeys(item.criterion for item in found):
        yield from _chapter(criterion, of(found, criterion))


def _chapter(criterion: str, found: Sequence[Disagreement]) -> Iterator[str]:
    yield f"## {name_of(criterion)}"
    directions = [_directions([item.judges[place] for item in found]) for place in range(len(found[0].judges))]
    yield table(
        ["judge", "higher", "lower", "no grade"],
        ([_name(judge), *map(str, counts)] for judge, counts in zip(found[0].judges, directions, strict=True)),
    )
    for place, item in enumerate(found[:MOST_SHOWN], 1):
        yield from _item(place, item)
    if (more := len(found) - MOST_SHOWN) > 0:
        yield f"{more:,} more under {name_of(criterion)} are in `{DISAGREEMENTS}`."


def _directions(given: Sequence[JudgeGrade]) -> tuple[int, int, int]:
    differences = [judge.difference for judge in given]
    missing = differences.count(None)
    high = sum(difference is not None and difference > 0 for difference in differences)
    return high, len(differences) - missing - high - differences.count(0), missing


def _item(place: int, item: Disagreement) -> Iterator[str]:
    apart = "no grade by a judge"
    if item.distance:
        apart = "positive or not" if item.compared == "positive" else f"{count(item.distance, 'grade')} apart"
    yield f"### {place}. {name_of(item.turn_id)} {name_of(item.response_id)}: {apart}"
    columns = 3 + any(judge.reason for judge in item.judges)
    header = ["who", "grade", "difference", "why none"][:columns]
    yield table(header, (row[:columns] for row in _grades(item)), words=(0, 3))
    for judge in item.judges:
        if judge.rationale is not None:
            yield f"**Rationale of {_name(judge)}**"
            yield _quoted(judge.rationale)
    if item.utterance is not None:
        yield "**The user asks**"
        yield _quoted(item.utterance)
        if item.context:
            shown = item.context if item.unit == "dialogue" else item.context[-_EXCHANGES:]
            left = len(item.context) - len(shown)
            yield (
                f"**Before that** (the last {len(shown)} of {count(len(item.context), 'exchange')})"
                if left
                else ("**Before that**")
            )
            yield "\n>\n".join(
                f"{_quoted(f'User: {exchange.utterance}')}\n>\n{_quoted(f'System: {exchange.response}')}"
                for exchange in shown
            )
    if item.text is not None:
        yield "**The last response**" if item.unit == "dialogue" else "**Response**"
        yield _quoted(item.text or NO_ANSWER)
    for passage in item.passages:
        yield f"**Passage {name_of(passage.id)}**"
        yield _quoted(passage.text) if passage.text is not None else "Its text is not known."


def _grades(item: Disagreement) -> Iterator[list[str]]:
    assessors = item.gold.assessors
    if len(assessors) > 1:
        yield ["**assessors' consensus**", str(item.gold.grade), "", ""]
    for given in assessors:
        made = "" if given.made == "blind" else f" ({given.made})"
        yield [f"assessor {name_of(given.assessor)}{made}", str(given.grade), "", ""]
    for judge in item.judges:
        expected = "" if judge.expected is None else f" (expected {number(judge.expected, 2)})"
        yield [
            _name(judge),
            "-" if judge.grade is None else f"{judge.grade}{expected}",
            "" if judge.difference is None else f"{judge.difference:+d}" if judge.difference else "same",
            prose(judge.reason or ""),
        ]


def _name(judge: JudgeGrade) -> str:
    return name_of(judge.judge if judge.prompt is None else f"{judge.judge} {judge.prompt.partition('/')[2]}")


def _quoted(text: str) -> str:
    if len(text) <= _LONGEST:
        return quotation(text)
    return f"{quotation(text[:_LONGEST])}\n>\n> … {len(text) - _LONGEST:,} more characters in `{DISAGREEMENTS}`"
