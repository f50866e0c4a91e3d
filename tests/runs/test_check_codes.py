"""A code is one row: its tables in the document, its severity, its advice and what it needs follow from it."""

import json
import shutil
from functools import partial

import pytest

from judge.runs.check import CODES, NEEDS_HASHES, NEEDS_TOPICS, SECTIONS, problem
from tests.conftest import PROJECT, run_python


def test_every_code_stands_in_one_section():
    assert sum(map(len, SECTIONS.values())) == len(CODES)


def test_what_is_derived_holds_the_rows_that_it_names():
    assert NEEDS_TOPICS == (
        "missing_turn", "ptkb_text_differs", "turn_number_too_high", "unknown_ptkb_id", "unknown_turn", "wrong_topics",
    )  # fmt: skip
    assert NEEDS_HASHES == ("absent_evidence", "passage_text_differs", "unknown_passage")
    fixed = {code: row for code, row in CODES.items() if row.fix}
    assert {row.severity for row in fixed.values()} == {"warning"}
    assert {problem(code, "f", "$", "m").severity for code in fixed} == {"warning"}


NEW = {"too_polite": "warning", "too_glad": "error"}
ROW = '        "{}": Code("{}", "the response says please", advice="leave it out", fix="left alone"),\n'
CHECK = '        if "please" in text:\n            self._add("{}", path, "it says please")\n'


def insert(path, after, text):
    """Add lines to a file after a line that it has once."""
    source = path.read_text(encoding="utf-8")
    assert source.count(after) == 1
    path.write_text(source.replace(after, after + text), encoding="utf-8")


@pytest.mark.slow
def test_a_new_code_is_a_row_and_a_check(tmp_path):
    """Both are added to a copy of the package; no other file is touched, and all that shows codes shows it."""
    for folder in ("judge", "docs"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    rows, checks = "".join(ROW.format(*row) for row in NEW.items()), "".join(map(CHECK.format, NEW))
    insert(tmp_path / "judge/runs/check/__init__.py", '    "Responses": {\n', rows)
    anchor = '        path = below(place.path, f".{place.names.text}")\n'
    insert(tmp_path / "judge/runs/check/responses.py", anchor, checks)
    passages = [{"id": "clueweb22-en0000-00-00000:0", "score": 1.0, "used": True}]
    response = {"rank": 1, "text": "Yes, please.", "passage_provenance": passages, "ptkb_provenance": [1]}
    turn = {"turn_id": "9-1_1", "responses": [response]}
    run = {"run_name": "r", "run_type": "manual", "eval_response": True, "turns": [turn]}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")

    call = partial(run_python, cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path)})
    done = call("-m", "judge", "validate", "--runs", "run.json", "--report-dir", "pages")
    assert done.returncode == 1, done.stderr
    page = (tmp_path / "pages" / "r.md").read_text(encoding="utf-8")
    index = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    documented = call("-c", "from docs.site.rows import _codes; print(_codes())").stdout
    for code, severity in NEW.items():
        assert f"  {severity} {code} (1): the response says please" in done.stdout
        assert f"## {severity}: {code} (1)\n\nthe response says please.\n\nTo fix it: leave it out." in page
        assert (f"| 9-1_1 | 1 | {code} |" in page) == (severity == "error")
        assert f"{code} (1)" in index
        row = f"| `{code}` | {severity} | the response says please |  |  |  | leave it out | left alone |"
        assert row in documented
