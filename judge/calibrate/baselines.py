"""The baselines: judges that cost nothing, and that a paid judge must beat."""

from judge.models.backends.baseline import BASELINES

CONSTANT = "constant"
"""The judge that always gives the assessors' commonest grade; made from the gold."""
ASKED = tuple(f"baseline/{name}" for name in BASELINES)
"""The baselines that are asked like any other judge."""
