"""USR: responses in dialogues of Topical Chat and PersonaChat, each graded by three annotators.

S. Mehri & M. Eskenazi (2020), USR: an unsupervised and reference free evaluation metric for dialog generation, ACL
2020, 681-707.
"""

from pathlib import Path

import msgspec

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file
from judge.extra.bench.datasets.reading import DatasetReading, Fill, read_by, skipped_by
from judge.stats.means import consensus

GRADES = (1, 2, 3)
"""Of `Natural`: whether the response sounds like what a person would say."""


class _Response(msgspec.Struct):
    response: str
    natural: list[int] = msgspec.field(name="Natural")


class _Dialogue(msgspec.Struct):
    context: str
    responses: list[_Response]


def _fill(name: str) -> Fill:
    def fill(folder: Path, reading: DatasetReading) -> None:
        file = find_file(folder, name)
        for where, dialogue in reading.entries(file, "", _Dialogue):
            unit = where.strip("$[]")
            context, utterance = _turns(dialogue.context)
            for number, given in enumerate(dialogue.responses):
                path = f"{where}.responses[{number}]"
                if not given.natural:
                    reading.skipped["no label"] += 1
                elif not set(given.natural) <= set(GRADES):
                    reading.problem("off_scale", file, f"{path}.Natural", f"{given.natural}: expected grades of 1 to 3")
                else:
                    response = LabeledResponse(
                        item_id=f"{unit}/{number}",
                        unit=unit,
                        grade=consensus(given.natural),
                        grades=tuple(given.natural),
                        response=given.response,
                        utterance=utterance,
                        context=context,
                    )
                    reading.add(file, path, response)

    return fill


def _turns(context: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """The exchanges of a dialogue and the utterance that is answered, which is its last line; speakers take turns."""
    *earlier, utterance = context.strip("\n").split("\n")
    # The line before the utterance was said by who answers it; a dialogue may begin with that speaker.
    spoken = earlier if len(earlier) % 2 == 0 else ["", *earlier]
    return tuple(zip(spoken[::2], spoken[1::2], strict=True)), utterance


def _dataset(name: str, title: str, file: str, size: int) -> Dataset:
    return Dataset(
        name=name,
        title=f"USR, {title}: naturalness by three annotators",
        criterion="naturalness",
        grades=GRADES,
        positive=(3,),
        unit="dialogue",
        licence="none is named",
        source=f"shikib.com/{file}",
        files=(file,),
        rung=None,
        read=read_by(_fill(file)),
        size=size,
        skipped=skipped_by(_fill(file)),
    )


USR = (
    _dataset("usr-topical", "Topical Chat", "tc_usr_data.json", 360),
    _dataset("usr-persona", "PersonaChat", "pc_usr_data.json", 300),
)
