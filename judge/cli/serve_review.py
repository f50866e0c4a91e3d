"""Serve a desk at which a prompt is improved: what judges and assessors disagree on, worst first, beside the prompt.

A new wording is saved as a prompt file of its own. With --gold, --pool and --model it is asked again on dev items,
and set beside the old one: the difference of the files, agreement before and after, and the items that changed.
"""

from judge.ask.options import ASKING
from judge.cli.declared import refuse_unused
from judge.cli.printing import say
from judge.cli.serving import say_links
from judge.desk.review.desk import serve_review
from judge.desk.review.plan import ReviewPlan


def main(plan: ReviewPlan) -> int:
    """Serve until Ctrl-C."""
    if not plan.models:
        refuse_unused(plan, (*ASKING, "topics", "gold_scale"), "they are about asking a judge, which --model names")
    serve_review(plan, say_links)
    if plan.home.exists():
        say(f"new wordings and reruns are kept in {plan.home}")
    return 0
