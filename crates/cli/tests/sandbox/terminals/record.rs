//! What is left of a terminal: the journal and recordings.

use std::os::unix::fs::PermissionsExt;

use ringfence_link::warden::{Code, OpenTerminal, ProcessStatus};
use serde_json::Value;

use super::{bash, text};
use crate::support::{code_of, gate, sandbox};

#[test]
fn a_terminal_is_on_record_by_reference() {
    let sandbox = sandbox!();
    let mut terminal =
        sandbox.on_terminal(text("stty -echo; echo up; read x; printf 'secret %s' $x"));
    terminal.expect("up\r\n");
    terminal.type_in("typed-words\n");
    terminal.expect("secret typed-words");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
    drop(terminal);
    let journal = sandbox.stop_and_read_journal();
    let entry = |direction: &str| {
        let wanted = format!(r#""direction":"{direction}""#);
        let line = journal.lines().find(|line| line.contains(&wanted)).unwrap();
        serde_json::from_str::<Value>(line).unwrap()
    };
    for (direction, bytes) in [("typed", "typed-words\n"), ("shown", "up\r\nsecret typed-words")] {
        let text = entry(direction).to_string();
        assert!(text.contains(&format!(r#""size":{}"#, bytes.len())), "{text}");
        assert!(text.contains(&blake3::hash(bytes.as_bytes()).to_string()), "{text}");
    }
    assert!(journal.contains("terminal_opened") && journal.contains("terminal_closed"));
    assert!(!journal.contains("typed-words"), "contents are not on record");
}

#[test]
fn a_recording_is_an_asciicast_of_what_was_shown() {
    let sandbox = sandbox!();
    let file = |id: &str| sandbox.config.dir.join("recordings").join(format!("{id}.cast"));
    // A character comes in two parts.
    let program = format!("printf 'caf\\303'; {}; printf '\\251'; read x", gate("go"));
    let mut terminal = sandbox.on_terminal(OpenTerminal { record: true, ..text(&program) });
    terminal.expect("caf");
    sandbox.open_gate("go");
    terminal.expect("é");
    sandbox.resize(&terminal.id, 30, 90).unwrap();
    terminal.type_in("\n");
    terminal.ended().unwrap();
    let cast = std::fs::read_to_string(file(&terminal.id)).unwrap();
    let lines: Vec<Value> = cast.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"]), (&2.into(), &80.into()));
    let data = |kind: &str| -> String {
        let events = lines[1..].iter().filter(|line| line[1] == kind);
        events.map(|line| line[2].as_str().unwrap()).collect()
    };
    assert_eq!((data("o").as_str(), data("r").as_str()), ("café\r\n", "90x30"));
    let times: Vec<f64> = lines[1..].iter().map(|line| line[0].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let mode = std::fs::metadata(file(&terminal.id)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // One recording is not written over by another, and without asking there is none.
    let again = OpenTerminal { id: Some(terminal.id.clone()), record: true, ..bash() };
    assert_eq!(code_of(sandbox.try_open_terminal(again)), Code::TerminalExists);
    let plain = sandbox.terminal(bash());
    assert!(!file(&plain.id).exists());
}
