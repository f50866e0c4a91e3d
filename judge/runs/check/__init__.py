"""The rules of the field on a run: every problem with its code, and what is left to judge."""
