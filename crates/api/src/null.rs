//! Null for an optional field: many clients send it for what they leave out.

use serde::{Deserialize, Deserializer};

/// Reads null as the default.
pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    json: D,
) -> Result<T, D::Error> {
    Option::deserialize(json).map(Option::unwrap_or_default)
}
