"""tau-bench trajectories: OpenAI Chat messages under ``traj``, one conversation per trajectory."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import a_list, an_object, the_list
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.openai_parts import message_parts
from compaction_ledger.infrastructure.importers.reading import label, read_document
from compaction_ledger.infrastructure.importers.turns import Part


class TauBenchImporter:
    """Reads the result files of tau-bench."""

    name = "taubench"
    description = "tau-bench result files (OpenAI Chat messages under traj)"

    def sniff(self, sample: Sample) -> bool:
        """Whether every item of the document is a trajectory."""
        items = sample.items
        return bool(items) and all({"traj", "task_id"} <= set(item) for item in items)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every trajectory; its id is ``task-<task_id>``, with ``-trial-<trial>`` if given."""
        collector, name = Collector(self.name, path), label(path)
        for number, value in enumerate(a_list(read_document(path), name)):
            place = f"{name}[{number}]"
            trajectory = an_object(value, place)
            parts: list[Part] = []
            for at, message in enumerate(the_list(trajectory, "traj", place)):
                here = f"{place} traj[{at}]"
                parts += message_parts(an_object(message, here), here, collector)
                collector.took()
            for key in sorted({"info", "reward"} & set(trajectory)):
                collector.left_out(f"{place} {key}", "metadata", "the benchmark's own record")
            collector.add_parts(_name(trajectory), parts)
        return collector.result(conversation)


def _name(trajectory: JsonObject) -> str:
    task, trial = trajectory.get("task_id"), trajectory.get("trial")
    named = f"task-{task}"
    return named if trial is None else f"{named}-trial-{trial}"
