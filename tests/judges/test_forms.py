import msgspec

from judge.judges.forms import answer_labels, answer_schema, form_instruction, supported_forms
from judge.records import Level
from tests.ask.test_loop import criterion

GRADED = criterion()
EACH = msgspec.structs.replace(
    GRADED, answer="sentences", sentence_levels=(Level(0, "supported", ""), Level(1, "invented", ""))
)


def test_a_single_label_cannot_carry_many_sentences() -> None:
    assert supported_forms(GRADED) == ("json", "text", "label", "decision")
    assert supported_forms(EACH) == ("json", "text", "decision")
    assert supported_forms(msgspec.structs.replace(GRADED, answer="nuggets")) == ("json", "text")


def test_schema_is_strict_and_asks_for_the_reasons_first() -> None:
    assert answer_schema(("yes", "no"), 0) == {
        "type": "object",
        "properties": {"rationale": {"type": "string"}, "grade": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["rationale", "grade"],
        "additionalProperties": False,
    }
    entry = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "label": {"type": "string", "enum": ["a", "b"]}},
        "required": ["n", "label"],
        "additionalProperties": False,
    }
    sentences = answer_schema(("a", "b"), 3)
    assert sentences["properties"] == {"rationale": {"type": "string"}, "sentences": {"type": "array", "items": entry}}
    assert list(sentences["properties"]) == sentences["required"]


def test_labels_are_those_of_the_scale_or_of_a_sentence() -> None:
    assert answer_labels(GRADED) == ("0", "1", "2", "3")
    assert answer_labels(EACH) == ("supported", "invented")


def test_an_instruction_names_every_label_and_the_form() -> None:
    assert '"yes", "no"' in form_instruction(("yes", "no"), "json", per_sentence=False)
    assert form_instruction(("yes", "no"), "text", per_sentence=False).endswith("one of yes, no:\nGrade: LABEL")
    assert form_instruction(("yes", "no"), "text", per_sentence=True).endswith("one of yes, no:\n1: LABEL")
    assert '"n": number' in form_instruction(("yes", "no"), "json", per_sentence=True)
    assert form_instruction(("yes", "no"), "label", per_sentence=False) == "Label:"
