"""Judges that are tested themselves: what `judge probe` does, from a pool to the tables of a probe.

plan       what can be asked for, and the plan with its inputs read, its items drawn and their twins made
asking     the judges asked about items and twins, word overlap beside them, and the pairs of grades
bound      the probe in the certificate of the judge that it is of
job        all of it, and the files
"""
