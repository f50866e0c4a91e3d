"""Runs of citation tracks: a line a topic, with sentences that each cite what they rest on.

A topic is one turn with one response: its sentences, joined by spaces. Its provenance is what they cite. `years` has
the rules of the tracks.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from judge.io.text import shown, storable
from judge.runs.convert.targets import ConversionTarget, SourceRun
from judge.runs.document import Document
from judge.runs.fields import Fields, ProblemLog, member
from judge.runs.fix.fixes import Fixer
from judge.runs.formats.keyed import entries_of, read_shared
from judge.runs.formats.shape import Format, Names, ReadRun, ResponsePlace, Rules, TurnPlace, read_run_of, too_many
from judge.runs.records import Provenance, Response, RunTurn
from judge.runs.tokens import countable, truncated

TOPIC_NAMES = ("topic_id", "narrative_id", "request_id")
"""Members that tracks have for the topic of a line; the first one that is there counts."""
_FIRST = 20
"""Lines that are looked at to recognize a run."""
_MEMBERS = {
    "answer": ("metadata", "references", "answer", "run_id", "topic_id", "topic", "response_length"),
    "responses": ("metadata", "references", "responses", "documents"),
}
"""Members of a line, by the member that holds its sentences."""


def sentences_in(rules: Rules) -> str:
    """The member of a line that holds its sentences."""
    return rules.names[0].text


def head_of(line: Mapping[str, Any]) -> tuple[str, Any]:
    """The path, below a line, of what it says of its run and topic, and the object; in 2024 it is the line itself."""
    return ("", line) if "metadata" not in line and "run_id" in line else (".metadata", line.get("metadata"))


def references_of(line: Mapping[str, Any]) -> list[Any]:
    """The references of a line as its file has them; none where they are no list."""
    references = line.get("references")
    return references if type(references) is list else []


def citations_of(sentence: Any, references: list[Any]) -> Iterator[tuple[str, Any, str | None]]:
    """The path below a sentence, the value and the passage id of each citation; None for one that names no passage.

    A number is the place of a reference, from 0; a citation by id may stand in a list or have a score.
    """
    given = sentence.get("citations") if type(sentence) is dict else None
    if type(given) is dict:
        yield from ((member(".citations", each), each, each or None) for each in given)
    for k, each in enumerate(given if type(given) is list else ()):
        named = each
        if type(each) is int:
            named = references[each] if 0 <= each < len(references) else None
        yield f".citations[{k}]", each, named if type(named) is str and named else None


def _sniffed(document: Document, *, rules: Rules) -> bool:
    """Whether the first lines have lists of sentences, which unlike responses have no rank and no user."""
    name = sentences_in(rules)
    lines = [value for _, value in islice(entries_of(document), _FIRST) if type(value) is dict]
    held = [line[name] for line in lines if type(line.get(name)) is list and "turn_id" not in line]
    members = set().union(*(each for sentences in held for each in sentences if type(each) is dict))
    # Without any sentence, a list of references tells it from an interactive run.
    told = name == "answer" or "text" in members or any(type(line.get("references")) is list for line in lines)
    return bool(held) and told and not {"rank", "user_utterance"} & members


def _read(document: Document, *, rules: Rules, name: str) -> ReadRun:
    log = ProblemLog(document.file, document.problems)
    entries = list(entries_of(document))
    if document.unreadable or too_many(log, "$", [value for _, value in entries]):
        return ReadRun(None, tuple(log.problems))
    first: dict[str, str] = {}
    turns = [_turn(log, path, value, first, rules) for path, value in entries]
    log.turn_id = None
    if not turns:
        log.add("no_turns", "$", "the run has no topics")
        return ReadRun(None, tuple(log.problems))
    return read_run_of(
        log, document, name, turns, first.get("run_id", ""), first.get("type", ""), first.get("team_id", "")
    )


def _turn(log: ProblemLog, path: str, value: Any, first: dict[str, str], rules: Rules) -> tuple[RunTurn, TurnPlace]:
    name = sentences_in(rules)
    log.turn_id = None
    fields = Fields(log.add, path, value, _MEMBERS[name])
    line = value if fields.readable else {}
    topic_id = _topic(log, path, line, fields, first)
    base = f"{path}.{name}"
    references = fields.list("references", optional=True)
    for k, each in enumerate(references):
        if type(each) is not str or not each:
            message = f"expected a passage id, found {shown(each)}"
            log.add_entry(f"{path}.references", "wrong_type", f"{path}.references[{k}]", message)
    texts: list[str] = []
    cited: dict[str, None] = {}
    for k, sentence in enumerate(fields.list(name)):
        at = f"{base}[{k}]"
        own = Fields(partial(log.add_entry, base), at, sentence, ("text", "citations"))
        texts.append(own.text("text"))
        if type(scored := own.get("citations")) is dict:
            scores = Fields(partial(log.add_entry, base), f"{at}.citations", scored, scored)
            for passage_id in scored:
                scores.number(passage_id)
        else:
            own.list("citations", optional=True)
        for where, given, passage_id in citations_of(sentence, references):
            if passage_id is not None and storable(passage_id):
                cited[passage_id] = None
            elif passage_id is not None:
                message = f"NUL or a lone surrogate in {shown(passage_id)}"
                log.add_entry(base, "unusable_text", f"{at}{where}", message)
            elif type(given) is int and not 0 <= given < len(references):
                message = f"citation {given} is of no reference: there are {len(references)}, counted from 0"
                log.add_entry(base, "unknown_citation", f"{at}{where}", message)
            elif type(given) is not int:
                message = f"expected the id or the number of a reference, found {shown(given)}"
                log.add_entry(base, "wrong_type", f"{at}{where}", message)
    log.close_lists()
    documents = fields.object("documents", optional=True) if "documents" in line else {}
    provenance = tuple(Provenance(each, None, True, _text_in(documents.get(each))) for each in cited)
    response = Response(1, " ".join(text for text in texts if text.strip()), provenance)
    place = ResponsePlace(path, names=rules.names[0])
    return RunTurn(f"{topic_id}_1" if topic_id else "", (response,)), TurnPlace(path, (place,), value=line)


def _topic(log: ProblemLog, path: str, line: dict[str, Any], fields: Fields, first: dict[str, str]) -> str:
    """The topic of a line, "" where none can be read; `first` keeps what the lines of a run share."""
    below, given = head_of(line)
    if type(given) is not dict:
        if fields.readable:
            fields.object("metadata")
        return ""
    head = Fields(log.add, f"{path}{below}", given, given)
    read_shared(log, head, ("run_id", "team_id", "type") if below else ("run_id",), first, "line")
    name = next((name for name in TOPIC_NAMES if name in given), TOPIC_NAMES[0])
    if name not in given and below:
        log.add("missing_field", head.path, f"no topic: expected one of {', '.join(TOPIC_NAMES)}")
        return ""
    topic_id = str(given[name]) if type(given.get(name)) is int else head.label(name)
    log.turn_id = f"{topic_id}_1" if topic_id.isprintable() and topic_id else None
    return topic_id


def _cited(line: dict[str, Any], *, name: str) -> Iterator[tuple[str, list[str]]]:
    """Each sentence of a readable line with the passages that it cites, each once."""
    references = references_of(line)
    for sentence in line[name]:
        found = dict.fromkeys(named for _, _, named in citations_of(sentence, references))
        yield sentence["text"], [named for named in found if named is not None]


def _text_in(document: Any) -> str | None:
    """The text of a run's own document."""
    text = document.get("text") if type(document) is dict else None
    return text if type(text) is str and text else None


def fix_sentences(fixer: Fixer, line: dict[str, Any], path: str) -> None:
    """Leave out sentences without text, cite each passage of a sentence once, and cut the response at the limit."""
    name = sentences_in(fixer.rules)
    sentences = line.get(name)
    base = f"{path}.{name}"
    if type(sentences) is not list or not all(
        type(each) is dict and type(each.get("text")) is str for each in sentences
    ):
        return
    _, head = head_of(line)
    topic_id = next((head[name] for name in TOPIC_NAMES if name in head), None) if type(head) is dict else None
    fixer.turn_id = f"{topic_id}_1"
    references = references_of(line)
    kept = []
    for k, sentence in enumerate(sentences):
        cited = sentence.get("citations")
        if not sentence["text"].strip() and not cited:
            fixer.note("blank_sentence", f"{base}[{k}]", sentence, None)
            continue
        kept.append((k, sentence))
        if type(cited) is list:
            first: dict[str, Any] = {}
            for where, each, named in citations_of(sentence, references):
                first.setdefault(named or where, each)
            sentence["citations"] = [*first.values()]
            if len(first) < len(cited):
                fixer.note("duplicate_citation", f"{base}[{k}].citations", cited, sentence["citations"])
    line[name] = [sentence for _, sentence in _within(fixer, kept, base)]


def _within(fixer: Fixer, kept: list[tuple[int, Any]], base: str) -> list[tuple[int, Any]]:
    """The numbered sentences up to the token limit, the last one cut."""
    whole = " ".join(sentence["text"] for _, sentence in kept if sentence["text"].strip())
    if not countable(whole) or truncated(whole, fixer.count_tokens)[0] == whole:
        return kept
    before = ""
    for place, (k, sentence) in enumerate(kept):
        text = sentence["text"]
        whole = f"{before} {text}" if before and text.strip() else before or text
        left, _ = truncated(whole, fixer.count_tokens) if whole.strip() else (whole, None)
        if len(left) < len(whole):
            sentence["text"] = left[len(whole) - len(text) :]
            fixer.note("over_token_limit", f"{base}[{k}].text", text, sentence["text"])
            for after, rest in kept[place + 1 :]:
                fixer.note("over_token_limit", f"{base}[{after}]", rest, None)
            return kept[: place + bool(sentence["text"].strip())]
        before = whole if text.strip() else before
    return kept


def _written(source: SourceRun, *, rag: bool) -> bytes:
    """A run of one of the two formats as the other."""
    source.lost_in_reading()
    lines = []
    for _, place in source.in_work():
        line = place.value
        _, given = head_of(line)
        body = ("answer", "responses", "references", "documents", "response_length")
        head = {name: value for name, value in given.items() if name not in body}
        name = next(name for name in TOPIC_NAMES if name in head)
        topic_id = str(head.pop(name))
        metadata = {"team_id": source.team, "run_id": source.run.run_id} | head | {"team_id": source.team}
        metadata["narrative_id" if rag else "topic_id"] = topic_id
        given_references = references_of(line)
        places = {each: k for k, each in reversed(list(enumerate(given_references))) if type(each) is str}
        sentences = []
        for sentence in line[sentences_in(source.rules)]:
            found = [named for _, _, named in citations_of(sentence, given_references)]
            cited: Any = [named for named in found if named is not None]
            source.drop_all("citations of no reference", len(found) - len(cited), "citation")
            for each in cited:
                places.setdefault(each, len(places))
            if type(sentence.get("citations")) is dict and rag:
                source.drop_all("scores of citations", len(cited), "score")
            elif type(sentence.get("citations")) is dict:
                cited = {each: sentence["citations"][each] for each in cited}
            sentences.append({"text": sentence["text"], "citations": cited})
        references = sorted(places, key=lambda each: places[each])
        order = {each: k for k, each in enumerate(references)}
        documents = line.get("documents")
        if rag:
            source.drop_all("passage texts", len(documents) if type(documents) is dict else 0, "text")
            answer = [each | {"citations": [order[cited] for cited in each["citations"]]} for each in sentences]
            lines.append({"metadata": metadata, "references": references, "answer": answer})
        else:
            texts = {"documents": documents} if documents else {}
            lines.append({"metadata": metadata, "responses": sentences, "references": references} | texts)
    # Lone surrogates, which the file had as escapes, are written as such.
    written = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return "".join(written).encode("utf-8", "backslashreplace")


def _rules(name: str) -> Rules:
    return Rules(
        run_id="$.metadata.run_id",
        form="lines",
        turn_id=".metadata",
        passages=name,
        keyed=True,
        ranked=False,
        of_years=False,
        flags_used=True,
        names=(Names(text=name, citations=name),),
        cited=partial(_cited, name=name),
        fix=fix_sentences,
    )


def _format(name: str, about: str, sentences: str) -> Format:
    rules = _rules(sentences)
    return Format(about, rules, partial(_sniffed, rules=rules), partial(_read, rules=rules, name=name))


RAG = _format(
    "rag",
    "TREC RAG and LongEval-RAG: JSON Lines, a topic a line; `answer` has sentences that cite `references` by number "
    "or id.",
    "answer",
)
RAGTIME = _format(
    "ragtime",
    "RAGTIME, NeuCLIR reports and DRAGUN: JSON Lines, a topic a line; `responses` has sentences that cite documents by "
    "id, with or without scores; `documents` may have their texts.",
    "responses",
)
TO_RAG, TO_RAGTIME = (
    ConversionTarget(
        ".jsonl", partial(_written, rag=rag), obeys_eval_response=False, needs_team=True, sources=("rag", "ragtime")
    )
    for rag in (True, False)
)
