"""Simulated worlds by subject; `python -m bench.simulations` runs them."""
