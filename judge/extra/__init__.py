"""Annexes: capabilities that the core does without; a folder that is deleted takes its commands with it."""
