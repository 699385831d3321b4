//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

const EXIT_STATUS: &str = "\
Exit status:
  0  done
  1  failed, or the output could not be written; `doctor`: found an error
  2  the command line is invalid, or names no store
  3  the store or session does not exist

Name a store with the DSN of the servers (shm://NAME, file:///DIRECTORY or redis://HOST, with the same options), or with the path \
of its directory. As root, the command becomes the store's owner before it opens the store. It never makes a store.";

/// Inspect, repair and measure a store of MCP sessions
#[derive(Debug, Parser)]
#[command(name = "mcp-state", version, after_long_help = EXIT_STATUS, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The store that a command uses.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// The DSN of the servers: <shm://NAME>, <file:///DIRECTORY> or <redis://HOST>; several for `stats --prometheus`
    #[arg(long, value_name = "DSN", env = "MCP_STATE_DSN", global = true, hide_env_values = true)]
    pub(crate) store: Vec<String>,
    /// For root: the owner of the store (name or number), if several users have a store with this name
    #[arg(long, global = true, value_hint = ValueHint::Username)]
    pub(crate) user: Option<String>,
}

impl Choice {
    /// Returns the DSNs of the command line or the environment.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &str> {
        self.store.iter().map(String::as_str).filter(|dsn| !dsn.is_empty())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the sessions, most recently active first
    Sessions(SessionsOptions),
    /// Show one session: owners, pending requests, messages, attributes
    Show(ShowOptions),
    /// Show the store once a second; one line each time if the output is not a terminal
    Watch(WatchOptions),
    /// Show the contents, counters and limits of the store
    Stats(StatsOptions),
    /// Remove expired sessions and release dead owners
    Gc,
    /// Destroy a session; it cannot be restored
    Destroy {
        /// The session's id, or at least its first 8 characters if no other session has the same
        id: String,
    },
    /// Check the store, PHP's extension and the php-fpm pools, and say how to repair each error
    Doctor(DoctorOptions),
    /// Measure this machine with a private store, in a few seconds
    Bench(BenchOptions),
    /// The waiting process of `bench`
    #[command(hide = true)]
    BenchPeer { dsn: String, session: String },
    /// Replace the store by an empty one, also if its files are damaged; every session ends
    Reset {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Print the completion script of a shell
    Completions { shell: Shell },
    /// Write the man pages to a directory
    #[command(hide = true)]
    Man { directory: PathBuf },
}

#[derive(Args, Debug)]
pub(crate) struct SessionsOptions {
    /// Show whole session ids; they are secrets that open the sessions
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowOptions {
    /// The session's id, or at least its first 8 characters if no other session has the same
    pub(crate) id: String,
    /// Show the whole id and whole payloads
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct WatchOptions {
    /// Show the store once and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Show whole session ids
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StatsOptions {
    /// Print JSON
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// Print the text format of Prometheus for all named stores; as root, for the stores of all users
    #[arg(long)]
    pub(crate) prometheus: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorOptions {
    /// Also check the consistency of all records, in one long read transaction; not for a busy store
    #[arg(long)]
    pub(crate) deep: bool,
    /// The PHP command to check
    #[arg(long, env = "PHP", default_value = "php", value_hint = ValueHint::CommandName)]
    pub(crate) php: PathBuf,
    /// The configuration of a php-fpm pool; by default, those in /etc/php and /usr/local/etc
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pool: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BenchOptions {
    /// The duration of each measurement, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) time: u64,
    /// The directory for the store; by default, shared memory
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
