//! Rounds of operations in slices of time, as the driver asks for them: the same as benches/php/round.php.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::Result;
use crate::peers::{self, Peer};
use crate::process::{fork, read_line};
use crate::samples::Samples;

const STEPS: [&str; 4] = ["send", "take", "deliver", "claim"];

/// Makes the sessions, then serves `run MILLISECONDS` lines with as many processes.
pub(crate) fn serve(peer: &str, place: &str, processes: &str, spread: &str, sizes: &[&str; 4]) -> Result<()> {
    let processes: usize = processes.parse()?;
    let sizes = sizes.iter().map(|size| size.parse()).collect::<std::result::Result<Vec<usize>, _>>()?;
    let [sessions, content, message, pending] = sizes[..] else { return Err("four sizes are expected".into()) };
    let measured = if spread == "one" { 1 } else { processes };
    let mut populating = fork(|mut out| {
        peers::open(peer, place)?.populate(sessions, measured, content)?;
        Ok(writeln!(out, "populated")?)
    })?;
    read_line(&mut populating.1)?;
    let mut children = (0..processes)
        .map(|number| {
            let session = if spread == "one" { 0 } else { number };
            fork(|out| work(peer, place, session, message, pending, processes == 1, out))
        })
        .collect::<Result<Vec<_>>>()?;
    for (_, reader) in &mut children {
        read_line(reader)?; // It is ready.
    }
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        for (writer, _) in &mut children {
            writeln!(writer, "{line}")?;
        }
        let reports = children.iter_mut().map(|(_, reader)| read_line(reader)).collect::<Result<Vec<_>>>()?;
        println!("[{}]", reports.join(","));
    }
    Ok(())
}

fn work(
    peer: &str,
    place: &str,
    session: usize,
    bytes: usize,
    pending: usize,
    alone: bool,
    mut out: UnixStream,
) -> Result<()> {
    let mut peer = peers::open(peer, place)?;
    peer.enter(session)?;
    for _ in 0..pending {
        peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}")?;
        peer.take()?;
    }
    peer.enter(session)?; // As another owner.
    writeln!(out, "ready")?;
    let (message, response) = padded_pair(bytes);
    for line in BufReader::new(out.try_clone()?).lines() {
        let line = line?;
        let milliseconds = line.strip_prefix("run ").ok_or("only `run MILLISECONDS` is understood")?.parse()?;
        let report = slice(&mut *peer, Duration::from_millis(milliseconds), &message, &response, alone)?;
        writeln!(out, "{report}")?;
    }
    Ok(())
}

/// A message and a response of so many bytes.
pub(crate) fn padded_pair(bytes: usize) -> (String, String) {
    let message = padded(r#"{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":""#, r#""}}"#, bytes);
    let before = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"text":""#;
    (message, padded(before, r#""}}}"#, bytes))
}

/// A JSON text of so many bytes.
fn padded(before: &str, after: &str, bytes: usize) -> String {
    format!("{before}{}{after}", "x".repeat(bytes.saturating_sub(before.len() + after.len())))
}

/// Rounds for `time`; alone, then a fifth of it for reading an attribute, and for changing two. What the driver is told.
fn slice(peer: &mut dyn Peer, time: Duration, message: &str, response: &str, alone: bool) -> Result<String> {
    let mut round = Samples::default();
    let mut steps: [Samples; 4] = Default::default();
    let start = Instant::now();
    while start.elapsed() < time {
        let begun = Instant::now();
        let id = peer.send(message)?;
        let sent = Instant::now();
        black_box(peer.take()?);
        let taken = Instant::now();
        peer.deliver(id, response)?;
        let delivered = Instant::now();
        black_box(peer.claim(id)?);
        let claimed = Instant::now();
        round.add(claimed - begun);
        for (samples, time) in
            steps.iter_mut().zip([sent - begun, taken - sent, delivered - taken, claimed - delivered])
        {
            samples.add(time);
        }
    }
    let elapsed = start.elapsed().as_nanos();
    let mut named: Vec<_> = STEPS.into_iter().zip(steps).collect();
    if alone {
        named.push(("get", repeat(time / 5, || peer.get().map(|value| drop(black_box(value))))?));
        named.push(("patch", repeat(time / 5, || peer.patch("\"bench\"", "\"1.0\""))?));
    }
    let rounds = round.len();
    named.push(("round", round));
    let steps: Vec<_> = named.iter().map(|(name, samples)| format!(r#""{name}":{samples}"#)).collect();
    Ok(format!(r#"{{"rounds":{rounds},"ns":{elapsed},"wrong":0,"steps":{{{}}}}}"#, steps.join(",")))
}

fn repeat(time: Duration, mut step: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut samples = Samples::default();
    let start = Instant::now();
    while start.elapsed() < time {
        let begun = Instant::now();
        step()?;
        samples.add(begun.elapsed());
    }
    Ok(samples)
}
