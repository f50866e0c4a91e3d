"""LLMJudge: Tables 3 and 4 (agreement of LLM judges with NIST's assessors) from the released label files."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError, refuse
from judge.extra.reproduce.published import PublishedNumber, ReleasedFile, Reproduction, beside_ours, find_released
from judge.io.files import text_of
from judge.io.ids import QrelRow, parse_qrels
from judge.io.table import Cell, Table, p_cell
from judge.io.tabular import collected
from judge.io.text import count, examples, number
from judge.records import Estimate, Problem, file_problem
from judge.runs.document import file_name
from judge.stats.agreement import point
from judge.stats.comparison import FEWEST_COMPARED, compare
from judge.stats.ranking import halves_tau, kendall_tau_b, orders_tau
from judge.stats.resampling import Resampled, resampled
from judge.stats.separation import compact_letters
from judge.stats.tables import Undefined, defined, topic_tables

TABLE_3: dict[str, tuple[str, str, str, str]] = {
    "NISTRetrieval-instruct0": ("0.1877", "0.3819", "0.9440", "0.9907"),
    "NISTRetrieval-instruct1": ("0.1874", "0.3812", "0.9440", "0.9907"),
    "NISTRetrieval-instruct2": ("0.1880", "0.3821", "0.9440", "0.9907"),
    "NISTRetrieval-reason0": ("0.1844", "0.3874", "0.9052", "0.9810"),
    "NISTRetrieval-reason1": ("0.1845", "0.3872", "0.9009", "0.9802"),
    "NISTRetrieval-reason2": ("0.1838", "0.3874", "0.9052", "0.9810"),
    "Olz-exp": ("0.2519", "0.4701", "0.9009", "0.9819"),
    "Olz-gpt4o": ("0.2625", "0.5020", "0.8793", "0.9758"),
    "Olz-halfbin": ("0.2064", "0.4536", "0.9085", "0.9830"),
    "Olz-multiprompt": ("0.2445", "0.4551", "0.9267", "0.9867"),
    "Olz-somebin": ("0.2109", "0.4471", "0.9042", "0.9822"),
    "RMITIR-GPT4o": ("0.2388", "0.4108", "0.8966", "0.9798"),
    "RMITIR-llama38b": ("0.2006", "0.3873", "0.8879", "0.9758"),
    "RMITIR-llama70B": ("0.2654", "0.4873", "0.9353", "0.9883"),
    "TREMA-4prompts": ("0.1829", "0.2888", "0.9483", "0.9919"),
    "TREMA-CoT": ("0.1961", "0.3852", "0.8956", "0.9799"),
    "TREMA-all": ("0.1471", "0.3855", "0.9138", "0.9863"),
    "TREMA-direct": ("0.1742", "0.3729", "0.9009", "0.9819"),
    "TREMA-naiveBdecompose": ("0.1741", "0.3579", "0.9128", "0.9838"),
    "TREMA-nuggets": ("0.0604", "0.1691", "0.8664", "0.9718"),
    "TREMA-other": ("0.1408", "0.2712", "0.8276", "0.9447"),
    "TREMA-questions": ("0.1137", "0.3148", "0.9095", "0.9839"),
    "TREMA-rubric0": ("0.0779", "0.1036", "0.8276", "0.9544"),
    "TREMA-sumdecompose": ("0.2088", "0.3926", "0.9300", "0.9870"),
    "h2oloo-fewself": ("0.2774", "0.4958", "0.9085", "0.9822"),
    "h2oloo-zeroshot1": ("0.2817", "0.4812", "0.9181", "0.9827"),
    "h2oloo-zeroshot2": ("0.2589", "0.3898", "0.8353", "0.9604"),
    "llmjudge-cot1": ("0.1284", "0.3218", "0.9267", "0.9871"),
    "llmjudge-cot2": ("0.1560", "0.3263", "0.9267", "0.9875"),
    "llmjudge-cot3": ("0.2271", "0.4870", "0.9267", "0.9851"),
    "llmjudge-simple1": ("0.0754", "0.2808", "0.9181", "0.9863"),
    "llmjudge-simple2": ("0.1327", "0.3672", "0.8966", "0.9790"),
    "llmjudge-simple3": ("0.2110", "0.4642", "0.9052", "0.9810"),
    "llmjudge-thomas1": ("0.1236", "0.3207", "0.8664", "0.9689"),
    "llmjudge-thomas2": ("0.1723", "0.3853", "0.8793", "0.9750"),
    "llmjudge-thomas3": ("0.2293", "0.4877", "0.9181", "0.9867"),
    "prophet-setting1": ("0.1823", "0.4069", "0.9042", "0.9826"),
    "prophet-setting2": ("0.1757", "0.3144", "0.9516", "0.9914"),
    "prophet-setting4": ("0.1471", "0.1623", "0.8568", "0.9608"),
    "willia-umbrela1": ("0.2863", "0.4918", "0.9009", "0.9806"),
    "willia-umbrela2": ("0.2688", "0.4556", "0.8870", "0.9769"),
    "willia-umbrela3": ("0.2741", "0.4535", "0.8707", "0.9730"),
}
"""Judge to Cohen's κ, Krippendorff's α, and Kendall's τ and Spearman's ρ of the ranking of the track's runs."""

TABLE_4: dict[tuple[str, str], str] = {
    ("Olz-gpt4o", "kappa 0|123"): "0.4228",
    ("h2oloo-fewself", "kappa 01|23"): "0.4280",
    ("willia-umbrela3", "kappa 012|3"): "0.3215",
}
"""Judge and split of the scale to κ of the two halves: the best of each column, which is all that was at hand."""

SPLIT_SCALES = {"kappa 0|123": 1, "kappa 01|23": 2, "kappa 012|3": 3}
"""Columns of Table 4 to the least grade that counts as relevant."""


SOURCE = (
    "H. A. Rahmani, C. Siro, M. Aliannejadi, N. Craswell, C. L. A. Clarke, G. Faggioli, B. Mitra, P. Thomas & "
    "E. Yilmaz (2025), Judging the Judges: A Collection of LLM-Generated Relevance Judgements, arXiv:2502.13908"
)
FOLDERS = {"judges": "*.txt", "submissions/scores": "*.txt", "scores": "*.txt", "data": "*-*.txt", ".": "*-*.txt"}
"""Where the label files may lie, and their names; `submissions/scores` is the release's own folder.

The first that has any is taken. A judge is called `team-run`; where other texts lie too, only such names are read.
"""
MOST_JUDGES = 100
"""The most label files; every pair of judges is compared."""
_ORIGIN = "llm4eval/LLMJudge-benchmark on GitHub"
_QRELS = ReleasedFile(
    "qrels", "llmjudge_test_qrel_idx.txt", _ORIGIN, r"llmjudge_test(_qrel_idx)?\.(qrel|txt)(\.gz)?", needed=True
)
NOTES = (
    "Labels off the scale of 0 to 3 count as the nearest grade, as in the authors' notebook; the printed digits of "
    "RMITIR-llama70B are met by this reading only.",
    "The printed α is the ordinal one. By its own digits the best is Olz-gpt4o's (0.5020); the paper's bold is on "
    "another.",
    "Table 3 also prints how each judge's labels rank the track's runs; the runs are not in the release, so τ and ρ "
    "cannot be made again.",
)
_NOT_AT_HAND = "the printed number was not at hand when this was written; compare it with Table 4 yourself"
_NOT_PRINTED = "no judge of Table 3 has this name"


SCALE = (0, 1, 2, 3)
"""The grades of the assessors."""
SEED = 2025
"""Of resampled topics and of exchanges; every judge and statistic has the same draws."""
EXCHANGES = 5_000
"""How often the labels of a pair of judges are exchanged by topic."""
ALPHA = 0.05
_LABELS = {"kappa": "kappa", "alpha_ordinal": "alpha", "wkappa": "wkappa", "ac2": "ac2"}
"""Key of STATISTICS to its column."""


class JudgeLabels:
    """One judge's labels beside the assessors' grades, pair by pair."""

    def __init__(
        self, name: str, given: tuple[int | None, ...], grades: NDArray[np.int64], topics: NDArray[np.int64]
    ) -> None:
        self.name = name
        self.given = given
        """The labels as released; None where there is none."""
        self.grades = grades
        """The assessors' (N,)."""
        self.topics = topics
        """The place of each pair's topic (N,)."""

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The labels as the paper counts them: off the scale is the nearest grade, -1 where there is none (N,)."""
        return np.array([-1 if label is None else min(max(label, SCALE[0]), SCALE[-1]) for label in self.given])

    @cached_property
    def off_scale(self) -> dict[int, int]:
        """Label off the scale to how many pairs have it."""
        return dict(sorted(Counter(label for label in self.given if label is not None and label not in SCALE).items()))

    @property
    def T(self) -> int:
        """The number of topics."""
        return int(self.topics.max()) + 1

    def tables(self, codes: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """C of every topic; by other codes than the judge's where they are given."""
        return topic_tables(self.grades, self.codes if codes is None else codes, self.topics, len(SCALE), self.T)

    def halves(self, least: int) -> NDArray[Any]:
        """C of every topic, where all grades from `least` on are one grade and those below it another."""
        split = np.where(self.codes < 0, -1, self.codes >= least)
        return topic_tables((self.grades >= least).astype(np.int64), split, self.topics, 2, self.T)


def reproduce(folder: Path) -> Reproduction:
    """Make κ and α of every judge again, and say what the labels hold beyond them.

    An InputError if a file is absent or bad; every problem is listed.
    """
    qrels = find_released(folder, (_QRELS,))["qrels"]
    judges = _read(qrels, _label_files(folder, qrels))
    return Reproduction(
        name="llmjudge",
        source=SOURCE,
        numbers=tuple(sorted((each for judge in judges for each in _numbers(judge)), key=lambda each: each.table)),
        beyond=beyond(judges),
        notes=(*NOTES, *_notes(judges)),
    )


def _label_files(folder: Path, qrels: Path) -> list[Path]:
    for place, pattern in FOLDERS.items():
        paths = (path for path in (folder / place).glob(pattern) if path.is_file() and path != qrels)
        found = sorted(path for path in paths if not path.name.startswith("."))
        if len(found) > MOST_JUDGES:
            raise InputError(f"{folder / place}: {len(found)} label files: expected at most {MOST_JUDGES}")
        if found:
            return found
    looked = ", ".join(place for place in FOLDERS if place != ".")
    message = f"looked for label files such as willia-umbrela1.txt here and in {looked}; they come from {_ORIGIN}"
    raise InputError(f"{file_name(folder)}: no labels", [file_problem("missing_file", file_name(folder), message)])


def _read(qrels: Path, paths: Sequence[Path]) -> list[JudgeLabels]:
    """The labels of every judge beside the assessors' grades, in the order of the qrels."""
    problems: list[Problem] = []
    rows = _rows(qrels, problems, range(min(SCALE), max(SCALE) + 1))
    labels = {path: _rows(path, problems) for path in paths}
    keys = {(row.turn_id, row.item_id): place for place, row in enumerate(rows)}
    if rows or not problems:
        for path, found in labels.items():
            problems += _unknown(path, found, keys)
    refuse(problems, f"{file_name(qrels.parent)}: the labels are not usable: {count(len(problems), 'problem')}")
    names = list(dict.fromkeys(row.turn_id for row in rows))
    topics = np.array([names.index(row.turn_id) for row in rows], dtype=np.int64)
    grades = np.array([row.grade for row in rows], dtype=np.int64)
    judges = []
    for path, found in labels.items():
        given: list[int | None] = [None] * len(rows)
        for row in found:
            given[keys[row.turn_id, row.item_id]] = row.grade
        judges.append(JudgeLabels(file_name(Path(path.stem)), tuple(given), grades, topics))
    return judges


def _rows(path: Path, problems: list[Problem], grades: range | None = None) -> tuple[QrelRow, ...]:
    name = file_name(path)
    with collected(problems, "unreadable_file", name):
        if rows := parse_qrels(text_of(path), name, grades):
            return rows
        problems.append(file_problem("empty_file", name, "no line: expected `topic 0 passage grade`"))
    return ()


def _unknown(path: Path, rows: Sequence[QrelRow], keys: dict[tuple[str, str], int]) -> list[Problem]:
    """Labels of pairs that the assessors did not grade: another collection, or damage."""
    unknown = [f"{row.turn_id} {row.item_id}" for row in rows if (row.turn_id, row.item_id) not in keys]
    if not unknown:
        return []
    message = f"{count(len(unknown), 'pair')} of {len(rows)} without a grade in the qrels: {examples(unknown, 3)}"
    return [file_problem("unknown_pair", file_name(path), message)]


def _numbers(judge: JudgeLabels) -> list[PublishedNumber]:
    lacking = judge.given.count(None)
    reason = f"{lacking} of {len(judge.given)} pairs have no label here" if lacking else ""
    absent = _NOT_PRINTED if judge.name not in TABLE_3 else _NOT_AT_HAND
    kappa, alpha = TABLE_3.get(judge.name, (None, None, None, None))[:2]
    cells: list[tuple[str, str, str | None, Estimate]] = [
        ("Table 3", "kappa", kappa, agreement(judge, "kappa").estimate),
        ("Table 3", "alpha", alpha, agreement(judge, "alpha_ordinal").estimate),
        *(
            ("Table 4", measure, TABLE_4.get((judge.name, measure)), agreement(judge, "kappa", least).estimate)
            for measure, least in SPLIT_SCALES.items()
        ),
    ]
    return [
        beside_ours(table, judge.name, measure, published, ours, reason)
        if published is not None
        else PublishedNumber(table, judge.name, measure, None, ours, None, absent)
        for table, measure, published, ours in cells
    ]


def _notes(judges: Sequence[JudgeLabels]) -> list[str]:
    """What is not in the folder, and what print alone says."""
    here = {judge.name for judge in judges}
    absent = [name for name in TABLE_3 if name not in here]
    notes = []
    if absent:
        notes.append(
            f"{len(absent)} of the {len(TABLE_3)} judges of Table 3 have no label file here: {', '.join(absent)}."
        )
    kappas, taus = ([float(printed[place]) for printed in TABLE_3.values()] for place in (0, 2))
    agree = kendall_tau_b(kappas, taus)
    if isinstance(agree, float):
        notes.append(
            f"In print, the {len(TABLE_3)} judges' order by κ and their order by τ agree with a tau-b of "
            f"{number(agree, 2, signed=True)}: a high κ does not foretell a good ranking of runs."
        )
    return notes


@lru_cache(5 * MOST_JUDGES)
def agreement(judge: JudgeLabels, name: str, least: int | None = None) -> Resampled:
    """A statistic of a judge with its intervals; of a split of the scale where `least` is given."""
    tables, grades = (judge.tables(), SCALE) if least is None else (judge.halves(least), (0, 1))
    return resampled(name, tables, grades, np.random.default_rng(SEED))


def beyond(judges: Sequence[JudgeLabels]) -> tuple[Table[Any], ...]:
    """The tables that the publication does not have."""
    ordered = sorted(judges, key=lambda judge: (-_sortable(judge, "kappa"), judge.name))
    grids = [_agreement(ordered), *_ranking(ordered), _stability(ordered)]
    if any(judge.off_scale for judge in ordered):
        grids.append(_off_scale(ordered))
    return tuple(grids)


def _agreement(judges: Sequence[JudgeLabels]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for judge in judges:
        kappa = agreement(judge, "kappa")
        others = (agreement(judge, name).estimate for name in ("alpha_ordinal", "wkappa", "ac2", "bias"))
        lines.append((judge.name, kappa.estimate.n, kappa.estimate, *others, kappa.item, kappa.design_effect))
    columns = ("judge", "pairs", "kappa", "alpha", "wkappa", "ac2", "bias", "kappa_over_pairs", "design_effect")
    notes = (
        "Intervals are over topics, the unit that was sampled. kappa_over_pairs: as if pairs were independent. "
        "design_effect: the variance of kappa over topics, in units of that over pairs.",
        "alpha: ordinal. wkappa: quadratic weights. bias: judge less assessor, in grades.",
    )
    return Table(lines, columns, "Agreement", notes)


def _ranking(judges: Sequence[JudgeLabels]) -> tuple[Table[Any], ...]:
    """The order by κ, with who can be told apart, and every pair."""
    if len(judges) < 2:
        return ()
    place = {judge.name: i for i, judge in enumerate(judges)}
    tables = {(a.name, b.name): _both(a, b) for a, b in combinations(judges, 2)}
    compared = compare(tables, "kappa", SCALE, np.random.default_rng(SEED), permutations=EXCHANGES)
    apart = np.zeros((len(judges), len(judges)), dtype=np.bool_)
    for pair in compared.pairs:
        i, j = place[pair.a], place[pair.b]
        apart[i, j] = apart[j, i] = pair.p_max_t is not None and pair.p_max_t <= ALPHA
    tested = any(pair.p_max_t is not None for pair in compared.pairs)
    letters = compact_letters(apart, range(len(judges)))
    alphas = [_sortable(judge, "alpha_ordinal") for judge in judges]
    ranking: list[tuple[Cell, ...]] = []
    for i, judge in enumerate(judges):
        low, high = 1 + int(apart[i, :i].sum()), len(judges) - int(apart[i, i + 1 :].sum())
        told = (low, high, letters[i], judge.name in compared.best) if tested else (None,) * 4
        ranking.append((judge.name, i + 1, *told, 1 + sum(alpha > alphas[i] for alpha in alphas)))
    notes: tuple[str, ...] = (
        "rank_low, rank_high: the ranks by kappa that the judge may have. letters: judges that share one are not told "
        "apart. may_be_best: not eliminated (model confidence set). All by exchanges of labels in whole topics, max-T "
        "over all pairs, 5 %.",
        f"{int(apart.sum()) // 2} of {count(len(compared.pairs), 'pair')} told apart.",
    )
    if not tested:
        notes = (f"fewer than {FEWEST_COMPARED} topics, or no kappa: no judge is told from another.",)
    columns = ("judge", "rank", "rank_low", "rank_high", "letters", "may_be_best", "rank_by_alpha")
    pairs: list[tuple[Cell, ...]] = [
        (pair.a, pair.b, pair.difference, *map(p_cell, (pair.p, pair.p_max_t, pair.p_holm))) for pair in compared.pairs
    ]
    by_pair = ("a", "b", "a_less_b", "p", "p_max_t", "p_holm")
    of_pairs = ("p: of the pair alone. p_max_t, p_holm: adjusted for all pairs.",)
    return (Table(ranking, columns, "Ranking", notes), Table(pairs, by_pair, "Pairs", of_pairs))


def _both(a: JudgeLabels, b: JudgeLabels) -> tuple[NDArray[Any], NDArray[Any]]:
    """The tables of two judges on the pairs that both labeled."""
    both = (a.codes >= 0) & (b.codes >= 0)
    if both.all():
        return a.tables(), b.tables()
    return a.tables(np.where(both, a.codes, -1)), b.tables(np.where(both, b.codes, -1))


def _stability(judges: Sequence[JudgeLabels]) -> Table[Any]:
    tables = [judge.tables() for judge in judges]
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "tau_b of two orders of the judges. Halves: the mean over 500 random halvings, without an interval; all topics "
        "order the judges better than half of them. Two statistics: percentile interval over resampled topics."
    ]
    for name, label in _LABELS.items():
        halves = halves_tau(tables, name, SCALE, np.random.default_rng(SEED))
        lines.append((f"{label}: one half of the topics, the other", defined(halves)))
        notes += [f"{label}: {halves.reason}"] if isinstance(halves, Undefined) else []
    for name, label in list(_LABELS.items())[1:]:
        tau = orders_tau(tables, ("kappa", name), SCALE, np.random.default_rng(SEED))
        lines.append((f"kappa, {label}", tau))
        notes += [f"kappa, {label}: {tau.reason}"] if tau.reason else []
    return Table(lines, ("orders", "tau_b"), "Stability", notes)


def _off_scale(judges: Sequence[JudgeLabels]) -> Table[Any]:
    """κ and α by three readings of labels off the scale."""
    lines: list[tuple[Cell, ...]] = []
    for judge in judges:
        if not judge.off_scale:
            continue
        wide = tuple(sorted((*SCALE, *judge.off_scale)))
        places = {grade: place for place, grade in enumerate(wide)}
        own = np.array([-1 if label is None else places[label] for label in judge.given])
        human = np.array([places[grade] for grade in judge.grades.tolist()])
        on = np.array([label in SCALE for label in judge.given])
        readings: tuple[tuple[str, NDArray[Any], tuple[int, ...]], ...] = (
            ("the nearest grade", judge.tables(), SCALE),
            ("missing", judge.tables(np.where(on, judge.codes, -1)), SCALE),
            ("a grade of its own", topic_tables(human, own, judge.topics, len(wide), judge.T), wide),
        )
        named = ", ".join(f"{n} × {label}" for label, n in judge.off_scale.items())
        for reading, tables, grades in readings:
            C = tables.sum(axis=0)
            values = (defined(point(name, C, grades)) for name in ("kappa", "alpha_ordinal"))
            lines.append((judge.name, named, reading, int(C.sum()), *values))
    notes = (
        "The printed numbers are those of the first reading. `judge calibrate` refuses such labels, or with "
        "`--off-scale missing` takes the second.",
    )
    return Table(lines, ("judge", "labels", "read_as", "pairs", "kappa", "alpha"), "Off-scale labels", notes, 6)


def _sortable(judge: JudgeLabels, name: str) -> float:
    """A statistic of a judge; below all values where it is undefined."""
    value = agreement(judge, name).estimate.value
    return -2.0 if value is None else value
