"""Judges that are tested themselves: what `judge probe` does, from a pool to the tables of a probe."""
