"""Grades in tables: people's and judges' side by side in one, or people's alone beside what was judged."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Literal, get_args
from unicodedata import normalize

import msgspec

from judge.ask.criteria import default_prompts, find_criterion
from judge.ask.results import Label, Labels
from judge.calibrate.intake import OffScale
from judge.errors import UsageError
from judge.gold import levels_said
from judge.gold.rows import GoldRow, text_digest
from judge.io.ids import groups_of
from judge.io.rows import FrameRow, RowTable, read_rows
from judge.io.tabular import DECIMAL_COMMA
from judge.io.text import count, did_you_mean, disarmed, shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Problem, Scale, file_problem
from judge.runs.document import read_head
from judge.runs.formats.table import SUFFIXES, column_names
from judge.runs.formats.table_columns import plain_name, role_of

GradeRole = Literal["human", "judge"]
"""Whose grades a column has."""
GRADERS: tuple[GradeRole, ...] = get_args(GradeRole)
ABOUT = ("question", "topic", "id", "system", "answer")
"""What a row is about, by columns that the user may name too."""
UNNAMED = "grade"
"""The criterion of grades of which nobody says what they are about."""
_USUAL: Mapping[GradeRole, re.Pattern[str]] = {
    "human": re.compile(r"(human|person|expert|assessor|annotator|gold)(_?\d+|_(grade|score|label|rating|\w+))?"),
    "judge": re.compile(r"(judge|llm|automatic|predicted|prediction)(_?\d+|_(grade|score|label|rating|\w+))?"),
}
"""The names by which a column of grades is found, in small letters with `_` between words."""
_GIVEN = ("grade", "label", "rating")
"""The names of a column of grades in a table that has people's alone."""
_GIVEN_BY = ("assessor", "annotator", "rater", "worker")
"""The names of a column that says who gave them."""
INCLUSION = "inclusion_probability"
"""The name of the column of probabilities with which responses were chosen for grading."""
_NO_GRADE = re.compile(
    r".*_(ids?|run|model|name|answer|response|text|rationale|reason|comments?|notes?|time|ms|seconds|cost|tokens)"
)
"""Names of columns that stand beside grades, and hold none."""
_WORDS = {"true": 1, "yes": 1, "pass": 1, "correct": 1, "false": 0, "no": 0, "fail": 0, "incorrect": 0}
"""What stands for the grades of two levels."""
_GRADE = re.compile(r"(-?[0-9]{1,9})(\.0+|,00?)?")


class TableOfGrades(msgspec.Struct, frozen=True):
    """A table with its columns of grades."""

    table: RowTable
    graders: Mapping[GradeRole, tuple[str, ...]]
    """The columns of people's grades, and those of judges'."""
    assessors: str | None = None
    """The column that says who gave the grade of a row; None where a column of grades is one assessor's."""

    @property
    def said(self) -> str:
        """What was taken for what, in a sentence."""
        whose = {"human": "people", "judge": "judges"}
        taken = [
            f"grades of {whose[role]} from {', '.join(map(shown, names))}"
            for role, names in self.graders.items()
            if names
        ]
        return f"{self.table.file}: a table of {count(len(self.table.rows), 'row')}: {'; '.join(taken)}"


class Items:
    """The topics and the items of tables, so that rows of several are one item only where they are about one."""

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        self._answers: dict[tuple[str, str], tuple[str, str]] = {}
        """Topic and item to its answer, and where that was read first."""
        self._tables = 0

    def keys(self, table: RowTable, problems: list[Problem]) -> list[tuple[str, str, str]]:
        """The turn, the topic and the item of each row."""
        ids = _column(table, "id")
        groups = _column(table, "topic") or _column(table, "question")
        systems = _column(table, "system")
        answers = _column(table, "answer")
        if self._tables and ids is None and groups is None:
            message = "of several tables each needs a column of ids or questions, which says what rows are about"
            problems.append(file_problem("missing_column", table.file, message))
        self._tables += 1
        places: dict[tuple[str, str], str] = {}
        keys: list[tuple[str, str, str]] = []
        for number, row in enumerate(table.rows, 1):
            item_id = _text(row, ids) or str(number)
            topic = self._topics.setdefault(_text(row, groups) or item_id, f"t{len(self._topics) + 1}")
            system = _text(row, systems)
            named = f"{item_id} ({system})" if system else item_id
            if (topic, named) in places:
                message = f"the id {shown(named)} is already at {places[topic, named]}"
                problems.append(file_problem("duplicate_row", table.file, message, row.place))
            places.setdefault((topic, named), row.place)
            answer = _text(row, answers)
            first, where = self._answers.setdefault((topic, named), (answer, f"{table.file}, {row.place}"))
            if answer and first and answer != first and not where.startswith(f"{table.file}, "):
                message = f"{shown(named)} has another answer at {where}: a column of systems tells them apart"
                problems.append(file_problem("other_answer", table.file, message, row.place))
            keys.append((f"{topic}_1", topic, named))
        return keys


def topics_said(table: RowTable) -> str:
    """What counts as independent in a table of people's and judges' grades, in a sentence."""
    groups = _column(table, "topic") or _column(table, "question")
    if groups is not None:
        return f"{table.file}: rows with one {shown(groups)} are one topic"
    return (
        f"{table.file}: each row is a topic of its own; intervals are too narrow if rows share questions: "
        "--column question=COLUMN or topic=COLUMN says which column they are in"
    )


def is_grade_table(path: Path, named: Sequence[str]) -> bool:
    """Whether a file of gold is a table with a header.

    A TSV may also be four columns without one, and JSON Lines gold, whose rows name criterion and assessor.
    """
    if not path.is_file():
        return False
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    is_json = read_head(path).lstrip()[:1] in (b"{", b"[")
    if not is_json and suffix not in SUFFIXES:
        return False
    if not is_json and suffix in (".csv", ".parquet"):
        return True
    names = column_names(path)
    plain = {plain_name(name) for name in names}
    if is_json and plain & {"criterion", "assessor"}:
        return False
    human = [text.partition("=")[2] for text in named if text.startswith("human=")]
    return any(name in human or _is_usual("human", name) for name in names) or not plain.isdisjoint(_GIVEN)


def _is_usual(role: GradeRole, name: str) -> bool:
    """Whether a column with this name has grades of people, or of judges."""
    plain = plain_name(name)
    return _USUAL[role].fullmatch(plain) is not None and not _NO_GRADE.fullmatch(plain)


def grade_table(
    path: Path, named: Sequence[str], needed: Sequence[GradeRole], problems: list[Problem]
) -> TableOfGrades | None:
    """The table in a file with its columns of grades; None, and the problems, if it cannot be used.

    `named`: `ROLE=COLUMN` of the user, which may name a role several times. A UsageError if there is no such role.
    """
    table = read_rows(path, problems)
    if table is None:
        return None
    given: dict[GradeRole, list[str]] = {"human": [], "judge": []}
    about: dict[str, str] = {}
    for text in named:
        role, sign, column = text.partition("=")
        if sign and role in GRADERS:
            given[role].append(column)
        elif sign and role in ABOUT:
            about[column] = role
        else:
            roles = ", ".join(f"{name}=COLUMN" for name in (*GRADERS, *ABOUT))
            raise UsageError(f"--column {text}: expected one of {roles}")
    for column in about:
        if column not in table.columns:
            message = f"no column {shown(column)}{did_you_mean(column, table.columns)}; {_found(table)}"
            problems.append(file_problem("missing_column", table.file, message))
    table = _renamed(table, about)
    if both := [column for column in given["human"] if column in given["judge"]]:
        raise UsageError(f"--column human={both[0]} and judge={both[0]}: one column has the grades of one of them")
    graders: dict[GradeRole, tuple[str, ...]] = {}
    assessors: str | None = None
    for role in GRADERS:
        columns = given[role]
        absent = [name for name in columns if name not in table.columns]
        for name in absent:
            message = f"no column {shown(name)}{did_you_mean(name, table.columns)}; {_found(table)}"
            problems.append(file_problem("missing_column", table.file, message))
        if not columns:
            others = [*given["human"], *given["judge"]]
            columns = [name for name in table.columns if name not in others and _is_usual(role, name)]
        if role == "human" and not given[role] and "judge" not in needed:
            columns, assessors = _peoples_columns(table, columns)
        if not columns and role in needed:
            whose = "a judge's grades (judge, llm)"
            if role == "human":
                whose = "people's grades (human, assessor, annotator)"
            message = f"no column of {whose}; {_found(table)}; name it: --column {role}=COLUMN"
            problems.append(file_problem("missing_column", table.file, message))
        graders[role] = tuple(columns)
    return None if problems else TableOfGrades(table, graders, assessors)


def _peoples_columns(table: RowTable, usual: list[str]) -> tuple[list[str], str | None]:
    """The columns of grades in a table of people's alone, and the column that says who gave them.

    `usual`: the columns with the names of people's grades.
    """
    given = [name for name in table.columns if plain_name(name) in _GIVEN]
    by = next((name for name in table.columns if plain_name(name) in _GIVEN_BY), None)
    if given and usual in ([], [by]):
        return given[:1], by
    return usual, None


def _renamed(table: RowTable, names: Mapping[str, str]) -> RowTable:
    """The table with other names of columns, which are usual ones; a column that has such a name already loses it."""
    if not names:
        return table
    taken = set(names.values())
    new = {name: names.get(name, f"{name} (not used)" if name in taken else name) for name in table.columns}
    rows = tuple(
        FrameRow(row.place, {new.get(name, name): cell for name, cell in row.cells.items()}) for row in table.rows
    )
    return msgspec.structs.replace(table, columns=tuple(new.values()), rows=rows)


def _found(table: RowTable) -> str:
    return f"found {', '.join(map(shown, table.columns[:20]))}"


def _column(table: RowTable, role: str) -> str | None:
    """The first column with a usual name of a role; one inside of an object where no other has it."""
    fitting = [name for name in table.columns if role_of(name) == role]
    return min(fitting, key=lambda name: name.count("."), default=None)


def grades_of(
    graded: TableOfGrades,
    column: str,
    problems: list[Problem],
    criterion: str | None = None,
    two_levels: Collection[str] = (),
    scale: Scale | None = None,
) -> list[int | None]:
    """The grade in each row of a column; None where there is none. What is no grade is added to the problems.

    Args:
        graded: The table.
        column: Its column.
        problems: What is wrong is added here.
        criterion: What the grades are of where no column says it; the levels of its default prompt are named there.
        two_levels: The criteria whose grades are 0 and 1, for which words may stand; on a scale of more levels, yes
            would be one of the lowest.
        scale: That of the grades, where it is known; a grade off it is a problem.
    """
    prompt = find_criterion(criterion) if criterion in default_prompts() else None
    levels = [] if scale is None else [level.grade for level in scale.levels]
    by_row = criterion_column(graded.table)
    grades: list[int | None] = []
    for row in graded.table.rows:
        cell = row.cells.get(column)
        text = "" if cell is None else str(cell).strip()
        words = (_text(row, by_row) or criterion or UNNAMED) in two_levels
        grade: int | None = None
        if words and text.lower() in _WORDS:
            grade = _WORDS[text.lower()]
        elif whole := _GRADE.fullmatch(text):
            grade = int(whole[1])
        elif text:
            expected = f"a grade such as 2{levels_said(prompt)}, {'yes or no, ' if words else ''}or an empty cell"
            message = f"column {shown(column)}: expected {expected}; found {shown(cell)}"
            problems.append(file_problem("wrong_value", graded.table.file, message, row.place))
        if levels and grade is not None and grade not in levels:
            message = f"column {shown(column)}: expected one of {', '.join(map(str, levels))}; found {grade}"
            problems.append(file_problem("off_scale", graded.table.file, message, row.place))
        grades.append(grade)
    return grades


def of_two_levels(prompts: Iterable[Criterion]) -> set[str]:
    """The criteria under all of whose prompts here the grades are 0 and 1."""
    prompts = list(prompts)
    graded = {prompt.name for prompt in prompts if any(level.grade not in (0, 1) for level in prompt.scale.levels)}
    return {prompt.name for prompt in prompts} - graded


def _has_two_levels(graded: TableOfGrades) -> bool:
    """Whether no grade in a table is another number than 0 and 1."""
    for column in chain.from_iterable(graded.graders.values()):
        for row in graded.table.rows:
            whole = _GRADE.fullmatch(_text(row, column))
            if whole and int(whole[1]) not in (0, 1):
                return False
    return True


def side_by_side(
    graded: TableOfGrades,
    criterion: str,
    problems: list[Problem],
    items: Items | None = None,
    scale: Scale | None = None,
    off_scale: OffScale = "error",
) -> tuple[tuple[GoldRow, ...], tuple[Labels, ...]]:
    """People's grades as gold, and judges' as labels of the same items.

    An item is a row, by its id where there is one. Rows about one question, or one topic, are one topic.

    `items`: those of the tables that were read before. `scale`: that of all grades, where it is known. `off_scale`:
    whether a judge's grade off it is a problem.
    """
    table = graded.table
    keys = (items or Items()).keys(table, problems)
    of_words = _has_two_levels(graded) if scale is None else {level.grade for level in scale.levels} == {0, 1}
    two_levels = (criterion,) if of_words else ()
    gold: list[GoldRow] = []
    for column in graded.graders["human"]:
        for (turn_id, topic_id, item_id), grade in zip(
            keys, grades_of(graded, column, problems, criterion, two_levels, scale), strict=True
        ):
            if grade is not None:
                gold.append(
                    GoldRow(
                        turn_id=turn_id,
                        topic_id=topic_id,
                        criterion=criterion,
                        grade=grade,
                        assessor=column,
                        response_id=item_id,
                    )
                )
    judged: list[Labels] = []
    judges_scale = scale if off_scale == "error" else None
    for column in graded.graders["judge"]:
        labels: list[Label] = []
        for (turn_id, _, item_id), grade in zip(
            keys, grades_of(graded, column, problems, criterion, two_levels, judges_scale), strict=True
        ):
            if grade is not None:
                labels.append(Label(turn_id=turn_id, response_id=item_id, grade=grade))
        if not any(_text(row, column) for row in table.rows):
            message = f"no grade in column {shown(column)}: expected some (--column judge=COLUMN names another one)"
            problems.append(file_problem("missing_value", table.file, message))
        judged.append(
            Labels(
                judge=column,
                prompt=None,
                prompt_digest=None,
                source=table.file,
                digest=table.digest,
                labels=tuple(labels),
            )
        )
    return tuple(gold), tuple(judged)


def _text(row: FrameRow, column: str | None) -> str:
    """A cell as text; "" of none."""
    cell = row.cells.get(column) if column is not None else None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell).strip()


def gold_in_pool(
    graded: TableOfGrades,
    criterion: str | None,
    pool: Pool,
    problems: list[Problem],
    two_levels: Collection[str] = (),
) -> tuple[GoldRow, ...]:
    """People's grades as gold of pooled responses.

    A row names its response by the response id, by run and turn as `results.csv` does, by the id of a table's question
    and its system, or by the text of the answer, with the question where several have it.

    `criterion`: what the grades are of where no column says it; `two_levels`: the criteria whose grades are 0 and 1.
    """
    table = graded.table
    find = _finder(table, pool)
    gold: list[GoldRow] = []
    first_grades: dict[tuple[str, str, str], tuple[int, str]] = {}
    """Response, criterion and assessor to the first grade, and where it is."""
    for column in graded.graders["human"]:
        for row, grade in zip(table.rows, grades_of(graded, column, problems, criterion, two_levels), strict=True):
            if grade is None:
                continue
            found = find(row)
            if isinstance(found, str):
                problems.append(file_problem("no_such_response", table.file, found, row.place))
                continue
            named = _text(row, criterion_column(table)) or criterion
            if named is None:
                message = "no criterion, and several were judged: expected one, or --criterion NAME"
                problems.append(file_problem("missing_field", table.file, message, row.place))
                continue
            assessor = _text(row, graded.assessors) or column
            first, where = first_grades.setdefault((found.response_id, named, assessor), (grade, row.place))
            if grade != first:
                message = (
                    f"{named} grade {grade} by {shown(assessor)}, but {first} at {where}, and both rows are about one "
                    f"answer to one question ({found.response_id}): expected one grade"
                )
                problems.append(file_problem("different_grades", table.file, message, row.place))
            gold.append(
                GoldRow(
                    turn_id=found.turn_id,
                    topic_id=found.topic_id,
                    criterion=named,
                    grade=grade,
                    assessor=assessor,
                    response_id=found.response_id,
                    inclusion_probability=_inclusion(table, row, problems),
                )
            )
    return tuple(gold)


def criterion_column(table: RowTable) -> str | None:
    """The column that says what the grades of a row are of; None where one criterion is meant."""
    return next((name for name in table.columns if plain_name(name) == "criterion"), None)


def _inclusion(table: RowTable, row: FrameRow, problems: list[Problem]) -> float | None:
    """The probability with which the response of a row was chosen; None where its column says nothing."""
    column = next((name for name in table.columns if plain_name(name) == INCLUSION), None)
    text = _text(row, column)
    if not text:
        return None
    with suppress(ValueError):
        probability = float(re.sub(DECIMAL_COMMA, r"\1.\2", text))
        if 1e-9 <= probability <= 1:
            return probability
    message = f"column {shown(column)}: expected a probability above 0, at most 1; found {shown(text)}"
    problems.append(file_problem("wrong_value", table.file, message, row.place))
    return None


def _finder(table: RowTable, pool: Pool) -> Callable[[FrameRow], PooledResponse | str]:
    """From a row to its response, or to why it has none."""
    by_id = {response.response_id: response for response in pool.responses}
    # As in `results.csv`, where no cell is a formula.
    by_run = groups_of(
        ((disarmed(entry.run_id), disarmed(response.turn_id)), response)
        for response in pool.responses
        for entry in response.runs
    )
    by_text = groups_of((text_digest(disarmed(response.text)), response) for response in pool.responses)
    runs = {run_id for run_id, _ in by_run}
    only = next(iter(runs)) if len(runs) == 1 else ""
    # Where topics have several turns, a topic may be called as the question of another one.
    single = all(response.turn_id.endswith("_1") for response in pool.responses)
    columns = {name: name for name in table.columns}
    response_ids = columns.get("response_id")
    # `results.csv` has them so where the table that was judged has columns of these names.
    turns = columns.get("judge_turn_id", columns.get("turn_id"))
    own_runs = columns.get("judge_run", columns.get("run")) if turns is not None else None
    systems = own_runs or _column(table, "system")
    ids = _column(table, "id")
    answers = _column(table, "answer")
    questions = _column(table, "question")

    def find(row: FrameRow) -> PooledResponse | str:
        response_id = _text(row, response_ids)
        text = _text(row, answers)
        if response_id:
            named = by_id.get(response_id)
            if named is None:
                return f"no response {shown(response_id)} was judged"
            return _other_answer(named, text, answers) or named
        label = _text(row, ids)
        question = _text(row, questions)
        turn_id = _text(row, turns) or (f"{label}_1" if label else "")
        run_id = _text(row, systems) or only
        placed = by_run.get((disarmed(run_id), disarmed(turn_id)), [])
        # An id may be that of another question, as in a table with topics, and a grade that of an earlier answer.
        fitting = [response for response in placed if not text or _words(text) in _said(response)]
        if not _text(row, turns) and not (single or text or question):
            fitting = []
        elif not _text(row, turns):
            fitting = [response for response in fitting if _asks(pool, response, question)]
        if len(fitting) == 1:
            return fitting[0]
        if not text and not run_id:
            return f"{len(runs)} runs were judged, and the row names neither run nor answer: add a column of either"
        if not text:
            several = f"{len(fitting)} judged responses: a column response_id tells which"
            none = "no judged response for this question, and the row has no answer"
            return f"run {shown(run_id)} has in turn {shown(turn_id)} {several if fitting else none}"
        if placed and not fitting and _text(row, turns):
            found = f"column {shown(answers)} has {shown(text)}"
            return f"run {shown(run_id)} was judged in turn {shown(turn_id)} by another answer than {found}"
        same_text = by_text.get(text_digest(disarmed(text)), [])
        found_by_text = [response for response in same_text if _asks(pool, response, question)]
        if len(found_by_text) > 1:
            names = ", ".join(response.response_id for response in found_by_text[:5])
            return f"{len(found_by_text)} judged responses have this text ({names}): a column response_id tells which"
        if found_by_text:
            return found_by_text[0]
        return f"no judged response{' to this question' if question else ''} has the text {shown(text)}"

    return find


def _words(text: str) -> str:
    """A text without what spreadsheets change: white space, and how characters are composed."""
    return " ".join(normalize("NFC", text).split())


def _asks(pool: Pool, response: PooledResponse, question: str) -> bool:
    """Whether a response may be to a question, which a row may lack, as a pool may."""
    turn = pool.turns.get(response.turn_id)
    return not question or turn is None or disarmed(_words(turn.utterance)) == disarmed(_words(question))


def _other_answer(named: PooledResponse, text: str, column: str | None) -> str:
    """What is wrong where a row names a response and has another text than was judged, in words; else empty."""
    # Of other units, a table has the text of a part, or those of both responses.
    if not text or named.unit != "response" or _words(text) in _said(named):
        return ""
    here, judged = _from_difference(_words(text), _words(named.text))
    return f"column {shown(column)} has {here}, and {shown(named.response_id)} was judged as {judged}"


def _from_difference(one: str, other: str) -> tuple[str, str]:
    """The beginnings of two texts, or what stands where they begin to differ."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    if same < 20:
        return shown(one), shown(other)
    return shown(f"…{one[same - 10 :]}"), shown(f"…{other[same - 10 :]}")


def _said(response: PooledResponse) -> tuple[str, str]:
    """The words of a response, and as `results.csv` has those that begin as a formula does."""
    return _words(response.text), _words(disarmed(response.text))


def scale_of(gold: Sequence[GoldRow], judged: Sequence[Labels]) -> tuple[int, int]:
    """The lowest and the highest grade that occur."""
    grades = {row.grade for row in gold}
    for labels in judged:
        grades |= {label.grade for label in labels.labels if label.grade is not None}
    lowest = min(grades, default=0)
    return min(0, lowest), max(1, max(grades, default=1), lowest + 1)
