//! Whether it lives, whether it is ready, and what it has done (in Prometheus' text format).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use parking_lot::Mutex;
use ringfence_engine::Caller;
use ringfence_engine::problem::{Code, Problem};
use ringfence_engine::store::LOCAL;

use crate::grpc::Services;
use crate::status::{rest_refusal, status_of};

/// Upper ends of the durations that are told apart, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// What is counted. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    calls: Mutex<BTreeMap<(String, String), Calls>>,
    open: AtomicI64,
}

#[derive(Debug, Default, Clone)]
struct Calls {
    count: u64,
    seconds: f64,
    within: [u64; BUCKETS.len()],
}

/// Counts a call while it is open, and how long the beginning of its answer took.
pub(crate) async fn count(
    State(metrics): State<Metrics>,
    request: Request,
    next: Next,
) -> Response {
    let open = Open::new(&metrics);
    let (route, start) = (route_of(&request), Instant::now());
    let response = next.run(request).await;
    metrics.add(route, code_of(&response), start.elapsed().as_secs_f64());
    drop(open);
    response
}

struct Open<'m>(&'m Metrics);

impl<'m> Open<'m> {
    fn new(metrics: &'m Metrics) -> Self {
        metrics.inner.open.fetch_add(1, Ordering::Relaxed);
        Self(metrics)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.inner.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Never what a caller made up: the number of names must stay small.
fn route_of(request: &Request) -> String {
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    match matched {
        // All methods of a gRPC service share one route; those that exist have short names.
        Some(path) if path.starts_with("/sandbox.v1.") => known_method(request.uri().path()),
        Some(path) => format!("{} {path}", request.method()),
        None => "other".into(),
    }
}

fn known_method(path: &str) -> String {
    let known = crate::grpc::is_method(path);
    if known { path.trim_start_matches("/sandbox.v1.").to_owned() } else { "other".into() }
}

/// A call that fails after its answer has begun counts as one that began well.
fn code_of(response: &Response) -> String {
    match response.headers().get("grpc-status").and_then(|status| status.to_str().ok()) {
        Some(status) => format!("grpc {status}"),
        None => response.status().as_u16().to_string(),
    }
}

impl Metrics {
    fn add(&self, route: String, code: String, seconds: f64) {
        let mut calls = self.inner.calls.lock();
        let calls = calls.entry((route, code)).or_default();
        calls.count += 1;
        calls.seconds += seconds;
        for (within, end) in calls.within.iter_mut().zip(BUCKETS) {
            *within += u64::from(seconds <= end);
        }
    }

    fn text(&self, sandboxes: &[(&'static str, usize)]) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text, sandboxes);
        text
    }

    fn write(&self, out: &mut String, sandboxes: &[(&'static str, usize)]) -> std::fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        writeln!(out, "# TYPE ringfence_info gauge")?;
        writeln!(out, "ringfence_info{{version=\"{version}\"}} 1")?;
        writeln!(out, "# TYPE ringfence_sandboxes gauge")?;
        for (status, count) in sandboxes {
            writeln!(out, "ringfence_sandboxes{{status=\"{status}\"}} {count}")?;
        }
        writeln!(out, "# TYPE ringfence_calls_open gauge")?;
        writeln!(out, "ringfence_calls_open {}", self.inner.open.load(Ordering::Relaxed))?;
        writeln!(out, "# TYPE ringfence_call_seconds histogram")?;
        for ((route, code), calls) in &*self.inner.calls.lock() {
            let labels = format!("route=\"{route}\",code=\"{code}\"");
            for (within, end) in calls.within.iter().zip(BUCKETS) {
                writeln!(out, "ringfence_call_seconds_bucket{{{labels},le=\"{end}\"}} {within}")?;
            }
            let (count, seconds) = (calls.count, calls.seconds);
            writeln!(out, "ringfence_call_seconds_bucket{{{labels},le=\"+Inf\"}} {count}")?;
            writeln!(out, "ringfence_call_seconds_sum{{{labels}}} {seconds}")?;
            writeln!(out, "ringfence_call_seconds_count{{{labels}}} {count}")?;
        }
        Ok(())
    }
}

/// For whoever watches over the server.
pub(crate) fn router(services: Services, metrics: Metrics) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(show))
        .with_state((services, metrics))
}

type Watched = State<(Services, Metrics)>;

/// Ready means: the records can be read.
async fn ready(State((services, _)): Watched) -> Response {
    match services.sandboxes.count_by_status() {
        Ok(_) => "ready\n".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the records cannot be read\n").into_response(),
    }
}

/// What all accounts do is for the host's own to see.
async fn show(State((services, metrics)): Watched, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>();
    if caller.is_none_or(|caller| caller.account != LOCAL) {
        let problem = Problem::new(Code::PermissionDenied, "metrics are for the account `local`");
        return rest_refusal(&status_of(problem));
    }
    match services.sandboxes.count_by_status() {
        Ok(counted) => {
            ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.text(&counted)).into_response()
        }
        Err(problem) => rest_refusal(&status_of(problem)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_route_and_answer() {
        let metrics = Metrics::default();
        metrics.add("GET /v1/sandboxes".into(), "200".into(), 0.002);
        metrics.add("GET /v1/sandboxes".into(), "200".into(), 3.0);
        let text = metrics.text(&[("running", 4)]);
        let labels = r#"{route="GET /v1/sandboxes",code="200""#;
        for line in [
            r#"ringfence_sandboxes{status="running"} 4"#.to_owned(),
            format!("ringfence_call_seconds_bucket{labels},le=\"0.0025\"}} 1"),
            format!("ringfence_call_seconds_bucket{labels},le=\"10\"}} 2"),
            format!("ringfence_call_seconds_count{labels}}} 2"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
