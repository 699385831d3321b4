//! An MCP client that measures: plain calls, parallel slow calls on one session, questions to the client.
//!
//! Answers each line `run MILLISECONDS calls CONNECTIONS`, `… parallel CALLS DELAY-MS` and `… elicit` with one line of JSON. Each
//! request has a connection of its own that ends with it (HTTP/1.0).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::samples::Samples;

/// Nothing is waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(10);
const SESSIONS: usize = 16;

/// A server, as `HOST:PORT` and the path.
struct Server<'a> {
    address: &'a str,
    path: &'a str,
}

/// A reply: status and session id of its head, and the rest to be read.
struct Reply {
    status: u16,
    session: String,
    body: BufReader<TcpStream>,
}

impl Server<'_> {
    fn post(&self, session: &str, body: &str) -> Result<Reply> {
        let mut connection = TcpStream::connect(self.address)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let (path, address, length) = (self.path, self.address, body.len());
        let session = if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
        let request = format!(
            "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Mcp-Protocol-Version: 2025-06-18\r\n{session}Content-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes())?;
        let mut body = BufReader::new(connection);
        let mut line = String::new();
        body.read_line(&mut line)?;
        let status = line.split(' ').nth(1).ok_or("there was no reply")?.parse()?;
        let mut session = String::new();
        loop {
            line.clear();
            body.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("mcp-session-id") => session = value.to_owned(),
                Some(_) => {}
                None => break,
            }
        }
        Ok(Reply { status, session, body })
    }

    fn initialize(&self) -> Result<String> {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let mut reply = self.post("", initialize)?;
        let text = reply.text()?;
        if reply.status != 200 || reply.session.is_empty() {
            return Err(format!("initialize: {} {text}", reply.status).into());
        }
        self.post(&reply.session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?.text()?;
        Ok(reply.session)
    }

    /// A call of `echo`. Whether its own answer came back.
    fn echo(&self, session: &str, number: usize, delay_ms: usize) -> Result<bool> {
        let sentinel = format!("sentinel-{number}-end");
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"echo","arguments":{{"sentinel":"{sentinel}","delay_ms":{delay_ms}}}}}}}"#,
            number + 1
        );
        Ok(self.post(session, &body)?.text()?.contains(&sentinel))
    }

    /// A call of `ask`, answered at once: from the answer's request until the result is there, and whether it was the right one.
    fn ask(&self, session: &str, number: usize) -> Result<(Duration, bool)> {
        let sentinel = format!("sentinel-{number}-end");
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"ask","arguments":{{"sentinel":"question","timeout":2}}}}}}"#,
            number + 1
        );
        let mut reply = self.post(session, &body)?;
        let mut seen = String::new();
        let question = loop {
            let before = seen.len();
            if reply.body.read_line(&mut seen)? == 0 {
                return Err(format!("there was no question but {} {seen}", reply.status).into());
            }
            if seen[before..].contains("\"elicitation") {
                break &seen[before..];
            }
        };
        let id = number_after(question, "\"id\":").ok_or("the question has no id")?;
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"answer":"{sentinel}"}}}}}}"#
        );
        let start = Instant::now();
        let delivered = self.post(session, &answer)?;
        let right = reply.text()?.contains(&sentinel);
        Ok((start.elapsed(), right && delivered.status == 202))
    }
}

impl Reply {
    fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }
}

fn number_after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let rest = &text[text.find(before)? + before.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| &rest[..end])
}

/// Serves the lines.
pub(crate) fn serve(address: &str, path: &str) -> Result<()> {
    let server = Server { address, path };
    let sessions = (0..SESSIONS).map(|_| server.initialize()).collect::<Result<Vec<_>>>()?;
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let time = Duration::from_millis(words.get(1).ok_or("a time is expected")?.parse()?);
        let report = match words[2..] {
            ["calls", connections] => calls(&server, &sessions, time, connections.parse()?)?,
            ["parallel", calls, delay] => parallel(&server, &sessions[0], time, calls.parse()?, delay.parse()?)?,
            ["elicit"] => elicit(&server, &sessions[1], time)?,
            _ => return Err("calls, parallel or elicit is expected".into()),
        };
        println!("[{report}]");
    }
    Ok(())
}

/// Plain calls, each connection on a session of its own.
fn calls(server: &Server<'_>, sessions: &[String], time: Duration, connections: usize) -> Result<String> {
    let start = Instant::now();
    let results = in_parallel(connections, |connection| {
        let (mut samples, mut wrong) = (Samples::default(), 0);
        while start.elapsed() < time || samples.len() == 0 {
            let begun = Instant::now();
            wrong += usize::from(!server.echo(&sessions[connection], samples.len(), 0)?);
            samples.add(begun.elapsed());
        }
        Ok((samples, wrong))
    })?;
    let wall = start.elapsed().as_nanos();
    let wrong: usize = results.iter().map(|(_, wrong)| wrong).sum();
    let samples: Samples = results.into_iter().map(|(samples, _)| samples).collect();
    Ok(format!(r#"{{"time":{samples},"wrong":{wrong},"ns":{wall}}}"#))
}

/// Slow calls at once on one session: the time until all are back, and that of one alone.
fn parallel(server: &Server<'_>, session: &str, time: Duration, calls: usize, delay_ms: usize) -> Result<String> {
    let (mut all, mut one, mut wrong) = (Samples::default(), Samples::default(), 0);
    let start = Instant::now();
    while start.elapsed() < time || all.len() == 0 {
        let begun = Instant::now();
        wrong += usize::from(!server.echo(session, 0, delay_ms)?);
        one.add(begun.elapsed());
        let begun = Instant::now();
        let right = in_parallel(calls, |number| server.echo(session, number, delay_ms))?;
        all.add(begun.elapsed());
        wrong += right.iter().filter(|right| !**right).count();
    }
    let wall = start.elapsed().as_nanos();
    let made = one.len() + all.len() * calls;
    Ok(format!(r#"{{"time":{all},"one":{one},"calls":{made},"wrong":{wrong},"ns":{wall}}}"#))
}

/// Questions to the client one after the other: the whole call, and from the answer to the result.
fn elicit(server: &Server<'_>, session: &str, time: Duration) -> Result<String> {
    let (mut whole, mut answered, mut wrong) = (Samples::default(), Samples::default(), 0);
    let start = Instant::now();
    while start.elapsed() < time || whole.len() == 0 {
        let begun = Instant::now();
        let (took, right) = server.ask(session, whole.len())?;
        whole.add(begun.elapsed());
        answered.add(took);
        wrong += usize::from(!right);
    }
    let wall = start.elapsed().as_nanos();
    Ok(format!(r#"{{"time":{whole},"answered":{answered},"wrong":{wrong},"ns":{wall}}}"#))
}

/// Runs `job` in so many threads.
fn in_parallel<T: Send>(count: usize, job: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let job = &job;
        let threads: Vec<_> =
            (0..count).map(|number| scope.spawn(move || job(number).map_err(|error| error.to_string()))).collect();
        threads.into_iter().map(|thread| Ok(thread.join().map_err(|_| "a thread panicked")??)).collect()
    })
}
