//! `watch`: a summary of the store, once a second.

use std::time::{Duration, Instant};

use mcp_state::{Engine, Limit, SessionStats, StoreStats};

use crate::args::WatchOptions;
use crate::failure::Failure;
use crate::output;
use crate::sessions;
use crate::stats::Totals;
use crate::terminal::{Screen, Signals, Woken, stop};
use crate::text;

const INTERVAL: Duration = Duration::from_secs(1);

/// The store at one moment.
struct Snapshot {
    at: Instant,
    stats: StoreStats,
    totals: Totals,
    sessions: Vec<SessionStats>,
}

impl Snapshot {
    fn take(engine: &Engine) -> Result<Self, Failure> {
        // A reset may have replaced the store.
        engine.refresh()?;
        let sessions = sessions::all(engine)?;
        let mut totals = Totals::default();
        sessions.iter().for_each(|session| totals.add(session));
        Ok(Self { at: Instant::now(), stats: engine.stats()?, totals, sessions })
    }

    fn counter(&self, name: &str) -> u64 {
        self.stats.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }

    fn late(&self) -> u64 {
        self.stats.counters.iter().filter(|(name, _)| name.starts_with("late_")).map(|(_, value)| value).sum()
    }

    /// Returns how much a count grew per second since an earlier snapshot.
    fn rate(&self, before: &Snapshot, count: impl Fn(&Snapshot) -> u64) -> f64 {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        count(self).saturating_sub(count(before)) as f64 / seconds.max(0.001)
    }

    fn summary(&self) -> String {
        let Totals { owners, pending, in_flight, queued, broadcasts, .. } = self.totals;
        format!(
            "sessions {}  owners {owners}  pending {pending}  in flight {in_flight}  queued {}  late {}  used {}",
            self.stats.sessions,
            queued + broadcasts,
            self.late(),
            text::bytes(self.stats.used_bytes),
        )
    }

    /// How many exchanges wait, where any does or the store's limit is not the default.
    fn waiting(&self) -> Option<String> {
        let (waiting, most) = (self.stats.waiting, self.stats.max_waiting);
        let refused = self.counter("waiting_refused");
        (waiting > 0 || most < Limit::Waiting.default_value())
            .then(|| format!("waiting {waiting}  max_waiting {most}  waiting_refused {refused}"))
    }

    fn line(&self, before: Option<&Snapshot>) -> String {
        let mut line = self.summary();
        if let Some(waiting) = self.waiting() {
            line += &format!("  {waiting}");
        }
        if let Some(before) = before {
            let delivered = self.rate(before, |snapshot| snapshot.counter("responses_delivered"));
            let created = self.rate(before, |snapshot| snapshot.counter("sessions_created"));
            line += &format!("  created/s {created:.1}  answers/s {delivered:.1}");
        }
        line
    }

    fn page(&self, engine: &Engine, before: Option<&Snapshot>, full: bool) -> Vec<String> {
        let mut lines = vec![format!("mcp-state {}   {}", mcp_state::VERSION, engine.dsn()), String::new()];
        lines.push(self.summary());
        lines.extend(self.waiting());
        let used = 100.0 * self.stats.used_bytes as f64 / self.stats.limit_bytes.max(1) as f64;
        let mut store = format!("limit {} ({used:.0} % used)", text::bytes(self.stats.limit_bytes));
        let named = [("limits hit", "limits_hit"), ("store full", "store_full"), ("evicted", "sessions_evicted")];
        for (shown, name) in named.into_iter().filter(|(_, name)| self.counter(name) > 0) {
            store += &format!("  {shown} {}", self.counter(name));
        }
        lines.push(store);
        if let Some(before) = before {
            let rate = |name| self.rate(before, |snapshot| snapshot.counter(name));
            lines.push(format!(
                "a second: {:.1} sessions created, {:.1} answers delivered, {:.1} late, {:.1} sleeps of waiters",
                rate("sessions_created"),
                rate("responses_delivered"),
                self.rate(before, Snapshot::late),
                rate("waits"),
            ));
        }
        let late: Vec<_> = self
            .stats
            .counters
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix("late_")?, value)))
            .filter(|(_, value)| **value > 0)
            .map(|(reason, value)| format!("{value} {}", reason.replace('_', " ")))
            .collect();
        if !late.is_empty() {
            lines.push(format!("late responses: {}", late.join(", ")));
        }
        lines.push(String::new());
        let rows: Vec<_> = self.sessions.iter().map(|session| sessions::row(session, full)).collect();
        lines.extend(text::table(&sessions::HEADER, &rows));
        lines
    }
}

pub(crate) fn run(engine: &Engine, options: &WatchOptions) -> Result<(), Failure> {
    if options.once {
        return output::line(Snapshot::take(engine)?.page(engine, None, options.full).join("\n"));
    }
    let signals = Signals::hold();
    let mut screen = Screen::open()?;
    let mut before: Option<Snapshot> = None;
    loop {
        let snapshot = Snapshot::take(engine)?;
        match &screen {
            Some(screen) => screen.draw(&snapshot.page(engine, before.as_ref(), options.full))?,
            None => output::line(snapshot.line(before.as_ref()))?,
        }
        before = Some(snapshot);
        match signals.wait(INTERVAL) {
            Woken::Redraw => {}
            Woken::Quit => return Ok(()),
            Woken::Suspend => {
                let was_shown = screen.take().is_some();
                stop();
                screen = if was_shown { Screen::open()? } else { None };
            }
        }
    }
}
