//! What an error of a server, or of the way to it, means: whether the connection is lost, whether the reason passes by itself,
//! and what to do about it.

use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};

/// What the error of a store that has another layout begins with.
pub(super) const OTHER_LAYOUT: &str = "the store has another layout";
/// What the error begins with when nobody has used the store.
pub(super) const NO_STORE: &str = "there is no store";
/// What the error begins with when a plain server was greeted with TLS.
pub(super) const NO_TLS_THERE: &str = "the server does not speak TLS on this port";
/// What the error begins with when a server with TLS was greeted without.
pub(super) const TLS_THERE: &str = "the server speaks TLS on this port";
/// What the error of a sentinel that refuses the login begins with.
pub(super) const SENTINEL_LOGIN: &str = "a sentinel refused the login";
/// What the error begins with when a file that the DSN names is of no use.
pub(super) const TLS_FILE: &str = "a file that the DSN names cannot be used";

/// The error of the operating system, or of what speaks through it, that is behind an error.
pub(super) fn io_cause(error: &RedisError) -> Option<&io::Error> {
    let source = std::error::Error::source(error)?;
    // The crate hands out its `Arc` where one would expect what is in it.
    type Inner = Arc<dyn std::error::Error + Send + Sync>;
    source.downcast_ref().or_else(|| source.downcast_ref::<Inner>()?.downcast_ref())
}

/// Whether the connection was lost, so that nobody knows how far the server came.
pub(super) fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.kind() == ErrorKind::Parse
}

/// Whether a signal arrived.
pub(super) fn is_interrupted(error: &RedisError) -> bool {
    io_cause(error).is_some_and(|cause| cause.kind() == io::ErrorKind::Interrupted)
}

/// What TLS found wrong, in so far as the same two would find it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsFault {
    /// The server's certificate is refused here.
    Untrusted,
    /// The server refuses this client's certificate, or misses it.
    Refused,
    /// What came is not TLS.
    NotTls,
    /// The two have nothing in common.
    Incompatible,
}

#[cfg(feature = "tls")]
fn tls_fault(error: &RedisError) -> Option<TlsFault> {
    use rustls::AlertDescription as Alert;
    match io_cause(error)?.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => Some(TlsFault::Untrusted),
        rustls::Error::AlertReceived(alert) => match alert {
            Alert::CloseNotify | Alert::InternalError | Alert::UserCanceled => None,
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
            | Alert::CertificateRequired => Some(TlsFault::Refused),
            _ => Some(TlsFault::Incompatible),
        },
        rustls::Error::InvalidMessage(_) => Some(TlsFault::NotTls),
        rustls::Error::PeerIncompatible(_) => Some(TlsFault::Incompatible),
        _ => None,
    }
}

#[cfg(not(feature = "tls"))]
fn tls_fault(_: &RedisError) -> Option<TlsFault> {
    None
}

/// Whether the certificate authorities of this system cannot be read, or a host has no name that TLS knows: the crate calls that
/// an error of input and output.
fn is_setup(error: &RedisError) -> bool {
    error.is_io_error() && std::error::Error::source(error).is_some() && io_cause(error).is_none()
}

/// Whether the reason passes by itself.
pub(super) fn passes(error: &RedisError) -> bool {
    const PASSING: [&str; 9] =
        ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "ASK", "READONLY", "TRYAGAIN", "BUSY", "NOREPLICAS"];
    let may_not = io_cause(error).is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied);
    match error.kind() {
        ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel => true,
        _ if tls_fault(error).is_some() || is_setup(error) || may_not => false,
        _ => is_lost(error) || PASSING.iter().any(|code| said(error, code)),
    }
}

/// Whether the server's error has this code; Redis 6 wraps what a script meets into another one.
pub(super) fn said(error: &RedisError, code: &str) -> bool {
    error.code() == Some(code) || error.detail().is_some_and(|detail| detail.contains(&format!("-{code} ")))
}

/// Whether an error is the one that begins with this.
pub(super) fn begins(error: &RedisError, text: &str) -> bool {
    error.to_string().starts_with(text)
}

/// The error in words, without the crate's name for its kind.
pub(super) fn text(error: &RedisError) -> String {
    error.to_string().replacen(&format!(" - {:?}", error.kind()), "", 1)
}

/// What the server said, and what to do.
pub(super) fn explain(error: &RedisError) -> String {
    const MAY_NOT: &str = "give the user the rights that the guide names, on keys and channels of this prefix";
    const OTHER_LOGIN: &str = "name another user or password in the DSN";
    const BY_CODE: [(&str, &str); 11] = [
        ("NOAUTH", "name a user and a password in the DSN"),
        ("WRONGPASS", OTHER_LOGIN),
        ("NOPERM", MAY_NOT),
        ("READONLY", "it is a replica; name the master, or the sentinels"),
        ("LOADING", "it is reading its data; try again"),
        ("MASTERDOWN", "it is a replica without its master; name the master, or the sentinels"),
        ("CLUSTERDOWN", "too many of the cluster's servers are gone; start them"),
        ("MISCONF", "it cannot write to its disk; mend that"),
        ("NOREPLICAS", "it waits for its replicas; start them"),
        ("BUSY", "somebody's script keeps it busy; end that"),
        ("ASK", "a slot moves to another server; try again"),
    ];
    const BY_BEGINNING: [(&str, &str); 4] = [
        (NO_TLS_THERE, "write redis:// for rediss://, or name its port with TLS"),
        (TLS_THERE, "write rediss:// for redis://, or name its port without TLS"),
        (SENTINEL_LOGIN, "name the sentinels' user and password in sentinel_user and sentinel_password"),
        (TLS_FILE, "tls_ca, tls_certificate and tls_key name files in PEM format that this process may read"),
    ];
    let by_beginning = BY_BEGINNING.iter().find(|(beginning, _)| begins(error, beginning));
    let advice = by_beginning.or_else(|| BY_CODE.iter().find(|(code, _)| said(error, code))).map(|(_, advice)| *advice);
    let advice = advice.unwrap_or_else(|| match (tls_fault(error), error.kind()) {
        // What Redis 7 says of a script's command that the user may not run.
        _ if error.detail().is_some_and(|detail| detail.contains("user executing the script")) => MAY_NOT,
        (_, ErrorKind::AuthenticationFailed) => OTHER_LOGIN,
        (Some(TlsFault::Untrusted), _) => {
            "let an authority this system trusts sign its certificate for the host in the DSN, or name its authority's file in tls_ca or SSL_CERT_FILE"
        }
        (Some(TlsFault::Refused), _) => {
            "it asks for a client's certificate that it trusts: name one in tls_certificate, and its key in tls_key"
        }
        (Some(TlsFault::NotTls), _) => BY_BEGINNING[0].1,
        (Some(TlsFault::Incompatible), _) => {
            "let it speak TLS 1.2 or 1.3; if it asks for a client's certificate, name one in tls_certificate, and its key in tls_key"
        }
        _ if is_setup(error) => "mend what SSL_CERT_FILE names, or leave it unset; a host's name must be one that TLS knows",
        (_, ErrorKind::InvalidClientConfig) => "mend the DSN",
        _ if io_cause(error).is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied) => {
            "let this process's user reach it"
        }
        _ if is_lost(error) => "see whether it runs and can be reached from here",
        _ => "see its log",
    });
    format!("{}; {advice}", text(error))
}

/// The rights that an error says are missing, as the rules of an ACL name them; nothing when it is another error.
pub(super) fn missing_rights(error: &RedisError, prefix: &str) -> Option<String> {
    let said = error.to_string();
    let command = said.split_once("run the '").and_then(|(_, rest)| rest.split('\'').next()).map(str::to_owned);
    let of_script =
        || said.split_once("may not run ").and_then(|(_, rest)| rest.split(' ').next()).map(str::to_lowercase);
    if !self::said(error, "NOPERM") && !said.contains("permissions") {
        None
    } else if let Some(command) = command {
        Some(format!("+{command}"))
    } else if let Some(command) = of_script() {
        Some(format!("+{command} ~{prefix}*"))
    } else if said.contains("channel") {
        Some(format!("&{prefix}*"))
    } else if said.contains("key") {
        Some(format!("~{prefix}*"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{code} what it says\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_is_explained() {
        for code in ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"] {
            assert!(passes(&error(code)), "{code}");
        }
        for code in ["NOAUTH", "WRONGPASS", "NOPERM", "OOM", "ERR", "MISCONF"] {
            assert!(!passes(&error(code)), "{code}");
        }
        assert!(explain(&error("NOAUTH")).contains("password"));
        assert!(explain(&error("READONLY")).contains("master"));
    }

    #[test]
    fn the_rights_that_are_missing_are_named_as_each_version_says_it() {
        for (said, rights) in [
            ("NOPERM this user has no permissions to run the 'hset' command or its subcommand", Some("+hset")),
            ("NOPERM User mcp has no permissions to run the 'acl|list' command", Some("+acl|list")),
            (
                "ERR ACL failure in script: User mcp has no permissions to run the 'xadd' command script: 1",
                Some("+xadd"),
            ),
            ("NOPERM this user has no permissions to access one of the keys used as arguments", Some("~shop:*")),
            ("NOPERM No permissions to access a key", Some("~shop:*")),
            ("NOPERM No permissions to access a channel", Some("&shop:*")),
            ("NOPERM this user may not run HSET on the keys of this session", Some("+hset ~shop:*")),
            ("READONLY You can't write against a read only replica.", None),
        ] {
            let error =
                redis::parse_redis_value(format!("-{said}\r\n").as_bytes()).unwrap().extract_error().unwrap_err();
            assert_eq!(missing_rights(&error, "shop:").as_deref(), rights, "{said}");
        }
    }

    #[test]
    fn what_a_script_met_is_seen_as_redis_6_says_it() {
        let wrapped =
            error("ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -READONLY You can't");
        assert!(passes(&wrapped) && explain(&wrapped).contains("master"));
        assert!(said(&error("ERR Error running script (call to f_1): @user_script: 9: -OOM command"), "OOM"));
    }

    #[test]
    fn the_cause_behind_an_error_of_the_crate_is_found() {
        let interrupted = RedisError::from(io::Error::from(io::ErrorKind::Interrupted));
        assert!(is_interrupted(&interrupted));
        assert!(!is_interrupted(&RedisError::from(io::Error::from(io::ErrorKind::WouldBlock))));
        let refused = RedisError::from(io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(!passes(&refused) && explain(&refused).contains("user"));
    }
}
