"""Long names cut to fit a table, so that different names stay different. Pure."""

from collections.abc import Iterable

from judge.text.cells import columns_of, fitting, shorten


def shortened(names: Iterable[str], columns: int) -> dict[str, str]:
    """Each name in at most `columns` columns, different names differently; a longer one loses its middle.

    Names that share both ends keep the part in which they differ. Names that nothing of this width tells apart are
    numbered in their order.

    >>> list(shortened(["group_with_a_name_run_3", "group_with_a_name_run_4"], 15).values())
    ['group_w…e_run_3', 'group_w…e_run_4']
    >>> list(shortened(["group_first_of_two_runs", "group_other_of_two_runs"], 12).values())
    ['gro…first_o…', 'gro…other_o…']
    """
    made: dict[str, str] = {}
    taken: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        taken.setdefault(shorten(name, columns), []).append(name)
    for short, alike in taken.items():
        cut = [short] if len(alike) == 1 else _where_different(alike, columns)
        made |= dict(zip(alike, cut, strict=True))
    if len(set(made.values())) < len(made):
        ends = [f"…{place}" for place in range(1, len(made) + 1)]
        made = {
            name: name if made[name] == name else f"{fitting(name, columns - columns_of(end))}{end}"
            for name, end in zip(made, ends, strict=True)
        }
    return made


def _where_different(names: list[str], columns: int) -> list[str]:
    """The start of each name, and what follows the part that all of them share."""
    same = next(place for place, signs in enumerate(zip(*names, strict=False)) if len(set(signs)) > 1)
    cut = []
    for name in names:
        head = fitting(name[:same], columns // 4)
        cut.append(f"{head}…{_to(name[same:], columns - columns_of(head) - 1)}")
    return cut


def _to(text: str, columns: int) -> str:
    return text if columns_of(text) <= columns else f"{fitting(text, columns - 1)}…"
