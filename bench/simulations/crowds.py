"""Crowds with few labels: are models of workers as often right as a majority, and how often wrong though sure?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench.simulations.figures import Codes, Finding, finding
from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings, Item

MODELS = ("dawid-skene", "mace")
SURE = 0.95
"""Probability of a grade from which a model counts as sure of it."""


@dataclass(frozen=True)
class Design:
    """Who labels what."""

    what: str
    items: int
    workers: int
    labels: int
    """Labels of an item."""
    double: float = 1.0
    """Share of the items that get these; any other item gets one label."""


DESIGNS = (
    Design("60 x 2", items=60, workers=6, labels=2),
    Design("60 x 3", items=60, workers=6, labels=3),
    Design("60 x 3 by 12", items=60, workers=12, labels=3),
    Design("120 x 3", items=120, workers=6, labels=3),
    Design("100, 20 % double", items=100, workers=2, labels=2, double=0.2),
)


@dataclass(frozen=True)
class Crowd:
    """What is labeled, and by whom."""

    what: str
    shares: tuple[float, ...]
    """How often each grade is true."""
    spammers: float = 0.0
    """Share of workers who are right in 30 % of the items; the others are in 75 to 95 %."""


EVEN = (0.25, 0.25, 0.25, 0.25)
CROWDS = (
    Crowd("careful", EVEN),
    Crowd("careful, 70 % one grade", (0.05, 0.1, 0.15, 0.7)),
    Crowd("30 % spam", EVEN, spammers=0.3),
    Crowd("careful, two grades", (0.5, 0.5)),
)


class World(NamedTuple):
    """Labels, and the true grade of each item as its place in the scale."""

    labels: CrowdLabels
    truth: Codes


def world(random: np.random.Generator, design: Design, crowd: Crowd) -> World:
    """Labels of a design; of careful crowds every worker is right in 60 to 95 % of the items.

    Seven errors in ten are off by one grade.
    """
    k = len(crowd.shares)
    truth = random.choice(k, design.items, p=crowd.shares)
    accuracy = random.uniform(0.6, 0.95, design.workers)
    if crowd.spammers:
        spams = random.random(design.workers) < crowd.spammers
        accuracy = np.where(spams, 0.3, random.uniform(0.75, 0.95, design.workers))
    workers = []
    items = []
    for item in range(design.items):
        size = design.labels if random.random() < design.double else 1
        workers += random.choice(design.workers, size, replace=False).tolist()
        items += [item] * size
    worker = np.array(workers, dtype=np.int32)
    item = np.array(items, dtype=np.int32)
    off = np.where(random.random(len(item)) < 0.7, 1, random.integers(1, k, len(item)))
    off *= random.choice((-1, 1), len(item))
    right = random.random(len(item)) < accuracy[worker]
    code = np.where(right, truth[item], (truth[item] + off) % k).astype(np.int8)
    names = tuple(f"w{number}" for number in range(design.workers))
    named = tuple(Item(f"{number}_1", "R") for number in range(design.items))
    return World(CrowdLabels("c", tuple(range(k)), names, named, worker, item, code), truth)


def w(
    replicates: int,
    random: np.random.Generator,
    designs: Sequence[Design] = DESIGNS,
    crowds: Sequence[Crowd] = CROWDS,
) -> list[Finding]:
    """How much more often a model is right than a majority, and the share of grades wrong of which it is sure."""
    figures = []
    settings = CrowdSettings()
    for design in designs:
        for crowd in crowds:
            base = []
            gains: dict[str, list[float]] = {name: [] for name in MODELS}
            wrong: dict[str, list[bool]] = {name: [] for name in MODELS}
            for _ in range(replicates):
                labels, truth = world(random, design, crowd)
                majority = float((AGGREGATORS["majority"].aggregate(labels, settings).code == truth).mean())
                base.append(majority)
                for name in MODELS:
                    grades = AGGREGATORS[name].aggregate(labels, settings)
                    right = grades.code == truth
                    gains[name].append(float(right.mean()) - majority)
                    sure = grades.shares[np.arange(len(truth)), grades.code] > SURE
                    wrong[name] += (~right[sure]).tolist()
            what = f"{design.what}, {crowd.what}"
            figures.append(finding("W", f"{what}: majority right", base))
            # Of two workers nothing tells who is wrong, and `judge crowd` says so.
            most_wrong = 0.1 if design.workers > 2 else None
            for name in MODELS:
                figures.append(finding("W", f"{what}: {name}, gain", gains[name], -0.02))
                figures.append(finding("W", f"{what}: {name}, wrong though sure", wrong[name], None, most_wrong))
    return figures
