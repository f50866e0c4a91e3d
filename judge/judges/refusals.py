"""What the fields and the words of a refusal are about: a parameter, the system message or the answer form. Pure.

Fields come before words, because words may quote the request, and the request holds texts of others.
"""

import re
from collections.abc import Collection, Sequence

FORM = frozenset({"response_format", "structured_outputs", "grammar"})
"""The parameters that hold a reply to an answer form."""
CONTENT = frozenset({"model", "messages", "input", "inputs", "prompt", "contents"})
"""What no request can do without, by the names that providers give it."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_REFUSED = _any(
    r"unsupported|not (?:be )?support|n['’]t support|no longer support",  # OpenAI, xAI, litellm
    r"deprecated|cannot (?:both )?be (?:used|set|specified|provided|combined|0|zero)",  # Anthropic, Bedrock
    r"(?:may|can) only be|must not be|disallowed|is invalid",
    r"extra (?:inputs?|fields?|parameters?)|extraneous|additional propert|was unexpected",  # pydantic, JSON Schema
    r"not (?:permitted|allowed|accepted|available|enabled|implemented|(?:a )?(?:valid|known|recogni[sz]ed))",
    r"(?:not|n['’]t) (?:permit|allow|accept|take|recogni[sz]e)",
    r"(?:unknown|unexpected) (?:name|field|param|(?:keyword )?arg|key|property|option|value)|is unknown",  # Gemini
    r"unrecogni[sz]ed|cannot find field|no endpoints found",  # Azure, OpenRouter
    r"only [\w.]+ is (?:allowed|supported)|only the default",  # Moonshot
    r"(?:must|should|has to) be (?:1(?:\.0)?\b|unset|omitted|the default|non-?zero|within|in\b|between|at least)",
    r"(?:must|should|has to) be (?:a )?(?:strictly |positive|greater|more|larger|>)",
    r"invalid (?:[a-z]+ )?(?:param(?:eter)?s?|arguments?|fields?|keys?|values?|type)\b|invalid ['\"`]?<name>",
)
"""Words beside which the name of a parameter, `<name>`, is the name of what is refused."""
_OF_THE_NAME = _any(
    r"(?:unsupported|unknown|unrecogni[sz]ed)[_ ](?:name|param|field|property|(?:request )?arg)",
    r"extra[_ ](?:inputs?|fields?|parameters?|forbidden)|extraneous|deprecated|no longer support",
)
"""Words and codes that refuse a parameter whatever its value."""
_OF_A_VALUE = _any(
    r"too (?:large|long|big|many|high|small|low)|at (?:most|least)|exceed|maximum|minimum|negative",
    r"(?:less|greater|smaller|larger|more|lower|higher) than|above|below|between|range|or (?:less|lower|more)",
    r"\bin [\[(]",
    r"[<>]=|[≤≥]| [<>] ?-?\d+(?:\.\d+)?(?![\d.]*>)",
)
"""Words that refuse a value because of its range."""
_POSITIVE = r"(?:0?\.0*)?[1-9]"
_WITHOUT_ZERO = _any(
    r"strictly positive|must be (?:a )?positive|too (?:small|low)|unsupported_value",
    r"\b(?:got|received|not support) ['\"]?0(?:\.0+)?(?!\.?\d)",
    r"(?:greater|more|larger|higher) than (?:zero|0)(?:\.0+)?(?!\.?\d)|(?<![-=<])> ?0(?:\.0+)?(?!\.?\d)",
    r"\b0(?:\.0+)? ?<(?!=)|\(0(?:\.0+)?,",
    rf"(?:must|should|has to) be (?:greater|more|larger|higher) than (?:or equal to )?{_POSITIVE}",
    rf"(?:at least|between|minimum(?: value)?(?: of| is)?|>=?|≥) ?{_POSITIVE}|[\[(] ?{_POSITIVE}[\d.]*,",
)
"""Ranges that leave out 0: TGI's "strictly positive", pydantic's "greater than 0", GigaChat's "in range (0, +inf)"."""
_ROLES = _any(
    r"developer instruction is not enabled",  # Gemini, of Gemma
    r"roles other than user and assistant",
    # Chat templates of Gemma and of older Mistral models. Those that take a system message name it.
    r"^(?!.*\bsystem\b).*\broles must alternate",
    r"only (?:(?!\bsystem\b)[^.]){1,40} roles are (?:supported|allowed)",
    r"(?:unexpected|invalid) role:? ['\"`]?system\b|(?:unknown|unexpected) variant ['\"`]?system\b",  # Anthropic, serde
    r"role['\"`]? does(?: not|n't) support ['\"`]?system\b",  # OpenAI
    r"['\"`]system['\"`] (?:is not one of|at ['\"`]messages|is not (?:supported|allowed))",  # JSON Schema, Bedrock
)
"""How providers say that they take no system message, beside a refusal of one by its name."""
_SYSTEM = re.compile(r"\bsystem['\"`]? (?:role|message|prompt|instruction)s?\b|\brole:? ['\"`]?system\b")
_FORM_WORDS = _any(
    r"response[_ ]?format|response_mime_type|output_(?:config|format)",
    r"schema|structured|structural|guided|grammar|constrained decoding|json[_ -]?(?:mode|object)",
)
_ONE_GENERATION = _any(
    # Groq, with the code or without.
    r"json_validate_failed|failed to (?:generate|validate) json(?! schema)|generated json does not",
    r"json mode couldn['’]t be met",  # Cloudflare
    r"(?:model|reply|response|output) did not (?:output|return|produce|generate|match) (?:a )?valid json",
)
"""How providers say that one reply did not fit the schema, which they take from other requests."""
_NO_ENDPOINT = re.compile(r"no endpoints? found that (?:support|can handle) .{0,30}\bparameter")
"""OpenRouter's words when no provider takes all parameters at once."""
_ECHO = re.compile(r"['\"]input['\"] ?:|\binput_value ?=|expected one of")
"""What stands before the value that pydantic found, and before all the names that serde knows."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_LOCATION = re.compile(r"\[\{(?:['\"]type['\"]: ?['\"]\w+['\"], ?)?['\"]loc['\"]: ?[\[(]([^\])]*)")
_STEP = re.compile(r"[\w-]+")


def located(message: str) -> list[str]:
    """The first place that pydantic names in a message, where older servers send a text of Python; empty if none.

    >>> located("[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]")
    ['body.seed']
    """
    place = _LOCATION.search(_ECHO.split(message)[0])
    return [] if place is None else [".".join(_STEP.findall(place[1]))]


def by_field(places: Sequence[str], sent: Collection[str]) -> str | None:
    """The first parameter that a field of the body names: one of `sent`, of CONTENT or of FORM; None if none does.

    A place is a path: `temperature`, `body.temperature`, `messages[0].role`.

    >>> by_field(["body.temperature"], {"temperature"}), by_field(["messages[0].role"], {"system"})
    ('temperature', 'system')
    """
    names = {name.lower(): name for name in (*FORM, *CONTENT, *sent)}
    for place in places:
        steps = _STEP.findall(place.lower())
        if "system" in sent and "messages" in steps and steps[-1] == "role":
            return "system"
        for step in steps:
            if step in names:
                return names[step]
    return None


def by_words(message: str, sent: Collection[str], codes: Collection[str] = ()) -> str | None:
    """The parameter of `sent` that a message refuses, the first if it refuses several; None if it refuses none.

    Its whole name and a word of refusal stand in one sentence; one of the codes may be that word.
    """
    coded = " ".join(sorted(codes))
    for sentence in _SENTENCE.split(_ECHO.split(message.lower())[0]):
        places: dict[str, int] = {}
        for name in sent:
            whole = re.compile(rf"(?<![\w-]){re.escape(name.lower())}(?![\w-])")
            place = whole.search(sentence)
            if name == "system" or name in CONTENT or place is None:
                continue
            # What a limit of tokens may be is often said in the next sentence.
            limits = message if name.endswith("tokens") else sentence
            refused = _REFUSED.search(f"{whole.sub('<name>', sentence)} {coded}")
            if refused and not is_of_the_value(name, f"{limits} {coded}"):
                places[name] = place.start()
        if places:
            return min(places, key=lambda name: (places[name], name))
    return None


def refuses_system(message: str) -> bool:
    """Whether a message refuses the system message.

    >>> refuses_system("System role not supported"), refuses_system("file system error")
    (True, False)
    """
    sentences = _SENTENCE.split(_ECHO.split(message.lower())[0])
    return any(
        _ROLES.search(sentence) or (_SYSTEM.search(sentence) and _REFUSED.search(sentence)) for sentence in sentences
    )


def is_of_the_value(name: str, message: str) -> bool:
    """Whether a refusal that names a parameter is about the range of its values, so that leaving it out is no cure.

    A limit of tokens outside of its range is the user's to change: without one, a reply may cost anything. A
    temperature is left out if 0, which is sent where nobody sets another, lies outside of the range that is named.

    >>> is_of_the_value("max_tokens", "max_tokens is too large: 9000. This model supports at most 8192")
    True
    >>> [is_of_the_value("temperature", words) for words in ("must be greater than 0", "must be between 0 and 2")]
    [False, True]
    """
    words = message.lower()
    if _OF_THE_NAME.search(words) or not _OF_A_VALUE.search(words):
        return False
    return name != "temperature" or not _WITHOUT_ZERO.search(words)


def is_of_the_form(words: str) -> bool:
    """Whether words in lower case are about a schema, a grammar or a JSON mode."""
    return _FORM_WORDS.search(words) is not None


def is_of_one_generation(words: str) -> bool:
    """Whether words in lower case say that one reply did not fit the schema."""
    return _ONE_GENERATION.search(words) is not None


def finds_no_endpoint(words: str) -> bool:
    """Whether words in lower case say that no provider takes all parameters."""
    return _NO_ENDPOINT.search(words) is not None
