"""Where to start in an output folder: a page that lists its files, each in one sentence. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from judge.jobs.manifest import JOURNAL, MANIFEST, RECORD
from judge.pool.folder import TURNS
from judge.records import JudgedUnit
from judge.results.rows import worded

INDEX = "index.md"


def index_markdown(names: Iterable[str], unit: JudgedUnit) -> bytes:
    """The page on a folder with these files.

    Args:
        names: What the folder holds, beside the files that are in every folder.
        unit: What is judged.
    """
    held = {*names, *_ALWAYS}
    judged = "leaderboard.md" in held
    held |= {JOURNAL} if judged else set()
    start = _JUDGED if judged else _POOLED
    lines = ["# What is in this folder", "", *start, "", "| file | content |", "|---|---|"]
    lines += [f"| `{name}` | {words} |" for name, words in listed_files(_FILES, held, unit)]
    return "\n".join([*lines, ""]).encode()


def listed_files(rows: Sequence[tuple[str, str]], held: Iterable[str], unit: JudgedUnit) -> list[tuple[str, str]]:
    """The rows about files that a folder holds, in the nouns of a unit.

    Args:
        rows: A file or a pattern of files, and what it holds.
        held: The files of the folder.
        unit: What is judged.
    """
    files = set(held)
    return [
        (name, TURNS_WORDS[unit] if name == TURNS else worded(words, unit))
        for name, words in rows
        if any(fnmatchcase(file, name) for file in files)
    ]


_JUDGED = (
    "Start with `leaderboard.md`, or with `report.html` for everything on one page, to open in a browser: `judge run`",
    "leaves it here, and `judge report` on this folder makes it anew, also as `report.md` with pictures.",
)
_POOLED = ("A pool that nobody has judged yet: `judge run` with the same options judges it.",)
_ALWAYS = (MANIFEST, RECORD)
TURNS_WORDS: Mapping[JudgedUnit, str] = {
    "response": "the turns of interactive runs: what the user said, and what led to it",
    "dialogue": "the turns of the dialogues: what the user said, and what led to it",
}
"""What the file of turns holds."""
_FILES = (
    ("leaderboard.md", "per run and criterion: rank, mean, interval, and why turns have no grade"),
    ("leaderboard.tsv", "the same as a table"),
    ("interactive.tsv", "interactive runs topic by topic: how many turns, mean, and topics never reached as the worst"),
    ("differences.tsv", "every two runs, and whether they can be told apart"),
    ("sentences.tsv", "per run and label of a sentence: how many sentences have it, contradicted ones among them"),
    ("citations.tsv", "per run: how many used passages support a sentence, and how many sentences a passage supports"),
    ("qrels/*.qrel", "the grades as qrels; marked `.llm`, since a model gave them"),
    ("qrels/*.json", "for each of them the judge, the prompt and the scale"),
    ("judgments.jsonl", "every grade with its reasons"),
    ("failures.jsonl", "every judgment that is missing, and why"),
    ("members.jsonl", "what each member of the jury said"),
    ("member_failures.jsonl", "the judgments of members that are missing, and why"),
    ("recheck.jsonl", "the second answer to the questions that were asked again"),
    ("pool.txt", "what was pooled, as a TREC pool"),
    ("pool.jsonl", "the same in full: texts, passages, lengths, and which runs gave them"),
    ("bank.json", "response id to text"),
    ("passages.jsonl", "the passages that the responses used"),
    ("response_runs/*.run", "each run as TREC run lines over response ids"),
    ("runs.jsonl", "the runs, and the turns that each had to answer"),
    (TURNS, TURNS_WORDS["response"]),
    ("run_choice.tsv", "which runs were chosen, and by what"),
    ("excluded.tsv", "what was not judged, and why"),
    ("problems.json", "what is wrong with the runs"),
    ("missing_passages.tsv", "used passages without a text"),
    ("screen.tsv", "responses that are empty, repeated, copied, off their passages or not English"),
    ("journal.sqlite", "every completion that was paid for"),
    ("manifest.json", "how all of this was made: command, versions, digests of inputs and prompts, counts"),
    ("run.sha256", "digests of these files: `sha256sum -c run.sha256` checks a copy"),
)
"""A file or a pattern of files, and what it holds; the most wanted first."""
