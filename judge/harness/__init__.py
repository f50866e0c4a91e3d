"""The jobs from files to files: pool, run, calibrate, correct, crowd, gold, passages, tokens."""
