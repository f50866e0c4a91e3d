"""Models: whom we ask, how an answer may look, and the journal of every completion that was paid for.

model      what every judge is to the loop: options, price, one call that is one attempt
backends/  a file a provider
forms      the forms of an answer: schema, instruction, labels
journal    completions by the digest of their request
chat       the protocol of OpenAI and its like; http_errors: what a refusal means for the loop
address    where an API lives, and its key
families   who is behind a run or a judge
catalog, weights, gguf, engine  the local models
"""
