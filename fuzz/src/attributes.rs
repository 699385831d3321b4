//! Attributes under any keys and JSON: they read as the naive model of the property tests has them, and as JSON.

#[allow(dead_code)]
#[path = "../../tests/model/mod.rs"]
mod model;

use std::sync::Arc;

use arbitrary::Unstructured;
use mcp_state::{Engine, ErrorKind, ManualClock, NewSession, Settings};
use model::{Handle, Model};
use serde_json::Value;

use crate::input::{below, number, pick, text};

const SEGMENTS: [&str; 8] = ["a", "b", "0", "1", "01", "é", " ", ""];

fn key(input: &mut Unstructured<'_>) -> String {
    if number(input) == 9 {
        return text(input);
    }
    let segments: Vec<_> = (0..=below(input, 4)).map(|_| pick(input, &SEGMENTS)).collect();
    segments.join(".")
}

fn json(input: &mut Unstructured<'_>) -> String {
    if number(input) > 7 { text(input) } else { value(input, 0).to_string() }
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Value {
    match below(input, if depth > 5 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => Value::from(number(input)),
        2 => Value::from(f64::from_bits(input.arbitrary().unwrap_or(0))),
        3 => Value::from(text(input)),
        4 => Value::from(number(input) as i64),
        5 => (0..below(input, 4)).map(|_| value(input, depth + 1)).collect(),
        _ => Value::Object(
            (0..below(input, 4)).map(|_| (pick(input, &SEGMENTS).to_owned(), value(input, depth + 1))).collect(),
        ),
    }
}

/// Sets, patches, removes, takes and compares.
pub fn attributes(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let clock = Arc::new(ManualClock::at(1000));
    let engine = Engine::with_clock("memory://?max_message_bytes=1M", Settings::default(), clock).unwrap();
    let session = engine.create_session(NewSession::default()).unwrap().expect("a random id is free");
    let (attributes, mut model) = (session.attributes(), Model::new(1000, Settings::default()));
    let handle: Handle = model.create("s", 1000, None).unwrap();
    while !input.is_empty() {
        let (key, new) = (key(&mut input), json(&mut input));
        let read = |text: String| serde_json::from_str::<Value>(&text).expect("the engine returns JSON");
        // The engine leads: what it refuses must be wrong, what it does must be what the model does.
        let refused = match below(&mut input, 7) {
            0 => attributes.set(&key, &new).map(|()| {
                model.on(&handle, |session, _, _| session.set_json(&key, &new)).unwrap();
            }),
            1 => attributes.remove(&key).map(|removed| {
                assert_eq!(model.on(&handle, |session, _, _| Ok(session.remove(&key))), Ok(removed));
            }),
            2 => attributes.put_if_absent(&key, &new).map(|put| {
                let expected = model.on(&handle, |session, _, _| {
                    let is_absent = session.value(&key).is_none();
                    if is_absent {
                        session.set_json(&key, &new)?;
                    }
                    Ok(is_absent)
                });
                assert_eq!(expected, Ok(put));
            }),
            3 => attributes.take(&key).map(|taken| {
                let expected = model.on(&handle, |session, _, _| {
                    let value = session.get(&key);
                    session.remove(&key);
                    Ok(value)
                });
                assert_eq!(expected, Ok(taken.map(read)));
            }),
            4 => {
                let old = attributes.get(&key).unwrap_or(None);
                attributes.compare_and_set(&key, old.as_deref(), Some(&new)).map(|set| {
                    assert!(set, "nobody changed it since");
                    model.on(&handle, |session, _, _| session.set_json(&key, &new)).unwrap();
                })
            }
            5 => {
                let (second, third) = (self::key(&mut input), self::key(&mut input));
                let changes = [(&*key, Some(&*new)), (&*second, None), (&*third, Some("[1]"))];
                attributes.patch(changes).map(|()| {
                    model
                        .on(&handle, |session, _, _| {
                            session.set_json(&key, &new)?;
                            session.remove(&second);
                            session.set_json(&third, "[1]")
                        })
                        .unwrap();
                })
            }
            _ => attributes.get(&key).map(|value| {
                assert_eq!(model.on(&handle, |session, _, _| Ok(session.get(&key))), Ok(value.map(read)));
            }),
        };
        if let Err(error) = refused {
            assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::LimitExceeded), "{error}");
        }
        assert_eq!(model.on(&handle, |session, _, _| Ok(session.all())), Ok(read(attributes.all().unwrap())));
    }
    assert_eq!(engine.contradictions().unwrap(), Vec::<String>::new());
}
