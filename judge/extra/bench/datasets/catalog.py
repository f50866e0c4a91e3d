"""The table of datasets; a new one is its module and its line here."""

from judge.extra.bench.datasets import Dataset
from judge.extra.bench.datasets.attributionbench import ATTRIBUTIONBENCH
from judge.extra.bench.datasets.begin import BEGIN
from judge.extra.bench.datasets.cast_regin import CAST_REGIN
from judge.extra.bench.datasets.faithbench import FAITHBENCH
from judge.extra.bench.datasets.llmjudge import LLMJUDGE
from judge.extra.bench.datasets.summedits import SUMMEDITS
from judge.extra.bench.datasets.transparentcis import TRANSPARENTCIS
from judge.extra.bench.datasets.usr import USR

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for family in (BEGIN, ATTRIBUTIONBENCH, FAITHBENCH, SUMMEDITS, LLMJUDGE, CAST_REGIN, USR, TRANSPARENTCIS)
    for dataset in family
}
"""By name, from the rung on which word overlap does best."""
