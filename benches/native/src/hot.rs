//! Each operation many times, for callgrind: one function for each, never inlined, so that what is spent in it has a name
//! (and shown its name, since functions of equal code are merged).

use std::hint::black_box;

use crate::Result;
use crate::peers::{self, Peer};
use crate::round::padded_pair;

const TIMES: usize = 300;

/// Runs every operation so often.
pub(crate) fn run(peer: &str, place: &str) -> Result<()> {
    let mut peer = peers::open(peer, place)?;
    peer.populate(100, 1, 10_000)?;
    peer.enter(0)?;
    let (message, response) = padded_pair(600);
    for _ in 0..TIMES {
        let id = send(&mut *peer, &message)?;
        take(&mut *peer)?;
        deliver(&mut *peer, id, &response)?;
        claim(&mut *peer, id)?;
        get(&mut *peer)?;
        patch(&mut *peer)?;
    }
    Ok(())
}

#[inline(never)]
fn send(peer: &mut dyn Peer, message: &str) -> Result<i64> {
    black_box("send");
    peer.send(black_box(message))
}

#[inline(never)]
fn take(peer: &mut dyn Peer) -> Result<()> {
    black_box("take");
    black_box(peer.take()?);
    Ok(())
}

#[inline(never)]
fn deliver(peer: &mut dyn Peer, id: i64, response: &str) -> Result<()> {
    black_box("deliver");
    peer.deliver(black_box(id), response)
}

#[inline(never)]
fn claim(peer: &mut dyn Peer, id: i64) -> Result<()> {
    black_box("claim");
    black_box(peer.claim(black_box(id))?);
    Ok(())
}

#[inline(never)]
fn get(peer: &mut dyn Peer) -> Result<()> {
    black_box("get");
    black_box(peer.get()?);
    Ok(())
}

#[inline(never)]
fn patch(peer: &mut dyn Peer) -> Result<()> {
    black_box("patch");
    peer.patch(black_box("\"bench\""), "\"1.0\"")
}
