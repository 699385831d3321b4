//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

const EXIT_STATUS: &str = "\
Exit status:
  0  done
  1  failed, or the output could not be written; `doctor`: something is wrong
  2  the command line is at fault, or no store was named
  3  there is no such store or session

A store is named as the servers name it: shm://NAME, file:///DIRECTORY or redis://HOST, with the same options; or by the path of \
its directory. Run as root, the command \
becomes the store's owner before it opens; it never makes a store.";

/// Looks at a store of MCP sessions, mends it, measures it
#[derive(Debug, Parser)]
#[command(name = "mcp-state", version, after_long_help = EXIT_STATUS, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which store.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// The store: shm://NAME, file:///DIRECTORY or redis://HOST, as the servers name it; several for `stats --prometheus`
    #[arg(long, value_name = "DSN", env = "MCP_STATE_DSN", global = true, hide_env_values = true)]
    pub(crate) store: Vec<String>,
    /// The user whose store it is, where root finds several of one name (name or number)
    #[arg(long, global = true, value_hint = ValueHint::Username)]
    pub(crate) user: Option<String>,
}

impl Choice {
    /// The stores that were named.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &str> {
        self.store.iter().map(String::as_str).filter(|dsn| !dsn.is_empty())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the sessions, most recently active first
    Sessions(Listing),
    /// Show one session: owners, pending requests, messages, attributes
    Show(Showing),
    /// Watch the store, once a second; a line a second where the output is no terminal
    Watch(Watching),
    /// Show what the store holds and has counted
    Stats(Statistics),
    /// Remove expired sessions and release dead owners
    Gc,
    /// End a session for good
    Destroy {
        /// The session's id, or its beginning (8 characters or more) if no other session has the same
        id: String,
    },
    /// Check the store, its place, PHP's extension and the pool; says how to mend what is wrong
    Doctor(Checking),
    /// Measure this machine in a private store, in a few seconds
    Bench(Measuring),
    /// The other process of `bench`
    #[command(hide = true)]
    BenchPeer { dsn: String, session: String },
    /// Empty the store, whatever state its files are in; every session ends
    Reset {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print the completions for a shell
    Completions { shell: Shell },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man { directory: PathBuf },
}

#[derive(Args, Debug)]
pub(crate) struct Listing {
    /// Show session ids whole: whoever has one has the session
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Showing {
    /// The session's id, or its beginning (8 characters or more) if no other session has the same
    pub(crate) id: String,
    /// Show the id and payloads whole
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Watching {
    /// Look once and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Show session ids whole
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Statistics {
    /// Print JSON
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// Print the text format that Prometheus scrapes, of all stores that are named; root sees those of all users
    #[arg(long)]
    pub(crate) prometheus: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Checking {
    /// Also look for contradictions in the whole store: one long read, not for a busy store
    #[arg(long)]
    pub(crate) deep: bool,
    /// The PHP to ask
    #[arg(long, env = "PHP", default_value = "php", value_hint = ValueHint::CommandName)]
    pub(crate) php: PathBuf,
    /// A php-fpm pool's configuration; without it, those under /etc/php and /usr/local/etc
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pool: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Measuring {
    /// How long each measurement takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) time: u64,
    /// Where to put the store; by default where shared memory is
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
