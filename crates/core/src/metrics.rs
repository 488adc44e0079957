//! Metrics for the operator, in Prometheus text format; `serve/metrics_page.rs` serves them.
//!
//! No label names a session, an owner or a command, so the number of series does not grow with use. Any token may read
//! them, so that a scraper needs no further permission. Most values are looked up on request; of the output path only
//! whole chunks are counted.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::action::{CommandStatus, EndedBy, ServerEventKind};

/// Upper bounds in seconds: most answers take less than a millisecond, and waits of up to a minute are common.
const BUCKETS: [f64; 11] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 20.0, 60.0];
/// The same for commands, many of which build or test for minutes.
const COMMAND_BUCKETS: [f64; 11] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1_800.0, 7_200.0];

type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, String); 2];

/// The counters of one server.
pub struct Metrics {
    registry: Registry,
    looked_up: LookedUp,
    created: Counter,
    ended: Counter,
    adopted: Family<One, Counter>,
    commands: Family<One, Counter>,
    command_seconds: Histogram,
    waits: Family<One, Counter>,
    wait_seconds: Histogram,
    attention: Counter,
    limits_hit: Family<One, Counter>,
    refusals: Family<One, Counter>,
    output: Counter,
    dropped: Counter,
    answers: Family<Two, Histogram, fn() -> Histogram>,
    directory_calls: Family<[(&'static str, &'static str); 2], Counter>,
}

/// The values that are looked up for each page.
#[derive(Default)]
struct LookedUp {
    build: Family<[(&'static str, String); 1], Gauge>,
    sessions: Family<One, Gauge>,
    approvals: Gauge,
    sockets: Gauge,
    free: Gauge,
    memory: Gauge,
    descriptors: Gauge,
    processor: Counter<f64, AtomicU64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl LookedUp {
    fn register(&self, registry: &mut Registry) {
        registry.register("ptyd_build_info", "1, with the version in its label", self.build.clone());
        registry.register("ptyd_sessions", "Sessions by state", self.sessions.clone());
        registry.register("ptyd_approvals_waiting", "Requests that wait for a person", self.approvals.clone());
        registry.register("ptyd_websockets", "WebSockets that are open", self.sockets.clone());
        let disk = "Free space on the state directory's disk";
        registry.register_with_unit("ptyd_disk_free", disk, Unit::Bytes, self.free.clone());
        registry.register_with_unit("process_resident_memory", "Memory", Unit::Bytes, self.memory.clone());
        registry.register("process_open_fds", "Open descriptors", self.descriptors.clone());
        registry.register_with_unit("process_cpu", "Time on processors", Unit::Seconds, self.processor.clone());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let new = Self {
            registry: Registry::default(),
            looked_up: LookedUp::default(),
            created: Counter::default(),
            ended: Counter::default(),
            adopted: Family::default(),
            commands: Family::default(),
            command_seconds: Histogram::new(COMMAND_BUCKETS),
            waits: Family::default(),
            wait_seconds: Histogram::new(BUCKETS),
            attention: Counter::default(),
            limits_hit: Family::default(),
            refusals: Family::default(),
            output: Counter::default(),
            dropped: Counter::default(),
            answers: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            directory_calls: Family::default(),
        };
        new.looked_up.register(&mut registry);
        registry.register("ptyd_sessions_created", "Sessions that were started", new.created.clone());
        registry.register("ptyd_sessions_ended", "Sessions that have ended", new.ended.clone());
        registry.register("ptyd_adoptions", "Sessions of an earlier server, by result", new.adopted.clone());
        registry.register("ptyd_commands", "Commands that have ended, by outcome", new.commands.clone());
        let lasted = "Time from the acceptance of a command to its end";
        registry.register_with_unit("ptyd_command", lasted, Unit::Seconds, new.command_seconds.clone());
        registry.register("ptyd_waits", "Ended waits, by the condition that ended them", new.waits.clone());
        let waited = "Time that requests with a wait took, over every interface";
        registry.register_with_unit("ptyd_wait", waited, Unit::Seconds, new.wait_seconds.clone());
        registry.register("ptyd_attention", "Programs that wanted input or a password", new.attention.clone());
        registry.register("ptyd_limits_hit", "Limits that sessions ran into", new.limits_hit.clone());
        registry.register("ptyd_refusals", "Actions not performed, by error code", new.refusals.clone());
        registry.register_with_unit("ptyd_output", "Output that was read", Unit::Bytes, new.output.clone());
        let dropped = "Reports that did not come from the session's shell";
        registry.register("ptyd_records_dropped", dropped, new.dropped.clone());
        let answered = "Time to the head of an answer, including requested waits";
        registry.register_with_unit("ptyd_http_answer", answered, Unit::Seconds, new.answers.clone());
        let directory = "Calls to the directory of nodes, by purpose and result";
        registry.register("ptyd_directory_calls", directory, new.directory_calls.clone());
        // A rate needs the zero before the first call.
        for purpose in ["beat", "create", "list"] {
            for result in ["done", "failed"] {
                let _ = new.directory_calls.get_or_create(&[("purpose", purpose), ("result", result)]);
            }
        }
        Self { registry, ..new }
    }
}

impl Metrics {
    /// Counts an event of a session.
    pub(crate) fn happened(&self, what: &ServerEventKind) {
        match what {
            ServerEventKind::Created => drop(self.created.inc()),
            ServerEventKind::Terminated(_) => drop(self.ended.inc()),
            ServerEventKind::Completed(command) => {
                let outcome = match (command.status, command.exit_code) {
                    (CommandStatus::Completed, Some(0)) => "zero",
                    (CommandStatus::Completed, None) | (CommandStatus::Failed, _) => "unknown",
                    (CommandStatus::Completed | CommandStatus::Running, _) => "nonzero",
                    (CommandStatus::Terminated, _) => "terminated",
                };
                self.commands.get_or_create(&[("outcome", outcome)]).inc();
                if let Some(lasted) = command.lasted {
                    self.command_seconds.observe(lasted.as_secs_f64());
                }
            }
            ServerEventKind::Wanted(_) => drop(self.attention.inc()),
            ServerEventKind::LimitHit(hit) => drop(self.limits_hit.get_or_create(&[("limit", hit.limit.name())]).inc()),
            ServerEventKind::Started(_)
            | ServerEventKind::Taken(_)
            | ServerEventKind::Returned(..)
            | ServerEventKind::Approval { .. } => {}
        }
    }

    /// Counts a finished wait.
    pub(crate) fn waited(&self, ended_by: EndedBy) {
        let how = match ended_by {
            EndedBy::Accepted => "accepted",
            EndedBy::Ended => "ended",
            EndedBy::Matched => "matched",
            EndedBy::Listens => "listens",
            EndedBy::InputWanted => "input_wanted",
            EndedBy::Stopped => "stopped",
            EndedBy::Quiet => "quiet",
            EndedBy::TimedOut => "timed_out",
            EndedBy::Exited => "exited",
        };
        self.waits.get_or_create(&[("ended_by", how)]).inc();
    }

    /// Counts the time of a request that asked to wait.
    pub(crate) fn waited_for(&self, took: Duration) {
        self.wait_seconds.observe(took.as_secs_f64());
    }

    /// Counts an action that was refused or failed.
    pub(crate) fn refused(&self, code: &'static str) {
        self.refusals.get_or_create(&[("code", code)]).inc();
    }

    /// Counts a call of the directory of nodes.
    pub(crate) fn called_directory(&self, purpose: &'static str, is_done: bool) {
        let result = if is_done { "done" } else { "failed" };
        self.directory_calls.get_or_create(&[("purpose", purpose), ("result", result)]).inc();
    }

    /// Counts a chunk of output.
    pub(crate) fn read(&self, bytes: usize) {
        self.output.inc_by(bytes as u64);
    }

    /// Counts reports dropped because they were not the shell's own.
    pub(crate) fn dropped(&self, records: u64) {
        self.dropped.inc_by(records);
    }

    /// Counts an adoption.
    pub(crate) fn adopted(&self, is_done: bool) {
        self.adopted.get_or_create(&[("result", if is_done { "done" } else { "failed" })]).inc();
    }

    /// Counts an answer, by its route template and status class, with the time to its head.
    pub fn answered(&self, route: String, class: String, took: Duration) {
        self.answers.get_or_create(&[("route", route), ("status", class)]).observe(took.as_secs_f64());
    }

    /// Sets the number of sessions by state; a state that is not named is left out.
    pub fn set_sessions(&self, counts: &[(&'static str, usize)]) {
        self.looked_up.sessions.clear();
        for (state, count) in counts {
            self.looked_up.sessions.get_or_create(&[("state", state)]).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    /// Sets the version of the server.
    pub fn set_build(&self, version: &str) {
        self.looked_up.build.get_or_create(&[("version", version.to_owned())]).set(1);
    }

    /// Sets the number of requests that wait for a person.
    pub fn set_approvals(&self, count: usize) {
        self.looked_up.approvals.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the number of open sockets.
    pub fn set_sockets(&self, count: usize) {
        self.looked_up.sockets.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the free disk space.
    pub fn set_free(&self, bytes: u64) {
        self.looked_up.free.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Reads what this process uses.
    pub fn look_at_process(&self) {
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<i64>().ok()).unwrap_or(0);
        self.looked_up.memory.set(pages * i64::try_from(rustix::param::page_size()).unwrap_or(4_096));
        self.looked_up.descriptors.set(std::fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as i64));
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
        self.looked_up.processor.inner().store(seconds.to_bits(), std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: rest-10
    fn counts_are_in_the_text_that_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.happened(&ServerEventKind::Created);
        metrics.set_build("1.2");
        metrics.waited(EndedBy::Matched);
        metrics.waited_for(Duration::from_millis(20));
        metrics.refused("limit_reached");
        metrics.called_directory("list", false);
        metrics.read(4_096);
        metrics.answered("/x".to_owned(), "2xx".to_owned(), Duration::from_millis(2));
        metrics.look_at_process();
        let text = metrics.text();
        for line in [
            "ptyd_sessions_created_total 1",
            "ptyd_build_info{version=\"1.2\"} 1",
            "ptyd_waits_total{ended_by=\"matched\"} 1",
            "ptyd_wait_seconds_bucket{le=\"0.05\"} 1",
            "ptyd_refusals_total{code=\"limit_reached\"} 1",
            "ptyd_directory_calls_total{purpose=\"list\",result=\"failed\"} 1",
            "ptyd_output_bytes_total 4096",
            "ptyd_http_answer_seconds_bucket{le=\"0.0025\",route=\"/x\",status=\"2xx\"} 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("process_open_fds 0\n") && !text.contains("process_resident_memory_bytes 0\n"));
    }
}
