//! Connections in memory that are used again.
//!
//! What a run asks of its store first costs more than what it stores: SQLite reads the schema and compiles every
//! statement. So the connection of a store that is gone serves the next store of the same make on its thread, with its
//! statements. A store in memory lives within one transaction, which is taken back at its end: the next one finds the
//! database as it was made. Only `connection` calls this.

use std::cell::RefCell;
use std::ops::Deref;

use rusqlite::Connection;

use super::{StoreError, schema};
use crate::policy;

/// Connections that wait on one thread for another store; drawn policies ask for about as many makes.
const IDLE_MAX: usize = 16;

thread_local! {
    static IDLE: RefCell<Vec<(schema::Make, Connection)>> = const { RefCell::new(Vec::new()) };
}

/// A connection, for as long as a store needs it.
#[derive(Debug)]
pub(super) struct Pooled {
    /// Always there until this is dropped.
    connection: Option<Connection>,
    /// What the database was made as, if the connection may be used again.
    make: Option<schema::Make>,
}

impl Pooled {
    /// A connection that serves one store and is closed with it.
    pub fn once(connection: Connection) -> Self {
        Self { connection: Some(connection), make: None }
    }

    /// A database in memory that is as it was made, within a transaction that is never committed.
    pub fn in_memory(knobs: &policy::Store) -> Result<Self, StoreError> {
        let make = schema::Make::of(knobs);
        let idle = IDLE.with_borrow_mut(|idle| {
            let at = idle.iter().rposition(|(other, _)| *other == make)?;
            Some(idle.remove(at).1)
        });
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_image(knobs)?,
        };
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { connection: Some(connection), make: Some(make) })
    }

    /// True when every write is part of a transaction already.
    pub fn is_transaction(&self) -> bool {
        self.make.is_some()
    }
}

impl Deref for Pooled {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("the connection is there until this is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let (Some(connection), Some(make)) = (self.connection.take(), self.make.take()) else { return };
        // A transaction that is over already can no longer be taken back.
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_err() {
            return;
        }
        // A thread that ends has no use for it.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() == IDLE_MAX {
                idle.remove(0);
            }
            idle.push((make, connection));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::search::SearchQuery;
    use crate::store::{NewSession, Store};
    use crate::wire::Row;

    /// Every table, those of the indexes included, row for row.
    fn contents(store: &Store) -> Vec<(String, Vec<String>)> {
        let names = "SELECT name, sql FROM sqlite_master ORDER BY name";
        let names = store.all(names, [], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?))).unwrap();
        let rows = |name: &str| {
            let mut statement = store.connection.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
            let columns = statement.column_count();
            let shown = statement.query_map([], |row| {
                let values = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at));
                Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
            });
            shown.unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        let is_read = |sql: &Option<String>| sql.as_ref().is_some_and(|sql| sql.starts_with("CREATE TABLE"));
        names
            .into_iter()
            .map(|(name, sql): (String, Option<String>)| {
                let rows = if is_read(&sql) { rows(&name) } else { Vec::new() };
                (format!("{name} {sql:?}"), rows)
            })
            .collect()
    }

    #[test]
    fn a_store_finds_nothing_of_the_one_whose_connection_it_got() {
        let search = policy::Search::default();
        for index_when in [policy::IndexWhen::Append, policy::IndexWhen::Search] {
            let knobs = policy::Store { index_when, ..policy::Store::default() };
            let fresh = contents(&Store::open_in_memory(&knobs).unwrap());
            for drops_indexing in [false, true] {
                let store = Store::open_in_memory(&knobs).unwrap();
                store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
                store.store_prompt("a", Some("You are a heron.")).unwrap();
                let ids = store.append("a", &[Row::user("heron 鹭鸶"), Row::assistant("stilt")], 0).unwrap();
                assert_eq!(ids, [1, 2]);
                assert_eq!(store.search(&SearchQuery::of("heron", &search), &search).unwrap().hits.len(), 1);
                if drops_indexing {
                    store.write(|_| store.drop_indexing()).unwrap();
                }
                assert_ne!(contents(&store), fresh);
                drop(store);
                assert_eq!(contents(&Store::open_in_memory(&knobs).unwrap()), fresh);
            }
        }
    }

    #[test]
    fn a_connection_is_used_again_by_a_store_of_the_same_make_alone() {
        let knobs = policy::Store::default();
        let other = policy::Store { indexes: Vec::new(), ..knobs.clone() };
        let store = Store::open_in_memory(&knobs).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        // Counted by connection, whatever is taken back.
        let changes = |store: &Store| store.connection.total_changes();
        let counted = changes(&store);
        assert_ne!(counted, 0);
        drop(store);
        assert_eq!(changes(&Store::open_in_memory(&other).unwrap()), 0);
        assert_eq!(changes(&Store::open_in_memory(&knobs).unwrap()), counted);
    }

    #[test]
    fn what_lost_its_transaction_is_not_used_again() {
        let knobs = policy::Store::default();
        let store = Store::open_in_memory(&knobs).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.connection.execute_batch("COMMIT").unwrap();
        drop(store);
        assert!(Store::open_in_memory(&knobs).unwrap().session("a").unwrap().is_none());
    }
}
