"""A response in its turn."""

from judge.units.unit import Nouns, Unit, UnitWords

RESPONSE = Unit(
    name="response",
    nouns=Nouns(turn="turn", response="response"),
    words=UnitWords(
        none_left="no response can be judged: every one was excluded",
        selected="",
        unreached="the run never reached the topic",
        below_depth="ranked lower than the responses that are judged",
        with_errors="What has an error is not judged; what has a warning is judged, though it breaks the track's "
        "guidelines.",
        errors="responses with errors are not judged",
        turns_file="the turns of interactive runs, the questions of tables: what the user said, and what led to it",
        unanswered="""there is no response, or the one that the run ranks first is excluded
(`excluded.tsv`). A response ranked lower never takes its place.
""",
    ),
    whole_response=True,
)
