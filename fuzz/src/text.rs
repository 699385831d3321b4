//! Texts from outside: names, data source names, and the stamp of a store.

use mcp_state::session::AttributeKey;
use mcp_state::{Dsn, Limit, OwnerToken, Place, SessionId};

/// Session ids, owner tokens and dotted keys: what is let in keeps the rules.
pub fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (mut refused, mut let_in) = (vec![], 0);
    match SessionId::new(&*text) {
        Ok(id) => {
            assert!((1..=255).contains(&id.as_str().len()) && id.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            assert_eq!(id.as_str(), text);
            let_in += 1;
        }
        Err(error) => refused.push(error),
    }
    match OwnerToken::parse(&text) {
        Ok(token) => {
            assert_eq!(token.to_string(), text.to_lowercase());
            let_in += 1;
        }
        Err(error) => refused.push(error),
    }
    match AttributeKey::new(&*text) {
        Ok(key) => {
            let is_segment = |segment: &str| !segment.is_empty() && !segment.contains(char::is_control);
            assert!(key.as_str().len() <= 255 && key.as_str().split('.').all(is_segment));
            let_in += 1;
        }
        Err(error) => refused.push(error),
    }
    assert_eq!(refused.len() + let_in, 3);
    for error in refused {
        let message = error.to_string();
        assert!(message.len() < 1000 && !message.contains(char::is_control), "{message:?}");
    }
}

/// A DSN: what is let in names a place that is safe to name, and limits that are not 0.
pub fn dsn(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Dsn::parse(&text) {
        Ok(dsn) => {
            assert!(Limit::ALL.iter().all(|&limit| dsn.settings.limit(limit) > 0));
            assert!(dsn.settings.ttl_ms > 0 && dsn.settings.lease_ms > 0 && dsn.settings.request_timeout_ms > 0);
            match &dsn.place {
                Place::SharedMemory(name) => {
                    assert!(!name.starts_with('.') && !name.contains(['/', '\0']) && (1..=64).contains(&name.len()));
                }
                Place::Directory(path) => {
                    assert!(path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0));
                }
                _ => {}
            }
            assert_eq!(Dsn::parse(&text).unwrap(), dsn);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 2000 && !message.contains(char::is_control), "{message:?}");
        }
    }
}

/// A stamp: read or refused.
pub fn stamp(data: &[u8]) {
    if let Err(error) = mcp_state::fuzzing::read_stamp(data) {
        assert!(error.to_string().len() < 2000, "{error}");
    }
}
