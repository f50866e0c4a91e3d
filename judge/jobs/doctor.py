"""This machine and some judges checked before a run: what `judge doctor` does, for use from Python."""

import contextlib
import importlib.metadata
import locale
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from judge.ask.criteria import find_criterion
from judge.ask.dialect import Dialect, adapted
from judge.ask.prompt import without_system
from judge.ask.prompt_cut import PromptReading
from judge.ask.records import Unreadable
from judge.ask.running import finish
from judge.ask.verdict import parse
from judge.errors import (
    AuthenticationError,
    CallError,
    ContextLengthError,
    Interrupted,
    JudgeError,
    ParameterRefused,
    StructureUnsupported,
    UsageError,
)
from judge.io.installed import DISTRIBUTION, EXTRAS, __version__, has_extra
from judge.io.plan import Option, Options
from judge.io.steps import Step, Steps, quiet
from judge.io.text import count, shown
from judge.judges.backends import BACKENDS, backend_facts, backend_of_providers, open_model
from judge.judges.chat import KEY, ping
from judge.judges.credentials import Address, read_address, read_key, redact, refuse_unrecorded
from judge.judges.forms import answer_labels, form_instruction
from judge.judges.model import Model, ModelOptions
from judge.judges.records import PROMPT_CUT, AnswerForm, Completion, Message, Request
from judge.judges.weights import CATALOG, cache_folder, is_here
from judge.records import Record
from judge.runs.tokens import TokenCounter

CheckState = Literal["ok", "warning", "fails"]
"""fails: a run would not work, or not as it should. warning: it would work, and something is worth knowing."""


class CheckFinding(Record, frozen=True):
    """One line of `judge doctor`."""

    check: str
    state: CheckState
    found: str
    """What was found."""
    advice: str | None = None
    """What to do; None if there is nothing to do."""
    model: str | None = None
    """`backend/model`; None where the check is about this machine."""


_PACKAGES = ("msgspec", "numpy", "scipy", "spacy", "aiohttp", "openai", "litellm", "krippendorff")
_COUNTED = ("It's 7:30 p.m., isn't it?", 5, 9, 5)
"""A text, and its tokens by the rules `bare`, `english` and `whitespace`."""
_LITTLE_SPACE = 1 << 30
"""Bytes on the disk below which a warning is due."""
_Finding = tuple[CheckState, str, str | None]
"""State, what was found, advice."""


def python(folder: Path) -> _Finding:
    """The version of Python, the system, and that of judge."""
    # Not platform(), which starts a process.
    system = f"{platform.system()} {platform.release()} ({platform.machine()})"
    return "ok", f"{platform.python_version()} on {system}, judge {__version__}", None


def packages(folder: Path) -> _Finding:
    """The versions of the packages that reading, counting, asking and statistics rest on, and whose `judge` is here."""
    if others := [each.name for each in importlib.metadata.distributions() if _has_our_module(each)]:
        theirs = ", ".join(sorted(others))
        return "fails", f"{theirs} has a module judge, too", f"remove {theirs}, then install {DISTRIBUTION} anew"
    versions = {name: _version(name) for name in _PACKAGES}
    if missing := [name for name, version in versions.items() if not version]:
        return "fails", f"not installed: {', '.join(missing)}", "install trec-judge anew with pip"
    return "ok", ", ".join(f"{name} {version}" for name, version in versions.items()), None


def _has_our_module(package: importlib.metadata.Distribution) -> bool:
    """Whether another package has files in a folder `judge`: it and this one overwrite each other's."""
    # An install that leads to a checkout has its bundled files alone.
    file = re.search(r"^judge/(?!_bundled/)", package.read_text("RECORD") or "", re.MULTILINE)
    return file is not None and package.name != DISTRIBUTION


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def extras(folder: Path) -> _Finding:
    """Which extras are installed, and how to get the others."""
    here = {name: package for name, package in EXTRAS.items() if has_extra(name)}
    told = [f"{name} ({each} {_version(each)})" if _version(each) else name for name, each in here.items()]
    text = f"installed: {', '.join(told) or 'none'}"
    if missing := [name for name in EXTRAS if name not in here]:
        return "ok", f"{text}; not installed: {', '.join(missing)}", f"`pip install '{DISTRIBUTION}[NAME]'` adds one"
    return "ok", text, None


def keys(folder: Path) -> _Finding:
    """Which keys the environment holds, by name."""
    good: list[str] = []
    bad: list[str] = []
    for name in sorted(name for name in os.environ if name.endswith("_API_KEY")):
        try:
            (good if read_key(name) else bad).append(name)
        except UsageError:
            bad.append(name)
    if bad:
        return "warning", f"empty, or with characters that no key has: {', '.join(bad)}", "set them anew, or unset them"
    return "ok", f"set: {', '.join(good)}" if good else "none is set; local/… and baseline/… need none", None


def environment(folder: Path) -> _Finding:
    """The variables that decide where and how a judge is asked."""
    try:
        refuse_unrecorded(os.environ)
    except UsageError as error:
        return "fails", str(error), "unset it"
    names = ("JUDGE_MODEL", "JUDGE_CACHE", "OPENAI_BASE_URL", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    there = [name for name in names if os.environ.get(name) or os.environ.get(name.lower())]
    return "ok", f"set: {', '.join(there)}" if there else "nothing moves a judge elsewhere", None


def tokens(folder: Path) -> _Finding:
    """Whether the token limit can be counted here, offline, and as everywhere."""
    text, *expected = _COUNTED
    try:
        counter = TokenCounter()
        counts = counter(text)
        versions = ", ".join(f"{name} {version}" for name, version in counter.versions.items())
    except (JudgeError, ImportError, OSError, importlib.metadata.PackageNotFoundError) as error:
        return "fails", f"they cannot be counted: {error}", "install trec-judge anew with pip"
    numbers = [counts.bare, counts.english, counts.whitespace]
    if numbers != expected:
        return "fails", f"{versions} counts {numbers}, expected {expected}", "install the spaCy that judge asks for"
    return "ok", f"counted offline by all three rules, {versions}", None


def disk(folder: Path) -> _Finding:
    """Whether the folder can be written, and the free space there."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return "warning", f"nothing can be written here: {error.strerror or error}", "name a folder with --out"
    text = f"{free / (1 << 30):.1f} GiB free"
    if free < _LITTLE_SPACE:
        return "warning", text, "free some space: journal and results need it"
    return "ok", text, None


def encoding(folder: Path) -> _Finding:
    """Whether the output can show every character."""
    output = (getattr(sys.stdout, "encoding", None) or "none").lower()
    text = f"output in {output}, locale in {locale.getpreferredencoding(False).lower()}"
    if output.replace("-", "") != "utf8":
        return "warning", text, "set PYTHONUTF8=1: other characters are shown as escapes"
    return "ok", text, None


def weights(folder: Path) -> _Finding:
    """Which local models are fetched."""
    try:
        cache = cache_folder()
    except UsageError as error:
        return "warning", str(error), "set JUDGE_CACHE to use local models"
    here = [weights.name for weights in CATALOG.values() if is_here(weights, cache)]
    return "ok", f"fetched: {', '.join(here)}" if here else "no local model is fetched", None


MACHINE_CHECKS = (python, packages, extras, environment, keys, weights, tokens, disk, encoding)
"""The checks in their order, under their names; each gets the folder that results would be written to."""


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
PATIENCE = 30.0
"""Seconds until an address has to answer."""
_LONG = 1000
"""Sentences of the long prompt, of some 7 tokens each: as long as five long passages."""


class ExaminedJudge:
    """A judge, and what is known of it."""

    def __init__(self, name: str, base_url: str | None) -> None:
        backend, _, model = name.partition("/")
        self.name = name
        self.facts = backend_facts(name) if backend in BACKENDS else BACKENDS[backend_of_providers()]
        self.asked_as = model
        """The model's name, as its own server knows it."""
        self.base_url = None if self.facts.local else base_url
        self.model = self.open(logprobs=False)
        self.honors_schema = self.over = False
        """The second: no further check can say anything."""
        self.dialect = Dialect()
        """What its endpoint takes, as far as that is known."""

    @property
    def form(self) -> AnswerForm:
        """The answer form in which it is asked, as far as it is known."""
        if "decision" in self.model.forms:
            return "decision"
        return "json" if self.honors_schema else "text"

    def open(self, *, logprobs: bool) -> Model:
        """The judge, with or without label probabilities."""
        return open_model(self.name, ModelOptions(base_url=self.base_url, max_tokens=256, logprobs=logprobs))

    def address(self) -> Address | None:
        """Where its API is; None where nobody but litellm or this process knows."""
        where = self.base_url or self.model.endpoint or self.facts.usual_address
        return None if where is None or self.facts.key is None else read_address(where)

    def request(self, form: AnswerForm, number: int, beside: str = "") -> Request:
        """A question whose beginning is the same for every number; `beside` is a text after the passage."""
        criterion = find_criterion("groundedness/yes_no")
        labels = answer_labels(criterion)
        passage = f"The train leaves at {number} o'clock."
        response = f"It leaves at {number} o'clock."
        shown = f"Passage: {passage}{beside}\nResponse: {response}\n"
        asked = f"{shown}Does the response keep to the passage? Answers: yes, no.\n"
        request = Request(
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
            omitted=tuple(sorted(self.dialect.omitted)),
        )
        return without_system(request) if "system" in self.dialect.omitted else request

    def find(self, check: str, state: CheckState, text: str, advice: str | None = None) -> CheckFinding:
        """A finding about this judge; a failure ends the examination, since all else would only repeat it."""
        self.over = self.over or state == "fails"
        return CheckFinding(check=check, state=state, found=redact(text), advice=advice, model=self.name)


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
        text = f"the weights are not here ({weights.size / 1e6:,.0f} MB)"
        advice = f"`judge models pull {weights.name}` fetches them, else the first run does"
        return judge.find("set up", "warning", text, advice)
    return judge.find("set up", "ok", judge.facts.ready)


async def address(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether an API answers at the address; only litellm knows the addresses of its providers."""
    where = judge.address()
    if where is None:
        return None
    variable = judge.facts.key or KEY
    key = read_key(variable)
    try:
        pinged = await ping(where, variable, PATIENCE)
    except CallError as error:
        return judge.find("address", "fails", f"{where.url}: {error}", "start the server, or correct --base-url")
    except JudgeError as error:
        return judge.find("address", "fails", str(error))
    answer = f"{where.url} answers in {pinged.seconds * 1000:.0f} ms"
    if pinged.page:
        return judge.find("address", "fails", f"{answer} with a web page: no API is there", "correct --base-url")
    if pinged.status in (401, 403):
        what = f"does not take the key of {variable}" if key else f"wants a key, and {variable} is not set"
        return judge.find("address", "fails", f"{answer} and {what} (status {pinged.status})", f"set {variable}")
    if pinged.models is not None and judge.asked_as not in pinged.models:
        some = ", ".join(map(shown, pinged.models[:3])) or "none"
        text = f"{answer}; it lists {count(len(pinged.models), 'model')} and not this one: {some}"
        return judge.find("address", "warning", text, "check the name of the model")
    return judge.find("address", "ok", answer)


async def answers(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge answers a question, in an object where it takes a schema, and with a grade."""
    try:
        completion, request = await _answered(judge, "json" if "json" in judge.model.forms else judge.form)
    except JudgeError as error:
        variable = judge.facts.key
        about_the_key = variable is not None and isinstance(error, AuthenticationError)
        return judge.find("answer", "fails", str(error), f"see {variable} and --base-url" if about_the_key else None)
    if judge.facts.checker:
        # A checker reads no prompt, so there is nothing else to ask it.
        judge.over = True
        if not completion.support:
            return judge.find("answer", "ok", f"a passage that says so is graded {shown(completion.text)}")
        scores = ", ".join(f"{best:.2f}" for best, _ in completion.support if best is not None)
        return judge.find("answer", "ok", f"a sentence that its passage says is supported with probability {scores}")
    judge.honors_schema = request.form == "json" and _is_by_schema(completion.text, request)
    model = f" by {shown(completion.model)}" if completion.model else ""
    counts = completion.prompt_tokens, completion.completion_tokens
    tokens = "" if None in counts else ", {} + {} tokens".format(*counts)
    omitted = sorted(judge.dialect.omitted)
    without = f", without {', '.join(omitted)}" if omitted else ""
    said = f"in {completion.latency or 0.0:.1f} s{model}{tokens}{without}"
    verdict = parse(completion, find_criterion("groundedness/yes_no"), request.form, 0)
    if isinstance(verdict, Unreadable):
        told = f"{said}, but without a grade: {verdict.detail}"
        return judge.find("answer", "warning", told, "another model may follow prompts")
    return judge.find("answer", "ok", said)


async def _answered(judge: ExaminedJudge, form: AnswerForm) -> tuple[Completion, Request]:
    """The reply to a small question, asked in the way that the endpoint takes, as a run finds it out."""
    while True:
        request = judge.request(form, 1)
        try:
            if (parts := judge.model.parts(request)) is not None:
                replies = tuple([await judge.model.complete(part) for part in parts])
                request = msgspec.structs.replace(request, replies=replies)
            return await judge.model.complete(request), request
        except (CallError, AuthenticationError) as error:
            changed = adapted(judge.dialect, error, request, "grade")
            if isinstance(error, ParameterRefused):
                if changed is None:
                    raise
            elif form != "json" or not (changed or isinstance(error, StructureUnsupported)):
                raise
            else:
                form = "text"
            judge.dialect = changed or judge.dialect


def _is_by_schema(text: str, request: Request) -> bool:
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.keys() == {"rationale", "grade"} and answer["grade"] in request.labels


async def structured(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge keeps to a JSON schema."""
    if judge.form == "decision":
        return None
    if judge.honors_schema:
        return judge.find("schema", "ok", "the answer is the JSON object that was asked for")
    told = "the answer is not the JSON object that was asked for"
    return judge.find("schema", "warning", told, "grades are read from text instead")


async def logprobs(judge: ExaminedJudge) -> CheckFinding | None:
    """Whether the judge gives label probabilities; only `--logprobs` needs them, and a decision is made of them."""
    if judge.form == "decision":
        return None
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
        completion = await judge.model.complete(judge.request(judge.form, 2))
    except JudgeError as error:
        return judge.find("cache", "warning", f"a second question fails: {error}", "see --concurrency and --attempts")
    if completion.cached_tokens is None:
        return judge.find("cache", "ok", "the provider does not say whether it caches prompts")
    of = "" if completion.prompt_tokens is None else f" of {completion.prompt_tokens}"
    return judge.find("cache", "ok", f"{completion.cached_tokens}{of} tokens of an equal beginning came from the cache")


async def context(judge: ExaminedJudge) -> CheckFinding | None:
    """How much the server reads of a long prompt; some cut it to their context without a word."""
    if judge.facts.local:
        return None
    form: AnswerForm = "text" if judge.form == "json" else judge.form
    request = judge.request(form, 3, beside=" ".join(f" Train {number} leaves later." for number in range(_LONG)))
    size = sum(len(message.content) for message in request.messages)
    advice = "prompts that long are failures: give the server a larger context"
    try:
        completion = await judge.model.complete(request)
    except ContextLengthError as error:
        return judge.find("context", "warning", f"a prompt of {size:,} characters is refused: {error}", advice)
    except JudgeError as error:
        return judge.find("context", "warning", f"a prompt of {size:,} characters fails: {error}")
    cut: str | None = completion.text
    if completion.finish_reason != PROMPT_CUT:
        cut = PromptReading().cut(request.messages, completion)
    if cut is not None:
        return judge.find("context", "warning", cut, advice)
    if not completion.prompt_tokens:
        return judge.find("context", "ok", "the server does not say how many tokens it reads")
    return judge.find("context", "ok", f"{completion.prompt_tokens:,} tokens of a prompt of {size:,} characters")


JUDGE_CHECKS = (needs, address, answers, structured, logprobs, caching, context)
"""The checks in their order; one that does not apply finds nothing, and none comes after a failure."""


def examine(plan: DoctorPlan, steps: Steps = quiet) -> tuple[CheckFinding, ...]:
    """Check this machine, and ask each judge of the plan; without judges, nothing is sent."""
    judges = [ExaminedJudge(name, plan.base_url) for name in dict.fromkeys(plan.models)]
    findings: list[CheckFinding] = []
    for check in MACHINE_CHECKS:
        state, text, advice = check(plan.folder)
        findings.append(CheckFinding(check=check.__name__, state=state, found=text, advice=advice))
    for judge in judges:
        steps(Step(f"asking {judge.name}"))
        findings += _examined(judge)
    return tuple(findings)


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
