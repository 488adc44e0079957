//! Traces for an OpenTelemetry collector: the spans of requests and tool calls, and the exporter.
//!
//! A span continues its caller's trace: by the header `traceparent`, and for MCP by the field of that name in `_meta`. The
//! exporter has a bounded queue and a thread of its own, so no request waits for the collector.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use ptyd_core::traces::{TARGET, failed};
use rmcp::model::{CallToolResponse, RequestMetaObject};
use tokio::runtime::Handle;
use tracing::field::Empty;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// The header, and the field of MCP's `_meta`, that names the caller's span (W3C Trace Context).
const TRACE_PARENT: &str = "traceparent";
/// The exporter waits this long for the collector's answer.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that stops waits this long for the export of its last spans.
const LAST_EXPORT: Duration = Duration::from_secs(1);

/// The span of an HTTP request; the answer's status is recorded by [`answered`].
pub(crate) fn request(method: &Method, route: &str, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        error.r#type = Empty,
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
    );
    continues(&span, headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok()));
    span
}

/// Records the answer to an HTTP request.
pub(crate) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        failed(span, status.as_str());
    }
}

/// The span of a call of an MCP tool.
pub(crate) fn tool_call(tool: &str, meta: &RequestMetaObject, http: Option<&Parts>) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "tools/call",
        otel.name = %format_args!("tools/call {tool}"),
        otel.kind = "server",
        otel.status_code = Empty,
        error.r#type = Empty,
        mcp.method.name = "tools/call",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
    );
    let header = || http?.headers.get(TRACE_PARENT)?.to_str().ok();
    continues(&span, meta.get(TRACE_PARENT).and_then(|value| value.as_str()).or_else(header));
    span
}

/// Records the answer to a call.
pub(crate) fn called(span: &Span, answer: &CallToolResponse) {
    if matches!(answer, CallToolResponse::Complete(result) if result.is_error == Some(true)) {
        failed(span, "tool_error");
    }
}

/// Makes the span a part of its caller's trace.
fn continues(span: &Span, parent: Option<&str>) {
    struct Carrier<'a>(&'a str);
    impl Extractor for Carrier<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            (key == TRACE_PARENT).then_some(self.0)
        }

        fn keys(&self) -> Vec<&str> {
            vec![TRACE_PARENT]
        }
    }
    if let Some(parent) = parent.filter(|_| !span.is_disabled()) {
        // It fails where nothing is exported.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Carrier(parent)));
    }
}

/// The exporter of a server's spans.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Exports to the collector at this URL, `http://HOST:PORT`, over HTTP with protobuf.
    pub fn to(endpoint: &str, node: u16, runtime: Handle) -> Result<Self, String> {
        let client = HyperClient::with_default_connector(COLLECTOR_TIMEOUT, None);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client { http: client, runtime, is_reached: AtomicBool::new(true) })
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .build()
            .map_err(|error| error.to_string())?;
        let names = [
            KeyValue::new("service.name", "ptyd"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", i64::from(node)),
        ];
        let resource = Resource::builder_empty().with_attributes(names).build();
        Ok(Self(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build()))
    }

    /// The layer of the `tracing` crate that gives it the spans.
    pub fn layer<S>(&self) -> impl Layer<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let tracer = self.0.tracer_with_scope(InstrumentationScope::builder("ptyd").build());
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_level(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TARGET, LevelFilter::INFO))
    }

    /// Exports the last spans.
    pub fn stop(&self) {
        let _ = self.0.shutdown_with_timeout(LAST_EXPORT);
    }
}

/// An HTTP client for the exporter's thread, which has no reactor of its own.
struct Client {
    http: HyperClient,
    runtime: Handle,
    /// Whether the last export succeeded; the log has the changes.
    is_reached: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let http = self.http.clone();
            let result = match self.runtime.spawn(async move { http.send_bytes(request).await }).await {
                Ok(result) => result,
                Err(error) => Err(error.into()),
            };
            let trouble = match &result {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("it answers with status {}", response.status())),
                Err(error) => Some(error.to_string()),
            };
            let was_reached = self.is_reached.swap(trouble.is_none(), Ordering::AcqRel);
            match trouble {
                Some(trouble) if was_reached => tracing::warn!(trouble, "the collector of traces takes no spans"),
                None if !was_reached => tracing::info!("the collector of traces takes spans again"),
                _ => {}
            }
            result
        })
    }
}
