"""Passage texts and hashes from a collection."""

from judge.passages.collection import check_texts, differing, files_of, listed, read_passages
from judge.passages.faults import MAX_PROBLEMS

__all__ = ["MAX_PROBLEMS", "check_texts", "differing", "files_of", "listed", "read_passages"]
