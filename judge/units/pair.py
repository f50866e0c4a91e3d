"""Two responses to one turn, one shown first."""

from judge.units.unit import Nouns, Unit, UnitWords

PAIR = Unit(
    name="pair",
    nouns=Nouns(turn="turn", response="pair"),
    words=UnitWords(
        none_left=(
            "no pair can be judged: no turn has two different responses (equal ones tie), or --draw is less than 2"
        ),
        selected="a pair has one response of each run",
        unreached="the run said nothing in the topic",
        below_depth="ranked lower than the responses that are judged",
        with_errors="What has an error is in no pair; what has a warning is compared, though it breaks the track's "
        "guidelines.",
        errors="responses with errors are in no pair",
        turns_file="the turns of interactive runs, the questions of tables: what the user said, and what led to it",
    ),
    orders=2,
    inputs=("pair", "context", "ptkb", "utterance", "resolved_utterance"),
    unfit=("depth",),
    why_unfit="about more responses; a pair has one of each run",
)
