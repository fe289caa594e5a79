//! The session store: SQLite with sessions, messages, full-text indexes and lineage.
