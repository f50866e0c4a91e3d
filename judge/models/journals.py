"""A journal by its place: a file, or the address of a database that several processes share."""

from pathlib import Path

from judge.errors import UsageError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.models.journal import Journal
from judge.models.journal_check import JournalReport, verify_journal
from judge.models.open_journal import OpenJournal
from judge.models.shared.address import SHARED, is_database, read_database
from judge.models.spending import JournalSpending, read_spending


def open_journal(file: StrPath, shared: str | None = None, max_wait: float = 300.0) -> OpenJournal:
    """Open the journal that a job writes.

    Args:
        file: The journal's file, for a job that has a journal of its own. Where the job shares one, it takes over what
            this file holds.
        shared: The address of the database of a shared journal; None for a journal of one's own.
        max_wait: Most seconds for which a server that is away is waited for.

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The place cannot be used as a journal.
        OperationalError: The server cannot be reached, or the disk cannot be written.
    """
    if shared is None:
        if is_database(file):
            raise UsageError("the address of a shared journal stands where a file has to be: give it as `shared`")
        return Journal(file)
    check_database(shared)
    from judge.models.shared.journal import SharedJournal  # needs the extra

    journal = SharedJournal(shared, max_wait)
    try:
        if Path(file).exists():
            journal.adopt(file)
    except BaseException:
        journal.close()
        raise
    return journal


def paid_journals(file: Path, shared: str | None = None) -> list[StrPath]:
    """Where the completions are that a job need not pay for again, before it opens its journal."""
    return [*(() if shared is None else (shared,)), *((file,) if file.exists() else ())]


def check_database(shared: str | None) -> None:
    """Refuse an address with which no shared journal can be opened; nothing is sent.

    Args:
        shared: The address; None for a journal in a file.

    Raises:
        UsageError: It is none, it cannot be read, or psycopg is not installed.
    """
    if shared is None:
        return
    if not is_database(shared):
        raise UsageError("the address of a shared journal must begin with postgresql://")
    need_extra("postgres", SHARED)
    read_database(shared)


def verify_stored(place: StrPath) -> JournalReport:
    """Check every completion of a journal, in a file or in a database; nothing is changed.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal, or the file is in use.
        OperationalError: The database cannot be reached.
    """
    if not is_database(place):
        return verify_journal(place)
    need_extra("postgres", SHARED)
    from judge.models.shared.checks import verify_shared  # needs the extra

    return verify_shared(place)


def stored_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, of a journal in a file or in a database; `verify_stored` has the errors."""
    if not is_database(place):
        return read_spending(place)
    need_extra("postgres", SHARED)
    from judge.models.shared.checks import shared_spending  # needs the extra

    return shared_spending(place)
