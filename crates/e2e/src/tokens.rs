//! Tokens of people and programs.

use api::{TokenRequest, TokenScope};

use crate::Server;

/// A fresh token.
pub async fn token(server: &Server, name: &str, scope: TokenScope) -> String {
    let request = TokenRequest { name: name.to_owned(), scope, ..TokenRequest::default() };
    server.client().make_token(&request).await.expect("made").token
}
