"""What `work` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from compaction_ledger.cli.commands.models import ModelChoice
from compaction_ledger.ledger import Ledger
from compaction_ledger.serving import Pace
from compaction_ledger.settings import LEDGER_VARIABLE, Settings


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """The options, as they were given."""

    place: str | Path = field(repr=False)  # a URL may hold a secret (S4)
    choice: ModelChoice
    pace: Pace
    upgrade: bool = False
    processes: int = 1
    lease: float | None = None
    at_once: int | None = None
    sign_every: float | None = None
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    json: bool = False

    def open(self) -> Ledger:
        """The ledger, with as many attempts at once as there are threads.

        A claim holds twice as long as one call of a model may take, and five minutes at least, unless told.
        """
        lease = self.lease or max(Settings().lease_seconds, 2 * (self.choice.timeout or 0.0))
        threads = self.pace.threads
        settings = Settings(
            lease_seconds=lease,
            attempts_at_once=threads,
            shared_attempts_at_once=self.at_once,
            database_connections=max(Settings().database_connections, threads + 4),
        )
        return Ledger.open(self.place, create=False, settings=settings)

    def words_of_child(self, number: int) -> list[str]:
        """What a process of several is called with. The URL, which may hold a secret, is not in it."""
        words: list[object] = ["work", "--json", "--child", number, "--threads", self.pace.threads]
        words += ["--poll", self.pace.poll, "--discover", self.pace.discover]
        words += ["--drain", self.pace.drain]
        words += ["--until-idle"] if self.pace.until_idle else []
        words += ["--upgrade"] if self.upgrade else []
        given = {
            "--sign-every": self.sign_every if number == 1 else None,
            "--lease": self.lease,
            "--at-once": self.at_once,
            "--model": self.choice.model,
            "--base-url": self.choice.base_url,
            "--api-key-env": self.choice.api_key_env,
            "--max-tokens": self.choice.max_tokens,
            "--timeout": self.choice.timeout,
        }
        for option, value in given.items():
            words += [] if value is None else [option, value]
        return list(map(str, words))

    def variables_of_child(self) -> dict[str, str]:
        """What a process of several finds in its environment besides ours."""
        return {LEDGER_VARIABLE: str(self.place)}
