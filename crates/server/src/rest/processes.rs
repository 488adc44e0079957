//! `/terminals/{sessionId}/processes` and `/signals`: lists the processes of a session and the signals sent in it.

use axum::Json;
use axum::extract::{Extension, State};

use super::extract::Session;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Outcome, ProcessState, ProcessView, Receiver, SignalTarget, SignalView, signal_name};
use ptyd_core::principal::Principal;

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
) -> Result<Json<api::ProcessList>, ProblemResponse> {
    match rest.act(&principal, Action::Processes(session)).await? {
        Outcome::Processes(all) => Ok(Json(api::ProcessList { processes: all.into_iter().map(process).collect() })),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn signals(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
) -> Result<Json<api::SignalList>, ProblemResponse> {
    match rest.act(&principal, Action::Signals(session)).await? {
        Outcome::Signals(all) => Ok(Json(api::SignalList { signals: all.into_iter().map(signal).collect() })),
        other => Err(unexpected(&other)),
    }
}

fn process(view: ProcessView) -> api::Process {
    api::Process {
        pid: view.pid,
        sandbox_pid: view.sandbox_pid,
        parent_pid: view.parent,
        process_group: view.group,
        session: view.session,
        name: view.name.into(),
        command_line: view.command_line.into(),
        state: state(view.state),
        cpu: convert::rounded(view.cpu_percent),
        cpu_seconds: view.cpu_time.as_secs_f64(),
        memory: convert::rounded(view.memory_mb),
        started_at: convert::time(view.started_at),
        is_foreground: view.is_foreground,
    }
}

fn signal(view: SignalView) -> api::SentSignal {
    let receiver =
        |receiver: Receiver| api::Receiver { pid: receiver.pid, name: receiver.name, state: state(receiver.state) };
    api::SentSignal {
        signal: signal_name(view.signo),
        target: match view.target {
            SignalTarget::Foreground => api::NumberOrName::Name("foreground".to_owned()),
            SignalTarget::Session => api::NumberOrName::Name("session".to_owned()),
            SignalTarget::Process(pid) => api::NumberOrName::Number(pid),
        },
        at: convert::time(view.at),
        error: view.error,
        receivers: view.receivers.into_iter().map(receiver).collect(),
    }
}

fn state(state: ProcessState) -> api::ProcessState {
    match state {
        ProcessState::Running => api::ProcessState::Running,
        ProcessState::Sleeping => api::ProcessState::Sleeping,
        ProcessState::Blocked => api::ProcessState::Blocked,
        ProcessState::Stopped => api::ProcessState::Stopped,
        ProcessState::Ended => api::ProcessState::Ended,
    }
}
