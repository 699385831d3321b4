//! The command `mcp-state`, which inspects, repairs and measures a store of MCP sessions.
//!
//! Invariants: the command makes no store, except the private one of `bench`. As root, the process becomes the store's owner before
//! it opens a file. Each session is read in one transaction, and no transaction lasts during output, a wait or a question, so a
//! command that hangs, is stopped or is killed delays no server. All output goes through `output`, which clippy enforces.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod doctor;
mod failure;
mod output;
mod prometheus;
mod sessions;
mod stats;
mod store;
mod terminal;
mod text;
mod watch;

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    terminal::restore_sigpipe();
    let done = match Arguments::try_parse() {
        Ok(arguments) => run(&arguments),
        Err(error) => print_message(&error),
    };
    done.unwrap_or_else(|failure| {
        output::error(&format!("mcp-state: {failure}\n"));
        failure.exit_code()
    })
}

/// Prints a message of clap: help and the version to standard output, errors to standard error.
fn print_message(error: &clap::Error) -> Result<ExitCode, Failure> {
    if error.use_stderr() || std::io::stdout().is_terminal() {
        // clap prints colours on a terminal. A failed write to a terminal or to standard error cannot be reported.
        let _ = error.print();
    } else {
        output::text(&error.render().to_string())?;
    }
    Ok(u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let choice = &arguments.choice;
    match &arguments.command {
        Command::Sessions(options) => sessions::list(&store::open(choice)?, options)?,
        Command::Show(options) => sessions::show(&store::open(choice)?, options)?,
        Command::Watch(options) => watch::run(&store::open(choice)?, options)?,
        Command::Stats(options) if options.prometheus => prometheus::run(choice)?,
        Command::Stats(options) => stats::run(&store::open(choice)?, options)?,
        Command::Gc => gc(&store::open(choice)?)?,
        Command::Destroy { id } => destroy(&store::open(choice)?, id)?,
        Command::Doctor(options) => return doctor::run(choice, options),
        Command::Bench(options) => bench::run(options)?,
        Command::BenchPeer { dsn, session } => bench::peer(dsn, session)?,
        Command::Reset { yes } => reset(&store::find(choice)?, *yes)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "mcp-state", &mut script);
            output::bytes(&script)?;
        }
        Command::Man { directory } => {
            clap_mangen::generate_to(Arguments::command(), directory)
                .map_err(|error| Failure::new(format!("cannot write to {}: {error}", directory.display())))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Collects all expired sessions and dead owners. Each session has its own transaction.
fn gc(engine: &mcp_state::Engine) -> Result<(), Failure> {
    let (mut sessions, mut owners) = (0, 0);
    loop {
        let collected = engine.collect(100)?;
        sessions += collected.sessions;
        owners += collected.owners;
        if !collected.more {
            break;
        }
    }
    output::line(format_args!("{sessions} expired sessions removed, {owners} dead owners released"))
}

fn destroy(engine: &mcp_state::Engine, id: &str) -> Result<(), Failure> {
    let id = sessions::resolve(engine, id)?;
    let session = engine.open_session_as_operator(&id)?.ok_or_else(|| sessions::not_found(&id))?;
    if !session.destroy()? {
        return Err(sessions::not_found(&id));
    }
    output::line(format_args!("session {} destroyed", text::short_id(&id)))
}

fn reset(store: &store::Located, yes: bool) -> Result<(), Failure> {
    if !yes {
        if !stdin().is_terminal() {
            return Err(Failure::usage("reset ends every session; give --yes if standard input is not a terminal"));
        }
        let place = store.files.as_ref().map_or(String::new(), |files| format!(" (in {})", files.path.display()));
        output::text(&format!("End every session of {}{place}? [y/N] ", store.shown()))?;
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(Failure::new("nothing was changed"));
        }
    }
    if let Some(files) = &store.files {
        files.become_owner()?;
    }
    mcp_state::Engine::reset(&store.dsn)?;
    output::line(format_args!(
        "{} is empty; processes that use it continue with the empty store at their next request",
        store.shown()
    ))
}
