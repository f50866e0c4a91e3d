"""The look that a calibration takes at gold: what it asks of the grades, and the record of that."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from judge.calibrate.certified import CertifiedSeal
from judge.calibrate.findings import Calibration, Looks
from judge.calibrate.intake import LabelSource
from judge.calibrate.looks import look_at
from judge.calibrate.panel import Panel
from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import make_folder
from judge.gold import BEGINNING, Look, Opening, open_sealed, read_seal, record_look, responses_digest, seal_of
from judge.gold.rows import GoldRow
from judge.gold.seal import SealedItem, item_of
from judge.harness.calibration.comparison import GoldComparison
from judge.harness.calibration.plan import CalibrationPlan
from judge.text.cells import count

BESIDE_GOLD = ".looks"
"""What the ledger of unsealed gold adds to the name of the gold file."""
IN_FOLDER = "looks.jsonl"
"""The ledger in the output folder, where the gold's folder cannot be written."""


class Looking(msgspec.Struct, frozen=True):
    """The record of a look: a ledger, and the seal if the grades are sealed."""

    opening: Opening
    ledger: Literal["seal", "gold", "out"]
    """Where it is, as in `Looks`."""
    seal: CertifiedSeal | None = None

    def rows(self, criteria: Sequence[str]) -> tuple[Looks, ...]:
        """What the ledger says of each criterion."""
        return tuple(
            Looks(
                criterion=criterion,
                ledger=self.ledger,
                number=self.opening.number,
                candidates=self.opening.candidates(criterion),
                head=self.opening.head,
            )
            for criterion in criteria
        )


def open_test(
    plan: CalibrationPlan, now: datetime, look: Callable[[tuple[GoldRow, ...]], Look]
) -> tuple[tuple[GoldRow, ...], Looking]:
    """Open the sealed test grades of a plan.

    Args:
        plan: The options of the calibration; it names test grades.
        now: The time for the ledger.
        look: As for `open_sealed`.

    Raises:
        UsageError: The plan names no test grades.
        InputError: The sealed grades cannot be used, or too few are compared.
        OperationalError: The ledger cannot be written.
    """
    seal = seal_of(plan.test, plan.seal)
    if plan.test is None or seal is None:
        raise UsageError("expected sealed test grades (--test)")
    rows, opening = open_sealed(Path(plan.test), seal, _time(now), look)
    record = read_seal(seal)
    return rows, Looking(opening, "seal", CertifiedSeal(record.commitment, record.seed, responses_digest(record)))


def log_look(gold: Sequence[Path], out: Path | None, look: Look, now: datetime) -> Looking | None:
    """Put a look at unsealed gold on record beside each gold file, else in the output folder; None if neither can be.

    Of several ledgers the longest counts.

    Args:
        gold: The gold files.
        out: The output folder.
        look: What is asked.
        now: The time for the ledger.

    Raises:
        InputError: A ledger is damaged.
        OperationalError: The ledger in the output folder cannot be written.
    """
    openings = []
    for path in dict.fromkeys(path.resolve() for path in gold):
        try:
            openings.append(record_look(path.with_name(path.name + BESIDE_GOLD), BEGINNING, look, _time(now)))
        except OperationalError:
            continue
    if openings:
        return Looking(max(openings, key=lambda opening: opening.number), "gold")
    return Looking(record_look(out / IN_FOLDER, BEGINNING, look, _time(now)), "out") if out is not None else None


def looked_often(calibration: Calibration, looks: Sequence[Looks]) -> tuple[str, ...]:
    """A warning for each criterion whose gold has met more candidates than this calibration chooses among."""
    tried = {choice.criterion: len(choice.tried) for choice in calibration.selections}
    return tuple(
        f"{look.criterion}: {look.candidates} candidates have met these grades in "
        f"{count(look.number, 'different question')}; the more are tried, the likelier one is TRUSTED by chance"
        for look in looks
        if (look.number > 1 or calibration.cascade_bounds)
        and look.candidates > (tried.get(look.criterion, 0) if look.ledger != "seal" else 1)
    )


def _time(now: datetime) -> str:
    return now.isoformat(timespec="seconds")


def check_dev(rows: Sequence[GoldRow]) -> None:
    """Refuse gold that does not go with sealed grades.

    Raises:
        UsageError: The gold is not the dev part alone.
    """
    if any(row.split != "dev" for row in rows):
        raise UsageError("--test goes with the dev.jsonl that `judge gold split` wrote beside it (--gold)")


class GoldLook:
    """One look at gold, sealed or not; it is put on record once.

    Args:
        plan: The options of the calibration.
        comparison: Makes the panels.
        now: The time for the ledger.
    """

    def __init__(self, plan: CalibrationPlan, comparison: GoldComparison, now: datetime) -> None:
        self._plan, self._comparison, self._now = plan, comparison, now
        self._out = Path(plan.out) if plan.out is not None else None
        self.asked: dict[str, Any] = {}
        """What is asked of the gold, beside the panels."""
        self.tried: tuple[Panel, ...] = ()
        """The panels of other bounds of a cascade, which the look counts."""
        self.record: Looking | None = None
        """The record; None until there is one, and where none can be written."""
        self.sealed: frozenset[SealedItem] = frozenset()
        """The items of the test part, once it is open."""

    def open(
        self,
        dev: tuple[GoldRow, ...],
        sources: Sequence[LabelSource],
        judged: Callable[[tuple[GoldRow, ...]], tuple[LabelSource, ...]],
    ) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The rows of both parts, and the labels together with the baselines; opening the seal is logged.

        Args:
            dev: The gold rows of the dev part.
            sources: The labels so far.
            judged: From the sealed rows to the labels of both parts; it may ask a judge.

        Raises:
            UsageError: The gold is not the dev part alone.
            InputError: The sealed grades cannot be used.
            OperationalError: The ledger cannot be written.
        """
        check_dev(dev)
        # What would stop a calibration must not cost a look at the sealed grades.
        self._comparison.panels(dev, sources)
        if self._out:
            make_folder(self._out)
        everything: tuple[LabelSource, ...] = ()

        def look(rows: tuple[GoldRow, ...]) -> Look:
            nonlocal everything
            self._check_sealed((*dev, *rows), sources)
            everything = judged(rows)
            everything += self._comparison.baselines((*dev, *rows), everything)
            return self._look(self._check_sealed((*dev, *rows), everything))

        rows, self.record = open_test(self._plan, self._now, look)
        self.sealed = frozenset(map(item_of, rows))
        return (*dev, *rows), everything

    def log(self, panels: Sequence[Panel]) -> None:
        """Put the look at unsealed gold on record, where that can be.

        Raises:
            InputError: A ledger is damaged.
            OperationalError: The ledger in the output folder cannot be written.
        """
        gold = [Path(path) for path in self._plan.gold]
        self.record = log_look(gold, self._out, self._look(panels), self._now)

    def _check_sealed(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[Panel, ...]:
        """The panels; stops before the opening is logged if sealed grades cannot be used, and shows none of them."""
        try:
            return self._comparison.panels(rows, sources)[0]
        except InputError as error:
            raise InputError(
                f"{self._plan.test}: {max(1, len(error.problems))} problems of the sealed grades, such as grades off "
                "their scale; the seal was not opened"
            ) from None

    def _look(self, panels: Sequence[Panel]) -> Look:
        """What is asked of the gold; its scale says which grades count as positive."""
        return look_at(
            {**self.asked, "scales": [self._comparison.gold_scale(panel.criterion) for panel in panels]},
            panels,
            self.tried,
        )
