//! Tokens are made on the server's own host, and the server says who it is.

use ringfence_wire::v1;
use ringfence_wire::v1::server_service_client::ServerServiceClient;
use ringfence_wire::v1::token_service_client::TokenServiceClient;
use tonic::Code;

use crate::support::{Server, refused};

#[tokio::test]
async fn tokens_are_for_the_servers_own_user_on_its_socket_only() {
    let server = Server::start().await;
    let mut far = TokenServiceClient::new(server.tcp.clone());
    let wanted = || v1::CreateTokenRequest { account: "team".into(), label: "laptop".into() };
    let result = far.create_token(wanted()).await;
    refused(result, Code::PermissionDenied, "PERMISSION_DENIED");
    let result = far.list_tokens(v1::ListTokensRequest::default()).await;
    refused(result, Code::PermissionDenied, "PERMISSION_DENIED");
    let result = far.revoke_token(v1::RevokeTokenRequest { token_id: "tok_0".into() }).await;
    refused(result, Code::PermissionDenied, "PERMISSION_DENIED");
    let mut near = TokenServiceClient::new(server.unix.clone());
    assert!(near.create_token(wanted()).await.unwrap().into_inner().secret.starts_with("rf_"));
}

#[tokio::test]
async fn a_token_is_listed_without_its_secret_and_revoked_for_good() {
    let server = Server::start().await;
    let mut tokens = TokenServiceClient::new(server.unix.clone());
    let wanted =
        |account: &str| v1::CreateTokenRequest { account: account.into(), label: "l".into() };
    let made = tokens.create_token(wanted("team")).await.unwrap().into_inner();
    tokens.create_token(wanted("others")).await.unwrap();
    let refusal = tokens.create_token(wanted("no good name")).await;
    refused(refusal, Code::InvalidArgument, "INVALID_ARGUMENT");
    let (id, list) =
        (made.token.unwrap().id, |account: &str| v1::ListTokensRequest { account: account.into() });
    let all = tokens.list_tokens(list("")).await.unwrap().into_inner().tokens;
    assert_eq!(all.len(), 2);
    assert!(!format!("{all:?}").contains(&made.secret));
    let revoke = v1::RevokeTokenRequest { token_id: id.clone() };
    for _ in 0..2 {
        tokens.revoke_token(revoke.clone()).await.unwrap();
    }
    let of_team = tokens.list_tokens(list("team")).await.unwrap().into_inner().tokens;
    assert_eq!(of_team.len(), 1);
    assert!(of_team[0].id == id && of_team[0].revoked_at.is_some());
    let unknown = v1::RevokeTokenRequest { token_id: "tok_0000000000000000".into() };
    refused(tokens.revoke_token(unknown).await, Code::NotFound, "TOKEN_NOT_FOUND");
}

#[tokio::test]
async fn the_server_says_who_it_is_and_who_asks() {
    let server = Server::start().await;
    for (channel, local) in [(server.tcp.clone(), false), (server.unix.clone(), true)] {
        let asked = ServerServiceClient::new(channel).info(v1::InfoRequest {}).await;
        let info = asked.unwrap().into_inner();
        assert_eq!((info.server.as_str(), info.local), ("ringfence", local));
        assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
        assert_eq!((info.account.as_str(), info.runtimes[0].as_str()), ("local", "bwrap"));
    }
}
