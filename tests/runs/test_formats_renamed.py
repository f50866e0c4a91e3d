"""A format is its row: a copy of it under another name is checked, fixed, converted and pooled alike."""

import json
from contextlib import contextmanager

import msgspec
import pytest

from judge.errors import InputError
from judge.pool.build import LengthRule, build_pool, evidence_of
from judge.pool.selection import PassageRelevance, Selection, candidates
from judge.runs.check.validate import validate_run
from judge.runs.convert import TARGETS, convert_run
from judge.runs.fix import fixed_copy
from judge.runs.formats import FORMATS, format_of, read_run
from judge.runs.ranking import provenance_run
from tests.conftest import PROJECT
from tests.runs import TokenLimit
from tests.runs.test_check_validate import CONTENTS, CONVERSATIONS, DOCUMENTS, IDS, TOPICS, dump, line25
from tests.runs.test_fix import words

pytestmark = pytest.mark.slow


@contextmanager
def under_another_name(format):
    """The name of a copy of a format, which is asked before the original whether a file is its own."""
    name, original, rows = f"copy_of_{format}", format_of(format), dict(FORMATS)

    def read(document):
        result = original.read(document)
        return msgspec.structs.replace(result, run=result.run and msgspec.structs.replace(result.run, format=name))

    copied = msgspec.structs.replace(original, read=read)
    FORMATS.clear()
    for row, place in rows.items():
        FORMATS.update({name: copied, row: place} if row == format else {row: place})
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
    made += (validate_run(read, known, limit) for known in (turns, None))
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


OWN = [line25(), line25("9-1_2")]
for turn in OWN:
    # Another response cites a passage of its own, scored between the references.
    turn["responses"].append({**turn["responses"][0], "rank": 2, "citations": {IDS[5]: 0.85}})
FILES = [
    *(dump(document) for code, _, _, document in DOCUMENTS if not code.startswith("too_many")),
    *(content for code, _, _, content in CONTENTS if code != "too_many_turns"),
    *(json.dumps(entries).encode() for *_, entries in CONVERSATIONS),
    dump(OWN),
    json.dumps(line25(response_changes={"rank": "1"}), indent=1).encode(),
    # Files that only tell formats apart when they are read as one of them; the order of the second is not the usual.
    b'{"turn_id": "9-1_1", "responses": [{"rank": "1", "text": "T"}]}\n' * 2,
    b'{"run_name": "r", "turns": [{"turn_id": "9-1_1", "responses": '
    b'[{"passage_provenance": [], "ptkb_provenance": [], "text": "T", "rank": 1}]}]}',
]

POOL = "132_1-1 Q0 R0 1 0.0 tag\n132_1-1 Q0 R1 1 0.0 tag\n132_1-2 Q0 R0 1 0.0 tag\n"
POOLS = (
    POOL, POOL.replace("132_1-2 Q0 R0", "132_1-1 Q0 R0"), POOL.replace("132_1-2 Q0", "132_1-2"),
    POOL.replace("R1", "R7"), POOL.replace("0.0 tag\n", "0.0 other\n", 1), POOL.replace("132_1-2", "132"),
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("format", ["ikat2023", "ikat2024", "ikat2025", "cast2022"])
def test_a_run_fares_the_same_under_another_name(format, tmp_path):
    for n, content in enumerate(FILES):
        (tmp_path / f"{n}.json").write_bytes(content)
    paths = [*(PROJECT / "examples" / "runs").iterdir(), *tmp_path.iterdir()]
    before = [(outcome(path, TOPICS), outcome(path, TOPICS, format)) for path in paths]
    with under_another_name(format) as name:
        after = [(outcome(path, TOPICS), outcome(path, TOPICS, name)) for path in paths]
    seen, forced = (sum(f"'{name}'" in text for text in texts) for texts in zip(*after, strict=True))
    assert seen > 1 and forced > 50
    for path, expected, found in zip(paths, before, after, strict=True):
        assert tuple(text.replace(f"{name}, ", "").replace(name, format) for text in found) == expected, path.name


def test_a_pool_fares_the_same_under_another_name(tmp_path):
    (tmp_path / "bank.json").write_text('{"R0": "Text.", "R1": "More."}', encoding="utf-8")
    path = tmp_path / "p.pool"
    for content in POOLS:
        path.write_text(content, encoding="utf-8")
        before = outcome(path, {}), outcome(path, {}, "cast_regin")
        with under_another_name("cast_regin") as name:
            after = outcome(path, {}), outcome(path, {}, name)
        assert tuple(text.replace(f"{name}, ", "").replace(name, "cast_regin") for text in after) == before
