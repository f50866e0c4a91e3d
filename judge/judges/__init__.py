"""Judges: whom we ask, the forms of their answers, and the journal of every paid completion.

model      the base class of judges: options, and one call that is one attempt; backends/ has one file for each backend
forms      the forms of an answer; chat: the chat-completions protocol; http_errors, limits: what providers say
journal    completions by the digest of their request, and all that reads and writes them
credentials  addresses of APIs and their keys, and what is written nowhere
records    what is sent to a judge and what comes back
weights    the local models
"""
