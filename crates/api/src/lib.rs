//! Wire types and error codes of REST and MCP. Nobody's domain types.
