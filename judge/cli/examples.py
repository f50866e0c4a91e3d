"""Examples of every command and action of the core, for the end of its help; a test parses them."""

EXAMPLES = {
    "run": (
        "judge run --runs runs/ --topics topics.json --passages passages.jsonl --model openai/gpt-4.1-mini --out out/",
        "judge run --runs runs/ --criteria groundedness relevance --topics topics.json --dry-run",
        "judge run --runs late.json --extend out/",
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
    ),
    "plan": (
        "judge plan out/ --half-width 0.1",
        "judge plan out/ --gold gold.jsonl --criterion groundedness --difference 0.2 --json",
    ),
    "crowd": (
        "judge crowd labels.csv --scale 0-3 --known known.tsv --out crowd/",
        "judge crowd labels.csv more.csv --scale relevance=0-3 --scale fluency=0-2 --bank out/ --out crowd/",
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
    "completion": ("judge completion bash", "judge completion fish"),
}
