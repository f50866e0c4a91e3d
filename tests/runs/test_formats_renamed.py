"""A format is its module and its row: a copy of it under another name is checked, fixed, converted and pooled alike."""

import copy
import importlib
import importlib.util
import json
import sys
from contextlib import contextmanager

import msgspec
import pytest

from judge.errors import InputError
from judge.pool.build import LengthRule, build_pool, evidence_of
from judge.pool.selection import PassageRelevance, Selection, candidates
from judge.runs.check.validate import validate_run
from judge.runs.convert import TARGETS, convert_run
from judge.runs.fix import fixed_copy
from judge.runs.formats import FORMATS, read_run
from judge.runs.ranking import provenance_run
from judge.runs.tokens import TokenLimit
from tests.conftest import PROJECT
from tests.runs.test_check_mutations import (
    ALL,
    BYTE_FAULTS,
    COLLECTION_FAULTS,
    RUN_FAULTS,
    SKIP,
    TURN_FAULTS,
    WELL_FORMED,
    Spot,
    base_of,
    bytes_of,
    picker,
)
from tests.runs.test_fix import words

pytestmark = pytest.mark.slow

EXAMPLES = PROJECT / "examples"
NUMBERS = (3, 7, 1)


@contextmanager
def under_another_name(format):
    """The name of a copy of a format, which is asked before the original whether a file is its own."""
    name = f"copy_of_{format}"
    original = importlib.import_module(FORMATS[format])
    spec = importlib.util.spec_from_file_location(name, original.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.FORMAT = name
    rows = dict(FORMATS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        FORMATS.clear()
        for row, place in rows.items():
            FORMATS.update({name: name} if row == format else {})
            FORMATS[row] = place
        try:
            yield name
        finally:
            FORMATS.clear()
            FORMATS.update(rows)


def outcome(path, turns, format=None):
    """All that the project makes of a run file, as text."""
    read = read_run(path, format)
    if read.run is None:
        return in_full(read)
    limit = TokenLimit(words, 250, "bare")
    made = [read]
    made += (
        validate_run(read.run, known, limit, problems=read.problems, places=read.places) for known in (turns, None)
    )
    made.append(fixed_copy(path, read.run, words, format))
    for name, target in TARGETS.items():
        try:
            made.append(convert_run(read, name, turns=turns, team="t" if target.needs_team else None))
        except InputError as error:
            made.append(error.problems)
    usable = made[1].run
    if usable is not None:
        made.append(provenance_run(usable))
        # Without a relevant passage it shows how far down responses are looked at.
        none = PassageRelevance({turn.turn_id: {} for turn in usable.turns})
        for selection in (Selection(depth=2), Selection(relevance=none)):
            chosen, left = candidates(usable, selection)
            pool = build_pool(chosen, evidence_of(), LengthRule(words, "truncate"), excluded=left)
            made.append(pool)
    return in_full(made)


def in_full(made):
    """The fields of records; as text a record shortens them."""
    return repr(msgspec.to_builtins(made, builtin_types=(bytes,)))


def second_answer(spot):
    """Another response that cites a passage of its own, scored just below the first of the references."""
    if spot.format != "ikat2025":
        return SKIP
    score = max(spot.turn["references"].values()) - 1e-6
    answer = {
        **copy.deepcopy(spot.response),
        "rank": len(spot.turn["responses"]) + 1,
        "citations": {WELL_FORMED: score},
    }
    return spot.turn["responses"].append(answer)


def ptkb_as_text(spot):
    """A statement's score, or its number, as text, which --fix writes as a number."""
    if spot.format == "ikat2023":
        return spot.ptkb[0].update(score=str(spot.ptkb[0]["score"]))
    return spot.ptkb.append("9") if spot.format == "ikat2024" else SKIP


def faulty(base):
    """The bytes of a run with one problem after the other."""
    yield bytes_of(base.document)
    rows = (*TURN_FAULTS, *RUN_FAULTS, *COLLECTION_FAULTS, ("", ALL, second_answer), ("", ALL, ptkb_as_text))
    for _, formats, fault in rows:
        spot = Spot(base, picker(NUMBERS))
        if base.format in formats and fault(spot) is not SKIP:
            yield bytes_of(spot.document)
    if type(base.document) is list:
        spread = {**base.document[0], "responses": [{**base.document[0]["responses"][0], "rank": "1"}]}
        yield json.dumps(spread, indent=1).encode()
    for _, _, fault in BYTE_FAULTS:
        yield fault(bytes_of(base.document), picker(NUMBERS), type(base.document) is list)
    yield b"\xef\xbb\xbf" + bytes_of(base.document)


def files_of(format, folder):
    """The example runs of a format and faulty ones, each with its topics."""
    scratch = folder / "scratch.json"
    for example in sorted((EXAMPLES / "runs").iterdir()):
        if read_run(example).run.format == format:
            base = base_of(example, EXAMPLES / "topics.json", scratch)
            yield example, base.turns
            for n, content in enumerate(faulty(base)):
                path = folder / f"{n}-{example.name.removesuffix('.gz')}"
                path.write_bytes(content)
                yield path, base.turns


ODD = {
    "lines-without-a-mark": b'{"turn_id": "9-1_1", "responses": [{"rank": "1", "text": "T"}]}\n' * 2,
    # In another order than the typed decoder gives them.
    "unknown-fields": b'{"run_name": "r", "turns": [{"turn_id": "9-1_1", "responses": '
    b'[{"passage_provenance": [], "ptkb_provenance": [], "text": "T", "rank": 1}]}]}',
}
"""Files that only tell formats apart when they are read as one of them."""

POOL = "132_1-1 Q0 R0 1 0.0 tag\n132_1-1 Q0 R1 1 0.0 tag\n132_1-2 Q0 R0 1 0.0 tag\n"
POOLS = (
    POOL,
    POOL.replace("132_1-2 Q0 R0", "132_1-1 Q0 R0"),
    POOL.replace("132_1-2 Q0", "132_1-2"),
    POOL.replace("R1", "R7"),
    POOL.replace("0.0 tag\n", "0.0 other\n", 1),
    POOL.replace("132_1-2", "132"),
)


@pytest.mark.long
@pytest.mark.parametrize("format", ["ikat2023", "ikat2024", "ikat2025", "cast2022"])
def test_a_run_fares_the_same_under_another_name(format, tmp_path):
    files = list(files_of(format, tmp_path))
    examples = [*sorted((EXAMPLES / "runs").iterdir()), *(tmp_path / name for name in ODD)]
    for name, content in ODD.items():
        (tmp_path / name).write_bytes(content)
    before = [outcome(path, turns) for path, turns in files]
    forced = [outcome(path, {}, format) for path in examples]
    with under_another_name(format) as name:
        after = [outcome(path, turns) for path, turns in files]
        assert sum(f"'{name}'" in text for text in after) > 50
        for (path, _), one, other in zip(files, before, after, strict=True):
            assert other.replace(f"{name}, ", "").replace(name, format) == one, path.name
        for path, one in zip(examples, forced, strict=True):
            assert outcome(path, {}, name).replace(f"{name}, ", "").replace(name, format) == one, path.name


def test_a_pool_fares_the_same_under_another_name(tmp_path):
    (tmp_path / "bank.json").write_text('{"R0": "Text.", "R1": "More."}', encoding="utf-8")
    path = tmp_path / "p.pool"
    for content in POOLS:
        path.write_text(content, encoding="utf-8")
        before = outcome(path, {}), outcome(path, {}, "cast_regin")
        with under_another_name("cast_regin") as name:
            after = outcome(path, {}), outcome(path, {}, name)
        assert tuple(text.replace(f"{name}, ", "").replace(name, "cast_regin") for text in after) == before
