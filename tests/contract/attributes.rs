//! Attributes under dotted keys (G1).

use mcp_state::ErrorKind;

use crate::{Fixture, kind};

contract! { every [
    a_list_equals_the_object_with_its_elements,
    a_number_stays_what_it_is_when_its_neighbour_is_set,
    a_value_of_any_size_reads_back_as_it_was,
    attributes_read_the_same_however_they_were_written,
    attributes_are_removed_and_taken_with_all_below_them,
    attributes_change_only_as_expected,
    what_is_set_can_be_read_again_whatever_else_is,
    an_element_of_a_list_has_one_name,
    a_patch_sees_what_it_has_changed_below_a_key,
    a_patch_into_one_value_after_another_is_as_if_each_were_set,
    a_patch_is_applied_in_order_and_all_or_nothing,
] }

fn a_list_equals_the_object_with_its_elements(store: Fixture) {
    let (session, other) = (store.session(), r#"{"1":[],"0":{}}"#);
    session.attributes().set("a.0", "{}").unwrap();
    session.attributes().set("a.1", "[]").unwrap();
    for (expected, equal) in
        [("[[],[],[]]", false), ("[[]]", false), (r#"{"0":{},"2":[]}"#, false), ("[[],[]]", true), (other, true)]
    {
        let set = session.attributes().compare_and_set("a", Some(expected), Some(other)).unwrap();
        assert_eq!(set, equal, "{expected}");
    }
}

fn a_number_stays_what_it_is_when_its_neighbour_is_set(store: Fixture) {
    let session = store.session();
    for number in ["8.155738655267917e250", "0.1", "5e-324", "-0.0", "18446744073709551615", "0.30000000000000004"] {
        session.attributes().set("a", &format!("{{\"n\":{number}}}")).unwrap();
        session.attributes().set("a.neighbour", "1").unwrap();
        let read: f64 = session.attributes().get("a.n").unwrap().unwrap().parse().unwrap();
        assert_eq!(read.to_bits(), number.parse::<f64>().unwrap().to_bits(), "{number}");
    }
}

fn a_value_of_any_size_reads_back_as_it_was(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    for length in [1, 65_533, 65_534, 65_535, 65_536, 65_537, 131_072, 131_073, 1_000_000, 3, 131_072, 5] {
        let json = format!("\"{}\"", "é".repeat(length / 2));
        session.attributes().set("a", &json).unwrap();
        assert_eq!(session.attributes().get("a").unwrap().unwrap(), json);
        session.enqueue_outgoing(&stream, &json, "").unwrap();
        assert_eq!(session.take_outgoing(&stream, 1).unwrap()[0].message, json);
    }
    session.attributes().remove("a").unwrap();
    assert_eq!(session.attributes().all().unwrap(), "{}");
    assert_eq!(session.stats().unwrap().attribute_bytes, 0);
}

fn attributes_read_the_same_however_they_were_written(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.set("client.name", "\"n\"").unwrap();
    attributes.set("client.version.major", "1").unwrap();
    assert_eq!(attributes.get("client").unwrap().unwrap(), r#"{"name":"n","version":{"major":1}}"#);
    attributes.set("client.version", r#"{"z":0,"major":2,"minor":3}"#).unwrap();
    assert_eq!(attributes.get("client.version.minor").unwrap().unwrap(), "3");
    attributes.set("client.version.major", "4").unwrap();
    assert_eq!(attributes.get("client.version").unwrap().unwrap(), r#"{"z":0,"major":4,"minor":3}"#);
    attributes.set("client.version.z.deep", "[]").unwrap();
    assert_eq!(attributes.get("client.version.z").unwrap().unwrap(), r#"{"deep":[]}"#);
    attributes.set("clientele", "true").unwrap();
    attributes.set("client", "null").unwrap();
    assert_eq!(attributes.all().unwrap(), r#"{"client":null,"clientele":true}"#);
    assert!(attributes.get("client.name").unwrap().is_none());
    assert!(attributes.get("absent").unwrap().is_none());
}

fn attributes_are_removed_and_taken_with_all_below_them(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.set("a.b", "1").unwrap();
    attributes.set("a.c", r#"{"d":{"e":2},"f":[1,2]}"#).unwrap();
    assert!(attributes.remove("a.c.d.e").unwrap());
    assert!(!attributes.remove("a.c.d.e").unwrap());
    assert!(!attributes.remove("a.c.x.y").unwrap());
    assert!(!attributes.remove("a.b.c").unwrap());
    assert_eq!(attributes.get("a.c").unwrap().unwrap(), r#"{"d":{},"f":[1,2]}"#);
    assert_eq!(attributes.get("a.c.f.1").unwrap().unwrap(), "2");
    assert_eq!(attributes.take("a.c.f").unwrap().unwrap(), "[1,2]");
    assert_eq!(attributes.take("a").unwrap().unwrap(), r#"{"b":1,"c":{"d":{}}}"#);
    assert!(attributes.take("a").unwrap().is_none());
    assert_eq!(session.stats().unwrap().attribute_bytes, 0);
}

fn attributes_change_only_as_expected(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    assert!(attributes.put_if_absent("a", "1").unwrap());
    assert!(!attributes.put_if_absent("a", "2").unwrap());
    attributes.set("a", "null").unwrap();
    assert!(attributes.put_if_absent("a", "3").unwrap());
    assert!(!attributes.compare_and_set("a", Some("2"), Some("4")).unwrap());
    assert!(!attributes.compare_and_set("a", None, Some("4")).unwrap());
    assert!(attributes.compare_and_set("a", Some(" 3 "), Some(r#"{"x":1,"y":2}"#)).unwrap());
    assert!(attributes.compare_and_set("a", Some(r#"{"y":2,"x":1}"#), None).unwrap());
    assert!(attributes.compare_and_set("a", None, Some("5")).unwrap());
    assert_eq!(attributes.get("a").unwrap().unwrap(), "5");
    attributes.set("a", "null").unwrap();
    assert!(attributes.compare_and_set("a", None, Some("6")).unwrap());
    attributes.set("a", "null").unwrap();
    assert!(attributes.compare_and_set("a", Some("null"), Some("7")).unwrap());
}

fn what_is_set_can_be_read_again_whatever_else_is(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep_key = |segments: usize| vec!["a"; segments].join(".");
    attributes.set("ok", r#""[[\"[[""#).unwrap();
    for json in ["1e999", r#""\ud800""#, &nested(100), &nested(200)] {
        assert_eq!(kind(attributes.set("x", json)), ErrorKind::InvalidArgument, "{json}");
        assert_eq!(kind(attributes.put_if_absent("x", json)), ErrorKind::InvalidArgument, "{json}");
        assert_eq!(kind(attributes.patch([("x", Some(json))])), ErrorKind::InvalidArgument, "{json}");
    }
    attributes.set("x", &nested(99)).unwrap();
    attributes.set("a", r#"{"b":1}"#).unwrap();
    attributes.set(&deep_key(50), &nested(50)).unwrap();
    let refused = attributes.set(&deep_key(51), &nested(50)).unwrap_err().to_string();
    assert!(refused.contains("101 deep") && refused.contains("limit is 100"), "{refused}");
    attributes.set("b.c", "1").unwrap();
    attributes.set(&format!("b.{}", deep_key(99)), "1").unwrap();
    assert_eq!(kind(attributes.set(&deep_key(101), "1")), ErrorKind::InvalidArgument);
    assert_eq!(attributes.get("a.b").unwrap().unwrap(), "1");
    attributes.all().unwrap();
}

fn an_element_of_a_list_has_one_name(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.set("l", "[1,2]").unwrap();
    assert_eq!(attributes.get("l.1").unwrap().unwrap(), "2");
    for name in ["l.+1", "l.01", "l.1x"] {
        assert_eq!(attributes.take(name).unwrap(), None, "{name}");
    }
    attributes.set("l.+1", "9").unwrap();
    assert_eq!(attributes.get("l").unwrap().unwrap(), r#"{"0":1,"1":2,"+1":9}"#);
}

fn a_patch_sees_what_it_has_changed_below_a_key(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.patch([("a.b", Some("1")), ("a.c", Some("2")), ("a-b", Some("3")), ("ab", Some("4"))]).unwrap();
    attributes.patch([("a.d", Some("5")), ("a.b", None), ("a", None), ("a.e", Some("6"))]).unwrap();
    assert_eq!(attributes.all().unwrap(), r#"{"a-b":3,"a":{"e":6},"ab":4}"#);
}

fn a_patch_into_one_value_after_another_is_as_if_each_were_set(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.set("a", r#"{"x":1}"#).unwrap();
    attributes.set("b", "[1,2]").unwrap();
    attributes
        .patch([
            ("a.y", Some("2")),
            ("a.x", None),
            ("a.y.z", Some("3")),
            ("b.1", Some("4")),
            ("a.none", None),
            ("a", Some(r#"{"new":{}}"#)),
            ("a.new.w", Some("5")),
            ("c.d", Some("6")),
            ("a", None),
            ("a.v", Some("7")),
        ])
        .unwrap();
    assert_eq!(attributes.all().unwrap(), r#"{"a":{"v":7},"b":[1,4],"c":{"d":6}}"#);
    assert_eq!(session.stats().unwrap().attribute_bytes, "a.v7b[1,4]c.d6".len() as u64);
}

fn a_patch_is_applied_in_order_and_all_or_nothing(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.set("old", "1").unwrap();
    attributes.patch([("a", Some(r#"{"b":1}"#)), ("a.c", Some("2")), ("a.b", None), ("old", None)]).unwrap();
    assert_eq!(attributes.all().unwrap(), r#"{"a":{"c":2}}"#);
    assert_eq!(kind(attributes.patch([("x", Some("1")), ("y", Some("not json"))])), ErrorKind::InvalidArgument);
    assert_eq!(attributes.all().unwrap(), r#"{"a":{"c":2}}"#);
}
