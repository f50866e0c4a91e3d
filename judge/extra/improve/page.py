"""The ledger of all that was tried, and what a reader is told of an improvement. Pure."""

from pathlib import PurePath
from typing import Any

from judge.ask.account import JudgeAccount
from judge.calibrate.certificate import Certificate
from judge.extra.improve import GainWord
from judge.io.table import Column, RecordColumns, Table, fields, records_table, records_tsv
from judge.io.text import code, count, dollars, interval, number, prose
from judge.records import Estimate, Record

CANDIDATES = "candidates.tsv"
OUTCOME = "outcome.tsv"
PAGE = "improve.md"


class LedgerLine(Record, frozen=True):
    """One candidate: a wording, or one with examples or cuts."""

    candidate: str
    """The variant's name."""
    round: int
    """0 for the first prompt; examples and cuts each come after the last one."""
    parent: str | None
    """The variant that it was made from."""
    proposer: str | None
    """Who wrote it, or `examples` or `cuts`."""
    prompt_digest: str | None
    """None where it is refused."""
    status: str
    """`chosen`, `kept` (it may be the best), `dropped` or `refused`."""
    agreement: Estimate | None
    """On dev, with missing grades at their farthest; optimistic for the chosen one. Under cuts, each topic has the
    grades that cuts of the others give."""
    missing: int | None
    gain: Estimate | None
    """Over the first prompt, on the same items."""
    nested: float | None
    """What the choice among all candidates up to this round agrees on topics that it was not made on."""
    reason: str | None
    """Why it is refused, or how many grades are missing for which reason."""


class Ledger(Record, frozen=True):
    """All candidates."""

    statistic: str
    judge: str
    stopped: str
    """Why there was no further round; empty where no wordings were written."""
    notes: tuple[str, ...]
    """A sentence for each way that could not be tried, and on what examples took from dev."""
    nested: float | None
    """What the choice among all agrees on topics that it was not made on."""
    openings: int
    """For how many questions the sealed grades were opened, this one included; 0 where they stayed closed."""
    lines: tuple[LedgerLine, ...]

    @property
    def tried(self) -> int:
        """How many candidates beside the first prompt were compared on dev."""
        return sum(line.status != "refused" for line in self.lines) - 1

    @property
    def refused(self) -> int:
        """How many proposals were no prompt to try."""
        return sum(line.status == "refused" for line in self.lines)

    @property
    def chosen(self) -> LedgerLine:
        """The line of the chosen one."""
        return next(line for line in self.lines if line.status == "chosen")

    @property
    def promised(self) -> float | None:
        """The gain on dev without what the choice flatters it by: the nested agreement less the first prompt's."""
        first = self.lines[0].agreement
        if self.nested is None or first is None or first.value is None:
            return None
        return self.nested - first.value


class ImproveOutcome(Record, frozen=True):
    """What an improvement came to."""

    word: GainWord
    because: str
    """Why the word is not GAINED; empty where it is."""
    ledger: Ledger
    first: str
    """The first prompt, as `criterion/variant`."""
    chosen: str
    prompt: PurePath
    """The file of the chosen prompt."""
    gain: Estimate | None
    """On the sealed test; None where it was not opened."""
    certificate: Certificate
    warnings: tuple[str, ...]
    accounts: tuple[JudgeAccount, ...]

    @property
    def is_unfinished(self) -> bool:
        """Whether the test waits for answers that the same command asks for again."""
        return self.word == "INCONCLUSIVE" and self.gain is None

    @property
    def calls(self) -> int:
        """How many calls the judge and the proposer took, in all commands."""
        return sum(account.results.calls for account in self.accounts)

    @property
    def cost(self) -> float | None:
        """What they cost in US dollars, as far as that is known; None where no call has a price."""
        if self.calls and not any(account.results.priced for account in self.accounts):
            return None
        return sum(account.results.cost for account in self.accounts)


_COLUMNS: RecordColumns = {
    **fields("candidate round parent proposer prompt_digest status"),
    **fields("n=agreement.n topics=agreement.topics missing"),
    **fields("agreement=agreement.value agreement_low=agreement.low agreement_high=agreement.high"),
    **fields("gain=gain.value gain_low=gain.low gain_high=gain.high nested reason"),
}
_SHORT: RecordColumns = {
    **fields("candidate round status n=agreement.n missing agreement"),
    Column("gain", signed=True): lambda line: line.gain,
    **fields("nested"),
}


def candidates_tsv(ledger: Ledger) -> bytes:
    """`candidates.tsv`: a line for each candidate, in the order of the proposals."""
    return records_tsv(_COLUMNS, ledger.lines).encode()


def candidates_table(ledger: Ledger) -> Table[Any]:
    """The same for people; refused proposals stand below."""
    lines = [line for line in ledger.lines if line.status != "refused"]
    refused = [f"refused: {line.candidate}: {line.reason}" for line in ledger.lines if line.status == "refused"]
    title = f"{ledger.judge} on dev, {ledger.statistic}"
    return records_table(_SHORT, lines, title, refused, places=3)


_OUTCOME: RecordColumns = {
    **fields("word first chosen statistic=ledger.statistic n=gain.n topics=gain.topics"),
    **fields("gain=gain.value gain_low=gain.low gain_high=gain.high"),
    **fields("dev_gain=ledger.chosen.gain.value dev_promised=ledger.promised"),
    **fields("tried=ledger.tried refused=ledger.refused openings=ledger.openings calls cost because"),
}


def outcome_tsv(outcome: ImproveOutcome) -> bytes:
    """`outcome.tsv`: what came of it, in one line."""
    return records_tsv(_OUTCOME, [outcome]).encode()


def outcome_table(outcome: ImproveOutcome) -> Table[Any]:
    """The same, to be printed."""
    return records_table(_OUTCOME, [outcome], f"{outcome.chosen} over {outcome.first}", places=6)


def sentences(outcome: ImproveOutcome) -> tuple[str, ...]:
    """What came of it, a sentence each; the first one begins with the word."""
    ledger = outcome.ledger
    chosen = ledger.chosen
    first = outcome.first
    told = [_verdict(outcome)]
    if outcome.chosen != first and chosen.gain is not None:
        promised = f"On dev it gained {interval(chosen.gain, signed=True)}"
        if ledger.promised is not None:
            promised += f", and {number(ledger.promised, signed=True)} where the choice is made on other topics"
        told.append(f"{promised}.")
    refused = f", {count(ledger.refused, 'proposal')} refused" if ledger.refused else ""
    stopped = f"; {ledger.stopped}" if ledger.stopped else ""
    told.append(f"{count(ledger.tried, 'candidate')} tried{refused}{stopped}.")
    told += ledger.notes
    cost = dollars(outcome.cost) if outcome.cost else "at no cost that is known"
    told.append(f"{count(outcome.calls, 'call')} in all, {cost}.")
    if ledger.openings > 1:
        told.append(
            f"The sealed grades have been opened for {ledger.openings} different questions: after the first one, a "
            "gain on them proves less than it says."
        )
    return tuple(told)


def _verdict(outcome: ImproveOutcome) -> str:
    word = outcome.word
    if outcome.gain is not None:
        on = f"n = {outcome.gain.n} over {count(outcome.gain.topics, 'topic')}"
        text = f"{word}: {outcome.chosen} over {outcome.first} on the sealed test, {outcome.ledger.statistic}"
        text += f" {interval(outcome.gain, signed=True)}, {on}"
        return f"{text}: {outcome.because}." if outcome.because else f"{text}."
    if outcome.chosen == outcome.first:
        return f"{word}: {outcome.because}; {outcome.first} stays."
    return f"{word}: {outcome.chosen} agrees best on dev, and {outcome.because}."


def improve_markdown(outcome: ImproveOutcome) -> bytes:
    """`improve.md`: the word, the ledger, and what to know before the prompt is used."""
    ledger = outcome.ledger
    (entry,) = outcome.certificate.certified or (None,)
    parts = ["# Improved prompt", *map(prose, sentences(outcome))]
    name = code(f"chosen/{outcome.prompt.name}")
    what = "It is the first one." if outcome.chosen == outcome.first else "Read it before you use it."
    parts.append(f"The prompt is {name}. {what}")
    if entry is not None:
        parts.append(
            prose(
                f"Its certificate: {entry.verdict} on {entry.split}, {entry.statistic} {interval(entry.estimate)}, "
                f"chosen among {entry.tried}."
            )
        )
    parts += ["## Warnings", "\n".join(f"- {prose(text)}" for text in outcome.warnings)] if outcome.warnings else []
    parts.append(f"#{candidates_table(ledger).markdown()}".rstrip("\n"))
    parts.append(
        "Agreement and gain have 95 % intervals over topics, with missing grades at their farthest. Under cuts, each "
        "topic has the grades by cuts that were fitted to other topics. The chosen one looks better on dev than it is, "
        "because it was chosen there; `nested` is the agreement of the choice among all candidates so far on topics "
        "that it was not made on."
    )
    return ("\n\n".join(parts) + "\n").encode()
