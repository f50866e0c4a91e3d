"""The picture of `docs/explanation/intervals.md`: intervals that ignore topics, beside intervals over topics.

    python -m docs.site.topics_picture

Each study has 10 topics of 16 responses. A topic has a difficulty of its own, so that responses of a topic are alike.
The truth is the mean over all topics that there could be. Writes `docs/pictures/topics.svg`; a test fails where the
file is another picture.
"""

from dataclasses import dataclass

import numpy as np

from docs.site.pages import DOCS
from judge.stats.means import mean_interval

PICTURE = DOCS / "pictures" / "topics.svg"
STUDIES, SHOWN, TOPICS, RESPONSES = 1000, 25, 10, 16
TRUTH, TOPIC_SPREAD, SPREAD = 2.0, 0.35, 0.75


@dataclass(frozen=True)
class Interval:
    """The interval of one study, and whether it holds the truth."""

    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the truth lies within."""
        return self.low <= TRUTH <= self.high


def studies(seed: int = 2023) -> tuple[list[Interval], list[Interval]]:
    """The intervals of all studies: as if responses were independent, and over topics."""
    rng = np.random.default_rng(seed)
    topics = [str(topic) for topic in range(TOPICS) for _ in range(RESPONSES)]
    items = [str(item) for item in range(len(topics))]
    plain, clustered = [], []
    for _ in range(STUDIES):
        values = TRUTH + np.repeat(rng.normal(0, TOPIC_SPREAD, TOPICS), RESPONSES) + rng.normal(0, SPREAD, len(topics))
        for units, found in ((items, plain), (topics, clustered)):
            estimate = mean_interval(values.tolist(), units)
            found.append(Interval(estimate.value or 0, estimate.low or 0, estimate.high or 0))
    return plain, clustered


def share(intervals: list[Interval]) -> float:
    """The share of intervals that hold the truth."""
    return sum(interval.holds for interval in intervals) / len(intervals)


STYLE = """
.card{fill:#ffffff}.ink{fill:#1b1f24}.soft{fill:#555e68}.truth{stroke:#555e68;stroke-dasharray:4 4}
.hit{stroke:#0a5a96;fill:#0a5a96}.miss{stroke:#c2410c;fill:#c2410c}
@media (prefers-color-scheme:dark){.card{fill:#14171b}.ink{fill:#e6e9ed}.soft{fill:#a5afba}
.truth{stroke:#a5afba}.hit{stroke:#74bdf2;fill:#74bdf2}.miss{stroke:#ff9c70;fill:#ff9c70}}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans","DejaVu Sans",sans-serif}
.title{font-size:17px;font-weight:600}.small{font-size:13px}
"""


def panel(intervals: list[Interval], left: float, title: str) -> list[str]:
    """One half of the picture: the first studies as lines, and the share of all studies that hold the truth."""
    top, step, unit, middle = 104, 12.0, 230.0, left + 195
    bottom = top + step * SHOWN
    lines = [f'<text class="ink title" x="{left}" y="46">{title}</text>']
    held = f"{100 * share(intervals):.0f} % of {STUDIES:,} intervals hold the truth"
    lines.append(f'<text class="soft" x="{left}" y="70">{held}</text>')
    lines.append(f'<line class="truth" x1="{middle}" y1="{top - 10}" x2="{middle}" y2="{bottom}"/>')
    for place, interval in enumerate(intervals[:: STUDIES // SHOWN]):
        y = top + step * place
        x, low, high = (middle + unit * (v - TRUTH) for v in (interval.value, interval.low, interval.high))
        name = "hit" if interval.holds else "miss"
        lines.append(
            f'<g class="{name}"><line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke-width="2.5"'
            f' stroke-linecap="round"/><circle cx="{x:.1f}" cy="{y}" r="3.5" stroke="none"/></g>'
        )
    lines.append(f'<text class="soft small" x="{middle}" y="{bottom + 16}" text-anchor="middle">the true mean</text>')
    return lines


def picture() -> str:
    """The picture as SVG."""
    plain, clustered = studies()
    shown = [sum(not interval.holds for interval in intervals[:: STUDIES // SHOWN]) for intervals in (plain, clustered)]
    about = (
        f"Intervals of {SHOWN} simulated studies. Left, as if responses were independent: {shown[0]} of {SHOWN} miss"
        f" the truth. Right, over topics: the intervals are wider, and {shown[1]} of {SHOWN} miss it."
    )
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 460" role="img" aria-labelledby="title about">',
        '<title id="title">Intervals over responses and over topics</title>',
        f'<desc id="about">{about}</desc>',
        f"<style>{STYLE}</style>",
        '<rect class="card" x="0.5" y="0.5" width="919" height="459" rx="10"/>',
        *panel(plain, 40, "As if responses were independent"),
        *panel(clustered, 490, "Over topics"),
        f'<text class="soft small" x="460" y="446" text-anchor="middle">{SHOWN} of {STUDIES:,} simulated studies of'
        f" {TOPICS} topics with {RESPONSES} responses; in orange, intervals that miss</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
