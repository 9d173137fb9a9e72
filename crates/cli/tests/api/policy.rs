//! The policy of a sandbox: asked for, changed, explained.

use ringfence_wire::v1::{self, Permission, View};

use crate::support::{Server, require_sandbox, rule, said};

async fn set(
    server: &Server,
    id: &str,
    rules: Vec<v1::PermissionRule>,
) -> Result<Vec<v1::PermissionRule>, tonic::Status> {
    let (sandbox_id, preset) = (id.to_owned(), "full-access".to_owned());
    let wanted = v1::SetPolicyRequest { sandbox_id, preset, permissions: rules };
    Ok(server.workspaces().set_policy(wanted).await?.into_inner().permissions)
}

async fn get(server: &Server, id: &str) -> Vec<v1::PermissionRule> {
    let wanted = v1::GetPolicyRequest { sandbox_id: id.into() };
    server.workspaces().get_policy(wanted).await.unwrap().into_inner().permissions
}

#[tokio::test(flavor = "multi_thread")]
async fn another_policy_is_in_force_at_once_and_stays_over_restarts() {
    require_sandbox!();
    let mut server = Server::start().await;
    let codebase = server.codebase(&[("plan.txt", "p"), ("key.txt", "k")]).await;
    let id = server.running(&codebase, &[]).await;
    assert_eq!(server.exec(&id, "cat plan.txt key.txt").await, "pk");
    let rules = set(&server, &id, vec![rule(Permission::None, "/key.txt")]).await.unwrap();
    assert_eq!(
        server.exec(&id, "ls; cat key.txt 2>/dev/null || echo gone").await,
        "plan.txt\ngone\n"
    );
    assert_eq!(get(&server, &id).await, rules);
    server.kill_and_restart().await;
    assert_eq!(get(&server, &id).await, rules);
    server.stop_sandbox(&id).await;
    assert_eq!(said(server.read_as(&id, "key.txt", View::Agent).await).1, "FILE_NOT_FOUND");
    set(&server, &id, vec![]).await.unwrap();
    assert_eq!(server.read_as(&id, "key.txt", View::Agent).await.unwrap(), "k");
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat key.txt").await, "k");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_read_change_nothing() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a", "a")]).await;
    let id = server.running(&codebase, &[rule(Permission::Read, "/a")]).await;
    let before = get(&server, &id).await;
    let bad = vec![rule(Permission::None, "/a"), rule(Permission::None, "/[")];
    assert_eq!(said(set(&server, &id, bad).await).1, "INVALID_ARGUMENT");
    assert_eq!(get(&server, &id).await, before);
    assert_eq!(server.exec(&id, "cat a").await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_level_can_be_explained() {
    let server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.sandbox(&codebase, &[rule(Permission::View, "/docs/**")]).await;
    let paths = vec!["/workspace/docs/a".to_owned(), "src/b".to_owned()];
    let wanted = v1::ExplainRequest { sandbox_id: id, paths };
    let said = server.workspaces().explain(wanted).await.unwrap().into_inner().explanations;
    assert_eq!((said[0].path.as_str(), said[0].permission()), ("/docs/a", Permission::View));
    assert_eq!(said[0].rule.as_ref().unwrap().pattern, "/docs/**");
    assert!(said[0].reason.contains("/docs/**"), "{}", said[0].reason);
    assert_eq!((said[1].path.as_str(), said[1].permission()), ("/src/b", Permission::Write));
}
