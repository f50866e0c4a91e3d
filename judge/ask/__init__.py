"""Ask: the question to a judge, the meaning of its reply, and the loop that asks everything once.

criteria   prompts, found by name; prompt_file: one file, checked on load
prompt     what criteria are about: responses, dialogues, nuggets; and a criterion and a pooled response as messages,
           strangers' texts between tags that hold them
reply      the text of a completion, without thoughts and what a server leaves around it
verdict    reads a completion, never with a default
questions  what one judge is asked, once more after an unreadable reply, and what the journal answers already
account    how many tokens calls will have, what they took and cost, and their limits
loop       all judgments of one judge: concurrency and interruption, in an event loop of its own
calls      a request's completion, asked for once, in its turn, and again while its failures may pass; when a judge that
           answers nothing ends a run
pace       when the next call may be sent
asking     the one way to ask: judges of a job under one budget
returned   where other models answered than those asked
results    judgments and failures on the disk, and grades of judges, read back from files of any origin
progress   the bar or line that shows how far a command is
records    the judgments to make, and their order: neighbors share the start of their prompt; judgments and failures
"""
