"""A sentence with one passage that it cites."""

from judge.units.unit import Nouns, Unit, UnitWords

CITATION = Unit(
    name="citation",
    nouns=Nouns(turn="turn", response="citation"),
    words=UnitWords(
        none_left="no response can be judged: every one was excluded",
        selected="all citations of a response are pooled, and of a turn one response",
        unreached="the run said nothing in the topic",
        below_depth="ranked lower than the responses that are judged",
        with_errors="Of what has an error no citation is judged; of what has a warning each is.",
        errors="citations of responses with errors are not judged",
        turns_file="the turns of interactive runs, the questions of tables: what the user said, and what led to it",
    ),
    part_of_response=True,
    needed_input="passages",
    unfit=("depth", "passage_qrels", "over_limit", "screen", "thresholds"),
    why_unfit="about whole responses; single citations are judged, as --criteria say or the track of the runs asks",
)
