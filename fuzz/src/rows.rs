//! Rows that somebody damaged: every operation returns, with a result or with an error.

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Unstructured;
use mcp_state::fuzzing::Damageable;
use mcp_state::{
    DuplicatePolicy, Engine, Error, Interest, ManualClock, NewSession, OwnerKind, OwnerToken, RequestId, Session,
};

use crate::input::{below, bytes, number};

/// Operations, damage, operations.
pub fn rows(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let clock = Arc::new(ManualClock::at(1 << 40));
    let store = Damageable::open("memory://?max_topic_messages=3&max_sessions=4&lease_ms=1000", clock.clone()).unwrap();
    let mut caller = Caller { engine: &store.engine, clock: &clock, sessions: vec![], owners: vec![] };
    prepare(&mut caller).unwrap();
    for _ in 0..below(&mut input, 12) {
        let _ = caller.call(&mut input);
    }
    assert_eq!(store.engine.contradictions().unwrap(), Vec::<String>::new());
    let damages = 1 + below(&mut input, 3);
    store.change(|rows| {
        for _ in 0..damages {
            let Some((key, row)) = rows.iter().nth(below(&mut input, rows.len())) else { return };
            let (mut key, mut row) = (key.clone(), row.clone());
            match below(&mut input, 7) {
                0 => {
                    rows.remove(&key);
                }
                1 => {
                    let mut new = key.clone();
                    let at = below(&mut input, new.len());
                    new[at] = input.arbitrary().unwrap_or(0);
                    rows.insert(new, row);
                }
                2 => {
                    key.extend(bytes(&mut input));
                    rows.insert(key, row);
                }
                3 => {
                    rows.insert(key, bytes(&mut input).to_vec());
                }
                4 => {
                    row.truncate(below(&mut input, row.len() + 1));
                    rows.insert(key, row);
                }
                _ => {
                    for _ in 0..=below(&mut input, 4) {
                        let at = below(&mut input, row.len());
                        if let Some(byte) = row.get_mut(at) {
                            *byte = input.arbitrary().unwrap_or(0);
                        }
                    }
                    rows.insert(key, row);
                }
            }
        }
    });
    let _ = store.engine.contradictions();
    for _ in 0..24 {
        let _ = caller.call(&mut input);
    }
    let _ = store.engine.contradictions();
    // Whatever is damaged, a session can be ended: that frees its rows without reading them.
    for session in &caller.sessions {
        match session.destroy() {
            Ok(_) | Err(Error::Store(_)) => {}
            Err(error) => panic!("destroying a session: {error}"),
        }
    }
}

struct Caller<'s> {
    engine: &'s Engine,
    clock: &'s ManualClock,
    sessions: Vec<Session>,
    owners: Vec<OwnerToken>,
}

/// A session with one of everything.
fn prepare(caller: &mut Caller<'_>) -> Result<(), Error> {
    for principal in [None, Some("p".to_owned())] {
        let session = caller.engine.create_session(NewSession { principal, ..Default::default() })?.expect("a new id");
        let owner = session.attach(OwnerKind::Stream, None)?;
        session.enqueue_outgoing(&owner, "1", "c")?;
        session.enqueue_broadcast("2", "")?;
        let id = session.send_request(&owner, "{}", "", 1000)?;
        session.deliver_response(id, "3")?;
        session.attributes().set("a", "{\"b\":1}")?;
        session.attributes().set("b.c", &format!("\"{}\"", "x".repeat(70_000)))?;
        session.begin_request(&owner, &RequestId::Int(1), DuplicatePolicy::Isolate)?;
        caller.sessions.push(session);
        caller.owners.push(owner);
    }
    caller.engine.publish("t", "1")?;
    caller.engine.publish("t", "2")?;
    caller.engine.consume_once("k", 1000)?;
    Ok(())
}

impl Caller<'_> {
    fn call(&mut self, input: &mut Unstructured<'_>) -> Result<(), Error> {
        let choice: u8 = input.arbitrary().unwrap_or(0);
        let max = number(input);
        let session = self.sessions[below(input, self.sessions.len())].clone();
        let owner = self.owners[below(input, self.owners.len())];
        let attributes = session.attributes();
        let key = ["a", "a.b", "b", "b.c", "d"][max as usize % 5];
        let id = session.pending(None)?.first().map_or(max as i64, |pending| pending.id);
        match choice % 32 {
            0 => self.clock.advance(max % 4_000_000),
            1 => {
                let new = NewSession { principal: Some("p".into()), ..Default::default() };
                self.sessions.extend(self.engine.create_session(new)?);
            }
            2 => self.sessions.extend(self.engine.open_session(session.id(), Some("p"))?),
            3 => drop(session.touch()?),
            4 => self.owners.push(session.attach(OwnerKind::Stream, Some(1000))?),
            5 => drop(session.detach(&owner)?),
            6 => drop(attributes.get(key)?),
            7 => drop(attributes.all()?),
            8 => attributes.set(key, "[1,{\"x\":2}]")?,
            9 => drop(attributes.remove(key)?),
            10 => attributes.patch([(key, Some("3")), ("b.c.d", Some("4")), ("a", None)])?,
            11 => drop(attributes.compare_and_set(key, None, Some("5"))?),
            12 => drop(session.enqueue_outgoing(&owner, "6", "")?),
            13 => drop(session.take_outgoing(&owner, max as usize)?),
            14 => drop(session.peek_outgoing(&owner, max as usize)?),
            15 => drop(session.acknowledge(&owner, max)?),
            16 => drop(session.enqueue_broadcast("7", "")?),
            17 => drop(session.send_request(&owner, "{}", "", 1000)?),
            18 => drop(session.deliver_response(id, "8")?),
            19 => drop(session.claim(&owner, id)?),
            20 => drop(session.claim_any(&owner)?),
            21 => drop(session.cancel_pending(&owner, id)?),
            22 => drop(session.wait(&owner, Interest::ALL, max, Duration::ZERO)?),
            23 => drop(session.begin_request(&owner, &RequestId::Str("x".into()), DuplicatePolicy::Reject)?),
            24 => drop(session.cancel_request(&RequestId::Int(1))?),
            25 => drop(self.engine.collect(max as usize)?),
            26 => drop(self.engine.publish("t", "9")?),
            27 => drop((self.engine.cursor("t")?, self.engine.since("t", max, max as usize)?)),
            28 => drop(self.engine.consume_once("k", 1 + max % 1000)?),
            29 => drop((self.engine.sessions(None, 100)?, self.engine.stats()?, session.stats()?)),
            30 => drop(self.engine.inspect(session.id())?),
            _ => drop(session.destroy()?),
        }
        Ok(())
    }
}
