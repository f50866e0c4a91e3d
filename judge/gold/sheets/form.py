"""A sheet as a page: one that an assessor fills in without a server, and the form that MTurk shows its workers."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from judge.gold.grades import CANNOT, UNABLE
from judge.gold.sheets.items import GoldSheet, Share, SheetRubric
from judge.gold.sheets.mturk import markup
from judge.io.page import look, policy, render_page

_PAGES = Path(__file__).parent / "pages"


def form_page(sheet: GoldSheet, share: Share) -> bytes:
    """The page of one assessor: it holds all texts, keeps the labels, and gives them as a table to download."""
    style = look() + (_PAGES / "form.css").read_text(encoding="utf-8")
    script = (_PAGES / "form.js").read_text(encoding="utf-8")
    # Labels are kept by what was labeled, so that another sheet of the same name never takes them over.
    key = hashlib.sha256(msgspec.json.encode((sheet.rubrics, share))).hexdigest()[:16]
    page = render_page(
        _PAGES,
        "form.html",
        policy=policy([script], [style]),
        style=Markup(style),  # noqa: S704 - our own style sheets
        script=Markup(script),  # noqa: S704 - our own script
        key=key,
        share=share,
        labels=sum(len(item.criteria) for item in share.items),
        rubrics=tuple(map(_shown, sheet.rubrics)),
        passages=sheet.shows_passages,
    )
    return page.encode()


def worker_form(sheet: GoldSheet, per_task: int) -> str:
    """The form of a batch, with a numbered part for each response of a task and MTurk's placeholders for the texts."""
    rubrics = [
        {
            "criterion": rubric["criterion"],
            "guidance": tuple(map(markup, rubric["guidance"])),
            "choices": tuple((value, markup(meaning)) for value, meaning in rubric["choices"]),
        }
        for rubric in map(_shown, sheet.rubrics)
    ]
    return render_page(
        _PAGES,
        "mturk.html",
        rubrics=rubrics,
        slots=range(1, per_task + 1),
        conversation=any(item.conversation or item.statements for item in sheet.items),
        passages=sheet.shows_passages,
    )


def _shown(rubric: SheetRubric) -> dict[str, Any]:
    """A rubric as the templates show it: what an assessor may choose stands with what it means."""
    choices = [(str(grade), description) for grade, description in rubric.levels]
    return {"criterion": rubric.criterion, "guidance": rubric.guidance, "choices": (*choices, (UNABLE, CANNOT))}
