"""The two parts of CAsT-ReGIn, responses and clarifying questions: names and forms of their files. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

GRADES = range(4)
RELEVANT = 2
"""The least grade that counts as relevant in the published evaluation."""

Name = Literal["response", "question"]


@dataclass(frozen=True)
class ResourceKind:
    """The names and forms of one part of the resource."""

    name: Name
    folder: str
    list_field: str
    labels: tuple[str, ...]
    all_turns: Mapping[str, str]
    """Criterion to the name of the qrels of all turns."""
    escaped: bool
    """Whether the bank writes characters beyond ASCII as escapes."""
    criterion_of_subsets: str | None = None

    @property
    def id_field(self) -> str:
        """The field with an item's id."""
        return f"{self.name.title()} ID"

    @property
    def text_field(self) -> str:
        """The field with an item's text."""
        return f"{self.name.title()} Text"

    @property
    def judgments(self) -> str:
        """Path of the judgments in the part's folder."""
        return f"qrels/{self.name}_judgments.json"

    @property
    def bank(self) -> str:
        """Path of the bank."""
        return f"{self.name}_bank.json"

    @property
    def pool(self) -> str:
        """Path of the pool."""
        return f"{self.name}_pool_depth_1.pool"

    @property
    def filtered(self) -> str:
        """Name of the qrels without the turns that have nothing relevant."""
        return f"{self.name}_relevance_filtered"

    @property
    def mi_subset(self) -> str:
        """Name of the qrels of the turns that call for initiative."""
        return f"{self.name}_relevance_mi_subset"

    @property
    def qrels(self) -> tuple[str, ...]:
        """Names of all qrels of the part."""
        subsets = (self.filtered, self.mi_subset) if self.criterion_of_subsets else ()
        return (*self.all_turns.values(), *subsets)


def _kind(name: Name, folder: str, list_field: str, labels: tuple[str, ...], *, questions: bool) -> ResourceKind:
    names = {label.lower(): f"{name}_{label.lower()}" for label in labels}
    if questions:
        names["relevance"] += "_all"
    return ResourceKind(name, folder, list_field, labels, names, questions, "relevance" if questions else None)


KINDS = {
    "response": _kind(
        "response",
        "response_evaluation",
        "Responses",
        ("Relevance", "Naturalness", "Conciseness"),
        questions=False,
    ),
    "question": _kind(
        "question",
        "clarifying_question_evaluation",
        "Questions",
        ("Relevance", "Novelty", "Diversity"),
        questions=True,
    ),
}


def qrels_path(name: str) -> str:
    """Path of a qrels file in the part's folder."""
    return f"qrels/{name}.qrel"
