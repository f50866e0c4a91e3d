"""Examples of every command and action, for the end of its help; a test parses them."""

EXAMPLES = {
    "run": (
        "judge run --runs runs/ --topics topics.json --passages passages.jsonl --model openai/gpt-4.1-mini --out out/",
        "judge run --runs runs/ --criteria groundedness relevance --topics topics.json --dry-run",
        "judge run --runs late.json --extend out/",
    ),
    "requests": (
        "judge requests --runs runs/ --topics topics.json --model openai/gpt-4.1-mini --out out/ --requests round-1/",
        "judge requests --runs runs/ --model server/m --base-url http://localhost:8000/v1 --requests r/ --shards 8",
    ),
    "batch": ("judge batch submit round-1/", "judge batch collect round-1/ --out out/"),
    "batch submit": ("judge batch submit round-1/", "judge batch submit round-1/ --json"),
    "batch status": ("judge batch status round-1/", "judge batch status round-1/ --json"),
    "batch collect": ("judge batch collect round-1/ --out out/", "judge batch collect round-1/ --out out/ --json"),
    "completions import": (
        "judge completions import output.jsonl errors.jsonl --requests round-1/ --out out/",
        "judge completions import done/*.jsonl --requests round-1/ --out out/ --json",
    ),
    "pool": (
        "judge pool --runs runs/ --topics topics.json --passages passages.jsonl --out out/",
        "judge pool --runs runs/ late.json --depth 3 --screen exclude --out out/",
        "judge pool --unit dialogue --runs runs/ --topics topics.json --out dialogues/",
    ),
    "report": (
        "judge report out/",
        "judge report out/ --gold gold.jsonl",
        "judge report out-2024/ out-2025/ --out both/",
    ),
    "release": (
        "judge release out/ --out bundle/",
        'judge release out/ --out bundle/ --keep-names --license "CC BY 4.0"',
    ),
    "doctor": (
        "judge doctor",
        "judge doctor --model openai/gpt-4.1-mini --model baseline/overlap",
        "judge doctor --model server/m --base-url http://localhost:8000/v1 --json",
    ),
    "demo": ("judge demo", "judge demo try-it --no-model"),
    "validate": (
        "judge validate runs/ --topics topics.json",
        "judge validate run.json --topics topics.json --json",
        "judge validate runs/ --topics topics.json --fix --out fixed/ --report-dir pages/",
    ),
    "tokens": ("judge tokens runs/", "judge tokens runs/ --token-limit 200 --tsv"),
    "convert": (
        "judge convert runs/ --to trec-run --out trec/",
        "judge convert runs/ --to ikat2025 --team mine --topics topics.json --out new/",
        "judge convert out/ --to parquet --out tables/",
    ),
    "passages": (
        "judge passages index --hashes passage_hashes.tsv --out hashes.idx",
        "judge passages extract --runs runs/ --passages collection/ --out passages.jsonl",
    ),
    "passages index": (
        "judge passages index --hashes passage_hashes.tsv --out hashes.idx",
        "judge passages index --collection shards/ --out collection.idx",
    ),
    "passages extract": (
        "judge passages extract --runs runs/ --passages collection/ --out passages.jsonl",
        "judge passages extract --pool out/ --passages collection.idx --passage-hashes hashes.idx --out passages.jsonl",
    ),
    "models": ("judge models list", "judge models pull qwen2.5-1.5b"),
    "models list": ("judge models list", "judge models list --json"),
    "models pull": ("judge models pull qwen2.5-1.5b", "judge models pull smollm2-135m"),
    "journal": ("judge journal verify out/", "judge journal stats out/", "judge journal reparse out/"),
    "journal verify": ("judge journal verify out/", "judge journal verify out/journal.sqlite"),
    "journal salvage": (
        "judge journal salvage out/ --out salvaged.sqlite",
        "judge journal salvage damaged.sqlite --out sound.sqlite",
    ),
    "journal stats": ("judge journal stats out/", "judge journal stats out/journal.sqlite --json"),
    "journal export": ("judge journal export out/ --out journal.jsonl", "judge journal export out/journal.sqlite"),
    "journal reparse": ("judge journal reparse out/", "judge journal reparse out/ --json"),
    "journal merge": (
        "judge journal merge out-may/ out-june/ --out both.sqlite",
        "judge journal merge out/ journal.jsonl --out all.sqlite",
    ),
    "prompts": ("judge prompts list", "judge prompts show groundedness/graded --rendered", "judge prompts check my.md"),
    "prompts list": ("judge prompts list", "judge prompts list --json"),
    "prompts show": ("judge prompts show groundedness", "judge prompts show my.md --rendered --form label"),
    "prompts check": ("judge prompts check my.md", "judge prompts check mine/a.md mine/b.md"),
    "gold": (
        "judge gold check gold.jsonl --pool out/",
        "judge gold split gold.jsonl --test 0.5 --seed 1 --out split/",
        "judge gold plan --pool out/ --n 200 --seed 1 --out plan.jsonl",
    ),
    "gold check": ("judge gold check gold.jsonl --pool out/", "judge gold check split/ --json"),
    "gold import": (
        "judge gold import qrels response_groundedness.qrel --criterion groundedness --pool out/ --out gold.jsonl",
        "judge gold import csv grades.csv --column turn_id=turn --pool out/ --plan plan.jsonl --out gold.jsonl",
    ),
    "gold split": (
        "judge gold split gold.jsonl --test 0.5 --seed 1 --out split/",
        "judge gold split gold.jsonl --test 0.3 --seed 2026 --cluster theme --out split/",
    ),
    "gold sheet": (
        "judge gold sheet plan.jsonl --pool out/ --topics topics.json --to html --assessor ann --out ann/",
        "judge gold sheet plan.jsonl --pool out/ --to mturk --items-per-task 3 --out batch/",
    ),
    "gold plan": (
        "judge gold plan --pool out/ --n 200 --seed 1 --out plan.jsonl",
        "judge gold plan --pool out/ --judgments out/ --gold gold.jsonl --n 100 --seed 2 --out next.jsonl",
    ),
    "leaderboard": (
        "judge leaderboard out/",
        "judge leaderboard out/ --gold gold.jsonl --out corrected/",
        "judge leaderboard out/ --token-sensitivity",
    ),
    "plan": (
        "judge plan out/ --half-width 0.1",
        "judge plan out/ --gold gold.jsonl --criterion groundedness --difference 0.2 --json",
    ),
    "crowd": (
        "judge crowd labels.csv --scale 0-3 --known known.tsv --out crowd/",
        "judge crowd labels.csv more.csv --scale relevance=0-3 --scale fluency=0-2 --bank out/ --out crowd/",
    ),
    "crowd cast-regin": (
        "judge crowd cast-regin CAsT-ReGIn/ --out regin/",
        "judge crowd cast-regin CAsT-ReGIn/ --runs runs/ --evaluate --out regin/",
    ),
    "nuggets create": (
        "judge nuggets create --pool out/ --topics topics.json --model openai/gpt-4.1-mini --dry-run --out bank/",
        "judge nuggets create --pool out/ --topics topics.json --model openai/gpt-4.1-mini --out bank/",
        "judge nuggets create --pool out/ --topics topics.json --model openai/gpt-4.1-mini --from passages "
        "--qrels passages.qrel --relevant-from 2 --out bank/",
    ),
    "nuggets convert": (
        "judge nuggets convert gold_nuggets_human.json --to judge --vital-from 3 --out bank.jsonl",
        "judge nuggets convert rubrics.csv --to judge --made-by track --out rubrics.jsonl",
    ),
    "nuggets sheet": (
        "judge nuggets sheet bank/ --topics topics.json --out sheet.csv",
        "judge nuggets sheet nuggets.jsonl --edits edits.jsonl --out sheet.csv",
    ),
    "nuggets import": (
        "judge nuggets import sheet.csv --bank bank/ --edited-by ann",
        "judge nuggets import sheet.csv --bank nuggets.jsonl --edits edits.jsonl --edited-by ann",
    ),
    "nuggets match": (
        "judge nuggets match --pool out/ --bank nuggets.jsonl --model openai/gpt-4.1-mini --out matched/",
        "judge nuggets match --pool out/ --bank rubrics.csv --model openai/gpt-4.1-mini --dry-run --out covered/",
    ),
    "nuggets claims": (
        "judge nuggets claims --pool out/ --bank nuggets.jsonl --model openai/gpt-4.1-mini --out claimed/",
        "judge nuggets claims --pool out/ --bank nuggets.jsonl --model openai/gpt-4.1-mini "
        "--prompt nugget_precision/passages --dry-run --out carried/",
    ),
    "nuggets agree": (
        "judge nuggets agree --pool out/ --bank nuggets.jsonl --gold people.jsonl --matches matched/",
        "judge nuggets agree --pool out/ --bank nuggets.jsonl --gold people.jsonl --matches matched/ --format json",
    ),
    "nuggets score": (
        "judge nuggets score --pool out/ --bank nuggets.jsonl --matches people.jsonl --main vital_score --out scores/",
        "judge nuggets score --pool out/ --bank nuggets.jsonl --matches matched/ --gold people.jsonl --out corrected/",
        "judge nuggets score --pool out/ --bank nuggets.jsonl --matches matched/ --claims claimed/ --out scores/",
    ),
    "drift": (
        "judge drift out-2025/ out-2026/ --margin 0.1",
        "judge drift before/judgments.jsonl after/judgments.jsonl --margin 0.1 --json",
    ),
    "calibrate": (
        "judge calibrate --gold gold.jsonl --judgments out/",
        "judge calibrate --gold split/ --test split/ --pool out/ --model openai/gpt-4.1-mini "
        "--prompt groundedness/graded --prompt my.md --out cal/",
        "judge calibrate --gold gold.jsonl --judgments a/ b/ --require 'wkappa.lo>=0.4' --out cal/",
    ),
    "probe": (
        "judge probe out/ --model openai/gpt-4.1-mini --criteria groundedness --items 20 --out probe/",
        "judge probe out/ --prompt groundedness/graded --prompt my.md --kinds injection --dry-run --out probe/",
        "judge probe --runs runs/ --passages passages.jsonl --model baseline/overlap --criteria groundedness "
        "--out probe/",
    ),
    "evaluate responses": (
        "judge evaluate responses out/ --topics topics.json --by depth",
        "judge evaluate responses out/ --qrels people.qrel --criterion groundedness --out evaluation/",
        "judge evaluate responses --runs response_runs/ --qrels people.qrel --scale 0-3 --format trec_eval",
    ),
    "evaluate spans": (
        "judge evaluate spans --gold task1_test.rel --run mine.tsv --equivalence equiv.txt",
        "judge evaluate spans --qrels qrel-judgement-v4.txt --run mine.res --equivalence equiv.txt --out spans/",
        "judge evaluate spans --gold gold.tsv --run a.tsv b.tsv --json",
    ),
    "bench": (
        "judge bench --data data/ --model openai/gpt-4.1-mini --limit 200 --out cards/gpt-4.1-mini/",
        "judge bench --data data/ --dataset begin-wow faithbench --model baseline/overlap --out cards/overlap/",
        "judge bench --data data/ --stored --out cards/stored/",
    ),
    "bench compare": (
        "judge bench compare cards/gpt-4.1-mini/ cards/overlap/",
        "judge bench compare cards/ --format markdown",
    ),
    "bench datasets": ("judge bench datasets --data data/", "judge bench datasets --data data/ --format json"),
    "evaluate passages": (
        "judge evaluate passages --runs runs/ --qrels passages.qrel --topics topics.json --out evaluation/",
        "judge evaluate passages --runs a.run --qrels passages.qrel --rel 2 --format trec_eval --per-turn",
    ),
    "evaluate statements": (
        "judge evaluate statements --runs runs/ --qrels ptkb_rel_nist ptkb_rel_org",
        "judge evaluate statements --runs runs/ --topics topics.json --by depth",
    ),
    "reproduce": (
        "judge reproduce ikat2023 iKAT/2023/",
        "judge reproduce ikat2023 iKAT/2023/evaluation/automatic_eval_results/ --out reproduced/",
        "judge reproduce llmjudge LLMJudge-benchmark/ --json",
    ),
    "evaluate wording": (
        "judge evaluate wording --runs runs/ --topics topics.json",
        "judge evaluate wording --runs runs/ --reference manual.json --over answered --out wording/",
    ),
    "evaluate qrels": (
        "judge evaluate qrels nist.qrel llm.qrel --runs runs/ --measure nDCG@5 P@5",
        "judge evaluate qrels out/ crowd.qrel --out compared/",
        "judge evaluate qrels assessor.qrel worker.qrel --positive 2 1 --json",
    ),
    "serve assess": (
        "judge serve assess --pool out/ --plan plan.jsonl --assessor ann --assessor bob --store labels.sqlite",
        "judge serve assess --pool out/ --prompt relevance --topics topics.json --assessor ann --store labels.sqlite",
        "judge serve assess --pool out/ --assessor ann --store edited.sqlite --made postedit --judgments out/",
    ),
    "serve review": (
        "judge serve review calibrated/",
        "judge serve review dev/ --gold split/ --pool out/ --model openai/gpt-4.1-mini --max-cost 1",
        "judge serve review dev/ --prompt mine.md --gold split/ --pool out/ --model server/m "
        "--base-url http://127.0.0.1:8000/v1 --port 0",
    ),
    "completion": ("judge completion bash", "judge completion fish"),
}
"""What a user types after `judge`, to command lines."""
