"""Whether runs are of one year, and of the topics' year: by the turns that they have and the PTKB statements they name.

A format proves nothing, because a track may take one year's runs in several formats. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from judge.io.ids import natural_key, topic_of
from judge.io.text import count, examples, shown
from judge.io.words import containment
from judge.runs.fields import usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.formats.shape import TurnPlace
from judge.runs.profiles import possible_years, year_of
from judge.runs.records import Run, Turn

FEWEST_TURNS = 20
"""Turns of the smallest run whose topics alone can show that it is of another year than a run of other topics."""
FEWEST_STATEMENTS = 3
"""PTKB statements of the smallest run whose statements can show that it is of another year."""
OWN_WORDS = 0.5
"""Mean share of a statement's content words below which the statements are of other topics than the texts.

Of public runs it is 0.98 or more in their own topics, and 0.27 or less in the topics of another year with the same ids.
"""
_NAMED = 5
"""The most runs of a year that the message names."""
_LONGEST = 500
"""The most characters of a statement that are compared."""


class Trace(msgspec.Struct, frozen=True):
    """What tells the year of a run, kept when its turns are not."""

    file: str
    run_id: str
    format: str
    turn_ids: frozenset[str]
    statements: dict[str, frozenset[str]] = {}
    """Topic id to the texts of the PTKB statements that the run names for turns of the topic."""
    year: int | None = None
    """The year of the topics that the run is for; without topics, of its turns. None for no known year."""
    of_topics: bool | None = None
    """Whether the run is for the topics that it was checked against; None without topics."""
    against: str | None = None
    """Why the run cannot be for these topics."""


def trace_of(run: Run, places: Sequence[TurnPlace], turns: Mapping[str, Turn] | None) -> Trace:
    """What tells the year of a run as read, with `places` from its reader; `turns` are of the topics, if given."""
    # A simulated user says what it wants, in words of its own.
    form = None if rules_of(run.format).own_turns else rules_of(run.format).ptkb
    statements: dict[str, set[str]] = {}
    for i, turn in enumerate(run.turns):
        for j, response in enumerate(turn.responses):
            texts: Iterable[str | None] = response.ptkb_provenance if form == "texts" else ()
            if form == "objects" and places:
                texts = (text for text, _ in places[i].responses[j].statements)
            said = {text.strip()[:_LONGEST] for text in texts if text and text.strip()}
            if said:
                statements.setdefault(topic_of(turn.turn_id), set()).update(said)
    turn_ids = frozenset(turn.turn_id for turn in run.turns if usable_turn_id(turn.turn_id))
    named = {topic: frozenset(texts) for topic, texts in statements.items()}
    trace = Trace(
        file=run.file,
        run_id=run.run_id,
        format=run.format,
        turn_ids=turn_ids,
        statements=named,
        year=year_of(_of_topics(run.format, turn_ids)),
    )
    if turns is None:
        return trace
    reason = against_topics(trace, turns)
    of_years = rules_of(run.format).of_years
    year = year_of(turns) if reason is None and of_years else trace.year
    return msgspec.structs.replace(trace, year=year, of_topics=reason is None, against=reason)


def against_topics(trace: Trace, turns: Mapping[str, Turn]) -> str | None:
    """Why a run cannot be for these topics; None where nothing shows it."""
    topics = {turn.topic_id for turn in turns.values()}
    total = len(trace.turn_ids)
    inside = sum(topic_of(turn_id) in topics for turn_id in trace.turn_ids)
    if 2 * inside < total:
        which = f"only {inside} of the run's {total} turns are" if inside else f"none of the run's {total} turns is"
        return f"{which} of a topic of the topics file {_beside(trace, turns)}"
    years = _years(trace)
    topics_year = year_of(turns)
    if topics_year is not None and years and topics_year not in years:
        return f"the run has turns of {_or(years)}, the topics are those of {topics_year} {_beside(trace, turns)}"
    texts: dict[str, set[str]] = {}
    for turn in turns.values():
        if turn.ptkb and turn.topic_id in trace.statements:
            own = texts.setdefault(turn.topic_id, {statement.text for statement in turn.ptkb})
            # A run may name what the user said in the conversation as well.
            own.update(text for text in (turn.utterance, *turn.references) if text)
    return _other_statements(trace.statements, texts, "the topics file")


def _beside(trace: Trace, turns: Mapping[str, Turn]) -> str:
    """What the run and the topics have, in words."""
    some, known = (examples(map(shown, sorted(ids, key=natural_key)), 3) for ids in (trace.turn_ids, turns))
    return f"(the run has {some}, the topics {known})"


def _years(trace: Trace) -> frozenset[int]:
    """The years whose topics may have the run's turns."""
    return possible_years(_of_topics(trace.format, trace.turn_ids), rules_of(trace.format).year)


def _of_topics(format: str, turn_ids: Collection[str]) -> Collection[str]:
    """The turns that tell a year: of a run with turns of its own the first one of each topic, which every topic has."""
    if not rules_of(format).of_years:
        return ()
    return {f"{topic_of(turn_id)}_1" for turn_id in turn_ids} if rules_of(format).own_turns else turn_ids


def between(one: Trace, other: Trace) -> str | None:
    """Why two runs cannot be of one year, about the first of them; None where nothing shows it."""
    if one.of_topics is not None and other.of_topics is not None and one.of_topics != other.of_topics:
        return one.against or "for the topics file"
    if one.of_topics and other.of_topics:
        return None
    if not (rules_of(one.format).of_years or rules_of(other.format).of_years):
        return None
    name = shown(other.run_id)
    years = _years(one)
    other_years = _years(other)
    total = len(one.turn_ids)
    shared = len(one.turn_ids & other.turn_ids)
    few = f"{shared} of its {count(total, 'turn')} {'is' if shared == 1 else 'are'} in {name} too"
    if years and other_years and years.isdisjoint(other_years):
        return few
    shares = [_share(one, other), _share(other, one)]
    if min(total, len(other.turn_ids)) >= FEWEST_TURNS and max(shares) < 0.5:
        return few
    # Two runs may choose different statements of a topic, but hardly without any in common.
    topics = one.statements.keys() & other.statements.keys()
    if any(one.statements[topic] & other.statements[topic] for topic in topics):
        return None
    return _other_statements(one.statements, other.statements, name)


def _share(one: Trace, other: Trace) -> float:
    """The share of a run's turns that are of a topic of the other run."""
    topics = set(map(topic_of, other.turn_ids))
    return sum(topic_of(turn_id) in topics for turn_id in one.turn_ids) / max(1, len(one.turn_ids))


def _other_statements(
    statements: Mapping[str, Collection[str]], texts: Mapping[str, Collection[str]], where: str
) -> str | None:
    """Why statements are not of the topics that the texts are of; None where nothing shows it."""
    topics = sorted((topic for topic in statements.keys() & texts.keys() if texts[topic]), key=natural_key)
    compared = sum(len(statements[topic]) for topic in topics)
    known = sum(len(set(statements[topic]).intersection(texts[topic])) for topic in topics)
    # Words are compared only where the statements as they are do not settle it.
    if min(compared, sum(len(texts[topic]) for topic in topics)) < FEWEST_STATEMENTS or known >= OWN_WORDS * compared:
        return None
    pairs = [(text, topic) for topic in topics for text in sorted(statements[topic])]
    shares = (1.0 if text in texts[topic] else containment(text, tuple(texts[topic])) for text, topic in pairs)
    if sum(shares) >= OWN_WORDS * compared:
        return None
    text, topic = next((text, topic) for text, topic in pairs if text not in texts[topic])
    return (
        f"of {compared} PTKB statements that it names for topics of {where} {known} {'is' if known == 1 else 'are'} "
        f"known there; {shown(text)}, for one, is of no topic {shown(topic)} there"
    )


def mixed_years(runs: Sequence[Trace]) -> str | None:
    """The message that refuses a pool of runs of several years; None where nothing shows that they are.

    It names the years, the runs of each and what to do.
    """
    groups: list[list[Trace]] = []
    reasons: list[str] = []
    for run in sorted(runs, key=lambda run: (not run.of_topics, -len(run.turn_ids), natural_key(run.run_id), run.file)):
        found = None
        for group in groups:
            found = next((reason for other in group if (reason := between(run, other))), None)
            if found is None:
                group.append(run)
                break
        else:
            groups.append([run])
            reasons.append(f": {found}" if found else "")
    if len(groups) < 2:
        return None
    named = "; ".join(
        f"{_label(group)}: {count(len(group), 'run')} ({_names(group)}{reason})"
        for group, reason in zip(groups, reasons, strict=True)
    )
    return (
        f"runs of several years. {named}. A turn id of one year is another turn in the next, so nothing is "
        "pooled: put the runs of each year into a folder of its own, and make one call a year, with its --topics"
    )


def _label(group: Sequence[Trace]) -> str:
    """The year of a group of runs; where no turn tells it, the formats of the runs."""
    years = sorted({run.year for run in group if run.year is not None})
    if years:
        return _or(years)
    if group[0].of_topics:
        return "the year of the topics file"
    return f"unknown year, in the form of {', '.join(sorted({run.format for run in group}))}"


def _names(group: Sequence[Trace]) -> str:
    names = ", ".join(shown(run.run_id) for run in group[:_NAMED])
    return names + (f" and {len(group) - _NAMED} more" if len(group) > _NAMED else "")


def _or(years: Collection[int]) -> str:
    return " or ".join(map(str, sorted(years)))
