import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.calibrate import findings
from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.report.folder import STATISTICS, agreement_tsv, confusion_tsv, finding_files
from judge.calibrate.report.pages import calibration_markdown
from judge.calibrate.report.sections import COMPARISONS
from judge.io.text import markdown_cell, unescape
from judge.records import Estimate
from judge.stats.tables import MarginalTest
from tests.report_records import NOTHING, agreement, calibration, constant, estimate

HOSTILE = st.text(st.characters() | st.sampled_from("\t\n\r\\|`*_$<&#\x1b\u202e\ud800"))


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_agreement_columns_are_in_the_published_order() -> None:
    ends = [column for name in STATISTICS for column in (name, f"{name}_lo", f"{name}_hi")]
    assert [
        *"judge prompt criterion split reference baseline gold n topics coverage without_grade".split(),
        *ends,
        *"worst_percent worst_kappa worst_wkappa worst_alpha_ordinal".split(),
        *"wkappa_item_lo wkappa_item_hi primary_item_lo primary_item_hi deff".split(),
        *"bowker_chi2 bowker_df bowker_p stuart_maxwell_chi2 stuart_maxwell_df stuart_maxwell_p".split(),
        *"ceiling ceiling_lo ceiling_hi test_retest test_retest_lo test_retest_hi".split(),
        *"primary binary tied verdict notes".split(),
    ] == agreement_tsv([]).rstrip("\n").split("\t")


def test_an_agreement_row_says_what_was_found() -> None:
    found = calibration(others=0)
    row = cells(agreement_tsv(found.agreement, found.verdicts))[0]
    assert {column: text for column, text in row.items() if text} == {
        "judge": "local/qwen", "prompt": "groundedness/graded", "criterion": "groundedness", "split": "test",
        "reference": "consensus of 3", "baseline": "false", "gold": "153", "n": "150", "topics": "25",
        "coverage": "0.980392", "without_grade": "unreadable:2,unable:1",
        **{"percent": "0.700000", "percent_lo": "0.650000", "percent_hi": "0.750000"},
        **{"kappa": "0.510000", "kappa_lo": "0.410000", "kappa_hi": "0.610000"},
        **{"wkappa": "0.610000", "wkappa_lo": "0.510000", "wkappa_hi": "0.710000"},
        **{"alpha_ordinal": "0.610000", "alpha_ordinal_lo": "0.510000", "alpha_ordinal_hi": "0.710000"},
        **{"ac2": "0.800000", "ac2_lo": "0.700000", "ac2_hi": "0.900000"},
        **{"bias": "0.310000", "bias_lo": "0.110000", "bias_hi": "0.510000"},
        **{"worst_percent": "0.680000", "worst_kappa": "0.450000", "worst_wkappa": "0.500000"},
        **{"wkappa_item_lo": "0.560000", "wkappa_item_hi": "0.660000"},
        **{"primary_item_lo": "0.560000", "primary_item_hi": "0.660000", "deff": "3.200000"},
        **{"bowker_chi2": "7.600000", "bowker_df": "3", "bowker_p": "0.055000"},
        **{"stuart_maxwell_chi2": "6.900000", "stuart_maxwell_df": "2", "stuart_maxwell_p": "0.031700"},
        **{"ceiling": "0.680000", "ceiling_lo": "0.610000", "ceiling_hi": "0.750000"}, "primary": "wkappa",
        "binary": "false", "tied": "0", "verdict": "TRUSTED",
    }  # fmt: skip


def test_a_verdict_is_about_its_own_row_only() -> None:
    found = calibration()
    dev = agreement(split="dev")
    words = [row["verdict"] for row in cells(agreement_tsv([*found.agreement, dev], found.verdicts))]
    assert words == ["TRUSTED", "", "", ""]


def test_undefined_numbers_are_empty_and_like_reasons_are_said_once() -> None:
    row = agreement(
        statistics={
            "percent": estimate(0.7),
            "kappa": Estimate(None, None, None, 9, 3, "fewer than 5 topics"),
            "wkappa": Estimate(None, None, None, 9, 3, "fewer than 5 topics"),
            "ac1": Estimate(0.5, None, None, 9, 3, "all grades equal"),
        },
        marginals=(MarginalTest("bowker", None, None, None, "no disagreements"),),
        ceiling=Estimate(None, None, None, 0, 0, "one assessor"),
        test_retest=Estimate(0.9, None, None, 9, 3, "fewer than 5 topics"),
    )
    (line,) = cells(agreement_tsv([row]))
    assert [line[name] for name in ("kappa", "kappa_lo", "within_one", "ac1", "ac1_lo", "bowker_chi2", "ceiling")] == [
        *("", "", "", "0.500000", "", "", "")
    ]
    assert [line[name] for name in ("test_retest", "test_retest_lo", "test_retest_hi")] == ["0.900000", "", ""]
    assert line["notes"] == (
        "kappa, wkappa, test_retest: fewer than 5 topics; ac1: all grades equal; bowker: no disagreements; "
        "ceiling: one assessor"
    )


def test_a_rounded_zero_has_no_sign() -> None:
    (line,) = cells(agreement_tsv([agreement(statistics={"bias": Estimate(-1e-9, None, None, 1, 1)})]))
    assert line["bias"] == "0.000000"


def test_confusion_lists_every_pair_of_grades() -> None:
    row = agreement(grades=(-1, 2), confusion=((3, 1), (0, 0)))
    assert confusion_tsv([row]) == (
        "judge\tprompt\tcriterion\tsplit\thuman\tjudge_grade\tcount\trow_share\n"
        "local/qwen\tgroundedness/graded\tgroundedness\ttest\t-1\t-1\t3\t0.750000\n"
        "local/qwen\tgroundedness/graded\tgroundedness\ttest\t-1\t2\t1\t0.250000\n"
        "local/qwen\tgroundedness/graded\tgroundedness\ttest\t2\t-1\t0\t\n"
        "local/qwen\tgroundedness/graded\tgroundedness\ttest\t2\t2\t0\t\n"
    )


def said(prompt: str | None, split: str, facts: object, statistics: object = {}) -> findings.FindingRow:
    return findings.FindingRow(judge="j", prompt=prompt, criterion="g", split=split, facts=facts,
                               statistics=statistics)  # type: ignore[arg-type]  # fmt: skip


def test_comparisons() -> None:
    about = {"criterion": "g", "statistic": "wkappa"}
    rows = [
        findings.ComparisonRow("a", "b", estimate(0.05, 0.02), 0.01, 0.03, 0.02, True, split="test", **about),
        findings.ComparisonRow("a", "c", estimate(None), None, None, None, False, split="dev", **about),
    ]
    assert COMPARISONS.tsv(rows) == (
        "criterion\tsplit\tstatistic\ta\tb\tdifference\tdifference_lo\tdifference_hi\tp\tp_max_t\tp_holm\texact\tn\t"
        "topics\tnote\n"
        "g\ttest\twkappa\ta\tb\t0.050000\t0.030000\t0.070000\t0.010000\t0.030000\t0.020000\ttrue\t150\t25\t\n"
        "g\tdev\twkappa\ta\tc\t\t\t\t\t\t\tfalse\t150\t25\tfewer than 5 topics\n"
    )


def test_calibration_map() -> None:
    rows = [
        said("g/v", "dev", {"grade": 0, "n": 12, "mean": 0.25, "shrunken": 0.3, "weight": 2.0}),
        said(None, "all", {"grade": 1, "n": 0, "mean": None, "shrunken": 1.0, "weight": 2.0}),
    ]
    assert FINDINGS["calibration_map"].tsv(rows) == (
        "judge\tprompt\tcriterion\tsplit\tgrade\tn\tmean\tshrunken\tweight\n"
        "j\tg/v\tg\tdev\t0\t12\t0.250000\t0.300000\t2.000000\n"
        "j\t\tg\tall\t1\t0\t\t1.000000\t2.000000\n"
    )


def test_systems() -> None:
    found = {"tau_b": estimate(0.8), "rbo": estimate(0.7, 0), "top_1": estimate(None)}
    known = {"half_human": 0.75, "half_judge": 0.5, "halves": None}
    unknown = {"half_human": None, "half_judge": None, "halves": "fewer than 5 topics"}
    rows = [said("g/v", "test", {"runs": 12, **halves}, found) for halves in (known, unknown)]
    line, other = cells(FINDINGS["systems"].tsv(rows))
    assert (other["half_human"], other["notes"]) == ("", "rbo, top_1, halves: fewer than 5 topics")
    assert list(line)[5:8] == ["tau_b", "tau_b_lo", "tau_b_hi"]
    assert {column: text for column, text in line.items() if text} == {
        **{"judge": "j", "prompt": "g/v", "criterion": "g", "split": "test", "runs": "12"},
        **{"tau_b": "0.800000", "tau_b_lo": "0.700000", "tau_b_hi": "0.900000", "rbo": "0.700000"},
        **{"half_human": "0.750000", "half_judge": "0.500000"},
        "notes": "rbo, top_1: fewer than 5 topics",
    }


def test_the_alternative_test_never_leaves_a_number_behind() -> None:
    numbers = {"epsilon": 0.2, "omega": 0.5, "rho": 0.6}
    rows = [
        said(None, "dev", {**numbers, "assessor": "a", "n": 9, "p": 0.01, "rejected": True}),
        said(None, "dev", {**numbers, "assessor": "b", "n": 8, "p": 0.2, "rejected": False}),
        replace(said(None, "all", {"epsilon": 0.2, "reason": "two assessors are needed"}), judge="k"),
    ]
    assert FINDINGS["alternative"].tsv(rows) == (
        "judge\tprompt\tcriterion\tsplit\tepsilon\tomega\trho\tassessor\tn\tp\trejected\tnote\n"
        "j\t\tg\tdev\t0.200000\t0.500000\t0.600000\ta\t9\t0.010000\ttrue\t\n"
        "j\t\tg\tdev\t0.200000\t0.500000\t0.600000\tb\t8\t0.200000\tfalse\t\n"
        "k\t\tg\tall\t0.200000\t\t\t\t\t\t\ttwo assessors are needed\n"
    )


def test_diagnostics() -> None:
    slope = said(None, "dev", {"what": "log2_words"}, {"estimate": estimate(0.1, 0.05)})
    of_family = {"what": "family", "family": "qwen", "is_self": True, "runs": 4, "mean": 0.5}
    family = said(None, "dev", of_family, {"estimate": estimate(0.3, 0)})
    found = replace(NOTHING, findings={"slopes": (slope,), "families": (family,)})
    assert finding_files(found)["diagnostics.tsv"] == (
        "judge\tcriterion\tsplit\twhat\tfamily\tis_self\truns\tmean\testimate\testimate_lo\testimate_hi\tn\ttopics\tnote\n"
        "j\tg\tdev\tlog2_words\t\t\t\t\t0.100000\t0.050000\t0.150000\t150\t25\t\n"
        "j\tg\tdev\tfamily\tqwen\ttrue\t4\t0.500000\t0.300000\t\t\t150\t25\tfewer than 5 topics\n"
    )


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_name_breaks_a_column_and_every_name_can_be_read_back(judge: str, criterion: str, reason: str) -> None:
    row = agreement(judge, criterion=criterion, without_grade={reason: 1})
    table = agreement_tsv([row, constant(reference=reason)])
    lines = table.split("\n")
    assert [line.count("\t") for line in lines[:-1]] == [agreement_tsv([]).count("\t")] * 3
    table.encode()
    read = lines[1].split("\t")
    assert (unescape(read[0]), unescape(read[2]), unescape(read[10])) == (judge, criterion, f"{reason}:1")


def chapter(text: str, heading: str) -> str:
    """What stands under a heading that begins so, up to the next one."""
    return next(part.partition("\n\n")[2] for part in text.split("\n#") if part.lstrip("# ").startswith(heading))


def test_the_report_begins_with_what_must_be_known_first() -> None:
    assert calibration_markdown(calibration()).startswith(
        "# Calibration\n"
        "\n"
        "- **Warning**: The gold was post-edited from an LLM's grades.\n"
        "\n"
        "## groundedness\n"
        "\n"
        "**TRUSTED**: local/qwen graded on test grades, wkappa 0.610 [0.510, 0.710], n = 150 over 25 topics. "
        "Required: wkappa.lo &gt;= 0.4. Because: wkappa.lo is 0.51.\n"
        "\n"
        "### Agreement on test grades\n"
        "\n"
        "Against consensus of 3; best lower bound of wkappa first, the chosen judge in bold.\n"
        "\n"
        "| judge | n/topics | coverage | same | kappa | wkappa [95 %] | alpha | AC2 | bias [95 %] | design effect |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| **local/qwen graded** | 150/25 | 0.98 | 0.700 | 0.510 | 0.610 [0.510, 0.710] | 0.610 | 0.800 | "
        "+0.310 [+0.110, +0.510] | 3.20 |\n"
    )


def test_another_primary_has_its_own_column_and_reasons_are_counted() -> None:
    row = agreement(primary="ac1", statistics={"ac1": estimate(0.5), "kappa": estimate(None)})
    text = calibration_markdown(replace(NOTHING, agreement=(row, row)))
    assert "| judge | n/topics | coverage | same | ac1 [95 %] | kappa | wkappa [95 %] |" in text
    assert "| local/qwen graded | 150/25 | 0.98 | - | 0.500 [0.400, 0.600] | - | - | - | - | - | - |" in text
    assert "Without a value or an interval: kappa: fewer than 5 topics (1 judge)." in text
    assert "No verdict was asked for." in text


def test_comparisons_are_told_from_the_chosen_one_on() -> None:
    text = chapter(calibration_markdown(calibration()), "Comparisons")
    assert "1 pair compared on the items that both graded, by wkappa; 0 separable at 5 % by max-T." in text
    # The record says other minus chosen, -0.02 [-0.07, 0.03].
    assert "| other/0 graded | +0.020 [-0.030, +0.070] | 150/25 | 0.4000 | 0.7000 | 1.0000 |" in text


def test_selection_confusion_and_the_rest() -> None:
    text = calibration_markdown(calibration())
    assert chapter(text, "Selection") == (
        "local/qwen graded was chosen from 2 candidates by wkappa on dev grades: 0.660 [0.560, 0.760] there. "
        "On test grades: 0.610 [0.510, 0.710]. With the choice repeated inside topic folds: 0.600. "
        "Optimism of the choice: +0.050. Others that may be the best, by elimination at 5 %: other/0 graded. "
        "The sealed test grades have been opened 2 times for different questions.\n"
    )
    assert "| 2 | 0 | 5 | 45 | 50 | 0.90 |" in chapter(text, "Grades of local/qwen graded")
    assert "chi² 7.60, 3 df, p 0.0550" in chapter(text, "Grades of local/qwen graded")
    assert "| local/qwen graded | 0.15 | 0.50 | 0.62 | ann | 50 | 0.0100 | yes |" in text
    assert "| local/qwen graded | 0.15 | 0.50 | 0.62 | bob | 49 | 0.2000 | no |" in text
    assert "| local/qwen graded | test | 12 | 0.80 [0.70, 0.90] | - |" in text
    assert "between the assessors themselves wkappa is 0.680 [0.610, 0.750]" in text
    assert "constant reaches wkappa 0.000 [-0.100, 0.100]" in text


def test_headings_say_on_which_grades() -> None:
    text = calibration_markdown(calibration())
    headings = [line for line in text.splitlines() if line.startswith("###")]
    assert headings == [
        "### Agreement on test grades",
        "### How often each grade is given, on test grades",
        "### Selection",
        "### Comparisons on test grades",
        "### Grades of local/qwen graded against the assessors'",
        "### What a grade of the judge is worth, on dev grades",
        "### What moves the judge away from the assessors, on dev grades",
        "### Could the judge stand in for an assessor? On dev grades",
        "### Does it rank the runs as the assessors do?",
    ]
    found = calibration()
    undivided = {name: tuple(replace(row, split="all") for row in rows) for name, rows in found.findings.items()}
    text = calibration_markdown(replace(found, findings=undivided))
    assert "worth, on all grades\n" in text
    assert "assessors, on all grades\n" in text
    assert "assessor? On all grades\n" in text


def test_a_judge_that_was_asked_again_is_told_in_words() -> None:
    assert "Asked again" not in calibration_markdown(calibration())
    found = calibration()
    rows = (replace(found.agreement[0], test_retest=estimate(0.9, 0.05)), *found.agreement[1:])
    assert (
        "Asked again, local/qwen graded agrees with itself to a Krippendorff's ordinal alpha of 0.900 [0.850, 0.950]."
    ) in calibration_markdown(replace(found, agreement=rows))


def test_tests_that_take_items_as_independent_say_so() -> None:
    text = calibration_markdown(calibration())
    assert "(items taken as independent of each other)" in chapter(text, "Grades of local/qwen graded")
    assert "Items count as independent of each other, so p is too small" in chapter(text, "Could the judge stand in")


@pytest.mark.parametrize("name", ["a|b", "<b>x</b>", "$x^2$", "**x**", "a\nb", "\x1b[31m", "[x](http://x)"])
def test_names_show_as_themselves_in_the_report(name: str) -> None:
    text = calibration_markdown(calibration(name))
    assert name not in text


@given(HOSTILE, HOSTILE)
def test_tables_of_the_report_stay_tables(judge: str, criterion: str) -> None:
    text = calibration_markdown(calibration(judge, criterion))
    text.encode()
    tables = [part.split("\n") for part in text.split("\n\n") if part.startswith("| ")]
    assert len(tables) == 9
    for lines in tables:
        # Behind an even number of backslashes a bar ends a cell.
        bars = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines if line]
        assert len(set(bars)) == 1
        assert len(bars) > 2


def test_a_formula_is_no_formula_and_a_bare_address_no_link() -> None:
    shown = markdown_cell("a$b https://a.example/b www.a.example WWW.a.example _www.a m@a.example nDCG@5")
    assert shown == r"a\$b https\://a.example/b www\.a.example WWW\.a.example \_www\.a m<!-- -->@a.example nDCG@5"
