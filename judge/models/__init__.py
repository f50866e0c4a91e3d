"""Models: the judges we ask, the forms of their answers, and the journal of every paid completion.

model      the interface of a judge: options, price, one call that is one attempt
backends/  one file for each backend
forms      the forms of an answer: schema, instruction, labels
journal    completions by the digest of their request; journal_rows: how each row proves itself
           digests: sets of millions of them
           journal_writer: the thread that writes them; journal_view: what journals hold, read where they lie
prices     prices of the user's own; spending: what completions took
journal_check  sound or not, and what to salvage; journal_pages: a journal's file read without SQLite
storable   a completion without what makes no sense
chat       the chat-completions protocol; http_errors: what a provider's refusal means for the loop
           transport, reply_body: how a reply is read within its limits
address    the address of an API, and its key; moved: variables that move it; secrets: what is written nowhere
families   the model family or the team behind a run or a judge
records    what is sent to a judge and what comes back
catalog, weights, gguf, engine  the local models
"""
