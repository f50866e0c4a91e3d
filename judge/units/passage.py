"""A passage that runs list for a turn."""

from judge.units.unit import Nouns, Unit, UnitWords

PASSAGE = Unit(
    name="passage",
    nouns=Nouns(turn="turn", response="passage"),
    words=UnitWords(
        none_left="no passage can be judged: the runs list none, or people graded each (--fill)",
        selected="of each turn the first passages of a run are pooled, whatever its responses are",
        unreached="the run said nothing in the topic",
        below_depth="ranked lower than the passages that are judged",
        with_errors="What is wrong with a response leaves its passages in the pool; of a turn that cannot be read, "
        "none is judged.",
        errors="passages are judged whatever is wrong with the responses",
        turns_file="the turns of interactive runs, the questions of tables: what the user said, and what led to it",
    ),
    listed=True,
    depth=10,
    inputs=("passages", "ptkb", "context", "utterance", "resolved_utterance"),
    needed_input="passages",
    own_options=("provenance", "fill"),
    unfit=("passage_qrels", "over_limit", "screen", "thresholds"),
    why_unfit="about responses; the passages that runs list are judged, whatever the responses are",
)
