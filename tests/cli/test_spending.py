"""What commands say of money: the estimate, the account beside it, the manifest, and files of prices."""

import json
from pathlib import Path

import pytest

from judge.cli import main
from tests.calibration_world import FAST
from tests.conftest import PROJECT, complaint, manifest, on_stderr, printed, run_example
from tests.jobs.test_run import files
from tests.mock import Mock

EXAMPLE = PROJECT / "examples"
CALLS = 76
"""77 pooled responses, one of which lacks a passage."""


def run(mock: Mock, out: Path, *more: str) -> int:
    model = () if "--model" in more else ("--model", "server/a")
    criteria = () if "--criteria" in more else ("--criteria", "groundedness")
    return run_example(out, "--base-url", mock.base_url, *model, *criteria, *more)


def table(err: str) -> dict[str, list[str]]:
    """The rows of the account, by judge and name, without those for several judges."""
    lines = err.partition("judge ")[2].splitlines()[1:]
    rows: dict[str, list[str]] = {}
    judge = ""
    for line in lines:
        name, cells = line[:14].strip(), line[14:].split()
        if not line.startswith("  "):
            judge = line.strip()
        elif name in ("estimated", "asked now", "all results"):
            rows[f"{judge} {name}"] = cells
    return rows


def test_estimate_and_account_stand_side_by_side(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    price = ("--price", "0.4/0.1/1.6")
    assert run(mock, out, *price, "--dry-run") == 0
    estimated = int(capsys.readouterr().out.partition("prompt tokens       about ")[2].split()[0].replace(",", ""))
    rows = table(on_stderr(capsys, run(mock, out, *price)))
    (took,) = manifest(out)["spending"]
    dollars = (took["prompt_tokens"] * 0.4 + took["completion_tokens"] * 1.6) / 1e6
    assert took["cost"] == pytest.approx(dollars)
    assert (took["judge"], took["calls"], took["attempts"]) == ("server/a", CALLS, CALLS)
    expected = (estimated * 0.4 + CALLS * 150 * 1.6) / 1e6
    assert rows["server/a estimated"] == [str(CALLS), f"{estimated:,}", f"{CALLS * 150:,}", f"${expected:.4f}"]
    counted = [str(CALLS), str(CALLS), f"{took['prompt_tokens']:,}", "0", f"{took['completion_tokens']:,}"]
    assert rows["server/a asked now"][:6] == [*counted, f"${dollars:.4f}"]
    assert "server/a all results" not in rows


@pytest.mark.long
def test_a_rerun_asks_nothing_says_the_same_and_writes_the_same_bytes(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    mock.config(p429=0.1, p500=0.1, pbad=0.1, retry_after=0.01)
    assert run(mock, out, "--attempts", "20") == 0
    first, paid = files(out), sum(mock.paid_per_item().values())
    capsys.readouterr()
    assert run(mock, out, "--attempts", "20") == 0
    assert files(out) == first and sum(mock.paid_per_item().values()) == paid
    rows = table(capsys.readouterr().err)
    (took,) = manifest(out)["spending"]
    assert took["calls"] == paid and took["attempts"] > paid and took["seconds"] > 0
    assert list(rows) == ["server/a all results"]
    assert rows["server/a all results"][:2] == [str(paid), str(took["attempts"])]


def test_the_manifest_counts_what_its_results_rest_on_and_no_more(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run(mock, out, "--criteria", "groundedness", "naturalness") == 0
    (both,) = manifest(out)["spending"]
    assert run(mock, out, "--replace") == 0
    (one,) = manifest(out)["spending"]
    assert (one["calls"], both["calls"] > CALLS) == (CALLS, True)
    capsys.readouterr()
    rows = table(on_stderr(capsys, run(mock, out, "--replace", "--criteria", "groundedness", "relevance")))
    # Two of the 77 responses are one text to the same turn, which is one question where no passage is shown.
    assert rows["server/a asked now"][0] == "76"
    assert rows["server/a all results"][0] == str(CALLS + 76)


def test_each_member_of_a_jury_has_its_rows(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jury = ("--jury", "majority", "--model", "server/a", "--model", "server/b", "--price", "server/a=1/2")
    counts = json.loads(printed(capsys, run(mock, tmp_path / "out", *jury, "--dry-run", "--json")))
    assert [row["model"] for row in counts["by_model"]] == ["server/a", "server/b"]
    assert (counts["expected"]["calls"], counts["expected"]["priced"], counts["most"]) == (2 * CALLS, CALLS, None)
    first = counts["by_model"][0]
    assert first["price"] == {"in": 1.0, "out": 2.0}
    expected = first["expected"]
    assert expected["cost"] == pytest.approx((expected["prompt_tokens"] * 1 + CALLS * 150 * 2) / 1e6)
    rows = table(on_stderr(capsys, run(mock, tmp_path / "out", *jury)))
    assert rows["server/a asked now"][0] == rows["server/b asked now"][0] == str(CALLS)
    assert rows["server/b asked now"][5] == "unknown"
    assert rows["in all asked now"][0] == str(2 * CALLS)
    assert [row["judge"] for row in manifest(tmp_path / "out")["spending"]] == ["server/a", "server/b"]


def test_a_file_of_prices_is_used_and_may_name_other_models(mock: Mock, tmp_path, capsys) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('["server/a"]\nin = 1\ncached = 0.25\nout = 2\n["server/other"]\nin = 3\nout = 4\n')
    out = tmp_path / "out"
    assert run(mock, out, "--prices", str(path), "--max-cost", "5") == 0
    assert manifest(out)["prices"] == {"server/a": {"in": 1.0, "cached": 0.25, "out": 2.0}}
    assert run(mock, out, "--prices", str(path), "--price", "server/a=5/6") == 0
    assert manifest(out)["prices"] == {"server/a": {"in": 5.0, "out": 6.0}}
    path.write_text('["server/a"]\nin = -1\n["server/b"]\nout = "x"\n')
    capsys.readouterr()
    told = complaint(capsys, run(mock, tmp_path / "new", "--prices", str(path)))
    for place in ('$["server/a"].in', '$["server/a"].out', '$["server/b"].in', '$["server/b"].out'):
        assert place in told
    assert not (tmp_path / "new").exists()


def test_a_server_that_counts_nothing_is_said_so(mock: Mock, tmp_path, capsys) -> None:
    message = {"role": "assistant", "content": '{"rationale": "", "grade": "2"}'}
    mock.script(*({"body": {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}} for _ in range(3)))
    err = on_stderr(capsys, run(mock, tmp_path / "out", "--limit", "3"))
    assert table(err)["server/a asked now"][:6] == ["3", "3", "unknown", "unknown", "unknown", "unknown"]
    assert "the tokens of 3 calls were not counted by the provider and are in no sum" in err
    assert "the cost is without 3 calls that have no price; --price IN/OUT or a file (--prices) gives one" in err
    (took,) = manifest(tmp_path / "out")["spending"]
    assert (took["counted"], took["priced"], took["prompt_tokens"]) == (0, 0, 0)


def test_a_price_survives_a_file_of_options_and_an_extension(mock: Mock, tmp_path, capsys) -> None:
    saved, out = tmp_path / "saved.toml", tmp_path / "out"
    assert run(mock, out, "--price", "server/a=0.4/0.1/1.6", "--save-config", str(saved)) == 0
    assert 'price = ["server/a=0.4/0.1/1.6"]\n' in saved.read_text(encoding="utf-8")
    assert "cost                about $0.0" in printed(capsys, main(["run", "--config", str(saved), "--dry-run"]))
    assert run(mock, out, "--price", "server/a=0.4/0.1/1.6") == 0
    capsys.readouterr()
    extended = ["run", "--runs", str(EXAMPLE / "runs"), "--extend", str(out), "--out", str(out), "--dry-run"]
    assert main([*extended, "--model", "server/a", "--base-url", mock.base_url]) == 0
    assert "cost                nothing" in capsys.readouterr().out


def test_a_calibration_says_what_it_took(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mock, tmp_path / "out") == 0
    asking = ["calibrate", "--gold", str(PROJECT / "gold/example.gold.jsonl"), "--pool", str(tmp_path / "out"),
              "--prompt", "groundedness/graded", "--model", "server/a", "--base-url", mock.base_url,
              "--out", str(tmp_path / "cal"), *FAST]  # fmt: skip
    capsys.readouterr()
    rows = table(on_stderr(capsys, main([*asking, "--price", "1/2"])))
    calls = int(rows["server/a asked now"][0])
    assert calls > 0 and rows["server/a estimated"][0] == str(calls)
    later = table(on_stderr(capsys, main([*asking, "--price", "1/2"])))
    assert list(later) == ["server/a all results"]
    assert later["server/a all results"][:6] == rows["server/a asked now"][:6]
