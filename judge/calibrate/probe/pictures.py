"""The shifts of a judge as a picture, word overlap beside them."""

from judge.calibrate.probe.card import ProbeCard
from judge.draw.drawable import can_draw
from judge.draw.intervals import interval_plot


def probe_pictures(card: ProbeCard) -> dict[str, bytes]:
    """A picture for each judge and prompt, by file name, numbered if there are several; none without matplotlib."""
    if not can_draw():
        return {}
    files: dict[str, bytes] = {}
    for number, of in enumerate(card.judges, 1):
        name = "probe" if len(card.judges) == 1 else f"probe-{number}"
        marks = [row.overlap.value if row.overlap else None for row in of.rows]
        svg, png = interval_plot(
            [(f"{row.probe}, {row.expects}", row.shift) for row in of.rows],
            "shift in levels (pale: the margin; injections: towards the attacker's end)",
            f"{of.prompt}, {of.judge}",
            "items",
            marks=marks if any(mark is not None for mark in marks) else (),
            names=("judge", "word overlap"),
            margin=card.margin,
        )
        files |= {f"{name}.svg": svg, f"{name}.png": png}
    return files
