"""How many turns interactive runs have in each topic, beside other runs. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping

from judge.io.ids import groups_of, is_own_turn, is_unreached, topic_of

FAR_SHORTER = 2 / 3
"""A share of the turns that a topic usually has; an interactive run below it is flagged."""


class ConversationLengths:
    """How many turns interactive runs have in each topic that they reached.

    A conversation is compared with others about its own topic. As many turns as two others have are usual there:
    neither one long conversation nor many short ones, which a team may hand in, decide what is.
    """

    def __init__(self, runs: Mapping[str, Collection[str]]) -> None:
        self._turns: dict[str, Counter[str]] = {}
        for run_id, turn_ids in runs.items():
            own = [turn_id for turn_id in turn_ids if is_own_turn(turn_id) and not is_unreached(turn_id)]
            if own:
                self._turns[run_id] = Counter(map(topic_of, own))
        self._of_topic = groups_of((topic, n) for turns in self._turns.values() for topic, n in turns.items())

    def length(self, run_id: str) -> float | None:
        """The turns of a topic that a run reached, on average; None if the run is not interactive."""
        turns = self._turns.get(run_id)
        return turns.total() / len(turns) if turns else None

    def _others(self, run_id: str, topic: str) -> list[int]:
        """The turns of the other runs that reached the topic, the most first."""
        lengths = list(self._of_topic[topic])
        lengths.remove(self._turns[run_id][topic])
        return sorted(lengths, reverse=True)

    def is_far_shorter(self, run_id: str) -> bool:
        """Whether a run has fewer turns than FAR_SHORTER of the usual ones, in the topics that others reached too.

        Of two others the shorter conversation is usual, of one other its own.
        """
        own = usual = 0
        for topic, n in self._turns.get(run_id, {}).items():
            others = self._others(run_id, topic)
            if others:
                own += n
                usual += others[min(1, len(others) - 1)]
        return own < FAR_SHORTER * usual

    def lacking(self, run_id: str) -> list[str]:
        """Ids of the turns that a far shorter run lacks: up to the shortest other conversation that is not far shorter.

        So no run leads by ending its conversations after an easy question. One other conversation alone costs it none.
        """
        if not self.is_far_shorter(run_id):
            return []
        ids = []
        for topic, n in self._turns[run_id].items():
            others = self._others(run_id, topic)
            if len(others) > 1:
                fewest = min(other for other in others if other >= FAR_SHORTER * others[1])
                ids += [f"{topic}_{number + 1}~lacking" for number in range(n, fewest)]
        return ids
