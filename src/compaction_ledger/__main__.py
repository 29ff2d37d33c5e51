"""`python -m compaction_ledger` is the same program as `compaction-ledger`."""

from compaction_ledger.cli import main

if __name__ == "__main__":
    main()
