"""Scale: what large runs need: batch engines, a cluster, a journal that processes share.

requests      what a run still has to ask, as files for batch engines
batches       such files handed to a provider (service), and what comes back, into the journal
ray           calls made by the workers of a cluster
postgres      the journal in PostgreSQL
cli           the commands
"""
