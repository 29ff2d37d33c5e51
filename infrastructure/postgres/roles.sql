-- What the two roles of a ledger may do, and that nobody else may do anything. Run it as the owner of the tables,
-- again after each migration; what stands here is then all that they have.
--
-- The writer is what workers connect as. It changes the log, the slots and its marks through functions alone, which
-- run as their owner: so it can add an event, sealed at the next free place, and do nothing else to the log. The
-- reader reads, and changes nothing.
BEGIN;

REVOKE ALL ON SCHEMA {schema}, {read_models} FROM PUBLIC, {writer}, {reader};
REVOKE ALL ON ALL TABLES IN SCHEMA {schema}, {read_models} FROM PUBLIC, {writer}, {reader};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema}, {read_models} FROM PUBLIC, {writer}, {reader};
-- The server lets everybody execute a new function.
REVOKE ALL ON ALL ROUTINES IN SCHEMA {schema}, {read_models} FROM PUBLIC, {writer}, {reader};

GRANT USAGE ON SCHEMA {schema}, {read_models} TO {writer}, {reader};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema}, {read_models} TO {writer}, {reader};
GRANT EXECUTE ON FUNCTION
    {schema}.store_clock,
    {schema}.conversation_name,
    {schema}.conversation_now,
    {schema}.window_name
TO {writer}, {reader};

-- The log, and the marks by which the fate of a transaction is found (A9).
GRANT EXECUTE ON FUNCTION
    {schema}.append_event,
    {schema}.append_events,
    {schema}.subject_of,
    {schema}.mark_transaction,
    {schema}.last_commit_of
TO {writer};

-- Transcripts: lines are added, and of a conversation it is counted how often it was changed and how long it is.
GRANT INSERT ON
    {schema}.conversations,
    {schema}.messages,
    {schema}.message_revisions,
    {schema}.runs
TO {writer};
GRANT UPDATE (revision, lines) ON {schema}.conversations TO {writer};
GRANT EXECUTE ON FUNCTION
    {schema}.make_conversations,
    {schema}.change_conversation,
    {schema}.write_lines,
    {schema}.write_runs,
    {schema}.write_revisions
TO {writer};

-- Originals of running agents: appended, kept and forgotten through functions alone.
GRANT EXECUTE ON FUNCTION
    {schema}.append_originals,
    {schema}.keep_result,
    {schema}.forget_originals
TO {writer};

-- Read models. What a role may do with the table of generations it may do with the tables of each that is begun from
-- then on (see begin_generation): they all belong to the owner of the ledger.
GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA {read_models} TO {writer};
GRANT EXECUTE ON FUNCTION
    {read_models}.hold_generations,
    {read_models}.begin_generation,
    {read_models}.index_generation,
    {read_models}.switch_generation,
    {read_models}.drop_generations
TO {writer};

-- The index of transcripts: it can be made anew at any time.
GRANT INSERT, UPDATE, DELETE ON
    {schema}.history_conversations,
    {schema}.history_shelves,
    {schema}.history_places
TO {writer};

-- The tree over the log, and whose turn it is to sign (K1).
GRANT EXECUTE ON FUNCTION
    {schema}.begin_signing,
    {schema}.announce_signing,
    {schema}.keep_tree_nodes,
    {schema}.forget_tree_nodes
TO {writer};

-- Admission (D1).
GRANT EXECUTE ON FUNCTION
    {schema}.take_slot,
    {schema}.renew_slots,
    {schema}.give_back_slots
TO {writer};

-- The work list.
GRANT EXECUTE ON FUNCTION
    {schema}.notice_work,
    {schema}.is_work,
    {schema}.notice_changed_work,
    {schema}.changed_work,
    {schema}.take_work,
    {schema}.note_look,
    {schema}.forget_work,
    {schema}.begin_work_period,
    {schema}.extend_work_period
TO {writer};

COMMIT;
