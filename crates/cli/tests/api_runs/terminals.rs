//! Terminals: seeing, typing, leaving, and what is recorded.

use ringfence_wire::v1;
use ringfence_wire::v1::process_state::Status as State;
use ringfence_wire::v1::terminal_input::{Attach, Content as Input, Size};
use ringfence_wire::v1::terminal_output::Content as Shown;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::support::{Sandbox, Server, gate, next, refused, require_sandbox, rest, within};

/// Somebody at a terminal.
struct Viewer {
    keys: mpsc::Sender<v1::TerminalInput>,
    screen: Streaming<v1::TerminalOutput>,
}

impl Viewer {
    async fn attach(sandbox: &Sandbox, id: &str) -> Result<Self, Status> {
        let (keys, typed) = mpsc::channel(16);
        let attach = Attach { sandbox_id: sandbox.id.clone(), terminal_id: id.into() };
        let first = v1::TerminalInput { content: Some(Input::Attach(attach)) };
        keys.send(first).await.unwrap();
        let typed = ReceiverStream::new(typed);
        let screen = within(sandbox.terminals.clone().attach_terminal(typed)).await?;
        Ok(Self { keys, screen: screen.into_inner() })
    }

    async fn say(&self, content: Input) {
        self.keys.send(v1::TerminalInput { content: Some(content) }).await.unwrap();
    }

    async fn type_in(&self, text: &str) {
        self.say(Input::Data(text.as_bytes().to_vec().into())).await;
    }

    /// What is shown until it is live.
    async fn replayed(&mut self) -> String {
        let mut shown = Vec::new();
        loop {
            match next(&mut self.screen).await.content.unwrap() {
                Shown::Data(bytes) => shown.extend_from_slice(&bytes),
                Shown::Live(true) => return String::from_utf8_lossy(&shown).into_owned(),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn see(&mut self, text: &str) {
        let mut shown = String::new();
        while !shown.contains(text) {
            match next(&mut self.screen).await.content.unwrap() {
                Shown::Data(bytes) => shown.push_str(&String::from_utf8_lossy(&bytes)),
                Shown::Live(_) => {}
                Shown::Ended(state) => panic!("{state:?} after {shown:?}"),
            }
        }
    }

    async fn end(mut self) -> v1::ProcessState {
        match rest(&mut self.screen).await.pop().unwrap().content {
            Some(Shown::Ended(state)) => state,
            other => panic!("{other:?}"),
        }
    }
}

async fn open(sandbox: &Sandbox, asked: v1::OpenTerminalRequest) -> v1::Terminal {
    let asked = v1::OpenTerminalRequest { sandbox_id: sandbox.id.clone(), ..asked };
    within(sandbox.terminals.clone().open_terminal(asked)).await.unwrap().into_inner()
}

fn command(text: &str) -> v1::OpenTerminalRequest {
    v1::OpenTerminalRequest { command: text.into(), ..Default::default() }
}

async fn recording(sandbox: &Sandbox, id: &str) -> Result<String, Status> {
    let (sandbox_id, terminal_id) = (sandbox.id.clone(), id.into());
    let asked = v1::CloseTerminalRequest { sandbox_id, terminal_id };
    let mut chunks = sandbox.terminals.clone().terminal_recording(asked).await?.into_inner();
    let bytes = rest(&mut chunks).await.into_iter().flat_map(|chunk| chunk.data.to_vec());
    Ok(String::from_utf8(bytes.collect()).unwrap())
}

#[tokio::test]
async fn what_was_shown_comes_first_then_what_is_typed_is_answered_until_the_end() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let text =
        "echo welcome; while read line; do [ \"$line\" = bye ] && exit 6; echo \"<$line>\"; done";
    let terminal = open(&sandbox, command(text)).await;
    let mut first = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    first.see("welcome").await;
    let mut second = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    assert!(second.replayed().await.contains("welcome"), "scrollback, then live");
    first.type_in("hello\n").await;
    first.see("<hello>").await;
    second.see("<hello>").await;
    second.type_in("bye\n").await;
    for viewer in [first, second] {
        let state = viewer.end().await;
        assert_eq!((state.status(), state.exit_code), (State::Exited, 6));
    }
    let late = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    assert_eq!(late.end().await.exit_code, 6, "one who comes after the end is told too");
}

#[tokio::test]
async fn leaving_detaches_and_the_terminal_goes_on() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let terminal = open(&sandbox, command("while read line; do echo \"<$line>\"; done")).await;
    let mut viewer = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    viewer.type_in("one\n").await;
    viewer.see("<one>").await;
    drop(viewer);
    let asked = v1::ListTerminalsRequest { sandbox_id: sandbox.id.clone() };
    let alone = async {
        loop {
            let listed = sandbox.terminals.list_terminals(asked.clone()).await.unwrap();
            let terminal = listed.into_inner().terminals.remove(0);
            assert_eq!(terminal.state.unwrap().status(), State::Running);
            if terminal.watchers == 0 {
                return;
            }
        }
    };
    within(alone).await;
    let mut viewer = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    assert!(viewer.replayed().await.contains("<one>"));
    viewer.type_in("two\n").await;
    viewer.see("<two>").await;
}

#[tokio::test]
async fn one_who_has_no_more_to_type_still_watches() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let text = format!("read line; touch /tmp/read; {}; echo \"<$line>\"", gate("go"));
    let terminal = open(&sandbox, command(&text)).await;
    let Viewer { keys, mut screen } = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    let content = Some(Input::Data(b"last\n".to_vec().into()));
    keys.send(v1::TerminalInput { content }).await.unwrap();
    drop(keys);
    sandbox.ok(&gate("read")).await;
    sandbox.open_gate("go").await;
    let shown = rest(&mut screen).await;
    assert!(matches!(shown.last().unwrap().content, Some(Shown::Ended(_))));
    let data = shown.iter().filter_map(|piece| match &piece.content {
        Some(Shown::Data(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    assert!(data.collect::<String>().contains("<last>"));
}

#[tokio::test]
async fn sizes_change_from_within_the_stream_and_beside_it() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let terminal = open(&sandbox, command("while read line; do stty size; done")).await;
    assert_eq!((terminal.rows, terminal.columns), (24, 80));
    let mut viewer = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    viewer.say(Input::Size(Size { rows: 30, columns: 100 })).await;
    viewer.type_in("\n").await;
    viewer.see("30 100").await;
    let resize = |rows: u32| v1::ResizeTerminalRequest {
        sandbox_id: terminal.sandbox_id.clone(),
        terminal_id: terminal.id.clone(),
        rows,
        columns: 101,
    };
    sandbox.terminals.resize_terminal(resize(31)).await.unwrap();
    viewer.type_in("\n").await;
    viewer.see("31 101").await;
    let bad = sandbox.terminals.resize_terminal(resize(70_000)).await;
    refused(bad, Code::InvalidArgument, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_closed_terminal_ends_for_all_who_watch() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let terminal = open(&sandbox, v1::OpenTerminalRequest::default()).await;
    let mut viewer = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    viewer.replayed().await;
    let (sandbox_id, terminal_id) = (sandbox.id.clone(), terminal.id.clone());
    let close = v1::CloseTerminalRequest { sandbox_id, terminal_id };
    sandbox.terminals.close_terminal(close).await.unwrap();
    assert_ne!(viewer.end().await.status(), State::Running);
}

#[tokio::test]
async fn a_recording_is_played_in_every_state_and_names_lead_nowhere_else() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let asked = v1::OpenTerminalRequest { record: true, id: "rec".into(), ..command("echo shown") };
    open(&sandbox, asked).await;
    Viewer::attach(&sandbox, "rec").await.unwrap().end().await;
    let cast = recording(&sandbox, "rec").await.unwrap();
    assert!(cast.starts_with("{") && cast.contains("\"version\":2"), "{cast}");
    assert!(cast.contains("shown"), "{cast}");
    sandbox.stop().await;
    assert_eq!(recording(&sandbox, "rec").await.unwrap(), cast);
    for name in ["", "other", "../journal", "../../x/recordings/rec", "/etc/passwd", "rec.cast/.."]
    {
        refused(recording(&sandbox, name).await, Code::NotFound, "TERMINAL_NOT_FOUND");
    }
    let dir = server.state("sandboxes").join(&sandbox.id).join("recordings");
    std::os::unix::fs::symlink("/etc/passwd", dir.join("link.cast")).unwrap();
    refused(recording(&sandbox, "link").await, Code::Internal, "INTERNAL");
}

#[tokio::test]
async fn an_unknown_terminal_is_an_answer_and_nonsense_ends_the_stream() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let unknown = Viewer::attach(&sandbox, "nobody").await.map(|_| ());
    refused(unknown, Code::NotFound, "TERMINAL_NOT_FOUND");
    let first = v1::TerminalInput { content: Some(Input::Data(b"x".to_vec().into())) };
    let said = tokio_stream::iter([first]);
    let result = sandbox.terminals.clone().attach_terminal(said).await.map(|_| ());
    refused(result, Code::InvalidArgument, "INVALID_ARGUMENT");
    let terminal = open(&sandbox, command("sleep 1000")).await;
    let mut viewer = Viewer::attach(&sandbox, &terminal.id).await.unwrap();
    viewer.replayed().await;
    viewer.say(Input::Attach(Attach::default())).await;
    refused(within(viewer.screen.message()).await, Code::InvalidArgument, "INVALID_ARGUMENT");
}
