"""Serve a desk at which assessors label pooled responses in a browser.

Each assessor gets a link, an order of their own and nobody else's labels. No grade of a judge is shown, unless
--made postedit asks for it. Every label is on the disk before the page says so; the same command resumes.
`judge gold import desk` makes gold of the labels.
"""

from judge.cli.printing import say
from judge.cli.serving import say_links
from judge.desk.assess.plan import AssessPlan
from judge.desk.assess.serve import serve_assess


def main(plan: AssessPlan) -> int:
    """Serve until Ctrl-C."""
    for labeled in serve_assess(plan, say_links):
        say(f"{labeled.assessor}: {labeled.labels} of {labeled.tasks} labeled")
    say(f"gold of them: judge gold import desk {plan.store} --out gold.jsonl")
    return 0
