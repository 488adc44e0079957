//! How strong the confinement of a session is, and which strengths a machine offers.

/// The tiers, the weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementTier {
    /// The kernel refuses the processes themselves: Landlock, a seccomp filter, no capabilities, no new privileges.
    #[default]
    Process,
    /// The same in namespaces of its own: a read-only system, private `/tmp`, `/proc` and `/dev`, ended as one.
    Sandbox,
    /// The same in a container: of the machine's files, those are there that are named.
    Container,
}

impl ConfinementTier {
    /// Every tier.
    pub const ALL: [Self; 3] = [Self::Process, Self::Sandbox, Self::Container];

    /// Whether its processes have a pid namespace of their own, and files that are not those of the same paths outside.
    pub fn has_namespaces(self) -> bool {
        self >= Self::Sandbox
    }

    /// Its name in settings and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Sandbox => "sandbox",
            Self::Container => "container",
        }
    }
}

/// The tiers of confinement, each with the reason why this machine cannot give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilitiesView {
    /// The tiers, the weakest first; without a reason sessions can be started with it.
    pub confinement: Vec<(ConfinementTier, Option<String>)>,
}
