"""A journal in a PostgreSQL database, which several processes on several machines write at once.

address     where the database is, without its password in any message
tables      the tables, and the statements that read and write them
connection  one connection, made again where it breaks
reader      what such a journal holds, without a change to it
checks      what its completions took, and whether they are sound
claims      which process asks which question: a lease each
journal     the journal itself
"""
