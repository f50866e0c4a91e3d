"""Make the site: pages together, HTML, checks."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from docs.site.build import build, site_pages
from docs.site.pages import DOCS


def main() -> int:
    """Make the site and say what is wrong with it; 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS / "_build", help="a folder (default docs/_build)")
    args = parser.parse_args()
    if args.out.exists():
        shutil.rmtree(args.out)
    begin = time.monotonic()
    found = build(args.out, site_pages())
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"{args.out / 'html' / 'index.html'}: made in {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


sys.exit(main())
