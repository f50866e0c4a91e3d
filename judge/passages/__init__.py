"""Passage texts and hashes from a collection."""

from judge.passages.collection import MAX_PROBLEMS, check_texts, read_passages

__all__ = ["MAX_PROBLEMS", "check_texts", "read_passages"]
