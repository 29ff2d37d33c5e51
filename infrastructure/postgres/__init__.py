"""PostgreSQL: one database for many processes. Needs the extra ``compaction-ledger[postgres]``."""
