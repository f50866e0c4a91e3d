"""Passages: the texts and the MD5s of a collection, found by passage id.

collection  wanted texts wherever a collection lies: files, folders, an index
hashes      which passages there are, and the MD5 of each text
index       where each passage of a plain collection begins
lucene      texts out of a Lucene index
"""

from judge.passages.collection import check_texts, differing, files_of, listed, read_passages, same_text
from judge.passages.streams import MAX_PROBLEMS

__all__ = ["MAX_PROBLEMS", "check_texts", "differing", "files_of", "listed", "read_passages", "same_text"]
