//! The server itself.

use ringfence_wire::v1;
use ringfence_wire::v1::server_service_server::ServerService;
use tonic::{Request, Response};

use super::Services;
use super::sandboxes::Answer;
use crate::caller::caller;
use crate::status::status_of;

#[tonic::async_trait]
impl ServerService for Services {
    async fn info(&self, request: Request<v1::InfoRequest>) -> Answer<v1::InfoResponse> {
        let caller = caller(&request).map_err(status_of)?;
        Ok(Response::new(v1::InfoResponse {
            server: "ringfence".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            account: caller.account,
            runtimes: vec!["bwrap".into()],
            local: caller.local,
        }))
    }
}
