//! The same services for programs that speak JSON.
//!
//! Every route is a call of a gRPC service: its message is put together from the path, the query and
//! the body, and what the service answers is written as proto3 JSON. So both ways behave alike by
//! construction, and the description of the routes ([`openapi`]) is made from the same table.
//!
//! | file | what is in it |
//! |---|---|
//! | [`routes`] | the table |
//! | [`message`] | from a request to a message |
//! | [`files`] | files as bodies |
//! | [`stream`] | answers that go on: server-sent events, or a line for each message |
//! | [`terminals`] | terminals over a WebSocket |
//! | [`openapi`] | the description for programs |

mod files;
mod message;
mod openapi;
mod routes;
mod stream;
mod terminals;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::header::CONTENT_TYPE;
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use ringfence_engine::Caller;
use ringfence_engine::problem::{Code, Problem};
use ringfence_wire::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::Status;

use crate::grpc::Services;
use crate::status::{is_grpc, rest_refusal, status_of};

pub(crate) use openapi::describe;

/// A route, as the description knows it.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    verb: Verb,
    path: &'static str,
    method: MethodDescriptor,
    /// The message that comes before the bytes, of an upload.
    first: Option<MessageDescriptor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// Routes as they are put together.
struct Table {
    pool: DescriptorPool,
    router: Router<Services>,
    routes: Vec<Route>,
}

impl Table {
    fn new() -> Self {
        let pool = DescriptorPool::decode(ringfence_wire::DESCRIPTORS)
            .expect("the descriptors are those the messages were made from");
        Self { pool, router: Router::new(), routes: Vec::new() }
    }

    fn describe(&mut self, verb: Verb, path: &'static str, method: &str) -> MethodDescriptor {
        let (service, name) = method.split_once('.').expect("a method is `Service.Method`");
        let service = self.pool.get_service_by_name(&format!("sandbox.v1.{service}"));
        let service = service.expect("the table names services that exist");
        let method = service.methods().find(|method| method.name() == name);
        let method = method.expect("the table names methods that exist");
        self.routes.push(Route { verb, path, method: method.clone(), first: None });
        method
    }

    /// A call with one answer.
    fn unary<Q, A, F, Fut>(&mut self, verb: Verb, path: &'static str, method: &str, call: F)
    where
        Q: DeserializeOwned + Send + 'static,
        A: Serialize + 'static,
        F: Fn(Services, tonic::Request<Q>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<tonic::Response<A>, Status>> + Send,
    {
        let method = self.describe(verb, path, method);
        let handler = async move |State(services): State<Services>, request: Request| {
            let asked = match message::read(&method, request).await {
                Ok(asked) => asked,
                Err(problem) => return rest_refusal(&status_of(problem)),
            };
            match call(services, asked).await {
                Ok(answer) => json(answer.get_ref()),
                Err(status) => rest_refusal(&status),
            }
        };
        self.add(verb, path, handler);
    }

    /// A call whose answer goes on.
    fn streaming<Q, A, S, F, Fut>(&mut self, verb: Verb, path: &'static str, method: &str, call: F)
    where
        Q: DeserializeOwned + Send + 'static,
        A: Serialize + Send + 'static,
        S: tokio_stream::Stream<Item = Result<A, Status>> + Send + 'static,
        F: Fn(Services, tonic::Request<Q>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<tonic::Response<S>, Status>> + Send,
    {
        let method = self.describe(verb, path, method);
        let handler = async move |State(services): State<Services>, request: Request| {
            let events = stream::wants_events(request.headers());
            let asked = match message::read(&method, request).await {
                Ok(asked) => asked,
                Err(problem) => return rest_refusal(&status_of(problem)),
            };
            match call(services, asked).await {
                Ok(answer) if events => stream::events(answer.into_inner()),
                Ok(answer) => stream::lines(answer.into_inner()),
                Err(status) => rest_refusal(&status),
            }
        };
        self.add(verb, path, handler);
    }

    /// A call whose request is the bytes of a file: the path and the query are the fields of the
    /// message that comes before them.
    fn upload<F, Fut>(&mut self, path: &'static str, method: &str, first: &str, take: F)
    where
        F: Fn(Services, MessageDescriptor, Request) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response> + Send,
    {
        let method = self.describe(Verb::Put, path, method);
        let fields = method.parent_pool().get_message_by_name(first);
        let fields = fields.expect("the table names messages that exist");
        let route = self.routes.last_mut().expect("it was just described");
        route.first = Some(fields.clone());
        let handler = async move |State(services): State<Services>, request: Request| {
            take(services, fields, request).await
        };
        self.add(Verb::Put, path, handler);
    }

    /// A call whose answer is the bytes of a file.
    fn download<Q, S, F, Fut>(&mut self, path: &'static str, method: &str, call: F)
    where
        Q: DeserializeOwned + Send + 'static,
        S: tokio_stream::Stream<Item = Result<v1::FileChunk, Status>> + Send + 'static,
        F: Fn(Services, tonic::Request<Q>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<tonic::Response<S>, Status>> + Send,
    {
        let method = self.describe(Verb::Get, path, method);
        let handler = async move |State(services): State<Services>, request: Request| {
            let asked = match message::read(&method, request).await {
                Ok(asked) => asked,
                Err(problem) => return rest_refusal(&status_of(problem)),
            };
            match call(services, asked).await {
                Ok(answer) => stream::bytes(answer.into_inner()),
                Err(status) => rest_refusal(&status),
            }
        };
        self.add(Verb::Get, path, handler);
    }

    fn add<H, T>(&mut self, verb: Verb, path: &'static str, handler: H)
    where
        H: axum::handler::Handler<T, Services>,
        T: 'static,
    {
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(verb.filter(), handler));
    }
}

/// All routes, and what there is to say about them.
pub(crate) fn router(services: Services) -> Router {
    let table = routes::table();
    let routes = table.routes;
    let description = Arc::new(LazyLock::new(move || describe(&routes).to_string()));
    let openapi = async move || ([(CONTENT_TYPE, "application/json")], (**description).clone());
    table
        .router
        .fallback(nothing_there)
        .method_not_allowed_fallback(nothing_there)
        // Messages have a bound of their own, and files are taken in as they come.
        .layer(DefaultBodyLimit::disable())
        .with_state(services)
        .route("/openapi.json", axum::routing::get(openapi))
}

async fn nothing_there(request: Request) -> Response {
    match is_grpc(&request) {
        true => Status::unimplemented("there is no such method").into_http(),
        false => rest_refusal(&status_of(Problem::new(
            Code::RouteNotFound,
            "there is no such route: /openapi.json lists them all",
        ))),
    }
}

fn json(answer: &impl Serialize) -> Response {
    match serde_json::to_vec(answer) {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(e) => rest_refusal(&status_of(Problem::internal("write the answer", e))),
    }
}

/// Found by the layer in front of all routes.
fn with_caller<T>(extensions: &http::Extensions, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Some(caller) = extensions.get::<Caller>() {
        request.extensions_mut().insert(caller.clone());
    }
    request
}
