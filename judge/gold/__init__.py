"""Gold: grades by people, planned, labeled, imported, checked, split, sealed, and matched to a pool.

rows     reads gold files strictly and matches their rows to a pool
check    lists every problem of gold files
sources  reads grades as others publish them; draft turns them into gold rows
seal     separates the dev part from the test part, and guards the latter; ledger records each look at gold
plan     draws the responses to label next, by sampling, which also deals them to assessors
sheets/  shows it to assessors, as tables, pages, and batches of platforms
grades   what labels in words mean
"""

from judge.gold.check import CheckedGold, check_gold, plain_scale
from judge.gold.draft import ImportOptions, read_bank
from judge.gold.ledger import BEGINNING, Look, Opening, record_look
from judge.gold.plan import LabelingPlan, PlanRow, make_plan, plan_jsonl, read_plan
from judge.gold.rows import GoldByResponse, check_scale, gold_jsonl, match, parse_gold, read_gold
from judge.gold.seal import (
    GOLD_FILES,
    Seal,
    open_sealed,
    read_ledger,
    read_seal,
    read_unsealed,
    responses_digest,
    seal_of,
    sealed_beside,
    split_topics,
    write_split,
)
from judge.gold.sources import SOURCES, Imported, import_gold, typed

__all__ = [
    "BEGINNING",
    "GOLD_FILES",
    "SOURCES",
    "CheckedGold",
    "GoldByResponse",
    "ImportOptions",
    "Imported",
    "LabelingPlan",
    "Look",
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
    "read_unsealed",
    "record_look",
    "responses_digest",
    "seal_of",
    "sealed_beside",
    "split_topics",
    "typed",
    "write_split",
]
