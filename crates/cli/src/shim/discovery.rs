//! The answer to `server/discover` while no server gives it: some hosts take a silent program for one of an earlier
//! revision after a short time.

use serde::Deserialize;
use serde_json::Value;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The server's own answer, which is the same for every client.
#[derive(Debug)]
pub(super) struct Discovery {
    result: Value,
}

#[derive(Deserialize)]
struct Request {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Value,
}

impl Discovery {
    pub(super) fn of(result: Value) -> Self {
        Self { result }
    }

    /// The result for this request, unless the server would refuse it: then the refusal is the server's to make.
    pub(super) fn result(&self, line: &[u8]) -> Option<&Value> {
        let Request { params: Params { meta } } = serde_json::from_slice(line).ok()?;
        let versions = self.result["supportedVersions"].as_array()?;
        let is_served = meta[CAPABILITIES].is_object() && versions.contains(&meta[VERSION]);
        is_served.then_some(&self.result)
    }
}
