"""One SQLite file: opening it, its transactions, its errors."""
