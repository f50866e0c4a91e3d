"""The judges that cost nothing, and that a judge who is paid for must beat."""

from judge.models.backends.baseline import BASELINES

CONSTANT = "constant"
"""The judge that always gives the assessors' commonest grade; made from the gold."""
ASKED = tuple(f"baseline/{name}" for name in BASELINES)
"""Those that are asked as other judges are."""
