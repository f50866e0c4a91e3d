"""What a reader of the documents has beside the example: the files that the pages name, made when a command needs them.

The pages show commands on files of the reader. Here each such name stands for a small file of the same kind, so that
the commands run as they are shown.
"""

import atexit
import bz2
import functools
import gzip
import hashlib
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from judge.calibrate.certificate import make_certificate, read_certificate
from judge.calibrate.certified import topic_digest
from judge.cli import main
from judge.extra.nuggets.forms import read_bank
from judge.io.files import json_bytes
from judge.io.words import containment
from tests.conftest import PROJECT, put

EXAMPLE = PROJECT / "examples"
GOLD = PROJECT / "gold" / "example.gold.jsonl"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CARDS = PROJECT / "docs" / "cards"
SOUND = ("harbor-grounded.json", "mill-fluent-invented.json", "quarry-copied.json")
JUDGE = "openai/gpt-4.1-mini"
INPUTS = ["--topics", str(EXAMPLE / "topics.json"), "--passages", str(EXAMPLE / "passages.jsonl")]


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page with a language: the language and the text."""
    return [(language, block) for language, block in BLOCK.findall(text) if language]


def commands(block: str) -> Iterator[str]:
    """The command lines of a block, without comments and without the breaks of long lines."""
    for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield re.sub(r"\s+#\s.*$", "", line).strip()


def told_files(text: str) -> Iterator[tuple[str, str]]:
    """The files that a page tells its reader to write: a name, then a block of its content."""
    yield from re.findall(r"`([\w.]+\.\w+)`[^`\n]*\n+```(?:toml|text)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def provide(name: str, document: str) -> bool:
    """Make the file or folder of this name in the working folder; whether there is anything to make."""
    make = MADE.get(f"{document}: {name}") or MADE.get(name)
    if make is None:
        above = Path(name).parent.as_posix()
        return above not in (".", "/") and not Path(above).exists() and provide(above, document) and Path(name).exists()
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    return True


def _need(name: str) -> Path:
    """A file or folder of the reader, made if nobody has made it yet."""
    assert Path(name).exists() or provide(name, ""), name
    return Path(name)


def _run(*arguments: str) -> None:
    assert main([*arguments]) in (0, 1), arguments


def _runs(path: Path) -> None:
    path.mkdir()
    for name in SOUND:
        shutil.copyfile(EXAMPLE / "runs" / name, path / name)


def _output_folder(path: Path, *options: str) -> None:
    """The example as judged with these options; it is judged once, and copied from then on."""
    kept = _kept(options)
    if not kept.exists():
        _run("run", "--runs", str(EXAMPLE / "runs"), *INPUTS, *options, "--out", str(kept))
    shutil.copytree(kept, path)


@functools.cache
def _kept(_: tuple[str, ...]) -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "out"


def _output(*options: str) -> Callable[[Path], None]:
    return lambda path: _output_folder(path, *options)


_judged = _output("--model", JUDGE)
_judged_once = _output("--criteria", "groundedness", "--model", JUDGE)
_with_probabilities = _output("--criteria", "groundedness", "--model", JUDGE, "--logprobs")
_overlapping = _output("--criteria", "groundedness", "--model", "baseline/overlap")


def _judged_folder() -> Path:
    """The output folder from which labels are made."""
    folder = Path(".judged")
    if not folder.exists():
        _judged(folder)
    return folder


def _by(*words: str) -> Callable[[Path], None]:
    """A file that a command writes; a word after `@` is a file or folder of the reader."""
    return lambda path: _run(*(str(_need(word[1:])) if word[0] == "@" else word for word in words), "--out", str(path))


def _late(path: Path) -> None:
    run = json.loads((EXAMPLE / "runs" / SOUND[0]).read_text(encoding="utf-8"))
    path.write_text(json.dumps(run | {"run_name": "late"}), encoding="utf-8")


def _matched(path: Path) -> None:
    """People's matches of the responses that the reader's output folders hold: what shares most words is supported."""
    nuggets = read_bank(EXAMPLE / "nuggets.jsonl").nuggets
    judged = (_judged_folder() / "pool.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [
        {"turn_id": row["turn_id"], "nugget_id": nugget.nugget_id, "response_id": row["response_id"],
         "label": "supports" if containment(nugget.text, [row["text"]]) > 0.6 else "does_not", "assessor": "ann"}
        for row in map(json.loads, judged)
        for nugget in nuggets
        if nugget.turn_id == row["turn_id"]
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _example(name: str) -> Callable[[Path], None]:
    return lambda path: void(shutil.copyfile(EXAMPLE / name, path))


def _several(make: Callable[[Path], None], names: str) -> dict[str, Callable[[Path], None]]:
    """Names of files and folders that are made alike."""
    return dict.fromkeys(names.split(), make)


def void(_: object) -> None:
    """Nothing, whatever was given."""


def _text(text: str) -> Callable[[Path], None]:
    return lambda path: void(path.write_text(text, encoding="utf-8"))


def _gold(path: Path) -> None:
    lines = GOLD.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"groundedness"' in line), encoding="utf-8")


def _last_year(path: Path) -> None:
    """The certificate of the reader's judge as if it were of other topics."""
    _run("calibrate", "--gold", str(_need("gold.jsonl")), "--judgments", str(_judged_folder()), "--out", str(path))
    certificate = read_certificate(path / "certificate.json")
    entries = [
        msgspec.structs.replace(entry, topic_digests=tuple(map(topic_digest, ("101", "102"))))
        for entry in certificate.certified
    ]
    (path / "certificate.json").write_bytes(json_bytes(make_certificate(entries, "2025-11-01")))


def _grades(path: Path) -> None:
    """Qrels of the responses of the reader's output folder."""
    shutil.copyfile(_judged_folder() / "qrels" / "response_groundedness.llm.qrel", path)


def _trec_run(path: Path) -> None:
    _run("convert", str(EXAMPLE / "runs" / "orchard-manual.json.gz"), "--to", "trec-run", "-o", f"{path}.folder")
    shutil.copyfile(next(Path(f"{path}.folder").glob("*.run")), path)


def _passages() -> list[dict[str, str]]:
    lines = (EXAMPLE / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _passage_qrels(path: Path) -> None:
    turns = ("1-1_1", "1-1_2", "1-1_3")
    lines = [f"{turn} 0 {passage['id']} {place % 4}\n" for turn in turns for place, passage in enumerate(_passages())]
    path.write_text("".join(lines), encoding="utf-8")


def _passage_gold(path: Path) -> None:
    """Grades by people of every passage of half of the turns."""
    lines = []
    for turn_id in (f"{topic}-1_{turn}" for topic in (1, 2, 3) for turn in (1, 2, 3)):
        for place, passage in enumerate(_passages()):
            row = {"turn_id": turn_id, "topic_id": turn_id[:3], "criterion": "passage_relevance", "grade": place % 4}
            row |= {"assessor": "ann", "response_id": passage["id"], "inclusion_probability": 0.5}
            lines.append(f"{json.dumps(row)}\n")
    path.write_text("".join(lines), encoding="utf-8")


def _hash_list() -> str:
    rows = [(*passage["id"].rsplit(":", 1), passage["contents"]) for passage in _passages()]
    return "".join(f"{name}\t{part}\t{hashlib.md5(text.encode()).hexdigest()}\n" for name, part, text in rows)


def _in_folder(name: str, new: str) -> Callable[[Path], None]:
    """A folder with a file of the example under a new name."""
    return lambda path: void(shutil.copyfile(EXAMPLE / name, _folder(path) / new))


def _assessed(path: Path) -> None:
    """A grade by an assessor for each response of the plan."""
    rows = [json.loads(line) for line in _need("plan.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = [
        f"{row['turn_id']},{row['response_id']},{name},{path.stem},{place % 4}\n"
        for place, row in enumerate(rows)
        for name in row["criteria"]
    ]
    path.write_text("turn_id,response_id,criterion,assessor,grade\n" + "".join(lines), encoding="utf-8")


def _yes_or_no(path: Path) -> None:
    """The gold of the example by whether a grade is positive."""
    _gold(path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    put(path, "".join(json.dumps(row | {"grade": int(row["grade"] >= 2)}) + "\n" for row in rows))


def _settings(path: Path) -> None:
    """The file that the page shows under the heading about options in a file."""
    (text,) = (block for language, block in blocks((PROJECT / "docs/run.md").read_text("utf-8")) if language == "toml")
    path.write_text(text, encoding="utf-8")


def _workers(path: Path) -> None:
    """Labels by two workers of the responses in the reader's bank, with one known item."""
    criterion = "fluency" if path.stem == "more" else "relevance"
    bank = {turn: [] for turn in ("1-1_1", "1-1_2")}  # type: dict[str, list[str]]
    for line in (_need("out") / "pool.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["turn_id"] in bank:
            bank[row["turn_id"]].append(row["response_id"])
    rows = [
        f"{worker},{turn},{name},{criterion},{place % 3}\n"
        for worker in ("w1", "w2")
        for turn, names in bank.items()
        for place, name in enumerate(names)
    ]
    path.write_text("worker,turn_id,response_id,criterion,label\n" + "".join(rows), encoding="utf-8")


def _regin(path: Path) -> None:
    """The judgments of two turns, of responses and of clarifying questions."""
    for folder, word, criteria in (
        ("response_evaluation", "Response", ("Relevance", "Naturalness", "Conciseness")),
        ("clarifying_question_evaluation", "Question", ("Relevance", "Novelty", "Diversity")),
    ):
        turns = {
            f"1_{turn}": {
                f"{word}s": [
                    {f"{word} ID": f"R{turn}", f"{word} Text": f"Text {turn}.", **dict.fromkeys(criteria, turn)}
                ]
            }
            for turn in (1, 2)
        }
        put(path / folder / f"qrels/{word.lower()}_judgments.json", json.dumps(turns))


def _benchmark(path: Path) -> None:
    path.mkdir()
    lines = [f"Train {n} is late.\tA train?\tIt is late.\t{label}\n" for n in range(6) for label in BEGIN]
    (path / "begin_dev_wow.tsv").write_text("knowledge\tmessage\tresponse\tbegin_label\n" + "".join(lines))
    nuggets = [{"text": "A train.", "assignment": label} for label in ("support", "not_support")]
    row = {"qid": "1", "query": "A train?", "run_id": "r", "answer_text": "One train.", "nuggets": nuggets}
    (path / "nugget_assignment.jsonl").write_text(json.dumps(row))
    samples = [
        {
            "sample_id": n,
            "source": "A train.",
            "summary": "One train.",
            "annotations": [{"label": [label], "note": ""}],
            "metadata": {},
        }
        for n, label in enumerate(("Benign", "Unwanted", "Questionable"))
    ]
    put(path / "FaithBench" / "data_for_release" / "batch_1.json", json.dumps({"samples": samples}))
    for name, shift in (("llmjudge_test.qrel", 0), ("judges/team-judge.txt", 1)):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(_pairs(shift))


def _pairs(shift: int, more: str = "") -> str:
    """Grades of the passages of ten queries, some of them off by `shift`."""
    return more + "".join(f"q{q} 0 p{p} {(q + p + shift * (p == 1)) % 4}\n" for q in range(10) for p in range(4))


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _wordings(path: Path) -> None:
    """Two wordings of the prompt for groundedness."""
    text = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    for name, rule in {"brief": "Be brief.", "strict": "Check every figure."}.items():
        (_folder(path) if not path.exists() else path).joinpath(f"{name}.md").write_text(
            text.replace("# User\n", f"{rule}\n\n# User\n"), encoding="utf-8"
        )


BEGIN = ("Fully attributable", "Not fully attributable")
SPANS = "1\tacacia tree\n2\tRed Sox\n3\tgolden ratio\n4\tfifth amendment\n"

MADE: dict[str, Callable[[Path], None]] = {
    "runs": _runs,
    "run.json": _example(f"runs/{SOUND[0]}"),
    "topics.json": _example("topics.json"),
    "passages.jsonl": _example("passages.jsonl"),
    "out": _judged,
    "docs/report.md: out": _overlapping,
    **_several(_judged_once, "judged out-may out-june out-2024 out-2025 out-2026 before after a"),
    "judge calibrate: labels.csv": _text("id,human,judge\n1,3,3\n2,0,1\n3,2,2\n4,3,2\n5,0,0\n6,1,1\n"),
    "judge evaluate qrels: out": _judged_once,
    "judge prompts cuts: out": _with_probabilities,
    "b": _overlapping,
    "people.jsonl": _matched,
    "docs/passage-grades.md: people.jsonl": _passage_gold,
    "matched": _by("nuggets", "match", "--pool", "@out", "--bank", "@nuggets.jsonl", "--model", "baseline/overlap"),
    "manual.json": lambda path: path.write_bytes(
        gzip.decompress((EXAMPLE / "runs/orchard-manual.json.gz").read_bytes())
    ),
    "nuggets.jsonl": _example("nuggets.jsonl"),
    "bank": _in_folder("nuggets.jsonl", "nuggets.jsonl"),
    "gold_nuggets_human.json": _text('{"1-1_1": {"[1]": {"text": "Ramps are free.", "relevance": "3"}}}'),
    "rubrics.csv": _text("id,rubrik\n1-1-r1,Are ramps free?\n"),
    "pooled": _by("pool", "--runs", str(EXAMPLE / "runs"), *INPUTS),
    "response_runs": lambda path: void(shutil.copytree(_judged_folder() / "response_runs", path)),
    **_several(_gold, "gold.jsonl dev.jsonl"),
    "docs/second-year.md: gold2.jsonl": _gold,
    **{f"{name}: cal": _last_year for name in ("docs/second-year.md", "judge calibrate", "judge plan")},
    "plan.jsonl": _by("gold", "plan", "--pool", "@out", "--n", "40", "--per-run", "5", "--seed", "1"),
    **{f"docs/gold.md: {name}.csv": _assessed for name in ("labels", "labels-ann", "labels-bob")},
    "judge gold: labels": _assessed,
    **_several(_example("../prompts/groundedness/graded.md"), "my.md mine/a.md mine/b.md"),
    "wordings": _wordings,
    **_several(_grades, "people.qrel crowd.qrel assessor.qrel worker.qrel response_relevance.qrel"),
    "response_groundedness.qrel": _grades,
    **_several(
        _passage_qrels, "passages.qrel nist.qrel llm.qrel gpt.qrels qwen-v2.qrels ministral-v1.qrels ministral-v2.qrels"
    ),
    **_several(_trec_run, "a.run more.run"),
    "ptkb_rel_nist": _text("1-1_1 0 1 1\n1-1_1 0 2 0\n"),
    "ptkb_rel_org": _text("1-1_1 0 2 1\n1-1_1 0 1 0\n"),
    "task1_test.rel": _text(SPANS),
    "mine.tsv": _text(SPANS.replace("acacia tree", "the tree")),
    "equiv.txt": _text("1 2\n3 4\n"),
    "qrel-judgement-v4.txt": _text("".join(f"{topic} Q0 p1 1\n" for topic in range(1, 5))),
    "mine.res": _text("".join(f"{topic} Q0 p{topic % 3} 1 1 r\n" for topic in range(1, 5))),
    "passage_hashes.tsv": _text(_hash_list()),
    "ikat_2023_passages_hashes.tsv.bz2": lambda path: void(path.write_bytes(bz2.compress(_hash_list().encode()))),
    "hashes.idx": _by("passages", "index", "--hashes", "@passage_hashes.tsv"),
    "collection.idx": _by("passages", "index", "--collection", "@shards"),
    **_several(_in_folder("passages.jsonl", "part.jsonl"), "shards collection ikat_jsonl"),
    "late.json": _late,
    "damaged.sqlite": lambda path: void(shutil.copyfile(_need("out") / "journal.sqlite", path)),
    "journal.jsonl": _by("journal", "export", "@out"),
    "split": _by("gold", "split", "@gold.jsonl", "--test", "0.5", "--seed", "1"),
    "grades.csv": lambda path: _text(_need("judge gold: labels").read_text().replace("turn_id", "turn", 1))(path),
    **_several(_workers, "labels.csv more.csv"),
    "gold.tsv": _text(SPANS),
    "a.tsv": _text(SPANS.replace("acacia tree", "the tree")),
    "b.tsv": _text(SPANS.replace("Red Sox", "socks")),
    "cards/overlap": lambda path: void(shutil.copytree(CARDS / "baseline-overlap", path)),
    "cards/gpt-4.1-mini": lambda path: void(shutil.copytree(CARDS / "gpt-4-turbo", path)),
    "cards": lambda path: void([_need("cards/overlap"), _need("cards/gpt-4.1-mini")]),
    "known.tsv": _text("turn_id\tresponse_id\tcriterion\tacceptable\n1-1_1\tR00001\trelevance\t0\n"),
    "docs/crowd.md: out/bank.json": _text('{"R1": "one", "R2": "two", "R3": "three"}'),
    "docs/prompts.md: dev.jsonl": _yes_or_no,
    "docs/run.md: judge.toml": _settings,
    "LLMJudge/llmjudge_test.qrel": _text(_pairs(0)),
    "LLMJudge-benchmark/*.txt": lambda path: _text(_pairs(1, "q0 0 p9 5\n"))(path.with_name("team-judge.txt")),
    "local-smollm2-135m": lambda path: void(shutil.copytree(CARDS / path.name, path)),
    "mi_turns.txt": _text("1_2\n"),
    "docs/scale.md: a.txt": _text("".join(f"1-1_{turn}\n" for turn in range(1, 7))),
    "docs/scale.md: b.txt": _text("".join(f"{topic}-1_{turn}\n" for topic in (2, 3) for turn in range(1, 6))),
    "CAsT-ReGIn": _regin,
    "data": _benchmark,
}
"""What the pages name, to what makes it; for one page alone, after the page's name."""
