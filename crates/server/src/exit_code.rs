//! The exit code of a streamed command, in the trailing metadata.
//!
//! tonic ends a stream with trailers of its own and lets nobody add to them. So the stream of a
//! command notes the exit code in a cell that travels in the response's extensions, and a layer
//! outside of the service adds it to the trailers as they pass.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::HeaderValue;
use http_body_util::BodyExt;
use ringfence_wire::v1::ExecOutput;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Response, Status};
use tower::Service;

const NAME: &str = "ringfence-exit-code";

/// Empty until the command has ended.
#[derive(Debug, Clone, Default)]
struct Noted(Arc<OnceLock<i32>>);

pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<ExecOutput, Status>> + Send>>;

/// A stream whose trailers say how the command ended.
pub(crate) fn noting_exit_code(
    output: impl Stream<Item = Result<ExecOutput, Status>> + Send + 'static,
) -> Response<Pieces> {
    let noted = Noted::default();
    let cell = noted.clone();
    let output = output.map(move |message| {
        if let Ok(ExecOutput { result: Some(result), .. }) = &message {
            let _ = cell.0.set(result.exit_code);
        }
        message
    });
    let mut response = Response::new(Box::pin(output) as Pieces);
    response.extensions_mut().insert(noted);
    response
}

/// A service whose streams of commands end with their exit codes.
#[derive(Debug, Clone)]
pub(crate) struct WithExitCodes<S> {
    inner: S,
}

impl<S> WithExitCodes<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: NamedService> NamedService for WithExitCodes<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, R> Service<R> for WithExitCodes<S>
where
    S: Service<R, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let response = self.inner.call(request);
        Box::pin(async move { response.await.map(add_to_trailers) })
    }
}

fn add_to_trailers(mut response: http::Response<Body>) -> http::Response<Body> {
    let Some(noted) = response.extensions_mut().remove::<Noted>() else { return response };
    response.map(|body| {
        Body::new(body.map_frame(move |mut frame| {
            if let (Some(trailers), Some(code)) = (frame.trailers_mut(), noted.0.get()) {
                trailers.insert(NAME, HeaderValue::from(*code));
            }
            frame
        }))
    })
}
