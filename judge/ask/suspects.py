"""Requests that were given up while the judge answered others, so that their own texts may be the cause."""

from judge.models.journal import Journal


class Suspects:
    """The digests of such requests of one judge, kept in the journal.

    They are asked again, after all others. That they fail once more says nothing about the judge: without this, a few
    responses that no judge can read would stop every later run as if its server were dead.
    """

    def __init__(self, journal: Journal, judge: str) -> None:
        self._journal = journal
        self._key = suspects_key(judge)
        self._digests = set((journal.meta(self._key) or "").split())

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def add(self, digest: str) -> None:
        """Remember a request, in the journal too."""
        if digest not in self._digests:
            # Another process may have added some to a journal that it shares.
            known = joined(" ".join((*self._digests, digest)), self._journal.meta(self._key))
            self._digests = set(known.split())
            self._journal.set_meta(self._key, known)


def suspects_key(judge: str) -> str:
    """The name of this fact about a judge."""
    return f"suspects:{judge}"


def joined(digests: str, others: str | None) -> str:
    """Digests with others, as a journal keeps them.

    >>> joined("b c", "a b")
    'a b c'
    """
    return " ".join(sorted({*digests.split(), *(others or "").split()}))
