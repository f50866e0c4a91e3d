"""What an endpoint takes is settled with its first answer, and a judge that fails from the start is asked no more."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import Settings
from judge.ask.criteria import find_criterion
from judge.ask.loop import assess
from judge.ask.opening import open_one
from judge.ask.questions import refused_notes
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import ContentFilterError, OperationalError, ParameterRefused, StructureUnsupported
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.journal_tools import export_journal, merge_journals, read_journal
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Request
from tests.ask.test_loop import Answer, Scripted, criterion, pool
from tests.conftest import manifest, run_example
from tests.mock import Mock

TEXTS = tuple(f"text {number}" for number in range(12))


def refusal(message: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, **more}}


REFUSALS_OF_A_SCHEMA = [
    (400, refusal("model: deepseek/x does not support feature: structured-outputs", "INVALID_REQUEST_BODY")),
    (400, refusal("This model does not support response format json_schema. See supported models.")),
    (400, refusal("Json mode is not enabled for models/gemini-x")),
    (400, refusal("This model does not support JSON mode.")),
    (400, refusal("JSON mode is not supported with streaming disabled")),
    (400, refusal("output_config.format: Extra inputs are not permitted")),
    (400, refusal("output_format: Extra inputs are not permitted")),
    (400, refusal("Constrained decoding is not available for this model")),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs"}]}),
    (400, {"object": "error", "message": "Extra inputs are not permitted", "param": "response_format", "code": 400}),
    (400, refusal("Invalid parameter", "unsupported_parameter", param="response_format")),
    (400, refusal("Provider returned error", metadata={"raw": '{"message":"json_schema is not supported"}'})),
    (404, refusal("No endpoints found that support the requested parameters: response_format")),
    (404, refusal("No endpoints found that can handle the requested parameters. To learn more, visit the docs")),
    (500, refusal("grammar compilation failed: unsupported type")),
    (500, refusal("failed to initialize samplers: failed to parse grammar")),
    (501, refusal("response_format is not implemented")),
]

REFUSALS_OF_A_PARAMETER = [
    # The parameter, the reply that refuses it, and what the request is sent without.
    ("temperature", 400, refusal("Unsupported value: 'temperature' does not support 0.0 with this model.",
        "unsupported_value", param="temperature")),
    ("temperature", 400, refusal("`temperature` is deprecated for this model")),
    ("temperature", 422, {"error": "`temperature` must be strictly positive", "error_type": "validation"}),
    ("max_tokens", 400, refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.", "unsupported_parameter", param="max_tokens")),
    ("system", 400, refusal("System role not supported")),
    ("system", 400, refusal("Conversation roles must alternate user/assistant; the role system is unknown")),
]  # fmt: skip


def judged(
    journal: Journal, mock: Mock, texts: tuple[str, ...] = TEXTS, concurrency: int = 4, **options: Any
) -> list[Judgment | Failure]:
    model = open_model("server/mock", ModelOptions(base_url=mock.base_url, **options))
    one = pool(texts)
    settings = Settings(concurrency=concurrency, attempts=1)
    return list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings))


@pytest.mark.parametrize(("status", "body"), REFUSALS_OF_A_SCHEMA)
def test_a_schema_is_refused_in_any_words(mock: Mock, tmp_path: Path, status: int, body: dict[str, Any]) -> None:
    mock.config(refused={"response_format": [status, body]})
    with Journal(tmp_path / "j") as journal:
        results = judged(journal, mock)
        assert [result.form for result in results if isinstance(result, Judgment)] == ["text"] * len(TEXTS)
        # One refusal settles it, for later runs too.
        assert mock.stats()["requests"] == len(TEXTS) + 1
        judged(journal, mock, (*TEXTS, "another"))
        assert mock.stats()["requests"] == len(TEXTS) + 2
        assert refused_notes(["server/mock"], journal) == (
            "server/mock: not asked for grades in the form json, in which its endpoint gave none.",
        )


@pytest.mark.parametrize(("parameter", "status", "body"), REFUSALS_OF_A_PARAMETER)
def test_a_parameter_that_is_refused_is_left_out(mock: Mock, tmp_path, parameter, status, body) -> None:
    mock.config(refused={parameter: [status, body]})
    with Journal(tmp_path / "j") as journal:
        results = judged(journal, mock)
        assert [result.form for result in results if isinstance(result, Judgment)] == ["json"] * len(TEXTS)
        assert mock.stats()["requests"] == len(TEXTS) + 1
        assert refused_notes(["server/mock"], journal) == (
            f"server/mock: asked without {parameter}, which its endpoint refused.",
        )
    sent = mock.last()[1]
    assert parameter not in sent
    assert parameter != "max_tokens" or sent["max_completion_tokens"] == 1024
    roles = [message["role"] for message in sent["messages"]]
    assert roles == (["user"] if parameter == "system" else ["system", "user"])
    assert "You grade" in sent["messages"][0]["content"] or "Grade." in sent["messages"][0]["content"]


def test_several_refusals_are_met_one_after_the_other(mock: Mock, tmp_path: Path) -> None:
    mock.config(
        refused={
            "temperature": [400, refusal("unsupported", param="temperature")],
            "max_tokens": [400, refusal("unsupported", param="max_tokens")],
            "response_format": [400, refusal("JSON mode is off")],
        }
    )
    with Journal(tmp_path / "j") as journal:
        results = judged(journal, mock)
    assert all(isinstance(result, Judgment) and result.form == "text" for result in results)
    assert mock.stats()["requests"] == len(TEXTS) + 3


def test_what_the_user_names_is_left_out_at_once(mock: Mock) -> None:
    omit = ("temperature", "max_tokens", "response_format", "system")
    with Journal(None) as journal:
        results = judged(journal, mock, omit=omit)
    assert all(isinstance(result, Judgment) and result.form == "text" for result in results)
    _, sent = mock.last()
    assert sent.keys() == {"model", "messages"}
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert mock.stats()["requests"] == len(TEXTS)


def test_what_the_user_set_is_not_left_out(mock: Mock) -> None:
    mock.config(refused={"temperature": [400, refusal("unsupported", param="temperature")]})
    with Journal(None) as journal, pytest.raises(OperationalError, match="does not take temperature, which was set"):
        judged(journal, mock, temperature=0.5)
    assert mock.stats()["requests"] == 1


ONE_GENERATION = refusal("Failed to generate JSON. Please adjust your prompt.", "json_validate_failed")


@pytest.mark.parametrize("words", [ONE_GENERATION, refusal("Generated JSON does not match the expected schema.")])
def test_one_generation_that_fails_under_the_schema_is_asked_in_text(mock: Mock, tmp_path: Path, words) -> None:
    """The first question of the run, whose failure says nothing of the others."""
    mock.script({"status": 400, "body": words})
    with Journal(tmp_path / "j") as journal:
        results = judged(journal, mock)
    forms = Counter(result.form for result in results if isinstance(result, Judgment))
    assert forms == {"json": len(TEXTS) - 1, "text": 1}
    with Journal(tmp_path / "j") as journal:
        assert judged(journal, mock) == results
    assert mock.stats()["requests"] == len(TEXTS) + 1


class Fickle(Scripted):
    """Grades 3 under the schema and 1 in text, and refuses the schema for some texts."""

    def __init__(self, refused: tuple[str, ...]) -> None:
        super().__init__(forms=("json", "text"))
        self.refused = refused

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        if request.form == "json" and request.response in self.refused:
            raise StructureUnsupported("status 400: does not match the expected schema")
        text = '{"rationale": "r", "grade": "3"}' if request.form == "json" else "Grade: 1"
        return Completion(text=text, finish_reason="stop", model="m")


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_one_odd_refusal_changes_one_grade_at_any_concurrency(tmp_path: Path, concurrency: int) -> None:
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Fickle(("text 5",))
        results = assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=concurrency))
        grades = [result.grade for result in results if isinstance(result, Judgment)]
        assert grades == [3] * 5 + [1] + [3] * 6
        assert len(model.asked) == len(TEXTS) + 1
        later = Fickle(())
        assert list(assess(tasks(one, [criterion()]), later, journal, one)) == list(results)
        assert later.asked == []


def test_an_endpoint_that_refuses_everything_is_asked_three_questions(mock: Mock) -> None:
    mock.config(refused={"model": [400, refusal("max_prompt is negative: -7")]})
    with Journal(None) as journal, pytest.raises(OperationalError) as ended:
        judged(journal, mock, concurrency=16)
    assert "so nothing else was asked: status 400: max_prompt is negative: -7; --omit leaves" in str(ended.value)
    # Each in both forms.
    assert mock.stats()["requests"] == 6


@pytest.mark.parametrize("reply", ["I like it.", ""])
def test_a_judge_that_is_never_read_is_paid_for_three_questions(tmp_path: Path, reply: str) -> None:
    model, one = Scripted(default=reply), pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        with pytest.raises(OperationalError, match="the first 3 questions failed alike"):
            assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=16))
        # Each was repaired once.
        assert len(model.asked) == 6
        # Whoever gives the same command again is not stopped a second time.
        results = assess(tasks(one, [criterion()]), Scripted(default=reply), journal, one)
        assert {result.reason for result in results if isinstance(result, Failure)} == {"unreadable"}


def test_failures_that_differ_do_not_end_a_run() -> None:
    """The first, the last and the middle question are asked first."""
    first, last, middle = TEXTS[0], TEXTS[-1], TEXTS[6]
    replies: dict[str, list[Answer]] = {first: ["no grade"], middle: ["no, no grade"]}
    replies[last] = [Completion(text="half", finish_reason="length", model="m")]
    one = pool(TEXTS)
    with Journal(None) as journal:
        model = Scripted(replies)
        results = assess(tasks(one, [criterion()]), model, journal, one)
    assert [result.response_id for result in results if isinstance(result, Failure)] == ["R00000", "R00006", "R00011"]
    assert [request.response for request in model.asked][:5] == [first, first, last, middle, middle]


def test_the_form_that_the_user_names_is_asked_alone(mock: Mock, tmp_path: Path) -> None:
    model = open_one("server/mock", ModelOptions(base_url=mock.base_url, form="text"), [], Settings())
    assert model.forms == ("text",)
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        results = assess(tasks(one, [criterion()]), model, journal, one)
    assert {result.form for result in results if isinstance(result, Judgment)} == {"text"}
    assert {entry.form for entry in read_journal(tmp_path / "j")} == {"text"}


# ---------------------------------------------------------------- kinds of answers, forms and single failures


class Picky(Fickle):
    """Refuses the schema of sentences, for every response."""

    async def complete(self, request: Request) -> Completion:
        if request.sentences and request.form == "json":
            self.asked.append(request)
            raise StructureUnsupported("status 400: arrays are not supported in response_format")
        if request.sentences:
            self.asked.append(request)
            labels = "\n".join(f"{number}: supported" for number in range(1, request.sentences + 1))
            return Completion(text=labels, finish_reason="stop", model="m")
        return await super().complete(request)


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_each_kind_of_answer_has_its_own_form(tmp_path: Path, concurrency: int) -> None:
    sentences = find_criterion("groundedness/sentences")
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Picky(())
        settings = Settings(concurrency=concurrency)
        results = assess(tasks(one, [criterion(), sentences]), model, journal, one, settings=settings)
        forms = Counter((result.criterion, result.form) for result in results if isinstance(result, Judgment))
        assert forms == {("naturalness", "json"): len(TEXTS), ("groundedness", "text"): len(TEXTS)}
        # One refusal of the schema of sentences.
        assert len(model.asked) == 2 * len(TEXTS) + 1
        assert refused_notes([model.name], journal) == (
            "fake/scripted: not asked for labels of sentences in the form json, in which its endpoint gave none.",
        )
        later = Picky(())
        assert list(assess(tasks(one, [sentences, criterion()]), later, journal, one)) == [*results[12:], *results[:12]]
        assert later.asked == []


class Labels(Scripted):
    """Refuses labels, and takes the rest."""

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        if request.form == "label":
            raise StructureUnsupported("status 400: guided_choice is not supported")
        text = '{"rationale": "r", "grade": "3"}' if request.form == "json" else "Grade: 1"
        return Completion(text=text, finish_reason="stop", model="m")


def test_after_labels_comes_the_schema(tmp_path: Path) -> None:
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Labels(forms=("label", "json", "text"))
        results = assess(tasks(one, [criterion()]), model, journal, one)
        assert {result.form for result in results if isinstance(result, Judgment)} == {"json"}
        assert len(model.asked) == len(TEXTS) + 1


class Failing(Fickle):
    """Cannot write an object about some texts, which says nothing of the others."""

    async def complete(self, request: Request) -> Completion:
        if request.form == "json" and request.response in self.refused:
            self.asked.append(request)
            raise StructureUnsupported("status 400: json_validate_failed", lasting=False)
        return await super().complete(request)


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize(
    ("failing", "asked", "grades"),
    [
        # The first two questions fail alone, and the third is answered under the schema.
        ((0, 11), 14, [1, *[3] * 10, 1]),
        # The first, the last and the middle one: the judge cannot write objects, and is asked for none any more.
        ((0, 6, 11), 15, [1] * 12),
        # Later failures are of their responses alone.
        ((1, 2, 3, 4, 5), 17, [3, *[1] * 5, *[3] * 6]),
    ],
)
def test_three_single_failures_from_the_start_give_a_form_up(tmp_path, concurrency, failing, asked, grades) -> None:
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Failing(tuple(TEXTS[number] for number in failing))
        settings = Settings(concurrency=concurrency)
        results = list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings))
        assert [result.grade for result in results if isinstance(result, Judgment)] == grades
        assert len(model.asked) == asked
        later = Failing(())
        assert list(assess(tasks(one, [criterion()]), later, journal, one)) == results
        assert later.asked == []


def test_texts_that_a_filter_blocks_say_nothing_of_the_judge() -> None:
    blocked = {text: [ContentFilterError("status 400: blocked")] for text in (TEXTS[0], TEXTS[6], TEXTS[11])}
    one = pool(TEXTS)
    with Journal(None) as journal:
        results = assess(tasks(one, [criterion()]), Scripted(blocked), journal, one)
    assert sum(isinstance(result, Judgment) for result in results) == 9


def test_one_response_under_three_prompts_says_nothing_of_the_judge() -> None:
    one = pool(TEXTS[:1])
    prompts = [criterion(name) for name in ("naturalness", "relevance", "completeness")]
    with Journal(None) as journal:
        results = assess(tasks(one, prompts), Scripted(default="I like it."), journal, one)
    assert [result.reason for result in results if isinstance(result, Failure)] == ["unreadable"] * 3


def test_an_outage_is_no_refusal_of_the_form(mock: Mock, tmp_path: Path) -> None:
    """The first question meets status 500 at every attempt, and all others are answered under the schema."""
    mock.script({"status": 500, "body": refusal("internal error")})
    with Journal(tmp_path / "j") as journal:
        first, *others = judged(journal, mock)
        assert isinstance(first, Failure)
        assert {result.form for result in others if isinstance(result, Judgment)} == {"json"}
        assert refused_notes(["server/mock"], journal) == ()


def test_what_the_user_sets_later_is_known_to_be_refused(mock: Mock, tmp_path: Path) -> None:
    mock.config(refused={"temperature": [400, refusal("unsupported", param="temperature")]})
    with Journal(tmp_path / "j") as journal:
        judged(journal, mock)
        asked = mock.stats()["requests"]
        with pytest.raises(OperationalError, match="does not take temperature, which was set"):
            judged(journal, mock, (*TEXTS, "another"), temperature=0.5)
    assert mock.stats()["requests"] == asked


@pytest.mark.parametrize("refused", ["temperature", "max_tokens", "system", "response_format"])
def test_a_journal_of_exported_calls_pays_for_nothing_again(mock: Mock, tmp_path: Path, refused: str) -> None:
    """An export says what is known of the endpoint."""
    mock.config(refused={refused: [400, refusal(f"{refused} role is not supported", param=refused)]})
    with Journal(tmp_path / "j") as journal:
        results = judged(journal, mock)
    asked = mock.stats()["requests"]
    export_journal(tmp_path / "j", tmp_path / "calls.jsonl")
    merge_journals([tmp_path / "calls.jsonl"], tmp_path / "merged")
    with Journal(tmp_path / "merged") as journal:
        assert judged(journal, mock) == results
    replay = open_model(f"replay/{tmp_path / 'calls.jsonl'}")
    one = pool(TEXTS)
    with Journal(None) as journal:
        assert list(assess(tasks(one, [criterion()]), replay, journal, one)) == results
    assert mock.stats()["requests"] == asked


# ---------------------------------------------------------------- what is remembered


class Reluctant(Fickle):
    """Refuses the temperature, and cannot write an object about some texts."""

    async def complete(self, request: Request) -> Completion:
        if "temperature" not in request.omitted:
            self.asked.append(request)
            raise ParameterRefused("status 400: no temperature", "temperature")
        if request.form == "json" and request.response in self.refused:
            self.asked.append(request)
            raise StructureUnsupported("status 400: json_validate_failed", lasting=False)
        return await super().complete(request)

    def parameters(self, request: Request) -> dict[str, Any]:
        return {"form": request.form, **({} if "temperature" in request.omitted else {"temperature": 0.0})}


@pytest.mark.parametrize("failing", [(0,), (0, 11), (0, 6, 11)])
def test_a_parameter_is_left_out_from_the_first_answer_on(tmp_path: Path, failing: tuple[int, ...]) -> None:
    """Also where that answer came in another form, for its response alone."""
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Reluctant(tuple(TEXTS[number] for number in failing))
        results = list(assess(tasks(one, [criterion()]), model, journal, one))
        assert all(isinstance(result, Judgment) for result in results)
        # One refusal, and a failure under the schema for each of these texts.
        assert len(model.asked) == len(TEXTS) + 1 + len(failing)
        later = Reluctant(())
        assert list(assess(tasks(one, [criterion()]), later, journal, one)) == results
        assert later.asked == []


@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_equal_texts_are_paid_once_while_the_form_is_settled(tmp_path: Path, concurrency: int) -> None:
    one = pool(["same", "same", "other", "same", "last"])
    with Journal(tmp_path / "j") as journal:
        model = Labels(forms=("label", "json", "text"))
        assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=concurrency))
    assert Counter(request.response for request in model.asked if request.form == "json") == {
        "same": 1, "other": 1, "last": 1
    }  # fmt: skip


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_a_filter_at_the_start_leaves_the_form_to_one_question(tmp_path: Path, concurrency: int) -> None:
    """The first three are blocked, and the fourth settles the form for all others."""

    class Blocked(Fickle):
        async def complete(self, request: Request) -> Completion:
            if request.response in (TEXTS[0], TEXTS[6], TEXTS[11]):
                raise ContentFilterError("status 400: blocked")
            return await super().complete(request)

    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Blocked((TEXTS[1],))
        settings = Settings(concurrency=concurrency)
        results = assess(tasks(one, [criterion()]), model, journal, one, settings=settings)
    assert Counter(result.form for result in results if isinstance(result, Judgment)) == {"text": 9}


@pytest.mark.parametrize("stop", [1, 2])
def test_a_run_that_was_stopped_in_its_first_questions_ends_as_a_whole_one(tmp_path: Path, stop: int) -> None:
    """Three single failures give the form up, some of them before the stop."""
    one = pool(TEXTS)
    failing = (TEXTS[0], TEXTS[6], TEXTS[11])
    with Journal(tmp_path / "whole") as journal:
        whole = list(assess(tasks(one, [criterion()]), Failing(failing), journal, one))

    class Stopping(Failing):
        async def complete(self, request: Request) -> Completion:
            if sum(each.form == "text" for each in self.asked) == stop:
                raise OperationalError("stopped")
            return await super().complete(request)

    with Journal(tmp_path / "part") as journal:
        with pytest.raises(OperationalError, match="stopped"):
            assess(tasks(one, [criterion()]), Stopping(failing), journal, one)
        assert list(assess(tasks(one, [criterion()]), Failing(failing), journal, one)) == whole


def test_another_form_that_the_user_names_is_asked_for(mock: Mock, tmp_path: Path) -> None:
    """And what was answered in one form is no answer in another."""
    with Journal(tmp_path / "j") as journal:
        for form, asked in (("text", 12), (None, 24), ("text", 24), ("label", 36), (None, 36)):
            model = open_one("server/mock", ModelOptions(base_url=mock.base_url, form=form), [], Settings())
            one = pool(TEXTS)
            results = assess(tasks(one, [criterion()]), model, journal, one)
            assert {result.form for result in results if isinstance(result, Judgment)} == {form or "json"}
            assert mock.stats()["requests"] == asked


def test_what_was_left_out_by_the_user_is_tried_without_that(mock: Mock, tmp_path: Path) -> None:
    mock.config(refused={"temperature": [400, refusal("unsupported", param="temperature")]})
    with Journal(tmp_path / "j") as journal:
        judged(journal, mock, omit=("temperature",))
        assert all(isinstance(result, Judgment) for result in judged(journal, mock, (*TEXTS, "another")))
        # What was answered without it is recalled once it is known to be refused.
        assert mock.stats()["requests"] == len(TEXTS) + 2


# ---------------------------------------------------------------- the command


def run(out: Path, mock: Mock, *more: str) -> int:
    return run_example(out, "--criteria", "naturalness", "--model", "server/m", "--base-url", mock.base_url, *more)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ((), {"model", "messages", "temperature", "max_tokens", "response_format"}),
        (("--omit", "temperature,max_tokens", "--omit", "system"), {"model", "messages", "response_format"}),
        (("--omit", "response_format"), {"model", "messages", "temperature", "max_tokens"}),
        (("--form", "text"), {"model", "messages", "temperature", "max_tokens"}),
        (
            ("--form", "label"),
            {"model", "messages", "temperature", "max_tokens", "structured_outputs", "grammar"},
        ),
    ],
)
def test_the_command_says_what_is_sent(mock: Mock, tmp_path: Path, options: tuple[str, ...], sent: set[str]) -> None:
    assert run(tmp_path / "out", mock, "--limit", "3", *options) == 0
    assert mock.last()[1].keys() == sent


def test_a_name_that_cannot_be_left_out_is_refused(mock: Mock, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", mock, "--omit", "seed,tempurature")
    told = capsys.readouterr().err
    assert "'tempurature' cannot be left out; did you mean temperature? (expected one of temperature, " in told


def test_forms_are_said_in_manifest_and_leaderboard(mock: Mock, tmp_path: Path) -> None:
    mock.config(refused={"temperature": [400, refusal("unsupported", param="temperature")]})
    mock.script({"status": 400, "body": ONE_GENERATION})
    assert run(tmp_path / "out", mock, "--limit", "3") == 0
    notes = [
        "server/m: asked without temperature, which its endpoint refused.",
        "server/m: of 3 judgments, 2 in the form json, 1 in the form text.",
    ]
    assert manifest(tmp_path / "out")["judge_notes"] == notes
    board = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8").replace("\\", "")
    assert all(note in board for note in notes)
