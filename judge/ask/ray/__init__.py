"""A judge on a Ray cluster: the loop runs in the driver, and only its calls are made by workers.

The driver (`engine`) asks a judge that sends each request to a process of its own, which is connected to Ray
(`cluster`). This one hands the request to a worker, an actor with the same judge. Only that process imports Ray.
"""
