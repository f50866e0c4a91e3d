"""The jobs about nuggets, from files to files."""
