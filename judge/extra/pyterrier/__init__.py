"""A measure for PyTerrier: what a judge makes of the answers that pipelines generate."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judge.ask.criteria import find_criterion
from judge.ask.prompt import check_unit
from judge.ask.records import Judgment
from judge.io.files import jsonl_bytes
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan


def pyterrier(prompt: str, *, lacking: float = math.nan, **options: Any) -> Any:
    """A measure for `pt.Experiment`: the grade of each query's `qanswer` under a prompt about responses.

    Used passages are a query's rows with `docno` and `text`, else its `qcontext`. `lacking`: for a query without grade.
    `options`: those of `Plan`; `out` holds the journal of all replies and the results of the last answers.
    """
    import ir_measures

    check_unit([find_criterion(prompt)], "response")
    grades = partial(_grades, lacking, {"profile": "ragtime", "replace": True, **options, "prompts": [prompt]})
    return ir_measures.define(grades, prompt, False, run_inputs=["query", "qanswer"], qrel_inputs=["query_id"])


def _grades(lacking: float, options: dict[str, Any], qrels: Any, frame: Any) -> Iterator[tuple[str, float]]:
    grades: dict[str, float] = {}
    if len(frame):
        # Ids may be numbers here, and are texts everywhere else.
        lines = [_line(str(name), rows.to_dict("records")) for name, rows in frame.groupby("query_id")]
        with TemporaryDirectory(prefix="judge-") as folder:
            files = Path(folder, "answers.jsonl"), Path(folder, "topics.jsonl")
            for file, each in zip(files, zip(*lines, strict=True), strict=True):
                file.write_bytes(jsonl_bytes(each))
            found = run(Plan(**options, runs=files[:1], topics=files[1])).results
        grades = {one.topic_id: float(one.grade) for one in found if isinstance(one, Judgment) and not one.unable}
    for query_id in dict.fromkeys([*frame["query_id"], *qrels["query_id"]]):
        yield query_id, grades.get(str(query_id), lacking)


def _line(name: str, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first answer of a query, and the query, as lines of the format `ragtime`."""
    of_rows = {row["doc_id"]: {"text": row["text"]} for row in rows if "text" in row}
    passages = of_rows or {key: {"text": rows[0][key]} for key in ("qcontext",) if key in rows[0]}
    about = dict.fromkeys(("team_id", "run_id"), "pyterrier") | {"topic_id": name}
    answer = {"text": rows[0]["qanswer"], "citations": [*passages]}
    asked = {"request_id": name, "problem_statement": rows[0]["query"]}
    return {"metadata": about, "responses": [answer], "documents": passages}, asked
