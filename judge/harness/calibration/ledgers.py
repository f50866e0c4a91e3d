"""The looks that a calibration takes at gold: sealed grades are opened, and every look is put on record."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from judge.calibrate.certified import CertifiedSeal
from judge.calibrate.findings import Calibration, Looks
from judge.errors import OperationalError, UsageError
from judge.gold import BEGINNING, Look, Opening, open_sealed, read_seal, record_look, responses_digest, seal_of
from judge.gold.rows import GoldRow
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
