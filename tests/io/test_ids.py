"""Topics and themes: which topics count as one."""

from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.io.ids import check_cluster, cluster_of, clustering
from judge.runs.topics import read_topics


@pytest.mark.parametrize(
    ("topic_id", "theme"),
    [("9-1", "9"), ("10-3", "10"), ("132", "132"), ("9-1-2", "9"), ("-5", "-5"), ("", ""), ("tea-time", "tea")],
)
def test_the_theme_is_what_stands_before_the_first_hyphen(topic_id: str, theme: str) -> None:
    assert (cluster_of(topic_id, "theme"), cluster_of(topic_id, "topic")) == (theme, topic_id)


def test_the_note_counts_each_topic_once_and_says_nothing_of_topics() -> None:
    over = "intervals and tests are over themes, and count these as topics"
    assert clustering(["9-1", "9-2", "9-2", "132"], "theme") == (f"clustered by theme: 2 themes of 3 topics; {over}",)
    assert clustering(["9-1"], "theme") == (f"clustered by theme: 1 theme of 1 topic; {over}",)
    assert clustering(["9-1", "9-2"], "topic") == ()


def test_another_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="cluster 'themes': expected topic or theme"):
        check_cluster("themes")


@pytest.mark.parametrize(
    ("year", "counts"),
    [(2023, "13 themes of 25 topics"), (2024, "17 themes of 17 topics"), (2025, "9 themes of 17 topics")],
)
def test_the_topics_of_ikat_have_these_themes(shared: Path, year: int, counts: str) -> None:
    topics = read_topics(shared / "ikat" / str(year) / f"{year}_test_topics.json")
    (note,) = clustering((topic.topic_id for topic in topics), "theme")
    assert note.startswith(f"clustered by theme: {counts};")
