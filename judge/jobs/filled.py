"""The holes of people's qrels, filled by a judge: the grades of both apart, and together with who gave each."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from judge.io.files import file_sha256, json_bytes, published
from judge.io.ids import QrelRow, natural_order, qrels_lines
from judge.pool.lists import read_grades
from judge.records import Criterion, Record
from judge.results.qrels import qrel_stem

PEOPLE = "people"
JUDGE = "judge"
"""Who gave a grade, as the second column of merged qrels says it, which every tool of TREC reads over."""


class Filled(Record, frozen=True):
    """Grades by people, and those by a judge of what they left ungraded."""

    source: Path
    people: tuple[QrelRow, ...]
    judge: tuple[QrelRow, ...]
    criterion: Criterion

    @property
    def off_scale(self) -> int:
        """How many of people's grades are none of the judge's."""
        scale = {level.grade for level in self.criterion.scale.levels}
        return sum(row.grade not in scale for row in self.people)

    @property
    def name(self) -> str:
        """The name of the merged qrels."""
        return f"{qrel_stem(self.criterion)}.merged.qrel"

    def files(self, sidecar: Mapping[str, Any]) -> dict[str, bytes]:
        """Both in a file each, with what is known of them beside; `sidecar` is that of the judge's qrels."""
        source = {
            "file": published(str(self.source)),
            "sha256": file_sha256(self.source),
            "off_the_scale_of_the_judge": self.off_scale,
        }
        people = f"{qrel_stem(self.criterion)}.people.qrel"
        about_people = {
            "file": people,
            "note": "Grades by people, as they were given, in natural order.",
            "rows": "turn_id 0 passage_id grade",
            "source": source,
            "counts": _counts(self.people),
        }
        about_both = {
            "file": self.name,
            "note": "Grades by people, and by a machine judge where people gave none; the second column says whose.",
            "rows": f"turn_id {PEOPLE}|{JUDGE} passage_id grade",
            "counts": {PEOPLE: _counts(self.people), JUDGE: _counts(self.judge)},
            "people": source,
            "judge": {name: sidecar[name] for name in _OF_JUDGE},
        }
        return {
            f"qrels/{people}": qrels_lines(self.people).encode(),
            f"qrels/{people}.json": json_bytes(about_people),
            f"qrels/{self.name}": self._merged().encode(),
            f"qrels/{self.name}.json": json_bytes(about_both),
        }

    def _merged(self) -> str:
        rows = [(row, PEOPLE) for row in self.people]
        rows += [(row, JUDGE) for row in self.judge]
        rows.sort(key=lambda pair: natural_order((pair[0].turn_id, pair[0].item_id)))
        return "".join(f"{row.turn_id} {who} {row.item_id} {row.grade}\n" for row, who in rows)


_OF_JUDGE = ("calibration", "criterion", "prompt", "prompt_version", "prompt_digest", "judges", "models_returned")


def _counts(rows: Iterable[QrelRow]) -> dict[str, Any]:
    grades = Counter(row.grade for row in rows)
    return {"graded": grades.total(), "by_grade": {str(grade): grades[grade] for grade in sorted(grades)}}


def filled(source: Path, criterion: Criterion, judged: Iterable[QrelRow], turn_ids: Collection[str]) -> Filled:
    """People's grades in natural order, and the judge's where people gave none.

    `turn_ids`: the turns that were asked about.
    """
    people: list[QrelRow] = []
    grades = read_grades(source, turn_ids)
    for turn_id, of_turn in grades.items():
        for item_id, grade in of_turn.items():
            people.append(QrelRow(turn_id, item_id, grade))
    people.sort(key=lambda row: natural_order((row.turn_id, row.item_id)))
    others = tuple(row for row in judged if row.item_id not in grades.get(row.turn_id, {}))
    return Filled(source=source, people=tuple(people), judge=others, criterion=criterion)
