"""Stats: numbers in, numbers out; no clock, and all randomness from a generator that is passed in. Pure."""
