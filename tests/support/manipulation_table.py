"""All rows of the manipulation matrix."""

from __future__ import annotations

from manipulation_rows import Manipulation
from manipulations_beside import BESIDE
from manipulations_of_hashes import OF_HASHES
from manipulations_of_rows import OF_ROWS

MANIPULATIONS: list[Manipulation] = [*OF_ROWS.rows, *OF_HASHES.rows, *BESIDE.rows]
