//! `GET /`: the page where a person sees what every agent does, answers it and takes over.
//!
//! It is a program of the browser (`web/`), and its files are in this binary: it loads nothing from elsewhere. The files are open,
//! because they show nothing of this server. The page asks for sessions over REST and the
//! WebSocket, for which a browser logs in (`logins.rs`, `rest/logins.rs`). The page is for people, so it is in no OpenAPI document.

pub(crate) mod logins;

use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;

use api::ErrorCode;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::http::problem::ProblemResponse;
use crate::secret_page::takes_html;

/// The page's address.
const PATH: &str = "/";
/// The folder of its other files.
const FILES: &str = "/page/";

/// Everything comes from this server, also styles: no text of a program can become a script or a style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// A file of the page, compressed: every browser takes it so.
struct File {
    name: &'static str,
    kind: &'static str,
    gzip: &'static [u8],
    tag: OnceLock<String>,
}

macro_rules! file {
    ($name:literal, $kind:literal) => {
        File {
            name: $name,
            kind: $kind,
            gzip: include_bytes!(concat!("../../../../web/dist/", $name, ".gz")),
            tag: OnceLock::new(),
        }
    };
}

static INDEX: File = file!("index.html", "text/html; charset=utf-8");
static OTHERS: [File; 4] = [
    file!("page.js", "text/javascript; charset=utf-8"),
    file!("screen.js", "text/javascript; charset=utf-8"),
    file!("page.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
];

/// Whether the request is for the page or one of its files, which need no log-in.
pub(crate) fn is_open(headers: &HeaderMap, uri: &Uri) -> bool {
    uri.path() == PATH && takes_html(headers) || uri.path().starts_with(FILES)
}

/// The routes.
pub(crate) fn router() -> Router {
    Router::new().route(PATH, get(show)).route("/page/{file}", get(file))
}

async fn show(headers: HeaderMap, uri: Uri) -> Response {
    if takes_html(&headers) { INDEX.response(&headers) } else { nothing_here(&uri) }
}

async fn file(Path(name): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    match OTHERS.iter().find(|file| file.name == name) {
        Some(file) => file.response(&headers),
        None => nothing_here(&uri),
    }
}

fn nothing_here(uri: &Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    ProblemResponse::new(ErrorCode::RouteNotFound, format!("there is no {path}; sessions are under /terminals"))
        .into_response()
}

impl File {
    fn response(&self, headers: &HeaderMap) -> Response {
        let tag = self.tag.get_or_init(|| format!("\"{}\"", URL_SAFE_NO_PAD.encode(checksum(self.gzip).to_le_bytes())));
        let is_known = headers.get_all(header::IF_NONE_MATCH).iter().any(|known| known == tag.as_str());
        let text = |text: &'static str| HeaderValue::from_static(text);
        let fields = [
            (header::CONTENT_TYPE, text(self.kind)),
            (header::CONTENT_ENCODING, text("gzip")),
            // The next version of the server has another page.
            (header::CACHE_CONTROL, text("no-cache")),
            (header::ETAG, HeaderValue::from_str(tag).unwrap_or(text("\"\""))),
            (header::CONTENT_SECURITY_POLICY, text(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, text("nosniff")),
            (header::X_FRAME_OPTIONS, text("DENY")),
            (header::REFERRER_POLICY, text("no-referrer")),
            (HeaderName::from_static("cross-origin-opener-policy"), text("same-origin")),
            (HeaderName::from_static("cross-origin-resource-policy"), text("same-origin")),
        ];
        if is_known {
            return (StatusCode::NOT_MODIFIED, fields).into_response();
        }
        (fields, self.gzip).into_response()
    }
}

/// Enough to tell two builds apart.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
