//! The server itself.

use ringfence_wire::v1;
use ringfence_wire::v1::server_service_server::ServerService;
use tonic::{Request, Response};

use super::Services;
use super::sandboxes::Answer;
use crate::caller::caller;
use crate::status::status_of;

/// Raised with every change of the API that callers can rely on.
const API: i32 = 1;
/// Callers that were written for an older one would misunderstand something.
const OLDEST_API: i32 = 1;

#[tonic::async_trait]
impl ServerService for Services {
    async fn info(&self, request: Request<v1::InfoRequest>) -> Answer<v1::InfoResponse> {
        let caller = caller(&request).map_err(status_of)?;
        Ok(Response::new(v1::InfoResponse {
            server: "ringfence".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            account: caller.account,
            runtimes: ringfence_engine::runtimes(),
            local: caller.local,
            api: API,
            oldest_api: OLDEST_API,
        }))
    }
}
