"""Whether pictures can be drawn here: matplotlib comes with the extra `pictures` only.

A job that draws pictures beside its tables writes the tables all the same, and its warnings say what is not drawn.
"""

from judge.io.extras import has_extra, how_to_get


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return has_extra("pictures")


def undrawn(pictures: str) -> tuple[str, ...]:
    """A sentence for the warnings of a job, or none where pictures can be drawn.

    Args:
        pictures: Those that the job draws, as the subject of the sentence, in the plural.
    """
    if can_draw():
        return ()
    return (f"{pictures} are not drawn, because matplotlib is not installed: {how_to_get('pictures')}",)
