-- Made when a generation is complete: one sort is cheaper than an insertion for each row.
CREATE INDEX IF NOT EXISTS summaries_{g}_conversation ON summaries_{g} (scope, conversation, from_pair);
CREATE INDEX IF NOT EXISTS attempts_{g}_conversation ON attempts_{g} (scope, conversation, started_index);
CREATE INDEX IF NOT EXISTS deliveries_{g}_conversation ON deliveries_{g} (scope, conversation, idx);
CREATE INDEX IF NOT EXISTS window_chunks_{g}_conversation ON window_chunks_{g} (scope, conversation, run, first_message);
CREATE INDEX IF NOT EXISTS window_pins_{g}_conversation ON window_pins_{g} (scope, conversation, idx);
CREATE INDEX IF NOT EXISTS window_deliveries_{g}_conversation ON window_deliveries_{g} (scope, conversation, idx);
