//! Plans how a session's limits are enforced: by a cgroup if possible, by resource limits otherwise.
//!
//! A limit that cannot be enforced here is refused when the session is requested, never ignored.

use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use wire::{HardLimits, Namespaces, Spec};

use crate::action::{ActionError, Enforcer, KeptLimit, Limit, Limits};
use crate::host::{Bounds, ControlGroup, Controller, Host};
use crate::ids::SessionId;
use crate::limits::SANDBOX_TASKS_MAX;

/// Refuses limits that cannot be enforced here.
pub(super) fn can_be_kept(host: &dyn Host, limits: &Limits, namespaces: Namespaces) -> Result<(), ActionError> {
    let by_namespace = namespaces == Namespaces::Own && host.bounds_tasks_of_namespaces();
    if limits.processes.is_none() || host.has_controller(Controller::Pids) || by_namespace {
        return Ok(());
    }
    let problem = "cannot be enforced here: it needs a control group that the server may create, or an ordinary \
        user's sandbox (docs/operations.md); omit it";
    Err(ActionError::Invalid { field: "limits.processes", problem: problem.to_owned() })
}

/// Refuses limits beyond the operator's maximum.
pub(super) fn within(limits: Limits, most: &Limits) -> Result<Limits, ActionError> {
    limits.within(most).map_err(|(limit, most)| {
        let problem = format!("must be {most} or less; this server's operator allows no more");
        ActionError::Invalid { field: limit.field(), problem }
    })
}

/// Writes into the spec how `limits` are enforced.
pub(super) fn plan(host: &dyn Host, spec: &mut Spec, id: &SessionId, limits: &Limits) -> Result<(), ActionError> {
    let namespaces = spec.confinement.as_ref().map(|rules| rules.namespaces).unwrap_or_default();
    let by_group = limits.processes.is_some() && host.has_controller(Controller::Pids);
    let tasks = if namespaces == Namespaces::Own && !by_group && host.bounds_tasks_of_namespaces() {
        // Its first process is ours.
        limits.processes.map_or(SANDBOX_TASKS_MAX, |most| most + 1)
    } else {
        0
    };
    spec.groups = Vec::new();
    spec.hard_limits = HardLimits { open_files: limits.open_files.unwrap_or(0), address_space: 0, tasks };
    spec.output_rate = limits.output_rate.unwrap_or(0);
    if limits.memory.is_none() && limits.processes.is_none() && limits.cpu.is_none() {
        return Ok(());
    }
    can_be_kept(host, limits, namespaces)?;
    if !host.has_controller(Controller::Memory) {
        spec.hard_limits.address_space = limits.memory.unwrap_or(0);
    }
    let entrances = host.group_entrances(id.as_str());
    spec.groups = entrances.into_iter().map(|entrance| entrance.into_os_string().into_vec()).collect();
    Ok(())
}

/// Makes the cgroup named in the spec.
pub(super) fn make_group(host: &dyn Host, spec: &Spec, id: &SessionId, limits: &Limits) -> io::Result<()> {
    if spec.groups.is_empty() {
        return Ok(());
    }
    let processes = limits.processes.filter(|_| spec.hard_limits.tasks == 0);
    host.make_group(id.as_str(), Bounds { memory: limits.memory, processes })
}

/// The cgroup of a running session, whichever server made it.
pub(super) fn group(host: &dyn Host, spec: &Spec) -> Option<Box<dyn ControlGroup>> {
    let path = |entrance: &Vec<u8>| PathBuf::from(std::ffi::OsStr::from_bytes(entrance));
    let entrances: Vec<PathBuf> = spec.groups.iter().map(path).collect();
    (!entrances.is_empty()).then(|| host.group(&entrances))
}

/// Removes the cgroup; one whose processes were meant to stay remains.
pub(super) fn remove_group(host: &dyn Host, spec: &Spec) {
    if let Some(group) = group(host, spec) {
        group.remove();
    }
}

/// The limits in force, and what enforces each.
pub(super) fn kept(spec: &Spec, limits: &Limits) -> Vec<KeptLimit> {
    let enforcer = |limit| match limit {
        Limit::Processes if spec.hard_limits.tasks == 0 => Enforcer::ControlGroup,
        Limit::MemoryMb if spec.hard_limits.address_space == 0 => Enforcer::ControlGroup,
        Limit::Processes | Limit::MemoryMb | Limit::OpenFiles => Enforcer::ResourceLimit,
        Limit::OutputMbPerSecond => Enforcer::Holder,
        Limit::CpuSeconds | Limit::OutputMb | Limit::CommandSeconds | Limit::InactivityTimeout | Limit::MaxAge => {
            Enforcer::Server
        }
    };
    let kept = |limit| limits.value(limit).map(|value| KeptLimit { limit, value, enforcer: enforcer(limit) });
    Limit::ALL.into_iter().filter_map(kept).collect()
}
