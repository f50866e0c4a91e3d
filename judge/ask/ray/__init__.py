"""The loop on a Ray cluster: workers ask, the driver keeps.

`shards` cuts the open judgments into shards of whole turns. A worker (`worker`) is an actor that runs the loop over one
shard after the other. Before each call it asks the driver (`ledger`), which alone has the journal and the budget, and
each completion goes to the driver at once. `engine` starts workers in place of lost ones, and `cluster` finds or starts
the cluster. Only `cluster` imports Ray.
"""
