"""Cards: a judge on public labels by people, on one page.

pooled            such labels as a pool
measured          a judge's answers against them
card              the judge card
making            a card from answers
page              a card as Markdown
comparison        several cards side by side
"""
