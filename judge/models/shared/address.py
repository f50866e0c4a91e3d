"""The address of the database of a shared journal; no message from here holds its password."""

from typing import TypeGuard
from urllib.parse import unquote, urlsplit

import msgspec

from judge.errors import UsageError
from judge.models.secrets import remember

_SCHEMES = ("postgresql://", "postgres://")
SHARED = "a journal in PostgreSQL"
"""What needs the extra, for messages."""
_ENCODE = "; in a password, / ? # and @ are written %2F %3F %23 and %40"
_SECRETS = ("password", "sslpassword")


class DatabaseAddress(msgspec.Struct, frozen=True):
    """Where a database is: `name` for messages, without credentials, and what libpq connects with."""

    name: str
    parameters: dict[str, str]


def is_database(place: object) -> TypeGuard[str]:
    """Whether a journal's place is the address of a database, not a path.

    >>> is_database("postgresql://localhost/judge"), is_database("out/journal.sqlite")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(_SCHEMES)


def read_database(url: str) -> DatabaseAddress:
    """The address of a database, `postgresql://user:password@host:port/name`, as libpq reads it.

    Raises:
        UsageError: The address cannot be read or has a password behind the `?`.
    """
    import psycopg.conninfo

    try:
        query = urlsplit(url).query
        parameters = {key: str(value) for key, value in psycopg.conninfo.conninfo_to_dict(url).items()}
    except (ValueError, psycopg.Error):
        # What the library says of it may quote a part of the password.
        raise UsageError(
            f"the address of the journal cannot be read: expected postgresql://HOST:PORT/DATABASE, with USER:PASSWORD@ "
            f"before the host where it needs them{_ENCODE}"
        ) from None
    if any(unquote(part.partition("=")[0]) in _SECRETS for part in query.split("&")):
        raise UsageError(
            "the address of the journal has a password behind the ?, which every record would show: give it before the "
            "host, in PGPASSWORD or in ~/.pgpass"
        )
    # Of the user's name, other texts would lose every word that is equal to it.
    remember(parameters.get("password", ""))
    host, port = parameters.get("host", ""), parameters.get("port")
    if "@" in host or "@" in parameters.get("dbname", ""):
        # What follows the first @ may be a part of the password, and would be shown.
        raise UsageError(f"the address of the journal has an @ after its host{_ENCODE}")
    if not all(number.isdigit() and 0 < int(number) < 1 << 16 for number in (port or "5432").split(",")):
        raise UsageError(f"the address of the journal has a port that is no number from 1 to 65535{_ENCODE}")
    if "dbname" not in parameters:
        raise UsageError("the address of the journal names no database: expected postgresql://…/DATABASE")
    name = f"postgresql://{host}{f':{port}' if port else ''}/{parameters['dbname']}"
    return DatabaseAddress(name, parameters)
