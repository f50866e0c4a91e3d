"""Whom a filter by known items removes: exact arithmetic against enumeration, scipy, and the table of the documents."""

import itertools
import re
from pathlib import Path

import pytest
from scipy.stats import binom

from judge.stats.worker_models import removal_probability

PAGE = Path(__file__).parents[2] / "docs" / "crowd.md"


@pytest.mark.parametrize("error", [0.0, 0.05, 0.2, 0.75, 1.0])
@pytest.mark.parametrize(("known", "fails"), [(0, 0), (1, 0), (1, 1), (4, 0), (4, 1), (6, 2), (6, 7)])
def test_every_pattern_of_fails_counts_once(error: float, known: int, fails: int) -> None:
    patterns = itertools.product((0, 1), repeat=known)
    share = sum(error ** sum(p) * (1 - error) ** (known - sum(p)) for p in patterns if sum(p) > fails)
    assert removal_probability(error, known, fails) == pytest.approx(share, abs=1e-15)
    assert removal_probability(error, known, fails) == pytest.approx(float(binom.sf(fails, known, error)), abs=1e-15)


def test_the_table_of_the_documents_is_exact() -> None:
    table = re.findall(r"^\| (\d+) \| (\d) \|((?: [.\d]+ \|)+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(int(known), int(fails)) for known, fails, _ in table] == [
        (1, 0), (2, 0), (3, 0), (5, 0), (10, 0), (3, 1), (5, 1), (10, 1), (10, 2),
    ]  # fmt: skip
    for known, fails, cells in table:
        # Workers who err on 5, 10 and 20 %, and who click at random where two of four grades, or one, are acceptable.
        exact = [removal_probability(error, int(known), int(fails)) for error in (0.05, 0.1, 0.2, 0.5, 0.75)]
        assert cells.split(" |")[:-1] == [f" {share:.3f}".replace(" 0.", " .") for share in exact]
