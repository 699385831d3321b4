//! A quick check of JSON texts, which builds nothing.
//!
//! What [`skim`] accepts is JSON. Of what it does not accept nothing is known: it leaves what is rare (large numbers, surrogates,
//! deep nesting) to `serde_json`, which also says what is wrong with a text that is none.

/// How deep a text may be nested that is accepted here.
const ROOM: usize = 100;

/// How many lists and objects are open at once in a JSON text, at most; nothing if it must be asked of `serde_json` whether it is
/// one. `member` is shown the members of the outermost object: the key, in which nothing is escaped, and the value's text.
pub(super) fn skim<'t>(text: &'t str, member: &mut dyn FnMut(&'t str, &'t str)) -> Option<usize> {
    let mut skimmer = Skimmer { text, at: 0 };
    let depth = match skimmer.peek()? {
        b'{' => skimmer.object(ROOM, |skimmer, key| {
            skimmer.peek()?;
            let start = skimmer.at;
            let depth = skimmer.value(ROOM - 1)?;
            member(Some(key).filter(|key| !key.contains('\\'))?, &text[start..skimmer.at]);
            Some(depth)
        }),
        _ => skimmer.value(ROOM),
    }?;
    skimmer.peek().is_none().then_some(depth)
}

struct Skimmer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Skimmer<'t> {
    /// The next byte that is not white space; it stays.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// The same, taken.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// A value: how deep it is nested, within `room`.
    fn value(&mut self, room: usize) -> Option<usize> {
        match self.peek()? {
            b'"' => self.string().map(|_| 0),
            b'{' => self.object(room, |skimmer, _| skimmer.value(room - 1)),
            b'[' => self.list(room),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, room: usize, mut value: impl FnMut(&mut Self, &'t str) -> Option<usize>) -> Option<usize> {
        self.sequence(room, b'}', |skimmer| {
            skimmer.peek().filter(|&byte| byte == b'"')?;
            let key = skimmer.string()?;
            skimmer.next().filter(|&byte| byte == b':')?;
            value(skimmer, key)
        })
    }

    fn list(&mut self, room: usize) -> Option<usize> {
        self.sequence(room, b']', |skimmer| skimmer.value(room - 1))
    }

    /// What stands between brackets, separated by commas.
    fn sequence(&mut self, room: usize, end: u8, mut element: impl FnMut(&mut Self) -> Option<usize>) -> Option<usize> {
        self.at += 1;
        if room == 0 {
            return None;
        }
        if self.peek()? == end {
            self.at += 1;
            return Some(1);
        }
        let mut deepest = 0;
        loop {
            deepest = element(self)?.max(deepest);
            match self.next()? {
                b',' => {}
                byte if byte == end => return Some(1 + deepest),
                _ => return None,
            }
        }
    }

    /// A string: what stands between its quotes.
    fn string(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        self.at = start;
        loop {
            self.at += plain(&bytes[self.at..]);
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[start..self.at - 1]);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.text.as_bytes().get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.text.get(self.at + 2..self.at + 6)?;
                let number = u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
                // Half of a character only counts with its other half.
                if (0xd800..0xe000).contains(&number) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<usize> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            0
        })
    }

    /// A number of few digits without an exponent.
    fn number(&mut self) -> Option<usize> {
        if self.text.as_bytes().get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let starts_with_zero = self.text.as_bytes().get(self.at) == Some(&b'0');
        let digits = self.digits()?;
        if starts_with_zero && digits > 1 {
            return None;
        }
        if self.text.as_bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        let goes_on = self.text.as_bytes().get(self.at).is_some_and(|byte| matches!(byte, b'e' | b'E'));
        (!goes_on).then_some(0)
    }

    fn digits(&mut self) -> Option<usize> {
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (1..=18).contains(&digits).then_some(digits)
    }
}

/// How many bytes there are before a quote, a backslash or a control character.
fn plain(bytes: &[u8]) -> usize {
    const SHORT: usize = 32;
    let mut at = 0;
    // Words find the end of most texts; of long ones, blocks are passed over with vector instructions.
    while let Some(&word) = bytes[at..].first_chunk() {
        if let Some(within) = first_end(u64::from_le_bytes(word)) {
            return at + within;
        }
        at += size_of::<u64>();
        if at == SHORT {
            at += plain_blocks::<128>(&bytes[at..]);
            at += plain_blocks::<32>(&bytes[at..]);
        }
    }
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
    bytes[at..].iter().position(is_end).map_or(bytes.len(), |rest| at + rest)
}

/// How many bytes there are in the blocks before the first that holds a quote, a backslash or a control character.
fn plain_blocks<const SIZE: usize>(bytes: &[u8]) -> usize {
    // Comes to 0 for each of them. The least of a block is found without a branch.
    let unless_end = |byte: u8| (byte ^ b'"').min(byte ^ b'\\').min(byte & 0xe0);
    let is_plain = |block: &&[u8; SIZE]| block.iter().fold(u8::MAX, |least, &byte| least.min(unless_end(byte))) != 0;
    bytes.as_chunks::<SIZE>().0.iter().take_while(is_plain).count() * SIZE
}

/// Which of eight bytes, counted from the lowest, is the first quote, backslash or control character. A byte less a smaller one
/// keeps its highest bit clear; what is borrowed beyond the first that does not only reaches bytes after it.
fn first_end(word: u64) -> Option<usize> {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(EACH * limit) & !bytes;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let ends = (is(b'"') | is(b'\\') | below(word, u64::from(b' '))) & HIGHEST;
    (ends != 0).then(|| ends.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or_default(),
            Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or_default(),
            _ => 0,
        }
    }

    fn is_right_about(text: &str) -> bool {
        let mut members = Vec::new();
        let skimmed = skim(text, &mut |key, value| members.push((key, value)));
        let Some(seen) = skimmed else { return true };
        let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
        let right = members.iter().all(|(key, text)| {
            // The last of several with one key counts.
            let last = members.iter().rfind(|(other, _)| other == key).map(|(_, text)| text) == Some(text);
            !last || value.get(key) == serde_json::from_str(text).ok().as_ref()
        });
        right && seen == depth(&value)
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z\"\\\\/\n]{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-z\"]{0,3}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_json(value in json(), at in any::<prop::sample::Index>(), instead in "[\\[\\]{},:\"\\\\u0-9eE.+\\- \nntrue]{0,3}") {
            let texts = [value.to_string(), serde_json::to_string_pretty(&value).unwrap()];
            for text in texts {
                prop_assert!(is_right_about(&text), "{text}");
                let (at, chars) = (at.index(text.chars().count() + 1), text.chars());
                let changed: String =
                    chars.clone().take(at).chain(instead.chars()).chain(chars.skip(at + 1)).collect();
                prop_assert!(is_right_about(&changed), "{changed}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_ends_plain_text_is_found_where_it_is(mut bytes in prop::collection::vec(b' '.., 0..400), end in 0..=255_u8, at in any::<prop::sample::Index>()) {
            bytes.retain(|byte| !matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(plain(&bytes), bytes.len());
            let at = at.index(bytes.len() + 1);
            bytes.insert(at, end);
            let is_end = matches!(end, b'"' | b'\\' | 0..b' ');
            prop_assert_eq!(plain(&bytes), if is_end { at } else { bytes.len() });
        }
    }

    #[test]
    fn what_requests_look_like_is_accepted() {
        let request = r#" {"jsonrpc":"2.0", "method":"a\/b", "params":{"x":[1,-2.5,true,null,{}],"é":"\u00e9\n"}} "#;
        let mut members = Vec::new();
        assert_eq!(skim(request, &mut |key, value| members.push((key, value))), Some(4));
        assert_eq!(members[..2], [("jsonrpc", r#""2.0""#), ("method", r#""a\/b""#)]);
        assert_eq!(skim(&format!("\"{}\"", "é".repeat(100)), &mut |_, _| {}), Some(0));
    }

    #[test]
    fn what_is_rare_or_wrong_is_left_to_serde() {
        let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(skim(&deep(ROOM), &mut |_, _| {}), Some(ROOM));
        let rest = [
            "",
            " ",
            "1e5",
            "01",
            "-",
            "1.",
            "\"",
            "\"\\ud800\"",
            "\"\\u+123\"",
            "\"\t\"",
            "[1,]",
            "{\"a\" 1}",
            "nul",
            "1 2",
            "{\"a\":1,}",
            "{\"\\u0069d\":1}",
        ];
        for text in rest.into_iter().chain([&*deep(ROOM + 1), "{1:2}", "[", "{\"a\":"]) {
            assert_eq!(skim(text, &mut |_, _| {}), None, "{text}");
        }
    }
}
