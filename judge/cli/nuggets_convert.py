"""Write a bank of nuggets in another form; the form of the given bank is seen from its content.

A bank is read in judge's own form (JSON Lines), nuggetizer's, CONE-RAG's, or as the rubric questions of iKAT 2025.
"""

import argparse
from collections import Counter
from pathlib import Path

from judge.cli.printing import print_json, say
from judge.harness.nuggets.banks import NuggetConvertPlan, convert_bank
from judge.nuggets.forms import FORMS, WRITTEN
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("bank", metavar="BANK", type=Path, help="the bank to read, or its folder")
    parser.add_argument("--to", required=True, choices=WRITTEN, help="the form to write")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--form", choices=tuple(FORMS), help="the form of BANK (default: seen from its content)")
    parser.add_argument(
        "--vital-from",
        type=int,
        metavar="GRADE",
        help="nuggets without importance become vital if their passage has this grade or a higher one, else okay",
    )
    parser.add_argument(
        "--edits", type=Path, metavar="FILE", help="people's edits (default: edits.jsonl in the folder of the bank)"
    )
    parser.add_argument("--made-by", metavar="NAME", help="who made the nuggets that do not say so")
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object")


def main(args: argparse.Namespace) -> int:
    """Convert the bank and say what it holds."""
    converted = convert_bank(
        NuggetConvertPlan(
            bank=args.bank,
            to=args.to,
            out=args.out,
            form=args.form,
            vital_from=args.vital_from,
            made_by=args.made_by,
            edits=args.edits,
        )
    )
    nuggets = converted.nuggets
    turns = len({nugget.turn_id for nugget in nuggets if nugget.turn_id is not None})
    topics = len({nugget.topic_id for nugget in nuggets})
    importance = dict(sorted(Counter(nugget.importance or "without importance" for nugget in nuggets).items()))
    if args.json:
        print_json(
            {
                "file": str(converted.out),
                "form": converted.read.form,
                "nuggets": len(nuggets),
                "turns": turns,
                "topics": topics,
                "importance": importance,
            }
        )
    held = ", ".join(f"{number} {name}" for name, number in importance.items())
    of_turns = f"{count(turns, 'turn')}, " if turns else ""
    say(f"{converted.out}: {count(len(nuggets), 'nugget')} of {of_turns}{count(topics, 'topic')}: {held}")
    return 0
