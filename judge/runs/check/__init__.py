"""The rules of the field on a run: every problem with its code, and the run without what its errors take out."""
