//! `ringfence token`: who may call a server over the network.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_wire::v1;

use super::connect::{ConnectArgs, Server};
use super::trouble::told;
use super::{runtime, show};
use crate::failure::Failure;
use crate::output;
use crate::private::Private;

/// Give out tokens for the server of this host, list them and take them back
///
/// Only the server's own user can, over its Unix socket.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence token create team-a --label laptop
  ringfence token ls
  ringfence token revoke tok_0123456789abcdef")]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token; it is shown this once
    Create {
        /// Whose it is; made if there is none of that name
        account: String,
        /// What it is for
        #[arg(long, default_value = "")]
        label: String,
    },
    /// List tokens
    Ls {
        /// Only those of this account
        account: Option<String>,
    },
    /// Refuse a token from now on
    Revoke { id: String },
}

pub(crate) fn run(args: &TokenArgs) -> Result<ExitCode, Failure> {
    runtime()?.block_on(async {
        if args.connect.names_a_server() {
            let server = args.connect.connect().await?;
            return act(&server, args.json, &args.command).await;
        }
        if let Some(server) = args.connect.own_server().await? {
            return act(&server, args.json, &args.command).await;
        }
        // Tokens are made before the first start too, to have one when it is there.
        let state = std::path::absolute(args.connect.state().dir()?).map_err(Failure::broken)?;
        let private = Private::on_records(&state).await.map_err(|failure| {
            failure.hint("if a server runs, name its socket: --endpoint unix:///PATH")
        })?;
        act(&private.server, args.json, &args.command).await
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn act(server: &Server, json: bool, command: &TokenCommand) -> Result<(), Failure> {
    let mut tokens = server.tokens();
    match command {
        TokenCommand::Create { account, label } => {
            let request = v1::CreateTokenRequest { account: account.clone(), label: label.clone() };
            let made = tokens.create_token(request).await.map_err(told)?.into_inner();
            match json {
                true => output::print_json(&made),
                false => output::print(format!("{}\n", made.secret).as_bytes()),
            }
        }
        TokenCommand::Ls { account } => {
            let request = v1::ListTokensRequest { account: account.clone().unwrap_or_default() };
            let found = tokens.list_tokens(request).await.map_err(told)?.into_inner();
            list(json, &found.tokens)
        }
        TokenCommand::Revoke { id } => {
            let request = v1::RevokeTokenRequest { token_id: id.clone() };
            tokens.revoke_token(request).await.map_err(told).map(drop)
        }
    }
}

fn list(json: bool, tokens: &[v1::Token]) -> Result<(), Failure> {
    show::list(json, tokens, &["ID", "ACCOUNT", "LABEL", "CREATED", "USED", "REVOKED"], |token| {
        vec![
            token.id.clone(),
            token.account.clone(),
            token.label.clone(),
            show::ago(token.created_at.as_ref()),
            show::ago(token.last_used_at.as_ref()),
            show::ago(token.revoked_at.as_ref()),
        ]
    })
}
