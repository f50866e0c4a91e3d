"""The module for Zstandard: Python's own from 3.14 on, before that the same module as a package."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
