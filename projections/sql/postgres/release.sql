-- End transactions that hold a generation and have waited for their own client for too long. A row says by itself which
-- transaction has it locked.
SELECT pg_terminate_backend(a.pid)
FROM {read_models}.generations AS g JOIN pg_stat_activity AS a ON a.backend_xid = g.xmax
WHERE a.usename = current_user AND a.wait_event_type = 'Client'
    AND a.state_change < clock_timestamp() - make_interval(secs => %s)
