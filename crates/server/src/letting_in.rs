//! Who asks, and whether they may.
//!
//! | how they come | who they are |
//! |---|---|
//! | with a token | the token's account; a bad one is refused wherever it comes from |
//! | Unix socket, the server's own user | the account of this host, and may name its directories |
//! | Unix socket, another user | nobody |
//! | TCP from this host | the account of this host, unless tokens are required |
//! | TCP from elsewhere | nobody |
//!
//! A page in a browser on this host must not be able to ask in its user's name: without a token, a
//! request with the `Origin` of another site or a `Host` that is not this host is refused.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use ringfence_engine::Caller;
use ringfence_engine::problem::{Code, Problem, Result};
use ringfence_engine::store::{LOCAL, Store};
use ringfence_engine::wardens::call::TRACE;
use tracing::Instrument;

use crate::listen::Peer;
use crate::status::refuse;

/// Decides who gets in.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) store: Store,
    /// Also of callers on this host who come over TCP.
    pub(crate) require_token: bool,
}

/// Asked by whoever watches over the server; nothing is told there.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

pub(crate) async fn let_in(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>().copied();
    match door.who(peer, &request) {
        Ok(caller) => {
            let trace = trace(request.headers());
            let account = caller.account.clone();
            request.extensions_mut().insert(caller);
            let span = tracing::info_span!("call", path = request.uri().path(), account, trace);
            TRACE.scope(trace, next.run(request)).instrument(span).await
        }
        Err(problem) => {
            tracing::debug!(?peer, %problem, "refused");
            refuse(&request, problem)
        }
    }
}

impl Door {
    fn who(&self, peer: Option<Peer>, request: &Request) -> Result<Caller> {
        let own_user = matches!(peer, Some(Peer::Unix(Some(uid))) if uid == own_uid());
        if let Some(secret) = secret(request.headers())? {
            let token = self.store.find_token_by_secret(secret)?;
            let token = token.ok_or_else(|| nobody("the token is not known, or was revoked"))?;
            return Ok(Caller { account: token.account, local: own_user });
        }
        match peer {
            Some(Peer::Unix(_)) if own_user => Ok(Caller { account: LOCAL.into(), local: true }),
            Some(Peer::Unix(_)) => Err(nobody("this socket is for the server's own user")),
            Some(Peer::Tcp(address)) if address.ip().to_canonical().is_loopback() => {
                if self.require_token {
                    return Err(nobody("a token is required: send `authorization: Bearer TOKEN`"));
                }
                from_this_host(request)?;
                Ok(Caller { account: LOCAL.into(), local: false })
            }
            _ => Err(nobody("a token is required: send `authorization: Bearer TOKEN`")),
        }
    }
}

fn nobody(message: &str) -> Problem {
    Problem::new(Code::Unauthenticated, message)
}

/// A `traceparent` of the standard's form; anything else is nobody's business.
fn trace(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let lengths = text.split('-').map(str::len).collect::<Vec<_>>();
    let digits = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (digits && lengths == [2, 32, 16, 2]).then(|| text.to_owned())
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn secret(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().map_err(|_| nobody("the credentials are not text"))?;
    match text.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(secret.trim())),
        _ => Err(nobody("credentials are sent as `authorization: Bearer TOKEN`")),
    }
}

/// What a browser sends in the name of a page gives itself away by these headers.
fn from_this_host(request: &Request) -> Result<()> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = request.uri().host().or_else(|| header(HOST).map(without_port));
    let ours = host.is_some_and(names_this_host);
    let origin_ours = header(ORIGIN).is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, rest)| without_port(rest));
        host.is_some_and(names_this_host)
    });
    match ours && origin_ours {
        true => Ok(()),
        false => Err(nobody("requests for another host or from another site need a token")),
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn names_this_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    address || bare.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn door(require_token: bool) -> (tempfile::TempDir, Door) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        (dir, Door { store, require_token })
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let build = Request::builder().uri("/v1/sandboxes");
        let build = headers.iter().fold(build, |build, (name, value)| build.header(*name, *value));
        build.body(Body::empty()).unwrap()
    }

    fn near() -> Option<Peer> {
        Some(Peer::Tcp("127.0.0.1:4000".parse().unwrap()))
    }

    #[test]
    fn a_token_decides_wherever_it_comes_from() {
        let (_dir, door) = door(true);
        door.store.ensure_account("team").unwrap();
        let (_, secret) = door.store.create_token("team", "ci").unwrap();
        let far = Some(Peer::Tcp("192.0.2.7:4000".parse().unwrap()));
        let good = format!("Bearer {secret}");
        for peer in [near(), far, Some(Peer::Unix(Some(own_uid() + 1)))] {
            let who = door.who(peer, &request(&[("authorization", &good)])).unwrap();
            assert_eq!(who, Caller { account: "team".into(), local: false });
            let bad = request(&[("authorization", "Bearer rf_0000")]);
            assert_eq!(door.who(peer, &bad).unwrap_err().code, Code::Unauthenticated);
            let odd = request(&[("authorization", "Basic abc")]);
            assert_eq!(door.who(peer, &odd).unwrap_err().code, Code::Unauthenticated);
        }
    }

    #[test]
    fn without_a_token_only_this_host_gets_in() {
        let (_dir, door) = door(false);
        let plain = request(&[("host", "localhost:9000")]);
        assert!(!door.who(near(), &plain).unwrap().local);
        let own = Some(Peer::Unix(Some(own_uid())));
        assert!(door.who(own, &request(&[])).unwrap().local);
        let others = [
            Some(Peer::Unix(Some(own_uid() + 1))),
            Some(Peer::Unix(None)),
            Some(Peer::Tcp("192.0.2.7:4000".parse().unwrap())),
            None,
        ];
        for peer in others {
            assert!(door.who(peer, &plain).is_err(), "{peer:?}");
        }
    }

    #[test]
    fn tokens_can_be_required_on_this_host_too() {
        let (_dir, door) = door(true);
        assert!(door.who(near(), &request(&[("host", "localhost:9000")])).is_err());
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let (_dir, door) = door(false);
        let good: [&[(&str, &str)]; 4] = [
            &[("host", "127.0.0.1:9000")],
            &[("host", "[::1]:9000")],
            &[("host", "localhost")],
            &[("host", "localhost:9000"), ("origin", "http://localhost:3000")],
        ];
        for headers in good {
            assert!(door.who(near(), &request(headers)).is_ok(), "{headers:?}");
        }
        let bad: [&[(&str, &str)]; 4] = [
            &[("host", "evil.example:9000")],
            &[("host", "localhost.evil.example:9000")],
            &[("host", "localhost:9000"), ("origin", "https://evil.example")],
            &[("host", "localhost:9000"), ("origin", "null")],
        ];
        for headers in bad {
            assert!(door.who(near(), &request(headers)).is_err(), "{headers:?}");
        }
    }
}
