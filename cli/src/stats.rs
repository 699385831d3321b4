//! `stats`: the contents, counters and limits of the store, as text or JSON.

use mcp_state::{Engine, StoreStats};
use serde_json::{Map, Value, json};

use crate::args::StatsOptions;
use crate::failure::Failure;
use crate::output;
use crate::sessions;
use crate::text;

/// Sums over all sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) owners: u64,
    pub(crate) pending: u64,
    pub(crate) in_flight: u64,
    pub(crate) queued: u64,
    pub(crate) broadcasts: u64,
    pub(crate) message_bytes: u64,
    pub(crate) attribute_bytes: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, session: &mcp_state::SessionStats) {
        self.owners += session.owners;
        self.pending += session.pending;
        self.in_flight += session.in_flight;
        self.queued += session.queued;
        self.broadcasts += session.broadcasts;
        self.message_bytes += session.message_bytes;
        self.attribute_bytes += session.attribute_bytes;
    }

    /// Returns the name, the value and the description of each sum.
    pub(crate) fn rows(&self) -> [(&'static str, u64, &'static str); 7] {
        [
            ("owners", self.owners, "Attached owners: exchanges that are being served."),
            (
                "pending",
                self.pending,
                "Requests to clients that wait for their answer, or whose answer is not claimed yet.",
            ),
            ("in_flight", self.in_flight, "Requests of clients that are being processed."),
            ("queued", self.queued, "Messages queued for owners."),
            ("broadcasts", self.broadcasts, "Broadcasts that no owner has taken."),
            ("message_bytes", self.message_bytes, "Bytes of messages and responses."),
            ("attribute_bytes", self.attribute_bytes, "Bytes of attributes."),
        ]
    }
}

pub(crate) fn run(engine: &Engine, options: &StatsOptions) -> Result<(), Failure> {
    if options.json {
        return output::line(format_args!("{:#}", snapshot(engine)?));
    }
    let (stats, totals) = read(engine)?;
    output::text(&to_text(engine.dsn(), &stats, &totals))
}

/// Returns the JSON object of `stats --json`.
pub(crate) fn snapshot(engine: &Engine) -> Result<Value, Failure> {
    let (stats, totals) = read(engine)?;
    Ok(to_json(engine.dsn(), &stats, &totals))
}

fn read(engine: &Engine) -> Result<(StoreStats, Totals), Failure> {
    let mut totals = Totals::default();
    sessions::for_each(engine, |session| totals.add(&session))?;
    Ok((engine.stats()?, totals))
}

fn to_text(dsn: &str, stats: &StoreStats, totals: &Totals) -> String {
    let mut lines = vec![format!("store {dsn}")];
    let mut add = |name: &str, value: String| lines.push(format!("  {name:<24} {value:>12}"));
    add("sessions", stats.sessions.to_string());
    for (name, value, _) in totals.rows() {
        add(name, if name.ends_with("bytes") { text::bytes(value) } else { value.to_string() });
    }
    add("waiting", stats.waiting.to_string());
    add("max_waiting", stats.max_waiting.to_string());
    add("used", text::bytes(stats.used_bytes));
    add("limit", text::bytes(stats.limit_bytes));
    lines.push("counted since the store was made".into());
    lines.extend(stats.counters.iter().map(|(name, value)| format!("  {name:<24} {value:>12}")));
    lines.push("limits".into());
    lines.extend(stats.limits.iter().map(|(name, value)| format!("  {name:<24} {:>12}", limit(name, *value))));
    lines.push("place".into());
    lines.extend(stats.place.iter().map(|(name, value)| format!("  {name:<24} {value}")));
    lines.join("\n") + "\n"
}

fn limit(name: &str, value: u64) -> String {
    if name.ends_with("_bytes") { text::bytes(value) } else { value.to_string() }
}

fn to_json(dsn: &str, stats: &StoreStats, totals: &Totals) -> Value {
    let numbers = |pairs: &[(&'static str, u64)]| -> Map<String, Value> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect()
    };
    let place = stats.place.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
    json!({
        "store": dsn,
        "sessions": stats.sessions,
        "used_bytes": stats.used_bytes,
        "limit_bytes": stats.limit_bytes,
        "waiting": stats.waiting,
        "max_waiting": stats.max_waiting,
        "totals": totals.rows().iter().map(|&(name, value, _)| (name.to_owned(), value.into())).collect::<Map<_, _>>(),
        "counters": numbers(&stats.counters),
        "limits": numbers(&stats.limits),
        "place": place.collect::<Map<_, _>>(),
    })
}
