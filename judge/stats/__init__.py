"""Stats: numbers in, numbers out; no clock, no randomness but a generator that is passed in. Pure."""
