"""The bundle that a track publishes: no name, no licensed text and nothing private is left in it."""

import json
import random
import shutil
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.files.stored import sha256
from judge.harness.judged import read_judged
from judge.harness.release.contents import renamed_pool
from judge.harness.release.job import ReleaseOutcome, ReleasePlan, release_folder
from judge.harness.release.pseudonyms import Pseudonyms, completed, read_pseudonyms, write_pseudonyms
from judge.harness.release.search import remaining
from judge.text.safe import MAX_ID
from tests.conftest import PROJECT

NAMES = st.dictionaries(st.text(min_size=1, max_size=MAX_ID), st.none(), min_size=1, max_size=20).map(tuple)
WORDS = st.sampled_from(["run", "1", "run01", "a.b", "a.b.c", "(x|y)+", "response", "Überlauf", "my run", 'say "hi"'])


@given(st.lists(st.one_of(WORDS, st.text(min_size=1, max_size=12)), unique=True), st.integers())
def test_every_name_gets_a_pseudonym_of_its_own_that_is_nobody_elses_name(names: list[str], seed: int) -> None:
    found = completed(Pseudonyms(), names, names, random.Random(seed).shuffle)
    for kind in (found.runs, found.teams):
        assert set(kind) == set(names)
        assert len({pseudonym.casefold() for pseudonym in kind.values()}) == len(names)
        assert not {pseudonym.casefold() for pseudonym in kind.values()} & {name.casefold() for name in names}
    assert completed(found, names, names, random.Random(seed + 1).shuffle) == found


def test_a_later_bundle_keeps_the_pseudonyms_and_adds_new_ones() -> None:
    first = completed(Pseudonyms(runs={"baseline": "baseline"}), ["zebra", "ant", "baseline"], [], lambda names: None)
    assert first.runs == {"baseline": "baseline", "ant": "run01", "zebra": "run02"}
    second = completed(first, ["bee", "zebra"], [], lambda names: None)
    assert second.runs == {"baseline": "baseline", "ant": "run01", "zebra": "run02", "bee": "run03"}
    assert second.hidden == ("ant", "zebra", "bee")


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text(min_size=1, max_size=9), max_size=8))
def test_pseudonyms_are_read_as_written_or_refused(runs: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "names.json"
        write_pseudonyms(path, Pseudonyms(runs))
        try:
            assert read_pseudonyms(path) == Pseudonyms(runs)
        except InputError as error:
            assert error.problems


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "expected runs and teams"),
        (b'{"run": {}}', "unknown field `run`"),
        (b'{"runs": {"a": 1}}', "Expected `str`, got `int` - at `$.runs[...]`"),
        (b"\xff", "expected runs and teams"),
        (b'{"runs": {"a": "x", "b": "X"}}', "'X' stands for 'a' too"),
        (b'{"runs": {"a": "../x"}}', "'../x': expected up to 80 letters"),
    ],
)
def test_a_damaged_file_of_pseudonyms_is_refused_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "names.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_pseudonyms(path)
    said = f"{caught.value} {' '.join(f'{problem.path}: {problem.message}' for problem in caught.value.problems)}"
    assert message in said
    assert str(path) in said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as team alpha-7 says", 1),
        ("as team ALPHA-7 says", 1),
        ("alpha-7", 1),
        ("xalpha-7", 0),  # within a word
        ("alpha-77", 0),
        ("alpha-7_b", 1),  # an underscore ends a word, since ids are joined with it
        ('{"text": "of \\"q\\" we"}', 1),
        ("run", 0),  # fewer than four characters
        ("2023", 0),  # digits only
        ("one\nalpha-7 and alpha-7\nalpha-7", 2),  # lines
    ],
)
def test_a_name_is_found_as_a_word_in_any_case(text: str, found: int) -> None:
    names = ("alpha-7", "run", "2023", 'of "q"')
    assert len(list(remaining({"f": text.encode()}, names))) == found


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=4, max_size=30), st.text(max_size=20))
def test_whatever_a_name_is_made_of_it_is_found(name: str, around: str) -> None:
    if name.isdecimal() or "\n" in name.casefold():
        return
    for line in (f" {name} ", json.dumps({"x": f". {name} ."}), json.dumps({"x": f". {name} ."}, ensure_ascii=False)):
        content = f"{around}\n{line}\n".encode("utf-8", "replace")
        assert any(problem.message for problem in remaining({"f": content}, [name])), line


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("judged") / "out"
    example = PROJECT / "examples"
    arguments = ["run", "--runs", str(example / "runs"), "--topics", str(example / "topics.json")]
    arguments += ["--passages", str(example / "passages.jsonl"), "--criteria", "groundedness"]
    assert main([*arguments, "--model", "baseline/overlap", "--out", str(out)]) == 0
    return out


def release(judged: Path, out: Path, **options: object) -> ReleaseOutcome:
    return release_folder(ReleasePlan(folder=judged, out=out, **options))  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_no_name_path_or_text_of_a_passage_is_left_in_a_bundle(judged: Path, tmp_path: Path) -> None:
    outcome = release(judged, tmp_path / "bundle")
    pool = read_judged(judged).pool
    published = contents(outcome.out)
    secrets = [run.run_id for run in pool.runs] + [run.team for run in pool.runs if run.team]
    secrets += [run.digest for run in pool.runs] + [str(judged), str(PROJECT), "journal"]
    whole = b"\n".join([*published.values(), *(name.encode() for name in published)]).decode()
    assert [secret for secret in secrets if secret in whole] == []
    # A response may quote a passage; nothing else may.
    rest = "\n".join(content.decode() for name, content in published.items() if name not in ("bank.json", "pool.jsonl"))
    assert not any(passage.text[:80] in rest for passage in pool.passages.values())
    assert set(published) == {*outcome.files, "run.sha256"}


@pytest.mark.slow
def test_a_bundle_has_the_numbers_of_its_folder_under_other_names(judged: Path, tmp_path: Path) -> None:
    outcome = release(judged, tmp_path / "bundle")
    assert outcome.names is not None
    names = read_pseudonyms(outcome.names).runs
    before, after = read_judged(judged), read_judged(outcome.out)
    rows = {(names[row.run_id], row.criterion): msgspec.structs.replace(row, run_id="") for row in before.leaderboard}
    assert rows == {(row.run_id, row.criterion): msgspec.structs.replace(row, run_id="") for row in after.leaderboard}
    assert [(r.response_id, r.grade) for r in before.results if hasattr(r, "grade")] == [
        (r.response_id, r.grade) for r in after.results if hasattr(r, "grade")
    ]
    for file in judged.glob("qrels/*"):
        assert (outcome.out / "qrels" / file.name).read_bytes() == file.read_bytes()
    for run, pseudonym in names.items():
        lines = (judged / f"response_runs/{run}.run").read_text().replace(run, pseudonym)
        assert (outcome.out / f"response_runs/{pseudonym}.run").read_text() == lines
    assert main(["leaderboard", str(outcome.out)]) == 0
    assert main(["report", str(outcome.out)]) == 0
    assert not any(run in (outcome.out / "report.html").read_text() for run in names)


@pytest.mark.slow
def test_the_private_file_is_the_owners_alone_and_gives_the_same_bytes_again(judged: Path, tmp_path: Path) -> None:
    first = release(judged, tmp_path / "a", names=tmp_path / "n.json")
    second = release(judged, tmp_path / "b", names=tmp_path / "n.json")
    assert contents(first.out) == contents(second.out)
    assert stat.S_IMODE((tmp_path / "n.json").stat().st_mode) == 0o600
    again = contents(release(judged, tmp_path / "a", names=tmp_path / "n.json").out)
    assert again == contents(first.out)
    other = read_pseudonyms(tmp_path / "n.json").runs
    release(judged, tmp_path / "c")
    assert set(read_pseudonyms(tmp_path / "c.names.json").runs) == set(other)


def with_text(judged: Path, copy: Path, text: str) -> Path:
    """The folder with a text in place of the first rationale, recorded as if `judge run` had written it."""
    shutil.copytree(judged, copy)
    lines = (copy / "judgments.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    (copy / "judgments.jsonl").write_text("\n".join([json.dumps(first | {"rationale": text}), *lines[1:], ""]))
    record = (copy / "run.sha256").read_text().splitlines()
    digest = sha256((copy / "judgments.jsonl").read_bytes())
    record = [f"{digest}  judgments.jsonl" if line.endswith("  judgments.jsonl") else line for line in record]
    (copy / "run.sha256").write_text("\n".join([*record, ""]))
    return copy


@pytest.mark.slow
def test_a_name_in_a_published_text_is_refused_with_its_place(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = with_text(judged, tmp_path / "copy", "as Example-Team itself says")
    release(copy, tmp_path / "without")  # the judge's words are left out
    arguments = ["release", str(copy), "-o", str(tmp_path / "with"), "--rationales"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "judgments.jsonl: name_left at line 1" in said
    assert "'example-team' stands there" in said
    assert not (tmp_path / "with").exists()
    assert not (tmp_path / "with.names.json").exists()
    assert main([*arguments, "--allow-names"]) == 0
    assert main(["release", str(copy), "-o", str(tmp_path / "open"), "--rationales", "--keep-names"]) == 0
    assert "example-team" in (tmp_path / "open/runs.jsonl").read_text()
    assert not (tmp_path / "open.names.json").exists()


@pytest.mark.slow
def test_passages_and_reasons_are_published_only_on_demand(judged: Path, tmp_path: Path) -> None:
    copy = with_text(judged, tmp_path / "copy", "The third passage says so.")
    plain = contents(release(copy, tmp_path / "plain").out)
    full = contents(release(copy, tmp_path / "full", passage_text=True, rationales=True, license="CC BY 4.0").out)
    assert plain["passages.jsonl"] == b""
    assert full["passages.jsonl"] == (judged / "passages.jsonl").read_bytes()
    assert b"third passage" not in plain["judgments.jsonl"]
    assert b"third passage" in full["judgments.jsonl"]
    assert b"Terms of use: CC BY 4.0" in full["README.md"]
    assert b"No terms of use" in plain["README.md"]


@pytest.mark.slow
def test_a_folder_that_is_not_as_it_was_written_is_refused(judged: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(judged, copy)
    (copy / "leaderboard.tsv").write_text("edited\n")
    (copy / "bank.json").unlink()
    with pytest.raises(InputError) as caught:
        release(copy, tmp_path / "bundle")
    assert sorted((Path(p.file).name, p.message) for p in caught.value.problems) == [
        ("bank.json", "missing: see run.sha256"),
        ("leaderboard.tsv", "changed since: see run.sha256"),
    ]
    assert not (tmp_path / "bundle").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out": "out"}, "give a folder of its own"),
        ({"out": "out/inner"}, "give a folder outside it"),
        ({"out": "full"}, "this command did not write"),
        ({"out": "b", "names": "b/names.json"}, "which is published"),
        ({"out": "b", "keep_names": True, "names": "n.json"}, "without effect here"),
    ],
)
def test_a_place_that_would_mix_or_leak_is_refused(
    judged: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    shutil.copytree(judged, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    placed = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises(UsageError, match=message):
        release_folder(ReleasePlan(folder=tmp_path / "out", **placed))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_order_of_the_names_is_not_told(judged: Path) -> None:
    pool = read_judged(judged).pool
    ids = sorted(run.run_id for run in pool.runs)
    names = Pseudonyms(
        runs=dict(zip(ids, [f"run{n:02}" for n in range(len(ids), 0, -1)], strict=True)),
        teams={run.team: "team01" for run in pool.runs if run.team},
    )
    found = renamed_pool(pool, names)
    assert [run.run_id for run in found.runs] == sorted(run.run_id for run in found.runs)
    for response in found.responses:
        assert [entry.run_id for entry in response.runs] == sorted(entry.run_id for entry in response.runs)
