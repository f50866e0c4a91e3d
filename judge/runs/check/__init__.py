"""The code of every problem that readers and validation report, each with its severity, meaning and advice. Pure."""

from typing import Literal

import msgspec

from judge.records import Problem, Severity


class Code(msgspec.Struct, frozen=True):
    """The severity, the meaning and the advice of one code."""

    severity: Severity
    meaning: str
    official: tuple[str, str, str] = ("", "", "")
    """The severity in the official validators of 2023, 2024 and 2025: E error, W warning, – none, "" not applicable."""
    advice: str = ""
    """How a team can fix it; "" where no team's page shows the code."""
    needs: Literal["topics", "hashes"] | None = None
    """The input that the check needs; None for a check of every run."""
    cause: str = ""
    """The likely cause of many such problems in one file; "" where none is likelier than others."""
    fix: str = ""
    """How `--fix` changes the copy, which may fix only a part; "" where it changes nothing."""
    page: str = ""
    """The message on a team's page, where the usual one names other teams' runs; `{}` is the run's own id."""
    names_file: bool = False
    """Whether the message names the file with its folder, which a team's page leaves out."""


def problem(code: str, file: str, path: str, message: str, *, turn_id: str | None = None, count: int = 1) -> Problem:
    """One problem with the severity of its code, standing for `count` problems of this code."""
    return Problem(
        code=code, severity=CODES[code].severity, file=file, turn_id=turn_id, path=path, message=message, count=count
    )


def as_error(problem: Problem) -> Problem:
    """A problem as an error."""
    return msgspec.structs.replace(problem, severity="error")


_E, _W, _NONE = ("E", "E", "E"), ("W", "W", "W"), ("–", "–", "–")
"""Codes on which the three official validators agree."""

# fmt: off
SECTIONS: dict[str, dict[str, Code]] = {
    "The folder": {
        "hidden_file": Code("warning", "a file whose name begins with a dot is not read as a run", _NONE),
        "not_a_run_file": Code("warning",
            "a file that is neither JSON nor a pool nor a table of answers is not read as a run", _NONE),
        "several_years": Code("error", "runs of several years, which are never pooled together", _NONE),
        "subfolder": Code("warning", "only files directly in the folder are read", _NONE),
        "unreadable_file": Code("error", "the file cannot be opened", _E,
            advice="send the file again, readable and not as a link", names_file=True),
    },
    "The bytes": {
        "byte_order_mark": Code("warning", "the file begins with a byte order mark", _E,
            advice="write the file as UTF-8 without a byte order mark", fix="taken off"),
        "damaged_gzip": Code("error", "the gzip file is damaged or cut short", _E,
            advice="pack and send the file again", names_file=True),
        "empty_file": Code("error", "there is nothing in the file", _E, advice="send the file again"),
        "not_json": Code("error", "the text is not JSON", _E,
            advice="write the file with a JSON library and read it back before sending it"),
        "packed_otherwise": Code("error", "packed or archived, but not as gzip", _E,
            advice="unpack the file, or pack it with gzip"),
        "python_literal": Code("error", "True, False or None where JSON has true, false, null", _E,
            advice="write the file with a JSON library (`json.dump`), not with `str` or `print`"),
        "too_large": Code("error", "more bytes than `--max-file-size`, unpacked or not, so not read", _NONE,
            advice="send runs only", names_file=True),
        "too_many_values": Code("error", "more JSON values than any run has, so not read", _NONE,
            advice="send runs only"),
        "truncated_json": Code("error", "the file or line ends in the middle of the JSON", _E,
            advice="send the whole file again"),
        "unknown_format": Code("error", "JSON, but not a run in a known format", _E,
            advice="use the field names of the track's guidelines"),
        "wrong_encoding": Code("error", "the text is not UTF-8", _E, advice="write the file as UTF-8"),
    },
    "The form": {
        "coerced_value": Code("warning", "a number in another form, such as a string", _NONE,
            advice="write numbers as JSON numbers, without quotes",
            cause="the program that wrote the run writes numbers as text",
            fix="ranks, scores and PTKB numbers are written as numbers"),
        "inconsistent_metadata": Code("warning", "lines of one run give different metadata", ("", "", "–"),
            advice="give every line of the run the same metadata"),
        "missing_field": Code("error", "a mandatory field is not there", ("E, rank W", "E, rank W", "E, rank –"),
            advice="add the field", cause="the program that wrote the run has another name for the field"),
        "several_runs": Code("error", "a line belongs to another run than the first", ("", "", "–"),
            advice="send one file a run"),
        "too_many_responses": Code("error", "more responses than a turn or a run may have, so not read", _NONE,
            advice="list the best responses of each turn only"),
        "wrong_table": Code("error", "a table whose columns or rows are no questions and answers", _NONE,
            advice="name the columns as the documentation lists them, and give every row a question"),
        "too_many_turns": Code("error", "more turns than a run may have, so not read", _NONE,
            advice="give every turn once"),
        "unknown_field": Code("warning", "the format has no such field", ("E", "E", "–"),
            advice="correct the field's name if it is misspelt, else leave it out",
            cause="the program that wrote the run has another name for a field, or adds its own"),
        "unusable_text": Code("error", "NUL or a lone surrogate in a text or name", _NONE,
            advice="take out NUL characters and broken Unicode"),
        "wrong_type": Code("error", "a value of another type than the format's", ("E", "E", "partly"),
            advice="write the value in the type that the guidelines name",
            cause="the program that wrote the run writes the field in another type"),
    },
    "Pools and banks": {
        "duplicate_response_id": Code("error", "a pool names a response twice for a turn",
            advice="name each response once for a turn"),
        "malformed_line": Code("error", "a line of a pool has not six columns",
            advice="write six columns: turn_id Q0 response_id rank score tag"),
        "missing_bank": Code("error", "a pool without its bank", advice="put the bank with the texts beside the pool"),
        "missing_pool": Code("error", "a bank without its pool, or with several",
            advice="put one pool beside the bank"),
        "not_in_bank": Code("error", "the bank has no text for a response id", advice="add the response to the bank"),
    },
    "The run": {
        "absent_evidence": Code("warning", "in most turns a used passage does not exist, so few can be judged by it",
            _NONE, advice="name only passages of the collection as used, by their ids", needs="hashes",
            cause="ids are of another collection or cut into passages in another way, or were made up"),
        "duplicate_run_id": Code("error", "two runs have the same id", _NONE, advice="give every run a name of its own",
            page="the run id {} is also that of another submitted run"),
        "empty_run_id": Code("error", "the run has no name", ("W", "W", "–"), advice="give the run a name"),
        "empty_run_type": Code("warning", "the run has no type", ("W, absent E", "W, absent E", "E"),
            advice="give the run type"),
        "empty_team": Code("warning", "the run has no team", ("", "", "–"), advice="give the team's name"),
        "no_turns": Code("error", "the run has no turns", ("log", "log", "E"), advice="add the turns"),
        "similar_run_ids": Code("error", "run ids that only case, outer white space or Unicode form tells apart", _NONE,
            advice="give every run a name that differs in more than case, white space or accents' encoding",
            page="the run id {} cannot be told apart by eye from that of another submitted run"),
        "unknown_run_type": Code("warning", "the format has no such run type", ("W", "W", "E"),
            advice="use a run type of the guidelines"),
        "unusable_run_id": Code("error", "a run id with unprintable characters or of excessive length", _NONE,
            advice="use a short name of printable characters"),
        "wrong_profile": Code("error", "`--profile` names a year whose runs are of another format",
            advice="send the run in the format of the track's year"),
    },
    "Turns": {
        "duplicate_turn": Code("error", "a turn id was already given; only the first counts", _NONE,
            advice="give every turn once", cause="turns were written twice, or each response as a turn of its own"),
        "malformed_turn_id": Code("error", "not of the form topic_turn", _E,
            advice="use the turn ids of the topics file", cause="topic and turn number are joined in another way"),
        "missing_turn": Code("error", "a turn of the topics is not in the run", _E, advice="add the turn",
            cause="the run stopped early, or leaves out the turns of some topics", needs="topics"),
        "no_response": Code("error", "a turn without a response", _NONE, advice="add a response",
            cause="the run stopped early"),
        "turn_number_too_high": Code("error", "the topic has fewer turns", _E,
            advice="use the turn ids of the topics file", cause="turns of the system are numbered too", needs="topics"),
        "unknown_turn": Code("error", "the topics have no such turn", _E, advice="use the turn ids of the topics file",
            cause="the run is for other topics, or for other turns of them", needs="topics"),
        "wrong_topics": Code("error", "by its turns or PTKB statements the run is for other topics", _E,
            advice="send the run for the topics of this track", needs="topics"),
    },
    "Interactive runs": {
        "empty_utterance": Code("warning", "a turn in which the user said nothing", advice="give the user's utterance",
            cause="the program that wrote the run had no utterances"),
        "missing_exchange": Code("warning", "a turn before this one is not in the run, so its context has a gap",
            advice="give every turn of a topic, from 0 or 1 on", cause="turns with an empty response were left out"),
        "utterance_differs": Code("warning", "two responses of a turn have different utterances of the user",
            advice="give every response of a turn the same utterance", cause="turns of several dialogues were joined"),
    },
    "Responses": {
        "bad_rank": Code("error", "a rank that is not between 1 and 1,000,000", ("W", "W", "–"),
            advice="number the responses of a turn 1, 2, 3, …", cause="ranks are numbered from 0, or have no value"),
        "duplicate_rank": Code("error", "a rank was already given in the turn; only the first counts", _NONE,
            advice="number the responses of a turn 1, 2, 3, …", cause="every response has the same rank"),
        "empty_text": Code("error", "no text, or only white space", ("W", "W", "–"),
            advice="add the text of the response", cause="the generation failed and nothing was written for it"),
        "joined_words": Code("warning", "invisible characters, signs or long words hide how long the text is", _NONE,
            advice="write words of a language with spaces between them, without invisible characters"),
        "no_rank_one": Code("warning", "no response of the turn has rank 1", _NONE,
            advice="number the responses of a turn 1, 2, 3, …",
            cause="ranks are numbered from 0 or on from another turn"),
        "over_token_limit": Code("warning", "more tokens than allowed", ("–", "–", "cuts"),
            advice="shorten the response", cause="the limit was not given to the generation, or counted in another way",
            fix="the text is cut at the end of a token"),
        "ranks_not_increasing": Code("warning", "a rank below that of the response before", _NONE,
            advice="list the responses of a turn by rank", cause="responses are listed from the last to the first rank",
            fix="the responses of a turn are ordered by rank"),
        "text_too_long": Code("error", "too long to be judged at all", _NONE, advice="shorten the text"),
    },
    "Passages": {
        "citation_not_in_references": Code("warning", "a cited passage is not among the turn's references",
            ("", "", "E"), advice="list every cited passage among the turn's references",
            cause="references were cut after the response was generated"),
        "duplicate_passage": Code("warning", "a passage is twice in a list", ("–", "–", ""),
            advice="list each passage once, at its best rank", cause="results of several retrievals were joined",
            fix="the best of them is kept, and is used if any was"),
        "equal_scores": Code("warning", "a passage has the score of the one before", _NONE,
            advice="give the passages scores that fall strictly with their rank",
            cause="scores were rounded, or are the same by construction"),
        "malformed_passage_id": Code("warning", "not of the form of the collection's ids", _W,
            advice="use the passage ids of the collection", cause="ids are of documents, or of another collection"),
        "missing_score": Code("warning", "a passage without a score", ("–", "–", "E"),
            advice="give every passage a score", cause="passages were reordered without scores"),
        "missing_used": Code("warning", "some passages of a list are marked as used, others have no mark at all",
            ("–", "–", ""), advice="say `true` or `false` of every passage",
            cause="only used passages were given a mark", fix="passages without a flag are flagged as not used"),
        "no_provenance": Code("warning", "a response without passages", ("W", "W", "–, absent E"),
            advice="name the passages that the response rests on",
            cause="the response was generated without retrieval, or retrieval found nothing"),
        "no_used_passage": Code("warning", "no passage is marked as used; five count, by score or by the list",
            ("W", "W", "–, absent E"), advice="mark the passages that the response rests on as used",
            cause="the run does not record what the response used",
            fix="the five passages that count are flagged as used, the others as not used"),
        "passage_text_differs": Code("warning",
            "the run's text of a passage is not the collection's, so no judge is shown it", _NONE,
            advice="give the passage's text as the collection has it, or leave it out",
            cause="texts were cleaned or cut, or come from another copy of the collection", needs="hashes"),
        "score_not_finite": Code("warning", "a score that is NaN or infinite", _NONE,
            advice="give every passage a finite score"),
        "scores_not_decreasing": Code("warning", "a passage has a higher score than the one before", ("W", "W", "–"),
            advice="list the passages by falling score", cause="passages were reordered and kept their first scores",
            fix="passages, references and citations are ordered by score, where all scores are numbers"),
        "too_many_citations": Code("warning", "more used passages than `--citation-limit`", _NONE,
            advice="cite the passages that the response rests on, and no more", cause="the whole ranking was cited"),
        "too_many_passages": Code("warning", "more than 1000 passages", ("W", "W", "E"),
            advice="keep the 1000 best passages", cause="the whole ranking was written"),
        "unknown_passage": Code("warning", "the collection has no such passage", ("W", "W", "–"),
            advice="use passages of the collection, with their ids",
            cause="ids are of another collection or cut into passages in another way, or were made up", needs="hashes"),
        "unusable_passage_id": Code("error", "an empty, overlong or unprintable passage id", _W,
            advice="use the passage ids of the collection"),
    },
    "Citations of sentences": {
        "blank_sentence": Code("warning", "a sentence without text", advice="leave the sentence out",
            cause="the generation ended with empty lines", fix="the sentence is left out"),
        "duplicate_citation": Code("warning", "a sentence cites a passage twice, which counts once",
            advice="cite each passage once in a sentence", fix="the first is kept"),
        "missing_metadata": Code("warning", "metadata lacks what the track's year asks for", advice="add the member"),
        "narrative_differs": Code("warning", "the metadata's narrative is not the topic's text",
            advice="copy the narrative of the topics file"),
        "over_topic_limit": Code("warning", "more characters than the topic allows", advice="shorten the response"),
        "too_many_citations_of_sentence": Code("warning", "a sentence with more citations than are looked at",
            advice="cite the passages that the sentence rests on most"),
        "too_many_references": Code("warning", "more references than the year allows", advice="list the best ones"),
        "uncited_reference": Code("warning", "a reference that no sentence cites", advice="list only what is cited",
            cause="the whole ranking was written"),
        "unknown_citation": Code("warning", "a citation by the number of no reference, which does not count",
            advice="number the references from 0", cause="references are numbered from 1"),
    },
    "PTKB": {
        "duplicate_ptkb": Code("warning", "a statement is twice in a list", _NONE, advice="list each statement once",
            cause="statements were collected for each passage",
            fix="the first is kept, unless another says something else"),
        "empty_ptkb": Code("warning", "a statement without text", ("E", "", "–"),
            advice="give the statement's text, or leave the statement out",
            cause="the program that wrote the run had no texts of statements"),
        "invalid_ptkb_id": Code("warning", "not the number of a statement", ("E", "E, 0 –", ""),
            advice="use the numbers of the statements in the topics file, from 1",
            cause="statements are numbered from 0"),
        "missing_ptkb_score": Code("warning", "a statement without a score, in the format that gives them one",
            ("–", "", ""), advice="give every statement a score", cause="statements were chosen without scores"),
        "no_ptkb": Code("warning", "a response without PTKB statements", ("W", "W", "–, absent E"),
            advice="name the statements that the response takes into account, if there are any",
            cause="the run does not choose statements, or chose none"),
        "ptkb_scores_not_decreasing": Code("warning", "a statement's score is not below that of the one before",
            ("W", "", ""), advice="list the statements by strictly falling score",
            cause="statements are listed in the order of the topic"),
        "ptkb_text_differs": Code("warning", "a statement's text is not the topic's", ("E", "", ""),
            advice="use the statements of the topics file, word by word",
            cause="statements were reworded, or numbered in another way", needs="topics"),
        "unknown_ptkb_id": Code("warning", "the topic has no such statement", ("E", "E", ""),
            advice="use the numbers of the statements in the topics file",
            cause="statements are numbered in another way, or of another topic", needs="topics"),
    },
    "Topics files": {
        "broken_parent": Code("error", "a node's parent is not in its tree, or is below it", _NONE),
        "duplicate_topic": Code("error", "two topics have the same number", _NONE),
        "unknown_statement": Code("error", "a turn names a PTKB statement that its topic does not have", _NONE),
    },
}
"""Heading in the documentation to the rows below it. Codes are stable."""
# fmt: on

CODES = {code: row for rows in SECTIONS.values() for code, row in rows.items()}
"""Code to its row."""
NEEDS_TOPICS = tuple(sorted(code for code, row in CODES.items() if row.needs == "topics"))
"""Codes of the checks that need topics."""
NEEDS_HASHES = tuple(sorted(code for code, row in CODES.items() if row.needs == "hashes"))
"""Codes of the checks that need the collection's hash list."""
