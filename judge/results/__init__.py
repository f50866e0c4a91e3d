"""Judgments to qrels and leaderboards, plain and corrected by gold. Pure."""
