//! `sessions` and `show`: the list of sessions, and the contents of one.

use mcp_state::{Claim, Engine, InspectedOwner, Inspection, Liveness, OwnerKind, RequestId, SessionStats};
use serde_json::{Value, json};

use crate::args::{SessionsOptions, ShowOptions};
use crate::failure::Failure;
use crate::output;
use crate::text;

/// Calls `each` for every session. Each session is read in its own transaction.
pub(crate) fn for_each(engine: &Engine, mut each: impl FnMut(SessionStats)) -> Result<(), Failure> {
    let mut after: Option<String> = None;
    while let Some(session) = engine.sessions(after.as_deref(), 1)?.pop() {
        after = Some(session.id.clone());
        each(session);
    }
    Ok(())
}

/// Returns all sessions, the most recently active first.
pub(crate) fn all(engine: &Engine) -> Result<Vec<SessionStats>, Failure> {
    let mut sessions = Vec::new();
    for_each(engine, |session| sessions.push(session))?;
    sessions.sort_by_key(|session| session.idle_ms);
    Ok(sessions)
}

pub(crate) const HEADER: [&str; 8] = ["SESSION", "OWNERS", "PENDING", "IN FLIGHT", "QUEUED", "BYTES", "AGE", "IDLE"];

pub(crate) fn row(session: &SessionStats, full: bool) -> Vec<String> {
    vec![
        text::id(&session.id, full),
        session.owners.to_string(),
        session.pending.to_string(),
        session.in_flight.to_string(),
        (session.queued + session.broadcasts).to_string(),
        text::bytes(session.message_bytes + session.attribute_bytes),
        text::span(session.age_ms),
        text::span(session.idle_ms),
    ]
}

pub(crate) fn list(engine: &Engine, options: &SessionsOptions) -> Result<(), Failure> {
    let sessions = all(engine)?;
    if options.json {
        let list: Vec<_> = sessions.iter().map(|session| to_json(session, options.full)).collect();
        output::line(format_args!("{:#}", Value::from(list)))
    } else if sessions.is_empty() {
        output::line(format_args!("no sessions in {}", engine.dsn()))
    } else {
        let rows: Vec<_> = sessions.iter().map(|session| row(session, options.full)).collect();
        output::line(text::table(&HEADER, &rows).join("\n"))
    }
}

/// Returns the whole id of a session that is given by its id or by a prefix of at least 8 characters that no other session has.
pub(crate) fn resolve(engine: &Engine, given: &str) -> Result<String, Failure> {
    const LEAST: usize = 8;
    let start = given.trim_end_matches('…');
    if engine.inspect(start)?.is_some() {
        return Ok(start.to_owned());
    }
    if start.len() < LEAST {
        return Err(not_found(given));
    }
    let mut found = Vec::new();
    for_each(engine, |session| {
        if session.id.starts_with(start) {
            found.push(session.id);
        }
    })?;
    match &found[..] {
        [] => Err(not_found(given)),
        [id] => Ok(id.clone()),
        _ => Err(Failure::usage(format!(
            "{} sessions begin with {}; give more of the id (`mcp-state sessions --full` shows them)",
            found.len(),
            text::short_id(start)
        ))),
    }
}

pub(crate) fn not_found(id: &str) -> Failure {
    Failure::not_found(format!("there is no session {}; `mcp-state sessions` lists all sessions", text::short_id(id)))
}

pub(crate) fn show(engine: &Engine, options: &ShowOptions) -> Result<(), Failure> {
    let id = resolve(engine, &options.id)?;
    let (stats, inspection) = engine.inspect(&id)?.ok_or_else(|| not_found(&id))?;
    if options.json {
        output::line(format_args!("{:#}", inspection_to_json(&stats, &inspection, options.full)))
    } else {
        output::text(&describe(&stats, &inspection, options.full))
    }
}

fn describe(stats: &SessionStats, seen: &Inspection, full: bool) -> String {
    let mut lines = vec![format!("session    {}", text::id(&stats.id, full))];
    let mut add = |name: &str, value: String| lines.push(format!("{name:<10} {value}"));
    add("belongs to", if seen.bound { "a principal" } else { "every caller with its id" }.into());
    add("age", text::span(stats.age_ms));
    let expiry = match seen.expires_in_ms {
        0 => "expired: the next collection removes it unless an owner lives".to_owned(),
        left => format!("expires in {}", text::span(left)),
    };
    add("idle", format!("{} of {}; {expiry}", text::span(stats.idle_ms), text::span(stats.ttl_ms)));
    add("exchanges", stats.exchanges.to_string());
    add(
        "bytes",
        format!(
            "{} of messages, {} of attributes",
            text::bytes(stats.message_bytes),
            text::bytes(stats.attribute_bytes)
        ),
    );
    let late: Vec<_> = stats.late.iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{n} {why}")).collect();
    add("late", if late.is_empty() { "none".into() } else { late.join(", ") });
    for owner in &seen.owners {
        lines.push(String::new());
        let (token, kind) = (&owner.token, kind(owner.kind));
        lines.push(format!("owner {token}  {kind}{}  {}  {}", age(owner.for_ms), process(owner), lease(owner)));
        lines.extend(owner.in_flight.iter().map(|request| {
            let id = match &request.id {
                RequestId::Str(id) => text::payload(&Value::from(id.as_str()).to_string(), full),
                RequestId::Int(id) => id.to_string(),
            };
            let cancelled = if request.cancelled { "  cancelled by the client" } else { "" };
            format!("  in flight  {id}{}{cancelled}", age(request.for_ms))
        }));
        lines.extend(owner.pending.iter().map(|pending| {
            let response = pending.response.as_deref().map(|text| format!("  {}", text::payload(text, full)));
            let (info, age, response) = (&pending.info, age(pending.for_ms), response.unwrap_or_default());
            let method = text::payload(&info.method, full);
            format!("  pending    {}  {method}{age}  {}{response}", info.id, state(&info.state))
        }));
        lines.extend(owner.messages.iter().map(|message| format!("  queued     {}", text::payload(message, full))));
    }
    if !seen.broadcasts.is_empty() {
        lines.push(String::new());
        lines.extend(seen.broadcasts.iter().map(|(message, held)| {
            format!(
                "broadcast    {}{}",
                text::payload(message, full),
                if *held { "  (an owner is sending it)" } else { "" }
            )
        }));
    }
    if let Ok(Value::Object(attributes)) = serde_json::from_str(&seen.attributes)
        && !attributes.is_empty()
    {
        lines.push(String::new());
        lines.extend(attributes.iter().map(|(key, value)| {
            format!("attribute    {} = {}", text::payload(key, full), text::payload(&value.to_string(), full))
        }));
    }
    lines.join("\n") + "\n"
}

fn kind(kind: OwnerKind) -> &'static str {
    match kind {
        OwnerKind::Stream => "stream",
        OwnerKind::Reply => "reply",
    }
}

fn process(owner: &InspectedOwner) -> String {
    match owner.process.liveness() {
        Liveness::Alive => format!("process {}", owner.process.pid),
        Liveness::Dead => format!("process {} (has ended)", owner.process.pid),
        Liveness::Unknown => format!("process {} (cannot be seen from here)", owner.process.pid),
    }
}

/// Returns the age of an item, if it is known.
fn age(for_ms: Option<u64>) -> String {
    for_ms.map(|for_ms| format!("  for {}", text::span(for_ms))).unwrap_or_default()
}

fn lease(owner: &InspectedOwner) -> String {
    match owner.lease_left_ms {
        0 => "lease has ended".into(),
        left => format!("lease {}", text::span(left)),
    }
}

fn state(state: &Claim) -> String {
    match state {
        Claim::Waiting(left) => format!("waiting, {} left", text::span(*left)),
        other => state_name(other).replace('_', " "),
    }
}

fn state_name(state: &Claim) -> &'static str {
    match state {
        Claim::Waiting(_) => "waiting",
        Claim::Answered(_) => "answered",
        Claim::TimedOut => "timed_out",
        Claim::Cancelled => "cancelled",
        Claim::NotOwner | Claim::Unknown => "unknown",
    }
}

pub(crate) fn to_json(session: &SessionStats, full: bool) -> Value {
    json!({
        "id": text::id(&session.id, full),
        "age_ms": session.age_ms,
        "idle_ms": session.idle_ms,
        "ttl_ms": session.ttl_ms,
        "owners": session.owners,
        "exchanges": session.exchanges,
        "pending": session.pending,
        "in_flight": session.in_flight,
        "queued": session.queued,
        "broadcasts": session.broadcasts,
        "message_bytes": session.message_bytes,
        "attribute_bytes": session.attribute_bytes,
        "late": session.late.iter().map(|&(why, n)| (why.to_owned(), n.into())).collect::<serde_json::Map<_, _>>(),
    })
}

fn inspection_to_json(stats: &SessionStats, seen: &Inspection, full: bool) -> Value {
    let mut value = to_json(stats, full);
    let owners = seen.owners.iter().map(|owner| {
        json!({
            "token": owner.token,
            "kind": kind(owner.kind),
            "pid": owner.process.pid,
            "process": match owner.process.liveness() {
                Liveness::Alive => "alive",
                Liveness::Dead => "dead",
                Liveness::Unknown => "unknown",
            },
            "for_ms": owner.for_ms,
            "lease_left_ms": owner.lease_left_ms,
            "in_flight": owner.in_flight.iter().map(|request| json!({
                "id": match &request.id { RequestId::Int(id) => Value::from(*id), RequestId::Str(id) => text::payload(id, full).into() },
                "for_ms": request.for_ms,
                "cancelled": request.cancelled,
            })).collect::<Vec<_>>(),
            "pending": owner.pending.iter().map(|pending| json!({
                "id": pending.info.id,
                "method": pending.info.method,
                "for_ms": pending.for_ms,
                "state": state_name(&pending.info.state),
                "left_ms": match pending.info.state { Claim::Waiting(left) => Some(left), _ => None },
                "response": pending.response.as_deref().map(|text| text::payload(text, full)),
            })).collect::<Vec<_>>(),
            "queued": owner.messages.iter().map(|message| text::payload(message, full)).collect::<Vec<_>>(),
        })
    });
    value["bound"] = seen.bound.into();
    value["expires_in_ms"] = seen.expires_in_ms.into();
    value["owners"] = owners.collect::<Vec<_>>().into();
    value["broadcasts"] =
        seen.broadcasts.iter().map(|(message, _)| text::payload(message, full)).collect::<Vec<_>>().into();
    let attributes: Value = serde_json::from_str(&seen.attributes).unwrap_or_default();
    value["attributes"] = match attributes {
        Value::Object(attributes) if !full => attributes
            .into_iter()
            .map(|(key, value)| (key, text::payload(&value.to_string(), false).into()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        attributes => attributes,
    };
    value
}
