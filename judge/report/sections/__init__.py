"""The sections of a report: a module each, in the order of their reader's questions; a new one is a new file."""
