//! Limits of sessions: their values, their enforcement, and their hits.

use std::time::{Duration, SystemTime};

use crate::ids::CommandId;
use crate::limits::{
    LIFETIME_MAX, LIFETIME_MIN, LIMIT_MEMORY_MB, LIMIT_MIN, LIMIT_OPEN_FILES, LIMIT_OUTPUT_MB_MAX,
    LIMIT_OUTPUT_RATE_MB_MAX, LIMIT_PROCESSES, LIMIT_SECONDS_MAX,
};

/// A kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Limit {
    /// CPU time, from the start of one command to the start of the next.
    CpuSeconds,
    /// Memory.
    MemoryMb,
    /// Processes and threads at the same time.
    Processes,
    /// Open descriptors per process.
    OpenFiles,
    /// Output of one command.
    OutputMb,
    /// Rate of all output.
    OutputMbPerSecond,
    /// Duration of one command.
    CommandSeconds,
    /// Time without activity.
    InactivityTimeout,
    /// Age of the session.
    MaxAge,
}

impl Limit {
    /// All kinds, in the order of the wire.
    pub const ALL: [Self; 9] = [
        Self::CpuSeconds,
        Self::MemoryMb,
        Self::Processes,
        Self::OpenFiles,
        Self::OutputMb,
        Self::OutputMbPerSecond,
        Self::CommandSeconds,
        Self::InactivityTimeout,
        Self::MaxAge,
    ];

    /// The request field that sets it.
    pub fn field(self) -> &'static str {
        match self {
            Self::CpuSeconds => "limits.cpuSeconds",
            Self::MemoryMb => "limits.memoryMb",
            Self::Processes => "limits.processes",
            Self::OpenFiles => "limits.openFiles",
            Self::OutputMb => "limits.outputMb",
            Self::OutputMbPerSecond => "limits.outputMbPerSecond",
            Self::CommandSeconds => "limits.commandSeconds",
            Self::InactivityTimeout => "inactivityTimeout",
            Self::MaxAge => "maxAge",
        }
    }

    /// Its public name.
    pub fn name(self) -> &'static str {
        self.field().trim_start_matches("limits.")
    }

    /// Its permanent number in the events.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::CpuSeconds => 1,
            Self::MemoryMb => wire::MEMORY,
            Self::Processes => 3,
            Self::OpenFiles => 4,
            Self::OutputMb => 5,
            Self::CommandSeconds => 6,
            Self::InactivityTimeout => 7,
            Self::MaxAge => 8,
            Self::OutputMbPerSecond => wire::OUTPUT_RATE,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.code() == code)
    }
}

/// The limits of a session; an absent one is unlimited.
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
    /// [`Limit::OutputMbPerSecond`], in bytes.
    pub output_rate: Option<u64>,
    /// [`Limit::CommandSeconds`].
    pub command_time: Option<Duration>,
    /// [`Limit::InactivityTimeout`]; zero in a request means none, whatever the server's default is.
    pub inactivity: Option<Duration>,
    /// [`Limit::MaxAge`]; zero as above.
    pub max_age: Option<Duration>,
}

impl Limits {
    /// Sets one limit, in its own unit; an error says what is wrong with the value.
    pub fn set(&mut self, limit: Limit, value: f64) -> Result<(), String> {
        let within = |min: f64, max: f64| {
            (min..=max)
                .contains(&value)
                .then_some(value)
                .ok_or_else(|| format!("{value} is not between {min} and {max}"))
        };
        let whole = |(min, max): (u64, u64)| {
            let value = within(min as f64, max as f64)?;
            if value.fract() == 0.0 { Ok(value as u64) } else { Err(format!("{value} is not a whole number")) }
        };
        let seconds = || within(LIMIT_MIN, LIMIT_SECONDS_MAX).map(Duration::from_secs_f64);
        let lifetime = || within(LIFETIME_MIN.as_secs_f64(), LIFETIME_MAX.as_secs_f64()).map(Duration::from_secs_f64);
        match limit {
            Limit::CpuSeconds => self.cpu = Some(seconds()?),
            Limit::MemoryMb => self.memory = Some(whole(LIMIT_MEMORY_MB)? << 20),
            Limit::Processes => self.processes = Some(whole(LIMIT_PROCESSES)?),
            Limit::OpenFiles => self.open_files = Some(whole(LIMIT_OPEN_FILES)?),
            Limit::OutputMb => {
                self.output = Some((within(LIMIT_MIN, LIMIT_OUTPUT_MB_MAX)? * f64::from(1 << 20)).round() as u64);
            }
            Limit::OutputMbPerSecond => {
                self.output_rate =
                    Some((within(LIMIT_MIN, LIMIT_OUTPUT_RATE_MB_MAX)? * f64::from(1 << 20)).round() as u64);
            }
            Limit::CommandSeconds => self.command_time = Some(seconds()?),
            Limit::InactivityTimeout => self.inactivity = Some(lifetime()?),
            Limit::MaxAge => self.max_age = Some(lifetime()?),
        }
        Ok(())
    }

    /// These limits, completed from `default`. A lifetime of zero means none, whatever the default is.
    pub fn or(self, default: Self) -> Self {
        let lifetime = |request: Option<Duration>, default| request.or(default).filter(|time| !time.is_zero());
        Self {
            cpu: self.cpu.or(default.cpu),
            memory: self.memory.or(default.memory),
            processes: self.processes.or(default.processes),
            open_files: self.open_files.or(default.open_files),
            output: self.output.or(default.output),
            output_rate: self.output_rate.or(default.output_rate),
            command_time: self.command_time.or(default.command_time),
            inactivity: lifetime(self.inactivity, default.inactivity),
            max_age: lifetime(self.max_age, default.max_age),
        }
    }

    /// These limits, completed from `most`, if none exceeds `most`; otherwise the one that does, and its maximum.
    pub fn within(self, most: &Self) -> Result<Self, (Limit, f64)> {
        let all = self.or(*most);
        let is_above =
            |limit: &Limit| most.value(*limit).is_some_and(|most| all.value(*limit).is_some_and(|v| v > most));
        match Limit::ALL.into_iter().find(is_above) {
            Some(limit) => Err((limit, most.value(limit).unwrap_or_default())),
            None => Ok(all),
        }
    }

    /// The value in the limit's own unit.
    pub fn value(&self, limit: Limit) -> Option<f64> {
        // Rounded to the value that was given.
        let megabytes = |bytes: u64| (bytes as f64 / f64::from(1 << 20) * 1e6).round() / 1e6;
        match limit {
            Limit::CpuSeconds => self.cpu.map(|d| d.as_secs_f64()),
            Limit::MemoryMb => self.memory.map(megabytes),
            Limit::Processes => self.processes.map(|n| n as f64),
            Limit::OpenFiles => self.open_files.map(|n| n as f64),
            Limit::OutputMb => self.output.map(megabytes),
            Limit::OutputMbPerSecond => self.output_rate.map(megabytes),
            Limit::CommandSeconds => self.command_time.map(|d| d.as_secs_f64()),
            Limit::InactivityTimeout => self.inactivity.map(|d| d.as_secs_f64()),
            Limit::MaxAge => self.max_age.map(|d| d.as_secs_f64()),
        }
    }
}

/// The part of the system that enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcer {
    /// The kernel's cgroup, for all processes together.
    ControlGroup,
    /// The kernel's resource limit, for each process by itself; that of processes for all of a sandbox.
    ResourceLimit,
    /// The session's holder, even while no server runs.
    Holder,
    /// The server, while it runs.
    Server,
}

/// A limit in force.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptLimit {
    /// The kind.
    pub limit: Limit,
    /// The value in the limit's own unit.
    pub value: f64,
    /// The part of the system that enforces it.
    pub enforcer: Enforcer,
}

/// A limit that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LimitHit {
    /// The kind.
    pub limit: Limit,
    /// The command that was running.
    pub command: Option<CommandId>,
    /// When it was first hit.
    pub at: SystemTime,
    /// How often: processes killed, forks refused; 1 for a limit that is reported once.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_limit_precedes_the_default_and_a_lifetime_of_zero_is_unlimited() {
        let default =
            Limits { cpu: Some(Duration::from_secs(5)), max_age: Some(Duration::from_secs(9)), ..Limits::default() };
        let request = Limits { cpu: Some(Duration::from_secs(7)), max_age: Some(Duration::ZERO), ..Limits::default() };
        assert_eq!(request.or(default), Limits { cpu: Some(Duration::from_secs(7)), ..Limits::default() });
        assert_eq!(Limits::default().or(default), default);
    }

    #[test]
    // promise: limit-4
    fn the_operators_maximum_holds_without_a_request_and_refuses_more() {
        let seconds = |n| Some(Duration::from_secs(n));
        let most = Limits { cpu: seconds(5), max_age: seconds(60), ..Limits::default() };
        assert_eq!(Limits::default().within(&most), Ok(most));
        let less = Limits { cpu: seconds(4), processes: Some(9), ..Limits::default() };
        assert_eq!(less.within(&most), Ok(Limits { max_age: seconds(60), ..less }));
        assert_eq!(Limits { cpu: seconds(6), ..most }.within(&most), Err((Limit::CpuSeconds, 5.0)));
        let never = Limits { max_age: seconds(0), ..Limits::default() };
        assert_eq!(never.or(Limits::default()).within(&most), Ok(most), "no end is more than the most");
        assert_eq!(less.within(&Limits::default()), Ok(less));
    }

    #[test]
    fn every_limit_is_set_in_its_own_unit_and_within_its_bounds() {
        let mut limits = Limits::default();
        for limit in Limit::ALL {
            limits.set(limit, 64.0).expect("within all bounds");
            for wrong in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
                assert!(limits.set(limit, wrong).is_err(), "{} {wrong}", limit.name());
            }
        }
        assert!(Limit::ALL.iter().all(|limit| limits.value(*limit) == Some(64.0)), "{limits:?}");
        for given in [0.01, 0.1, 0.2, 1.1, 2.345] {
            limits.set(Limit::OutputMb, given).expect("within its bounds");
            assert_eq!(limits.value(Limit::OutputMb), Some(given));
        }
        assert_eq!((limits.memory, limits.cpu), (Some(64 << 20), Some(Duration::from_secs(64))));
        assert_eq!(limits.set(Limit::Processes, 2.5), Err("2.5 is not a whole number".to_owned()));
        assert_eq!(limits.set(Limit::Processes, 1.0), Err("1 is not between 2 and 4194304".to_owned()));
    }
}
