"""What is said of a unit: one thing that a judge grades, and what sets it apart from the others."""

from judge.records import JudgedUnit, Record


class Nouns(Record, frozen=True):
    """What a run is said to have one of, and what it has there; both in the singular."""

    turn: str
    response: str

    @property
    def turns(self) -> str:
        """In the plural."""
        return f"{self.turn}s"

    @property
    def responses(self) -> str:
        """In the plural."""
        return f"{self.response}s"


class UnitWords(Record, frozen=True):
    """The sentences about a unit that no noun alone makes."""

    none_left: str
    """Why there is nothing to judge."""
    selected: str
    """What is pooled of it; empty where users select among responses."""
    unreached: str
    """Why a run has none in a topic."""
    below_depth: str
    """Where responses stand that are not in it by their rank."""
    with_errors: str
    """What becomes of responses with errors and with warnings, as a sentence."""
    errors: str
    """What becomes of responses with errors, after a semicolon."""
    turns_file: str
    """What the file of turns holds."""
    unanswered: str = ""
    """Why a run has none where it had to, below its boards; empty where the boards are of another unit."""


class Unit(Record, frozen=True):
    """What one judgment is about."""

    name: JudgedUnit
    nouns: Nouns
    words: UnitWords
    by_topic: bool = False
    """Whether a run has one for each topic, with all that was said there; else it has them for each turn."""
    whole_response: bool = False
    """Whether it is one response as a run gave it, to which limits of tokens and the screen apply."""
    part_of_response: bool = False
    """Whether it is a part of a run's response, with which its other parts are drawn and listed."""
    listed: bool = False
    """Whether it is an item that runs list: it is judged whatever is wrong with their responses, qrels name it by its
    own id, and no run is ranked by its grades."""
    depth: int = 1
    """How many of a turn are pooled of each run, where users may say otherwise."""
    orders: int = 1
    """In how many orders it is shown, each of which is a judgment; the orders follow each other in a pool."""
    boards: JudgedUnit = "response"
    """The unit that boards are of: itself, or the one of which its grades are a measure."""
    inputs: tuple[str, ...] = ()
    """The inputs that its prompts may have, and first the one that they all have; no others have it unless it is the
    needed one. Empty where they may have all that is no other unit's."""
    needed_input: str | None = None
    """The input without which it cannot be checked."""
    own_options: tuple[str, ...] = ()
    """The options of pooling that are about it alone."""
    unfit: tuple[str, ...] = ()
    """The options of pooling that are about something else."""
    why_unfit: str = ""
    """What these are about, and what is judged."""
