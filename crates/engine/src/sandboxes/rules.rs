//! The policy of a sandbox: changing and explaining it.

use ringfence_fs::LayerError;
use ringfence_fs::layers::format::LayerDir;
use ringfence_link::warden::Request;
use ringfence_policy::{Explanation, Rule, WorkspacePath};
use ringfence_warden::journal::Event;
use ringfence_warden::journal::event::{PolicyChanged, PolicyInForce};

use super::Sandboxes;
use super::ask::problem_of;
use super::create::check_rules;
use super::reach::{policy_of, to_the_end};
use crate::problem::{Problem, Result};
use crate::store::{SandboxRecord, Status};
use crate::wardens::call::Call;

impl Sandboxes {
    /// Puts other rules in force, for new opens as soon as this returns. Rules that cannot be read
    /// change nothing.
    pub async fn set_rules(
        &self,
        account: &str,
        id: &str,
        rules: Vec<Rule>,
    ) -> Result<SandboxRecord> {
        check_rules(&rules)?;
        let (sandboxes, account, id) = (self.clone(), account.to_owned(), id.to_owned());
        to_the_end(async move {
            let held = sandboxes.enter(&account, &id).await?;
            // The record first: should the server end now, the next one puts in force what is on it.
            let record = sandboxes.change(&id, |record| record.rules = rules)?;
            if record.status != Status::Running {
                let policy = PolicyInForce::of(&record.rules);
                let changed = Event::PolicyChanged(PolicyChanged { policy, by: None });
                sandboxes.note_event(&held, changed);
            } else if let Err(problem) = sandboxes.put_in_force(&id, &record.rules).await {
                sandboxes.change(&id, |record| record.rules = held.record.rules.clone())?;
                return Err(problem);
            }
            Ok(record)
        })
        .await
    }

    pub(super) async fn put_in_force(&self, id: &str, rules: &[Rule]) -> Result<()> {
        let rules =
            serde_json::to_string(rules).map_err(|e| Problem::internal("write the rules", e))?;
        let socket = self.dir(id).join("warden.sock");
        let set = Call::ask(&socket, Request::SetPolicy { rules }).await;
        set.map(drop).map_err(problem_of)
    }

    /// Whether a sandbox that runs has the rules of its record. Nobody knows if it has no layer.
    pub(super) fn rules_in_force(&self, record: &SandboxRecord) -> Result<Option<bool>> {
        let layer = match LayerDir::inspect(&self.layer_path(&record.layer)) {
            Err(LayerError::Missing { .. } | LayerError::NotALayer { .. }) => return Ok(None),
            layer => layer.map_err(|e| Problem::internal("read the rules in force", e))?,
        };
        let there = &layer.meta().rules;
        let same = there.len() == record.rules.len()
            && there.iter().zip(&record.rules).all(|(there, rule)| {
                there.pattern == rule.pattern
                    && there.pattern_type == rule.pattern_type.as_str()
                    && there.level == rule.level.as_str()
                    && there.priority == rule.priority
            });
        Ok(Some(same))
    }

    /// Why paths have the levels they have.
    pub fn explain(
        &self,
        account: &str,
        id: &str,
        paths: &[WorkspacePath],
    ) -> Result<Vec<Explanation>> {
        let policy = policy_of(&self.get(account, id)?)?;
        Ok(paths.iter().map(|path| policy.explain(path)).collect())
    }
}
