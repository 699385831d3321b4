//! How long what an operation decided by the clock stays so: for stores whose time is another machine's.
//!
//! Every comparison of a transition with the time is with one of the record's marks below. Between two neighbouring marks it
//! does not matter what time it is, but for the times that are written.

use std::ops::Range;

use super::record::{PendingState, Record};
use crate::clock::Millis;

/// Silence after which an owner is dead whatever its process says: at least this, and at least the session's TTL.
const LONGEST_SILENCE: Millis = 3_600_000;

/// The times around `now` at which an operation that found `before` and left `after` would have done the same.
pub(super) fn steady(before: Option<&Record>, after: Option<&Record>, now: Millis) -> Range<Millis> {
    let marks = before.into_iter().chain(after).flat_map(Record::marks);
    marks.fold(0..Millis::MAX, |steady, mark| {
        if mark <= now { steady.start.max(mark)..steady.end } else { steady.start..steady.end.min(mark) }
    })
}

impl Record {
    /// The first moments at which something is different by the passing of time alone.
    fn marks(&self) -> impl Iterator<Item = Millis> {
        let owners = self.owners.iter().flat_map(|owner| {
            let renewed = owner.lease_until.saturating_sub(owner.lease);
            [owner.lease_until, least_left(owner.lease_until, owner.lease), renewed + self.longest_silence() + 1]
        });
        let waiting = self.pending.iter().filter(|pending| pending.state == PendingState::Waiting);
        [self.expires(), least_left(self.expires(), self.ttl)]
            .into_iter()
            .chain(owners)
            .chain(waiting.map(|pending| pending.deadline))
    }

    /// Silence after which an owner is dead whatever its process says.
    pub(super) fn longest_silence(&self) -> Millis {
        self.ttl.max(LONGEST_SILENCE)
    }

    /// When nobody can find the session any more, whatever its owners' processes say: a server may drop it after that.
    pub(crate) fn gone_by(&self) -> Millis {
        let silent = |renewed: Millis| renewed + self.longest_silence();
        let owners = self
            .owners
            .iter()
            .map(|owner| owner.lease_until.max(silent(owner.lease_until.saturating_sub(owner.lease))));
        owners.fold(self.expires(), Millis::max)
    }
}

/// The first moment at which less than 3/4 of a span remains.
fn least_left(end: Millis, span: Millis) -> Millis {
    end.saturating_sub(span / 4 * 3) + 1
}
