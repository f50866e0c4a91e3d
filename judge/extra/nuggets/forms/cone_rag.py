"""CONE-RAG's form: a JSON object from turn to nuggets `[1]`, `[2]` with the grade of their passage. Pure.

Z. Abbasiantaeb et al. (2025), Conversational Gold: Evaluating Personalized Conversational Search System using Gold
Nuggets, arXiv:2503.09902.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from judge.errors import InputError
from judge.extra.nuggets.forms.own import first_object
from judge.extra.nuggets.forms.problems import BankProblems
from judge.extra.nuggets.records import Nugget
from judge.io.ids import topic_of
from judge.io.safe import shown
from judge.runs.fields import member, usable_turn_id

_NUMBER = re.compile(r"\[([1-9][0-9]{0,8})\]")
_GRADE = re.compile(r"-?[0-9]{1,3}")


class _Repeated(list[tuple[str, Any]]):
    """An object as pairs, because a key may stand in it twice."""


def looks(content: bytes) -> bool:
    """Whether it is an object over several lines, or one whose values are objects."""
    if not content.startswith(b"{"):
        return False
    first = first_object(content)
    return all(isinstance(value, dict) for value in first.values())


def read(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The nuggets of a file; the number of a nugget and its turn make its id."""
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_Repeated)
    except UnicodeDecodeError as error:
        problems.add("wrong_encoding", "", f"byte {error.start + 1} is not UTF-8: {error.reason}")
        return []
    except json.JSONDecodeError as error:
        problems.add("not_json", f"line {error.lineno}", f"not JSON: {error.msg}")
        return []
    except (ValueError, RecursionError) as error:
        problems.add("not_json", "", f"not JSON: {str(error)[:200]}")
        return []
    nuggets: list[Nugget] = []
    for turn_id, listed in _members(document, "$", problems):
        path = member("$", turn_id)
        if not usable_turn_id(turn_id):
            problems.add("bad_id", path, "expected a turn id such as 0_2")
            continue
        for number, entry in _members(listed, path, problems):
            at = member(path, number)
            numbered = _NUMBER.fullmatch(number)
            if numbered is None:
                problems.add("bad_id", at, "expected the number of a nugget, such as [1]")
                continue
            fields = dict(_members(entry, at, problems))
            if not isinstance(entry, _Repeated):
                continue
            text = problems.text(f"{at}.text", fields.get("text"))
            grade = fields.get("relevance")
            if grade is not None and not _GRADE.fullmatch(str(grade)):
                problems.add("wrong_type", f"{at}.relevance", f"expected the grade of a passage, found {shown(grade)}")
            elif text is not None:
                nuggets.append(
                    Nugget(
                        nugget_id=f"{turn_id}/{numbered[1]}",
                        topic_id=topic_of(turn_id),
                        text=text,
                        turn_id=turn_id,
                        relevance=None if grade is None else int(grade),
                    )
                )
    return nuggets


def _members(value: Any, path: str, problems: BankProblems) -> list[tuple[str, Any]]:
    """The members of an object; none, and a problem, if it is no object. A repeated key is a problem too."""
    if not isinstance(value, _Repeated):
        found = f"a list with {len(value)} entries" if isinstance(value, list) else shown(value)
        problems.add("wrong_type", path, f"expected an object, found {found}")
        return []
    first: dict[str, Any] = {}
    for key, entry in value:
        if key in first:
            problems.add("repeated_key", member(path, key), "the key stands twice in its object")
        first.setdefault(key, entry)
    return list(first.items())


def write(nuggets: Sequence[Nugget]) -> bytes:
    """The object, with the nuggets of each turn numbered from 1; what CONE-RAG has no place for is left out."""
    without = [nugget.nugget_id for nugget in nuggets if nugget.turn_id is None]
    if without:
        raise InputError(
            f"CONE-RAG's form is of turns: {', '.join(map(shown, without[:5]))}"
            f"{f' and {len(without) - 5} more' if len(without) > 5 else ''} are of whole topics"
        )
    turns: dict[str, dict[str, dict[str, str]]] = {}
    for nugget in nuggets:
        listed = turns.setdefault(nugget.scope, {})
        listed[f"[{len(listed) + 1}]"] = {
            "text": nugget.text,
            **({} if nugget.relevance is None else {"relevance": str(nugget.relevance)}),
        }
    return json.dumps(turns, indent=4, ensure_ascii=False).encode() + b"\n"
