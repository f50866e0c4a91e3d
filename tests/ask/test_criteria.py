# ruff: noqa: E501 - a table of faults reads best in whole rows
import json
from pathlib import Path

import pytest

from judge.ask.criteria import bundled_criteria, criterion_names, default_prompts, find_criterion, load_criterion
from judge.ask.prompt import OF_NUGGETS, PLACEHOLDER
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.io.files import sha256
from judge.io.installed import bundled
from judge.records import Criterion, Example, Level, Rollup
from tests.conftest import put, refused

GOOD = """\
+++
criterion = "tone"
version = 3
polarity = "higher"
positive = [2]
inputs = ["response"]
answer = "grade"

[[level]]
grade = 0
description = "rude"

[[level]]
grade = 1
label = "fair"
description = "neither"

[[level]]
grade = 2
description = "kind"

[unable]
grade = -1
label = "unable"
description = "no idea"
+++

# System

Say how kind it is.
{{levels}}

# User

{{response}}
{{answer}}
"""

PER_SENTENCE = """\
+++
criterion = "tone"
version = 1
polarity = "higher"
positive = [1]
inputs = ["sentences"]
answer = "sentences"
[[level]]
grade = 0
description = "not kind"
[[level]]
grade = 1
description = "kind"
[unable]
grade = -1
label = "unable"
description = "no idea"
[[sentence_level]]
label = "kind"
description = "is kind"
[[sentence_level]]
label = "rude"
description = "is rude"
[[sentence_level]]
label = "plain"
description = "is neither"
[rollup]
label = "kind"
ignored = "plain"
cuts = [[0.5, 1], [0.0, 0]]
+++
# System
Say it.
{{levels}}
# User
{{sentences}}
{{answer}}
"""


def load(folder: Path, text: str, name: str = "mine.md") -> Criterion:
    path = folder / name
    put(path, text.encode())
    return load_criterion(path)


def faults(folder: Path, text: str) -> list[tuple[str, str, str]]:
    problems = refused(load, folder, text)
    assert all(problem.file == str(folder / "mine.md") for problem in problems)
    return [(problem.path, problem.code, problem.message) for problem in problems]


def test_a_prompt_says_its_unit(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).unit == "response"
    of_dialogue = load(tmp_path, OF_DIALOGUE)
    assert (of_dialogue.unit, of_dialogue.inputs) == ("dialogue", ("dialogue",))


def test_a_sound_file_becomes_a_criterion(tmp_path: Path) -> None:
    criterion = load(tmp_path, GOOD)
    assert criterion.prompt_id == "tone/mine"
    assert criterion.version == 3
    assert criterion.inputs == ("response",)
    assert criterion.scale.levels == (Level(0, "0", "rude"), Level(1, "fair", "neither"), Level(2, "2", "kind"))
    assert criterion.scale.unable == Level(-1, "unable", "no idea")
    assert criterion.scale.labels == ("0", "fair", "2", "unable")
    assert criterion.scale.positive == (2,)
    assert criterion.system == "Say how kind it is.\n{{levels}}"
    assert criterion.user == "{{response}}\n{{answer}}"
    assert criterion.digest == sha256(GOOD.encode())


def test_labels_for_sentences_and_their_roll_up(tmp_path: Path) -> None:
    criterion = load(tmp_path, PER_SENTENCE)
    assert [level.label for level in criterion.sentence_levels] == ["kind", "rude", "plain"]
    assert criterion.rollup == Rollup("kind", ((0.5, 1), (0.0, 0)), "plain")


def test_examples_are_read_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    (example,) = load(tmp_path, WITH_EXAMPLE).examples
    assert example == Example("1-1_1", "a" * 64, 2, (("response", ("You are kind.",)),))


CRLF = GOOD.replace("\n", "\r\n")


@pytest.mark.parametrize("changed", [CRLF, "\ufeff" + GOOD, "\ufeff" + CRLF, CRLF.replace("\r\n", "\n", 5)])
def test_a_copy_with_other_line_ends_or_a_byte_order_mark_is_the_same_prompt(tmp_path: Path, changed: str) -> None:
    as_checked_out = put(tmp_path / "mine.md", changed.encode())
    assert load_criterion(as_checked_out) == load(tmp_path, GOOD)


def test_inner_spaces_of_a_placeholder_do_not_matter_to_what_is_asked(tmp_path: Path) -> None:
    changed = GOOD.replace("{{answer}}", "{{ answer }}")
    criterion = load(tmp_path, changed)
    assert PLACEHOLDER.findall(criterion.user) == ["response", "answer"]
    assert criterion.digest == sha256(changed.encode())


@pytest.mark.parametrize(("encoding", "at"), [("utf-16-le", "line 30"), ("latin-1", "line 30"), ("utf-32", "line 1")])
def test_another_encoding_is_refused(tmp_path: Path, encoding: str, at: str) -> None:
    stored = GOOD.replace("Say how kind it is.", "Say how kind it is: naïve?").encode(encoding)
    problems = refused(load_criterion, put(tmp_path / "mine.md", stored))
    assert [(problem.path, problem.code) for problem in problems] == [(at, "prompt_syntax")]


OF_DIALOGUE = GOOD.replace("version = 3", 'version = 3\nunit = "dialogue"').replace('["response"]', '["dialogue"]')
OF_DIALOGUE = OF_DIALOGUE.replace("{{response}}", "{{dialogue}}")
OF_PAIR = OF_DIALOGUE.replace("dialogue", "pair")


WITH_EXAMPLE = GOOD.replace('["response"]', '["examples", "response"]').replace(
    "{{response}}", "{{examples}}\n{{response}}"
)
WITH_EXAMPLE = WITH_EXAMPLE.replace(
    "+++\n\n# System",
    f"""
[[example]]
turn_id = "1-1_1"
response_sha256 = "{"a" * 64}"
grade = 2
[example.shown]
response = ["You are kind."]
+++

# System""",
)
A_SECOND = f"""[[example]]
turn_id = "1-1_2"
response_sha256 = "{"a" * 64}"
grade = 1
shown = {{response = ["x"]}}
+++

# System"""


# File, what is changed, to what, where the fault is said to be, its code, and a part of its message.
FAULTS = [
    (GOOD, "version = 3", "version =", "line 3", "prompt_syntax", "not TOML"),
    (GOOD, "version = 3", "version = 3\nversion = 4", "line 4", "prompt_syntax", "not TOML"),
    (GOOD, "version = 3", f"version = {'9' * 5000}", "line 1", "prompt_syntax", "not TOML"),
    (GOOD, "version = 3", f"version = 3\n# {'x' * 65_536}", "line 1", "prompt_syntax", "characters of front matter: at most 65,536"),
    (GOOD, "version = 3", "version = 0", "version", "prompt_field", "expected 1 or more"),
    (GOOD, "version = 3", 'version = "3"', "version", "prompt_field", "input should be a valid integer, found '3'"),
    (GOOD, "version = 3", "version = true", "version", "prompt_field", "found True"),
    (GOOD, "version = 3\n", "", "version", "prompt_field", "is missing"),
    (GOOD, "version = 3", "verson = 3\nversion = 3", "verson", "prompt_field", "is not a key"),
    (GOOD, '"higher"', '"upwards"', "polarity", "prompt_field", "'upwards'"),
    (GOOD, '"tone"', '"../tone"', "criterion", "prompt_name", "'../tone'"),
    (GOOD, 'description = "kind"', 'describe = "kind"', "level[2].describe", "prompt_field", "is not a key of a prompt file"),
    (GOOD, 'grade = 1\n', 'grade = 1.5\n', "level[1].grade", "prompt_field", "found 1.5"),
    (GOOD, 'description = "kind"', 'description = " "', "level[2].description", "prompt_level", "'2' has no description"),
    (GOOD, 'description = "kind"', "", "level[2].description", "prompt_field", "is missing"),
    (GOOD, 'description = "kind"', 'description = "{{response}}"', "level[2].description", "prompt_placeholder", "cannot hold"),
    (GOOD, "grade = 2", 'grade = 0\nlabel = "x"', "level[2].grade", "prompt_level", "grade 0 is given twice"),
    (GOOD, "grade = -1", "grade = 2", "unable.grade", "prompt_level", "grade 2 is given twice"),
    (GOOD, 'label = "unable"', 'label = "FAIR"', "unable.label", "prompt_level", "'FAIR' is given twice"),
    (GOOD, 'label = "fair"', 'label = "2"', "level[1].label", "prompt_level", "a number other than its grade 1"),
    (GOOD, 'label = "fair"', 'label = "*fair*"', "level[1].label", "prompt_level", "'*fair*' is not letters"),
    (GOOD, "positive = [2]", "positive = [3]", "positive", "prompt_positive", "[3] are not grades"),
    (GOOD, "positive = [2]", "positive = [-1]", "positive", "prompt_positive", "[-1] are not grades"),
    (GOOD, "positive = [2]", "positive = []", "positive", "prompt_positive", "not none and not all"),
    (GOOD, "positive = [2]", "positive = [0, 1, 2]", "positive", "prompt_positive", "not none and not all"),
    (GOOD, "positive = [2]", "positive = [2, 2]", "positive", "prompt_positive", "twice"),
    (GOOD, "positive = [2]", "positive = [1]", "positive", "prompt_positive", "not the best grades"),
    (GOOD, 'polarity = "higher"', 'polarity = "lower"', "positive", "prompt_positive", "when lower is better"),
    (GOOD, '["response"]', '["response", "gold"]', "inputs", "prompt_input", "unknown input 'gold'"),
    (GOOD, '["response"]', '["response", "response"]', "inputs", "prompt_input", "named twice"),
    (GOOD, '["response"]', '["response", "ptkb"]', "inputs", "prompt_input", "{{ptkb}} is not in the text"),
    (GOOD, '["response"]', "[]", "inputs", "prompt_input", "nothing is judged"),
    (GOOD, '["response"]', '["ptkb"]', "line 35", "prompt_input", "{{response}} is used but not declared"),
    (GOOD, '["response"]', '["response", "dialogue"]', "inputs", "prompt_input", '`dialogue` is only for unit = "dialogue"'),
    (GOOD, "version = 3", 'version = 3\nunit = "topic"', "unit", "prompt_field", "input should be 'response', 'dialogue', 'citation', 'pair' or 'passage', found 'topic'"),
    (OF_DIALOGUE, '["dialogue"]', '["dialogue", "response"]', "inputs", "prompt_input", "alone, not response"),
    (GOOD, '["response"]', '["response", "pair"]', "inputs", "prompt_input", '`pair` is only for unit = "pair"'),
    (OF_PAIR, '["pair"]', '["pair", "passages"]', "inputs", "prompt_input", "`utterance` and `resolved_utterance` alone, not passages"),
    (OF_PAIR, "grade = 2", "grade = 5", "level", "prompt_level", "each needs one for the responses in other order"),
    (OF_DIALOGUE, '["dialogue"]', '["ptkb"]', "inputs", "prompt_input", "`dialogue` is not an input, so nothing is judged"),
    (OF_DIALOGUE, 'answer = "grade"', 'answer = "sentences"', "answer", "prompt_field", "its sentences get no labels"),
    (GOOD, 'answer = "grade"', 'answer = "grade"\nrollup = {label = "x", cuts = []}', "rollup", "prompt_rollup", "only for"),
    (GOOD, "{{response}}", "{{response}} {{gold}}", "line 35", "prompt_placeholder", "unknown placeholder {{gold}}"),
    (GOOD, "{{response}}", "{{response}} {{}}", "line 35", "prompt_placeholder", "unknown placeholder {{}}"),
    (GOOD, "{{response}}", "{{response}} }}", "line 35", "prompt_placeholder", "without its partner"),
    (GOOD, "{{response}}", "{{response}} {{answer", "line 35", "prompt_placeholder", "without its partner"),
    (GOOD, "Say how", "{{response}} Say how", "line 30", "prompt_placeholder", "belongs under `# User`"),
    (GOOD, "{{levels}}\n", "", "line 36", "prompt_placeholder", "without {{levels}}"),
    (GOOD, "{{answer}}\n", "", "line 36", "prompt_placeholder", "without {{answer}}"),
    (GOOD, "# User", "# Use", "line 37", "prompt_heading", "no text under a heading `# User`"),
    (GOOD, "# System", "Hello\n# System", "line 28", "prompt_heading", "text before"),
    (GOOD, "{{answer}}", "{{answer}}\n# System\nAgain", "line 37", "prompt_heading", "repeated or out of order"),
    (GOOD, "+++\ncrit", "crit", "line 1", "prompt_syntax", "expected TOML front matter"),
    (WITH_EXAMPLE, "grade = 2\n[example", "grade = -1\n[example", "example[0].grade", "prompt_example", "found -1, expected one of 0, 1, 2"),
    (WITH_EXAMPLE, "a" * 64, "a" * 63, "example[0].response_sha256", "prompt_example", "expected 64 hexadecimal digits"),
    (WITH_EXAMPLE, 'response = ["You', 'passages = ["You', "example[0].shown", "prompt_example", "found passages, expected the inputs response"),
    (WITH_EXAMPLE, "You are kind.", "x" * 6001, "example[0].shown", "prompt_example", "6,001 characters: an example has at most 6,000"),
    (WITH_EXAMPLE, 'turn_id = "1-1_1"\n', "", "example[0].turn_id", "prompt_field", "is missing"),
    (WITH_EXAMPLE, "+++\n\n# System", A_SECOND, "example[1].response_sha256", "prompt_example", "is an example already"),
    (WITH_EXAMPLE, '"examples", ', "", "inputs", "prompt_example", "the file has examples, and `examples` is not an input"),
    (WITH_EXAMPLE, '"examples", ', '"examples", "pair", ', "inputs", "prompt_example", "examples cannot show pair"),
    (WITH_EXAMPLE, "version = 3", 'version = 3\nunit = "dialogue"', "inputs", "prompt_example", "a prompt about a dialogue cannot show examples"),
    (GOOD, "version = 3", "version = 3\ncuts = [0.5]", "cuts", "prompt_cuts", "found 1 cut, expected 2: one between each two levels"),
    (GOOD, "version = 3", "version = 3\ncuts = [1.5, 0.5]", "cuts", "prompt_cuts", "cuts [1.5, 0.5] must rise and lie within the grades [0, 1, 2]"),
    (GOOD, "version = 3", "version = 3\ncuts = [0.5, 0.5]", "cuts", "prompt_cuts", "must rise"),
    (GOOD, "version = 3", "version = 3\ncuts = [0.5, nan]", "cuts", "prompt_cuts", "must rise"),
    (GOOD, "version = 3", "version = 3\ncuts = [0.5, 2.5]", "cuts", "prompt_cuts", "lie within the grades"),
    (GOOD, "version = 3", 'version = 3\ncuts = ["0.5"]', "cuts[0]", "prompt_field", "found '0.5'"),
    (OF_PAIR, "version = 3", "version = 3\ncuts = [0.5, 1.5]", "cuts", "prompt_cuts", "a pair is graded in both orders"),
    (GOOD, '["response"]', '["response", "examples"]', "example", "prompt_example", "`judge prompts examples FILE --gold dev.jsonl"),
    (PER_SENTENCE, '["sentences"]', '["sentences", "examples"]', "inputs", "prompt_example", 'answer = "grade" is expected, not sentences'),
    (PER_SENTENCE, 'label = "kind"\nignored', 'label = "nice"\nignored', "rollup.label", "prompt_rollup", "'nice' is not a sentence label"),
    (PER_SENTENCE, '"plain"\ncuts', '"flat"\ncuts', "rollup.ignored", "prompt_rollup", "'flat' is not a sentence label"),
    (PER_SENTENCE, '"plain"\ncuts', '"kind"\ncuts', "rollup.ignored", "prompt_rollup", "cannot be the ignored one"),
    (PER_SENTENCE, '[unable]\ngrade = -1\nlabel = "unable"\ndescription = "no idea"\n', "", "rollup.ignored", "prompt_rollup", "`[unable]`"),
    (PER_SENTENCE, ", [0.0, 0]", "", "rollup.cuts", "prompt_rollup", "last cut must be at share 0.0"),
    (PER_SENTENCE, "[[0.5, 1], [0.0, 0]]", "[]", "rollup.cuts", "prompt_rollup", "last cut must be at share 0.0"),
    (PER_SENTENCE, "[0.5, 1]", "[0.0, 1]", "rollup.cuts", "prompt_rollup", "must lie within 0 and 1 and fall"),
    (PER_SENTENCE, "[0.5, 1]", "[1.5, 1]", "rollup.cuts", "prompt_rollup", "must lie within 0 and 1 and fall"),
    (PER_SENTENCE, "[0.5, 1]", "[nan, 1]", "rollup.cuts", "prompt_rollup", "must lie within 0 and 1 and fall"),
    (PER_SENTENCE, "[0.5, 1]", "[0.5, 7]", "rollup.cuts", "prompt_rollup", "[7] are not grades"),
    (PER_SENTENCE, "[[0.5, 1], [0.0, 0]]", "[[0.5, 0], [0.0, 1]]", "rollup.cuts", "prompt_rollup", "grades [0, 1] get better as the share falls"),
    (PER_SENTENCE, "[0.5, 1]", "[0.5]", "rollup.cuts[0][1]", "prompt_field", "is missing"),
    (PER_SENTENCE, 'label = "rude"', 'label = "kind"', "sentence_level[1].label", "prompt_level", "'kind' is given twice"),
    (PER_SENTENCE, '[rollup]\nlabel = "kind"\nignored = "plain"\ncuts = [[0.5, 1], [0.0, 0]]\n', "", "rollup", "prompt_rollup", "needs a `[rollup]`"),
    (PER_SENTENCE, '["sentences"]', '["response"]', "inputs", "prompt_input", "needs the input `sentences`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "at", "code", "message"), FAULTS)
def test_a_fault_is_named_with_its_line_or_key(tmp_path, text, old, new, at, code, message) -> None:
    assert old in text
    bad = text.replace(old, new, 1)
    assert [where for where, found, said in faults(tmp_path, bad) if found == code and message in said] == [at]


def test_all_faults_of_a_file_come_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace("version = 3", "version = 0").replace("[2]", "[9]").replace("{{answer}}", "{{reply}}")
    assert [(where, code) for where, code, _ in faults(tmp_path, bad)] == [
        ("version", "prompt_field"),
        ("positive", "prompt_positive"),
        ("line 36", "prompt_placeholder"),
        ("line 37", "prompt_placeholder"),
    ]


def test_the_body_is_checked_even_if_the_front_matter_cannot_be_read(tmp_path: Path) -> None:
    bad = GOOD.replace("version = 3", "version =").replace("{{answer}}", "{{answer}} {{gold}}")
    assert [(where, code) for where, code, _ in faults(tmp_path, bad)] == [
        ("line 3", "prompt_syntax"),
        ("line 36", "prompt_placeholder"),
    ]


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        (b"+++\n", 1),
        (b"+++\na = 1\n# \xff\n+++\n", 3),
        (b"+++\na = " + b"[" * 5000 + b"\n+++\n# System\n", 1),
    ],
)
def test_a_file_that_is_no_prompt_at_all(tmp_path: Path, stored: bytes, line: int) -> None:
    assert f"line {line}" in [problem.path for problem in refused(load_criterion, put(tmp_path / "mine.md", stored))]


@pytest.mark.parametrize("name", ["no such.md", "."])
def test_a_missing_file_or_a_folder_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_criterion(tmp_path / name)


def test_a_file_name_that_cannot_name_a_variant(tmp_path: Path) -> None:
    assert [problem.code for problem in refused(load, tmp_path, GOOD, "my prompt.md")] == ["prompt_name"]


@pytest.mark.parametrize("criterion", bundled_criteria(), ids=lambda criterion: criterion.prompt_id)
def test_a_bundled_prompt_says_what_its_folder_and_its_scale_say(criterion: Criterion) -> None:
    assert criterion.file == f"prompts/{criterion.prompt_id}.md"
    assert (criterion.name in criterion_names()) is (criterion.name not in OF_NUGGETS)
    grades = [level.grade for level in criterion.scale.levels]
    best = max(grades) if criterion.scale.polarity == "higher" else min(grades)
    assert best in criterion.scale.positive
    assert {*criterion.scale.positive} < {*grades}


def test_the_prompts_that_judgments_were_made_under_keep_their_scales_and_inputs() -> None:
    published = {
        "completeness/graded": (("0", "1", "2", "3", "unable"), (2, 3), CONVERSATION),
        "conciseness/graded": (("0", "1", "2", "3"), (2, 3), ("context", "utterance", "response")),
        "groundedness/graded": (("0", "1", "2", "3"), (2, 3), ("passages", "response")),
        "groundedness/sentences": (("0", "1", "2", "3", "unable"), (2, 3), ("passages", "sentences")),
        "groundedness/yes_no": (("yes", "no"), (1,), ("passages", "response")),
        "naturalness/cast": (("0", "1", "2", "3"), (2, 3), ("response",)),
        "naturalness/graded": (("0", "1", "2", "3", "4"), (3, 4), ("response",)),
        "relevance/graded": (("0", "1", "2", "3"), (2, 3), CONVERSATION),
        "relevance/ikat": (("0", "1", "2", "3", "unable"), (2, 3), CONVERSATION),
    }
    criteria = {name: find_criterion(name) for name in published}
    assert {name: (c.scale.labels, c.scale.positive, c.inputs) for name, c in criteria.items()} == published
    assert all(criterion.scale.polarity == "higher" for criterion in criteria.values())
    assert criteria["groundedness/yes_no"].scale.levels[0].grade == 1


def test_every_criterion_has_one_default_prompt() -> None:
    prompts = {criterion.prompt_id for criterion in bundled_criteria()}
    default = default_prompts()
    assert (
        tuple(sorted({*default} - OF_NUGGETS.keys()))
        == criterion_names()
        == tuple(sorted({prompt.partition("/")[0] for prompt in prompts} - OF_NUGGETS.keys()))
    )
    assert {*default.values()} <= prompts
    for name, prompt in default.items():
        assert prompt == f"{name}/graded" or [prompt] == [one for one in prompts if one.startswith(f"{name}/")]
        assert find_criterion(name).prompt_id == prompt


@pytest.mark.parametrize(
    ("variants", "default"), [(["graded", "old"], "tone/graded"), (["old"], "tone/old"), (["new", "old"], None)]
)
def test_the_default_is_the_graded_prompt_or_the_only_one(variants, default, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("judge.ask.criteria.bundled", lambda name: tmp_path)
    for variant in variants:
        load(tmp_path, GOOD, f"tone/{variant}.md")
    assert criterion_names() == ("tone",)
    assert default_prompts() == ({"tone": default} if default else {})
    if default:
        assert find_criterion("tone").prompt_id == default
        return
    with pytest.raises(UsageError, match=r"name one of tone/new, tone/old, or rename the file .* to graded\.md"):
        find_criterion("tone")


CONVERSATION = ("ptkb", "context", "utterance", "resolved_utterance", "response")


@pytest.mark.parametrize("criterion", bundled_criteria(), ids=lambda criterion: criterion.prompt_id)
def test_bundled_prompts_are_short_and_end_with_the_answer(criterion: Criterion) -> None:
    levels = criterion.sentence_levels or criterion.scale.levels
    rubric = " ".join([criterion.system, criterion.user, *(level.description for level in levels)])
    assert len(rubric.split()) < 250
    assert criterion.user.endswith("{{answer}}")
    assert "{{levels}}" in criterion.system
    assert criterion.user.index("{{" + criterion.inputs[0]) == 0, "what varies least comes first"


@pytest.mark.parametrize(
    ("name", "prompt_id"),
    [
        ("groundedness", "groundedness/graded"),
        ("groundedness/yes_no", "groundedness/yes_no"),
        (str(bundled("prompts") / "naturalness" / "cast.md"), "naturalness/cast"),
    ],
)
def test_a_prompt_is_found_by_criterion_name_or_path(name: str, prompt_id: str) -> None:
    assert find_criterion(name).prompt_id == prompt_id


@pytest.mark.parametrize("name", ["groundednes", "groundedness/gradd", "", "/"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"naturalness/cast, naturalness/graded"):
        find_criterion(name)


def test_list_as_a_table_and_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["prompts", "list"]) == 0
    table = capsys.readouterr().out.splitlines()
    digest = find_criterion("groundedness/yes_no").digest
    cells = [line.split() for line in table]
    assert f"groundedness/yes_no yes=1 no=0 1 grade {digest[:12]} passages,response".split() in cells
    assert main(["prompts", "list", "--json"]) == 0
    rows = {row["prompt"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["groundedness/yes_no"]["digest"] == digest
    assert rows["groundedness/yes_no"]["levels"] == {"yes": 1, "no": 0}


def test_show_prints_the_file_or_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", "show", "naturalness"]) == 0
    assert capsys.readouterr().out == (bundled("prompts") / "naturalness" / "graded.md").read_text(encoding="utf-8")
    for name in [criterion.prompt_id for criterion in bundled_criteria()]:
        assert main(["prompts", "show", name, "--rendered", "--form", "text"]) == 0
        assert "{{" not in capsys.readouterr().out
    assert main(["prompts", "show", "groundedness/sentences", "--rendered", "--form", "label"]) == 2
    assert main(["prompts", "show", "nonsense"]) == 2


def test_check_lists_every_fault_of_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text(GOOD, encoding="utf-8")
    bad.write_text(GOOD.replace("[2]", "[9]").replace("{{levels}}", "{{level}}"), encoding="utf-8")
    assert main(["prompts", "check", str(good)]) == 0
    capsys.readouterr()
    assert main(["prompts", "check", str(bad), str(good), str(tmp_path / "none.md")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0].strip() for line in lines] == [
        str(bad), "positive", "line 31", "line 37", str(good), str(tmp_path / "none.md"),
    ]  # fmt: skip
