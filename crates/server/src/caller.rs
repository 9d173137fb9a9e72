//! Who asks.

use ringfence_engine::Caller;
use ringfence_engine::problem::{Code, Problem, Result};
use tonic::Request;

/// Found by the layer in front of all services; a request without it has not been let in.
pub(crate) fn caller<T>(request: &Request<T>) -> Result<Caller> {
    let found = request.extensions().get::<Caller>().cloned();
    found.ok_or_else(|| Problem::new(Code::Unauthenticated, "who asks is not known"))
}
