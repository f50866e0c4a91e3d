"""The look that a calibration takes at sealed grades: what it asks of them, and the record of that."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.results import Labels
from judge.calibrate.certified import CertifiedSeal
from judge.calibrate.findings import Looks, Split
from judge.calibrate.panel import JudgeColumn, Panel, constant
from judge.calibrate.selection import candidates, choose
from judge.errors import InputError, UsageError
from judge.gold import seal as seals
from judge.gold.rows import GoldRow
from judge.io.files import sha256
from judge.io.folder import make_folder
from judge.io.ids import natural_key, own_turn_id
from judge.io.text import count, examples
from judge.jobs.calibration.inputs import CalibrationInputs, gold_scale, make_comparison, with_baselines
from judge.pool.records import Pool

_SHORT = 16
"""Hexadecimal digits of a candidate's digest."""


class LookRecord(NamedTuple):
    """The record of a look: what the ledger says, and the seal."""

    opening: seals.Opening
    seal: CertifiedSeal

    def rows(self, criteria: Sequence[str]) -> tuple[Looks, ...]:
        """What the ledger says of each criterion."""
        opening = self.opening
        return tuple(
            Looks(
                criterion=criterion,
                number=opening.number,
                candidates=opening.candidates(criterion),
                head=opening.head,
            )
            for criterion in criteria
        )


def check_dev(rows: Sequence[GoldRow]) -> None:
    """Refuse gold that does not go with sealed grades."""
    if any(row.split != "dev" for row in rows):
        raise UsageError("--test goes with the dev.jsonl that `judge gold split` wrote beside it (--gold)")


def check_sealed(test: Path, seal: seals.Seal, dev: Sequence[GoldRow], pool: Pool) -> None:
    """Refuse sealed grades that nothing can be compared on, by what the seal says of them, before a judge is paid."""
    shared = sorted({row.topic_id for row in dev} & {*seal.test.topics}, key=natural_key)
    if shared:
        raise InputError(
            f"{test}: {count(len(shared), 'topic')} of --gold as well ({examples(shared, 3)}): expected the test part "
            "of the split that --gold is the dev part of"
        )
    pooled = {own_turn_id(response.turn_id) for response in pool.responses}
    reached = sum(own_turn_id(item.turn_id) in pooled for item in seal.test.items)
    if reached < seals.FEWEST_OPENED:
        raise InputError(
            f"{test}: {reached} of its {count(len(seal.test.items), 'response')} can be in the pool: a look at sealed "
            f"grades compares {seals.FEWEST_OPENED} or more"
        )


def open_test(
    inputs: CalibrationInputs,
    now: datetime,
    asked: Mapping[str, Any],
    labels: tuple[Labels, ...],
    judged: Callable[[tuple[GoldRow, ...]], tuple[Labels, ...]],
    beside: Collection[str] = (),
) -> tuple[tuple[GoldRow, ...], tuple[Labels, ...], LookRecord | None]:
    """All rows, and the labels together with the baseline; opening sealed grades is logged, and the record returned.

    `asked`: what is asked of the gold, beside the panels. `judged`: from the held-out rows to the labels of all rows;
    it may ask a judge. `beside`: prompts that held-out grades are compared under, beside that of the chosen judge.
    """
    test = inputs.plan.test
    dev = inputs.gold.rows
    seal = seals.seal_of(test, inputs.plan.seal)
    if test is None or seal is None:
        return dev, with_baselines(inputs, dev, judged(tuple(row for row in dev if row.split == "test"))), None
    check_dev(dev)
    # What would stop a calibration must not cost a look at the sealed grades.
    make_comparison(inputs, dev, labels)
    if inputs.out:
        make_folder(inputs.out)
    everything: tuple[Labels, ...] = ()

    def compared(rows: tuple[GoldRow, ...], labels: tuple[Labels, ...]) -> tuple[Panel, ...]:
        """The panels; stops before the opening is logged if sealed grades cannot be used, and shows none of them."""
        try:
            return make_comparison(inputs, rows, labels)[0]
        except InputError as error:
            raise InputError(
                f"{test}: {max(1, len(error.problems))} problems of the sealed grades, such as grades off "
                "their scale; the seal was not opened"
            ) from None

    def look(rows: tuple[GoldRow, ...]) -> seals.Look:
        nonlocal everything
        both = (*dev, *rows)
        compared(both, labels)
        everything = with_baselines(inputs, both, judged(rows))
        return gold_look(inputs, asked, compared(both, everything), beside)

    margins: dict[str, float] = {}
    if inputs.certificate is not None:
        margins[inputs.certificate.digest] = inputs.plan.carrying_margin
    rows, opening = seals.open_sealed(Path(test), seal, now.isoformat(timespec="seconds"), look, margins)
    record = seals.read_seal(seal)
    certified = CertifiedSeal(record.commitment, record.seed, seals.responses_digest(record))
    return (*dev, *rows), everything, LookRecord(opening, certified)


def gold_look(
    inputs: CalibrationInputs, asked: Mapping[str, Any], panels: Sequence[Panel], beside: Collection[str] = ()
) -> seals.Look:
    """The look that a calibration takes at the grades that its verdicts rest on; `beside` is as for `open_test`.

    Two calibrations ask the same question only if they set the same labels beside the same responses. So whoever drops
    responses from a pool, or asks a judge anew, takes another look. The digests cover no grade by an assessor.
    """
    # The scale says which grades count as positive.
    question: list[Any] = [{**asked, "scales": [gold_scale(inputs, panel.criterion) for panel in panels]}]
    compared: dict[str, int] = {}
    met: dict[str, tuple[str, ...]] = {}
    for panel in panels:
        split: Split = "test" if "test" in panel.split else panel.split[0]
        mask = panel.within(split)
        judged = candidates(panel)
        if split == "test":
            chosen = choose(panel, "dev")
            judged = tuple(column for column in judged if column is chosen or column.prompt in beside)
        baselines = [column for column in panel.columns if column.baseline] if judged else []
        labels = [_labels(panel, column, mask) for column in (*judged, *baselines)]
        places = np.flatnonzero(mask).tolist()
        question.append(
            {
                "criterion": panel.criterion,
                "grades": [panel.grades, sorted(panel.positive), panel.higher_is_better, panel.binary],
                "responses": sorted((panel.items[i].turn_id, panel.items[i].named) for i in places),
                "labels": labels,
            }
        )
        met[panel.criterion] = tuple(sorted({_digest(of_judge)[:_SHORT] for of_judge in labels[: len(judged)]}))
        columns = (*judged, *baselines, *([constant(panel, mask)] if judged else []))
        compared[panel.criterion] = seals.fewest(int((mask & (column.codes >= 0)).sum()) for column in columns)
    return _digest(question), compared, met


def _labels(panel: Panel, column: JudgeColumn, mask: NDArray[np.bool_]) -> list[Any]:
    """A judge's labels of the responses of a mask, each with its response; the judge's name is not among them."""
    given = zip(panel.items, column.samples.T.tolist(), column.expected.tolist(), mask.tolist(), strict=True)
    labels = (
        [item.turn_id, item.named, samples, None if math.isnan(expected) else expected]
        for item, samples, expected, inside in given
        if inside
    )
    return sorted(labels, key=msgspec.json.encode)


def _digest(value: Any) -> str:
    return sha256(msgspec.json.encode(value, order="sorted"))


def looked_often(looks: Sequence[Looks]) -> tuple[str, ...]:
    """A warning for each criterion whose sealed grades have met more than the one candidate that was chosen."""
    return tuple(
        f"{look.criterion}: {look.candidates} candidates have met these grades in "
        f"{count(look.number, 'different question')}; the more are tried, the likelier one is TRUSTED by chance"
        for look in looks
        if look.number > 1 and look.candidates > 1
    )
