"""The command `compaction-ledger`."""

from compaction_ledger.cli.app import main as main
