//! What `make bench` measures without PHP: the engine by itself, and the floors below it.
//!
//! ```text
//! mcp-state-bench round PEER PLACE PROCESSES one|many SESSIONS CONTENT-BYTES MESSAGE-BYTES PENDING
//! mcp-state-bench wake PEER PLACE
//! mcp-state-bench request HOST:PORT PATH
//! mcp-state-bench hot PEER PLACE
//! ```
//!
//! PLACE is a DSN for ours and a directory for the others. `round` and `wake` speak the protocols of benches/php/round.php and
//! benches/php/wake.php.

mod hot;
mod lmdb;
mod peers;
mod process;
mod request;
mod round;
mod samples;
mod wake;

use std::error::Error;
use std::process::ExitCode;

/// What anything here may fail with: it ends the program.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["round", peer, place, processes, spread, sessions, content, message, pending] => {
            round::serve(peer, place, processes, spread, &[sessions, content, message, pending])
        }
        ["wake", peer, place] => wake::serve(peer, place),
        ["request", address, path] => request::serve(address, path),
        ["hot", peer, place] => hot::run(peer, place),
        _ => Err("the first lines of benches/native/src/main.rs say how this is called".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mcp-state-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
