//! Conversions from outcomes to wire types, field by field, without decisions.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use api::{CommandExecution, Dimensions, Exit, Gap, Journal, ResourceUsage, Screen, TerminalSession, WaitAnswer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use ptyd_core::action;

/// Bytes as base64.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A time as RFC 3339, to the millisecond.
pub(crate) fn time(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{stamp:.3}")
}

/// A path as text, with each invalid UTF-8 byte as `\xNN`, and then also the exact bytes in base64.
pub(crate) fn path(path: &Path) -> (String, Option<String>) {
    let bytes = path.as_os_str().as_bytes();
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (text.to_owned(), None);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    (text, Some(base64(bytes)))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One decimal: sixteen digits of a percentage are of no use.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

pub(crate) fn confinement(tier: action::ConfinementTier) -> api::ConfinementTier {
    match tier {
        action::ConfinementTier::Process => api::ConfinementTier::Process,
        action::ConfinementTier::Sandbox => api::ConfinementTier::Sandbox,
        action::ConfinementTier::Container => api::ConfinementTier::Container,
    }
}

pub(crate) fn to_confinement(tier: api::ConfinementTier) -> action::ConfinementTier {
    match tier {
        api::ConfinementTier::Process => action::ConfinementTier::Process,
        api::ConfinementTier::Sandbox => action::ConfinementTier::Sandbox,
        api::ConfinementTier::Container => action::ConfinementTier::Container,
    }
}

pub(crate) fn session(view: action::SessionView, base_url: &str) -> TerminalSession {
    let (cwd, cwd_base64) = path(&view.cwd);
    let value = |limit| view.limits.iter().find(|kept| kept.limit == limit).map(|kept| kept.value);
    let (inactivity_timeout, max_age) = (value(action::Limit::InactivityTimeout), value(action::Limit::MaxAge));
    TerminalSession {
        connection: api::Connection::of(base_url, view.id.as_str()),
        id: view.id.to_string(),
        name: view.name,
        status: session_status(view.status),
        shell: view.shell,
        pid: view.pid,
        cwd,
        cwd_base64,
        env: view.env.into_iter().map(|(name, value)| (name, value.into())).collect(),
        created_at: time(view.created_at),
        last_activity: time(view.last_activity),
        owner: view.owner,
        dimensions: Dimensions { cols: view.cols, rows: view.rows },
        resource_usage: ResourceUsage {
            cpu: rounded(view.usage.cpu_percent),
            memory: rounded(view.usage.memory_mb),
            processes: view.usage.processes,
        },
        foreground: foreground(view.foreground),
        boundary: boundary(view.boundary),
        current_command: view.current_command.map(|c| c.to_string()),
        journal: Journal { first_offset: view.first_offset, end_offset: view.end_offset },
        exit: view.exit.map(exit),
        trouble: view.trouble.or_else(|| view.is_cwd_gone.then(|| "its directory is gone".to_owned())),
        unreachable: view.is_unreachable,
        python: view.tools.python.map(|p| path(&p).0),
        node: view.tools.node.map(|p| path(&p).0),
        rustc: view.tools.rustc.map(|p| path(&p).0),
        cargo: view.tools.cargo.map(|p| path(&p).0),
        profile: view.profile,
        confinement: view.confinement.map(confinement),
        policy: view.policy.map(|policy| api::SessionPolicy {
            name: policy.name,
            advisory: view.confinement.is_none(),
            unprovable: policy.unprovable.map(|why| why.to_string()),
        }),
        startup_failed: view.startup_failed.into_iter().map(startup_failure).collect(),
        log_file: path(&view.log_file).0,
        inactivity_timeout,
        max_age,
        limits: limits(&view.limits),
        limits_enforced_by: view.limits.iter().map(|kept| (limit(kept.limit), enforcer(kept.enforcer))).collect(),
        limits_hit: view.limits_hit.iter().map(limit_hit).collect(),
        driver: view.driver.as_deref().map(driver),
        client_name: view.client_name,
        viewers: view.viewers,
    }
}

pub(crate) fn driver(driver: &action::Driver) -> api::Driver {
    let action::Driver { name, client, since, until } = driver;
    api::Driver { name: name.clone(), client: client.clone(), since: time(*since), until: time(*until) }
}

pub(crate) fn take_over_end(end: action::TakeOverEnd) -> api::TakeOverEnd {
    match end {
        action::TakeOverEnd::Returned => api::TakeOverEnd::Returned,
        action::TakeOverEnd::Forced => api::TakeOverEnd::Forced,
        action::TakeOverEnd::TimedOut => api::TakeOverEnd::TimedOut,
        action::TakeOverEnd::Disconnected => api::TakeOverEnd::Disconnected,
    }
}

fn startup_failure(failure: action::StartupFailure) -> api::StartupFailure {
    api::StartupFailure { command: failure.command.into(), reason: failure.reason.into() }
}

pub(crate) fn environment(view: action::EnvironmentView) -> api::SessionEnvironment {
    let text = |bytes: &[u8]| path(Path::new(std::ffi::OsStr::from_bytes(bytes))).0;
    let toolchain = |(name, found): (&str, Option<&std::path::PathBuf>)| Some((name.to_owned(), path(found?).0));
    api::SessionEnvironment {
        profile: view.profile,
        user: view.user,
        shell: path(&view.shell).0,
        login: view.is_login,
        umask: format!("{:03o}", view.umask),
        variables: view.variables.iter().map(|(name, value)| (text(name), text(value))).collect(),
        toolchains: view.tools.named().into_iter().filter_map(toolchain).collect(),
    }
}

pub(crate) fn exit(exit: action::SessionExit) -> Exit {
    Exit { exit_code: exit.code, signal: exit.signal.map(action::signal_name), reason: exit.reason, at: time(exit.at) }
}

pub(crate) fn limit(limit: action::Limit) -> api::Limit {
    match limit {
        action::Limit::CpuSeconds => api::Limit::CpuSeconds,
        action::Limit::MemoryMb => api::Limit::MemoryMb,
        action::Limit::Processes => api::Limit::Processes,
        action::Limit::OpenFiles => api::Limit::OpenFiles,
        action::Limit::OutputMb => api::Limit::OutputMb,
        action::Limit::OutputMbPerSecond => api::Limit::OutputMbPerSecond,
        action::Limit::CommandSeconds => api::Limit::CommandSeconds,
        action::Limit::InactivityTimeout => api::Limit::InactivityTimeout,
        action::Limit::MaxAge => api::Limit::MaxAge,
    }
}

/// The values of the limits that are fields of `limits`.
fn limits(kept: &[action::KeptLimit]) -> api::Limits {
    let value = |limit| kept.iter().find(|kept| kept.limit == limit).map(|kept| kept.value);
    let count = |limit| value(limit).map(|value| value as u64);
    api::Limits {
        cpu_seconds: value(action::Limit::CpuSeconds),
        memory_mb: count(action::Limit::MemoryMb),
        processes: count(action::Limit::Processes),
        open_files: count(action::Limit::OpenFiles),
        output_mb: value(action::Limit::OutputMb),
        output_mb_per_second: value(action::Limit::OutputMbPerSecond),
        command_seconds: value(action::Limit::CommandSeconds),
    }
}

fn enforcer(enforcer: action::Enforcer) -> api::Enforcer {
    match enforcer {
        action::Enforcer::ControlGroup => api::Enforcer::Cgroup,
        action::Enforcer::ResourceLimit => api::Enforcer::Rlimit,
        action::Enforcer::Holder => api::Enforcer::Holder,
        action::Enforcer::Server => api::Enforcer::Server,
    }
}

fn limit_hit(hit: &action::LimitHit) -> api::LimitHit {
    let command_id = hit.command.map(|id| id.to_string());
    api::LimitHit { limit: limit(hit.limit), command_id, at: time(hit.at), count: hit.count }
}

/// A command without output.
pub(crate) fn command(view: action::CommandView) -> CommandExecution {
    let (cwd, cwd_base64) = view.cwd.as_deref().map(path).map_or((None, None), |(text, exact)| (Some(text), exact));
    CommandExecution {
        id: view.id.to_string(),
        session_id: view.session.to_string(),
        command: view.command,
        status: command_status(view.status),
        started_at: time(view.started_at),
        completed_at: view.completed_at.map(time),
        exit_code: view.exit_code,
        output_size: view.output_size,
        error: view.error,
        on_timeout: None,
        signal: view.signal.map(action::signal_name),
        pipestatus: view.pipestatus,
        start_offset: view.start_offset,
        end_offset: view.end_offset,
        cwd,
        cwd_base64,
        duration_ms: view.lasted.map(millis),
        boundary: boundary(view.boundary),
        limits_hit: view.limits_hit.into_iter().map(limit).collect(),
        background: None,
        output: None,
        output_base64: None,
        next_offset: None,
        truncated: view.output_size > 0,
        omitted: None,
        escaped: 0,
        crlf_lines: 0,
        unfinished: 0,
        ended_by: None,
        waited_ms: None,
        matched: None,
        foreground: None,
        screen: None,
    }
}

/// A command with its output and the result of the wait; `None` if the report is about no command.
pub(crate) fn execution(report: action::Report) -> Option<CommandExecution> {
    let mut execution = command(report.command?);
    execution.background = report.background.map(|background| text(*background));
    execution.truncated = report.output.omitted.is_some();
    execution.omitted = report.output.omitted.as_ref().map(omitted);
    execution.escaped = report.output.escaped;
    execution.crlf_lines = report.output.crlf_lines;
    execution.unfinished = report.output.unseen.unfinished;
    execution.output = Some(text(report.output));
    execution.ended_by = Some(ended_by(report.ended_by));
    execution.waited_ms = Some(millis(report.waited));
    execution.matched = report.matched.map(Into::into);
    execution.on_timeout = report.time_limit.map(|ending| match ending {
        action::Ending::Interrupt => api::OnTimeout::Interrupt,
        action::Ending::Kill => api::OnTimeout::Kill,
    });
    execution.foreground = Some(foreground(report.session.foreground));
    execution.screen = report.screen.map(screen);
    Some(execution)
}

pub(crate) fn wait(report: action::Report) -> WaitAnswer {
    WaitAnswer {
        ended_by: ended_by(report.ended_by),
        waited_ms: millis(report.waited),
        status: session_status(report.session.status),
        foreground: foreground(report.session.foreground),
        accepted_bytes: report.accepted_bytes,
        ignored_by: report.still_ignored_by().map(str::to_owned),
        from_offset: report.output.from,
        next_offset: report.output.to,
        truncated: report.output.omitted.is_some(),
        omitted: report.output.omitted.as_ref().map(omitted),
        escaped: report.output.escaped,
        crlf_lines: report.output.crlf_lines,
        unfinished: report.output.unseen.unfinished,
        output: text(report.output),
        matched: report.matched.map(Into::into),
        command: report.command.map(command),
        line_exit_code: report.line_exit,
        screen: report.screen.map(screen),
    }
}

pub(crate) fn output(view: action::OutputView) -> api::Output {
    let (form, is_text) = match view.view {
        action::View::Text => (api::OutputView::Text, true),
        action::View::Raw => (api::OutputView::Raw, false),
        action::View::Stream => (api::OutputView::Stream, false),
    };
    api::Output {
        view: form,
        data_base64: (!is_text).then(|| base64(&view.bytes)),
        from_offset: view.from,
        next_offset: view.next,
        first_offset: view.first,
        end_offset: view.end,
        gap: view.gap.map(|(from, to)| Gap { from, to }),
        omitted: view.text.omitted.as_ref().map(omitted),
        escaped: view.text.escaped,
        crlf_lines: view.text.crlf_lines,
        unfinished: view.text.unseen.unfinished,
        text: is_text.then(|| text(view.text)),
        is_final: view.is_final,
    }
}

pub(crate) fn screen(view: action::ScreenView) -> Screen {
    let span = |span: &action::Span| api::Span { row: span.row, col: span.col, text: view.text_of(span).to_owned() };
    Screen {
        inverse: view.inverse.iter().map(span).collect(),
        rows: view.rows.into_iter().map(Into::into).collect(),
        cursor: api::Cursor { row: view.cursor_row, col: view.cursor_col, visible: view.cursor_visible },
        title: view.title.into(),
        cols: view.cols,
        changed_rows: view.changed,
        alternate: view.is_alternate,
        ansi_base64: base64(&view.ansi),
        offset: view.at,
    }
}

/// Head, a line that says what is missing and how to read it, tail.
fn text(view: action::TextView) -> String {
    let Some(omitted) = view.omitted else { return view.head.into() };
    let mut all = String::from(view.head);
    if !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    let (bytes, kept) = (omitted.bytes(), omitted.kept());
    let what = match omitted.freed {
        0 => format!("lines {}–{}", omitted.first_line, omitted.last_line),
        _ if kept.is_empty() => "no longer kept".to_owned(),
        freed => format!("the first {freed} are no longer kept"),
    };
    let how = match kept.end - kept.start {
        0 => String::new(),
        length => format!("; GET …/output?since=o:{}&maxBytes={length}", kept.start),
    };
    all.push_str(&format!("[… {bytes} bytes omitted: {what}{how}]\n"));
    all.push_str(&view.tail);
    all
}

fn omitted(view: &action::Omitted) -> api::Omitted {
    api::Omitted {
        bytes: view.bytes(),
        freed: view.freed,
        first_line: view.first_line,
        last_line: view.last_line,
        from_offset: view.from,
        to_offset: view.to,
    }
}

pub(crate) fn session_status(status: action::SessionStatus) -> api::SessionStatus {
    match status {
        action::SessionStatus::Creating => api::SessionStatus::Creating,
        action::SessionStatus::Running => api::SessionStatus::Running,
        action::SessionStatus::Terminated => api::SessionStatus::Terminated,
    }
}

pub(crate) fn command_status(status: action::CommandStatus) -> api::CommandStatus {
    match status {
        action::CommandStatus::Running => api::CommandStatus::Running,
        action::CommandStatus::Completed => api::CommandStatus::Completed,
        action::CommandStatus::Failed => api::CommandStatus::Failed,
        action::CommandStatus::Terminated => api::CommandStatus::Terminated,
    }
}

pub(crate) fn foreground(foreground: action::Foreground) -> api::Foreground {
    match foreground {
        action::Foreground::Idle => api::Foreground::Idle,
        action::Foreground::Running => api::Foreground::Running,
        action::Foreground::InputWanted => api::Foreground::InputWanted,
        action::Foreground::PasswordWanted => api::Foreground::PasswordWanted,
        action::Foreground::Fullscreen => api::Foreground::Fullscreen,
        action::Foreground::Stopped => api::Foreground::Stopped,
    }
}

fn boundary(boundary: action::Boundary) -> api::Boundary {
    match boundary {
        action::Boundary::Attested => api::Boundary::Attested,
        action::Boundary::Nonce => api::Boundary::Nonce,
        action::Boundary::Heuristic => api::Boundary::Heuristic,
    }
}

fn ended_by(ended: action::EndedBy) -> api::EndedBy {
    match ended {
        action::EndedBy::Accepted => api::EndedBy::Accepted,
        action::EndedBy::Ended => api::EndedBy::Ended,
        // Only a model's wait ends by it.
        action::EndedBy::Matched | action::EndedBy::Listens => api::EndedBy::Matched,
        action::EndedBy::InputWanted => api::EndedBy::InputWanted,
        action::EndedBy::Stopped => api::EndedBy::Stopped,
        action::EndedBy::Quiet => api::EndedBy::Quiet,
        action::EndedBy::TimedOut => api::EndedBy::TimedOut,
        action::EndedBy::Exited => api::EndedBy::Exited,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf_8_is_shown_escaped_and_also_returned_exactly() {
        assert_eq!(path(Path::new("/tmp/é")), ("/tmp/é".to_owned(), None));
        let odd = Path::new(OsStr::from_bytes(b"/a\xff\xfeb"));
        assert_eq!(path(odd), ("/a\\xff\\xfeb".to_owned(), Some("L2H//mI=".to_owned())));
    }

    #[test]
    fn a_time_is_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(time(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_050)), "2023-11-14T22:13:20.050Z");
    }

    #[test]
    fn a_line_in_its_place_says_that_text_is_omitted() {
        let omitted = action::Omitted { freed: 0, first_line: 121, last_line: 1_904, from: 900, to: 49_113 };
        let view =
            action::TextView { head: "a".into(), tail: "z\n".into(), omitted: Some(omitted), ..Default::default() };
        assert_eq!(
            text(view),
            "a\n[… 48213 bytes omitted: lines 121–1904; GET …/output?since=o:900&maxBytes=48213]\nz\n"
        );
    }
}
