"""One fault at a time in real run files: exactly the problems of that fault appear, wherever hypothesis puts it."""

import bz2
import copy
import gzip
import hashlib
import json
import lzma
from collections import Counter
from itertools import cycle

import msgspec
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tests.runs.test_check_validate as by_hand
from judge.runs.check.codes import CODES
from judge.runs.check.sheet import CollectionHashes
from judge.runs.check.validate import validate_run
from judge.runs.formats import read_run, rules_of
from judge.runs.records import TokenCount, Turn
from judge.runs.tokens import TokenLimit
from judge.runs.topics import read_topics
from tests.conftest import PROJECT

SHARED = [
    ("ikat/2023/sample_run.json", "ikat/2023/2023_test_topics.json"),
    ("ikat/2024/sample_run.json", "ikat/2024/2024_test_topics.json"),
    ("ikat/2025/runs/cfda-ikat2025-auto-1.jsonl", "ikat/2025/2025_test_topics.json"),
    ("cast2022/sample_run.json", "cast2022/2022_evaluation_topics_tree_v1.0.json"),
]
KEPT = 3
"""Turns of each run that are used: some of those without problems."""
JSON = ("ikat2023", "ikat2024", "cast2022")
IKAT = ("ikat2023", "ikat2024", "ikat2025")
FLAGGED = ("ikat2023", "ikat2024")
ALL = (*JSON, "ikat2025")
SKIP, DROP = object(), object()
PASSAGES = {"ikat2023": "passage_provenance", "ikat2024": "passage_provenance", "cast2022": "provenance"}
NEW_ID = {
    "ikat2023": "clueweb22-en9997-00-00000:{}", "ikat2024": "clueweb22-en9997-00-00000:{}", "cast2022": "MARCO_97_{}-1",
}  # fmt: skip
UNKNOWN_ID = {"cast2022": "MARCO_99_1-1"}
WELL_FORMED = "clueweb22-en9998-99-99999:99999"
LONG = "x" * 1_000_001
NUMBERS = st.lists(st.integers(0, 10**6), min_size=7, max_size=7)
"""What hypothesis chooses: where a fault is put."""
PLACES = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Base(msgspec.Struct):
    """A run of few turns without any problem, with its topics."""

    name: str
    format: str
    document: object
    """One JSON object, or the list of the lines."""
    turns: dict[str, Turn]

    def __repr__(self):
        return self.name


def count_words(text):
    words = len(text.split())
    return TokenCount(words, words, words, len(text) if words > 250 else None)


def bytes_of(document):
    if type(document) is list:
        return "\n".join(json.dumps(line) for line in document).encode()
    return json.dumps(document).encode()


def turns_of(document):
    return document if type(document) is list else document["turns"]


def problems_of(path, content, turns, hashes=None):
    """Every problem of a file as (code, turn_id), counted."""
    path.write_bytes(content)
    read = read_run(path)
    problems = read.problems
    if read.run is not None:
        problems = validate_run(
            read.run,
            turns,
            TokenLimit(count_words, 250, "bare"),
            problems=read.problems,
            places=read.places,
            hashes=hashes,
        ).problems
    assert all(CODES[one.code].severity == one.severity for one in problems)
    return Counter((one.code, one.turn_id) for one in problems)


def without_quirks(document, format):
    """The run without what whole files have: PTKB numbers as text, passages of another collection."""
    pattern = rules_of(format).passage_id
    new = {}
    for response in (one for turn in turns_of(document) for one in turn.get("responses", ())):
        if format == "ikat2024":
            response["ptkb_provenance"] = [int(one) for one in response.get("ptkb_provenance", ())]
        for passage in response.get(PASSAGES.get(format), ()):
            if not pattern.fullmatch(passage["id"]):
                passage["id"] = new.setdefault(passage["id"], NEW_ID[format].format(len(new)))
    return document


def base_of(path, topics, scratch):
    """The first turns of a run file that have no problems, with the topics that have just these turns."""
    content = path.read_bytes()
    if path.name.endswith(".gz"):
        content = gzip.decompress(content)
    document = [json.loads(line) for line in content.splitlines()] if ".jsonl" in path.name else json.loads(content)
    format = read_run(path).run.format
    document = without_quirks(document, format)
    every = {turn.turn_id: turn for topic in read_topics(topics) for turn in topic.turns}
    dirty = {turn_id for _, turn_id in problems_of(scratch, bytes_of(document), every)}
    kept = [turn for turn in turns_of(document) if turn["turn_id"] in every and turn["turn_id"] not in dirty][-KEPT:]
    document = kept if type(document) is list else {**document, "turns": kept}
    base = Base(path.name, format, document, {turn["turn_id"]: every[turn["turn_id"]] for turn in kept})
    assert len(kept) == KEPT
    assert problems_of(scratch, bytes_of(document), base.turns) == Counter()
    return base


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("mutations") / "run.json"


@pytest.fixture(scope="module")
def examples(scratch):
    folder = PROJECT / "examples"
    return [base_of(path, folder / "topics.json", scratch) for path in sorted((folder / "runs").iterdir())]


@pytest.fixture(scope="module")
def real(shared, scratch):
    return [base_of(shared / run, shared / topics, scratch) for run, topics in SHARED]


@pytest.fixture(params=["examples", "real"])
def bases(request):
    return request.getfixturevalue(request.param)


def picker(numbers):
    """A function that picks an index below n, by one number after the other."""
    turning = cycle(numbers)
    return lambda n: next(turning) % n


class Spot:
    """A place in a copy of a run: a turn, a response, a passage and an earlier one."""

    def __init__(self, base, draw):
        self.base = base
        self.format = base.format
        self.draw = draw
        self.document = copy.deepcopy(base.document)
        self.turns = turns_of(self.document)
        self.i = draw(len(self.turns))
        self.turn = self.turns[self.i]
        self.turn_id = self.turn["turn_id"]
        self.response = self.turn["responses"][draw(len(self.turn["responses"]))]

    def one(self, *values):
        return values[self.draw(len(values))]

    @property
    def passages(self):
        return self.response[PASSAGES[self.format]]

    @property
    def k(self):
        """A passage's place."""
        n = len(self.turn["references"] if self.format == "ikat2025" else self.passages)
        return self.draw(n)

    @property
    def passage(self):
        return self.one(*self.passages)

    @property
    def scored(self):
        return self.format == "ikat2025" or "score" in self.passages[0]

    @property
    def ptkb(self):
        return self.response["ptkb_provenance"]

    def scores(self, change):
        """Apply `change` to the list of scores of the response's passages."""
        if not self.scored:
            return SKIP
        if self.format == "ikat2025":
            scores = list(self.turn["references"].values())
        else:
            scores = [passage["score"] for passage in self.passages]
        if change(scores) is SKIP:
            return SKIP
        if self.format == "ikat2025":
            self.turn["references"] = dict(zip(self.turn["references"], scores, strict=True))
        for passage, score in zip(() if self.format == "ikat2025" else self.passages, scores, strict=False):
            passage["score"] = score
        return None

    def rename(self, passage_id):
        """Give a passage another id, wherever it is."""
        k = self.k
        if self.format != "ikat2025":
            self.passages[k]["id"] = passage_id
            return
        old = list(self.turn["references"])[k]
        for holder, name in ((self.turn, "references"), *((one, "citations") for one in self.turn["responses"])):
            holder[name] = {passage_id if key == old else key: score for key, score in holder[name].items()}

    def statement(self, ptkb_id):
        """Add a PTKB statement after the last."""
        if self.format == "ikat2023":
            known = {one.ptkb_id: one.text for one in self.base.turns[self.turn_id].ptkb}
            score = self.ptkb[-1]["score"] - 1
            self.ptkb.append({"id": ptkb_id, "text": known.get(ptkb_id, "I am."), "score": score})
        else:
            self.ptkb.append(int(ptkb_id))


def put(where, name, *values):
    """A fault that gives a member one of some values; `where` is a name of a `Spot`'s part."""
    return lambda spot: getattr(spot, where).__setitem__(name, spot.one(*values))


def drop(where, name):
    return lambda spot: getattr(spot, where).pop(name) and None


def rename(*ids):
    return lambda spot: spot.rename(spot.one(*ids))


def turn_id(*ids):
    def fault(spot):
        spot.turn["turn_id"] = spot.one(*ids)
        return [f"missing_turn@{spot.turn_id}"]

    return fault


def too_high(spot):
    topic = spot.turn_id.rpartition("_")[0]
    spot.turn["turn_id"] = f"{topic}_{spot.one('99', '999999', '0099')}"
    return [f"missing_turn@{spot.turn_id}"]


def beyond_the_tree(spot):
    """The number of a node of a CAsT tree is never too high, because it is not a plain number."""
    if "-" not in spot.turn_id.rpartition("_")[2]:
        return SKIP
    spot.turn["turn_id"] += "99"
    return [f"missing_turn@{spot.turn_id}"]


def no_turn_id(spot):
    del spot.turn["turn_id"]
    return [f"missing_turn@{spot.turn_id}"]


def no_object(spot):
    spot.turns[spot.i] = spot.one(5, "x", [], None)
    return [f"missing_turn@{spot.turn_id}"]


def copied_response(**changes):
    def fault(spot):
        spot.turn["responses"].append({**copy.deepcopy(spot.response), **changes})
        return

    return fault


def first_is_last(spot):
    last = {**copy.deepcopy(spot.response), "rank": len(spot.turn["responses"]) + 1}
    spot.turn["responses"].insert(0, last)
    return


def ranks_from_two(spot):
    for response in spot.turn["responses"]:
        response["rank"] += 1


def copied_turn(spot):
    spot.turns.append(copy.deepcopy(spot.turn))


def lost_turn(spot):
    del spot.turns[spot.i]


def same_score(spot):
    def change(scores):
        if len(scores) < 2:
            return SKIP
        k = 1 + spot.draw(len(scores) - 1)
        scores[k] = scores[k - 1]
        return None

    return spot.scores(change)


def swapped_scores(spot):
    def change(scores):
        if len(scores) < 2:
            return SKIP
        k = 1 + spot.draw(len(scores) - 1)
        scores[k], scores[k - 1] = scores[k - 1], scores[k]
        return None

    return spot.scores(change)


def a_score(*values):
    def fault(spot):
        return spot.scores(lambda scores: scores.__setitem__(spot.draw(len(scores)), spot.one(*values)))

    return fault


def score_as_text(spot):
    def change(scores):
        k = spot.draw(len(scores))
        scores[k] = str(scores[k])

    return spot.scores(change)


def twice(spot):
    first, second = spot.k, spot.k
    if first == second:
        return SKIP
    spot.passages[first]["id"] = spot.passages[second]["id"]
    return None


def no_passages(spot):
    if spot.format == "ikat2025":
        spot.turn["references"] = {}
        spot.response["citations"] = {}
    elif spot.one(True, False):
        del spot.response[PASSAGES[spot.format]]
    else:
        spot.response[PASSAGES[spot.format]] = []


def nothing_used(spot):
    if spot.format == "ikat2025":
        if spot.one(True, False):
            del spot.response["citations"]
        else:
            spot.response["citations"] = {}
        return
    absent = spot.one(True, False)
    for passage in spot.passages:
        passage["used"] = False
        if absent:
            del passage["used"]


def no_flag(spot):
    passage = spot.passage
    del passage["used"]
    return None if any(one.get("used") for one in spot.passages) else SKIP


def thousand_and_one(spot):
    if spot.format == "ikat2025":
        ids = [f"clueweb22-en0000-00-00000:{n}" for n in range(1001)]
        spot.turn["references"] = {passage_id: 2000 - n for n, passage_id in enumerate(ids)}
        spot.response["citations"] = {ids[7]: 1}
        return
    first = next(one for one in spot.passages if one.get("used", True))
    many = [{**first, "id": f"{first['id']}{n}"} | ({"score": 2000 - n} if spot.scored else {}) for n in range(1001)]
    spot.response[PASSAGES[spot.format]] = many
    return


def foreign_passage_entry(spot):
    spot.passages[spot.k] = spot.one("clueweb", 5, None)
    still = [one for one in spot.passages if type(one) is dict]
    return SKIP if spot.format in FLAGGED and not any(one.get("used") for one in still) else None


def hostile_used_text(spot):
    used = [one for one in spot.passages if one.get("used", True)][:5]
    spot.one(*used)["text"] = spot.one("a\0", "\ud800")


def references_no_object(spot):
    spot.turn["references"] = spot.one([], None, "x")
    return SKIP if spot.turn["references"] is None else None


def statement(ptkb_id):
    return lambda spot: spot.statement(ptkb_id)


def same_statement(spot):
    if spot.format == "ikat2025":
        return spot.ptkb.append(spot.ptkb[0])
    return spot.statement(str(spot.ptkb[0] if spot.format == "ikat2024" else spot.ptkb[0]["id"]))


def no_statements(spot):
    if spot.one(True, False):
        del spot.response["ptkb_provenance"]
    else:
        spot.response["ptkb_provenance"] = []


def of_ptkb(change):
    """A fault of one of the objects of 2023."""
    return lambda spot: change(spot, spot.one(*spot.ptkb))


def same_ptkb_score(spot):
    if len(spot.ptkb) < 2:
        return SKIP
    k = 1 + spot.draw(len(spot.ptkb) - 1)
    spot.ptkb[k]["score"] = spot.ptkb[k - 1]["score"]
    return None


def append_ptkb(*values):
    return lambda spot: spot.ptkb.append(spot.one(*values))


def metadata(name, value):
    """Change the metadata of a line after the first."""

    def fault(spot):
        if spot.i == 0:
            return SKIP
        spot.turn["metadata"][name] = value
        if value is DROP:
            del spot.turn["metadata"][name]
        return None

    return fault


def drop_citation_or_reference_score(name):
    def fault(spot):
        holder = spot.turn if name == "references" else spot.response
        key = spot.one(*sorted(holder[name]))
        holder[name][key] = spot.one("x", [], True)

    return fault


# Code, formats, fault. The code is expected at the turn, `code@turn_id` at another (`@` alone: at none); a fault
# gives the further codes that it must bring, None for no further ones, or SKIP where it cannot be put.
TURN_FAULTS = [
    ("unknown_field", ALL, put("turn", "note", 1, None, "x")),
    ("unknown_field", ALL, put("response", "note", 1, None, "x")),
    ("unknown_field", JSON, put("passage", "note", 1, None, "x")),
    ("missing_field", ALL, drop("response", "rank")),
    ("missing_field", ALL, drop("response", "text")),
    ("missing_field", ALL, drop("turn", "responses")),
    ("missing_field@", ALL, no_turn_id),
    ("missing_field", JSON, drop("passage", "id")),
    ("missing_field", ("ikat2023",), of_ptkb(lambda spot, one: one.pop(spot.one("id", "text")) and None)),
    ("missing_field", ("ikat2025",), drop("turn", "metadata")),
    ("missing_field", ("ikat2025",), lambda spot: spot.turn["metadata"].pop("run_id") and None),
    ("missing_field", ("ikat2025",), metadata("team_id", DROP)),
    ("wrong_type@", ALL, no_object),
    ("wrong_type", ALL, lambda spot: spot.turn["responses"].__setitem__(0, spot.one("x", 5, None, []))),
    ("wrong_type", ALL, put("turn", "responses", {}, None, "x")),
    ("wrong_type", ALL, put("response", "rank", "first", True, None, 1.5, [1])),
    ("wrong_type", ALL, put("response", "text", None, 5, ["x"])),
    ("wrong_type", JSON, lambda spot: spot.response.__setitem__(PASSAGES[spot.format], spot.one({}, "x", 5))),
    ("wrong_type", JSON, foreign_passage_entry),
    ("wrong_type", JSON, put("passage", "id", 5, None, [])),
    ("wrong_type", JSON, put("passage", "score", "high", True, [1.0])),
    ("wrong_type", JSON, put("passage", "text", 5, [])),
    ("wrong_type", ("ikat2025",), references_no_object),
    ("wrong_type", ("ikat2025",), drop_citation_or_reference_score("references")),
    ("wrong_type", ("ikat2025",), drop_citation_or_reference_score("citations")),
    ("wrong_type", ("ikat2025",), put("response", "citations", [], "x", 1)),
    ("wrong_type", ("ikat2025",), put("turn", "metadata", [], None)),
    ("wrong_type", ("ikat2023",), append_ptkb("1", 1, None)),
    ("wrong_type", ("ikat2023",), of_ptkb(lambda spot, one: one.update({spot.one("id", "text"): spot.one(1, None)}))),
    ("wrong_type", ("ikat2023",), of_ptkb(lambda spot, one: one.__setitem__("score", spot.one("abcdef", True)))),
    ("wrong_type", ("ikat2024",), append_ptkb({"id": 1}, "one", None, 1.5, True)),
    ("wrong_type", ("ikat2025",), append_ptkb(1, None, {"id": 1})),
    ("wrong_type", IKAT, put("response", "ptkb_provenance", {}, "x", 1)),
    ("coerced_value", ALL, lambda spot: spot.response.__setitem__("rank", spot.one(str, float)(spot.response["rank"]))),
    ("coerced_value", ALL, score_as_text),
    ("several_runs", ("ikat2025",), metadata("run_id", "other")),
    ("inconsistent_metadata", ("ikat2025",), metadata("team_id", "other")),
    ("inconsistent_metadata", ("ikat2025",), metadata("run_type", "manual")),
    ("empty_team", ("ikat2025",), metadata("team_id", " ")),
    ("unusable_text", ALL, put("response", "text", "a\0b", "a\ud800")),
    ("unusable_text", JSON, hostile_used_text),
    ("text_too_long", ALL, put("response", "text", LONG)),
    ("empty_text", ALL, put("response", "text", "", " ", "\n\t\u3000", "\u200b\u2060")),
    ("over_token_limit", ALL, put("response", "text", "word " * 251, "a b " * 200)),
    ("bad_rank", ALL, put("response", "rank", 0, -1, 10**30)),
    ("duplicate_rank", ALL, copied_response()),
    ("ranks_not_increasing", ALL, first_is_last),
    ("no_rank_one", ALL, ranks_from_two),
    ("no_response", ALL, put("turn", "responses", [])),
    ("too_many_responses", ALL, put("turn", "responses", [0] * 1_001)),
    ("duplicate_turn", ALL, copied_turn),
    ("malformed_turn_id@9-1", ALL, turn_id("9-1")),
    ("malformed_turn_id@9 1_1", ALL, turn_id("9 1_1")),
    ("unknown_turn@zzz_1", ALL, turn_id("zzz_1")),
    ("turn_number_too_high@new", IKAT, too_high),
    ("unknown_turn@new", ("cast2022",), beyond_the_tree),
    ("missing_turn", ALL, lost_turn),
    ("duplicate_passage", JSON, twice),
    ("malformed_passage_id", ALL, rename("clueweb22-:", "MARCO", f"{WELL_FORMED}:1", " ")),
    ("unusable_passage_id", ALL, rename("", f"{WELL_FORMED}{'0' * 200}", "a\nb")),
    ("equal_scores", ALL, same_score),
    ("scores_not_decreasing", ALL, swapped_scores),
    ("score_not_finite", ALL, a_score(float("nan"), float("inf"), -float("inf"))),
    ("missing_score", ALL, a_score(None)),
    ("no_provenance", ALL, no_passages),
    ("no_used_passage", (*FLAGGED, "ikat2025"), nothing_used),
    ("missing_used", FLAGGED, no_flag),
    ("too_many_passages", ALL, thousand_and_one),
    ("citation_not_in_references", ("ikat2025",), lambda spot: spot.response["citations"].update({WELL_FORMED: 1.0})),
    ("no_ptkb", IKAT, no_statements),
    ("duplicate_ptkb", IKAT, same_statement),
    ("invalid_ptkb_id", FLAGGED, statement("0")),
    ("invalid_ptkb_id", FLAGGED, statement("-1")),
    ("unknown_ptkb_id", FLAGGED, statement("999")),
    ("ptkb_text_differs", ("ikat2023",), of_ptkb(lambda spot, one: one.update(text=one["text"] + spot.one(" ", ".")))),
    ("ptkb_scores_not_decreasing", ("ikat2023",), same_ptkb_score),
    ("missing_ptkb_score", ("ikat2023",), of_ptkb(lambda spot, one: one.pop("score") and None)),
    ("score_not_finite", ("ikat2023",), of_ptkb(lambda spot, one: one.update(score=float("nan")))),
    ("empty_ptkb", ("ikat2023",), of_ptkb(lambda spot, one: one.update(text=spot.one("", " ")))),
    ("empty_ptkb", ("ikat2025",), append_ptkb("", " ")),
]  # fmt: skip


def head(name, *values):
    """A fault of the run's name or type, in JSON Lines of every line's metadata."""

    def fault(spot):
        if name == "run_type" and not spot.scored:
            # Only runs of the type `only_response` need no scores.
            return SKIP
        value = spot.one(*values)
        for holder in [line["metadata"] for line in spot.turns] if spot.format == "ikat2025" else [spot.document]:
            key = name if spot.format != "ikat2025" else name.replace("run_name", "run_id")
            holder[key] = value
            if value is DROP:
                del holder[key]
        return None

    return fault


def other_topics(spot):
    for n, turn in enumerate(spot.turns):
        turn["turn_id"] = f"zz-{n}_1"
    return


def without_turns(spot):
    spot.turns.clear()
    return [f"missing_turn@{turn_id}" for turn_id in spot.base.turns]


RUN_FAULTS = [
    ("unknown_run_type@", ALL, head("run_type", "auto", "AUTOMATIC", "x" * 500)),
    ("empty_run_type@", ALL, head("run_type", "", DROP)),
    ("empty_run_id@", ALL, head("run_name", "", " ")),
    ("unusable_run_id@", ALL, head("run_name", "a\nb", "x" * 201)),
    ("unusable_text@", JSON, put("document", "run_name", "a\0", "\ud800")),
    ("missing_field@", JSON, drop("document", "run_name")),
    ("missing_field@", ("ikat2024",), drop("document", "turns")),
    ("wrong_type@", JSON, put("document", "run_name", 5, None)),
    ("wrong_type@", JSON, head("run_type", 5, ["automatic"])),
    ("wrong_type@", ("ikat2024",), put("document", "eval_response", "True", 1)),
    ("unknown_field@", JSON, put("document", "note", 1, None)),
    ("no_turns@", ("ikat2024",), without_turns),
    ("wrong_topics@", ALL, other_topics),
    ("too_many_turns@", ALL, lambda spot: spot.turns.extend([0] * 10_000)),
]  # fmt: skip


def expected(code, spot, further):
    """The problems that a fault must bring, counted."""
    codes = Counter()
    for one in (code, *(further or ())):
        name, at, turn_id = one.partition("@")
        where = spot.turn["turn_id"] if turn_id == "new" else (turn_id or None) if at else spot.turn_id
        codes[name, where] += 1
    return codes


@pytest.mark.parametrize(
    ("code", "formats", "fault"),
    [pytest.param(*row, id=f"{row[0]}-{n}") for n, row in enumerate(TURN_FAULTS + RUN_FAULTS)],
)
@settings(PLACES, max_examples=4)
@given(numbers=NUMBERS)
def test_a_fault_brings_its_problems_and_no_others(bases, scratch, code, formats, fault, numbers):
    for base in bases:
        if base.format not in formats:
            continue
        spot = Spot(base, picker(numbers))
        further = fault(spot)
        if further is SKIP:
            continue
        note(f"{base.name} {spot.turn_id}")
        found = problems_of(scratch, bytes_of(spot.document), base.turns)
        assert found == expected(code, spot, further), base.name


def cut(content, draw, lines):
    """Cut where a value or the end of a text must follow; in JSON Lines inside of the last line."""
    start = content.rfind(b"\n") + 1 + 20 if lines else 1
    places = [n + 1 for n in range(start, len(content)) if content[n] in b",:{["]
    return content[: places[draw(len(places))]]


def spoil(find, instead):
    """Replace an occurrence of `find`."""

    def fault(content, draw, lines):
        start = content.rfind(b"\n") + 1 if lines else 0
        places = [n for n in range(start, len(content)) if content.startswith(find, n)]
        at = places[draw(len(places))]
        return content[:at] + instead + content[at + len(find) :]

    return fault


def gzip_cut_short(content, draw, lines):
    packed = gzip.compress(content)
    return packed[: 18 + draw(len(packed) - 18)]


# Code, whether a line alone is lost where there are lines, fault of the bytes.
BYTE_FAULTS = [
    ("truncated_json", True, cut),
    ("not_json", True, spoil(b'"turn_id":', b'"turn_id" "x":')),
    ("not_json", True, spoil(b'"rank":', b'"rank"=')),
    ("python_literal", True, spoil(b'"rank": 1', b'"rank": True')),
    ("python_literal", True, spoil(b'"rank": 1', b'"rank": None')),
    ("wrong_encoding", True, spoil(b'"text": "', b'"text": "\xff')),
    ("wrong_encoding", False, lambda content, draw, lines: content.decode().encode(("utf-16", "utf-32")[draw(2)])),
    ("damaged_gzip", False, gzip_cut_short),
    ("packed_otherwise", False, lambda content, draw, lines: (bz2, lzma)[draw(2)].compress(content)),
    ("empty_file", False, lambda content, draw, lines: (b"", b"   ")[draw(2)]),
    ("unknown_format", False, lambda content, draw, lines: (b"{}", b"[]", b'"x"', b'{"run": []}')[draw(4)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "one_line", "fault"), [pytest.param(*row, id=f"{row[0]}-{n}") for n, row in enumerate(BYTE_FAULTS)]
)
@settings(PLACES, max_examples=4)
@given(numbers=NUMBERS)
def test_a_fault_of_the_bytes_brings_its_problem_and_no_other(bases, scratch, code, one_line, fault, numbers):
    for base in bases:
        lines = base.format == "ikat2025"
        content = fault(bytes_of(base.document), picker(numbers), lines)
        found = problems_of(scratch, content, base.turns)
        if lines and one_line:
            last = list(base.turns)[-1]
            assert found == Counter({(code, None): 1, ("missing_turn", last): 1}), base.name
        else:
            assert found == Counter({(code, None): 1}), base.name


@pytest.mark.slow
def test_a_byte_order_mark_is_told_of_and_read_over(bases, scratch):
    for base in bases:
        content = b"\xef\xbb\xbf" + bytes_of(base.document)
        assert problems_of(scratch, content, base.turns) == Counter({("byte_order_mark", None): 1})


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def planted(spot):
    if not any(one.get("text") for one in spot.passages):
        return SKIP
    spot.passage["text"] += spot.one(" ", "More evidence.")
    return None


COLLECTION_FAULTS = [
    ("unknown_passage", ALL, lambda spot: spot.rename(UNKNOWN_ID.get(spot.format, WELL_FORMED))),
    ("passage_text_differs", ("ikat2023", "cast2022"), planted),
]


@pytest.mark.parametrize(("code", "formats", "fault"), COLLECTION_FAULTS)
@settings(PLACES, max_examples=8)
@given(numbers=NUMBERS)
def test_a_passage_that_is_not_the_collection_s_is_found(bases, scratch, code, formats, fault, numbers):
    for base in bases:
        if base.format not in formats:
            continue
        passages = [
            passage
            for turn in turns_of(base.document)
            for response in turn["responses"]
            for passage in (
                [{"id": one} for one in turn["references"]]
                if base.format == "ikat2025" else response[PASSAGES[base.format]]
            )
        ]  # fmt: skip
        # The placeholders of the 2023 sample give every passage one text, so the last of an id is as good as any.
        md5s = {one["id"]: md5(one.get("text", "")) for one in passages}
        collection = CollectionHashes(
            lambda ids, md5s=md5s: [md5s.get(one) for one in ids], lambda text, wanted: md5(text) == wanted
        )
        assert problems_of(scratch, bytes_of(base.document), base.turns, collection) == Counter()
        spot = Spot(base, picker(numbers))
        if fault(spot) is SKIP:
            continue
        found = problems_of(scratch, bytes_of(spot.document), base.turns, collection)
        assert found == Counter({(code, spot.turn_id): 1}), base.name


ELSEWHERE = {
    "test_a_folder_says_what_it_does_not_read": ("hidden_file", "not_a_run_file", "subfolder", "unreadable_file"),
    "test_each_fault_of_a_pool_is_found_at_its_line": (
        "duplicate_response_id", "malformed_line", "missing_bank", "missing_pool", "not_in_bank",
    ),
    "test_a_file_with_more_bytes_than_are_read_is_not_read": ("too_large",),
    "test_a_file_with_more_values_than_any_run_is_not_decoded": ("too_many_values",),
    "test_runs_are_compared_by_their_ids": ("duplicate_run_id", "similar_run_ids"),
    "test_runs_of_several_years_are_told_by_their_turns": ("several_years",),
    "test_a_run_most_of_whose_evidence_does_not_exist_is_named_once": ("absent_evidence",),
    "test_citations_over_the_limit_are_warned_of": ("too_many_citations",),
    "test_faults_of_conversations_are_found_at_their_turn": (
        "empty_utterance", "missing_exchange", "utterance_differs",
    ),
    "test_faults_of_topics_are_in_the_table_too": ("broken_parent", "duplicate_topic", "unknown_statement"),
}  # fmt: skip
"""Codes that no run file with a format's turns can provoke, by the test of test_validate.py that provokes them."""


def test_every_code_is_provoked_by_a_fault_here_or_by_a_test_that_is_named():
    tables = (*TURN_FAULTS, *RUN_FAULTS, *BYTE_FAULTS, *COLLECTION_FAULTS)
    here = {row[0].partition("@")[0] for row in tables} | {"byte_order_mark"}
    named = {code for codes in ELSEWHERE.values() for code in codes}
    assert here.isdisjoint(named)
    assert here | named == set(CODES)
    assert all(callable(getattr(by_hand, name)) for name in ELSEWHERE)


NOT_PLACED = {
    # (code, format): why the fault cannot be put into those of the project's own runs
    ("equal_scores", "cast2022"): "its responses have one passage each",
    ("scores_not_decreasing", "cast2022"): "its responses have one passage each",
    ("duplicate_passage", "cast2022"): "its responses have one passage each",
    ("unknown_turn@new", "cast2022"): "its topics are no tree",
}


def not_placed(bases):
    """(code, format) of every fault that 30 attempts put nowhere."""
    return {
        (code, format)
        for code, formats, fault in (*TURN_FAULTS, *RUN_FAULTS, *COLLECTION_FAULTS)
        for format in formats
        if all(
            fault(Spot(base, picker([n, n // 3, n // 5]))) is SKIP
            for base in bases if base.format == format
            for n in range(30)
        )
    }  # fmt: skip


def test_every_fault_can_be_put_into_the_runs_of_the_project(examples):
    """So that no row of the tables is passed over for every run of a format."""
    assert not_placed(examples) == NOT_PLACED.keys()


def test_every_fault_can_be_put_into_the_real_runs(real):
    assert not_placed(real) == set()
