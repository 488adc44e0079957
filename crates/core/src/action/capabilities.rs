//! The capabilities of the server on this machine.

use crate::confinement_tier::ConfinementTier;

/// The tiers of confinement, each with the reason why this machine cannot give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilitiesView {
    /// The tiers, the weakest first; without a reason sessions can be started with it.
    pub confinement: Vec<(ConfinementTier, Option<String>)>,
}
