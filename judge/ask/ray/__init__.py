"""The loop on a Ray cluster: workers ask, the driver keeps.

The driver (`engine`) cuts the open tasks into shards of whole turns. A worker (`worker`) is an actor that runs the loop
on a shard, and hands each completion to the driver, which journals it. In the end, the driver runs the loop on its
journal. A process of its own (`client`) is connected to Ray; only this process imports Ray.
"""
