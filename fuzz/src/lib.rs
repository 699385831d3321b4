//! What is fuzzed: each target is a function of bytes that must return, whatever they are.
//!
//! `fuzz_targets/` gives them to libFuzzer (`make fuzz`), `src/short.rs` runs them on any toolchain over `seeds/` and over
//! inputs made from a seed (`cargo run --bin short`, part of `make test`).
//!
//! A target asserts more than that nothing panics: what is read back is what was written, what is refused is refused by a typed
//! error, what was damaged is noticed or harmless.

mod attributes;
mod c_abi;
mod record;
mod request;
mod rows;
mod text;

pub use attributes::attributes;
pub use c_abi::c_abi;
pub use record::record;
pub use request::request;
pub use rows::rows;
pub use text::{dsn, names, stamp};

/// A target: its name, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("record", record),
    ("rows", rows),
    ("stamp", stamp),
    ("names", names),
    ("dsn", dsn),
    ("attributes", attributes),
    ("request", request),
    ("c_abi", c_abi),
];

/// Numbers and texts out of the input; once it is used up, zeros and empty texts.
pub(crate) mod input {
    use arbitrary::Unstructured;

    pub(crate) fn number(input: &mut Unstructured<'_>) -> u64 {
        // Small ones, and those about which arithmetic goes wrong.
        let byte: u8 = input.arbitrary().unwrap_or(0);
        match byte {
            0..=199 => u64::from(byte % 10),
            200..=219 => u64::MAX - u64::from(byte - 200),
            220..=239 => 1 << (byte - 220 + 32),
            _ => input.arbitrary().unwrap_or(0),
        }
    }

    pub(crate) fn pick<'a, T: Copy>(input: &mut Unstructured<'_>, choices: &'a [T]) -> T {
        choices[usize::from(input.arbitrary::<u8>().unwrap_or(0)) % choices.len()]
    }

    pub(crate) fn below(input: &mut Unstructured<'_>, end: usize) -> usize {
        if end == 0 { 0 } else { input.arbitrary::<u32>().unwrap_or(0) as usize % end }
    }

    pub(crate) fn bytes<'a>(input: &mut Unstructured<'a>) -> &'a [u8] {
        let length: u8 = input.arbitrary().unwrap_or(0);
        let length = usize::from(length).min(input.len());
        input.bytes(length).unwrap_or(&[])
    }

    pub(crate) fn text(input: &mut Unstructured<'_>) -> String {
        String::from_utf8_lossy(bytes(input)).into_owned()
    }
}
