//! Making a sandbox.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use ringfence_runtime::limits::parse_duration;
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::images;
use super::super::show;
use super::super::trouble::told;
use crate::failure::Failure;
use crate::shape_args::{ShapeArgs, existing_dir};

/// Make a sandbox on a codebase, or on a directory of the server's own host
///
/// Without rules the preset agent-safe is in force. The id is printed on standard output.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("base").required(true).args(["codebase", "dir"])))]
#[command(after_help = "\
Examples:
  ringfence sandbox create --codebase cb_0123456789abcdef --start
  ringfence sandbox create --dir . --preset development --memory 1G --label team=a --expires 1h
  ringfence sandbox create --dir . --image python:3.11-slim --net bridge --start
  ringfence sandbox create --codebase cb_0123456789abcdef --rule 'none:**/.env*@100' --net host")]
pub(super) struct CreateArgs {
    /// The codebase to stand on
    #[arg(long, value_name = "ID")]
    codebase: Option<String>,

    /// Stand on this directory where it is, without a copy; over the Unix socket only
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Begin with the files of a snapshot
    #[arg(long, value_name = "ID")]
    snapshot: Option<String>,

    #[command(flatten)]
    shape: ShapeArgs,

    /// A label to find it by; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// Remove it after this time, e.g. 30m or 1h
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    /// Start it as well
    #[arg(long)]
    start: bool,
}

pub(super) async fn create(server: &Server, json: bool, args: &CreateArgs) -> Result<(), Failure> {
    let mut request = args.shape.request()?;
    request.labels = labels(&args.label)?;
    request.expires_in = args.expires.as_deref().map(duration).transpose()?;
    request.snapshot_id = args.snapshot.clone().unwrap_or_default();
    request.start = args.start;
    images::fetch(server, &request).await?;
    let sandbox = match (&args.dir, &args.codebase) {
        (Some(dir), _) => in_place(server, args, dir, request).await?,
        (None, codebase) => {
            request.codebase_id = codebase.clone().unwrap_or_default();
            server.sandboxes().create_sandbox(request).await.map_err(told)?.into_inner()
        }
    };
    show::made(json, &sandbox, &sandbox.id)
}

async fn in_place(
    server: &Server,
    args: &CreateArgs,
    dir: &std::path::Path,
    mut request: v1::CreateSandboxRequest,
) -> Result<v1::Sandbox, Failure> {
    let codebase =
        v1::CreateCodebaseRequest { fleeting: true, ..args.shape.codebase(&existing_dir(dir)?)? };
    let codebase = server.codebases().create_codebase(codebase).await.map_err(told)?.into_inner();
    request.codebase_id = codebase.id.clone();
    match server.sandboxes().create_sandbox(request).await {
        Ok(made) => Ok(made.into_inner()),
        Err(status) => {
            // It was made for this one alone.
            let delete = v1::DeleteCodebaseRequest { codebase_id: codebase.id };
            let _ = server.codebases().delete_codebase(delete).await;
            Err(told(status))
        }
    }
}

/// Labels as they are typed, `KEY=VALUE`.
pub(super) fn labels(texts: &[String]) -> Result<HashMap<String, String>, Failure> {
    let one = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::bad_input(format!("--label {text:?} is not a label"))
            .hint("give it as KEY=VALUE")),
    };
    texts.iter().map(one).collect()
}

/// A time as it is typed: `30m`.
pub(in crate::client) fn duration(text: &str) -> Result<pbjson_types::Duration, Failure> {
    Ok(wire_duration(parse_duration(text).map_err(Failure::bad_input)?))
}

pub(crate) fn wire_duration(time: std::time::Duration) -> pbjson_types::Duration {
    pbjson_types::Duration {
        seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        nanos: time.subsec_nanos() as i32,
    }
}
