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

use fastrand::Rng;
use mcp_state_fuzz::TARGETS;

/// Random bytes, or a known input with some bytes changed, cut out or put in.
fn input(random: &mut Rng, known: &[Vec<u8>]) -> Vec<u8> {
    if known.is_empty() || random.bool() {
        let most = 1 << (3 + random.usize(..7));
        let length = random.usize(..most);
        return (0..length).map(|_| random.u8(..)).collect();
    }
    let mut input = known[random.usize(..known.len())].clone();
    for _ in 0..=random.usize(..8) {
        let at = random.usize(..input.len().max(1));
        match random.usize(..4) {
            0 if !input.is_empty() => drop(input.remove(at)),
            1 => input.insert(at, random.u8(..)),
            2 => {
                let more = random.usize(..9);
                drop(input.splice(at..at, b"\"{}[].,:0\\"[..more].iter().copied()));
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.usize(..8);
                }
            }
        }
    }
    input
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
        let mut random = Rng::with_seed(seed);
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
        let made = (0..inputs).take_while(|_| all_known && survives(&input(&mut random, &known))).count();
        println!("{name}: {} known inputs and {made} made from seed {seed}", known.len());
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
