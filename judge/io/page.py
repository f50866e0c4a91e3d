"""How every page is written: templates that escape whatever they insert, one look, and a policy that lets nothing in.

A page holds the texts of strangers. Templates escape each inserted value, and the policy allows only the scripts and
styles whose digests stand in it. So a text that gets past one of the two still cannot run.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_LOOK = Path(__file__).parent / "pages" / "base.css"


@cache
def look() -> str:
    """The style sheet that every page begins with: type, spacing, light and dark colors."""
    return _LOOK.read_text(encoding="utf-8")


@cache
def templates(folder: Path) -> "Environment":
    """The templates of a folder: every inserted value is escaped, and a name that is not given is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["chip"] = chip
    environment.globals["open_passages"] = 3
    return environment


def chip(grade: int) -> "Markup":
    """A grade as its number on the color of its level, alike on every page; templates write `grade | chip`."""
    from markupsafe import Markup

    return Markup('<span class="chip level-{}">{}</span>').format(level(grade), grade)


def level(grade: int) -> int:
    """The color of a grade, as base.css has it."""
    return min(max(grade, 0), 5)


def render_page(folder: Path, name: str, **values: Any) -> str:
    """The page that a template makes of these values; only `markupsafe.Markup` is not escaped."""
    return templates(folder).get_template(name).render(**values)


def policy(scripts: Sequence[str], styles: Sequence[str] = ()) -> str:
    """The Content-Security-Policy of a page that stands alone: nothing is loaded, and only these texts take effect.

    `scripts`: the inline scripts, exactly as they stand between their tags.
    """
    return (
        f"default-src 'none'; script-src {_sources(scripts)}; style-src {_sources(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sources(texts: Sequence[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
