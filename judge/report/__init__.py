"""Report: output folders as pages that people read, and their judgments as lists that they search."""
