//! Who may call over the network. Only the server's own user, on its own host, decides that.

use ringfence_engine::problem::{Code, Problem, Result};
use ringfence_engine::store::Token;
use ringfence_wire::v1;
use ringfence_wire::v1::token_service_server::TokenService;
use tonic::Request;

use super::Services;
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;

fn shown(token: Token) -> v1::Token {
    v1::Token {
        id: token.id,
        account: token.account,
        label: token.label,
        created_at: Some(convert::time(token.created_ms)),
        last_used_at: token.last_used_ms.map(convert::time),
        revoked_at: token.revoked_ms.map(convert::time),
    }
}

fn only_local<T>(request: &Request<T>) -> Result<()> {
    match caller(request)?.local {
        true => Ok(()),
        false => Err(Problem::new(
            Code::PermissionDenied,
            "tokens are made over the Unix socket, by the server's own user only",
        )),
    }
}

impl Services {
    fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<v1::CreateTokenResponse> {
        only_local(&request)?;
        let asked = request.into_inner();
        let account = self.store.ensure_account(required("account", &asked.account)?)?;
        let (token, secret) = self.store.create_token(&account.name, &asked.label)?;
        Ok(v1::CreateTokenResponse { token: Some(shown(token)), secret })
    }

    fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Result<v1::ListTokensResponse> {
        only_local(&request)?;
        let account = request.into_inner().account;
        let tokens = self.store.tokens(Some(account.as_str()).filter(|name| !name.is_empty()))?;
        Ok(v1::ListTokensResponse { tokens: tokens.into_iter().map(shown).collect() })
    }

    fn revoke_token(&self, request: Request<v1::RevokeTokenRequest>) -> Result<v1::Empty> {
        only_local(&request)?;
        match self.store.revoke_token(required("token_id", &request.get_ref().token_id)?)? {
            true => Ok(v1::Empty {}),
            false => Err(Problem::new(Code::TokenNotFound, "token not found")),
        }
    }
}

#[tonic::async_trait]
impl TokenService for Services {
    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Answer<v1::CreateTokenResponse> {
        answer(Services::create_token(self, request))
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Answer<v1::ListTokensResponse> {
        answer(Services::list_tokens(self, request))
    }

    async fn revoke_token(&self, request: Request<v1::RevokeTokenRequest>) -> Answer<v1::Empty> {
        answer(Services::revoke_token(self, request))
    }
}
