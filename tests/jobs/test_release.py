"""The bundle that a track publishes: no name, no licensed text and nothing private is left in it."""

import json
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.prompt_edit import with_examples
from judge.ask.records import Judgment
from judge.ask.returned import unpublished_models
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.io.files import sha256
from judge.io.folder import recorded
from judge.io.printout import Printout
from judge.jobs.judged import read_judged
from judge.jobs.manifest import RECORD
from judge.jobs.release import NAMES, ReleasePlan, release_folder
from judge.jobs.release.contents import renamed_pool
from judge.jobs.release.names import Pseudonyms, completed, read_pseudonyms, remaining
from judge.records import Example
from tests.calibration_world import contents
from tests.conftest import PROJECT, complaint, put, refused

WORDS = st.sampled_from(["run", "1", "run01", "a.b", "a.b.c", "(x|y)+", "response", "Überlauf", "my run", 'say "hi"'])


@settings(max_examples=40)
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
    path = put(tmp_path / "names.json", content)
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
    assert len(list(remaining({"f": text.encode()}, ("alpha-7", "run", "2023", 'of "q"')))) == found


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=4, max_size=30), st.text(max_size=20))
def test_whatever_a_name_is_made_of_it_is_found(name: str, around: str) -> None:
    if name.isdecimal() or "\n" in name.casefold():
        return
    for line in (f" {name} ", json.dumps({"x": f". {name} ."}), json.dumps({"x": f". {name} ."}, ensure_ascii=False)):
        content = f"{around}\n{line}\n".encode("utf-8", "replace")
        assert any(problem.message for problem in remaining({"f": content}, [name])), line


def printout(judged: Path, out: Path, **options: object) -> Printout:
    return release_folder(ReleasePlan(folder=judged, out=out, **options))  # type: ignore[arg-type]


def release(judged: Path, out: Path, **options: object) -> Path:
    (bundle,) = printout(judged, out, **options).files
    return bundle


def test_a_bundle_with_gold_has_the_corrected_board_and_says_what_gold_says(judged: Path, tmp_path: Path) -> None:
    plain = contents(release(judged, tmp_path / "plain"))
    names = tmp_path / "plain.names.json"
    bundle = release(judged, tmp_path / "bundle", gold=[PROJECT / "gold" / "example.gold.jsonl"], names=names)
    published = contents(bundle)
    assert published.keys() - plain.keys() == {"corrected.md", "corrected.tsv"}
    pseudonyms = read_pseudonyms(names).runs
    text = published["corrected.tsv"].decode()
    assert all(f"\t{pseudonym}\t" in text for pseudonym in pseudonyms.values())
    assert not any(name in text + published["corrected.md"].decode() for name in pseudonyms)
    for name in ("README.md", "leaderboard.md"):
        assert "nobody has compared" in plain[name].decode()
        assert "nobody has compared" not in published[name].decode()
        compared = "INCONCLUSIVE by people's grades, without a certificate: groundedness, wkappa"
        assert compared in published[name].decode()
        assert "UNCALIBRATED" not in published[name].decode()


def test_a_corrected_board_is_released_with_its_run(judged: Path, tmp_path: Path) -> None:
    gold, out = PROJECT / "gold" / "example.gold.jsonl", tmp_path / "corrected"
    assert main(["leaderboard", str(judged), "--gold", str(gold), "--out", str(out)]) == 0
    with pytest.raises(InputError, match="corrected leaderboard: `judge release OUT --gold FILE` publishes it"):
        release(out, tmp_path / "bundle")


def test_no_name_path_or_text_of_a_passage_is_left_in_a_bundle(judged: Path, tmp_path: Path) -> None:
    bundle = release(judged, tmp_path / "bundle")
    pool = read_judged(judged).pool
    published = contents(bundle)
    secrets = [run.run_id for run in pool.runs] + [run.team for run in pool.runs if run.team]
    secrets += [run.digest for run in pool.runs] + [str(judged), str(PROJECT), "journal"]
    whole = b"\n".join([*published.values(), *(name.encode() for name in published)]).decode()
    assert [secret for secret in secrets if secret in whole] == []
    # A response may quote a passage; nothing else may.
    rest = "\n".join(content.decode() for name, content in published.items() if name not in ("bank.json", "pool.jsonl"))
    assert not any(passage.text[:80] in rest for passage in pool.passages.values())
    assert set(published) == {*(name for name, _ in recorded(bundle, RECORD)), RECORD}


def test_a_bundle_has_the_numbers_of_its_folder_under_other_names(judged: Path, tmp_path: Path) -> None:
    bundle = release(judged, tmp_path / "bundle")
    names = read_pseudonyms(tmp_path / f"bundle{NAMES}").runs
    before, after = read_judged(judged), read_judged(bundle)
    rows = {(names[row.run_id], row.criterion): msgspec.structs.replace(row, run_id="") for row in before.leaderboard}
    assert rows == {(row.run_id, row.criterion): msgspec.structs.replace(row, run_id="") for row in after.leaderboard}
    assert [(r.response_id, r.grade) for r in before.results if hasattr(r, "grade")] == [
        (r.response_id, r.grade) for r in after.results if hasattr(r, "grade")
    ]
    for file in judged.glob("qrels/*"):
        assert (bundle / "qrels" / file.name).read_bytes() == file.read_bytes()
    for run, pseudonym in names.items():
        lines = (judged / f"response_runs/{run}.run").read_text().replace(run, pseudonym)
        assert (bundle / f"response_runs/{pseudonym}.run").read_text() == lines
    assert main(["leaderboard", str(bundle)]) == 0
    assert main(["report", str(bundle)]) == 0
    assert not any(run in (bundle / "report.html").read_text() for run in names)


def test_the_private_file_is_the_owners_alone_and_gives_the_same_bytes_again(judged: Path, tmp_path: Path) -> None:
    first = release(judged, tmp_path / "a", names=tmp_path / "n.json")
    assert contents(first) == contents(release(judged, tmp_path / "b", names=tmp_path / "n.json"))
    assert stat.S_IMODE((tmp_path / "n.json").stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="which is published"):
        release(judged, first / "inner")
    assert contents(release(judged, tmp_path / "a", names=tmp_path / "n.json")) == contents(first)
    other = read_pseudonyms(tmp_path / "n.json").runs
    release(judged, tmp_path / "c")
    assert set(read_pseudonyms(tmp_path / "c.names.json").runs) == set(other)


def rewritten(judged: Path, copy: Path, changes: dict[str, Callable[[Any], object]]) -> Path:
    """A copy of the folder with other files of JSON or lines of it, recorded as if `judge run` had written it so."""
    shutil.copytree(judged, copy)
    record = (copy / "run.sha256").read_text()
    for name, change in changes.items():
        before = (copy / name).read_bytes()
        rows = [json.loads(line) for line in before.splitlines()] if name.endswith(".jsonl") else [json.loads(before)]
        change(rows if name.endswith(".jsonl") else rows[0])
        (copy / name).write_text("\n".join([*map(json.dumps, rows), ""]))
        record = record.replace(sha256(before), sha256((copy / name).read_bytes()))
    (copy / "run.sha256").write_text(record)
    return copy


def with_text(judged: Path, copy: Path, text: str) -> Path:
    """The folder with a text in place of the first rationale."""
    return rewritten(judged, copy, {"judgments.jsonl": lambda rows: rows[0].update(rationale=text)})


def test_a_name_in_a_published_text_is_refused_with_its_place(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = with_text(judged, tmp_path / "copy", "as Example-Team itself says")
    release(copy, tmp_path / "without")  # the judge's words are left out
    arguments = ["release", str(copy), "-o", str(tmp_path / "with"), "--rationales"]
    said = complaint(capsys, main(arguments))
    assert "judgments.jsonl: name_left at line 1" in said
    assert "'example-team' stands there" in said
    assert not (tmp_path / "with").exists()
    assert not (tmp_path / "with.names.json").exists()
    assert main([*arguments, "--allow-names"]) == 0
    assert main(["release", str(copy), "-o", str(tmp_path / "open"), "--rationales", "--keep-names"]) == 0
    assert "example-team" in (tmp_path / "open/runs.jsonl").read_text()
    assert not (tmp_path / "open.names.json").exists()


def test_passages_and_reasons_are_published_only_on_demand(judged: Path, tmp_path: Path) -> None:
    copy = with_text(judged, tmp_path / "copy", "The third passage says so.")
    plain = contents(release(copy, tmp_path / "plain"))
    full = contents(release(copy, tmp_path / "full", passage_text=True, rationales=True, license="CC BY 4.0"))
    assert plain["passages.jsonl"] == b""
    assert full["passages.jsonl"] == (judged / "passages.jsonl").read_bytes()
    assert b"third passage" not in plain["judgments.jsonl"]
    assert b"third passage" in full["judgments.jsonl"]
    assert b"Terms of use: CC BY 4.0" in full["README.md"]
    assert b"No terms of use" in plain["README.md"]


def test_a_folder_that_is_not_as_it_was_written_is_refused(judged: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(judged, copy)
    (copy / "leaderboard.tsv").write_text("edited\n")
    (copy / "bank.json").unlink()
    assert sorted((Path(p.file).name, p.message) for p in refused(release, copy, tmp_path / "bundle")) == [
        ("bank.json", "missing: see run.sha256"),
        ("leaderboard.tsv", "changed since: see run.sha256"),
    ]
    assert not (tmp_path / "bundle").exists()


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
    put(tmp_path / "full/mine.txt", "mine")
    placed = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises(UsageError, match=message):
        release_folder(ReleasePlan(folder=tmp_path / "out", **placed))  # type: ignore[arg-type]


def test_the_addresses_that_a_certificate_compares_stay_at_home(judged: Path, tmp_path: Path) -> None:
    there, here = "http://gpu7.lab.example:8000/alice/v1", "http://10.1.2.3:8001/v1"
    banner = f"UNCALIBRATED: it does not match (base_url: {there} certified, {{'a': '{here}'}} here)."
    match = {"criterion": "groundedness", "item": "base_url", "certified": there, "found": here}

    def certified(manifest: dict[str, Any]) -> None:
        manifest["certificate"] = {"calibrated": False, "banner": banner, "matches": [match]}
        manifest["configuration"]["options"]["base_url"] = here

    sidecar = "qrels/response_groundedness.llm.qrel.json"
    changes = {"manifest.json": certified, sidecar: lambda sidecar: sidecar.update(calibration=banner)}
    bundle = release(rewritten(judged, tmp_path / "copy", changes), tmp_path / "bundle")
    found = contents(bundle)
    assert [name for name, content in found.items() if b"gpu7" in content or b"10.1.2.3" in content] == []
    shown = b"base_url: (not published) certified, {'a': '(not published)'} here"
    for name in ("README.md", "leaderboard.md", "qrels/response_groundedness.llm.qrel.json"):
        assert shown in found[name].replace(b"\\", b""), name


def test_a_model_that_is_named_by_a_place_in_a_home_is_refused(judged: Path, tmp_path: Path) -> None:
    def moved(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row | {"model": "/home/alice/llama.gguf"} for row in rows]

    copy = rewritten(judged, tmp_path / "copy", {"judgments.jsonl": moved})
    problems = refused(release, copy, tmp_path / "bundle")
    assert "'/home/alice/llama.gguf' stands there" in {problem.message for problem in problems}
    assert printout(copy, tmp_path / "bundle", allow_names=True).parts != ((),)


CANARY = "/srv/team-gull/llama CANARY"


def served(judged: Path, copy: Path) -> Path:
    """The folder as if a server had called its model by other names, with a certificate that compares one of them."""
    names = ("m-7b", "m-7b-2026-01-31", CANARY, "rack9/other")

    def replies(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row | {"judge": "server/m-7b", "model": names[i % 4]} for i, row in enumerate(rows)]

    match = {"criterion": "groundedness", "item": "model returned", "certified": "gpu4/m", "found": ", ".join(names)}
    banner = f"UNCALIBRATED: not as certified (model returned: gpu4/m certified, {', '.join(names)} here)."

    def manifest(written: dict[str, Any]) -> None:
        written["models_returned"] = sorted(names)
        written["certificate"] = {"calibrated": False, "banner": banner, "matches": [match]}

    def sidecar(written: dict[str, Any]) -> None:
        written.update(models_returned=sorted(names), calibration=banner)

    changes = {
        "judgments.jsonl": replies,
        "manifest.json": manifest,
        "qrels/response_groundedness.llm.qrel.json": sidecar,
    }
    return rewritten(judged, copy, changes)


def test_a_servers_own_name_of_its_model_is_published_only_on_demand(judged: Path, tmp_path: Path) -> None:
    copy = served(judged, tmp_path / "copy")
    found = contents(release(copy, tmp_path / "bundle"))
    texts = {name: content.decode() for name, content in found.items()}
    for name in ("CANARY", "team-gull", "rack9", "gpu4"):
        assert [file for file, text in texts.items() if name in text] == []
    # What was asked is known, also with a date behind it; the others are told apart.
    shown = ["m-7b", "m-7b-2026-01-31", "unpublished-model-1", "unpublished-model-3"]
    assert json.loads(texts["manifest.json"])["models_returned"] == shown
    sidecar = json.loads(texts["qrels/response_groundedness.llm.qrel.json"])
    assert sidecar["models_returned"] == shown
    banner = f"UNCALIBRATED: not as certified (model returned: unpublished-model-2 certified, {', '.join(shown)} here)."
    assert sidecar["calibration"] == json.loads(texts["manifest.json"])["certificate"]["banner"] == banner
    assert banner in texts["README.md"].replace("\\", "")
    assert {json.loads(line)["model"] for line in texts["judgments.jsonl"].splitlines()} == set(shown)
    assert "its replies name another model than the one asked" in texts["leaderboard.md"]
    assert "`unpublished-model-1` and so on stand in its place" in texts["README.md"]
    # The bundle is read as any folder.
    rows = [row for row in read_judged(tmp_path / "bundle").results if isinstance(row, Judgment)]
    assert {row.model for row in rows} == set(shown)
    whole = contents(release(copy, tmp_path / "whole", model_names=True, allow_names=True))
    assert CANARY in json.loads(whole["manifest.json"])["models_returned"]
    assert b"unpublished" not in b"".join(whole.values())


@pytest.mark.parametrize(
    ("judge", "model", "hidden"),
    [
        ("server/gpt-x", "gpt-x", False),
        ("server/gpt-x", "GPT-X-2026-01-31", False),
        ("server/org/gpt-x", "gpt-x", False),
        ("server/org/gpt-x", "org/gpt-x@v2", False),
        ("server/gpt-x", "gpt-x-0613-preview", False),
        ("server/gpt-x", "org/gpt-x", True),
        ("server/gpt-x", "gpt-x-gull-internal", True),
        ("server/gpt-x", "gpt-x-" + "1" * 9, True),
        ("server/gpt-x", "gpt-x" + "-1234" * 4, True),
        ("server/gpt-x", "gpt", True),
        ("baseline/overlap", "overlap-1", False),
        ("checker/overlap", "checker/overlap", False),
        ("litellm/anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929", False),
        ("litellm/openrouter/openai/gpt-4.1", "openai/gpt-4.1-2025-04-14", False),
        ("openai/gpt-x-latest", "gpt-x-2026-01-31", False),
        ("litellm/anthropic/claude-sonnet-4-5", "anthropic", True),
    ],
)
def test_a_date_behind_the_name_that_was_asked_tells_nothing_more(judge: str, model: str, hidden: bool) -> None:
    assert unpublished_models([(judge, model)]) == ({model: "unpublished-model-1"} if hidden else {})


def test_no_run_is_published_under_the_name_of_another(judged: Path, tmp_path: Path) -> None:
    names = put(tmp_path / "names.json", '{"runs": {"quarry-copied": "Harbor-grounded"}}')
    (problem,) = refused(release, judged, tmp_path / "bundle", names=names, allow_names=True)
    assert (problem.path, problem.message[:36]) == ("$.runs['quarry-copied']", "'Harbor-grounded' is the name of ano")
    assert not (tmp_path / "bundle").exists()


def served_again(folder: Path, copy: Path, name: str) -> Path:
    """A copy of a folder in which a server with a name of its own gave the second answers."""

    def answers(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row |= {"judge": "server/m", "again_model": name, "again_system_fingerprint": f"{name}-state"}

    def manifest(written: dict[str, Any]) -> None:
        written["recheck"]["served"] = [
            {"judge": "server/m", "what": "model", "before": "overlap-1", "after": name, "replies": 8}
        ]

    return rewritten(folder, copy, {"recheck.jsonl": answers, "manifest.json": manifest})


def test_a_jury_is_published_with_its_cautions_and_what_was_asked_again(tmp_path: Path) -> None:
    example, out = PROJECT / "examples", tmp_path / "out"
    families = put(tmp_path / "families.tsv", "harbor-grounded\tqwen\nbaseline/overlap\tqwen\n")
    arguments = ["run", "--runs", str(example / "runs"), "--passages", str(example / "passages.jsonl")]
    arguments += ["--criteria", "groundedness", "--model", "baseline/overlap", "--jury", "majority", "--samples", "2"]
    assert main([*arguments, "--families", str(families), "--recheck", "5%", "--out", str(out)]) == 0
    private = json.loads((out / "manifest.json").read_bytes())
    bundle = release(out, tmp_path / "bundle")
    public = json.loads((bundle / "manifest.json").read_bytes())
    assert (public["spending"], public["recheck"]) == (private["spending"], private["recheck"])
    assert (bundle / "recheck.jsonl").read_bytes() == (out / "recheck.jsonl").read_bytes()
    copy = served_again(out, tmp_path / "copy", "/srv/team-gull/m")
    again = contents(release(copy, tmp_path / "again", allow_names=True))
    assert b"team-gull" not in b"".join(again.values())
    rows = [json.loads(line) for line in again["recheck.jsonl"].splitlines()]
    assert {row["again_model"] for row in rows} == {"unpublished-model-1"}
    assert {row["again_system_fingerprint"] for row in rows} == {"(not published)"}
    (change,) = json.loads(again["manifest.json"])["recheck"]["served"]
    assert (change["before"], change["after"]) == ("overlap-1", "unpublished-model-1")
    whole = contents(release(copy, tmp_path / "whole", model_names=True, allow_names=True))
    assert b"team-gull" in whole["recheck.jsonl"] and b"team-gull" in whole["manifest.json"]
    assert "`recheck.jsonl`" in (bundle / "README.md").read_text()
    before, after = (each["jury"]["groundedness"]["warnings"] for each in (private, public))
    said = "self-judging: runs and members of the jury are of one family; which ones is not published"
    assert after == [said if text.startswith("self-judging") else text for text in before]
    assert said in after
    assert all(f"Warning: {text}" in (bundle / "leaderboard.md").read_text() for text in after)
    assert json.loads((bundle / "qrels/response_groundedness.llm.qrel.json").read_bytes())["jury"]["warnings"] == after
    assert "harbor" not in "".join(content.decode() for content in contents(bundle).values())
    assert (bundle / "prompts/groundedness/graded.md").is_file()


def test_a_prompt_that_has_changed_since_is_left_out_and_told(tmp_path: Path) -> None:
    example, out, prompt = PROJECT / "examples", tmp_path / "out", tmp_path / "mine.md"
    text = prompt_path("groundedness").read_text()
    prompt.write_text(text)
    arguments = ["run", "--runs", str(example / "runs"), "--passages", str(example / "passages.jsonl")]
    assert main([*arguments, "--prompt", str(prompt), "--model", "baseline/overlap", "--out", str(out)]) == 0
    same = release(out, tmp_path / "same", prompts=[prompt])
    assert (same / "prompts/groundedness/mine.md").read_text() == text
    prompt.write_text(f"{text}\nBe kind.\n")
    left_out = "groundedness/mine: its file is not the one that was judged with, so it is left out"
    assert f"warning: {left_out}" in printout(out, tmp_path / "bundle", prompts=[prompt]).warnings
    assert not (tmp_path / "bundle" / "prompts").exists()


def test_examples_of_a_prompt_are_published_only_where_texts_of_passages_are(tmp_path: Path) -> None:
    example, out, prompt = PROJECT / "examples", tmp_path / "out", tmp_path / "mine.md"
    shown = (("passages", ("Secret text of a passage.",)), ("response", ("Yes.",)))
    one = Example("1-1_1", "0" * 64, 3, shown, comment="Clear.")
    bundled = prompt_path("groundedness").read_text(encoding="utf-8")
    prompt.write_text(with_examples(bundled, find_criterion("groundedness"), [one]), encoding="utf-8")
    arguments = ["run", "--runs", str(example / "runs"), "--passages", str(example / "passages.jsonl")]
    assert main([*arguments, "--prompt", str(prompt), "--model", "baseline/overlap", "--out", str(out)]) == 0
    said = printout(out, tmp_path / "bundle", prompts=[prompt]).warnings
    lacking = "its examples show texts of passages or references, so it is left out (--passage-text publishes it)"
    assert f"warning: groundedness/mine: {lacking}" in said
    assert not any(b"Secret text" in content for content in contents(tmp_path / "bundle").values())
    said = printout(out, tmp_path / "open", prompts=[prompt], passage_text=True).warnings
    assert "warning: groundedness/mine: publishes 1 example: people's grades, and 1 comment by assessors" in said
    assert (tmp_path / "open/prompts/groundedness/mine.md").read_bytes() == prompt.read_bytes()


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
