"""The bytes of a prompt file → Criterion, or every problem with its line or key. Pure.

A prompt file is TOML between two `+++` lines, then Markdown under the headings `# System` and `# User`. The variant's
name is the file's; the digest is that of the file's text, whatever its line ends and with or without a byte order mark.
pydantic, which is slow to load, checks the keys and their types, so this module is imported when a file is read.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ValidationError

from judge.ask.prompt import BLOCKS, EXAMPLES, NUGGET_CREATION, OF_NUGGETS, PLACEHOLDER, PLACEHOLDERS, TEXTS, one_line
from judge.errors import InputError
from judge.io.files import LARGEST_TOML, sha256
from judge.io.text import count
from judge.records import AnswerKind, Criterion, Example, JudgedUnit, Level, Rollup, Scale, file_problem
from judge.units import UNITS

_FENCE = "+++"
_SYSTEM = "# System"
_USER = "# User"
_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LABEL = re.compile(r"-?[A-Za-z0-9](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?")
_NUMBER = re.compile(r"-?[0-9]+")
_TOML_LINE = re.compile(r" ?\(at line ([0-9]+), column [0-9]+\)")

LONGEST_EXAMPLE = 6000
"""Most characters of the texts of an example."""
LONGEST_EXAMPLES = 24_000
"""Most characters of the texts of all examples of a prompt."""
_SHA256 = re.compile("[0-9a-f]{64}")

_Found = tuple[str, str, str]
"""A problem: the line or the key where it stands, its code, and its message."""


class SentenceFields(BaseModel, extra="forbid", strict=True):
    """The keys of a `[[sentence_level]]`; strict, so that `positive = ["2"]` is a problem and no guess."""

    label: str
    description: str


class LevelFields(BaseModel, extra="forbid", strict=True):
    """The keys of a `[[level]]` or of `[unable]`."""

    grade: int
    description: str
    label: str | None = None

    @property
    def level(self) -> Level:
        """The level; without a label of its own, a judge writes its grade."""
        return Level(self.grade, str(self.grade) if self.label is None else self.label, one_line(self.description))


class RollupFields(BaseModel, extra="forbid", strict=True):
    """The keys of `[rollup]`."""

    label: str
    cuts: list[tuple[float, int]]
    ignored: str | None = None


class ExampleFields(BaseModel, extra="forbid", strict=True):
    """The keys of an `[[example]]`."""

    turn_id: str
    response_sha256: str
    grade: int
    shown: dict[str, list[str]]
    comment: str | None = None

    def example(self, inputs: Sequence[str]) -> Example:
        """The example, with its texts in the order of the inputs."""
        return Example(
            turn_id=self.turn_id,
            response_sha256=self.response_sha256,
            grade=self.grade,
            shown=tuple((name, tuple(self.shown[name])) for name in inputs if name in self.shown),
            comment=self.comment,
        )


class FrontMatter(BaseModel, extra="forbid", strict=True):
    """The front matter as written, once its keys and types are right."""

    criterion: str
    version: int
    polarity: Literal["higher", "lower"]
    positive: list[int]
    inputs: list[str]
    answer: Literal["grade", "sentences", "nuggets"]
    level: list[LevelFields]
    unit: JudgedUnit = "response"
    unable: LevelFields | None = None
    sentence_level: list[SentenceFields] = []
    rollup: RollupFields | None = None
    cuts: list[float] = []
    example: list[ExampleFields] = []


_NO_EXAMPLES = (
    "the prompt shows examples, and the file has none: `judge prompts examples FILE --gold dev.jsonl --pool OUT --k 4 "
    "--out mine.md` writes it with some"
)


def parse_criterion(stored: bytes, variant: str, name: str, *, without_examples: bool = False) -> Criterion:
    """Check the bytes of a prompt file; `name` is the file, as messages name it.

    `without_examples`: a prompt that shows examples may have none yet.

    An InputError if there are problems; `problems` lists all of them, those of keys before those of lines.
    """
    problems: list[_Found] = []
    criterion = _read(stored, variant, name, problems)
    if criterion is not None and EXAMPLES in criterion.inputs and not (criterion.examples or without_examples):
        problems.insert(0, ("example", "prompt_example", _NO_EXAMPLES))
    if problems or criterion is None:
        listed = [file_problem(code, name, message, place) for place, code, message in problems]
        raise InputError(f"{name}: not a usable prompt, {count(len(listed), 'problem')}", listed)
    return criterion


def _read(stored: bytes, variant: str, file: str, problems: list[_Found]) -> Criterion | None:
    """The criterion in a file's bytes; useless if anything was added to `problems`."""
    try:
        text = stored.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = stored.count(b"\n", 0, error.start) + 1
        told = f"not UTF-8: {error.reason} at byte {error.start}; save the file as UTF-8"
        problems.append((f"line {line}", "prompt_syntax", told))
        return None
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(fences) < 2 or fences[0]:
        message = (
            "expected TOML front matter between a first line `+++` and a second line `+++`; "
            "`judge prompts show NAME > mine.md` writes a prompt to begin with"
        )
        problems.append(("line 1", "prompt_syntax", message))
        return None
    if not _VARIANT.fullmatch(variant):
        message = f"file name {variant!r} cannot name a variant: letters, digits, `_`, `-` and `.` only"
        problems.append(("line 1", "prompt_name", message))
    front = _front_matter("\n".join(lines[1 : fences[1]]), problems)
    inputs = None if front is None else front.inputs
    parts, body_problems = _body(lines, fences[1] + 1, inputs)
    if front is None:
        problems += body_problems
        return None
    problems += [*_front_problems(front), *body_problems]
    return Criterion(
        name=front.criterion,
        variant=variant,
        version=front.version,
        inputs=tuple(front.inputs),
        answer=front.answer,
        scale=Scale(
            levels=tuple(fields.level for fields in front.level),
            polarity=front.polarity,
            positive=tuple(sorted(front.positive)),
            unable=front.unable.level if front.unable else None,
        ),
        # The label of a sentence has no grade of its own; its place in the file takes that field.
        sentence_levels=tuple(
            Level(place, fields.label, one_line(fields.description))
            for place, fields in enumerate(front.sentence_level)
        ),
        rollup=Rollup(front.rollup.label, tuple(front.rollup.cuts), front.rollup.ignored) if front.rollup else None,
        system=parts.get(_SYSTEM, ""),
        user=parts.get(_USER, ""),
        file=file,
        digest=sha256(text.encode()),
        unit=front.unit,
        cuts=tuple(front.cuts),
        examples=tuple(fields.example(front.inputs) for fields in front.example),
    )


def _front_matter(text: str, problems: list[_Found]) -> FrontMatter | None:
    """The front matter, or None if its keys or types are wrong; these problems are added to `problems`."""
    if len(text) > LARGEST_TOML:
        message = f"{len(text):,} characters of front matter: at most {LARGEST_TOML:,} are read"
        problems.append(("line 1", "prompt_syntax", message))
        return None
    try:
        return FrontMatter.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except ValidationError as invalid:
        for detail in invalid.errors(include_url=False):
            key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).lstrip(".")
            found = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, found {detail['input']!r:.80}"
            words = {"missing": "is missing", "extra_forbidden": "is not a key of a prompt file"}
            problems.append((key, "prompt_field", words.get(detail["type"], found)))
    except (ValueError, RecursionError) as error:
        position = _TOML_LINE.search(str(error))
        # TOML counts its lines from after the opening fence.
        line = int(position[1]) + 1 if position else 1
        problems.append((f"line {line}", "prompt_syntax", f"not TOML: {_TOML_LINE.sub('', str(error))}"))
    return None


def _front_problems(front: FrontMatter) -> Iterator[_Found]:
    """What the types of the fields alone do not rule out."""
    if not _NAME.fullmatch(front.criterion):
        yield "criterion", "prompt_name", f"criterion {front.criterion!r} is not lower-case letters, digits and `_`"
    if front.version < 1:
        yield "version", "prompt_field", f"found {front.version}, expected 1 or more"
    if unknown := [name for name in front.inputs if name not in BLOCKS]:
        named = ", ".join(map(repr, unknown))
        yield "inputs", "prompt_input", f"unknown input {named}, expected some of {', '.join(BLOCKS)}"
    if len(set(front.inputs)) < len(front.inputs):
        yield "inputs", "prompt_input", f"found {front.inputs}: an input is named twice"
    yield from _unit_problems(front)
    yield from _nugget_problems(front)
    yield from _scale_problems(front)
    yield from (("cuts", "prompt_cuts", message) for message in _level_cut_problems(front))
    yield from _example_problems(front)
    if front.answer == "sentences":
        yield from _sentence_problems(front)
    elif alien := [key for key in ("sentence_level", "rollup") if getattr(front, key)]:
        yield alien[0], "prompt_rollup", f'`{alien[0]}` is only for answer = "sentences", found {front.answer!r}'


def _unit_problems(front: FrontMatter) -> Iterator[_Found]:
    """What is judged must be shown, and nothing is shown that the unit does not have."""
    unit = UNITS[front.unit]
    if unit.needed_input is not None and unit.needed_input not in front.inputs:
        message = f"`{unit.needed_input}` is not an input, so a {unit.nouns.response} cannot be checked"
        yield "inputs", "prompt_input", message
    for other in UNITS.values():
        own = other.inputs[0] if other.inputs else None
        if other is not unit and own in front.inputs and own != other.needed_input:
            yield "inputs", "prompt_input", f'`{own}` is only for unit = "{other.name}"'
    allowed = unit.inputs
    if not allowed:
        if not {"response", "sentences", "source", "candidates"} & set(front.inputs):
            yield "inputs", "prompt_input", "neither `response` nor `sentences` is an input, so nothing is judged"
        return
    if allowed[0] not in front.inputs and allowed[0] != unit.needed_input:
        yield "inputs", "prompt_input", f"`{allowed[0]}` is not an input, so nothing is judged"
    if others := [name for name in front.inputs if name in BLOCKS and name not in (*allowed, EXAMPLES)]:
        shown = " and ".join(f"`{name}`" for name in allowed)
        yield (
            "inputs",
            "prompt_input",
            f"a prompt about a {unit.nouns.response} shows {shown} alone, not {', '.join(others)}",
        )
    if front.answer == "sentences":
        yield "answer", "prompt_field", f"a {unit.nouns.response} gets one grade, and its sentences get no labels"
    grades = {level.grade for level in front.level}
    if unit.orders > 1 and {min(grades, default=0) + max(grades, default=0) - grade for grade in grades} != grades:
        yield "level", "prompt_level", f"found grades {sorted(grades)}: each needs one for the responses in other order"


def _nugget_problems(front: FrontMatter) -> Iterator[_Found]:
    """A criterion about nuggets has its inputs and its kind of answer, and no other criterion has them."""
    for name in dict.fromkeys(name for inputs, _ in OF_NUGGETS.values() for name in inputs):
        owners = [criterion for criterion, (inputs, _) in OF_NUGGETS.items() if name in inputs]
        if (name in front.inputs) != (front.criterion in owners):
            named = f"the criterion {owners[0]}" if len(owners) == 1 else f"the criteria {' and '.join(owners)}"
            yield "inputs", "prompt_input", f"`{name}` is the input of {named}, and of no other"
    if (front.answer == "nuggets") != (front.criterion == NUGGET_CREATION):
        yield "answer", "prompt_field", f'answer = "nuggets" is for the criterion {NUGGET_CREATION} alone'
    if front.answer == "nuggets" and (len(front.level) != 2 or front.unable is not None):
        yield "level", "prompt_level", "expected two levels: one for some nuggets, one for none"


def _level_cut_problems(front: FrontMatter) -> Iterator[str]:
    """Cuts of the expected grade part the scale into its levels."""
    cuts = front.cuts
    if not cuts:
        return
    unit = UNITS[front.unit]
    if unit.orders > 1:
        yield f"a {unit.nouns.response} is graded in both orders, and cuts would move them apart"
    if front.answer == "nuggets":
        yield 'answer = "nuggets" has no expected grade'
    if len(cuts) != len(front.level) - 1:
        yield f"found {count(len(cuts), 'cut')}, expected {len(front.level) - 1}: one between each two levels"
    grades = [level.grade for level in front.level]
    # In this form, a cut of nan fails too.
    rising = all(low < high for low, high in pairwise(cuts))
    if not (rising and all(min(grades, default=0) <= cut <= max(grades, default=0) for cut in cuts)):
        yield f"cuts {cuts} must rise and lie within the grades {sorted(grades)}"


def why_no_examples(unit: JudgedUnit, answer: AnswerKind, inputs: Sequence[str]) -> list[str]:
    """Why a prompt about a unit, with these other inputs, cannot show examples; empty if it can."""
    reasons: list[str] = []
    if UNITS[unit].by_topic or UNITS[unit].orders > 1:
        reasons.append(f"a prompt about a {UNITS[unit].nouns.response} cannot show examples")
    elif alien := [name for name in inputs if name in BLOCKS and name not in TEXTS]:
        reasons.append(f"examples cannot show {', '.join(alien)}")
    if answer != "grade":
        reasons.append(f'examples have a grade alone, so answer = "grade" is expected, not {answer}')
    return reasons


def _example_problems(front: FrontMatter) -> Iterator[_Found]:
    """Examples are shown where there are some, are of what is judged, and have a bound."""
    if EXAMPLES not in front.inputs:
        if front.example:
            yield "inputs", "prompt_example", f"the file has examples, and `{EXAMPLES}` is not an input"
        return
    others = [name for name in front.inputs if name != EXAMPLES]
    for reason in why_no_examples(front.unit, front.answer, others):
        yield "inputs", "prompt_example", reason
    grades = [level.grade for level in front.level]
    digests = [example.response_sha256 for example in front.example]
    total = 0
    for index, fields in enumerate(front.example):
        total += fields.example(others).length
        problems = [*_one_example_problems(fields, grades, others)]
        if fields.response_sha256 in digests[:index]:
            problems.append(("response_sha256", "the response is an example already"))
        yield from ((f"example[{index}].{key}", "prompt_example", message) for key, message in problems)
    if total > LONGEST_EXAMPLES:
        yield "example", "prompt_example", f"{total:,} characters in all examples: at most {LONGEST_EXAMPLES:,}"


def _one_example_problems(
    fields: ExampleFields, grades: Sequence[int], inputs: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The key and the message of each problem of an example of a prompt with these grades and other inputs."""
    if not _SHA256.fullmatch(fields.response_sha256):
        yield "response_sha256", f"found {fields.response_sha256!r:.80}, expected 64 hexadecimal digits"
    if fields.grade not in grades:
        yield "grade", f"found {fields.grade}, expected one of {', '.join(map(str, grades))}"
    if set(fields.shown) != set(inputs):
        yield "shown", f"found {', '.join(fields.shown) or 'nothing'}, expected the inputs {', '.join(inputs)}"
    length = fields.example(inputs).length
    if length > LONGEST_EXAMPLE:
        yield "shown", f"{length:,} characters: an example has at most {LONGEST_EXAMPLE:,}"


def _scale_problems(front: FrontMatter) -> Iterator[_Found]:
    fields = {f"level[{index}]": level for index, level in enumerate(front.level)}
    levels = {key: each.level for key, each in (fields | ({"unable": front.unable} if front.unable else {})).items()}
    before: set[int] = set()
    for key, level in levels.items():
        if _NUMBER.fullmatch(level.label) and level.label != str(level.grade):
            message = f"label {level.label!r} is a number other than its grade {level.grade}"
            yield f"{key}.label", "prompt_level", message
        if level.grade in before:
            yield f"{key}.grade", "prompt_level", f"grade {level.grade} is given twice"
        before.add(level.grade)
    yield from _text_problems({key: (level.label, level.description) for key, level in levels.items()})
    grades = {level.grade for level in front.level}
    positive = set(front.positive)
    rest = grades - positive
    found = f"found {front.positive}"
    if len(grades) < 2:
        yield "level", "prompt_level", f"found {count(len(grades), 'level')}, expected at least two"
    if len(positive) < len(front.positive):
        yield "positive", "prompt_positive", f"{found}: a grade is named twice"
    if unknown := sorted(positive - grades):
        yield "positive", "prompt_positive", f"{unknown} are not grades of the scale {sorted(grades)}"
    elif not positive or not rest:
        yield "positive", "prompt_positive", f"{found}, expected some of the grades, not none and not all"
    elif not (min(positive) > max(rest) if front.polarity == "higher" else max(positive) < min(rest)):
        message = f"{sorted(positive)} are not the best grades when {front.polarity} is better"
        yield "positive", "prompt_positive", message


def _text_problems(texts: Mapping[str, tuple[str, str]]) -> Iterator[_Found]:
    """Labels must be read back and told apart, and no description is empty; by key, a label and a description."""
    before: set[str] = set()
    for key, (label, description) in texts.items():
        if not _LABEL.fullmatch(label):
            message = f"label {label!r} is not letters and digits, with spaces, `_` or `-` inside"
            yield f"{key}.label", "prompt_level", message
        if label.casefold() in before:
            yield f"{key}.label", "prompt_level", f"label {label!r} is given twice"
        before.add(label.casefold())
        if not description.strip():
            yield f"{key}.description", "prompt_level", f"level {label!r} has no description"
        if "{{" in description:
            yield f"{key}.description", "prompt_placeholder", "a description cannot hold a placeholder"


def _sentence_problems(front: FrontMatter) -> Iterator[_Found]:
    """Labels of sentences, and how they become a grade of the scale."""
    if not {"sentences", "candidates"} & set(front.inputs):
        yield "inputs", "prompt_input", 'answer = "sentences" needs the input `sentences`'
    levels = {f"sentence_level[{index}]": level for index, level in enumerate(front.sentence_level)}
    yield from _text_problems({key: (level.label, level.description) for key, level in levels.items()})
    labels = [level.label for level in front.sentence_level]
    rollup = front.rollup
    if len(labels) < 2:
        yield "sentence_level", "prompt_level", f"found {len(labels)}, expected at least two levels"
    if rollup is None:
        yield "rollup", "prompt_rollup", 'answer = "sentences" needs a `[rollup]` from labels to a grade'
        return
    for key, label in (("label", rollup.label), ("ignored", rollup.ignored)):
        if label is not None and label not in labels:
            yield f"rollup.{key}", "prompt_rollup", f"{label!r} is not a sentence label, expected one of {labels}"
    if rollup.ignored == rollup.label:
        yield "rollup.ignored", "prompt_rollup", "the counted label cannot be the ignored one"
    if rollup.ignored is not None and front.unable is None:
        message = "with an ignored label an `[unable]` level must say what a response without other labels gets"
        yield "rollup.ignored", "prompt_rollup", message
    yield from (("rollup.cuts", "prompt_rollup", message) for message in _cut_problems(rollup.cuts, front))


def _cut_problems(cuts: Sequence[tuple[float, int]], front: FrontMatter) -> Iterator[str]:
    shares = [share for share, _ in cuts]
    given = [grade for _, grade in cuts]
    if not shares or shares[-1] != 0:
        yield f"found shares {shares}: the last cut must be at share 0.0, so that every share has a grade"
    # In this form, a share of nan fails too.
    falling = all(high > low for high, low in pairwise(shares))
    if not (falling and all(0 <= share <= 1 for share in shares)):
        yield f"shares {shares} must lie within 0 and 1 and fall"
    grades = {level.grade for level in front.level}
    if unknown := [grade for grade in given if grade not in grades]:
        yield f"{unknown} are not grades of the scale {sorted(grades)}"
    if given != sorted(given, reverse=front.polarity == "higher"):
        yield f"grades {given} get better as the share falls; {front.polarity} is better"


def _body(lines: Sequence[str], start: int, inputs: Sequence[str] | None) -> tuple[dict[str, str], list[_Found]]:
    """The text under each heading, and what is wrong with headings and placeholders.

    The body begins at the line with the index `start`. `inputs` is None if they could not be read.
    """
    parts: dict[str, list[str]] = {}
    problems: list[_Found] = []
    used: set[str] = set()
    part: str | None = None
    for number, line in enumerate(lines[start:], start + 1):
        heading = line.rstrip()
        if heading in (_SYSTEM, _USER):
            if heading in parts or (heading == _SYSTEM and parts):
                problems.append((f"line {number}", "prompt_heading", f"`{heading}` is repeated or out of order"))
            part = heading
            parts.setdefault(part, [])
            continue
        if part is not None:
            parts[part].append(line)
        elif heading:
            problems.append((f"line {number}", "prompt_heading", f"text before the heading `{_SYSTEM}`"))
        used.update(PLACEHOLDER.findall(line))
        problems += [(f"line {number}", code, message) for code, message in _line_problems(line, part, inputs)]
    texts = {heading: "\n".join(part_lines).strip() for heading, part_lines in parts.items()}
    last = f"line {len(lines)}"
    for heading in (_SYSTEM, _USER):
        if not texts.get(heading):
            problems.append((last, "prompt_heading", f"there is no text under a heading `{heading}`"))
    for name in sorted({"levels", "answer"} - used):
        problems.append((last, "prompt_placeholder", f"the text ends without {{{{{name}}}}}"))
    for name in sorted(set(inputs or ()) & BLOCKS.keys() - used):
        problems.append(("inputs", "prompt_input", f"input {name!r} is declared but {{{{{name}}}}} is not in the text"))
    return texts, problems


def _line_problems(line: str, part: str | None, inputs: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Code and message of each problem with the placeholders of a line of the body."""
    for name in PLACEHOLDER.findall(line):
        if name not in PLACEHOLDERS:
            expected = ", ".join(PLACEHOLDERS)
            yield "prompt_placeholder", f"unknown placeholder {{{{{name}}}}}, expected one of {expected}"
        elif name in BLOCKS and inputs is not None and name not in inputs:
            yield "prompt_input", f"{{{{{name}}}}} is used but not declared in `inputs`"
        if name in BLOCKS and part == _SYSTEM:
            yield "prompt_placeholder", f"{{{{{name}}}}} is material to assess: it belongs under `{_USER}`"
    rest = PLACEHOLDER.sub("", line)
    if "{{" in rest or "}}" in rest:
        yield "prompt_placeholder", "`{{` or `}}` without its partner or a name"
