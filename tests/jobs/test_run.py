"""The main job on the bundled example, as a user types it."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judge.cli import main
from judge.errors import InputError
from judge.jobs.manifest import RECORD, check_folder
from tests.calibration_world import contents, table
from tests.conftest import PROJECT, complaint, on_stderr, put, run_example, run_python
from tests.jobs.conftest import only
from tests.mock import Mock

RUNS = PROJECT / "examples" / "runs"
TOPICS = PROJECT / "examples" / "topics.json"
PASSAGES = PROJECT / "examples" / "passages.jsonl"
GROUNDEDNESS = ["--criteria", "groundedness", "--model", "baseline/overlap"]


def run(runs: Path, out: Path, *more: str, passages: Path | None = PASSAGES) -> int:
    evidence = [] if passages is None else ["--passages", str(passages)]
    return main(
        ["run", "--runs", str(runs), "--topics", str(TOPICS), *evidence, *GROUNDEDNESS, "--out", str(out), *more]
    )


def files(folder: Path) -> dict[str, bytes]:
    # The report says what the calls in the journal took.
    return {name: data for name, data in contents(folder).items() if not Path(name).name.startswith("report.")}


def results(folder: Path) -> dict[str, bytes]:
    """The files without those in which the command line is."""
    return {name: data for name, data in files(folder).items() if name not in ("manifest.json", "run.sha256")}


def test_a_file_beside_the_qrels_names_the_measure_that_gives_the_share(judged: Path) -> None:
    sidecar = judged / "qrels" / "response_groundedness.llm.qrel.json"
    said = json.loads(sidecar.read_text(encoding="utf-8"))["share"]
    assert said.startswith("P(rel=2)@1 of this file and response_runs/")


def rows(out: Path) -> dict[str, dict[str, str]]:
    """The leaderboard's fields by run id."""
    return {line["run_id"]: line for line in table(out / "leaderboard.tsv")}


def counts(row: dict[str, str]) -> list[int]:
    return [int(row[name]) for name in ("turns", "n", "unable", "missing", "not_asked", "unanswered")]


def test_the_example_gives_every_promised_file_and_ranks(judged: Path) -> None:
    written = files(judged)
    assert {name for name in written if not name.startswith("response_runs")} == {
        "bank.json", "differences.tsv", "excluded.tsv", "failures.jsonl", "index.md", "judgments.jsonl",
        "leaderboard.md", "leaderboard.tsv", "manifest.json", "missing_passages.tsv", "passages.jsonl", "pool.jsonl",
        "pool.txt", "problems.json", "qrels/response_groundedness.llm.qrel",
        "qrels/response_groundedness.llm.qrel.json", "run.sha256", "runs.jsonl", "screen.tsv",
    }  # fmt: skip
    assert len([name for name in written if name.startswith("response_runs")]) == 7
    assert (judged / "report.html").is_file()
    found = rows(judged)
    means = {name: float(row["mean"]) for name, row in found.items()}
    assert means["mill-fluent-invented"] == min(means.values()) < means["harbor-grounded"] - 1
    assert counts(found["harbor-grounded"]) == [16, 16, 0, 0, 0, 0]
    # Unanswered: 1-1_4, 1-1_6, 2-1_4, 3-1_4, 3-1_5; missing: 2-1_5, whose passage does not exist.
    assert counts(found["thistle-faulty"]) == [16, 10, 0, 1, 0, 5]
    assert found["thistle-faulty"]["coverage"] == "0.6250"
    missing = [line.split("\t")[:4] for line in written["excluded.tsv"].decode().splitlines() if "missing_turn" in line]
    assert missing == [["thistle-faulty", turn_id, "", "missing_turn"] for turn_id in ("3-1_4", "3-1_5")]


def test_turns_that_no_run_answers_are_counted_where_topics_are_given(tmp_path: Path, example: Path) -> None:
    run(only(example, "thistle-faulty"), tmp_path / "out")
    assert counts(rows(tmp_path / "out")["thistle-faulty"]) == [16, 10, 0, 1, 0, 5]
    main(["run", "--runs", str(example), "--passages", str(PASSAGES), *GROUNDEDNESS, "--out", str(tmp_path / "bare")])
    # Without topics 1-1_9 is a turn like others, and nobody knows of 3-1_4 and 3-1_5.
    assert counts(rows(tmp_path / "bare")["thistle-faulty"]) == [15, 11, 0, 1, 0, 3]


def test_a_pool_with_its_bank_had_to_answer_only_its_own_turns(tmp_path: Path) -> None:
    run(PROJECT / "examples" / "regin", tmp_path / "out")
    assert counts(rows(tmp_path / "out")["example"]) == [2, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("depth", ["1", "2"])
def test_a_second_response_does_not_stand_for_an_empty_first_one(tmp_path: Path, example: Path, depth: str) -> None:
    path = example / "mill-fluent-invented.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    (first,) = document["turns"][0]["responses"]
    document["turns"][0]["responses"] = [{**first, "text": " "}, {**first, "rank": 2}]
    path.write_text(json.dumps(document), encoding="utf-8")
    run(example, tmp_path / "out", "--depth", depth)
    assert counts(rows(tmp_path / "out")["mill-fluent-invented"]) == [16, 15, 0, 0, 0, 1]


def test_a_run_of_over_long_responses_keeps_its_row_and_one_that_declined_has_none(tmp_path, example: Path) -> None:
    for name, change in (("mill-fluent-invented", "text"), ("quarry-copied", "eval_response")):
        document = json.loads((example / f"{name}.json").read_text(encoding="utf-8"))
        document["eval_response"] = change != "eval_response"
        for turn in document["turns"] if change == "text" else []:
            turn["responses"][0]["text"] *= 20
        (example / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    run(example, tmp_path / "out", "--over-limit", "exclude")
    found = rows(tmp_path / "out")
    assert counts(found["mill-fluent-invented"]) == [16, 0, 0, 0, 0, 16]
    assert len(found) == 6
    assert "quarry-copied" not in found


def test_names_and_packing_of_files_make_no_difference(tmp_path: Path, example: Path, judged: Path) -> None:
    for number, path in enumerate(sorted(example.iterdir(), reverse=True)):
        content = path.read_bytes()
        path.unlink()
        packed = path.suffix == ".gz" or number % 2
        name = f"{number}-{path.name.removesuffix('.gz')}{'.gz' if packed else ''}"
        (example / name).write_bytes(gzip.compress(content) if packed and path.suffix != ".gz" else content)
    run(example, tmp_path / "out")
    for name in ("pool.jsonl", "leaderboard.tsv"):
        assert (tmp_path / "out" / name).read_bytes() == (judged / name).read_bytes()


def test_extending_elsewhere_pays_for_nothing_again(judged: Path, tmp_path: Path, capsys) -> None:
    assert "77/77 judged, 77 without a call" in on_stderr(capsys, run(RUNS, tmp_path / "out", "--extend", str(judged)))
    assert (tmp_path / "out" / "leaderboard.tsv").read_bytes() == (judged / "leaderboard.tsv").read_bytes()


def test_what_two_machines_judged_is_joined_and_nothing_is_asked_again(
    mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [
        f"{topic['number']}_{turn['turn_id']}" for topic in json.loads(TOPICS.read_text()) for turn in topic["turns"]
    ]
    asked = ("--criteria", "groundedness", "--model", "server/mock", "--base-url", mock.base_url)
    for name, part in (("a", turns[:8]), ("b", turns[8:])):
        chosen = put(tmp_path / f"{name}.txt", "\n".join(part))
        assert run_example(tmp_path / name, *asked, "--turns", str(chosen)) == 0
    paid = mock.stats()["paid"]
    folders = [str(tmp_path / name) for name in "ab"]
    assert main(["journal", "merge", *folders, "-o", str(tmp_path / "all" / "journal.sqlite")]) == 0
    capsys.readouterr()
    assert "77/77 judged, 77 without a call" in on_stderr(capsys, run_example(tmp_path / "all", *asked))
    assert mock.stats()["paid"] == paid == 76
    # One machine that judges everything writes the same.
    assert run_example(tmp_path / "alone", *asked) == 0
    assert results(tmp_path / "all") == results(tmp_path / "alone")


def test_without_passages_the_runs_own_texts_count(tmp_path: Path) -> None:
    assert run(RUNS, tmp_path / "out", passages=None) == 0
    sources = {
        json.loads(line)["source"]
        for line in (tmp_path / "out" / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    }
    assert sources == {"run"}
    reasons = {
        json.loads(line)["reason"]
        for line in (tmp_path / "out" / "failures.jsonl").read_text(encoding="utf-8").splitlines()
    }
    assert reasons == {"no_passages"}


def test_a_trial_is_spread_over_the_topics_and_the_full_run_follows(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(RUNS, out, "--limit", "6") == 0
    judged = [json.loads(line) for line in (out / "judgments.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(judged) == 6
    assert {one["topic_id"] for one in judged} == {"1-1", "2-1", "3-1"}
    found = rows(out)
    assert counts(found["quarry-copied"]) == [16, 0, 0, 0, 16, 0]
    assert sum(int(row["n"]) for row in found.values()) >= 6
    assert run(RUNS, out) == 0
    assert len((out / "judgments.jsonl").read_text(encoding="utf-8").splitlines()) == 76


def spoiled_truncated(example: Path) -> None:
    path = example / "harbor-grounded.json"
    path.write_bytes(path.read_bytes()[:5000])


def spoiled_twice_the_same_id(example: Path) -> None:
    shutil.copy(example / "harbor-grounded.json", example / "again.json")


def spoiled_gzip(example: Path) -> None:
    path = example / "orchard-manual.json.gz"
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (spoiled_truncated, "harbor-grounded.json"),
        (spoiled_twice_the_same_id, "again.json"),
        (spoiled_gzip, "orchard-manual.json.gz"),
    ],
)
def test_a_run_that_cannot_be_judged_stops_everything_before_anything_is_written(
    tmp_path: Path, example: Path, capsys: pytest.CaptureFixture[str], spoil: object, named: str
) -> None:
    assert callable(spoil)
    spoil(example)
    assert run(example, tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().err
    assert named in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "absent"], "absent"),
        (["--runs", "{runs}", "--topics", "absent.json"], "absent.json"),
        (["--runs", "{runs}", "--passages", "absent.jsonl"], "absent.jsonl"),
        (["--runs", "{runs}", "--criteria", "relevance"], "--topics"),
        (["--runs", "{runs}", "--prompt", "groundedness/absent"], "groundedness/absent"),
        (["--runs", "{runs}", "--model", "gpt-4"], "no backend"),
        (["--runs", "{runs}", "--model", "server/x"], "--base-url"),
        (["--runs", "{runs}", "--model", "openai/gpt-x"], "OPENAI_API_KEY"),
        (["--runs", "{runs}", "--model", "local/absent.gguf"], "absent.gguf"),
        (["--runs", "{runs}", "--model", "baseline/overlap"], "groundedness and support only"),
        (["--runs", "{runs}", "--prompt", "groundedness/graded", "--prompt", "groundedness/yes_no"], "two prompts"),
        (["--runs", "{runs}", "--extend", "absent"], "absent"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bad_usage_is_one_clear_message(tmp_path, monkeypatch, capsys, arguments: list[str], message: str) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_MODEL"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)
    filled = [str(RUNS) if argument == "{runs}" else argument for argument in arguments]
    chosen = [] if "--model" in filled else ["--model", "baseline/overlap"]
    if not {"--criteria", "--prompt", "--model"} & set(filled):
        chosen += ["--criteria", "groundedness"]
    said = complaint(capsys, main(["run", *filled, *chosen, "--out", str(tmp_path / "out")]))
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_output_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    try:
        assert run(RUNS, tmp_path / "out") == 2
    finally:
        tmp_path.chmod(0o700)
    assert "cannot be used as an output folder" in capsys.readouterr().err


def test_an_output_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("x", encoding="utf-8")
    assert "cannot be used as an output folder" in complaint(capsys, run(RUNS, tmp_path / "out"))


@pytest.mark.parametrize("manifest", ["not json", "{}", '{"schema": 99, "judge_version": "9", "configuration": {}}'])
def test_an_output_folder_of_another_make_is_left_alone(tmp_path, capsys, manifest: str) -> None:
    out = tmp_path / "out"
    put(out / "manifest.json", manifest)
    before = files(out)
    assert "choose another --out" in complaint(capsys, run(RUNS, out))
    assert files(out) == before


@pytest.mark.parametrize("command", ["report", "release --out bundle", "leaderboard", "pool --runs runs --extend"])
def test_whoever_reads_a_folder_of_another_make_is_not_sent_to_another_out(tmp_path, capsys, command: str) -> None:
    put(tmp_path / "manifest.json", '{"schema": 99, "judge_version": "9", "configuration": {}}')
    for name in ("judgments.jsonl", "pool.jsonl", "passages.jsonl", "excluded.tsv", "runs.jsonl"):
        put(tmp_path / name, "run_id\tturn_id\trank\treason\tdetail\n" if name.endswith(".tsv") else "")
    message = complaint(capsys, main([*command.split(), str(tmp_path)]))
    assert "made by judge 9 (layout 99)" in message
    assert "read it with the version of judge that wrote it" in message
    assert "--out" not in message


def test_another_configuration_needs_another_folder_or_replace(out: Path, example: Path, capsys) -> None:
    assert run(RUNS, out) == 0
    before = files(out)
    # A rerun gives the same bytes, and what may only change the speed is no other configuration, nor is more room.
    assert run(RUNS, out) == 0
    assert files(out) == before
    patience = ("--threads", "--timeout", "--concurrency", "--attempts", "--max-tokens")
    assert run(RUNS, out, *(word for option in patience for word in (option, "7"))) == 0
    configured, before = json.loads(before["manifest.json"])["configuration"], files(out)
    assert json.loads(before["manifest.json"])["configuration"] == configured
    capsys.readouterr()
    for option, value, told in (
        ("--over-limit", "truncate", '--over-limit: "flag" there, "truncate" now'),
        ("--temperature", "1", "--temperature: 0.0 there, 1.0 now"),
        ("--seed", "1", "--seed: none there, 1 now"),
        ("--limit", "3", "holds a finished run, which a trial with --limit would write over"),
    ):
        said = complaint(capsys, run(RUNS, out, option, value))
        assert told in said and "--replace" in said
        assert files(out) == before
    (example / "quarry-copied.json").unlink()
    assert run(example, out, "--replace") == 0
    assert not (out / "response_runs" / "quarry-copied.run").exists()


def test_a_hostile_run_id_stays_inside_the_folder(tmp_path: Path, example: Path) -> None:
    path = example / "harbor-grounded.json"
    text = path.read_text(encoding="utf-8").replace('"harbor-grounded"', '"../../evil | <b> `x`"')
    path.write_text(text, encoding="utf-8")
    assert run(example, tmp_path / "out") == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "runs"]
    assert len(list((tmp_path / "out" / "response_runs").iterdir())) == 7
    assert "<b>" not in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RUNS, tmp_path / "out") == 0
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert readme.split("```text\n")[1].split("```")[0] in capsys.readouterr().out


def test_the_python_api_does_the_same(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the page, run as they stand there."""
    code = (PROJECT / "docs" / "run.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(PROJECT / "examples")
    exec(compile(code, "run.md", "exec"), {})
    assert (tmp_path / "out-example/leaderboard.tsv").read_bytes() == (judged / "leaderboard.tsv").read_bytes()
    manifest = json.loads((tmp_path / "out-example" / "manifest.json").read_text(encoding="utf-8"))
    # By it a report finds the conversations.
    assert manifest["options"] == {"topics": "examples/topics.json"}


def test_a_folder_of_other_files_is_not_written_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    put(out / "passages.jsonl", "the user's own")
    assert "somebody else's" in complaint(capsys, run(RUNS, out))
    assert files(out) == {"passages.jsonl": b"the user's own"}


def test_a_folder_that_another_process_begins_to_write_is_taken(tmp_path: Path) -> None:
    # As `replace_folder` leaves it between its record and the manifest.
    (tmp_path / "response_runs").mkdir()
    (tmp_path / RECORD).write_text(f"{'0' * 64}  manifest.json\n{'0' * 64}  response_runs/a.run\n", encoding="utf-8")
    assert not check_folder(tmp_path, {}, trial=False)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"holds notes\.txt and no manifest of judge"):
        check_folder(tmp_path, {}, trial=False)


@pytest.mark.long
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">/dev/full"])
def test_closed_and_full_streams_give_no_traceback(tmp_path: Path, redirect: str, unbuffered: str) -> None:
    command = f"{sys.executable} -m judge run --runs {RUNS} --passages {PASSAGES} {' '.join(GROUNDEDNESS)}"
    line = f"{command} --out {tmp_path / 'out'} {redirect}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(line, shell=True, cwd=PROJECT, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == (3 if redirect == ">/dev/full" else 0)
    assert (tmp_path / "out" / "leaderboard.tsv").exists()


def test_a_run_id_outside_the_terminal_s_alphabet_prints(tmp_path: Path, example: Path) -> None:
    path = example / "harbor-grounded.json"
    path.write_text(path.read_text(encoding="utf-8").replace("harbor-grounded", "hafen-größe"), encoding="utf-8")
    asked = ("run", "--runs", example, *GROUNDEDNESS, "--out", tmp_path / "out")
    done = run_python("-m", "judge", *asked, environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "hafen-gr\\xf6\\xdfe" in done.stdout


def test_a_run_in_which_nothing_could_be_judged_is_no_success(tmp_path, example: Path, capsys) -> None:
    only(example, "mill-fluent-invented")
    gives = "no judgment has all texts of its passages; --passages FILE gives them, and `judge passages extract`"
    for more, told in ((["--dry-run"], "nothing can be judged"), (["--dry-run", "--json"], "nothing can be judged"),
                       ([], "nothing was judged")):  # fmt: skip
        assert f"{told}: {gives}" in on_stderr(capsys, run(example, tmp_path / "out", *more, passages=None), 1)
    asked = "--model", "server/a", "--base-url", "http://127.0.0.1:9/v1", "--criteria", "groundedness", "naturalness"
    assert main(["run", "--runs", str(example), "--topics", str(TOPICS), *asked, "--dry-run", "--out", "new"]) == 0
    assert "nothing can be judged" not in capsys.readouterr().err


def test_a_pool_alone_is_taken_on_with_the_texts_of_its_passages(tmp_path, example: Path, capsys) -> None:
    out, pooling = tmp_path / "out", ["--runs", str(example), "--topics", str(TOPICS)]
    assert main(["pool", *pooling, "--out", str(out)]) == 0
    assert run(example, out, "--depth", "2") == 2
    assert "holds a pool that was made in another way (--depth: 1 there, 2 now)" in capsys.readouterr().err
    extracted = ["passages", "extract", "--pool", str(out), "--passages", str(PASSAGES)]
    assert main([*extracted, "-o", str(tmp_path / "passages.jsonl")]) == 1
    assert run(example, out, passages=tmp_path / "passages.jsonl") == 0
    capsys.readouterr()
    # With results there, other texts are another configuration, told in words.
    assert (
        "holds results of another configuration (--passages: other content there than now; pooled responses: other "
        "content there than now)" in complaint(capsys, run(example, out, passages=None))
    )


@pytest.mark.long
def test_prompts_of_the_user_are_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    (tmp_path / "mine.md").write_text(text.replace("version = 1", "version = 2"), encoding="utf-8")
    given, out = ["--prompt", str(tmp_path / "mine.md")], tmp_path / "out"
    arguments = ["--runs", str(RUNS), "--topics", str(TOPICS), "--passages", str(PASSAGES)]
    assert main(["run", *arguments, *given, "--model", "baseline/overlap", "--out", str(out)]) == 0
    assert (out / "report.html").exists()
    capsys.readouterr()
    assert "give each prompt of your own with --prompt PATH" in complaint(capsys, main(["leaderboard", str(out)]))
    assert main(["leaderboard", str(out), *given]) == 0
    assert "groundedness/mine" in capsys.readouterr().out
    assert main(["report", str(out), *given]) == 0
    assert main(["plan", str(out), *given]) == 0
