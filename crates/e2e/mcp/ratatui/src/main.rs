//! A list to pick from, drawn by ratatui: it takes the whole screen, the mouse and pasted text, and its exit code is
//! the row that was picked. It shows the last key with its modifiers, or what was pasted, so that tests see what arrived.

use crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, KeyCode,
    KeyEvent, KeyModifiers, MouseEvent, MouseEventKind,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::{List, ListItem, ListState, Paragraph};
use std::io::{Result, stdout};
use std::process::ExitCode;

const NAMES: [&str; 3] = ["red", "green", "blue"];

fn main() -> Result<ExitCode> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, EnableMouseCapture)?;
    let picked = pick()?;
    execute!(stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen)?;
    disable_raw_mode()?;
    println!("picked {}", NAMES[picked]);
    Ok(ExitCode::from(picked as u8))
}

/// Draws the list until a row is picked.
fn pick() -> Result<usize> {
    let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    let (mut selected, mut last) = (0, String::new());
    loop {
        terminal.draw(|frame| {
            let rows = [Constraint::Min(0), Constraint::Length(1)];
            let rows = Layout::default().constraints(rows).split(frame.size());
            let list = List::new(NAMES.map(ListItem::new)).highlight_symbol("> ");
            frame.render_stateful_widget(list, rows[0], &mut ListState::default().with_selected(Some(selected)));
            frame.render_widget(Paragraph::new(format!("last: {last}")), rows[1]);
        })?;
        let KeyEvent { code, modifiers, .. } = match event::read()? {
            Event::Key(key) => key,
            Event::Paste(text) => {
                last = format!("{text:?}");
                continue;
            }
            Event::Mouse(MouseEvent { kind: MouseEventKind::Down(_), row, .. }) => {
                selected = usize::from(row).min(NAMES.len() - 1);
                continue;
            }
            _ => continue,
        };
        match code {
            KeyCode::Enter => return Ok(selected),
            KeyCode::Down if modifiers.is_empty() => selected = (selected + 1).min(NAMES.len() - 1),
            KeyCode::Up => selected = selected.saturating_sub(1),
            KeyCode::End => selected = NAMES.len() - 1,
            KeyCode::PageUp => selected = 0,
            _ => {}
        }
        last = name(code, modifiers);
    }
}

/// The key as the tests name it, such as `Alt-x`.
fn name(code: KeyCode, modifiers: KeyModifiers) -> String {
    let code = if let KeyCode::Char(letter) = code { letter.to_string() } else { format!("{code:?}") };
    let held = [(KeyModifiers::ALT, "Alt-"), (KeyModifiers::CONTROL, "Control-"), (KeyModifiers::SHIFT, "Shift-")];
    held.into_iter().filter(|(key, _)| modifiers.contains(*key)).map(|(_, name)| name).collect::<String>() + &code
}
