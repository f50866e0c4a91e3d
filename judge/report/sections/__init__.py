"""The sections of a report, in the order of their reader's questions; a new one is a new file. Pure.

Here is how all of them say what the files abbreviate.
"""

import re

from judge.pool.records import LeftOut
from judge.pool.screen import ScreenCode
from judge.records import Criterion, FailureReason, JudgedUnit
from judge.results.citations import Measure
from judge.results.rows import RowFlag
from judge.runs.check import CODES
from judge.units import UNITS
from judge.units.unit import Nouns

REASONS: dict[FailureReason, str] = {
    "unreadable": "the judge's reply holds no grade that can be read",
    "refused": "the judge declined to grade",
    "truncated": "the judge's reply ends too early",
    "content_filter": "the provider's filter blocked the question or the reply",
    "context_length": "the question is longer than the model can take",
    "prompt_cut": "the server read only a part of the question",
    "provider_error": "every call to the provider failed",
    "budget": "the money that could be spent was spent",
    "no_passages": "the criterion needs the passages that the response used, and their text is missing",
    "flipped": "the verdict changed with the order of the responses",
}
"""Why a judgment is missing."""
SCREENED: dict[ScreenCode, str] = {
    "near_empty": "hardly any words",
    "repeated_sentences": "repeats its own sentences",
    "repeated_ngrams": "repeats its own phrases",
    "verbatim_passage": "copied from a passage nearly word for word",
    "off_passage": "hardly shares a word with the passages it says it used",
    "not_english": "not in English",
    "addressed": "speaks to the simulator or to an assessor",
}
"""What a flag of the screen means."""
EXCLUDED: dict[LeftOut, str] = {
    "eval_response_false": "the run asks that its responses be not judged",
    "not_selected_run": "the run was not chosen",
    "not_selected_turn": "the turn was not chosen",
    "turn_not_judged": "nobody graded passages for the turn",
    "below_depth": "ranked lower than the responses that are judged",
    "no_relevant_passage": "none of the passages that it used is relevant",
    "empty_text": "the response has no text",
    "over_limit": "longer than the token limit",
    "unreached_topic": "the run never reached the topic",
    "uncited_sentence": "the sentence cites nothing: there is no citation to judge, and recall counts the sentence",
    "not_drawn": "the response is in no pair that was drawn",
    "equal_responses": "all responses to the turn are equal, so it ties with another one and no judge is asked",
    "graded_by_people": "people graded the passage, so no judge is asked",
    "unusable_id": "the id of the passage is empty, too long or cannot be printed",
}
"""Why the pool leaves out what breaks no rule; the screen's reasons stand in `SCREENED`, errors in `CODES`."""
SCREEN_REASON = "screen_"
"""What stands before a flag of the screen that is the reason of an exclusion."""

_FILE = re.compile(r"[^\s:]*[^\s:.][./][^\s:]")
"""The beginning of a text whose first word is the name of a file or of a prompt, as in `gold.jsonl: …`."""


def flag_words(nouns: Nouns) -> dict[RowFlag, str]:
    """What is to be known of a run's line, in a few words."""
    return {
        "SELF": "of the judge's own family of models",
        "UNCORRECTED": "too little gold to correct",
        "DEGENERATE": "its grades do not vary",
        "MISSING": f"{nouns.turns} without a grade count against it",
        "UNREACHED": "topics that it never reached count against it",
        "HARNESS": "the provider failed, the server cut a prompt or the budget was spent",
        "TRIAL": "only a part was judged",
        "SHORT": f"far fewer {nouns.turns} than others in the same topics; where two or more reached a topic, those "
        "that it lacks count against it",
        "OWNTEXT": "judged by passage texts that it brought itself",
        "RECITES": f"some of its {nouns.responses} have words of the judge's prompt",
        "FEWGOLD": "few gold grades",
        "FAMILY": "corrected by its family's error",
    }


def problem_words(code: str) -> str:
    """What a problem of a run is."""
    return CODES[code].meaning if code in CODES else "a problem without a description"


def excluded_words(reason: str, unit: JudgedUnit) -> str:
    """Why a response, turn or run was not judged, or is no part of a dialogue."""
    meanings: dict[str, str] = {f"{SCREEN_REASON}{code}": f"the screen: {words}" for code, words in SCREENED.items()}
    meanings |= {str(code): words for code, words in EXCLUDED.items()}
    meanings["below_depth"] = UNITS[unit].words.below_depth
    return meanings.get(reason) or problem_words(reason)


def scale_of(criterion: Criterion) -> str:
    """The grades of a criterion in words, `grades 0 to 3, higher is better`, or the range of a measure."""
    lowest, highest = criterion.scale.ends
    if isinstance(criterion, Measure):
        return f"a measure from {lowest} to {highest}, {criterion.scale.polarity} is better"
    return f"grades {lowest} to {highest}, {criterion.scale.polarity} is better"


def titled(name: str) -> str:
    """A criterion's name as it stands in a heading.

    >>> titled("support_precision_weighted")
    'Support precision weighted'
    """
    return (name[:1].upper() + name[1:]).replace("_", " ")


def capped(text: str) -> str:
    """A sentence with a period at its end, and with a capital at its start unless the name of a file stands there.

    >>> capped("no topics"), capped("gold.jsonl: without topics.")
    ('No topics.', 'gold.jsonl: without topics.')
    """
    text = text.strip()
    first = text[:1] if _FILE.match(text) else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
