//! The targets without libFuzzer, on any toolchain: over `seeds/`, over what was found before (`artifacts/`, `corpus/`), and
//! over inputs made from a seed.
//!
//!     cargo run --bin short -- [--inputs N] [--seed S] [TARGET…]
//!
//! Prints how many inputs each target was given. An input that a target does not survive is kept in `artifacts/TARGET/`.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mcp_state_fuzz::TARGETS;

/// SplitMix64: the same inputs for the same seed on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Random bytes, or a known input with some bytes changed, cut out or put in.
    fn input(&mut self, known: &[Vec<u8>]) -> Vec<u8> {
        if known.is_empty() || self.below(2) == 0 {
            let most = 1 << (3 + self.below(7));
            let length = self.below(most);
            return (0..length).map(|_| self.next() as u8).collect();
        }
        let mut input = known[self.below(known.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(input.len());
            match self.below(4) {
                0 if !input.is_empty() => drop(input.remove(at)),
                1 => input.insert(at, self.next() as u8),
                2 => {
                    let more = self.below(9);
                    drop(input.splice(at..at, b"\"{}[].,:0\\"[..more].iter().copied()));
                }
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        input
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn main() -> ExitCode {
    let (mut inputs, mut seed, mut names) = (2000, 1, vec![]);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number follows");
        match argument.as_str() {
            "--inputs" => inputs = number(),
            "--seed" => seed = number(),
            _ => names.push(argument),
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut failed = 0;
    for (name, target) in TARGETS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|word| word == name)) {
        let paths = ["seeds", "corpus", "artifacts"].iter().flat_map(|kind| files(&root.join(kind).join(name)));
        let known: Vec<_> = paths.filter_map(|path| fs::read(path).ok()).collect();
        let mut random = Random(seed);
        let mut survives = |input: &[u8]| {
            let survived = panic::catch_unwind(|| target(input)).is_ok();
            if !survived {
                let directory = root.join("artifacts").join(name);
                let path = directory.join(format!("short-{seed}-{failed}"));
                let kept = fs::create_dir_all(&directory).and_then(|()| fs::write(&path, input));
                eprintln!("{name}: this input is kept in {} ({kept:?})", path.display());
                failed += 1;
            }
            survived
        };
        let all_known = known.iter().filter(|input| survives(input)).count() == known.len();
        let made = (0..inputs).take_while(|_| all_known && survives(&random.input(&known))).count();
        println!("{name}: {} known inputs and {made} made from seed {seed}", known.len());
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
