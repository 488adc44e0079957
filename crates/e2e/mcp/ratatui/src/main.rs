//! A list to pick from, drawn by ratatui: it takes the whole screen, the mouse and pasted text, and its exit code is
//! the row that was picked. It shows the last key with its modifiers, or what was pasted, so that tests see what arrived.

use ratatui::crossterm::event::{self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use ratatui::crossterm::event::{
    EnableMouseCapture, Event, KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::{List, ListState, Paragraph};
use std::io::{Result, stdout};
use std::process::ExitCode;

const NAMES: [&str; 3] = ["red", "green", "blue"];

fn main() -> Result<ExitCode> {
    let mut terminal = ratatui::init();
    execute!(stdout(), EnableBracketedPaste, EnableMouseCapture)?;
    let mut state = ListState::default().with_selected(Some(0));
    let mut last = String::new();
    let picked = loop {
        terminal.draw(|frame| {
            let [top, bottom] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
            frame.render_stateful_widget(List::new(NAMES).highlight_symbol("> "), top, &mut state);
            frame.render_widget(Paragraph::new(format!("last: {last}")), bottom);
        })?;
        let KeyEvent { code, modifiers, .. } = match event::read()? {
            Event::Key(key) => key,
            Event::Paste(text) => {
                last = format!("{text:?}");
                continue;
            }
            Event::Mouse(MouseEvent { kind: MouseEventKind::Down(_), row, .. }) => {
                state.select(Some(row.into()));
                continue;
            }
            _ => continue,
        };
        match code {
            KeyCode::Enter => break state.selected().unwrap_or(0),
            KeyCode::Down if modifiers == KeyModifiers::NONE => state.select_next(),
            KeyCode::Up => state.select_previous(),
            KeyCode::End => state.select_last(),
            KeyCode::PageUp => state.select_first(),
            _ => {}
        }
        last = if modifiers.is_empty() { code.to_string() } else { format!("{modifiers}-{code}") };
    };
    execute!(stdout(), DisableMouseCapture, DisableBracketedPaste)?;
    ratatui::restore();
    println!("picked {}", NAMES[picked]);
    Ok(ExitCode::from(picked as u8))
}
