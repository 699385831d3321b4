//! Whether a history can be put in one order that respects time and that a sequential specification allows (Wing and Gong's
//! search, with the memory of visited configurations that Lowe added).

use std::collections::HashSet;
use std::hash::Hash;

use crate::history::{Call, Nanos};

/// How one object behaves when one operation follows another.
pub trait Spec {
    type State: Clone + Eq + Hash;
    fn initial(&self) -> Self::State;
    /// The states in which the operation may leave the object, given what came of it; none if that cannot be. An operation
    /// without an outcome may have had any.
    fn apply(&self, state: &Self::State, call: &Call) -> Vec<Self::State>;
}

/// More configurations than any history of a run has.
const MOST: usize = 5_000_000;

/// Whether there is such an order.
pub fn is_linearizable<S: Spec>(spec: &S, calls: &[&Call]) -> Result<bool, &'static str> {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.start);
    let mut visited: HashSet<(Done, S::State)> = HashSet::new();
    let mut stack = vec![(Done::default(), spec.initial())];
    while let Some((done, state)) = stack.pop() {
        // What has not happened although it ended comes before whatever began after that.
        let due = |at: &usize| calls[*at].outcome.is_some();
        let first_end: Option<Nanos> = done.left(calls.len()).filter(due).map(|at| calls[at].end).min();
        let Some(first_end) = first_end else { return Ok(true) };
        let newest = done.newest_start(&calls);
        for at in done.left(calls.len()) {
            let call = calls[at];
            if call.start > first_end {
                break;
            }
            // Its process was dead when something began that has happened.
            if call.end < newest {
                continue;
            }
            for next in spec.apply(&state, call) {
                let configuration = (done.with(at), next);
                if visited.len() > MOST {
                    return Err("the search is too long");
                }
                if visited.insert(configuration.clone()) {
                    stack.push(configuration);
                }
            }
        }
    }
    Ok(false)
}

/// Which operations have happened: all before `from`, and those named after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Done {
    from: usize,
    more: Vec<usize>,
}

impl Done {
    fn left(&self, count: usize) -> impl Iterator<Item = usize> {
        (self.from..count).filter(|at| self.more.binary_search(at).is_err())
    }

    fn with(&self, at: usize) -> Self {
        let mut done = self.clone();
        let place = done.more.binary_search(&at).expect_err("it has not happened");
        done.more.insert(place, at);
        let full = done.more.iter().enumerate().take_while(|(place, at)| **at == done.from + place).count();
        done.from += full;
        done.more.drain(..full);
        done
    }

    fn newest_start(&self, calls: &[&Call]) -> Nanos {
        let last = self.more.last().copied().or(self.from.checked_sub(1));
        last.map_or(0, |at| calls[at].start)
    }
}
