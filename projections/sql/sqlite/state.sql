-- Which generation serves, how far it and any other have come, and by which verdicts its rows are judged (P2 to P4).
CREATE TABLE IF NOT EXISTS read_model_generations (
    generation INTEGER PRIMARY KEY,
    position   INTEGER NOT NULL CHECK (position >= 0),
    layout     INTEGER NOT NULL,
    verdicts   TEXT NOT NULL,
    active     INTEGER NOT NULL CHECK (active IN (0, 1))
);
CREATE UNIQUE INDEX IF NOT EXISTS one_active_generation ON read_model_generations (active) WHERE active = 1;
