//! Records: bytes that are read are written again as they were, and a record that is read can be worked with, whatever it says.

use std::collections::BTreeMap;

use arbitrary::Unstructured;
use mcp_state::session::{
    AttributeKey, Census, Context, NewRecord, Payload, Record, RecordChange, Refusal, RequestMessage, Step, StoreView,
    Transition, Values,
};
use mcp_state::{
    Change, DuplicatePolicy, Interest, Liveness, OwnerKind, OwnerToken, Process, RequestId, SessionId, Settings,
};

use crate::input::{below, bytes, number, pick, text};

type Payloads = BTreeMap<Payload, Vec<u8>>;

struct Rows<'r>(&'r Payloads);

impl Values<Payload> for Rows<'_> {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, mcp_state::StoreError> {
        Ok(self.0.get(key).cloned())
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, mcp_state::StoreError> {
        let prefix = parent.map_or(String::new(), |parent| format!("{}.", parent.as_str()));
        let rows = self.0.iter().filter_map(|(key, value)| match key {
            Payload::Attribute(key) if key.as_str().starts_with(&prefix) => Some((key.clone(), value.clone())),
            _ => None,
        });
        Ok(rows.collect())
    }
}

/// Bytes as they come, or a record that operations made and the input damages; then operations.
pub fn record(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let mut payloads = Payloads::new();
    let found = if number(&mut input) % 4 == 0 {
        let bytes = input.take_rest();
        input = Unstructured::new(bytes);
        Record::decode(bytes).inspect(|record| assert_eq!(record.encode(), bytes))
    } else {
        let record = built(&mut input, &mut payloads);
        let mut encoded = record.encode();
        assert_eq!(Record::decode(&encoded).expect("what was written is read"), record);
        for _ in 0..below(&mut input, 5) {
            let at = below(&mut input, encoded.len());
            encoded[at] = input.arbitrary().unwrap_or(0);
        }
        for payload in payloads.values_mut() {
            match number(&mut input) {
                0 => payload.truncate(payload.len() / 2),
                1 => payload.extend(bytes(&mut input)),
                2 => *payload = bytes(&mut input).to_vec(),
                _ => {}
            }
        }
        Record::decode(&encoded)
    };
    let Ok(record) = found else { return };
    let mut state = Some(record);
    for _ in 0..20 {
        state = step(&mut input, state, &mut payloads);
        if let Some(record) = &state {
            assert_eq!(Record::decode(&record.encode()).expect("an operation leaves what can be read"), *record);
        }
    }
}

fn built(input: &mut Unstructured<'_>, payloads: &mut Payloads) -> Box<Record> {
    let new = NewRecord {
        id: SessionId::new("s").unwrap(),
        incarnation: 7,
        first_request: 100,
        ttl: 1000 + number(input) % 1000,
        principal: None,
    };
    let (settings, census, nothing) = (Settings::default(), Census::default(), Payloads::new());
    let values = Rows(&nothing);
    let context = Context { now: 10, settings: &settings, census: &census };
    let mut transition = Transition::new(None, &values, context);
    assert!(transition.create(&new, StoreView::default()).unwrap());
    let mut record = transition.finish().0;
    for _ in 0..below(input, 24) {
        record = step(input, record, payloads);
    }
    record.unwrap_or_else(|| built(&mut Unstructured::new(&[]), payloads))
}

/// One operation, carried out as a store does it; nothing changes when it is refused.
fn step(input: &mut Unstructured<'_>, before: Option<Box<Record>>, payloads: &mut Payloads) -> Option<Box<Record>> {
    let now = 10 + number(input) % (1 << 40);
    let (settings, mut census) = (Settings::default(), Census::default());
    let fate = pick(input, &[Liveness::Alive, Liveness::Dead, Liveness::Unknown]);
    loop {
        let values = Rows(payloads);
        let mut transition =
            Transition::new(before.clone(), &values, Context { now, settings: &settings, census: &census });
        // The same operation each time: it reads a copy of the input.
        let mut here = Unstructured::new(input.peek_bytes(input.len().min(64)).unwrap_or(&[]));
        match before.as_ref().map_or(Ok(()), |_| operate(&mut here, &mut transition)) {
            Err(Refusal::Unsure(processes)) => processes.into_iter().for_each(|process| census.note(process, fate)),
            Err(Refusal::Error(_)) => {
                skip(input);
                return before;
            }
            Ok(()) => {
                let (record, effects) = transition.finish();
                skip(input);
                for (key, value) in effects.payloads {
                    match value {
                        Some(value) => payloads.insert(key, value),
                        None => payloads.remove(&key),
                    };
                }
                return match effects.record {
                    RecordChange::Remove => {
                        payloads.clear();
                        None
                    }
                    _ => record,
                };
            }
        }
    }
}

fn skip(input: &mut Unstructured<'_>) {
    let _ = input.bytes(input.len().min(12));
}

fn token(input: &mut Unstructured<'_>) -> OwnerToken {
    OwnerToken::parse(&format!("{:032x}", below(input, 4))).unwrap()
}

fn operate(input: &mut Unstructured<'_>, session: &mut Transition<'_>) -> Step<()> {
    let process = Process { pid: 1, started: 2, namespace: 3 };
    let choice: u8 = input.arbitrary().unwrap_or(0);
    let owner = token(input);
    let id = 98 + below(input, 8) as i64;
    let max = number(input);
    let request = if id % 2 == 0 { RequestId::Int(1) } else { RequestId::Str(text(input)) };
    let key = || AttributeKey::new(["a", "a.b", "a.b.c", "b"][id as usize % 4]).unwrap();
    match choice % 32 {
        0..=2 => {
            let kind = if max % 2 == 0 { OwnerKind::Stream } else { OwnerKind::Reply };
            session.attach(owner, kind, max % 100_000, process)
        }
        3 => session.renew(&owner),
        4 => session.detach(&owner).map(|_| ()),
        5 => session.look(&owner, Interest::ALL, max).map(|_| ()),
        6 => session.release_dead_owners().map(|_| ()),
        7 => {
            session.release_everybody();
            Ok(())
        }
        8 | 9 => session.enqueue_outgoing(&owner, "message", &text(input)).map(|_| ()),
        10 | 11 => session.enqueue_broadcast("message", "").map(|_| ()),
        12 => session.take_outgoing(&owner, max as usize).map(|_| ()),
        13 => session.peek_outgoing(&owner, max as usize).map(|_| ()),
        14 => session.acknowledge(&owner, max).map(|_| ()),
        15 => session.register_pending(&owner, id, max % 100_000, "m").map(|_| ()),
        16 | 17 => {
            session.send_request(&owner, &RequestMessage::new("{\"method\":\"m\"}").unwrap(), "", 1000).map(|_| ())
        }
        18 | 19 => session.deliver_response(id, "\"answer\"").map(|_| ()),
        20 => session.claim(&owner, id).map(|_| ()),
        21 => session.claim_any(&owner).map(|_| ()),
        22 => session.resolve_timeouts(&owner).and_then(|_| session.pending(Some(&owner))).map(|_| ()),
        23 => session.cancel_pending(&owner, id).and_then(|_| session.peek_response(&owner, id)).map(|_| ()),
        24 => session.begin_request(&owner, &request, DuplicatePolicy::Reject).map(|_| ()),
        25 => session.finish_request(&owner, &request).and_then(|_| session.is_cancelled(&owner, &request)).map(|_| ()),
        26 => session.cancel_request(&request).map(|_| ()),
        27 => session.set(&key(), "{\"c\":[1]}"),
        28 => session.patch(&[Change::Remove(key()), Change::Set(AttributeKey::new("a.b.d").unwrap(), "2".into())]),
        29 => session.compare_and_set(&key(), None, Some("3")).and_then(|_| session.all()).map(|_| ()),
        30 => session.collect().map(|_| ()),
        _ => session.inspect("s").and_then(|_| session.evict(max)).map(|_| ()),
    }
}
