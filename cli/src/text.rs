//! Text for people: short, and without control characters, which could move a terminal's cursor.

/// Returns the first eight characters of a session id. The whole id is a secret: it opens the session.
pub(crate) fn short_id(id: &str) -> String {
    match id.char_indices().nth(8) {
        Some((end, _)) => format!("{}…", &id[..end]),
        None => id.to_owned(),
    }
}

/// Returns the id, shortened unless `full` is set.
pub(crate) fn id(id: &str, full: bool) -> String {
    if full { id.to_owned() } else { short_id(id) }
}

/// Returns a payload with control characters escaped, cut to 60 characters unless `full` is set.
pub(crate) fn payload(text: &str, full: bool) -> String {
    const SHOWN: usize = 60;
    let safe = |text: &str| -> String {
        text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
    };
    if full || text.chars().count() <= SHOWN {
        return safe(text);
    }
    format!("{}… ({})", safe(&text.chars().take(SHOWN).collect::<String>()), bytes(text.len() as u64))
}

/// Formats a size in bytes.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// Formats a duration in milliseconds.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// Formats rows under a header. Each column has the width of its longest cell; the first is left-aligned, the others right-aligned.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    [line(header.to_vec())].into_iter().chain(body).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_payloads_are_short_unless_they_are_wanted_whole() {
        assert_eq!(id("0123456789", false), "01234567…");
        assert_eq!(id("0123456789", true), "0123456789");
        assert_eq!(id("01234567", false), "01234567");
        assert_eq!(id("0123456é9", false), "0123456é…");
        let long = "x".repeat(100);
        assert_eq!(payload(&long, false), format!("{}… (100 B)", "x".repeat(60)));
        assert_eq!(payload(&long, true), long);
    }

    #[test]
    fn nothing_that_is_stored_reaches_the_terminal_as_a_command() {
        assert_eq!(payload("a\u{1b}[2J\u{9b}é", true), "a\\u{1b}[2J\\u{9b}é");
        assert!(!payload(&"\u{1b}".repeat(100), false).contains('\u{1b}'));
    }

    #[test]
    fn sizes_and_spans_have_their_unit() {
        assert_eq!([0, 1023, 1024, 10 << 20, 5 << 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "10 MiB", "5.0 GiB"]);
        assert_eq!([0, 59_999, 60_000, 7_200_000].map(span), ["0 ms", "59 s", "1 min", "2 h"]);
    }
}
