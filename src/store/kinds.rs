//! The kinds of records that a store holds: what a store does with all of them, it does with each that is listed here.

#[cfg(test)]
mod tests;

use crate::error::StoreError;
use crate::kind::Kind;
use crate::session::Session;

/// Something that is done for each kind.
pub(super) trait Visitor {
    /// Does it for `K`.
    fn visit<K: Kind>(&mut self) -> Result<(), StoreError>;
}

/// Visits each kind.
pub(super) fn each(visitor: &mut impl Visitor) -> Result<(), StoreError> {
    #[cfg(test)]
    visitor.visit::<crate::kind::sample::Job>()?;
    visitor.visit::<Session>()
}
