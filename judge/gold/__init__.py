"""Gold: grades by people, read, matched to a pool, checked, imported, split, sealed and planned.

rows     gold files, read strictly, and matched to a pool
check    everything that is wrong with gold
sources  grades as others publish them; draft: made gold rows
split    a part to choose a judge on and a part to keep; seal: the kept part, and each look at it
plan     what to label next (sampling, uncertainty)
"""

from judge.gold.check import CheckedGold, check_gold, plain_scale
from judge.gold.draft import ImportOptions, read_bank
from judge.gold.plan import LabelingPlan, PlanRow, make_plan, plan_jsonl, read_plan
from judge.gold.rows import GoldByResponse, check_scale, gold_jsonl, match, parse_gold, read_gold
from judge.gold.seal import Opening, Seal, open_sealed, read_ledger, read_seal, sealed_beside
from judge.gold.sources import SOURCES, Imported, import_gold, typed
from judge.gold.split import split_topics, write_split

__all__ = [
    "SOURCES",
    "CheckedGold",
    "GoldByResponse",
    "ImportOptions",
    "Imported",
    "LabelingPlan",
    "Opening",
    "PlanRow",
    "Seal",
    "check_gold",
    "check_scale",
    "gold_jsonl",
    "import_gold",
    "make_plan",
    "match",
    "open_sealed",
    "parse_gold",
    "plain_scale",
    "plan_jsonl",
    "read_bank",
    "read_gold",
    "read_ledger",
    "read_plan",
    "read_seal",
    "sealed_beside",
    "split_topics",
    "typed",
    "write_split",
]
