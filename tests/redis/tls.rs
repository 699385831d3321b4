//! Encrypted connections: who trusts whom, and what is said of a connection that cannot come about.

use std::path::PathBuf;

use mcp_state::{Delivery, Engine, ErrorKind};
use tempfile::TempDir;

use crate::common::process::Worker;
use crate::common::redis::{RedisServer, free_port};
use crate::workers::Test;
use crate::{Result, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_server_with_tls_serves_who_trusts_its_certificate_and_nobody_else", with_tls),
    ("a_server_that_asks_for_a_certificate_gets_the_one_that_the_dsn_names", client_certificates),
    ("what_cannot_pass_by_itself_is_told_at_once_with_what_to_do", not_tried_again),
];

/// Two authorities, `ours` and `stranger`, and what they have signed: `NAME.pem` and its `NAME.key`.
struct Files(TempDir);

impl Files {
    fn new() -> Result<Self> {
        let files = Self(tempfile::tempdir()?);
        for name in ["ours", "stranger"] {
            let mut params = rcgen::CertificateParams::default();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            let key = rcgen::KeyPair::generate()?;
            std::fs::write(files.path(&format!("{name}.pem")), params.self_signed(&key)?.pem())?;
            let authority = rcgen::Issuer::new(params, key);
            for (signed, host) in [("server", "localhost"), ("client", "client.example")] {
                let key = rcgen::KeyPair::generate()?;
                let certificate = rcgen::CertificateParams::new([host.to_owned()])?.signed_by(&key, &authority)?;
                std::fs::write(files.path(&format!("{name}-{signed}.pem")), certificate.pem())?;
                std::fs::write(files.path(&format!("{name}-{signed}.key")), key.serialize_pem())?;
            }
        }
        Ok(files)
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.into_os_string().into_string().expect("it is UTF-8")
    }

    /// A server with TLS at the port of this number, which asks clients for certificates or does not.
    fn server(&self, auth_clients: &str) -> (RedisServer, u16) {
        let port = free_port();
        let files = ["ours-server.pem", "ours-server.key", "ours.pem"].map(|name| self.path(name));
        let files = ["--tls-cert-file", &files[0], "--tls-key-file", &files[1], "--tls-ca-cert-file", &files[2]];
        let listens = ["--tls-auth-clients", auth_clients, "--tls-port", &port.to_string()];
        (RedisServer::with(&[&files[..], &listens].concat()), port)
    }

    fn trusting(&self, authority: &str, role: &[&str]) -> Worker {
        Worker::start_with(role, &[("SSL_CERT_FILE", &self.path(authority))])
    }
}

fn with_tls() -> Result {
    let files = Files::new()?;
    let (server, port) = files.server("no");
    let dsn = |host: &str| format!("rediss://{host}:{port}/0");
    assert_eq!(files.trusting("ours.pem", &["create", &dsn("localhost"), "s"]).line("created"), "");
    assert!(files.trusting("ours.pem", &["round", &dsn("localhost"), "s"]).finish().success());
    // A waiter has a connection of its own.
    let engine = Engine::open(&server.dsn(""))?;
    let mut asker = files.trusting("ours.pem", &["ask", &dsn("localhost"), "s", "60000"]);
    let id = asker.line("id").parse()?;
    let session = engine.open_session("s", None)?.ok_or("it is there")?;
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(asker.line("answer"), "\"yes\"");
    for (authority, host) in [("stranger.pem", "localhost"), ("ours.pem", "127.0.0.1")] {
        let refused = files.trusting(authority, &["create", &dsn(host), "t"]).line("refused");
        assert!(refused.starts_with("StoreUnavailable") && refused.contains("SSL_CERT_FILE"), "{refused}");
    }
    // A file of authorities that is not there.
    let dsn = format!("rediss://localhost:{port}/0?retry_ms=600000");
    let refused = files.trusting("nothing.pem", &["create", &dsn, "t"]).line("refused");
    assert!(refused.contains("mend what SSL_CERT_FILE names"), "{refused}");
    assert!(engine.open_session("t", None)?.is_none());
    Ok(())
}

fn client_certificates() -> Result {
    let files = Files::new()?;
    let (_server, port) = files.server("yes");
    let named_files = [
        format!("tls_ca={}", files.path("ours.pem")),
        format!("tls_certificate={}", files.path("ours-client.pem")),
        format!("tls_key={}", files.path("ours-client.key")),
    ];
    let dsn = format!("rediss://localhost:{port}?{}", named_files.join("&"));
    let engine = Engine::open(&dsn)?;
    let session = named(&engine, "s");
    works(&session)?;
    // A waiter has a connection of its own.
    let mut asker = Worker::start(&["ask", &dsn, "s", "60000"]);
    let id = asker.line("id").parse()?;
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(asker.line("answer"), "\"yes\"");
    Engine::reset(&dsn)?;
    assert!(engine.open_session("s", None)?.is_none());
    Ok(())
}

/// Each of these would be tried again for ten minutes if it were taken for a server that is away.
fn not_tried_again() -> Result {
    let files = Files::new()?;
    let (_asks, asks) = files.server("yes");
    let (_server, tls) = files.server("no");
    let plain_server = RedisServer::on_port(&[]);
    assert_eq!(plain_server.command(&["CONFIG", "SET", "requirepass", "RIGHT"]), "OK");
    let plain = plain_server.port();
    let ours = format!("tls_ca={}", files.path("ours.pem"));
    let pair = |certificate: &str, key: &str| {
        format!("{ours}&tls_certificate={}&tls_key={}", files.path(certificate), files.path(key))
    };
    std::fs::write(files.path("empty.pem"), "nothing of use\n")?;
    let rows = [
        ("no certificate", format!("rediss://localhost:{asks}?{ours}"), "tls_certificate"),
        (
            "a stranger's certificate",
            format!("rediss://localhost:{asks}?{}", pair("stranger-client.pem", "stranger-client.key")),
            "tls_certificate",
        ),
        (
            "a key of another certificate",
            format!("rediss://localhost:{asks}?{}", pair("ours-client.pem", "stranger-client.key")),
            "KeyMismatch",
        ),
        (
            "no such certificate",
            format!("rediss://localhost:{asks}?{}", pair("nothing.pem", "ours-client.key")),
            "tls_certificate /",
        ),
        (
            "no key in the file",
            format!("rediss://localhost:{asks}?{}", pair("ours-client.pem", "empty.pem")),
            "tls_key /",
        ),
        (
            "no authority in the file",
            format!("rediss://localhost:{tls}?tls_ca={}", files.path("empty.pem")),
            "tls_ca /",
        ),
        (
            "another authority",
            format!("rediss://localhost:{tls}?tls_ca={}", files.path("stranger.pem")),
            "name its authority's file in tls_ca",
        ),
        ("another host", format!("rediss://127.0.0.1:{tls}?{ours}"), "for the host in the DSN"),
        ("TLS to a plain port", format!("rediss://localhost:{plain}?{ours}"), "write redis://"),
        ("no TLS to a port with TLS", format!("redis://localhost:{tls}"), "write rediss://"),
        ("the same with a login", format!("redis://ann:x@localhost:{tls}"), "write rediss://"),
        ("a wrong password", format!("redis://:WRONG@localhost:{plain}"), "another user or password"),
        ("no password", format!("redis://localhost:{plain}"), "name a user and a password"),
        ("as a cluster", format!("rediss://localhost:{plain}?cluster=1&{ours}"), "write redis://"),
        ("as sentinels", format!("rediss://localhost:{plain}?sentinel=main&{ours}"), "write redis://"),
    ];
    for (what, dsn, advice) in rows {
        let dsn = format!("{dsn}{}retry_ms=600000", if dsn.contains('?') { '&' } else { '?' });
        let error = Engine::open(&dsn)?.open_session("s", None).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{what}: {error}");
        let text = error.to_string();
        assert!(text.contains(advice) && !text.contains("whether it runs"), "{what}: {text}");
        assert!(!text.contains("WRONG"), "{what}: {text}");
    }
    Ok(())
}
