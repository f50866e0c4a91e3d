"""Decision models: judges that give a probability for each label and write no text.

questions    what a request asks, and the completion that answers make
contracts    the two contracts: what is sent, and how a reply is read
model        what both judges share: one call for all questions about a material
openai       `decisions/MODEL`, OpenAI's contract
systemone    `systemone/MODEL`, that of TypeSafe

Here are their rows.
"""

from judge.judges.model import Backend

DECISIONS = Backend(
    module="judge.extra.decisions.openai", key="OPENAI_API_KEY", usual_address="https://api.openai.com/v1"
)
SYSTEMONE = Backend(module="judge.extra.decisions.systemone", key="JUDGE_API_KEY", ready="the address can be read")
