"""This machine and some judges checked before a run: what `judge doctor` does, for use from Python."""

import threading
from pathlib import Path
from typing import Annotated

import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.own_loop import finish
from judge.ask.records import Unreadable
from judge.ask.verdict import parse
from judge.errors import CallError, Interrupted, JudgeError, StructureUnsupported, UsageError
from judge.io.plan import Option, Options
from judge.io.steps import Step, Steps, quiet
from judge.io.text import count, shown
from judge.jobs.doctor.machine import MACHINE_CHECKS, CheckState
from judge.jobs.doctor.machine import CheckFinding as CheckFinding
from judge.jobs.doctor.machine import CheckReport as CheckReport
from judge.judges.backends import BACKENDS, backend_facts, backend_of_providers, open_model
from judge.judges.catalog import CATALOG
from judge.judges.connection import KEY, Pinged, ping
from judge.judges.credentials import Address, read_address, read_key, redact
from judge.judges.forms import answer_labels, form_instruction
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.judges.weights import is_here


class DoctorPlan(Options):
    """Everything `judge doctor` can be told."""

    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """A judge to check; may be repeated. One that runs elsewhere is asked three or four small questions."""
    base_url: Annotated[str | None, Option(metavar="URL")] = None
    """The address of judges that run elsewhere, as in `judge run`."""
    folder: Annotated[Path, Option("out", short="o", metavar="DIR")] = Path()
    """The folder whose disk is checked (default: the working folder); nothing stays there."""

    def _check(self) -> None:
        if self.base_url is not None and not self.models:
            raise UsageError("--base-url is the address of a judge, and none is named (--model)")


_PREFIX = "You check whether a response keeps to its passages.\n\n" + (
    "A response keeps to its passages if each of its statements stands in one of them. " * 85
)
"""About 1,400 tokens: no provider caches a beginning of fewer than 1,024."""
PATIENCE, _SKEW = 30.0, 60.0
"""Seconds until an address has to answer, and by which two clocks may differ."""


class ExaminedJudge:
    """A judge, and what is known of it."""

    def __init__(self, name: str, base_url: str | None) -> None:
        backend, _, model = name.partition("/")
        self.name = name
        self.facts = backend_facts(name) if backend in BACKENDS else BACKENDS[backend_of_providers()].facts
        self.asked_as = model
        """The model's name, as its own server knows it."""
        self.base_url = None if self.facts.local else base_url
        self.model = self.open(logprobs=False)
        self.pinged: Pinged | None = None
        """What answered at its address."""
        self.honors_schema = self.over = False
        """The second: no further check can say anything."""

    def open(self, *, logprobs: bool) -> Model:
        """The judge, with or without label probabilities."""
        return open_model(self.name, ModelOptions(base_url=self.base_url, max_tokens=256, logprobs=logprobs))

    def address(self) -> Address | None:
        """Where its API is; None where nobody but litellm or this process knows."""
        where = self.base_url or self.model.endpoint or self.facts.usual_address
        return None if where is None or self.facts.key is None else read_address(where)

    def request(self, form: AnswerForm, number: int) -> Request:
        """A question whose beginning is the same for every number."""
        criterion = find_criterion("groundedness/yes_no")
        labels = answer_labels(criterion)
        passage, response = f"The train leaves at {number} o'clock.", f"It leaves at {number} o'clock."
        asked = f"Passage: {passage}\nResponse: {response}\nDoes the response keep to the passage? Answers: yes, no.\n"
        return Request(
            response_id=f"R{number:05}",
            turn_id=f"1-1_{number}",
            criterion=criterion.name,
            form=form,
            messages=(
                Message("system", _PREFIX.partition("\n")[0] if self.facts.local else _PREFIX),
                Message("user", asked + form_instruction(labels, form, per_sentence=False)),
            ),
            scale=criterion.scale,
            labels=labels,
            sentences=0,
            response=response,
            passages=(passage,),
        )

    def find(self, check: str, state: CheckState, found: str, advice: str | None = None) -> CheckFinding:
        """A finding about this judge; a failure ends the examination, since all else would only repeat it."""
        self.over = self.over or state == "fails"
        return CheckFinding(check, state, redact(found), advice, self.name)


async def needs(judge: ExaminedJudge) -> CheckFinding | None:
    """What has to be here before anything can be sent: key, address, engine, weights or file."""
    try:
        judge.model.check([])
    except JudgeError as error:
        return judge.find("set up", "fails", str(error))
    if not judge.facts.asked_to_test:
        judge.over = True
        return judge.find("set up", "ok", judge.facts.ready)
    weights = CATALOG.get(judge.asked_as) if judge.facts.local else None
    if weights is not None and not is_here(weights):
        judge.over = True
        found = f"the weights are not here ({weights.size / 1e6:,.0f} MB)"
        advice = f"`judge models pull {weights.name}` fetches them, else the first run does"
        return judge.find("set up", "warning", found, advice)
    return judge.find("set up", "ok", judge.facts.ready)


async def address(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether an API answers at the address; only litellm knows the addresses of its providers."""
    where = judge.address()
    if where is None:
        return None
    variable = judge.facts.key or KEY
    key = read_key(variable)
    try:
        judge.pinged = pinged = await ping(where, variable, PATIENCE)
    except CallError as error:
        return judge.find("address", "fails", f"{where.url}: {error}", "start the server, or correct --base-url")
    except JudgeError as error:
        return judge.find("address", "fails", str(error))
    said = f"{where.url} answers in {pinged.seconds * 1000:.0f} ms"
    if pinged.page:
        return judge.find("address", "fails", f"{said} with a web page: no API is there", "correct --base-url")
    if pinged.status in (401, 403):
        what = f"does not take the key of {variable}" if key else f"wants a key, and {variable} is not set"
        return judge.find("address", "fails", f"{said} and {what} (status {pinged.status})", f"set {variable}")
    if pinged.models is not None and judge.asked_as not in pinged.models:
        some = ", ".join(map(shown, pinged.models[:3])) or "none"
        found = f"{said}; it lists {count(len(pinged.models), 'model')} and not this one: {some}"
        return judge.find("address", "warning", found, "check the name of the model")
    return judge.find("address", "ok", said)


async def clock(judge: ExaminedJudge) -> CheckFinding | None:
    """How far this machine's clock is from that behind the address."""
    skew = judge.pinged.skew if judge.pinged else None
    if skew is None:
        return None
    found = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} that of the server"
    if abs(skew) > _SKEW:
        return judge.find("clock", "warning", found, "set this machine's clock: times in the journal are by it")
    return judge.find("clock", "ok", found)


async def answers(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge answers a question, in an object where it takes a schema, and with a grade."""
    form: AnswerForm = "json" if "json" in judge.model.forms else "text"
    try:
        completion, request = await _answered(judge, form)
    except JudgeError as error:
        variable = judge.facts.key
        return judge.find("answer", "fails", str(error), f"see {variable} and --base-url" if variable else None)
    if judge.facts.checker:
        # A checker reads no prompt, so there is nothing else to ask it.
        judge.over = True
        scores = ", ".join(f"{best:.2f}" for best, _ in completion.support if best is not None)
        return judge.find("answer", "ok", f"a sentence that its passage says is supported with probability {scores}")
    judge.honors_schema = request.form == "json" and _is_by_schema(completion.text, request)
    model = f" by {shown(completion.model)}" if completion.model else ""
    counts = completion.prompt_tokens, completion.completion_tokens
    tokens = "" if None in counts else ", {} + {} tokens".format(*counts)
    said = f"in {completion.latency or 0.0:.1f} s{model}{tokens}"
    verdict = parse(completion, find_criterion("groundedness/yes_no"), request.form, 0)
    if isinstance(verdict, Unreadable):
        told = f"{said}, but without a grade: {verdict.detail}"
        return judge.find("answer", "warning", told, "another model may follow prompts")
    return judge.find("answer", "ok", said)


async def _answered(judge: ExaminedJudge, form: AnswerForm) -> tuple[Completion, Request]:
    request = judge.request(form, 1)
    if (parts := judge.model.parts(request)) is not None:
        replies = tuple([await judge.model.complete(part) for part in parts])
        request = msgspec.structs.replace(request, replies=replies)
    try:
        return await judge.model.complete(request), request
    except StructureUnsupported:
        request = judge.request("text", 1)
        return await judge.model.complete(request), request


def _is_by_schema(text: str, request: Request) -> bool:
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.keys() == {"rationale", "grade"} and answer["grade"] in request.labels


async def structured(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge keeps to a JSON schema."""
    if judge.honors_schema:
        return judge.find("schema", "ok", "the answer is the JSON object that was asked for")
    told = "the answer is not the JSON object that was asked for"
    return judge.find("schema", "warning", told, "grades are read from text instead")


async def logprobs(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge gives label probabilities; only `--logprobs` needs them."""
    model = judge.open(logprobs=True)
    try:
        model.check([])
        completion = await model.complete(judge.request("label", 1))
    except (UsageError, JudgeError) as error:
        return judge.find("logprobs", "ok", f"none: {error}")
    finally:
        await model.aclose()
    if completion.probabilities is None:
        return judge.find("logprobs", "ok", f"none came with the answer {shown(completion.text)}")
    shares = ", ".join(f"{label} {share:.2f}" for label, share in completion.probabilities.items())
    return judge.find("logprobs", "ok", f"given: {shares}")


async def caching(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the provider says that it read an equal beginning from its cache."""
    if judge.facts.local:
        return None
    try:
        completion = await judge.model.complete(judge.request("json" if judge.honors_schema else "text", 2))
    except JudgeError as error:
        return judge.find("cache", "warning", f"a second question fails: {error}", "see --concurrency and --attempts")
    if completion.cached_tokens is None:
        return judge.find("cache", "ok", "the provider does not say whether it caches prompts")
    of = "" if completion.prompt_tokens is None else f" of {completion.prompt_tokens}"
    return judge.find("cache", "ok", f"{completion.cached_tokens}{of} tokens of an equal beginning came from the cache")


JUDGE_CHECKS = (needs, address, clock, answers, structured, logprobs, caching)
"""The checks in their order; one that does not apply finds nothing, and none comes after a failure."""


def examine(plan: DoctorPlan, steps: Steps = quiet) -> CheckReport:
    """Check this machine, and ask each judge of the plan; without judges, nothing is sent."""
    judges = [ExaminedJudge(name, plan.base_url) for name in dict.fromkeys(plan.models)]
    findings = [CheckFinding(check.__name__, *check(plan.folder)) for check in MACHINE_CHECKS]
    for judge in judges:
        steps(Step(f"asking {judge.name}"))
        findings += _examined(judge)
    return CheckReport(tuple(findings))


def _examined(judge: ExaminedJudge) -> list[CheckFinding]:
    findings: list[CheckFinding] = []
    stopped = threading.Event()

    async def whole() -> None:
        try:
            for check in JUDGE_CHECKS:
                finding = None if judge.over or stopped.is_set() else await check(judge)
                findings.extend([finding] if finding else [])
        finally:
            await judge.model.aclose()

    finish(whole, stopped.set)
    if stopped.is_set():
        raise Interrupted("stopped; a check that was under way was finished")
    return findings
