//! What repeated requests are promised.

use std::sync::atomic::{AtomicUsize, Ordering};

use ringfence_engine::store::LOCAL;
use ringfence_wire::v1;
use tonic::Code;

use super::*;

fn repeats() -> (tempfile::TempDir, Repeats) {
    let dir = tempfile::tempdir().unwrap();
    let repeats = Repeats::new(Store::open(dir.path()).unwrap());
    (dir, repeats)
}

fn asked(id: &str) -> Asked {
    let content = b"content".to_vec();
    Asked { account: LOCAL.into(), request_id: id.into(), method: "Exec", content }
}

fn result(code: i32) -> v1::ExecResult {
    v1::ExecResult { exit_code: code, ..Default::default() }
}

#[tokio::test]
async fn the_same_request_is_answered_the_same_and_done_once() {
    let (_dir, repeats) = repeats();
    let first = repeats.once(asked("a"), async { Ok(result(1)) }).await.unwrap();
    let again = repeats.once(asked("a"), async { Ok(result(2)) }).await.unwrap();
    assert_eq!((first.message.exit_code, first.is_repeated), (1, false));
    assert_eq!((again.message.exit_code, again.is_repeated), (1, true));
    let other = Asked { content: b"other".to_vec(), ..asked("a") };
    let refused = repeats.once(other, async { Ok(result(3)) }).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    for code in [4, 5] {
        let free = repeats.once(asked(""), async { Ok(result(code)) }).await.unwrap();
        assert_eq!(free.message.exit_code, code, "no id, no memory");
    }
}

#[tokio::test]
async fn an_error_is_not_remembered() {
    let (_dir, repeats) = repeats();
    let failed: Result<Answered<v1::ExecResult>, _> =
        repeats.once(asked("a"), async { Err(Status::internal("no")) }).await;
    assert_eq!(failed.unwrap_err().code(), Code::Internal);
    let again = repeats.once(asked("a"), async { Ok(result(2)) }).await.unwrap();
    assert_eq!(again.message.exit_code, 2);
}

#[tokio::test]
async fn those_who_ask_meanwhile_wait_for_the_first() {
    let (_dir, repeats) = repeats();
    let (go, gate) = tokio::sync::oneshot::channel::<()>();
    let (started, is_started) = tokio::sync::oneshot::channel::<()>();
    let done = Arc::new(AtomicUsize::new(0));
    let (at, count) = (repeats.clone(), done.clone());
    let first = tokio::spawn(async move {
        let work = async move {
            let _ = started.send(());
            gate.await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            Ok(result(7))
        };
        at.once(asked("a"), work).await
    });
    is_started.await.unwrap();
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..9 {
        let (at, count) = (repeats.clone(), done.clone());
        others.spawn(async move {
            let work = async {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(result(8))
            };
            at.once(asked("a"), work).await.unwrap()
        });
    }
    go.send(()).unwrap();
    assert!(!first.await.unwrap().unwrap().is_repeated);
    while let Some(other) = others.join_next().await {
        assert_eq!(other.unwrap().message.exit_code, 7);
    }
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn who_vanishes_in_the_middle_leaves_it_to_the_next() {
    let (_dir, repeats) = repeats();
    let (started, is_started) = tokio::sync::oneshot::channel::<()>();
    let at = repeats.clone();
    let first = tokio::spawn(async move {
        let work = async move {
            let _ = started.send(());
            std::future::pending::<Result<v1::ExecResult, Status>>().await
        };
        at.once(asked("a"), work).await
    });
    is_started.await.unwrap();
    let at = repeats.clone();
    let second = tokio::spawn(async move { at.once(asked("a"), async { Ok(result(2)) }).await });
    first.abort();
    assert_eq!(second.await.unwrap().unwrap().message.exit_code, 2);
}

#[test]
fn the_order_of_a_map_does_not_matter_and_everything_else_does() {
    let request = |labels: &[(&str, &str)]| v1::CreateSandboxRequest {
        labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..Default::default()
    };
    let names: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "x")).collect();
    let turned: Vec<(&str, &str)> = many.iter().rev().copied().collect();
    assert_eq!(content(&request(&many)), content(&request(&turned)));
    assert_ne!(content(&request(&many)), content(&request(&many[1..])));
    assert_ne!(content(&request(&[("a", "b")])), content(&request(&[("b", "a")])));
}
