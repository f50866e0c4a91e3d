"""Whom we ask: one backend a provider, the forms of an answer, and the journal of everything that was paid for."""
