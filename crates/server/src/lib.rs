//! The server: actions, sessions, REST and MCP doors. No unsafe, never writes a journal.
