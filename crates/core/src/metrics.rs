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

type One = [(&'static str, &'static str); 1];
type Answered = [(&'static str, String); 2];

/// The counters of one server.
pub struct Metrics {
    registry: Registry,
    sessions: Family<One, Gauge>,
    created: Counter,
    ended: Counter,
    adopted: Family<One, Counter>,
    commands: Family<One, Counter>,
    waits: Family<One, Counter>,
    attention: Counter,
    limits_hit: Family<One, Counter>,
    output: Counter,
    dropped: Counter,
    answers: Family<Answered, Histogram, fn() -> Histogram>,
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

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let new = Self {
            registry: Registry::default(),
            sessions: Family::default(),
            created: Counter::default(),
            ended: Counter::default(),
            adopted: Family::default(),
            commands: Family::default(),
            waits: Family::default(),
            attention: Counter::default(),
            limits_hit: Family::default(),
            output: Counter::default(),
            dropped: Counter::default(),
            answers: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            sockets: Gauge::default(),
            free: Gauge::default(),
            memory: Gauge::default(),
            descriptors: Gauge::default(),
            processor: Counter::default(),
        };
        registry.register("ptyd_sessions", "Sessions by state", new.sessions.clone());
        registry.register("ptyd_sessions_created", "Sessions that were started", new.created.clone());
        registry.register("ptyd_sessions_ended", "Sessions that have ended", new.ended.clone());
        registry.register("ptyd_adoptions", "Sessions of an earlier server, by result", new.adopted.clone());
        registry.register("ptyd_commands", "Commands that have ended, by outcome", new.commands.clone());
        registry.register("ptyd_waits", "Ended waits, by the condition that ended them", new.waits.clone());
        registry.register("ptyd_attention", "Programs that wanted input or a password", new.attention.clone());
        registry.register("ptyd_limits_hit", "Limits that sessions ran into", new.limits_hit.clone());
        registry.register_with_unit("ptyd_output", "Output that was read", Unit::Bytes, new.output.clone());
        registry.register(
            "ptyd_records_dropped",
            "Reports that did not come from the session's shell",
            new.dropped.clone(),
        );
        registry.register_with_unit(
            "ptyd_http_answer",
            "Time to the head of an answer, including requested waits",
            Unit::Seconds,
            new.answers.clone(),
        );
        registry.register("ptyd_websockets", "WebSockets that are open", new.sockets.clone());
        registry.register_with_unit(
            "ptyd_disk_free",
            "Free space on the state directory's disk",
            Unit::Bytes,
            new.free.clone(),
        );
        registry.register_with_unit("process_resident_memory", "Memory", Unit::Bytes, new.memory.clone());
        registry.register("process_open_fds", "Open descriptors", new.descriptors.clone());
        registry.register_with_unit("process_cpu", "Time on processors", Unit::Seconds, new.processor.clone());
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
        self.sessions.clear();
        for (state, count) in counts {
            self.sessions.get_or_create(&[("state", state)]).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    /// Sets the number of open sockets.
    pub fn set_sockets(&self, count: usize) {
        self.sockets.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the free disk space.
    pub fn set_free(&self, bytes: u64) {
        self.free.set(i64::try_from(bytes).unwrap_or(i64::MAX));
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
        self.memory.set(pages * i64::try_from(rustix::param::page_size()).unwrap_or(4_096));
        self.descriptors.set(std::fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as i64));
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
        self.processor.inner().store(seconds.to_bits(), std::sync::atomic::Ordering::Relaxed);
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
        metrics.waited(EndedBy::Matched);
        metrics.read(4_096);
        metrics.answered("/x".to_owned(), "2xx".to_owned(), Duration::from_millis(2));
        metrics.look_at_process();
        let text = metrics.text();
        for line in [
            "ptyd_sessions_created_total 1",
            "ptyd_waits_total{ended_by=\"matched\"} 1",
            "ptyd_output_bytes_total 4096",
            "ptyd_http_answer_seconds_bucket{le=\"0.0025\",route=\"/x\",status=\"2xx\"} 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("process_open_fds 0\n") && !text.contains("process_resident_memory_bytes 0\n"));
    }
}
