"""Damaged files for every reader: each ends in a result or in one of our errors, never in a traceback.

    FUZZ_INPUTS=1000 python -m pytest tests/test_fuzz.py -k runs

Every input is a valid file (of `examples/`, `prompts/`, `seeds.toml` or made below) that was damaged a few times:
values of JSON replaced, moved, doubled and dropped, cells and lines of tables likewise, bytes flipped, cut and
inserted, the text in another encoding, the whole compressed and damaged once more. Inputs depend on the seed, the
reader and their number alone. `pytest --durations` names the slowest readers: damage may also make one run forever.
"""

import bz2
import contextlib
import copy
import gzip
import io
import json
import lzma
import random
import re
import sqlite3
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from judge.ask.criteria import find_criterion, load_criterion
from judge.ask.results import parse_columns, read_labels
from judge.calibrate.certificate import read_certificate
from judge.calibrate.disagreements import (
    AssessorGrade,
    Disagreement,
    JudgeGrade,
    ShownPassage,
    parse_disagreements,
)
from judge.calibrate.recheck import RecheckedItem, change_lines, recheck_rows
from judge.crowd.known import KnownFile
from judge.crowd.layout import Layout
from judge.crowd.platforms import read_questions
from judge.crowd.tables import read_tables
from judge.errors import InputError, JudgeError
from judge.extra.bench import DATASETS
from judge.extra.bench.card import parse_card
from judge.extra.bench.page import compare_cards
from judge.extra.checkers.onnx import ModelFiles, open_tokenizer, windows
from judge.extra.checkers.served import read_scores
from judge.extra.desk.store import LabelStore
from judge.extra.evaluate.intake import passage_ranking, ranked_runs
from judge.extra.nuggets.forms import FORMS, WRITTEN, bank_bytes, parse_bank
from judge.extra.nuggets.labels import join, read_matches
from judge.extra.nuggets.study import read_study
from judge.gold.draft import ImportOptions, read_bank
from judge.gold.plan import PlanRow, read_plan
from judge.gold.rows import parse_gold, read_gold
from judge.gold.seal import LEDGER, SEAL, read_salt
from judge.gold.sheets import make_sheet
from judge.gold.sheets.kinds import SHEETS, SheetOptions
from judge.gold.sources import import_gold
from judge.io.files import json_bytes, jsonl_bytes, unpack
from judge.io.ids import parse_qrels, response_run, safe_name
from judge.io.text import digest
from judge.jobs.gold import CROWD, read_label_tables
from judge.jobs.manifest import MANIFEST, SCHEMA, OutputFolder
from judge.jobs.results_parquet import ResultsConvertPlan, convert_results
from judge.judges.chat import read_completion
from judge.judges.forms import opening_probabilities, with_probabilities
from judge.judges.journal_store import ADD_META, INSERT, SCHEMA_VERSION, new_row, request_digest
from judge.judges.journal_store import SCHEMA as JOURNAL_SCHEMA
from judge.judges.journal_tools import exported_lines, merge_journals, read_journal, read_spending, verify_journal
from judge.judges.prices import read_prices
from judge.judges.records import AnswerForm, Completion, Message, Request, storable
from judge.passages import read_passages
from judge.passages.hashes import index_hashes, open_hashes
from judge.passages.index import index_collection, read_indexed
from judge.passages.streams import zstd
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl, pool_lines, read_pool, stored_pool
from judge.pool.build import Candidate, LengthRule, build_pool, evidence_of
from judge.pool.conversation import own_turns, turns_shown
from judge.pool.lists import read_families, read_relevance, read_run_ids, read_teams, read_turns
from judge.pool.records import Pool, PooledTurn
from judge.pool.selection import Selection, candidates
from judge.records import Passage, Problem, Scale
from judge.report.folders import CalibrationFolder, read_calibration, read_problems, read_rechecked, read_screen
from judge.report.job import compose, report_markdown
from judge.report.listing import opened_journal, sent
from judge.report.page import Browser, browse, report_page
from judge.runs.check import CODES
from judge.runs.check.validate import validate_run, validate_together
from judge.runs.convert import TARGETS, convert_run
from judge.runs.fix import fixed_copy
from judge.runs.formats import FORMATS, find_runs, read_run, rules_of
from judge.runs.formats.table import read_tables as read_answers
from judge.runs.records import Exchange, Exclusion, Run, RunTurn, Turn
from judge.runs.tokens import TokenCounter
from judge.runs.topics import read_topics
from tests.calibrate.test_certificate import certificate
from tests.calibration_world import failure, judgment, pooled
from tests.conftest import read_ledger
from tests.report_records import calibration

ROOT = Path(__file__).resolve().parents[1]
GRADES = (0, 1, 2, 3)

# What damages a file.

_NEST = 100_000
_RAW = {
    "nan": "NaN",
    "infinity": "-Infinity",
    "overflow": "1e400",
    "digits": "9" * 5000,
    "fraction": "0." + "3" * 5000,
    "deep": "[" * _NEST,
    "deep_object": '{"a":' * 2000 + "1" + "}" * 2000,
    "deep_list": "[" * 500 + "]" * 500,
    "python": "True",
    "octal": "010",
    "minus_zero": "-0",
    "big": "123456789012345678901234567890",
}
"""JSON, and text that is not JSON, that `json.dumps` never writes; a marked string stands for it in a document."""
_MARK, _AGAIN = "\ue000raw:", "\ue000again"
_RAW_MARK = re.compile(r'"(?:\\ue000|\ue000)raw:([a-z_]+)"')
_AGAIN_MARK = re.compile(r'(?:\\ue000|\ue000)again"')
_TEXTS = (
    "", " ", "\0", "a\0b", "\ud800", "\udfff\ud800", "\ufeff", "\u202ea", "\u2028", "\x85", "\r", "\r\n", "\n", "\t",
    "\x1b[2J", "e\u0301", "x" * 300, "ab " * 3000, "\U0001f600" * 100, "1", "-1", "1.5", "nan", "inf", "1e999", "1_000",
    "\u00b2", "\u0661", "\uff11", "9" * 30, "9" * 5000, "0x1", "true", "None", "null", "../../etc/passwd", "/", "%",
    "%41", "a/b", "9-1_1", "9-1_" + "9" * 4400, "_1", "1_", "R00000", "__proto__", "\\u0041", '"', "'", "{",
    "<DOC>", "+++", "clueweb22-en0000-00-00000:0", "MARCO_1-1", "=1+1", "0,1", "[0, 1]",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**64, -(10**30), 0.0, -0.0, 1.5, 1e308, 5e-324, [], {}, [[]],
    [None], {"": ""}, {"a": {"b": [1]}}, [1, "1", None], *(_MARK + name for name in _RAW), *_TEXTS,
)  # fmt: skip
_BYTES = (
    b"\0", b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80",
    b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b"\t\t", b",", b'"', b"\\", b"{", b"}", b"[", b"]", b"\xe2\x80\xa8",
    b"\x1f\x8b", b"BZh9", b"\x28\xb5\x2f\xfd", b"PAR1", b"<DOC>", b"</DOC>", b"<TEXT>", b"+++\n", b"\x1a",
    b" " * 5000, b"A" * 5000,
)  # fmt: skip

Rng = random.Random


def damaged_json(rng: Rng, content: bytes) -> bytes | None:
    """One value of the JSON, or of one line of JSON Lines, is changed; None if there is no JSON."""
    try:
        return _dumped(rng, _damaged_value(rng, json.loads(content))).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        pass
    lines = content.split(b"\n")
    k = rng.randrange(len(lines))
    try:
        value = _damaged_value(rng, json.loads(lines[k]))
    except (ValueError, RecursionError):
        return None
    lines[k] = _dumped(rng, value).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _dumped(rng: Rng, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.8)
    return _AGAIN_MARK.sub('"', _RAW_MARK.sub(lambda match: _RAW[match[1]], text))


def _damaged_value(rng: Rng, value: Any) -> Any:
    places = list(_places(value))
    if not places or rng.random() < 0.02:
        return rng.choice(_VALUES)
    holder, key = rng.choice(places)
    kind = rng.randrange(10)
    if kind < 5:
        holder[key] = copy.deepcopy(rng.choice(_VALUES))
    elif kind == 5:
        del holder[key]
    elif kind == 6:
        source, name = rng.choice(places)
        holder[key] = copy.deepcopy(source[name])
    elif kind == 7 and isinstance(holder, dict):
        holder[f"{key}{_AGAIN}"] = copy.deepcopy(rng.choice((holder[key], *_VALUES)))
    elif kind == 8 and isinstance(holder, dict):
        holder[rng.choice(_TEXTS)] = holder.pop(key) if rng.random() < 0.5 else 1
    elif isinstance(holder, list):
        holder[key:key] = copy.deepcopy(holder[key : key + 1]) * rng.choice((1, 1, 12, 300))
    else:
        holder[key] = [holder[key]]
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and list."""
    stack = [value]
    while stack:
        holder = stack.pop()
        if isinstance(holder, dict | list):
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                stack.append(holder[key])


def damaged_table(rng: Rng, content: bytes) -> bytes:
    """A cell or a line is replaced, dropped, doubled or moved."""
    lines = content.split(b"\n")
    k = rng.randrange(len(lines))
    kind = rng.randrange(8)
    if kind == 0:
        del lines[k]
    elif kind == 1:
        lines[k:k] = [lines[k]] * rng.choice((1, 1, 30))
    elif kind == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(k))
    elif kind == 3:
        lines[k] += rng.choice((b"\r", b"\t", b",", b" ", b"\x0b", b"\0"))
    else:
        separators = [mark for mark in (b"\t", b",", b" = ", b" ") if mark in lines[k]]
        separator = rng.choice(separators) if separators else b"\t"
        cells = lines[k].split(separator)
        text = rng.choice(_TEXTS).encode("utf-8", "surrogatepass")
        c = rng.randrange(len(cells))
        cells[c : c + rng.choice((0, 1, 1, 1, 2))] = [text] * rng.choice((0, 1, 1, 1, 1, 2))
        lines[k] = separator.join(cells)
    return b"\n".join(lines)


def damaged_bytes(rng: Rng, content: bytes) -> bytes:
    """Bytes flipped, dropped, doubled, inserted, or the end cut off."""
    data = bytearray(content)
    a = rng.randrange(len(data) + 1)
    b = min(len(data), a + rng.choice((1, 1, 2, 8, 64, 4096)))
    kind = rng.randrange(6)
    if kind == 0:
        for place in range(a, b):
            data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[a:b]
    elif kind == 2:
        data[a:a] = data[a:b]
    elif kind == 3:
        del data[a:]
    else:
        data[a : b if kind == 4 else a] = rng.choice(_BYTES)
    return bytes(data)


def recoded(rng: Rng, content: bytes) -> bytes:
    """The same text in another encoding, or with other line breaks."""
    kind = rng.randrange(8)
    if kind == 0:
        return b"\xef\xbb\xbf" * rng.choice((1, 1, 2)) + content
    if kind < 3:
        return content.replace(b"\n", (b"\r\n", b"\r")[kind - 1])
    text = content.decode("utf-8", "replace")
    encoding = ("utf-16", "utf-16-be", "utf-32", "latin-1", "utf-7")[kind - 3]
    return text.encode(encoding, "replace")


def packed(rng: Rng, content: bytes) -> bytes:
    """The content compressed, in one piece or two."""
    # Without the time of day, so that the seed alone makes the input.
    gzipped = partial(gzip.compress, mtime=0)
    pack = rng.choice((gzipped, gzipped, bz2.compress, zstd.compress, lzma.compress))
    if rng.random() < 0.3:
        a = rng.randrange(len(content) + 1)
        return pack(content[:a]) + pack(content[a:])
    return pack(content)


def damaged(rng: Rng, seeds: Sequence[bytes]) -> bytes:
    """One input: a valid file, damaged once to three times, at times compressed and then perhaps damaged again."""
    content = rng.choice(seeds)
    if rng.random() < 0.02:
        return content[: rng.randrange(len(content) + 1)] + rng.choice(seeds)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3))):
        kind = rng.randrange(10)
        if kind < 5:
            changed = damaged_json(rng, content)
            content = damaged_table(rng, content) if changed is None else changed
        elif kind < 7:
            content = damaged_table(rng, content)
        elif kind < 9:
            content = damaged_bytes(rng, content)
        else:
            content = recoded(rng, content)
    if rng.random() < 0.12:
        content = packed(rng, content)
        if rng.random() < 0.5:
            content = damaged_bytes(rng, content)
    return content


# What is read, and how.


@dataclass(frozen=True)
class Reader:
    """One kind of file."""

    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[Path, bytes], object]
    """Takes an empty folder and the content to read."""


@cache
def _counter() -> TokenCounter:
    return TokenCounter()


@cache
def _turns() -> dict[str, Turn]:
    return {turn.turn_id: turn for topic in read_topics(ROOT / "examples" / "topics.json") for turn in topic.turns}


def _file(folder: Path, content: bytes, name: str) -> Path:
    path = folder / name
    # A file of its own each time: the last one may still be mapped into memory.
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    return path


def _run(folder: Path, content: bytes, *, format: str | None = None) -> None:
    """All that is done with a run: what is reported can be stored and shown, and what is left pooled and read back."""
    path = _file(folder, content, "run.json")
    find_runs(folder)
    read = read_run(path, format)
    assert all(CODES[problem.code].severity == problem.severity for problem in read.problems)
    if read.run is None:
        assert any(problem.severity == "error" for problem in read.problems)
        return
    validate_together((read.run, msgspec.structs.replace(read.run, run_id=read.run.run_id.swapcase())))
    own = own_turns(read.run) if rules_of(read.run.format).own_turns else {}
    turns = _turns() if len(content) % 2 else None
    checked = validate_run(read, turns, _counter())
    assert all(CODES[problem.code].severity == problem.severity for problem in checked.problems)
    assert {row.reason for row in checked.exclusions} <= set(CODES)
    assert msgspec.json.encode([checked.problems, checked.exclusions]).decode().isprintable()
    if checked.run is not None:
        assert all(turn.responses for turn in checked.run.turns)
        found, dropped = candidates(checked.run, Selection(depth=2), own)
        _pooled(checked.run, found, (*checked.exclusions, *dropped), own)
    fixed_copy(path, read.run, _counter(), format)
    for target in TARGETS:
        try:
            convert_run(read, target, turns=turns, team="t" if TARGETS[target].needs_team else None)
        except InputError:
            continue


def _pooled(run: Run, found: Sequence[Candidate], excluded: Sequence[Exclusion], own: Mapping[str, PooledTurn]) -> None:
    """All files of the run's pool can be written, and the pool read back."""
    pool = build_pool(found, evidence_of(), LengthRule(_counter()), excluded=excluded, turns=own.values())
    stored = pool_jsonl(pool), passages_jsonl(pool), "out", excluded_tsv(pool.exclusions)
    again = read_pool(*stored, turns=jsonl_bytes(pool.turns.values()))
    assert again == pool and turns_shown(again, None) == turns_shown(pool, None)
    assert json.loads(bytes(stored_pool(pool)["bank.json"])) == {one.response_id: one.text for one in pool.responses}
    entries = [(one.turn_id, one.response_id, entry.rank) for one in pool.responses for entry in one.runs]
    for text in (pool_lines(pool), response_run(run.run_id, entries)):
        assert all(len(line.split()) == 6 for line in text.encode().decode().split("\n")[:-1])
    assert len(safe_name(run.run_id)) < 120


def _regin(folder: Path, content: bytes, *, pool: bool) -> None:
    """A pool with its bank, of which one is damaged."""
    examples = ROOT / "examples" / "regin"
    for path in examples.iterdir():
        _file(folder, path.read_bytes(), path.name)
    path = _file(folder, content, "response_pool_depth_1.pool" if pool else "response_bank.json")
    find_runs(folder)
    read = read_run(path)
    if read.run is not None:
        validate_run(read, None, _counter())


def _compared_cards(path: Path) -> None:
    """A card beside the very same one, and the tables in every form."""
    card = parse_card(path.read_bytes(), str(path)), None
    for grid in compare_cards([card, card]):
        grid.files("table")


def _dataset(folder: Path, content: bytes, *, name: str, file: str) -> None:
    """A dataset of one file, with what judges said of it; labels may be of its own responses only."""
    _file(folder, content, file)
    _file(folder, b'{"docid": "p", "segment": "P"}', "segments.jsonl")
    dataset = DATASETS[name]
    known = dataset.read(folder).responses.keys()
    for labels in dataset.stored(folder).values() if dataset.stored else ():
        if labels.keys() - known:
            raise AssertionError("a judge has a label of a response that is not in the dataset")


def _passages(folder: Path, content: bytes, *, name: str = "passages.jsonl") -> dict[str, Passage]:
    return read_passages([_file(folder, content, name)], _PASSAGE_IDS)


def _hashes(folder: Path, content: bytes) -> bool:
    """A hash list in memory and as an index, which must say the same; whether it has one of the passages."""
    listed = open_hashes(_file(folder, content, "hashes.tsv")).find(_HASHED)
    index_hashes(folder / "hashes.tsv", folder / "hashes.index")
    if open_hashes(folder / "hashes.index").find(_HASHED) != listed:
        raise AssertionError("the index of this hash list says otherwise than the list")
    return any(listed)


def _collection(folder: Path, content: bytes) -> dict[str, str]:
    """Passages read through an index of a file; they must be those of the file itself."""
    path = _file(folder, content, "passages.jsonl")
    index_collection([path], folder / "passages.index")
    passages = read_indexed(folder / "passages.index", _PASSAGE_IDS)
    if passages != {name: of.text for name, of in read_passages([path], _PASSAGE_IDS).items()}:
        raise AssertionError("the index of this file gives other passages than the file")
    return passages


def _collection_index(folder: Path, content: bytes) -> dict[str, str]:
    _file(folder, SEEDS["passages"][0], "passages.jsonl")
    return read_indexed(_file(folder, content, "passages.index"), _PASSAGE_IDS)


def _qrels(folder: Path, content: bytes) -> None:
    read_labels(_file(folder, content, "x.qrel"), GRADES)
    try:
        parse_columns(content, "x.qrel")
    finally:
        parse_qrels(content.decode("utf-8", "replace"), "x.qrel")


def _trec_run(folder: Path, content: bytes) -> None:
    problems: list[Problem] = []
    runs = list(ranked_runs(_file(folder, content, "x.run"), passage_ranking, problems))
    if bool(runs) == any(problem.severity == "error" for problem in problems):
        raise AssertionError("expected a run or an error, and not both")
    if not runs:
        raise InputError("x.run", problems)


def _desk_store(path: Path) -> None:
    with _desk(path) as store:
        store.following("1", 0)
        store.undo("1")


def _import(folder: Path, content: bytes, *, source: str) -> None:
    constants = {"criterion": "relevance", "assessor": "a"}
    read = read_label_tables if source == CROWD else None
    import_gold(source, [_file(folder, content, "x.csv")], ImportOptions(constants=constants), read=read)


def _sealed(folder: Path, content: bytes, *, name: str) -> None:
    for file_name, kind in ((SEAL, "seal"), (LEDGER, "ledger"), ("test.salt", "salt")):
        _file(folder, content if file_name == name else SEEDS[kind][0], file_name)
    try:
        read_ledger(folder / SEAL)
    finally:
        read_salt(folder / "test.salt")


def _crowd(*paths: Path) -> None:
    read_tables(paths, Layout({}, GRADES, ("relevance",)), warnings=[])


def _survey(path: Path) -> None:
    pattern = r"(?P<turn_id>[^.]+)\.(?P<response_id>[^.]+)\.(?P<criterion>.+)"
    read_tables([path], Layout({}, GRADES, wide=pattern))


def _pool(folder: Path, content: bytes, *, part: int) -> None:
    parts = [pool_jsonl(_POOL), passages_jsonl(_POOL), SEEDS["excluded"][0]]
    parts[part] = content
    read_pool(parts[0], parts[1], "out", parts[2])


def _sheet(content: bytes, name: str) -> None:
    """Sheets of every kind from a damaged pool, each as a whole."""
    pool = read_pool(content, passages_jsonl(_POOL), name)
    sheet = make_sheet(pool, {"groundedness": find_criterion("groundedness")}, None, None)
    for write in SHEETS.values():
        write(sheet, SheetOptions())


def _read(read: Callable[[Path], object], name: str) -> Callable[[Path, bytes], None]:
    """Reads a file of this name."""

    def reader(folder: Path, content: bytes) -> None:
        result = read(_file(folder, content, name))
        if isinstance(result, Iterator):
            list(result)

    return reader


def _parse(parse: Callable[[bytes, str], object]) -> Callable[[Path, bytes], object]:
    """Reads bytes."""
    return lambda folder, content: parse(unpack(content, "x"), "x")


def _matches(path: Path) -> None:
    """A file of matches, joined to a pool and a bank that have one of each."""
    join(read_matches(path), (), parse_bank(SEEDS["nuggets"][1], "bank"), _POOL, "x")


def _nuggets(content: bytes, name: str) -> None:
    """A bank read, as each form too, and written in every form that can hold it."""
    for form in FORMS:
        with contextlib.suppress(InputError):
            assert parse_bank(content, name, form).nuggets
    bank = parse_bank(content, name)
    for form in WRITTEN:
        try:
            written = bank_bytes(bank.nuggets, form)
        except InputError:
            continue
        try:
            again = parse_bank(written, "y", form)
        except InputError as error:
            raise AssertionError(f"{form}: a bank that was written is refused") from error
        # The nuggets of a turn may come to stand together.
        assert sorted(nugget.text for nugget in again.nuggets) == sorted(nugget.text for nugget in bank.nuggets)


# Valid files.

SEEDS = {
    name: tuple(text.encode() for text in texts)
    for name, texts in tomllib.loads((ROOT / "tests" / "seeds.toml").read_text(encoding="utf-8")).items()
}


def _stored(*names: str, examples: str = "") -> Callable[[], tuple[bytes, ...]]:
    """The files of these names in `seeds.toml`, and those of the examples with this pattern."""
    return lambda: (*(seed for name in names for seed in SEEDS[name]), *(_examples(examples) if examples else ()))


def _twice(record: msgspec.Struct) -> Callable[[], tuple[bytes, ...]]:
    """A file of two lines, each the same record."""
    return lambda: (_json(msgspec.to_builtins(record)) * 2,)


def _json(*values: Any) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values) + b"\n"


_PASSAGE_IDS = {"clueweb22-en9999-01-00017:0", "A-1", "A-1-0", "A-1:1", "p"}
_HASHED = ("clueweb22-en0000-00-00000:0", "clueweb22-en0000-00-00000:7", "MARCO_1-1", "", "\0")
_TEXTS_OF = {"p#" + digest("Tea."): Passage("p", "Tea.", "run"), "q": Passage("q", "Milk.", "collection")}
_POOL = Pool((pooled("R00000", "By train.", "r", passages=tuple(_TEXTS_OF)),), _TEXTS_OF, ())
_TALKED = (RunTurn("1-1_1", (), "By train?", ("I hurry.",)), RunTurn("1-1_2", (), "And back?"))
_TURNS = own_turns(Run("r", "interactive", None, "interactive", "f", "d", True, _TALKED))
_TALK = msgspec.structs.replace(_POOL, turns={turn.turn_id: turn for turn in _TURNS.values()})
_SAID = judgment("1-1_1", "R00000", 2, expected=1.5, probabilities={"2": 0.5, "1": 0.5}, rationale="why")
_APART = Disagreement(
    *("1-1_1", "1-1", "R00000", "groundedness", "dev", 3, (AssessorGrade("ann", 3, "blind"),)),
    (JudgeGrade("server/m", "groundedness/graded", 2, 1.5, "why", None, -1),),
    *("grades", 1, "Yes.", (ShownPassage("p:1", "It is."),), "Is it?", (Exchange("Hello?", "Yes."),)),
)
_SECOND = RecheckedItem(
    "R00000", "1-1_1", "1-1", "groundedness", "graded", "server/m", 0, 2, 1, None, "m", "n", "fp_a", None, "a", "b"
)
_FAILED = failure("1-1_1", "R00001", "refused", detail="no", raw="raw", request_digest="d" * 64)
_MANIFEST = (_json({"schema": SCHEMA, "judge_version": "0", "configuration": {"runs": {"r": "a"}}, "complete": True}),)


def _examples(pattern: str) -> tuple[bytes, ...]:
    return tuple(unpack(path.read_bytes(), path.name) for path in sorted(ROOT.glob(pattern)))


def _table(path: Path) -> None:
    """What a table of answers is read as, with its topics; and its rows once more, as for its results."""
    tables = read_answers([path])
    for source in tables.sources:
        assert len(list(source.table.again())) == len(source.keys)


def _table_parquet() -> tuple[bytes, ...]:
    import polars

    out = io.BytesIO()
    polars.DataFrame({"question": ["q", "r"], "contexts": [["c"], []], "answer": ["a", None]}).write_parquet(out)
    return (out.getvalue(),)


def _parquet() -> tuple[bytes, ...]:
    import polars

    frame = polars.DataFrame({"worker": ["ann", "ben"], "turn_id": ["1_1"] * 2, "response_id": ["R1", "R2"]})
    content = io.BytesIO()
    frame.with_columns(relevance=polars.Series([2, 3]), grade=polars.Series([0.0, 1.0])).write_parquet(content)
    return (content.getvalue(),)


def _packed() -> tuple[bytes, ...]:
    return (
        gzip.compress(SEEDS["passages"][0], mtime=0),
        # Two streams, as parallel packers write them.
        b"".join(map(bz2.compress, SEEDS["passages"][1].splitlines(keepends=True))),
        zstd.compress(SEEDS["passages"][0]),
    )


def _hash_indexes() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "hashes.index")
        contents = []
        for content in SEEDS["hash_lists"]:
            index_hashes(_file(Path(folder), content, "hashes.tsv"), index)
            contents.append(index.read_bytes())
        return tuple(contents)


def _collection_indexes() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "passages.index")
        index_collection([_file(Path(folder), SEEDS["passages"][0], "passages.jsonl")], index)
        return (index.read_bytes(),)


_QUESTION = Request(
    "R1", "1_1", "relevance", "json", (Message("user", "?"),), Scale((), "higher", (), None), (), 0, "", ()
)
_ASKED = request_digest("server/m", {"temperature": 0}, _QUESTION)


def _journals() -> tuple[bytes, ...]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in JOURNAL_SCHEMA:
            connection.execute(statement)
        connection.execute(ADD_META, ("schema", SCHEMA_VERSION))
        completion = Completion(text="2", finish_reason="stop", model="m")
        connection.execute(INSERT, new_row(_ASKED, "server/m", {"temperature": 0}, _QUESTION, completion))
        connection.commit()
        return (bytes(connection.serialize()),)


def _exported() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return (b"".join(exported_lines(_file(Path(folder), _journals()[0], "journal.sqlite"))),)


def _merged(path: Path) -> None:
    new = path.with_name("new.sqlite")
    new.unlink(missing_ok=True)
    merge_journals([path], new)


def _rechecked(path: Path) -> None:
    items = read_rechecked(path, [find_criterion("groundedness")])
    recheck_rows(items)
    change_lines(items, {})


def _logprobs(folder: Path, content: bytes) -> None:
    completion = read_completion(content, {}, structured=True, latency=0.1)
    scale = find_criterion("groundedness").scale
    forms: tuple[AnswerForm, ...] = ("label", "json")
    for form in forms:
        request = Request("R", "1_1", "g", form, (), scale, scale.labels, 0, "", ())
        storable(with_probabilities(completion, content, request))
    opening_probabilities(content, scale.labels)


_ENCODER = ("tokenizer", "config", "tokenizer_config")


def _cross_encoder(folder: Path, content: bytes, *, name: str) -> None:
    """The files beside a cross-encoder, of which one is damaged; the model itself is onnxruntime's to read."""
    _file(folder, b"", "model.onnx")
    for kind in _ENCODER:
        _file(folder, content if kind == name else SEEDS[kind][0], f"{kind}.json")
    files = ModelFiles(folder)
    windows(open_tokenizer(files, "only_first"), files.length, "the ferry leaves", "the ferry")


def _reported(path: Path) -> None:
    content = compose([CalibrationFolder("out", path.parent, read_calibration(path))], ())
    report_page(content, Browser(Markup(), "", ""))
    report_markdown(content, ())


_DESK_ITEMS = tuple(
    PlanRow(
        turn_id=f"1_{n}",
        topic_id="1",
        response_id=f"R0000{n}",
        text_sha256="a" * 64,
        runs=("run-a",),
        criteria=("relevance",),
        inclusion_probability=0.5,
        stratum="drawn",
    )
    for n in (1, 2)
)


def _desk(path: Path) -> LabelStore:
    return LabelStore(path, {"seed": "1"}, _DESK_ITEMS, {0}, ["ann"], [[1, 0]])


def _desk_stores() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.sqlite")
        with _desk(path) as store:
            for grade in (2, None, 3):
                store.save("1", store.tasks("1")[0], grade, "why", "blind")
            store.undo("1")
            store.save("1", store.tasks("1")[1], 0, "", "blind")
        return (path.read_bytes(),)


def _sent(path: Path) -> None:
    with opened_journal(path)[0] as journal:
        sent(journal, _ASKED)


def _runs() -> tuple[bytes, ...]:
    return (*SEEDS["runs"], *SEEDS["runs"], *_examples("examples/runs/*"), *_examples("examples/interactive/*"))


READERS: dict[str, Reader] = {
    "runs": Reader(_runs, _run),
    **{f"runs-as-{name}": Reader(_runs, partial(_run, format=name)) for name in FORMATS},
    "regin-pool": Reader(lambda: _examples("examples/regin/*.pool"), partial(_regin, pool=True)),
    "regin-bank": Reader(lambda: _examples("examples/regin/*.json"), partial(_regin, pool=False)),
    "table-csv": Reader(_stored("table_csv"), _read(_table, "t.csv")),
    "table-lines": Reader(_stored("table_lines"), _read(_table, "t.jsonl")),
    "table-json": Reader(_stored("table_json"), _read(_table, "t.json")),
    "table-parquet": Reader(_table_parquet, _read(_table, "t.parquet")),
    "topics": Reader(_stored("topics", examples="examples/topics.json"), _read(read_topics, "topics.json")),
    "passages": Reader(_stored("passages", "psg_text"), _passages),
    "passages-packed": Reader(_packed, _passages),
    "passages-trecweb": Reader(_stored("trecweb"), partial(_passages, name="passages.trecweb")),
    "hashes": Reader(_stored("hash_lists"), _hashes),
    "hash-index": Reader(_hash_indexes,
        lambda folder, content: any(open_hashes(_file(folder, content, "hashes.index")).find(_HASHED))),
    "collection": Reader(_stored("passages", "psg_text"), _collection),
    "collection-index": Reader(_collection_indexes, _collection_index),
    "qrels": Reader(_stored("qrels"), _qrels),
    "judgments": Reader(_twice(_SAID), _read(read_labels, "judgments.jsonl")),
    "failures": Reader(_twice(_FAILED),
        _read(lambda path: read_labels(_file(path.parent, b"", "judgments.jsonl")), "failures.jsonl")),
    "disagreements": Reader(_twice(_APART), _parse(parse_disagreements)),
    "gold": Reader(_stored("gold"), _read(read_gold, "gold.jsonl")),
    "gold-bytes": Reader(_stored("gold", examples="gold/*.jsonl"), _parse(parse_gold)),
    "nugget-matches": Reader(_stored("matched", "assigned"), _read(_matches, "matches.jsonl")),
    "nugget-banks": Reader(_stored("nuggets", examples="examples/nuggets.jsonl"), _parse(_nuggets)),
    "gold-csv": Reader(_stored("csv"), partial(_import, source="csv")),
    "gold-parquet": Reader(_parquet, partial(_import, source="csv")),
    "gold-desk": Reader(_desk_stores, partial(_import, source="desk")),
    "gold-begin": Reader(_stored("begin"), partial(_import, source="begin")),
    "gold-crowd": Reader(_stored("tasks", "mturk", "answers", "studio"), partial(_import, source="crowd")),
    "gold-words": Reader(_stored("words"), partial(_import, source="csv")),
    "gold-qrels": Reader(_stored("qrels"), partial(_import, source="qrels")),
    "bench-begin": Reader(_stored("begin"), partial(_dataset, name="begin-cmu", file="begin_dev_cmu.tsv")),
    "bench-claims": Reader(_stored("claims"),
        partial(_dataset, name="attributionbench", file="dev_all_subset_balanced.jsonl")),
    "bench-support": Reader(_stored("support"),
        partial(_dataset, name="rag24-support", file="citation_judgments_with_prediction.jsonl")),
    "bench-nuggets": Reader(_stored("assessed"), partial(_dataset, name="rag24-nuggets", file="nugget_assignment.jl")),
    "bench-faithbench": Reader(_stored("faithbench"), partial(_dataset, name="faithbench", file="batch_1.json")),
    "bench-summedits": Reader(_stored("summedits"), partial(_dataset, name="summedits", file="summedits_samsum.json")),
    "bench-llmjudge": Reader(_stored("qrels"), partial(_dataset, name="llmjudge", file="llmjudge_test.qrel")),
    "bench-usr": Reader(_stored("usr"), partial(_dataset, name="usr-topical", file="tc_usr_data.json")),
    "bench-workers": Reader(_stored("workers"),
        partial(_dataset, name="transparentcis-relevance", file="output_processed.csv")),
    "gold-rag2024": Reader(_stored("support"), partial(_import, source="rag2024")),
    "gold-plan": Reader(_stored("plan"), _parse(read_plan)),
    "bank": Reader(lambda: _examples("examples/regin/*.json"), _read(read_bank, "bank.json")),
    "seal": Reader(_stored("seal"), partial(_sealed, name=SEAL)),
    "ledger": Reader(_stored("ledger"), partial(_sealed, name=LEDGER)),
    "salt": Reader(_stored("salt"), partial(_sealed, name="test.salt")),
    "crowd": Reader(_stored("long", "tasks", "mturk", "answers"), _read(_crowd, "labels.csv")),
    "crowd-studio": Reader(_stored("studio"), _read(_crowd, "project.json")),
    "crowd-judgments": Reader(_stored("judgments"), _read(_crowd, "judgments.json")),
    "crowd-submissions": Reader(_stored("submissions"),
        _read(lambda path: _crowd(_file(path.parent, SEEDS["long"][0], "labels.csv"), path), "submissions.csv")),
    "crowd-parquet": Reader(_parquet, _read(_crowd, "labels.parquet")),
    "crowd-desk": Reader(_desk_stores, _read(_crowd, "labels.sqlite")),
    "crowd-survey": Reader(_stored("survey"), _read(_survey, "x.csv")),
    "crowd-known": Reader(_stored("known"),
        _read(lambda path: KnownFile(path).known({"relevance": GRADES}), "known.csv")),
    "crowd-questions": Reader(_stored("questions"), _read(read_questions, "map.csv")),
    "prompts": Reader(lambda: _examples("prompts/*/*.md"), _read(load_criterion, "p.md")),
    "card": Reader(lambda: _examples("docs/cards/[bg]*/card.json"), _read(_compared_cards, "card.json")),
    "certificate": Reader(lambda: (msgspec.json.encode(certificate()),), _read(read_certificate, "certificate.json")),
    "manifest": Reader(lambda: _MANIFEST, _read(lambda path: OutputFolder(path.parent).manifest, MANIFEST)),
    "pool": Reader(lambda: (pool_jsonl(_POOL),), partial(_pool, part=0)),
    "gold-sheet": Reader(lambda: (pool_jsonl(_POOL),), _parse(_sheet)),
    "pool-passages": Reader(lambda: (passages_jsonl(_POOL),), partial(_pool, part=1)),
    "pool-turns": Reader(lambda: (jsonl_bytes(_TALK.turns.values()),),
        _parse(lambda content, name: turns_shown(read_pool(pool_jsonl(_TALK), b"", name, turns=content), None))),
    "pool-excluded": Reader(_stored("excluded"), partial(_pool, part=2)),
    "passage-qrels": Reader(_stored("qrels"), _read(read_relevance, "p.qrels")),
    "trec-runs": Reader(_stored("trec_runs"), _trec_run),
    "selected-turns": Reader(_stored("turn_list"), _read(read_turns, "turns.txt")),
    "selected-runs": Reader(_stored("selected_runs"),
        _read(partial(read_run_ids, known={"run-a", "run-b"}), "runs.txt")),
    "teams": Reader(_stored("teams"), _read(read_teams, "t.tsv")),
    "families": Reader(_stored("families"), _read(read_families, "families.tsv")),
    "study-matches": Reader(_stored("matches"), _read(read_study, "matches.txt")),
    "desk": Reader(_desk_stores, _read(_desk_store, "labels.sqlite")),
    "journal": Reader(_journals, _read(read_journal, "journal.sqlite")),
    "journal-lines": Reader(_exported, _read(read_journal, "journal.jsonl")),
    "journal-merge": Reader(_exported, _read(_merged, "journal.jsonl")),
    "journal-check": Reader(_journals, _read(verify_journal, "journal.sqlite")),
    "judgments-parquet": Reader(_twice(_SAID), _read(
        lambda path: convert_results(ResultsConvertPlan(folder=path.parent, out=path.parent / "tables")),
        "judgments.jsonl")),
    "sent": Reader(_journals, _read(_sent, "journal.sqlite")),
    "prices": Reader(_stored("prices"), _read(read_prices, "prices.toml")),
    "spending": Reader(_journals, _read(read_spending, "journal.sqlite")),
    "browsed": Reader(_stored("browsed"), _read(lambda path: browse({"out": path.parent}), "disagreements.jsonl")),
    "findings": Reader(lambda: (json_bytes({"schema": 4, **msgspec.to_builtins(calibration())}),),
        _read(_reported, "calibration.json")),
    "problems": Reader(_stored("problems"), _read(read_problems, "problems.json")),
    "recheck": Reader(_twice(_SECOND), _read(_rechecked, "recheck.jsonl")),
    "logprobs": Reader(_stored("logprobs"), _logprobs),
    **{
        f"scores-{api}": Reader(
            _stored(f"scores_{api}"), partial(lambda path, _, content: read_scores(path, content, {}), f"/{api}"))
        for api in ("score", "predict")
    },
    **{f"encoder-{name}": Reader(_stored(name), partial(_cross_encoder, name=name)) for name in _ENCODER},
    "screen": Reader(_stored("screen"), _read(read_screen, "screen.tsv")),
}  # fmt: skip
"""The readers by name."""


def fuzz(name: str, inputs: int, seed: int, folder: Path) -> Counter[str]:
    """Let one reader read; gives how many inputs ended in a result, and how many in an error of ours.

    Any other end is raised, with the number of the input and its bytes in a file beside the folder.
    """
    reader = READERS[name]
    seeds = reader.seeds()
    ends: Counter[str] = Counter()
    for number in range(-len(seeds), inputs):
        content = seeds[number] if number < 0 else damaged(Rng(f"{seed} {name} {number}"), seeds)
        try:
            reader.read(folder, content)
            ends["results"] += 1
        except JudgeError:
            # A seed that its own reader refuses would be damage to nothing.
            if number < 0:
                raise
            ends["errors"] += 1
        # A panic of compiled code is no Exception.
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                folder.with_suffix(".input").write_bytes(content)
                error.add_note(f"input {number} of the reader {name}, kept as {folder.with_suffix('.input')}")
            raise
    return ends
