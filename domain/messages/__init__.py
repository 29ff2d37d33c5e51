"""The messages of model providers, read and written without loss (T1), and checked (T2, T5).

One module for each wire shape. A message is the JSON value that the caller gave, and stays that; what is
read of it is put beside it as an :class:`~compaction_ledger.domain.messages.interface.Entry`.
"""
