//! What a session may use, who keeps it within that, and what it ran into.

use std::time::{Duration, SystemTime};

use crate::ids::CommandId;

/// Something that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Time on processors, from the start of one command to the start of the next.
    CpuSeconds,
    /// Memory.
    MemoryMb,
    /// Processes and threads at once.
    Processes,
    /// Descriptors of each process.
    OpenFiles,
    /// Output of one command.
    OutputMb,
    /// How long one command runs.
    CommandSeconds,
    /// How long nothing happens.
    InactivityTimeout,
    /// How long it lives.
    MaxAge,
}

impl Limit {
    /// All of them, in the order of the wire.
    pub const ALL: [Self; 8] = [
        Self::CpuSeconds,
        Self::MemoryMb,
        Self::Processes,
        Self::OpenFiles,
        Self::OutputMb,
        Self::CommandSeconds,
        Self::InactivityTimeout,
        Self::MaxAge,
    ];

    /// Its name, as a client writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuSeconds => "cpuSeconds",
            Self::MemoryMb => "memoryMb",
            Self::Processes => "processes",
            Self::OpenFiles => "openFiles",
            Self::OutputMb => "outputMb",
            Self::CommandSeconds => "commandSeconds",
            Self::InactivityTimeout => "inactivityTimeout",
            Self::MaxAge => "maxAge",
        }
    }

    /// Its number in a session's events, for ever.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::CpuSeconds => 1,
            Self::MemoryMb => 2,
            Self::Processes => 3,
            Self::OpenFiles => 4,
            Self::OutputMb => 5,
            Self::CommandSeconds => 6,
            Self::InactivityTimeout => 7,
            Self::MaxAge => 8,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.code() == code)
    }
}

/// What a session may use; what is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// [`Limit::CpuSeconds`].
    pub cpu: Option<Duration>,
    /// [`Limit::MemoryMb`], in bytes.
    pub memory: Option<u64>,
    /// [`Limit::Processes`].
    pub processes: Option<u64>,
    /// [`Limit::OpenFiles`].
    pub open_files: Option<u64>,
    /// [`Limit::OutputMb`], in bytes.
    pub output: Option<u64>,
    /// [`Limit::CommandSeconds`].
    pub command_time: Option<Duration>,
    /// [`Limit::InactivityTimeout`]; zero in a wish is none, whatever the server's default is.
    pub inactivity: Option<Duration>,
    /// [`Limit::MaxAge`]; zero as above.
    pub max_age: Option<Duration>,
}

impl Limits {
    /// The figure in the limit's own unit.
    pub fn value(&self, limit: Limit) -> Option<f64> {
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        match limit {
            Limit::CpuSeconds => self.cpu.map(|d| d.as_secs_f64()),
            Limit::MemoryMb => self.memory.map(megabytes),
            Limit::Processes => self.processes.map(|n| n as f64),
            Limit::OpenFiles => self.open_files.map(|n| n as f64),
            Limit::OutputMb => self.output.map(megabytes),
            Limit::CommandSeconds => self.command_time.map(|d| d.as_secs_f64()),
            Limit::InactivityTimeout => self.inactivity.map(|d| d.as_secs_f64()),
            Limit::MaxAge => self.max_age.map(|d| d.as_secs_f64()),
        }
    }
}

/// Who keeps a session within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// The kernel, for all processes together.
    ControlGroup,
    /// The kernel, for each process by itself.
    ResourceLimit,
    /// The server, while it runs.
    Server,
}

/// A limit that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptLimit {
    /// Which.
    pub limit: Limit,
    /// In its own unit.
    pub value: f64,
    /// By whom.
    pub keeper: Keeper,
}

/// A limit that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitHit {
    /// Which.
    pub limit: Limit,
    /// The command that ran then.
    pub command: Option<CommandId>,
    /// When it was seen first.
    pub at: SystemTime,
    /// How often: processes killed, forks refused; 1 for what is hit once.
    pub count: u64,
}
