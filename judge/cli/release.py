"""Write the bundle that a track may publish: a folder of `judge run` without what is private or not ours to give.

Runs and teams get pseudonyms, the same in every file and in every later bundle; a private file beside the bundle says
whose they are. The texts of passages and the judge's own words are left out unless an option says otherwise. Journal,
command line, paths and addresses never go along. A name that is left in a text is refused, with its place.
"""

from judge.cli.printing import print_listed, progress, say
from judge.io.cells import count
from judge.jobs.release import ReleasePlan, release_folder


def main(plan: ReleasePlan) -> int:
    """Write the bundle and say what is in it."""
    with progress("reading the folder") as steps:
        outcome = release_folder(plan, steps)
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    for problem in outcome.remaining:
        print_listed(f"accepted: {problem.file}: {problem.path}: {problem.message}")
    print(outcome.out)
    say(f"{count(len(outcome.files), 'file')}; {outcome.out / 'README.md'} says what each is")
    if outcome.names is not None:
        say(f"keep {outcome.names} private: it says whose the pseudonyms are, and the next bundle uses it again")
    return 0
