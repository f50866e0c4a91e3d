"""Pool the runs of a folder without judging anything, for human assessors, a crowd or `judge run`.

Writes the pool (TREC pool, records, response bank, passages), each run over the pooled responses, and the reason for
each response left out. `judge run` with the same options and --out continues there.
"""

from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.printing import print_json, progress, say
from judge.cli.tables import pooled_counts, print_pooled, print_problems
from judge.jobs.folder import write_pool
from judge.jobs.pooling import PoolPlan, check_complete, pool_runs
from judge.jobs.run_inputs import DEFAULT_OUT


def main(plan: PoolPlan, output: JsonOutput, file: FileOfOptions) -> int:
    """Pool, write, and say what was left out; 1 if no response is pooled."""
    with progress("reading and checking runs") as steps:
        pooled = pool_runs(plan, steps)
    print_problems(pooled, checked_topics=plan.topics is not None)
    if plan.missing_passages == "fail":
        check_complete(pooled.pool)
    out = plan.out or plan.extend or DEFAULT_OUT
    with progress("writing the pool"):
        write_pool(out, pooled, plan.argv, extended=plan.extend, replace=plan.replace, options=plan.chosen)
    print_pooled(pooled)
    if output.as_json:
        print_json(pooled_counts(pooled))
    say(f"the pool is in {out}")
    return 0 if pooled.pool.responses else 1
