//! The events of a session as the types of the WebSocket. Their parts are those of REST; docs/websocket.md lists them.

use api::{Dimensions, SocketEvent};

use crate::http::convert;
use ptyd_core::action::{SessionEvent, SessionView};
use ptyd_core::limits;

/// The first message: the state of the session and of the connection.
pub(super) fn attached(view: &SessionView, at: u64, client: &str, may_write: bool) -> SocketEvent {
    SocketEvent::Control {
        session: view.id.to_string(),
        status: Some(convert::session_status(view.status)),
        client: client.to_owned(),
        may_write,
        offset: at,
        first_offset: view.first_offset,
        end_offset: view.end_offset,
        dimensions: Dimensions { cols: view.cols, rows: view.rows },
        foreground: convert::foreground(view.foreground),
        current_command: view.current_command.map(|id| id.to_string()),
        driver: view.driver.as_deref().map(convert::driver),
        window_bytes: Some(limits::WINDOW_BYTES),
    }
}

pub(super) fn of(event: &SessionEvent) -> SocketEvent {
    match event {
        SessionEvent::Started(view) => {
            SocketEvent::CommandStarted { command: convert::command((**view).clone()).into() }
        }
        SessionEvent::Completed(view) => {
            SocketEvent::CommandCompleted { command: convert::command((**view).clone()).into() }
        }
        SessionEvent::Ready => SocketEvent::Ready,
        SessionEvent::Foreground(now) => SocketEvent::Foreground { foreground: convert::foreground(*now) },
        SessionEvent::Resized { cols, rows } => {
            SocketEvent::Resize { dimensions: Dimensions { cols: *cols, rows: *rows } }
        }
        SessionEvent::Exited(how) => SocketEvent::Exit { exit: how.clone().map(convert::exit) },
        SessionEvent::LimitHit(hit) => {
            SocketEvent::Limit { limit: convert::limit(hit.limit), command_id: hit.command.map(|id| id.to_string()) }
        }
        SessionEvent::Taken(driver) => SocketEvent::KeyboardTaken { driver: convert::driver(driver) },
        SessionEvent::Returned(driver, end) => {
            SocketEvent::KeyboardReturned { driver: convert::driver(driver), ended_by: convert::take_over_end(*end) }
        }
        SessionEvent::Missed(events) => SocketEvent::Missed { events: *events },
    }
}
