//! Times of many runs of one thing, and what the driver is told of them.

use std::fmt;
use std::time::Duration;

/// Nanoseconds, one for each run.
#[derive(Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time.as_nanos() as u64);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Those of several together.
impl FromIterator<Samples> for Samples {
    fn from_iter<I: IntoIterator<Item = Samples>>(samples: I) -> Self {
        Self(samples.into_iter().flat_map(|samples| samples.0).collect())
    }
}

/// As JSON: how many, the median, the 99th percentile.
impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)));
        write!(f, "[{}, {}, {}]", sorted.len(), at(50).unwrap_or(&0), at(99).unwrap_or(&0))
    }
}
