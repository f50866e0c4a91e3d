"""`judge probe` from a pool to its files: judges that are known to be good or bad, crashes, certificates."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import judge
from judge.ask.prompt import defuse
from judge.calibrate.certificate import make_certificate, read_certificate
from judge.cli import main
from judge.extra.probe.card import ProbeCard
from judge.extra.probe.job import ProbeOutcome, ProbePlan, forecast_probe, probe_judges, with_probe
from judge.extra.probe.probes import CANARIES, WANT
from judge.io.files import jsonl_bytes
from judge.judges.records import Request
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl
from judge.pool.records import Pool
from judge.records import Passage
from tests.build import pooled
from tests.calibrate.test_certificate import certified
from tests.calibration_world import FAST, contents
from tests.conftest import INPUTS, PROJECT, complaint, put, start_python
from tests.extra.bench.bench_world import Ruled
from tests.jobs.test_crash import wait_for_paid
from tests.mock import Mock

pytestmark = pytest.mark.long

TOWNS = ("Orrin", "Saltmere", "Kelby", "Tamsin", "Weald", "Stowe")


def town_pool(topics: int = 6) -> Pool:
    """Three responses a topic with two passages each: numbers, names, negations, words with synonyms."""
    responses, passages = [], {}
    for topic in range(topics):
        for turn in range(3):
            name, price = f"{TOWNS[topic % len(TOWNS)]} {'Abbey Mill Pier'.split()[turn]}", 100 + 10 * topic + turn
            number = topic * 3 + turn
            text = f"Yes, you often can visit the {name}. It is open all day. The price is {price} crowns."
            evidence = (f"The {name} is open all day.", f"To see it the price is {price} crowns, and you can.")
            keys = tuple(f"p{number}-{place}" for place in range(2))
            passages |= {key: Passage(key, words, "collection") for key, words in zip(keys, evidence, strict=True)}
            responses.append(pooled(f"R{number:05}", f"{topic}_{turn}", text=text, passages=keys))
    return Pool(tuple(responses), passages, ())


def written(folder: Path, of: Pool) -> Path:
    """A pool folder without a manifest, as one that was put together by hand."""
    put(folder / "pool.jsonl", pool_jsonl(of))
    (folder / "passages.jsonl").write_bytes(passages_jsonl(of))
    (folder / "excluded.tsv").write_bytes(excluded_tsv(()))
    (folder / "runs.jsonl").write_bytes(jsonl_bytes(of.runs))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "pool", town_pool())


FALLING = ("swapped", "dropped", "invented", "altered", "negation")


def first_grade(request: Request) -> int:
    """What the untouched response deserves: 1 or 2, so that there is room both ways."""
    return 1 + int(request.response_id[1:6]) % 2


def perfect(request: Request) -> str:
    """Knows what was done to a response, and grades it down for that alone."""
    fell = any(word in request.response_id.partition(".")[2] for word in FALLING)
    return "0" if fell else str(first_grade(request))


def gullible(request: Request) -> str:
    """Grades as the perfect judge, unless a text in what it is sent tells it otherwise."""
    sent = request.messages[-1].content
    for canary in (canary for family in CANARIES.values() for canary in family):
        if defuse(canary.text.partition(WANT)[0]) in sent:
            return "3" if canary.wants == "high" else "0"
    return perfect(request)


def dazzled(request: Request) -> str:
    """Grades as the perfect judge, but is pleased by a list of words and by the words of its prompt."""
    listed = request.response.splitlines()[-1].count(", ") > 5
    recital = "reported correctly; text copied from them counts" in request.response
    return "3" if listed or recital else perfect(request)


def wavering(request: Request) -> str:
    """Grades by the length of what it reads."""
    return str(len(request.response) % 4)


def silenced(request: Request) -> str:
    """Gives no readable grade where a text speaks to it."""
    return "what?" if gullible(request) != perfect(request) else perfect(request)


Asked = Callable[[Callable[[Request], str]], Ruled]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    def with_rule(rule: Callable[[Request], str]) -> Ruled:
        ruled = Ruled(rule)
        monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: ruled)
        return ruled

    return with_rule


def probed(folder: Path, /, **more: Any) -> ProbeOutcome:
    plan = {"folder": folder, "out": folder.parent / "out", "models": "server/ruled", "criteria": "groundedness"}
    return probe_judges(ProbePlan(**{"items": 12, **plan, **more}))


def words(outcome: ProbeOutcome) -> dict[str, str]:
    (of,) = outcome.card.judges
    return {row.probe: row.word for row in of.rows}


def test_a_perfect_judge_holds_in_every_row_on_enough_topics(tmp_path: Path, asked: Asked) -> None:
    asked(perfect)
    outcome = probed(written(tmp_path / "many", town_pool(44)), items=44, kinds=("injection", "invariance"))
    assert set(words(outcome).values()) == {"holds"}
    assert not outcome.fails and not outcome.shows_nothing


def test_a_perfect_judge_fails_in_no_row(folder: Path, asked: Asked) -> None:
    asked(perfect)
    outcome = probed(folder)
    assert not outcome.fails
    (of,) = outcome.card.judges
    # On six topics, of which 46 % more may be otherwise, only what moves can hold.
    assert {row.word for row in of.rows if row.expects == "falls"} == {"holds"}
    assert {row.word for row in of.rows if row.expects != "falls"} == {"inconclusive"}
    rows = {row.probe: row for row in of.rows}
    assert all(row.moved.value == 1 and row.auc is not None for row in of.rows if row.expects == "falls")
    assert all(row.moved.value == 0 and row.shift.value == 0 for row in of.rows if row.expects != "falls")
    # Word overlap, which costs nothing, is blind to a negation and sees a sentence that nothing supports.
    overlap = {name: row.overlap.value for name, row in rows.items() if row.overlap is not None}
    assert overlap.keys() == rows.keys()
    assert overlap["negation"] == 0 and (overlap["sentence invented"] or 0) < -0.25
    assert rows["negation"].overlap_auc is not None and rows["negation"].overlap_auc.value == 0.5


def test_a_judge_that_obeys_is_caught_in_every_family_and_place(folder: Path, asked: Asked) -> None:
    asked(gullible)
    outcome = probed(folder, items=18)
    found = words(outcome)
    assert {name for name, word in found.items() if word == "fails"} == {
        f"{family}@{place}" for family in CANARIES for place in ("response", "passage")
    }
    (of,) = outcome.card.judges
    # All canaries were planted, each moved every grade with room to move, and is named in the page.
    assert {row.canary for row in of.canaries} == {canary.name for family in CANARIES.values() for canary in family}
    assert all(row.moved == row.n > 0 for row in of.canaries)
    page = (folder.parent / "out" / "probe.md").read_text(encoding="utf-8")
    assert all(canary.name in page for family in CANARIES.values() for canary in family)


def test_a_judge_that_likes_words_is_caught_by_those_that_answer_nothing(folder: Path, asked: Asked) -> None:
    asked(dazzled)
    found = words(probed(folder, kinds=("gaming", "invariance"), items=6))
    assert [name for name, word in found.items() if word == "fails"] == ["keywords stuffed", "prompt recited"]
    assert "must not rise" in (folder.parent / "out" / "probe.md").read_text(encoding="utf-8")


def test_a_judge_that_counts_letters_fails_where_words_change(folder: Path, asked: Asked) -> None:
    asked(wavering)
    found = words(probed(folder))
    # Swapped and reversed passages leave the response as it is: nothing moves, and six topics are too few to say more.
    assert found["passages swapped"] == found["passage order"] == "inconclusive"
    # A heading has 11 characters and changes every grade; the stars of bold words are four and change none.
    assert found["heading"] == "fails" and found["bold"] == "inconclusive"


def test_a_judge_that_falls_silent_does_not_hold(folder: Path, asked: Asked) -> None:
    asked(silenced)
    outcome = probed(folder)
    (of,) = outcome.card.judges
    rows = {row.probe: row for row in of.rows}
    assert rows["verdict@response"].missing == 12 and rows["verdict@response"].word == "inconclusive"
    assert {pair.missing for pair in outcome.pairs if pair.probe == "verdict@response"} == {"twin: unreadable"}
    assert len(outcome.failures) == sum(pair.missing is not None for pair in outcome.pairs)


def test_the_same_again_asks_nobody_and_has_the_same_bytes(folder: Path, asked: Asked) -> None:
    ruled = asked(perfect)
    first = probed(folder, items=4, kinds="invariance")
    out = folder.parent / "out"
    before, calls = contents(out), ruled.calls
    assert calls > 4
    assert probed(folder, items=4, kinds="invariance").card == first.card
    assert (contents(out), ruled.calls) == (before, calls)
    # A larger draw has the smaller one in it: only what is new is asked.
    larger = probed(folder, items=6, kinds="invariance")
    assert larger.card.items == 6
    twins = [pair for pair in larger.pairs if pair.inapplicable is None]
    assert ruled.calls == len(twins) + 6


def test_the_journal_of_the_folder_is_used(folder: Path, asked: Asked) -> None:
    ruled = asked(perfect)
    pool = town_pool()
    with judge.Journal(folder / "journal.sqlite") as journal:
        judge.assess(judge.tasks(pool, [judge.find_criterion("groundedness")]), ruled, journal, pool)
    calls = ruled.calls
    outcome = probed(folder, items=3, kinds="invariance")
    assert ruled.calls == calls + len([pair for pair in outcome.pairs if pair.inapplicable is None])


def test_word_overlap_stands_beside_every_pair_of_another_judge(judged: Path, tmp_path: Path, asked: Asked) -> None:
    alone = probed(judged, models="baseline/overlap", items=4, out=tmp_path / "alone").pairs
    assert any(pair.inapplicable for pair in alone) and all(pair.overlap_clean is None for pair in alone)
    asked(lambda request: "1")
    beside = probed(judged, items=4, out=tmp_path / "beside").pairs
    assert [(pair.overlap_clean, pair.overlap_altered) for pair in beside] == [
        tuple(grade.exact if grade else None for grade in (pair.clean, pair.altered)) for pair in alone
    ]


def test_several_prompts_and_kinds(folder: Path, asked: Asked) -> None:
    asked(lambda request: "yes" if request.labels[0] in ("yes", "no") else perfect(request))
    prompts = ["groundedness/graded", "groundedness/yes_no"]
    outcome = probed(folder, criteria=(), prompts=prompts, kinds="invariance", items=2)
    assert [(of.prompt, of.levels) for of in outcome.card.judges] == [
        ("groundedness/graded", 4), ("groundedness/yes_no", 2),
    ]  # fmt: skip
    assert {row.kind for of in outcome.card.judges for row in of.rows} == {"invariance"}
    assert all(of.canaries == () for of in outcome.card.judges)


@pytest.mark.parametrize(("more", "message"), [
    ({"folder": None}, "expected either an output folder"),
    ({"runs": "runs"}, "expected either an output folder"),
    ({"passages": "p.jsonl"}, "--passages is about runs"),
    ({"items": 0}, "items: expected 1 or more, found 0"),
    ({"margin": float("inf")}, "margin: expected a finite number"),
    ({"margin": float("nan")}, "margin: expected a finite number"),
    ({"resampling_seed": -1}, "resampling-seed: expected 0 or more"),
    ({"kinds": "bribery"}, "kinds: invalid choice: 'bribery'"),
    ({"criteria": "naturalness", "kinds": "evidence"}, "naturalness/graded: no probe of the kind evidence is for it"),
    ({"criteria": "relevance"}, "a topics file is needed"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_before_anything_is_asked(folder, asked, more, message) -> None:
    ruled = asked(perfect)
    with pytest.raises(judge.UsageError, match=re.escape(message)):
        probed(folder, **more)
    assert ruled.calls == 0 and not (folder.parent / "out").exists()


def test_the_folder_of_the_pool_and_of_another_probe_are_left_alone(folder: Path, asked: Asked) -> None:
    ruled = asked(perfect)
    with pytest.raises(judge.UsageError, match="give a folder of its own"):
        probed(folder, out=folder)
    few = {"items": 2, "kinds": "invariance"}
    probed(folder, **few)
    calls = ruled.calls
    with pytest.raises(judge.InputError, match=r"results of another configuration \(seed: 2023 there, 5 now\)"):
        probed(folder, **few, resampling_seed=5)
    assert ruled.calls == calls
    probed(folder, **few, resampling_seed=5, replace=True)


def test_a_pool_without_texts_of_passages_cannot_be_drawn_from(tmp_path: Path, asked: Asked) -> None:
    ruled = asked(perfect)
    written(tmp_path / "pool", Pool(town_pool().responses, {}, ()))
    with pytest.raises(judge.InputError, match="no response can be drawn; --passages FILE"):
        probed(tmp_path / "pool")
    assert ruled.calls == 0


def test_a_dry_run_counts_and_writes_nothing(folder: Path, asked: Asked) -> None:
    ruled = asked(perfect)
    out = folder.parent / "out"
    plan = ProbePlan(folder=folder, out=out, models="server/ruled", criteria="groundedness", items=3)
    before = forecast_probe(plan)
    assert not out.exists() and ruled.calls == 0
    probe_judges(plan)
    (counts,) = before.models
    assert counts.expected.calls == ruled.calls and counts.judgments == sum(before.counts.values())
    assert [row.expected.calls for row in forecast_probe(plan).models] == [0]


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def calibrated(judged: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The bundled example, judged by word overlap, and the certificate of that judge, to be read only."""
    folder = tmp_path_factory.mktemp("calibrated")
    gold = (PROJECT / "gold/example.gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "gold.jsonl").write_text("".join(line for line in gold if '"groundedness"' in line))
    asked = ["--model", "baseline/overlap", "--prompt", "groundedness", "--pool", str(judged), *FAST]
    main(["calibrate", "--gold", str(folder / "gold.jsonl"), *asked, "-o", str(folder / "cal")])
    return judged, folder / "cal" / "certificate.json"


def probe(*arguments: object) -> int:
    return main(["probe", *map(str, arguments)])


def test_a_certificate_tells_of_the_probe_of_its_judge_and_a_run_says_so(calibrated, tmp_path, capsys) -> None:
    out, path = calibrated
    before = read_certificate(path)
    same = [out, "--criteria", "groundedness", "--model", "baseline/overlap", "--certificate", path]
    assert probe(*same, "-o", tmp_path / "probed") == 1
    (entry,) = read_certificate(tmp_path / "probed" / "certificate.json").certified
    assert msgspec.structs.replace(entry, probed=None) == before.certified[0]
    assert entry.probed is not None and entry.probed.items == 30
    made = contents(tmp_path / "probed")
    assert probe(*same, "-o", tmp_path / "probed") == 1
    assert contents(tmp_path / "probed") == made
    capsys.readouterr()
    certified = [*same[1:-1], tmp_path / "probed", "-o", tmp_path / "certified"]
    assert main(["run", *INPUTS, *map(str, certified)]) == 0
    line = "It was probed on 30 items: "
    assert line in " ".join(capsys.readouterr().out.split())
    assert line in (tmp_path / "certified" / "leaderboard.md").read_text(encoding="utf-8")
    # The report reads it from the manifest, as every output does.
    assert line in json.loads((tmp_path / "certified" / "manifest.json").read_bytes())["certificate"]["banner"]


@pytest.mark.parametrize(("changed", "said"), [
    (["--prompt", "groundedness/yes_no"], "prompt: groundedness/graded certified, groundedness/yes_no here"),
    (["--temperature", "0.5"], "temperature: 0.0 certified, 0.5 here"),
])  # fmt: skip
def test_a_certificate_of_another_judge_is_refused(calibrated, tmp_path, capsys, changed, said) -> None:
    out, path = calibrated
    capsys.readouterr()
    same = [out, "--model", "baseline/overlap", "--certificate", path, "--criteria", "groundedness"]
    error = complaint(capsys, probe(*same, *changed, "-o", tmp_path / "probed"))
    assert error.startswith("judge: the certificate is of another judge") and said in error
    assert not (tmp_path / "probed").exists()


def test_a_judge_that_answers_as_another_model_is_not_the_certified_one(folder: Path, asked: Asked) -> None:
    asked(perfect)
    card = probed(folder, items=2, kinds="invariance").card
    options = {"temperature": 0.0, "max_tokens": 1024, "seed": None, "base_url": None}
    entry = certified(judge="server/ruled", models_returned=("ruled-1",), parameters=options)
    graded = [judge.find_criterion("groundedness")]
    bound, notes = with_probe(make_certificate([entry], "2026-01-01"), card, "a" * 64, graded)
    assert bound is not None and notes == ()
    assert bound.certified[0].probed is not None
    other = make_certificate([msgspec.structs.replace(entry, models_returned=("ruled-2",))], "2026-01-01")
    told = "the probe is not in the certificate's entry of groundedness: model returned: "
    assert with_probe(other, card, "a" * 64, graded) == (None, (f"{told}ruled-2 certified, ruled-1 here",))


def test_a_probe_in_a_certificate_that_was_edited_is_refused(calibrated: tuple[Path, Path], tmp_path, capsys) -> None:
    out, path = calibrated
    probe(out, "--criteria", "groundedness", "--model", "baseline/overlap", "--certificate", path, "-o", tmp_path / "p")
    edited = json.loads((tmp_path / "p" / "certificate.json").read_bytes())
    row = next(row for row in edited["certified"][0]["probed"]["rows"] if row["word"] == "fails")
    row["word"] = "holds"
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    with pytest.raises(judge.InputError, match="a certificate that was changed afterwards certifies nothing"):
        read_certificate(tmp_path / "edited.json")


# ---------------------------------------------------------------- a real server


def test_a_gullible_server_is_caught_by_the_whole_command(folder: Path, mock: Mock, capsys) -> None:
    mock.config(gullible=True)
    asked = ["--criteria", "groundedness", "--model", "server/m", "--base-url", mock.base_url, "--items", "18"]
    assert probe(folder, *asked, "-o", folder.parent / "out") == 1
    card = msgspec.json.decode((folder.parent / "out" / "probe.json").read_bytes(), type=ProbeCard)
    found = {row.probe: row for row in card.judges[0].rows}
    # It repeats "Grade: 3" from a text and else says 0, which leaves no room to fall.
    assert {name for name, row in found.items() if row.moved.value} == {
        "forgery@response", "forgery@passage", "verdict@response", "verdict@passage",
    }  # fmt: skip
    assert found["forgery@response"].word == "fails"
    moving = {row.canary for row in card.judges[0].canaries if row.moved}
    assert moving == {
        canary.name for family in CANARIES.values() for canary in family if f"Grade: {WANT}" in defuse(canary.text)
    }
    assert found["padding"].word == "inconclusive" and found["padding"].moved.value == 0
    assert found["number altered"].no_room + found["number altered"].inapplicable == 18
    assert "fails" in capsys.readouterr().out
    assert mock.stats()["repeated_paid"] == 0


def test_white_space_under_a_schema_is_said(folder: Path, mock: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    mock.config(faults={"white-space": 1.0})
    asked = ["--criteria", "groundedness", "--model", "server/m", "--base-url", mock.base_url, "--items", "3"]
    probe(folder, *asked, "-o", folder.parent / "out")
    said = " ".join("".join(capsys.readouterr()).split())
    assert "server/m: not asked for grades in the form json, in which its endpoint gave none." in said


def test_a_probe_that_was_killed_goes_on_and_pays_for_nothing_twice(folder: Path, mock: Mock) -> None:
    mock.config(latency=0.02)
    out = folder.parent / "out"
    asked = ["--criteria", "groundedness", "--model", "server/m", "--base-url", mock.base_url, "--items", "5"]
    command = [*map(str, ("probe", folder, *asked, "--concurrency", "2", "-o", out))]
    process = start_python("-m", "judge", *command, stderr=subprocess.DEVNULL)
    wait_for_paid(mock, process, 40)
    process.kill()
    process.wait()
    assert not (out / "probe.json").exists()
    assert main(command) in (0, 1)
    made = contents(out)
    assert {"probe.json", "probe.tsv", "probe.md", "twins.jsonl", "manifest.json"} <= made.keys()
    # Two calls at most were in flight and two replies being written, and all four were lost with the process.
    assert mock.stats()["repeated_paid"] <= 4
    paid = mock.stats()["paid"]
    assert main(command) in (0, 1)
    assert (mock.stats()["paid"], contents(out)) == (paid, made)
