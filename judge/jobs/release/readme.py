"""The page that says what each file of a bundle is and how far to believe it. Pure."""

from collections.abc import Iterable

from judge.ask.returned import settled_notes
from judge.io.bundle import __version__
from judge.io.cells import count, markdown_cell
from judge.jobs.index import TURNS_WORDS, listed_files
from judge.jobs.judged import JudgedFolder
from judge.jobs.manifest import MANIFEST, RECORD
from judge.jobs.release.contents import Texts
from judge.pool.folder import TURNS
from judge.records import JudgedUnit
from judge.results.rows import worded

README = "README.md"
_FILES = (
    ("leaderboard.md", "per run and criterion: rank, mean, interval, and why turns have no grade"),
    ("leaderboard.tsv", "the same as a table"),
    ("differences.tsv", "every two runs, and whether they can be told apart"),
    ("sentences.tsv", "per run and label of a sentence: how many sentences have it, contradicted ones among them"),
    ("citations.tsv", "per run: how many used passages support a sentence, and how many sentences a passage supports"),
    (
        "qrels/*.qrel",
        "the grades as qrels: id of the turn, 0, id of the response, grade; `.llm`, since a model gave them",
    ),
    ("qrels/*.json", "for each of them the judge, the prompt and the scale"),
    ("response_runs/*.run", "each run as TREC run lines over response ids"),
    ("bank.json", "response id to text"),
    ("pool.txt", "what was pooled, as a TREC pool"),
    ("pool.jsonl", "the same in full: texts, ids of passages, lengths, and which runs gave them"),
    ("judgments.jsonl", "every grade"),
    ("failures.jsonl", "every judgment that is missing, and why"),
    ("members.jsonl", "what each member of the jury said"),
    ("member_failures.jsonl", "the judgments of members that are missing, and why"),
    ("recheck.jsonl", "the second answer to the questions that were asked again"),
    ("passages.jsonl", "the passages that the responses used"),
    ("runs.jsonl", "the runs, and the turns that each had to answer"),
    ("interactive.tsv", "interactive runs topic by topic: how many turns, mean, and topics never reached as the worst"),
    (TURNS, TURNS_WORDS["response"]),
    ("excluded.tsv", "what was not judged, and why"),
    ("missing_passages.tsv", "used passages without a text"),
    ("screen.tsv", "responses that are empty, repeated, copied, off their passages or not English"),
    ("prompts/*", "the prompts as the judge got them, before the texts were filled in"),
    (MANIFEST, "how the grades were made: versions, options, digests of topics, prompts and pool"),
    (RECORD, "digests of these files: `sha256sum -c run.sha256` checks a copy"),
)
"""A file or a pattern of files, and what it holds; the most wanted first."""


def readme(names: Iterable[str], judged: JudgedFolder, texts: Texts, *, hidden: bool, license: str | None) -> bytes:
    """The page.

    Args:
        names: The other files.
        judged: The folder that the bundle was made of.
        texts: Which texts of others are in it.
        hidden: Whether runs and teams have pseudonyms.
        license: The terms of use; None where none are named.
    """
    held = {*names, RECORD}
    unit = judged.pool.unit
    rows = listed_files(_FILES, held, unit)
    runs, responses = count(len(judged.pool.runs), "run"), count(len(judged.pool.responses), f"pooled {unit}")
    prompts = ", ".join(criterion.prompt_id for criterion in judged.criteria)
    judges = ", ".join(sorted(set().union(*judged.said_by.values())))
    paragraphs = [
        worded("# Response assessment", unit),
        f"{runs}, {responses}; judged by {markdown_cell(judges)} under {prompts}, with judge {__version__}.",
        f"**{markdown_cell(judged.banner)}**",
        *map(markdown_cell, settled_notes(judged.results)),
        *_left_out(texts, unit, hidden),
        f"Terms of use: {markdown_cell(license)}" if license else "No terms of use are named here.",
        "\n".join(("| file | content |", "|---|---|", *(f"| `{name}` | {words} |" for name, words in rows))),
        "`judge leaderboard .` makes the leaderboard again from these files, and `judge report .` a page for the "
        "browser.",
    ]
    return ("\n\n".join(paragraphs) + "\n").encode()


def _left_out(texts: Texts, unit: JudgedUnit, hidden: bool) -> Iterable[str]:
    if hidden:
        yield "Runs and teams have pseudonyms. Whoever made this bundle keeps the list of their names."
    if not texts.passages:
        yield (
            "The texts of the passages are left out: `passages.jsonl` is empty, and `pool.jsonl` has their ids. After "
            "a `#`, an id has the SHA-256 of a text that the run itself gave."
        )
    if not texts.rationales:
        yield "The judge's own words are left out, since they may quote passages: reasons, and replies that failed."
    yield worded("A response has the text that a run submitted, so it may quote passages.", unit)
