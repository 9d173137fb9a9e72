//! The services of `api/`, one file each.

mod audit;
mod codebases;
mod files;
mod images;
mod info;
mod logs;
mod processes;
mod sandboxes;
mod sessions;
mod staging;
pub(crate) mod terminals;
mod tokens;
mod uploads;
mod workspace;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use ringfence_engine::codebases::Codebases;
use ringfence_engine::sandboxes::Sandboxes;
use ringfence_engine::store::Store;
use ringfence_wire::v1::audit_service_server::AuditServiceServer;
use ringfence_wire::v1::codebase_service_server::CodebaseServiceServer;
use ringfence_wire::v1::image_service_server::ImageServiceServer;
use ringfence_wire::v1::process_service_server::ProcessServiceServer;
use ringfence_wire::v1::sandbox_service_server::SandboxServiceServer;
use ringfence_wire::v1::server_service_server::ServerServiceServer;
use ringfence_wire::v1::terminal_service_server::TerminalServiceServer;
use ringfence_wire::v1::token_service_server::TokenServiceServer;
use ringfence_wire::v1::workspace_service_server::WorkspaceServiceServer;
use tonic::service::Routes;
use tower::util::MapRequestLayer;

use crate::exit_code::WithExitCodes;
use crate::repeats::Repeats;

/// A message with a command or a piece of a file; anything larger is refused.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// All services, as routes of the port they share with REST.
pub(crate) fn routes(services: Services) -> axum::Router {
    macro_rules! served {
        ($server:ident) => {
            $server::new(services.clone())
                .max_decoding_message_size(LARGEST_MESSAGE)
                .max_encoding_message_size(usize::MAX)
        };
    }
    // From a router of ours: it has no answer of its own for what is not there.
    Routes::from(axum::Router::new())
        .add_service(served!(CodebaseServiceServer))
        .add_service(WithExitCodes::new(served!(SandboxServiceServer)))
        .add_service(served!(ProcessServiceServer))
        .add_service(served!(TerminalServiceServer))
        .add_service(served!(WorkspaceServiceServer))
        .add_service(served!(AuditServiceServer))
        .add_service(served!(ImageServiceServer))
        .add_service(served!(TokenServiceServer))
        .add_service(served!(ServerServiceServer))
        .into_axum_router()
        .layer(MapRequestLayer::new(|request: Request<Body>| request.map(noticing)))
}

/// A body whose reader hears that the caller has left.
fn noticing(body: Body) -> Body {
    Body::new(body.map_err(|error| Left(error.to_string())))
}

/// Why there is no more of a request. tonic takes a caller who leaves in the middle for one who has
/// said all, and half a file would be stored as a whole one: so it is not told that it was that.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Left(String);

/// Whether a path is one of a method, so that names callers make up are not taken for one.
pub(crate) fn is_method(path: &str) -> bool {
    static METHODS: std::sync::LazyLock<std::collections::HashSet<String>> =
        std::sync::LazyLock::new(|| {
            let pool = prost_reflect::DescriptorPool::decode(ringfence_wire::DESCRIPTORS);
            let services = pool.iter().flat_map(|pool| pool.services());
            let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
            methods
                .map(|method| format!("/{}/{}", method.parent_service().full_name(), method.name()))
                .collect()
        });
    METHODS.contains(path)
}

/// What every service needs. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) codebases: Codebases,
    pub(crate) store: Store,
    pub(crate) repeats: Repeats,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use ringfence_wire::v1::UploadChunk;
    use tonic::codec::Codec;
    use tonic::{Status, Streaming};
    use tonic_prost::ProstCodec;

    use super::*;

    async fn heard(prepare: fn(Body) -> Body) -> Result<Option<UploadChunk>, Status> {
        let left = [Err::<Frame<Bytes>, _>(Status::cancelled("the caller has left"))];
        let body = prepare(Body::new(StreamBody::new(tokio_stream::iter(left))));
        let decoder = ProstCodec::<UploadChunk, UploadChunk>::default().decoder();
        Streaming::new_request(decoder, body, None, None).message().await
    }

    #[tokio::test]
    async fn a_caller_who_leaves_has_not_said_all() {
        assert!(heard(noticing).await.is_err());
        // Should this ever be an error by itself, nothing has to be done about it.
        assert_eq!(heard(|body| body).await.unwrap(), None);
    }
}
