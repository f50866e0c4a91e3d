"""Ask: what a judge is asked, what its answer says, and the loop that asks everything once.

criteria   prompt files, checked on load; front_matter: their head, every fault with its line
prompt     a criterion and a pooled response as messages; strangers' texts cannot leave their place
verdict    what a completion says, never a default; reply: where in a reply the verdict stands
dialogue   one judgment from question to record
loop       all judgments of one judge: concurrency, retries, budget, interruption
several    several judges under one budget
labels     what judges said, read back from files of any origin
"""
