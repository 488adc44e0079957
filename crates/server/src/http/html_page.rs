//! A page for people: it loads and runs nothing, is in no frame and is not stored.

use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// The parts in which pages differ.
#[derive(Debug)]
pub(crate) struct HtmlPage<'a> {
    /// The HTML, with `{{title}}`, `{{nonce}}` and `{{content}}` to be filled in.
    pub frame: &'static str,
    /// Without characters that HTML gives a meaning.
    pub title: &'a str,
    /// HTML.
    pub content: &'a str,
    /// The source to which its forms may be sent, for the Content-Security-Policy.
    pub form_action: &'static str,
    /// The Referrer-Policy.
    pub referrer_policy: &'static str,
}

impl HtmlPage<'_> {
    /// The answer with this page.
    pub(crate) fn response(&self) -> impl IntoResponse + use<> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        let nonce = STANDARD.encode(bytes);
        let allowed = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action '{}'; frame-ancestors 'none'",
            self.form_action
        );
        let text = self.frame.replace("{{title}}", self.title).replace("{{nonce}}", &nonce);
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            (header::CONTENT_SECURITY_POLICY, allowed),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
            (header::X_FRAME_OPTIONS, "DENY".to_owned()),
            (REFERRER_POLICY, self.referrer_policy.to_owned()),
            (header::CACHE_CONTROL, "no-store".to_owned()),
        ];
        (headers, text.replace("{{content}}", self.content))
    }
}
