"""Numbers in, numbers out: no I/O, no clock, no randomness but a generator that is passed in."""
