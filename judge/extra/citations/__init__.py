"""Runs of citation tracks, whose responses are lists of sentences that cite what they rest on."""
