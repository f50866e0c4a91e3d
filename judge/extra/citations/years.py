"""The years of citation tracks: what each asks of a run, beside what its format asks. Pure.

The rows follow the tracks' guidelines; docs/how-to/citation-tracks.md names them. A problem is an error where the
track refuses the run for it.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

from judge.extra.citations import citations_of, head_of, references_of, sentences_in
from judge.io.text import shown
from judge.runs.check.rules import RunCheck
from judge.runs.profiles import UNLIMITED, Profile
from judge.runs.records import Turn

_FORMS = {int: "number", str: "id", dict: "ids with scores"}
MSMARCO = re.compile(r"msmarco_v2\.1_doc_\d\d_\d+#\d+_\d+", re.ASCII)
CLIMBMIX = re.compile(r"shard_\d+_\d+", re.ASCII)
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class Year(NamedTuple):
    """What a track's year asks of a run."""

    metadata: tuple[str, ...] = ()
    """Members that a line's metadata must have, beside run and topic."""
    advised: tuple[str, ...] = ()
    """Members that it should have."""
    passage_id: re.Pattern[str] | None = None
    """The form of the collection's passage ids."""
    forms: tuple[type, ...] = (int, str, dict)
    """How a sentence may cite: by number, by id, by ids with scores."""
    longest_run_id: int | None = None
    """Most characters of a run id, which then has letters, digits, `-`, `_` and `.` only."""
    references: Literal["given", "cited"] | None = None
    """given: what is cited must be among them. cited: they are what is cited. None: they are not looked at."""
    most_references: int | None = None
    most_citations: int | None = None
    """Most citations of a sentence."""
    copied_topic: bool = False
    """Whether `narrative` must be the text of the topic."""


def check_year(check: RunCheck, turns: Mapping[str, Turn] | None, *, year: Year, by_topic: bool) -> None:
    """Report what a run has against the rules of a year; with topics, against their texts, too.

    `by_topic`: a topic may say how long its response may be.
    """
    run_id = check.run.run_id
    if year.longest_run_id is not None and (len(run_id) > year.longest_run_id or not _RUN_ID.fullmatch(run_id)):
        most = f"at most {year.longest_run_id} letters, digits, '-', '_' or '.', and no '.' first"
        check.at(None)
        check.add("unusable_run_id", check.rules.run_id, f"{shown(run_id)}, expected {most}")
    for i, (run_turn, place) in enumerate(zip(check.run.turns, check.places, strict=True)):
        check.at(i)
        turn = (turns or {}).get(run_turn.turn_id)
        _check_metadata(check, year, place.path, place.value, turn)
        _check_citations(check, year, place.path, place.value)
        if by_topic and turn is not None and turn.limit is not None:
            length = len(normalize("NFKC", run_turn.responses[0].text))
            if length > turn.limit:
                message = f"{length:,} characters after NFKC, the topic allows {turn.limit:,}"
                check.add("over_topic_limit", f"{place.path}.{sentences_in(check.rules)}", message)
        check.log.close_lists()


def _check_metadata(check: RunCheck, year: Year, path: str, line: Mapping[str, Any], turn: Turn | None) -> None:
    below, head = head_of(line)
    for name in (*year.metadata, *year.advised) if type(head) is dict else ():
        if head.get(name) in (None, ""):
            code = "missing_field" if name in year.metadata else "missing_metadata"
            check.add(code, f"{path}{below}.{name}", f"`{name}` is missing or empty, and this year asks for it")
    told = head.get("narrative") if type(head) is dict else None
    if year.copied_topic and turn is not None and told not in (None, "", turn.utterance):
        check.add("narrative_differs", f"{path}{below}.narrative", f"{shown(told)} is not the topic's text")


def _check_citations(check: RunCheck, year: Year, path: str, line: Mapping[str, Any]) -> None:
    name = sentences_in(check.rules)
    sentences = line.get(name)
    references = references_of(line)
    base = f"{path}.{name}"
    listed = {each for each in references if type(each) is str}
    cited: dict[str, None] = {}
    add = partial(check.add_entry, base)
    for k, sentence in enumerate(sentences if type(sentences) is list else ()):
        at = f"{base}[{k}]"
        found = list(citations_of(sentence, references))
        scored = type(sentence) is dict and type(sentence.get("citations")) is dict
        forms = {dict} if scored else {type(each) for _, each, named in found if named is not None}
        if forms - {*year.forms}:
            expected = " or ".join(_FORMS[form] for form in year.forms)
            add("wrong_type", f"{at}.citations", f"this year cites by {expected}")
        if type(sentence) is dict and type(sentence.get("text")) is str and not sentence["text"].strip():
            add("blank_sentence", f"{at}.text", "the sentence has no text")
        if year.most_citations is not None and len(found) > year.most_citations:
            message = f"{len(found)} citations, at most {year.most_citations} are looked at"
            add("too_many_citations_of_sentence", f"{at}.citations", message)
        if len({named for _, _, named in found} - {None}) < sum(named is not None for _, _, named in found):
            add("duplicate_citation", f"{at}.citations", "the sentence cites a passage twice; it counts once")
        for where, given, named in found:
            if named is None:
                continue
            cited[named] = None
            if year.references and type(given) is str and named not in listed:
                message = f"{shown(named)} is cited but not among the references"
                add("citation_not_in_references", f"{at}{where}", message)
            if year.passage_id is not None and not year.passage_id.fullmatch(named):
                message = f"{shown(named)} does not have the form of the collection's ids"
                add("malformed_passage_id", f"{at}{where}", message)
    _check_references(check, year, f"{path}.references", references, cited)


def _check_references(check: RunCheck, year: Year, base: str, references: list[Any], cited: Mapping[str, None]) -> None:
    if year.references is None:
        return
    add = partial(check.add_entry, base)
    seen: set[str] = set()
    for k, each in enumerate(references):
        if type(each) is not str or not each:
            continue
        if each in seen:
            add("duplicate_passage", f"{base}[{k}]", f"{shown(each)} is already in this list")
        elif each not in cited and year.references == "cited":
            add("uncited_reference", f"{base}[{k}]", f"no sentence cites {shown(each)}")
        if each not in cited and year.passage_id is not None and not year.passage_id.fullmatch(each):
            message = f"{shown(each)} does not have the form of the collection's ids"
            add("malformed_passage_id", f"{base}[{k}]", message)
        seen.add(each)
    if year.most_references is not None and len(references) > year.most_references:
        message = f"{len(references)} references, at most {year.most_references} are allowed"
        check.add("too_many_references", base, message)


def _profile(
    track: str, year: int, format: str, rules: Year, words: int = UNLIMITED, errors: tuple[str, ...] = ()
) -> Profile:
    """A row; lengths are in words, as `str.split` gives them, or set by each topic."""
    check = partial(check_year, year=rules, by_topic=words == UNLIMITED)
    return Profile(
        track=track,
        year=year,
        interactive=False,
        token_limit=words,
        token_rule="whitespace",
        citation_limit=None,
        formats=(format,),
        errors=frozenset(errors),
        criteria=("support",),
        check=check,
    )


_CITED = ("unknown_citation", "malformed_passage_id")
"""What every track refuses."""
_REFUSED = (*_CITED, "citation_not_in_references", "blank_sentence", "too_many_references", "narrative_differs")
"""What the RAG track refuses."""

RAG_ANY = _profile("any", 0, "rag", Year())
RAGTIME_ANY = _profile("any", 0, "ragtime", Year())
RAG2024 = _profile(
    "RAG", 2024, "rag", Year(passage_id=MSMARCO, forms=(int,), references="given", most_references=20), 400, _REFUSED
)
_RAG25 = Year(
    ("type", "narrative"),
    passage_id=MSMARCO,
    forms=(int, str),
    references="cited",
    most_references=100,
    copied_topic=True,
)
RAG2025 = _profile("RAG", 2025, "rag", _RAG25, 400, _REFUSED)
RAG2026 = _profile(
    "RAG",
    2026,
    "rag",
    _RAG25._replace(
        metadata=("narrative", "run_desc"),
        passage_id=CLIMBMIX,
        longest_run_id=20,
        most_references=None,
        most_citations=3,
    ),
    1024,
    (*_REFUSED, "over_token_limit"),
)
LONGEVAL2026 = _profile(
    "LongEval-RAG", 2026, "rag", Year(("type",), forms=(int, str), references="given"), errors=_REFUSED
)
NEUCLIR2024 = _profile("NeuCLIR", 2024, "ragtime", Year(passage_id=re.compile(UUID), forms=(str, dict)), errors=_CITED)
_RAGTIME25 = Year(
    advised=("task",),
    passage_id=re.compile(rf"{UUID}_[0-9]+"),
    forms=(str, dict),
    longest_run_id=25,
    references="cited",
    most_citations=3,
)
RAGTIME2025 = _profile("RAGTIME", 2025, "ragtime", _RAGTIME25, errors=(*_CITED, "uncited_reference"))
RAGTIME2026 = _profile(
    "RAGTIME",
    2026,
    "ragtime",
    _RAGTIME25._replace(advised=("run_desc",), longest_run_id=20, references=None),
    errors=_CITED,
)
DRAGUN2025 = _profile(
    "DRAGUN",
    2025,
    "ragtime",
    Year(("type", "use_starter_kit"), passage_id=MSMARCO, forms=(str,), most_citations=3),
    250,
    (*_CITED, "over_token_limit"),
)
