//! The record of what happened in a sandbox.

use std::time::Duration;

use pbjson_types::Timestamp;
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::audit::{AuditEntry, AuditFilter, AuditReader};
use ringfence_wire::v1;
use ringfence_wire::v1::audit_service_server::AuditService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};

use super::Services;
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::status::status_of;

/// Entries that wait for a slow reader; then nothing more is read.
const WAITING: usize = 64;
/// How often a follower looks for more.
const LOOK: Duration = Duration::from_millis(100);

type Events = ReceiverStream<std::result::Result<v1::AuditEvent, Status>>;
type Sender = mpsc::Sender<std::result::Result<v1::AuditEvent, Status>>;

impl Services {
    async fn audit(&self, request: Request<v1::AuditRequest>) -> Result<Events> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let id = required("sandbox_id", &asked.sandbox_id)?;
        let after = u64::try_from(asked.after);
        let after = after.map_err(|_| Problem::invalid("`after` is negative"))?;
        let filter = AuditFilter { after, denied: asked.denied };
        self.sandboxes.settle_audit(&caller.account, id).await?;
        let reader = self.sandboxes.read_audit(&caller.account, id, filter)?;
        let (send, receive) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            if let Err(problem) = pass_on(reader, asked.follow, &send).await {
                let _ = send.send(Err(status_of(problem))).await;
            }
        });
        Ok(ReceiverStream::new(receive))
    }

    async fn verify_audit(
        &self,
        request: Request<v1::VerifyAuditRequest>,
    ) -> Result<v1::VerifyAuditResponse> {
        let caller = caller(&request)?;
        let id = request.into_inner().sandbox_id;
        required("sandbox_id", &id)?;
        self.sandboxes.settle_audit(&caller.account, &id).await?;
        let sandboxes = self.sandboxes.clone();
        let verify = move || sandboxes.verify_audit(&caller.account, &id);
        let verdict = tokio::task::spawn_blocking(verify).await;
        let verdict = verdict.map_err(|e| Problem::internal("verify the record", e))??;
        Ok(v1::VerifyAuditResponse {
            intact: verdict.problem.is_none(),
            events: verdict.events as i64,
            problem: verdict.problem.unwrap_or_default(),
        })
    }
}

/// Sends what there is, and with `follow` what comes, over stops and starts, until the sandbox is
/// destroyed. No thread is held while there is nothing to read.
async fn pass_on(mut reader: AuditReader, follow: bool, send: &Sender) -> Result<()> {
    let mut last_look = !follow;
    loop {
        let (back, batch) = look(reader).await?;
        reader = back;
        if !batch.is_empty() {
            for entry in batch {
                if send.send(event(entry)).await.is_err() {
                    return Ok(());
                }
            }
            continue;
        }
        if last_look {
            return Ok(());
        }
        // Something may have been written between the look before and this one.
        last_look = !reader.goes_on()?;
        if !last_look {
            tokio::select! {
                () = send.closed() => return Ok(()),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

async fn look(mut reader: AuditReader) -> Result<(AuditReader, Vec<AuditEntry>)> {
    let read = move || {
        let batch = reader.next_batch()?;
        Ok((reader, batch))
    };
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|e| Problem::internal("read the record", e))?
}

fn event(entry: AuditEntry) -> std::result::Result<v1::AuditEvent, Status> {
    // The time as the journal writes it is the time as JSON has it.
    let time: Option<Timestamp> = serde_json::from_value(entry.time.into()).ok();
    Ok(v1::AuditEvent { sequence: entry.sequence as i64, time, kind: entry.kind, json: entry.json })
}

#[tonic::async_trait]
impl AuditService for Services {
    type AuditStream = Events;

    async fn audit(&self, request: Request<v1::AuditRequest>) -> Answer<Self::AuditStream> {
        answer(Services::audit(self, request).await)
    }

    async fn verify_audit(
        &self,
        request: Request<v1::VerifyAuditRequest>,
    ) -> Answer<v1::VerifyAuditResponse> {
        answer(Services::verify_audit(self, request).await)
    }
}
