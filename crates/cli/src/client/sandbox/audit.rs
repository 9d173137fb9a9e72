//! What happened in a sandbox.

use clap::Args;
use ringfence_warden::journal::Entry;
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::trouble::told;
use crate::audit_rows::row;
use crate::failure::Failure;
use crate::output::{self, Paint};

/// Show what a sandbox did, also after its end
///
/// With --json the entries are printed as they are in the record, one object per line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox audit sb_0123456789abcdef
  ringfence sandbox audit sb_0123456789abcdef --denied
  ringfence sandbox audit sb_0123456789abcdef --follow --json")]
pub(super) struct AuditArgs {
    /// The sandbox
    id: String,

    /// Only accesses that were refused
    #[arg(long)]
    denied: bool,

    /// Go on as entries are written
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn audit(server: &Server, json: bool, args: &AuditArgs) -> Result<(), Failure> {
    let request = v1::AuditRequest {
        sandbox_id: args.id.clone(),
        follow: args.follow,
        denied: args.denied,
        after: 0,
    };
    let mut events = server.audit().audit(request).await.map_err(told)?.into_inner();
    let paint = Paint::for_stdout();
    while let Some(event) = events.message().await.map_err(told)? {
        let line = if json { event.json.clone() } else { shown(&event, paint) };
        output::print(format!("{}\n", line.trim_end()).as_bytes())?;
    }
    Ok(())
}

/// An entry of a kind that this program does not know is shown as it is.
fn shown(event: &v1::AuditEvent, paint: Paint) -> String {
    match serde_json::from_str::<Entry>(&event.json) {
        Ok(entry) => row(&entry, paint),
        Err(_) => event.json.clone(),
    }
}
