-- Lock a generation; no row comes back while another transaction has it. Rows are looked up by their keys from here on:
-- a plan that was made while a table was small, and kept, would read all of it for each key when it has grown.
SELECT generation, position, layout, active, verdicts, set_config('enable_seqscan', 'off', true)
FROM {read_models}.generations WHERE generation = %s FOR UPDATE SKIP LOCKED
