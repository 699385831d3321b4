//! `McpState\Native\Engine`.
#![expect(non_snake_case, reason = "parameters have the names that PHP callers may use")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ext_php_rs::prelude::*;
use mcp_state::NewSession;

use crate::convert::{Array, Text, array, count, int, list, map, numbers, optional, unsigned};
use crate::failure::Failure;
use crate::session::Session;
use crate::stores::Used;
use crate::{ini, requests};

/// A store, opened once for each process and DSN.
#[php_class]
#[php(name = "McpState\\Native\\Engine")]
pub(crate) struct Engine {
    store: Rc<Used>,
}

#[php_impl]
impl Engine {
    pub(crate) fn open(dsn: Option<Text<'_>>) -> Result<Engine, Failure> {
        let store = match optional(dsn, "dsn")? {
            Some(dsn) => requests::store(dsn)?,
            None => requests::store(&ini::dsn())?,
        };
        Ok(Engine { store })
    }

    pub(crate) fn dsn(&self) -> String {
        self.store.engine().dsn().to_owned()
    }

    pub(crate) fn create_session(
        &self,
        id: Option<Text<'_>>,
        ttlMs: Option<i64>,
        principal: Option<Text<'_>>,
    ) -> Result<Option<Session>, Failure> {
        let new = NewSession {
            id: optional(id, "session id")?.map(str::to_owned),
            ttl_ms: ttlMs.map(|ttl| unsigned("session ttl", ttl)).transpose()?,
            principal: optional(principal, "principal")?.map(str::to_owned),
        };
        Ok(self.store.current()?.create_session(new)?.map(|session| Session::of(Arc::new(session))))
    }

    pub(crate) fn open_session(&self, id: Text<'_>, principal: Option<Text<'_>>) -> Result<Option<Session>, Failure> {
        let (id, principal) = (id.get("session id")?, optional(principal, "principal")?);
        Ok(self.store.current()?.open_session(id, principal)?.map(|session| Session::of(Arc::new(session))))
    }

    pub(crate) fn waiting_room(&self, places: Option<i64>) -> Result<Option<Session>, Failure> {
        let places = places.map(|places| unsigned("max_waiting", places)).transpose()?;
        Ok(self.store.current()?.waiting_room(places)?.map(|room| Session::of(Arc::new(room))))
    }

    pub(crate) fn publish(&self, topic: Text<'_>, message: Text<'_>) -> Result<i64, Failure> {
        let (topic, message) = (topic.get("topic")?, message.get("message")?);
        Ok(int(self.store.current()?.publish(topic, message)?))
    }

    pub(crate) fn cursor(&self, topic: Text<'_>) -> Result<i64, Failure> {
        Ok(int(self.store.current()?.cursor(topic.get("topic")?)?))
    }

    #[php(defaults(max = 100))]
    pub(crate) fn since(&self, topic: Text<'_>, cursor: i64, max: i64) -> Result<Array, Failure> {
        let (topic, cursor, max) = (topic.get("topic")?, unsigned("cursor", cursor)?, count("max", max)?);
        let entries = self.store.current()?.since(topic, cursor, max)?;
        Ok(map! {
            "messages" => list(entries.messages, |(number, message)| Ok(array![int(number), message]))?,
            "cursor" => int(entries.cursor),
            "missed" => int(entries.missed),
        })
    }

    pub(crate) fn wait_since(&self, topic: Text<'_>, cursor: i64, waitMs: i64) -> Result<bool, Failure> {
        let (topic, cursor) = (topic.get("topic")?, unsigned("cursor", cursor)?);
        let wait = Duration::from_millis(unsigned("wait", waitMs)?);
        Ok(self.store.engine().wait_since(topic, cursor, wait)?)
    }

    pub(crate) fn consume_once(&self, key: Text<'_>, ttlMs: i64) -> Result<bool, Failure> {
        Ok(self.store.current()?.consume_once(key.get("key")?, unsigned("ttl", ttlMs)?)?)
    }

    #[php(defaults(limit = 100))]
    pub(crate) fn collect(&self, limit: i64) -> Result<Array, Failure> {
        let collected = self.store.current()?.collect(count("limit", limit)?)?;
        Ok(map! {
            "sessions" => int(collected.sessions),
            "owners" => int(collected.owners),
            "more" => collected.more,
        })
    }

    pub(crate) fn stats(&self) -> Result<Array, Failure> {
        let stats = self.store.current()?.stats()?;
        let mut place = ext_php_rs::types::ZendHashTable::new();
        for (name, value) in stats.place {
            place.insert(name, value)?;
        }
        Ok(map! {
            "sessions" => int(stats.sessions),
            "used_bytes" => int(stats.used_bytes),
            "limit_bytes" => int(stats.limit_bytes),
            "waiting" => int(stats.waiting),
            "max_waiting" => int(stats.max_waiting),
            "counters" => numbers(stats.counters)?,
            "limits" => numbers(stats.limits)?,
            "place" => place,
        })
    }
}
