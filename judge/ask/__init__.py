"""Ask: the question to a judge, the meaning of its reply, and the loop that asks everything once.

criteria   prompts, found by name; prompt_file: one file, checked on load
subjects   what criteria are about: responses, dialogues, nuggets
prompt     a criterion and a pooled response as messages; blocks: strangers' texts between tags that hold them
verdict    reads a completion of one criterion or of a group, never with a default
group      criteria asked together in one request
tasks      the judgments to make
inquiry    one task asked, and once more after an unreadable reply; outcome: its judgment or failure
questions  what one judge is asked, and what the journal answers already; forecast: the same, counted
estimates  how many tokens calls will have; account: what they took
loop       all judgments of one judge: concurrency, interruption; tally: what is settled; settings: the limits
line       whose turn it is; silence: whether the judge answers nothing at all; suspects: whose texts may be why
calls      a request's completion, asked for once; cashier: what is entered of it; budget: what the calls cost
attempts   one call, sent in its turn, and again while its failures may pass
pace       when the next call may be sent; rate: the calls a second that refusals teach
several    several judges under one budget
returned   where other models answered than those asked
labels     grades of judges, read back from files of any origin
progress   the bar or line that shows how far a command is; own_loop: an event loop for synchronous code
records    judgments and failures
"""
