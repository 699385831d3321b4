//! A hostile client: whatever it asks for, and however often, it is refused by a limit, others keep what they have, and what it
//! took can be taken back. Each test prints what was refused (`--nocapture`).
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::{Fixture, Kind};
use mcp_state::{
    DuplicatePolicy, Engine, Error, ErrorKind, Limit, LimitExceeded, NewSession, OwnerKind, Session, StoreError,
};

/// What a flood came to: how much was let in, and how often which limit refused the rest.
#[derive(Debug, Default)]
struct Flood {
    accepted: u64,
    refused: BTreeMap<String, u64>,
}

impl Flood {
    fn note<T>(&mut self, result: Result<T, Error>) {
        let by = match result {
            Ok(_) => {
                self.accepted += 1;
                return;
            }
            Err(Error::Limit(LimitExceeded { limit, .. })) => limit.name().to_owned(),
            Err(Error::Store(StoreError::Full { .. })) => "max_store_bytes".to_owned(),
            Err(Error::InvalidArgument(_)) => "not valid".to_owned(),
            Err(other) => panic!("neither a limit nor a bad argument: {other}"),
        };
        *self.refused.entry(by).or_default() += 1;
    }

    fn tell(&self, what: &str, engine: &Engine) {
        let stats = engine.stats().unwrap();
        assert!(stats.used_bytes <= stats.limit_bytes, "{stats:?}");
        let used = stats.used_bytes >> 10;
        println!("abuse: {what}: {} let in, refused {:?}, store at {used} KiB", self.accepted, self.refused);
    }
}

/// A store that somebody else uses, too: a session with an owner, a queue and attributes.
struct Store {
    fixture: Fixture,
    neighbour: Session,
}

impl Store {
    fn new(kind: Kind, options: &str) -> Self {
        let fixture = Fixture::new(kind, options);
        let (neighbour, owner) = fixture.session_and_stream();
        neighbour.enqueue_outgoing(&owner, "{}", "").unwrap();
        neighbour.attributes().set("mine", "1").unwrap();
        Self { fixture, neighbour }
    }

    fn engine(&self) -> &Engine {
        &self.fixture.engine
    }

    /// Whether the neighbour still has everything, and can go on.
    fn spares_the_neighbour(&self) {
        let stats = self.neighbour.stats().unwrap();
        assert_eq!((stats.owners, stats.queued), (1, 1));
        assert_eq!(self.neighbour.attributes().get("mine").unwrap().as_deref(), Some("1"));
        let owner = self.neighbour.attach(OwnerKind::Reply, None).unwrap();
        self.neighbour.detach(&owner).unwrap();
    }
}

fn on_each(options: &str, test: impl Fn(&Store)) {
    for kind in [Kind::Memory, Kind::Lmdb] {
        test(&Store::new(kind, options));
    }
}

#[test]
fn a_flood_of_initialize_takes_no_more_sessions_than_there_may_be_and_logs_nobody_out() {
    on_each("max_sessions=100", |store| {
        // Somebody who has made a second request, and is away.
        let settled = store.fixture.named("settled").unwrap();
        for _ in 0..2 {
            let owner = settled.attach(OwnerKind::Reply, None).unwrap();
            settled.detach(&owner).unwrap();
        }
        let mut flood = Flood::default();
        let most = store.engine().settings().limit(Limit::Sessions);
        for number in 0..most + 200 {
            if number % 10 == 0 {
                store.fixture.advance(5);
            }
            flood.note(store.engine().create_session(NewSession::default()));
        }
        flood.tell("initialize", store.engine());
        assert!(store.engine().stats().unwrap().sessions <= most);
        assert_eq!(flood.accepted + flood.refused.values().sum::<u64>(), most + 200, "{flood:?}");
        assert!(settled.touch().unwrap(), "a session that is in use stays");
        store.spares_the_neighbour();
    });
}

#[test]
fn a_principal_takes_no_more_sessions_than_its_own() {
    on_each("max_sessions_per_principal=200", |store| {
        let mut flood = Flood::default();
        for _ in 0..400 {
            let new = NewSession { principal: Some("mallory".into()), ..NewSession::default() };
            flood.note(store.engine().create_session(new));
        }
        flood.tell("initialize by one principal", store.engine());
        assert_eq!((flood.accepted, flood.refused["max_sessions_per_principal"]), (200, 200));
        let ann = NewSession { principal: Some("ann".into()), ..NewSession::default() };
        assert!(store.engine().create_session(ann).unwrap().is_some());
        store.spares_the_neighbour();
    });
}

/// Whatever slot of a session is asked for again and again.
#[test]
fn a_session_has_no_more_slots_than_it_may() {
    on_each("", |store| {
        let (session, owner) = store.fixture.session_and_stream();
        type Named<'f> = (&'static str, Limit, Box<dyn Fn(i64) -> Result<(), Error> + 'f>);
        let floods: [Named<'_>; 5] = [
            ("pending", Limit::Pending, Box::new(|n| session.register_pending(&owner, n + 1, 60_000, "x").map(drop))),
            (
                "in flight",
                Limit::InFlight,
                Box::new(|n| session.begin_request(&owner, &n.into(), DuplicatePolicy::Isolate).map(drop)),
            ),
            ("owners", Limit::Owners, Box::new(|_| session.attach(OwnerKind::Stream, None).map(drop))),
            ("broadcasts", Limit::Broadcasts, Box::new(|_| session.enqueue_broadcast("{}", "").map(drop))),
            ("messages", Limit::OwnerMessages, Box::new(|_| session.enqueue_outgoing(&owner, "{}", "").map(drop))),
        ];
        for (what, limit, ask) in &floods {
            let mut flood = Flood::default();
            for number in 0..1_200 {
                flood.note(ask(number));
            }
            flood.tell(what, store.engine());
            let most = store.engine().settings().limit(*limit);
            assert!(flood.accepted <= most && flood.refused[limit.name()] >= 1_200 - most, "{what}: {flood:?}");
        }
        store.spares_the_neighbour();
        assert!(session.destroy().unwrap());
    });
}

#[test]
fn huge_messages_fill_their_session_and_not_the_store() {
    on_each("", |store| {
        let (session, owner) = store.fixture.session_and_stream();
        let mut flood = Flood::default();
        let message = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let most = store.engine().settings().limit(Limit::MessageBytes) as usize;
        for bytes in [most + 1, most * 4] {
            let text = message(bytes);
            flood.note(session.enqueue_outgoing(&owner, &text, ""));
            flood.note(session.enqueue_broadcast(&text, ""));
            flood.note(session.attributes().set("huge", &text));
            flood.note(store.engine().publish("topic", &text));
            let id = session.send_request(&owner, r#"{"method":"x"}"#, "", 60_000).unwrap();
            flood.note(session.deliver_response(id, &text));
            flood.note(session.send_request(&owner, &format!(r#"{{"method":{text}}}"#), "", 60_000));
        }
        assert_eq!((flood.accepted, flood.refused["max_message_bytes"]), (0, 12), "{flood:?}");
        // As large as they may be, from many owners.
        let text = message(most / 2);
        for _ in 0..20 {
            let another = session.attach(OwnerKind::Stream, None).unwrap();
            for _ in 0..5 {
                flood.note(session.enqueue_outgoing(&another, &text, ""));
            }
        }
        flood.tell("huge messages", store.engine());
        let limit = store.engine().stats().unwrap().limit_bytes;
        assert!(session.stats().unwrap().message_bytes <= (32 << 20).min(limit / 16));
        store.spares_the_neighbour();
        assert!(session.destroy().unwrap());
    });
}

#[test]
fn many_sessions_that_fill_themselves_fill_the_store_and_can_be_ended() {
    on_each("max_store_bytes=16M", |store| {
        let mut flood = Flood::default();
        let text = format!("\"{}\"", "x".repeat(50_000));
        let sessions: Vec<_> = (0..40)
            .map_while(|_| {
                let session = store.engine().create_session(NewSession::default());
                let session = session.inspect_err(|error| assert_eq!(error.kind(), ErrorKind::StoreFull)).ok()??;
                for number in 0..15 {
                    flood.note(session.attributes().set(&format!("k{number}"), &text));
                }
                Some(session)
            })
            .collect();
        flood.tell("sessions that fill the store", store.engine());
        assert!(flood.refused["max_store_bytes"] > 0);
        for session in sessions {
            assert!(session.destroy().unwrap());
        }
        assert!(store.engine().stats().unwrap().used_bytes < 1 << 20);
        store.spares_the_neighbour();
    });
}

#[test]
fn deep_json_is_refused_before_it_is_followed() {
    on_each("", |store| {
        let (session, owner) = store.fixture.session_and_stream();
        let mut flood = Flood::default();
        for depth in [101, 129, 100_000] {
            let deep = [("[", "]"), (r#"{"a":"#, "}")].map(|(open, close)| {
                let depth = depth.min((4 << 20) / (open.len() + 2));
                format!("{}1{}", open.repeat(depth), close.repeat(depth))
            });
            for json in deep {
                flood.note(session.attributes().set("a", &json));
                flood.note(session.attributes().put_if_absent("b", &json));
                flood.note(session.attributes().compare_and_set("c", None, Some(&json)));
                flood.note(session.attributes().patch([("d", Some(json.as_str()))]));
                // What is not looked into is stored as it is, or is no request.
                let message = format!(r#"{{"method":"x","params":{json}}}"#);
                let _ = session.send_request(&owner, &message, "", 60_000);
                let _ = session.deliver_response(1, &json);
            }
        }
        flood.tell("deep JSON", store.engine());
        assert_eq!(flood.accepted, 0);
        assert_eq!(session.attributes().all().unwrap(), "{}");
        store.spares_the_neighbour();
    });
}

#[test]
fn many_attributes_are_bounded_by_their_bytes_and_a_patch_by_its_changes() {
    on_each("max_attribute_bytes=512K&max_attributes=50000&max_patch_changes=5000", |store| {
        let session = store.fixture.session();
        let keys: Vec<String> = (0..20_000).map(|number| format!("a{number}.{number}")).collect();
        let mut flood = Flood::default();
        let most = store.engine().settings().limit(Limit::PatchChanges) as usize;
        let patch = |keys: &[String]| session.attributes().patch(keys.iter().map(|key| (key.as_str(), Some("1"))));
        match patch(&keys[..=most]) {
            Err(Error::Limit(refused)) => {
                let wanted = (Limit::PatchChanges, most as u64, most as u64 + 1);
                assert_eq!((refused.limit, refused.maximum, refused.actual), wanted);
            }
            other => panic!("{other:?}"),
        }
        for part in keys.chunks(most) {
            flood.note(patch(part));
        }
        for key in &keys[..100] {
            flood.note(session.attributes().set(&format!("b.{key}"), &format!("\"{}\"", "9".repeat(20_000))));
        }
        flood.tell("many attributes", store.engine());
        assert!(flood.refused["max_attribute_bytes"] > 0);
        let stats = session.stats().unwrap();
        assert!(stats.attribute_bytes <= store.engine().settings().limit(Limit::AttributeBytes));
        assert!(session.attributes().all().unwrap().len() < 3 << 20);
        store.spares_the_neighbour();
    });
}

#[test]
fn the_bus_keeps_what_it_may_of_as_many_topics_as_there_may_be() {
    on_each("max_store_bytes=64M&max_topic_messages=500&max_topic_bytes=4M", |store| {
        let mut flood = Flood::default();
        for number in 0..1_000 {
            flood.note(store.engine().publish("topic", &format!("{number}")));
        }
        let kept = store.engine().since("topic", 0, 100_000).unwrap();
        assert_eq!((kept.messages.len(), kept.missed), (500, 500));
        for number in 0..400 {
            flood.note(store.engine().publish(&format!("topic {number}"), "1"));
        }
        let text = format!("\"{}\"", "x".repeat(1 << 20));
        for _ in 0..20 {
            flood.note(store.engine().publish("topic", &text));
        }
        flood.tell("bus", store.engine());
        assert_eq!(flood.refused["max_topics"], 400 - 255);
        assert!(store.engine().stats().unwrap().used_bytes < 8 << 20);
        store.spares_the_neighbour();
    });
}

#[test]
fn single_use_keys_are_remembered_up_to_their_limit_and_forgotten_in_time() {
    on_each("max_once_keys=1000", |store| {
        let mut flood = Flood::default();
        for number in 0..1_500 {
            flood.note(store.engine().consume_once(&format!("key {number}"), 60_000));
        }
        flood.tell("single-use keys", store.engine());
        assert_eq!((flood.accepted, flood.refused["max_once_keys"]), (1_000, 500));
        assert!(!store.engine().consume_once("key 1", 60_000).unwrap(), "nothing is forgotten early");
        store.fixture.advance(60_001);
        assert!(store.engine().consume_once("another", 60_000).unwrap());
        store.spares_the_neighbour();
    });
}

/// G12: somebody else's session, one that was destroyed, and one that never was are answered alike.
#[test]
fn a_session_of_another_and_one_that_never_was_are_answered_alike() {
    on_each("", |store| {
        let engine = store.engine();
        let bound =
            |id: &str| NewSession { id: Some(id.into()), principal: Some("ann".into()), ..NewSession::default() };
        let id = "0123456789abcdef";
        let ann = engine.create_session(bound(id)).unwrap().unwrap();
        for principal in [None, Some("mallory"), Some("ann ")] {
            for id in [id, "fedcba9876543210"] {
                assert!(engine.open_session(id, principal).unwrap().is_none());
            }
        }
        // A handle from before: the same text for both, and no more of the id than a log may show.
        let stale = engine.open_session(id, Some("ann")).unwrap().unwrap();
        ann.destroy().unwrap();
        let destroyed = stale.stats().unwrap_err();
        engine.create_session(NewSession { principal: Some("mallory".into()), ..bound(id) }).unwrap().unwrap();
        let anothers = stale.stats().unwrap_err();
        assert_eq!((destroyed.kind(), destroyed.to_string()), (anothers.kind(), anothers.to_string()));
        assert_eq!(destroyed.kind(), ErrorKind::SessionNotFound);
        assert!(!destroyed.to_string().contains(id), "{destroyed}");
    });
}

/// What is shown of secrets: never a whole one.
#[test]
fn errors_show_no_whole_token_and_no_whole_session_id() {
    on_each("", |store| {
        let session = store.fixture.session();
        let owner = session.attach(OwnerKind::Reply, None).unwrap();
        session.detach(&owner).unwrap();
        let told = [
            session.renew(&owner).unwrap_err().to_string(),
            format!("{:?}", session.renew(&owner).unwrap_err()),
            format!("{owner:?}"),
        ];
        for text in told {
            assert!(!text.contains(&owner.to_string()) && !text.contains(session.id()), "{text}");
        }
    });
}
