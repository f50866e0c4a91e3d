"""All that a run and its user said in a topic."""

from judge.units.unit import Nouns, Unit, UnitWords

DIALOGUE = Unit(
    name="dialogue",
    nouns=Nouns(turn="topic", response="dialogue"),
    words=UnitWords(
        none_left="no response can be judged: every one was excluded",
        selected="a dialogue has all turns of its topic and one response for each",
        unreached="the run said nothing in the topic",
        below_depth="ranked lower than the response that stands in the dialogue",
        with_errors="A response with an error or a warning was said all the same, so it stands in its dialogue.",
        errors="a response with an error was said all the same, so it stands in its dialogue",
        turns_file="the turns of the dialogues: what the user said, and what led to it",
        unanswered="""the run said nothing in the topic, or the dialogue is excluded
(`excluded.tsv`).
""",
    ),
    by_topic=True,
    boards="dialogue",
    inputs=("dialogue", "ptkb"),
    unfit=(
        "depth",
        "only_turns",
        "draw",
        "passage_qrels",
        "over_limit",
        "passages",
        "passage_hashes",
        "missing_passages",
        "screen",
        "thresholds",
    ),
    why_unfit="about single responses and their passages; a dialogue is judged as a whole",
)
