-- Format 3 has nothing of its own yet.
SELECT 3;
