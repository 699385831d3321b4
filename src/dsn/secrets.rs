//! What may be shown of a DSN. A password must never reach a log, and a DSN that does not parse may have one anywhere.

use std::fmt;

use super::{Dsn, SCHEMES};
use crate::error::{DsnError, shorten};

/// A text that neither `Debug` nor a message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The options whose values are never shown.
const SECRET_OPTIONS: [&str; 2] = ["password", "sentinel_password"];

/// Returns the DSN without its passwords. A DSN that does not parse may have a password anywhere, so only its scheme remains. An
/// option's value ends at the first character that may separate it from another value.
pub(crate) fn shown(dsn: &str) -> String {
    if dsn.is_empty() {
        return String::new();
    }
    if Dsn::parse(dsn).is_err() {
        let scheme = dsn.split_once("://").map(|(scheme, _)| scheme);
        let known = scheme.filter(|scheme| SCHEMES.contains(scheme));
        return known.map_or_else(|| "…".to_owned(), |scheme| format!("{scheme}://…"));
    }
    let (place, options) = dsn.split_once('?').map_or((dsn, None), |(place, options)| (place, Some(options)));
    let place = match (place.split_once("://"), place.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let login = &rest[..rest.len() - host.len() - 1];
            // A login without a colon may be a password in the user's place, or its colon is escaped.
            let user =
                login.split_once(':').map_or("…".to_owned(), |(user, _)| format!("{}:…", before_delimiter(user)));
            format!("{scheme}://{user}@{host}")
        }
        _ => place.to_owned(),
    };
    let show = |option: &str| match option.split_once('=') {
        Some((name, _)) if SECRET_OPTIONS.contains(&name) => format!("{name}=…"),
        Some((name, value)) => format!("{name}={}", before_delimiter(value)),
        None => option.to_owned(),
    };
    options.map_or(place.clone(), |options| {
        format!("{place}?{}", options.split('&').map(show).collect::<Vec<_>>().join("&"))
    })
}

/// Whether `c` may separate a value from one that is written behind it by mistake.
pub(super) fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || "@=;,&?\"'".contains(c)
}

/// Returns the beginning of `text`, up to the first delimiter.
fn before_delimiter(text: &str) -> String {
    match text.find(is_delimiter) {
        Some(end) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the end of a supposed scheme, from the last delimiter on.
pub(super) fn after_last_delimiter(text: &str) -> String {
    match text.rfind(|c| is_delimiter(c) || ":/".contains(c)) {
        Some(at) => format!("…{}", excerpt(text[at..].trim_start_matches(|c| is_delimiter(c) || ":/".contains(c)))),
        None => excerpt(text),
    }
}

/// Returns the first 40 characters of `text`, with control characters escaped.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// Refuses the value of an option; the error never shows a password.
pub(super) fn bad_option(option: &str, value: &str, reason: &str) -> DsnError {
    let value = match SECRET_OPTIONS.contains(&option) || value == "…" {
        true => "…".to_owned(),
        false => shorten(&before_delimiter(value)),
    };
    DsnError::BadOption { option: excerpt(option), value, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (dsn, expected) in [
            ("redis://ann:SECRET@h/1?ttl_ms=5", "redis://ann:…@h/1?ttl_ms=5"),
            ("redis://:SECRET@h", "redis://:…@h"),
            ("redis://h?db=1&password=SECRET&prefix=x", "redis://h?db=1&password=…&prefix=x"),
            ("redis://ann:S@SECRET@h", "redis://ann:…@h"),
            ("redis://SECRET@h", "redis://…@h"),
            ("redis://ann%3ASECRET@h", "redis://…@h"),
            ("redis://SECRET@h?password=SECRET", "redis://…@h?password=…"),
            ("redis://h?password=a@SECRET&db=1", "redis://h?password=…&db=1"),
            ("redis://h?sentinel=m&sentinel_password=SECRET", "redis://h?sentinel=m&sentinel_password=…"),
            ("redis://h?user=ann password=SECRET", "redis://h?user=ann…"),
            ("redis://h?user=ann;password=SECRET", "redis://h?user=ann…"),
            ("shm://x?group=a,SECRET", "shm://x?group=a…"),
            ("redis+unix://ann:SECRET@/run/r.sock", "redis+unix://ann:…@/run/r.sock"),
            ("ann@h", "…"),
            ("SECRET", "…"),
            ("SECRET://h", "…"),
            ("shm://x?max_owners=2&", "shm://x?max_owners=2&"),
            ("file:///var/lib/mcp", "file:///var/lib/mcp"),
            ("", ""),
        ] {
            assert_eq!(shown(dsn), expected, "{dsn}");
        }
        // A DSN that does not parse shows nothing but a known scheme.
        for dsn in [
            "redis://127.0.0.1 password=SECRET",
            "redis://127.0.0.1;password=SECRET",
            "redis://127.0.0.1/0 password=SECRET",
            "redis://127.0.0.1/0;SECRET",
            "redis://127.0.0.1:6379 SECRET",
            "redis://127.0.0.1:6379SECRET",
            "redis://[::1] SECRET",
            "redis://user:SECRET",
            "redis://user:SECRET/0",
            "redis://user:SECRET?db=1",
            "redis://ann:SECRET@",
            "redis://ann:SECRET@h:x",
            "redis://ann:SECRET@/0",
            "redis://ann:SECRET@:6379",
            "redis://ann:se?SECRET@h?db=1",
            "redis://ann:s@e?SECRET@h",
            "redis://ann:1?SECRET@h",
            "redis://h?password=se&SECRET&db=1",
            "redis://h?password=1&SECRET",
            "redis://h?pasword=SECRET",
            "redis://h?db=1 password=SECRET",
            "redis://h?db=1;password=SECRET",
            "redis://h?prefix=x,password=SECRET",
            "redis://h?ttl_ms=5@SECRET",
            "redis://h?cluster=1\tSECRET",
            "redis://h?sentinel_password=SECRET",
            "redis://h?sentinel=m&sentinel_user=u&sentinel_pasword=SECRET",
            "redis://h?password=%ffSECRET",
            "redis://h?sentinel_password=%ffSECRET",
            "rediss://h?tls_key=/k&password=SECRET",
            "redis+unix:///run/r.sock password=SECRET",
            "redis+unix:///run/r.sock;password=SECRET",
            "redis+unix://SECRET@r.sock",
            "redis:ann:SECRET@h",
            "redis:/ann:SECRET@h",
            "mysql://ann:SECRET@h",
            "ann:SECRET@redis://h",
            "password=SECRET;redis://h",
            "password=SECRET redis://h",
            "ann:SECRET@h",
            "memory://ann:SECRET@h",
            "shm://ann:SECRET@h",
            "file://ann:SECRET@h",
        ] {
            let error = Dsn::parse(dsn).unwrap_err();
            for text in [error.to_string(), format!("{error:?}"), shown(dsn)] {
                assert!(!text.contains("SECRET"), "{dsn}: {text}");
            }
            let scheme = dsn.split_once("://").map_or("", |(scheme, _)| scheme);
            let expected = if SCHEMES.contains(&scheme) { format!("{scheme}://…") } else { "…".to_owned() };
            assert_eq!(shown(dsn), expected, "{dsn}");
        }
        for dsn in
            ["redis://ann:SECRET@h/1", "redis://h?password=SECRET", "redis://h?sentinel=m&sentinel_password=SECRET"]
        {
            let shown = format!("{:?}", Dsn::parse(dsn).unwrap());
            assert!(!shown.contains("SECRET"), "{shown}");
        }
    }
}
