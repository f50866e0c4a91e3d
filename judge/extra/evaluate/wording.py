"""BLEU and ROUGE of runs against manual responses: what `judge evaluate wording` does, for use from Python.

K. Papineni, S. Roukos, T. Ward & W.-J. Zhu (2002), BLEU: a method for automatic evaluation of machine translation, ACL.
C.-Y. Lin (2004), ROUGE: a package for automatic evaluation of summaries, ACL workshop. M. Post (2018), A call for
clarity in reporting BLEU scores, WMT.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, get_args

from judge.errors import InputError, UsageError
from judge.extra.evaluate import MeasuredRun, measured_run
from judge.extra.evaluate.intake import RunTexts, named_once, remarks_on
from judge.io.files import StrPath
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import Cluster, clustering, groups_of, natural_key, topic_of
from judge.io.installed import need_extra
from judge.io.plan import Option
from judge.io.steps import Steps, quiet
from judge.io.table import Cell, Table
from judge.io.text import count
from judge.jobs.options import ClusterUnit
from judge.records import Problem, Record, file_problem
from judge.runs.formats import find_runs, read_run, rules_of
from judge.runs.records import Topic
from judge.runs.topics import read_topics

_WORD = r"(?V1)\p{Han}|\p{Hiragana}|\p{Katakana}|(?:[[\p{L}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]\p{M}*)+"


def rouge_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; a character of Chinese or Japanese is a word, since no space ends one.

    In a text of ASCII they are those of rouge-score before it stems them.

    >>> rouge_words("Café no. 9, naïve_x: 茶です")
    ['café', 'no', '9', 'naïve', 'x', '茶', 'で', 'す']
    """
    words: list[str] = _pattern().findall(text.lower())
    return words


@functools.cache
def _pattern() -> Any:
    import regex

    return regex.compile(_WORD)


RougeName = Literal["rouge1", "rouge2", "rougeL"]
ROUGES: tuple[RougeName, ...] = get_args(RougeName)


class CorpusBleu(NamedTuple):
    """BLEU of all texts together, which is no mean over texts."""

    value: float
    """From 0 to 100."""
    signature: str
    """The settings, as sacrebleu writes them."""


def corpus_bleu(texts: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusBleu:
    """BLEU with n-grams up to four words, in sacrebleu's standard settings.

    Each text has one reference or more; an empty one has no n-gram and makes all texts together shorter.
    """
    from sacrebleu.metrics import BLEU

    # `force` only keeps a warning back.
    bleu = BLEU(force=True)
    most = max(map(len, references))
    streams = [[given[place] if place < len(given) else None for given in references] for place in range(most)]
    return CorpusBleu(float(bleu.corpus_score(texts, streams).score), str(bleu.get_signature()))


def rouge_scores(
    texts: Mapping[str, str], references: Mapping[str, Sequence[str]]
) -> dict[RougeName, dict[str, float]]:
    """F of each ROUGE and turn, against the reference that is best for it.

    Words are those of `rouge_words`; those of ASCII are stemmed by Porter's rules, as rouge-score does. A turn whose
    references have no word has no value: there is nothing that a text could share.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGES), tokenizer=_tokenizer())
    values: dict[RougeName, dict[str, float]] = {name: {} for name in ROUGES}
    for turn_id, text in texts.items():
        if not has_words(references[turn_id]):
            continue
        best = scorer.score_multi(references[turn_id], text)
        for name in ROUGES:
            values[name][turn_id] = float(best[name].fmeasure)
    return values


def has_words(references: Sequence[str]) -> bool:
    """Whether some reference has a word for ROUGE."""
    return any(map(rouge_words, references))


def _tokenizer() -> Any:
    """A tokenizer for rouge-score, which leaves words of up to three letters as they are."""
    from nltk.stem.porter import PorterStemmer

    stem = PorterStemmer().stem
    return SimpleNamespace(
        tokenize=lambda text: [stem(word) if len(word) > 3 and word.isascii() else word for word in rouge_words(text)]
    )


LONGEST = 4000
"""The most words of a text; the longest common subsequence of two takes time and memory by their product."""


def run_texts(
    given: StrPath | Sequence[StrPath], problems: list[Problem], leave: Iterable[Path] = (), steps: Steps = quiet
) -> Iterator[RunTexts | str]:
    """The runs of folders and files, one at a time, or why a file is left out.

    Arguments are those of `ranked_runs`; `leave` are files that are no runs to measure.
    """
    files, beside = find_runs(given)
    problems += beside
    left = {path.resolve() for path in leave}

    def read(path: Path) -> RunTexts | str:
        if path.resolve() in left:
            return f"{path}: is a reference, so it is not measured"
        interactive = f"{path}: an interactive run, whose turns are its own, so no manual response is of them"
        return read_texts(path) or interactive

    for run in named_once(files, read, problems, steps):
        if not isinstance(run, str):
            problems += too_long(run.texts, run.file)
        yield run


def read_texts(path: Path) -> RunTexts | None:
    """The texts of one run file, None for an interactive run; an InputError if it is no run."""
    read = read_run(path)
    if read.run is None:
        raise InputError(f"{path}: not a run", read.problems)
    if rules_of(read.run.format).own_turns:
        return None
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for turn in read.run.turns:
        if turn.turn_id in seen:
            continue
        seen.add(turn.turn_id)
        first = min(turn.responses, key=lambda response: response.rank, default=None)
        if first is not None and first.text.strip():
            texts[turn.turn_id] = first.text
    return RunTexts(read.run.run_id, str(path), texts, remarks_on(read, len(seen)))


def read_references(
    files: Sequence[Path], topics: Sequence[Topic], topics_name: str
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Turn to its manual responses, in natural order: those of the files in their order, then that of the topics."""
    problems: list[Problem] = []
    remarks: list[str] = []
    sources: list[tuple[str, Mapping[str, str]]] = []
    for path in files:
        try:
            run = read_texts(path)
        except InputError as error:
            problems += error.problems or (file_problem("unreadable_run", path, str(error).removeprefix(f"{path}: ")),)
            continue
        if run is None:
            message = "an interactive run: its turns are its own, so they are no references for other runs"
            problems.append(file_problem("interactive_reference", path, message))
            continue
        remarks += [f"{path}: {remark}" for remark in run.remarks]
        sources.append((str(path), run.texts))
    turns = (turn for topic in topics for turn in topic.turns)
    canonical = {turn.turn_id: turn.response for turn in turns if turn.response and turn.response.strip()}
    sources.append((topics_name, canonical))
    problems += (problem for name, texts in sources for problem in too_long(texts, name))
    found = groups_of(pair for _, texts in sources for pair in texts.items())
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InputError(f"not usable as references: {count(len(errors), 'problem')}", errors)
    if not found:
        named = ", ".join([*map(str, files), *([topics_name] if topics_name else [])])
        raise InputError(f"{named}: no turn has a manual response: expected a manual run, or topics with responses")
    return {turn_id: tuple(found[turn_id]) for turn_id in sorted(found, key=natural_key)}, tuple(remarks)


def too_long(texts: Mapping[str, str], file: str) -> list[Problem]:
    """A problem for each text with more than LONGEST words."""
    return [
        Problem("text_too_long", "error", file, turn_id, "", f"{words} words: expected at most {LONGEST}")
        for turn_id, text in texts.items()
        if (words := len(rouge_words(text))) > LONGEST
    ]


OverReferences = Literal["references", "answered"]
"""references: every turn with a reference; one that the run did not answer counts as an empty text. answered: those
that the run answered."""
WORTH = (
    "BLEU and ROUGE reward the words of a manual response: a right answer in other words scores low. They were found "
    "to agree weakly or not at all with people's judgments of responses in dialogues (Liu et al., EMNLP 2016)."
)


class WordedRun(Record, frozen=True):
    """A run under BLEU and ROUGE."""

    run_id: str
    answered: int
    """Turns with a reference that the run answered."""
    bleu: CorpusBleu | None
    """None without a turn to measure."""
    rouge: dict[RougeName, MeasuredRun]


def worded_run(
    run: RunTexts, references: Mapping[str, Sequence[str]], over: OverReferences, cluster: Cluster = "topic"
) -> WordedRun:
    """Measure a run."""
    texts = {turn_id: run.texts[turn_id] for turn_id in references if turn_id in run.texts}
    turns = list(references) if over == "references" else list(texts)
    bleu = corpus_bleu([texts.get(turn, "") for turn in turns], [references[turn] for turn in turns]) if turns else None
    comparable = [turn for turn, given in references.items() if has_words(given)]
    rouge = {
        name: measured_run(
            run.run_id, name, values, comparable, "qrels" if over == "references" else "answered", cluster=cluster
        )
        for name, values in rouge_scores(texts, references).items()
    }
    return WordedRun(run.run_id, len(texts), bleu, rouge)


def wording_grid(
    runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]], notes: Sequence[str]
) -> Table[Any]:
    """A line for each run, best ROUGE-L first."""
    n = len(references)
    lines: list[tuple[Cell, ...]] = [
        (run.run_id, run.bleu and run.bleu.value, *(run.rouge[name].estimate for name in ROUGES), run.answered, n)
        for run in sorted(runs, key=lambda run: (-(run.rouge["rougeL"].estimate.value or 0.0), natural_key(run.run_id)))
    ]
    return Table(lines, ("run", "bleu", *ROUGES, "answered", "references"), "Wording", notes, places=3)


def turns_grid(runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]]) -> Table[Any]:
    """A line for each run and turn with a reference; no value where the run did not answer and it does not count."""
    lines: list[tuple[Cell, ...]] = [
        (run.run_id, turn_id, len(given), *(run.rouge[name].turns.get(turn_id) for name in ROUGES))
        for run in sorted(runs, key=lambda run: natural_key(run.run_id))
        for turn_id, given in references.items()
    ]
    return Table(lines, ("run", "turn", "references", *ROUGES), "Turns")


class WordingPlan(ClusterUnit):
    """Everything `judge evaluate wording` can be told."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")]
    """Run files, or folders of them, in any format of the tracks."""
    references: Annotated[tuple[Path, ...], Option("reference", metavar="FILE")] = ()
    """Manual runs, whose first response in a turn is a reference; several give a turn several."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, whose canonical responses are references too."""
    over: OverReferences = "references"
    """Turns with a reference, unanswered ones as empty texts, or those answered."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for the table in all forms, and the values of all turns."""


class WordingOutcome(Record, frozen=True):
    """Runs under BLEU and ROUGE, as a table for people too; what was passed over is said, a sentence each."""

    runs: Table[WordedRun]
    grid: Table[Any]
    warnings: tuple[str, ...]


def evaluate_wording(plan: WordingPlan, steps: Steps = quiet) -> WordingOutcome:
    """Measure the wording of runs against manual responses, and write the tables if the plan names a folder.

    An InputError if a run has no turn with a reference.
    """
    need_extra("bleu", "BLEU")
    need_extra("rouge", "ROUGE")
    if not plan.references and plan.topics is None:
        raise UsageError("no manual response: expected --reference FILE, or --topics FILE with canonical responses")
    inputs = [*plan.references, *([plan.topics] if plan.topics is not None else [])]
    if plan.out is not None:
        check_apart(plan.out, [*plan.runs, *inputs], plan.runs)
    topics = read_topics(plan.topics) if plan.topics is not None else ()
    references, remarks = read_references(plan.references, topics, str(plan.topics or ""))
    warnings = list(remarks)
    problems: list[Problem] = []
    runs: list[WordedRun] = []
    for run in run_texts(plan.runs, problems, plan.references, steps):
        if isinstance(run, str):
            warnings.append(run)
            continue
        warnings += [f"{run.file}: {remark}" for remark in run.remarks]
        if not references.keys() & run.texts.keys():
            problems.append(file_problem("no_common_turn", run.file, "answers no turn that has a manual response"))
        elif not any(problem.severity == "error" for problem in problems):
            runs.append(worded_run(run, references, plan.over, plan.cluster))
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InputError(f"runs that cannot be measured: {count(len(errors), 'problem')}", errors)
    warnings += [f"{problem.file}: {problem.message}" for problem in problems]
    if not runs:
        raise InputError(f"no run is left to measure: {'; '.join(warnings)}")
    grid = wording_grid(runs, references, _notes(plan, runs, references))
    if plan.out is not None:
        files = grid.files("runs") | {"turns.tsv": turns_grid(runs, references).tsv().encode()}
        replace_folder(plan.out, files, "wording.sha256", inputs=[*inputs, *find_runs(plan.runs)[0]])
    return WordingOutcome(Table(runs), grid, tuple(warnings))


def _notes(plan: WordingPlan, runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    unanswered = "; a turn without an answer counts as an empty text"
    over = f"turns with a manual response{' that the run answered' if plan.over == 'answered' else unanswered}"
    signatures = sorted({run.bleu.signature for run in runs if run.bleu is not None})
    mute = [turn_id for turn_id, given in references.items() if not has_words(given)]
    lacking = f"{count(len(mute), 'turn')} without ROUGE, because no manual response there has a word: "
    return (
        f"Over {over}. bleu: of all turns together, from 0 to 100. rouge1, rouge2, rougeL: means over turns.",
        f"BLEU: {', '.join(signatures)}. ROUGE: F|tok:unicode|stem:porter|refs:best|version:{version('rouge-score')}.",
        *((f"{lacking}{', '.join(mute)}.",) if mute else ()),
        WORTH,
        *clustering(map(topic_of, references), plan.cluster),
    )
