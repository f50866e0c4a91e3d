"""The tables of a shared journal, and the statements that read and write them. Pure.

Table and columns of the completions are those of a journal's file. Every time is the server's, so that the clocks of
the machines do not matter.
"""

from judge.models.journal_rows import COLUMNS

TABLES = ("meta", "completion", "lease")
LEASE = 60
"""Seconds after which the lease of a process that is not heard of any more expires."""
SETTING_UP = 7_215_068_121_914_103
"""Number of the advisory lock under which the tables are made."""

CREATE = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # Digests are compared by their bytes, so that their order is that of a journal's file.
    """
    CREATE TABLE completion (
        digest TEXT COLLATE "C" PRIMARY KEY,
        judge TEXT NOT NULL,
        parameters TEXT NOT NULL,
        messages TEXT NOT NULL,
        sample BIGINT NOT NULL,
        form TEXT NOT NULL,
        criterion TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        response_id TEXT NOT NULL,
        completion TEXT NOT NULL,
        recorded TEXT NOT NULL
            DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        checksum TEXT
    )
    """,
    """
    CREATE TABLE lease (
        digest TEXT COLLATE "C" PRIMARY KEY,
        holder TEXT NOT NULL,
        expires TIMESTAMPTZ NOT NULL
    )
    """,
)

_NAMES = ", ".join(COLUMNS)
SELECT = f"SELECT {_NAMES} FROM completion WHERE digest = ANY(%s)"  # noqa: S608 - names of columns only
PAGE = f"SELECT {_NAMES} FROM completion WHERE digest > %s ORDER BY digest LIMIT %s"  # noqa: S608 - likewise
STARTS = "SELECT left(digest, 8) FROM completion ORDER BY digest"
CHECKSUMS = "SELECT digest, checksum FROM completion WHERE digest = ANY(%s)"
TIMES = "SELECT digest, recorded FROM completion WHERE digest = ANY(%s)"
SAMPLE = "SELECT digest, messages, completion FROM completion WHERE judge = %s ORDER BY digest LIMIT %s"
SET_META = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
DROP_META = "DELETE FROM meta WHERE key = ANY(%s)"
ADD_META = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"


def insert(columns: tuple[str, ...]) -> str:
    """The statement that adds rows; it takes an array for each column, and a digest that is there stays as it is."""
    arrays = ", ".join("%s::bigint[]" if name == "sample" else "%s::text[]" for name in columns)
    return (
        f"INSERT INTO completion ({', '.join(columns)}) "  # noqa: S608 - names of columns only
        f"SELECT * FROM unnest({arrays}) AS given({', '.join(columns)}) ORDER BY digest ON CONFLICT (digest) DO NOTHING"
    )


# While the server is away, nobody can extend a lease: after its start, every holder has the time of one.
_ALIVE = "GREATEST(lease.expires, pg_postmaster_start_time() + %(lease)s * interval '1 s') > clock_timestamp()"
CLAIM = f"""
INSERT INTO lease (digest, holder, expires)
SELECT wanted, %(holder)s, clock_timestamp() + %(lease)s * interval '1 s'
FROM unnest(%(digests)s::text[]) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM completion WHERE digest = wanted)
AND NOT EXISTS (SELECT 1 FROM lease WHERE digest = wanted AND holder <> %(holder)s AND {_ALIVE})
ORDER BY wanted
ON CONFLICT (digest) DO UPDATE SET holder = EXCLUDED.holder, expires = EXCLUDED.expires
WHERE lease.holder = EXCLUDED.holder OR NOT ({_ALIVE})
RETURNING digest
"""  # noqa: S608 - nothing from outside
"""Takes the leases that are free, expired or our own; they are locked in their order, so that no two processes wait for
each other."""
EXTEND = """
UPDATE lease SET expires = clock_timestamp() + %(lease)s * interval '1 s'
WHERE digest IN (SELECT digest FROM lease WHERE holder = %(holder)s ORDER BY digest FOR UPDATE)
"""
RELEASE = """
DELETE FROM lease
WHERE digest IN (
    SELECT digest FROM lease WHERE holder = %(holder)s AND digest = ANY(%(digests)s) ORDER BY digest FOR UPDATE
)
"""
RELEASE_ALL = "DELETE FROM lease WHERE holder = %(holder)s"
