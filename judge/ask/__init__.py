"""What a judge is asked and what its answer says: criteria, prompts, verdicts, and the loop that asks."""
