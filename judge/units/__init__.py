"""What one judgment may be about, a file for each unit; code asks the unit and does not compare its name."""

from collections.abc import Mapping

from judge.records import JudgedUnit
from judge.units.citation import CITATION
from judge.units.dialogue import DIALOGUE
from judge.units.pair import PAIR
from judge.units.passage import PASSAGE
from judge.units.response import RESPONSE
from judge.units.unit import Unit

UNITS: Mapping[JudgedUnit, Unit] = {unit.name: unit for unit in (RESPONSE, DIALOGUE, CITATION, PAIR, PASSAGE)}
"""By name."""
