//! The query parameters of a WebSocket.

/// A client's own name; longer than any UUID is of no use.
const CLIENT_CHARS_MAX: usize = 64;

/// The transfer modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// In frames with their range of the journal.
    Framed,
    /// Plain bytes, both ways.
    Raw,
    /// Plain JSON texts, both ways.
    Json,
}

/// A validated query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Plain bytes, whatever the sub-protocol.
    pub(super) is_raw: bool,
    /// The offset to continue at, instead of a snapshot.
    pub(super) since: Option<u64>,
    /// The client that numbers its input, across its connections.
    pub(super) client: Option<String>,
    /// Every retained byte, without snapshots; `None` leaves it to the mode.
    pub(super) wants_all: Option<bool>,
    /// Whether it takes the keyboard, and then whether by force.
    pub(super) takes_by_force: Option<bool>,
}

impl Query {
    /// Parses a query string; the error names the field, and never repeats a ticket.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let uri = format!("/?{text}").parse().map_err(|_| "query: cannot be read".to_owned())?;
        let given = axum::extract::Query::<api::SocketQuery>::try_from_uri(&uri)
            .map_err(|_| "query: may hold mode, since, client, behind, take and ticket, each once".to_owned())?;
        let axum::extract::Query(given) = given;
        let is_raw = match given.mode.as_deref() {
            None => false,
            Some("raw") => true,
            Some(_) => return Err("mode: must be raw, or omitted".to_owned()),
        };
        let since = given.since.as_deref().map(offset).transpose()?;
        let is_name = |c: &String| {
            (1..=CLIENT_CHARS_MAX).contains(&c.len())
                && c.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if given.client.as_ref().is_some_and(|c| !is_name(c)) {
            return Err(format!(
                "client: must be 1 to {CLIENT_CHARS_MAX} letters, digits, dots, dashes and underscores"
            ));
        }
        let wants_all = match given.behind.as_deref() {
            None => None,
            Some("skip") => Some(false),
            Some("all") => Some(true),
            Some(_) => return Err("behind: must be skip or all".to_owned()),
        };
        let takes_by_force = match given.take.as_deref() {
            None => None,
            Some("free") => Some(false),
            Some("force") => Some(true),
            Some(_) => return Err("take: must be free or force".to_owned()),
        };
        Ok(Self { is_raw, since, client: given.client, wants_all, takes_by_force })
    }
}

/// Parses `o:4711` or `4711`.
fn offset(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("o:").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten();
    number.ok_or_else(|| "since: must be o:<offset>".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_checked_field_by_field() {
        let plain = Query { is_raw: false, since: None, client: None, wants_all: None, takes_by_force: None };
        assert_eq!(Query::parse(""), Ok(plain.clone()));
        let skips = Query { wants_all: Some(false), ..plain.clone() };
        assert_eq!(Query::parse("ticket=secret&behind=skip"), Ok(skips));
        let all = Query { since: Some(7), client: Some("a-1".to_owned()), wants_all: Some(true), ..plain.clone() };
        assert_eq!(Query::parse("since=o:7&client=a-1&behind=all"), Ok(all));
        assert_eq!(Query::parse("mode=raw&since=7"), Ok(Query { is_raw: true, since: Some(7), ..plain.clone() }));
        let takes = Query { takes_by_force: Some(true), ..plain };
        assert_eq!(Query::parse("take=force"), Ok(takes));
        for (bad, field) in [
            ("mode=x", "mode"),
            ("since=last", "since"),
            ("since=o:-1", "since"),
            ("client=", "client"),
            ("client=a%20b", "client"),
            ("behind=x", "behind"),
            ("take=yes", "take"),
            ("ticket=secret&nothing=1", "query"),
        ] {
            let problem = Query::parse(bad).expect_err(bad);
            assert!(problem.starts_with(field) && !problem.contains("secret"), "{problem}");
        }
    }
}
