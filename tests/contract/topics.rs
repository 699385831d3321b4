//! The notification bus, and keys that are used once.

use std::time::Duration;

use mcp_state::{ErrorKind, Limit};

use crate::{Fixture, kind, limit};

contract! { every [
    o_the_bus_keeps_order_and_tells_who_fell_behind("max_topic_messages=3"),
    the_bus_is_bounded("max_topics=2&max_topic_bytes=10&max_message_bytes=8"),
    a_key_is_used_once("max_once_keys=3"),
] }

fn o_the_bus_keeps_order_and_tells_who_fell_behind(store: Fixture) {
    let bus = &store.engine;
    assert_eq!(bus.cursor("t").unwrap(), 0);
    assert_eq!(bus.since("t", 0, 10).unwrap(), Default::default());
    for number in 1..=5 {
        assert_eq!(bus.publish("t", &format!("m{number}")).unwrap(), number);
    }
    let read = bus.since("t", 1, 2).unwrap();
    assert_eq!((read.messages, read.cursor, read.missed), (vec![(3, "m3".into()), (4, "m4".into())], 4, 1));
    assert_eq!(bus.since("t", 0, 2).unwrap().missed, 2, "a reader of before the first message is told, too");
    let read = bus.since("t", 4, 2).unwrap();
    assert_eq!((read.messages, read.cursor, read.missed), (vec![(5, "m5".into())], 5, 0));
    let read = bus.since("t", 5, 2).unwrap();
    assert_eq!((read.messages, read.cursor, read.missed), (vec![], 5, 0));
    assert!(bus.wait_since("t", 4, Duration::ZERO).unwrap());
    assert!(!bus.wait_since("t", 5, Duration::ZERO).unwrap());
    assert_eq!(bus.cursor("other").unwrap(), 0);
    let read = bus.since("t", 77, 9).unwrap();
    assert_eq!((read.messages.len(), read.cursor, read.missed), (3, 5, 0), "a cursor of an earlier life of the topic");
    let read = bus.since("t", 77, 0).unwrap();
    assert_eq!((read.messages, read.cursor, read.missed), (vec![], 2, 0), "who asks for nothing loses nothing");
}

fn the_bus_is_bounded(store: Fixture) {
    let bus = &store.engine;
    bus.publish("a", "12345678").unwrap();
    bus.publish("a", "12345").unwrap();
    assert_eq!(bus.since("a", 0, 9).unwrap().messages, [(2, "12345".into())]);
    assert_eq!(limit(bus.publish("a", "123456789")), (Limit::MessageBytes, 8, 9));
    bus.publish("b", "1").unwrap();
    assert_eq!(limit(bus.publish("c", "1")), (Limit::Topics, 2, 3));
    assert_eq!(kind(bus.publish("", "1")), ErrorKind::InvalidArgument);
    assert_eq!(kind(bus.publish("a", "")), ErrorKind::InvalidArgument);
    store.advance(25 * 3_600_000);
    bus.collect(1).unwrap();
    bus.publish("c", "1").unwrap();
}

fn a_key_is_used_once(store: Fixture) {
    let once = &store.engine;
    assert!(once.consume_once("k", 1000).unwrap());
    assert!(!once.consume_once("k", 1000).unwrap());
    store.advance(999);
    assert!(!once.consume_once("k", 1000).unwrap());
    store.advance(1);
    assert!(once.consume_once("k", 1000).unwrap());
    assert!(once.consume_once("l", 5000).unwrap());
    assert!(once.consume_once("m", 5000).unwrap());
    assert_eq!(limit(once.consume_once("n", 1000)), (Limit::OnceKeys, 3, 4));
    store.advance(1000);
    assert!(once.consume_once("n", 1000).unwrap(), "what is forgotten makes room");
    assert_eq!(kind(once.consume_once("", 1000)), ErrorKind::InvalidArgument);
}
