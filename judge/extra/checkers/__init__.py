"""Checkers: judges that give the probability of support and no text, and cascades that ask them first.

checkers     what all of them share: questions, grades, their digests
served       those behind a server: a classifier, a chat model
onnx         a cross-encoder from a file
backend      the names `checker/...`
cascade      a judge that asks a checker first
planned      the cascades of a calibration
"""

from judge.judges.model import Backend, BackendFacts

BACKEND = Backend("judge.extra.checkers.backend", BackendFacts(checker=True, ready="options and files can be used"))
