"""What a certificate certifies, and what a run may say because of it."""

import json
from pathlib import Path

import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import (
    PARAMETERS,
    Certificate,
    CertificateStatement,
    certificate_bytes,
    certificate_digest,
    certified_options,
    make_certificate,
    match_run,
    read_certificate,
    statement,
)
from judge.calibrate.certified import Certified, CertifiedSeal, LabeledRange
from judge.calibrate.findings import Looks
from judge.cli import main
from judge.errors import InputError
from judge.judges.model import ModelOptions, recorded_options
from judge.records import Criterion, Estimate
from tests.calibration_world import contents
from tests.conftest import PROJECT, printed, put

GRADED = find_criterion("groundedness/graded")
LOOKS = Looks("groundedness", 1, 3, "f" * 64)
ESTIMATES = {
    "TRUSTED": Estimate(0.61, 0.52, 0.69, 120, 24),
    "NOT TRUSTED": Estimate(0.21, 0.12, 0.29, 120, 24),
    "INCONCLUSIVE": Estimate(0.41, 0.32, 0.49, 120, 24),
}
"""An interval above, below and around the bound .4 of the requirement."""
OPTIONS = {
    "temperature": 0.0, "seed": None, "base_url": None, "logprobs": None, "form": None, "omit": None,
    "reasoning_effort": None,
}  # fmt: skip


def certified(criterion: Criterion = GRADED, **changed: object) -> Certified:
    fields: dict[str, object] = {
        "criterion": criterion.name, "judge": "baseline/overlap", "prompt": criterion.prompt_id,
        "prompt_digest": criterion.digest, "parser": PARSER_VERSION, "renderer": RENDERER_VERSION,
        "parameters": dict(OPTIONS), "models_returned": ("overlap-1",), "gold": "a" * 64,
        "seal": CertifiedSeal("5" * 64, 7, "6" * 64), "split": "test", "n": 120, "topics": 24, "tried": 3,
        "looks": msgspec.structs.replace(LOOKS, criterion=criterion.name), "made": ("blind",), "graded": 120,
        "resampling": {"seed": 2023, "replicates": 2000, "permutations": 10_000}, "binary": False,
        "statistic": "wkappa", "estimate": ESTIMATES[str(changed.get("verdict", "TRUSTED"))], "others": {},
        "requirements": ("wkappa.lo>=0.4",), "verdict": "TRUSTED",
    }  # fmt: skip
    return Certified(**{**fields, **changed})  # type: ignore[arg-type]


def certificate(*entries: Certified) -> Certificate:
    return make_certificate(entries or (certified(),), "2026-03-01")


def said(of: Certificate, *criteria: Criterion) -> CertificateStatement:
    """What a run that matches may say."""
    criteria = criteria or (GRADED,)
    return statement(of, match_run(of, criteria, "baseline/overlap", OPTIONS), criteria)


def matched(of: Certificate, *criteria: Criterion, judge: str = "baseline/overlap", **options: object) -> list[str]:
    """The items that differ."""
    found = match_run(of, criteria or (GRADED,), judge, {**OPTIONS, **options}, {"groundedness": ["overlap-1"]})
    return [one.item for one in found if not one.same]


def test_it_is_read_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(certificate_bytes(certificate(), path))
    assert read_certificate(path) == certificate()


def test_the_same_again_keeps_its_date_and_another_result_does_not(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    first = certificate_bytes(certificate(), path)
    path.write_bytes(first)
    later = make_certificate((certified(),), "2027-01-01")
    assert certificate_bytes(later, path) == first
    other = make_certificate((certified(tried=4),), "2027-01-01")
    assert json.loads(certificate_bytes(other, path))["date"] == "2027-01-01"


@pytest.mark.parametrize(
    "content",
    [
        b"{}", b"null", b'{"schema": 3}',
        msgspec.json.encode({**msgspec.to_builtins(certificate()), "surplus": 1}),
        msgspec.json.encode({**msgspec.to_builtins(certificate()), "certified": [{"criterion": "groundedness"}]}),
        msgspec.json.encode(certificate()).replace(b"TRUSTED", b"BELIEVED"),
        msgspec.json.encode(certificate(certified(labeled=LabeledRange(responses=200, ranges={}, grades={"x": 9})))),
        msgspec.json.encode(certificate()).replace(b'"schema":3', b'"schema":2'),
    ],
)  # fmt: skip
def test_a_damaged_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "certificate.json", content)
    with pytest.raises(InputError, match=r"certificate\.json: (not a certificate|certificate of layout 2)"):
        read_certificate(path)


def test_a_certificate_that_was_edited_is_not_believed(tmp_path: Path) -> None:
    honest = certificate(certified(verdict="INCONCLUSIVE"))
    entry = msgspec.structs.replace(honest.certified[0], verdict="TRUSTED")
    edited = msgspec.structs.replace(honest, certified=(entry,))
    path = put(tmp_path / "c.json", msgspec.json.encode(edited))
    with pytest.raises(InputError, match="a certificate that was changed afterwards certifies nothing") as caught:
        read_certificate(path)
    assert honest.digest[:40] in str(caught.value)
    assert certificate_digest(edited) in str(caught.value)


def test_the_layout_of_the_json_is_no_content(tmp_path: Path) -> None:
    path = put(tmp_path / "c.json", json.dumps(json.loads(msgspec.json.encode(certificate()))))
    assert read_certificate(path) == certificate()


def test_a_run_that_is_what_was_certified_matches_in_every_item() -> None:
    assert matched(certificate()) == []
    items = [one.item for one in match_run(certificate(), (GRADED,), "baseline/overlap", OPTIONS, {})]
    assert items == ["judge", "prompt", "prompt digest", "parser", "renderer", *PARAMETERS, "model returned"]


@pytest.mark.parametrize(
    ("changed", "item"),
    [
        ({"judge": "server/other"}, "judge"),
        ({"prompt": "groundedness/other"}, "prompt"),
        ({"prompt_digest": "0" * 64}, "prompt digest"),
        ({"parser": 99}, "parser"),
        ({"renderer": 99}, "renderer"),
        ({"models_returned": ("overlap-2",)}, "model returned"),
        ({"models_returned": ()}, "model returned"),
        *(({"parameters": {**OPTIONS, name: "another"}}, name) for name in ("temperature", "seed", "form", "omit")),
    ],
)
def test_each_item_alone_is_a_mismatch(changed: dict[str, object], item: str) -> None:
    of = certificate(certified(**changed))
    assert matched(of) == [item]
    found = statement(
        of, match_run(of, (GRADED,), "baseline/overlap", OPTIONS, {"groundedness": ["overlap-1"]}), (GRADED,)
    )
    assert not found.calibrated
    assert found.banner.startswith("UNCALIBRATED (certificate of 2026-03-01): groundedness: not as certified (")
    assert f"({item}: " in found.banner


def test_another_address_is_named_and_no_mismatch() -> None:
    of = certificate(certified(parameters={**OPTIONS, "base_url": "http://there/v1"}))
    found = said(of)
    assert found.calibrated
    assert "Its base_url is another: http://there/v1 certified, none here." in found.banner


def test_labels_of_unknown_making_certify_no_run() -> None:
    assert matched(certificate(certified(parameters=None))) == list(PARAMETERS)
    assert matched(certificate(certified(prompt=None, prompt_digest=None))) == ["prompt", "prompt digest"]


def test_before_anything_is_asked_the_model_is_not_compared() -> None:
    of = certificate(certified(models_returned=("another",)))
    assert all(one.same for one in match_run(of, (GRADED,), "baseline/overlap", OPTIONS))


def test_calibrated_is_said_of_a_trusted_judge_only() -> None:
    for word, spread in (
        ("TRUSTED", "0.61 [0.52, 0.69]"),
        ("NOT TRUSTED", "0.21 [0.12, 0.29]"),
        ("INCONCLUSIVE", "0.41 [0.32, 0.49]"),
    ):
        of = certificate(certified(verdict=word))
        found = said(of)
        assert found.calibrated == (word == "TRUSTED")
        # One word stands: the verdict, or what a verdict of TRUSTED makes of the run.
        first, verdict = ("CALIBRATED", "TRUSTED ") if word == "TRUSTED" else (word, "")
        assert found.banner == (
            f"{first} (certificate of 2026-03-01): groundedness: as certified, {verdict}by wkappa.lo>=0.4, "
            f"wkappa {spread} (n=120, 24 topics) on test, chosen among 3."
        )


def test_the_banner_names_what_was_required_and_how_hard_it_was_tried() -> None:
    often = msgspec.structs.replace(LOOKS, number=4, candidates=9)
    strict = certified(requirements=("wkappa.lo>=0.4", "bias.hi<=0.3"), tried=7, looks=often)
    assert (
        "TRUSTED by wkappa.lo>=0.4 and bias.hi<=0.3, wkappa 0.61 [0.52, 0.69] (n=120, 24 topics) on test, "
        "chosen among 7, test grades opened for 4 different questions with 9 candidates."
    ) in said(certificate(strict)).banner
    for looks in (None, LOOKS):
        plain = said(certificate(certified(tried=1, looks=looks))).banner
        assert plain.endswith("on test.")


def test_positive_or_not_certifies_no_grades() -> None:
    found = said(certificate(certified(binary=True)))
    assert not found.calibrated
    assert found.banner.startswith("UNCALIBRATED")
    assert "That is about positive or not, and not about the grades of groundedness." in found.banner
    # Where there are no more than two grades, nothing was collapsed.
    yes_no = find_criterion("groundedness/yes_no")
    found = said(certificate(certified(yes_no, binary=True)), yes_no)
    assert found.calibrated
    assert "positive or not" not in found.banner


def test_an_estimate_without_an_interval_says_why() -> None:
    of = certificate(certified(estimate=Estimate(0.6, None, None, 9, 3, "fewer than 5 topics"), verdict="INCONCLUSIVE"))
    found = said(of)
    assert "wkappa without an interval (fewer than 5 topics)" in found.banner


def test_every_criterion_of_the_run_must_be_certified() -> None:
    other = find_criterion("naturalness/graded")
    both = certificate(certified(), certified(other))
    assert said(both, GRADED, other).calibrated
    assert said(both).calibrated
    half = certificate()
    found = said(half, GRADED, other)
    assert not found.calibrated
    assert "groundedness: as certified, TRUSTED by" in found.banner
    assert found.banner.endswith(" naturalness: no certificate.")
    weak = certificate(certified(), certified(other, verdict="INCONCLUSIVE"))
    found = said(weak, GRADED, other)
    assert not found.calibrated
    assert found.banner.startswith("INCONCLUSIVE (certificate of 2026-03-01): groundedness: as certified, TRUSTED by ")
    assert "naturalness: as certified, by wkappa.lo>=0.4" in found.banner
    worse = certificate(certified(verdict="NOT TRUSTED"), certified(other, verdict="INCONCLUSIVE"))
    assert said(worse, GRADED, other).banner.startswith("NOT TRUSTED (certificate")


def test_a_run_of_nothing_is_not_calibrated() -> None:
    assert not statement(certificate(), (), ()).calibrated


# `judge run --certificate`


def judged(tmp_path: Path, of: Certificate | bytes | None, *more: str, out: str = "out") -> int:
    given: list[str] = []
    if of is not None:
        path = put(tmp_path / "certificate.json", of if isinstance(of, bytes) else msgspec.json.encode(of))
        given = ["--certificate", str(path)]
    examples = PROJECT / "examples"
    return main([
        "run", "--runs", str(examples / "runs" / "harbor-grounded.json"),
        "--passages", str(examples / "passages.jsonl"),
        "--criteria", "groundedness", "--model", "baseline/overlap", "--out", str(tmp_path / out), *given, *more,
    ])  # fmt: skip


def said_in(out: Path) -> dict[str, str]:
    """What the outputs say of calibration."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    name = "response_groundedness.llm.qrel.json"
    return {
        "leaderboard": (out / "leaderboard.md").read_text(encoding="utf-8").splitlines()[2],
        "qrels": json.loads((out / "qrels" / name).read_text(encoding="utf-8"))["calibration"],
        "manifest": manifest["certificate"]["banner"] if manifest["certificate"] else "",
    }


def test_every_output_says_whether_the_responses_are_like_those_that_were_labeled(tmp_path: Path, capsys) -> None:
    # Of the labeled responses none had more than 3 words.
    of_short = LabeledRange(responses=200, ranges={"words": (1.0, 3.0)}, grades={"0": 50, "1": 50, "2": 50, "3": 50})
    assert judged(tmp_path, certificate(certified(labeled=of_short))) == 0
    text = "The items are OUTSIDE what was labeled: 100 % are beyond 1 to 3 in words."
    assert all(text in said for said in said_in(tmp_path / "out").values())
    out = str(tmp_path / "out")
    capsys.readouterr()
    assert text in " ".join(printed(capsys, main(["leaderboard", out])).split())
    assert main(["report", out]) == 0
    assert text in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert main(["release", out, "--keep-names", "--out", str(tmp_path / "bundle")]) == 0
    assert text in (tmp_path / "bundle" / "README.md").read_text(encoding="utf-8")
    # A certificate from before keeps what else it says.
    assert judged(tmp_path, certificate(), out="aged") == 0
    assert "labeled is UNKNOWN: the certificate does not say what" in said_in(tmp_path / "aged")["leaderboard"]


def test_a_run_as_certified_says_so_in_every_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, certificate()) == 0
    out, err = capsys.readouterr()
    said = said_in(tmp_path / "out")
    assert "CALIBRATED (certificate of 2026-03-01)" in out
    assert "UNCALIBRATED" not in out + err + "".join(said.values())
    assert all("CALIBRATED" in text for text in said.values())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["certificate"]["calibrated"] is True
    shown = [line.split()[:2] for line in out.splitlines()]
    assert shown[shown.index(["groundedness"]) + 1 :][:2] == [["item", "certified"], ["judge", "same"]]


@pytest.mark.parametrize(
    ("of", "more", "item"),
    [
        (certificate(), ["--temperature", "0.5"], "temperature"),
        (certificate(certified(models_returned=("overlap-0",))), [], "model returned"),
    ],
)
def test_a_run_that_differs_is_uncalibrated_item_by_item_everywhere(tmp_path, capsys, of, more, item) -> None:
    assert judged(tmp_path, of, *more) == 0
    out, err = capsys.readouterr()
    for text in (out, *said_in(tmp_path / "out").values()):
        assert "UNCALIBRATED" in text
        # The leaderboard is Markdown, where an underscore is escaped.
        assert item in " ".join(text.replace("\\", "").split())
    matches = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["certificate"]["matches"]
    assert [one["item"] for one in matches if one["certified"] != one["found"]] == [item]
    if item != "model returned":
        assert "DIFFERS" in out
        assert "may not be called calibrated" in err


@pytest.mark.parametrize("changed", [{"verdict": "NOT TRUSTED"}, {"binary": True}])
def test_a_matching_certificate_of_another_verdict_never_says_calibrated(tmp_path, capsys, changed) -> None:
    word = changed.get("verdict", "positive or not")
    assert judged(tmp_path, certificate(certified(**changed))) == 0
    shown = capsys.readouterr().out
    for text in (" ".join(shown.split()), *said_in(tmp_path / "out").values()):
        assert "CALIBRATED" not in text.replace("UNCALIBRATED", "")
        assert word in text


def test_without_a_certificate_nothing_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, None) == 0
    assert capsys.readouterr().out.startswith("UNCALIBRATED: these grades come from an automatic judge")
    said = said_in(tmp_path / "out")
    assert said["qrels"].startswith("UNCALIBRATED: these grades")
    assert said["manifest"] == ""


def test_a_damaged_certificate_stops_a_run_before_anything(tmp_path, capsys) -> None:
    assert judged(tmp_path, b"{}") == 2
    assert "not a certificate that judge wrote" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_is_stopped_by_a_certificate_that_was_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    honest = msgspec.json.encode(certificate(certified(verdict="INCONCLUSIVE")))
    assert judged(tmp_path, honest.replace(b"INCONCLUSIVE", b"TRUSTED")) == 2
    assert "a certificate that was changed afterwards certifies nothing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_or_nothing_for_a_certificate_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, said in ((tmp_path, "a folder without certificate.json"), (tmp_path / "absent.json", "cannot be read")):
        assert judged(tmp_path, None, "--certificate", str(path)) == 2
        assert f"{path}: {said}" in capsys.readouterr().err


def test_a_dry_run_shows_the_items_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, certificate(certified(judge="server/x")), "--dry-run") == 0
    out = capsys.readouterr().out
    assert "judge" in out
    assert "DIFFERS" in out
    assert not (tmp_path / "out").exists()


def test_a_hostile_certificate_drives_no_terminal_and_breaks_no_markdown(tmp_path, capsys) -> None:
    evil = "x\x1b[2J\n# CALIBRATED\n<script>|$`"
    assert judged(tmp_path, certificate(certified(judge=evil, prompt=evil, models_returned=(evil,)))) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    markdown = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    assert "\x1b" not in markdown
    assert "<script>" not in markdown
    assert "\n# CALIBRATED" not in markdown


def test_credentials_in_the_address_are_compared_and_shown_without(tmp_path: Path) -> None:
    of = certificate(certified(parameters={**OPTIONS, "base_url": "http://host/v1"}))
    assert judged(tmp_path, of, "--base-url", "http://user:secret@host/v1") in (0, 2)
    if (tmp_path / "out").exists():
        assert b"secret" not in b"".join(contents(tmp_path / "out").values())


def test_an_option_that_records_show_only_where_it_is_set_is_compared() -> None:
    plain = certified_options(recorded_options(ModelOptions()))
    asked = certified_options(recorded_options(ModelOptions(logprobs=True)))
    assert plain == OPTIONS
    assert asked == {**plain, "logprobs": True}
    of = certificate()
    matches = match_run(of, (GRADED,), "baseline/overlap", asked)
    assert {match.item: (match.certified, match.found) for match in matches}["logprobs"] == ("none", "True")
    assert matched(of, logprobs=True) == ["logprobs"]


def test_another_effort_is_another_judge_than_the_certified_one() -> None:
    before = {name: value for name, value in OPTIONS.items() if name != "reasoning_effort"}
    plain = certified_options(recorded_options(ModelOptions()))
    low = certified_options(recorded_options(ModelOptions(reasoning_effort="low")))
    for parameters, own, unlike in (
        # Certificates from before there were efforts name none.
        (before, plain, []), (before, low, ["reasoning_effort"]),
        (low, low, []), (low, plain, ["reasoning_effort"]),
    ):  # fmt: skip
        of = certificate(certified(parameters=parameters))
        matches = match_run(of, (GRADED,), "baseline/overlap", own)
        items = [match.item for match in matches if not match.same and match.item in OPTIONS]
        assert items == unlike
